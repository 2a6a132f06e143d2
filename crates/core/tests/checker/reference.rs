//! The rules once more, read off the specification word by word and counted by comparing
//! everything with everything. For plans that keep rule 1 and place every buffer once.

use spillbench_core::graph::NodeKind;
use spillbench_core::plan::{Plan, SpillIds};
use spillbench_core::{BufId, Graph, Id, Machine};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Deed {
    Alloc,
    Free,
    Use,
    Out(usize),
    Back(usize),
}

/// The offenders of each rule.
pub fn counts(graph: &Graph, machine: &Machine, plan: &Plan) -> [u64; 5] {
    let reader = Reader { graph, machine, plan, at: plan.schedule.iter().enumerate().map(|(p, &i)| (i, p)).collect() };
    [0, reader.backward_edges(), reader.absences(), reader.out_of_bounds(), reader.overlaps()]
}

struct Reader<'a> {
    graph: &'a Graph,
    machine: &'a Machine,
    plan: &'a Plan,
    at: BTreeMap<Id, usize>,
}

struct Rectangle {
    start: usize,
    end: usize,
    low: u128,
    high: u128,
}

impl Reader<'_> {
    fn spill_ids(&self, k: usize) -> [Id; 2] {
        let ids = SpillIds::after(self.graph.max_id());
        [ids.out(k).unwrap(), ids.back(k).unwrap()]
    }

    fn spills_of(&self, buf: BufId) -> impl Iterator<Item = usize> + '_ {
        (0..self.plan.spills.len()).filter(move |&k| self.plan.spills[k].buf == buf)
    }

    fn backward_edges(&self) -> u64 {
        let graph = self.graph;
        let mut edges = BTreeSet::new();
        for from in graph.nodes() {
            edges.extend(graph.successors(from).iter().map(|&to| (graph.id(from), graph.id(to))));
        }
        for buf in graph.bufs() {
            let (alloc, free) = (graph.id(graph.buf(buf).alloc), graph.id(graph.buf(buf).free));
            for &user in graph.users(buf) {
                edges.extend([(alloc, graph.id(user)), (graph.id(user), free)]);
            }
            let mut chain = vec![alloc];
            chain.extend(self.spills_of(graph.buf(buf).id).flat_map(|k| self.spill_ids(k)));
            chain.push(free);
            edges.extend(chain.windows(2).map(|link| (link[0], link[1])));
        }
        edges.iter().filter(|(from, to)| self.at[from] > self.at[to]).count() as u64
    }

    /// All that happens with a buffer, in order.
    fn deeds(&self, buf: BufId) -> Vec<(usize, Deed)> {
        let graph = self.graph;
        let ix = graph.buf_by_id(buf).unwrap();
        let mut deeds = Vec::new();
        for node in graph.nodes() {
            let deed = match graph.kind(node) {
                NodeKind::Alloc(b) if b == ix => Deed::Alloc,
                NodeKind::Free(b) if b == ix => Deed::Free,
                NodeKind::Op if graph.operands(node).contains(&ix) => Deed::Use,
                _ => continue,
            };
            deeds.push((self.at[&graph.id(node)], deed));
        }
        for k in self.spills_of(buf) {
            let [out, back] = self.spill_ids(k);
            deeds.extend([(self.at[&out], Deed::Out(k)), (self.at[&back], Deed::Back(k))]);
        }
        deeds.sort_by_key(|d| d.0);
        deeds
    }

    fn absences(&self) -> u64 {
        let mut count = 0;
        for buf in self.graph.bufs() {
            let deeds = self.deeds(self.graph.buf(buf).id);
            for (i, &(_, deed)) in deeds.iter().enumerate() {
                let before = deeds[..i].iter().map(|d| d.1).rfind(|&d| d != Deed::Use);
                let wrong = match (before, deed) {
                    (_, Deed::Use) => !matches!(before, Some(Deed::Alloc | Deed::Back(_))),
                    (Some(Deed::Out(k)), later) => later != Deed::Back(k),
                    _ => false,
                };
                count += u64::from(wrong);
            }
        }
        count
    }

    fn offset(&self, buf: BufId, begin: Deed) -> u64 {
        match begin {
            Deed::Back(k) => self.plan.spills[k].offset.0,
            _ => self.plan.memory.iter().find(|p| p.buf == buf).unwrap().offset.0,
        }
    }

    fn segments(&self, cache: Option<&str>) -> Vec<Rectangle> {
        let mut segments = Vec::new();
        for buf in self.graph.bufs().map(|b| self.graph.buf(b)) {
            if cache.is_some_and(|c| c != self.graph.cache_name(buf.cache)) {
                continue;
            }
            let deeds = self.deeds(buf.id);
            for (i, &(start, deed)) in deeds.iter().enumerate() {
                if !matches!(deed, Deed::Alloc | Deed::Back(_)) {
                    continue;
                }
                let uses = deeds[i + 1..].iter().take_while(|d| d.1 == Deed::Use).count();
                let end = match deeds.get(i + 1 + uses) {
                    Some(&(end, Deed::Out(_) | Deed::Free)) => end,
                    _ => deeds[i + uses].0 + 1,
                };
                let low = u128::from(self.offset(buf.id, deed));
                segments.push(Rectangle { start, end, low, high: low + u128::from(buf.size.0) });
            }
        }
        segments
    }

    fn out_of_bounds(&self) -> u64 {
        let caches = self.graph.caches().map(|c| {
            let capacity = u128::from(self.machine.cache(c).capacity.0);
            self.segments(Some(self.graph.cache_name(c))).iter().filter(|s| s.high > capacity).count() as u64
        });
        caches.sum()
    }

    fn overlaps(&self) -> u64 {
        let mut count = 0;
        for cache in self.graph.cache_names() {
            let segments = self.segments(Some(cache));
            for (i, a) in segments.iter().enumerate() {
                let meets = |b: &Rectangle| a.start < b.end && b.start < a.end && a.low < b.high && b.low < a.high;
                count += u64::from(segments.iter().enumerate().any(|(j, b)| i != j && meets(b)));
            }
        }
        count
    }
}
