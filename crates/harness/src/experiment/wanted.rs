//! What tables and figures an experiment asks for.

use spillbench_core::formats::Place;
use std::fmt;

/// A value with the line where the experiment file says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// Where it stands; `None` for defaults and for what did not come from a file.
    pub place: Option<Place>,
}

impl<T> At<T> {
    /// A value that stands in no file.
    pub fn nowhere(value: T) -> Self {
        Self { value, place: None }
    }
}

/// Which rows count: for each column named here, those whose text is one of the values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter(pub Vec<(At<String>, Vec<At<String>>)>);

/// A summary: a compared column against one of its values, over all cases that have both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSpec {
    /// Stem of its files.
    pub name: At<String>,
    /// Its caption.
    pub title: Option<String>,
    /// The column whose values are compared, such as `heuristic`.
    pub compare: At<String>,
    /// The value that all are compared with.
    pub baseline: At<String>,
    /// The measured column, such as `extra_movement`; less is better.
    pub value: At<String>,
    /// Columns that split the table into blocks.
    pub by: Vec<At<String>>,
    /// The rows that count.
    pub filter: Filter,
}

/// Linear or logarithmic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Logarithmic when the values span more than two decades.
    #[default]
    Auto,
    /// Linear, from 0.
    Linear,
    /// Logarithmic; zeros stand at the foot and say so.
    Log,
}

/// The width of a figure on paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Width {
    /// One column of a two-column page, 3.5 inches.
    #[default]
    Column,
    /// The whole width of a page, 7 inches.
    Page,
}

/// How movement is split in a `causes` figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// By why space was missing: capacity or fragmentation.
    #[default]
    Cause,
    /// Into backed and generated buffers.
    Backing,
    /// By cache.
    Cache,
}

impl Part {
    /// All splits by name.
    pub const ALL: &[(Self, &'static str)] =
        &[(Self::Cause, "cause"), (Self::Backing, "backing"), (Self::Cache, "cache")];
}

/// A view of one plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanView {
    /// Bytes resident over the schedule, with the capacity.
    Residency,
    /// Address over schedule position, a rectangle for each residency segment.
    Map,
    /// Pipes over cycles, a bar for each op.
    Timeline,
}

impl PlanView {
    /// All views by name.
    pub const ALL: &[(Self, &'static str)] =
        &[(Self::Residency, "residency"), (Self::Map, "map"), (Self::Timeline, "timeline")];
}

impl fmt::Display for PlanView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL.iter().find(|v| v.0 == *self).map_or("?", |v| v.1))
    }
}

/// What a figure shows. Columns are those of `runs.csv`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FigureKind {
    /// `bars`: one group per value of a column, one bar per series.
    Bars {
        /// The measured column.
        value: At<String>,
        /// The column of the groups.
        group: At<String>,
        /// The column of the bars within a group.
        series: At<String>,
        /// The column of the panels.
        facet: Option<At<String>>,
        /// The scale of the measured values.
        scale: Scale,
    },
    /// `curves`: a measured column over a number.
    Curves {
        /// The measured column.
        value: At<String>,
        /// The numeric column along the horizontal axis.
        x: At<String>,
        /// The column of the curves.
        series: At<String>,
        /// The column of the panels.
        facet: Option<At<String>>,
        /// The scale of the measured values.
        scale: Scale,
    },
    /// `anytime`: a measured column over the budget of searches, its median and range over seeds.
    Anytime {
        /// The measured column.
        value: At<String>,
        /// The column of budgets along the horizontal axis.
        x: At<String>,
        /// The column of the curves.
        series: At<String>,
        /// The column of the panels.
        facet: Option<At<String>>,
        /// The scale of the measured values.
        scale: Scale,
    },
    /// `heat`: a measured column over two parameters.
    Heat {
        /// The measured column.
        value: At<String>,
        /// The column along the horizontal axis.
        x: At<String>,
        /// The column along the vertical axis.
        y: At<String>,
        /// The column of the panels.
        facet: Option<At<String>>,
    },
    /// `profile`: the share of cases within a factor of the best (Dolan & Moré 2002).
    Profile {
        /// The measured column.
        value: At<String>,
        /// The column of the curves.
        series: At<String>,
    },
    /// `over-bound`: each case's movement over its lower bound, with the geometric mean per series.
    OverBound {
        /// The column of the slots.
        series: At<String>,
        /// The column of the panels.
        facet: Option<At<String>>,
    },
    /// `causes`: stacked bars of extra data movement.
    Causes {
        /// What the bars are split by.
        part: Part,
        /// The column of the bars.
        group: At<String>,
        /// The column of the panels.
        facet: Option<At<String>>,
    },
    /// `residency`, `map` or `timeline`: the plan of the first row that passes the filter.
    Plan {
        /// The view.
        view: PlanView,
        /// The one cache shown; all when `None`.
        cache: Option<At<String>>,
    },
}

/// A figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FigureSpec {
    /// Stem of its files.
    pub name: At<String>,
    /// A heading above it; papers put it into the caption instead.
    pub title: Option<String>,
    /// Its width.
    pub width: Width,
    /// The rows that count.
    pub filter: Filter,
    /// What it shows.
    pub kind: FigureKind,
}
