//! Rule 2: every graph edge, implied edge and spill edge goes forward.

use super::reading::{ABSENT, Entry, Reading};
use super::report::{EdgeKind, Fault, Report, Rule};
use crate::graph::NodeKind;
use crate::index::{BufIx, NodeIx};
use typed_index_collections::{TiVec, ti_vec};

/// Reports every edge that goes backward, each once. An edge at whose end nothing stands is passed
/// over: rule 1 has named the missing node.
pub(super) fn check(reading: &Reading<'_>, report: &mut Report) {
    let mut edges = Edges { reading, report, listed: TiVec::new() };
    for &entry in &reading.order {
        if let Entry::Node(node) = entry {
            edges.listed(node);
            edges.implied(node);
        }
    }
    edges.chains();
}

struct Edges<'a> {
    reading: &'a Reading<'a>,
    report: &'a mut Report,
    /// `listed[to] == from` when the graph lists the edge; filled for one `from` at a time, and
    /// only once some implied edge goes backward, to tell whether it was counted as a listed one.
    listed: TiVec<NodeIx, u32>,
}

impl Edges<'_> {
    /// The edges from `from` that the graph lists.
    #[inline]
    fn listed(&mut self, from: NodeIx) {
        let graph = self.reading.graph;
        for &to in graph.successors(from) {
            self.forward(EdgeKind::Graph, Entry::Node(from), Entry::Node(to), None);
        }
    }

    /// The edges `ALLOC` → user and user → `FREE` from `from` that the graph does not list.
    #[inline]
    fn implied(&mut self, from: NodeIx) {
        let graph = self.reading.graph;
        let mut marked = false;
        match graph.kind(from) {
            NodeKind::Alloc(buf) => {
                graph.users(buf).iter().for_each(|&user| self.unlisted(from, user, buf, &mut marked));
            }
            NodeKind::Op => {
                graph.operands(from).iter().for_each(|&b| self.unlisted(from, graph.buf(b).free, b, &mut marked));
            }
            NodeKind::Free(_) => {}
        }
    }

    /// An implied edge, unless the graph lists it; `marked` says whether the edges listed from
    /// `from` are marked already.
    #[inline]
    fn unlisted(&mut self, from: NodeIx, to: NodeIx, buf: BufIx, marked: &mut bool) {
        let (from_pos, to_pos) = (self.reading.at(Entry::Node(from)), self.reading.at(Entry::Node(to)));
        if to_pos < from_pos {
            if !std::mem::replace(marked, true) {
                self.mark_listed(from);
            }
            if self.listed[to] != from.index() as u32 {
                self.forward(EdgeKind::Implied, Entry::Node(from), Entry::Node(to), Some(buf));
            }
        }
    }

    fn mark_listed(&mut self, from: NodeIx) {
        let graph = self.reading.graph;
        if self.listed.is_empty() {
            self.listed = ti_vec![ABSENT; graph.node_count()];
        }
        graph.successors(from).iter().for_each(|&to| self.listed[to] = from.index() as u32);
    }

    /// The chain `ALLOC` → `OUT₁` → `IN₁` → … → `FREE` of every buffer, its spills numbered as the
    /// plan lists them. Links that are missing are bridged.
    fn chains(&mut self) {
        let (reading, graph) = (self.reading, self.reading.graph);
        let mut last: TiVec<BufIx, Entry> = graph.bufs().map(|b| Entry::Node(graph.buf(b).alloc)).collect();
        for (k, &buf) in reading.spill_bufs.iter().enumerate() {
            let Some(buf) = buf else { continue };
            for entry in [Entry::Out(k as u32), Entry::Back(k as u32)] {
                if reading.at(entry) != ABSENT {
                    self.forward(EdgeKind::Spill, last[buf], entry, Some(buf));
                    last[buf] = entry;
                }
            }
        }
        for buf in graph.bufs() {
            let free = graph.buf(buf).free;
            match last[buf] {
                Entry::Node(alloc) => self.unlisted(alloc, free, buf, &mut false),
                spill => self.forward(EdgeKind::Spill, spill, Entry::Node(free), Some(buf)),
            }
        }
    }

    /// Reports the edge when both ends stand in the schedule and it goes backward.
    #[inline]
    fn forward(&mut self, edge: EdgeKind, from: Entry, to: Entry, buf: Option<BufIx>) {
        let reading = self.reading;
        let (from_pos, to_pos) = (reading.at(from), reading.at(to));
        if to_pos < from_pos && from_pos != ABSENT {
            self.report.add(Rule::Order, || Fault::Backward {
                edge,
                from: reading.id_of_present(from),
                to: reading.id_of_present(to),
                from_pos: from_pos as usize,
                to_pos: to_pos as usize,
                buf: buf.map(|b| reading.graph.buf(b).id),
            });
        }
    }
}
