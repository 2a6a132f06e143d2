//! Writing a graph where a path says: JSON, a CSV pair, or JSON on standard output.

use crate::console::Console;
use crate::error::CliError;
use crate::input;
use crate::report::count;
use crate::resolve::{EDGES_CSV, NODES_CSV};
use spillbench_core::Graph;
use spillbench_core::formats::output::FileSet;
use spillbench_core::formats::{graph_csv, graph_json};
use std::path::{Path, PathBuf};

/// Where a graph goes, and in which format.
#[derive(Debug, PartialEq, Eq)]
pub enum Target {
    /// JSON on standard output.
    Stdout,
    /// A JSON file.
    Json {
        /// Where it stands.
        directory: PathBuf,
        /// Its name.
        name: String,
    },
    /// A CSV pair.
    Csv {
        /// Where it stands.
        directory: PathBuf,
        /// What the names begin with, before `_Nodes.csv` and `_Edges.csv`.
        task: String,
    },
}

impl Target {
    /// What a path asks for: `-` for standard output, else by its extension. A pair may be named by
    /// either of its files.
    ///
    /// # Errors
    /// When the path ends in neither `.json` nor `.csv`.
    pub fn of(path: &Path) -> Result<Self, CliError> {
        if input::is_stdin(path) {
            return Ok(Self::Stdout);
        }
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        let extension = name.rsplit_once('.').map_or("", |n| n.1).to_ascii_lowercase();
        let stem = name.get(..name.len().saturating_sub(extension.len() + 1)).unwrap_or_default();
        match extension.as_str() {
            _ if stem.is_empty() => Err(unknown_format(path)),
            "json" => Ok(Self::Json { directory, name: name.to_owned() }),
            "csv" => {
                let task =
                    [NODES_CSV, EDGES_CSV].iter().find_map(|end| name.strip_suffix(end)).filter(|t| !t.is_empty());
                Ok(Self::Csv { directory, task: task.unwrap_or(stem).to_owned() })
            }
            _ => Err(unknown_format(path)),
        }
    }

    /// Writes the graph, files whole or not at all, and gives their paths.
    ///
    /// # Errors
    /// When standard output or a file cannot be written.
    pub fn write(&self, graph: &Graph, console: &mut Console) -> Result<Vec<PathBuf>, CliError> {
        let (directory, task) = match self {
            Self::Stdout => {
                graph_json::write(graph, console.out()).map_err(CliError::Stdout)?;
                return Ok(Vec::new());
            }
            Self::Json { directory, name } => {
                let mut files = FileSet::new(directory)?;
                files.write(name, |out| graph_json::write(graph, out))?;
                return Ok(files.commit()?);
            }
            Self::Csv { directory, task } => (directory, task),
        };
        if graph_csv::drops_meta(graph) {
            console.note("CSV has no place for the Meta object, which is dropped");
        }
        let mut files = FileSet::new(directory)?;
        files.write(&format!("{task}{NODES_CSV}"), |out| graph_csv::write_nodes(graph, out))?;
        files.write(&format!("{task}{EDGES_CSV}"), |out| graph_csv::write_edges(graph, out))?;
        Ok(files.commit()?)
    }

    /// Writes the graph, lists the files, and notes how large it is and, where that is known, what it
    /// was made of.
    ///
    /// # Errors
    /// As [`Target::write`].
    pub fn write_and_tell(&self, graph: &Graph, made_of: Option<&str>, console: &mut Console) -> Result<(), CliError> {
        for path in self.write(graph, console)? {
            console.line(path.strip_prefix(".").unwrap_or(&path).display())?;
        }
        let [nodes, edges, buffers] =
            [(graph.node_count(), "node"), (graph.edge_count(), "edge"), (graph.buffer_count(), "buffer")]
                .map(|(n, what)| count(n, what));
        let made_of = made_of.map_or_else(String::new, |spec| format!("{spec}: "));
        console.note(format_args!("{made_of}{nodes}, {edges}, {buffers}"));
        Ok(())
    }
}

fn unknown_format(path: &Path) -> CliError {
    CliError::usage(
        format!("{}: the name does not say in which format to write", path.display()),
        "end it in .json, in .csv for a pair of files, or give - for JSON on standard output",
    )
}

/// One file to be written whole; that it can be is found out before any work.
pub struct OneFile {
    files: FileSet,
    name: String,
}

impl OneFile {
    /// A file at `path`.
    ///
    /// # Errors
    /// When its directory cannot be made or written, or it names no file.
    pub fn new(path: &Path) -> Result<Self, CliError> {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default().to_owned();
        if name.is_empty() {
            let what = format!("{} names no file", path.display());
            return Err(CliError::usage(what, "give the path of a file to write"));
        }
        let directory = path.parent().unwrap_or(Path::new(""));
        // A file written aside and dropped shows whether there can be one.
        FileSet::new(directory)?.add(&name, b"")?;
        Ok(Self { files: FileSet::new(directory)?, name })
    }

    /// Writes it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(mut self, fill: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>) -> Result<(), CliError> {
        self.files.write(&self.name, |out| fill(out))?;
        self.files.commit()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_says_the_format() {
        let of = |path: &str| Target::of(Path::new(path)).ok();
        let csv =
            |directory: &str, task: &str| Some(Target::Csv { directory: directory.into(), task: task.to_owned() });
        assert_eq!(of("-"), Some(Target::Stdout));
        assert_eq!(of("a/b.json"), Some(Target::Json { directory: "a".into(), name: "b.json".to_owned() }));
        assert_eq!(of("a/b.csv"), csv("a", "b"));
        assert_eq!(of("b_Nodes.csv"), csv("", "b"));
        assert_eq!(of("b_Edges.csv"), csv("", "b"));
        assert_eq!(of("_Nodes.csv"), csv("", "_Nodes"));
        for wrong in ["", "/", "b", "b.txt", ".json", "a/.csv", "b.json/.."] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
