//! ONNX models become graphs: shapes are those of the standard, tiles are lowered by the rules of
//! the operators, nothing is dropped, and broken files are named.

#[path = "../fuzz/onnx_file.rs"]
mod onnx_file;
#[allow(dead_code)] // Reading messages is for the fuzzer.
#[path = "../fuzz/wire.rs"]
mod wire;

use onnx_file::{Attribute as A, FLOAT, INT8, INT64, Model, fixed, info, list, node, weight};
use spillbench_core::formats::graph_json;
use spillbench_core::planner::Workspace;
use spillbench_core::schedule::Normalize;
use spillbench_core::{Graph, Hardware, Machine, Schedule, checker};
use spillbench_heuristics::Policy;
use spillbench_workloads::import::onnx::{OnnxError, OnnxNotice, OnnxOptions, import};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn imported(model: &Model) -> (Graph, Vec<OnnxNotice>) {
    import(&model.encode(), &OnnxOptions::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn ops(graph: &Graph) -> BTreeMap<&str, usize> {
    graph.nodes().fold(BTreeMap::new(), |mut ops, n| {
        *ops.entry(graph.op_name(n)).or_insert(0) += 1;
        ops
    })
}

fn error(model: &Model) -> String {
    import(&model.encode(), &OnnxOptions::default()).expect_err("a broken model").to_string()
}

/// The shape that an operator gives: the output is declared wrongly, and the notice tells both.
fn inferred(opset: i64, op: &str, shapes: &[&[i64]], lists: &[&[i64]], attributes: &[(&str, A<'_>)]) -> String {
    let names: Vec<_> = (0..shapes.len() + lists.len()).map(|i| format!("x{i}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let model = Model {
        nodes: vec![node(op, &names, &["y"], attributes)],
        weights: lists.iter().zip(&names[shapes.len()..]).map(|(values, name)| list(name, values)).collect(),
        inputs: shapes.iter().zip(&names).map(|(dims, name)| fixed(name, dims, FLOAT)).collect(),
        outputs: vec![fixed("y", &[977, 3], FLOAT)],
        opset,
    };
    // A view alone is no work; a consumer makes the network run.
    let model = Model { nodes: [model.nodes, vec![node("Relu", &["x0"], &["z"], &[])]].concat(), ..model };
    let (_, notices) = imported(&model);
    let shape = |n: &OnnxNotice| match n {
        OnnxNotice::ShapeDiffers { inferred, .. } => Some(inferred.to_string()),
        _ => None,
    };
    notices.iter().find_map(shape).unwrap_or_else(|| format!("{notices:?}"))
}

#[test]
fn shapes_are_those_of_the_standard() {
    let x: &[i64] = &[2, 6, 15, 20];
    let conv = |w: &[i64], attributes: &[(&str, A<'_>)]| inferred(13, "Conv", &[x, w], &[], attributes);
    assert_eq!(conv(&[8, 6, 3, 3], &[]), "[2x8x13x18]");
    assert_eq!(conv(&[8, 6, 3, 3], &[("pads", A::Ints(&[1, 1, 1, 1])), ("strides", A::Ints(&[2, 3]))]), "[2x8x8x7]");
    assert_eq!(conv(&[8, 6, 3, 3], &[("dilations", A::Ints(&[2, 2]))]), "[2x8x11x16]");
    assert_eq!(conv(&[12, 2, 3, 3], &[("group", A::Int(3))]), "[2x12x13x18]");
    assert_eq!(
        conv(&[8, 6, 3, 3], &[("auto_pad", A::Text("SAME_UPPER")), ("strides", A::Ints(&[2, 2]))]),
        "[2x8x8x10]"
    );
    let up = [("strides", A::Ints(&[2, 2])), ("pads", A::Ints(&[1, 1, 1, 1])), ("output_padding", A::Ints(&[1, 1]))];
    assert_eq!(inferred(13, "ConvTranspose", &[x, &[6, 4, 3, 3]], &[], &up), "[2x4x30x40]");
    let pool = |attributes: &[(&str, A<'_>)]| inferred(13, "MaxPool", &[x], &[], attributes);
    let (kernel, strides) = (("kernel_shape", A::Ints(&[3, 3])), ("strides", A::Ints(&[2, 2])));
    assert_eq!(pool(&[("kernel_shape", A::Ints(&[3, 3])), ("strides", A::Ints(&[2, 2]))]), "[2x6x7x9]");
    assert_eq!(pool(&[kernel, strides, ("ceil_mode", A::Int(1))]), "[2x6x7x10]");
    assert_eq!(inferred(13, "GlobalAveragePool", &[x], &[], &[]), "[2x6x1x1]");
    assert_eq!(inferred(13, "LRN", &[x], &[], &[("size", A::Int(5))]), "[2x6x15x20]");
    assert_eq!(inferred(13, "MatMul", &[&[5, 1, 4, 7], &[3, 7, 2]], &[], &[]), "[5x3x4x2]");
    assert_eq!(inferred(13, "MatMul", &[&[7], &[3, 7, 2]], &[], &[]), "[3x2]");
    assert_eq!(inferred(13, "MatMul", &[&[3, 4, 7], &[7]], &[], &[]), "[3x4]");
    let transposed = [("transA", A::Int(1)), ("transB", A::Int(1))];
    assert_eq!(inferred(13, "Gemm", &[&[7, 4], &[5, 7], &[5]], &[], &transposed), "[4x5]");
    assert_eq!(inferred(13, "Add", &[&[4, 1, 6], &[5, 1]], &[], &[]), "[4x5x6]");
    assert_eq!(
        inferred(6, "Mul", &[&[4, 5, 6], &[5]], &[], &[("broadcast", A::Int(1)), ("axis", A::Int(1))]),
        "[4x5x6]"
    );
    assert_eq!(
        inferred(13, "ReduceMean", &[&[4, 5, 6]], &[], &[("axes", A::Ints(&[-1])), ("keepdims", A::Int(0))]),
        "[4x5]"
    );
    assert_eq!(inferred(13, "ReduceSum", &[&[4, 5, 6]], &[&[1]], &[]), "[4x1x6]");
    assert_eq!(inferred(13, "Softmax", &[&[4, 5, 6]], &[], &[]), "[4x5x6]");
    assert_eq!(inferred(17, "LayerNormalization", &[&[4, 5, 6], &[6], &[6]], &[], &[]), "[4x5x6]");
    assert_eq!(inferred(13, "Reshape", &[&[4, 5, 6]], &[&[0, -1]], &[]), "[4x30]");
    assert_eq!(inferred(13, "Flatten", &[&[4, 5, 6]], &[], &[("axis", A::Int(2))]), "[20x6]");
    assert_eq!(inferred(13, "Squeeze", &[&[4, 1, 6, 1]], &[], &[]), "[4x6]");
    assert_eq!(inferred(13, "Unsqueeze", &[&[4, 6]], &[&[0, -1]], &[]), "[1x4x6x1]");
    assert_eq!(inferred(13, "Transpose", &[&[4, 5, 6]], &[], &[("perm", A::Ints(&[2, 0, 1]))]), "[6x4x5]");
    assert_eq!(inferred(13, "Concat", &[&[4, 5], &[4, 7]], &[], &[("axis", A::Int(-1))]), "[4x12]");
    assert_eq!(inferred(13, "Split", &[&[9, 5]], &[&[2, 7]], &[]), "[2x5]");
    assert_eq!(inferred(13, "Slice", &[&[9, 5]], &[&[-1, 1], &[-100, 4], &[0, 1], &[-2, 2]], &[]), "[5x2]");
    assert_eq!(inferred(13, "Pad", &[&[9, 5]], &[&[1, 0, 2, -1]], &[]), "[12x4]");
    assert_eq!(inferred(13, "Expand", &[&[3, 1]], &[&[2, 1, 6]], &[]), "[2x3x6]");
    assert_eq!(inferred(13, "Tile", &[&[3, 2]], &[&[2, 4]], &[]), "[6x8]");
    assert_eq!(inferred(13, "Gather", &[&[9, 5]], &[&[0, 3, 3]], &[]), "[3x5]");
    assert_eq!(inferred(13, "DepthToSpace", &[&[1, 8, 3, 4]], &[], &[("blocksize", A::Int(2))]), "[1x2x6x8]");
    assert_eq!(inferred(9, "Upsample", &[&[1, 8, 3, 4]], &[&[1, 1, 2, 3]], &[]), "[1x8x6x12]");
    assert_eq!(inferred(13, "ArgMax", &[&[4, 5]], &[], &[("axis", A::Int(1))]), "[4x1]");
    assert_eq!(inferred(13, "Where", &[&[4, 1], &[5], &[1, 1]], &[], &[]), "[4x5]");
}

#[test]
fn shapes_that_are_computed_are_followed() {
    // Reshape to [dimension 0 of x, the rest], as exporters write it.
    let model = Model {
        nodes: vec![
            node("Shape", &["x"], &["s"], &[]),
            node("Gather", &["s", "zero"], &["n"], &[("axis", A::Int(0))]),
            node("Concat", &["n", "rest"], &["target"], &[("axis", A::Int(0))]),
            node("Reshape", &["x", "target"], &["r"], &[]),
            node("Relu", &["r"], &["y"], &[]),
        ],
        weights: vec![list("zero", &[0]), list("rest", &[-1])],
        inputs: vec![info("x", &["batch".into(), 3.into(), "side".into()], FLOAT)],
        outputs: vec![fixed("y", &[4, 15], FLOAT)],
        opset: 13,
    };
    let dims = [("batch".to_owned(), 4), ("side".to_owned(), 5)].into();
    let (graph, notices) = import(&model.encode(), &OnnxOptions { dims, ..Default::default() }).unwrap();
    assert_eq!(notices, [OnnxNotice::Folded { count: 2 }]);
    assert_eq!(ops(&graph)["RELU"], 2);
    let (_, notices) = imported(&model);
    let names: Vec<_> = notices
        .iter()
        .filter_map(|n| {
            if let OnnxNotice::DimDefaulted { axis, name, .. } = n { Some((*axis, name.as_deref())) } else { None }
        })
        .collect();
    assert_eq!(names, [(0, Some("batch")), (2, Some("side"))]);
    let dims = [("batsh".to_owned(), 4)].into();
    let error = import(&model.encode(), &OnnxOptions { dims, ..Default::default() }).unwrap_err();
    assert_eq!(error.to_string(), "no input of the network has a dimension \"batsh\" (it has: batch, side)");
}

fn product(side: i64) -> Model {
    Model {
        nodes: vec![node("MatMul", &["a", "b"], &["c"], &[])],
        weights: vec![weight("b", &[side, side], INT8)],
        inputs: vec![fixed("a", &[side, side], INT8)],
        outputs: vec![fixed("c", &[side, side], INT8)],
        opset: 13,
    }
}

/// 8 × 8 × 8 tiles: the size of the public Matmul_Case0.
#[test]
fn a_matrix_product_is_lowered_as_the_public_one() {
    let options = OnnxOptions { tile: Some(64), ..Default::default() };
    let (graph, notices) = import(&product(64).encode(), &options).unwrap();
    assert_eq!(notices, []);
    assert_eq!((graph.node_count(), graph.edge_count()), (4160, 7104));
    let per_cache = graph.bufs().fold(BTreeMap::new(), |mut all, b| {
        *all.entry((graph.cache_name(graph.buf(b).cache), graph.buf(b).size.0)).or_insert(0) += 1;
        all
    });
    let expected = [(("L0A", 64), 512), (("L0B", 64), 512), (("L0C", 128), 64), (("L1", 64), 128)];
    assert_eq!(per_cache, expected.into());
    let expected =
        [("ALLOC", 1216), ("COPY_IN", 128), ("COPY_OUT", 64), ("FREE", 1216), ("MATMUL", 512), ("MOVE", 1024)];
    assert_eq!(ops(&graph), expected.into());
}

fn residual_block() -> Model {
    let conv = |x, w, y| node("Conv", &[x, w], &[y], &[("pads", A::Ints(&[1, 1, 1, 1]))]);
    let norm = |x, y| node("BatchNormalization", &[x, "g", "g", "g", "g"], &[y], &[]);
    Model {
        nodes: vec![
            conv("x", "w1", "a"),
            norm("a", "b"),
            node("Relu", &["b"], &["c"], &[]),
            conv("c", "w2", "d"),
            norm("d", "e"),
            node("Add", &["e", "x"], &["f"], &[]),
            node("Relu", &["f"], &["y"], &[]),
        ],
        weights: vec![weight("w1", &[8, 8, 3, 3], INT8), weight("w2", &[8, 8, 3, 3], INT8), weight("g", &[8], INT8)],
        inputs: vec![fixed("x", &[1, 8, 16, 16], INT8)],
        outputs: vec![fixed("y", &[1, 8, 16, 16], INT8)],
        opset: 13,
    }
}

#[test]
fn elementwise_operators_follow_on_the_tile_and_windows_reach_their_halo() {
    let (graph, notices) = imported(&residual_block());
    assert_eq!(notices, []);
    // 2048 elements in tiles of 128: rows of 16 stay whole, so 2 channels × 4 rows, a grid of 4 × 4;
    // the weights, 576 elements, are 4 × 2 tiles of 2 × 4 × 9, two for the channels of a tile.
    let ops = ops(&graph);
    assert_eq!([ops["CONV"], ops["BATCHNORM"], ops["RELU"], ops["ADD"]], [64, 32, 32, 16]);
    // Results stay in UB for what follows: each goes to L1 once per convolution that is behind it.
    let copies = |pipe: &str| {
        let on_pipe = |n| graph.op_name(n) == "COPY" && graph.pipe(n).is_some_and(|p| graph.pipe_names()[p] == pipe);
        graph.nodes().filter(|&n| on_pipe(n)).count()
    };
    assert_eq!([copies("FIXP"), copies("MTE3"), copies("MTE1"), ops["COPY_OUT"]], [32, 16, 0, 16]);
    // A window of 3 × 3 over a block of 4 rows reads that block and those above and below, each of
    // the two channel blocks that a part of the weights has; at the edges one of three is missing.
    let maps = |n| graph.operands(n).iter().filter(|&&b| graph.cache_name(graph.buf(b).cache) == "L1").count();
    let per_conv = graph.nodes().filter(|&n| graph.op_name(n) == "CONV").fold(BTreeMap::new(), |mut all, n| {
        *all.entry(maps(n)).or_insert(0) += 1;
        all
    });
    assert_eq!(per_conv, [(4, 32), (6, 32)].into());
}

#[test]
fn a_softmax_passes_over_whole_rows_first() {
    let model = Model {
        nodes: vec![node("Softmax", &["x"], &["y"], &[])],
        inputs: vec![fixed("x", &[4, 512], INT8)],
        outputs: vec![fixed("y", &[4, 512], INT8)],
        opset: 13,
        ..Default::default()
    };
    let (graph, _) = imported(&model);
    // Tiles of 4 × 32: one row of 16, each seen by two passes and the last step.
    let ops = ops(&graph);
    assert_eq!([ops["ROWMAX"], ops["ROWSUM"], ops["SOFTMAX"], ops["COPY_IN"]], [3, 3, 16, 16]);
}

fn attention() -> Model {
    Model {
        nodes: vec![
            node("Gather", &["table", "ids"], &["x"], &[]),
            node("LayerNormalization", &["x", "g", "g"], &["n"], &[]),
            node("MatMul", &["n", "w"], &["qkv"], &[]),
            node("Split", &["qkv"], &["q", "k", "v"], &[("axis", A::Int(2))]),
            node("Reshape", &["q", "heads"], &["q4"], &[]),
            node("Transpose", &["q4"], &["q5"], &[("perm", A::Ints(&[0, 2, 1, 3]))]),
            node("Reshape", &["k", "heads"], &["k4"], &[]),
            node("Transpose", &["k4"], &["k5"], &[("perm", A::Ints(&[0, 2, 3, 1]))]),
            node("MatMul", &["q5", "k5"], &["s"], &[]),
            node("Softmax", &["s"], &["p"], &[("axis", A::Int(-1))]),
            node("Reshape", &["v", "heads"], &["v4"], &[]),
            node("Transpose", &["v4"], &["v5"], &[("perm", A::Ints(&[0, 2, 1, 3]))]),
            node("MatMul", &["p", "v5"], &["o"], &[]),
            node("Sigmoid", &["o"], &["gate"], &[]),
            node("Mul", &["o", "gate"], &["y"], &[]),
        ],
        weights: vec![
            weight("table", &[1000, 32], FLOAT),
            weight("g", &[32], FLOAT),
            weight("w", &[32, 96], FLOAT),
            list("heads", &[0, 0, 2, 16]),
        ],
        inputs: vec![info("ids", &["batch".into(), 24.into()], INT64)],
        outputs: vec![info("y", &["batch".into(), 2.into(), 24.into(), 16.into()], FLOAT)],
        opset: 17,
    }
}

#[test]
fn attention_reads_activations_as_weights_and_rows_of_a_table() {
    let (graph, _) = imported(&attention());
    let ops = ops(&graph);
    for op in ["LAYERNORM", "MATMUL", "SPLIT", "TRANSPOSE", "SOFTMAX", "SIGMOID", "MUL", "ROWVAR"] {
        assert!(ops.contains_key(op), "{op}: {ops:?}");
    }
    // 24 rows of the table are loaded, in tiles of 24 × 32 × 4 bytes over 128, not the thousand.
    let loaded: u64 = graph
        .nodes()
        .filter(|&n| graph.op_name(n) == "COPY_IN")
        .map(|n| graph.operands(n).iter().map(|&b| graph.buf(b).size.0).max().unwrap_or(0))
        .sum();
    assert!(loaded < 1000 * 32 * 4 / 2, "{loaded}");
    // The gate is computed on the tile that it scales.
    assert_eq!(ops["SIGMOID"], ops["MUL"]);
}

#[test]
fn operators_outside_the_set_are_lowered_and_counted() {
    let mut odd = node("Mystery", &["a", "w"], &["b"], &[]);
    odd = odd.with(7, "com.example");
    let model = Model {
        nodes: vec![odd, node("Einsum", &["b", "b"], &["c"], &[]), node("Einsum", &["c", "c"], &["y"], &[])],
        weights: vec![weight("w", &[4], INT8)],
        inputs: vec![fixed("a", &[16, 32], INT8)],
        outputs: vec![fixed("y", &[16, 64], INT8)],
        opset: 13,
    };
    let (graph, notices) = imported(&model);
    let told: Vec<_> = notices.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "com.example.Mystery is outside the operator set: 1 node(s), the first node 0 (com.example.Mystery), lowered \
             as generic vector ops; 1 output(s) of unknown shape got the shape of the first input",
            "Einsum is outside the operator set: 2 node(s), the first node 1 (Einsum), lowered as generic vector ops; \
             1 output(s) of unknown shape got the shape of the first input",
        ]
    );
    let ops = ops(&graph);
    assert_eq!([ops["MYSTERY"], ops["EINSUM"]], [4, 4 + 8]);
}

#[test]
fn a_large_model_gets_coarse_tiles_and_says_so() {
    let options = OnnxOptions { max_nodes: 2_000, ..Default::default() };
    let (graph, notices) = import(&product(512).encode(), &options).unwrap();
    assert!((200..=2_000).contains(&graph.node_count()), "{}", graph.node_count());
    assert!(
        matches!(notices[..], [OnnxNotice::Scaled { bytes_per_unit, tile: 128, limit: 2_000 }] if bytes_per_unit > 1)
    );
    let error = import(&product(512).encode(), &OnnxOptions { bytes_per_unit: Some(1), ..options });
    assert!(matches!(error, Err(OnnxError::TooManyNodes { limit: 2_000 })));
    let error = import(&product(512).encode(), &OnnxOptions { max_nodes: 3, ..Default::default() });
    assert!(matches!(error, Err(OnnxError::TooManyNodes { limit: 3 })));
}

#[test]
fn tiles_and_hardware_must_go_together() {
    let import_with =
        |options: OnnxOptions| import(&product(64).encode(), &options).map(|_| ()).unwrap_err().to_string();
    let text = import_with(OnnxOptions { tile: Some(257), ..Default::default() });
    assert_eq!(text, "a tile of 257 is out of range: it must be 1 to 256 for the operands of every op to fit");
    let mut options = OnnxOptions::default();
    options.hardware.caches.shift_remove("L0C");
    assert_eq!(import_with(options), "the hardware davinci has no cache L0C, which the lowering of a network needs");
    // The largest tile that is let through fits.
    let options = OnnxOptions { tile: Some(256), ..Default::default() };
    for model in [product(64), residual_block(), attention()] {
        let (graph, _) = import(&model.encode(), &options).unwrap();
        let machine = Machine::resolve(&graph, &Hardware::default()).unwrap();
        assert_eq!(machine.misfits(&graph), []);
    }
}

#[test]
fn broken_models_are_named() {
    let relu = |x: &str, y: &str| node("Relu", &[x], &[y], &[]);
    let model = |nodes| Model {
        nodes,
        inputs: vec![fixed("x", &[2, 3, 4, 4], FLOAT)],
        weights: vec![weight("w", &[5, 7, 3, 3], FLOAT), list("no", &[-3])],
        outputs: vec![],
        opset: 13,
    };
    assert!(import(b"\x0a\xff", &OnnxOptions::default()).unwrap_err().to_string().starts_with("not an ONNX file: "));
    let no_graph = "the file holds no network (an ONNX model has a graph with nodes)";
    assert_eq!(import(b"", &OnnxOptions::default()).unwrap_err().to_string(), no_graph);
    assert_eq!(error(&model(vec![])), no_graph);
    assert_eq!(error(&model(vec![relu("u", "y")])), "node 0 (Relu) reads tensor \"u\", which nothing provides");
    assert_eq!(error(&model(vec![relu("x", "x")])), "node 0 (Relu) provides tensor \"x\", which exists already");
    assert_eq!(
        error(&model(vec![relu("x", "a"), node("Add", &["a", "c"], &["b"], &[]), relu("b", "c").with(3, "loop")])),
        "node 1 (Add) waits for tensor \"c\", which depends on its own output"
    );
    let output = Model { outputs: vec![fixed("z", &[1], FLOAT)], ..model(vec![relu("x", "y")]) };
    assert_eq!(error(&output), "the output \"z\" of the network is provided by nothing");
    let shapeless = Model { inputs: vec![wire::Message::default().with(1, "x")], ..model(vec![relu("x", "y")]) };
    assert_eq!(error(&shapeless), "the input \"x\" of the network declares no shape");
    let huge = Model { inputs: vec![fixed("x", &[1 << 30, 1 << 30], FLOAT)], ..model(vec![relu("x", "y")]) };
    let too_large = "a tensor of shape [1073741824x1073741824] is larger than 1099511627776 elements";
    assert_eq!(error(&huge), format!("tensor \"x\": {too_large}"));
    assert_eq!(
        error(&model(vec![node("Conv", &["x", "w"], &["y"], &[])])),
        "node 0 (Conv), output \"y\": the shapes [2x3x4x4] and [5x7x3x3] do not go together (the weights need the \
         channels of the map over the groups)"
    );
    assert_eq!(
        error(&model(vec![node("Reshape", &["x", "no"], &["y"], &[]).with(3, "r")])),
        "node 0 (Reshape \"r\"), output \"y\": shape is -3 at place 0, no extent that the output can have"
    );
    assert_eq!(
        error(&model(vec![node("Reshape", &["x", "x"], &["y"], &[])])),
        "node 0 (Reshape), output \"y\": shape is not a constant"
    );
    assert_eq!(
        error(&model(vec![node("Gemm", &["x"], &["y"], &[])])),
        "node 0 (Gemm), output \"y\": input 1 is missing"
    );
    assert_eq!(
        error(&model(vec![node("MaxPool", &["x"], &["y"], &[("kernel_shape", A::Ints(&[9, 9]))])])),
        "node 0 (MaxPool), output \"y\": the window is 9 over 4 elements with 0 + 0 of padding, larger than what it slides over"
    );
    assert_eq!(
        error(&model(vec![node("Mystery", &[], &["y"], &[])])),
        "node 0 (Mystery), output \"y\": its shape is not known: the operator is outside the set and the file declares no shape"
    );
    assert_eq!(error(&model(vec![relu("w", "y")])), "the network has no work left after constants are folded");
}

/// The public models, where the environment says where they are.
fn models() -> Option<Vec<PathBuf>> {
    let root = std::env::var_os("SPILLBENCH_DATA").map(PathBuf::from);
    let root = root.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets/external"));
    let folder = root.join("models");
    if !folder.is_dir() {
        eprintln!("skipped: there is no {}; SPILLBENCH_DATA says where the data sets are", folder.display());
        return None;
    }
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 4);
    Some(files)
}

#[test]
fn the_public_models_import_and_plan() {
    let hardware = Hardware::default();
    let mut workspace = Workspace::default();
    for file in models().unwrap_or_default() {
        let bytes = std::fs::read(&file).unwrap();
        let (graph, notices) = import(&bytes, &OnnxOptions::default()).unwrap();
        // Every operator is known, and every shape is the one that the file declares.
        let odd = |n: &&OnnxNotice| matches!(n, OnnxNotice::Generic { .. } | OnnxNotice::ShapeDiffers { .. });
        assert_eq!(notices.iter().find(odd), None, "{}", file.display());
        assert!((20_000..=200_000).contains(&graph.node_count()), "{}: {}", file.display(), graph.node_count());
        let mut written = Vec::new();
        graph_json::write(&graph, &mut written).unwrap();
        assert_eq!(graph_json::read(&written).unwrap().0, graph);
        let machine = Machine::resolve(&graph, &hardware).unwrap();
        assert_eq!(machine.misfits(&graph), []);
        let schedule = Schedule::default_for(&graph).normalized(&graph, Normalize::Free);
        let plan = Policy::default().plan(&graph, &machine, &schedule, &mut workspace).unwrap();
        assert!(checker::check(&graph, &machine, &plan).is_valid(), "{}", file.display());
        assert!(!plan.spills.is_empty(), "feature maps do not fit L1");
    }
}

#[test]
fn an_import_is_the_same_every_time() {
    for model in [residual_block(), attention()] {
        let text = || {
            let mut bytes = Vec::new();
            graph_json::write(&imported(&model).0, &mut bytes).unwrap();
            bytes
        };
        assert_eq!(text(), text());
    }
}

/// The seeds of the fuzz corpus; `UPDATE_CORPUS=1` writes them.
#[test]
fn the_corpus_is_made_here() {
    let one = |op: &str, attributes: &[(&str, A<'_>)], shapes: &[&[i64]], lists: &[&[i64]]| {
        let names = ["a", "b", "c", "d", "e", "f", "g"];
        Model {
            nodes: vec![
                node(op, &names[..shapes.len() + lists.len()], &["y"], attributes),
                node("Exp", &["y"], &["z"], &[]),
            ],
            weights: lists.iter().zip(&names[shapes.len()..]).map(|(l, n)| list(n, l)).collect(),
            inputs: shapes.iter().zip(names).map(|(s, n)| fixed(n, s, FLOAT)).collect(),
            outputs: vec![fixed("z", &[1], FLOAT)],
            opset: 13,
        }
    };
    let map: &[i64] = &[1, 4, 8, 8];
    let windows = [
        ("pads", A::Ints(&[1, 1, 1, 1])),
        ("strides", A::Ints(&[2, 2])),
        ("dilations", A::Ints(&[1, 1])),
        ("kernel_shape", A::Ints(&[3, 3])),
    ];
    let constant = [("value", A::Tensor(list("", &[7]))), ("value_float", A::Float(1.5))];
    let seeds = [
        ("attention", attention()),
        ("residual", residual_block()),
        ("product", product(16)),
        ("conv_transpose", one("ConvTranspose", &windows, &[map, &[4, 2, 3, 3]], &[])),
        ("pool", one("AveragePool", &windows, &[map], &[])),
        ("resize", one("Resize", &[], &[map, &[0], &[0]], &[&[1, 4, 16, 12]])),
        ("slice", one("Slice", &[], &[map], &[&[7, 0], &[-9, 3], &[2, 1], &[-2, 1]])),
        ("pad", one("Pad", &[], &[map], &[&[0, 0, 1, 1, 0, 0, -1, 2]])),
        ("gemm", one("Gemm", &[("transB", A::Int(1))], &[&[4, 8], &[6, 8], &[6]], &[])),
        ("top_k", one("TopK", &[("axis", A::Int(1))], &[map], &[&[2]])),
        ("range", one("Range", &[], &[], &[&[0], &[9], &[2]])),
        ("constant_of_shape", one("ConstantOfShape", &constant, &[], &[&[2, 3]])),
        (
            "cycle",
            Model {
                nodes: vec![node("Add", &["x", "b"], &["a"], &[]), node("Relu", &["a"], &["b"], &[])],
                inputs: vec![fixed("x", &[1], FLOAT)],
                ..Default::default()
            },
        ),
    ];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/onnx");
    for (name, model) in seeds {
        let path = folder.join(format!("{name}.onnx"));
        if std::env::var_os("UPDATE_CORPUS").is_some() {
            std::fs::write(&path, model.encode()).unwrap();
        }
        assert_eq!(std::fs::read(&path).ok(), Some(model.encode()), "{}", path.display());
    }
}
