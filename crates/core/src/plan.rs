//! Plans: what a planner, ours or a stranger's, decided, in the external ids of the files.

mod settings;

pub use settings::{ExactSettings, Origin, SearchSettings, Settings};

use crate::units::{BufId, Id, MAX_ID, Offset};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a request for space failed, measured once when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// The cache had fewer free bytes than were needed.
    Capacity,
    /// The cache had enough free bytes, but not in one piece.
    Fragmentation,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Capacity => "capacity",
            Self::Fragmentation => "fragmentation",
        })
    }
}

/// The first address of one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Placed {
    /// The buffer.
    pub buf: BufId,
    /// Where its first residency segment lies.
    pub offset: Offset,
}

/// One `SPILL_OUT` / `SPILL_IN` pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spill {
    /// The buffer.
    pub buf: BufId,
    /// Where it comes back to.
    pub offset: Offset,
    /// Why it went out; unknown for plans read from text files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
}

/// What a planner did, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Counters {
    /// Requests for space: `ALLOC`s (each retry counts) and reloads.
    pub requests: u64,
    /// Requests that found no hole at once.
    pub failed_requests: u64,
    /// Failed requests met by evicting one buffer.
    pub single: u64,
    /// Failed requests met by evicting several.
    pub multi: u64,
    /// Failed requests met by clearing an address window.
    pub window: u64,
    /// `ALLOC`s moved behind a later `FREE`; each move counts.
    pub postponed: u64,
    /// Failed requests met by the last resort.
    pub last_resort: u64,
    /// Last resorts that had to move the operands of the op themselves.
    pub repacks: u64,
    /// Victim scores computed.
    pub scores: u64,
    /// `SPILL_IN`s that the prefetch pass brought forward.
    pub prefetched: u64,
    /// Cycles that retiming took off the makespan; absent in a document where it took none.
    #[serde(skip_serializing_if = "is_zero")]
    pub cycles_saved: u64,
    /// Buffers moved out because they lay where a reservation began; absent where none did.
    #[serde(skip_serializing_if = "is_zero")]
    pub reserved: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A schedule with spill nodes, one initial offset per buffer, and the list of spills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Ids of all nodes, spill nodes included, in order.
    pub schedule: Vec<Id>,
    /// The first address of every buffer.
    pub memory: Vec<Placed>,
    /// The spills; the k-th, from 0, owns the ids [`SpillIds::out`]`(k)` and [`SpillIds::back`]`(k)`.
    pub spills: Vec<Spill>,
    /// What the planner counted; `None` for plans read from text files.
    pub counters: Option<Counters>,
}

/// The ids of spill nodes: the k-th spill, from 0, owns `base + 2k` (`SPILL_OUT`) and
/// `base + 2k + 1` (`SPILL_IN`), where `base` is the largest node id + 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpillIds {
    base: u64,
}

/// The end of a spill that an id stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpillEnd {
    /// `SPILL_OUT` of the spill of that number, from 0.
    Out(usize),
    /// `SPILL_IN` of the spill of that number, from 0.
    Back(usize),
}

impl SpillIds {
    /// The spill ids of a graph whose largest node id is `max`.
    pub fn after(max: Id) -> Self {
        Self { base: max.0.saturating_add(1) }
    }

    /// Id of the `SPILL_OUT` of the `k`-th spill, from 0; `None` when its pair passes 2⁶³ − 1.
    pub fn out(self, k: usize) -> Option<Id> {
        let out = (k as u64).checked_mul(2)?.checked_add(self.base)?;
        (out < MAX_ID).then_some(Id(out))
    }

    /// Id of the `SPILL_IN` of the `k`-th spill, from 0; `None` when it passes 2⁶³ − 1.
    pub fn back(self, k: usize) -> Option<Id> {
        self.out(k).map(|out| Id(out.0 + 1))
    }

    /// Which spill node of `spills` spills an id stands for.
    #[inline]
    pub fn end(self, id: Id, spills: usize) -> Option<SpillEnd> {
        let place = id.0.checked_sub(self.base)?;
        let k = usize::try_from(place / 2).ok().filter(|&k| k < spills)?;
        Some(if place % 2 == 0 { SpillEnd::Out(k) } else { SpillEnd::Back(k) })
    }
}
