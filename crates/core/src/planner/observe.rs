//! What the planner tells of its decisions, for logs and explanations.

use super::Strategy;
use crate::heuristic::Request;
use crate::index::{BufIx, CacheIx, NodeIx, Pos};
use crate::plan::Cause;
use crate::units::{Bytes, Offset};

/// A buffer that went out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Victim {
    /// The buffer.
    pub buf: BufIx,
    /// Its score; NaN where no heuristic was asked (last resort).
    pub score: f64,
    /// Where it lay.
    pub offset: Offset,
    /// Its size.
    pub size: Bytes,
}

/// How a failed request was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// By evicting, under that strategy.
    Evicted(Strategy),
    /// By moving the `ALLOC` to just after the `FREE` at that position.
    PostponedTo(Pos),
    /// By the last resort; `repack` when the operands themselves had to move.
    LastResort {
        /// True when the resident operands were moved out and all reloaded from offset 0.
        repack: bool,
    },
}

/// One request for space that found no hole, and how it was met.
#[derive(Clone, Copy, Debug)]
pub struct Decision<'a> {
    /// The node being walked.
    pub node: NodeIx,
    /// The buffer that needs space.
    pub buf: BufIx,
    /// The request.
    pub request: Request,
    /// Free bytes of the cache when the request failed.
    pub free: Bytes,
    /// The largest free block then.
    pub largest_hole: Bytes,
    /// Why it failed.
    pub cause: Cause,
    /// How it was met.
    pub outcome: Outcome,
    /// What went out, in order.
    pub victims: &'a [Victim],
    /// The best-scored evictable buffer that stayed; `None` when there is none, or when nothing
    /// went out.
    pub runner_up: Option<(BufIx, f64)>,
    /// The largest free block after the evictions: where it begins and its size. `None` when
    /// postponed.
    pub hole: Option<(Offset, Bytes)>,
}

/// What lay where a reservation begins, or will as soon as the node at hand has run.
#[derive(Clone, Copy, Debug)]
pub struct Clearing<'a> {
    /// The node with which the reservation begins.
    pub node: NodeIx,
    /// The cache.
    pub cache: CacheIx,
    /// What it leaves of the cache.
    pub usable: Bytes,
    /// Why what went had to: for want of free bytes, or for where it lay.
    pub cause: Cause,
    /// What went out, in order; no score was asked for.
    pub victims: &'a [Victim],
}

/// Receives the planner's decisions.
pub trait Observer {
    /// Called once per failed request, when it has been met.
    fn decided(&mut self, decision: &Decision<'_>);

    /// Called once per reservation that begins where something lies, when that has gone out.
    fn cleared(&mut self, _clearing: &Clearing<'_>) {}
}
