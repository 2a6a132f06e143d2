//! Plans of decoded orders.

use super::decode::{Decoder, Sink};
use super::goal::{Figures, Goal};
use super::program::{Buf, Program};
use super::rules::Rules;
use crate::model::ItemIx;
use spillbench_core::index::{BufIx, NodeIx};
use spillbench_core::plan::{Placed, Plan, Spill, SpillIds};
use spillbench_core::units::{Id, Offset};
use typed_index_collections::{TiVec, ti_vec};

/// The plan of an order under some rules, and its figures; `None` when ids run out.
pub(super) fn plan(program: &Program<'_>, order: &[ItemIx], rules: Rules) -> Option<(Plan, Figures)> {
    let graph = program.model.graph();
    let mut writer = Writer {
        program,
        out: ti_vec![None; graph.buffer_count()],
        offsets: ti_vec![Offset(0); graph.buffer_count()],
        ids: SpillIds::after(graph.max_id()),
        schedule: Vec::with_capacity(graph.node_count()),
        spills: Vec::new(),
        is_sound: true,
    };
    let figures = Decoder::<u64>::new(program, Goal::makespan(None), rules).reset(order, &mut writer);
    // What no step uses comes when all else is gone, one after another, at address 0.
    for &b in &program.unused {
        writer.node(graph.buf(b).alloc);
        writer.node(graph.buf(b).free);
    }
    let memory = graph.bufs().map(|b| Placed { buf: graph.buf(b).id, offset: writer.offsets[b] }).collect();
    let plan = Plan { schedule: writer.schedule, memory, spills: writer.spills, counters: None };
    writer.is_sound.then_some((plan, figures))
}

/// Writes down what the decoder does.
struct Writer<'a> {
    program: &'a Program<'a>,
    /// The spill that a buffer is out by.
    out: TiVec<BufIx, Option<usize>>,
    offsets: TiVec<BufIx, Offset>,
    ids: SpillIds,
    schedule: Vec<Id>,
    spills: Vec<Spill>,
    /// False once ids have run out.
    is_sound: bool,
}

impl Sink<u64> for Writer<'_> {
    fn node(&mut self, node: NodeIx) {
        self.schedule.push(self.program.model.graph().id(node));
    }

    fn alloc(&mut self, buf: &Buf, offset: u64) {
        self.offsets[buf.ix] = Offset(offset);
    }

    fn out(&mut self, buf: &Buf) {
        match self.ids.out(self.spills.len()) {
            Some(id) => self.schedule.push(id),
            None => self.is_sound = false,
        }
        self.out[buf.ix] = Some(self.spills.len());
        let buf = self.program.model.graph().buf(buf.ix).id;
        // Where it comes back to is known when it does.
        self.spills.push(Spill { buf, offset: Offset(0), cause: None });
    }

    fn back(&mut self, buf: &Buf, offset: u64, _since: usize, _pos: usize) {
        if let Some(k) = self.out[buf.ix].take() {
            self.spills[k].offset = Offset(offset);
            self.schedule.extend(self.ids.back(k));
        }
    }
}
