//! The objectives of `optimize` that time plans: what they are called, their limits, their errors.

use crate::analysis::run::RunError;
use crate::error::{CliError, shown};
use crate::report::grouped;
use crate::resolve::{self, Task};
use spillbench_core::{Graph, Hardware};
use spillbench_search::{Aim, Limit, TimedError};
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// Names of the objectives that time plans.
pub(super) const NAMES: [&str; 3] = ["makespan", "weighted", "energy"];

/// The part of the time that goes into a search for little movement.
pub(super) const SETTLING: f64 = 0.15;

/// `A:B`, both scaled to whole numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Weights {
    per_byte: u64,
    per_cycle: u64,
    /// As given.
    given: (f64, f64),
}

impl fmt::Display for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.given.0, self.given.1)
    }
}

impl FromStr for Weights {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not A:B, two numbers below 10^9 such as 1:2 or 0.5:1, not both 0");
        let (a, b) = text.split_once(':').ok_or_else(wrong)?;
        let parse = |t: &str| {
            let digits = t.bytes().all(|b| b.is_ascii_digit() || b == b'.');
            t.parse::<f64>().ok().filter(|n| digits && *n < 1e9).ok_or_else(wrong)
        };
        let (a, b) = (parse(a)?, parse(b)?);
        // Three decimals, where some are given.
        let scale = if a.fract() == 0.0 && b.fract() == 0.0 { 1.0 } else { 1000.0 };
        let [per_byte, per_cycle] = [a, b].map(|n| (n * scale).round() as u64);
        if per_byte == 0 && per_cycle == 0 { Err(wrong()) } else { Ok(Self { per_byte, per_cycle, given: (a, b) }) }
    }
}

/// `X` bytes, or `+P%`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MaxMovement(Limit);

impl fmt::Display for MaxMovement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Limit::None => f.write_str("none"),
            Limit::Bytes(bytes) => bytes.fmt(f),
            Limit::Percent(percent) => write!(f, "+{percent}%"),
        }
    }
}

impl FromStr for MaxMovement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is neither whole bytes, such as 12288, nor percent, such as +5%");
        if let Some(percent) = text.strip_prefix('+').and_then(|t| t.strip_suffix('%')) {
            let digits = percent.bytes().all(|b| b.is_ascii_digit() || b == b'.');
            let percent = percent.parse::<f64>().ok().filter(|p| digits && *p <= 1e6).ok_or_else(wrong)?;
            return Ok(Self(Limit::Percent(percent)));
        }
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        text.parse().ok().filter(|_| digits).map(|bytes| Self(Limit::Bytes(bytes))).ok_or_else(wrong)
    }
}

/// The aim of an objective by name; `None` when it does not time plans.
///
/// # Errors
/// When weights or a limit are missing, or given for another objective.
pub(super) fn aim(
    name: &str,
    weights: Option<Weights>,
    limit: Option<MaxMovement>,
) -> Result<Option<(&'static str, Aim)>, CliError> {
    let known = NAMES.into_iter().find(|&n| n == name);
    if weights.is_some() != (known == Some("weighted")) {
        return Err(CliError::usage(
            "A:B and --objective weighted go together".to_owned(),
            "for example: --objective weighted 1:2",
        ));
    }
    if limit.is_some() && known != Some("makespan") {
        return Err(CliError::usage(
            "--max-movement is for --objective makespan".to_owned(),
            "a search for movement may end at --target",
        ));
    }
    Ok(match (known, weights) {
        (Some(name @ "makespan"), _) => Some((name, Aim::Makespan(limit.map_or(Limit::None, |l| l.0)))),
        (Some(name @ "weighted"), Some(Weights { per_byte, per_cycle, .. })) => {
            Some((name, Aim::Weighted { per_byte, per_cycle }))
        }
        (Some(name @ "energy"), _) => Some((name, Aim::Energy)),
        _ => None,
    })
}

/// The part of the time after which no more orders are tried to begin the search for time from.
pub(super) const BEGINNING: f64 = 0.8;

/// Says when a part of the time has passed.
pub(super) fn passes(started: Instant, limit: Option<Duration>, part: f64) -> impl Fn() -> bool + Sync {
    let part = limit.map(|limit| limit.mul_f64(part));
    move || part.is_some_and(|part| started.elapsed() >= part)
}

/// Cycles that no plan of the graph beats: of each pipe, the shortest path to any of its ops, its
/// work, and the shortest path behind any; and the longest path of all. 0 without timing.
pub(super) fn least_makespan(graph: &Graph) -> u64 {
    spillbench_search::least_makespan(graph)
}

/// What the limits of movement were, in words.
pub(super) fn limits(least: u64, limit: Option<u64>) -> String {
    let least = grouped(least);
    match limit {
        Some(limit) => format!("At most {} bytes moved; the least movement found is {least}.", grouped(limit)),
        None => format!("No limit of movement; the least found is {least}."),
    }
}

/// The error of a search that has no result.
pub(super) fn error(task: &Task, hardware: &Hardware, error: TimedError) -> CliError {
    let file = shown(&task.file);
    match error {
        TimedError::Plan(error) => resolve::run_error(task, hardware, RunError::Plan(error)),
        TimedError::Measure(error) => resolve::run_error(task, hardware, RunError::Measure(error)),
        TimedError::Untimed(error) => {
            CliError::usage(format!("{file}: {error}"), "--objective movement and peak need no timing")
        }
        TimedError::NoEnergy => CliError::usage(
            format!("the hardware {} states no energy", hardware.name),
            "add an [energy] table to the hardware file, or take --hardware davinci-energy",
        ),
        TimedError::Limit { limit, least, .. } => {
            CliError::usage(unmet(task, limit, least), "raise --max-movement, or search longer")
        }
    }
}

/// That no plan found keeps to a limit of movement, in words.
pub(super) fn unmet(task: &Task, limit: u64, least: u64) -> String {
    let (limit, least) = (grouped(limit), grouped(least));
    format!("{}: no plan found moves at most {limit} bytes; the least found is {least}.", shown(&task.file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_bytes_or_percent() {
        let limit = |text: &str| text.parse::<MaxMovement>().map(|m| m.0);
        assert_eq!(limit("12288"), Ok(Limit::Bytes(12288)));
        assert_eq!(limit("+5%"), Ok(Limit::Percent(5.0)));
        assert_eq!(limit("+0.5%"), Ok(Limit::Percent(0.5)));
        for text in ["12288", "+5%", "+0.5%"] {
            assert_eq!(text.parse::<MaxMovement>().map(|m| m.to_string()).as_deref(), Ok(text));
        }
        for wrong in ["", "+5", "5%", "-5", "+-5%", "+x%", "+1e9%", "99999999999999999999", "1.5", "+%"] {
            assert!(limit(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn weights_are_scaled_to_whole_numbers() {
        let weights = |text: &str| text.parse::<Weights>().map(|w| (w.per_byte, w.per_cycle));
        assert_eq!(weights("1:2"), Ok((1, 2)));
        assert_eq!(weights("0.5:1"), Ok((500, 1000)));
        assert_eq!(weights("0:1"), Ok((0, 1)));
        let shown = |text: &str| text.parse::<Weights>().map(|w| w.to_string());
        assert_eq!(shown("0.50:1"), Ok("0.5:1".to_owned()));
        for wrong in ["", "1", "0:0", "1:", ":", "-1:1", "1:inf", "nan:1", "1:2:3", "1e3:1", "1000000000:1"] {
            assert!(weights(wrong).is_err(), "{wrong}");
        }
    }
}
