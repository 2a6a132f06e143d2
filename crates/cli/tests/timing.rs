//! `timing`, `retime` and traces: what they print and write.

mod common;

use common::{Place, data};
use insta::assert_snapshot;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The worked example in a UB of 10, planned into `plans/`.
fn planned() -> Place {
    let place = Place::with_example();
    place.good("plan example.json --capacity UB=10 --out plans");
    place
}

#[test]
fn the_time_of_a_small_plan_is_explained() {
    // Loads of 10, EXPs of 5, reloads of 2·6 + 150 = 162: 1 0-10, 3 10-20, 9 20-182, 4 182-187,
    // 11 187-349, 6 349-354. The hardware comes from the plan document.
    assert_snapshot!(planned().good("timing example.json --plan plans/ --critical-path"), @r"
    example with the plan plans/example_plan.json on davinci with UB=10
    Makespan 354 cycles; floor with these spills 349: 0 before MTE2 can begin, 344 on it, 5 behind.

      pipe    steps  busy  of makespan  head  data  address  order  tail
      MTE2        4   344        97.2%     0     0        5      0     5
      VECTOR      2    10         2.8%   182   162        0      0     0
      MTE3        2     0         0.0%   354     0        0      0     0

    Critical path: 10 steps
      waits by  times  cycles  of makespan  for
      graph         0       0         0.0%  an edge of the graph
      implied       0       0         0.0%  an implied edge
      spill         3     334        94.4%  a spill of the buffer
      pipe          1      10         2.8%  the pipe
      address       2       5         1.4%  addresses to be released
      -                     5         1.4%  the end: the last step

      node  op         pipe    start  cycles  waits by
         0  ALLOC      -           0       0  -
         1  COPY_IN    MTE2        0      10  graph
         8  SPILL_OUT  MTE3       10       0  spill
         2  ALLOC      -          10       0  address
         3  COPY_IN    MTE2       10      10  graph
         9  SPILL_IN   MTE2       20     162  pipe
         4  EXP        VECTOR    182       5  spill
         5  FREE       -         187       0  graph
        11  SPILL_IN   MTE2      187     162  address
         6  EXP        VECTOR    349       5  spill
    ");
}

#[test]
fn the_same_as_json() {
    let json: Value = serde_json::from_str(&planned().good("timing example.json --plan plans/ --json")).unwrap();
    assert_eq!((&json["makespan"], &json["floor"]["cycles"]), (&354.into(), &349.into()));
    assert_eq!(json["floor"]["pipe"], "MTE2");
    let mte2 = &json["pipes"]["MTE2"];
    let sum: u64 = ["busy", "head", "data", "address", "order", "tail"].iter().map(|k| mte2[k].as_u64().unwrap()).sum();
    assert_eq!((sum, &mte2["address"]), (354, &5.into()));
    assert!(json["critical_path"]["nodes"].is_null());
    let json = planned().good("timing example.json --plan plans/ --json --critical-path");
    let json: Value = serde_json::from_str(&json).unwrap();
    let nodes = json["critical_path"]["nodes"].as_array().unwrap();
    assert_eq!(nodes.len() as u64, json["critical_path"]["steps"].as_u64().unwrap());
    assert_eq!(nodes.iter().map(|n| n["cycles"].as_u64().unwrap()).sum::<u64>(), 354);
}

/// What the Trace Event Format asks of each event kind that is written.
fn check_event(event: &Value) {
    let is_number = |key: &str| assert!(event[key].is_u64(), "{key} of {event}");
    let ph = event["ph"].as_str().unwrap();
    assert!(event["name"].is_string());
    is_number("pid");
    if ph != "M" {
        is_number("ts");
    }
    match ph {
        "X" => ["tid", "dur"].into_iter().for_each(is_number),
        "C" => assert!(event["args"].as_object().unwrap().values().all(Value::is_u64), "{event}"),
        "s" | "f" => {
            ["tid", "id"].into_iter().for_each(is_number);
            assert_eq!((event["cat"].as_str(), event["name"].as_str()), (Some("spill"), Some("spill")));
            assert_eq!(event["bp"].as_str(), (ph == "f").then_some("e"));
        }
        "M" => {
            let value = match event["name"].as_str().unwrap() {
                "process_name" | "thread_name" => event["args"]["name"].is_string(),
                "thread_sort_index" => event["args"]["sort_index"].is_u64(),
                other => panic!("metadata {other}"),
            };
            assert!(value, "{event}");
        }
        other => panic!("event kind {other}"),
    }
}

/// Reads a trace, checks every event and what they say together, and gives it back.
fn check_trace(text: &str) -> Vec<Value> {
    let trace: Value = serde_json::from_str(text).unwrap();
    let events = trace["traceEvents"].as_array().unwrap().clone();
    events.iter().for_each(check_event);
    // Slices of one track do not overlap; each end of an arrow stands at a slice of a spill.
    let mut ends: BTreeMap<u64, u64> = BTreeMap::new();
    let mut arrows: BTreeMap<u64, Vec<(&str, u64)>> = BTreeMap::new();
    let mut last_slice = &Value::Null;
    for event in &events {
        let tid = event["tid"].as_u64().unwrap_or(0);
        match event["ph"].as_str().unwrap() {
            "X" => {
                let ts = event["ts"].as_u64().unwrap();
                assert!(ts >= ends.get(&tid).copied().unwrap_or(0), "{event}");
                ends.insert(tid, ts + event["dur"].as_u64().unwrap());
                last_slice = event;
            }
            ph @ ("s" | "f") => {
                let name = if ph == "s" { "SPILL_OUT" } else { "SPILL_IN" };
                assert_eq!(
                    (&last_slice["name"], &last_slice["ts"], &last_slice["tid"]),
                    (&name.into(), &event["ts"], &event["tid"])
                );
                arrows.entry(event["id"].as_u64().unwrap()).or_default().push((ph, event["ts"].as_u64().unwrap()));
            }
            _ => {}
        }
    }
    for (id, mut arrow) in arrows {
        arrow.sort_by_key(|a| std::cmp::Reverse(a.0));
        assert_eq!(arrow.iter().map(|a| a.0).collect::<String>(), "sf", "spill {id}");
        assert!(arrow[0].1 <= arrow[1].1, "spill {id} comes back before it leaves");
    }
    events
}

#[test]
fn a_trace_has_tracks_counters_and_arrows() {
    let place = planned();
    let said = place.good("timing example.json --plan plans/ --trace out/trace.json");
    assert!(said.ends_with("Written: out/trace.json\n"), "{said}");
    let events = check_trace(&place.text("out/trace.json"));
    let of = |ph: &'static str| events.iter().filter(move |e| e["ph"] == ph);
    let tracks: BTreeSet<_> =
        of("M").filter(|e| e["name"] == "thread_name").map(|e| e["args"]["name"].as_str().unwrap()).collect();
    assert_eq!(tracks, BTreeSet::from(["MTE2", "MTE3", "VECTOR"]));
    // 4 ops and 2 spills of two ends.
    assert_eq!((of("X").count(), of("s").count(), of("f").count()), (8, 2, 2));
    let resident: Vec<_> = of("C").map(|e| (e["ts"].as_u64().unwrap(), e["args"]["bytes"].as_u64().unwrap())).collect();
    // b0 from 0 on, b1 in its place from 10 to 20, b0 back till 187, then b1.
    assert_eq!(resident, [(0, 6), (10, 6), (20, 6), (187, 6), (354, 0)]);
    let reload = of("X").find(|e| e["args"]["node"] == 11).unwrap();
    assert_eq!((&reload["name"], &reload["args"]["buffers"]), (&"SPILL_IN".into(), &serde_json::json!([1])));
    // The second reload waits 5 cycles for the FREE of b0, node 5.
    assert_eq!(reload["args"]["idle_before"], serde_json::json!({"address": 5}));
    assert_eq!(reload["args"]["waits_for"], 5);
    // The same plan gives the same bytes.
    place.good("timing example.json --plan plans/ --trace again.json");
    assert_eq!(place.text("again.json"), place.text("out/trace.json"));
}

#[test]
fn a_plan_is_retimed_and_written() {
    let place = Place::new();
    place.good("generate flash-attention --out fa.json");
    place.good("plan fa.json --heuristic lru --out plans");
    let json: Value = serde_json::from_str(&place.good("retime fa.json --plan plans --out faster --json")).unwrap();
    let cycles = |key: &str| json[key].as_u64().unwrap();
    assert!(cycles("after") < cycles("before"), "{json}");
    assert_eq!(cycles("saved"), cycles("before") - cycles("after"));
    let measured: Value = serde_json::from_str(&place.good("check fa.json --plan faster --json")).unwrap();
    assert_eq!((&measured["makespan"], &measured["extra_movement"]), (&json["after"], &json["extra_movement"]));
    for file in ["fa_memory.txt", "fa_spill.txt"] {
        assert_eq!(place.text(&format!("faster/{file}")), place.text(&format!("plans/{file}")));
    }
    // From the text files alone it is the same plan, and as an option of the planner too.
    let texts = "--schedule plans/fa_schedule.txt --memory plans/fa_memory.txt --spill plans/fa_spill.txt";
    place.good(&format!("retime fa.json {texts} --out again"));
    place.good("plan fa.json --heuristic lru --retime --out at_once");
    for other in ["again", "at_once"] {
        assert_eq!(place.text(&format!("{other}/fa_schedule.txt")), place.text("faster/fa_schedule.txt"));
    }
    assert_eq!(place.text("at_once/fa_plan.json"), place.text("faster/fa_plan.json"));
}

#[test]
fn no_bound_is_claimed_of_another_order_of_ops() {
    let place = Place::new();
    place.good("generate flash-attention --out fa.json");
    let why = "retiming changed the order of ops, so the bound of the schedule does not cover the plan";
    for command in ["plan fa.json --heuristic", "explain fa.json --heuristic"] {
        let out = place.good(&format!("{command} lru --retime"));
        assert!(out.contains(&format!("No lower bound: {why}.")), "{out}");
    }
    let compared = place.run("compare fa.json --heuristics lru,belady --retime");
    assert!(compared.err.contains(why), "{}", compared.err);
    assert!(compared.out.contains("covers"), "{}", compared.out);
}

#[test]
fn what_cannot_be_timed_is_said() {
    let place = planned();
    // 10 and 11 swapped: b1 comes back before it has left.
    let schedule =
        place.text("plans/example_schedule.txt").replace("10\n", "x\n").replace("11\n", "10\n").replace("x\n", "11\n");
    place.put("broken.txt", schedule);
    for command in ["timing", "retime"] {
        let files = "--schedule broken.txt --memory plans/example_memory.txt --spill plans/example_spill.txt";
        let ran = place.run(&format!("{command} example.json {files} --capacity UB=10"));
        assert_eq!(ran.status, 1, "{}", ran.err);
        assert!(ran.out.starts_with("not valid: example with the plan broken.txt"), "{}", ran.out);
    }
    let untimed = common::EXAMPLE.replace("\"Pipe\":\"VECTOR\",", "");
    place.put("untimed.json", untimed);
    for command in ["timing", "retime"] {
        let error = place.refused(&format!("{command} untimed.json --task example --plan plans/"));
        assert!(error.contains("no timing, because some op has no Pipe or no Cycles"), "{error}");
    }
}

#[test]
fn traces_of_the_public_graphs_are_sound() {
    let Some(graph) = data("cpmcm2025a/FlashAttention_Case0.json") else { return };
    let place = Place::new();
    let graph = graph.display();
    place.good(&format!("plan {graph} --out plans"));
    place.good(&format!("timing {graph} --plan plans --trace trace.json"));
    let events = check_trace(&place.text("trace.json"));
    let most = |cache: &str| {
        let of_cache = events.iter().filter(|e| e["ph"] == "C" && e["name"] == cache);
        of_cache.map(|e| e["args"]["bytes"].as_u64().unwrap()).max()
    };
    assert!(most("L1 resident") <= Some(4096) && most("UB resident") <= Some(1024));
}
