//! Plans as one JSON document: its layout, that nothing is lost, and what is refused.

use spillbench_core::formats::FormatError;
use spillbench_core::formats::plan_json::{PlanDocument, read, write};
use spillbench_core::metrics::measure;
use spillbench_core::plan::{Cause, Counters, ExactSettings, Origin, Placed, Plan, SearchSettings, Settings, Spill};
use spillbench_core::schedule::Normalize;
use spillbench_core::{BufId, Bytes, GraphBuilder, Hardware, Id, Machine, Offset};

/// The worked example of the problem model, measured.
fn document() -> PlanDocument {
    let mut g = GraphBuilder::new();
    g.alloc(0, 0, 6, "UB").op(1, "COPY_IN", "MTE2", 15, &[0]);
    g.alloc(2, 1, 6, "UB").op(3, "COPY_IN", "MTE2", 15, &[1]);
    g.op(4, "EXP", "VECTOR", 30, &[0]).free(5, 0, 6, "UB");
    g.op(6, "EXP", "VECTOR", 30, &[1]).free(7, 1, 6, "UB");
    for (from, to) in [(0, 1), (1, 4), (4, 5), (2, 3), (3, 6), (6, 7)] {
        g.edge(from, to);
    }
    let graph = g.build().unwrap().0;
    let mut hardware = Hardware::default();
    hardware.caches.retain(|name, _| name == "UB");
    hardware.set_capacity("UB", Bytes(10)).unwrap();
    let cause = Some(Cause::Capacity);
    let plan = Plan {
        schedule: [0, 1, 8, 2, 10, 9, 4, 5, 11, 3, 6, 7].map(Id).to_vec(),
        memory: [0, 1].map(|b| Placed { buf: BufId(b), offset: Offset(0) }).to_vec(),
        spills: [0, 1].map(|b| Spill { buf: BufId(b), offset: Offset(0), cause }).to_vec(),
        counters: Some(Counters { requests: 4, failed_requests: 2, single: 2, ..Default::default() }),
    };
    let machine = Machine::resolve(&graph, &hardware).unwrap();
    let metrics = Some(measure(&graph, &machine, &plan).unwrap());
    let settings = Some(Origin::Planner(Settings {
        heuristic: "belady".to_owned(),
        strategies: vec!["single".to_owned(), "multi".to_owned()],
        placement: "best-fit".to_owned(),
        attempts: 5,
        prefetch: 0,
        retime: false,
        normalize: Normalize::Free,
        seed: u64::MAX,
        hardware,
    }));
    PlanDocument { task: "Worked \"example\"\n".to_owned(), settings, plan, metrics }
}

fn text(document: &PlanDocument) -> String {
    let mut bytes = Vec::new();
    write(document, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn refusal(text: &str) -> String {
    read(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn the_layout_is_stable() {
    insta::assert_snapshot!(text(&document()));
}

#[test]
fn nothing_is_lost() {
    let full = document();
    assert_eq!(read(text(&full).as_bytes()).unwrap(), full);
    let plan = Plan { schedule: vec![], memory: vec![], spills: vec![], counters: None };
    let bare = PlanDocument { task: String::new(), settings: None, plan, metrics: None };
    assert_eq!(read(text(&bare).as_bytes()).unwrap(), bare);
    // Figures that no short decimal tells, and the largest numbers there are.
    let mut odd = document();
    let metrics = odd.metrics.as_mut().unwrap();
    metrics.fragmentation["UB"] = 0.1 + 0.2;
    metrics.extra_movement = Bytes(u64::MAX);
    metrics.pipe_busy = None;
    odd.plan.spills[0].offset = Offset(u64::MAX);
    odd.plan.spills[1].cause = None;
    assert_eq!(read(text(&odd).as_bytes()).unwrap(), odd);
}

#[test]
fn addresses_below_0_are_read_for_the_checker_to_judge() {
    let below = text(&document()).replacen("\"offset\":0", "\"offset\":-4", 1);
    let read = read(below.as_bytes()).unwrap();
    assert_eq!((read.plan.memory[0].offset.signed(), read.plan.memory[0].offset.to_string()), (-4, "-4".to_owned()));
    assert_eq!(text(&read), below);
    let past = below.replace("-4", "9223372036854775808");
    assert!(refusal(&past).contains("invalid value: integer `9223372036854775808`"));
}

#[test]
fn a_search_says_how_it_was_set() {
    let mut found = document();
    let hardware = found.settings.unwrap().hardware().clone();
    let (objective, start) = ("movement".to_owned(), "id".to_owned());
    let search = SearchSettings {
        objective,
        seed: 7,
        islands: 2,
        evaluations: None,
        target: Some(3),
        weights: Some("1:2".to_owned()),
        max_movement: Some("+5%".to_owned()),
        retime: true,
        start,
        hardware,
    };
    found.settings = Some(search.into());
    let written = text(&found);
    assert_eq!(read(written.as_bytes()).unwrap(), found);
    // Documents of before they were kept do not have them.
    let older: String = written.lines().filter(|l| !l.contains("\"weights\"") && !l.contains("max_movement")).collect();
    let Some(Origin::Search(settings)) = read(older.as_bytes()).unwrap().settings else { panic!("a search") };
    assert_eq!((settings.weights, settings.max_movement, settings.target), (None, None, Some(3)));
    assert!(refusal(&written.replace("\"islands\": 2,", "")).contains("missing field `islands`"));
    assert!(refusal(&written.replace("islands", "isles")).contains("unknown field `isles`"));
}

#[test]
fn an_exact_search_keeps_its_limit_and_its_hardware() {
    let mut found = document();
    let hardware = found.settings.as_ref().unwrap().hardware().clone();
    for exact_nodes in [None, Some(9)] {
        let (normalize, hardware) = (Normalize::Memory, hardware.clone());
        let exact = ExactSettings { exact_nodes, heuristic: None, retime: false, normalize, hardware };
        found.settings = Some(exact.into());
        assert_eq!(read(text(&found).as_bytes()).unwrap(), found);
    }
    assert!(refusal(&text(&found).replace("exact_nodes", "nodes")).contains("unknown field `nodes`"));
}

#[test]
fn the_same_document_is_the_same_bytes_and_any_layout_is_read() {
    let document = document();
    let written = text(&document);
    assert_eq!(text(&read(written.as_bytes()).unwrap()), written);
    // Another layout, with the keys of every object sorted by name.
    let value: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert_eq!(read(format!("\u{feff}{value}\r\n").as_bytes()).unwrap(), document);
}

#[test]
fn long_lists_stand_several_items_a_line() {
    let mut document = document();
    document.plan.schedule = (0..1000).map(Id).collect();
    document.plan.memory = (0..10).map(|b| Placed { buf: BufId(b), offset: Offset(b) }).collect();
    let written = text(&document);
    let line = written.lines().find(|l| l.contains(" 20, ")).unwrap();
    assert_eq!(line.split(',').filter(|id| !id.is_empty()).count(), 20);
    assert!(written.lines().all(|l| l.len() < 200));
    assert_eq!(read(written.as_bytes()).unwrap(), document);
}

#[test]
fn unknown_and_missing_keys_are_refused_wherever_they_stand() {
    let written = text(&document());
    let with = |from: &str, to: &str| {
        assert!(written.contains(from), "{from}");
        refusal(&written.replacen(from, to, 1))
    };
    assert!(with("\"task\"", "\"tusk\"").starts_with("line 4, column 8: unknown field `tusk`, expected one of"));
    for key in ["seed", "capacity", "attempts", "spill_count", "by_cache", "requests", "buf", "offset", "cause"] {
        let refusal = with(&format!("\"{key}\""), "\"kez\"");
        assert!(refusal.contains("unknown field `kez`"), "{key}: {refusal}");
    }
    let message = with("  \"schedule\": [", "  \"task\": [");
    assert!(message.contains("duplicate field `task`"), "{message}");
    let (head, spills) = written.split_once(",\n  \"spills\"").unwrap();
    assert!(spills.len() > 20);
    assert!(refusal(&format!("{head}}}")).contains("missing field `spills`"));
}

#[test]
fn other_formats_and_versions_are_named() {
    let written = text(&document());
    let other = "the format is \"spillbench-plan\" version 2, not \"spillbench-plan\" version 1";
    let later = written.replacen("\"version\": 1", "\"version\": 2", 1);
    assert_eq!(refusal(&later), other);
    // A later version may have keys that this one does not know.
    assert_eq!(refusal(&later.replacen("\"task\"", "\"name\"", 1)), other);
    let graph = "{\"Nodes\": [], \"Edges\": []}";
    assert!(refusal(graph).starts_with("line 1, column 8: unknown field `Nodes`"));
}

#[test]
fn impossible_values_are_refused() {
    assert_eq!(read(b" \n"), Err(FormatError::Empty));
    let written = text(&document());
    let with = |from: &str, to: &str| refusal(&written.replacen(from, to, 1));
    assert_eq!(
        with("[\n    0, 1", "[\n    9223372036854775808, 1"),
        "id 9223372036854775808 in schedule passes 2^63-1"
    );
    assert_eq!(with("{\"buf\":1", "{\"buf\":18446744073709551615"), "id 18446744073709551615 in memory passes 2^63-1");
    assert_eq!(with("\"capacity\": 10", "\"capacity\": 0"), "settings.hardware: cache UB has capacity 0");
    assert!(with("\"capacity\": 10", "\"capacity\": -1").contains("invalid value: integer `-1`"));
    assert!(with("\"cause\":\"capacity\"", "\"cause\":\"fate\"").contains("unknown variant `fate`"));
    assert!(with("\n}\n", "\n}\n{}").contains("trailing characters"));
    assert!(refusal(&written[..written.len() / 2]).contains("EOF"));
    assert!(refusal(&"[".repeat(100_000)).contains("invalid type: sequence"));
}
