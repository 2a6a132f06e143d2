//! Swaps on the critical path: two steps that follow each other on a pipe change places.
//!
//! A block is a longest run of steps of the path that only wait for their pipe. Whatever the order
//! inside, the path through a block is as long, so that only its first two and its last two steps
//! are worth swapping, and of the first block only the last two, of the last block only the first two
//! (Nowicki & Smutnicki 1996). The best swap is made even where it costs time, and may not be undone
//! for a while, so that the search leaves plans that no single swap makes faster.

use crate::index::{Pos, StepIx};
use crate::metrics::timing::{LinkKind, TimedPlan};
use crate::units::Cycles;
use std::collections::{HashSet, VecDeque};

/// How many swaps are remembered that may not be undone.
const TENURE: usize = 8;

/// How many swaps in a row may fail to give a better plan than the best.
const STALL: usize = 60;

/// Tries at most `trials` swaps and leaves the best order that it finds; ends at `bound`.
pub(super) fn improve(timed: &mut TimedPlan<'_>, trials: usize, bound: Cycles) {
    let mut best = (timed.makespan(), timed.order().raw.to_vec());
    let (mut left, mut stalled) = (trials, 0);
    let mut taboo: VecDeque<(StepIx, StepIx)> = VecDeque::new();
    while best.0 > bound && stalled < STALL {
        let Some((first, second)) = best_swap(timed, &mut left, best.0, &taboo) else { break };
        let (at, new, _) = swapped(timed, first, second);
        if timed.reorder(at, &new).is_err() {
            break;
        }
        // The steps stand swapped now, and may not be swapped back.
        taboo.push_back((second, first));
        if taboo.len() > TENURE {
            taboo.pop_front();
        }
        stalled += 1;
        if timed.makespan() < best.0 {
            best = (timed.makespan(), timed.order().raw.to_vec());
            stalled = 0;
        }
    }
    if timed.makespan() > best.0 {
        // The order was that of this very plan.
        let _ = timed.reorder(Pos::new(0), &best.1);
    }
}

/// The allowed swap of the critical path after which the plan is fastest; one that is not allowed
/// counts only where it beats the best plan.
fn best_swap(
    timed: &mut TimedPlan<'_>,
    left: &mut usize,
    best: Cycles,
    taboo: &VecDeque<(StepIx, StepIx)>,
) -> Option<(StepIx, StepIx)> {
    let mut found: Option<(Cycles, (StepIx, StepIx))> = None;
    for (first, second) in candidates(timed) {
        if *left == 0 {
            break;
        }
        *left -= 1;
        let (at, new, old) = swapped(timed, first, second);
        // Some other path may lead from the first to the second.
        if new == old || timed.reorder(at, &new).is_err() {
            continue;
        }
        let makespan = timed.makespan();
        if timed.reorder(at, &old).is_err() {
            return None;
        }
        let allowed = makespan < best || !taboo.contains(&(first, second));
        if allowed && found.is_none_or(|f| makespan < f.0) {
            found = Some((makespan, (first, second)));
        }
    }
    found.map(|f| f.1)
}

/// The pairs at the ends of the blocks of the critical path.
fn candidates(timed: &TimedPlan<'_>) -> Vec<(StepIx, StepIx)> {
    let path = timed.critical_path().steps;
    let mut pairs = Vec::new();
    let mut from = 0;
    while from < path.len() {
        let waits_for_pipe = |i: &usize| path[*i].link == Some(LinkKind::Pipe);
        let to = (from + 1..path.len()).take_while(waits_for_pipe).last().unwrap_or(from);
        if to > from {
            let pair = |i: usize| (path[i].step, path[i + 1].step);
            // At its start the first block waits for nothing, at its end the last holds up nothing.
            if timed.start(path[from].step) > Cycles(0) {
                pairs.push(pair(from));
            }
            if to + 1 < path.len() && (to > from + 1 || pairs.last() != Some(&pair(from))) {
                pairs.push(pair(to - 1));
            }
        }
        from = to + 1;
    }
    pairs
}

/// The stretch from `first` to `second`: where it begins, with `second` and what it waits for before
/// `first`, and as it is.
fn swapped(timed: &TimedPlan<'_>, first: StepIx, second: StepIx) -> (Pos, Vec<StepIx>, Vec<StepIx>) {
    let (from, to) = (timed.place(first), timed.place(second));
    let old: Vec<StepIx> = timed.order()[from..=to].iter().copied().collect();
    let mut needed = HashSet::from([second]);
    for &step in old.iter().rev() {
        if needed.contains(&step) {
            timed.for_each_precedence(step, |l| {
                if timed.place(l.from) >= from {
                    needed.insert(l.from);
                }
            });
        }
    }
    let (before, after): (Vec<_>, Vec<_>) = old.iter().partition(|&s| needed.contains(s));
    (from, [before, after].concat(), old)
}
