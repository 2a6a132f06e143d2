//! Simulated annealing over orders and rules, with the decoder as judge.
//!
//! Almost half of the moves aim at the critical path: what holds up an item comes earlier, or the item
//! held up goes elsewhere. The others are those of the movement search.

use super::clock::Why;
use super::evaluator::Timed;
use super::goal::{Figures, Goal};
use super::program::Program;
use super::rules::Rules;
use crate::anneal::Cooling;
use crate::draw::Draw;
use crate::evaluator::{Change, Evaluator};
use crate::model::ItemIx;
use crate::moves::Neighbourhood;
use crate::ties::Ties;

/// Evaluations after which the rules are varied once.
const VARY: u64 = 97;
/// Evaluations after which the whole order is walked anew: a restart keeps evictions that the whole
/// would decide otherwise.
const RESYNC: u64 = 200;
/// The most orders of a front.
const MOST: usize = 256;
/// The longest way that a move along the critical path goes, in items.
const REACH: usize = 512;

/// An order under some rules, and what comes of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Candidate {
    pub cost: u64,
    pub figures: Figures,
    pub order: Vec<ItemIx>,
    pub rules: Rules,
}

/// One annealing at a time, with its own stream of random numbers.
pub(super) struct Annealer<'a> {
    program: &'a Program<'a>,
    hood: Neighbourhood<'a>,
    timed: Timed<'a>,
    draw: Draw,
    cooling: Cooling,
    done: u64,
    /// The most that may be done by the end of this run.
    most: u64,
    /// The cheapest order of this annealing, and the cheapest of all that keeps to the limit.
    pub best: Candidate,
    pub allowed: Option<Candidate>,
    /// Of all orders seen, those that no other beats in every figure; kept where `collects`.
    pub front: Vec<Candidate>,
    pub collects: bool,
    temperature: f64,
}

impl<'a> Annealer<'a> {
    pub(super) fn new(program: &'a Program<'a>, ties: &'a Ties, start: &Candidate, goal: Goal, draw: Draw) -> Self {
        let mut timed = Timed::new(program, goal, start.rules);
        timed.reset(&start.order);
        Self {
            program,
            hood: Neighbourhood::new(program.model, ties, start.order.clone()),
            timed,
            draw,
            cooling: Cooling { from: 1.0, to: 1.0, evaluations: 0 },
            done: 0,
            most: 0,
            best: start.clone(),
            allowed: None,
            front: Vec::new(),
            collects: false,
            temperature: 1.0,
        }
    }

    /// Begins anew from an order; the best that keeps to the limit is kept.
    pub(super) fn restart(&mut self, start: &Candidate, cooling: Cooling) {
        self.timed.set_rules(start.rules);
        self.timed.reset(&start.order);
        self.hood.set_order(start.order.clone());
        (self.cooling, self.done) = (cooling, 0);
        self.best = self.candidate();
        self.keep();
    }

    /// Takes up another goal; a restart must follow.
    pub(super) fn set_goal(&mut self, goal: Goal) {
        self.timed.set_goal(goal);
        self.allowed = None;
    }

    /// True when the temperature has fallen as far as it should.
    pub(super) fn is_done(&self) -> bool {
        self.done >= self.cooling.evaluations
    }

    pub(super) fn draw(&mut self) -> &mut Draw {
        &mut self.draw
    }

    /// Makes `evaluations` further evaluations, fewer when `stop` says so; returns how many are spent.
    /// Whole walks beside the last step may bring a few more, but never more than `most`.
    pub(super) fn run(&mut self, evaluations: u64, most: u64, stop: &dyn Fn() -> bool) -> u64 {
        let first = self.done;
        self.most = first.saturating_add(most);
        while self.done - first < evaluations.min(most) && !self.is_done() && !stop() {
            self.temperature = self.cooling.at(self.done);
            self.done += u64::from(self.spares_a_walk() && self.timed.refresh(self.hood.order()));
            let resync = self.done % RESYNC < 2 && self.spares_a_walk();
            self.done += u64::from(resync && self.timed.settle(self.hood.order()));
            if self.done % VARY == VARY - 1 {
                self.vary()
            } else {
                self.step()
            }
            self.done += 1;
        }
        self.done - first
    }

    /// True while a whole walk may be spent beside the step at hand.
    fn spares_a_walk(&self) -> bool {
        self.done.saturating_add(2) <= self.most
    }

    /// The highest cost that is accepted now.
    fn limit(&mut self) -> u64 {
        let slack = self.temperature * self.draw.exponential();
        self.timed.cost().saturating_add(slack as u64)
    }

    fn step(&mut self) {
        let proposed = match self.draw.below(16) {
            0..7 => self.propose_on_path(),
            _ => self.hood.propose(&self.timed, &mut self.draw),
        };
        if !proposed {
            return;
        }
        let limit = self.limit();
        let (first, items) = self.hood.proposal();
        let change = Change { first, items };
        if self.timed.probe(self.hood.order(), change, limit).is_none() {
            return;
        }
        self.timed.commit(self.hood.order(), change);
        self.hood.accept();
        self.keep();
    }

    /// Tries the order under other rules.
    fn vary(&mut self) {
        let (rules, limit) = (self.timed.rules(), self.limit());
        self.timed.set_rules(rules.varied(self.program, &mut self.draw));
        if self.timed.reset(self.hood.order()) > limit {
            self.timed.set_rules(rules);
            self.timed.reset(self.hood.order());
        }
        self.keep();
    }

    /// Moves one end of a wait on the critical path.
    fn propose_on_path(&mut self) -> bool {
        let path = self.timed.path();
        let Some(mut wait) = self.draw.pick(path) else { return false };
        // A pipe that is busy is seldom the reason to be late: one more try for something else.
        if wait.why == Why::Pipe {
            wait = self.draw.pick(path).unwrap_or(wait);
        }
        let n = self.hood.order().len();
        let (run, way) = (self.draw.length(8), self.draw.length(REACH));
        match self.draw.below(8) {
            // What holds it up comes earlier.
            0..4 => self.hood.propose_run(wait.from..wait.from + run, wait.from.saturating_sub(way)),
            // It comes just behind that.
            4 if wait.to > wait.from + 1 => self.hood.propose_run(wait.to..wait.to + run, wait.from + 1),
            // It comes earlier, or later.
            5 => self.hood.propose_run(wait.to..wait.to + run, wait.to.saturating_sub(way)),
            _ if wait.to + 1 < n => {
                let end = (wait.to + run).min(n - 1);
                self.hood.propose_run(wait.to..end, (end + way).min(n - 1))
            }
            _ => false,
        }
    }

    fn candidate(&self) -> Candidate {
        let (cost, figures) = (self.timed.cost(), self.timed.figures());
        Candidate { cost, figures, order: self.hood.order().to_vec(), rules: self.timed.rules() }
    }

    /// Notes the current order where it is better than what is known, by the figures of a whole walk.
    fn keep(&mut self) {
        if self.is_better() && !self.timed.is_exact() {
            if !self.spares_a_walk() {
                return;
            }
            self.done += u64::from(self.timed.settle(self.hood.order()));
        }
        if !self.is_better() {
            return;
        }
        let (candidate, goal) = (self.candidate(), self.timed.goal());
        if self.collects && self.is_new() {
            self.front.retain(|c| !candidate.figures.dominates(c.figures));
            if self.front.len() < MOST {
                self.front.push(candidate.clone());
            }
        }
        let better = self.allowed.as_ref().is_none_or(|a| candidate.cost < a.cost);
        if better && goal.allows(candidate.figures.moved) {
            self.allowed = Some(candidate.clone());
        }
        if candidate.cost < self.best.cost {
            self.best = candidate;
        }
    }

    /// True when the current order beats what is known, as far as its figures go.
    fn is_better(&self) -> bool {
        let cost = self.timed.cost();
        let allowed = self.timed.goal().allows(self.timed.figures().moved);
        cost < self.best.cost
            || (allowed && self.allowed.as_ref().is_none_or(|a| cost < a.cost))
            || (self.collects && self.is_new())
    }

    /// True when no order of the front beats the current one in every figure.
    fn is_new(&self) -> bool {
        let figures = self.timed.figures();
        !self.front.iter().any(|c| c.figures.dominates(figures))
    }
}
