//! The lowered operators against the public kernel graphs: the facts as numbers, and, where the
//! files are there, the graphs themselves.

use spillbench_core::{Graph, NodeKind};
use spillbench_workloads::{WorkloadSpec, generate};
use std::collections::BTreeMap;
use std::path::PathBuf;

fn make(text: &str) -> Graph {
    generate(&text.parse::<WorkloadSpec>().unwrap()).unwrap()
}

fn public(name: &str) -> Option<Graph> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../datasets/external");
    let root = std::env::var_os("SPILLBENCH_DATA").map_or(root, PathBuf::from);
    let path = root.join("cpmcm2025a").join(format!("{name}.json"));
    let Ok(bytes) = std::fs::read(&path) else {
        eprintln!("skipped: {} is not there", path.display());
        return None;
    };
    Some(spillbench_core::formats::graph_json::read(&bytes).unwrap().0)
}

/// Buffers by cache and size.
fn buffers(graph: &Graph) -> BTreeMap<(&str, u64), usize> {
    let mut counts = BTreeMap::new();
    for buf in graph.bufs().map(|b| graph.buf(b)) {
        *counts.entry((graph.cache_name(buf.cache), buf.size.0)).or_default() += 1;
    }
    counts
}

/// Ops by operation, pipe, cycles and what their operands are, in any order.
fn ops(graph: &Graph) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for n in graph.nodes().filter(|&n| graph.kind(n) == NodeKind::Op) {
        let operand = |&b| format!("{}:{}", graph.cache_name(graph.buf(b).cache), graph.buf(b).size);
        let mut operands: Vec<_> = graph.operands(n).iter().map(operand).collect();
        operands.sort();
        let pipe = graph.pipe(n).map(|p| &graph.pipe_names()[p]);
        *counts.entry(format!("{} {pipe:?} {:?} {operands:?}", graph.op_name(n), graph.cycles(n))).or_default() += 1;
    }
    counts
}

/// Edges by the operations that they join.
fn edges(graph: &Graph) -> BTreeMap<(&str, &str), usize> {
    let mut counts = BTreeMap::new();
    for n in graph.nodes() {
        for &s in graph.successors(n) {
            *counts.entry((graph.op_name(n), graph.op_name(s))).or_default() += 1;
        }
    }
    counts
}

#[test]
fn matmul_has_the_size_of_the_public_ones() {
    let small = make("matmul(m=8,n=8,k=8)");
    assert_eq!((small.node_count(), small.edge_count()), (4160, 7104));
    let expected = [(("L0A", 128), 512), (("L0B", 128), 512), (("L0C", 256), 64), (("L1", 128), 128)];
    assert_eq!(buffers(&small), BTreeMap::from(expected));
    let large = make("matmul(m=16,n=16,k=16)");
    assert_eq!((large.node_count(), large.edge_count()), (30_976, 55_040));
    let expected = [(("L0A", 128), 4096), (("L0B", 128), 4096), (("L0C", 256), 256), (("L1", 128), 512)];
    assert_eq!(buffers(&large), BTreeMap::from(expected));
}

#[test]
fn matmul_with_frees_at_the_end_is_the_public_graph_node_by_node() {
    for (text, name) in
        [("matmul(m=8,n=8,k=8,free=end)", "Matmul_Case0"), ("matmul(m=16,n=16,k=16,free=end)", "Matmul_Case1")]
    {
        let Some(theirs) = public(name) else { return };
        let ours = make(text);
        assert_eq!(ours.node_count(), theirs.node_count());
        for n in ours.nodes() {
            let t = theirs.node_by_id(ours.id(n)).unwrap();
            assert_eq!(
                (ours.op_name(n), ours.cycles(n)),
                (theirs.op_name(t), theirs.cycles(t)),
                "{name} {}",
                ours.id(n)
            );
            let operands = |g: &Graph, n| g.operands(n).iter().map(|&b| g.buf(b).id.0).collect::<Vec<_>>();
            assert_eq!(operands(&ours, n), operands(&theirs, t), "{name} {}", ours.id(n));
            let successors = |g: &Graph, n| {
                let mut ids: Vec<_> = g.successors(n).iter().map(|&s| g.id(s).0).collect();
                ids.sort_unstable();
                ids
            };
            assert_eq!(successors(&ours, n), successors(&theirs, t), "{name} {}", ours.id(n));
        }
    }
}

#[test]
fn flash_attention_has_the_parts_of_the_public_one() {
    let ours = make("flash-attention(q=4,kv=4,d=2)");
    let Some(theirs) = public("FlashAttention_Case0") else { return };
    assert_eq!(buffers(&ours), buffers(&theirs));
    assert_eq!(ops(&ours), ops(&theirs));
    assert_eq!(edges(&ours), edges(&theirs));
    assert_eq!((ours.node_count(), ours.edge_count()), (1716, 2712));
}

#[test]
fn conv_comes_close_to_the_public_one() {
    let ours = make("conv(layers=20,channels=4,rows=1)");
    assert_eq!((ours.node_count(), ours.edge_count()), (2576, 3926));
    let count = |graph: &Graph, op: &str| graph.nodes().filter(|&n| graph.op_name(n) == op).count();
    let named = ["COPY_IN", "MOVE", "CONV", "CONV_ADD", "D2S", "COPY_OUT"];
    assert_eq!(named.map(|op| count(&ours, op)), [324, 320, 280, 40, 0, 4]);
    let Some(theirs) = public("Conv_Case0") else { return };
    assert_eq!((theirs.node_count(), theirs.edge_count()), (2580, 3869));
    assert_eq!(named.map(|op| count(&theirs, op)), [303, 300, 274, 26, 8, 7]);
}
