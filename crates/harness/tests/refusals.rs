//! What an experiment file may not say is refused before anything runs, with its line.

mod common;

use common::{SMALL, try_study};
use std::path::Path;

/// The complaints about `SMALL` with a line replaced or added.
fn complaints(text: &str) -> String {
    match try_study(text, Path::new(".")) {
        Ok(_) => String::new(),
        Err(complaints) => complaints.to_string(),
    }
}

fn changed(from: &str, to: &str) -> String {
    assert!(SMALL.contains(from), "{from}");
    complaints(&SMALL.replace(from, to))
}

#[test]
fn the_sample_itself_is_sound() {
    assert_eq!(complaints(SMALL), "");
}

#[test]
fn syntax_and_unknown_keys() {
    assert!(changed("seed = 7", "seed = ").starts_with("line 3"), "{}", changed("seed = 7", "seed = "));
    let unknown = changed("seed = 7", "seeds = 7");
    assert!(unknown.starts_with("line 3") && unknown.contains("seeds"), "{unknown}");
    let inner = changed("prefetch = [0, 4]", "prefetches = [0, 4]");
    assert!(inner.starts_with("line 12") && inner.contains("prefetches"), "{inner}");
    let wrong = changed("prefetch = [0, 4]", "prefetch = [0, -4]");
    assert!(wrong.starts_with("line 12"), "{wrong}");
    assert!(complaints("name = \"x\"").contains("`axes` is missing"));
    assert!(changed("name = \"small\"", "name = \"../small\"").starts_with("line 2"));
}

#[test]
fn empty_and_repetitive_axes() {
    for axis in [
        "heuristics = [\"life-size\", \"lru\", \"random\"]",
        "placements = [\"best-fit\", \"next-fit\"]",
        "L1 = [512, 2048]",
    ] {
        let key = axis.split(' ').next().unwrap();
        let text = changed(axis, &format!("{key} = []"));
        assert!(text.contains(key) && text.contains("is empty"), "{text}");
    }
    let twice = changed("\"best-fit\", \"next-fit\"", "\"best-fit\", \"all\"");
    assert!(twice.starts_with("line 11") && twice.contains("holds best-fit twice"), "{twice}");
    let same = changed("L1 = [512, 2048]", "L1 = [2048, \"0.5x\"]");
    assert!(same.contains("twice"), "2048 is half of 4096: {same}");
    assert!(changed("repetitions = 2", "repetitions = 0").starts_with("line 4"));
}

#[test]
fn unknown_names_come_with_the_known_ones() {
    let text = changed("\"lru\", ", "\"lruu\", ");
    assert!(text.starts_with("line 9") && text.contains("`lruu`") && text.contains("greedy-dual-size"), "{text}");
    assert!(changed("\"postpone-first\"", "\"single,single\"").contains("holds single twice"));
    assert!(changed("\"postpone-first\"", "\"single,double\"").contains("no strategy `double`"));
    let cache = changed("UB = \"0.5x..1x step 0.5x\"", "UC = \"0.5x..1x step 0.5x\"");
    assert!(cache.starts_with("line 15") && cache.contains("no cache in this hardware `UC`"), "{cache}");
    assert!(changed("\"affine\"", "\"afine\"").contains("no cost model `afine`"));
    assert!(changed("\"free\", \"memory\"", "\"free\", \"all-of-it\"").starts_with("line 8"));
    let capacity = changed("UB = \"0.5x..1x step 0.5x\"", "UB = \"half\"");
    assert!(capacity.starts_with("line 15") && capacity.contains("`half` is no capacity"), "{capacity}");
}

#[test]
fn impossible_combinations() {
    let missing = changed("\"conv(layers=2,rows=2)\"", "\"nothing/*.json\"");
    assert!(missing.starts_with("line 6") && missing.contains("nothing/*.json"), "{missing}");
    let spec = changed("conv(layers=2,rows=2)", "conv(layer=2)");
    assert!(spec.starts_with("line 6") && spec.contains("layer"), "{spec}");
    let factor = changed("L1 = [512, 2048]", "\"*\" = 512");
    assert!(factor.contains("multiples"), "{factor}");
    let schedule = changed("normalize", "schedules = \"none.txt\"\nnormalize");
    assert!(schedule.contains("none.txt"), "{schedule}");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tiny.toml"), "[caches.UB]\ncapacity = 64\n").unwrap();
    let text = SMALL.split("[capacities]").next().unwrap().replace("[axes]", "[axes]\nhardware = \"tiny.toml\"");
    let caches = try_study(&text, folder.path()).unwrap_err().to_string();
    assert!(caches.starts_with("line 7") && caches.contains("cannot run on hardware tiny"), "{caches}");
    std::fs::write(folder.path().join("bad.txt"), "0\n1\n").unwrap();
    let text = SMALL.replace("[axes]", "[axes]\nschedules = \"bad.txt\"");
    let order = try_study(&text, folder.path()).unwrap_err().to_string();
    assert!(order.starts_with("line 6") && order.contains("no schedule of graph"), "{order}");
    let huge = changed("L1 = [512, 2048]", "L1 = \"1..9000 step 1\"\nL0A = \"1..9000 step 1\"");
    assert!(huge.contains("at most"), "{huge}");
}

#[test]
fn tables_and_figures_name_what_exists() {
    let with = |more: &str| complaints(&format!("{SMALL}{more}"));
    let table = "[[tables]]\nname = \"t\"\ncompare = \"heuristic\"\nbaseline = ";
    assert_eq!(with(&format!("{table}\"lru\"")), "");
    let baseline = with(&format!("{table}\"belady\""));
    assert!(baseline.starts_with("line 19") && baseline.contains("life-size, lru, random"), "{baseline}");
    let figure = |rest: &str| with(&format!("[[figures]]\nname = \"f\"\nkind = {rest}"));
    assert_eq!(figure("\"curves\"\nx = \"capacity.L1\""), "");
    assert!(figure("\"pie\"").starts_with("line 18"));
    assert!(figure("\"bars\"\nx = \"capacity.L1\"").contains("`x` means nothing for a figure of kind bars"));
    assert!(figure("\"heat\"\nx = \"capacity.L1\"").contains("`y` is missing"));
    let column = figure("\"curves\"\nx = \"capacity.L9\"");
    assert!(column.starts_with("line 19") && column.contains("no numeric column `capacity.L9`"), "{column}");
    let filter = figure("\"bars\"\nwhere = { heuristic = \"lru\", placement = \"worst-fit\" }");
    assert!(filter.starts_with("line 19") && filter.contains("best-fit, next-fit"), "{filter}");
    assert!(figure("\"map\"\ncache = \"L7\"").contains("no cache `L7`"));
    let both = with("[[figures]]\nname = \"f\"\nkind = \"bars\"\n[[figures]]\nname = \"f\"\nkind = \"bars\"\n");
    assert!(both.contains("holds f twice"), "{both}");
}

#[test]
fn absent_data_is_skipped_with_a_notice() {
    let text = SMALL.replace("\"conv(layers=2,rows=2)\"", "\"data:kernels/*.json\"");
    let study = try_study(&text, Path::new(".")).unwrap();
    assert_eq!(study.graphs.len(), 1);
    assert!(study.notices[0].to_string().starts_with("skipped data:kernels/*.json"), "{}", study.notices[0]);
}

#[test]
fn the_shipped_studies_are_sound() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut seen = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        match spillbench_harness::experiment::parse(&text).unwrap_or_else(|c| panic!("{}:\n{c}", path.display())) {
            spillbench_harness::experiment::ExperimentFile::Study(study) => {
                assert_eq!(Some(study.name.as_str()), path.file_stem().and_then(|s| s.to_str()));
                let loaded = try_study(&text, &folder).unwrap_or_else(|c| panic!("{}:\n{c}", path.display()));
                assert!(loaded.cell_count() > 0);
            }
            spillbench_harness::experiment::ExperimentFile::Collection { studies, .. } => {
                assert!(studies.iter().all(|s| folder.join(&s.value).exists()));
            }
        }
        seen += 1;
    }
    assert_eq!(seen, 11);
}
