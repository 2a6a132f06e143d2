//! Large graphs: `cargo test --release -p spillbench-workloads --test scale -- --ignored --nocapture`.

use spillbench_workloads::generate;
use std::time::{Duration, Instant};

#[test]
#[ignore = "times the generation of graphs of a million nodes; meant for a release build on a quiet machine"]
fn a_million_nodes_take_less_than_two_seconds() {
    for text in [
        "matmul(m=50,n=50,k=56)",
        "flash-attention(q=92,kv=100,d=2)",
        "conv(layers=401,channels=8,rows=8)",
        "transformer-block(rows=26,heads=16,head=1,ffn=64)",
        "stencil(width=100,height=100,steps=33)",
        "reduction-tree(leaves=167000)",
        "layered-dag(nodes=1000100,capacity=1000000)",
        "series-parallel(nodes=1000100,width=64,capacity=100000)",
        "chain(nodes=1000100)",
        "fork-join(nodes=1000100)",
        "trace-zipf(nodes=1000100,objects=50000,capacity=1000000)",
        "trace-loop(nodes=1000100)",
        "trace-scan(nodes=1000100)",
        "trace-phases(nodes=1000100,objects=50000,capacity=1000000)",
    ] {
        let spec = text.parse().unwrap();
        let start = Instant::now();
        let graph = generate(&spec).unwrap();
        let taken = start.elapsed();
        println!("{text}: {} nodes, {} edges in {taken:.2?}", graph.node_count(), graph.edge_count());
        assert!(graph.node_count() >= 1_000_000, "{text}");
        assert!(taken < Duration::from_secs(2), "{text}: {taken:?}");
    }
}
