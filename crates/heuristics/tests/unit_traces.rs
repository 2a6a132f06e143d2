//! Equal pages of unit cost: what is known of paging must come out.

mod common;

use common::*;
use proptest::prelude::*;
use spillbench_heuristics::HEURISTICS;
use std::collections::{BTreeMap, BTreeSet};

/// A trace of unit pages as a graph: each page loaded before its first access and freed right after
/// its last.
fn trace(accesses: &[u8]) -> String {
    let mut words = Vec::new();
    for (i, page) in accesses.iter().enumerate() {
        let name = char::from(b'a' + page);
        if !accesses[..i].contains(page) {
            words.push(format!("+{name}1 ={name}"));
        } else {
            words.push(format!("EXP:{name}"));
        }
        if !accesses[i + 1..].contains(page) {
            words.push(format!("-{name}"));
        }
    }
    words.join(" ")
}

fn reloads(accesses: &[u8], room: u64, heuristic: &str) -> usize {
    let graph = graph(&trace(accesses));
    let policy = policy(heuristic, "single", "best-fit");
    let plan = plan(&graph, &hardware(&[("UB", room)]), &policy).unwrap();
    assert_eq!(movement(&graph, &plan), plan.spills.len() as u64);
    plan.spills.len()
}

/// The fewest reloads over all choices of what to evict, by dynamic programming over resident sets.
/// A page leaves right after its last access.
fn fewest_reloads(accesses: &[u8], room: usize) -> usize {
    let mut best: BTreeMap<BTreeSet<u8>, usize> = BTreeMap::from([(BTreeSet::new(), 0)]);
    for (i, &page) in accesses.iter().enumerate() {
        let mut next: BTreeMap<BTreeSet<u8>, usize> = BTreeMap::new();
        for (resident, cost) in best {
            let seen = accesses[..i].contains(&page);
            let cost = cost + usize::from(seen && !resident.contains(&page));
            let mut with: Vec<BTreeSet<u8>> = Vec::new();
            if resident.contains(&page) || resident.len() < room {
                with.push(resident.iter().copied().chain([page]).collect());
            } else {
                for gone in &resident {
                    with.push(resident.iter().copied().filter(|p| p != gone).chain([page]).collect());
                }
            }
            for mut set in with {
                if !accesses[i + 1..].contains(&page) {
                    set.remove(&page);
                }
                let entry = next.entry(set).or_insert(usize::MAX);
                *entry = cost.min(*entry);
            }
        }
        best = next;
    }
    best.into_values().min().unwrap()
}

#[test]
fn abcabc_with_room_for_two() {
    // Three first loads each. lru: c puts a out, a puts b out, b comes back to the room a left: two
    // reloads. belady: c puts b out (a is used sooner); b comes back when a has left: one.
    let accesses = [0, 1, 2, 0, 1, 2];
    assert_eq!(3 + reloads(&accesses, 2, "lru"), 5);
    assert_eq!(3 + reloads(&accesses, 2, "belady"), 4);
    assert_eq!(3 + fewest_reloads(&accesses, 2), 4);
}

/// UB 8 holds x (4) and f (4). x is used at 8 and 12 and again at 21; the overflow, the ALLOC of y
/// (4), comes at 15, where f is used again at 17 and x only later. x goes out just before 15 and
/// comes back just before 21: the uses at 8 and 12 need no reload.
#[test]
fn earlier_uses_stay_on_chip() {
    let graph = graph(
        "+x4 =x +f4 =f EXP:f EXP:f EXP:f EXP:f EXP:x EXP:f EXP:f EXP:f EXP:x EXP:f EXP:f \
         +y4 =y EXP:f EXP:y -y EXP:f EXP:x -x -f",
    );
    let policy = policy("belady", DEFAULT_CHAIN, "best-fit");
    let plan = plan(&graph, &hardware(&[("UB", 8)]), &policy).unwrap();
    let order = order(&plan);
    let place = |id| order.iter().position(|&n| n == id).unwrap();
    assert_eq!(spills(&plan), [(0, 0)]);
    // 24 nodes: x goes out by node 24 and comes back by 25.
    assert_eq!(place(24) + 1, place(15), "out just before the overflow");
    assert_eq!(place(25) + 1, place(21), "back just before its next use");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn belady_is_optimal_on_unit_pages(accesses in prop::collection::vec(0u8..6, 1..24), room in 1u64..5) {
        let optimum = fewest_reloads(&accesses, room as usize);
        prop_assert_eq!(reloads(&accesses, room, "belady"), optimum);
        for heuristic in HEURISTICS {
            prop_assert!(reloads(&accesses, room, heuristic.name) >= optimum, "{}", heuristic.name);
        }
    }
}
