//! One cell of a study: a combination of axis values, its key and its seed.

use super::{GraphEntry, HardwareEntry, Made, ScheduleEntry, Searching, Study};
use crate::columns::Column;
use crate::experiment::{SearchAxes, chain_text};
use crate::hash::Hash;
use spillbench_core::planner::{PlannerConfig, Workspace};
use spillbench_core::schedule::Normalize;
use spillbench_core::{Machine, Placement, Schedule, Strategy};
use spillbench_heuristics::{Heuristic, Policy};
use spillbench_search::TimedError;
use std::sync::Arc;

/// The most cells of one experiment.
pub const MAX_CELLS: u64 = 10_000_000;

/// What the column of heuristics holds for searches.
const SEARCH: &str = "search";

/// The version of the text that keys are hashed from; a change of meaning takes a new one.
const KEY_VERSION: u32 = 1;

/// One combination of axis values.
#[derive(Clone, Copy, Debug)]
pub struct Cell<'a> {
    pub(super) study: &'a Study,
    /// Its number, from 0, in the order of the table.
    pub index: u64,
    /// The graph.
    pub graph: &'a GraphEntry,
    /// The schedule: what is planned, or what a search starts from.
    pub schedule: &'a ScheduleEntry,
    /// Hardware, capacities and cost model.
    pub hardware: &'a HardwareEntry,
    /// How its plan is made.
    pub way: Way<'a>,
    /// The number of the repetition, from 0.
    pub repetition: u32,
    /// The hash of all that decides its result.
    pub key: Hash,
    /// The seed of its heuristic, drawn from all that decides its plan, below 2⁶³; or that of its search.
    pub seed: u64,
    /// Graph, schedule, level of normalising and hardware by number.
    pub(super) at: [usize; 4],
}

/// How a plan is made.
#[derive(Clone, Copy, Debug)]
pub enum Way<'a> {
    /// By the planner, from the schedule as it is.
    Plan(Planning<'a>),
    /// By a search that starts from the schedule.
    Search(Searching<'a>),
}

/// What the planner goes by.
#[derive(Clone, Copy, Debug)]
pub struct Planning<'a> {
    /// How far the schedule is normalised.
    pub normalize: Normalize,
    /// The victim heuristic.
    pub heuristic: &'static Heuristic,
    /// The strategy chain.
    pub chain: &'a [Strategy],
    /// The placement rule.
    pub placement: Placement,
    /// How often one `ALLOC` may be postponed.
    pub attempts: u32,
    /// The prefetch window, in op nodes.
    pub prefetch: u32,
    /// Whether the finished plan is given a faster order.
    pub retime: bool,
}

impl Planning<'_> {
    /// The policy with a seed.
    pub fn policy(&self, seed: u64) -> Policy {
        let Self { heuristic, chain, placement, attempts, prefetch, retime, .. } = *self;
        let config = PlannerConfig { strategies: chain.to_vec(), placement, attempts, prefetch, retime };
        Policy { heuristic, config, seed }
    }
}

/// Takes the digit of an axis of `n` values off a mixed-radix number.
fn digit(rest: &mut u64, n: usize) -> usize {
    let digit = *rest % n as u64;
    *rest /= n as u64;
    digit as usize
}

impl Study {
    /// The cell of a number below [`Study::cell_count`]. Those of the planner come first, retiming
    /// varying fastest, then those of searches, seeds varying fastest; graphs vary slowest.
    pub fn cell(&self, index: u64) -> Cell<'_> {
        let planned = u64::try_from(self.planned()).unwrap_or(u64::MAX);
        let mut cell = match (&self.experiment.search, index.checked_sub(planned)) {
            (Some(search), Some(rest)) => self.searched_cell(search, index, rest),
            _ => self.planned_cell(index),
        };
        let canonical = cell.canonical(self.experiment.seed);
        if let Way::Plan(_) = cell.way {
            // What is measured beside the plan has no part in the seed, and so none in the plan; nor has
            // retiming, so that plans are compared with what they were before it.
            cell.seed = (Hash::of(canonical.as_bytes()).0 as u64) >> 1;
        }
        cell.key = Hash::of((canonical + &cell.beside()).as_bytes());
        cell
    }

    fn planned_cell(&self, index: u64) -> Cell<'_> {
        let axes = &self.experiment.axes;
        let mut rest = index;
        let retime = axes.retime[digit(&mut rest, axes.retime.len())].value;
        let prefetch = axes.prefetch[digit(&mut rest, axes.prefetch.len())].value;
        let attempts = axes.attempts[digit(&mut rest, axes.attempts.len())].value;
        let placement = axes.placements[digit(&mut rest, axes.placements.len())].value;
        let chain = &axes.chains[digit(&mut rest, axes.chains.len())].value;
        let (heuristic, repetition) = self.runs[digit(&mut rest, self.runs.len())];
        let level = digit(&mut rest, axes.normalize.len());
        let normalize = axes.normalize[level].value;
        let way = Way::Plan(Planning { normalize, heuristic, chain, placement, attempts, prefetch, retime });
        Cell { repetition, ..self.cell_at(index, rest, level, way) }
    }

    fn searched_cell<'a>(&'a self, search: &'a SearchAxes, index: u64, mut rest: u64) -> Cell<'a> {
        let repetition = digit(&mut rest, search.seeds.len());
        let budget = search.budgets[digit(&mut rest, search.budgets.len())].value;
        let goal = &search.goals[digit(&mut rest, search.goals.len())].value;
        let way = Way::Search(Searching { goal, budget, islands: search.islands });
        let seed = search.seeds[repetition].value;
        Cell { repetition: repetition as u32, seed, ..self.cell_at(index, rest, 0, way) }
    }

    /// A cell of what is left of a number when all but hardware, schedule and graph are known.
    fn cell_at<'a>(&'a self, index: u64, mut rest: u64, level: usize, way: Way<'a>) -> Cell<'a> {
        let h = digit(&mut rest, self.hardware.len());
        let (mut g, mut s) = (0, rest as usize);
        while s >= self.graphs[g].schedules.len() {
            s -= self.graphs[g].schedules.len();
            g += 1;
        }
        Cell {
            study: self,
            index,
            graph: &self.graphs[g],
            schedule: &self.graphs[g].schedules[s],
            hardware: &self.hardware[h],
            way,
            repetition: 0,
            key: Hash(0),
            seed: 0,
            at: [g, s, level, h],
        }
    }

    /// Cells that together show every value of every axis.
    pub(super) fn probes(&self) -> impl Iterator<Item = Cell<'_>> {
        let axes = &self.experiment.axes;
        let schedules = self.graphs.iter().map(|g| g.schedules.len()).sum();
        let planner = [
            axes.retime.len(),
            axes.prefetch.len(),
            axes.attempts.len(),
            axes.placements.len(),
            axes.chains.len(),
            self.runs.len(),
            axes.normalize.len(),
            self.hardware.len(),
            schedules,
        ];
        let planned = u64::try_from(self.planned()).unwrap_or(u64::MAX);
        let mut indices: Vec<u64> = along_axes(&planner).into_iter().filter(|&i| i < planned).collect();
        if let Some(search) = &self.experiment.search {
            let lengths =
                [search.seeds.len(), search.budgets.len(), search.goals.len(), self.hardware.len(), schedules];
            indices.extend(along_axes(&lengths).into_iter().map(|i| planned.saturating_add(i)));
        }
        indices.into_iter().filter(|&i| i < self.cell_count()).map(|i| self.cell(i))
    }
}

/// The mixed-radix numbers of which all digits but one are 0.
fn along_axes(lengths: &[usize]) -> Vec<u64> {
    let mut stride = 1u64;
    let mut indices = Vec::new();
    for &length in lengths {
        indices.extend((0..length as u64).map(|k| k.saturating_mul(stride)));
        stride = stride.saturating_mul(length as u64);
    }
    indices
}

impl<'a> Cell<'a> {
    /// All that decides the result, as text, a line for each thing.
    fn canonical(&self, base_seed: u64) -> String {
        let (graph, schedule, hardware) = (self.graph.hash, self.schedule.hash, self.hardware.hash);
        match &self.way {
            Way::Plan(Planning { heuristic, chain, placement, attempts, prefetch, .. }) => {
                let (chain, heuristic, repetition) = (chain_text(chain), heuristic.name, self.repetition);
                let normalize = self.normalize_name().unwrap_or_default();
                format!(
                    "spillbench cell {KEY_VERSION}\ngraph {graph}\nschedule {schedule}\nnormalize {normalize}\n\
                     hardware {hardware}\nheuristic {heuristic}\nstrategies {chain}\nplacement {placement}\n\
                     attempts {attempts}\nprefetch {prefetch}\nrepetition {repetition}\nseed {base_seed}\n"
                )
            }
            Way::Search(Searching { goal, budget, islands }) => format!(
                "spillbench search {KEY_VERSION}\ngraph {graph}\nstart {schedule}\nhardware {hardware}\n\
                 objective {goal}\nbudget {budget}\nislands {islands}\nseed {}\n",
                self.seed
            ),
        }
    }

    /// What comes behind the plan, as text: retiming, and what is measured beside it.
    fn beside(&self) -> String {
        let mut text = String::new();
        if self.planning().is_some_and(|p| p.retime) {
            text.push_str("retime\n");
        }
        if self.is_bounded() {
            text.push_str("bound\n");
        }
        if self.is_attributed() {
            let best = self.graph.best.as_ref().map_or_else(|| "none".to_owned(), |b| b.hash.to_string());
            text.push_str(&format!("attribution, best {best}\n"));
        }
        text
    }

    /// True when the movement of its plan is split into its causes.
    pub fn is_attributed(&self) -> bool {
        self.study.experiment.attribution && self.planning().is_some() && self.is_bounded()
    }

    /// The level of normalising by name, where the planner is at work.
    pub fn normalize_name(&self) -> Option<&'static str> {
        let level = self.planning()?.normalize;
        Normalize::ALL.iter().find(|n| n.0 == level).map(|n| n.1)
    }

    /// What the planner goes by, where it is at work.
    pub fn planning(&self) -> Option<&Planning<'a>> {
        if let Way::Plan(planning) = &self.way { Some(planning) } else { None }
    }

    /// What a search goes by, where there is one.
    pub fn searching(&self) -> Option<&Searching<'a>> {
        if let Way::Search(searching) = &self.way { Some(searching) } else { None }
    }

    /// What makes the plan, in the words of the tables: the heuristic, or `search`.
    pub fn maker(&self) -> &'static str {
        self.planning().map_or(SEARCH, |p| p.heuristic.name)
    }

    /// True when its result depends on the machine that runs it.
    pub fn is_timed(&self) -> bool {
        self.searching().is_some_and(|s| s.budget.is_time())
    }

    /// The columns of its study.
    pub fn columns(&self) -> &'a [Column] {
        &self.study.columns
    }

    /// Does what has to be done once for many cells, so that it does not count as time of this one.
    pub fn prepare(&self) {
        if let Way::Plan(_) = self.way {
            self.normalized();
        }
    }

    /// The schedule as the planner gets it.
    pub fn normalized(&self) -> Arc<Schedule> {
        let [graph, schedule, level, hardware] = self.at;
        self.study.normalized(graph, schedule, level, hardware)
    }

    /// The hardware as the graph sees it.
    ///
    /// # Errors
    /// Why the graph cannot run on it, in words.
    pub fn machine(&self) -> Result<Arc<Machine>, String> {
        let [graph, _, _, hardware] = self.at;
        let resolve = || match Machine::resolve(&self.graph.graph, &self.hardware.hardware()) {
            Ok(machine) => Ok(Arc::new(machine)),
            Err(errors) => Err(in_short(&errors)),
        };
        self.study.machines.get([graph, hardware]).get_or_init(resolve).clone()
    }

    /// Makes the plan.
    ///
    /// # Errors
    /// When there is none, or a search found none that keeps to its limit.
    pub fn plan(&self, machine: &Machine, workspace: &mut Workspace) -> Result<Made, TimedError> {
        match &self.way {
            Way::Plan(planning) => {
                let policy = planning.policy(self.seed);
                let plan = policy.plan(&self.graph.graph, machine, &self.normalized(), workspace)?;
                Ok(Made { plan, searched: None })
            }
            Way::Search(searching) => self.search(searching, machine),
        }
    }
}

/// The first of several errors, and how many there are.
pub(crate) fn in_short<E: std::fmt::Display>(errors: &[E]) -> String {
    match errors {
        [] => "unknown".to_owned(),
        [only] => only.to_string(),
        [first, rest @ ..] => format!("{first} (and {} more)", rest.len()),
    }
}
