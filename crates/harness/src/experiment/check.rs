//! From the serde mirror to a checked [`Experiment`]: names are known, axes are neither empty nor
//! repetitive, every complaint has its line.

use super::raw::{Axis, RawCapacity, RawCost, RawFile, RawScalar, RawTable};
use super::{
    At, Axes, Capacity, Complaint, Complaints, CostModel, Experiment, ExperimentFile, Filter, Problem, TableSpec,
    capacity, chain_text, cost_text, figures, search,
};
use indexmap::IndexMap;
use spillbench_bounds::attribution::When;
use spillbench_core::formats::Place;
use spillbench_core::formats::hardware_toml::place;
use spillbench_core::hardware::SpillCost;
use spillbench_core::reservation::Reservation;
use spillbench_core::schedule::Normalize;
use spillbench_core::{Placement, PlannerConfig, Strategy};
use std::ops::Range;
use toml::Spanned;

/// Collects complaints and turns spans into places.
pub(super) struct Checker<'a> {
    text: &'a str,
    complaints: Vec<Complaint>,
}

pub(super) fn file(text: &str) -> Result<ExperimentFile, Complaints> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let raw: RawFile = toml::from_str(text).map_err(|e| {
        let place = e.span().map(|span| place(text, span.start));
        Complaints(vec![Complaint { place, problem: Problem::Syntax(e.message().to_owned()) }])
    })?;
    let mut checker = Checker { text, complaints: Vec::new() };
    let file = checker.experiment(raw);
    checker.complaints.sort_by_key(|c| c.place.map(|p| (p.line, p.column)));
    match file {
        Some(file) if checker.complaints.is_empty() => Ok(file),
        _ => Err(Complaints(checker.complaints)),
    }
}

impl Checker<'_> {
    pub(super) fn complain(&mut self, place: Option<Place>, problem: Problem) {
        self.complaints.push(Complaint { place, problem });
    }

    pub(super) fn place(&self, span: Range<usize>) -> Option<Place> {
        Some(place(self.text, span.start))
    }

    pub(super) fn at<T>(&self, value: Spanned<T>) -> At<T> {
        let place = self.place(value.span());
        At { value: value.into_inner(), place }
    }

    pub(super) fn file_stem(&mut self, name: Spanned<String>) -> At<String> {
        let name = self.at(name);
        let fit = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        if name.value.is_empty() || name.value.starts_with('.') || !name.value.bytes().all(fit) {
            self.complain(name.place, Problem::FileName(name.value.clone()));
        }
        name
    }

    /// The items of an axis, each with its place; complains when there is none.
    pub(super) fn items<T>(&mut self, axis: &str, list: Axis<T>) -> Vec<At<T>> {
        let whole = self.place(list.span());
        let items: Vec<At<T>> = list
            .into_inner()
            .0
            .into_iter()
            .map(
                |item| {
                    if item.span() == (0..0) { At { value: item.into_inner(), place: whole } } else { self.at(item) }
                },
            )
            .collect();
        if items.is_empty() {
            self.complain(whole, Problem::EmptyAxis { axis: axis.to_owned() });
        }
        items
    }

    pub(super) fn distinct<T: PartialEq>(&mut self, axis: &str, items: &[At<T>], text: impl Fn(&T) -> String) {
        for (i, item) in items.iter().enumerate() {
            if items[..i].iter().any(|other| other.value == item.value) {
                self.complain(item.place, Problem::Repeated { axis: axis.to_owned(), value: text(&item.value) });
            }
        }
    }

    /// An axis of names, each looked up; `all` stands for every name there is.
    pub(super) fn named<T: PartialEq + Clone>(
        &mut self,
        axis: (&str, &'static str),
        list: Option<Axis<String>>,
        default: T,
        all: &[(T, String)],
        find: impl Fn(&str) -> Option<T>,
    ) -> Vec<At<T>> {
        let Some(list) = list else { return vec![At::nowhere(default)] };
        let mut found = Vec::new();
        for item in self.items(axis.0, list) {
            match find(&item.value) {
                Some(value) => found.push(At { value, place: item.place }),
                None if item.value == "all" => {
                    found.extend(all.iter().map(|(value, _)| At { value: value.clone(), place: item.place }));
                }
                None => {
                    let known = all.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(", ");
                    self.complain(item.place, Problem::Unknown { what: axis.1, name: item.value, known });
                }
            }
        }
        let name =
            |v: &T| all.iter().find(|(value, _)| value == v).map_or_else(|| "a value".to_owned(), |a| a.1.clone());
        self.distinct(axis.0, &found, name);
        found
    }

    fn plain<T: PartialEq + ToString>(&mut self, axis: &str, list: Option<Axis<T>>, default: T) -> Vec<At<T>> {
        let Some(list) = list else { return vec![At::nowhere(default)] };
        let items = self.items(axis, list);
        self.distinct(axis, &items, T::to_string);
        items
    }

    fn experiment(&mut self, raw: RawFile) -> Option<ExperimentFile> {
        let name = self.file_stem(raw.name).value;
        if let Some(studies) = raw.studies {
            if let Some(axes) = raw.axes {
                let place = self.place(axes.span());
                self.complain(place, Problem::Meaningless { key: "axes", what: "a file with `studies`".to_owned() });
            }
            let studies = self.plain("studies", Some(studies), "".to_owned());
            return Some(ExperimentFile::Collection { name, studies });
        }
        let Some(axes) = raw.axes else {
            self.complain(None, Problem::Missing { key: "axes", hint: ": say which graphs and heuristics to run" });
            return None;
        };
        let place = self.place(axes.span());
        let axes = self.axes(axes.into_inner());
        let search = raw.search.map(|search| search::check(self, search));
        if axes.heuristics.is_empty() && search.is_none() {
            self.complain(place, Problem::Missing { key: "heuristics", hint: ": there would be nothing to run" });
        }
        let repetitions = raw.repetitions.map_or(At::nowhere(1), |r| self.at(r));
        if repetitions.value == 0 {
            self.complain(repetitions.place, Problem::NoRepetition);
        }
        let capacities = self.capacities(raw.capacities);
        let bound = self.when(raw.bound);
        let (attribution, best_order) = self.attribution(raw.attribution, raw.best_order, bound);
        let reservations = self.reservations(raw.reserve);
        let tables: Vec<_> = raw.tables.into_iter().map(|t| self.table(t.into_inner())).collect();
        let figures: Vec<_> = raw.figures.into_iter().filter_map(|f| figures::check(self, f.into_inner())).collect();
        let names: Vec<_> = tables.iter().map(|t: &TableSpec| t.name.clone()).collect();
        self.distinct("tables", &names, Clone::clone);
        for figure in figures.iter().filter(|f| bound == When::Never && f.needs_bounds()) {
            let why = format!("figure {} shows lower bounds, and `bound` is \"never\"", figure.name.value);
            self.complain(figure.name.place, Problem::Impossible(why));
        }
        let names: Vec<_> = figures.iter().map(|f| f.name.clone()).collect();
        self.distinct("figures", &names, Clone::clone);
        Some(ExperimentFile::Study(Box::new(Experiment {
            name,
            title: raw.title,
            text: self.text.to_owned(),
            seed: raw.seed.unwrap_or(0),
            repetitions: repetitions.value,
            bound,
            attribution,
            best_order,
            axes,
            search,
            capacities,
            reservations,
            tables,
            figures,
        })))
    }

    fn when(&mut self, raw: Option<Spanned<String>>) -> When {
        let Some(raw) = raw else { return When::default() };
        let given = self.at(raw);
        if let Some(found) = When::ALL.iter().find(|w| w.1 == given.value) {
            return found.0;
        }
        let known = When::ALL.iter().map(|w| w.1).collect::<Vec<_>>().join(", ");
        self.complain(given.place, Problem::Unknown { what: "choice for `bound`", name: given.value, known });
        When::default()
    }

    /// Whether movement is split into its causes, and the best order known.
    fn attribution(
        &mut self,
        wanted: Option<Spanned<bool>>,
        best: Option<Spanned<String>>,
        bound: When,
    ) -> (bool, Option<At<String>>) {
        let wanted = wanted.map_or(At::nowhere(false), |w| self.at(w));
        let best = best.map(|b| self.at(b));
        if wanted.value && bound == When::Never {
            let what = "a study whose `bound` is \"never\"".to_owned();
            self.complain(wanted.place, Problem::Meaningless { key: "attribution", what });
        }
        if let (false, Some(best)) = (wanted.value, &best) {
            let what = "a study without `attribution = true`".to_owned();
            self.complain(best.place, Problem::Meaningless { key: "best_order", what });
        }
        (wanted.value, best)
    }

    fn axes(&mut self, raw: super::raw::RawAxes) -> Axes {
        let normalize: Vec<_> = Normalize::ALL.iter().map(|n| (n.0, n.1.to_owned())).collect();
        let placements: Vec<_> = Placement::ALL.iter().map(|p| (p.0, p.1.to_owned())).collect();
        let heuristics: Vec<_> =
            spillbench_heuristics::HEURISTICS.iter().map(|h| (h.name.to_owned(), h.name.to_owned())).collect();
        let by_normalize = |name: &str| Normalize::ALL.iter().find(|n| n.1 == name).map(|n| n.0);
        let by_heuristic = |name: &str| spillbench_heuristics::heuristic(name).map(|h| h.name.to_owned());
        Axes {
            graphs: self.plain("graphs", Some(raw.graphs), "".to_owned()),
            schedules: self.plain("schedules", raw.schedules, "id".to_owned()),
            hardware: self.plain("hardware", raw.hardware, "davinci".to_owned()),
            cost_models: self.cost_models(raw.cost_models),
            normalize: self.named(
                ("normalize", "level of normalising"),
                raw.normalize,
                Normalize::default(),
                &normalize,
                by_normalize,
            ),
            heuristics: raw.heuristics.map_or_else(Vec::new, |list| {
                self.named(("heuristics", "heuristic"), Some(list), String::new(), &heuristics, by_heuristic)
            }),
            chains: self.chains(raw.strategies),
            placements: self.named(
                ("placements", "placement rule"),
                raw.placements,
                Placement::default(),
                &placements,
                Placement::by_name,
            ),
            attempts: self.plain("attempts", raw.attempts, PlannerConfig::DEFAULT_ATTEMPTS),
            prefetch: self.plain("prefetch", raw.prefetch, 0),
            retime: self.plain("retime", raw.retime, false),
        }
    }

    fn cost_models(&mut self, list: Option<Axis<RawCost>>) -> Vec<At<CostModel>> {
        let Some(list) = list else { return vec![At::nowhere(CostModel::Hardware)] };
        let mut found = Vec::new();
        for At { value, place } in self.items("cost_models", list) {
            let value = match value {
                RawCost::Given(SpillCost::Bandwidth { bytes_per_cycle: 0, .. }) => {
                    self.complain(place, Problem::Impossible("`bytes_per_cycle` is 0".to_owned()));
                    continue;
                }
                RawCost::Given(cost) => CostModel::Given(cost),
                RawCost::Named(name) => match name.as_str() {
                    "hardware" => CostModel::Hardware,
                    "affine" => CostModel::Given(SpillCost::default()),
                    "bandwidth" => CostModel::Given(SpillCost::bandwidth()),
                    _ => {
                        let known =
                            "hardware, affine, bandwidth, or a table such as {model = \"bandwidth\"}".to_owned();
                        self.complain(place, Problem::Unknown { what: "cost model", name, known });
                        continue;
                    }
                },
            };
            found.push(At { value, place });
        }
        self.distinct("cost_models", &found, |cost| match cost {
            CostModel::Hardware => "hardware".to_owned(),
            CostModel::Given(cost) => cost_text(*cost),
        });
        found
    }

    fn chains(&mut self, list: Option<Axis<String>>) -> Vec<At<Vec<Strategy>>> {
        let Some(list) = list else { return vec![At::nowhere(Strategy::DEFAULT_CHAIN.to_vec())] };
        let mut chains = Vec::new();
        for At { value, place } in self.items("strategies", list) {
            match chain(&value) {
                Ok(value) => chains.push(At { value, place }),
                Err(problem) => self.complain(place, problem),
            }
        }
        self.distinct("strategies", &chains, |chain| chain_text(chain));
        chains
    }

    fn capacities(
        &mut self,
        raw: IndexMap<Spanned<String>, Axis<RawCapacity>>,
    ) -> Vec<(At<String>, Vec<At<Capacity>>)> {
        let mut all = Vec::new();
        for (cache, list) in raw {
            let cache = self.at(cache);
            let axis = format!("capacities.{}", cache.value);
            let mut values = Vec::new();
            for At { value, place } in self.items(&axis, list) {
                match capacity::parse(&value.0) {
                    Ok(some) => values.extend(some.into_iter().map(|value| At { value, place })),
                    Err(error) => self.complain(place, error.into()),
                }
            }
            for value in &values {
                if cache.value == "*" && matches!(value.value, Capacity::Bytes(_)) {
                    let why = "`*` stands for every cache, so it takes multiples such as \"0.5x\"".to_owned();
                    self.complain(value.place, Problem::Impossible(why));
                }
            }
            self.distinct(&axis, &values, |value| match value {
                Capacity::Bytes(bytes) => bytes.to_string(),
                Capacity::Factor(factor) => format!("{factor}x"),
            });
            all.push((cache, values));
        }
        all
    }

    fn reservations(&mut self, list: Option<Axis<String>>) -> Vec<At<Reservation>> {
        let mut found = Vec::new();
        for At { value, place } in list.map_or_else(Vec::new, |list| self.items("reserve", list)) {
            match value.parse::<Reservation>() {
                Ok(value) => found.push(At { value, place }),
                Err(error) => self.complain(place, Problem::Impossible(format!("`{value}`: {error}"))),
            }
        }
        found
    }

    fn table(&mut self, raw: RawTable) -> TableSpec {
        let baseline = self.at(raw.baseline);
        TableSpec {
            name: self.file_stem(raw.name),
            title: raw.title,
            compare: self.at(raw.compare),
            baseline: At { value: baseline.value.0, place: baseline.place },
            value: raw.value.map_or_else(|| At::nowhere("extra_movement".to_owned()), |v| self.at(v)),
            by: raw.by.map_or_else(Vec::new, |by| self.items("by", by)),
            filter: self.filter(raw.filter),
        }
    }

    pub(super) fn filter(&mut self, raw: IndexMap<Spanned<String>, Axis<RawScalar>>) -> Filter {
        let mut columns = Vec::new();
        for (column, values) in raw {
            let column = self.at(column);
            let values = self.items(&format!("where.{}", column.value), values);
            let values = values.into_iter().map(|v| At { value: v.value.0, place: v.place }).collect();
            columns.push((column, values));
        }
        Filter(columns)
    }
}

/// A strategy chain: `default`, `postpone-first`, `none`, or strategies joined by commas.
fn chain(text: &str) -> Result<Vec<Strategy>, Problem> {
    match text.trim() {
        "default" => return Ok(Strategy::DEFAULT_CHAIN.to_vec()),
        "postpone-first" => return Ok(Strategy::POSTPONE_FIRST.to_vec()),
        "none" => return Ok(Vec::new()),
        _ => {}
    }
    let mut chain = Vec::new();
    for name in text.split(',').map(str::trim) {
        let Some(strategy) = Strategy::by_name(name) else {
            let known = Strategy::ALL.iter().map(|s| s.1).collect::<Vec<_>>().join(", ");
            let known = format!("{known}; or a chain: default, postpone-first, none");
            return Err(Problem::Unknown { what: "strategy", name: name.to_owned(), known });
        };
        if chain.contains(&strategy) {
            return Err(Problem::Repeated { axis: format!("the chain {text}"), value: strategy.to_string() });
        }
        chain.push(strategy);
    }
    Ok(chain)
}

/// The one figure of a text that holds nothing else.
pub(super) fn lone_figure(text: &str) -> Result<super::FigureSpec, Complaints> {
    #[derive(serde::Deserialize)]
    struct Lone {
        figures: [Spanned<super::raw::RawFigure>; 1],
    }
    // Places in this text mean nothing to whoever gave the options.
    let complaint = |problem| Complaint { place: None, problem };
    let lone: Lone =
        toml::from_str(text).map_err(|e| Complaints(vec![complaint(Problem::Syntax(e.message().to_owned()))]))?;
    let mut checker = Checker { text, complaints: Vec::new() };
    let [figure] = lone.figures;
    let figure = figures::check(&mut checker, figure.into_inner());
    match figure {
        Some(figure) if checker.complaints.is_empty() => Ok(figure),
        _ => Err(Complaints(checker.complaints.into_iter().map(|c| complaint(c.problem)).collect())),
    }
}
