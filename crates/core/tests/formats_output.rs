//! Several outputs appear whole and together, or not at all.

use spillbench_core::formats::output::{FileSet, OutputError};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = entries.collect();
    names.sort();
    names
}

#[test]
fn files_appear_at_commit_and_in_a_directory_that_was_missing() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("a/b");
    let mut set = FileSet::new(&directory).unwrap();
    set.add("one.txt", b"1\n").unwrap();
    set.write("two.txt", |out| (0..1000).try_for_each(|i| writeln!(out, "{i}"))).unwrap();
    assert!(names(&directory).iter().all(|n| n.starts_with(".spillbench-")));
    assert_eq!(set.commit().unwrap(), ["one.txt", "two.txt"].map(|n| directory.join(n)));
    assert_eq!(names(&directory), ["one.txt", "two.txt"]);
    assert_eq!(fs::read(directory.join("one.txt")).unwrap(), b"1\n");
    assert_eq!(fs::read_to_string(directory.join("two.txt")).unwrap().lines().count(), 1000);
}

#[test]
fn what_stood_there_is_replaced_at_commit_only() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("one.txt");
    fs::write(&file, "old").unwrap();
    let mut set = FileSet::new(root.path()).unwrap();
    set.add("one.txt", b"new").unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"old");
    set.commit().unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"new");
}

#[test]
fn a_failure_leaves_no_trace() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("a/b");
    let mut set = FileSet::new(&directory).unwrap();
    set.add("one.txt", b"1").unwrap();
    let broken = set.write("two.txt", |out| {
        out.write_all(b"half")?;
        Err(io::Error::other("the disk is full"))
    });
    let message = format!("cannot write {}: the disk is full", directory.join("two.txt").display());
    assert_eq!(broken.unwrap_err().to_string(), message);
    drop(set);
    // Not even the directories that were made for it.
    assert_eq!(names(root.path()), Vec::<String>::new());
}

#[test]
fn directories_that_hold_something_else_stay() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("a/b");
    let mut set = FileSet::new(&directory).unwrap();
    set.add("one.txt", b"1").unwrap();
    fs::write(root.path().join("a/other"), "").unwrap();
    drop(set);
    assert_eq!(names(&root.path().join("a")), ["other"]);
}

#[test]
fn a_file_or_a_directory_in_the_way_is_named() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("taken");
    fs::write(&file, "").unwrap();
    let error = FileSet::new(&file).unwrap_err();
    assert_eq!(error.to_string(), format!("{} is not a directory", file.display()));
    let error = FileSet::new(file.join("below")).unwrap_err();
    let below = format!("cannot create the directory {}: ", file.join("below").display());
    assert!(error.to_string().starts_with(&below), "{error}");
    fs::create_dir(root.path().join("plan.json")).unwrap();
    let mut set = FileSet::new(root.path()).unwrap();
    set.add("other", b"").unwrap();
    assert!(matches!(set.add("plan.json", b""), Err(OutputError::IsADirectory { .. })));
    drop(set);
    assert_eq!(names(root.path()), ["plan.json", "taken"]);
}

#[test]
fn names_are_plain_and_different() {
    let root = tempfile::tempdir().unwrap();
    let mut set = FileSet::new(root.path()).unwrap();
    for name in ["", ".", "..", "../up", "a/b", "/abs", "a/"] {
        assert!(matches!(set.add(name, b""), Err(OutputError::BadName { .. })), "{name:?}");
    }
    set.add("twice", b"").unwrap();
    assert_eq!(set.add("twice", b"").unwrap_err().to_string(), "two outputs are called \"twice\"");
}

#[test]
fn an_empty_path_is_the_current_directory() {
    let set = FileSet::new("").unwrap();
    assert_eq!(set.path("x"), PathBuf::from("./x"));
}

#[cfg(unix)]
#[test]
fn files_have_the_permissions_of_any_new_file() {
    use std::os::unix::fs::PermissionsExt;
    let root = tempfile::tempdir().unwrap();
    let mut set = FileSet::new(root.path()).unwrap();
    set.add("ours", b"").unwrap();
    set.commit().unwrap();
    fs::write(root.path().join("plain"), "").unwrap();
    let mode = |name| fs::metadata(root.path().join(name)).unwrap().permissions().mode();
    assert_eq!(mode("ours"), mode("plain"));
}

#[cfg(unix)]
#[test]
fn a_directory_that_cannot_be_written_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("locked");
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o555)).unwrap();
    if fs::write(directory.join("probe"), "").is_ok() {
        eprintln!("skipped: this user may write everywhere");
        return;
    }
    let mut set = FileSet::new(&directory).unwrap();
    let error = set.add("one.txt", b"1").unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot write {}: ", directory.join("one.txt").display())), "{error}");
}
