//! One cell of a study: a combination of axis values, its key and its seed.

use super::{GraphEntry, HardwareEntry, ScheduleEntry, Study};
use crate::columns::Column;
use crate::experiment::chain_text;
use crate::hash::Hash;
use spillbench_core::planner::PlannerConfig;
use spillbench_core::schedule::Normalize;
use spillbench_core::{Placement, Schedule, Strategy};
use spillbench_heuristics::{Heuristic, Policy};

/// The most cells of one experiment.
pub const MAX_CELLS: u64 = 10_000_000;

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
    /// The schedule.
    pub schedule: &'a ScheduleEntry,
    /// How far the schedule is normalised.
    pub normalize: Normalize,
    /// Hardware, capacities and cost model.
    pub hardware: &'a HardwareEntry,
    /// The victim heuristic.
    pub heuristic: &'static Heuristic,
    /// The number of the repetition, from 0.
    pub repetition: u32,
    /// The strategy chain.
    pub chain: &'a [Strategy],
    /// The placement rule.
    pub placement: Placement,
    /// How often one `ALLOC` may be postponed.
    pub attempts: u32,
    /// The prefetch window, in op nodes.
    pub prefetch: u32,
    /// The hash of all that decides its row.
    pub key: Hash,
    /// The seed of its heuristic, drawn from all that decides its plan; below 2⁶³.
    pub seed: u64,
    /// Graph, schedule and level of normalising by number.
    pub(super) at: [usize; 3],
}

/// Takes the digit of an axis of `n` values off a mixed-radix number.
fn digit(rest: &mut u64, n: usize) -> usize {
    let digit = *rest % n as u64;
    *rest /= n as u64;
    digit as usize
}

impl Study {
    /// The cell of a number below [`Study::cell_count`]. Prefetch varies fastest, graphs slowest.
    pub fn cell(&self, index: u64) -> Cell<'_> {
        let axes = &self.experiment.axes;
        let mut rest = index;
        let prefetch = axes.prefetch[digit(&mut rest, axes.prefetch.len())].value;
        let attempts = axes.attempts[digit(&mut rest, axes.attempts.len())].value;
        let placement = axes.placements[digit(&mut rest, axes.placements.len())].value;
        let chain = &axes.chains[digit(&mut rest, axes.chains.len())].value;
        let (heuristic, repetition) = self.runs[digit(&mut rest, self.runs.len())];
        let level = digit(&mut rest, axes.normalize.len());
        let hardware = &self.hardware[digit(&mut rest, self.hardware.len())];
        let (mut g, mut s) = (0, rest as usize);
        while s >= self.graphs[g].schedules.len() {
            s -= self.graphs[g].schedules.len();
            g += 1;
        }
        let (graph, schedule) = (&self.graphs[g], &self.graphs[g].schedules[s]);
        let normalize = axes.normalize[level].value;
        let mut cell = Cell {
            study: self,
            index,
            graph,
            schedule,
            normalize,
            hardware,
            heuristic,
            repetition,
            chain,
            placement,
            attempts,
            prefetch,
            key: Hash(0),
            seed: 0,
            at: [g, s, level],
        };
        let canonical = cell.canonical(self.experiment.seed);
        // What is measured beside the plan has no part in the seed, and so none in the plan.
        cell.seed = (Hash::of(canonical.as_bytes()).0 as u64) >> 1;
        cell.key = Hash::of((canonical + &cell.beside()).as_bytes());
        cell
    }

    /// Cells that together show every value of every axis.
    pub(super) fn probes(&self) -> impl Iterator<Item = Cell<'_>> {
        let axes = &self.experiment.axes;
        let lengths = [
            axes.prefetch.len(),
            axes.attempts.len(),
            axes.placements.len(),
            axes.chains.len(),
            self.runs.len(),
            axes.normalize.len(),
            self.hardware.len(),
            self.graphs.iter().map(|g| g.schedules.len()).sum(),
        ];
        let mut stride = 1u64;
        let mut indices = Vec::new();
        for length in lengths {
            indices.extend((0..length as u64).map(|k| k.saturating_mul(stride)));
            stride = stride.saturating_mul(length as u64);
        }
        indices.into_iter().filter(|&i| i < self.cell_count()).map(|i| self.cell(i))
    }
}

impl<'a> Cell<'a> {
    /// All that decides the result, as text, a line for each thing.
    fn canonical(&self, base_seed: u64) -> String {
        let (chain, heuristic) = (chain_text(self.chain), self.heuristic.name);
        let normalize = self.normalize_name();
        let Self { placement, attempts, prefetch, repetition, .. } = self;
        format!(
            "spillbench cell {KEY_VERSION}\ngraph {}\nschedule {}\nnormalize {normalize}\nhardware {}\nheuristic {heuristic}\n\
             strategies {chain}\nplacement {placement}\nattempts {attempts}\nprefetch {prefetch}\n\
             repetition {repetition}\nseed {base_seed}\n",
            self.graph.hash, self.schedule.hash, self.hardware.hash,
        )
    }

    /// What is measured beside the plan, as text.
    fn beside(&self) -> String {
        let experiment = &self.study.experiment;
        if !self.is_bounded() {
            return String::new();
        }
        let best = self.graph.best.as_ref().map_or_else(|| "none".to_owned(), |b| b.hash.to_string());
        if experiment.attribution { format!("bound\nattribution, best {best}\n") } else { "bound\n".to_owned() }
    }

    /// True when the movement of its plan is split into its causes.
    pub fn is_attributed(&self) -> bool {
        self.study.experiment.attribution && self.is_bounded()
    }

    /// The level of normalising by name.
    pub fn normalize_name(&self) -> &'static str {
        Normalize::ALL.iter().find(|n| n.0 == self.normalize).map_or("?", |n| n.1)
    }

    /// The columns of its study.
    pub fn columns(&self) -> &'a [Column] {
        &self.study.columns
    }

    /// The schedule as it is planned.
    pub fn normalized(&self) -> &'a Schedule {
        let [graph, schedule, level] = self.at;
        self.study.normalized(graph, schedule, level)
    }

    /// The policy that plans it.
    pub fn policy(&self) -> Policy {
        let config = PlannerConfig {
            strategies: self.chain.to_vec(),
            placement: self.placement,
            attempts: self.attempts,
            prefetch: self.prefetch,
        };
        Policy { heuristic: self.heuristic, config, seed: self.seed }
    }
}
