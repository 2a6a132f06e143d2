//! Fuzzes an importer for as long as one likes:
//!
//! `cargo run -p spillbench-workloads --example fuzz_import -- onnx --seconds 600
//! [--seed N] [--keep DIR]`
//!
//! `--keep` writes each file with a new outcome to a directory. A file that fails is written to
//! `fuzz-failure-<importer>` in the working directory.

#[path = "../fuzz/driver.rs"]
mod driver;
#[allow(dead_code)] // Making messages is for the tests of ONNX.
#[path = "../fuzz/wire.rs"]
mod wire;

use driver::Importer;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

struct Arguments {
    importer: Importer,
    name: &'static str,
    seconds: u64,
    seed: u64,
    keep: Option<PathBuf>,
}

fn arguments() -> Option<Arguments> {
    let mut given = std::env::args().skip(1);
    let wanted = given.next()?;
    let &(importer, name) = Importer::ALL.iter().find(|i| i.1 == wanted)?;
    let mut arguments = Arguments { importer, name, seconds: 600, seed: 0, keep: None };
    while let Some(flag) = given.next() {
        let value = given.next()?;
        match flag.as_str() {
            "--seconds" => arguments.seconds = value.parse().ok()?,
            "--seed" => arguments.seed = value.parse().ok()?,
            "--keep" => arguments.keep = Some(value.into()),
            _ => return None,
        }
    }
    Some(arguments)
}

fn main() -> ExitCode {
    let Some(Arguments { importer, name, seconds, seed, keep }) = arguments() else {
        eprintln!("usage: fuzz_import onnx|intervals|trace [--seconds N] [--seed N] [--keep DIR]");
        return ExitCode::from(2);
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
    let mut paths: Vec<_> = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    paths.sort();
    let corpus: Vec<_> = paths.iter().filter_map(|p| std::fs::read(p).ok()).collect();
    if corpus.is_empty() {
        eprintln!("the corpus of {name} is empty");
        return ExitCode::from(2);
    }
    let mut kept = 0;
    let found = |file: &[u8]| {
        if let Some(folder) = &keep {
            kept += 1;
            let written = std::fs::create_dir_all(folder)
                .and_then(|()| std::fs::write(folder.join(format!("{seed}-{kept:04}")), file));
            written.unwrap_or_else(|e| eprintln!("{}: {e}", folder.display()));
        }
    };
    let failed = |file: &[u8]| {
        let path = format!("fuzz-failure-{name}");
        eprintln!("failed on {path}: {:?}", std::fs::write(&path, file));
    };
    let summary = driver::drive(importer, corpus, Duration::from_secs(seconds), seed, found, failed);
    println!(
        "{name}: {} runs in {seconds} s, {} outcomes, {} files in the pool",
        summary.runs, summary.outcomes, summary.pool
    );
    ExitCode::SUCCESS
}
