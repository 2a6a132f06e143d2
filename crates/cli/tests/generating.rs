//! `generate` and `list workloads`: graphs by family and parameters.

mod common;

use common::Place;
use insta::assert_snapshot;

#[test]
fn a_graph_is_written_where_and_as_the_name_says() {
    let place = Place::new();
    let ran = place.run("generate matmul m=4 n=8 k=4 --out graphs/matmul-4x8x4.json");
    assert_eq!((ran.status, ran.out.as_str()), (0, "graphs/matmul-4x8x4.json\n"));
    assert_snapshot!(ran.err, @"note: matmul(m=4,k=4): 1,136 nodes, 1,856 edges, 336 buffers");
    let shipped = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets/matmul-4x8x4.json");
    assert_eq!(place.text("graphs/matmul-4x8x4.json"), std::fs::read_to_string(shipped).unwrap());

    let ran = place.run("generate fft stages=2 --out fft.csv");
    assert_eq!((ran.status, ran.out.as_str()), (0, "fft_Nodes.csv\nfft_Edges.csv\n"));
    assert!(ran.err.contains("note: CSV has no place for the Meta object"), "{}", ran.err);
    assert!(place.text("fft_Nodes.csv").starts_with("Id,Op,BufId,Size,Type,Pipe,Cycles,Bufs\n"));
    assert_eq!(place.names("."), ["fft_Edges.csv", "fft_Nodes.csv", "graphs"]);
}

#[test]
fn a_graph_on_standard_output_is_read_by_the_other_commands() {
    let place = Place::new();
    let graph = place.good("generate layered-dag(nodes=300,width=8) pressure=2 --seed 7");
    assert_eq!(graph, place.good("generate layered-dag(nodes=300,width=8,pressure=2,seed=7) --out -"));
    assert_ne!(graph, place.good("generate layered-dag(nodes=300,width=8,pressure=2)"));
    let ran = place.run_with("inspect - --json", graph);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(json["fits"], true);
    let peak = json["caches"][0]["peak_demand"].as_u64().unwrap();
    assert!((1844..=2252).contains(&peak), "peak demand {peak} is not twice 1024, give or take a tenth");
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_nothing_is_written() {
    let place = Place::new();
    assert_snapshot!(place.refused("generate matmul m=4 kk=4 --out a.json"), @r"
    error: column 1 of `kk=4`: matmul has no parameter kk (did you mean k?); it has m, n, k, tile, order, free, seed
    help: `spillbench list workloads` shows families with their parameters and ranges
    ");
    assert_snapshot!(place.refused("generate matmull --out a.json"), @r"
    error: column 1 of `matmull`: there is no family matmull (did you mean matmul?); there are matmul, flash-attention, conv, transformer-block, mlp, moe, stencil, fft, reduction-tree, layered-dag, series-parallel, chain, fork-join, trace-zipf, trace-loop, trace-scan, trace-phases
    help: `spillbench list workloads` shows families with their parameters and ranges
    ");
    assert_snapshot!(place.refused("generate fft stages=40 --out a.json"), @r"
    error: column 8 of `stages=40`: stages is 40, outside 1 to 24
    help: `spillbench list workloads` shows families with their parameters and ranges
    ");
    assert_snapshot!(place.refused("generate fft stages=4 seed=1 --seed 2 --out a.json"), @r"
    error: column 1 of `seed=2`: seed is given twice
    help: `spillbench list workloads` shows families with their parameters and ranges
    ");
    assert_snapshot!(place.refused("generate matmul m=4000 n=4000 k=4000 --out a.json"), @r"
    error: the graph would have 448144000000 nodes, more than the 5000000 that a generated graph may have
    help: give smaller parameters
    ");
    assert_snapshot!(place.refused("generate chain width=1 reuse=0 --out a.json"), @r"error: at this pressure one op needs 1536 bytes of the 1024; less pressure, or more that lives side by side, helps");
    assert_snapshot!(place.refused("generate chain capacity=8 --out a.json"), @r"error: a peak demand of 12 bytes cannot be met within 10 %: 19 buffers are live at the peak, and whole bytes come to 19; a larger capacity helps");
    assert_snapshot!(place.refused("generate fft --out graph.txt"), @r"
    error: graph.txt: the name does not say in which format to write
    help: end it in .json, in .csv for a pair of files, or give - for JSON on standard output
    ");
    assert_eq!(place.names("."), [""; 0]);
}

#[test]
fn tiles_are_sized_to_a_hardware_and_a_given_tile_is_held_to_it() {
    let place = Place::new();
    let caches = [("L1", 4096), ("L0A", 100), ("L0B", 256), ("L0C", 512)];
    let toml: String = caches.map(|(name, bytes)| format!("[caches.{name}]\ncapacity = {bytes}\n")).concat();
    place.put("npu.toml", &toml);
    let ran = place.run("generate matmul m=2 n=2 k=2 --hardware npu.toml --out a.json");
    // L0A takes tiles of 64 bytes, not of 128. 28 buffers: 8 in L1, 8 in L0A, 8 in L0B, 4 in L0C; 56 cache
    // nodes, 8 loads, 16 moves, 8 products and 4 stores.
    assert_snapshot!(ran.err, @"note: matmul(m=2,n=2,k=2,tile=64): 92 nodes, 132 edges, 28 buffers");
    let refused = place.refused("generate matmul m=2 n=2 k=2 tile=128 --hardware npu.toml --out b.json");
    assert!(refused.contains("of 128 bytes is larger than L0A (100 bytes)"), "{refused}");
    assert_eq!(place.names("."), ["a.json", "npu.toml"]);
}

#[test]
fn workloads_are_listed_with_parameters_defaults_and_ranges() {
    let place = Place::new();
    let all = place.good("list");
    assert!(all.contains("flash-attention") && !all.contains("head dimension"), "{all}");
    let listed = place.good("list workloads");
    let matmul = listed.lines().skip(1).take(7).collect::<Vec<_>>().join("\n");
    assert_snapshot!(matmul, @r"
     matmul             matrix product over tiles: L1 to L0A and L0B, accumulated in L0C
       m=8                tiles of A and C from top to bottom (1 to 4096)
       n=8                tiles of B and C from left to right (1 to 4096)
       k=8                tiles of A from left to right (1 to 4096)
       tile=128           bytes of a tile of 16-bit numbers in L0A or L0B (2 to 1099511627776)
       order=row          the order of the products (row, zigzag, column, outer)
       free=last-use      where FREEs stand: behind the last use or at the end of the program (last-use, end)
    ");
    let json: serde_json::Value = serde_json::from_str(&place.good("list workloads --json")).unwrap();
    let family = &json["workloads"][0];
    assert_eq!((&family["name"], &family["parameters"][0]["default"]), (&"matmul".into(), &"8".into()));
    assert_eq!(family["parameters"][0]["range"], "1 to 4096");
}
