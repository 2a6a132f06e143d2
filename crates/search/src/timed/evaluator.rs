//! The decoder as an evaluator of orders, with what holds up the current one.

use super::clock::Tagged;
use super::decode::Decoder;
use super::goal::{Figures, Goal};
use super::path::{Wait, Watcher};
use super::program::Program;
use super::rules::Rules;
use crate::evaluator::{Change, Evaluator, Gap};
use crate::model::ItemIx;

/// Commits after which the path is found anew.
const STALE: u32 = 12;

/// The cost of orders by their makespan and movement.
pub(super) struct Timed<'a> {
    decoder: Decoder<'a, u64>,
    /// Decodes with what every time is the end of; rarely, since it costs a whole walk.
    tracer: Decoder<'a, Tagged>,
    watcher: Watcher,
    path: Vec<Wait>,
    /// Commits since the path was found.
    age: u32,
    cost: u64,
    probed: u64,
    /// True while the figures are those of a walk of the whole order.
    exact: bool,
}

impl<'a> Timed<'a> {
    pub(super) fn new(program: &'a Program<'a>, goal: Goal, rules: Rules) -> Self {
        Self {
            decoder: Decoder::new(program, goal, rules),
            tracer: Decoder::new(program, goal, rules),
            watcher: Watcher::default(),
            path: Vec::new(),
            age: STALE,
            cost: 0,
            probed: 0,
            exact: false,
        }
    }

    pub(super) fn rules(&self) -> Rules {
        self.decoder.rules
    }

    /// Takes up other rules; [`Evaluator::reset`] must follow.
    pub(super) fn set_rules(&mut self, rules: Rules) {
        self.decoder.rules = rules;
    }

    pub(super) fn goal(&self) -> Goal {
        self.decoder.goal
    }

    /// Takes up another goal; [`Evaluator::reset`] must follow.
    pub(super) fn set_goal(&mut self, goal: Goal) {
        self.decoder.goal = goal;
    }

    pub(super) fn figures(&self) -> Figures {
        self.decoder.figures()
    }

    /// True while the figures are those of a walk of the whole order.
    pub(super) fn is_exact(&self) -> bool {
        self.exact
    }

    /// Makes the figures those of a walk of the whole order; true when that took one.
    pub(super) fn settle(&mut self, order: &[ItemIx]) -> bool {
        let walks = !self.exact;
        if walks {
            let figures = self.decoder.reset(order, &mut ());
            self.cost = self.decoder.goal.cost(figures);
            self.exact = true;
        }
        walks
    }

    /// Finds the path of the current order, if the one known is old; true when that took a walk.
    pub(super) fn refresh(&mut self, order: &[ItemIx]) -> bool {
        let stale = self.age >= STALE;
        if stale {
            self.age = 0;
            self.watcher.clear();
            self.tracer.rules = self.decoder.rules;
            self.tracer.reset(order, &mut self.watcher);
            self.watcher.path(&mut self.path);
        }
        stale
    }

    /// The waits along the critical path, as of the last [`Timed::refresh`].
    pub(super) fn path(&self) -> &[Wait] {
        &self.path
    }
}

impl Evaluator for Timed<'_> {
    fn reset(&mut self, order: &[ItemIx]) -> u64 {
        (self.age, self.exact) = (STALE, false);
        self.settle(order);
        self.cost
    }

    fn probe(&mut self, order: &[ItemIx], change: Change<'_>, limit: u64) -> Option<u64> {
        let figures = self.decoder.probe(order, (change.first, change.items), limit)?;
        self.probed = self.decoder.goal.cost(figures);
        Some(self.probed)
    }

    fn commit(&mut self, _order: &[ItemIx], change: Change<'_>) {
        self.decoder.commit(change.first);
        (self.cost, self.exact) = (self.probed, false);
        self.age += 1;
    }

    fn cost(&self) -> u64 {
        self.cost
    }

    fn fault(&self, draw: u64) -> Option<Gap> {
        let at = draw.checked_rem(self.watcher.spills.len() as u64)?;
        self.watcher.spills.get(at as usize).copied()
    }
}
