//! The text that asks for a graph: what it means, and how it is refused.

use proptest::prelude::*;
use spillbench_workloads::{FAMILIES, SpecProblem, WorkloadSpec};

fn parse(text: &str) -> WorkloadSpec {
    text.parse().unwrap_or_else(|e| panic!("{e}"))
}

fn refused(text: &str) -> String {
    text.parse::<WorkloadSpec>().expect_err(text).to_string()
}

#[test]
fn settings_are_read_and_the_rest_is_the_default() {
    let spec = parse(" matmul ( m = 4 , order=zigzag,seed=7 ) ");
    assert_eq!((spec.family().name, spec.seed), ("matmul", 7));
    let values = spec.values();
    assert_eq!(["m", "n", "tile"].map(|name| values.get(name)), [4, 8, 128]);
    assert_eq!(values.choice("order"), "zigzag");
    assert_eq!(spec.to_string(), "matmul(m=4,order=zigzag,seed=7)");
    assert_eq!(parse("matmul(m=8)"), parse("matmul"));
    assert_eq!(parse("matmul()").to_string(), "matmul");
    assert_eq!(parse("chain(pressure=1.25)").values().get("pressure"), 1250);
    assert_eq!(parse("chain(pressure=2)").to_string(), "chain(pressure=2)");
}

#[test]
fn settings_may_follow_as_texts_of_their_own() {
    let spec = WorkloadSpec::from_settings("matmul(m=4)", &["n=2", "seed=3"]).unwrap();
    assert_eq!(spec, parse("matmul(m=4,n=2,seed=3)"));
    let refused = |settings: &[&str]| WorkloadSpec::from_settings("matmul(m=4)", settings).unwrap_err().to_string();
    assert_eq!(refused(&["n=2", "m=5"]), "column 1 of `m=5`: m is given twice");
    assert_eq!(refused(&["n=2,k=3"]), "column 4 of `n=2,k=3`: expected the end");
    assert_eq!(refused(&["n"]), "column 2 of `n`: expected `=`");
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let parameters = "m, n, k, tile, order, free, seed";
    for (text, problem) in [
        ("", "column 1 of ``: expected the name of a family"),
        ("fft(", "column 5 of `fft(`: expected a parameter, as in `name=value`"),
        ("fft(stages=3", "column 13 of `fft(stages=3`: expected `,` or `)`"),
        ("fft(stages=3) x", "column 15 of `fft(stages=3) x`: expected the end"),
        ("fft(stages)", "column 11 of `fft(stages)`: expected `=`"),
        ("fft(stages=)", "column 12 of `fft(stages=)`: stages is ``, which is no whole number"),
        ("fft(stages=-3)", "column 12 of `fft(stages=-3)`: stages is `-3`, which is no whole number"),
        ("fft(stages=3.5)", "column 12 of `fft(stages=3.5)`: stages is `3.5`, which is no whole number"),
        ("fft(stages=25)", "column 12 of `fft(stages=25)`: stages is 25, outside 1 to 24"),
        (
            "fft(stages=99999999999999999999)",
            "column 12 of `fft(stages=99999999999999999999)`: stages is 99999999999999999999, outside 1 to 24",
        ),
        ("fft(stages=3,stages=3)", "column 14 of `fft(stages=3,stages=3)`: stages is given twice"),
        (
            "chain(pressure=1.2345)",
            "column 16 of `chain(pressure=1.2345)`: pressure is `1.2345`, which is no number with at most 3 digits \
             behind the point",
        ),
        (
            "chain(pressure=1.)",
            "column 16 of `chain(pressure=1.)`: pressure is `1.`, which is no number with at most 3 digits behind the point",
        ),
        ("chain(pressure=0.001)", "column 16 of `chain(pressure=0.001)`: pressure is 0.001, outside 0.05 to 1000"),
        (
            "fft(order=deph)",
            "column 11 of `fft(order=deph)`: order is `deph`, none of breadth, depth (did you mean depth?)",
        ),
        ("fft(order=Δ)", "column 11 of `fft(order=Δ)`: order is `Δ`, none of breadth, depth"),
        (
            "matmul(m=8,til=8)",
            &format!(
                "column 12 of `matmul(m=8,til=8)`: matmul has no parameter til (did you mean tile?); it has {parameters}"
            ),
        ),
        (
            "matmul(colour=8)",
            &format!("column 8 of `matmul(colour=8)`: matmul has no parameter colour; it has {parameters}"),
        ),
    ] {
        assert_eq!(refused(text), problem);
    }
}

#[test]
fn unknown_families_are_met_with_the_nearest_and_all() {
    let names: Vec<_> = FAMILIES.iter().map(|f| f.name).collect();
    let all = names.join(", ");
    assert_eq!(
        refused("matmull(m=8)"),
        format!("column 1 of `matmull(m=8)`: there is no family matmull (did you mean matmul?); there are {all}")
    );
    assert_eq!(refused("sort"), format!("column 1 of `sort`: there is no family sort; there are {all}"));
}

#[test]
fn long_texts_are_cut_in_messages() {
    let error = format!("fft(order={})", "x".repeat(100_000)).parse::<WorkloadSpec>().unwrap_err();
    assert!(error.to_string().len() < 300, "{error}");
    assert!(matches!(error.problem, SpecProblem::UnknownChoice { .. }));
}

proptest! {
    #[test]
    fn any_text_is_a_spec_or_an_error_within_it(text in "[a-z(),=0-9. é-]{0,40}|(matmul|chain|fft)\\(.{0,30}") {
        match text.parse::<WorkloadSpec>() {
            Ok(spec) => prop_assert_eq!(spec.to_string().parse(), Ok(spec)),
            Err(e) => prop_assert!(e.column <= text.chars().count() + 1, "{}", e),
        }
    }

    #[test]
    fn a_spec_survives_its_text(family in 0..FAMILIES.len(), seed: u64, draws in prop::collection::vec(any::<u64>(), 16)) {
        let family = FAMILIES[family];
        let mut settings = vec![format!("seed={seed}")];
        for (p, draw) in family.parameters.iter().zip(draws) {
            use spillbench_workloads::Domain::{Choice, Decimal, Int};
            let (min, max) = match p.domain {
                Int { min, max, .. } | Decimal { min, max, .. } => (min, max),
                Choice { names } => (0, names.len() as u64 - 1),
            };
            settings.push(format!("{}={}", p.name, p.domain.format(min + draw % (max - min + 1))));
        }
        let spec = WorkloadSpec::from_settings(family.name, &settings).unwrap();
        prop_assert_eq!(spec.to_string().parse(), Ok(spec.clone()));
        let json = serde_json::to_string(&spec).unwrap();
        prop_assert_eq!(serde_json::from_str::<WorkloadSpec>(&json).unwrap(), spec);
    }
}
