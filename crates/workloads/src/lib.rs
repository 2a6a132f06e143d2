//! Graphs to plan: lowered operators, synthetic families, and importers for graphs people have.
//!
//! A [`WorkloadSpec`] names a family, its parameters and a seed; [`generate`] makes its graph, with
//! that provenance in the `Meta` object. The same spec gives the same bytes on every platform.
//! [`FAMILIES`] lists what there is.
//!
//! ```
//! use spillbench_workloads::{WorkloadSpec, generate};
//!
//! let spec: WorkloadSpec = "matmul(m=8,n=8,k=8)".parse()?;
//! let graph = generate(&spec)?;
//! assert_eq!((graph.node_count(), graph.edge_count()), (4160, 7104));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod cost;
mod draw;
pub mod emit;
mod error;
mod fit;
pub mod import;
mod operators;
mod registry;
mod spec;
mod synthetic;

pub use emit::{Buf, Emitter, Frees, NODE_LIMIT, Op};
pub use error::{SpecError, SpecProblem, WorkloadError};
pub use fit::fit_tile;
pub use registry::{Domain, FAMILIES, Family, FamilyKind, Parameter, Values, family};
pub use spec::{DEFAULT_SEED, WorkloadSpec};

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use spillbench_core::Graph;

/// Stands in the provenance; rises whenever some spec gives other bytes than before.
pub const GENERATOR_VERSION: u32 = 1;

/// Makes the graph of a spec. Its ids are dense and their order is a valid schedule.
///
/// # Errors
/// When the graph would be larger than [`NODE_LIMIT`] nodes (said before anything is made), or the
/// memory pressure asked for cannot be met.
pub fn generate(spec: &WorkloadSpec) -> Result<Graph, WorkloadError> {
    let family = spec.family();
    let nodes = spec.foretold_nodes();
    if nodes > NODE_LIMIT {
        return Err(WorkloadError::TooLarge { nodes, limit: NODE_LIMIT });
    }
    let mut program = (family.build)(spec.values(), spec.seed)?;
    program.meta(provenance(spec)?);
    program.finish()
}

/// Family, all parameters, seed and version of the generator, as JSON. The keys stand in the order
/// of declaration, whatever the features of the JSON library.
#[derive(Serialize)]
struct Provenance<'a> {
    generator: String,
    workload: String,
    family: &'static str,
    parameters: ParameterMap<'a>,
    seed: u64,
}

struct ParameterMap<'a>(&'a Values);

impl Serialize for ParameterMap<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.iter().len()))?;
        for (p, value) in self.0.iter() {
            match p.domain {
                Domain::Int { .. } => map.serialize_entry(p.name, &value)?,
                Domain::Decimal { .. } | Domain::Choice { .. } => {
                    map.serialize_entry(p.name, &p.domain.format(value))?;
                }
            }
        }
        map.end()
    }
}

fn provenance(spec: &WorkloadSpec) -> Result<String, WorkloadError> {
    let provenance = Provenance {
        generator: format!("spillbench generate {GENERATOR_VERSION}"),
        workload: spec.to_string(),
        family: spec.family().name,
        parameters: ParameterMap(spec.values()),
        seed: spec.seed,
    };
    serde_json::to_string(&provenance).map_err(WorkloadError::Provenance)
}
