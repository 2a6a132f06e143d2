//! The kept corpus of each importer, and a moment of fuzzing around it.

#[allow(dead_code)] // Names and counts are for the example.
#[path = "../fuzz/driver.rs"]
mod driver;
#[allow(dead_code)] // Making messages is for the tests of ONNX.
#[path = "../fuzz/wire.rs"]
mod wire;

use driver::{Importer, check, drive};
use std::path::Path;
use std::time::Duration;

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|p| std::fs::read(p).unwrap()).collect()
}

fn fuzz(importer: Importer, name: &str) {
    let corpus = corpus(name);
    let outcomes: Vec<_> = corpus.iter().map(|file| check(importer, file)).collect();
    assert!(outcomes.iter().any(|o| o.starts_with("graph")), "some file of the corpus imports");
    assert!(outcomes.iter().any(|o| o.starts_with("error")), "some file of the corpus does not");
    let summary = drive(
        importer,
        corpus,
        Duration::from_millis(800),
        1,
        |_| {},
        |file| {
            eprintln!("failed on {file:?}");
        },
    );
    assert!(summary.outcomes > 2, "{summary:?}");
}

#[test]
fn no_onnx_file_breaks_the_import() {
    fuzz(Importer::Onnx, "onnx");
}

#[test]
fn no_interval_file_breaks_the_import() {
    fuzz(Importer::Intervals, "intervals");
}

#[test]
fn no_trace_breaks_the_import() {
    fuzz(Importer::Trace, "trace");
}
