//! `[search]`: objectives, budgets and seeds of the searches that a study runs beside the planner.

use super::check::Checker;
use super::raw::RawSearch;
use super::{At, Problem};
use spillbench_search::{OBJECTIVES, SearchConfig};
use std::fmt;
use toml::Spanned;

/// The searches of a study: every combination, from every schedule on every hardware, is a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchAxes {
    /// Names of objectives.
    pub objectives: Vec<At<String>>,
    /// How long to search.
    pub budgets: Vec<At<Budget>>,
    /// What random choices start from; they are the repetitions of a search.
    pub seeds: Vec<At<u64>>,
    /// How many annealings exchange what they find.
    pub islands: u32,
}

/// How long to search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Budget {
    /// Orders evaluated: the result is the same on every machine.
    Evaluations(u64),
    /// Wall time: the result depends on the machine and on what else it does.
    Seconds(f64),
}

impl Budget {
    /// True when what comes of it depends on the machine.
    pub fn is_time(self) -> bool {
        matches!(self, Self::Seconds(_))
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Evaluations(n) => write!(f, "{n} evaluations"),
            Self::Seconds(s) => write!(f, "{s} s"),
        }
    }
}

/// A day; whoever searches for longer does not sweep.
const LONGEST: f64 = 86_400.0;

pub(super) fn check(checker: &mut Checker<'_>, raw: Spanned<RawSearch>) -> SearchAxes {
    let place = checker.place(raw.span());
    let raw = raw.into_inner();
    let all: Vec<_> = OBJECTIVES.iter().map(|o| (o.0.to_owned(), o.0.to_owned())).collect();
    let by_name = |name: &str| spillbench_search::objective(name).map(|o| o.name().to_owned());
    let default = OBJECTIVES.first().map_or_else(String::new, |o| o.0.to_owned());
    let objectives = checker.named(("search.objectives", "objective"), raw.objectives, default, &all, by_name);
    let evaluations = raw.evaluations.map_or_else(Vec::new, |list| checker.items("search.evaluations", list));
    let seconds = raw.seconds.map_or_else(Vec::new, |list| checker.items("search.seconds", list));
    let evaluations = evaluations.into_iter().map(|n| At { value: Budget::Evaluations(n.value), place: n.place });
    let seconds = seconds.into_iter().map(|s| At { value: Budget::Seconds(s.value), place: s.place });
    let budgets: Vec<_> = evaluations.chain(seconds).collect();
    if budgets.is_empty() {
        let hint = ": say how long to search, in `evaluations` or `seconds`";
        checker.complain(place, Problem::Missing { key: "search.evaluations", hint });
    }
    for budget in &budgets {
        let fit = match budget.value {
            Budget::Evaluations(n) => n > 0,
            Budget::Seconds(s) => s > 0.0 && s <= LONGEST,
        };
        if !fit {
            checker
                .complain(budget.place, Problem::Impossible(format!("nothing can be searched for {}", budget.value)));
        }
    }
    checker.distinct("search", &budgets, Budget::to_string);
    let seeds = raw.seeds.map_or_else(|| vec![At::nowhere(0)], |list| checker.items("search.seeds", list));
    checker.distinct("search.seeds", &seeds, u64::to_string);
    let islands = raw.islands.map_or(At::nowhere(SearchConfig::default().islands as u32), |n| checker.at(n));
    if !(1..=1024).contains(&islands.value) {
        checker.complain(islands.place, Problem::Impossible("`islands` goes from 1 to 1024".to_owned()));
    }
    SearchAxes { objectives, budgets, seeds, islands: islands.value }
}
