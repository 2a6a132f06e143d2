//! The workbench from the command line: killed sweeps resume, shards merge, figures are redrawn, and
//! differences are told.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn spillbench(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spillbench"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env_remove("SPILLBENCH_DATA");
    command
}

fn run(arguments: &[&str]) -> Output {
    spillbench(arguments).output().unwrap()
}

fn done(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const STUDY: &str = r#"
name = "kill"
seed = 3
repetitions = 4
[axes]
graphs = ["layered-dag(nodes=500)", "conv(layers=3)"]
heuristics = "all"
placements = ["best-fit", "first-fit", "worst-fit"]
[capacities]
"*" = "0.75x..1.5x step 0.25x"
[[tables]]
name = "heuristics"
compare = "heuristic"
baseline = "lru"
[[figures]]
name = "movement"
kind = "bars"
where = { capacity_factor = 1, placement = "best-fit" }
"#;

struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new(study: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("study.toml"), study).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn sweep<'a>(&self, out: &'a str, more: &[&'a str]) -> Vec<String> {
        let fixed = ["sweep".to_owned(), self.path("study.toml"), "--out".to_owned(), self.path(out)];
        fixed.into_iter().chain(more.iter().map(|s| (*s).to_owned())).collect()
    }

    fn swept(&self, out: &str, more: &[&str]) -> String {
        let arguments = self.sweep(out, more);
        done(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn read(&self, out: &str, name: &str) -> Vec<u8> {
        let path = self.folder.path().join(out).join(name);
        std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }
}

/// What does not hold wall times, and so is the same from run to run.
const FIXED: [&str; 6] = [
    "runs.csv",
    "columns.csv",
    "tables/heuristics.csv",
    "tables/heuristics.tex",
    "figures/movement.svg",
    "figures/movement.png",
];

/// A number below `n` that looks random and is the same in every run of the test.
fn draw(seed: u64, n: u64) -> u64 {
    let mixed = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) % n.max(1)
}

#[test]
fn a_sweep_killed_twenty_times_ends_as_if_it_never_was() {
    let bench = Bench::new(STUDY);
    let begin = Instant::now();
    bench.swept("whole", &["--jobs", "2"]);
    let whole = begin.elapsed();
    let journal = bench.folder.path().join("killed/journal.txt");
    let mut sizes = Vec::new();
    for kill in 0..20 {
        let arguments = bench.sweep("killed", &["--jobs", "2", "--resume"]);
        let mut child = spillbench(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).spawn().unwrap();
        // Each try lives for a random part of what is a twentieth of a run on average, after its start.
        let life = whole.as_micros() as u64 / 10;
        std::thread::sleep(Duration::from_millis(8) + Duration::from_micros(draw(kill, life)));
        child.kill().unwrap();
        child.wait().unwrap();
        sizes.push(std::fs::metadata(&journal).map_or(0, |m| m.len()));
    }
    assert!(sizes.windows(2).filter(|w| w[1] > w[0]).count() >= 3, "the kills fell into the run: {sizes:?}");
    let report = bench.swept("killed", &["--resume"]);
    assert!(report.contains("taken from the journal"), "{report}");
    for name in FIXED {
        assert!(bench.read("whole", name) == bench.read("killed", name), "{name} differs");
    }
}

#[test]
fn threads_and_shards_make_no_difference() {
    let bench = Bench::new(STUDY);
    bench.swept("one", &["--jobs", "1"]);
    bench.swept("two", &["--jobs", "2", "--fsync"]);
    for shard in ["1/3", "2/3", "3/3"] {
        bench.swept(&shard[..1], &["--shard", shard]);
    }
    let parts: Vec<_> = ["1", "2", "3"].iter().map(|p| bench.path(p)).collect();
    let merge: Vec<&str> = parts.iter().flat_map(|p| ["--merge", p.as_str()]).collect();
    let report = bench.swept("merged", &merge);
    assert!(report.contains("336 taken from the journal"), "{report}");
    for name in FIXED {
        assert!(bench.read("one", name) == bench.read("two", name), "{name}: one thread against two");
        assert!(bench.read("one", name) == bench.read("merged", name), "{name}: the whole against its shards");
    }
    assert!(done(&["diff", &bench.path("one"), &bench.path("merged")]).contains("336 the same, 0 differ"));
}

#[test]
fn an_unfinished_run_asks_what_to_do() {
    let bench = Bench::new(STUDY);
    bench.swept("out", &[]);
    std::fs::remove_file(bench.path("out/manifest.json")).unwrap();
    let arguments = bench.sweep("out", &[]);
    let output = run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        error.contains("336 finished cells") && error.contains("--resume") && error.contains("--overwrite"),
        "{error}"
    );
    bench.swept("out", &["--overwrite"]);
}

#[test]
fn a_dry_run_runs_nothing() {
    let bench = Bench::new(STUDY);
    let report = bench.swept("out", &["--dry-run"]);
    assert!(report.starts_with("kill: 336 cells, about "), "{report}");
    assert!(!Path::new(&bench.path("out")).exists());
}

#[test]
fn a_wrong_experiment_is_refused_with_its_line() {
    let bench = Bench::new(&STUDY.replace("placements", "placement"));
    let arguments = bench.sweep("out", &[]);
    let output = run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(error.contains("line 8") && error.contains("placement"), "{error}");
    assert!(!Path::new(&bench.path("out")).exists());
}

#[test]
fn figures_are_redrawn_from_the_rows() {
    let bench = Bench::new(STUDY);
    bench.swept("out", &[]);
    let redrawn = bench.path("redrawn");
    done(&["plot", &bench.path("out"), "--figure", "movement", "--out", &redrawn]);
    // The study's name stands in the title of the first and not of the second.
    let body = |path: PathBuf| {
        let svg = std::fs::read_to_string(path).unwrap();
        svg[svg.find("</title>").unwrap()..].to_owned()
    };
    assert_eq!(body(bench.path("out/figures/movement.svg").into()), body(bench.path("redrawn/movement.svg").into()));
    let settings = ["--set", "x=capacity.UB", "--set", "where.placement=best-fit"];
    let mut arguments = vec!["plot", "", "--figure", "curves", "--out", &redrawn];
    let runs = bench.path("out/runs.csv");
    arguments[1] = &runs;
    arguments.extend(settings);
    done(&arguments);
    assert!(body(bench.path("redrawn/curves.svg").into()).contains("capacity of UB (bytes)"));
    let output = run(&["plot", &runs, "--figure", "pie"]);
    assert_eq!(output.status.code(), Some(2));
    let output = run(&["plot", &runs, "--figure", "curves", "--set", "x=capacity.L9"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("capacity.L9"));
}

#[test]
fn one_plan_is_drawn_from_its_files() {
    let bench = Bench::new(STUDY);
    let graph = bench.path("conv.json");
    done(&["generate", "conv", "layers=2", "--out", &graph]);
    done(&["plan", &graph, "--out", &bench.path("plans")]);
    for view in ["map", "timeline", "residency"] {
        let stem = bench.path(view);
        done(&["figure", view, &bench.path("plans"), &graph, "--out", &stem]);
        let svg = std::fs::read_to_string(format!("{stem}.svg")).unwrap();
        assert!(svg.contains(&format!("<title>{view} of a plan of conv</title>")), "{}", &svg[..300]);
        assert!(Path::new(&format!("{stem}.png")).exists());
    }
}

#[test]
fn a_difference_is_told_cell_by_cell() {
    let bench = Bench::new(STUDY);
    bench.swept("out", &[]);
    let runs = String::from_utf8(bench.read("out", "runs.csv")).unwrap();
    let header: Vec<&str> = runs.lines().next().unwrap().split(',').collect();
    let column = header.iter().position(|h| *h == "heuristic").unwrap();
    assert!(column > 0);
    let changed = runs.replacen(",ok,", ",failed,", 1);
    std::fs::write(bench.path("changed.csv"), changed).unwrap();
    let output = run(&["diff", &bench.path("out"), &bench.path("changed.csv")]);
    let report = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(report.contains("335 the same, 1 differ") && report.contains("status ok -> failed"), "{report}");
}
