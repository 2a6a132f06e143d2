//! Content hashes: XXH3-128 of a canonical form, the same on every machine.

use spillbench_core::Schedule;
use spillbench_core::graph::{Graph, NodeKind};
use std::fmt;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// A 128-bit content hash, shown as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub u128);

impl Hash {
    /// The hash of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(xxh3_128(bytes))
    }

    /// Reads the 32 digits back.
    pub fn parse(text: &str) -> Option<Self> {
        let plain = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        plain.then(|| u128::from_str_radix(text, 16).ok()).flatten().map(Self)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({self})")
    }
}

/// Feeds numbers and texts so that no two sequences of them feed the same bytes.
#[derive(Default)]
struct Feed(Xxh3);

impl Feed {
    fn number(&mut self, n: u64) {
        self.0.update(&n.to_le_bytes());
    }

    fn optional(&mut self, n: Option<u64>) {
        self.number(u64::from(n.is_some()));
        self.number(n.unwrap_or(0));
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.update(text.as_bytes());
    }

    fn finish(&self) -> Hash {
        Hash(self.0.digest128())
    }
}

/// The hash of what a graph says: nodes in file order with all their fields, and edges. `Meta` is
/// left out, and so is the form of the file.
pub fn graph(graph: &Graph) -> Hash {
    let mut feed = Feed::default();
    feed.number(graph.node_count() as u64);
    for node in graph.nodes() {
        feed.number(graph.id(node).0);
        feed.text(graph.op_name(node));
        match graph.kind(node) {
            NodeKind::Alloc(b) | NodeKind::Free(b) => {
                let buf = graph.buf(b);
                feed.number(buf.id.0);
                feed.number(buf.size.0);
                feed.text(graph.cache_name(buf.cache));
            }
            NodeKind::Op => {
                feed.text(graph.pipe(node).map_or("", |p| &graph.pipe_names()[p]));
                feed.optional(graph.cycles(node).map(|c| c.0));
                feed.number(graph.operands(node).len() as u64);
                graph.operands(node).iter().for_each(|&b| feed.number(graph.buf(b).id.0));
                let writes = graph.writes(node);
                feed.optional(writes.map(|w| w.len() as u64));
                writes.unwrap_or_default().iter().for_each(|&b| feed.number(graph.buf(b).id.0));
            }
        }
        feed.number(graph.successors(node).len() as u64);
        graph.successors(node).iter().for_each(|&s| feed.number(graph.id(s).0));
    }
    feed.finish()
}

/// The hash of an order of nodes.
pub fn schedule(graph: &Graph, schedule: &Schedule) -> Hash {
    let mut feed = Feed::default();
    schedule.order().iter().for_each(|&n| feed.number(graph.id(n).0));
    feed.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use spillbench_core::GraphBuilder;

    fn sample(size: u64, cycles: u64, edge: bool) -> Graph {
        let mut b = GraphBuilder::new();
        b.alloc(0, 0, size, "UB").op(1, "COPY_IN", "MTE2", cycles, &[0]).free(2, 0, size, "UB");
        if edge {
            b.edge(0, 1);
        }
        b.build().unwrap().0
    }

    #[test]
    fn every_field_counts() {
        let base = graph(&sample(6, 3, true));
        assert_eq!(base, graph(&sample(6, 3, true)));
        assert_ne!(base, graph(&sample(7, 3, true)));
        assert_ne!(base, graph(&sample(6, 4, true)));
        assert_ne!(base, graph(&sample(6, 3, false)));
    }

    #[test]
    fn digits_read_back() {
        let hash = Hash::of(b"spill");
        assert_eq!(Hash::parse(&hash.to_string()), Some(hash));
        assert_eq!(Hash::parse("12"), None);
        assert_eq!(Hash::parse(&"g".repeat(32)), None);
    }
}
