//! Where the time of every pipe goes: work, and idle time by cause.

use super::links::{Link, LinkKind};
use super::network::TimedPlan;
use crate::graph::NodeKind;
use crate::index::{PipeIx, StepIx};
use crate::metrics::steps::Step;
use crate::units::Cycles;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a pipe does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IdleCause {
    /// Nothing has run on it yet.
    Head,
    /// The next step waits last for an op or a move, by an edge of the graph, an implied edge or a
    /// spill edge.
    Data,
    /// The next step waits last for addresses to be released: its own, when it is a `SPILL_IN`, or
    /// those of an operand's `ALLOC`.
    Address,
    /// Work that stands later on the pipe could run, but the next step cannot yet.
    Order,
    /// Nothing more runs on it.
    Tail,
}

impl IdleCause {
    /// All causes, in order.
    pub const ALL: [Self; 5] = [Self::Head, Self::Data, Self::Address, Self::Order, Self::Tail];

    /// The cause in one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Head => "head",
            Self::Data => "data",
            Self::Address => "address",
            Self::Order => "order",
            Self::Tail => "tail",
        }
    }
}

impl fmt::Display for IdleCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A span in which a pipe does nothing for one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The pipe.
    pub pipe: PipeIx,
    /// When it falls idle.
    pub from: Cycles,
    /// Until when, exclusive.
    pub to: Cycles,
    /// Why.
    pub cause: IdleCause,
    /// The step that the pipe waits to run; `None` at the tail.
    pub next: Option<StepIx>,
    /// Behind `Data` and `Address`, the step that `next` waits for; behind `Order`, the step that
    /// could run; `None` at head and tail.
    pub other: Option<StepIx>,
}

/// How one pipe spends a makespan: the fields other than `steps` add up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PipeUse {
    /// Steps that run on it.
    pub steps: usize,
    /// Cycles that it works.
    pub busy: Cycles,
    /// Cycles before its first work.
    pub head: Cycles,
    /// Cycles idle for data.
    pub data: Cycles,
    /// Cycles idle for addresses.
    pub address: Cycles,
    /// Cycles idle for its own order.
    pub order: Cycles,
    /// Cycles after its last work.
    pub tail: Cycles,
}

impl PipeUse {
    /// The cycles of one cause.
    pub fn idle(&self, cause: IdleCause) -> Cycles {
        match cause {
            IdleCause::Head => self.head,
            IdleCause::Data => self.data,
            IdleCause::Address => self.address,
            IdleCause::Order => self.order,
            IdleCause::Tail => self.tail,
        }
    }

    fn add(&mut self, gap: &Gap) {
        let field = match gap.cause {
            IdleCause::Head => &mut self.head,
            IdleCause::Data => &mut self.data,
            IdleCause::Address => &mut self.address,
            IdleCause::Order => &mut self.order,
            IdleCause::Tail => &mut self.tail,
        };
        *field += gap.to - gap.from;
    }
}

impl TimedPlan<'_> {
    /// How a pipe spends the makespan.
    pub fn pipe_use(&self, pipe: PipeIx) -> PipeUse {
        let steps = self.on_pipe(pipe);
        let mut used = PipeUse { steps: steps.len(), ..PipeUse::default() };
        steps.iter().for_each(|&s| used.busy += self.cycles(s));
        self.gaps_between(pipe, &steps).iter().for_each(|gap| used.add(gap));
        used
    }

    /// The spans in which a pipe does nothing, in order. A span that has two causes is two gaps.
    pub fn gaps(&self, pipe: PipeIx) -> Vec<Gap> {
        self.gaps_between(pipe, &self.on_pipe(pipe))
    }

    fn gaps_between(&self, pipe: PipeIx, steps: &[StepIx]) -> Vec<Gap> {
        let makespan = self.makespan();
        let Some(first) = steps.iter().position(|&s| self.cycles(s) > Cycles(0)) else {
            let gap = Gap { pipe, from: Cycles(0), to: makespan, cause: IdleCause::Head, next: None, other: None };
            return if makespan > Cycles(0) { vec![gap] } else { Vec::new() };
        };
        let last = steps.iter().rposition(|&s| self.cycles(s) > Cycles(0)).unwrap_or(first);
        // Of the work behind each step, what is ready first.
        let mut could_run: Vec<Option<(Cycles, StepIx)>> = vec![None; last + 1];
        for i in (first..last).rev() {
            let behind = Some(steps[i + 1]).filter(|&s| self.cycles(s) > Cycles(0)).map(|s| (self.ready(s), s));
            could_run[i] = could_run[i + 1].into_iter().chain(behind).min();
        }
        let mut gaps = Vec::new();
        let mut push = |from, to, cause, next, other| {
            if to > from {
                gaps.push(Gap { pipe, from, to, cause, next, other });
            }
        };
        push(Cycles(0), self.start(steps[first]), IdleCause::Head, Some(steps[first]), None);
        for i in first + 1..=last {
            let (next, from, to) = (steps[i], self.end(steps[i - 1]), self.start(steps[i]));
            if from == to {
                continue;
            }
            let (cause, waits_for) = self.wait(next);
            let blocked = could_run[i].map_or(to, |c| c.0.clamp(from, to));
            push(from, blocked, cause, Some(next), waits_for);
            push(blocked, to, IdleCause::Order, Some(next), could_run[i].map(|c| c.1));
        }
        push(self.end(steps[last]), makespan, IdleCause::Tail, None, None);
        gaps
    }

    /// What a step waits for last, its pipe left out: `Data` or `Address`, and the step whose end it
    /// is. Where both end together it is `Data`: the addresses alone would not help.
    pub fn wait(&self, step: StepIx) -> (IdleCause, Option<StepIx>) {
        let mut found = None;
        for link in self.last_links(step) {
            let is_alloc = matches!(self.step(link.from), Step::Node(n)
                if matches!(self.graph().kind(n), NodeKind::Alloc(_)));
            if link.kind == LinkKind::Address {
                found = found.or(Some((IdleCause::Address, Some(link.from))));
            } else if !is_alloc {
                return (IdleCause::Data, Some(link.from));
            } else {
                // An ALLOC takes no time: what counts is what it waited for.
                let behind = self.last_links(link.from);
                match behind.iter().find(|l| l.kind != LinkKind::Address) {
                    None => found = found.or(behind.first().map(|l| (IdleCause::Address, Some(l.from)))),
                    Some(data) => return (IdleCause::Data, Some(data.from)),
                }
            }
        }
        found.unwrap_or((IdleCause::Data, None))
    }

    /// The links of a step, its pipe left out, that end last; by kind, then by place.
    fn last_links(&self, step: StepIx) -> Vec<Link> {
        let mut links: Vec<Link> = Vec::new();
        let mut latest = Cycles(0);
        self.for_each_precedence(step, |link| {
            let end = self.end(link.from);
            if end > latest {
                links.clear();
            }
            latest = latest.max(end);
            if end == latest {
                links.push(link);
            }
        });
        links.sort_by_key(|l| (l.kind, self.place(l.from)));
        links
    }
}
