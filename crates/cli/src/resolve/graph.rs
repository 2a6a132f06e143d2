//! From GRAPH to a graph: JSON or a CSV pair, a file or standard input.

use super::{in_file, read};
use crate::args::GraphArgs;
use crate::console::Console;
use crate::error::CliError;
use crate::input::{Expect, is_stdin};
use crate::report::times;
use spillbench_core::formats::graph_json;
use spillbench_core::graph::{Graph, Notice};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// A graph with the name of its task.
#[derive(Debug)]
pub struct Task {
    /// The name that begins the names of its files.
    pub name: String,
    /// Where the graph came from; `-` for standard input.
    pub file: PathBuf,
    /// The graph.
    pub graph: Graph,
}

/// Reads the graph and says what was passed over.
///
/// # Errors
/// When it cannot be read or is unsound.
pub fn task(args: &GraphArgs, console: &Console) -> Result<Task, CliError> {
    task_at(&args.graph, args.task.as_deref(), console)
}

/// Reads the graph at `path`; its task is called `name` or, by default, by the stem of the file.
///
/// # Errors
/// As [`task`].
pub fn task_at(path: &Path, name: Option<&str>, console: &Console) -> Result<Task, CliError> {
    let name = task_name(name.map_or_else(|| stem(path), str::to_owned))?;
    let (graph, notices) = read_json(path)?;
    for notice in notices {
        console.note(format_args!("{}: {}", path.display(), word_notice(&notice)));
    }
    Ok(Task { name, file: path.to_owned(), graph })
}

fn stem(path: &Path) -> String {
    if is_stdin(path) {
        return "stdin".to_owned();
    }
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// A task name becomes part of file names, so it must not lead elsewhere.
fn task_name(name: String) -> Result<String, CliError> {
    let plain = Path::new(&name).file_name() == Some(OsStr::new(&name));
    if plain && !name.contains(['\0', '\\']) {
        return Ok(name);
    }
    Err(CliError::usage(format!("{name:?} is no name for a task"), "it begins file names: give --task NAME without /"))
}

type Read = (Graph, Vec<Notice>);

fn read_json(path: &Path) -> Result<Read, CliError> {
    let text = read(path, Expect::JsonObject)?;
    graph_json::read(&text).map_err(in_file(path))
}

fn word_notice(notice: &Notice) -> String {
    match notice {
        Notice::UnknownKey { key, count } => {
            format!("the key {key:?} is unknown and ignored (seen {})", times(*count as u64))
        }
        Notice::MoreUnknownKeys { keys } => format!("{keys} more unknown keys are ignored"),
        Notice::StrayField { field, on_cache_node, count, first } => {
            let whom = if *on_cache_node { "cache nodes" } else { "ops" };
            format!("{field} means nothing on {whom} and is ignored on {count} (the first is node {first})")
        }
        Notice::NoTiming { ops, first } => {
            format!("{ops} ops have no Pipe or no Cycles (the first is node {first}): timing figures are null")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_name_leads_nowhere_else() {
        assert_eq!(task_name("Conv_Case0".to_owned()).unwrap(), "Conv_Case0");
        for wrong in ["", ".", "..", "a/b", "/a", "a/", "a\\b", "a\0b"] {
            assert!(task_name(wrong.to_owned()).is_err(), "{wrong:?}");
        }
    }
}
