//! The flow bound: the least cost over all choices of gaps when a part of a gap may be kept.
//!
//! Each cache is a problem of its own. Steps where all gaps fit bind nothing and are dropped; what
//! is left falls into parts that no gap joins; every part is solved by itself, in parallel. The
//! prices that come out are integers and prove the bound by themselves: see
//! [`crate::certificate`].

mod network;

use crate::model::{CacheModel, Gap};
use network::{Interval, solve};
use rayon::prelude::*;
use spillbench_core::Bytes;

/// The flow bound of one cache with the prices that prove it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowBound {
    /// The bound: no choice of gaps costs less.
    pub value: Bytes,
    /// The price of a byte of room at each step of the model, in bytes of movement.
    pub prices: Vec<u64>,
    /// What the solver did.
    pub stats: FlowStats,
}

/// What the solver did for one cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowStats {
    /// Steps where the gaps compete for room.
    pub contended_steps: usize,
    /// Gaps over such steps.
    pub contended_gaps: usize,
    /// Parts that were solved one by one.
    pub parts: usize,
    /// Rounds of the solver over all parts.
    pub rounds: u64,
}

/// Solves one cache.
pub fn flow_bound(model: &CacheModel) -> FlowBound {
    let mut bound = FlowBound { value: Bytes(0), prices: vec![0; model.steps.len()], stats: FlowStats::default() };
    // Sizes that add up to 2⁶² bytes or more are left unpriced, which proves nothing and is true.
    let total = model.gaps.iter().try_fold(0u64, |sum, g| sum.checked_add(g.size.0));
    if total.is_none_or(|t| t >= 1 << 62) {
        return bound;
    }
    let contended = contended_steps(model);
    let parts = parts(model, &contended);
    let solved: Vec<_> = parts.par_iter().map(|part| solve(&part.rooms, &part.intervals)).collect();
    for (part, solution) in parts.iter().zip(&solved) {
        for (k, &price) in solution.prices.iter().enumerate() {
            bound.prices[contended[part.first + k]] = price.max(0).unsigned_abs();
        }
        bound.stats.contended_gaps += part.intervals.len();
        bound.stats.rounds += solution.rounds;
    }
    bound.stats.contended_steps = contended.len();
    bound.stats.parts = parts.len();
    bound.value = dual_value(model, &bound.prices);
    bound
}

/// The steps at which the gaps over them do not all fit.
pub(crate) fn contended_steps(model: &CacheModel) -> Vec<usize> {
    let mut change = vec![0i128; model.steps.len() + 1];
    for gap in &model.gaps {
        change[gap.first] += i128::from(gap.size.0);
        change[gap.end] -= i128::from(gap.size.0);
    }
    let mut over = 0;
    let mut contended = Vec::new();
    for (t, step_change) in change.iter().take(model.steps.len()).enumerate() {
        over += step_change;
        if over > i128::from(model.room(t).0) {
            contended.push(t);
        }
    }
    contended
}

/// A run of contended steps that no gap joins to the next run.
struct Part {
    /// Place of its first step among the contended ones.
    first: usize,
    rooms: Vec<i64>,
    intervals: Vec<Interval>,
}

fn parts(model: &CacheModel, contended: &[usize]) -> Vec<Part> {
    let mut place = vec![0u32; model.steps.len() + 1];
    contended.iter().for_each(|&t| place[t + 1] = 1);
    for t in 0..model.steps.len() {
        place[t + 1] += place[t];
    }
    // Each gap over contended steps, with its place among them; by first step, so that the gaps of
    // one part stand together.
    let mut gaps: Vec<(u32, u32, &Gap)> =
        (model.gaps.iter()).map(|g| (place[g.first], place[g.end], g)).filter(|(first, end, _)| first < end).collect();
    gaps.sort_by_key(|&(first, end, _)| (first, end));
    let mut parts: Vec<Part> = Vec::new();
    let mut reached = 0;
    for (first, end, gap) in gaps {
        if first >= reached {
            parts.push(Part { first: first as usize, rooms: Vec::new(), intervals: Vec::new() });
        }
        reached = reached.max(end);
        let rate = gap.cost.0.checked_div(gap.size.0).unwrap_or(0).min(network::HIGHEST_RATE);
        if let Some(part) = parts.last_mut() {
            let start = part.first as u32;
            let (size, rate) = (gap.size.0 as i64, rate as i64);
            part.intervals.push(Interval { first: first - start, end: end - start, size, rate });
        }
    }
    let ends: Vec<_> = parts.iter().skip(1).map(|p| p.first).chain([contended.len()]).collect();
    for (part, end) in parts.iter_mut().zip(ends) {
        // Sizes add up to less than 2⁶², so more room than that is as good as that.
        let room = |&t: &usize| model.room(t).0.min(1 << 62) as i64;
        part.rooms = contended[part.first..end].iter().map(room).collect();
    }
    parts
}

/// What prices prove: `Σ c_g − Σ_t R_t·y_t − Σ_g max(0, c_g − s_g·Σ_{t∈g} y_t)`, 0 when that is
/// negative. Saturates at 2⁶⁴ − 1.
fn dual_value(model: &CacheModel, prices: &[u64]) -> Bytes {
    let mut risen = Vec::with_capacity(prices.len() + 1);
    let mut sum = 0u128;
    let mut paid = 0u128;
    for (t, &price) in prices.iter().enumerate() {
        risen.push(sum);
        sum += u128::from(price);
        paid = paid.saturating_add(u128::from(price).saturating_mul(u128::from(model.room(t).0)));
    }
    risen.push(sum);
    let mut gained = 0u128;
    for gap in &model.gaps {
        // c − max(0, c − s·Y) is the smaller of the two.
        let worth = u128::from(gap.size.0).saturating_mul(risen[gap.end] - risen[gap.first]);
        gained = gained.saturating_add(worth.min(u128::from(gap.cost.0)));
    }
    Bytes(gained.saturating_sub(paid).min(u128::from(u64::MAX)) as u64)
}
