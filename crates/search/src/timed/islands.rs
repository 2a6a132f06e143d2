//! Islands that anneal for time, and meet at fixed evaluation counts.
//!
//! As in the movement search, what comes out depends on the seed, the number of islands and the
//! evaluations made, not on the number of threads.

use super::anneal::{Annealer, Candidate};
use super::decode::Decoder;
use super::goal::Goal;
use super::program::Program;
use super::rules::Rules;
use crate::anneal::Cooling;
use crate::draw::Draw;
use crate::islands::run_all;
use crate::median::median;
use crate::model::ItemIx;
use crate::ties::Ties;

/// Evaluations of one island between two meetings.
const ROUND: u64 = 512;
/// Evaluations of the first annealings; every two are followed by longer ones.
const FIRST: u64 = 8192;
/// And at least so many for each item.
const PER_ITEM: u64 = 4;
/// The longest annealing.
const LONGEST: u64 = 1 << 20;
/// Temperatures in typical cycles of an op: from another order, and from the best.
const HOT: (f64, f64) = (2.0, 0.05);
const WARM: (f64, f64) = (0.7, 0.03);
/// Rules tried on every order to begin from.
const RULES: usize = 16;

/// What the islands share, and the best of what they found.
pub(super) struct Archipelago<'a> {
    program: &'a Program<'a>,
    threads: usize,
    islands: Vec<Island<'a>>,
    goal: Goal,
    unit: f64,
    /// The candidates to begin from, cheapest first, and the cheapest of all.
    starts: Vec<Candidate>,
    best: Candidate,
}

struct Island<'a> {
    annealer: Annealer<'a>,
    runs: u32,
    /// The most evaluations that it may make, and those made in this round.
    most: u64,
    made: u64,
}

impl<'a> Archipelago<'a> {
    /// Islands that begin from some orders, of which there is one at least. Once `stop` says so, no
    /// more of them are tried.
    pub(super) fn new(
        program: &'a Program<'a>,
        ties: &'a Ties,
        (count, threads): (usize, usize),
        orders: Vec<Vec<ItemIx>>,
        goal: Goal,
        seed: u64,
        stop: &dyn Fn() -> bool,
    ) -> Option<Self> {
        let starts = starts(program, orders, goal, &mut Draw::new(seed, 0), stop);
        let best = starts.first()?.clone();
        let islands = (0..count.max(1)).map(|i| {
            let start = &starts[i % starts.len()];
            let annealer = Annealer::new(program, ties, start, goal, Draw::new(seed, i as u64 + 1));
            Island { annealer, runs: 0, most: 0, made: 0 }
        });
        let islands = islands.collect();
        Some(Self { program, threads: threads.max(1), islands, goal, unit: unit(program, goal), starts, best })
    }

    /// Takes up another goal, and begins from `more` as well.
    pub(super) fn set_goal(&mut self, goal: Goal, more: &[Candidate]) {
        self.goal = goal;
        self.starts.extend_from_slice(more);
        self.starts.push(self.best.clone());
        for start in &mut self.starts {
            start.cost = goal.cost(start.figures);
        }
        self.starts.sort_by_key(|s| s.cost);
        self.starts.truncate(2 * RULES);
        self.best = self.starts[0].clone();
        for island in &mut self.islands {
            island.annealer.set_goal(goal);
            island.runs = 0;
        }
    }

    /// The cheapest candidate to begin from that keeps to the limit.
    pub(super) fn allowed_start(&self) -> Option<&Candidate> {
        self.starts.iter().find(|s| self.goal.allows(s.figures.moved))
    }

    /// Lets every island make its part of `budget` evaluations in all islands, about one round; returns
    /// how many are made, and the best candidate that keeps to the limit.
    pub(super) fn round(&mut self, budget: u64, stop: &(dyn Fn() -> bool + Sync)) -> (u64, Option<&Candidate>) {
        for i in 0..self.islands.len() {
            if self.islands[i].annealer.is_done() {
                self.begin(i);
            }
        }
        let count = self.islands.len() as u64;
        for (island, i) in self.islands.iter_mut().zip(0..) {
            island.most = budget / count + u64::from(i < budget % count);
        }
        run_all(&mut self.islands, self.threads, &|island| {
            island.made = island.annealer.run(ROUND, island.most, &|| stop());
        });
        for island in &self.islands {
            if island.annealer.best.cost < self.best.cost {
                self.best = island.annealer.best.clone();
            }
        }
        let made = self.islands.iter().map(|i| i.made).sum();
        let allowed = self.islands.iter().filter_map(|i| i.annealer.allowed.as_ref()).min_by_key(|c| c.cost);
        (made, allowed)
    }

    /// Makes the islands keep all that nothing beats in every figure.
    pub(super) fn collect(&mut self) {
        self.islands.iter_mut().for_each(|i| i.annealer.collects = true);
    }

    /// All that the islands found on the way and nothing beats in every figure.
    pub(super) fn front(&mut self) -> Vec<Candidate> {
        self.islands.iter_mut().flat_map(|i| std::mem::take(&mut i.annealer.front)).collect()
    }

    /// Begins the next annealing of an island: mostly from the best order, warm; from time to time from
    /// another, hot.
    fn begin(&mut self, number: usize) {
        let island = &mut self.islands[number];
        let turn = island.runs + number as u32;
        let length = FIRST.max(self.program.model.len() as u64 * PER_ITEM) << (island.runs / 2).min(16);
        let (start, (from, to)) = if island.runs == 0 || turn % 4 == 3 {
            // The better the likelier.
            let draw = island.annealer.draw();
            let at = if turn == 0 { 0 } else { draw.below(self.starts.len()).min(draw.below(self.starts.len())) };
            (&self.starts[at], HOT)
        } else {
            (&self.best, WARM)
        };
        let evaluations = length.min(LONGEST);
        let cooling = Cooling { from: from * self.unit, to: to * self.unit, evaluations };
        island.annealer.restart(start, cooling);
        island.runs += 1;
    }
}

/// The orders under several rules each, cheapest first; at least one, if there is any.
fn starts(
    program: &Program<'_>,
    orders: Vec<Vec<ItemIx>>,
    goal: Goal,
    draw: &mut Draw,
    stop: &dyn Fn() -> bool,
) -> Vec<Candidate> {
    let mut decoder = Decoder::<u64>::new(program, goal, Rules::default());
    let mut starts = Vec::new();
    for order in orders {
        for tried in 0..RULES {
            if !starts.is_empty() && stop() {
                break;
            }
            decoder.rules = if tried == 0 { Rules::default() } else { Rules::drawn(program, draw) };
            let figures = decoder.reset(&order, &mut ());
            starts.push(Candidate { cost: goal.cost(figures), figures, order: order.clone(), rules: decoder.rules });
        }
    }
    starts.sort_by_key(|s| s.cost);
    starts.truncate(2 * RULES);
    starts
}

/// A typical change of the cost by one move: the median cycles of the ops of the busiest pipe, and
/// where a spill costs by itself, the median of that.
fn unit(program: &Program<'_>, goal: Goal) -> f64 {
    let busiest = (0..program.pipes()).max_by_key(|&p| program.work[p]);
    let works = program.steps.iter().filter_map(|s| s.work).filter(|w| Some(w.pipe) == busiest);
    let cycles = median(works.map(|w| w.cycles)).unwrap_or(0);
    let spills = program.bufs[..program.shared].iter().map(|b| goal.spill(b.moved, b.price));
    let spill = median(spills).unwrap_or(0);
    cycles.saturating_mul(goal.per_cycle).saturating_add(spill).max(1) as f64
}
