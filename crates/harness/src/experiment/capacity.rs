//! Capacities in an experiment file: bytes, multiples of what the hardware has, and ranges of both.
//!
//! `4096` and `"4096"` are bytes, `"0.5x"` is half of the capacity that the hardware has, and
//! `"0.5x..2x step 0.25x"` or `"1024..4096 step 512"` are ranges that hold both of their ends.

use spillbench_core::Bytes;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The most values that one range may have.
pub const MAX_RANGE: usize = 10_000;

/// Multiples are kept in millionths, so that `0.1x + 0.2x` is `0.3x`.
const UNIT: u64 = 1_000_000;

/// One capacity, absolute or relative to that of the hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capacity {
    /// So many bytes.
    Bytes(Bytes),
    /// A multiple of the capacity of the hardware.
    Factor(Factor),
}

/// A multiple, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Factor(u64);

impl Factor {
    /// Once.
    pub const ONE: Self = Self(UNIT);

    /// The multiple of a capacity, to the nearest byte and at least 1; an unbounded cache stays so.
    pub fn of(self, capacity: Bytes) -> Bytes {
        let scaled = (u128::from(capacity.0) * u128::from(self.0) + u128::from(UNIT / 2)) / u128::from(UNIT);
        Bytes(u64::try_from(scaled).unwrap_or(u64::MAX).clamp(1, i64::MAX as u64))
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / UNIT, self.0 % UNIT);
        if rest == 0 {
            return write!(f, "{whole}");
        }
        let digits = format!("{rest:06}");
        write!(f, "{whole}.{}", digits.trim_end_matches('0'))
    }
}

/// Why a capacity could not be understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CapacityError {
    /// Neither a number of bytes nor a multiple.
    #[error("`{0}` is no capacity; write bytes as 4096, a multiple as \"0.5x\", a range as \"0.5x..2x step 0.25x\"")]
    Syntax(String),
    /// Zero bytes, or a multiple of zero.
    #[error("a capacity of 0")]
    Zero,
    /// A range whose end lies before its start.
    #[error("the range `{0}` ends before it begins")]
    Empty(String),
    /// A range of bytes and multiples.
    #[error("the range `{0}` mixes bytes and multiples")]
    Mixed(String),
    /// A range of too many values.
    #[error("the range `{text}` has {values} values; at most {MAX_RANGE} are allowed")]
    TooMany {
        /// The range.
        text: String,
        /// Its number of values.
        values: u64,
    },
}

impl FromStr for Capacity {
    type Err = CapacityError;

    fn from_str(text: &str) -> Result<Self, CapacityError> {
        let syntax = || CapacityError::Syntax(text.to_owned());
        let trimmed = text.trim();
        let value = match trimmed.strip_suffix('x') {
            Some(number) => Self::Factor(Factor(millionths(number.trim_end()).ok_or_else(syntax)?)),
            None => Self::Bytes(Bytes(trimmed.parse().ok().filter(|&b| b <= i64::MAX as u64).ok_or_else(syntax)?)),
        };
        if value.raw() == 0 { Err(CapacityError::Zero) } else { Ok(value) }
    }
}

impl Capacity {
    fn raw(self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.0,
            Self::Factor(factor) => factor.0,
        }
    }

    fn with_raw(self, raw: u64) -> Self {
        match self {
            Self::Bytes(_) => Self::Bytes(Bytes(raw)),
            Self::Factor(_) => Self::Factor(Factor(raw)),
        }
    }

    /// The capacity on a cache that holds `preset` bytes.
    pub fn on(self, preset: Bytes) -> Bytes {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Factor(factor) => factor.of(preset),
        }
    }
}

/// A decimal number in millionths; `None` for a sign, an exponent, or more than six decimals.
fn millionths(text: &str) -> Option<u64> {
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if (whole.is_empty() && rest.is_empty()) || !digits(whole) || !digits(rest) || rest.len() > 6 {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let rest: u64 = format!("{rest:0<6}").parse().ok()?;
    whole.checked_mul(UNIT)?.checked_add(rest)
}

/// The capacities that a text stands for: one, or all those of a range.
///
/// # Errors
/// Broken syntax, a capacity of 0, a range that is empty, mixed or longer than [`MAX_RANGE`].
pub fn parse(text: &str) -> Result<Vec<Capacity>, CapacityError> {
    let Some((first, rest)) = text.split_once("..") else { return Ok(vec![text.parse()?]) };
    let (last, step) = rest.split_once("step").ok_or_else(|| CapacityError::Syntax(text.to_owned()))?;
    let [first, last, step]: [Capacity; 3] = [first.parse()?, last.parse()?, step.parse()?];
    let same = |a: Capacity, b: Capacity| std::mem::discriminant(&a) == std::mem::discriminant(&b);
    if !same(first, last) || !same(first, step) {
        return Err(CapacityError::Mixed(text.to_owned()));
    }
    let span = last.raw().checked_sub(first.raw()).ok_or_else(|| CapacityError::Empty(text.to_owned()))?;
    let steps = span / step.raw();
    if steps >= MAX_RANGE as u64 {
        return Err(CapacityError::TooMany { text: text.to_owned(), values: steps.saturating_add(1) });
    }
    Ok((0..=steps).map(|k| first.with_raw(first.raw() + k * step.raw())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str, preset: u64) -> Vec<u64> {
        parse(text).unwrap().into_iter().map(|c| c.on(Bytes(preset)).0).collect()
    }

    #[test]
    fn ranges_hold_both_ends() {
        assert_eq!(bytes("0.5x..2x step 0.25x", 4096), [2048, 3072, 4096, 5120, 6144, 7168, 8192]);
        assert_eq!(bytes("1024..4096 step 1024", 1), [1024, 2048, 3072, 4096]);
        assert_eq!(bytes("10..20 step 7", 1), [10, 17]);
        assert_eq!(bytes("0.1x..0.3x step 0.1x", 1000), [100, 200, 300]);
        assert_eq!(bytes("0.001x", 100), [1], "a capacity is at least 1 byte");
    }

    #[test]
    fn factors_print_as_decimals() {
        let text: Vec<_> = parse("0.5x..1.5x step 0.125x")
            .unwrap()
            .into_iter()
            .map(|c| match c {
                Capacity::Factor(f) => f.to_string(),
                Capacity::Bytes(b) => b.to_string(),
            })
            .collect();
        assert_eq!(text, ["0.5", "0.625", "0.75", "0.875", "1", "1.125", "1.25", "1.375", "1.5"]);
    }

    #[test]
    fn nonsense_is_refused() {
        let broken = ["", "x", "-1", "1e3", "half", "1..2", "1.0000001x", ".x", "1 2", "99999999999999999999"];
        for text in broken {
            assert!(matches!(parse(text), Err(CapacityError::Syntax(_))), "{text}: {:?}", parse(text));
        }
        assert_eq!(parse("0"), Err(CapacityError::Zero));
        assert_eq!(parse("0x"), Err(CapacityError::Zero));
        assert_eq!(parse("1..2 step 0"), Err(CapacityError::Zero));
        assert!(matches!(parse("2..1 step 1"), Err(CapacityError::Empty(_))));
        assert!(matches!(parse("1x..2048 step 1"), Err(CapacityError::Mixed(_))));
        assert!(matches!(parse("1..9000000000000000000 step 1"), Err(CapacityError::TooMany { .. })));
    }
}
