//! `[search]`: objectives, budgets and seeds of the searches that a study runs beside the planner.

use super::check::Checker;
use super::raw::{Axis, RawScalar, RawSearch};
use super::{At, Problem};
use spillbench_search::{Aim, AimSyntax, LeastMovement, Limit, OBJECTIVES, Objective, SearchConfig, Weights};
use std::fmt;
use toml::Spanned;

/// The searches of a study: every combination, from every schedule on every hardware, is a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchAxes {
    /// What they make small, each limit of movement by itself.
    pub goals: Vec<At<Goal>>,
    /// How long to search.
    pub budgets: Vec<At<Budget>>,
    /// What random choices start from; they are the repetitions of a search.
    pub seeds: Vec<At<u64>>,
    /// How many annealings exchange what they find.
    pub islands: u32,
}

/// What a search makes small.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// The objective, in the words of the tables.
    pub objective: String,
    /// What it makes small of timed plans; `None` for an objective of orders.
    pub aim: Option<Aim>,
}

impl Goal {
    /// How much plans may move, where the objective asks.
    pub fn max_movement(&self) -> Option<Limit> {
        if let Some(Aim::Makespan(limit)) = self.aim { Some(limit) } else { None }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.objective)?;
        match self.max_movement() {
            None | Some(Limit::None) => Ok(()),
            Some(limit) => write!(f, ", max_movement {limit}"),
        }
    }
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
    let goals = goals(checker, raw.objectives, raw.max_movement);
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
    SearchAxes { goals, budgets, seeds, islands: islands.value }
}

/// Every objective, and that of makespan under every limit of movement.
fn goals(
    checker: &mut Checker<'_>,
    objectives: Option<Axis<String>>,
    limits: Option<Axis<RawScalar>>,
) -> Vec<At<Goal>> {
    let default = || vec![At::nowhere(LeastMovement.name().to_owned())];
    let named = objectives.map_or_else(default, |list| checker.items("search.objectives", list));
    let place = limits.as_ref().and_then(|list| checker.place(list.span()));
    let limits = limits.map(|list| checker.items("search.max_movement", list));
    let mut found: Vec<At<Goal>> = Vec::new();
    for At { value, place } in named {
        let goal = |objective: &str, aim| At { value: Goal { objective: objective.to_owned(), aim }, place };
        match (value.split_once(' '), value.as_str()) {
            (None, "all") => found.extend(OBJECTIVES.iter().map(|o| goal(o.0, None))),
            (None, name) if spillbench_search::objective(name).is_some() => found.push(goal(name, None)),
            (None, "energy") => found.push(goal("energy", Some(Aim::Energy))),
            (None, MAKESPAN) => found.extend(self::limits(checker, limits.as_deref()).into_iter().map(|limit| At {
                value: Goal { objective: value.clone(), aim: Some(Aim::Makespan(limit.value)) },
                place: limit.place.or(place),
            })),
            (Some(("weighted", weights)), _) => match weights.trim().parse::<Weights>() {
                Ok(weights) => found.push(goal(&value, Some(weights.into()))),
                Err(error) => checker.complain(place, Problem::Impossible(error.to_string())),
            },
            _ => {
                let known = OBJECTIVES.iter().map(|o| o.0).chain([MAKESPAN, "weighted A:B", "energy"]);
                let known = known.collect::<Vec<_>>().join(", ");
                checker.complain(place, Problem::Unknown { what: "objective", name: value, known });
            }
        }
    }
    if limits.is_some() && !found.iter().any(|goal| goal.value.objective == MAKESPAN) {
        let what = "searches without the objective makespan".to_owned();
        checker.complain(place, Problem::Meaningless { key: "search.max_movement", what });
    }
    checker.distinct("search.objectives", &found, Goal::to_string);
    found
}

/// The objective that a limit of movement is for.
const MAKESPAN: &str = "makespan";

fn limits(checker: &mut Checker<'_>, given: Option<&[At<RawScalar>]>) -> Vec<At<Limit>> {
    let Some(given) = given else { return vec![At::nowhere(Limit::None)] };
    let mut limits = Vec::new();
    for At { value, place } in given {
        match value.0.parse() {
            Ok(value) => limits.push(At { value, place: *place }),
            Err(error) => checker.complain(*place, Problem::Impossible(AimSyntax::to_string(&error))),
        }
    }
    limits
}
