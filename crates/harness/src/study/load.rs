//! Reading the graphs and schedules that an experiment names.

use super::Folders;
use crate::experiment::{At, Complaint, DATA_PREFIX, Experiment, Problem};
use crate::hash::{self, Hash};
use rayon::prelude::*;
use spillbench_core::formats::{Place, graph_csv, graph_json, schedule_text};
use spillbench_core::schedule::Normalize;
use spillbench_core::{Cycles, Graph, Hardware, Machine, Schedule};
use spillbench_search::{ORDERS, Order};
use spillbench_workloads::WorkloadSpec;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A graph of a study.
#[derive(Debug)]
pub struct GraphEntry {
    /// Its name in tables: the stem of its file, or its specification.
    pub name: String,
    /// Where the experiment names it.
    pub place: Option<Place>,
    /// The graph.
    pub graph: Graph,
    /// Cycles that no plan of it takes less than, spills left out; 0 without timing, and where nothing is
    /// searched.
    pub least_makespan: Cycles,
    /// The hash of its content.
    pub hash: Hash,
    /// The schedules it is planned with.
    pub schedules: Vec<ScheduleEntry>,
    /// The best schedule known, where the experiment names one.
    pub best: Option<ScheduleEntry>,
}

/// A schedule of a graph of a study.
#[derive(Debug)]
pub struct ScheduleEntry {
    /// Its name in tables: that of the order, or the file as the experiment names it.
    pub name: String,
    /// Where it comes from.
    pub source: ScheduleSource,
    /// The hash of its order, or of what says how to make it.
    pub hash: Hash,
}

/// Where a schedule comes from.
#[derive(Debug)]
pub enum ScheduleSource {
    /// It is the same on all hardware.
    Given(Schedule),
    /// It is made for each hardware.
    Order(&'static Order),
}

impl ScheduleEntry {
    /// The schedule on some hardware; the default one where nothing can be planned on it.
    pub fn on(&self, graph: &Graph, hardware: &Hardware, level: Normalize) -> Schedule {
        let schedule = match &self.source {
            ScheduleSource::Given(schedule) => schedule.clone(),
            ScheduleSource::Order(order) => match Machine::resolve(graph, hardware) {
                Ok(machine) if machine.misfits(graph).is_empty() => order.schedule(graph, &machine),
                _ => Schedule::default_for(graph),
            },
        };
        if level == Normalize::None { schedule } else { schedule.normalized(graph, level) }
    }
}

/// Something that was skipped.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Notice {
    /// Graphs of the data folder that are not there.
    #[error("skipped {entry}: nothing of that name in {}", .folder.display())]
    DataAbsent {
        /// The entry of the experiment.
        entry: String,
        /// The data folder.
        folder: PathBuf,
    },
}

/// Where one graph comes from.
enum Source {
    File(PathBuf),
    Workload(String),
}

struct Located {
    name: String,
    entry: At<String>,
    source: Source,
}

pub(super) fn graphs(
    experiment: &Experiment,
    folders: &Folders,
    complaints: &mut Vec<Complaint>,
) -> (Vec<GraphEntry>, Vec<Notice>) {
    let (mut located, mut notices): (Vec<Located>, Vec<Notice>) = (Vec::new(), Vec::new());
    for entry in &experiment.axes.graphs {
        match locate(entry, folders) {
            Ok(Found::Graphs(found)) => located.extend(found),
            Ok(Found::Absent(notice)) => notices.push(notice),
            Err(problem) => complaints.push(Complaint { place: entry.place, problem }),
        }
    }
    for (i, graph) in located.iter().enumerate() {
        if located[..i].iter().any(|other| other.name == graph.name) {
            let problem = Problem::Repeated { axis: "graphs".to_owned(), value: graph.name.clone() };
            complaints.push(Complaint { place: graph.entry.place, problem });
        }
    }
    if !complaints.is_empty() {
        return (Vec::new(), notices);
    }
    let read: Vec<_> = located.par_iter().map(|graph| read(graph, experiment, folders)).collect();
    let mut graphs = Vec::with_capacity(read.len());
    for one in read {
        match one {
            Ok(graph) => graphs.push(graph),
            Err(found) => complaints.extend(found),
        }
    }
    (graphs, notices)
}

enum Found {
    Graphs(Vec<Located>),
    Absent(Notice),
}

fn locate(entry: &At<String>, folders: &Folders) -> Result<Found, Problem> {
    let text = entry.value.as_str();
    let at = |name: String, source| Located { name, entry: entry.clone(), source };
    if text.contains('(') || spillbench_workloads::family(text).is_some() {
        return Ok(Found::Graphs(vec![at(text.to_owned(), Source::Workload(text.to_owned()))]));
    }
    let (pattern, folder) = match text.strip_prefix(DATA_PREFIX) {
        Some(rest) => (rest, &folders.data),
        None => (text, &folders.base),
    };
    let paths = matches(pattern, folder).map_err(|message| Problem::File { path: text.to_owned(), message })?;
    if !paths.is_empty() {
        let located = paths.into_iter().map(|path| at(name_of(&path), Source::File(path)));
        return Ok(Found::Graphs(located.collect()));
    }
    if text.starts_with(DATA_PREFIX) {
        return Ok(Found::Absent(Notice::DataAbsent { entry: text.to_owned(), folder: folder.clone() }));
    }
    Err(Problem::File { path: text.to_owned(), message: "no such file".to_owned() })
}

/// The files that a path or a glob names, in the order of their names.
fn matches(pattern: &str, folder: &Path) -> Result<Vec<PathBuf>, String> {
    let plain = folder.join(pattern);
    if plain.is_file() {
        return Ok(vec![plain]);
    }
    let folder = glob::Pattern::escape(&folder.to_string_lossy());
    let full = if Path::new(pattern).is_absolute() { pattern.to_owned() } else { format!("{folder}/{pattern}") };
    let mut paths = Vec::new();
    for path in glob::glob(&full).map_err(|e| e.to_string())? {
        let path = path.map_err(|e| e.to_string())?;
        // A CSV pair is one graph: its first file stands for it.
        if path.is_file() && !path.to_string_lossy().ends_with("_Edges.csv") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn name_of(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    stem.strip_suffix("_Nodes").map_or(stem.clone(), str::to_owned)
}

fn read(located: &Located, experiment: &Experiment, folders: &Folders) -> Result<GraphEntry, Vec<Complaint>> {
    let place = located.entry.place;
    let graph = match &located.source {
        Source::File(path) => {
            read_file(path).map_err(|message| Problem::File { path: path.display().to_string(), message })
        }
        Source::Workload(spec) => generate(spec),
    };
    let graph = graph.map_err(|problem| vec![Complaint { place, problem }])?;
    let (mut schedules, mut complaints) = (Vec::<ScheduleEntry>::new(), Vec::new());
    let mut load = |named: &At<String>| match schedule(&graph, &located.name, &named.value, &folders.base) {
        Ok(source) => {
            let hash = match &source {
                ScheduleSource::Given(schedule) => hash::schedule(&graph, schedule),
                ScheduleSource::Order(order) => Hash::of(format!("order {}", order.name).as_bytes()),
            };
            Some(ScheduleEntry { name: named.value.clone(), source, hash })
        }
        Err(problem) => {
            complaints.push(Complaint { place: named.place, problem });
            None
        }
    };
    schedules.extend(experiment.axes.schedules.iter().filter_map(&mut load));
    let best = experiment.best_order.as_ref().and_then(&mut load);
    if !complaints.is_empty() {
        return Err(complaints);
    }
    let least_makespan = experiment.search.as_ref().map_or(0, |_| spillbench_search::least_makespan(&graph));
    let (name, hash, least_makespan) = (located.name.clone(), hash::graph(&graph), Cycles(least_makespan));
    Ok(GraphEntry { name, place, hash, graph, least_makespan, schedules, best })
}

/// Reads a graph from a file of any known form.
///
/// # Errors
/// What is wrong with it, in words.
fn read_file(path: &Path) -> Result<Graph, String> {
    let bytes = |path: &Path| std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()));
    let text = path.to_string_lossy();
    let read = match text.strip_suffix("_Nodes.csv") {
        Some(stem) => {
            graph_csv::read(&bytes(path)?, &bytes(Path::new(&format!("{stem}_Edges.csv")))?).map_err(|e| e.to_string())
        }
        None => graph_json::read(&bytes(path)?).map_err(|e| e.to_string()),
    };
    read.map(|(graph, _)| graph)
}

fn generate(spec: &str) -> Result<Graph, Problem> {
    let impossible = |message: String| Problem::Impossible(format!("{spec}: {message}"));
    let parsed: WorkloadSpec = spec.parse().map_err(|e: spillbench_workloads::SpecError| impossible(e.to_string()))?;
    spillbench_workloads::generate(&parsed).map_err(|e| impossible(e.to_string()))
}

fn schedule(graph: &Graph, graph_name: &str, name: &str, base: &Path) -> Result<ScheduleSource, Problem> {
    if name == "id" {
        return Ok(ScheduleSource::Given(Schedule::default_for(graph)));
    }
    if let Some(order) = spillbench_search::order(name) {
        return Ok(ScheduleSource::Order(order));
    }
    let path = name.replace("{graph}", graph_name);
    let file = |message: String| Problem::File { path: path.clone(), message };
    let known = || ORDERS.iter().map(|o| o.name).collect::<Vec<_>>().join(", ");
    let bytes = std::fs::read(base.join(&path)).map_err(|e| file(format!("{e}; orders by name: {}", known())))?;
    let ids = schedule_text::read(&bytes).map_err(|e| file(e.to_string()))?;
    let schedule = Schedule::from_ids(graph, &ids);
    schedule.map(ScheduleSource::Given).map_err(|e| file(format!("no schedule of graph {graph_name}: {e}")))
}
