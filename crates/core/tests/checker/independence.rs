//! The checker shares no code with what it checks.

use std::path::Path;

/// The modules of the crate that the checker may know. `names` writes the names of files on a screen.
const MAY_KNOW: [&str; 6] = ["graph", "hardware", "plan", "index", "units", "names"];

#[test]
fn the_checker_knows_nothing_that_makes_plans() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/checker");
    let mut files = 0;
    for file in std::fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        let source = std::fs::read_to_string(&path).unwrap();
        files += 1;
        for word in ["planner", "Planner", "address_space", "AddressSpace", "heuristic", "Workspace"] {
            assert!(!source.contains(word), "{} names {word}", path.display());
        }
        for used in source.split("crate::").skip(1) {
            let module: String = used.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            assert!(MAY_KNOW.contains(&module.as_str()), "{} uses crate::{module}", path.display());
        }
        // Above `mod.rs` is the crate; above the other files, through two steps, too.
        let past = if path.ends_with("mod.rs") { "super::" } else { "super::super" };
        assert!(!source.contains(past), "{} reaches past the checker", path.display());
    }
    assert!(files >= 7, "the checker has {files} files");
}
