//! Orders by name and searches as cells: reproducible where the budget is in evaluations, and apart
//! from all tables where it is in seconds.

mod common;

use common::{csv, run, study, try_study};
use spillbench_harness::sweep::{Options, Shard};
use spillbench_harness::{figure, results, summary};
use std::path::Path;

const SEARCHES: &str = r#"
name = "searches"
bound = "never"
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

const BOUNDED: &str = r#"
name = "bounded"
attribution = true
best_order = "cluster"
[axes]
graphs = ["matmul(m=2,n=3,k=3)", "conv(layers=2,rows=2)"]
schedules = ["id", "cluster"]
heuristics = "belady"
[capacities]
L1 = [3072, 4096]
[search]
evaluations = [100, 500]
seeds = [1, 2]
[[figures]]
name = "over"
kind = "over-bound"
"#;

#[test]
fn searched_plans_stand_beside_a_bound_of_every_order() {
    let study = study(BOUNDED);
    let folder = tempfile::tempdir().unwrap();
    let swept = run(&study, folder.path(), &Options::default(), 2);
    let mut known = std::collections::BTreeMap::new();
    for row in swept.runs.rows() {
        let number = |column: &str| row.number(column).unwrap_or_else(|| panic!("{column} is empty"));
        assert!(number("bound") <= number("extra_movement"));
        assert_eq!(number("bound") + number("gap"), number("extra_movement"));
        let every = row.text("heuristic") == "search";
        assert_eq!(every, row.text("bound_cover") == "every-order");
        assert_eq!(row.text("bound_kind"), if every { "partition" } else { "flow" });
        // What chose its order is not blamed for an order, nor compared with the best one.
        for part in ["excess_order", "excess_capacity", "excess_victims", "movement_in_bytes"] {
            assert_eq!(row.text(part).is_empty(), every, "{part}");
        }
        if every {
            // One bound for each graph and set of capacities, whatever the start, budget and seed.
            let key = ["graph", "capacity.L1"].map(|c| row.text(c).to_owned());
            assert_eq!(*known.entry(key).or_insert_with(|| number("bound")), number("bound"));
        }
    }
    assert!(known.len() == 4 && known.values().any(|&bound| bound > 0.0), "{known:?}");
    // Marks over bounds of two covers stand apart, and so do their means.
    let scene = figure::of_rows(&swept.runs, &study.experiment.figures[0]).unwrap();
    assert!(scene.description.contains("heuristic=search (bound of every order): geometric mean"));
    assert!(scene.description.contains("heuristic=belady: geometric mean"), "{}", scene.description);
    assert_eq!(scene.misplaced_labels(), Vec::<String>::new());
    let other = run(&self::study(BOUNDED), tempfile::tempdir().unwrap().path(), &Options::default(), 1);
    assert_eq!(csv(&other), csv(&swept));
}

#[test]
fn bounds_of_searches_can_be_switched_off() {
    let never = BOUNDED.replace("attribution = true\nbest_order = \"cluster\"", "bound = \"never\"");
    let never = study(never.split("[[figures]]").next().unwrap());
    let swept = run(&never, tempfile::tempdir().unwrap().path(), &Options::default(), 2);
    assert!(swept.runs.rows().all(|row| row.text("bound").is_empty() && row.text("status") == "ok"));
    assert_ne!(never.cell(never.cell_count() - 1).key, study(BOUNDED).cell(never.cell_count() - 1).key);
}

const TIMED: &str = r#"
name = "timed"
bound = "never"
[axes]
graphs = ["matmul(m=3,n=4,k=4)", "conv(layers=2)"]
hardware = "davinci-energy"
heuristics = "belady"
[search]
objectives = ["movement", "makespan", "weighted 1:2", "energy"]
max_movement = ["none", "+10%", 0]
evaluations = [100, 800]
seeds = [1, 2]
"#;

#[test]
fn searches_for_time_are_cells() {
    let study = study(TIMED);
    assert_eq!(study.cell_count(), 2 + 2 * 6 * 2 * 2);
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let one = run(&study, folders[0].path(), &Options::default(), 1);
    let three = run(&study, folders[1].path(), &Options::default(), 3);
    assert_eq!(csv(&one), csv(&three));
    let resume = Options { resume: true, ..Options::default() };
    let again = run(&study, folders[1].path(), &resume, 2);
    assert_eq!((csv(&again), again.resumed), (csv(&one), study.cell_count()));
    let mut met = [0, 0];
    for row in one.runs.rows() {
        let number = |column: &str| row.number(column).unwrap_or_else(|| panic!("{column} is empty"));
        if row.text("status") == "unmet" {
            assert_eq!(
                (row.text("objective"), row.text("max_movement"), row.text("feasible")),
                ("makespan", "0", "true")
            );
            assert!(row.text("reason").contains("at most 0 bytes"), "{}", row.text("reason"));
            met[1] += 1;
            continue;
        }
        assert_eq!((row.text("status"), row.text("valid")), ("ok", "true"));
        let (moved, makespan) = (number("extra_movement"), number("makespan"));
        assert!(number("makespan_floor") <= makespan && number("makespan_floor") > 0.0);
        let value = match row.text("objective") {
            "" => continue,
            "movement" => moved,
            "makespan" => makespan,
            "weighted 1:2" => moved + 2.0 * makespan,
            _ => number("energy"),
        };
        assert_eq!(number("search_value"), value, "{}", row.text("objective"));
        assert!(row.number("search_start").is_none_or(|start| value <= start));
        if row.text("objective") != "movement" {
            assert!(number("least_movement") <= moved);
        }
        if let Some(limit) = row.number("movement_limit") {
            assert!(moved <= limit && row.text("max_movement") != "none");
            met[0] += 1;
        }
    }
    assert!(met[0] > 0 && met[1] > 0, "{met:?}");
}

#[test]
fn searches_for_time_that_cannot_be_are_refused() {
    let refused = |from: &str, to: &str| {
        assert!(TIMED.contains(from), "{from}");
        try_study(&TIMED.replace(from, to), Path::new(".")).unwrap_err().to_string()
    };
    assert!(refused("davinci-energy", "davinci").contains("hardware davinci states no energy"));
    assert!(refused("weighted 1:2", "weighted 1").contains("is not A:B"));
    assert!(refused("\"weighted 1:2\"", "\"weighted\"").contains("there is no objective `weighted`"));
    assert!(refused("+10%", "10%").contains("\"10%\" is neither whole bytes"));
    assert!(refused("+10%", "none").contains("holds makespan twice"));
    assert!(refused("\"makespan\", ", "").contains("`search.max_movement` means nothing"));
    assert!(refused("[axes]", "reserve = [\"L1:64\"]\n[axes]").contains("a search does not keep to reservations"));
    let folder = tempfile::tempdir().unwrap();
    let untimed = r#"{"Nodes":[{"Id":0,"Op":"ALLOC","BufId":0,"Size":1,"Type":"UB"},{"Id":1,"Op":"EXP","Bufs":[0]},
        {"Id":2,"Op":"FREE","BufId":0,"Size":1,"Type":"UB"}],"Edges":[]}"#;
    std::fs::write(folder.path().join("untimed.json"), untimed).unwrap();
    let text = TIMED.replace("\"conv(layers=2)\"", "\"untimed.json\"");
    let why = try_study(&text, folder.path()).unwrap_err().to_string();
    assert!(why.contains("objective makespan needs times") && why.contains("graph untimed"), "{why}");
}
