//! The metrics against a slow second reading of section 4 of the problem model: every constraint
//! as an explicit edge, every cache as an array of bytes, on random graphs with random valid plans.

mod random;

use proptest::prelude::*;
use random::{CACHES, CAPACITY, Case, cases, random_plan};
use spillbench_core::metrics::{Metrics, measure, residency, timing};
use spillbench_core::{Bytes, Graph, Hardware, Machine, NodeKind, Plan, checker};
use std::collections::BTreeMap;

fn hardware() -> Hardware {
    let mut hardware = Hardware::default();
    CACHES.iter().for_each(|c| hardware.set_capacity(c, Bytes(CAPACITY)).unwrap());
    hardware
}

/// What one entry of the schedule does, in external ids.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Alloc,
    Free,
    Op,
    Out,
    In,
}

struct Entry {
    id: u64,
    kind: Kind,
    /// The buffers concerned, and where the (one) buffer of an acquire comes to lie.
    bufs: Vec<u64>,
    offset: u64,
    pipe: Option<String>,
    cycles: u64,
}

struct Model<'a> {
    graph: &'a Graph,
    entries: Vec<Entry>,
}

impl<'a> Model<'a> {
    fn new(graph: &'a Graph, plan: &Plan) -> Self {
        let base = graph.max_id().0 + 1;
        let first = |b: u64| plan.memory.iter().find(|p| p.buf.0 == b).unwrap().offset.0;
        let entry = |&id: &spillbench_core::Id| {
            let Some(n) = graph.node_by_id(id) else {
                let spill = plan.spills[((id.0 - base) / 2) as usize];
                let buf = graph.buf(graph.buf_by_id(spill.buf).unwrap());
                let cost = 2 * buf.size.0 + 150;
                let (kind, pipe, cycles) = match (id.0 - base) % 2 {
                    0 => (Kind::Out, "MTE3", if buf.backed { 0 } else { cost }),
                    _ => (Kind::In, "MTE2", cost),
                };
                let (pipe, bufs) = (Some(pipe.to_owned()), vec![spill.buf.0]);
                return Entry { id: id.0, kind, bufs, offset: spill.offset.0, pipe, cycles };
            };
            let bufs: Vec<_> = graph.operands(n).iter().map(|&b| graph.buf(b).id.0).collect();
            let (kind, offset) = match graph.kind(n) {
                NodeKind::Alloc(_) => (Kind::Alloc, first(bufs[0])),
                NodeKind::Free(_) => (Kind::Free, 0),
                NodeKind::Op => (Kind::Op, 0),
            };
            let pipe = graph.pipe(n).map(|p| graph.pipe_names()[p].clone());
            Entry { id: id.0, kind, bufs, offset, pipe, cycles: graph.cycles(n).map_or(0, |c| c.0) }
        };
        Self { graph, entries: plan.schedule.iter().map(entry).collect() }
    }

    fn size(&self, buf: u64) -> u64 {
        self.graph.buf(self.graph.buf_by_id(buf.into()).unwrap()).size.0
    }

    fn cache(&self, buf: u64) -> &str {
        self.graph.cache_name(self.graph.buf(self.graph.buf_by_id(buf.into()).unwrap()).cache)
    }

    /// Graph, implied and spill edges, as pairs of positions.
    fn precedence(&self) -> Vec<(usize, usize)> {
        let mut edges = Vec::new();
        for (i, a) in self.entries.iter().enumerate() {
            for (j, b) in self.entries.iter().enumerate() {
                let node = |id: u64| self.graph.node_by_id(id.into());
                if let (Some(m), Some(n)) = (node(a.id), node(b.id))
                    && self.graph.successors(m).contains(&n)
                {
                    edges.push((i, j));
                }
                // Of one buffer, two entries that are not both ops keep their order.
                let shared = a.bufs.iter().any(|x| b.bufs.contains(x));
                if i < j && shared && !(a.kind == Kind::Op && b.kind == Kind::Op) {
                    edges.push((i, j));
                }
            }
        }
        edges
    }

    fn pipe_order(&self) -> Vec<(usize, usize)> {
        let mut last = BTreeMap::new();
        let mut edges = Vec::new();
        for (j, e) in self.entries.iter().enumerate() {
            if let Some(i) = e.pipe.as_ref().and_then(|p| last.insert(p.clone(), j)) {
                edges.push((i, j));
            }
        }
        edges
    }

    /// The position and offset at which the segment that ends at `j` began.
    fn begin(&self, j: usize) -> usize {
        let acquires = |e: &Entry| matches!(e.kind, Kind::Alloc | Kind::In) && e.bufs == self.entries[j].bufs;
        (0..j).rev().find(|&i| acquires(&self.entries[i])).unwrap()
    }

    /// For every acquire, edges from the last release of each of its addresses.
    fn segment_reuse(&self) -> Vec<(usize, usize)> {
        let mut last: BTreeMap<(&str, u64), usize> = BTreeMap::new();
        let mut edges = Vec::new();
        for (j, e) in self.entries.iter().enumerate() {
            let held = |at: u64| (at..at + self.size(e.bufs[0])).map(|a| (self.cache(e.bufs[0]), a));
            match e.kind {
                Kind::Alloc | Kind::In => edges.extend(held(e.offset).filter_map(|a| Some((*last.get(&a)?, j)))),
                Kind::Free | Kind::Out => {
                    last.extend(held(self.entries[self.begin(j)].offset).map(|address| (address, j)));
                }
                Kind::Op => {}
            }
        }
        edges
    }

    /// `FREE(a) → ALLOC(b)` for each pair of one cache whose initial offsets overlap.
    fn literal_reuse(&self) -> Vec<(usize, usize)> {
        let alloc = |buf: u64| self.entries.iter().find(|e| e.kind == Kind::Alloc && e.bufs == [buf]).unwrap();
        let mut edges = Vec::new();
        for (i, free) in self.entries.iter().enumerate().filter(|e| e.1.kind == Kind::Free) {
            for (j, born) in self.entries.iter().enumerate().filter(|e| e.0 > i && e.1.kind == Kind::Alloc) {
                let (a, b) = (free.bufs[0], born.bufs[0]);
                let (at, bt) = (alloc(a).offset, born.offset);
                if self.cache(a) == self.cache(b) && at < bt + self.size(b) && bt < at + self.size(a) {
                    edges.push((i, j));
                }
            }
        }
        edges
    }

    /// Start and end of every entry, each as early as the edges allow.
    fn times(&self, edges: &[Vec<(usize, usize)>]) -> Vec<(u64, u64)> {
        let mut times: Vec<(u64, u64)> = Vec::new();
        for (j, e) in self.entries.iter().enumerate() {
            let before = edges.iter().flatten().filter(|edge| edge.1 == j);
            let start = before.map(|&(i, _)| times[i].1).max().unwrap_or(0);
            times.push((start, start + e.cycles));
        }
        times
    }

    fn busy(&self) -> BTreeMap<String, u64> {
        let mut busy = BTreeMap::new();
        for e in &self.entries {
            if let Some(pipe) = &e.pipe {
                *busy.entry(pipe.clone()).or_insert(0) += e.cycles;
            }
        }
        busy
    }

    /// Peak residency and mean fragmentation of a cache, byte by byte.
    fn occupancy(&self, cache: &str) -> (u64, f64) {
        let mut taken = [false; CAPACITY as usize];
        let (mut peak, mut sum) = (0, 0.0);
        for (j, e) in self.entries.iter().enumerate() {
            if e.kind != Kind::Op && self.cache(e.bufs[0]) == cache {
                let acquires = matches!(e.kind, Kind::Alloc | Kind::In);
                let at = if acquires { e.offset } else { self.entries[self.begin(j)].offset };
                taken[at as usize..(at + self.size(e.bufs[0])) as usize].fill(acquires);
            }
            let free = taken.iter().filter(|&&t| !t).count();
            let largest = taken.split(|&t| t).map(<[bool]>::len).max().unwrap_or(0);
            peak = peak.max(CAPACITY - free as u64);
            sum += if free == 0 { 0.0 } else { 1.0 - largest as f64 / free as f64 };
        }
        (peak, sum / self.entries.len() as f64)
    }

    fn peak_demand(&self) -> u64 {
        let (mut live, mut peak) = (0, 0);
        for e in self.entries.iter().filter(|e| e.kind == Kind::Alloc || e.kind == Kind::Free) {
            if self.cache(e.bufs[0]) != "L0A" {
                let size = self.size(e.bufs[0]);
                live = if e.kind == Kind::Alloc { live + size } else { live - size };
                peak = peak.max(live);
            }
        }
        peak
    }
}

fn longest(times: &[(u64, u64)]) -> u64 {
    times.iter().map(|t| t.1).max().unwrap_or(0)
}

fn check_times(case: &Case, machine: &Machine, plan: &Plan, metrics: &Metrics) -> Result<(), TestCaseError> {
    let model = Model::new(&case.graph, plan);
    let (precedence, pipes) = (model.precedence(), model.pipe_order());
    prop_assert!(precedence.iter().all(|e| e.0 < e.1));
    let segment = model.times(&[precedence.clone(), pipes.clone(), model.segment_reuse()]);
    let timeline = timing::segment(&case.graph, machine, plan).unwrap().unwrap();
    let spans: Vec<_> = timeline.spans.iter().map(|s| (s.start.0, s.end.0)).collect();
    prop_assert_eq!(&spans, &segment);
    prop_assert_eq!(metrics.makespan.unwrap().0, longest(&segment));
    let literal = model.times(&[precedence.clone(), pipes, model.literal_reuse()]);
    prop_assert_eq!(metrics.makespan_literal.unwrap().0, longest(&literal));
    let busy = model.busy();
    let bound = busy.values().copied().max().unwrap_or(0).max(longest(&model.times(&[precedence])));
    prop_assert_eq!(metrics.makespan_lower_bound.unwrap().0, bound);
    prop_assert!(bound <= longest(&segment) && bound <= longest(&literal));
    for (pipe, cycles) in metrics.pipe_busy.as_ref().unwrap() {
        prop_assert_eq!(cycles.0, busy.get(pipe).copied().unwrap_or(0));
    }
    Ok(())
}

proptest! {
    #[test]
    fn figures_equal_the_slow_reading(case in cases(true), dice in prop::collection::vec(any::<u32>(), 20..80)) {
        let machine = Machine::resolve(&case.graph, &hardware()).unwrap();
        let plan = random_plan(&case, &dice);
        prop_assert!(checker::check(&case.graph, &machine, &plan).is_valid());
        let metrics = measure(&case.graph, &machine, &plan).unwrap();
        check_times(&case, &machine, &plan, &metrics)?;
        let model = Model::new(&case.graph, &plan);
        prop_assert_eq!(metrics.peak_demand.0, model.peak_demand());
        for cache in case.graph.cache_names() {
            let (peak, fragmentation) = model.occupancy(cache);
            prop_assert_eq!(metrics.peak_residency[cache].0, peak);
            prop_assert!((metrics.fragmentation[cache] - fragmentation).abs() < 1e-9);
        }
    }

    #[test]
    fn movement_is_the_sum_over_spills_in_every_split(
        case in cases(false),
        dice in prop::collection::vec(any::<u32>(), 20..80),
    ) {
        let graph = &case.graph;
        let machine = Machine::resolve(graph, &hardware()).unwrap();
        let plan = random_plan(&case, &dice);
        let metrics = measure(graph, &machine, &plan).unwrap();
        let moved = |keep: &dyn Fn(&spillbench_core::graph::Buffer, Option<spillbench_core::plan::Cause>) -> bool| {
            let bufs = plan.spills.iter().map(|s| (graph.buf(graph.buf_by_id(s.buf).unwrap()), s.cause));
            let sizes = bufs.filter(|(b, c)| keep(b, *c)).map(|(b, _)| if b.backed { b.size.0 } else { 2 * b.size.0 });
            (sizes.clone().count() as u64, Bytes(sizes.sum()))
        };
        let movement = &metrics.movement;
        prop_assert_eq!((metrics.spill_count, metrics.extra_movement), moved(&|_, _| true));
        prop_assert_eq!((movement.counts.backed, movement.backed), moved(&|b, _| b.backed));
        prop_assert_eq!((movement.counts.generated, movement.generated), moved(&|b, _| !b.backed));
        prop_assert_eq!((movement.counts.unknown_cause, movement.unknown_cause), moved(&|_, c| c.is_none()));
        for (name, split) in &movement.by_cache {
            let here = |b: &spillbench_core::graph::Buffer| graph.cache_name(b.cache) == name;
            prop_assert_eq!((split.spills, split.bytes()), moved(&|b, _| here(b)));
            prop_assert_eq!((split.counts.backed, split.backed), moved(&|b, _| here(b) && b.backed));
            prop_assert_eq!(split.counts.capacity + split.counts.fragmentation + split.counts.unknown_cause, split.spills);
            prop_assert_eq!(split.capacity + split.fragmentation + split.unknown_cause, split.bytes());
        }
        let timed = graph.has_timing();
        prop_assert_eq!(metrics.makespan.is_some() && metrics.pipe_busy.is_some(), timed);
    }

    #[test]
    fn segments_tile_the_life_of_each_buffer(
        case in cases(false),
        dice in prop::collection::vec(any::<u32>(), 20..80),
    ) {
        let graph = &case.graph;
        let machine = Machine::resolve(graph, &hardware()).unwrap();
        let plan = random_plan(&case, &dice);
        let segments = residency::segments(graph, &machine, &plan).unwrap();
        prop_assert_eq!(segments.len(), graph.buffer_count() + plan.spills.len());
        prop_assert!(segments.is_sorted_by_key(|s| s.from));
        let base = graph.max_id().0 + 1;
        for s in &segments {
            let first = graph.id(graph.buf(s.buf).alloc).0;
            let last = graph.id(graph.buf(s.buf).free).0;
            let from = s.reloaded_by.map_or(first, |k| base + 2 * u64::from(k) + 1);
            let to = s.evicted_by.map_or(last, |k| base + 2 * u64::from(k));
            prop_assert_eq!((plan.schedule[s.from.index()].0, plan.schedule[s.to.index()].0), (from, to));
        }
    }

    #[test]
    fn a_broken_plan_is_an_error_exactly_where_the_checker_finds_one(
        case in cases(true),
        dice in prop::collection::vec(any::<u32>(), 20..80),
        breaks in prop::collection::vec((0u8..7, any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0u64..200), 0..3),
    ) {
        let machine = Machine::resolve(&case.graph, &hardware()).unwrap();
        let mut plan = random_plan(&case, &dice);
        for (what, i, j, value) in breaks {
            damage(&mut plan, what, &i, &j, value);
        }
        let valid = checker::check(&case.graph, &machine, &plan).is_valid();
        let measured = measure(&case.graph, &machine, &plan);
        prop_assert_eq!(measured.is_ok(), valid, "{:?}", measured);
        prop_assert_eq!(timing::segment(&case.graph, &machine, &plan).is_err() && valid, false);
    }
}

/// Breaks a plan in one of seven ways, or not, as chance has it.
fn damage(plan: &mut Plan, what: u8, i: &prop::sample::Index, j: &prop::sample::Index, value: u64) {
    let len = plan.schedule.len();
    match what {
        0 if len > 0 => plan.schedule.swap(i.index(len), j.index(len)),
        1 if len > 0 => drop(plan.schedule.remove(i.index(len))),
        2 if len > 0 => plan.schedule[i.index(len)].0 = value,
        3 if !plan.memory.is_empty() => i.get_mut(&mut plan.memory).offset.0 = value,
        4 if !plan.spills.is_empty() => i.get_mut(&mut plan.spills).offset.0 = value,
        5 if !plan.spills.is_empty() => i.get_mut(&mut plan.spills).buf.0 = value % 24,
        6 if !plan.memory.is_empty() => i.get_mut(&mut plan.memory).buf.0 = value % 24,
        _ => {}
    }
}
