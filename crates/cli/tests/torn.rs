//! Torn and twisted files: whatever a file holds, the answer is a plan or a refusal, never a panic.

mod common;

use common::{Place, Ran};

/// A plan of the worked example in every form that is read back.
fn planned() -> Place {
    let place = Place::with_example();
    place.put("s.txt", "0\n1\n2\n4\n5\n3\n6\n7\n");
    place.put(
        "hw.toml",
        "name = \"small\"\npipes = [\"MTE2\"]\n[spill_cost]\nmodel = \"bandwidth\"\n[caches.UB]\ncapacity = 10\n",
    );
    place.good("plan example.json --schedule s.txt --capacity UB=10 --out .");
    place.good("convert example.json --out .");
    place
}

/// A refusal is on one screen and prints nothing; `panicked` is looked for by [`Place::run`].
fn assert_answered(what: &str, ran: &Ran) {
    match ran.status {
        0 | 1 => assert!(!ran.out.is_empty(), "{what}: no answer"),
        2 => {
            assert!(ran.err.starts_with("error: "), "{what}: {}", ran.err);
            assert!(ran.err.len() < 4_000 && ran.out.is_empty(), "{what}: {}", ran.err);
        }
        other => panic!("{what}: status {other}: {}", ran.err),
    }
}

/// Runs `line` with `file` cut short, with a byte changed and with a stretch doubled, at `places`
/// places spread over it.
fn tear(place: &Place, file: &str, line: &str, places: usize) {
    let whole = std::fs::read(place.path(file)).unwrap();
    for i in 0..places {
        let at = i * whole.len() / places;
        let cut = whole[..at].to_vec();
        let mut changed = whole.clone();
        changed[at] = [b'9', b'"', b'-', 0xff, b','][i % 5];
        let mut doubled = whole.clone();
        doubled.splice(at..at, whole[at / 2..at].to_vec());
        for (how, bytes) in [("cut", cut), ("changed", changed), ("doubled", doubled)] {
            place.put(file, bytes);
            assert_answered(&format!("{file} {how} at {at}"), &place.run(line));
        }
    }
    place.put(file, whole);
}

#[test]
fn torn_graphs_are_answered() {
    let place = planned();
    tear(&place, "example.json", "explain example.json --capacity UB=10", 40);
    tear(&place, "example_Nodes.csv", "plan example_Nodes.csv --capacity UB=10", 15);
    tear(&place, "example_Edges.csv", "plan example_Edges.csv --capacity UB=10", 10);
}

#[test]
fn torn_schedules_and_hardware_are_answered() {
    let place = planned();
    tear(&place, "s.txt", "plan example.json --schedule s.txt --capacity UB=10", 10);
    tear(&place, "hw.toml", "plan example.json --hardware hw.toml", 20);
}

#[test]
fn torn_plans_are_answered() {
    let place = planned();
    tear(&place, "example_plan.json", "check example.json --plan example_plan.json --capacity UB=10", 40);
    let line =
        "check example.json --schedule example_schedule.txt --memory example_memory.txt --spill example_spill.txt";
    for file in ["example_schedule.txt", "example_memory.txt", "example_spill.txt"] {
        tear(&place, file, line, 6);
    }
}
