//! What no plan under any schedule can beat: the bound that a search is measured by while it runs.

use crate::error::CliError;
use crate::input::Expect;
use crate::resolve::{self, Task};
use spillbench_bounds::{Certificate, Cover, Limits, across_orders, certify};
use spillbench_core::index::BufIx;
use spillbench_core::{Graph, Machine};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

/// How much work finding a bound may be: a second or so, with a few tens of megabytes.
const LIMITS: Limits = Limits { states_per_set: 200_000, states: 2_000_000 };

/// The largest graph, in nodes, whose movement is bounded: beyond it, bounding would take longer than
/// most searches.
const LARGEST: usize = 100_000;

/// A lower bound on an objective over every schedule, which may still be in the making.
#[derive(Debug)]
pub struct Floor {
    found: Arc<OnceLock<u64>>,
    worker: Option<JoinHandle<()>>,
}

impl Floor {
    /// A bound that is known.
    pub fn known(value: u64) -> Self {
        Self { found: Arc::new(value.into()), worker: None }
    }

    /// The bound on extra data movement, which a thread of its own looks for; 0 for a large graph.
    pub fn of_movement(task: &Arc<Task>, machine: &Arc<Machine>) -> Self {
        if task.graph.node_count() > LARGEST {
            return Self::known(0);
        }
        let found = Arc::new(OnceLock::new());
        let (task, machine, there) = (Arc::clone(task), Arc::clone(machine), Arc::clone(&found));
        let worker = std::thread::spawn(move || {
            let bound = across_orders(&task.graph, &machine, &LIMITS).map_or(0, |b| b.value.0);
            // Nobody else sets it.
            let _ = there.set(bound);
        });
        Self { found, worker: Some(worker) }
    }

    /// The bound as far as it is known; 0 holds always.
    pub fn value(&self) -> u64 {
        self.found.get().copied().unwrap_or(0)
    }

    /// Waits until the bound is known.
    pub fn wait(&mut self) {
        if let Some(worker) = self.worker.take() {
            // A search is worth its result without a bound, too.
            let _ = worker.join();
        }
    }
}

/// What a certificate proves of the movement under every schedule.
///
/// # Errors
/// When the file holds no certificate, it does not fit the graph, or it speaks of one schedule only.
pub fn certified(path: &Path, task: &Task, machine: &Machine) -> Result<u64, CliError> {
    let refused = |why: String| {
        let what = format!("{}: {why}", path.display());
        CliError::usage(what, "give a certificate of this graph, on this hardware, that covers every order")
    };
    let certificate = Certificate::read(&resolve::read(path, Expect::Text)?).map_err(|e| refused(e.to_string()))?;
    if certificate.cover != Cover::EveryOrder {
        return Err(refused(format!("it covers {}, and a search changes the order", certificate.cover.name())));
    }
    certify(&task.graph, machine, None, &certificate).map(|c| c.bound.0).map_err(|e| refused(e.to_string()))
}

/// A lower bound on peak demand: what the operands of one op take, or one buffer.
pub fn of_peak(graph: &Graph, machine: &Machine) -> u64 {
    let size = |&b: &BufIx| {
        let buffer = graph.buf(b);
        if machine.cache(buffer.cache).counts_in_peak { buffer.size.0 } else { 0 }
    };
    let ops = graph.nodes().map(|n| graph.operands(n).iter().map(size).fold(0, u64::saturating_add));
    ops.chain(graph.bufs().map(|b| size(&b))).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use spillbench_core::{GraphBuilder, Hardware};

    #[test]
    fn operands_together_bound_the_peak() {
        let mut g = GraphBuilder::new();
        g.alloc(0, 0, 6, "UB").alloc(1, 1, 5, "L1").alloc(2, 2, 99, "L0A").alloc(3, 3, 7, "UB");
        g.op(4, "EXP", "VECTOR", 30, &[0, 1, 2]).op(5, "EXP", "VECTOR", 30, &[3]);
        g.free(6, 0, 6, "UB").free(7, 1, 5, "L1").free(8, 2, 99, "L0A").free(9, 3, 7, "UB");
        let graph = g.build().unwrap().0;
        let machine = Machine::resolve(&graph, &Hardware::default()).unwrap();
        assert_eq!(of_peak(&graph, &machine), 11);
    }
}
