//! The objective `movement` by capacity in bytes: which buffers stay resident, and what the others
//! cost.
//!
//! Addresses come later; here a cache is a number of bytes. Caches do not interact, so each is
//! simulated by itself: where an access needs space, residents go out by
//! next-use distance × min(missing, size) / cost, largest first, and evictions that turn out
//! superfluous are taken back, dearest first (offline caching with sizes and costs; Belady 1966 for
//! equal ones).
//!
//! **Windows.** The state of an order is the order and, for every access, whether it finds its
//! buffer resident. A change inside a window is simulated from the last checkpoint before it to the
//! first one after it. Outside, every decision stands: a buffer whose gap between two uses spans the
//! end of the window and was kept must be resident there or its gap is charged; one whose gap is
//! charged already may leave the window at no cost. So the new cost is exact for the decisions it
//! stands for, which fit the caches: an upper bound of the least movement of the new order by bytes.
//! A simulation of the whole order, the window that holds everything, may decide otherwise, for less
//! or for more; the search makes one every few hundred evaluations. What it reports is never such a
//! cost, but the movement of a finished plan.

mod cache;
mod simulate;

use crate::evaluator::{Change, Evaluator, Gap};
use crate::model::{ItemIx, Model};
use cache::Cache;
use spillbench_core::index::BufIx;

/// Positions between two checkpoints.
const BLOCK: usize = 16;

/// The evaluator of extra data movement, in bytes.
pub struct Residency<'a> {
    model: &'a Model<'a>,
    caches: Vec<Cache>,
    cost: u64,
    /// Bits by which costs were shifted to keep their sum in range; 0 but for absurd sizes.
    shift: u32,
    /// The last probed window, brought to checkpoints.
    window: Vec<ItemIx>,
}

impl<'a> Residency<'a> {
    /// An evaluator of the orders of `model`, holding the order of its items as they are numbered.
    pub fn new(model: &'a Model<'a>) -> Self {
        let shift = model.cost_shift();
        let caches = model.graph().caches().filter_map(|c| Cache::new(model, c, shift)).collect();
        let mut new = Self { model, caches, cost: 0, shift, window: Vec::new() };
        new.reset(&model.items().collect::<Vec<_>>());
        new
    }

    /// Bits by which costs are shifted; 0 unless sizes come near 2⁶³.
    pub fn shift(&self) -> u32 {
        self.shift
    }

    /// The buffers of the caches that some order overfills.
    pub fn contested(&self) -> impl Iterator<Item = BufIx> + '_ {
        self.caches.iter().flat_map(|c| c.members.iter().copied())
    }
}

impl Evaluator for Residency<'_> {
    fn reset(&mut self, order: &[ItemIx]) -> u64 {
        self.cost = 0;
        for cache in &mut self.caches {
            cache.load(order);
            let charged = cache.simulate::<true>(0, order, u64::MAX).unwrap_or(0);
            self.cost += charged;
        }
        self.cost
    }

    fn probe(&mut self, order: &[ItemIx], change: Change<'_>, limit: u64) -> Option<u64> {
        let first = change.align(order, BLOCK, &mut self.window);
        let blocks = first / BLOCK..(first + self.window.len()).div_ceil(BLOCK);
        let touched = |cache: &Cache| change.items.iter().any(|&i| cache.is_touched_by(i));
        let stored: u64 = self.caches.iter().filter(|c| touched(c)).map(|c| c.charged_in(blocks.clone())).sum();
        let mut allowance = limit.checked_sub(self.cost - stored)?;
        let before = allowance;
        for cache in self.caches.iter_mut().filter(|c| touched(c)) {
            allowance -= cache.simulate::<false>(first, &self.window, allowance)?;
        }
        Some(self.cost - stored + (before - allowance))
    }

    fn commit(&mut self, order: &[ItemIx], change: Change<'_>) {
        let first = change.align(order, BLOCK, &mut self.window);
        let blocks = first / BLOCK..(first + self.window.len()).div_ceil(BLOCK);
        for cache in &mut self.caches {
            if change.items.iter().any(|&i| cache.is_touched_by(i)) {
                let stored = cache.charged_in(blocks.clone());
                let charged = cache.simulate::<true>(first, &self.window, u64::MAX).unwrap_or(0);
                self.cost = self.cost - stored + charged;
            }
        }
    }

    fn cost(&self) -> u64 {
        self.cost
    }

    fn fault(&self, draw: u64) -> Option<Gap> {
        let count: usize = self.caches.iter().map(Cache::fault_count).sum();
        let mut at = draw.checked_rem(count as u64)? as usize;
        for cache in &self.caches {
            match at.checked_sub(cache.fault_count()) {
                Some(rest) => at = rest,
                None => return Some(cache.fault(at)),
            }
        }
        None
    }

    fn hits(&self) -> Vec<bool> {
        let mut hits = vec![true; self.model.access_count()];
        self.caches.iter().for_each(|c| c.write_hits(&mut hits));
        hits
    }
}
