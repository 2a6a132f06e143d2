//! No output takes the place of a file that the command reads, or of another output.

mod common;

use common::{EXAMPLE, Place};

/// Everything that the commands below read, and a plan of the example.
fn place() -> Place {
    let place = Place::with_example();
    place.put("s.txt", "0\n1\n2\n4\n5\n3\n6\n7\n");
    std::fs::create_dir(place.path("old")).unwrap();
    place.put("old/example_schedule.txt", place.text("s.txt"));
    place.put("lives.csv", "id,lower,upper,size\na,0,3,4\n");
    place.put("accesses.json", "1 2 3\n");
    place.good("plan example.json --capacity UB=10 --schedule s.txt --out plans");
    place.good("convert example.json --out csv");
    let caches = ["L1", "UB", "L0A", "L0B", "L0C"].map(|cache| format!("[caches.{cache}]\ncapacity = 4096\n"));
    place.put("npu.json", caches.concat());
    place
}

#[test]
fn an_input_is_never_overwritten() {
    let place = place();
    std::fs::create_dir(place.path("sub")).unwrap();
    let plans = ["example_schedule.txt", "example_memory.txt", "example_spill.txt", "example_plan.json"];
    let before: Vec<_> = plans.iter().map(|name| place.text(&format!("plans/{name}"))).collect();
    for (line, file) in [
        ("timing example.json --plan plans --trace plans/example_plan.json", "plans/example_plan.json"),
        ("timing example.json --plan plans --trace sub/../example.json", "sub/../example.json"),
        ("retime example.json --plan plans --out plans", "plans/example_schedule.txt"),
        ("retime example.json --plan plans/example_plan.json --out ./plans/", "plans/example_plan.json"),
        ("plan example.json --schedule old/example_schedule.txt --out old", "old/example_schedule.txt"),
        ("bound example.json --schedule s.txt --certificate s.txt", "s.txt"),
        ("pack lives.csv --capacity 9 --out lives.csv", "lives.csv"),
        ("partition example.json --csv example.json", "example.json"),
        ("sensitivity example.json --csv ./example.json", "example.json"),
        ("convert example.json --to json --out .", "example.json"),
        ("convert csv/example_Nodes.csv --to csv --out csv", "csv/example_Nodes.csv"),
        ("import trace accesses.json --out accesses.json", "accesses.json"),
        ("generate matmul --hardware npu.json --out npu.json", "npu.json"),
        ("optimize example.json --evaluations 5 --start plans --out plans", "plans/example_"),
        ("optimize example.json --evaluations 5 --trace example.json", "example.json"),
    ] {
        let told = place.refused(line);
        assert!(told.contains("which this command reads") && told.contains(file), "{line}: {told}");
    }
    let after: Vec<_> = plans.iter().map(|name| place.text(&format!("plans/{name}"))).collect();
    assert_eq!(before, after);
    assert_eq!(place.text("example.json"), EXAMPLE);
}

#[cfg(unix)]
#[test]
fn links_are_followed() {
    let place = place();
    std::os::unix::fs::symlink(place.path("example.json"), place.path("link.json")).unwrap();
    std::os::unix::fs::symlink(place.path("plans"), place.path("folder")).unwrap();
    for line in [
        "timing link.json --task example --plan plans --trace example.json",
        "timing example.json --plan plans --trace link.json",
        "retime example.json --plan plans --out folder",
    ] {
        assert!(place.refused(line).contains("which this command reads"), "{line}");
    }
}

#[test]
fn two_outputs_are_two_files() {
    let place = place();
    for (line, options) in [
        ("bound example.json --exact --out new --certificate new/example_plan.json", "--certificate and --out"),
        ("partition example.json --csv new.svg --figure new", "--csv and --figure"),
        ("optimize example.json --evaluations 5 --out new --trace new/example_spill.txt", "--trace and --out"),
    ] {
        let told = place.refused(line);
        assert!(told.contains(options) && told.contains("would write this one file"), "{line}: {told}");
        assert!(place.names(".").iter().all(|name| !name.starts_with("new")), "{line}");
    }
}

#[test]
fn a_folder_of_results_is_not_merged_into_itself() {
    let place = place();
    place.put("e.toml", "name = \"e\"\n[axes]\ngraphs = \"example.json\"\nheuristics = \"belady\"\n");
    place.good("sweep e.toml --out out");
    assert!(place.refused("sweep e.toml --out out --merge ./out").contains("is where the results go"));
    // Its own experiment may be run again, for the copy holds the same.
    place.put("out/experiment.toml", place.text("e.toml").replace("example.json", "../example.json"));
    place.good("sweep out/experiment.toml --out out");
    place.put("runs.csv", place.text("e.toml"));
    assert!(place.refused("sweep runs.csv --out .").contains("which this command reads"));
}
