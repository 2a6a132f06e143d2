//! Rule 3: a buffer is resident whenever something is done with it. The same walk cuts the
//! schedule into the residency segments that rule 5 compares.

use super::addresses::FirstOffsets;
use super::reading::{ABSENT, Entry, Reading};
use super::report::{Absence, Act, Fault, Report, Rule};
use crate::graph::NodeKind;
use crate::index::{BufIx, CacheIx};
use crate::units::Offset;
use typed_index_collections::TiVec;

/// A residency segment: positions `start .. end`, addresses `low ..= last`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub low: u64,
    /// The last address: the one after it may not exist.
    pub last: u64,
    pub start: u32,
    pub end: u32,
    pub cache: CacheIx,
    pub buf: BufIx,
}

/// Where a buffer is, as far as the schedule tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not allocated yet; the `ALLOC` stands later.
    Before,
    Resident,
    /// Moved out by that spill, whose `SPILL_IN` stands somewhere.
    Out(u32),
    Freed,
    /// The node that would bring it in is missing: rule 1 has said so, and nothing follows from it.
    Unknown,
}

#[derive(Clone, Copy, Debug)]
struct Life {
    state: State,
    /// The segment that is open, or [`ABSENT`].
    segment: u32,
    /// Position of the last node that did anything with the buffer.
    touched: u32,
}

/// Reports every node that does something with a buffer that is not there; gives the segments that
/// have an address, by their start.
pub(super) fn check(reading: &Reading<'_>, offsets: &FirstOffsets, report: &mut Report) -> Vec<Segment> {
    let graph = reading.graph;
    let lives = graph.bufs().map(|b| {
        let present = reading.at(Entry::Node(graph.buf(b).alloc)) != ABSENT;
        Life { state: if present { State::Before } else { State::Unknown }, segment: ABSENT, touched: 0 }
    });
    let segments = Vec::with_capacity(graph.buffer_count() + reading.plan.spills.len());
    let mut walk = Walk { reading, offsets, report, lives: lives.collect(), segments };
    for (pos, &entry) in reading.order.iter().enumerate() {
        walk.step(pos as u32, entry);
    }
    graph.bufs().for_each(|b| walk.close_unended(b));
    walk.segments
}

struct Walk<'a> {
    reading: &'a Reading<'a>,
    offsets: &'a FirstOffsets,
    report: &'a mut Report,
    lives: TiVec<BufIx, Life>,
    segments: Vec<Segment>,
}

impl Walk<'_> {
    #[inline]
    fn step(&mut self, pos: u32, entry: Entry) {
        let (graph, plan) = (self.reading.graph, self.reading.plan);
        match entry {
            Entry::Node(node) => match graph.kind(node) {
                NodeKind::Op => graph.operands(node).iter().for_each(|&b| self.access(pos, b)),
                NodeKind::Alloc(b) => self.arrive(pos, b, Act::Alloc, self.offsets.of(plan, b)),
                NodeKind::Free(b) => self.leave(pos, b, Act::Free, State::Freed),
            },
            Entry::Out(k) => {
                if let Some(b) = self.reading.spill_bufs[k as usize] {
                    let returns = self.reading.at(Entry::Back(k)) != ABSENT;
                    self.leave(pos, b, Act::SpillOut, if returns { State::Out(k) } else { State::Unknown });
                }
            }
            Entry::Back(k) => {
                if let Some(b) = self.reading.spill_bufs[k as usize] {
                    if self.lives[b].state == State::Out(k) {
                        self.lives[b].state = State::Unknown;
                    }
                    self.arrive(pos, b, Act::SpillIn, Some(plan.spills[k as usize].offset));
                }
            }
            Entry::Void => {}
        }
    }

    #[inline]
    fn access(&mut self, pos: u32, buf: BufIx) {
        let life = &mut self.lives[buf];
        life.touched = pos;
        if life.state != State::Resident {
            self.report_absence(pos, buf, Act::Use);
        }
    }

    /// `ALLOC` or `SPILL_IN`: a segment begins.
    fn arrive(&mut self, pos: u32, buf: BufIx, act: Act, offset: Option<Offset>) {
        if matches!(self.lives[buf].state, State::Out(_)) {
            self.report_absence(pos, buf, act);
        }
        self.close_unended(buf);
        let segment = offset.map_or(ABSENT, |Offset(low)| {
            let buffer = self.reading.graph.buf(buf);
            let last = low.saturating_add(buffer.size.0.saturating_sub(1));
            self.segments.push(Segment { low, last, start: pos, end: ABSENT, cache: buffer.cache, buf });
            self.segments.len() as u32 - 1
        });
        self.lives[buf] = Life { state: State::Resident, segment, touched: pos };
    }

    /// `SPILL_OUT` or `FREE`: the open segment ends.
    fn leave(&mut self, pos: u32, buf: BufIx, act: Act, state: State) {
        if matches!(self.lives[buf].state, State::Out(_)) {
            self.report_absence(pos, buf, act);
        }
        self.close(buf, pos);
        self.lives[buf].state = state;
    }

    fn close(&mut self, buf: BufIx, end: u32) {
        let segment = std::mem::replace(&mut self.lives[buf].segment, ABSENT);
        if segment != ABSENT {
            self.segments[segment as usize].end = end;
        }
    }

    /// Ends a segment that neither `SPILL_OUT` nor `FREE` ended, after the last node that touched
    /// it: the node that should have ended it is missing or misplaced, and no more is certain.
    fn close_unended(&mut self, buf: BufIx) {
        self.close(buf, self.lives[buf].touched + 1);
    }

    #[cold]
    fn report_absence(&mut self, pos: u32, buf: BufIx, act: Act) {
        let reading = self.reading;
        let buffer = reading.graph.buf(buf);
        let place = |entry| (reading.id_of_present(entry), reading.at(entry) as usize);
        let absence = match self.lives[buf].state {
            State::Before => {
                let (alloc, alloc_pos) = place(Entry::Node(buffer.alloc));
                Absence::BeforeAlloc { alloc, alloc_pos }
            }
            State::Out(k) => {
                let ((out, out_pos), (back, back_pos)) = (place(Entry::Out(k)), place(Entry::Back(k)));
                Absence::Out { out, out_pos, back, back_pos }
            }
            State::Freed => {
                let (free, free_pos) = place(Entry::Node(buffer.free));
                Absence::AfterFree { free, free_pos }
            }
            State::Resident | State::Unknown => return,
        };
        self.report.add(Rule::Residency, || Fault::NotResident {
            node: reading.plan.schedule[pos as usize],
            pos: pos as usize,
            act,
            buf: buffer.id,
            cache: reading.cache_name(buf),
            absence,
        });
    }
}
