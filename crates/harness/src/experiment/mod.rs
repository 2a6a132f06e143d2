//! Experiment files: one TOML file states a study, its axes, tables and figures.
//!
//! [`parse`] knows nothing of the file system: it checks syntax, keys, names and the emptiness of
//! axes, and reports everything it finds with its line. What needs graphs is checked by
//! [`crate::study`].

mod capacity;
mod check;
mod figures;
mod raw;
mod search;
mod wanted;

pub use capacity::{Capacity, CapacityError, Factor};
pub use figures::{FIGURE_KINDS, FigureOptions, figure_from_options};
pub use search::{Budget, Goal, SearchAxes};
pub use wanted::{At, FigureKind, FigureSpec, Filter, Part, PlanView, Scale, TableSpec, Width};

use spillbench_bounds::attribution::When;
use spillbench_core::formats::Place;
use spillbench_core::hardware::SpillCost;
use spillbench_core::reservation::Reservation;
use spillbench_core::schedule::Normalize;
use spillbench_core::{Placement, Strategy};
use std::fmt;
use thiserror::Error;

/// Prefix of graph entries that are looked for in the data folder and skipped when absent.
pub const DATA_PREFIX: &str = "data:";

/// A study: its axes, and what is to be made of the rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Its name: the default output folder, and what figures say they come from.
    pub name: String,
    /// One line on what it asks.
    pub title: Option<String>,
    /// The file, whole.
    pub text: String,
    /// The seed that all seeds derive from.
    pub seed: u64,
    /// How often each cell is run, under seeds of its own.
    pub repetitions: u32,
    /// Which graphs are compared with lower bounds.
    pub bound: When,
    /// Whether movement is split into what capacity, order, victims and fragmentation cost.
    pub attribution: bool,
    /// The best schedule known, named as a schedule is: its bound is what capacity alone forces.
    pub best_order: Option<At<String>>,
    /// What is varied.
    pub axes: Axes,
    /// The searches that run beside the planner; `None` for none.
    pub search: Option<SearchAxes>,
    /// Capacities by cache; `*` stands for every cache that is not named.
    pub capacities: Vec<(At<String>, Vec<At<Capacity>>)>,
    /// Bytes that every hardware keeps from buffers.
    pub reservations: Vec<At<Reservation>>,
    /// The summaries.
    pub tables: Vec<TableSpec>,
    /// The figures.
    pub figures: Vec<FigureSpec>,
}

/// What is varied: every combination is a cell. No list but that of heuristics may be empty, none holds
/// a value twice.
#[derive(Clone, Debug, PartialEq)]
pub struct Axes {
    /// Files, globs, `data:` globs and workload specifications.
    pub graphs: Vec<At<String>>,
    /// Names of orders, and files, in whose name `{graph}` stands for the name of the graph.
    pub schedules: Vec<At<String>>,
    /// Presets and hardware files.
    pub hardware: Vec<At<String>>,
    /// What a spill costs in cycles.
    pub cost_models: Vec<At<CostModel>>,
    /// How far schedules are normalised.
    pub normalize: Vec<At<Normalize>>,
    /// Names of victim heuristics; none only where there are searches.
    pub heuristics: Vec<At<String>>,
    /// Strategy chains.
    pub chains: Vec<At<Vec<Strategy>>>,
    /// Placement rules.
    pub placements: Vec<At<Placement>>,
    /// How often one `ALLOC` may be postponed.
    pub attempts: Vec<At<u32>>,
    /// Prefetch windows, in op nodes.
    pub prefetch: Vec<At<u32>>,
    /// Whether plans are given a faster order in the end.
    pub retime: Vec<At<bool>>,
}

/// What a spill costs in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostModel {
    /// As the hardware says.
    Hardware,
    /// As given here.
    Given(SpillCost),
}

/// The text of a cost model in tables: `affine(2,150)`, `bandwidth(512,0)`.
pub fn cost_text(cost: SpillCost) -> String {
    match cost {
        SpillCost::Affine { cycles_per_byte, overhead_cycles } => {
            format!("affine({cycles_per_byte},{overhead_cycles})")
        }
        SpillCost::Bandwidth { bytes_per_cycle, overhead_cycles } => {
            format!("bandwidth({bytes_per_cycle},{overhead_cycles})")
        }
    }
}

/// The text of a strategy chain in tables: `single,multi,postpone`; `none` for the last resort alone.
pub fn chain_text(chain: &[Strategy]) -> String {
    if chain.is_empty() { "none".to_owned() } else { chain.iter().map(|s| s.name()).collect::<Vec<_>>().join(",") }
}

/// What an experiment file holds.
#[derive(Clone, Debug, PartialEq)]
pub enum ExperimentFile {
    /// One study.
    Study(Box<Experiment>),
    /// A list of other experiment files, relative to this one.
    Collection {
        /// Its name.
        name: String,
        /// The files.
        studies: Vec<At<String>>,
    },
}

/// One thing that is wrong with an experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// Where.
    pub place: Option<Place>,
    /// What.
    pub problem: Problem,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some(place) => write!(f, "{place}: {}", self.problem),
            None => self.problem.fmt(f),
        }
    }
}

/// All that is wrong with an experiment, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct Complaints(pub Vec<Complaint>);

impl fmt::Display for Complaints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, complaint) in self.0.iter().enumerate() {
            write!(f, "{}{complaint}", if i == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

/// What can be wrong with an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// Broken TOML, an unknown or missing key, a value of the wrong type.
    #[error("{0}")]
    Syntax(String),
    /// A required key is missing.
    #[error("`{key}` is missing{hint}")]
    Missing {
        /// The key.
        key: &'static str,
        /// What would help, or nothing.
        hint: &'static str,
    },
    /// A key that means nothing here.
    #[error("`{key}` means nothing for {what}")]
    Meaningless {
        /// The key.
        key: &'static str,
        /// What it stands in.
        what: String,
    },
    /// An axis without a value.
    #[error("`{axis}` is empty: there would be nothing to run")]
    EmptyAxis {
        /// The axis.
        axis: String,
    },
    /// A value that stands twice on one axis, so that cells would be run twice.
    #[error("`{axis}` holds {value} twice")]
    Repeated {
        /// The axis.
        axis: String,
        /// The value.
        value: String,
    },
    /// A name that nothing has.
    #[error("there is no {what} `{name}`; known: {known}")]
    Unknown {
        /// What was looked for.
        what: &'static str,
        /// The name.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// A capacity that could not be understood.
    #[error(transparent)]
    Capacity(#[from] CapacityError),
    /// A name that cannot be the stem of a file.
    #[error("`{0}` cannot name a file: use letters, digits, `-`, `_` and `.`")]
    FileName(String),
    /// A number of repetitions of 0.
    #[error("`repetitions` is 0: there would be nothing to run")]
    NoRepetition,
    /// More cells than an experiment may have.
    #[error("the experiment has {cells} cells; at most {most} are allowed")]
    TooManyCells {
        /// Cells it has.
        cells: u128,
        /// Cells it may have.
        most: u64,
    },
    /// A file that could not be found or read.
    #[error("{path}: {message}")]
    File {
        /// The file.
        path: String,
        /// Why.
        message: String,
    },
    /// A combination of axis values that can never run.
    #[error("{0}")]
    Impossible(String),
}

/// Reads an experiment file.
///
/// # Errors
/// All that is wrong with it, with lines.
pub fn parse(text: &str) -> Result<ExperimentFile, Complaints> {
    check::file(text)
}
