//! The plan of a decision: spills go out just behind one event and come back just before the next.

use super::ExactError;
use super::search::Solved;
use super::stretches::Stretches;
use spillbench_core::index::NodeIx;
use spillbench_core::plan::{Placed, Spill, SpillIds};
use spillbench_core::{Graph, Id, Offset, Plan, Schedule};
use typed_index_collections::{TiVec, ti_vec};

/// One spill before it has a number.
struct Out {
    after: NodeIx,
    before: NodeIx,
    spill: Spill,
}

pub(super) fn plan(graph: &Graph, schedule: &Schedule, solved: &[(Stretches, Solved)]) -> Result<Plan, ExactError> {
    let mut memory: Vec<Option<Placed>> = vec![None; graph.buffer_count()];
    let mut outs: Vec<Out> = Vec::new();
    for (stretches, result) in solved {
        for (segment, &offset) in stretches.segments(&result.keep).iter().zip(&result.offsets) {
            let (buf, offset) = (graph.buf(segment.buf).id, Offset(offset));
            match segment.entered_by.map(|g| &stretches.list[g]) {
                None => memory[segment.buf.index()] = Some(Placed { buf, offset }),
                Some(gap) => {
                    outs.push(Out { after: gap.after, before: gap.before, spill: Spill { buf, offset, cause: None } });
                }
            }
        }
    }
    let places = schedule.positions();
    outs.sort_by_key(|out| (places[out.after], places[out.before], out.spill.buf));
    Ok(Plan {
        schedule: lay(graph, schedule, &outs)?,
        memory: memory.into_iter().flatten().collect(),
        spills: outs.into_iter().map(|out| out.spill).collect(),
        counters: None,
    })
}

fn lay(graph: &Graph, schedule: &Schedule, outs: &[Out]) -> Result<Vec<Id>, ExactError> {
    let ids = SpillIds::after(graph.max_id());
    let no_id = || ExactError::NoSpillId { spills: outs.len() };
    let mut behind: TiVec<NodeIx, Vec<Id>> = ti_vec![Vec::new(); graph.node_count()];
    let mut ahead = behind.clone();
    for (k, out) in outs.iter().enumerate() {
        behind[out.after].push(ids.out(k).ok_or_else(no_id)?);
        ahead[out.before].push(ids.back(k).ok_or_else(no_id)?);
    }
    let mut order = Vec::with_capacity(graph.node_count() + 2 * outs.len());
    for &node in schedule.order() {
        order.extend(&ahead[node]);
        order.push(graph.id(node));
        order.extend(&behind[node]);
    }
    Ok(order)
}
