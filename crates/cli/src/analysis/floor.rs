//! What no plan under any schedule can beat: the bound that a search is measured by while it runs.

use crate::error::CliError;
use crate::input::Expect;
use crate::resolve::{self, Task};
use spillbench_bounds::{Certificate, Cover, When, across_orders, certify};
use spillbench_core::index::BufIx;
use spillbench_core::{Graph, Machine};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

/// A lower bound on an objective over every schedule, which may still be in the making.
#[derive(Debug)]
pub struct Floor {
    found: Arc<OnceLock<Result<u64, String>>>,
    worker: Option<JoinHandle<()>>,
    /// The bound is `scale` times what is found, and `base`, which holds by itself.
    scale: u64,
    base: Option<u64>,
    certificate: Option<PathBuf>,
}

impl Floor {
    /// A bound that is known.
    pub fn known(value: u64) -> Self {
        let found = Arc::new(OnceLock::new());
        Self { found, worker: None, scale: 0, base: Some(value), certificate: None }
    }

    /// No bound.
    pub fn unknown() -> Self {
        Self { base: None, ..Self::known(0) }
    }

    /// The bound on extra data movement, which a thread of its own looks for; none for a large graph.
    pub fn of_movement(task: &Arc<Task>, machine: &Arc<Machine>) -> Self {
        let Some(limits) = When::Auto.limits(&task.graph) else { return Self::unknown() };
        let (task, machine) = (Arc::clone(task), Arc::clone(machine));
        let find = move || across_orders(&task.graph, &machine, &limits).map_or(0, |b| b.value.0);
        Self::found_by(move || Ok(find()))
    }

    /// What a certificate proves of the movement under every schedule, which a thread of its own finds
    /// out.
    ///
    /// # Errors
    /// When the file holds no certificate, or it speaks of one schedule only.
    pub fn certified(path: &Path, task: &Arc<Task>, machine: &Arc<Machine>) -> Result<Self, CliError> {
        let certificate =
            Certificate::read(&resolve::read(path, Expect::Text)?).map_err(|e| refused(path, &e.to_string()))?;
        if certificate.cover != Cover::EveryOrder {
            let cover = certificate.cover.name();
            return Err(refused(path, &format!("it covers {cover}, and a search changes the order")));
        }
        let (task, machine) = (Arc::clone(task), Arc::clone(machine));
        let verify = move || certify(&task.graph, &machine, None, &certificate);
        let floor = Self::found_by(move || verify().map(|c| c.bound.0).map_err(|e| e.to_string()));
        Ok(Self { certificate: Some(path.to_owned()), ..floor })
    }

    fn found_by(find: impl FnOnce() -> Result<u64, String> + Send + 'static) -> Self {
        let found = Arc::new(OnceLock::new());
        let there = Arc::clone(&found);
        let worker = std::thread::spawn(move || {
            // Nobody else sets it.
            let _ = there.set(find());
        });
        Self { found, worker: Some(worker), scale: 1, base: None, certificate: None }
    }

    /// `scale` times this bound, and `base`, which holds by itself.
    pub fn within(self, scale: u64, base: u64) -> Self {
        Self { scale, base: Some(base), ..self }
    }

    /// The bound as far as it is known.
    pub fn value(&self) -> Option<u64> {
        let found = self.found.get().and_then(|found| found.as_ref().ok());
        let found = found.map(|found| found.saturating_mul(self.scale).saturating_add(self.base.unwrap_or(0)));
        found.or(self.base)
    }

    /// The bound where that does not depend on when it is asked for.
    pub fn settled(&self) -> Option<u64> {
        self.value().filter(|_| self.worker.is_none())
    }

    /// True while the bound is looked for.
    pub fn is_pending(&self) -> bool {
        self.worker.as_ref().is_some_and(|worker| !worker.is_finished())
    }

    /// True when the certificate was found not to fit.
    pub fn is_refused(&self) -> bool {
        self.found.get().is_some_and(Result::is_err)
    }

    /// # Errors
    /// When the certificate was found not to fit.
    pub fn ask(&self) -> Result<(), CliError> {
        match (self.found.get(), &self.certificate) {
            (Some(Err(why)), Some(path)) => Err(refused(path, why)),
            _ => Ok(()),
        }
    }

    /// Waits until the bound is known, or `stop` says so.
    pub fn wait(&mut self, stop: impl Fn() -> bool) {
        while self.is_pending() && !stop() {
            std::thread::sleep(Duration::from_millis(2));
        }
        if !self.is_pending() {
            self.worker = None;
        }
    }
}

fn refused(path: &Path, why: &str) -> CliError {
    let what = format!("{}: {why}", path.display());
    CliError::usage(what, "give a certificate of this graph, on this hardware, that covers every order")
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
