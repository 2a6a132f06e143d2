//! Which graph to make: a family, its parameters and a seed, and the text that says so:
//! `matmul(m=8,n=8,k=8)`, `layered-dag(nodes=3000,pressure=1.5,seed=7)`, or a bare `fft`.

use crate::error::{SpecError, SpecProblem};
use crate::registry::{Domain, FAMILIES, Family, Parameter, Values, family};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The seed where none is given.
pub const DEFAULT_SEED: u64 = 0;

/// A graph to make. Its text form names the parameters that differ from their defaults and is
/// parsed back into the same spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct WorkloadSpec {
    family: &'static Family,
    values: Values,
    /// What random choices start from.
    pub seed: u64,
}

impl WorkloadSpec {
    /// A family with all its defaults.
    pub fn defaults(family: &'static Family) -> Self {
        Self { family, values: Values::defaults(family), seed: DEFAULT_SEED }
    }

    /// A spec as text, or just the name of a family, with further settings such as `m=8`, each a
    /// text of its own, as they stand on a command line. `seed=N` is one of them.
    ///
    /// # Errors
    /// The first text that is wrong, quoted.
    pub fn from_settings<S: AsRef<str>>(spec: &str, settings: &[S]) -> Result<Self, SpecError> {
        let mut builder = Parser::new(spec).spec()?;
        for setting in settings {
            let mut parser = Parser::new(setting.as_ref());
            parser.setting(&mut builder)?;
            parser.end()?;
        }
        Ok(builder.spec)
    }

    /// The family.
    pub fn family(&self) -> &'static Family {
        self.family
    }

    /// How many nodes the graph will have, before it is made: exact for operators, but an upper
    /// bound for `moe`, and what was asked for of synthetic families. Saturating.
    pub fn foretold_nodes(&self) -> u64 {
        (self.family.nodes)(&self.values)
    }

    /// The spec with another value of one parameter, which lies in its range; unchanged where the
    /// family has no such parameter.
    pub(crate) fn with(&self, name: &str, value: u64) -> Self {
        let mut spec = self.clone();
        if let Some(index) = self.family.parameters.iter().position(|p| p.name == name) {
            spec.values.set(index, value);
        }
        spec
    }

    /// The value of every parameter.
    pub fn values(&self) -> &Values {
        &self.values
    }
}

impl FromStr for WorkloadSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        Ok(Parser::new(text).spec()?.spec)
    }
}

impl fmt::Display for WorkloadSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let given = self.values.iter().filter(|&(p, value)| value != p.domain.default_value());
        let mut settings: Vec<_> = given.map(|(p, value)| format!("{}={}", p.name, p.domain.format(value))).collect();
        if self.seed != DEFAULT_SEED {
            settings.push(format!("seed={}", self.seed));
        }
        f.write_str(self.family.name)?;
        if settings.is_empty() { Ok(()) } else { write!(f, "({})", settings.join(",")) }
    }
}

impl From<WorkloadSpec> for String {
    fn from(spec: WorkloadSpec) -> Self {
        spec.to_string()
    }
}

impl TryFrom<String> for WorkloadSpec {
    type Error = SpecError;

    fn try_from(text: String) -> Result<Self, SpecError> {
        text.parse()
    }
}

/// A spec in the making: remembers which parameters were given.
struct Builder {
    spec: WorkloadSpec,
    given: Vec<&'static str>,
}

impl Builder {
    fn new(family: &'static Family) -> Self {
        Self { spec: WorkloadSpec::defaults(family), given: Vec::new() }
    }

    /// The place of a parameter in the family, `None` for the seed.
    fn parameter(&mut self, name: &str) -> Result<Option<usize>, SpecProblem> {
        let family = self.spec.family;
        let index = family.parameters.iter().position(|p| p.name == name);
        let Some(known) = index.map(|i| family.parameters[i].name).or((name == "seed").then_some("seed")) else {
            let names = || family.parameters.iter().map(|p| p.name).chain(["seed"]);
            return Err(SpecProblem::UnknownParameter {
                family: family.name,
                name: shorten(name),
                nearest: nearest(name, names()),
                known: names().collect::<Vec<_>>().join(", "),
            });
        };
        if self.given.contains(&known) {
            return Err(SpecProblem::Repeated { name: known });
        }
        self.given.push(known);
        Ok(index)
    }

    fn set(&mut self, index: Option<usize>, text: &str) -> Result<(), SpecProblem> {
        match index {
            Some(i) => self.spec.values.set(i, value(&self.spec.family.parameters[i], text)?),
            None => self.spec.seed = number("seed", text, 0, u64::MAX, 0)?,
        }
        Ok(())
    }
}

fn value(parameter: &Parameter, text: &str) -> Result<u64, SpecProblem> {
    match parameter.domain {
        Domain::Int { min, max, .. } => number(parameter.name, text, min, max, 0),
        Domain::Decimal { min, max, .. } => number(parameter.name, text, min, max, 3),
        Domain::Choice { names } => match names.iter().position(|&n| n == text) {
            Some(index) => Ok(index as u64),
            None => Err(SpecProblem::UnknownChoice {
                name: parameter.name,
                value: shorten(text),
                nearest: nearest(text, names.iter().copied()),
                choices: parameter.domain.to_string(),
            }),
        },
    }
}

/// A number with up to `digits` digits behind the point, counted in the last of them.
fn number(name: &'static str, text: &str, min: u64, max: u64, digits: usize) -> Result<u64, SpecProblem> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let has_point = text.contains('.');
    let sound = !whole.is_empty() && all_digits(whole) && all_digits(fraction) && (digits > 0 || !has_point);
    if !sound || (has_point && fraction.is_empty()) || fraction.len() > digits {
        return Err(SpecProblem::NotANumber { name, value: shorten(text), digits });
    }
    let domain = match digits {
        0 => Domain::Int { default: 0, min, max },
        _ => Domain::Decimal { default: 0, min, max },
    };
    // Only digits are left, so that a failure to parse is a number past 64 bits.
    let value = format!("{whole}{fraction:0<digits$}").parse().ok().filter(|v| (min..=max).contains(v));
    value.ok_or_else(|| SpecProblem::OutOfRange { name, value: shorten(text), range: domain.to_string() })
}

/// Messages quote what they were given, but not at any length.
fn shorten(text: &str) -> String {
    const LONGEST: usize = 40;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The name that was probably meant.
fn nearest(name: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let name = shorten(name);
    let close = known.map(|k| (strsim::damerau_levenshtein(&name, k), k)).min()?;
    (close.0 <= (close.1.len() / 3).max(1)).then_some(close.1)
}

/// Walks a text and knows where it stands.
struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_spaces(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn take(&mut self, c: char) -> bool {
        self.skip_spaces();
        let found = self.rest().starts_with(c);
        self.at += if found { c.len_utf8() } else { 0 };
        found
    }

    /// Everything up to one of `(),=`, with the place where it begins.
    fn word(&mut self) -> (usize, &'a str) {
        self.skip_spaces();
        let (at, rest) = (self.at, self.rest());
        let end = rest.find(['(', ')', ',', '=']).unwrap_or(rest.len());
        self.at += end;
        (at, rest[..end].trim_end())
    }

    /// A family with its settings in parentheses, and nothing behind.
    fn spec(&mut self) -> Result<Builder, SpecError> {
        let mut spec = Builder::new(self.family()?);
        if self.take('(') && !self.take(')') {
            loop {
                self.setting(&mut spec)?;
                if self.take(')') {
                    break;
                }
                if !self.take(',') {
                    return Err(self.expected("`,` or `)`"));
                }
            }
        }
        self.end()?;
        Ok(spec)
    }

    fn family(&mut self) -> Result<&'static Family, SpecError> {
        let (at, name) = self.word();
        if name.is_empty() {
            return Err(self.error(at, SpecProblem::Expected { what: "the name of a family" }));
        }
        family(name).ok_or_else(|| {
            let names = || FAMILIES.iter().map(|f| f.name);
            let known = names().collect::<Vec<_>>().join(", ");
            self.error(at, SpecProblem::UnknownFamily { name: shorten(name), nearest: nearest(name, names()), known })
        })
    }

    fn setting(&mut self, spec: &mut Builder) -> Result<(), SpecError> {
        let (at, name) = self.word();
        if name.is_empty() {
            return Err(self.error(at, SpecProblem::Expected { what: "a parameter, as in `name=value`" }));
        }
        let index = spec.parameter(name).map_err(|problem| self.error(at, problem))?;
        if !self.take('=') {
            return Err(self.expected("`=`"));
        }
        let (at, text) = self.word();
        spec.set(index, text).map_err(|problem| self.error(at, problem))
    }

    fn end(&mut self) -> Result<(), SpecError> {
        self.skip_spaces();
        if self.rest().is_empty() { Ok(()) } else { Err(self.expected("the end")) }
    }

    fn expected(&mut self, what: &'static str) -> SpecError {
        self.skip_spaces();
        self.error(self.at, SpecProblem::Expected { what })
    }

    fn error(&self, at: usize, problem: SpecProblem) -> SpecError {
        SpecError { text: shorten(self.text), column: self.text[..at].chars().count() + 1, problem }
    }
}
