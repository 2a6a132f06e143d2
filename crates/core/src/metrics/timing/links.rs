//! What a step waits for: the links of a plan's precedence network, each with its kind.

use super::network::{Ends, NONE, TimedPlan};
use crate::graph::NodeKind;
use crate::index::StepIx;
use crate::units::Cycles;
use serde::Serialize;
use std::fmt;

/// Why one step must wait for the end of another. The order is that in which links are named that
/// hold a step equally long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkKind {
    /// An edge of the graph.
    Graph,
    /// `ALLOC(b)` → user of b → `FREE(b)`, where the graph does not list it.
    Implied,
    /// To or from a spill node of the same buffer.
    Spill,
    /// The step before on the same pipe.
    Pipe,
    /// The last release of an address that an acquire takes.
    Address,
}

impl LinkKind {
    /// All kinds, in order.
    pub const ALL: [Self; 5] = [Self::Graph, Self::Implied, Self::Spill, Self::Pipe, Self::Address];

    /// The kind in one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Graph => "graph",
            Self::Implied => "implied",
            Self::Spill => "spill",
            Self::Pipe => "pipe",
            Self::Address => "address",
        }
    }
}

impl fmt::Display for LinkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One step that another waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The step that must have ended.
    pub from: StepIx,
    /// Why.
    pub kind: LinkKind,
}

impl TimedPlan<'_> {
    /// Calls `visit` with everything that `step` waits for; a step may come twice.
    #[inline]
    pub fn for_each_link(&self, step: StepIx, mut visit: impl FnMut(Link)) {
        self.for_each_precedence(step, &mut visit);
        let before = self.pipe_before[step];
        if before != NONE {
            visit(Link { from: before, kind: LinkKind::Pipe });
        }
    }

    /// As [`TimedPlan::for_each_link`], the step before on the pipe left out.
    #[inline]
    pub fn for_each_precedence(&self, step: StepIx, mut visit: impl FnMut(Link)) {
        let mut link = |from, kind| visit(Link { from, kind });
        match self.ends_of(step) {
            Ends::Node(n) => {
                self.graph.predecessors(n).iter().for_each(|&p| link(self.node_step(p), LinkKind::Graph));
                match self.graph.kind(n) {
                    NodeKind::Op => self.held(n).iter().for_each(|&seg| {
                        let kind = if self.is_first(seg) { LinkKind::Implied } else { LinkKind::Spill };
                        link(self.acquire(seg), kind);
                    }),
                    NodeKind::Alloc(_) => {}
                    NodeKind::Free(_) => {
                        let seg = self.own_segment[step];
                        let kind = if self.is_first(seg) { LinkKind::Implied } else { LinkKind::Spill };
                        link(self.acquire(seg), kind);
                        self.users[seg].iter().for_each(|&u| link(u, LinkKind::Implied));
                    }
                }
                if !matches!(self.graph.kind(n), NodeKind::Alloc(_)) {
                    return;
                }
            }
            Ends::Out(_) => {
                let seg = self.own_segment[step];
                link(self.acquire(seg), LinkKind::Spill);
                self.users[seg].iter().for_each(|&u| link(u, LinkKind::Spill));
                return;
            }
            Ends::Back(k) => link(self.out_step(k), LinkKind::Spill),
        }
        // An acquire.
        self.over[self.own_segment[step]].iter().for_each(|piece| link(piece.by, LinkKind::Address));
    }

    /// Calls `visit` with every step that may wait for `step`; a step may come twice.
    #[inline]
    pub(super) fn for_each_follower(&self, step: StepIx, mut visit: impl FnMut(StepIx)) {
        let opens = match self.ends_of(step) {
            Ends::Node(n) => {
                self.graph.successors(n).iter().for_each(|&s| visit(self.node_step(s)));
                match self.graph.kind(n) {
                    NodeKind::Op => {
                        self.held(n).iter().for_each(|&seg| visit(self.release_of[seg]));
                        None
                    }
                    NodeKind::Alloc(_) => Some(true),
                    NodeKind::Free(_) => Some(false),
                }
            }
            Ends::Out(k) => {
                visit(self.back_step(k));
                Some(false)
            }
            Ends::Back(_) => Some(true),
        };
        match opens {
            Some(true) => {
                let seg = self.own_segment[step];
                self.users[seg].iter().for_each(|&u| visit(u));
                visit(self.release_of[seg]);
            }
            Some(false) => {
                let seg = self.own_segment[step];
                self.under[seg].iter().for_each(|&next| visit(self.acquire(next)));
            }
            None => {}
        }
        let after = self.pipe_after[step];
        if after != NONE {
            visit(after);
        }
    }

    /// The link that decides when `step` starts: of those that end last, the first by kind, then by
    /// place in the schedule. `None` when it waits for nothing.
    pub fn binding(&self, step: StepIx) -> Option<Link> {
        let mut best: Option<Link> = None;
        self.for_each_link(step, |link| {
            let key = |l: Link| (std::cmp::Reverse(self.end(l.from)), l.kind, self.place(l.from));
            if best.is_none_or(|b| key(link) < key(b)) {
                best = Some(link);
            }
        });
        best
    }

    /// When `step` could start if its pipe were free: the end of the last of its other predecessors.
    pub fn ready(&self, step: StepIx) -> Cycles {
        let mut ready = Cycles(0);
        self.for_each_precedence(step, |link| ready = ready.max(self.end(link.from)));
        ready
    }
}
