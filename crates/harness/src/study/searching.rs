//! Cells whose plan a search finds: what it goes by, and what it says of itself.

use super::Cell;
use crate::experiment::{Budget, Goal};
use serde::{Deserialize, Serialize};
use spillbench_core::schedule::Normalize;
use spillbench_core::{Bytes, Machine, Plan, Schedule};
use spillbench_search::{Aim, LeastMovement, Monitor, Progress, SearchConfig, TimedError, Until, search, search_time};
use std::time::{Duration, Instant};

/// What a search goes by, beside its seed.
#[derive(Clone, Copy, Debug)]
pub struct Searching<'a> {
    /// What it makes small.
    pub goal: &'a Goal,
    /// How long it goes on.
    pub budget: Budget,
    /// How many annealings exchange what they find.
    pub islands: u32,
}

/// What a cell makes.
#[derive(Clone, Debug)]
pub struct Made {
    /// The plan.
    pub plan: Plan,
    /// What the search says that found it, where one did.
    pub searched: Option<Searched>,
}

/// What a search says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Searched {
    /// The value of its plan under its objective; `None` when the plan breaks what that demands.
    pub value: Option<u64>,
    /// The value of the plan that it started from; `None` when that breaks what the objective demands.
    pub start: Option<u64>,
    /// Orders evaluated.
    pub evaluations: u64,
    /// The least movement of any plan that a search for time came across.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<Bytes>,
    /// What a search for time let plans move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Bytes>,
}

impl Searched {
    fn of(progress: Progress) -> Self {
        let (value, start) = (progress.best(), progress.start());
        Self { value, start, evaluations: progress.evaluations, least: None, limit: None }
    }
}

impl Cell<'_> {
    /// Searches from the cell's schedule.
    ///
    /// # Errors
    /// When there is no plan, or none was found that keeps to the limit.
    pub(super) fn search(&self, searching: &Searching<'_>, machine: &Machine) -> Result<Made, TimedError> {
        let graph = &self.graph.graph;
        let start = self.schedule.on(graph, &self.hardware.hardware(), Normalize::Free);
        let (evaluations, time) = match searching.budget {
            Budget::Evaluations(n) => (Some(n), None),
            Budget::Seconds(s) => (None, Some(Duration::from_secs_f64(s))),
        };
        // One thread, because the sweep has one for each core.
        let (seed, islands) = (self.seed, searching.islands as usize);
        let config = SearchConfig { seed, islands, threads: 1, evaluations, target: None };
        match searching.goal.aim {
            Some(aim) => self.search_time(aim, machine, &start, &config, time),
            None => {
                let stop = passes(time, 1.0);
                let objective = spillbench_search::objective(&searching.goal.objective).unwrap_or(&LeastMovement);
                let found = search(graph, machine, &start, objective, &config, &stop, &mut Quiet)?;
                Ok(Made { plan: found.plan, searched: Some(Searched::of(found.progress)) })
            }
        }
    }

    fn search_time(
        &self,
        aim: Aim,
        machine: &Machine,
        start: &Schedule,
        config: &SearchConfig,
        time: Option<Duration>,
    ) -> Result<Made, TimedError> {
        let (settle, begin, stop) = (passes(time, Until::SETTLE), passes(time, Until::BEGIN), passes(time, 1.0));
        let until = Until { settle: &settle, begin: &begin, stop: &stop };
        let found = search_time(&self.graph.graph, machine, start, aim, config, &until, &mut Quiet)?;
        let (least, limit) = (Some(Bytes(found.least)), found.limit.map(Bytes));
        let searched = Searched { least, limit, ..Searched::of(found.progress) };
        Ok(Made { plan: found.plan, searched: Some(searched) })
    }
}

/// Says when a part of the time from now on has passed; never where the budget is no time.
fn passes(time: Option<Duration>, part: f64) -> impl Fn() -> bool + Sync {
    let begin = Instant::now();
    move || time.is_some_and(|time| begin.elapsed() >= time.mul_f64(part))
}

/// Follows a search without a word.
struct Quiet;

impl Monitor for Quiet {
    fn improved(&mut self, _plan: &Plan, _progress: Progress) {}
}
