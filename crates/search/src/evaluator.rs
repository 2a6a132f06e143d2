//! What the local search asks of an objective: the cost of an order, kept up to date under local
//! changes.

use crate::model::ItemIx;

/// A part of an order laid anew: the items at positions `first..first + items.len()` become `items`,
/// a permutation of what stands there.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// Where it begins.
    pub first: usize,
    /// The items in their new order.
    pub items: &'a [ItemIx],
}

impl Change<'_> {
    /// Lays the change into whole blocks of `block` positions: `window` becomes their items after it;
    /// returns where they begin.
    pub(crate) fn align(self, order: &[ItemIx], block: usize, window: &mut Vec<ItemIx>) -> usize {
        let first = self.first / block * block;
        let changed_end = self.first + self.items.len();
        let end = changed_end.next_multiple_of(block).min(order.len());
        window.clear();
        window.extend_from_slice(&order[first..self.first]);
        window.extend_from_slice(self.items);
        window.extend_from_slice(&order[changed_end..end]);
        first
    }
}

/// A place in an order worth changing: two uses of one buffer with a fault between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Position of the earlier use.
    pub from: usize,
    /// Position of the later use.
    pub to: usize,
}

/// The cost of an order under one objective. Lower is better; 0 is as good as it gets.
///
/// An evaluator holds what it knows of one order, the *current* one. [`Evaluator::probe`] tells what
/// a change would cost, in time that depends on the change and not on the length of the order;
/// [`Evaluator::commit`] makes the change last probed.
pub trait Evaluator: Send {
    /// Makes `order` the current one and returns its cost.
    fn reset(&mut self, order: &[ItemIx]) -> u64;

    /// The cost of `order`, the current one, with `change` made; `None` when it passes `limit`.
    fn probe(&mut self, order: &[ItemIx], change: Change<'_>, limit: u64) -> Option<u64>;

    /// Makes the change that was probed last and did not pass its limit. `order` is the order
    /// before the change.
    fn commit(&mut self, order: &[ItemIx], change: Change<'_>);

    /// The cost of the current order as it is kept.
    fn cost(&self) -> u64;

    /// A fault of the current order, `draw` choosing among all; `None` when there is none.
    fn fault(&self, draw: u64) -> Option<Gap>;

    /// Which accesses of the current order find their buffer resident, by the numbers of
    /// [`crate::Model::first_access`]; empty for objectives without residency.
    fn hits(&self) -> Vec<bool> {
        Vec::new()
    }
}
