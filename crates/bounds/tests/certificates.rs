//! Certificates: the checker agrees with the solver, and no mutation raises what is proven.

mod common;

use common::{Shape, graph};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRng, TestRunner};
use spillbench_bounds::certificate::{Certificate, CertificateError, Proof};
use spillbench_bounds::certify::Misfit;
use spillbench_bounds::{Bound, CertifyError, Cover, bound, certify};
use spillbench_core::schedule::Normalize;
use spillbench_core::{Bytes, Graph, Id, Machine, Schedule};

const SHAPE: Shape =
    Shape { ops: 24, buffers: 10, operands: 1, smallest: 2, one_cache: false, edges: 12, cache_edges: true };

fn solved(graph: &Graph, machine: &Machine, cover: Cover, level: Normalize) -> (Schedule, Bound) {
    let schedule = Schedule::default_for(graph).normalized(graph, level);
    let bound = bound(graph, machine, &schedule, cover).unwrap();
    (schedule, bound)
}

fn covers() -> impl Strategy<Value = Cover> {
    prop::sample::select(vec![Cover::Schedule, Cover::OpOrder])
}

fn levels() -> impl Strategy<Value = Normalize> {
    prop::sample::select(vec![Normalize::None, Normalize::Free, Normalize::Memory])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_checker_agrees_with_the_solver((graph, machine) in graph(SHAPE), cover in covers(), level in levels()) {
        let (schedule, bound) = solved(&graph, &machine, cover, level);
        let mut text = Vec::new();
        bound.certificate.write(&mut text).unwrap();
        let read = Certificate::read(&text).unwrap();
        prop_assert_eq!(&read, &bound.certificate);
        let certified = certify(&graph, &machine, Some(&schedule), &read).unwrap();
        prop_assert_eq!(certified.bound, bound.value);
        for ((name, share), expected) in certified.per_cache.iter().zip(&bound.per_cache) {
            prop_assert_eq!((name, *share), (&expected.cache, expected.value));
        }
    }

    #[test]
    fn a_schedule_that_pins_more_costs_no_less((graph, machine) in graph(SHAPE), level in levels()) {
        let (_, pinned) = solved(&graph, &machine, Cover::Schedule, level);
        let (_, free) = solved(&graph, &machine, Cover::OpOrder, level);
        prop_assert!(free.value <= pinned.value);
    }
}

/// One thing to change in a certificate: where, to what number, and how.
type Change = (prop::sample::Index, u64, u8);

fn mutate(certificate: &mut Certificate, (at, number, how): &Change) {
    let Proof::Prices { scale, caches } = &mut certificate.proof else { return };
    let of = at.index(caches.len());
    match how {
        0 => *scale = *number,
        1 => certificate.bound = Bytes(*number),
        2 => certificate.cover = Cover::ALL[at.index(3)].0,
        3 => caches.push(caches[of].clone()),
        4 => caches[of].cache = "L0C".to_owned(),
        5 => caches.truncate(of + 1),
        _ => {
            let prices = &mut caches[of].prices;
            let place = at.index(prices.len().max(1));
            match how {
                6 if !prices.is_empty() => prices.truncate(place),
                7 if !prices.is_empty() => prices[place].0 = Id(*number),
                8 if !prices.is_empty() => prices[place].1 = *number,
                9 if !prices.is_empty() => prices.iter_mut().for_each(|p| p.1 = p.1.saturating_mul(*number)),
                _ => prices.push((Id(number % 44), number / 44 % 5)),
            }
        }
    }
}

#[test]
fn a_thousand_mutated_certificates_prove_no_more() {
    let numbers = prop_oneof![0..100u64, any::<u64>(), Just(u64::MAX), Just(i64::MAX as u64)];
    let changes = prop::collection::vec((any::<prop::sample::Index>(), numbers, 0..12u8), 1..4);
    let mut counts = (0, 0, 0);
    let counted = std::cell::RefCell::new(&mut counts);
    let config = Config { failure_persistence: None, ..Config::with_cases(3000) };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(Default::default()));
    let run = runner.run(&(graph(SHAPE), covers(), changes), |((graph, machine), cover, changes)| {
        let (schedule, bound) = solved(&graph, &machine, cover, Normalize::Free);
        let mut certificate = bound.certificate.clone();
        changes.iter().for_each(|change| mutate(&mut certificate, change));
        let mut counts = counted.borrow_mut();
        match certify(&graph, &machine, Some(&schedule), &certificate) {
            Err(_) => counts.0 += 1,
            Ok(certified) => {
                // A change of cover may make it speak of more plans, or of fewer.
                let best = solved(&graph, &machine, certified.cover, Normalize::Free).1.value;
                prop_assert!(certified.bound <= best, "{} > {best}", certified.bound);
                if certified.bound < best { counts.1 += 1 } else { counts.2 += 1 }
            }
        }
        Ok(())
    });
    run.unwrap();
    println!("refused, lowered, unchanged: {counts:?}");
    assert!(counts.1 + counts.2 >= 1000 && counts.1 > 300, "refused, lowered, unchanged: {counts:?}");
}

#[test]
fn what_is_no_certificate_is_refused() {
    let text =
        r#"{"format":"x","version":1,"cover":"schedule","bound":0,"proof":{"kind":"prices","scale":1,"caches":[]}}"#;
    assert!(matches!(Certificate::read(text.as_bytes()), Err(CertificateError::Version { version: 1, .. })));
    let text = text.replace("\"x\"", "\"spillbench-certificate\"");
    assert!(Certificate::read(text.as_bytes()).is_ok());
    for (from, to) in
        [("schedule", "all"), ("\"scale\":1", "\"scale\":-1"), ("\"bound\":0", "\"bound\":0,\"x\":0"), ("}", "")]
    {
        assert!(matches!(Certificate::read(text.replace(from, to).as_bytes()), Err(CertificateError::Syntax(_))));
    }
}

#[test]
fn a_certificate_for_something_else_is_refused() {
    let mut runner = TestRunner::deterministic();
    let (graph, machine) = graph(SHAPE).new_tree(&mut runner).unwrap().current();
    let (schedule, bound) = solved(&graph, &machine, Cover::OpOrder, Normalize::Free);
    let refused = |certificate: &Certificate| certify(&graph, &machine, Some(&schedule), certificate).unwrap_err();
    let none = certify(&graph, &machine, None, &bound.certificate).unwrap_err();
    assert_eq!(none, CertifyError::NoSchedule { cover: Cover::OpOrder });
    let mut every = bound.certificate.clone();
    every.cover = Cover::EveryOrder;
    assert_eq!(refused(&every), CertifyError::Cover { proof: "prices", cover: Cover::EveryOrder });
    // A cache node is no step of an order of ops.
    let mut priced = bound.certificate.clone();
    {
        let Proof::Prices { caches, .. } = &mut priced.proof else { panic!("a proof by prices") };
        caches[0].prices.push((Id(0), 1));
        let cache = caches[0].cache.clone();
        assert_eq!(refused(&priced), CertifyError::Node { node: Id(0), cache, why: Misfit::Elsewhere });
    }
}
