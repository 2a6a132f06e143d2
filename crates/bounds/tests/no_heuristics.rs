//! Bounds must not see a heuristic: tests of heuristics against them would prove nothing.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn neither_the_manifest_nor_a_source_names_the_heuristics_crate() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![root.join("Cargo.toml")];
    sources(&root.join("src"), &mut files);
    assert!(files.len() > 2, "the sources were not found");
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for name in ["spillbench-heuristics", "spillbench_heuristics"] {
            assert!(!text.contains(name), "{} names {name}", file.display());
        }
    }
}
