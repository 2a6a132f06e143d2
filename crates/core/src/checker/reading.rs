//! Rule 1, and the plan with its ids resolved: what stands where.

use super::report::{Act, Fault, Report, Rule};
use crate::graph::Graph;
use crate::hardware::Machine;
use crate::index::{BufIx, NodeIx};
use crate::plan::{Plan, SpillEnd, SpillIds};
use crate::units::{Id, MAX_ID};
use typed_index_collections::{TiVec, ti_vec};

/// The position of what does not stand in the schedule. It compares as later than any other.
pub(super) const ABSENT: u32 = u32::MAX;

/// How many entries of each kind a plan may have: positions are 32 bits wide.
const LIMIT: usize = u32::MAX as usize - 1;

/// What stands at one position; spills count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// A node of the graph.
    Node(NodeIx),
    /// The `SPILL_OUT` of a spill.
    Out(u32),
    /// The `SPILL_IN` of a spill.
    Back(u32),
    /// Something that rule 1 has reported: an unknown id, or a repetition.
    Void,
}

/// A plan with its ids resolved. Of an id that stands more than once, the first place counts.
pub(super) struct Reading<'a> {
    pub graph: &'a Graph,
    pub machine: &'a Machine,
    pub plan: &'a Plan,
    /// What stands at each position.
    pub order: Vec<Entry>,
    /// The buffer of each spill; `None` when the graph does not have it.
    pub spill_bufs: Vec<Option<BufIx>>,
    spill_ids: SpillIds,
    node_at: TiVec<NodeIx, u32>,
    /// Positions of `SPILL_OUT` and `SPILL_IN`, by spill.
    spill_at: Vec<[u32; 2]>,
}

impl<'a> Reading<'a> {
    /// Resolves all ids and reports what breaks rule 1; `None` when the plan is too long to read.
    pub fn new(graph: &'a Graph, machine: &'a Machine, plan: &'a Plan, report: &mut Report) -> Option<Self> {
        let sizes = [
            ("schedule entries", plan.schedule.len()),
            ("memory entries", plan.memory.len()),
            ("spills", plan.spills.len()),
        ];
        for (what, count) in sizes.into_iter().filter(|s| s.1 > LIMIT) {
            report.add(Rule::Presence, || Fault::TooMany { what, count, limit: LIMIT });
        }
        if !report.is_valid() {
            return None;
        }
        let mut reading = Self {
            graph,
            machine,
            plan,
            order: Vec::with_capacity(plan.schedule.len()),
            spill_bufs: plan.spills.iter().map(|s| graph.buf_by_id(s.buf)).collect(),
            spill_ids: SpillIds::after(graph.max_id()),
            node_at: ti_vec![ABSENT; graph.node_count()],
            spill_at: vec![[ABSENT; 2]; plan.spills.len()],
        };
        reading.read_schedule(report);
        reading.report_missing(report);
        reading.report_spills(report);
        Some(reading)
    }

    /// Where an entry stands first, or [`ABSENT`].
    #[inline]
    pub fn at(&self, entry: Entry) -> u32 {
        match entry {
            Entry::Node(node) => self.node_at[node],
            Entry::Out(k) => self.spill_at[k as usize][0],
            Entry::Back(k) => self.spill_at[k as usize][1],
            Entry::Void => ABSENT,
        }
    }

    /// The id of an entry; `None` for the nodes of a spill whose ids would pass the limit.
    pub fn id(&self, entry: Entry) -> Option<Id> {
        match entry {
            Entry::Node(node) => Some(self.graph.id(node)),
            Entry::Out(k) => self.spill_ids.out(k as usize),
            Entry::Back(k) => self.spill_ids.back(k as usize),
            Entry::Void => None,
        }
    }

    /// The id of an entry that stands in the schedule.
    pub fn id_of_present(&self, entry: Entry) -> Id {
        self.plan.schedule[self.at(entry) as usize]
    }

    /// The name of the cache that a buffer lives in.
    pub fn cache_name(&self, buf: BufIx) -> String {
        self.graph.cache_name(self.graph.buf(buf).cache).to_owned()
    }

    fn resolve(&self, id: Id) -> Entry {
        if let Some(node) = self.graph.node_by_id(id) {
            return Entry::Node(node);
        }
        let entry = match self.spill_ids.end(id, self.plan.spills.len()) {
            Some(SpillEnd::Out(k)) => Entry::Out(k as u32),
            Some(SpillEnd::Back(k)) => Entry::Back(k as u32),
            None => Entry::Void,
        };
        // A spill whose ids pass the limit owns none.
        if self.id(entry).is_some() { entry } else { Entry::Void }
    }

    fn read_schedule(&mut self, report: &mut Report) {
        for (pos, &node) in self.plan.schedule.iter().enumerate() {
            let entry = self.resolve(node);
            let first = match entry {
                Entry::Node(n) => &mut self.node_at[n],
                Entry::Out(k) => &mut self.spill_at[k as usize][0],
                Entry::Back(k) => &mut self.spill_at[k as usize][1],
                Entry::Void => {
                    report.add(Rule::Presence, || Fault::UnknownId { node, pos });
                    self.order.push(Entry::Void);
                    continue;
                }
            };
            if *first == ABSENT {
                *first = pos as u32;
                self.order.push(entry);
            } else {
                let first_pos = *first as usize;
                report.add(Rule::Presence, || Fault::Repeated { node, pos, first_pos });
                self.order.push(Entry::Void);
            }
        }
    }

    fn report_missing(&self, report: &mut Report) {
        for node in self.graph.nodes().filter(|&n| self.node_at[n] == ABSENT) {
            report.add(Rule::Presence, || Fault::MissingNode { node: self.graph.id(node) });
        }
        for (k, spill) in self.plan.spills.iter().enumerate() {
            for (entry, act) in [(Entry::Out(k as u32), Act::SpillOut), (Entry::Back(k as u32), Act::SpillIn)] {
                if let Some(node) = self.id(entry).filter(|_| self.at(entry) == ABSENT) {
                    report.add(Rule::Presence, || Fault::MissingSpillNode { node, act, spill: k + 1, buf: spill.buf });
                }
            }
        }
    }

    /// Spills that cannot be: of no buffer, or without ids.
    fn report_spills(&self, report: &mut Report) {
        for (k, spill) in self.plan.spills.iter().enumerate() {
            let (spill, buf) = (k + 1, spill.buf);
            if self.spill_bufs[k].is_none() {
                report.add(Rule::Presence, || Fault::SpillOfUnknownBuffer { spill, buf });
            }
            if self.spill_ids.back(k).is_none() {
                report.add(Rule::Presence, || Fault::SpillIdsPastLimit { spill, buf, max: Id(MAX_ID) });
            }
        }
    }
}
