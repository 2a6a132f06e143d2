//! The figures an experiment asks for: which keys mean something for which kind, and defaults.

use super::check::Checker;
use super::raw::RawFigure;
use super::wanted::{At, FigureKind, FigureSpec, Part, PlanView, Scale, TableSpec, Width};
use super::{Complaints, Filter, Problem};
use toml::Spanned;

/// A kind of figure.
pub struct FigureKindInfo {
    /// Its name.
    pub name: &'static str,
    /// One line on it.
    pub doc: &'static str,
    /// The keys that mean something for it, beside `name`, `kind`, `title`, `width` and `where`.
    pub keys: &'static [&'static str],
}

/// All kinds of figures.
pub const FIGURE_KINDS: &[FigureKindInfo] = &[
    FigureKindInfo {
        name: "bars",
        doc: "a measured column per group and series, as grouped bars",
        keys: &["value", "group", "series", "facet", "scale"],
    },
    FigureKindInfo {
        name: "curves",
        doc: "a measured column over a number, such as a capacity; one curve per series",
        keys: &["value", "x", "series", "facet", "scale"],
    },
    FigureKindInfo {
        name: "anytime",
        doc: "a measured column over the budget of searches: median and range over seeds, one curve per series",
        keys: &["value", "x", "series", "facet", "scale"],
    },
    FigureKindInfo {
        name: "heat",
        doc: "a measured column over two parameters, as coloured tiles",
        keys: &["value", "x", "y", "facet"],
    },
    FigureKindInfo {
        name: "profile",
        doc: "performance profile: the share of cases within a factor of the best",
        keys: &["value", "series"],
    },
    FigureKindInfo {
        name: "over-bound",
        doc: "extra data movement over its lower bound, a mark per case, with the geometric mean",
        keys: &["series", "facet"],
    },
    FigureKindInfo {
        name: "causes",
        doc: "extra data movement split by cause, backing or cache, as stacked bars",
        keys: &["part", "group", "facet"],
    },
    FigureKindInfo {
        name: "residency",
        doc: "bytes resident over the schedule of one plan, with the capacity of each cache",
        keys: &["cache"],
    },
    FigureKindInfo {
        name: "map",
        doc: "address over schedule position of one plan, a rectangle per residency segment",
        keys: &["cache"],
    },
    FigureKindInfo { name: "timeline", doc: "the pipes of one plan over cycles, a bar per op", keys: &[] },
];

/// The facet that stands for one panel.
const NO_FACET: &str = "none";

/// A figure asked for by hand: the keys of `[[figures]]` as text.
#[derive(Clone, Debug, Default)]
pub struct FigureOptions {
    /// The kind, which is also the stem of its files.
    pub kind: String,
    /// The keys with their values; a key may be `where.COLUMN`, and then stand more than once.
    pub keys: Vec<(String, String)>,
}

/// The figure that such options describe.
///
/// # Errors
/// As for one in a file.
pub fn figure_from_options(options: &FigureOptions) -> Result<FigureSpec, Complaints> {
    let mut table = toml::Table::new();
    table.insert("name".to_owned(), options.kind.clone().into());
    table.insert("kind".to_owned(), options.kind.clone().into());
    for (key, value) in &options.keys {
        match key.strip_prefix("where.") {
            None => {
                table.insert(key.clone(), value.clone().into());
            }
            Some(column) => {
                let filter = table.entry("where").or_insert_with(|| toml::Table::new().into());
                let columns =
                    filter.as_table_mut().map(|t| t.entry(column).or_insert_with(|| Vec::<String>::new().into()));
                if let Some(toml::Value::Array(values)) = columns {
                    values.push(value.clone().into());
                }
            }
        }
    }
    let text = toml::Table::from_iter([("figures".to_owned(), vec![table].into())]).to_string();
    super::check::lone_figure(&text)
}

pub(super) fn check(checker: &mut Checker<'_>, raw: RawFigure) -> Option<FigureSpec> {
    let name = checker.file_stem(raw.name);
    let kind = checker.at(raw.kind);
    let Some(info) = FIGURE_KINDS.iter().find(|k| k.name == kind.value) else {
        let known = FIGURE_KINDS.iter().map(|k| k.name).collect::<Vec<_>>().join(", ");
        checker.complain(kind.place, Problem::Unknown { what: "kind of figure", name: kind.value, known });
        return None;
    };
    let filter = checker.filter(raw.filter);
    let mut keys = Keys { checker, info };
    let width = keys.one_of("width", raw.width, &[(Width::Column, "column"), (Width::Page, "page")]);
    let scales = [(Scale::Auto, "auto"), (Scale::Linear, "linear"), (Scale::Log, "log")];
    let scale = keys.one_of("scale", raw.scale, &scales);
    let part = keys.one_of("part", raw.part, Part::ALL);
    let [value, group, series] =
        [("value", raw.value), ("group", raw.group), ("series", raw.series)].map(|k| keys.take(k));
    let no_facet = raw.facet.as_ref().is_some_and(|f| f.get_ref() == NO_FACET);
    let [facet, x, y, cache] =
        [("facet", raw.facet), ("x", raw.x), ("y", raw.y), ("cache", raw.cache)].map(|k| keys.take(k));
    let facet = facet.filter(|_| !no_facet);
    let or = |given: Option<At<String>>, default: &str| given.unwrap_or_else(|| At::nowhere(default.to_owned()));
    let value = or(value, "extra_movement");
    let kind = match info.name {
        "bars" => FigureKind::Bars { value, group: or(group, "graph"), series: or(series, "heuristic"), facet, scale },
        "curves" => {
            let facet = (!no_facet).then(|| or(facet, "graph"));
            FigureKind::Curves { value, x: or(x, "capacity_factor"), series: or(series, "heuristic"), facet, scale }
        }
        "anytime" => {
            let facet = (!no_facet).then(|| or(facet, "graph"));
            FigureKind::Anytime { value, x: or(x, "budget_evaluations"), series: or(series, "schedule"), facet, scale }
        }
        "heat" => {
            let hint = ": a heat map needs `x` and `y`";
            let [x, y] = [("x", x), ("y", y)].map(|(key, given)| {
                if given.is_none() {
                    keys.checker.complain(kind.place, Problem::Missing { key, hint });
                }
                given
            });
            FigureKind::Heat { value, x: x?, y: y?, facet }
        }
        "profile" => FigureKind::Profile { value, series: or(series, "heuristic") },
        "over-bound" => FigureKind::OverBound { series: or(series, "heuristic"), facet },
        "causes" => FigureKind::Causes { part, group: or(group, "heuristic"), facet },
        other => {
            let view = PlanView::ALL.iter().find(|v| v.1 == other)?.0;
            FigureKind::Plan { view, cache }
        }
    };
    Some(FigureSpec { name, title: raw.title, width, filter, kind })
}

struct Keys<'a, 'b> {
    checker: &'a mut Checker<'b>,
    info: &'static FigureKindInfo,
}

impl Keys<'_, '_> {
    /// A key's value, or a complaint when the kind has no use for it.
    fn take(&mut self, (key, given): (&'static str, Option<Spanned<String>>)) -> Option<At<String>> {
        let given = self.checker.at(given?);
        if key != "width" && !self.info.keys.contains(&key) {
            let what = format!("a figure of kind {}", self.info.name);
            self.checker.complain(given.place, Problem::Meaningless { key, what });
            return None;
        }
        Some(given)
    }

    fn one_of<T: Copy + Default>(&mut self, key: &'static str, given: Option<Spanned<String>>, all: &[(T, &str)]) -> T {
        let Some(given) = self.take((key, given)) else { return T::default() };
        if let Some(found) = all.iter().find(|one| one.1 == given.value) {
            return found.0;
        }
        let known = all.iter().map(|one| one.1).collect::<Vec<_>>().join(", ");
        self.checker.complain(given.place, Problem::Unknown { what: key, name: given.value, known });
        T::default()
    }
}

impl FigureSpec {
    /// True when there is nothing to show without lower bounds.
    pub fn needs_bounds(&self) -> bool {
        matches!(self.kind, FigureKind::OverBound { .. })
    }

    /// True when it shows rows that depend on the machine.
    pub fn is_timed(&self) -> bool {
        matches!(&self.kind, FigureKind::Anytime { x, .. } if x.value == "budget_seconds")
    }

    /// Every column that the figure names, with the place where it does.
    pub fn columns(&self) -> Vec<&At<String>> {
        let own: Vec<Option<&At<String>>> = match &self.kind {
            FigureKind::Bars { value, group, series, facet, .. } => {
                vec![Some(value), Some(group), Some(series), facet.as_ref()]
            }
            FigureKind::Curves { value, x, series, facet, .. }
            | FigureKind::Anytime { value, x, series, facet, .. } => {
                vec![Some(value), Some(x), Some(series), facet.as_ref()]
            }
            FigureKind::Heat { value, x, y, facet } => vec![Some(value), Some(x), Some(y), facet.as_ref()],
            FigureKind::Profile { value, series } => vec![Some(value), Some(series)],
            FigureKind::OverBound { series, facet } => vec![Some(series), facet.as_ref()],
            FigureKind::Causes { group, facet, .. } => vec![Some(group), facet.as_ref()],
            FigureKind::Plan { .. } => Vec::new(),
        };
        own.into_iter().flatten().chain(self.filter.columns()).collect()
    }
}

impl TableSpec {
    /// Every column that the table names.
    pub fn columns(&self) -> impl Iterator<Item = &At<String>> {
        [&self.compare, &self.value].into_iter().chain(&self.by).chain(self.filter.columns())
    }
}

impl Filter {
    /// The columns that it names.
    pub fn columns(&self) -> impl Iterator<Item = &At<String>> {
        self.0.iter().map(|(column, _)| column)
    }
}
