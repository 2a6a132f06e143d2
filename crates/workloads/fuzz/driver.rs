//! One check per importer and a time-budgeted driver around it, used by the example `fuzz_import`
//! (for as long as one likes) and by the test `import_fuzz` (for a moment).
//!
//! The driver changes files of a corpus: bytes, tokens of text, or fields of protobuf messages. A
//! file whose outcome is new (another error, another size of graph) joins the pool.

use super::wire::{Item, Message};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use spillbench_core::formats::graph_json;
use spillbench_core::schedule::Normalize;
use spillbench_core::{Graph, Hardware, Machine, Schedule};
use spillbench_workloads::import::{ImportError, intervals, onnx, trace};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::time::{Duration, Instant};

/// An importer under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Importer {
    Onnx,
    Intervals,
    Trace,
}

impl Importer {
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::Onnx, "onnx"), (Self::Intervals, "intervals"), (Self::Trace, "trace")];
}

/// The longest that an import of a small file may take.
const SLOWEST: Duration = Duration::from_secs(10);

/// Imports a file and checks what must hold whatever is in it. Returns the kind of outcome: the
/// error without its numbers, or the sort of graph.
pub fn check(importer: Importer, bytes: &[u8]) -> String {
    let start = Instant::now();
    let outcome = match importer {
        Importer::Onnx => {
            let options = onnx::OnnxOptions { max_nodes: 5_000, ..Default::default() };
            match onnx::import(bytes, &options) {
                Err(e) => Err(e.into()),
                Ok((graph, notices)) => {
                    let machine = Machine::resolve(&graph, &Hardware::default()).expect("caches of the hardware");
                    assert_eq!(machine.misfits(&graph), [], "every operand fits");
                    assert!(graph.node_count() <= 5_000 && graph.has_timing());
                    assert!(notices.iter().all(|n| !n.to_string().is_empty()));
                    Ok((graph, None, notices.len()))
                }
            }
        }
        Importer::Intervals => match intervals::import(bytes, &Default::default()) {
            Err(e) => Err(e.into()),
            Ok((graph, schedule, notices)) => {
                let (read, _) = intervals::read(bytes).expect("it has been read before");
                assert_eq!(graph.node_count(), 2 * read.len());
                Ok((graph, Some(schedule), notices.len()))
            }
        },
        Importer::Trace => match trace::import(bytes, &Default::default()) {
            Err(e) => Err(e.into()),
            Ok((graph, schedule, notices)) => {
                let (read, _) = trace::read(bytes).expect("it has been read before");
                assert_eq!(graph.node_count(), read.len() + 2 * graph.buffer_count());
                Ok((graph, Some(schedule), notices.len()))
            }
        },
    };
    assert!(start.elapsed() < SLOWEST, "took {:?}", start.elapsed());
    match outcome {
        Err(error) => {
            let text = ImportError::to_string(&error);
            assert!(!text.is_empty(), "an error says something");
            signature(&error)
        }
        Ok((graph, schedule, notices)) => {
            check_graph(&graph, schedule);
            let (nodes, ops) = (graph.node_count().ilog2(), graph.op_names().len());
            format!("graph: 2^{nodes} nodes, {ops} ops, {notices} notices")
        }
    }
}

fn check_graph(graph: &Graph, schedule: Option<Schedule>) {
    assert!(graph.is_topological(&graph.id_order()), "the order of ids is a schedule");
    if let Some(schedule) = schedule {
        assert_eq!(schedule.clone().normalized(graph, Normalize::Loads), schedule, "it is the only schedule");
    }
    let (again, _) = graph_json::read(&json(graph)).expect("what is written can be read");
    assert_eq!(json(graph), json(&again), "writing and reading keeps a graph");
}

fn json(graph: &Graph) -> Vec<u8> {
    let mut bytes = Vec::new();
    graph_json::write(graph, &mut bytes).expect("memory takes all bytes");
    bytes
}

/// The variants that an error is made of, and the operator it is about where that is one of the
/// set: what a file puts into an error would make every file new.
fn signature(error: &dyn Debug) -> String {
    let text = format!("{error:?}");
    let mut words = Vec::new();
    // Strings stand between quotes, with quotes in them escaped.
    let bare = text.replace("\\\\", "").replace("\\\"", "");
    for (i, part) in bare.split('"').enumerate() {
        let is_op = i == 1 && bare.starts_with("Onnx(Operator") && !bare.contains("NoShape");
        let names = part.split(|c: char| !c.is_ascii_alphabetic());
        match i % 2 {
            0 => words.extend(names.filter(|w| w.starts_with(|c: char| c.is_ascii_uppercase())).take(4)),
            _ if is_op => words.extend(names.take(1)),
            _ => {}
        }
    }
    words.truncate(8);
    format!("error: {}", words.join(" "))
}

/// What a run of the driver did.
#[derive(Clone, Copy, Debug)]
pub struct Summary {
    pub runs: u64,
    pub outcomes: usize,
    pub pool: usize,
}

/// Changes and checks files until the time is over; `found` sees each file that joins the pool.
///
/// # Panics
/// When a check fails, after `failed` has seen the file.
pub fn drive(
    importer: Importer,
    corpus: Vec<Vec<u8>>,
    budget: Duration,
    seed: u64,
    mut found: impl FnMut(&[u8]),
    mut failed: impl FnMut(&[u8]),
) -> Summary {
    let mut rng = Pcg64Mcg::new(u128::from(seed) << 1 | 1);
    let mut pool = corpus;
    let mut outcomes = BTreeSet::new();
    let (start, mut runs) = (Instant::now(), 0);
    let mut next = 0;
    while start.elapsed() < budget {
        // The corpus itself comes first.
        let file = match pool.get(next) {
            Some(file) => file.clone(),
            None => mutated(importer, &pool, &mut rng),
        };
        let fresh = next >= pool.len();
        next += usize::from(!fresh);
        let outcome = std::panic::catch_unwind(|| check(importer, &file));
        runs += 1;
        match outcome {
            Err(panic) => {
                failed(&file);
                std::panic::resume_unwind(panic);
            }
            Ok(outcome) if outcomes.insert(outcome.clone()) && fresh && file.len() < 1 << 16 && pool.len() < 4096 => {
                found(&file);
                pool.push(file);
                next = pool.len();
            }
            Ok(_) => {}
        }
    }
    Summary { runs, outcomes: outcomes.len(), pool: pool.len() }
}

fn below(rng: &mut impl Rng, bound: usize) -> usize {
    (rng.next_u64() % bound.max(1) as u64) as usize
}

/// Numbers at the ends of ranges.
const EDGES: &[u64] = &[
    0,
    1,
    2,
    3,
    7,
    8,
    64,
    127,
    128,
    255,
    256,
    1 << 16,
    1 << 31,
    (1 << 31) + 1,
    1 << 32,
    1 << 40,
    1 << 53,
    1 << 62,
    i64::MAX as u64,
    1 << 63,
    u64::MAX - 1,
    u64::MAX,
];

/// What an operator of a model may turn into.
const OPERATORS: &[&str] = &[
    "Conv",
    "ConvTranspose",
    "MaxPool",
    "AveragePool",
    "LpPool",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "GlobalLpPool",
    "LRN",
    "Resize",
    "Upsample",
    "DepthToSpace",
    "SpaceToDepth",
    "MatMul",
    "Gemm",
    "BatchNormalization",
    "Cast",
    "Where",
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Pow",
    "Mod",
    "Min",
    "Max",
    "Sum",
    "Mean",
    "PRelu",
    "BitShift",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "And",
    "Or",
    "Xor",
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Not",
    "IsNaN",
    "IsInf",
    "Abs",
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "BitwiseNot",
    "Ceil",
    "Celu",
    "Clip",
    "Cos",
    "Cosh",
    "Elu",
    "Erf",
    "Exp",
    "Floor",
    "Gelu",
    "HardSigmoid",
    "HardSwish",
    "LeakyRelu",
    "Log",
    "Mish",
    "Neg",
    "Reciprocal",
    "Relu",
    "Round",
    "Selu",
    "Shrink",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Tan",
    "Tanh",
    "ThresholdedRelu",
    "Trilu",
    "QuantizeLinear",
    "DequantizeLinear",
    "ReduceMean",
    "ReduceSum",
    "ReduceMax",
    "ReduceMin",
    "ReduceProd",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceSumSquare",
    "ArgMax",
    "ArgMin",
    "TopK",
    "CumSum",
    "Softmax",
    "LogSoftmax",
    "Hardmax",
    "LayerNormalization",
    "RMSNormalization",
    "InstanceNormalization",
    "GroupNormalization",
    "LpNormalization",
    "MeanVarianceNormalization",
    "Identity",
    "Dropout",
    "Reshape",
    "Flatten",
    "Squeeze",
    "Unsqueeze",
    "Transpose",
    "Concat",
    "Split",
    "Slice",
    "Pad",
    "Expand",
    "Tile",
    "Gather",
    "GatherElements",
    "ScatterElements",
    "ScatterND",
    "Constant",
    "ConstantOfShape",
    "Range",
    "Shape",
    "Size",
];

fn mutated(importer: Importer, pool: &[Vec<u8>], rng: &mut Pcg64Mcg) -> Vec<u8> {
    let mut file = pool[below(rng, pool.len())].clone();
    let other = &pool[below(rng, pool.len())];
    for _ in 0..=below(rng, 6) {
        file = match (importer, below(rng, 8)) {
            (_, 0) => bytes(file, other, rng),
            (Importer::Onnx, _) => fields(&file, other, rng).unwrap_or_else(|| bytes(file, other, rng)),
            _ => tokens(&file, other, rng),
        };
        file.truncate(1 << 18);
    }
    file
}

/// Flips, inserts, removes, repeats or splices bytes.
fn bytes(mut file: Vec<u8>, other: &[u8], rng: &mut Pcg64Mcg) -> Vec<u8> {
    let at = below(rng, file.len() + 1);
    let length = below(rng, 16).min(file.len() - at);
    match below(rng, 5) {
        0 if at < file.len() => file[at] ^= 1 << below(rng, 8),
        1 => file.insert(at, rng.next_u64() as u8),
        2 => drop(file.drain(at..at + length)),
        3 => {
            let part = file[at..at + length].to_vec();
            drop(file.splice(at..at, part));
        }
        _ => {
            let from = below(rng, other.len() + 1);
            drop(file.splice(at.., other[from..].iter().copied()));
        }
    }
    file
}

/// Changes a token or a line of a text.
fn tokens(file: &[u8], other: &[u8], rng: &mut Pcg64Mcg) -> Vec<u8> {
    let text = String::from_utf8_lossy(file);
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    let at = below(rng, lines.len());
    let from = below(rng, lines.len());
    match below(rng, 6) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, lines[from].clone()),
        2 => lines.swap(at, from),
        3 => {
            let others = String::from_utf8_lossy(other);
            let count = others.split('\n').count();
            lines.insert(at, others.split('\n').nth(below(rng, count)).unwrap_or_default().to_owned());
        }
        _ => {
            let mut parts: Vec<String> =
                lines[at].split_inclusive([',', ' ', '-', '@', ':']).map(str::to_owned).collect();
            let part = below(rng, parts.len());
            if let Some(part) = parts.get_mut(part) {
                let end: String = part.chars().last().filter(|c| !c.is_ascii_alphanumeric()).into_iter().collect();
                let edge = EDGES[below(rng, EDGES.len())];
                let number =
                    [edge.to_string(), (edge as i64).to_string(), format!("{}", rng.next_u64() % 20), "x".to_owned()];
                *part = number[below(rng, 4)].clone() + &end;
            }
            lines[at] = parts.concat();
        }
    }
    lines.join("\n").into_bytes()
}

/// Changes one field of a message somewhere in the file.
fn fields(file: &[u8], other: &[u8], rng: &mut Pcg64Mcg) -> Option<Vec<u8>> {
    let mut message = Message::decode(file, 8)?;
    let donor = Message::decode(other, 8)?;
    change(&mut message, &donor, other, rng);
    Some(message.encode())
}

/// Changes a field of a message, or goes down to one of the messages in it.
fn change(at: &mut Message, donor: &Message, other: &[u8], rng: &mut Pcg64Mcg) {
    let inner: Vec<_> = (0..at.0.len()).filter(|&i| matches!(at.0[i].1, Item::Message(_))).collect();
    let down = (!inner.is_empty() && below(rng, 6) > 0).then(|| inner[below(rng, inner.len())]);
    if let Some((_, Item::Message(message))) = down.and_then(|i| at.0.get_mut(i)) {
        return change(message, donor, other, rng);
    }
    let (i, j) = (below(rng, at.0.len()), below(rng, at.0.len()));
    if at.0.is_empty() {
        at.0.push((1 + rng.next_u64() % 25, Item::Varint(EDGES[below(rng, EDGES.len())])));
        return;
    }
    match below(rng, 8) {
        0 => drop(at.0.remove(i)),
        1 => at.0.insert(i, at.0[j].clone()),
        2 => at.0.swap(i, j),
        3 => at.0[i].1 = at.0[j].1.clone(),
        4 => at.0[i].0 = 1 + rng.next_u64() % 25,
        5 => at.0.insert(i, random_field(donor, rng)),
        6 => at.0[i].1 = random_field(donor, rng).1,
        _ => match &mut at.0[i].1 {
            Item::Varint(v) => {
                *v = [EDGES[below(rng, EDGES.len())], v.wrapping_add(1), v.wrapping_sub(1), rng.next_u64() % 64]
                    [below(rng, 4)]
            }
            Item::Fixed64(b) => b[7] = rng.next_u64() as u8,
            Item::Fixed32(b) => b[3] = rng.next_u64() as u8,
            Item::Bytes(b) if below(rng, 3) == 0 => *b = OPERATORS[below(rng, OPERATORS.len())].into(),
            Item::Bytes(b) => *b = bytes(std::mem::take(b), other, rng).into_iter().take(1 << 12).collect(),
            Item::Message(m) => m.0.reverse(),
        },
    }
}

fn random_field(message: &Message, rng: &mut Pcg64Mcg) -> (u64, Item) {
    let Some(field) = message.0.get(below(rng, message.0.len())) else { return (1, Item::Varint(0)) };
    match &field.1 {
        Item::Message(inner) if below(rng, 3) > 0 => random_field(inner, rng),
        _ => field.clone(),
    }
}
