//! The checker: an independent reader of plans.
//!
//! It takes a graph, a hardware and a plan, and says everything that is wrong with the plan. It
//! trusts nothing that made the plan and shares no code with it; all it knows is what the graph,
//! the hardware and the plan files say. A plan that passes is valid by the rules below and nothing
//! else.
//!
//! # What a plan says
//!
//! A plan is a schedule (ids in order), one initial offset per buffer, and a list of spills. The
//! k-th spill, from 1, owns two ids: `M + 2(k − 1)` is its `SPILL_OUT`, the next its `SPILL_IN`,
//! where `M` is the largest node id + 1. Of a buffer that is spilled more than once, the spills are
//! numbered in the order in which the plan lists them: `OUT₁`, `IN₁`, `OUT₂`, …
//!
//! Read along the schedule, a buffer is *resident* in **segments**. A segment begins at the `ALLOC`
//! (at the initial offset) or at a `SPILL_IN` (at the offset of that spill), included, and ends at
//! the next `SPILL_OUT` or `FREE` of the buffer, excluded.
//!
//! # The rules
//!
//! 1. **Presence.** Every node of the graph and both nodes of every spill stand in the schedule
//!    exactly once, and nothing else does. Offenders: each position with an unknown or repeated id,
//!    each missing node, each spill of a buffer that the graph lacks, each spill whose ids would
//!    pass 2⁶³ − 1 (it owns none).
//! 2. **Order.** Every edge goes forward: the edges of the graph, the implied edges
//!    `ALLOC(b) → user of b → FREE(b)`, and the spill edges
//!    `ALLOC → OUT₁ → IN₁ → OUT₂ → … → FREE`. Offenders: edges; one that is both listed and implied
//!    counts once.
//! 3. **Residency.** Each op finds every buffer of its `Bufs` resident, and nothing at all of a
//!    buffer happens between an `OUT` and its `IN`. Offenders: pairs of node and buffer.
//! 4. **Bounds.** Every segment has an address and lies inside its cache:
//!    `offset + size ≤ capacity`, less what the hardware reserves at any position of the segment (see
//!    `Machine::reservations`; here by the positions of the plan). Offenders: segments that end past
//!    their cache or in what is reserved, reservations whose last node stands before their first, buffers without an initial offset, memory entries that repeat
//!    a buffer or name one that the graph lacks. (That the memory file lists every buffer once belongs
//!    here: it is where addresses come from, while
//!    rule 1 speaks of the schedule.)
//! 5. **Overlap.** Two segments of one cache that overlap in time do not overlap in address.
//!    Offenders: segments that are in conflict with at least one other, not pairs.
//!
//! # One fault, several rules
//!
//! Each rule is judged by itself, so one fault can offend several. An op before the `ALLOC` of its
//! buffer breaks an implied edge (2) and does not find the buffer (3); a `FREE` between `OUT` and
//! `IN` breaks a spill edge (2) and happens to a buffer that is out (3). One demand is counted once:
//! that the users after an `OUT` follow its `IN` could be read as an edge, but on which side of an
//! `OUT` a user belongs only the schedule says; a use in between is reported under rule 3 alone.
//!
//! # Damaged plans
//!
//! The checker never stops at the first fault, and one fault hides no other; but neither is what
//! follows from a fault that rule 1 has named reported again:
//!
//! - of an id that stands twice, the first place counts;
//! - an edge to a missing node is passed over; missing links of a spill chain are bridged;
//! - where `ALLOC`, or the `IN` of an `OUT`, is missing, nothing is said about residency until the
//!   next node that brings the buffer in;
//! - a segment whose end is missing ends after the last node that touched its buffer;
//! - of two initial offsets of a buffer, the first counts; a segment without an address is compared
//!   with none.
//!
//! Offenders are counted to the end; the first [`Report::LISTED`] of each rule are listed, along the
//! schedule where they are met on a walk over it, along the plan's other lists and the graph's
//! elsewhere. The same graph and plan always give the same report.
//!
//! # Cost
//!
//! O((n + e + s) log s) for n schedule entries, e edges and operands, and s segments, whatever the
//! plan says; linear but for the sweep of rule 5. Ids cost a table look-up where they are dense.

mod addresses;
mod order;
mod overlap;
mod reading;
mod report;
mod reserved;
mod residency;

pub use report::{Absence, Act, EdgeKind, Fault, Report, Rule, Span, Violation};

use crate::graph::Graph;
use crate::hardware::Machine;
use crate::plan::Plan;
use addresses::FirstOffsets;
use reading::Reading;

/// Checks a plan against all rules. `machine` is the hardware resolved for this very graph.
///
/// Never panics, whatever the plan holds; the counters of the plan are not looked at.
pub fn check(graph: &Graph, machine: &Machine, plan: &Plan) -> Report {
    let mut report = Report::default();
    let Some(reading) = Reading::new(graph, machine, plan, &mut report) else {
        return report;
    };
    let offsets = FirstOffsets::new(&reading);
    order::check(&reading, &mut report);
    let segments = residency::check(&reading, &offsets, &mut report);
    addresses::check(&reading, &offsets, &mut report);
    reserved::check(&reading, &segments, &mut report);
    overlap::check(&reading, &segments, &mut report);
    report
}
