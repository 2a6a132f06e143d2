//! Sets that share what spills cost: never above the optimum, more than sets without a common buffer,
//! and refused where they share out more than there is.

mod common;

use common::{Shape, by_trial, graph};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRng, TestRunner};
use spillbench_bounds::certificate::{BufferSet, Certificate, Proof};
use spillbench_bounds::certify::Misfit;
use spillbench_bounds::{CertifyError, Cover, Limits, across_orders, across_orders_near, certify};
use spillbench_core::{BufId, Bytes, Graph, GraphBuilder, Hardware, Machine};
use std::cell::Cell;

/// One cache that is short; and two, where one order must serve both.
const SHAPES: [Shape; 2] = [
    Shape { ops: 7, buffers: 6, operands: 2, smallest: 2, one_cache: true, edges: 8, cache_edges: false },
    Shape { ops: 7, buffers: 9, operands: 2, smallest: 3, one_cache: false, edges: 8, cache_edges: false },
];

/// A set of UB; the whole cost of its buffers where there are no shares.
fn set(buffers: &[u64], shares: Option<&[u64]>) -> BufferSet {
    BufferSet {
        cache: "UB".to_owned(),
        buffers: buffers.iter().map(|&b| BufId(b)).collect(),
        shares: shares.map(|shares| shares.iter().map(|&s| Bytes(s)).collect()),
        bound: Bytes(0),
    }
}

fn certificate(sets: Vec<BufferSet>) -> Certificate {
    Certificate::new(Cover::EveryOrder, Bytes(0), Proof::Partition { sets, grids: vec![] })
}

fn proven((graph, machine): &(Graph, Machine), sets: Vec<BufferSet>) -> Result<u64, CertifyError> {
    certify(graph, machine, None, &certificate(sets)).map(|c| c.bound.0)
}

fn on_ub(builder: GraphBuilder, capacity: u64) -> (Graph, Machine) {
    let graph = builder.build().unwrap().0;
    let mut hardware = Hardware::default();
    hardware.set_capacity("UB", Bytes(capacity)).unwrap();
    let machine = Machine::resolve(&graph, &hardware).unwrap();
    assert!(machine.misfits(&graph).is_empty());
    (graph, machine)
}

/// A cache of 8 bytes, and six ops, one after another: x and y are used, then p, then x and y again;
/// then the same with z for y and q for p.
///
/// | buffer | size | a spill costs |
/// |---|---|---|
/// | x | 2 | 4 |
/// | y, z | 1 | 2 |
/// | p, q | 6 | 12, but each is used only once |
///
/// While p is used, 2 bytes are left, and x and y, both needed before and after, take 3. So y goes out,
/// for 2, or x does, for 4; likewise z or x while q is used. The least movement is 2 + 2 = 4.
///
/// In a set, an op that uses none of its buffers is not seen. So for a set to prove anything, p, x and y
/// must be in it, or q, x and z. Of sets without a common buffer only one has x, and with no more than three
/// buffers it proves 2. Whether it is the first or the second, 2 of the 4 that x costs are not needed for
/// that: y or z is as cheap. With x shared out as 2 + 2 both sets prove their 2.
fn two_squeezes() -> (Graph, Machine) {
    let mut builder = GraphBuilder::new();
    for (b, size) in [2, 1, 1, 6, 6].into_iter().enumerate() {
        builder.alloc(b as u64, b as u64, size, "UB").free(100 + b as u64, b as u64, size, "UB");
    }
    let [x, y, z, p, q] = [0, 1, 2, 3, 4];
    for (i, operands) in [&[x, y][..], &[p], &[x, y], &[x, z], &[q], &[x, z]].into_iter().enumerate() {
        builder.op(10 + i as u64, "ADD", "VECTOR", 1, operands);
        if i > 0 {
            builder.edge(9 + i as u64, 10 + i as u64);
        }
    }
    on_ub(builder, 8)
}

/// Every way to put `buffers` into sets of three at most, those left over into none.
fn each_family(buffers: &[u64], sets: &mut Vec<Vec<u64>>, visit: &mut dyn FnMut(&[Vec<u64>])) {
    let Some((&first, rest)) = buffers.split_first() else { return visit(sets) };
    each_family(rest, sets, visit);
    for i in 0..sets.len() {
        if sets[i].len() < 3 {
            sets[i].push(first);
            each_family(rest, sets, visit);
            sets[i].pop();
        }
    }
    sets.push(vec![first]);
    each_family(rest, sets, visit);
    sets.pop();
}

#[test]
fn small_sets_that_share_prove_more_than_any_that_do_not() {
    let at = two_squeezes();
    let mut most = 0;
    each_family(&[0, 1, 2, 3, 4], &mut Vec::new(), &mut |family| {
        let sets = family.iter().map(|buffers| set(buffers, None)).collect();
        most = most.max(proven(&at, sets).unwrap());
    });
    assert_eq!(most, 2);
    let shared =
        |first: u64, second: u64| vec![set(&[0, 1, 3], Some(&[first, 2, 12])), set(&[0, 2, 4], Some(&[second, 2, 12]))];
    assert_eq!(proven(&at, shared(2, 2)), Ok(4));
    assert_eq!(proven(&at, shared(3, 1)), Ok(3));
    assert_eq!(proven(&at, shared(4, 0)), Ok(2));
    assert_eq!(proven(&at, vec![set(&[0, 1, 2, 3, 4], None)]), Ok(4));
    assert_eq!(by_trial(&at.0, &at.1), 4);
}

#[test]
fn a_certificate_that_shares_out_too_much_is_refused() {
    let at = two_squeezes();
    let shares =
        |first: &[u64], second: &[u64]| proven(&at, vec![set(&[0, 1, 3], Some(first)), set(&[0, 2, 4], Some(second))]);
    let overshared = |buf, cost| Err(CertifyError::Overshared { buf: BufId(buf), cost: Bytes(cost) });
    assert_eq!(shares(&[3, 2, 12], &[2, 2, 12]), overshared(0, 4));
    assert_eq!(shares(&[u64::MAX, 2, 12], &[5, 2, 12]), overshared(0, 4));
    // So that a sum of all shares would come out small again.
    assert_eq!(shares(&[3, 2, 12], &[u64::MAX - 2, 2, 12]), overshared(0, 4));
    assert_eq!(shares(&[2, 2, 12], &[2, 2, 13]), overshared(4, 12));
    // A set without shares has the whole cost.
    let mixed = vec![set(&[0, 1, 3], Some(&[1, 2, 12])), set(&[0, 2, 4], None)];
    assert_eq!(proven(&at, mixed), overshared(0, 4));
    let count = CertifyError::ShareCount { cache: "UB".to_owned(), buffers: 3, shares: 2 };
    assert_eq!(shares(&[2, 2], &[2, 2, 12]), Err(count));
    let twice = CertifyError::Buffer { buf: BufId(1), cache: "UB".to_owned(), why: Misfit::Twice };
    assert_eq!(proven(&at, vec![set(&[0, 1, 1], Some(&[2, 1, 1]))]), Err(twice));
}

#[test]
fn certificates_without_shares_stay_readable_and_shares_are_kept() {
    let text = |shares: &str| {
        format!(
            r#"{{"format":"spillbench-certificate","version":1,"cover":"every-order","bound":2,"proof":{{"kind":"partition","sets":[{{"cache":"UB","buffers":[0,1,3]{shares},"bound":2}}]}}}}"#
        )
    };
    let (graph, machine) = two_squeezes();
    for (shares, bound) in [("", 2), (r#","shares":[2,1,12]"#, 1)] {
        let read = Certificate::read(text(shares).as_bytes()).unwrap();
        assert_eq!(certify(&graph, &machine, None, &read).unwrap().bound.0, bound);
        let mut written = Vec::new();
        read.write(&mut written).unwrap();
        assert_eq!(String::from_utf8(written).unwrap().trim_end(), text(shares));
    }
    assert!(Certificate::read(text(r#","shares":[-1,2,12]"#).as_bytes()).is_err());
}

#[test]
fn other_operands_of_an_op_take_room_beside_a_set() {
    // x (2 bytes) and y (1 byte) live while an op uses y and p (6 bytes of 8): 9 bytes, so x goes out, for 4.
    let mut builder = GraphBuilder::new();
    for (b, size) in [(0, 2), (1, 1), (3, 6)] {
        builder.alloc(b, b, size, "UB").free(100 + b, b, size, "UB");
    }
    for (op, operands) in [(10, &[0, 1][..]), (11, &[1, 3]), (12, &[0])] {
        builder.op(op, "ADD", "VECTOR", 1, operands);
    }
    builder.edge(10, 11).edge(11, 12);
    let at = on_ub(builder, 8);
    assert_eq!(by_trial(&at.0, &at.1), 4);
    for buffers in [&[0, 1][..], &[0, 1, 3]] {
        assert_eq!(proven(&at, vec![set(buffers, None)]), Ok(4));
    }
    assert_eq!(proven(&at, vec![set(&[0, 1, 3], Some(&[4, 2, 0]))]), Ok(4));
    assert_eq!(proven(&at, vec![set(&[0], None)]), Ok(0));
}

#[test]
fn few_states_never_prove_more_than_any_order_costs() {
    let proves = Cell::new(0);
    for shape in SHAPES {
        let run = runner(600).run(&(graph(shape), 1..60u64, any::<[u64; 2]>()), |(at, states_per_set, spilled)| {
            let limits = Limits { states_per_set, states: 400 };
            let spilled = spilled.map(|b| BufId(b % 10));
            let bound = across_orders_near(&at.0, &at.1, &limits, &spilled).unwrap();
            let certified = certify(&at.0, &at.1, None, &bound.certificate).unwrap().bound;
            prop_assert!(bound.value <= certified);
            prop_assert!(certified.0 == 0 || certified.0 <= by_trial(&at.0, &at.1));
            proves.set(proves.get() + u32::from(bound.value.0 > 0));
            Ok(())
        });
        run.unwrap();
    }
    assert!(proves.get() >= 20, "only {} prove anything", proves.get());
}

fn runner(cases: u32) -> TestRunner {
    let config = Config { failure_persistence: None, ..Config::with_cases(cases) };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(Default::default()))
}

/// For every set, what is taken into it of what is left of each buffer, in fourths; at 5 it is not in the set.
type Drawn = Vec<Vec<u8>>;

fn drawn() -> impl Strategy<Value = Drawn> {
    prop::collection::vec(prop::collection::vec(0..6u8, 9), 1..4)
}

/// Sets of one cache each that share out no more than there is.
fn shared(graph: &Graph, drawn: &Drawn) -> Vec<BufferSet> {
    let mut left: Vec<u64> = graph.bufs().map(|b| graph.buf(b).movement().0).collect();
    let mut sets = Vec::new();
    for taken in drawn {
        for cache in graph.cache_names() {
            let mut set = BufferSet { cache: cache.clone(), buffers: vec![], shares: Some(vec![]), bound: Bytes(0) };
            for b in graph.bufs().filter(|&b| graph.cache_name(graph.buf(b).cache) == cache) {
                let fourths = taken[b.index() % taken.len()];
                if fourths < 5 {
                    let share = left[b.index()] * u64::from(fourths) / 4;
                    left[b.index()] -= share;
                    set.buffers.push(graph.buf(b).id);
                    set.shares.get_or_insert_default().push(Bytes(share));
                }
            }
            sets.push(set);
        }
    }
    sets
}

#[test]
fn shares_prove_no_more_than_any_order_costs() {
    let (costly, met) = (Cell::new(0), Cell::new(0));
    for shape in SHAPES {
        let run = runner(2000).run(&(graph(shape), drawn()), |(at, drawn)| {
            let bound = proven(&at, shared(&at.0, &drawn)).unwrap();
            let best = by_trial(&at.0, &at.1);
            prop_assert!(bound <= best, "{bound} > {best}");
            costly.set(costly.get() + u32::from(bound > 0));
            met.set(met.get() + u32::from(bound > 0 && bound == best));
            Ok(())
        });
        run.unwrap();
    }
    println!("{} of the families prove something, {} all there is", costly.get(), met.get());
    assert!(costly.get() >= 100 && met.get() >= 20, "{} {}", costly.get(), met.get());
}

/// One thing to change in a family of sets: where, to what number, and how.
type Change = (prop::sample::Index, prop::sample::Index, u64, u8);

fn mutate(sets: &mut Vec<BufferSet>, (of, at, number, how): &Change) {
    let copy = sets[of.index(sets.len())].clone();
    let set = of.get_mut(sets);
    let (buffers, shares) = (&mut set.buffers, &mut set.shares);
    let place = at.index(buffers.len().max(1));
    match how {
        0 => *shares = None,
        1 => set.bound = Bytes(*number),
        2 => set.cache = ["UB", "L1", "L0C"][at.index(3)].to_owned(),
        3 => sets.push(copy),
        4 => buffers.push(BufId(number % 12)),
        5 if place < buffers.len() => buffers[place] = BufId(number % 12),
        6 if place < buffers.len() => drop(buffers.remove(place)),
        _ => match shares {
            Some(shares) if place < shares.len() => match how {
                7 => drop(shares.remove(place)),
                8 => shares[place] = Bytes(*number),
                9 => shares[place].0 = shares[place].0.saturating_add(number % 3),
                10 => shares[place].0 = shares[place].0.saturating_sub(number % 3),
                _ => shares.swap(place, 0),
            },
            _ => *shares = Some(vec![Bytes(number % 4); buffers.len()]),
        },
    }
}

#[test]
fn mutated_shares_are_refused_or_prove_no_more_than_any_order_costs() {
    let numbers = prop_oneof![0..100u64, any::<u64>(), Just(u64::MAX), Just(1 << 63)];
    let change = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), numbers, 0..12u8);
    let (refused, over, kept) = (Cell::new(0), Cell::new(0), Cell::new(0));
    for shape in SHAPES {
        let changes = prop::collection::vec(change.clone(), 1..3);
        let run = runner(1800).run(&(graph(shape), drawn(), changes), |(at, drawn, changes)| {
            let mut sets = shared(&at.0, &drawn);
            changes.iter().for_each(|change| mutate(&mut sets, change));
            match proven(&at, sets) {
                Err(CertifyError::Overshared { .. }) => over.set(over.get() + 1),
                Err(_) => refused.set(refused.get() + 1),
                Ok(bound) => {
                    prop_assert!(bound == 0 || bound <= by_trial(&at.0, &at.1));
                    kept.set(kept.get() + u32::from(bound > 0));
                }
            }
            Ok(())
        });
        run.unwrap();
    }
    println!("{} share too much, {} are refused otherwise, {} prove something", over.get(), refused.get(), kept.get());
    assert!(over.get() >= 200 && refused.get() >= 200 && kept.get() >= 30);
}

/// A buffer of 4 bytes that lives from the first op to the last, in a cache of 20, and `squeezes` stretches
/// one after another: six buffers of one byte are made in any order, then an op takes 12 bytes, then all six
/// are used in any order. Between stretches pass ops that concern nothing else.
///
/// While the 12 bytes are taken, 8 are left for 10. So two of the small buffers go, for 2 each, or the long
/// one, for 8; the least movement is 4 for each stretch. A set that proves the 4 of a stretch must have the
/// long buffer, but not more than 4 of the 8 that it costs: two sets can have it.
fn squeezes(squeezes: u64) -> (Graph, Machine) {
    const SMALL: u64 = 6;
    let mut builder = GraphBuilder::new();
    let (mut buffers, mut ops) = (0, 10_000);
    let mut buffer = |builder: &mut GraphBuilder, size: u64| {
        builder.alloc(buffers, buffers, size, "UB").free(100_000 + buffers, buffers, size, "UB");
        buffers += 1;
        buffers - 1
    };
    let mut barrier: Option<u64> = None;
    let long = buffer(&mut builder, 4);
    let mut op = |builder: &mut GraphBuilder, operands: &[u64], after: &[u64]| {
        builder.op(ops, "ADD", "VECTOR", 1, operands);
        for &before in after {
            builder.edge(before, ops);
        }
        ops += 1;
        ops - 1
    };
    for _ in 0..squeezes {
        let small: Vec<u64> = (0..SMALL).map(|_| buffer(&mut builder, 1)).collect();
        let wide = buffer(&mut builder, 12);
        let first = op(&mut builder, &[long], barrier.as_slice());
        let made: Vec<u64> = small.iter().map(|&b| op(&mut builder, &[b], &[first])).collect();
        let squeeze = op(&mut builder, &[wide], &made);
        let used: Vec<u64> = small.iter().map(|&b| op(&mut builder, &[b], &[squeeze])).collect();
        barrier = Some(op(&mut builder, &[long], &used));
        for _ in 0..40 {
            let other = buffer(&mut builder, 1);
            barrier = Some(op(&mut builder, &[other], barrier.as_slice()));
        }
    }
    on_ub(builder, 20)
}

#[test]
fn what_one_set_does_not_need_serves_the_next() {
    let (graph, machine) = squeezes(4);
    let within = |states_per_set| {
        let bound = across_orders(&graph, &machine, &Limits { states_per_set, states: 1_000_000 }).unwrap();
        assert_eq!(certify(&graph, &machine, None, &bound.certificate).unwrap().bound, bound.value);
        bound
    };
    // One stretch takes 210 states, so that no set spans two; without sharing only one would prove its 4.
    let shared = within(400);
    assert_eq!(shared.value.0, 8);
    let long = |set: &spillbench_bounds::SetBound| {
        assert_eq!((set.bound.0, set.buffers[0]), (4, BufId(0)));
        set.shares.as_ref().map(|shares| shares[0].0)
    };
    assert_eq!(shared.sets.iter().map(long).collect::<Vec<_>>(), [Some(4), Some(4)]);
    // Where all stretches are one set, nothing is left to share.
    let whole = within(4_000);
    assert_eq!((whole.value.0, whole.sets.len()), (16, 1));
    assert_eq!(whole.sets[0].shares, None);
    // Too few states for a single stretch.
    assert_eq!(within(50).value.0, 0);
}
