//! Valid plans, made in the simplest way there is: a timeline of nodes with spills thrown in, and
//! addresses chosen by looking at every other segment.

use proptest::prelude::*;
use proptest::sample::Index;
use spillbench_core::plan::{Placed, Plan, Spill};
use spillbench_core::{BufId, Bytes, Graph, GraphBuilder, Hardware, Id, Machine, Offset};

const CACHES: [&str; 2] = ["UB", "L1"];

/// A graph, a hardware that the plan just fits into, and a valid plan.
#[derive(Clone, Debug)]
pub struct Case {
    pub graph: Graph,
    pub machine: Machine,
    pub plan: Plan,
    /// The segments of the plan, by their start.
    pub segments: Vec<Seg>,
}

/// A residency segment of the plan that was generated.
#[derive(Clone, Copy, Debug)]
pub struct Seg {
    pub buf: usize,
    /// The spill that begins it; `None` for the `ALLOC`.
    pub spill: Option<usize>,
    pub start: usize,
    pub end: usize,
    pub cache: usize,
    pub low: u64,
    pub size: u64,
}

impl Seg {
    pub fn high(&self) -> u64 {
        self.low + self.size
    }

    pub fn meets_in_time(&self, other: &Self) -> bool {
        self.cache == other.cache && self.start < other.end && other.start < self.end
    }
}

/// One entry of the timeline; spills are numbered as they were thrown in.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    Alloc(usize),
    Free(usize),
    Op(usize),
    Out(usize),
    Back(usize),
}

/// What a case is made from.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Size, cache, and how long before the first and after the last use it lives.
    buffers: Vec<(u64, usize, Index, Index)>,
    /// Operands of each op.
    ops: Vec<Vec<Index>>,
    edges: Vec<(Index, Index)>,
    /// Buffer, place of `SPILL_OUT`, place of `SPILL_IN`.
    spills: Vec<(Index, Index, Index)>,
    /// True to number spills by their `SPILL_IN`s, false by their `SPILL_OUT`s.
    number_by_return: bool,
    /// True to reuse addresses, false to give every segment its own.
    reuse: bool,
    /// True to list the implied edges in the graph as well.
    list_implied: bool,
    base: u64,
    stride: u64,
}

pub fn recipe() -> impl Strategy<Value = Recipe> {
    let buffer = (1u64..9, 0..CACHES.len(), any::<Index>(), any::<Index>());
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (
        prop::collection::vec(buffer, 1..10),
        prop::collection::vec(prop::collection::vec(any::<Index>(), 0..4), 1..24),
        prop::collection::vec(any::<(Index, Index)>(), 0..12),
        prop::collection::vec(any::<(Index, Index, Index)>(), 0..16),
        flags,
        prop_oneof![Just(0u64), Just(5), Just(1 << 40)],
        1u64..4,
    )
        .prop_map(|(buffers, ops, edges, spills, (number_by_return, reuse, list_implied), base, stride)| Recipe {
            buffers,
            ops,
            edges,
            spills,
            number_by_return,
            reuse,
            list_implied,
            base,
            stride,
        })
}

/// Cases of all kinds.
pub fn case() -> impl Strategy<Value = Case> {
    recipe().prop_map(|r| r.make())
}

impl Recipe {
    fn operands(&self, op: usize) -> Vec<usize> {
        let mut operands: Vec<_> = self.ops[op].iter().map(|i| i.index(self.buffers.len())).collect();
        operands.sort_unstable();
        operands.dedup();
        operands
    }

    /// Ops in their order, with every buffer allocated before its first use and freed after its
    /// last.
    fn timeline(&self) -> Vec<Event> {
        let mut keyed: Vec<_> = (0..self.ops.len()).map(|o| ((o, 3), Event::Op(o))).collect();
        for (b, &(_, _, before, after)) in self.buffers.iter().enumerate() {
            let users: Vec<_> = (0..self.ops.len()).filter(|&o| self.operands(o).contains(&b)).collect();
            let alloc = before.index(users.first().map_or(self.ops.len(), |u| u + 1));
            let least = users.last().map_or(alloc, |u| u + 1);
            let free = least + after.index(self.ops.len() + 1 - least);
            keyed.push(((alloc, 1), Event::Alloc(b)));
            keyed.push(((free, if free == alloc { 2 } else { 0 }), Event::Free(b)));
        }
        keyed.sort_by_key(|k| k.0);
        keyed.into_iter().map(|k| k.1).collect()
    }

    fn touches(&self, event: Event, buf: usize, spilled: &[usize]) -> bool {
        match event {
            Event::Alloc(b) | Event::Free(b) => b == buf,
            Event::Op(o) => self.operands(o).contains(&buf),
            Event::Out(s) | Event::Back(s) => spilled[s] == buf,
        }
    }

    /// Throws spills into the timeline wherever a buffer is resident; gives the buffer of each.
    fn throw_spills(&self, timeline: &mut Vec<Event>) -> Vec<usize> {
        let mut spilled: Vec<usize> = Vec::new();
        for (buf, out, back) in &self.spills {
            let buf = buf.index(self.buffers.len());
            let mut resident = false;
            let mut places = Vec::new();
            for (i, &event) in timeline.iter().enumerate() {
                if resident {
                    places.push(i);
                }
                if self.touches(event, buf, &spilled) {
                    resident = !matches!(event, Event::Free(_) | Event::Out(_));
                }
            }
            let Some(&at) = places.get(out.index(places.len().max(1))) else { continue };
            let later = timeline[at..].iter().position(|&e| self.touches(e, buf, &spilled)).unwrap_or(0);
            timeline.insert(at + back.index(later + 1), Event::Back(spilled.len()));
            timeline.insert(at, Event::Out(spilled.len()));
            spilled.push(buf);
        }
        spilled
    }

    /// Renumbers spills in the order of the timeline; gives the buffers in the new order.
    fn renumber(&self, timeline: &mut [Event], spilled: &[usize]) -> Vec<usize> {
        let order: Vec<_> = timeline
            .iter()
            .filter_map(|e| match *e {
                Event::Back(s) if self.number_by_return => Some(s),
                Event::Out(s) if !self.number_by_return => Some(s),
                _ => None,
            })
            .collect();
        let number = |s: usize| order.iter().position(|&o| o == s).unwrap();
        for event in timeline {
            match event {
                Event::Out(s) | Event::Back(s) => *s = number(*s),
                _ => {}
            }
        }
        order.iter().map(|&s| spilled[s]).collect()
    }

    fn segments(&self, timeline: &[Event], spilled: &[usize]) -> Vec<Seg> {
        let mut segments: Vec<Seg> = Vec::new();
        for (i, &event) in timeline.iter().enumerate() {
            let (buf, spill) = match event {
                Event::Alloc(b) => (b, None),
                Event::Back(s) => (spilled[s], Some(s)),
                _ => continue,
            };
            let ends = |e: &Event| matches!(*e, Event::Free(_) | Event::Out(_)) && self.touches(*e, buf, spilled);
            let end = i + timeline[i..].iter().position(ends).unwrap();
            let (size, cache, ..) = self.buffers[buf];
            let mut segment = Seg { buf, spill, start: i, end, cache, low: 0, size };
            let rivals: Vec<_> = segments.iter().filter(|s| s.cache == cache).copied().collect();
            if self.reuse {
                let free_at = |low: u64| {
                    rivals.iter().all(|r| !r.meets_in_time(&segment) || r.high() <= low || low + size <= r.low)
                };
                segment.low =
                    std::iter::once(0).chain(rivals.iter().map(Seg::high)).filter(|&low| free_at(low)).min().unwrap();
            } else {
                segment.low = rivals.iter().map(Seg::high).max().unwrap_or(0);
            }
            segments.push(segment);
        }
        segments
    }

    fn id(&self, place: usize) -> u64 {
        self.base + self.stride * place as u64
    }

    /// The graph, its nodes in the order of the timeline, with rising ids.
    fn graph(&self, nodes: &[Event]) -> Graph {
        let mut builder = GraphBuilder::new();
        let place = |event| self.id(nodes.iter().position(|&e| e == event).unwrap());
        for (i, &event) in nodes.iter().enumerate() {
            match event {
                Event::Alloc(b) => builder.alloc(self.id(i), b as u64, self.buffers[b].0, CACHES[self.buffers[b].1]),
                Event::Free(b) => builder.free(self.id(i), b as u64, self.buffers[b].0, CACHES[self.buffers[b].1]),
                Event::Op(o) => {
                    let bufs: Vec<_> = self.operands(o).into_iter().map(|b| b as u64).collect();
                    builder.op(self.id(i), "EXP", "VECTOR", 1, &bufs)
                }
                Event::Out(_) | Event::Back(_) => unreachable!("spill nodes are no nodes of the graph"),
            };
        }
        for (a, b) in &self.edges {
            let (a, b) = (a.index(self.ops.len()), b.index(self.ops.len()));
            if a != b {
                builder.edge(place(Event::Op(a.min(b))), place(Event::Op(a.max(b))));
            }
        }
        if self.list_implied {
            for o in 0..self.ops.len() {
                for b in self.operands(o) {
                    builder.edge(place(Event::Alloc(b)), place(Event::Op(o)));
                    builder.edge(place(Event::Op(o)), place(Event::Free(b)));
                }
            }
        }
        builder.build().unwrap().0
    }

    /// Makes the case.
    pub fn make(&self) -> Case {
        let nodes = self.timeline();
        let graph = self.graph(&nodes);
        let mut timeline = nodes.clone();
        let thrown = self.throw_spills(&mut timeline);
        let spilled = self.renumber(&mut timeline, &thrown);
        let segments = self.segments(&timeline, &spilled);
        let first_spill = self.id(nodes.len() - 1) + 1;
        let id = |event: &Event| {
            Id(match *event {
                Event::Out(s) => first_spill + 2 * s as u64,
                Event::Back(s) => first_spill + 2 * s as u64 + 1,
                node => self.id(nodes.iter().position(|&e| e == node).unwrap()),
            })
        };
        let offset = |buf, spill| Offset(segments.iter().find(|s| s.buf == buf && s.spill == spill).unwrap().low);
        let plan = Plan {
            schedule: timeline.iter().map(id).collect(),
            memory: (0..self.buffers.len()).map(|b| Placed { buf: BufId(b as u64), offset: offset(b, None) }).collect(),
            spills: (spilled.iter().enumerate())
                .map(|(s, &b)| Spill { buf: BufId(b as u64), offset: offset(b, Some(s)), cause: None })
                .collect(),
            counters: None,
        };
        // Not a byte more than the plan needs, so that any step outward is a fault.
        let mut hardware = Hardware::default();
        for (cache, name) in CACHES.iter().enumerate() {
            let high = segments.iter().filter(|s| s.cache == cache).map(Seg::high).max().unwrap_or(1);
            hardware.set_capacity(name, Bytes(high)).unwrap();
        }
        let machine = Machine::resolve(&graph, &hardware).unwrap();
        Case { graph, machine, plan, segments }
    }
}
