//! Shares of what spills cost: how little of it a set needs, so that others can use the rest.
//!
//! The optimum of a set is there for less than the whole cost of its buffers where some other way
//! through is no dearer. What is not needed goes to later sets, which may then have buffers in common
//! with earlier ones. This is the idea of saturated cost partitioning (Seipp, Keller and Helmert,
//! "Saturated Cost Partitioning for Optimal Classical Planning", JAIR 67, 2020), whose abstractions are
//! our sets and whose operators are the spills of a buffer.
//!
//! Shares that keep the optimum are found by trying: nothing at all for a group of buffers, then for its
//! halves, down to a single one, whose least share is approached from below. A plan that a failed trial
//! brings to light is kept, since it refutes other trials without a search.

use super::restrict::{Order, Restriction};
use super::search::{Reach, reaches};
use spillbench_core::index::BufIx;
use spillbench_core::{Graph, Machine};

/// How often the least share of one buffer is approached before what is known to do is kept.
const APPROACHES: u32 = 6;

/// A set whose shares are being made small.
pub(super) struct Saturation<'a> {
    pub graph: &'a Graph,
    pub machine: &'a Machine,
    pub order: &'a Order,
    /// The optimum that must stay.
    pub target: u64,
    /// States of one trial, and of all trials together.
    pub per_trial: u64,
    pub budget: u64,
    /// States so far.
    pub spent: u64,
    plans: Vec<Known>,
}

/// What a plan spills of a set of buffers: how often each, `None` for those that were not in the set.
type Known = Vec<Option<u64>>;

impl<'a> Saturation<'a> {
    pub(super) fn new(
        (graph, machine, order): (&'a Graph, &'a Machine, &'a Order),
        target: u64,
        per_trial: u64,
        budget: u64,
    ) -> Self {
        Self { graph, machine, order, target, per_trial, budget, spent: 0, plans: Vec::new() }
    }

    /// Makes the shares of a set as small as trying finds that they may be, those first that stand
    /// first. They never grow, and the optimum of the set with them is at least the target.
    pub(super) fn reduce(&mut self, shares: &mut [(BufIx, u64)]) {
        // A plan that moves just the target tells at once of many buffers that they need their share.
        self.holds(self.target.saturating_add(1), shares);
        self.reduce_group(shares, 0, shares.len());
    }

    fn reduce_group(&mut self, shares: &mut [(BufIx, u64)], from: usize, to: usize) {
        if from == to || self.spent >= self.budget {
            return;
        }
        let before: Vec<u64> = shares[from..to].iter().map(|s| s.1).collect();
        shares[from..to].iter_mut().for_each(|s| s.1 = 0);
        if self.holds(self.target, shares) {
            return;
        }
        shares[from..to].iter_mut().zip(before).for_each(|(s, share)| s.1 = share);
        if to - from == 1 {
            return self.reduce_one(shares, from);
        }
        let half = from + (to - from) / 2;
        self.reduce_group(shares, from, half);
        self.reduce_group(shares, half, to);
    }

    /// Looks for the least share of one buffer, which is above 0: a plan that moves too little, though it
    /// spills the buffer, says how much its share must be at least.
    fn reduce_one(&mut self, shares: &mut [(BufIx, u64)], at: usize) {
        let enough = shares[at].1;
        for _ in 0..APPROACHES {
            let least = self.least_share(shares, at).max(1);
            if least >= enough || self.spent >= self.budget {
                break;
            }
            shares[at].1 = least;
            if self.holds(self.target, shares) {
                return;
            }
            if self.least_share(shares, at) <= least {
                break;
            }
        }
        shares[at].1 = enough;
    }

    /// The least share of a buffer that no known plan refutes, the others being as they are.
    fn least_share(&self, shares: &[(BufIx, u64)], at: usize) -> u64 {
        let asked = |plan: &Known| {
            let times = plan[at].filter(|&times| times > 0)?;
            let mut others = shares.to_vec();
            others[at].1 = 0;
            // It tells nothing of a buffer that it does not know, and which has a share.
            let spared = self.target.checked_sub(moves(plan, &others)?)?;
            Some(spared.div_ceil(times))
        };
        self.plans.iter().filter_map(asked).max().unwrap_or(0)
    }

    /// Whether the optimum of the set with these shares is known to be `target` at least.
    fn holds(&mut self, target: u64, shares: &[(BufIx, u64)]) -> bool {
        if self.plans.iter().any(|plan| moves(plan, shares).is_some_and(|moved| moved < target)) {
            return false;
        }
        let priced: Vec<(BufIx, u64)> = shares.iter().copied().filter(|s| s.1 > 0).collect();
        let limit = self.per_trial.min(self.budget.saturating_sub(self.spent));
        if priced.is_empty() || limit == 0 {
            return target == 0;
        }
        let problem = Restriction::new(self.graph, self.machine, self.order, &priced);
        let (reach, states) = reaches(&problem, target, limit);
        // Stating the problem takes time too, even where there is little to search.
        self.spent += states + problem.ops() as u64;
        if let Reach::No(counts) = &reach {
            let mut counts = counts.iter().copied();
            let known = shares.iter().map(|s| if s.1 > 0 { counts.next() } else { None });
            self.plans.push(known.collect());
        }
        reach == Reach::Yes
    }
}

/// What a plan moves with these shares; `None` where it does not know a buffer that has one. A plan of
/// some buffers is, with some struck out, one of the others.
fn moves(plan: &Known, shares: &[(BufIx, u64)]) -> Option<u64> {
    plan.iter().zip(shares).try_fold(0u64, |sum, (times, (_, share))| match times {
        Some(times) => Some(sum.saturating_add(times.saturating_mul(*share))),
        None => (*share == 0).then_some(sum),
    })
}
