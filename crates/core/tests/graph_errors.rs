//! Every way in which a graph can be unsound, each with its place and numbers, and that nothing
//! false is said beside it. (`TooMany` would take 2³² nodes.)

use spillbench_core::graph::{CycleStep, Field, GraphError, GraphErrors, NodeSpec, Notice};
use spillbench_core::{BufId, Bytes, Graph, GraphBuilder, Id};

/// One buffer of 6 bytes of UB: ALLOC 0, EXP 1, FREE 2, in a chain.
fn sound() -> GraphBuilder {
    let mut g = GraphBuilder::new();
    g.alloc(0, 5, 6, "UB").op(1, "EXP", "VECTOR", 3, &[5]).free(2, 5, 6, "UB").edge(0, 1).edge(1, 2);
    g
}

fn errors(builder: GraphBuilder) -> GraphErrors {
    builder.build().unwrap_err()
}

/// The only error there is.
fn error(builder: GraphBuilder) -> GraphError {
    let errors = errors(builder);
    assert_eq!(errors.total, 1, "{:?}", errors.list);
    errors.list.into_iter().next().unwrap()
}

fn message(builder: GraphBuilder) -> String {
    error(builder).to_string()
}

#[test]
fn the_sound_graph_is_sound() {
    let (graph, notices) = sound().build().unwrap();
    assert_eq!((graph.node_count(), graph.edge_count(), notices), (3, 2, vec![]));
}

#[test]
fn empty() {
    assert_eq!(error(GraphBuilder::new()), GraphError::Empty);
    let mut edges_only = GraphBuilder::new();
    edges_only.edge(0, 1);
    assert_eq!(error(edges_only), GraphError::Empty);
}

#[test]
fn duplicate_id() {
    for scale in [1, 1 << 40] {
        let mut g = GraphBuilder::new();
        let id = scale;
        g.alloc(0, 5, 6, "UB").op(id, "EXP", "V", 3, &[5]).free(2 * id, 5, 6, "UB").op(id, "ADD", "V", 3, &[5]);
        assert_eq!(error(g), GraphError::DuplicateId { id: Id(id), first: 1, second: 3 });
    }
    let mut thrice = sound();
    thrice.op(1, "A", "V", 1, &[]).op(1, "B", "V", 1, &[]);
    let list = errors(thrice).list;
    let twice = |second| GraphError::DuplicateId { id: Id(1), first: 1, second };
    assert_eq!(list, [twice(3), twice(4)]);
}

#[test]
fn id_out_of_range() {
    let largest = i64::MAX as u64;
    let mut g = sound();
    g.op(largest, "EXP", "V", 1, &[]);
    assert_eq!(g.build().unwrap().0.max_id(), Id(largest));
    let mut g = sound();
    g.op(largest + 1, "EXP", "V", 1, &[]);
    assert_eq!(error(g), GraphError::IdOutOfRange { field: Field::Id, value: largest + 1, place: 3 });
    let mut g = sound();
    g.alloc(7, u64::MAX, 1, "UB").free(8, u64::MAX, 1, "UB");
    let out = |place| GraphError::IdOutOfRange { field: Field::BufId, value: u64::MAX, place };
    assert_eq!(errors(g).list, [out(3), out(4)]);
}

#[test]
fn a_missing_field_is_told_once_and_nothing_is_made_of_it() {
    let spec = NodeSpec { id: 0, op: "ALLOC", buf: Some(5), size: Some(6), cache: Some("UB"), ..Default::default() };
    let cases = [(NodeSpec { size: None, ..spec }, Field::Size), (NodeSpec { cache: None, ..spec }, Field::Type)];
    for (node, field) in cases {
        for op in ["ALLOC", "FREE"] {
            let (alloc, free) = if op == "ALLOC" { (node, spec) } else { (spec, node) };
            let mut g = GraphBuilder::new();
            g.node(alloc).op(1, "EXP", "V", 3, &[5]).node(NodeSpec { id: 2, op: "FREE", ..free });
            let id = if op == "ALLOC" { Id(0) } else { Id(2) };
            assert_eq!(error(g), GraphError::MissingField { node: id, op: op.to_owned(), field });
        }
    }
    let mut g = sound();
    g.node(NodeSpec { id: 9, op: "ALLOC", size: Some(1), cache: Some("UB"), ..Default::default() });
    assert_eq!(message(g), "node 9 (ALLOC) has no BufId");
    let mut g = sound();
    g.node(NodeSpec { id: 9, op: "FREE", ..Default::default() });
    let missing = errors(g).list.into_iter().map(|e| e.to_string()).collect::<Vec<_>>();
    assert_eq!(missing, ["BufId", "Size", "Type"].map(|f| format!("node 9 (FREE) has no {f}")));
}

#[test]
fn zero_size() {
    let mut g = GraphBuilder::new();
    g.alloc(0, 5, 0, "UB").free(1, 5, 0, "UB");
    assert_eq!(errors(g).list, [0, 1].map(|n| GraphError::ZeroSize { node: Id(n), buf: BufId(5) }));
}

#[test]
fn no_alloc_and_unknown_buffer() {
    let mut g = sound();
    g.free(3, 8, 6, "UB");
    assert_eq!(error(g), GraphError::NoAlloc { buf: BufId(8), node: Id(3) });
    let mut g = sound();
    g.op(3, "ADD", "V", 1, &[5, 8]);
    assert_eq!(message(g), "node 3 (ADD) uses buffer 8, which has no ALLOC");
    // With a FREE and a user, and still no ALLOC: both say what is true.
    let mut g = sound();
    g.op(3, "ADD", "V", 1, &[8]).free(4, 8, 6, "UB");
    let told: Vec<_> = errors(g).list.iter().map(GraphError::to_string).collect();
    assert_eq!(told, ["buffer 8 has no ALLOC (its FREE is node 4)", "node 3 (ADD) uses buffer 8, which has no ALLOC"]);
}

#[test]
fn no_free() {
    let mut g = sound();
    g.alloc(3, 8, 6, "UB").op(4, "ADD", "V", 1, &[8]);
    assert_eq!(error(g), GraphError::NoFree { buf: BufId(8), alloc: Id(3) });
}

#[test]
fn twice() {
    let mut g = sound();
    g.alloc(3, 5, 6, "UB");
    assert_eq!(error(g), GraphError::Twice { buf: BufId(5), op: "ALLOC", first: Id(0), second: Id(3) });
    let mut g = sound();
    g.free(3, 5, 6, "UB");
    assert_eq!(error(g), GraphError::Twice { buf: BufId(5), op: "FREE", first: Id(2), second: Id(3) });
    // Two of each is not two buffers.
    let mut g = sound();
    g.alloc(3, 5, 6, "UB").free(4, 5, 6, "UB");
    assert_eq!(errors(g).total, 2);
}

#[test]
fn alloc_and_free_that_disagree() {
    let mut g = GraphBuilder::new();
    g.alloc(0, 5, 6, "UB").free(1, 5, 7, "L1");
    let told: Vec<_> = errors(g).list.iter().map(GraphError::to_string).collect();
    let size = "buffer 5 has size 6 at its ALLOC (node 0) and 7 at its FREE (node 1)";
    let cache = "buffer 5 is of UB at its ALLOC (node 0) and of L1 at its FREE (node 1)";
    assert_eq!(told, [size, cache]);
}

#[test]
fn writes_outside_bufs() {
    let mut g = sound();
    g.alloc(3, 8, 1, "UB").free(4, 8, 1, "UB");
    let (bufs, writes) = (Some(&[5][..]), Some(&[8, 5, 9][..]));
    g.node(NodeSpec { id: 6, op: "ADD", pipe: Some("V"), cycles: Some(1), bufs, writes, ..Default::default() });
    assert_eq!(errors(g).list, [8, 9].map(|b| GraphError::WritesOutsideBufs { node: Id(6), buf: BufId(b) }));
}

#[test]
fn edge_to_missing() {
    let mut g = sound();
    g.edge(1, 9).edge(8, 1).edge(8, 9);
    let told: Vec<_> = errors(g).list.iter().map(GraphError::to_string).collect();
    let message =
        |from, to, place, missing| format!("edge {from} -> {to} (Edges[{place}]): there is no node {missing}");
    assert_eq!(told, [message(1, 9, 2, 9), message(8, 1, 3, 8), message(8, 9, 4, 8)]);
}

fn step(from: u64, to: u64) -> CycleStep {
    CycleStep { from: Id(from), to: Id(to), implied_by: None }
}

#[test]
fn one_cycle_is_printed() {
    let mut g = sound();
    g.op(3, "A", "V", 1, &[]).op(4, "B", "V", 1, &[]).op(5, "C", "V", 1, &[]).op(6, "D", "V", 1, &[]);
    // 6 hangs behind the cycle 3 → 4 → 5 → 3 and is no part of it.
    g.edge(3, 4).edge(4, 5).edge(5, 3).edge(5, 6);
    let GraphError::Cycle { mut steps } = error(g) else { panic!() };
    steps.sort_by_key(|s| s.from);
    assert_eq!(steps, [step(3, 4), step(4, 5), step(5, 3)]);
    let mut g = sound();
    g.edge(1, 1);
    assert_eq!(message(g), "the graph has a cycle: 1 -> 1");
    // FREE before ALLOC of the same buffer.
    let mut g = GraphBuilder::new();
    g.alloc(0, 5, 6, "UB").free(1, 5, 6, "UB").edge(1, 0);
    let GraphError::Cycle { mut steps } = error(g) else { panic!() };
    steps.sort_by_key(|s| s.from);
    assert_eq!(steps, [CycleStep { implied_by: Some(BufId(5)), ..step(0, 1) }, step(1, 0)]);
}

#[test]
fn a_long_cycle_is_shortened_on_one_screen() {
    let mut g = sound();
    let n = 100_000;
    for k in 0..n {
        g.op(10 + k, "A", "V", 0, &[]).edge(10 + k, 10 + (k + 1) % n);
    }
    let told = message(g);
    assert!(told.starts_with("the graph has a cycle: ") && told.contains(" -> ... 99988 more ... -> "), "{told}");
    assert!(told.len() < 300);
}

#[test]
fn use_outside_life() {
    // 2 (FREE) → 3 → 1: the edges put the use after the end.
    let mut g = GraphBuilder::new();
    g.alloc(0, 5, 6, "UB").op(1, "EXP", "V", 1, &[5]).free(2, 5, 6, "UB").op(3, "ADD", "V", 1, &[]);
    g.edge(2, 3).edge(3, 1);
    let expected = GraphError::UseOutsideLife {
        node: Id(1),
        buf: BufId(5),
        side: "after",
        cache_op: "FREE",
        cache_node: Id(2),
        steps: vec![step(2, 3), step(3, 1)],
    };
    assert_eq!(error(g), expected);
    assert_eq!(
        expected.to_string(),
        "node 1 uses buffer 5 outside its life: the edges put it after FREE (node 2): 2 -> 3 -> 1"
    );
    let mut g = GraphBuilder::new();
    g.alloc(0, 5, 6, "UB").op(1, "EXP", "V", 1, &[5]).free(2, 5, 6, "UB").edge(1, 0);
    assert_eq!(message(g), "node 1 uses buffer 5 outside its life: the edges put it before ALLOC (node 0): 1 -> 0");
}

#[test]
fn sums_past_64_bits() {
    let half = 1 << 63;
    let mut g = GraphBuilder::new();
    g.alloc(0, 0, half - 1, "UB").free(1, 0, half - 1, "UB");
    assert_eq!(g.build().unwrap().0.buf(0.into()).movement(), Bytes(u64::MAX - 1));
    let mut g = GraphBuilder::new();
    g.alloc(0, 0, half - 1, "UB").free(1, 0, half - 1, "UB").alloc(2, 1, 1, "L1").free(3, 1, 1, "L1");
    assert_eq!(message(g), "the sum of all sizes, each counted twice, passes 2^64-1 at node 2");
    let mut g = sound();
    g.op(3, "A", "V", u64::MAX - 3, &[]);
    assert!(g.build().is_ok());
    let mut g = sound();
    g.op(3, "A", "V", u64::MAX - 2, &[]);
    assert_eq!(message(g), "the sum of all cycles passes 2^64-1 at node 3");
    // Cycles of an ALLOC mean nothing and count for nothing.
    let mut g = sound();
    let (buf, size, cache, cycles) = (Some(8), Some(1), Some("UB"), Some(u64::MAX));
    g.node(NodeSpec { id: 3, op: "ALLOC", buf, size, cache, cycles, ..Default::default() }).free(4, 8, 1, "UB");
    let (_, notices) = g.build().unwrap();
    assert_eq!(notices, [Notice::StrayField { field: Field::Cycles, on_cache_node: true, count: 1, first: Id(3) }]);
}

#[test]
fn a_hundred_errors_are_listed_and_all_counted() {
    let mut g = sound();
    for k in 0..250 {
        g.edge(1, 1000 + k).edge(0, 1);
    }
    let errors = errors(g);
    assert_eq!((errors.list.len(), errors.total), (GraphErrors::LISTED, 250));
    assert!(errors.to_string().starts_with("250 errors in the graph; the first: edge 1 -> 1000 (Edges[2])"));
}

fn ids(graph: &Graph, order: &[spillbench_core::index::NodeIx]) -> Vec<u64> {
    order.iter().map(|&n| graph.id(n).0).collect()
}

#[test]
fn orders_are_by_id_and_topological() {
    let mut g = GraphBuilder::new();
    // By id 1 stands before 9, which it needs; 4 and 7 are free of edges.
    g.op(7, "A", "V", 1, &[]).op(1, "B", "V", 1, &[]).op(9, "C", "V", 1, &[]).op(4, "D", "V", 1, &[]).edge(9, 1);
    let graph = g.build().unwrap().0;
    assert_eq!(ids(&graph, &graph.id_order()), [1, 4, 7, 9]);
    assert!(!graph.is_topological(&graph.id_order()));
    assert_eq!(ids(&graph, &graph.topological_order()), [4, 7, 9, 1]);
    assert!(graph.is_topological(&graph.topological_order()));
}

#[test]
fn implied_edges_order_alloc_users_and_free() {
    let mut g = GraphBuilder::new();
    g.free(0, 5, 6, "UB").op(1, "EXP", "V", 1, &[5]).alloc(2, 5, 6, "UB");
    let graph = g.build().unwrap().0;
    assert_eq!(ids(&graph, &graph.topological_order()), [2, 1, 0]);
}
