//! Interval files become graphs whose only schedule is the one that the lives ask for.

use spillbench_core::graph::NodeKind;
use spillbench_core::planner::Workspace;
use spillbench_core::schedule::Normalize;
use spillbench_core::{Bytes, Graph, Hardware, Machine, Schedule, checker};
use spillbench_heuristics::{HEURISTICS, Policy};
use spillbench_workloads::import::TextError;
use spillbench_workloads::import::intervals::{
    Gap, Interval, IntervalNotice, IntervalOptions, height_lower_bound, import, read,
};
use std::path::{Path, PathBuf};

const SMALL: &str = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n";

fn imported(text: &str) -> (Graph, Schedule, Vec<IntervalNotice>) {
    import(text.as_bytes(), &IntervalOptions::default()).expect("a sound file")
}

fn events(graph: &Graph, schedule: &Schedule) -> Vec<String> {
    let event = |&n| match graph.kind(n) {
        NodeKind::Alloc(b) => format!("+{}", graph.buf(b).id),
        NodeKind::Free(b) => format!("-{}", graph.buf(b).id),
        NodeKind::Op => "op".to_owned(),
    };
    schedule.order().iter().map(event).collect()
}

#[test]
fn lives_become_a_schedule_with_frees_before_allocs() {
    let (graph, schedule, notices) = imported(SMALL);
    assert_eq!(events(&graph, &schedule).join(" "), "+0 +2 +4 -0 +1 -1 -2 +3 -3 -4");
    assert_eq!(notices, [IntervalNotice::Numbered { first: "b1".to_owned() }]);
    let meta = graph.meta().expect("provenance");
    assert_eq!(meta, r#"{"source":"intervals","height_lower_bound":12,"names":["b1","b2","b3","b4","b5"]}"#);
}

#[test]
fn no_normalisation_changes_a_life() {
    let (graph, schedule, _) = imported(SMALL);
    for (level, name, _) in Normalize::ALL {
        assert_eq!(schedule.clone().normalized(&graph, *level), schedule, "{name}");
    }
}

#[test]
fn numbers_are_kept_as_ids_unless_two_are_the_same() {
    let (graph, ..) = imported("id,lower,upper,size\n7,0,3,4\n3,1,2,5\n");
    assert_eq!(graph.bufs().map(|b| graph.buf(b).id.0).collect::<Vec<_>>(), [7, 3]);
    let (graph, _, notices) = imported("id,lower,upper,size\n1,0,3,4\n01,1,2,5\n");
    assert_eq!(graph.bufs().map(|b| graph.buf(b).id.0).collect::<Vec<_>>(), [0, 1]);
    assert!(graph.meta().is_some_and(|m| m.contains(r#""names":["1","01"]"#)));
    assert_eq!(notices, []);
}

#[test]
fn all_columns_of_the_format_are_read() {
    let text = "\u{feff}size,start,id,end,alignment,gaps,offset,hint,colour\r\n\
                8,-2,x,9,4,0-2 3-5@2:6,16,,red\r\n8,0,y,0,,,,24,\r\n";
    let (intervals, notices) = read(text.as_bytes()).unwrap();
    let gaps = vec![Gap { lower: 0, upper: 2, window: None }, Gap { lower: 3, upper: 5, window: Some((2, 6)) }];
    let x = Interval {
        id: "x".to_owned(),
        lower: -2,
        upper: 10,
        size: 8,
        alignment: 4,
        gaps,
        offset: Some(16),
        hint: None,
    };
    let y = Interval {
        id: "y".to_owned(),
        lower: 0,
        upper: 1,
        size: 8,
        alignment: 1,
        gaps: vec![],
        offset: None,
        hint: Some(24),
    };
    assert_eq!(intervals, [x, y]);
    assert_eq!(
        notices,
        [IntervalNotice::UnknownColumn { column: "colour".to_owned() }, IntervalNotice::Inclusive],
        "end is the last moment of a life, and the reader is told"
    );
    let (_, _, notices) = imported(text);
    let left_out: Vec<_> = notices
        .iter()
        .filter_map(|n| if let IntervalNotice::NotInGraph { column, rows } = n { Some((*column, *rows)) } else { None })
        .collect();
    assert_eq!(left_out, [("alignment", 1), ("gaps", 1), ("offset", 1), ("hint", 1)]);
}

#[test]
fn the_height_counts_what_gaps_leave() {
    let height = |text: &str| height_lower_bound(&read(text.as_bytes()).unwrap().0).0;
    assert_eq!(height(SMALL), 12);
    // Two that follow each other share their place; a third beside both does not.
    assert_eq!(height("id,lower,upper,size\na,0,5,10\nb,5,9,7\nc,4,6,1\n"), 11);
    let gapped = |gap: &str| height(&format!("id,lower,upper,size,gaps\na,0,9,10,{gap}\nb,3,5,7,\n"));
    assert_eq!([gapped(""), gapped("3-5"), gapped("3-5@2:6"), gapped("3-4")], [17, 10, 11, 17]);
}

#[test]
fn wrong_rows_are_named_by_line() {
    let error = |text: &str| import(text.as_bytes(), &IntervalOptions::default()).unwrap_err().to_string();
    let row = |row: &str| error(&format!("id,lower,upper,size,alignment,gaps\na,0,1,1,,\n{row}\n"));
    assert_eq!(error(""), "the file holds no rows");
    assert_eq!(error("id,lower,upper,size\n"), "the file holds no rows");
    assert_eq!(error("id,lower,size\na,1,2\n"), "the header has no column upper (or end) (it has: id, lower, size)");
    assert_eq!(error("id,id,lower,upper,size\n"), "the header has the column id twice");
    assert_eq!(error("id,lower,upper,end,size\n"), "the header has the column end (beside upper) twice");
    assert_eq!(row("b,0,1,1,"), "line 3: 5 field(s), not one per column of the header");
    assert_eq!(row("b,3,3,1,,"), "line 3: the life of \"b\" is [3, 3), which is empty");
    assert_eq!(row("a,0,1,1,,"), "line 3: id \"a\" stands already in line 2");
    assert_eq!(row("b,0,1,0,,"), "line 3: size is \"0\", not at least 1");
    assert_eq!(row("b,0,1,1,0,"), "line 3: alignment is \"0\", not at least 1");
    assert_eq!(row("b,0,1,-1,,"), "line 3: size is \"-1\", not a whole number from 0 to 2^62");
    assert_eq!(row("b,zero,1,1,,"), "line 3: lower is \"zero\", not a whole number");
    let gaps = "not a list of from-to[@low:high] in order, inside life and size";
    for gap in ["0-9", "0-1@0:2", "1-0", "0", "0-1@", "x-y"] {
        assert_eq!(row(&format!("b,0,1,1,,{gap}")), format!("line 3: gaps is {gap:?}, {gaps}"));
    }
    assert!(matches!(import(b"id,lower\n\xff", &IntervalOptions::default()), Err(TextError::NotText { line: 2 })));
    let huge = (0..5).map(|i| format!("{i},0,1,{}\n", (1u64 << 62) - 1)).collect::<String>();
    assert!(error(&format!("id,lower,upper,size\n{huge}")).contains("sizes"));
}

/// The public instances, where the environment says where they are.
#[test]
fn the_public_instances_import_and_plan_in_their_capacity() {
    let root = std::env::var_os("SPILLBENCH_DATA").map(PathBuf::from);
    let root = root.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets/external"));
    let folder = root.join("minimalloc");
    if !folder.is_dir() {
        eprintln!("skipped: there is no {}; SPILLBENCH_DATA says where the data sets are", folder.display());
        return;
    }
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 12);
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        let stem = file.file_stem().unwrap().to_str().unwrap();
        let capacity: u64 = stem.rsplit('.').next().unwrap().parse().unwrap();
        let (graph, schedule, _) = import(&bytes, &IntervalOptions::default()).unwrap();
        let (intervals, _) = read(&bytes).unwrap();
        assert!(height_lower_bound(&intervals).0 <= capacity, "{stem}");
        let mut hardware = Hardware::default();
        hardware.caches["UB"].capacity = Bytes(capacity);
        let machine = Machine::resolve(&graph, &hardware).unwrap();
        let normalized = schedule.normalized(&graph, Normalize::Free);
        let policy = Policy { heuristic: &HEURISTICS[0], ..Policy::default() };
        let plan = policy.plan(&graph, &machine, &normalized, &mut Workspace::default()).unwrap();
        assert!(checker::check(&graph, &machine, &plan).is_valid(), "{stem}");
    }
}
