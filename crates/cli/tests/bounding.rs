//! `bound`, `certify` and `pack`, and bounds beside plans.

mod common;

use common::{Place, data, refused, shipped};
use insta::assert_snapshot;
use serde_json::Value;

/// The schedule of the worked example.
const SCHEDULE: &str = "0\n1\n2\n4\n5\n3\n6\n7\n";

fn worked_example() -> Place {
    let place = Place::with_example();
    place.put("s.txt", SCHEDULE);
    place
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// The output without the line that tells times.
fn without_times(out: &str) -> String {
    out.lines().filter(|l| !l.contains(" in ") || !l.ends_with(" ms.")).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_bound_says_what_it_covers() {
    let place = worked_example();
    let out = place.good("bound example.json --schedule s.txt --capacity UB=10 --certificate c.json");
    assert_snapshot!(without_times(&out), @r"
    example on davinci with UB=10: 8 nodes, 2 buffers

      cache  steps  gaps  contended gaps  bound
      UB         8     2               2      4

    No plan that keeps this schedule moves less than 4 bytes (flow bound).
    Certificate: c.json
    ");
    let out = place.good("bound example.json --schedule s.txt --capacity UB=10 --covers ops --json");
    let found = json(&out);
    assert_eq!((&found["bound"], &found["bound_cover"]), (&Value::from(0), &Value::from("op-order")));
    let out = place.good("bound example.json --capacity UB=10 --covers orders");
    assert!(
        out.contains("No plan that runs this graph, in whatever order, moves less than 0 bytes (partition bound).")
    );
}

#[test]
fn a_bound_over_every_order_is_what_its_certificate_proves() {
    let place = Place::new();
    let graph = shipped("trace-zipf-600.json").display().to_string();
    let limited = json(&place.good(&format!("bound {graph} --covers orders --nodes 8000 --certificate c.json --json")));
    assert!(limited["sets"].as_array().unwrap().iter().any(|set| set["optimal"] == false), "{limited}");
    let proven = json(&place.good(&format!("certify {graph} --certificate c.json --states 16000 --json")));
    assert_eq!((&proven["bound"], &proven["claimed"]), (&limited["bound"], &limited["bound"]));
}

#[test]
fn the_least_movement_is_found_and_its_plan_is_valid() {
    let place = worked_example();
    let line = "bound example.json --schedule s.txt --capacity UB=10 --exact --out plans";
    assert_snapshot!(without_times(&place.good(line)), @r"
    example on davinci with UB=10: 8 nodes, 2 buffers

      cache  steps  gaps  contended gaps  bound
      UB         8     2               2      4

    No plan that keeps this schedule moves less than 4 bytes (flow bound).

      cache  bound  moved
      UB        12     12  optimal

    Optimal: the plan found moves 12 bytes, and none that keeps this schedule moves less (1 search node).
    ");
    assert!(place.good("check example.json --capacity UB=10 --plan plans").starts_with("valid:"));
    let document = json(&place.text("plans/example_plan.json"));
    let settings = &document["settings"];
    assert_eq!(
        (&settings["exact_nodes"], &settings["hardware"]["caches"]["UB"]["capacity"]),
        (&1_000_000.into(), &10.into())
    );
    // The hardware of the plan is that of what is done with it.
    assert!(place.good("timing example.json --plan plans").contains("UB=10"));
    let found = json(&place.good(&format!("{line} --json --nodes 5000")));
    assert_eq!(found["exact"]["optimal"], Value::from(true));
    assert_eq!((&found["exact"]["extra_movement"], &found["exact"]["bound"]), (&Value::from(12), &Value::from(12)));
}

#[test]
fn arguments_of_bound_that_do_not_go_together_are_refused() {
    let place = worked_example();
    let refused = |line: &str| place.refused(&format!("bound example.json --capacity UB=10 {line}"));
    assert!(refused("--covers all").contains("there is no cover \"all\""));
    assert!(refused("--covers orders --schedule s.txt").contains("has no schedule"));
    assert!(refused("--covers ops --exact").contains("--exact covers plans that keep the schedule"));
    assert!(refused("--nodes 7").contains("nothing is searched"));
    assert!(refused("--out plans").contains("--exact"));
    assert!(refused("--certificate /").contains("names no file"));
    assert!(place.refused("bound example.json --capacity UB=5").contains("no plan exists"));
}

#[test]
fn a_certificate_proves_what_it_can_and_no_more() {
    let place = worked_example();
    place.good("bound example.json --schedule s.txt --capacity UB=10 --certificate c.json");
    let line = "certify example.json --schedule s.txt --capacity UB=10 --certificate";
    assert_snapshot!(without_times(&place.good(&format!("{line} c.json"))), @r"
    example on davinci with UB=10

      cache  proven
      UB          4

    Proven: no plan that keeps this schedule moves less than 4 bytes.
    ");
    let text = place.text("c.json");
    place.put("more.json", text.replace("\"bound\":4", "\"bound\":5"));
    let ran = place.run(&format!("{line} more.json"));
    assert_eq!(ran.status, 1, "{}", ran.err);
    assert!(ran.out.contains("The certificate claims 5 bytes, which it does not prove here."), "{}", ran.out);
    // Of another schedule of this graph, or of another graph, it may prove less or nothing: both say why.
    place.put("t.txt", "0 1 4 5 2 3 6 7".replace(' ', "\n"));
    let ran = place.run("certify example.json --schedule t.txt --capacity UB=10 --certificate c.json");
    assert_eq!(ran.status, 1, "{}", ran.err);
    let other = ran.out.lines().find(|l| l.starts_with("It was made for this graph and another schedule")).unwrap();
    let marks = other.split(|c: char| !c.is_ascii_hexdigit()).filter(|w| w.len() == 32).collect::<Vec<_>>();
    assert!(marks.len() == 2 && marks[0] != marks[1], "{other}");
    place.put(
        "small.json",
        r#"{"Nodes":[{"Id":0,"Op":"ALLOC","BufId":0,"Size":6,"Type":"UB"},
        {"Id":1,"Op":"FREE","BufId":0,"Size":6,"Type":"UB"}],"Edges":[]}"#,
    );
    let refused = place.refused("certify small.json --capacity UB=10 --certificate c.json");
    assert!(refused.contains("priced for UB, is none of the 2 that the graph has"), "{refused}");
    let counts = "that had 8 nodes, 2 buffers and the fingerprint";
    assert!(refused.contains(counts) && refused.contains("this one has 2 nodes, 1 buffer and"), "{refused}");
    // With more room it proves less, and says so.
    let ran = place.run("certify example.json --schedule s.txt --capacity UB=12 --certificate c.json --json");
    assert_eq!((ran.status, &json(&ran.out)["bound"]), (1, &Value::from(0)));
}

#[test]
fn what_is_no_certificate_is_refused_on_one_screen() {
    let place = worked_example();
    place.good("bound example.json --schedule s.txt --capacity UB=10 --certificate c.json");
    let text = place.text("c.json");
    let line = |name: &str| format!("certify example.json --schedule s.txt --capacity UB=10 --certificate {name}");
    let refuse = |bytes: &[u8]| {
        place.put("bad.json", bytes);
        place.refused(&line("bad.json"))
    };
    assert!(refuse(b"").contains("not a certificate"));
    assert!(refuse(b"\0\0\0").contains("is not JSON"));
    assert!(refuse(b"[1]").contains("not a certificate object"));
    assert!(refuse(&text.as_bytes()[..text.len() / 2]).contains("not a certificate"));
    assert!(refuse(text.replace("\"version\":1", "\"version\":9").as_bytes()).contains("version 9"));
    assert!(refuse(text.replace("\"scale\":1", "\"scale\":0").as_bytes()).contains("the scale is 0"));
    assert!(refuse(text.replace("\"UB\"", "\"L9\"").as_bytes()).contains("cache L9"));
    assert!(refuse(text.replace("schedule\",\"bound", "every-order\",\"bound").as_bytes()).contains("cannot cover"));
    assert!(refuse(text.replace("\"prices\":[[", "\"prices\":[[99,1],[").as_bytes()).contains("node 99"));
    assert!(refuse("[".repeat(1 << 20).as_bytes()).contains("not"));
    let deep = format!("{{\"format\":{}", "[".repeat(100_000));
    assert!(refuse(deep.as_bytes()).contains("certificate"));
    let sets = |sets: &str| {
        format!(
            r#"{{"format":"spillbench-certificate","version":1,"cover":"every-order","bound":0,"proof":{{"kind":"partition","sets":[{sets}]}}}}"#
        )
    };
    assert!(refuse(sets(r#"{"cache":"UB","buffers":[0,0],"bound":9}"#).as_bytes()).contains("buffer 0"));
    assert!(refuse(sets(r#"{"cache":"UB","buffers":[7],"bound":9}"#).as_bytes()).contains("buffer 7"));
    let shared = |share: &str| sets(&format!(r#"{{"cache":"UB","buffers":[0],"shares":[{share}],"bound":9}}"#));
    assert!(refuse(shared("9").as_bytes()).contains("shares of buffer 0 add up to more than its spill costs, 6"));
    assert!(refuse(shared("1,1").as_bytes()).contains("has 2 shares"));
    place.put("shared.json", shared("6"));
    assert_eq!(place.run(&line("shared.json")).status, 0);
    place.put("sets.json", sets(r#"{"cache":"UB","buffers":[0,1],"bound":0}"#));
    assert_eq!(place.run(&line("sets.json")).status, 0);
    assert!(place.refused(&line("absent.json")).contains("absent.json"));
}

#[test]
fn intervals_are_packed_proven_impossible_or_neither() {
    let place = Place::new();
    place.put("i.csv", "id,lower,upper,size\na,0,3,4\nb,3,9,4\nc,0,9,4\nd,9,21,4\ne,0,21,4\n");
    let out = place.good("pack i.csv --capacity 12 --out packed.csv");
    assert_snapshot!(without_times(&out), @r"
    i.csv: 5 intervals in 12 bytes
    Packed: height 12; no packing is lower than 12.
    Written: packed.csv
    ");
    // What was written is a packing with every offset fixed.
    assert!(place.text("packed.csv").starts_with("id,lower,upper,size,offset\n"));
    let again = json(&place.good("pack packed.csv --capacity 12 --json"));
    assert_eq!((&again["verdict"], &again["nodes"]), (&Value::from("packed"), &Value::from(0)));
    let ran = place.run("pack i.csv --capacity 11 --out none.csv");
    assert_eq!(ran.status, 1);
    assert!(ran.out.contains("Proven: there is no packing"), "{}", ran.out);
    assert!(!place.path("none.csv").exists());
}

#[test]
fn alignments_gaps_and_fixed_offsets_are_kept() {
    let place = Place::new();
    place.put("i.csv", "id,lower,upper,size,alignment,gaps,offset\na,0,9,4,1,2-5,\nb,2,5,4,8,,0\nc,0,9,3,4,3-4@0:1,\n");
    place.good("pack i.csv --capacity 8 --out packed.csv");
    let text = place.text("packed.csv");
    assert_eq!(text.lines().next(), Some("id,lower,upper,size,alignment,gaps,offset"));
    assert!(text.contains("b,2,5,4,8,,0\n") && text.contains(",3-4@0:1,"), "{text}");
    place.good("pack packed.csv --capacity 8");
}

#[test]
fn fixed_offsets_that_leave_no_packing_are_named() {
    let place = Place::new();
    let reason = |rows: &str| {
        place.put("i.csv", format!("id,lower,upper,size,alignment,offset\n{rows}"));
        let ran = place.run("pack i.csv --capacity 12");
        assert_eq!(ran.status, 1, "{}", ran.err);
        let found = json(&place.run("pack i.csv --capacity 12 --json").out);
        assert_eq!((&found["verdict"], &found["nodes"]), (&Value::from("infeasible"), &Value::from(0)));
        let conflict = found["conflict"].as_str().unwrap().to_owned();
        assert!(ran.out.contains(&format!("Proven: there is no packing, for {conflict}.")), "{}", ran.out);
        conflict
    };
    assert_snapshot!(reason("free,0,9,1,,\na,0,5,6,,0\nb,3,9,6,,4\n"), @"a (fixed at bytes 0 up to 6, live from 0 up to 5) and b (fixed at bytes 4 up to 10, live from 3 up to 9) overlap at moment 3");
    assert_snapshot!(reason("a,0,5,6,,8\n"), @"a (fixed at bytes 8 up to 14, live from 0 up to 5) ends above the capacity of 12 bytes");
    assert_snapshot!(reason("a,0,5,6,4,2\n"), @"a (fixed at bytes 2 up to 8, live from 0 up to 5) has the alignment 4, and 2 is no multiple");
}

#[test]
fn an_upper_is_exclusive_and_an_end_inclusive() {
    let place = Place::new();
    // Both take all bytes: b begins when a is over.
    let ran = place.run_with("pack - --capacity 4", "id,lower,upper,size\na,0,3,4\nb,3,6,4\n");
    assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{}", ran.out);
    // At moment 3 both are live.
    let inclusive = |rows: &str| place.run_with("pack - --capacity 4", format!("id,start,end,size\n{rows}"));
    let ran = inclusive("a,0,3,4\nb,3,6,4\n");
    assert_eq!(ran.status, 1, "{}", ran.out);
    assert!(ran.err.contains("the column end holds the last moment of a life"), "{}", ran.err);
    assert_eq!(inclusive("a,0,2,4\nb,3,5,4\n").status, 0);
}

#[test]
fn intervals_that_make_no_sense_are_refused() {
    let place = Place::new();
    let refuse = |text: &str| {
        let line = "pack - --capacity 12";
        refused(line, place.run_with(line, text))
    };
    assert!(refuse("id,lower,upper\na,0,1\n").contains("no column size"));
    assert!(refuse("id,lower,upper,size\na,3,3,1\n").contains("line 2"));
    assert!(refuse("id,lower,upper,size\na,0,3,0\n").contains("at least 1"));
    let large: String = (0..8).map(|i| format!("{i},0,1,4611686018427387903\n")).collect();
    assert!(refuse(&format!("id,lower,upper,size\n{large}")).contains("2^62"));
    assert!(place.refused("pack absent.csv --capacity 12").contains("absent.csv"));
    assert!(place.refused("pack absent.csv --capacity 1Q").contains("whole number of bytes"));
    assert!(place.refused("pack absent.csv").contains("--capacity"));
}

#[test]
fn plans_are_compared_with_the_bound_that_covers_them() {
    let place = worked_example();
    let line = |chain: &str, bound: &str| {
        format!("plan example.json --schedule s.txt --capacity UB=10 --strategies {chain} --json --bound {bound}")
    };
    let kept = json(&place.good(&line("default", "always")));
    let told = |found: &Value| ["bound", "gap", "bound_kind", "bound_cover"].map(|key| found[key].clone());
    assert_eq!(told(&kept), [Value::from(4), Value::from(8), Value::from("flow"), Value::from("schedule")]);
    // Postponing moves an ALLOC, and what pins it does not speak of the plan.
    let moved = json(&place.good(&line("postpone-first", "auto")));
    assert_eq!(told(&moved), [Value::from(0), Value::from(0), Value::from("flow"), Value::from("op-order")]);
    let never = json(&place.good(&line("default", "never")));
    assert_eq!(told(&never), [const { Value::Null }; 4]);
    assert!(place.refused(&line("default", "sometimes")).contains("auto, always, never"));
    let out = place.good("compare example.json --capacity UB=10 --bound never");
    assert!(!out.contains("bound"), "{out}");
}

#[test]
fn explain_splits_what_is_moved() {
    let place = worked_example();
    let line = "explain example.json --schedule s.txt --capacity UB=10 --normalize none --no-what-if";
    let found = json(&place.good(&format!("{line} --best-order depth-first --json")));
    let parts = ["capacity", "order", "victims", "fragmentation"].map(|p| found["attribution"][p].as_i64().unwrap());
    assert_eq!(Some(parts.iter().sum::<i64>()), found["extra_movement"].as_i64());
    assert_eq!(parts[3], 0);
    assert!(place.good(line).contains("Where the movement comes from"));
    let out = place.good("explain example.json --capacity UB=12 --no-what-if");
    assert!(out.contains("Optimal: no plan that keeps this schedule moves less (flow bound)."), "{out}");
    assert!(place.refused(&format!("{line} --best-order best")).contains("no file or order"));
}

/// The values that others have found, and certificates that prove them.
#[test]
fn public_graphs_have_the_known_bounds() {
    let known = [
        ("Matmul_Case0", "memory", 34_944),
        ("Matmul_Case1", "memory", 460_800),
        ("FlashAttention_Case0", "memory", 2_680),
        ("Conv_Case0", "memory", 52_255),
        ("Conv_Case0", "loads", 41_742),
    ];
    let place = Place::new();
    for (name, level, bound) in known {
        let Some(graph) = data(&format!("cpmcm2025a/{name}.json")) else { return };
        let graph = graph.display();
        let line = format!("{graph} --normalize {level} --certificate c.json --json");
        let found = json(&place.good(&format!("bound {line}")));
        assert_eq!(found["bound"], Value::from(bound), "{name} {level}");
        let certified = json(&place.good(&format!("certify {line}")));
        assert_eq!(certified["bound"], Value::from(bound), "{name} {level}");
    }
}

#[test]
fn a_bound_over_every_order_looks_where_a_plan_spills() {
    let place = worked_example();
    place.good("plan example.json --schedule s.txt --out plans --quiet");
    let line = "example.json --covers every-order --certificate c.json --json";
    let found = json(&place.good(&format!("bound {line} --spills-of plans")));
    // Another order, with node 2 behind node 5, comes by without a spill.
    assert_eq!((&found["bound"], &found["sets"]), (&Value::from(0), &Value::from(Vec::<Value>::new())));
    assert!(place.refused(&format!("bound {line} --spills-of absent")).contains("absent"));
}

#[test]
fn options_that_cannot_be_kept_are_refused_before_any_search() {
    let place = worked_example();
    let exact = place.refused("bound example.json --schedule s.txt --exact --reserve UB:1@1..6");
    assert!(exact.contains("an exact search does not keep to reservations"), "{exact}");
    let time = place.refused("bound example.json --covers every-order --time 5s");
    assert!(time.contains("limited in states, not in time\nhelp: give --nodes N"), "{time}");
    let spills = place.refused("bound example.json --spills-of plans");
    assert!(spills.contains("give --covers every-order"), "{spills}");
    let time = place.refused("bound example.json --time 5s");
    assert!(time.contains("nothing is searched"), "{time}");
    let taken = place.refused("bound example.json --certificate .");
    assert!(taken.contains("names no file") || taken.contains("directory"), "{taken}");
    std::fs::create_dir(place.path("taken")).unwrap();
    let taken = place.refused("bound example.json --certificate taken");
    assert!(taken.contains("a directory has that name"), "{taken}");
    let coarse = |bytes: &str| place.refused(&format!("partition example.json --total 20 --granularity {bytes}"));
    for bytes in ["0", "21"] {
        assert!(coarse(bytes).contains(&format!("--granularity {bytes} gives no capacities within 20 bytes")));
    }
}

#[test]
fn bounds_keep_to_reservations_whose_place_is_fixed() {
    let place = worked_example();
    let line = "bound example.json --schedule s.txt --capacity UB=12 --json";
    let bound = |more: &str| json(&place.good(&format!("{line} {more}")))["bound"].clone();
    // Both buffers fit, but for a byte while node 4 runs: of the six of buffer 1 five may be kept.
    assert_eq!((bound(""), bound("--reserve UB:1@4..4")), (0.into(), 1.into()));
    assert_eq!(bound("--reserve UB:1@4..4 --covers ops"), 0, "what is used later is allocated later");
    place.good(&format!("{line} --reserve UB:1@4..4 --certificate c.json"));
    let certify = "certify example.json --schedule s.txt --capacity UB=12 --certificate c.json";
    place.good(&format!("{certify} --reserve UB:1@4..4"));
    assert_eq!(place.run(certify).status, 1, "without the reservation it proves less");
    for command in ["bound", "plan", "explain", "compare"] {
        let ran = place.run(&format!("{command} example.json --schedule s.txt --reserve UB:1@1..6"));
        assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{command}");
    }
    // A FREE may move under the wider covers.
    let ran = place.run(&format!("{line} --reserve UB:1@5.. --covers ops"));
    assert!(ran.err.contains("leaves out 1 reservation from or to an ALLOC or FREE"), "{}", ran.err);
    let every = place.refused("bound example.json --covers orders --reserve UB:1@1..6");
    assert!(every.contains("knows no place for a reservation\nhelp: leave --reserve out"), "{every}");
    let priced = json(&place.good(
        "sensitivity example.json --schedule s.txt --capacity UB=12 --cover schedule --reserve UB:1@4..4 --json",
    ));
    assert_eq!((&priced["caches"][0]["bound"], &priced["caches"][0]["price"]), (&1.into(), &1.into()));
}

#[test]
fn a_certificate_beside_an_exact_search_is_of_the_flow_bound() {
    let place = worked_example();
    let out = place.good("bound example.json --schedule s.txt --capacity UB=10 --exact --certificate c.json");
    assert!(out.contains("Certificate: c.json (of the flow bound, not of what --exact proves)"), "{out}");
}

#[test]
fn a_step_past_all_capacities_makes_all_the_room_there_is() {
    let place = worked_example();
    let line = "sensitivity example.json --schedule s.txt --capacity UB=10 --json --step 18446744073709551615";
    let found = json(&place.good(line));
    assert_eq!(found["caches"][0]["movement_with_more"], Value::from(0));
}
