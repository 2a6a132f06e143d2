//! What the checker found: offenders counted per rule, the first thousand of each in full.

use crate::names::Shown;
use crate::units::{BufId, Bytes, Id, Offset};
use derive_more::Display;
use serde::Serialize;
use std::fmt;

/// One of the five rules that a valid plan keeps; the module doc of the checker states them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(into = "u8")]
pub enum Rule {
    /// Rule 1: every node and every spill node stands in the schedule exactly once.
    Presence,
    /// Rule 2: every edge goes forward.
    Order,
    /// Rule 3: a buffer is resident whenever something is done with it.
    Residency,
    /// Rule 4: every segment has one address and lies inside its cache.
    Bounds,
    /// Rule 5: segments that overlap in time do not overlap in address.
    Overlap,
}

impl Rule {
    /// All rules, in their order.
    pub const ALL: [Self; 5] = [Self::Presence, Self::Order, Self::Residency, Self::Bounds, Self::Overlap];

    /// Its number, 1 to 5.
    pub fn number(self) -> u8 {
        self as u8 + 1
    }

    /// What it demands, in one line.
    pub fn statement(self) -> &'static str {
        match self {
            Self::Presence => "every node and every spill node stands in the schedule exactly once, and nothing else",
            Self::Order => "every graph edge, implied edge and spill edge goes forward",
            Self::Residency => "each op finds its buffers resident; nothing of a buffer happens while it is out",
            Self::Bounds => "each segment has exactly one address and lies inside its cache",
            Self::Overlap => "two segments of one cache that overlap in time do not overlap in address",
        }
    }
}

impl From<Rule> for u8 {
    fn from(rule: Rule) -> Self {
        rule.number()
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {}", self.number())
    }
}

/// All that is wrong with a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    offenders: [u64; 5],
    violations: Vec<Violation>,
}

impl Report {
    /// How many offenders of each rule are listed in full.
    pub const LISTED: u64 = 1000;

    /// True when no rule is broken.
    pub fn is_valid(&self) -> bool {
        self.offenders == [0; 5]
    }

    /// How many offenders one rule has, listed or not: places and ids for rule 1, edges for rule
    /// 2, pairs of node and buffer for rule 3, segments for rules 4 and 5.
    pub fn offenders(&self, rule: Rule) -> u64 {
        self.offenders[rule as usize]
    }

    /// The offenders of all rules, rule 1 first.
    pub fn counts(&self) -> [u64; 5] {
        self.offenders
    }

    /// How many offenders all rules have.
    pub fn total(&self) -> u64 {
        self.offenders.iter().sum()
    }

    /// The first [`Report::LISTED`] offenders of each rule, by rule.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// The listed offenders of one rule.
    pub fn of(&self, rule: Rule) -> impl Iterator<Item = &Fault> {
        self.violations.iter().filter(move |v| v.rule == rule).map(|v| &v.fault)
    }

    /// Counts an offender; its description is made only while there is room in the list.
    pub(super) fn add(&mut self, rule: Rule, describe: impl FnOnce() -> Fault) {
        let count = &mut self.offenders[rule as usize];
        *count += 1;
        if *count <= Self::LISTED {
            self.violations.push(Violation { rule, fault: describe() });
        }
    }
}

/// One offender with the rule that it breaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Display)]
#[display("{rule}: {fault}")]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// What is wrong.
    #[serde(flatten)]
    pub fault: Fault,
}

/// An edge that a schedule must respect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum EdgeKind {
    /// The graph lists it.
    #[display("edge")]
    Graph,
    /// `ALLOC` → user, user → `FREE`, or `ALLOC` → `FREE` of one buffer, not listed by the graph.
    #[display("implied edge")]
    Implied,
    /// A link of the chain `ALLOC` → `OUT₁` → `IN₁` → … → `FREE`.
    #[display("spill edge")]
    Spill,
}

/// What a node does with a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum Act {
    /// It has the buffer among its `Bufs`.
    #[display("uses")]
    Use,
    /// `ALLOC`
    #[display("allocates")]
    Alloc,
    /// `FREE`
    #[display("frees")]
    Free,
    /// `SPILL_OUT`
    #[display("moves out")]
    SpillOut,
    /// `SPILL_IN`
    #[display("moves in")]
    SpillIn,
}

/// Why a buffer is not resident at some position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Display)]
#[serde(rename_all = "kebab-case", tag = "because")]
pub enum Absence {
    /// Its `ALLOC` stands later.
    #[display("is allocated later, by node {alloc} at position {alloc_pos}")]
    BeforeAlloc {
        /// The `ALLOC`.
        alloc: Id,
        /// Where it stands.
        alloc_pos: usize,
    },
    /// It was moved out and has not come back.
    #[display("is out: node {out} at position {out_pos} moves it out, node {back} at position {back_pos} in")]
    Out {
        /// The `SPILL_OUT`.
        out: Id,
        /// Where it stands.
        out_pos: usize,
        /// The `SPILL_IN` of the same spill.
        back: Id,
        /// Where it stands: later, unless rule 2 is broken too.
        back_pos: usize,
    },
    /// Its `FREE` stands earlier.
    #[display("was freed by node {free} at position {free_pos}")]
    AfterFree {
        /// The `FREE`.
        free: Id,
        /// Where it stands.
        free_pos: usize,
    },
}

/// A residency segment: addresses `offset .. offset + size` over positions `start .. end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Display)]
#[display("buffer {buf} (offset {offset}, size {size}, positions {start} to {end} exclusive, begun by node {node})")]
pub struct Span {
    /// The buffer.
    pub buf: BufId,
    /// The `ALLOC` or `SPILL_IN` that begins it.
    pub node: Id,
    /// Position of that node, included.
    pub start: usize,
    /// Position of the `SPILL_OUT` or `FREE` that ends it, excluded.
    pub end: usize,
    /// The first address.
    pub offset: Offset,
    /// The size of the buffer.
    pub size: Bytes,
}

/// What is wrong. Positions are places in the schedule of the plan and count from 0; numbers of
/// spills and of memory entries count from 1, as lines of their files do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Display)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Fault {
    /// Rule 1: more entries than positions can count; nothing else was looked at.
    #[display("the plan has {count} {what}; at most {limit} can be checked")]
    TooMany {
        /// `schedule entries`, `memory entries` or `spills`.
        what: &'static str,
        /// How many.
        count: usize,
        /// How many at most.
        limit: usize,
    },
    /// Rule 1: an id that neither a node nor a spill owns.
    #[display("position {pos}: no node and no spill has the id {node}")]
    UnknownId {
        /// The id.
        node: Id,
        /// Where it stands.
        pos: usize,
    },
    /// Rule 1: an id that stood in the schedule before.
    #[display("position {pos}: node {node} stands already at position {first_pos}")]
    Repeated {
        /// The id.
        node: Id,
        /// Where it stands again.
        pos: usize,
        /// Where it stands first.
        first_pos: usize,
    },
    /// Rule 1: a node of the graph that does not stand in the schedule.
    #[display("node {node} is missing from the schedule")]
    MissingNode {
        /// The node.
        node: Id,
    },
    /// Rule 1: a spill node that does not stand in the schedule.
    #[display("node {node}, which {act} buffer {buf} for spill {spill}, is missing from the schedule")]
    MissingSpillNode {
        /// The id that the spill owns.
        node: Id,
        /// Which end of the spill it is.
        act: Act,
        /// The number of the spill.
        spill: usize,
        /// The buffer.
        buf: BufId,
    },
    /// Rule 1: a spill of a buffer that the graph does not have.
    #[display("spill {spill} moves buffer {buf}, which the graph does not have")]
    SpillOfUnknownBuffer {
        /// The number of the spill.
        spill: usize,
        /// The id given as a buffer's.
        buf: BufId,
    },
    /// Rule 1: a spill whose ids would pass 2⁶³ − 1.
    #[display("the node ids of spill {spill} (buffer {buf}) pass the largest id {max}")]
    SpillIdsPastLimit {
        /// The number of the spill.
        spill: usize,
        /// The buffer.
        buf: BufId,
        /// The largest id there is.
        max: Id,
    },
    /// Rule 2: an edge that goes backward.
    #[display("{edge} {from} -> {to} goes backward: {from} stands at position {from_pos}, {to} at {to_pos}")]
    Backward {
        /// Why the order matters.
        edge: EdgeKind,
        /// The node that must come first.
        from: Id,
        /// The node that must follow.
        to: Id,
        /// Position of `from`.
        from_pos: usize,
        /// Position of `to`.
        to_pos: usize,
        /// The buffer whose life asks for it; `None` for an edge of the graph.
        #[serde(skip_serializing_if = "Option::is_none")]
        buf: Option<BufId>,
    },
    /// Rule 3: a node does something with a buffer that is not resident.
    #[display("position {pos}: node {node} {act} buffer {buf} of {}, which {absence}", Shown(cache))]
    NotResident {
        /// The node.
        node: Id,
        /// Where it stands.
        pos: usize,
        /// What it does.
        act: Act,
        /// The buffer.
        buf: BufId,
        /// The cache of the buffer.
        cache: String,
        /// Why the buffer is not there.
        #[serde(flatten)]
        absence: Absence,
    },
    /// Rule 4: an initial offset for a buffer that the graph does not have.
    #[display("memory entry {entry} places buffer {buf}, which the graph does not have")]
    OffsetOfUnknownBuffer {
        /// The number of the entry.
        entry: usize,
        /// The id given as a buffer's.
        buf: BufId,
    },
    /// Rule 4: a second initial offset for one buffer; the first is taken.
    #[display(
        "memory entry {entry} places buffer {buf} at {offset}; entry {first_entry} places it already, at {first}"
    )]
    OffsetRepeated {
        /// The number of the entry.
        entry: usize,
        /// The buffer.
        buf: BufId,
        /// The offset given again.
        offset: Offset,
        /// The number of the first entry of that buffer.
        first_entry: usize,
        /// The offset given there.
        first: Offset,
    },
    /// Rule 4: a buffer without an initial offset.
    #[display("buffer {buf} of {} (node {node}) has no initial offset", Shown(cache))]
    NoOffset {
        /// The buffer.
        buf: BufId,
        /// Its `ALLOC`.
        node: Id,
        /// Its cache.
        cache: String,
    },
    /// Rule 4: a segment that ends past its cache.
    #[display("buffer {buf} at offset {offset} with {} {} {} of {} (begun by {})",
        size.in_words(), if offset.signed() < 0 { "begins before" } else { "ends past" }, Shown(cache), capacity.in_words(), Begun(*node, *pos))]
    OutOfBounds {
        /// The buffer.
        buf: BufId,
        /// The `ALLOC` or `SPILL_IN` that begins the segment; `None` when the spill owns no ids.
        node: Option<Id>,
        /// Where that node stands; `None` when it is missing.
        pos: Option<usize>,
        /// The cache.
        cache: String,
        /// The first address.
        offset: Offset,
        /// The size of the buffer.
        size: Bytes,
        /// The bytes that the cache has.
        capacity: Bytes,
    },
    /// Rule 4: a segment that lies in what is reserved of its cache.
    #[display("in {}, {segment} lies in what is reserved: {usable} bytes are usable at position {pos}", Shown(cache))]
    InReserved {
        /// The cache.
        cache: String,
        /// The segment.
        segment: Span,
        /// Bytes from address 0 on that are not reserved there.
        usable: Bytes,
        /// The first position of the segment at which least is usable.
        pos: usize,
    },
    /// Rule 4: a reservation whose last node stands before its first.
    #[display(
        "{bytes} bytes of {} are reserved from node {from} to node {to}, but {to} stands at position {to_pos}, \
        before {from} at {from_pos}",
        Shown(cache)
    )]
    ReservedBackwards {
        /// The cache.
        cache: String,
        /// How many bytes of it.
        bytes: Bytes,
        /// The first node.
        from: Id,
        /// Where it stands.
        from_pos: usize,
        /// The last node.
        to: Id,
        /// Where it stands.
        to_pos: usize,
    },
    /// Rule 5: a segment that overlaps another one in time and in address. Each segment in
    /// conflict is listed once, with one of those that it overlaps.
    #[display("in {}, {segment} overlaps {other}", Shown(cache))]
    Overlap {
        /// The cache.
        cache: String,
        /// The segment.
        segment: Span,
        /// One that it overlaps.
        other: Span,
    },
}

/// The node that begins a segment, worded.
struct Begun(Option<Id>, Option<usize>);

impl fmt::Display for Begun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, self.1) {
            (Some(node), Some(pos)) => write!(f, "node {node} at position {pos}"),
            (Some(node), None) => write!(f, "node {node}, which is missing"),
            (None, _) => f.write_str("a spill without ids"),
        }
    }
}
