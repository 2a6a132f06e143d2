//! Orders by name and searches as cells: reproducible where the budget is in evaluations, and apart
//! from all tables where it is in seconds.

mod common;

use common::{csv, run, study, try_study};
use spillbench_harness::sweep::{Options, Shard};
use spillbench_harness::{figure, results, summary};
use std::path::Path;

const SEARCHES: &str = r#"
name = "searches"
[axes]
graphs = ["matmul(m=3,n=4,k=4)", "conv(layers=2)"]
schedules = ["id", "depth-first", "cluster"]
heuristics = ["belady", "cost-belady"]
[capacities]
"*" = ["1x", "1.5x"]
[search]
evaluations = [100, 1500]
seeds = [1, 2, 3]
[[tables]]
name = "makers"
compare = "heuristic"
baseline = "belady"
where = { schedule = "id", budget_evaluations = ["", 1500] }
[[figures]]
name = "budget"
kind = "anytime"
"#;

#[test]
fn searches_are_cells_and_the_same_on_any_number_of_threads() {
    let study = study(SEARCHES);
    assert_eq!(study.cell_count(), 2 * 3 * 2 * 2 + 2 * 3 * 2 * 2 * 3);
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let one = run(&study, folders[0].path(), &Options::default(), 1);
    let two = run(&study, folders[1].path(), &Options::default(), 2);
    assert_eq!(csv(&one), csv(&two));
    assert!(one.timed.is_empty() && one.runs.len() as u64 == study.cell_count());
    assert!(one.runs.rows().all(|row| row.text("status") == "ok" && row.text("valid") == "true"));
    let moved = |heuristic: &str, of: &dyn Fn(&str) -> String| -> f64 {
        let own = one.runs.rows().filter(|row| row.text("heuristic") == heuristic);
        own.filter(|row| {
            of("budget_evaluations").is_empty() || row.text("budget_evaluations") == of("budget_evaluations")
        })
        .map(|row| row.number("extra_movement").unwrap())
        .sum()
    };
    let budget = |n: &'static str| move |_: &str| n.to_owned();
    let (little, much) = (moved("search", &budget("100")), moved("search", &budget("1500")));
    assert!(much <= little && much > 0.0, "{much} {little}");
    let searched = one.runs.rows().filter(|row| row.text("heuristic") == "search");
    let axes: Vec<_> = searched.map(|row| ["placement", "objective", "seed"].map(|c| row.text(c))).collect();
    assert!(axes.iter().all(|[p, o, s]| p.is_empty() && *o == "movement" && ["1", "2", "3"].contains(s)), "{axes:?}");
}

#[test]
fn shards_and_resumed_runs_of_searches_give_the_same_rows() {
    let study = study(SEARCHES);
    let folders = [(); 4].map(|()| tempfile::tempdir().unwrap());
    let whole = run(&study, folders[0].path(), &Options::default(), 2);
    let mut merge = Vec::new();
    for index in 1..=2 {
        let options = Options { shard: Shard::new(index, 2).unwrap(), ..Options::default() };
        run(&study, folders[index as usize].path(), &options, 1);
        merge.push(folders[index as usize].path().to_owned());
    }
    let merged = run(&study, folders[3].path(), &Options { merge, ..Options::default() }, 2);
    assert_eq!((csv(&merged), merged.resumed), (csv(&whole), study.cell_count()));
}

#[test]
fn a_search_is_compared_with_heuristics_from_the_same_order() {
    let study = study(SEARCHES);
    let folder = tempfile::tempdir().unwrap();
    let swept = run(&study, folder.path(), &Options::default(), 2);
    let summary = summary::summarize(&swept.runs, &study.experiment.tables[0]);
    let search = summary.lines.iter().find(|line| line.value == "search").unwrap();
    assert_eq!((search.cases, search.without), (4, 0), "two graphs at two capacities, seeds as repetitions");
    assert_eq!(search.outcome[2], 0, "a search is never worse than its start: {search:?}");
    let drawn = figure::of_study(&study, &swept.runs, &study.experiment.figures[0]).unwrap().unwrap();
    assert!(drawn.svg.contains("median and range"));
}

#[test]
fn what_seconds_bring_stands_apart() {
    let text =
        SEARCHES.replace("evaluations = [100, 1500]", "seconds = [0.01, 0.02]").replace("seeds = [1, 2, 3]\n", "");
    let text = text.replace(", budget_evaluations = [\"\", 1500]", "");
    let study = study(&text.replace("kind = \"anytime\"", "kind = \"anytime\"\nx = \"budget_seconds\""));
    let folder = tempfile::tempdir().unwrap();
    let swept = run(&study, folder.path(), &Options::default(), 2);
    assert_eq!((swept.runs.len(), swept.timed.len()), (2 * 3 * 2 * 2, 2 * 3 * 2 * 2));
    assert!(swept.runs.rows().all(|row| row.text("budget_seconds").is_empty()));
    assert!(swept.timed.rows().all(|row| row.text("heuristic") == "search" && row.text("status") == "ok"));
    let written = results::write(&study, &swept, folder.path(), Shard::WHOLE).unwrap();
    assert!(written.files.iter().any(|f| f.ends_with(results::TIMED)));
    assert!(written.files.iter().any(|f| f.ends_with("budget.svg")), "{written:?}");
}

#[test]
fn searches_without_heuristics_are_a_study_and_nonsense_is_none() {
    let only = SEARCHES.replace("heuristics = [\"belady\", \"cost-belady\"]\n", "");
    let only = only.split("[[tables]]").next().unwrap().to_owned();
    assert_eq!(study(&only).cell_count(), 2 * 3 * 2 * 2 * 3);
    let refused = |text: &str| try_study(text, Path::new(".")).unwrap_err().to_string();
    let with = |from: &str, to: &str| refused(&only.replace(from, to));
    assert!(with("evaluations = [100, 1500]", "").contains("`search.evaluations` is missing"));
    assert!(with("[100, 1500]", "[0]").contains("nothing can be searched for 0 evaluations"));
    assert!(with("evaluations = [100, 1500]", "seconds = [-1.0]").contains("nothing can be searched for -1 s"));
    assert!(with("evaluations = [100, 1500]", "seconds = [nan]").contains("nothing can be searched"));
    assert!(with("[1, 2, 3]", "[1, 1]").contains("`search.seeds` holds 1 twice"));
    assert!(with("seeds =", "objectives = [\"speed\"]\nseeds =").contains("there is no objective `speed`"));
    assert!(with("seeds =", "islands = 0\nseeds =").contains("`islands` goes from 1"));
    assert!(with("\"cluster\"", "\"clusters\"").contains("orders by name: id, topological"));
    assert!(refused(only.split("[search]").next().unwrap()).contains("`heuristics` is missing"));
}
