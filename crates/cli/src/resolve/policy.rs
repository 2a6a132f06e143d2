//! From `--heuristic`, `--strategies` and the rest to a policy.

use super::unknown;
use crate::args::PlannerArgs;
use crate::error::CliError;
use spillbench_core::hardware::Hardware;
use spillbench_core::plan::Settings;
use spillbench_core::planner::{Placement, PlannerConfig, Strategy};
use spillbench_core::schedule::Normalize;
use spillbench_heuristics::{CHAINS, HEURISTICS, Heuristic, Policy, heuristic};

/// The name that stands for a chain without strategies: only the last resort is left.
pub const NO_STRATEGY: &str = "none";

/// The policy.
///
/// # Errors
/// When a name is unknown, or a strategy stands twice.
pub fn policy(name: &str, args: &PlannerArgs) -> Result<Policy, CliError> {
    let placement = Placement::by_name(&args.placement)
        .ok_or_else(|| unknown("placement", &args.placement, Placement::ALL.iter().map(|p| p.1)))?;
    let strategies = strategies(&args.strategies)?;
    let config =
        PlannerConfig { strategies, placement, attempts: args.attempts, prefetch: args.prefetch, retime: args.retime };
    Ok(Policy { heuristic: one_heuristic(name)?, config, seed: args.seed })
}

/// How a plan is made, for the plan file.
pub fn settings(policy: &Policy, normalize: Normalize, hardware: Hardware) -> Settings {
    Settings {
        heuristic: policy.heuristic.name.to_owned(),
        strategies: policy.config.strategies.iter().map(ToString::to_string).collect(),
        placement: policy.config.placement.to_string(),
        attempts: policy.config.attempts,
        prefetch: policy.config.prefetch,
        retime: policy.config.retime,
        normalize,
        seed: policy.seed,
        hardware,
    }
}

fn one_heuristic(name: &str) -> Result<&'static Heuristic, CliError> {
    heuristic(name).ok_or_else(|| unknown("heuristic", name, HEURISTICS.iter().map(|h| h.name)))
}

/// The heuristics of a list of names; `all` stands for all of them. Each comes once.
///
/// # Errors
/// When a name is unknown.
pub fn heuristics(names: &[String]) -> Result<Vec<&'static Heuristic>, CliError> {
    let mut found: Vec<&'static Heuristic> = Vec::new();
    for name in names {
        let named = if name == "all" { HEURISTICS.iter().collect() } else { vec![one_heuristic(name)?] };
        found.extend(named);
    }
    let mut seen = Vec::new();
    found.retain(|h| {
        !seen.contains(&h.name) && {
            seen.push(h.name);
            true
        }
    });
    Ok(found)
}

/// A named chain, or strategies one by one.
fn strategies(names: &[String]) -> Result<Vec<Strategy>, CliError> {
    if let [name] = names {
        if name == NO_STRATEGY {
            return Ok(Vec::new());
        }
        if let Some(chain) = CHAINS.iter().find(|c| c.name == name) {
            return Ok(chain.strategies.to_vec());
        }
    }
    let mut chain = Vec::new();
    for name in names {
        let known = || Strategy::ALL.iter().map(|s| s.1).chain(CHAINS.iter().map(|c| c.name)).chain([NO_STRATEGY]);
        let strategy = match Strategy::by_name(name) {
            Some(strategy) => strategy,
            None if names.len() > 1 && known().any(|k| k == name) => {
                return Err(CliError::usage(
                    format!("{name:?} is a whole chain and goes with no other strategy"),
                    "give it alone, or list the strategies one by one",
                ));
            }
            None => return Err(unknown("strategy or chain", name, known())),
        };
        if chain.contains(&strategy) {
            return Err(CliError::usage(format!("the strategy {name} stands twice"), "name each strategy once"));
        }
        chain.push(strategy);
    }
    Ok(chain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(names: &[&str]) -> Result<Vec<Strategy>, String> {
        strategies(&names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>()).map_err(|e| e.to_string())
    }

    #[test]
    fn chains_go_by_name_or_link_by_link() {
        assert_eq!(chain(&["default"]).unwrap(), Strategy::DEFAULT_CHAIN);
        assert_eq!(chain(&["postpone-first"]).unwrap(), Strategy::POSTPONE_FIRST);
        assert_eq!(chain(&["window", "multi"]).unwrap(), [Strategy::Window, Strategy::Multi]);
        assert_eq!(chain(&["none"]).unwrap(), []);
    }

    #[test]
    fn chains_hold_each_strategy_once() {
        assert_eq!(chain(&["multi", "multi"]).unwrap_err(), "the strategy multi stands twice");
        assert!(chain(&["default", "window"]).unwrap_err().contains("whole chain"));
        assert!(chain(&["singel"]).unwrap_err().contains("no strategy or chain \"singel\""));
    }

    #[test]
    fn heuristics_come_once_each() {
        let names = |list: &[&str]| {
            let list: Vec<_> = list.iter().map(|&n| n.to_owned()).collect();
            heuristics(&list).map(|found| found.iter().map(|h| h.name).collect::<Vec<_>>()).ok()
        };
        assert_eq!(names(&["lru", "belady", "lru"]).unwrap(), ["lru", "belady"]);
        assert_eq!(names(&["all", "lru"]).unwrap().len(), HEURISTICS.len());
        assert!(names(&["lru", "optimal"]).is_none());
    }
}
