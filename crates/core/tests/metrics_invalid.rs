//! Every way in which a plan cannot be measured: an error with its place, never a panic.

use spillbench_core::hardware::SpillCost;
use spillbench_core::metrics::{MeasureError, Movement, measure};
use spillbench_core::plan::{Placed, Spill};
use spillbench_core::{BufId, Bytes, Graph, GraphBuilder, Hardware, Id, Machine, Offset, Plan};

/// Section 7 of the problem model, with the plan of the default chain.
fn worked_example() -> (Graph, Plan) {
    let mut g = GraphBuilder::new();
    g.alloc(0, 0, 6, "UB").op(1, "COPY_IN", "MTE2", 15, &[0]);
    g.alloc(2, 1, 6, "UB").op(3, "COPY_IN", "MTE2", 15, &[1]);
    g.op(4, "EXP", "VECTOR", 30, &[0]).free(5, 0, 6, "UB");
    g.op(6, "EXP", "VECTOR", 30, &[1]).free(7, 1, 6, "UB");
    for (from, to) in [(0, 1), (1, 4), (4, 5), (2, 3), (3, 6), (6, 7)] {
        g.edge(from, to);
    }
    let plan = Plan {
        schedule: [0, 1, 8, 2, 10, 9, 4, 5, 11, 3, 6, 7].map(Id).to_vec(),
        memory: [0, 1].map(|b| Placed { buf: BufId(b), offset: Offset(0) }).to_vec(),
        spills: [0, 1].map(|b| Spill { buf: BufId(b), offset: Offset(0), cause: None }).to_vec(),
        counters: None,
    };
    (g.build().unwrap().0, plan)
}

fn error_after(change: impl Fn(&mut Plan)) -> MeasureError {
    let (graph, mut plan) = worked_example();
    let mut hardware = Hardware::default();
    hardware.set_capacity("UB", Bytes(10)).unwrap();
    let machine = Machine::resolve(&graph, &hardware).unwrap();
    assert!(measure(&graph, &machine, &plan).is_ok());
    change(&mut plan);
    measure(&graph, &machine, &plan).unwrap_err()
}

#[test]
fn a_schedule_of_the_wrong_length() {
    let length = |found, spills, expected| MeasureError::Length { found, nodes: 8, spills, expected };
    assert_eq!(error_after(|p| p.schedule.truncate(11)), length(11, 2, 12));
    assert_eq!(error_after(|p| p.schedule.push(Id(0))), length(13, 2, 12));
    assert_eq!(error_after(|p| p.schedule.clear()), length(0, 2, 12));
    assert_eq!(error_after(|p| p.spills.truncate(1)), length(12, 1, 10));
}

#[test]
fn ids_that_mean_nothing_or_stand_twice() {
    let unknown = |id| MeasureError::UnknownNode { pos: 3, id: Id(id) };
    assert_eq!(error_after(|p| p.schedule[3] = Id(12)), unknown(12));
    assert_eq!(error_after(|p| p.schedule[3] = Id(u64::MAX)), unknown(u64::MAX));
    assert_eq!(error_after(|p| p.schedule[3] = Id(8)), MeasureError::Repeated { pos: 3, id: Id(8) });
    assert_eq!(error_after(|p| p.schedule[3] = Id(1)), MeasureError::Repeated { pos: 3, id: Id(1) });
}

#[test]
fn buffers_without_exactly_one_first_offset() {
    let unknown = MeasureError::UnknownBuffer { buf: BufId(6) };
    assert_eq!(error_after(|p| p.spills[1].buf = BufId(6)), unknown);
    assert_eq!(error_after(|p| p.memory[1].buf = BufId(6)), unknown);
    assert_eq!(error_after(|p| p.memory[1].buf = BufId(0)), MeasureError::PlacedTwice { buf: BufId(0) });
    assert_eq!(error_after(|p| p.memory.truncate(1)), MeasureError::NotPlaced { buf: BufId(1) });
}

#[test]
fn an_edge_that_goes_backward() {
    let backward = MeasureError::Backward { pos: 9, id: Id(6), predecessor: Id(3) };
    assert_eq!(error_after(|p| p.schedule.swap(9, 10)), backward);
}

#[test]
fn buffers_that_are_not_where_a_step_needs_them() {
    let absent = |pos, id, buf| MeasureError::NotResident { pos, id: Id(id), buf: BufId(buf) };
    // Used before it is back.
    assert_eq!(error_after(|p| p.schedule.swap(5, 6)), absent(5, 4, 0));
    // Moved out before its ALLOC; moved out while it is out.
    assert_eq!(error_after(|p| p.schedule[..3].rotate_right(1)), absent(0, 8, 0));
    assert_eq!(error_after(|p| p.spills[1].buf = BufId(0)), absent(4, 10, 0));
    // Moved out after its FREE.
    let late = [0, 1, 8, 2, 9, 4, 5, 3, 6, 7, 10, 11].map(Id);
    assert_eq!(error_after(|p| p.schedule = late.to_vec()), absent(10, 10, 1));
    // Brought back before it went out.
    let early = MeasureError::NotOut { pos: 2, id: Id(9), buf: BufId(0) };
    assert_eq!(error_after(|p| p.schedule.swap(2, 5)), early);
}

#[test]
fn a_buffer_freed_while_it_is_out() {
    let mut g = GraphBuilder::new();
    g.alloc(0, 0, 6, "UB").free(1, 0, 6, "UB");
    let graph = g.build().unwrap().0;
    let machine = Machine::resolve(&graph, &Hardware::default()).unwrap();
    let plan = Plan {
        schedule: [0, 2, 1, 3].map(Id).to_vec(),
        memory: vec![Placed { buf: BufId(0), offset: Offset(0) }],
        spills: vec![Spill { buf: BufId(0), offset: Offset(0), cause: None }],
        counters: None,
    };
    let freed = MeasureError::NotResident { pos: 2, id: Id(1), buf: BufId(0) };
    assert_eq!(measure(&graph, &machine, &plan), Err(freed));
}

#[test]
fn addresses_outside_the_cache_or_taken() {
    let outside = |offset| MeasureError::OutsideCache {
        pos: 0,
        buf: BufId(0),
        offset: Offset(offset),
        size: Bytes(6),
        capacity: Bytes(10),
    };
    assert_eq!(error_after(|p| p.memory[0].offset = Offset(5)), outside(5));
    assert_eq!(error_after(|p| p.memory[0].offset = Offset(u64::MAX)), outside(u64::MAX));
    // b1 comes back while b0 is still there.
    let overlap = MeasureError::Overlap { pos: 7, buf: BufId(1), offset: Offset(0) };
    assert_eq!(error_after(|p| p.schedule.swap(7, 8)), overlap);
}

#[test]
fn sums_that_pass_64_bits() {
    let mut g = GraphBuilder::new();
    let size = 1 << 62;
    g.alloc(0, 0, size, "UB").op(1, "ADD", "VECTOR", 1, &[0]).free(2, 0, size, "UB");
    let graph = g.build().unwrap().0;
    let spill = Spill { buf: BufId(0), offset: Offset(0), cause: None };
    let plan = |spills: usize| Plan {
        schedule: [0, 1].into_iter().chain(3..3 + 2 * spills as u64).chain([2]).map(Id).collect(),
        memory: vec![Placed { buf: BufId(0), offset: Offset(0) }],
        spills: vec![spill; spills],
        counters: None,
    };
    let mut hardware = Hardware::preset("davinci-unbounded").unwrap();
    hardware.spill_cost = SpillCost::Affine { cycles_per_byte: 1, overhead_cycles: 0 };
    let machine = Machine::resolve(&graph, &hardware).unwrap();
    // One spill moves 2⁶³ bytes in 2⁶³ cycles; two move 2⁶⁴.
    assert_eq!(measure(&graph, &machine, &plan(1)).unwrap().extra_movement, Bytes(1 << 63));
    let overflow = |what| Err(MeasureError::Overflow { what });
    assert_eq!(measure(&graph, &machine, &plan(2)), overflow("bytes moved"));
    assert_eq!(Movement::of(&graph, &plan(2)), Err(MeasureError::Overflow { what: "bytes moved" }));
    // A cost of 2⁶³ cycles each way ends past 2⁶⁴ - 1; one of 2⁶⁴ does so by itself.
    for cycles_per_byte in [2, 4] {
        hardware.spill_cost = SpillCost::Affine { cycles_per_byte, overhead_cycles: 0 };
        let machine = Machine::resolve(&graph, &hardware).unwrap();
        assert_eq!(measure(&graph, &machine, &plan(1)), overflow("cycles"));
    }
}
