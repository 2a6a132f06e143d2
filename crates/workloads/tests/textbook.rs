//! Lowered matmul against the reload counts of the textbook: row order sweeps B once per row of A,
//! zigzag order turns around and meets the blocks it used last.

use spillbench_core::planner::Workspace;
use spillbench_core::{Bytes, Graph, Hardware, Machine, Schedule};
use spillbench_heuristics::{Policy, heuristic};
use spillbench_workloads::generate;

/// Bytes of a block.
const TILE: u64 = 128;

/// Plans an outer product, `matmul(m, n, k=1)`, least recently used, with room for `blocks` blocks
/// of A and B in L1; returns how often blocks of A and of B come back.
fn reloads(m: u64, n: u64, order: &str, blocks: u64) -> (u64, u64) {
    let graph = generate(&format!("matmul(m={m},n={n},k=1,order={order})").parse().unwrap()).unwrap();
    let mut hardware = Hardware::default();
    hardware.set_capacity("L1", Bytes(blocks * TILE)).unwrap();
    let machine = Machine::resolve(&graph, &hardware).unwrap();
    let policy = Policy { heuristic: heuristic("lru").unwrap(), ..Policy::default() };
    let plan = policy.plan(&graph, &machine, &Schedule::default_for(&graph), &mut Workspace::default()).unwrap();
    assert!(spillbench_core::checker::check(&graph, &machine, &plan).is_valid());
    let metrics = spillbench_core::metrics::measure(&graph, &machine, &plan).unwrap();
    // Blocks of A and B are backed: a reload moves a block once.
    assert_eq!(metrics.extra_movement, Bytes(TILE * plan.spills.len() as u64));
    let of_a = plan.spills.iter().filter(|s| feeds(&graph, s.buf.0) == "L0A").count() as u64;
    (of_a, plan.spills.len() as u64 - of_a)
}

/// The cache that a block of L1 is moved to.
fn feeds(graph: &Graph, buf: u64) -> &str {
    let buf = graph.buf_by_id(spillbench_core::BufId(buf)).unwrap();
    let mover = graph.users(buf).iter().find(|&&n| graph.op_name(n) == "MOVE").unwrap();
    let target = graph.operands(*mover).iter().find(|&&b| b != buf).unwrap();
    graph.cache_name(graph.buf(*target).cache)
}

/// Row order, 8 × 8 blocks of C, 4 resident blocks: the block of A in use takes one, 3 are left for
/// B. B is swept as 0 1 … 7 in each of the 8 rows.
///
/// The first row loads each block for the first time and leaves 5 6 7. Each later row finds at
/// block 0 the blocks 5 6 7, evicts 5, at block 1 evicts 6, and so on: least recently used loses
/// every block before its turn comes, 8 reloads a row, (8 - 1) · 8 = 56 in all: the textbook count.
/// The last row does better by two, because a block that is not needed again is freed: block 0
/// evicts 5 but leaves its place to 1, that to 2, and so on up to 5, so that 6 and 7 are still
/// there: 56 - 2 = 54.
#[test]
fn row_order_reloads_b_in_every_row() {
    assert_eq!(reloads(8, 8, "row", 4), (0, 54));
}

/// Zigzag order, the same blocks. A row that ends with blocks 5 6 7 of B is followed by one that
/// begins 7 6 5: three hits, then 5 reloads, each evicting the block used longest ago, and it ends
/// with 2 1 0, with which the next begins. (8 - 1) · (8 - 3) = 35 reloads; the last row frees
/// blocks, but those before them in it are out already.
#[test]
fn zigzag_order_reloads_b_but_for_the_resident_blocks() {
    assert_eq!(reloads(8, 8, "zigzag", 4), (0, 35));
}

/// The same counts for other shapes: with r = blocks - 1 places for B, n > r, row order reloads
/// (m - 1)·n - (r - 1) blocks and zigzag order (m - 1)·(n - r).
#[test]
fn the_counts_hold_for_all_shapes() {
    for (m, n, blocks) in [(2, 4, 3), (3, 7, 3), (5, 6, 4), (8, 5, 5), (4, 16, 6), (16, 9, 8)] {
        let r = blocks - 1;
        assert_eq!(reloads(m, n, "row", blocks), (0, (m - 1) * n - (r - 1)), "row {m} {n} {blocks}");
        assert_eq!(reloads(m, n, "zigzag", blocks), (0, (m - 1) * (n - r)), "zigzag {m} {n} {blocks}");
    }
}

/// With a place for all of B and one block of A, nothing comes back.
#[test]
fn nothing_is_reloaded_when_b_fits() {
    assert_eq!(reloads(8, 8, "row", 9), (0, 0));
    assert_eq!(reloads(8, 8, "zigzag", 9), (0, 0));
}
