//! The sweep engine: the same table for any number of threads, any shards, and any interruption.

mod common;

use common::{SMALL, csv, run, study};
use spillbench_harness::journal;
use spillbench_harness::results;
use spillbench_harness::sweep::{self, Options, Shard, Silent};
use spillbench_harness::{HarnessError, study::Study};
use std::collections::BTreeSet;
use std::time::Duration;

fn resume() -> Options {
    Options { resume: true, ..Options::default() }
}

#[test]
fn cells_are_the_product_of_the_axes() {
    let study = study(SMALL);
    // Graphs, costs, levels, capacities, heuristics (the one that draws twice), chains, rules, windows.
    assert_eq!(study.cell_count(), 2 * 2 * 2 * 4 * (2 + 2) * 2 * 2 * 2);
    let keys: BTreeSet<_> = (0..study.cell_count()).map(|i| study.cell(i).key).collect();
    assert_eq!(keys.len() as u64, study.cell_count(), "every cell has a key of its own");
    let seeds: BTreeSet<_> = (0..study.cell_count()).map(|i| study.cell(i).seed).collect();
    assert_eq!(seeds.len() as u64, study.cell_count());
}

#[test]
fn keys_depend_on_content_alone() {
    let key = |text: &str| study(text).cell(0).key;
    let commented = format!("# A comment.\n{}", SMALL.replace("name = \"small\"", "name = \"renamed\""));
    assert_eq!(key(SMALL), key(&commented));
    assert_ne!(key(SMALL), key(&SMALL.replace("seed = 7", "seed = 8")));
    assert_ne!(key(SMALL), key(&SMALL.replace("nodes=120", "nodes=130")));
    assert_ne!(key(SMALL), key(&SMALL.replace("L1 = [512", "L1 = [513")));
}

#[test]
fn threads_make_no_difference_and_the_checker_has_seen_every_plan() {
    let study = study(SMALL);
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let one = run(&study, folders[0].path(), &Options::default(), 1);
    let two = run(&study, folders[1].path(), &Options::default(), 2);
    assert_eq!(csv(&one), csv(&two));
    assert_eq!(one.runs.len() as u64, study.cell_count());
    let count = |column: &str, text: &str| one.runs.rows().filter(|row| row.text(column) == text).count();
    assert!(count("status", "infeasible") > 0 && count("status", "ok") > 0);
    assert_eq!(count("valid", "true"), count("status", "ok"));
    assert_eq!(count("status", "ok") + count("status", "infeasible"), one.runs.len());
    let row = one.runs.rows().find(|row| row.text("status") == "infeasible").unwrap();
    assert!(
        row.text("reason").contains("larger than") || row.text("reason").contains("at once"),
        "{}",
        row.text("reason")
    );
    assert_eq!((row.text("feasible"), row.text("valid"), row.text("extra_movement")), ("false", "", ""));
}

#[test]
fn parts_of_a_row_add_up() {
    let study = study(SMALL);
    let folder = tempfile::tempdir().unwrap();
    let swept = run(&study, folder.path(), &Options::default(), 2);
    let mut spills = 0.0;
    for row in swept.runs.rows().filter(|row| row.text("status") == "ok") {
        let sum = |columns: &[&str]| columns.iter().map(|c| row.number(c).unwrap_or(0.0)).sum::<f64>();
        let movement = row.number("extra_movement").unwrap();
        assert_eq!(sum(&["movement_backed", "movement_generated"]), movement);
        assert_eq!(sum(&["movement_capacity", "movement_fragmentation", "movement_unknown_cause"]), movement);
        assert_eq!(sum(&["movement.L1", "movement.UB", "movement.L0A", "movement.L0B", "movement.L0C"]), movement);
        assert_eq!(sum(&["spills_backed", "spills_generated"]), row.number("spill_count").unwrap());
        spills += row.number("spill_count").unwrap();
    }
    assert!(spills > 0.0, "a study in which nothing spills proves nothing");
}

#[test]
fn a_seed_in_the_table_makes_the_same_plan_again() {
    let study = study(SMALL);
    let folder = tempfile::tempdir().unwrap();
    let swept = run(&study, folder.path(), &Options::default(), 2);
    let random: Vec<_> = swept.runs.rows().filter(|row| row.text("heuristic") == "random").collect();
    assert!(random.iter().any(|row| row.text("repetition") == "1"));
    let key = |row: &spillbench_harness::table::Row<'_>| {
        (0..study.cell_count()).map(|i| study.cell(i)).find(|c| c.key.to_string() == row.text("cell")).unwrap()
    };
    for row in random.iter().step_by(17).filter(|row| row.text("status") == "ok") {
        let cell = key(row);
        let graph = &cell.graph.graph;
        let machine = spillbench_core::Machine::resolve(graph, &cell.hardware.hardware()).unwrap();
        let mut policy = cell.planning().unwrap().policy(cell.seed);
        policy.seed = row.text("seed").parse().unwrap();
        let plan = policy.plan(graph, &machine, &cell.normalized(), &mut Default::default()).unwrap();
        let measured = spillbench_core::metrics::measure(graph, &machine, &plan).unwrap();
        assert_eq!(measured.extra_movement.0.to_string(), row.text("extra_movement"));
    }
}

#[test]
fn shards_merge_to_the_whole() {
    let study = study(SMALL);
    let folder = tempfile::tempdir().unwrap();
    let whole = run(&study, &folder.path().join("whole"), &Options::default(), 2);
    let parts: Vec<_> = (1..=3).map(|i| folder.path().join(format!("part{i}"))).collect();
    for (i, part) in parts.iter().enumerate() {
        let options = Options { shard: Shard::new(i as u32 + 1, 3).unwrap(), ..Options::default() };
        let swept = run(&study, part, &options, 2);
        assert!(swept.runs.len() < whole.runs.len() / 2);
    }
    let merge = Options { merge: parts, ..Options::default() };
    let merged = run(&study, &folder.path().join("merged"), &merge, 2);
    assert_eq!(csv(&merged), csv(&whole));
    assert_eq!(merged.resumed, study.cell_count(), "nothing was run again");
}

#[test]
fn a_torn_journal_resumes_to_the_same_table() {
    let text = SMALL.replace("placements = [\"best-fit\", \"next-fit\"]", "").replace("\"conv(layers=2,rows=2)\"", "");
    let text = text
        .replace("normalize = [\"free\", \"memory\"]", "")
        .replace("prefetch = [0, 4]", "")
        .replace("\"affine\", ", "");
    let study = study(&text);
    let folder = tempfile::tempdir().unwrap();
    let whole = run(&study, folder.path(), &Options::default(), 1);
    let path = folder.path().join(journal::FILE_NAME);
    let bytes = std::fs::read(&path).unwrap();
    // Every byte of the header and of the first cells, then a sample that falls on all places of a line.
    let torn = (0..2000.min(bytes.len())).step_by(7).chain((2000..=bytes.len()).step_by(211));
    for end in torn {
        std::fs::write(&path, &bytes[..end]).unwrap();
        let swept = run(&study, folder.path(), &resume(), 1);
        assert_eq!(csv(&swept), csv(&whole), "torn at byte {end}");
        let lines = bytes[..end].iter().filter(|&&b| b == b'\n').count() as u64;
        assert_eq!(swept.resumed, lines.saturating_sub(1), "torn at byte {end}");
    }
}

#[test]
fn an_unfinished_run_is_neither_lost_nor_mixed_up() {
    let study = study(SMALL);
    let folder = tempfile::tempdir().unwrap();
    run(&study, folder.path(), &Options::default(), 2);
    let again = sweep::run(&study, folder.path(), &Options::default(), &mut Silent);
    assert!(matches!(again, Err(HarnessError::Unfinished { finished, .. }) if finished as u64 == study.cell_count()));
    let anew = run(&study, folder.path(), &Options { overwrite: true, ..Options::default() }, 2);
    assert_eq!(anew.resumed, 0);
    let swept = run(&study, folder.path(), &resume(), 2);
    assert_eq!(swept.resumed, study.cell_count());
    results::write(&study, &swept, folder.path(), Shard::WHOLE).unwrap();
    let after = run(&study, folder.path(), &Options::default(), 2);
    assert_eq!(after.resumed, 0, "a finished run may be run again");
}

#[test]
fn an_edited_experiment_takes_what_it_still_has() {
    let folder = tempfile::tempdir().unwrap();
    let before = study(&SMALL.replace("\"lru\", ", ""));
    let first = run(&before, folder.path(), &Options::default(), 2);
    let after = study(SMALL);
    let swept = run(&after, folder.path(), &resume(), 2);
    assert_eq!(swept.resumed, first.runs.len() as u64);
    let fresh = tempfile::tempdir().unwrap();
    assert_eq!(csv(&swept), csv(&run(&after, fresh.path(), &Options::default(), 2)));
}

#[test]
fn a_run_leaves_all_that_reproduces_it() {
    let with_table = format!("{SMALL}[[tables]]\nname = \"t\"\ncompare = \"heuristic\"\nbaseline = \"lru\"\n");
    let study: Study = study(&with_table);
    let [a, b] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    for (folder, threads) in [(&a, 1), (&b, 2)] {
        let swept = run(&study, folder.path(), &Options::default(), threads);
        results::write(&study, &swept, folder.path(), Shard::WHOLE).unwrap();
    }
    let read = |name: &str| [&a, &b].map(|f| std::fs::read_to_string(f.path().join(name)).unwrap());
    for name in ["runs.csv", "columns.csv", "experiment.toml", "tables/t.csv", "tables/t.md", "tables/t.tex"] {
        let [first, second] = read(name);
        assert_eq!(first, second, "{name}");
    }
    let manifest: spillbench_harness::manifest::Manifest = serde_json::from_str(&read("manifest.json")[0]).unwrap();
    assert_eq!((manifest.cells, manifest.rows), (study.cell_count(), study.cell_count()));
    assert_eq!(manifest.experiment_text, with_table);
    assert_eq!(manifest.graphs.len(), 2);
    let columns = spillbench_harness::table::Table::read(&a.path().join("columns.csv")).unwrap();
    let runs = spillbench_harness::table::Table::read(&a.path().join("runs.csv")).unwrap();
    assert!(columns.rows().map(|r| r.text("column").to_owned()).eq(runs.names().map(str::to_owned)));
    let timings = spillbench_harness::table::Table::read(&a.path().join("timings.csv")).unwrap();
    assert!(timings.rows().map(|r| r.text("cell").to_owned()).eq(runs.rows().map(|r| r.text("cell").to_owned())));
}

#[test]
fn an_estimate_runs_a_sample() {
    let study = study(SMALL);
    let estimate = sweep::estimate(&study, Shard::WHOLE, Duration::from_millis(200));
    assert_eq!(estimate.cells, study.cell_count());
    assert!(estimate.sampled > 0 && estimate.time > Duration::ZERO);
}

const RETIMED: &str = r#"
name = "retimed"
seed = 7
repetitions = 2
reserve = ["L1:64", "UB:32@3..40"]
[axes]
graphs = ["matmul(m=3,n=4,k=4)", "flash-attention(q=2,kv=4)"]
heuristics = ["belady", "random"]
retime = [false, true]
"#;

#[test]
fn retiming_is_an_axis_that_changes_nothing_but_time() {
    let study = study(&RETIMED.replace("reserve = [\"L1:64\", \"UB:32@3..40\"]\n", ""));
    let folder = tempfile::tempdir().unwrap();
    let swept = run(&study, folder.path(), &Options::default(), 2);
    assert_eq!(swept.runs.len(), 2 * (1 + 2) * 2);
    let rows: Vec<_> = swept.runs.rows().collect();
    let mut saved = 0.0;
    for pair in rows.chunks(2) {
        let number = |row: &spillbench_harness::table::Row<'_>, column: &str| row.number(column).unwrap();
        assert_eq!([pair[0].text("retime"), pair[1].text("retime")], ["false", "true"]);
        assert_ne!(pair[0].text("cell"), pair[1].text("cell"));
        for same in ["seed", "extra_movement", "spill_count", "movement.L1", "repetition"] {
            assert_eq!(pair[0].text(same), pair[1].text(same), "{same}");
        }
        assert_eq!(number(&pair[0], "makespan") - number(&pair[1], "makespan"), number(&pair[1], "cycles_saved"));
        saved += number(&pair[1], "cycles_saved");
        // A retimed plan has left the order of its schedule, unless it stayed as it was.
        let cover = if number(&pair[1], "cycles_saved") > 0.0 { "every-order" } else { "schedule" };
        assert_eq!(pair[1].text("bound_cover"), cover);
        assert!(number(&pair[1], "bound") <= number(&pair[1], "extra_movement"));
    }
    assert!(saved > 0.0);
    let off = self::study(&RETIMED.replace("retime = [false, true]\n", "")).cell(0).key;
    assert_eq!(off, self::study(RETIMED).cell(0).key, "a plan that is not retimed is the same cell");
}

#[test]
fn reservations_have_a_column() {
    let with = study(RETIMED);
    let folder = tempfile::tempdir().unwrap();
    let swept = run(&with, folder.path(), &Options::default(), 2);
    assert!(swept.runs.rows().all(|row| row.text("reserve") == "L1:64 UB:32@3..40" && row.text("status") == "ok"));
    assert!(swept.runs.rows().all(|row| row.number("bound") <= row.number("extra_movement")));
    let without = study(&RETIMED.replace("reserve = [\"L1:64\", \"UB:32@3..40\"]\n", ""));
    assert_ne!(with.cell(0).key, without.cell(0).key);
    let folder = tempfile::tempdir().unwrap();
    let plain = run(&without, folder.path(), &Options::default(), 2);
    assert!(plain.runs.rows().all(|row| row.text("reserve").is_empty()));
    let difference = spillbench_harness::diff::compare(&swept.runs, &plain.runs);
    assert_eq!((difference.common, difference.only_first.len()), (0, swept.runs.len()));
    assert!(difference.only_first[0].contains("reserve=L1:64 UB:32@3..40"), "{:?}", difference.only_first[0]);
}
