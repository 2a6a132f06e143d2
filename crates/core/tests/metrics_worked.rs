//! The metrics on plans small enough to be worked out by hand.

use spillbench_core::formats::graph_json;
use spillbench_core::metrics::{Metrics, SpillCounts, Split, measure, residency, timing};
use spillbench_core::plan::{Cause, Placed, Spill};
use spillbench_core::{BufId, Bytes, Cycles, Graph, GraphBuilder, Hardware, Id, Machine, Offset, Plan};

fn machine(graph: &Graph, capacities: &[(&str, u64)]) -> Machine {
    let mut hardware = Hardware::default();
    for &(cache, capacity) in capacities {
        hardware.set_capacity(cache, Bytes(capacity)).unwrap();
    }
    Machine::resolve(graph, &hardware).unwrap()
}

fn plan(schedule: &[u64], memory: &[(u64, u64)], spills: &[(u64, u64, Option<Cause>)]) -> Plan {
    Plan {
        schedule: schedule.iter().copied().map(Id).collect(),
        memory: memory.iter().map(|&(buf, offset)| Placed { buf: BufId(buf), offset: Offset(offset) }).collect(),
        spills: spills
            .iter()
            .map(|&(buf, offset, cause)| Spill { buf: BufId(buf), offset: Offset(offset), cause })
            .collect(),
        counters: None,
    }
}

fn edges(builder: &mut GraphBuilder, chain: &[u64]) {
    for pair in chain.windows(2) {
        builder.edge(pair[0], pair[1]);
    }
}

/// Section 7: two buffers of 6 in a UB of 10, each loaded (15 cycles) and used once (30 cycles).
fn worked_example() -> Graph {
    let mut g = GraphBuilder::new();
    g.alloc(0, 0, 6, "UB").op(1, "COPY_IN", "MTE2", 15, &[0]);
    g.alloc(2, 1, 6, "UB").op(3, "COPY_IN", "MTE2", 15, &[1]);
    g.op(4, "EXP", "VECTOR", 30, &[0]).free(5, 0, 6, "UB");
    g.op(6, "EXP", "VECTOR", 30, &[1]).free(7, 1, 6, "UB");
    edges(&mut g, &[0, 1, 4, 5]);
    edges(&mut g, &[2, 3, 6, 7]);
    g.build().unwrap().0
}

fn cycles(metrics: &Metrics) -> [Option<u64>; 3] {
    [metrics.makespan, metrics.makespan_literal, metrics.makespan_lower_bound].map(|c| c.map(|c| c.0))
}

#[test]
fn the_worked_example_of_the_specification() {
    let graph = worked_example();
    let machine = machine(&graph, &[("UB", 10)]);
    let capacity = Some(Cause::Capacity);
    let schedule = [0, 1, 8, 2, 10, 9, 4, 5, 11, 3, 6, 7];
    let plan = plan(&schedule, &[(0, 0), (1, 0)], &[(0, 0, capacity), (1, 0, capacity)]);
    let metrics = measure(&graph, &machine, &plan).unwrap();
    // Both buffers are backed: 6 bytes each.
    assert_eq!(metrics.extra_movement, Bytes(12));
    assert_eq!(metrics.spill_count, 2);
    // Demand ignores the spills: both buffers are live when node 2 stands.
    assert_eq!(metrics.peak_demand, Bytes(12));
    assert_eq!(metrics.peak_residency["UB"], Bytes(6));
    assert_eq!(metrics.fragmentation["UB"], 0.0);
    // A reload takes 2·6 + 150 = 162 cycles on MTE2, moving a backed buffer out none on MTE3.
    // segment: 1 0-15, 8 at 15, 2 at 15 (its addresses are left then), 10 at 15, 9 15-177,
    //          4 177-207, 5 at 207, 11 207-369 (waits for 5), 3 369-384, 6 384-414.
    // literal: 5 does not stand before 2, so nothing waits for addresses: 2 at 0, 10 at 15 (its
    //          pipe), 11 177-339 (its pipe), 3 339-354, 6 354-384.
    // Bound: MTE2 works 15 + 162 + 162 + 15 = 354; the longest path is 15 + 162 + 30 = 207.
    assert_eq!(cycles(&metrics), [Some(414), Some(384), Some(354)]);
    let busy = metrics.pipe_busy.unwrap();
    assert_eq!([busy["MTE2"], busy["VECTOR"], busy["MTE3"]], [354, 60, 0].map(Cycles));
}

#[test]
fn the_worked_example_postponed() {
    let graph = worked_example();
    let machine = machine(&graph, &[("UB", 10)]);
    let metrics = measure(&graph, &machine, &plan(&[0, 1, 4, 5, 2, 3, 6, 7], &[(0, 0), (1, 0)], &[])).unwrap();
    assert_eq!((metrics.extra_movement, metrics.spill_count), (Bytes(0), 0));
    assert_eq!((metrics.peak_demand, metrics.peak_residency["UB"]), (Bytes(6), Bytes(6)));
    // 1 0-15, 4 15-45, 5 at 45, 2 at 45, 3 45-60, 6 60-90; VECTOR works 60 and is the bound.
    assert_eq!(cycles(&metrics), [Some(90), Some(90), Some(60)]);
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

#[test]
fn one_chain_takes_the_sum_of_its_cycles() {
    let graph = chains(1);
    let metrics = measure(&graph, &machine(&graph, &[]), &plan(&[0, 1, 2, 3, 4], &[(0, 0)], &[])).unwrap();
    assert_eq!(cycles(&metrics), [Some(60), Some(60), Some(60)]);
}

#[test]
fn two_chains_overlap_when_each_has_its_own_addresses() {
    let graph = chains(2);
    let schedule: Vec<u64> = (0..10).collect();
    let machine = machine(&graph, &[("UB", 12)]);
    // The second chain only waits for pipes: load 15-30, EXP 45-75, COPY_OUT 75-90.
    // Bound: VECTOR works 60, and so long is each chain.
    let apart = measure(&graph, &machine, &plan(&schedule, &[(0, 0), (1, 6)], &[])).unwrap();
    assert_eq!(cycles(&apart), [Some(90), Some(90), Some(60)]);
    // At the same address the second ALLOC waits for the first FREE at 60.
    let shared = measure(&graph, &machine, &plan(&schedule, &[(0, 0), (1, 0)], &[])).unwrap();
    assert_eq!(cycles(&shared), [Some(120), Some(120), Some(60)]);
    // One common byte is enough.
    let touching = measure(&graph, &machine, &plan(&schedule, &[(0, 0), (1, 5)], &[])).unwrap();
    assert_eq!(cycles(&touching), [Some(120), Some(120), Some(60)]);
}

#[test]
fn interleaved_chains_keep_the_order_of_each_pipe() {
    let graph = chains(2);
    let machine = machine(&graph, &[("UB", 12)]);
    // The second chain's EXP stands first: it runs 30-60 after its load 15-30, the first's 60-90,
    // though the first's load has ended at 15; COPY_OUTs 60-75 and 90-105.
    let schedule = [0, 1, 5, 6, 7, 8, 9, 2, 3, 4];
    let metrics = measure(&graph, &machine, &plan(&schedule, &[(0, 0), (1, 6)], &[])).unwrap();
    assert_eq!(cycles(&metrics), [Some(105), Some(105), Some(60)]);
}

#[test]
fn a_buffer_that_moved_holds_its_first_addresses_in_the_literal_model_only() {
    let graph = worked_example();
    let machine = machine(&graph, &[("UB", 12)]);
    // b0 goes out at 15 and comes back at offset 6 (9: 15-177); 4 177-207, 5 at 207.
    // segment: 2 takes offset 0, left at 15; 3 177-192 behind the reload, 6 207-237 behind 4.
    // literal: 5 stands before 2 and b0 was first at 0: 2 at 207, 3 207-222, 6 222-252.
    let plan = plan(&[0, 1, 8, 9, 4, 5, 2, 3, 6, 7], &[(0, 0), (1, 0)], &[(0, 6, None)]);
    let metrics = measure(&graph, &machine, &plan).unwrap();
    assert_eq!(cycles(&metrics)[..2], [Some(237), Some(252)]);
}

#[test]
fn movement_is_split_by_cache_by_kind_and_by_cause() {
    let mut g = GraphBuilder::new();
    // b0 is generated, b1 is backed.
    g.alloc(0, 0, 4, "UB").op(1, "ADD", "VECTOR", 10, &[0]).op(2, "EXP", "VECTOR", 5, &[0]).free(3, 0, 4, "UB");
    g.alloc(4, 1, 4, "L1").op(5, "COPY_IN", "MTE2", 20, &[1]).op(6, "COPY_OUT", "MTE3", 100, &[1]);
    g.op(7, "MOVE", "MTE1", 1, &[1]).free(8, 1, 4, "L1");
    edges(&mut g, &[0, 1, 2, 3]);
    edges(&mut g, &[4, 5, 6, 7, 8]);
    let graph = g.build().unwrap().0;
    let machine = machine(&graph, &[]);
    let (capacity, fragmentation) = (Some(Cause::Capacity), Some(Cause::Fragmentation));
    let plan = plan(
        &[0, 1, 9, 10, 2, 3, 4, 5, 6, 11, 12, 13, 14, 7, 8],
        &[(0, 0), (1, 0)],
        &[(0, 8, capacity), (1, 8, fragmentation), (1, 0, None)],
    );
    let metrics = measure(&graph, &machine, &plan).unwrap();
    // 1 0-10, 9 10-168, 10 168-326 (each move of a generated buffer is 2·4 + 150 = 158), 2 326-331.
    // 5 stands behind 10 on MTE2: 326-346, 6 346-446; 11 takes 0 cycles at 446, 12 446-604,
    // 13 at 604, 14 604-762, 7 762-763.
    assert_eq!(cycles(&metrics)[0], Some(763));
    let ub = Split {
        spills: 1,
        generated: Bytes(8),
        capacity: Bytes(8),
        counts: SpillCounts { generated: 1, capacity: 1, ..Default::default() },
        ..Default::default()
    };
    let l1 = Split {
        spills: 2,
        backed: Bytes(8),
        fragmentation: Bytes(4),
        unknown_cause: Bytes(4),
        counts: SpillCounts { backed: 2, fragmentation: 1, unknown_cause: 1, ..Default::default() },
        ..Default::default()
    };
    let movement = &metrics.movement;
    assert_eq!((movement.by_cache["UB"], movement.by_cache["L1"]), (ub, l1));
    assert_eq!([movement.backed, movement.generated], [8, 8].map(Bytes));
    assert_eq!([movement.capacity, movement.fragmentation, movement.unknown_cause], [8, 4, 4].map(Bytes));
    let counts = SpillCounts { backed: 2, generated: 1, capacity: 1, fragmentation: 1, unknown_cause: 1 };
    assert_eq!(movement.counts, counts);
    assert_eq!((metrics.extra_movement, metrics.spill_count), (Bytes(16), 3));
}

#[test]
fn a_spill_that_costs_nothing_still_waits_for_its_pipe() {
    let mut g = GraphBuilder::new();
    g.alloc(0, 0, 4, "UB").op(1, "COPY_OUT", "MTE3", 100, &[0]).free(2, 0, 4, "UB");
    g.alloc(3, 1, 4, "UB").op(4, "COPY_IN", "MTE2", 7, &[1]).free(5, 1, 4, "UB");
    let graph = g.build().unwrap().0;
    // 1 0-100, 4 0-7; the spill of b1 stands behind 1 on MTE3: 6 at 100, 7 100-258.
    let plan = plan(&[0, 1, 2, 3, 4, 6, 7, 5], &[(0, 0), (1, 4)], &[(1, 4, None)]);
    let metrics = measure(&graph, &machine(&graph, &[]), &plan).unwrap();
    assert_eq!(cycles(&metrics)[0], Some(258));
}

#[test]
fn fragmentation_is_the_mean_over_positions() {
    let mut g = GraphBuilder::new();
    for (buf, size) in [(0, 3), (1, 4), (2, 3)] {
        g.alloc(2 * buf, buf, size, "UB").free(2 * buf + 1, buf, size, "UB");
    }
    let graph = g.build().unwrap().0;
    let machine = machine(&graph, &[("UB", 10)]);
    // a 0-3, b 3-7, c 7-10; once a and c are gone, 6 bytes are free in pieces of 3. All other
    // positions have their free bytes in one piece, or none.
    let plan = plan(&[0, 2, 4, 1, 5, 3], &[(0, 0), (1, 3), (2, 7)], &[]);
    let metrics = measure(&graph, &machine, &plan).unwrap();
    assert_eq!(metrics.fragmentation["UB"], 0.5 / 6.0);
    assert_eq!(metrics.peak_residency["UB"], Bytes(10));
    assert_eq!(cycles(&metrics), [Some(0), Some(0), Some(0)]);
}

#[test]
fn demand_counts_the_caches_that_count_only() {
    let mut g = GraphBuilder::new();
    g.alloc(0, 0, 5, "UB").free(1, 0, 5, "UB").alloc(2, 1, 7, "L0A").free(3, 1, 7, "L0A");
    g.alloc(4, 2, 3, "L1").free(5, 2, 3, "L1");
    let graph = g.build().unwrap().0;
    let memory = [(0, 0), (1, 0), (2, 0)];
    let metrics = measure(&graph, &machine(&graph, &[]), &plan(&[0, 2, 4, 1, 3, 5], &memory, &[])).unwrap();
    assert_eq!(metrics.peak_demand, Bytes(8));
    let peaks: Vec<_> = metrics.peak_residency.into_iter().collect();
    assert_eq!(peaks, [("UB", 5), ("L0A", 7), ("L1", 3)].map(|(name, size)| (name.to_owned(), Bytes(size))));
}

#[test]
fn without_pipe_or_cycles_there_are_no_timing_figures() {
    let json = br#"{"Nodes":[{"Id":0,"Op":"ALLOC","BufId":0,"Size":1,"Type":"UB"},{"Id":1,"Op":"EXP","Bufs":[0]},
        {"Id":2,"Op":"FREE","BufId":0,"Size":1,"Type":"UB"}],"Edges":[]}"#;
    let graph = graph_json::read(json).unwrap().0;
    let (machine, plan) = (machine(&graph, &[]), plan(&[0, 1, 2], &[(0, 0)], &[]));
    let metrics = measure(&graph, &machine, &plan).unwrap();
    assert_eq!(cycles(&metrics), [None; 3]);
    assert_eq!(metrics.pipe_busy, None);
    assert_eq!(timing::segment(&graph, &machine, &plan).unwrap(), None);
}

#[test]
fn the_timeline_names_span_and_pipe_of_every_position() {
    let graph = worked_example();
    let machine = machine(&graph, &[("UB", 10)]);
    let schedule = [0, 1, 8, 2, 10, 9, 4, 5, 11, 3, 6, 7];
    let plan = plan(&schedule, &[(0, 0), (1, 0)], &[(0, 0, None), (1, 0, None)]);
    let timeline = timing::segment(&graph, &machine, &plan).unwrap().unwrap();
    let spans: Vec<_> = timeline.spans.iter().map(|s| (s.start.0, s.end.0)).collect();
    let first = [(0, 0), (0, 15), (15, 15), (15, 15), (15, 15), (15, 177)];
    let second = [(177, 207), (207, 207), (207, 369), (369, 384), (384, 414), (414, 414)];
    assert_eq!(spans, [first, second].concat());
    let pipe = |s: &timing::Span| s.pipe.map_or("", |p| machine.pipe_names()[p].as_str());
    let names: Vec<_> = timeline.spans.iter().map(pipe).collect();
    assert_eq!(names, ["", "MTE2", "MTE3", "", "MTE3", "MTE2", "VECTOR", "", "MTE2", "MTE2", "VECTOR", ""]);
    assert_eq!(timeline.makespan, Cycles(414));
}

#[test]
fn residency_segments_are_half_open_and_know_their_spills() {
    let graph = worked_example();
    let machine = machine(&graph, &[("UB", 12)]);
    let plan = plan(&[0, 1, 8, 9, 4, 5, 2, 3, 6, 7], &[(0, 0), (1, 0)], &[(0, 6, None)]);
    let segments = residency::segments(&graph, &machine, &plan).unwrap();
    let seen: Vec<_> = segments
        .iter()
        .map(|s| {
            let buf = graph.buf(s.buf).id.0;
            (buf, s.offset.0, s.size.0, s.from.index(), s.to.index(), s.reloaded_by, s.evicted_by)
        })
        .collect();
    assert_eq!(seen, [(0, 0, 6, 0, 2, None, Some(0)), (0, 6, 6, 3, 5, Some(0), None), (1, 0, 6, 6, 9, None, None)]);
}
