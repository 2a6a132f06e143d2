//! From GRAPH to a graph: JSON or a CSV pair, a file or standard input.

use super::{in_file, read};
use crate::args::GraphArgs;
use crate::console::Console;
use crate::error::{CliError, SHOWN, shown};
use crate::input::{Expect, ReadError, is_stdin};
use crate::report::{count, times};
use spillbench_core::Shown;
use spillbench_core::formats::graph_csv::{self, CsvError};
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
    /// How it was written there.
    pub format: GraphFormat,
    /// The graph.
    pub graph: Graph,
}

/// How a graph is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum GraphFormat {
    /// One JSON document.
    Json,
    /// A pair of CSV tables.
    Csv,
}

/// Endings of the names of a CSV pair, after the name of the task.
pub const NODES_CSV: &str = "_Nodes.csv";
/// See [`NODES_CSV`].
pub const EDGES_CSV: &str = "_Edges.csv";

/// The files of a graph.
#[derive(Debug, PartialEq, Eq)]
enum Source {
    Json(PathBuf),
    Csv { prefix: String, nodes: PathBuf, edges: PathBuf },
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
    let source = source(path)?;
    let stem = match &source {
        Source::Json(path) => stem(path),
        Source::Csv { prefix, .. } => prefix.clone(),
    };
    let reading = console.progress("reading the graph", 1);
    let (format, (graph, notices)) = match &source {
        Source::Json(path) => (GraphFormat::Json, read_json(path)?),
        Source::Csv { nodes, edges, .. } => (GraphFormat::Csv, read_csv(nodes, edges)?),
    };
    drop(reading);
    let name = task_name(name.map_or(stem, str::to_owned))?;
    for notice in notices {
        console.note(format_args!("{}: {}", shown(path), word_notice(&notice)));
    }
    Ok(Task { name, file: path.to_owned(), format, graph })
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
    if plain && !name.contains(|c: char| c == '\\' || c.is_control()) {
        return Ok(name);
    }
    Err(CliError::usage(
        format!("\"{}\" is no name for a task", Shown(&name)),
        "it begins file names: give --task NAME without / and control characters",
    ))
}

/// Which files a GRAPH argument names.
fn source(path: &Path) -> Result<Source, CliError> {
    let read_error = |source| CliError::Read { file: path.to_owned(), expect: Expect::Graph, source };
    if is_stdin(path) {
        return Ok(Source::Json(path.to_owned()));
    }
    let Some(name) = path.file_name().map(|n| n.to_string_lossy().into_owned()) else {
        return Ok(Source::Json(path.to_owned()));
    };
    let named = [NODES_CSV, EDGES_CSV].iter().find_map(|suffix| name.strip_suffix(suffix));
    let pair = |prefix: &str| {
        let file = |suffix| path.with_file_name(format!("{prefix}{suffix}"));
        Source::Csv { prefix: prefix.to_owned(), nodes: file(NODES_CSV), edges: file(EDGES_CSV) }
    };
    let source = match named {
        Some(prefix) => pair(prefix),
        None if path.is_file() && name.ends_with(".csv") => return Err(read_error(ReadError::CsvName)),
        None if path.exists() => return Ok(Source::Json(path.to_owned())),
        None => pair(name.trim_end_matches('_')),
    };
    let Source::Csv { nodes, edges, .. } = &source else { return Ok(source) };
    let missing = match (nodes.exists(), edges.exists()) {
        (true, true) => return Ok(source),
        // Neither is there: the message is about the path as it was given.
        (false, false) => return Ok(Source::Json(path.to_owned())),
        (true, false) => edges,
        (false, true) => nodes,
    };
    Err(read_error(ReadError::HalfPair { missing: missing.display().to_string() }))
}

type Read = (Graph, Vec<Notice>);

fn read_json(path: &Path) -> Result<Read, CliError> {
    let text = read(path, Expect::Graph)?;
    graph_json::read(&text).map_err(in_file(path))
}

fn read_csv(nodes: &Path, edges: &Path) -> Result<Read, CliError> {
    let texts = [read(nodes, Expect::Text)?, read(edges, Expect::Text)?];
    graph_csv::read(&texts[0], &texts[1]).map_err(|error| match error {
        CsvError::Nodes(source) => in_file(nodes)(source),
        CsvError::Edges(source) => in_file(edges)(source),
        CsvError::Graph(source) => {
            let shown = source.list.iter().take(SHOWN);
            let places = shown.map(|e| graph_csv::locate(&texts[0], &texts[1], e)).collect();
            CliError::CsvGraph { nodes: nodes.to_owned(), edges: edges.to_owned(), source, places }
        }
    })
}

fn word_notice(notice: &Notice) -> String {
    match notice {
        Notice::UnknownKey { key, count } => {
            format!("the key \"{}\" is unknown and ignored (seen {})", Shown(key), times(*count as u64))
        }
        Notice::MoreUnknownKeys { keys: 1 } => "1 more unknown key is ignored".to_owned(),
        Notice::MoreUnknownKeys { keys } => format!("{keys} more unknown keys are ignored"),
        Notice::StrayField { field, on_cache_node, count: 1, first } => {
            let whom = if *on_cache_node { "a cache node" } else { "an op" };
            format!("{field} means nothing on {whom} and is ignored on node {first}")
        }
        Notice::StrayField { field, on_cache_node, count, first } => {
            let whom = if *on_cache_node { "cache nodes" } else { "ops" };
            format!("{field} means nothing on {whom} and is ignored on {count} (the first is node {first})")
        }
        Notice::NoTiming { ops, first } => {
            let have = if *ops == 1 { "has" } else { "have" };
            let ops = count(*ops, "op");
            format!("{ops} {have} no Pipe or no Cycles (the first is node {first}): timing figures are null")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_name_leads_nowhere_else() {
        assert_eq!(task_name("Conv_Case0".to_owned()).unwrap(), "Conv_Case0");
        for wrong in ["", ".", "..", "a/b", "/a", "a/", "a\\b", "a\0b", "a\nb", "a\u{1b}[31m"] {
            assert!(task_name(wrong.to_owned()).is_err(), "{wrong:?}");
        }
    }
}
