//! What timed searches make small, as commands and experiments write it.

use super::search::{Aim, Limit};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Objectives that time plans, with one line each.
pub static TIMED_OBJECTIVES: &[(&str, &str)] = &[
    ("makespan", "least cycles by the timing model `segment`, with a limit of movement or without"),
    ("weighted", "least A x movement + B x makespan"),
    ("energy", "least energy by the model of the hardware, in picojoules"),
];

/// What is no weights, or no limit of movement.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AimSyntax {
    /// No `A:B`.
    #[error("{0:?} is not A:B, two numbers below 10^9 such as 1:2 or 0.5:1, not both 0")]
    Weights(String),
    /// No limit.
    #[error("{0:?} is neither whole bytes, such as 12288, nor percent, such as +5%, nor none")]
    Limit(String),
}

/// `A:B`, both scaled to whole numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// For each byte of extra data movement.
    pub per_byte: u64,
    /// For each cycle of the makespan.
    pub per_cycle: u64,
    /// As given.
    given: (f64, f64),
}

impl fmt::Display for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.given.0, self.given.1)
    }
}

impl From<Weights> for Aim {
    fn from(Weights { per_byte, per_cycle, .. }: Weights) -> Self {
        Self::Weighted { per_byte, per_cycle }
    }
}

impl FromStr for Weights {
    type Err = AimSyntax;

    fn from_str(text: &str) -> Result<Self, AimSyntax> {
        let wrong = || AimSyntax::Weights(text.to_owned());
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

impl FromStr for Limit {
    type Err = AimSyntax;

    /// Reads `X` bytes, `+P%`, or `none`.
    fn from_str(text: &str) -> Result<Self, AimSyntax> {
        let wrong = || AimSyntax::Limit(text.to_owned());
        if text == "none" {
            return Ok(Self::None);
        }
        if let Some(percent) = text.strip_prefix('+').and_then(|t| t.strip_suffix('%')) {
            let digits = percent.bytes().all(|b| b.is_ascii_digit() || b == b'.');
            let percent = percent.parse::<f64>().ok().filter(|p| digits && *p <= 1e6).ok_or_else(wrong)?;
            return Ok(Self::Percent(percent));
        }
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        text.parse().ok().filter(|_| digits).map(Self::Bytes).ok_or_else(wrong)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Bytes(bytes) => write!(f, "{bytes}"),
            Self::Percent(percent) => write!(f, "+{percent}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_bytes_or_percent() {
        let limit = |text: &str| text.parse::<Limit>();
        assert_eq!(limit("12288"), Ok(Limit::Bytes(12288)));
        assert_eq!(limit("+5%"), Ok(Limit::Percent(5.0)));
        assert_eq!(limit("+0.5%"), Ok(Limit::Percent(0.5)));
        assert_eq!(limit("none"), Ok(Limit::None));
        for text in ["12288", "+5%", "+0.5%", "none"] {
            assert_eq!(limit(text).unwrap().to_string(), text);
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
        assert_eq!("0.50:1".parse::<Weights>().map(|w| w.to_string()).as_deref(), Ok("0.5:1"));
        for wrong in ["", "1", "0:0", "1:", ":", "-1:1", "1:inf", "nan:1", "1:2:3", "1e3:1", "1000000000:1"] {
            assert!(weights(wrong).is_err(), "{wrong}");
        }
    }
}
