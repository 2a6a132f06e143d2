//! Figures hold what they promise: every series, every axis with its unit, the numbers of the table,
//! and no label that overlaps another or leaves the page.

mod common;

use common::{run, study};
use spillbench_core::planner::Workspace;
use spillbench_core::{Graph, GraphBuilder, Hardware, Machine, Schedule};
use spillbench_harness::experiment::{FigureOptions, FigureSpec, PlanView, Width, figure_from_options};
use spillbench_harness::figure::scene::{Scene, Shape};
use spillbench_harness::figure::{self, Drawn, PlanPicture};
use spillbench_harness::sweep::Options;
use spillbench_harness::table::Table;
use spillbench_heuristics::Policy;
use std::sync::OnceLock;

const STUDY: &str = r#"
name = "figures"
seed = 1
repetitions = 2
[axes]
graphs = ["conv(layers=3)", "flash-attention", "layered-dag(nodes=600)", "mlp(layers=2,rows=3,width=3)"]
heuristics = "all"
placements = ["best-fit", "worst-fit"]
[capacities]
"*" = "0.75x..1.5x step 0.25x"
"#;

/// The rows of the study, swept once for all tests.
fn rows() -> &'static Table {
    static ROWS: OnceLock<Table> = OnceLock::new();
    ROWS.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        run(&study(STUDY), folder.path(), &Options::default(), 2).runs
    })
}

fn spec(kind: &str, keys: &[(&str, &str)]) -> FigureSpec {
    let keys = keys.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    figure_from_options(&FigureOptions { kind: kind.to_owned(), keys }).unwrap_or_else(|c| panic!("{c}"))
}

fn texts(scene: &Scene) -> Vec<&str> {
    scene.labels().map(|label| label.text.as_str()).collect()
}

/// Draws a scene both ways and checks what holds for every figure.
fn sound(scene: &Scene, name: &str) -> Drawn {
    assert_eq!(scene.misplaced_labels(), Vec::<String>::new(), "{name}");
    let drawn = Drawn::of(scene, name).unwrap();
    for label in scene.labels() {
        let escaped = label.text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        assert!(drawn.svg.contains(&escaped), "{name}: the SVG lacks {:?}", label.text);
    }
    let marks = scene.shapes.iter().filter(|s| !matches!(s, Shape::Text(_))).count();
    assert!(marks > 10, "{name} is empty");
    // The SVG is well-formed as far as its tags go, and the PNG opens.
    assert_eq!(drawn.svg.matches("<text").count(), drawn.svg.matches("</text>").count());
    let mut reader = png::Decoder::new(std::io::Cursor::new(&drawn.png)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!(f64::from(info.width), (scene.width * 5.0).round());
    let inked = pixels.chunks(3).filter(|p| p != &[255, 255, 255]).count();
    assert!(inked * 200 > pixels.len() / 3, "{name}: {inked} pixels of {} are inked", pixels.len() / 3);
    drawn
}

#[test]
fn bars_hold_every_series_and_number() {
    let runs = rows();
    for width in ["column", "page"] {
        let filter = [("where.capacity_factor", "1"), ("where.placement", "best-fit"), ("width", width)];
        let figure = spec("bars", &filter);
        let scene = figure::of_rows(runs, &figure).unwrap();
        let drawn = sound(&scene, width);
        assert_eq!(drawn, Drawn::of(&scene, width).unwrap(), "the same scene gives the same bytes");
        for row in runs.filtered(&figure.filter).iter().filter(|row| row.text("heuristic") != "random") {
            let (graph, heuristic, value) = (row.text("graph"), row.text("heuristic"), row.text("extra_movement"));
            assert!(texts(&scene).contains(&heuristic), "{width} lacks {heuristic}");
            let line = format!("graph={graph}; heuristic={heuristic}: extra_movement={value}\n");
            assert!(scene.description.contains(&line), "{width} lacks {line}");
        }
        assert!(texts(&scene).contains(&"graph"));
        // A long label takes two lines.
        let all = texts(&scene).join(" ");
        assert!(all.contains("mean extra data movement (bytes)"), "{all}");
    }
    let few = [
        ("where.capacity_factor", "1"),
        ("where.placement", "best-fit"),
        ("where.heuristic", "lru"),
        ("where.heuristic", "belady"),
    ];
    let figure = spec("bars", &few);
    let scene = figure::of_rows(runs, &figure).unwrap();
    for row in runs.filtered(&figure.filter) {
        let value = row.number("extra_movement").unwrap();
        let shown = if value < 10_000.0 { format!("{value}") } else { format!("{:.3e}", value / 1000.0) };
        let digits: String = shown.chars().filter(char::is_ascii_digit).take(3).collect();
        let found = texts(&scene).iter().any(|t| {
            t.chars().filter(char::is_ascii_digit).collect::<String>().starts_with(&digits[..digits.len().min(2)])
        });
        assert!(found, "{value} stands above no bar: {:?}", texts(&scene));
    }
}

#[test]
fn curves_hold_every_series_panel_and_unit() {
    let runs = rows();
    for (x, label) in [("capacity_factor", "capacity factor (times)"), ("capacity.L1", "capacity of L1 (bytes)")] {
        for width in ["column", "page"] {
            let scene =
                figure::of_rows(runs, &spec("curves", &[("x", x), ("width", width), ("where.placement", "best-fit")]))
                    .unwrap();
            sound(&scene, "curves");
            for heuristic in spillbench_heuristics::HEURISTICS {
                assert!(texts(&scene).contains(&heuristic.name), "{}", heuristic.name);
            }
            assert!(
                texts(&scene)
                    .iter()
                    .filter(|t| **t == label || label.starts_with(t.split('…').next().unwrap_or("?")))
                    .count()
                    >= 4,
                "{label}: {:?}",
                texts(&scene)
            );
            assert!(texts(&scene).contains(&"conv(layers=3)"));
        }
    }
    let one = figure::of_rows(runs, &spec("curves", &[("facet", "none"), ("series", "placement"), ("scale", "log")]))
        .unwrap();
    sound(&one, "one panel");
}

#[test]
fn heat_maps_hold_the_numbers() {
    let runs = rows();
    let keys = [
        ("x", "capacity_factor"),
        ("y", "heuristic"),
        ("width", "page"),
        ("where.placement", "best-fit"),
        ("where.graph", "conv(layers=3)"),
    ];
    let figure = spec("heat", &keys);
    let scene = figure::of_rows(runs, &figure).unwrap();
    sound(&scene, "heat");
    let lru = runs
        .filtered(&figure.filter)
        .into_iter()
        .find(|r| r.text("heuristic") == "lru" && r.text("capacity_factor") == "1.5")
        .unwrap();
    let thousands = format!("{:.1}k", lru.number("extra_movement").unwrap() / 1000.0);
    assert!(texts(&scene).contains(&thousands.as_str()), "{thousands}: {:?}", texts(&scene));
    assert!(texts(&scene).contains(&"no plan"), "0.75 is too little for a convolution");
    sound(
        &figure::of_rows(runs, &spec("heat", &[("x", "heuristic"), ("y", "placement"), ("facet", "graph")])).unwrap(),
        "heat, turned",
    );
}

#[test]
fn profiles_hold_every_series() {
    let runs = rows();
    for (series, cases) in [("heuristic", 30), ("placement", 165)] {
        let scene = figure::of_rows(runs, &spec("profile", &[("series", series)])).unwrap();
        sound(&scene, "profile");
        assert!(scene.description.contains("within 1.5"), "{}", scene.description);
        let share = texts(&scene).into_iter().find(|t| t.starts_with("share of")).unwrap().to_owned();
        assert_eq!(share, format!("share of {cases} cases"), "cases with a plan");
        assert!(texts(&scene).contains(&"extra data movement within a factor of the best"));
    }
}

#[test]
fn causes_hold_every_part() {
    let runs = rows();
    let conv = ("where.graph", "conv(layers=3)");
    let parts =
        [("cause", &["capacity", "fragmentation"][..]), ("backing", &["backed", "generated"]), ("cache", &["L1"])];
    for (part, words) in parts {
        let keys = [("part", part), conv, ("where.capacity_factor", "1"), ("where.placement", "best-fit")];
        let scene = figure::of_rows(runs, &spec("causes", &keys)).unwrap();
        sound(&scene, part);
        assert!(words.iter().all(|word| texts(&scene).contains(word)), "{part}: {:?}", texts(&scene));
    }
    let panels = [("facet", "placement"), ("width", "page"), conv, ("where.capacity_factor", "1.25")];
    sound(&figure::of_rows(runs, &spec("causes", &panels)).unwrap(), "causes in panels");
}

#[test]
fn cells_without_a_plan_are_shown_as_such() {
    let runs = rows();
    let keys = [("where.capacity_factor", "0.75"), ("where.graph", "conv(layers=3)"), ("where.heuristic", "lru")];
    for kind in ["bars", "curves", "causes", "profile"] {
        let scene = figure::of_rows(runs, &spec(kind, &keys)).unwrap();
        assert_eq!(scene.misplaced_labels(), Vec::<String>::new(), "{kind}");
        Drawn::of(&scene, kind).unwrap();
        assert!(kind == "profile" || texts(&scene).contains(&"no plan"), "{kind}: {:?}", texts(&scene));
    }
    assert_eq!(figure::of_rows(runs, &spec("bars", &[("where.heuristic", "nobody")])), None);
}

/// The worked example of the specification: two spills in a cache of ten bytes.
fn worked() -> (Graph, Hardware) {
    let mut b = GraphBuilder::new();
    b.alloc(0, 0, 6, "UB").op(1, "COPY_IN", "MTE2", 15, &[0]).alloc(2, 1, 6, "UB").op(3, "COPY_IN", "MTE2", 15, &[1]);
    b.op(4, "EXP", "VECTOR", 300, &[0]).free(5, 0, 6, "UB").op(6, "EXP", "VECTOR", 300, &[1]).free(7, 1, 6, "UB");
    for (from, to) in [(0, 1), (1, 4), (4, 5), (2, 3), (3, 6), (6, 7)] {
        b.edge(from, to);
    }
    let mut hardware = Hardware::default();
    hardware.set_capacity("UB", spillbench_core::Bytes(10)).unwrap();
    (b.build().unwrap().0, hardware)
}

fn scene_of(graph: &Graph, hardware: &Hardware, view: PlanView, width: Width) -> Option<Scene> {
    let machine = Machine::resolve(graph, hardware).unwrap();
    let schedule = Schedule::default_for(graph).normalized(graph, spillbench_core::schedule::Normalize::Free);
    let plan = Policy::default().plan(graph, &machine, &schedule, &mut Workspace::default()).unwrap();
    let picture = PlanPicture { graph, machine: &machine, plan: &plan, cache: None, heading: Some("A plan"), width };
    figure::of_plan(view, &picture).unwrap()
}

#[test]
fn views_of_a_plan_hold_its_segments_spills_and_limits() {
    let (graph, hardware) = worked();
    let map = scene_of(&graph, &hardware, PlanView::Map, Width::Column).unwrap();
    sound(&map, "map");
    assert!(map.description.contains("UB: 4 segments, 2 spills"), "{}", map.description);
    for text in ["spilled, backed", "capacity", "address (bytes)", "position in the schedule", "A plan"] {
        assert!(texts(&map).contains(&text), "{text}");
    }
    let residency = scene_of(&graph, &hardware, PlanView::Residency, Width::Column).unwrap();
    sound(&residency, "residency");
    assert!(residency.description.contains("UB: capacity 10, peak residency 6"), "{}", residency.description);
    let timeline = scene_of(&graph, &hardware, PlanView::Timeline, Width::Page).unwrap();
    sound(&timeline, "timeline");
    for text in ["MTE2", "VECTOR", "EXP", "SPILL_IN", "time (cycles)"] {
        assert!(texts(&timeline).contains(&text), "{text}: {:?}", texts(&timeline));
    }
}

#[test]
fn views_of_larger_plans_are_sound() {
    let unbounded = Hardware::preset("davinci-unbounded").unwrap();
    for (spec, hardware, width) in [
        ("conv(layers=3)", Hardware::default(), Width::Page),
        ("flash-attention", Hardware::default(), Width::Column),
        ("matmul(m=4,n=4,k=4)", unbounded, Width::Column),
    ] {
        let graph = spillbench_workloads::generate(&spec.parse().unwrap()).unwrap();
        for view in [PlanView::Map, PlanView::Residency, PlanView::Timeline] {
            let scene = scene_of(&graph, &hardware, view, width).unwrap();
            sound(&scene, &format!("{view} of {spec} on {}", hardware.name));
        }
    }
}

#[test]
fn a_graph_without_timing_has_no_timeline() {
    let graph = spillbench_core::formats::graph_json::read(
        br#"{"Nodes":[{"Id":0,"Op":"ALLOC","BufId":0,"Size":1,"Type":"UB"},{"Id":1,"Op":"EXP","Bufs":[0]},
            {"Id":2,"Op":"FREE","BufId":0,"Size":1,"Type":"UB"}],"Edges":[[0,1],[1,2]]}"#,
    );
    let graph = graph.unwrap().0;
    assert_eq!(scene_of(&graph, &Hardware::default(), PlanView::Timeline, Width::Page), None);
    assert!(scene_of(&graph, &Hardware::default(), PlanView::Map, Width::Page).is_some());
}

#[test]
fn the_figures_of_the_quickstart_are_sound() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let text = std::fs::read_to_string(folder.join("quickstart.toml")).unwrap();
    let study = common::try_study(&text, &folder).unwrap();
    let out = tempfile::tempdir().unwrap();
    let swept = run(&study, out.path(), &Options::default(), 2);
    assert_eq!(swept.defects(), 0);
    let mut views = 0;
    for spec in &study.experiment.figures {
        match figure::of_rows(&swept.runs, spec) {
            Some(scene) => drop(sound(&scene, &spec.name.value)),
            None => {
                let drawn = figure::of_study(&study, &swept.runs, spec).unwrap().expect("a plan to draw");
                assert!(drawn.svg.contains("conv(layers=3)") && drawn.png.len() > 1000, "{}", spec.name.value);
                views += 1;
            }
        }
    }
    assert_eq!((study.experiment.figures.len(), views), (8, 3));
}
