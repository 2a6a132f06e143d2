//! A study ready to run: an experiment with its graphs read, its hardware spelt out, and every
//! combination checked before any cell runs.

mod bounds;
mod cell;
mod hardware;
mod load;
mod recent;
mod searching;

pub(crate) use cell::in_short;
pub use cell::{Cell, MAX_CELLS, Planning, Way};
pub use hardware::{HardwareBase, HardwareEntry};
pub use load::{GraphEntry, Notice, ScheduleEntry, ScheduleSource};
pub use searching::{Made, Searched, Searching};

use crate::columns::{self, Column, Role};
use crate::error::HarnessError;
use crate::experiment::{At, Complaint, Complaints, Experiment, ExperimentFile, FigureKind, Filter, Problem};
use recent::Recent;
use spillbench_core::{Machine, Schedule};
use spillbench_heuristics::Heuristic;
use spillbench_search::Aim;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Normalised schedules, and machines, that are kept: more than threads are at work on.
const RECENT: usize = 256;

/// A study ready to run.
#[derive(Debug)]
pub struct Study {
    /// What it was made from.
    pub experiment: Experiment,
    /// The graphs, in the order of the experiment.
    pub graphs: Vec<GraphEntry>,
    /// Hardware, capacities and cost models, every combination.
    pub hardware: Vec<HardwareEntry>,
    /// What was skipped, and why.
    pub notices: Vec<Notice>,
    /// The columns of its table.
    pub columns: Vec<Column>,
    /// Heuristics with their repetitions; only those that draw are repeated.
    runs: Vec<(&'static Heuristic, u32)>,
    /// Normalised schedules: by graph, schedule, level and, for those made for it, hardware.
    normalized: Recent<[usize; 4], Arc<Schedule>>,
    /// Hardware as graphs see it: by graph and hardware.
    machines: Recent<[usize; 2], Result<Arc<Machine>, String>>,
    bounds: bounds::Bounds,
}

/// Where a study looks for files.
#[derive(Clone, Debug)]
pub struct Folders {
    /// The folder of the experiment file; plain paths are relative to it.
    pub base: PathBuf,
    /// The folder of graphs that are not part of the project; `data:` entries are relative to it.
    pub data: PathBuf,
}

/// Reads an experiment file.
///
/// # Errors
/// When it cannot be read or is wrong.
pub fn read_file(path: &Path) -> Result<ExperimentFile, HarnessError> {
    let bytes = std::fs::read(path).map_err(HarnessError::io(path))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| HarnessError::problem(path, Problem::Syntax("not UTF-8 text".to_owned())))?;
    crate::experiment::parse(&text).map_err(|complaints| HarnessError::Experiment { path: path.to_owned(), complaints })
}

impl Study {
    /// Reads the graphs and checks every combination.
    ///
    /// # Errors
    /// All that is wrong, with lines: files that are missing or broken, caches that do not exist,
    /// graphs that name caches the hardware lacks, columns and values that tables and figures name
    /// and the study does not have.
    pub fn load(experiment: Experiment, folders: &Folders) -> Result<Self, Complaints> {
        let mut complaints = Vec::new();
        let (graphs, notices) = load::graphs(&experiment, folders, &mut complaints);
        let hardware = hardware::expand(&experiment, folders, &mut complaints);
        if complaints.is_empty() && graphs.is_empty() {
            complaints.push(Complaint { place: None, problem: Problem::EmptyAxis { axis: "graphs".to_owned() } });
        }
        finish(complaints)?;
        let mut complaints = Vec::new();
        check_caches(&graphs, &hardware, &mut complaints);
        check_goals(&experiment, &graphs, &hardware, &mut complaints);
        let runs = runs(&experiment);
        let columns = columns::of(&graphs, &hardware, experiment.search.is_some(), experiment.attribution);
        let (normalized, machines, bounds) = (Recent::new(RECENT), Recent::new(RECENT), bounds::Bounds::default());
        let study = Self { experiment, graphs, hardware, notices, columns, runs, normalized, machines, bounds };
        study.check_size(&mut complaints);
        study.check_wanted(&mut complaints);
        finish(complaints)?;
        Ok(study)
    }

    /// How many hardware entries a schedule differs by.
    fn variants(&self, schedule: &ScheduleEntry) -> usize {
        match schedule.source {
            ScheduleSource::Given(_) => 1,
            ScheduleSource::Order(_) => self.hardware.len(),
        }
    }

    /// The number of cells.
    pub fn cell_count(&self) -> u64 {
        u64::try_from(self.planned().saturating_add(self.searched())).unwrap_or(u64::MAX)
    }

    /// Schedules of all graphs together, on all hardware.
    fn starts(&self) -> u128 {
        let schedules: u128 = self.graphs.iter().map(|g| g.schedules.len() as u128).sum();
        schedules * self.hardware.len() as u128
    }

    /// Cells of searches; they come behind those of the planner.
    fn searched(&self) -> u128 {
        let Some(search) = &self.experiment.search else { return 0 };
        let rest = [search.goals.len(), search.budgets.len(), search.seeds.len()];
        rest.iter().fold(self.starts(), |product, &n| product.saturating_mul(n as u128))
    }

    /// Cells of the planner.
    fn planned(&self) -> u128 {
        let axes = &self.experiment.axes;
        let rest = [
            axes.normalize.len(),
            self.runs.len(),
            axes.chains.len(),
            axes.placements.len(),
            axes.attempts.len(),
            axes.prefetch.len(),
            axes.retime.len(),
        ];
        rest.iter().fold(self.starts(), |product, &n| product.saturating_mul(n as u128))
    }

    fn check_size(&self, complaints: &mut Vec<Complaint>) {
        let cells = self.planned().saturating_add(self.searched());
        if cells > u128::from(MAX_CELLS) {
            complaints.push(Complaint { place: None, problem: Problem::TooManyCells { cells, most: MAX_CELLS } });
        }
    }

    /// A schedule of a graph at a level of normalising on some hardware; made once for all cells that
    /// stand side by side.
    pub fn normalized(&self, graph: usize, schedule: usize, level: usize, hardware: usize) -> Arc<Schedule> {
        let (entry, chosen) = (&self.graphs[graph], &self.graphs[graph].schedules[schedule]);
        let variant = hardware.min(self.variants(chosen) - 1);
        let made = self.normalized.get([graph, schedule, level, variant]);
        let level = self.experiment.axes.normalize[level].value;
        made.get_or_init(|| Arc::new(chosen.on(&entry.graph, &self.hardware[hardware].hardware(), level))).clone()
    }

    /// The texts that an axis column takes in this study; `None` for other columns.
    pub fn values(&self, column: &str) -> Option<Vec<String>> {
        let axis = self.columns.iter().find(|c| c.name == column && c.role == Role::Axis)?;
        let mut values = Vec::new();
        // The first cells of each axis value are enough; capacities are spread over the hardware.
        for cell in self.probes() {
            let text = axis.text(&cell, None);
            if !values.contains(&text) {
                values.push(text);
            }
        }
        Some(values)
    }

    /// For tables and figures: every column that they name exists, and every value of an axis.
    fn check_wanted(&self, complaints: &mut Vec<Complaint>) {
        let experiment = &self.experiment;
        for table in &experiment.tables {
            self.check_axis(&table.compare, complaints);
            self.check_value(&table.compare.value, &table.baseline, complaints);
            self.check_measure(&table.value, complaints);
            table.by.iter().for_each(|by| self.check_axis(by, complaints));
            self.check_filter(&table.filter, complaints);
        }
        for figure in &experiment.figures {
            self.check_filter(&figure.filter, complaints);
            match &figure.kind {
                FigureKind::Bars { value, group, series, facet, .. } => {
                    self.check_measure(value, complaints);
                    [Some(group), Some(series), facet.as_ref()]
                        .into_iter()
                        .flatten()
                        .for_each(|c| self.check_axis(c, complaints));
                }
                FigureKind::Curves { value, x, series, facet, .. } => {
                    self.check_measure(value, complaints);
                    self.check_measure(x, complaints);
                    [Some(series), facet.as_ref()].into_iter().flatten().for_each(|c| self.check_axis(c, complaints));
                }
                FigureKind::Anytime { value, x, series, facet, .. } => {
                    self.check_measure(value, complaints);
                    self.check_column(x, |c| c.name.starts_with(columns::BUDGET), "budget column", complaints);
                    [Some(series), facet.as_ref()].into_iter().flatten().for_each(|c| self.check_axis(c, complaints));
                }
                FigureKind::Heat { value, x, y, facet } => {
                    self.check_measure(value, complaints);
                    [Some(x), Some(y), facet.as_ref()]
                        .into_iter()
                        .flatten()
                        .for_each(|c| self.check_axis(c, complaints));
                }
                FigureKind::Profile { value, series } => {
                    self.check_measure(value, complaints);
                    self.check_axis(series, complaints);
                }
                FigureKind::OverBound { series, facet } => {
                    [Some(series), facet.as_ref()].into_iter().flatten().for_each(|c| self.check_axis(c, complaints));
                }
                FigureKind::Causes { group, facet, .. } => {
                    [Some(group), facet.as_ref()].into_iter().flatten().for_each(|c| self.check_axis(c, complaints));
                }
                FigureKind::Plan { cache, .. } => {
                    let caches: Vec<_> = columns::caches(&self.hardware);
                    if let Some(cache) = cache.as_ref().filter(|c| !caches.contains(&c.value.as_str())) {
                        let (name, known) = (cache.value.clone(), caches.join(", "));
                        complaints.push(Complaint {
                            place: cache.place,
                            problem: Problem::Unknown { what: "cache", name, known },
                        });
                    }
                }
            }
        }
    }

    fn check_column(
        &self,
        named: &At<String>,
        fit: impl Fn(&Column) -> bool,
        what: &'static str,
        complaints: &mut Vec<Complaint>,
    ) {
        if !self.columns.iter().any(|c| c.name == named.value && fit(c)) {
            let known = self.columns.iter().filter(|c| fit(c)).map(|c| c.name.as_str()).collect::<Vec<_>>().join(", ");
            let problem = Problem::Unknown { what, name: named.value.clone(), known };
            complaints.push(Complaint { place: named.place, problem });
        }
    }

    fn check_axis(&self, named: &At<String>, complaints: &mut Vec<Complaint>) {
        self.check_column(named, |c| c.role == Role::Axis, "axis column", complaints);
    }

    fn check_measure(&self, named: &At<String>, complaints: &mut Vec<Complaint>) {
        self.check_column(named, |c| c.numeric, "numeric column", complaints);
    }

    /// A value of an axis column exists; a graph may be one that was skipped.
    fn check_value(&self, column: &str, value: &At<String>, complaints: &mut Vec<Complaint>) {
        let Some(values) = self.values(column) else { return };
        let may_be_absent = column == "graph" && !self.notices.is_empty();
        if !values.contains(&value.value) && !may_be_absent {
            let problem =
                Problem::Unknown { what: "value of this axis", name: value.value.clone(), known: values.join(", ") };
            complaints.push(Complaint { place: value.place, problem });
        }
    }

    fn check_filter(&self, filter: &Filter, complaints: &mut Vec<Complaint>) {
        for (column, values) in &filter.0 {
            self.check_column(column, |_| true, "column", complaints);
            values.iter().for_each(|value| self.check_value(&column.value, value, complaints));
        }
    }
}

fn finish(mut complaints: Vec<Complaint>) -> Result<(), Complaints> {
    complaints.sort_by_key(|c| c.place.map(|p| (p.line, p.column)));
    complaints.dedup();
    if complaints.is_empty() { Ok(()) } else { Err(Complaints(complaints)) }
}

/// Every heuristic once, and those that draw as often as the experiment says.
fn runs(experiment: &Experiment) -> Vec<(&'static Heuristic, u32)> {
    let found = experiment.axes.heuristics.iter().filter_map(|h| spillbench_heuristics::heuristic(&h.value));
    found.flat_map(|h| (0..if h.seeded { experiment.repetitions } else { 1 }).map(move |rep| (h, rep))).collect()
}

/// Every graph finds its caches on every hardware.
fn check_caches(graphs: &[GraphEntry], hardware: &[HardwareEntry], complaints: &mut Vec<Complaint>) {
    for graph in graphs {
        let mut said: Vec<&str> = Vec::new();
        for base in columns::bases(hardware) {
            if said.contains(&base.name.as_str()) {
                continue;
            }
            // Capacities make no difference.
            if let Err(errors) = Machine::resolve(&graph.graph, &base.hardware) {
                said.push(&base.name);
                for error in errors {
                    let why = format!("graph {} cannot run on hardware {}: {error}", graph.name, base.name);
                    complaints.push(Complaint { place: graph.place, problem: Problem::Impossible(why) });
                }
            }
        }
    }
}

/// Searches for time find the times and energies that they need.
fn check_goals(
    experiment: &Experiment,
    graphs: &[GraphEntry],
    hardware: &[HardwareEntry],
    complaints: &mut Vec<Complaint>,
) {
    let goals = experiment.search.iter().flat_map(|search| &search.goals);
    for goal in goals.filter(|goal| goal.value.aim.is_some()) {
        let objective = &goal.value.objective;
        let untimed = graphs.iter().filter(|g| !g.graph.has_timing()).map(|g| {
            format!("objective {objective} needs times, and some op of graph {} has no pipe or no cycles", g.name)
        });
        let energy = goal.value.aim == Some(Aim::Energy);
        let without = columns::bases(hardware).find(|h| energy && h.hardware.energy.is_none());
        let without = without.map(|h| format!("hardware {} states no energy; davinci-energy does", h.name));
        let complaint = |why| Complaint { place: goal.place, problem: Problem::Impossible(why) };
        complaints.extend(untimed.chain(without).map(complaint));
    }
}
