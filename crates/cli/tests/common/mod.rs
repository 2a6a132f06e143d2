//! What the tests of the command line share: running it, and small graphs to run it on.

// Each test binary uses a part of this.
#![allow(dead_code)]

use assert_cmd::Command;
use std::path::PathBuf;
use tempfile::TempDir;

/// The worked example: UB of 10 bytes, two buffers of 6.
pub const EXAMPLE: &str = r#"{"Nodes":[
{"Id":0,"Op":"ALLOC","BufId":0,"Size":6,"Type":"UB"},
{"Id":1,"Op":"COPY_IN","Pipe":"MTE2","Cycles":10,"Bufs":[0]},
{"Id":2,"Op":"ALLOC","BufId":1,"Size":6,"Type":"UB"},
{"Id":3,"Op":"COPY_IN","Pipe":"MTE2","Cycles":10,"Bufs":[1]},
{"Id":4,"Op":"EXP","Pipe":"VECTOR","Cycles":5,"Bufs":[0]},
{"Id":5,"Op":"FREE","BufId":0,"Size":6,"Type":"UB"},
{"Id":6,"Op":"EXP","Pipe":"VECTOR","Cycles":5,"Bufs":[1]},
{"Id":7,"Op":"FREE","BufId":1,"Size":6,"Type":"UB"}],
"Edges":[[0,1],[1,4],[4,5],[2,3],[3,6],[6,7]]}"#;

/// What a run printed and how it ended.
#[derive(Debug)]
pub struct Ran {
    pub status: i32,
    pub out: String,
    pub err: String,
}

/// A directory for one test.
pub struct Place {
    dir: TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// A place that holds the worked example as `example.json`.
    pub fn with_example() -> Self {
        let place = Self::new();
        place.put("example.json", EXAMPLE);
        place
    }

    pub fn put(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// The names of the files in a directory of this place, sorted.
    pub fn names(&self, dir: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(dir)).into_iter().flatten();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Runs the command line, split at spaces, in this place.
    pub fn run(&self, line: &str) -> Ran {
        self.run_with(line, "")
    }

    /// Runs the command line with something on standard input.
    pub fn run_with(&self, line: &str, stdin: impl Into<Vec<u8>>) -> Ran {
        let mut command = Command::cargo_bin("spillbench").unwrap();
        let output =
            command.args(line.split_whitespace()).current_dir(self.dir.path()).write_stdin(stdin).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let ran =
            Ran { status: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) };
        assert!(!ran.err.contains("panicked"), "{line}: {}", ran.err);
        ran
    }

    /// Runs a line that must succeed and gives its output.
    pub fn good(&self, line: &str) -> String {
        let ran = self.run(line);
        assert_eq!(ran.status, 0, "{line}: {}", ran.err);
        ran.out
    }

    /// Runs a line that must be refused with exit status 2, on one screen and with no output, and
    /// gives the message.
    pub fn refused(&self, line: &str) -> String {
        refused(line, self.run(line))
    }
}

/// Asserts that a run was refused as it should be, and gives the message.
pub fn refused(line: &str, ran: Ran) -> String {
    assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{line}: {}", ran.err);
    assert!(ran.err.lines().count() <= 24, "{line}: more than one screen: {}", ran.err);
    ran.err
}

/// A file of the public data sets; `None`, with a notice, where they are absent.
pub fn data(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("SPILLBENCH_DATA").map(PathBuf::from);
    let root = root.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../datasets/external"));
    let path = root.join(name);
    if path.exists() {
        return std::path::absolute(path).ok();
    }
    eprintln!("skipped: {} is not there (set SPILLBENCH_DATA)", path.display());
    None
}

/// A graph that the repository ships.
pub fn shipped(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../datasets").join(name)
}

/// Every graph that the repository ships, by name.
pub fn all_shipped() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(shipped("")).unwrap().map(|e| e.unwrap().path());
    let mut graphs: Vec<_> = entries.filter(|p| p.extension().is_some_and(|e| e == "json")).collect();
    graphs.sort();
    assert!(!graphs.is_empty());
    graphs
}
