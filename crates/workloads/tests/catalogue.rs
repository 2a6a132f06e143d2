//! The graphs in `datasets/` are what their catalogue says, byte for byte.
//!
//! `SPILLBENCH_REFRESH=1 cargo test -p spillbench-workloads --test catalogue` writes them anew: the
//! first four columns of the catalogue are its source, the others follow.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use spillbench_core::formats::graph_json;
use spillbench_core::planner::Workspace;
use spillbench_core::{Graph, Hardware, Machine, Schedule};
use spillbench_heuristics::Policy;
use spillbench_workloads::{FAMILIES, WorkloadSpec, generate};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A line of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    name: String,
    family: String,
    parameters: String,
    seed: u64,
    nodes: usize,
    edges: usize,
    sha256: String,
}

impl Entry {
    fn generate(&self) -> Graph {
        let settings = self.parameters.split(',').map(str::to_owned).chain([format!("seed={}", self.seed)]);
        let spec = WorkloadSpec::from_settings(&self.family, &settings.collect::<Vec<_>>());
        generate(&spec.unwrap_or_else(|e| panic!("{}: {e}", self.name)))
            .unwrap_or_else(|e| panic!("{}: {e}", self.name))
    }

    fn path(&self) -> PathBuf {
        datasets().join(format!("{}.json", self.name))
    }
}

fn datasets() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets")
}

fn catalogue() -> Vec<Entry> {
    let mut reader = csv::Reader::from_path(datasets().join("catalogue.csv")).unwrap();
    reader.deserialize().collect::<Result<_, _>>().unwrap()
}

fn bytes(graph: &Graph) -> Vec<u8> {
    let mut bytes = Vec::new();
    graph_json::write(graph, &mut bytes).unwrap();
    bytes
}

fn checksum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn refresh() {
    let entries = catalogue();
    let mut writer = csv::Writer::from_path(datasets().join("catalogue.csv")).unwrap();
    for mut entry in entries {
        let graph = entry.generate();
        let bytes = bytes(&graph);
        std::fs::write(entry.path(), &bytes).unwrap();
        (entry.nodes, entry.edges) = (graph.node_count(), graph.edge_count());
        entry.sha256 = checksum(&bytes);
        writer.serialize(entry).unwrap();
    }
    writer.flush().unwrap();
}

#[test]
fn every_graph_is_regenerated_byte_for_byte() {
    if std::env::var_os("SPILLBENCH_REFRESH").is_some() {
        refresh();
    }
    let mut total = 0;
    for entry in catalogue() {
        let graph = entry.generate();
        let (made, shipped) = (bytes(&graph), std::fs::read(entry.path()).unwrap());
        assert!(made == shipped, "{}: the file differs from what is generated", entry.name);
        let facts = (graph.node_count(), graph.edge_count(), checksum(&shipped));
        assert_eq!(facts, (entry.nodes, entry.edges, entry.sha256.clone()), "{}", entry.name);
        assert!(shipped.len() < 150_000, "{}: {} bytes", entry.name, shipped.len());
        total += shipped.len();
    }
    assert!(total < 1_500_000, "{total} bytes");
}

#[test]
fn every_family_is_there_and_every_file_is_listed() {
    let listed: BTreeSet<_> = catalogue().into_iter().map(|e| e.name).collect();
    assert_eq!(listed.len(), catalogue().len(), "a name stands twice");
    let families: BTreeSet<_> = catalogue().into_iter().map(|e| e.family).collect();
    assert_eq!(families, FAMILIES.iter().map(|f| f.name.to_owned()).collect());
    let files = std::fs::read_dir(datasets()).unwrap().map(|f| f.unwrap().path());
    let graphs: BTreeSet<_> = files
        .filter(|f| f.extension().is_some_and(|e| e == "json"))
        .map(|f| f.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(graphs, listed);
}

#[test]
fn every_graph_is_planned_on_the_default_hardware_and_spills() {
    let mut workspace = Workspace::default();
    for entry in catalogue() {
        let graph = entry.generate();
        let machine = Machine::resolve(&graph, &Hardware::default()).unwrap();
        let plan = Policy::default().plan(&graph, &machine, &Schedule::default_for(&graph), &mut workspace);
        let plan = plan.unwrap_or_else(|e| panic!("{}: {e}", entry.name));
        let report = spillbench_core::checker::check(&graph, &machine, &plan);
        assert!(report.is_valid(), "{}: {report:?}", entry.name);
        assert!(!plan.spills.is_empty(), "{} does not spill", entry.name);
    }
}
