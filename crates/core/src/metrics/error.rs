//! Why a plan has no figures.

use crate::names::Shown;
use crate::reservation::Reservation;
use crate::units::{BufId, Bytes, Id, Offset};
use thiserror::Error;

/// The first thing that keeps a plan from being measured: it is not a valid plan of the graph on
/// the machine, or a sum passes 64 bits. Positions count from 0.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// The schedule has too few or too many nodes.
    #[error("the schedule has {found} nodes; {nodes} of the graph and two for each of {spills} spills are {expected}")]
    Length {
        /// Nodes in the schedule.
        found: usize,
        /// Nodes of the graph.
        nodes: usize,
        /// Spills of the plan.
        spills: usize,
        /// Nodes that the schedule should have.
        expected: usize,
    },
    /// An id that neither a node of the graph nor a spill of the plan has.
    #[error("position {pos}: there is no node {id}")]
    UnknownNode {
        /// Where it stands.
        pos: usize,
        /// The id.
        id: Id,
    },
    /// A node that stands twice.
    #[error("position {pos}: node {id} stands twice")]
    Repeated {
        /// Its second position.
        pos: usize,
        /// The node.
        id: Id,
    },
    /// A placement or a spill of a buffer that the graph does not have.
    #[error("there is no buffer {buf}")]
    UnknownBuffer {
        /// The buffer.
        buf: BufId,
    },
    /// A buffer with two first offsets.
    #[error("buffer {buf} has two initial offsets")]
    PlacedTwice {
        /// The buffer.
        buf: BufId,
    },
    /// A buffer without a first offset.
    #[error("buffer {buf} has no initial offset")]
    NotPlaced {
        /// The buffer.
        buf: BufId,
    },
    /// An edge of the graph goes backward.
    #[error("position {pos}: node {id} stands before its predecessor {predecessor}")]
    Backward {
        /// Where the node stands.
        pos: usize,
        /// The node.
        id: Id,
        /// The node that must come first.
        predecessor: Id,
    },
    /// A node that uses, frees or moves out a buffer that is not resident.
    #[error("position {pos}: node {id} needs buffer {buf}, which is not resident")]
    NotResident {
        /// Where the node stands.
        pos: usize,
        /// The node.
        id: Id,
        /// The buffer.
        buf: BufId,
    },
    /// A `SPILL_IN` of a buffer that is resident, or that another spill moved out.
    #[error("position {pos}: node {id} brings back buffer {buf}, which its spill did not move out")]
    NotOut {
        /// Where the node stands.
        pos: usize,
        /// The node.
        id: Id,
        /// The buffer.
        buf: BufId,
    },
    /// A residency segment that reaches past the end of its cache.
    #[error("position {pos}: buffer {buf} of {} at offset {offset} leaves its cache of {capacity}", .size.in_words())]
    OutsideCache {
        /// Where the segment begins.
        pos: usize,
        /// The buffer.
        buf: BufId,
        /// Its offset.
        offset: Offset,
        /// Its size.
        size: Bytes,
        /// Capacity of its cache.
        capacity: Bytes,
    },
    /// A residency segment that begins on addresses another buffer holds.
    #[error("position {pos}: buffer {buf} at offset {offset} lies over another buffer")]
    Overlap {
        /// Where the segment begins.
        pos: usize,
        /// The buffer.
        buf: BufId,
        /// Its offset.
        offset: Offset,
    },
    /// A new order of a stretch of the schedule that has other steps than the stretch.
    #[error("position {pos}: the new order is not one of the steps that stand there")]
    NotAPermutation {
        /// Where it departs, or where the stretch begins when the lengths differ.
        pos: usize,
    },
    /// A reservation that begins where a buffer lies.
    #[error("position {pos}: a reservation leaves {} of {}, and a buffer lies beyond", .usable.in_words(), Shown(.cache))]
    Reserved {
        /// Where the reservation begins.
        pos: usize,
        /// The cache.
        cache: String,
        /// Bytes that are not reserved.
        usable: Bytes,
    },
    /// A reservation whose last node the plan has before its first.
    #[error("{reservation} is reserved from a node at position {from} back to one at position {to}")]
    ReservedBackwards {
        /// The reservation.
        reservation: Reservation,
        /// Where its first node stands.
        from: usize,
        /// Where its last does.
        to: usize,
    },
    /// A sum passes 2⁶⁴ − 1.
    #[error("the {what} of the plan pass 2^64-1")]
    Overflow {
        /// `bytes moved` or `cycles`.
        what: &'static str,
    },
}
