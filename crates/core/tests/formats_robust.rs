//! No bytes make a reader panic: chance bytes, and valid files with pieces torn out, put in twice,
//! or replaced by what often goes wrong. Whatever is accepted can be written and read again.

mod random;

use proptest::prelude::*;
use random::{Case, cases, random_plan};
use spillbench_core::formats::plan_json::{self, PlanDocument};
use spillbench_core::formats::{FormatError, graph_csv, graph_json, hardware_toml, plan_text, schedule_text};
use spillbench_core::{Graph, Hardware};

/// Hands the bytes to every reader and uses what each accepts.
fn read_as_everything(bytes: &[u8]) {
    if let Ok((graph, _)) = graph_json::read(bytes) {
        rewrite(&graph);
    }
    let header = b"StartNodeId,EndNodeId\n";
    if let Ok((graph, _)) = graph_csv::read(bytes, header) {
        rewrite(&graph);
    }
    let _ = graph_csv::read(b"Id,Op,BufId,Size,Type,Bufs\n0,ALLOC,0,1,UB,\n1,FREE,0,1,UB,\n", bytes);
    if let Ok(ids) = schedule_text::read(bytes) {
        assert!(ids.iter().all(|id| id.0 <= i64::MAX as u64));
    }
    let _ = (plan_text::read_memory(bytes), plan_text::read_spills(bytes));
    if let Ok(hardware) = hardware_toml::read(bytes) {
        assert_eq!(hardware_toml::read(hardware_toml::write(&hardware).as_bytes()), Ok(hardware));
    }
    match plan_json::read(bytes) {
        Ok(document) => {
            let mut written = Vec::new();
            plan_json::write(&document, &mut written).unwrap();
            assert_eq!(plan_json::read(&written), Ok(document));
        }
        Err(FormatError::Syntax { message, .. }) => assert!(!message.is_empty()),
        Err(FormatError::Empty) => assert!(bytes.len() <= 3 || bytes.iter().any(u8::is_ascii_whitespace)),
        Err(FormatError::Graph(_)) => panic!("a plan is no graph"),
    }
}

fn rewrite(graph: &Graph) {
    let mut json = Vec::new();
    graph_json::write(graph, &mut json).unwrap();
    assert_eq!(graph_json::read(&json).unwrap().0.node_count(), graph.node_count());
    let mut nodes = Vec::new();
    // Only an empty name cannot be written.
    if let Err(error) = graph_csv::write_nodes(graph, &mut nodes) {
        assert!(error.to_string().contains("has an empty"), "{error}");
    }
}

const PIECES: [&[u8]; 24] = [
    b"18446744073709551615",
    b"18446744073709551616",
    b"9223372036854775808",
    b"-1",
    b"1.5",
    b"1e999",
    b"null",
    b"true",
    b"\"",
    b"\\u0000",
    b"[",
    b"]",
    b"{",
    b"}",
    b",",
    b":",
    b"\n",
    b"\r",
    b"\r\n\r\n",
    b"\xef\xbb\xbf",
    b"\xff",
    b"ALLOC",
    b"\"Nodes\":[],",
    b" ",
];

/// One change to a file: where, how many bytes go, and what comes.
type Edit = (prop::sample::Index, usize, Option<usize>, bool);

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let edit = (any::<prop::sample::Index>(), 0usize..12, prop::option::of(0..PIECES.len()), any::<bool>());
    prop::collection::vec(edit, 1..4)
}

fn torn(mut bytes: Vec<u8>, edits: &[Edit]) -> Vec<u8> {
    for &(at, len, piece, twice) in edits {
        let start = at.index(bytes.len() + 1);
        let end = (start + len).min(bytes.len());
        let old = bytes[start..end].to_vec();
        let new = piece.map_or(&b""[..], |p| PIECES[p]);
        let new = if twice { [&old[..], new, &old[..]].concat() } else { new.to_vec() };
        bytes.splice(start..end, new);
    }
    bytes
}

fn files(case: &Case, dice: &[u32]) -> Vec<Vec<u8>> {
    let plan = random_plan(case, dice);
    let mut files = vec![Vec::new(); 7];
    graph_json::write(&case.graph, &mut files[0]).unwrap();
    graph_csv::write_nodes(&case.graph, &mut files[1]).unwrap();
    graph_csv::write_edges(&case.graph, &mut files[2]).unwrap();
    plan_text::write_schedule(&plan, &mut files[3]).unwrap();
    plan_text::write_memory(&plan, &mut files[4]).unwrap();
    files[5] = hardware_toml::write(&Hardware::default()).into_bytes();
    let document = PlanDocument { task: "t".to_owned(), settings: None, plan, metrics: None };
    plan_json::write(&document, &mut files[6]).unwrap();
    files
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn chance_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_as_everything(&bytes);
    }

    #[test]
    fn chance_pieces(pieces in prop::collection::vec(0..PIECES.len(), 0..30)) {
        read_as_everything(&pieces.into_iter().flat_map(|p| PIECES[p]).copied().collect::<Vec<_>>());
    }

    #[test]
    fn torn_files(
        case in cases(false),
        dice in prop::collection::vec(any::<u32>(), 20..40),
        edits in edits(),
    ) {
        for file in files(&case, &dice) {
            read_as_everything(&torn(file, &edits));
        }
    }
}

#[test]
fn deep_nesting_and_long_runs_end_quickly() {
    for piece in ["[", "{\"a\":", "\"", "0,", "9", "0:", "[[", " ", "\n", "a=", "\r"] {
        read_as_everything(piece.repeat(200_000).as_bytes());
    }
    let deep_meta = format!("{{\"Nodes\":[],\"Edges\":[],\"Meta\":{}", "{\"a\":".repeat(100_000));
    read_as_everything(deep_meta.as_bytes());
}

#[test]
fn hardware_without_names_is_refused() {
    let refusal = |text: &str| hardware_toml::read(text.as_bytes()).unwrap_err().to_string();
    assert_eq!(refusal("[caches.\"\"]\ncapacity = 1\n"), "the name of a cache is empty");
    assert_eq!(refusal("pipes = [\"V\", \"\"]\n[caches.UB]\ncapacity = 1\n"), "the name of pipes[1] is empty");
    let pipe = "[caches.UB]\ncapacity = 1\nspill_in_pipe = \"\"\n";
    assert_eq!(refusal(pipe), "the name of spill_in_pipe of cache UB is empty");
}
