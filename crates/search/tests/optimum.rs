//! The search on small graphs against the least movement of all valid plans: over all orders, all
//! evictions and all addresses.

mod common;

use common::brute::least_movement;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use spillbench_core::hardware::smallest_capacities;
use spillbench_core::index::CacheIx;
use spillbench_core::{Bytes, Graph, GraphBuilder, Hardware, Machine, Plan, Schedule};
use spillbench_search::{LeastMovement, Monitor, Progress, SearchConfig, search};
use std::time::{Duration, Instant};

/// Evaluations that the search may spend on one graph.
const EVALUATIONS: u64 = 16_384;
/// States that the optimum may take.
const STATES: usize = 20_000;

/// The choices behind a graph whose ops read what earlier ones wrote.
#[derive(Clone, Debug)]
struct Flow {
    caches: u8,
    /// Sizes to choose from.
    palette: Vec<u64>,
    /// Buffers that loads fill: cache and size.
    loaded: Vec<(u8, u8)>,
    /// Ops: what they read, and the cache and size of what they write, or the buffer they add to.
    ops: Vec<(Vec<u8>, u8, u8, Option<u8>)>,
    /// How near what an op reads is to it: 0 reads anything, otherwise the last few.
    near: u8,
    /// Room between the least that works and all at once, in sixteenths.
    room: u64,
}

fn flows() -> impl Strategy<Value = Flow> {
    let palette = prop_oneof![
        Just(vec![4]),
        Just(vec![2, 4, 8]),
        prop::collection::vec(1u64..10, 2..4),
        Just(vec![1, 2, 3, 4, 5, 6, 7, 8, 9]),
    ];
    let loaded = prop::collection::vec((any::<u8>(), any::<u8>()), 1..5);
    let adds = prop::option::weighted(0.3, any::<u8>());
    let op = (prop::collection::vec(any::<u8>(), 1..4), any::<u8>(), any::<u8>(), adds);
    (1u8..3, palette, loaded, prop::collection::vec(op, 3..8), 0u8..4, 0u64..6)
        .prop_map(|(caches, palette, loaded, ops, near, room)| Flow { caches, palette, loaded, ops, near, room })
}

const CACHES: [&str; 2] = ["L1", "UB"];

impl Flow {
    fn graph(&self) -> Graph {
        let mut builder = GraphBuilder::new();
        let size = |choice: u8| self.palette[choice as usize % self.palette.len()];
        let cache = |choice: u8| CACHES[usize::from(choice % self.caches)];
        // Per buffer: the last op that wrote it, those that read it since.
        let mut written: Vec<u64> = Vec::new();
        let mut read: Vec<Vec<u64>> = Vec::new();
        let mut generated = Vec::new();
        for &(c, s) in &self.loaded {
            let b = written.len() as u64;
            builder.alloc(b, b, size(s), cache(c)).free(1000 + b, b, size(s), cache(c));
            builder.op(100 + b, "COPY_IN", "MTE2", 10, &[b]);
            written.push(100 + b);
            read.push(Vec::new());
        }
        for (i, (reads, c, s, adds)) in self.ops.iter().enumerate() {
            let id = 200 + i as u64;
            let choices = if self.near == 0 { written.len() } else { written.len().min(usize::from(self.near) + 1) };
            let mut bufs: Vec<u64> =
                reads.iter().map(|&r| (written.len() - 1 - usize::from(r) % choices) as u64).collect();
            bufs.iter().for_each(|&b| {
                builder.edge(written[b as usize], id);
            });
            let target = adds.and_then(|a| generated.get(usize::from(a) % generated.len().max(1)).copied());
            match target {
                Some(b) => {
                    builder.edge(written[b as usize], id);
                    read[b as usize].iter().filter(|&&r| r != id).for_each(|&r| {
                        builder.edge(r, id);
                    });
                    read[b as usize].clear();
                    written[b as usize] = id;
                    bufs.push(b);
                }
                None => {
                    let b = written.len() as u64;
                    builder.alloc(b, b, size(*s), cache(*c)).free(1000 + b, b, size(*s), cache(*c));
                    generated.push(b);
                    written.push(id);
                    read.push(Vec::new());
                    bufs.push(b);
                }
            }
            bufs.iter().filter(|&&b| written[b as usize] != id).for_each(|&b| read[b as usize].push(id));
            builder.op(id, "ADD", "VECTOR", 5, &bufs);
        }
        builder.build().expect("edges lead to later ops").0
    }

    fn machine(&self, graph: &Graph) -> Machine {
        let mut hardware = Hardware::default();
        let least = smallest_capacities(graph);
        for cache in graph.caches() {
            let least = least.get(CacheIx::new(cache.index())).map_or(1, |l| l.0.0);
            let all: u64 = graph.bufs().map(|b| graph.buf(b)).filter(|b| b.cache == cache).map(|b| b.size.0).sum();
            let capacity = least + (all - least) * self.room / 16;
            hardware.set_capacity(graph.cache_name(cache), Bytes(capacity)).expect("a cache of the hardware");
        }
        Machine::resolve(graph, &hardware).expect("every cache is known")
    }
}

struct Silent;

impl Monitor for Silent {
    fn improved(&mut self, _: &Plan, _: Progress) {}
}

/// What became of some random graphs.
#[derive(Default)]
struct Outcome {
    cases: usize,
    solved: usize,
    improved: usize,
    slowest: Duration,
    total: Duration,
    /// Number, least, found.
    gaps: Vec<(usize, u64, u64)>,
}

/// Solves and searches `cases` random graphs.
fn compare(cases: usize) -> Outcome {
    let mut runner = TestRunner::deterministic();
    let strategy = flows();
    let mut outcome = Outcome::default();
    while outcome.cases < cases {
        let flow = strategy.new_tree(&mut runner).expect("a flow").current();
        let graph = flow.graph();
        let machine = flow.machine(&graph);
        // Where nothing need spill, there is little to find.
        let Some(least) = least_movement(&graph, &machine, STATES).filter(|&least| least > 0) else { continue };
        let config = SearchConfig { evaluations: Some(EVALUATIONS), ..Default::default() };
        let start = Schedule::default_for(&graph);
        let started = Instant::now();
        let found = search(&graph, &machine, &start, &LeastMovement, &config, &|| false, &mut Silent).expect("it fits");
        let elapsed = started.elapsed();
        assert!(found.value >= least, "{} is below the least of all plans, {least}: {flow:?}", found.value);
        outcome.cases += 1;
        outcome.total += elapsed;
        outcome.slowest = outcome.slowest.max(elapsed);
        outcome.improved += usize::from(least < found.progress.start);
        if found.value == least {
            outcome.solved += 1;
        } else {
            outcome.gaps.push((outcome.cases, least, found.value));
            if std::env::var_os("SPILLBENCH_SHOW").is_some() {
                println!("{least} {} {flow:?}", found.value);
            }
        }
    }
    let Outcome { solved, improved, slowest, total, ref gaps, .. } = outcome;
    println!("{solved} of {cases} at the optimum; {improved} start above it");
    println!("mean {:.1?}, slowest {slowest:.1?}; the others (number, least, found): {gaps:?}", total / cases as u32);
    outcome
}

#[test]
fn small_graphs_are_solved() {
    let outcome = compare(30);
    assert!(outcome.solved * 100 >= outcome.cases * 95, "{:?}", outcome.gaps);
}

/// `cargo test --release -p spillbench-search --test optimum -- --ignored --nocapture`
#[test]
#[ignore = "takes minutes; run it in release"]
fn a_thousand_small_graphs_are_solved() {
    let outcome = compare(1000);
    assert!(outcome.solved * 100 >= outcome.cases * 95, "{:?}", outcome.gaps);
}
