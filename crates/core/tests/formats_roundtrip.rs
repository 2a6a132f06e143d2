//! What is written is read back without loss, for every format, on random contents.

mod random;

use proptest::prelude::*;
use random::{CACHES, CAPACITY, cases, random_plan};
use spillbench_core::formats::plan_json::{self, PlanDocument};
use spillbench_core::formats::{graph_csv, graph_json, hardware_toml, plan_text, schedule_text};
use spillbench_core::hardware::{CacheSpec, EnergySpec, Evict, SpillCost};
use spillbench_core::metrics::measure;
use spillbench_core::plan::{Counters, Plan, Settings};
use spillbench_core::schedule::Normalize;
use spillbench_core::{Bytes, Graph, Hardware, Id, Machine, Reservation};

fn json(graph: &Graph) -> Vec<u8> {
    let mut bytes = Vec::new();
    graph_json::write(graph, &mut bytes).unwrap();
    bytes
}

fn csv(graph: &Graph) -> (Vec<u8>, Vec<u8>) {
    let (mut nodes, mut edges) = (Vec::new(), Vec::new());
    graph_csv::write_nodes(graph, &mut nodes).unwrap();
    graph_csv::write_edges(graph, &mut edges).unwrap();
    (nodes, edges)
}

fn hardware() -> impl Strategy<Value = Hardware> {
    let cost = prop_oneof![
        (0..9u64, any::<u32>()).prop_map(|(cycles_per_byte, overhead)| SpillCost::Affine {
            cycles_per_byte,
            overhead_cycles: overhead.into()
        }),
        (1..999u64, any::<u32>()).prop_map(|(bytes_per_cycle, overhead)| SpillCost::Bandwidth {
            bytes_per_cycle,
            overhead_cycles: overhead.into()
        }),
    ];
    let name = || "[ -~\u{e9}]{1,8}";
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    let cache = (1..i64::MAX as u64, name(), name(), name(), flags);
    let cache = cache.prop_map(|(capacity, next, spill_in_pipe, spill_out_pipe, (last, peak, exclusive))| CacheSpec {
        capacity: Bytes(capacity),
        next,
        spill_in_pipe,
        spill_out_pipe,
        evict: if last { Evict::Last } else { Evict::Normal },
        counts_in_peak: peak,
        exclusive,
    });
    let caches = prop::collection::vec((name(), cache), 1..4);
    let ends = (prop::option::of(0u64..9), prop::option::of(0u64..9));
    let reserved = prop::option::of((ends, any::<prop::sample::Index>()));
    let table = || prop::collection::vec((name(), 0..i64::MAX as u64), 0..3);
    let per_byte = prop::option::of((any::<prop::sample::Index>(), 0..i64::MAX as u64));
    let energy = (0..i64::MAX as u64, per_byte, table());
    let pipes = prop::collection::vec(name(), 0..3);
    let all = (name(), pipes, cost, caches, reserved, prop::option::of(energy));
    all.prop_map(|(name, pipes, spill_cost, caches, reserved, energy)| {
        // Of caches of one name the last counts.
        let caches: indexmap::IndexMap<_, _> = caches.into_iter().collect();
        let reservation = |((from, to), at): ((Option<u64>, Option<u64>), prop::sample::Index)| {
            let (cache, spec) = caches.get_index(at.index(caches.len())).unwrap();
            let bytes = Bytes(spec.capacity.0 / 2);
            Reservation { cache: cache.clone(), bytes, from: from.map(Id), to: to.map(Id) }
        };
        let reservations = reserved.into_iter().map(reservation).collect();
        let level = |(at, pj): (prop::sample::Index, u64)| (caches[at.index(caches.len())].next.clone(), pj);
        let energy = energy.map(|(per_cycle, per_byte, per_busy_cycle)| EnergySpec {
            per_cycle,
            per_byte: per_byte.into_iter().map(level).collect(),
            per_busy_cycle: per_busy_cycle.into_iter().collect(),
        });
        Hardware { name, pipes, spill_cost, caches, reservations, energy }
    })
}

prop_compose! {
    fn settings()(
        heuristic in "[a-z-]{1,9}",
        strategies in prop::collection::vec("[a-z]{1,9}", 0..4),
        placement in "[a-z-]{1,9}",
        attempts in any::<u32>(),
        prefetch in any::<u32>(),
        retime in any::<bool>(),
        normalize in prop::sample::select(Normalize::ALL),
        seed in any::<u64>(),
        hardware in hardware(),
    ) -> Settings {
        let normalize = normalize.0;
        Settings { heuristic, strategies, placement, attempts, prefetch, retime, normalize, seed, hardware }
    }
}

proptest! {
    #[test]
    fn graphs_as_json(case in cases(false)) {
        let (graph, _) = graph_json::read(&json(&case.graph)).unwrap();
        prop_assert_eq!(&graph, &case.graph);
        prop_assert_eq!(json(&graph), json(&case.graph));
    }

    #[test]
    fn graphs_as_a_csv_pair(case in cases(false)) {
        let (nodes, edges) = csv(&case.graph);
        let (graph, _) = graph_csv::read(&nodes, &edges).unwrap();
        prop_assert_eq!(csv(&graph), (nodes, edges));
        if graph_csv::drops_meta(&case.graph) {
            // All but the Meta object, which stands last.
            let (ours, full) = (json(&graph), json(&case.graph));
            let kept = ours.strip_suffix(b"}\n").unwrap();
            let meta = full.strip_prefix(kept).unwrap();
            prop_assert_eq!(&meta[..8], b",\"Meta\":");
        } else {
            prop_assert_eq!(graph, case.graph);
        }
    }

    #[test]
    fn plans_as_text(case in cases(false), dice in prop::collection::vec(any::<u32>(), 20..80)) {
        let plan = random_plan(&case, &dice);
        let mut texts = [Vec::new(), Vec::new(), Vec::new()];
        plan_text::write_schedule(&plan, &mut texts[0]).unwrap();
        plan_text::write_memory(&plan, &mut texts[1]).unwrap();
        plan_text::write_spills(&plan, &mut texts[2]).unwrap();
        for crlf in [false, true] {
            if crlf {
                texts = texts.map(|t| format!("\u{feff}{}\r\n", String::from_utf8(t).unwrap().replace('\n', "\r\n")).into_bytes());
            }
            prop_assert_eq!(&plan_text::read_schedule(&texts[0]).unwrap(), &plan.schedule);
            prop_assert_eq!(&plan_text::read_memory(&texts[1]).unwrap(), &plan.memory);
            let spills = plan_text::read_spills(&texts[2]).unwrap();
            let without_cause = plan.spills.iter().map(|s| spillbench_core::plan::Spill { cause: None, ..*s });
            prop_assert_eq!(spills, without_cause.collect::<Vec<_>>());
        }
    }

    #[test]
    fn plans_as_json(
        case in cases(true),
        dice in prop::collection::vec(any::<u32>(), 20..80),
        settings in prop::option::of(settings()),
        counts in prop::option::of(any::<[u64; 3]>()),
        measured in any::<bool>(),
        task in any::<String>(),
    ) {
        let mut hardware = Hardware::default();
        CACHES.iter().for_each(|c| hardware.set_capacity(c, Bytes(CAPACITY)).unwrap());
        let machine = Machine::resolve(&case.graph, &hardware).unwrap();
        let counters = counts.map(|[requests, scores, repacks]| Counters { requests, scores, repacks, ..Default::default() });
        let plan = Plan { counters, ..random_plan(&case, &dice) };
        let metrics = measured.then(|| measure(&case.graph, &machine, &plan).unwrap());
        let document = PlanDocument { task, settings: settings.map(Into::into), plan, metrics };
        let mut bytes = Vec::new();
        plan_json::write(&document, &mut bytes).unwrap();
        let read = plan_json::read(&bytes).unwrap();
        prop_assert_eq!(&read, &document);
        let mut again = Vec::new();
        plan_json::write(&read, &mut again).unwrap();
        prop_assert_eq!(again, bytes);
    }

    #[test]
    fn schedules_as_lines_and_as_a_json_array(ids in prop::collection::vec(0..=i64::MAX as u64, 1..40)) {
        let ids: Vec<_> = ids.into_iter().map(Id).collect();
        let mut lines = Vec::new();
        schedule_text::write(&ids, &mut lines).unwrap();
        prop_assert_eq!(&schedule_text::read(&lines).unwrap(), &ids);
        prop_assert_eq!(&schedule_text::read(&serde_json::to_vec_pretty(&ids).unwrap()).unwrap(), &ids);
    }

    #[test]
    fn hardware_as_toml(hardware in hardware()) {
        let text = hardware_toml::write(&hardware);
        prop_assert_eq!(hardware_toml::read(text.as_bytes()).unwrap(), hardware, "{}", text);
    }
}
