//! Capacities that vary over a schedule: bytes at the top of a cache that buffers may not use from
//! one node to another.
//!
//! A reservation holds the top of its cache from its first node to its last, both included, as they
//! stand in the order: in the normalised schedule while it is planned, in the plan when it is checked.
//! An order in which the last stands before the first does not suit it and is refused; without a first
//! it begins with the schedule, without a last it never ends. Reservations of one cache that hold at once stack: their bytes add up. What is
//! left, from address 0 on, is the *usable* part of the cache.

use crate::graph::Graph;
use crate::hardware::Machine;
use crate::index::{CacheIx, NodeIx};
use crate::units::{Bytes, Id};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;
use typed_index_collections::{TiVec, ti_vec};

/// Bytes of a cache kept from buffers from node to node, both included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reservation {
    /// The cache.
    pub cache: String,
    /// How many bytes of it, at its top.
    pub bytes: Bytes,
    /// The first node; none for the begin of the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Id>,
    /// The last node; none for the end of the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Id>,
}

/// A text that states no reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReservationSyntax {
    /// No cache, or no bytes.
    #[error("expected CACHE:BYTES@FROM..TO, such as L1:512@12..40, L1:512@12.. or L1:512")]
    Shape,
    /// Bytes that are no number.
    #[error("the bytes of a reservation are a whole number below 2^64")]
    Bytes,
    /// A node that is no number.
    #[error("the ends of a reservation are ids of nodes, FROM..TO, either of which may be left out")]
    Node,
}

impl FromStr for Reservation {
    type Err = ReservationSyntax;

    /// Reads `CACHE:BYTES`, then `@FROM..TO` unless it holds throughout.
    fn from_str(text: &str) -> Result<Self, ReservationSyntax> {
        let (what, span) = match text.rsplit_once('@').filter(|(_, span)| span.contains("..")) {
            Some((what, span)) => (what, span.split_once("..").ok_or(ReservationSyntax::Node)?),
            None => (text, ("", "")),
        };
        let (cache, bytes) = what.rsplit_once(':').filter(|(c, _)| !c.is_empty()).ok_or(ReservationSyntax::Shape)?;
        let digits = |text: &str| (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse());
        let bytes = digits(bytes).and_then(Result::ok).map(Bytes).ok_or(ReservationSyntax::Bytes)?;
        let node = |text: &str| match text {
            "" => Ok(None),
            _ => digits(text).and_then(Result::ok).map(|id| Some(Id(id))).ok_or(ReservationSyntax::Node),
        };
        Ok(Self { cache: cache.to_owned(), bytes, from: node(span.0)?, to: node(span.1)? })
    }
}

impl fmt::Display for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", crate::Shown(&self.cache), self.bytes)?;
        if (self.from, self.to) == (None, None) {
            return Ok(());
        }
        let node = |id: Option<Id>| id.map_or_else(String::new, |id| id.to_string());
        write!(f, "@{}..{}", node(self.from), node(self.to))
    }
}

/// A reservation as a graph sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// The cache.
    pub cache: CacheIx,
    /// Bytes at its top.
    pub bytes: Bytes,
    /// The first node; none for the begin of the schedule.
    pub from: Option<NodeIx>,
    /// The last node; none for the end of the schedule.
    pub to: Option<NodeIx>,
}

impl Reserved {
    /// The same in the ids of the graph.
    pub fn stated(&self, graph: &Graph) -> Reservation {
        let id = |node: Option<NodeIx>| node.map(|n| graph.id(n));
        let cache = graph.cache_name(self.cache).to_owned();
        Reservation { cache, bytes: self.bytes, from: id(self.from), to: id(self.to) }
    }
}

/// The reservations of a machine that an order turns round, with the places of their first and last
/// node.
pub(crate) fn backwards(
    machine: &Machine,
    place: impl Fn(NodeIx) -> usize,
) -> impl Iterator<Item = (&Reserved, usize, usize)> {
    machine.reservations().iter().filter(|r| r.bytes.0 > 0).filter_map(move |r| {
        let (from, to) = (place(r.from?), place(r.to?));
        (to < from).then_some((r, from, to))
    })
}

/// The usable part of every cache while an order is walked position by position: what begins at a
/// position is told by [`Usable::begin`], what ends with it by [`Usable::end`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Usable {
    /// By first position, then by last position: position, cache, bytes.
    beginning: Vec<(usize, CacheIx, u64)>,
    ending: Vec<(usize, CacheIx, u64)>,
    /// How many of each have been told.
    begun: usize,
    ended: usize,
    capacity: TiVec<CacheIx, u64>,
    held: TiVec<CacheIx, u128>,
}

impl Usable {
    /// Of an order of `len` positions in which each node has a place and that turns no reservation
    /// round ([`backwards`]).
    pub(crate) fn along(machine: &Machine, len: usize, place: impl Fn(NodeIx) -> usize) -> Self {
        let mut usable = Self::default();
        for r in machine.reservations().iter().filter(|r| r.bytes.0 > 0) {
            // Without a first or a last node the span is open.
            usable.beginning.push((r.from.map_or(0, &place), r.cache, r.bytes.0));
            usable.ending.push((r.to.map_or(len, &place), r.cache, r.bytes.0));
        }
        usable.beginning.sort_unstable();
        usable.ending.sort_unstable();
        if !usable.beginning.is_empty() {
            usable.capacity = (0..machine.cache_count()).map(|c| machine.cache(CacheIx::new(c)).capacity.0).collect();
            usable.held = ti_vec![0; machine.cache_count()];
        }
        usable
    }

    /// True when nothing is reserved anywhere.
    pub(crate) fn is_everything(&self) -> bool {
        self.beginning.is_empty()
    }

    /// The usable bytes of a cache now; nothing when no reservation stands anywhere.
    pub(crate) fn of(&self, cache: CacheIx) -> Option<Bytes> {
        let left = u128::from(*self.capacity.get(cache)?).saturating_sub(self.held[cache]);
        // No more than the capacity, which has 64 bits.
        Some(Bytes(left as u64))
    }

    /// Takes in a reservation that begins at `pos` and tells the cache and what is usable of it.
    pub(crate) fn begin(&mut self, pos: usize) -> Option<(CacheIx, Bytes)> {
        let &(_, cache, bytes) = self.beginning.get(self.begun).filter(|b| b.0 == pos)?;
        self.begun += 1;
        self.held[cache] += u128::from(bytes);
        Some((cache, self.of(cache)?))
    }

    /// Gives up a reservation that ends with `pos` and tells the cache and what is usable of it.
    pub(crate) fn end(&mut self, pos: usize) -> Option<(CacheIx, Bytes)> {
        let &(_, cache, bytes) = self.ending.get(self.ended).filter(|e| e.0 == pos)?;
        self.ended += 1;
        self.held[cache] -= u128::from(bytes);
        Some((cache, self.of(cache)?))
    }
}

/// The usable part of every cache at every position of an order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Profile {
    /// Per cache, from which moment on how much is usable; the capacity before the first.
    changes: TiVec<CacheIx, Vec<(usize, Bytes)>>,
    capacity: TiVec<CacheIx, Bytes>,
}

impl Profile {
    /// The profile of what `usable` has not told yet.
    pub(crate) fn of(usable: &Usable) -> Self {
        let mut usable = usable.clone();
        let mut events: Vec<(usize, CacheIx)> = Vec::new();
        // Two moments a position: before what begins there, and with it.
        events.extend(usable.beginning.iter().map(|b| (2 * b.0 + 1, b.1)));
        events.extend(usable.ending.iter().map(|e| (2 * e.0 + 2, e.1)));
        events.sort_unstable();
        let capacity: TiVec<CacheIx, Bytes> = usable.capacity.iter().map(|&c| Bytes(c)).collect();
        let mut changes: TiVec<CacheIx, Vec<(usize, Bytes)>> = ti_vec![Vec::new(); capacity.len()];
        for (moment, _) in events {
            let told = if moment % 2 == 1 { usable.begin(moment / 2) } else { usable.end(moment / 2 - 1) };
            if let Some((cache, left)) = told {
                changes[cache].push((moment, left));
            }
        }
        Self { changes, capacity }
    }

    /// What is usable at a position.
    pub(crate) fn at(&self, cache: CacheIx, pos: usize) -> Option<Bytes> {
        self.when(cache, 2 * pos + 1)
    }

    /// What is usable just before a position: what begins there does not count yet.
    pub(crate) fn before(&self, cache: CacheIx, pos: usize) -> Option<Bytes> {
        self.when(cache, 2 * pos)
    }

    fn when(&self, cache: CacheIx, moment: usize) -> Option<Bytes> {
        let changes = self.changes.get(cache)?;
        let past = changes.partition_point(|c| c.0 <= moment);
        Some(past.checked_sub(1).map_or(self.capacity[cache], |last| changes[last].1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_are_read_as_they_are_shown() {
        for text in ["L1:512", "L1:512@12..40", "UB:0@..40", "UB:7@3..", "odd:name@x:5@1..2"] {
            assert_eq!(text.parse::<Reservation>().map(|r| r.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("L1:5@..".parse::<Reservation>().map(|r| r.to_string()), Ok("L1:5".to_owned()));
        for wrong in ["", "L1", ":5", "L1:", "L1:x", "L1:5@1", "L1:5@a..", "L1:5@1..-2", "L1:-5", "L1:5@1..2..3"] {
            assert!(wrong.parse::<Reservation>().is_err(), "{wrong}");
        }
    }
}
