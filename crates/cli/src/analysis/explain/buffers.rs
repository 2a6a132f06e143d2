//! The buffers that moved most, with their access pattern.

use super::Mapped;
use serde::Serialize;
use spillbench_core::NodeKind;
use spillbench_core::index::{BufIx, Pos};
use spillbench_core::metrics::Step;
use spillbench_core::units::{BufId, Bytes};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What the spills of one buffer cost, and how it is used.
#[derive(Debug, Serialize)]
pub struct BufferCost {
    /// The buffer.
    pub buf: BufId,
    /// Its cache.
    pub cache: String,
    /// Its size.
    pub size: Bytes,
    /// True when moving it out costs nothing.
    pub backed: bool,
    /// How often it was spilled.
    pub spills: usize,
    /// Bytes its spills move.
    pub moved: Bytes,
    /// Ops that use it.
    pub uses: usize,
    /// The most positions between two happenings of its life in which nothing but spills happens.
    pub longest_gap: usize,
    /// What happens to it, in order.
    pub pattern: Vec<Happening>,
}

/// Something that happens to a buffer, and where.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Happening {
    /// What.
    pub event: Event,
    /// Where.
    pub position: usize,
}

/// What can happen to a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Event {
    /// `ALLOC`
    Alloc,
    /// An op uses it.
    Use,
    /// `SPILL_OUT`
    Out,
    /// `SPILL_IN`
    Back,
    /// `FREE`
    Free,
}

/// How often each buffer that moved was spilled.
pub fn moved(mapped: &Mapped<'_>) -> BTreeMap<BufIx, usize> {
    let mut spills = BTreeMap::new();
    for &out in &mapped.outs {
        if let Step::SpillOut { buf, .. } = mapped.steps.as_slice()[out] {
            *spills.entry(buf).or_default() += 1;
        }
    }
    spills
}

/// The buffers whose spills move most bytes, by rising id among equals.
pub fn dearest(mapped: &Mapped<'_>, top: usize) -> Vec<BufferCost> {
    let graph = mapped.graph;
    let cost = |b: BufIx, spills: usize| graph.buf(b).movement().0 * spills as u64;
    let mut ranked: Vec<_> = moved(mapped).into_iter().collect();
    ranked.sort_by_key(|&(b, spills)| (Reverse(cost(b, spills)), graph.buf(b).id));
    ranked.truncate(top);
    let mut patterns: BTreeMap<BufIx, Vec<Happening>> = ranked.iter().map(|&(b, _)| (b, Vec::new())).collect();
    for (pos, &step) in mapped.steps.as_slice().iter_enumerated() {
        let mut note = |buf: BufIx, event| {
            if let Some(pattern) = patterns.get_mut(&buf) {
                pattern.push(Happening { event, position: Pos::index(pos) });
            }
        };
        match step {
            Step::SpillOut { buf, .. } => note(buf, Event::Out),
            Step::SpillIn { buf, .. } => note(buf, Event::Back),
            Step::Node(n) => match graph.kind(n) {
                NodeKind::Alloc(b) => note(b, Event::Alloc),
                NodeKind::Free(b) => note(b, Event::Free),
                NodeKind::Op => graph.operands(n).iter().for_each(|&b| note(b, Event::Use)),
            },
        }
    }
    let tell = |(b, spills): (BufIx, usize)| {
        let buf = graph.buf(b);
        let pattern = patterns.remove(&b).unwrap_or_default();
        BufferCost {
            buf: buf.id,
            cache: graph.cache_name(buf.cache).to_owned(),
            size: buf.size,
            backed: buf.backed,
            spills,
            moved: Bytes(cost(b, spills)),
            uses: graph.users(b).len(),
            longest_gap: longest_gap(&pattern),
            pattern,
        }
    };
    ranked.into_iter().map(tell).collect()
}

/// The most positions from one happening to the next, spills passed over.
fn longest_gap(pattern: &[Happening]) -> usize {
    let own = pattern.iter().filter(|h| !matches!(h.event, Event::Out | Event::Back)).map(|h| h.position);
    let next = own.clone().skip(1);
    own.zip(next).map(|(a, b)| b - a).max().unwrap_or(0)
}
