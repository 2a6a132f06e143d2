//! Idle time, critical path and floor of plans small enough to be worked out by hand.

use spillbench_core::hardware::SpillCost;
use spillbench_core::index::{PipeIx, Pos};
use spillbench_core::metrics::MeasureError;
use spillbench_core::metrics::timing::{CriticalPath, IdleCause, LinkKind, PipeUse, TimedPlan, graph_floor};
use spillbench_core::plan::{Placed, Spill};
use spillbench_core::{BufId, Bytes, Cycles, Graph, GraphBuilder, Hardware, Id, Machine, Offset, Plan};

fn machine(graph: &Graph, ub: u64) -> Machine {
    let mut hardware = Hardware::default();
    hardware.set_capacity("UB", Bytes(ub)).unwrap();
    Machine::resolve(graph, &hardware).unwrap()
}

fn plan(schedule: &[u64], offsets: &[u64], spills: &[(u64, u64)]) -> Plan {
    let placed = |(b, &offset): (usize, &u64)| Placed { buf: BufId(b as u64), offset: Offset(offset) };
    let spill = |&(buf, offset): &(u64, u64)| Spill { buf: BufId(buf), offset: Offset(offset), cause: None };
    Plan {
        schedule: schedule.iter().copied().map(Id).collect(),
        memory: offsets.iter().enumerate().map(placed).collect(),
        spills: spills.iter().map(spill).collect(),
        counters: None,
    }
}

fn edges(builder: &mut GraphBuilder, chain: &[u64]) {
    for pair in chain.windows(2) {
        builder.edge(pair[0], pair[1]);
    }
}

/// `n` chains COPY_IN 15 → EXP 30 → COPY_OUT 15 on one buffer of 6 each; chain k owns the ids from 5k.
fn chains(n: u64) -> Graph {
    let mut g = GraphBuilder::new();
    for k in 0..n {
        let id = 5 * k;
        g.alloc(id, k, 6, "UB").op(id + 1, "COPY_IN", "MTE2", 15, &[k]);
        g.op(id + 2, "EXP", "VECTOR", 30, &[k]).op(id + 3, "COPY_OUT", "MTE3", 15, &[k]).free(id + 4, k, 6, "UB");
        edges(&mut g, &[id, id + 1, id + 2, id + 3, id + 4]);
    }
    g.build().unwrap().0
}

fn pipe(machine: &Machine, name: &str) -> PipeIx {
    machine.pipe_names().position(|p| p == name).unwrap()
}

/// Busy, head, data, address, order, tail.
fn shares(timed: &TimedPlan<'_>, name: &str) -> [u64; 6] {
    let PipeUse { busy, head, data, address, order, tail, .. } = timed.pipe_use(pipe(timed.machine(), name));
    [busy, head, data, address, order, tail].map(|c| c.0)
}

fn ids(timed: &TimedPlan<'_>, path: &CriticalPath) -> Vec<u64> {
    path.steps.iter().map(|s| timed.id(s.step).0).collect()
}

/// Waits and cycles by graph, implied, spill, pipe, address links.
fn kinds(path: &CriticalPath) -> [(usize, u64); 5] {
    std::array::from_fn(|i| (path.by_kind[i].waits, path.by_kind[i].cycles.0))
}

#[test]
fn one_chain_waits_for_data_only() {
    let (graph, plan) = (chains(1), plan(&[0, 1, 2, 3, 4], &[0], &[]));
    let machine = machine(&graph, 6);
    let timed = TimedPlan::new(&graph, &machine, &plan).unwrap().unwrap();
    assert_eq!(timed.makespan(), Cycles(60));
    assert_eq!(shares(&timed, "MTE2"), [15, 0, 0, 0, 0, 45]);
    assert_eq!(shares(&timed, "VECTOR"), [30, 15, 0, 0, 0, 15]);
    assert_eq!(shares(&timed, "MTE3"), [15, 45, 0, 0, 0, 0]);
    let path = timed.critical_path();
    assert_eq!(ids(&timed, &path), [0, 1, 2, 3]);
    // The load of 15 and the EXP of 30 are waited for, the COPY_OUT of 15 comes last.
    assert_eq!((kinds(&path), path.last), ([(2, 45), (0, 0), (0, 0), (0, 0), (0, 0)], Cycles(15)));
    assert_eq!(timed.floor().cycles, Cycles(60));
}

#[test]
fn two_chains_overlap_when_there_is_room_for_both() {
    let graph = chains(2);
    let schedule: Vec<u64> = (0..10).collect();
    let machine = machine(&graph, 12);
    let timed = TimedPlan::new(&graph, &machine, &plan(&schedule, &[0, 6], &[])).unwrap().unwrap();
    // MTE2 0-15-30, VECTOR 15-45-75, MTE3 45-60 and 75-90: it waits 15 for the second EXP.
    assert_eq!(timed.makespan(), Cycles(90));
    assert_eq!(shares(&timed, "MTE2"), [30, 0, 0, 0, 0, 60]);
    assert_eq!(shares(&timed, "VECTOR"), [60, 15, 0, 0, 0, 15]);
    assert_eq!(shares(&timed, "MTE3"), [30, 45, 15, 0, 0, 0]);
    // 15 before VECTOR can begin, 60 on it, 15 behind: the plan is optimal, which the larger of the
    // busiest pipe and the longest path (60) does not show.
    let floor = timed.floor();
    assert_eq!((floor.cycles, floor.pipe), (Cycles(90), Some(pipe(&machine, "VECTOR"))));
    assert_eq!((floor.head, floor.work, floor.tail), (Cycles(15), Cycles(60), Cycles(15)));
    assert_eq!(graph_floor(&graph).unwrap().unwrap(), floor);
    // The path goes through VECTOR: load, EXP, EXP, COPY_OUT.
    let path = timed.critical_path();
    assert_eq!(ids(&timed, &path), [0, 1, 2, 7, 8]);
    assert_eq!((kinds(&path), path.last), ([(2, 45), (0, 0), (0, 0), (1, 30), (0, 0)], Cycles(15)));
}

#[test]
fn two_chains_at_one_address_wait_for_each_other() {
    let graph = chains(2);
    let schedule: Vec<u64> = (0..10).collect();
    let machine = machine(&graph, 6);
    let timed = TimedPlan::new(&graph, &machine, &plan(&schedule, &[0, 0], &[])).unwrap().unwrap();
    // The second ALLOC waits for the first FREE at 60: MTE2 60-75, VECTOR 75-105, MTE3 105-120.
    assert_eq!(timed.makespan(), Cycles(120));
    assert_eq!(shares(&timed, "MTE2"), [30, 0, 0, 45, 0, 45]);
    assert_eq!(shares(&timed, "VECTOR"), [60, 15, 30, 0, 0, 15]);
    assert_eq!(shares(&timed, "MTE3"), [30, 45, 45, 0, 0, 0]);
    let gap = timed.gaps(pipe(&machine, "MTE2"))[0];
    assert_eq!((gap.from, gap.to, gap.cause), (Cycles(15), Cycles(60), IdleCause::Address));
    // The load waits for the FREE that leaves its addresses, not for its ALLOC.
    assert_eq!((gap.next.map(|s| timed.id(s)), gap.other.map(|s| timed.id(s))), (Some(Id(6)), Some(Id(4))));
    let path = timed.critical_path();
    assert_eq!(ids(&timed, &path), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!((kinds(&path), path.last), ([(4, 90), (0, 0), (0, 0), (0, 0), (1, 15)], Cycles(15)));
    // The floor knows nothing of addresses; with them as they are, nothing is faster.
    assert_eq!((timed.floor().cycles, timed.address_floor().cycles), (Cycles(90), Cycles(120)));
}

#[test]
fn a_pipe_that_could_run_what_stands_behind_is_idle_for_its_order() {
    // Loads of 10, 60 and 50 cycles end at 10, 70 and 120; EXP 30 each, in the order a, c, b.
    let mut g = GraphBuilder::new();
    for (k, load) in [10, 60, 50].into_iter().enumerate() {
        let (id, k) = (4 * k as u64, k as u64);
        g.alloc(id, k, 2, "UB").op(id + 1, "COPY_IN", "MTE2", load, &[k]);
        g.op(id + 2, "EXP", "VECTOR", 30, &[k]).free(id + 3, k, 2, "UB");
        edges(&mut g, &[id, id + 1, id + 2, id + 3]);
    }
    let graph = g.build().unwrap().0;
    let machine = machine(&graph, 6);
    let plan = plan(&[0, 4, 8, 1, 5, 9, 2, 10, 6, 3, 7, 11], &[0, 2, 4], &[]);
    let mut timed = TimedPlan::new(&graph, &machine, &plan).unwrap().unwrap();
    // EXP a 10-40, EXP c 120-150, EXP b 150-180. From 40 to 70 VECTOR has nothing it could run; from
    // then on it could run EXP b (6), but EXP c (10) stands before it.
    let vector = pipe(&machine, "VECTOR");
    let gaps: Vec<_> = timed.gaps(vector).iter().map(|g| (g.from.0, g.to.0, g.cause)).collect();
    assert_eq!(gaps, [(0, 10, IdleCause::Head), (40, 70, IdleCause::Data), (70, 120, IdleCause::Order)]);
    assert_eq!(timed.gaps(vector)[2].other.map(|s| timed.id(s)), Some(Id(6)));
    assert_eq!(shares(&timed, "VECTOR"), [90, 10, 30, 0, 50, 0]);
    // Swapped, they take 70-100 and 120-150. A stretch that is no permutation changes nothing.
    let at = timed.place(timed.on_pipe(vector)[1]);
    let steps = [timed.order()[at], timed.order()[Pos::new(at.index() + 1)]];
    assert_eq!(timed.reorder(at, &[steps[1], steps[0]]), Ok(Cycles(150)));
    assert_eq!(timed.reorder(at, &[steps[0], steps[0]]), Err(MeasureError::NotAPermutation { pos: at.index() }));
    assert_eq!(timed.makespan(), Cycles(150));
    assert_eq!(shares(&timed, "VECTOR"), [90, 10, 50, 0, 0, 0]);
}

/// Section 7 of the problem model: two buffers of 6 in a UB of 10, loaded (15) and used (30) once.
#[test]
fn the_worked_example_waits_for_spills_and_addresses() {
    let mut g = GraphBuilder::new();
    g.alloc(0, 0, 6, "UB").op(1, "COPY_IN", "MTE2", 15, &[0]);
    g.alloc(2, 1, 6, "UB").op(3, "COPY_IN", "MTE2", 15, &[1]);
    g.op(4, "EXP", "VECTOR", 30, &[0]).free(5, 0, 6, "UB");
    g.op(6, "EXP", "VECTOR", 30, &[1]).free(7, 1, 6, "UB");
    edges(&mut g, &[0, 1, 4, 5]);
    edges(&mut g, &[2, 3, 6, 7]);
    let graph = g.build().unwrap().0;
    let machine = machine(&graph, 10);
    let plan = plan(&[0, 1, 8, 2, 10, 9, 4, 5, 11, 3, 6, 7], &[0, 0], &[(0, 0), (1, 0)]);
    let timed = TimedPlan::new(&graph, &machine, &plan).unwrap().unwrap();
    // 1 0-15, 8 at 15, 9 15-177, 4 177-207, 5 at 207, 11 207-369, 3 369-384, 6 384-414.
    assert_eq!(timed.makespan(), Cycles(414));
    // MTE2 waits from 177 for the FREE at 207.
    assert_eq!(shares(&timed, "MTE2"), [354, 0, 0, 30, 0, 30]);
    // VECTOR waits from 207 for the reload and the load of b1.
    assert_eq!(shares(&timed, "VECTOR"), [60, 177, 177, 0, 0, 0]);
    // The spills of backed buffers cost nothing, so MTE3 never works.
    assert_eq!(shares(&timed, "MTE3"), [0, 414, 0, 0, 0, 0]);
    let path = timed.critical_path();
    assert_eq!(ids(&timed, &path), [0, 1, 8, 9, 4, 5, 11, 3, 6]);
    // By spill: 15 (1) + 0 (8) + 162 (9) + 162 (11); by address, through the FREE: 30 (4); by an edge
    // of the graph: 15 (3).
    assert_eq!((kinds(&path), path.last), ([(1, 15), (0, 0), (4, 339), (0, 0), (1, 30)], Cycles(30)));
    assert_eq!(path.steps[6].link, Some(LinkKind::Address));
    // MTE2: 0 + 354 + 30.
    let floor = timed.floor();
    assert_eq!((floor.cycles, floor.pipe), (Cycles(384), Some(pipe(&machine, "MTE2"))));
}

#[test]
fn plans_that_are_not_valid_are_refused() {
    let graph = chains(2);
    let machine = machine(&graph, 12);
    let overlap = plan(&[0, 5, 1, 2, 3, 4, 6, 7, 8, 9], &[0, 3], &[]);
    let error = MeasureError::Overlap { pos: 1, buf: BufId(1), offset: Offset(3) };
    assert_eq!(TimedPlan::new(&graph, &machine, &overlap).unwrap_err(), error);
    // A spill whose cycles pass 2⁶⁴ − 1.
    let spill_cost = SpillCost::Affine { cycles_per_byte: 1 << 62, overhead_cycles: 0 };
    let hardware = Hardware { spill_cost, ..Hardware::default() };
    let machine = Machine::resolve(&graph, &hardware).unwrap();
    let plan = plan(&[0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9], &[0, 6], &[(0, 0)]);
    assert_eq!(TimedPlan::new(&graph, &machine, &plan).unwrap_err(), MeasureError::Overflow { what: "cycles" });
}
