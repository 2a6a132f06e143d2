//! Search by pairs, for intervals that leave out their lower bytes for a while.
//!
//! Two such intervals can interlock, each below the other at some time, and floors no longer tell
//! all. For each two pieces that meet in time, one must lie below the other; once that is said for
//! all of them, the least offsets follow by longest paths. The search branches on a pair that the
//! least offsets violate, and fails where an offset leaves the capacity. Complete, and slow.

use super::Budget;
use super::model::{Model, shared};
use super::search::Found;

/// `above` starts at least `distance` above the offset of `below`; the distance may be negative.
#[derive(Clone, Copy)]
struct Rule {
    below: u32,
    above: u32,
    distance: i128,
}

struct Node {
    /// How many rules stood when it was made.
    rules: usize,
    /// Its offsets, without the rules that it branches on.
    offsets: Vec<u64>,
    branches: Vec<Rule>,
}

/// A packing, or the proof that there is none.
pub(super) fn search(model: &Model, budget: &mut Budget) -> Found {
    let mut rules: Vec<Rule> = Vec::new();
    let mut offsets: Vec<u64> = model.items.iter().map(|i| i.place_from(0)).collect();
    let mut open: Vec<Node> = Vec::new();
    let mut doubt = false;
    loop {
        let branches = match settle(model, &rules, &mut offsets) {
            Settled::Holds => match violated(model, &offsets) {
                None => return Found::Packing(offsets),
                Some(pair) => pair.to_vec(),
            },
            Settled::Fails => Vec::new(),
            Settled::Unknown => {
                doubt = true;
                Vec::new()
            }
        };
        if !budget.take() {
            return Found::Limit;
        }
        open.push(Node { rules: rules.len(), offsets: offsets.clone(), branches });
        let next = loop {
            let Some(node) = open.last_mut() else { return if doubt { Found::Limit } else { Found::Nothing } };
            if let Some(rule) = node.branches.pop() {
                rules.truncate(node.rules);
                offsets.clone_from(&node.offsets);
                break rule;
            }
            open.pop();
        };
        rules.push(next);
    }
}

enum Settled {
    Holds,
    Fails,
    /// Alignments made a cycle of rules raise offsets for longer than it was followed.
    Unknown,
}

/// Raises the offsets until all rules hold or one leaves the capacity.
fn settle(model: &Model, rules: &[Rule], offsets: &mut [u64]) -> Settled {
    let fits = |i: usize, offset: u64| offset <= model.capacity.saturating_sub(model.items[i].size);
    if !(0..offsets.len()).all(|i| fits(i, offsets[i])) {
        return Settled::Fails;
    }
    // Without alignments, what is still raised after as many rounds as there are items is raised for
    // ever by a cycle.
    for _ in 0..=offsets.len() {
        let mut changed = false;
        for r in rules {
            let wanted = i128::from(offsets[r.below as usize]) + r.distance;
            if wanted > i128::from(offsets[r.above as usize]) {
                let place = model.items[r.above as usize].place_from(u64::try_from(wanted).unwrap_or(u64::MAX >> 2));
                if !fits(r.above as usize, place) {
                    return Settled::Fails;
                }
                offsets[r.above as usize] = place;
                changed = true;
            }
        }
        if !changed {
            return Settled::Holds;
        }
    }
    if model.items.iter().all(|i| i.alignment == 1) { Settled::Fails } else { Settled::Unknown }
}

/// Both ways to settle the first two pieces that overlap.
fn violated(model: &Model, offsets: &[u64]) -> Option<[Rule; 2]> {
    for a in 0..offsets.len() {
        for b in 0..a {
            if !model.meet(a, b) {
                continue;
            }
            for (p, q) in shared(&model.items[a], &model.items[b]) {
                if offsets[a] + p.low < offsets[b] + q.high && offsets[b] + q.low < offsets[a] + p.high {
                    let rule = |below, above, high, low| Rule {
                        below: below as u32,
                        above: above as u32,
                        distance: i128::from(high) - i128::from(low),
                    };
                    return Some([rule(a, b, p.high, q.low), rule(b, a, q.high, p.low)]);
                }
            }
        }
    }
    None
}
