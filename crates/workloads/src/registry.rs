//! The families of graphs: names, one-line docs, parameters with defaults and ranges, and the
//! functions that make them. One static list serves the command line, experiment files, tables and
//! property tests; a new family is one file and one line here.

use crate::emit::Emitter;
use crate::error::WorkloadError;
use crate::{operators, synthetic};
use std::fmt;

/// What values a parameter takes. Decimals are held in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// A whole number.
    Int {
        /// Taken when the parameter is not given.
        default: u64,
        /// The smallest value allowed.
        min: u64,
        /// The largest value allowed.
        max: u64,
    },
    /// A decimal number with at most three digits behind the point, in thousandths.
    Decimal {
        /// Taken when the parameter is not given.
        default: u64,
        /// The smallest value allowed.
        min: u64,
        /// The largest value allowed.
        max: u64,
    },
    /// One of a few names.
    Choice {
        /// The names; the first is the default.
        names: &'static [&'static str],
    },
}

impl Domain {
    /// The default as a raw value: the number, the thousandths, or the index of the name.
    pub fn default_value(&self) -> u64 {
        match *self {
            Self::Int { default, .. } | Self::Decimal { default, .. } => default,
            Self::Choice { .. } => 0,
        }
    }

    /// A raw value as text.
    pub fn format(&self, value: u64) -> String {
        match self {
            Self::Int { .. } => value.to_string(),
            Self::Decimal { .. } => decimal(value),
            Self::Choice { names } => names.get(value as usize).copied().unwrap_or_default().to_owned(),
        }
    }
}

/// The values allowed, as the list of workloads shows them.
impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Int { min, max, .. } => write!(f, "{min} to {max}"),
            Self::Decimal { min, max, .. } => write!(f, "{} to {}", decimal(min), decimal(max)),
            Self::Choice { names } => f.write_str(&names.join(", ")),
        }
    }
}

fn decimal(thousandths: u64) -> String {
    let text = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A parameter of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// One line on it.
    pub doc: &'static str,
    /// The values it takes.
    pub domain: Domain,
}

impl Parameter {
    /// A whole number from `min` to `max`.
    pub(crate) const fn int(name: &'static str, doc: &'static str, default: u64, min: u64, max: u64) -> Self {
        Self { name, doc, domain: Domain::Int { default, min, max } }
    }

    /// A decimal, all in thousandths.
    pub(crate) const fn decimal(name: &'static str, doc: &'static str, default: u64, min: u64, max: u64) -> Self {
        Self { name, doc, domain: Domain::Decimal { default, min, max } }
    }

    /// One of `names`, the first by default.
    pub(crate) const fn choice(name: &'static str, doc: &'static str, names: &'static [&'static str]) -> Self {
        Self { name, doc, domain: Domain::Choice { names } }
    }
}

/// What sort of graphs a family holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FamilyKind {
    /// A tensor operator lowered to instructions of a neural processor.
    Operator,
    /// A random structure whose size and memory pressure are dialled.
    Synthetic,
}

/// A family of graphs.
#[derive(Clone, Copy)]
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// One line on it.
    pub doc: &'static str,
    /// What sort of graphs it holds.
    pub kind: FamilyKind,
    /// True when the seed changes the graph.
    pub seeded: bool,
    /// Its parameters, in the order of listings.
    pub parameters: &'static [Parameter],
    /// See [`crate::WorkloadSpec::foretold_nodes`].
    pub(crate) nodes: fn(&Values) -> u64,
    /// Emits the graph.
    pub(crate) build: fn(&Values, u64) -> Result<Emitter, WorkloadError>,
}

impl fmt::Debug for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Family({})", self.name)
    }
}

impl PartialEq for Family {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Family {}

/// All families.
pub static FAMILIES: &[&Family] = &[
    &operators::matmul::FAMILY,
    &operators::attention::FAMILY,
    &operators::conv::FAMILY,
    &operators::transformer::FAMILY,
    &operators::mlp::FAMILY,
    &operators::moe::FAMILY,
    &operators::stencil::FAMILY,
    &operators::fft::FAMILY,
    &operators::reduction::FAMILY,
    &synthetic::layered::FAMILY,
    &synthetic::series_parallel::FAMILY,
    &synthetic::chain::FAMILY,
    &synthetic::fork_join::FAMILY,
    &synthetic::trace::ZIPF,
    &synthetic::trace::LOOP,
    &synthetic::trace::SCAN,
    &synthetic::trace::PHASES,
];

/// The family of that name.
pub fn family(name: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|f| f.name == name).copied()
}

/// A value for each parameter of a family, all within their ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    parameters: &'static [Parameter],
    raw: Vec<u64>,
}

impl Values {
    /// The defaults of a family.
    pub(crate) fn defaults(family: &Family) -> Self {
        let parameters = family.parameters;
        Self { parameters, raw: parameters.iter().map(|p| p.domain.default_value()).collect() }
    }

    pub(crate) fn set(&mut self, index: usize, value: u64) {
        self.raw[index] = value;
    }

    /// Each parameter with its raw value: the number, the thousandths, or the index of the name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'static Parameter, u64)> {
        self.parameters.iter().zip(self.raw.iter().copied())
    }

    /// The raw value of a parameter; 0 where the family has none of that name.
    pub fn get(&self, name: &str) -> u64 {
        let found = self.iter().find(|(p, _)| p.name == name);
        debug_assert!(found.is_some(), "no parameter {name}");
        found.map_or(0, |(_, value)| value)
    }

    /// The name that a choice stands at; empty where the family has no such choice.
    pub fn choice(&self, name: &str) -> &'static str {
        let found = self.iter().find_map(|(p, value)| match p.domain {
            Domain::Choice { names } if p.name == name => names.get(value as usize),
            _ => None,
        });
        debug_assert!(found.is_some(), "no choice {name}");
        found.copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn is_kebab(name: &str) -> bool {
        !name.is_empty()
            && name.split('-').all(|w| !w.is_empty() && w.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()))
            && name.starts_with(|c: char| c.is_ascii_lowercase())
    }

    fn is_cache(name: &str) -> bool {
        name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
    }

    fn is_one_line(doc: &str) -> bool {
        !doc.is_empty() && doc.len() <= 110 && !doc.contains('\n') && !doc.ends_with('.')
    }

    #[test]
    fn names_are_unique_and_plain_and_docs_are_one_line() {
        let mut families = BTreeSet::new();
        for family in FAMILIES {
            assert!(families.insert(family.name), "{} stands twice", family.name);
            assert!(is_kebab(family.name), "{}", family.name);
            assert!(is_one_line(family.doc), "{}: {}", family.name, family.doc);
            let mut parameters = BTreeSet::from(["seed"]);
            for p in family.parameters {
                assert!(parameters.insert(p.name), "{}: {} stands twice or is reserved", family.name, p.name);
                assert!(is_kebab(p.name), "{}: {}", family.name, p.name);
                assert!(is_one_line(p.doc), "{} {}: {}", family.name, p.name, p.doc);
            }
        }
    }

    #[test]
    fn defaults_lie_within_ranges_and_choices_are_unique() {
        for (family, p) in FAMILIES.iter().flat_map(|f| f.parameters.iter().map(move |p| (f, p))) {
            let place = format!("{} {}", family.name, p.name);
            match p.domain {
                Domain::Int { default, min, max } | Domain::Decimal { default, min, max } => {
                    assert!(min <= default && default <= max && min < max, "{place}");
                }
                Domain::Choice { names } => {
                    assert!(names.len() > 1 && names.iter().all(|n| is_kebab(n) || is_cache(n)), "{place}");
                    assert_eq!(BTreeSet::from_iter(names).len(), names.len(), "{place}");
                }
            }
        }
    }

    #[test]
    fn families_are_found_by_name() {
        assert!(FAMILIES.iter().all(|f| family(f.name) == Some(f)));
        assert_eq!(family("Matmul"), None);
    }
}
