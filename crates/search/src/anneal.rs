//! Simulated annealing over the orders of one model.

use crate::draw::Draw;
use crate::evaluator::{Change, Evaluator};
use crate::model::{ItemIx, Model};
use crate::moves::Neighbourhood;
use crate::ties::Ties;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Evaluations after which the whole order is simulated anew: windows keep decisions that the whole
/// would make differently.
const RESYNC: u64 = 200;

/// An order, what it costs, and what stays resident.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub cost: u64,
    pub order: Vec<ItemIx>,
    pub hits: Vec<bool>,
}

impl Candidate {
    /// A hash of the order and of what stays resident.
    pub(crate) fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.order, &self.hits).hash(&mut hasher);
        hasher.finish()
    }
}

/// A falling temperature.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cooling {
    /// In units of the cost.
    pub from: f64,
    pub to: f64,
    /// Over how many evaluations.
    pub evaluations: u64,
}

impl Cooling {
    /// The temperature after some evaluations: it falls geometrically.
    pub(crate) fn at(&self, evaluation: u64) -> f64 {
        let part = (evaluation as f64 / self.evaluations.max(1) as f64).min(1.0);
        self.from * (self.to / self.from).powf(part)
    }
}

/// One annealing at a time, with its own stream of random numbers.
pub(crate) struct Annealer<'a> {
    hood: Neighbourhood<'a>,
    evaluator: Box<dyn Evaluator + 'a>,
    draw: Draw,
    cooling: Cooling,
    done: u64,
    commits: u64,
    best: Candidate,
    /// True while the current order is better than `best`, which is saved only before it is left.
    ahead: bool,
    temperature: f64,
    finds: Vec<Candidate>,
}

/// Which orders to remember besides the best.
pub(crate) struct Wanted<'a> {
    /// Whether one of this cost is worth a plan.
    pub promising: &'a dyn Fn(u64) -> bool,
    /// At most so many.
    pub count: usize,
}

impl<'a> Annealer<'a> {
    pub(crate) fn new(
        model: &'a Model<'a>,
        ties: &'a Ties,
        mut evaluator: Box<dyn Evaluator + 'a>,
        order: Vec<ItemIx>,
        draw: Draw,
    ) -> Self {
        let cost = evaluator.reset(&order);
        let best = Candidate { cost, order: order.clone(), hits: evaluator.hits() };
        let hood = Neighbourhood::new(model, ties, order);
        let cooling = Cooling { from: 1.0, to: 1.0, evaluations: 0 };
        Self {
            hood,
            evaluator,
            draw,
            cooling,
            done: 0,
            commits: 0,
            best,
            ahead: false,
            temperature: 1.0,
            finds: Vec::new(),
        }
    }

    /// Begins anew from an order; the best one so far is kept.
    pub(crate) fn restart(&mut self, order: Vec<ItemIx>, cooling: Cooling) {
        self.save();
        let cost = self.evaluator.reset(&order);
        self.hood.set_order(order);
        (self.cooling, self.done, self.commits) = (cooling, 0, 0);
        self.ahead = cost < self.best.cost;
    }

    /// True when the temperature has fallen as far as it should.
    pub(crate) fn is_done(&self) -> bool {
        self.done >= self.cooling.evaluations
    }

    /// The best order of all so far.
    pub(crate) fn best(&mut self) -> &Candidate {
        self.save();
        &self.best
    }

    pub(crate) fn draw(&mut self) -> &mut Draw {
        &mut self.draw
    }

    /// The orders remembered since this was last asked.
    pub(crate) fn finds(&mut self) -> Vec<Candidate> {
        std::mem::take(&mut self.finds)
    }

    /// Makes up to `evaluations` further evaluations, fewer when `stop` says so; returns how many are
    /// spent. Remembers what is wanted.
    pub(crate) fn run(&mut self, evaluations: u64, wanted: &Wanted<'_>, stop: &dyn Fn() -> bool) -> u64 {
        let mut made = 0;
        while made < evaluations && !self.is_done() {
            if self.evaluator.cost() == 0 {
                // Nothing is left to gain from here; what was to be spent counts as spent, or a search
                // whose plans do not reach the 0 of its evaluator would restart for ever.
                self.done = self.cooling.evaluations;
                self.remember(wanted);
                return evaluations;
            }
            if self.done.is_multiple_of(16) {
                if stop() {
                    break;
                }
                self.temperature = self.cooling.at(self.done);
            }
            if self.step() {
                self.remember(wanted);
            }
            made += 1;
            self.done += 1;
            if self.done.is_multiple_of(RESYNC) && self.commits > 0 {
                self.save();
                self.commits = 0;
                let cost = self.evaluator.reset(self.hood.order());
                self.ahead = cost < self.best.cost;
            }
        }
        made
    }

    /// Makes one evaluation; true when the order changed.
    fn step(&mut self) -> bool {
        // A move drawn that changes nothing is drawn again, a few times.
        if !(0..4).any(|_| self.hood.propose(&*self.evaluator, &mut self.draw)) {
            return false;
        }
        let (first, items) = self.hood.proposal();
        let change = Change { first, items };
        let current = self.evaluator.cost();
        let slack = self.temperature * self.draw.exponential();
        let limit = current.saturating_add(slack as u64);
        let Some(cost) = self.evaluator.probe(self.hood.order(), change, limit) else { return false };
        if cost > current {
            self.save();
        }
        let (first, items) = self.hood.proposal();
        self.evaluator.commit(self.hood.order(), Change { first, items });
        self.hood.accept();
        self.commits += 1;
        self.ahead = cost < self.best.cost;
        true
    }

    fn remember(&mut self, wanted: &Wanted<'_>) {
        let cost = self.evaluator.cost();
        if self.finds.len() < wanted.count && (wanted.promising)(cost) {
            let (order, hits) = (self.hood.order().to_vec(), self.evaluator.hits());
            self.finds.push(Candidate { cost, order, hits });
        }
    }

    /// Keeps the current order if it is the best.
    fn save(&mut self) {
        if std::mem::take(&mut self.ahead) && self.evaluator.cost() < self.best.cost {
            self.best.cost = self.evaluator.cost();
            self.best.order.clear();
            self.best.order.extend_from_slice(self.hood.order());
            self.best.hits = self.evaluator.hits();
        }
    }
}
