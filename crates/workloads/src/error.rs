//! What can be wrong with a workload that was asked for.

use spillbench_core::graph::GraphErrors;
use spillbench_core::{BufId, Bytes};
use thiserror::Error;

/// Why no graph was made.
#[derive(Debug, Error)]
pub enum WorkloadError {
    /// The text that asks for a graph is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// More nodes than a generated graph may have.
    #[error("the graph would have {nodes} nodes, more than the {limit} that a generated graph may have")]
    TooLarge {
        /// How many nodes, or the first number past the limit where counting stopped.
        nodes: u64,
        /// How many are allowed.
        limit: u64,
    },
    /// The memory pressure asked for cannot be met with whole bytes.
    #[error(
        "a peak demand of {} cannot be met within 10 %: {buffers} buffers are live at the peak, and whole bytes come to \
         {reached}; a larger capacity helps",
        .wanted.in_words()
    )]
    Pressure {
        /// Pressure times capacity.
        wanted: Bytes,
        /// The nearest that was found.
        reached: Bytes,
        /// How many buffers are live at the peak.
        buffers: u64,
    },
    /// The memory pressure asked for makes the operands of one op larger than the capacity.
    #[error(
        "at this pressure one op needs {} of the {capacity}; less pressure, or more that lives side by side, helps",
        .needed.in_words()
    )]
    Operands {
        /// Bytes of all operands of the op.
        needed: Bytes,
        /// Bytes there are.
        capacity: Bytes,
    },
    /// A program that uses a buffer behind the place where it freed it by hand.
    #[error("{op} uses buffer {buf} behind its FREE")]
    UseAfterFree {
        /// The buffer.
        buf: BufId,
        /// The operation.
        op: String,
    },
    /// The provenance cannot be written.
    #[error("the provenance cannot be written: {0}")]
    Provenance(serde_json::Error),
    /// The emitted nodes and edges are no sound graph.
    #[error(transparent)]
    Graph(#[from] GraphErrors),
}

/// What is wrong with the text of a [`crate::WorkloadSpec`], and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("column {column} of `{text}`: {problem}")]
pub struct SpecError {
    /// The text, shortened when long.
    pub text: String,
    /// The character where the trouble begins, counted from 1.
    pub column: usize,
    /// The trouble.
    pub problem: SpecProblem,
}

/// What is wrong with the text of a [`crate::WorkloadSpec`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpecProblem {
    /// Something else should stand here.
    #[error("expected {what}")]
    Expected {
        /// What should.
        what: &'static str,
    },
    /// There is no such family.
    #[error("there is no family {name}{}; there are {known}", did_you_mean(*nearest))]
    UnknownFamily {
        /// The name given.
        name: String,
        /// The name that was probably meant.
        nearest: Option<&'static str>,
        /// All families.
        known: String,
    },
    /// The family has no such parameter.
    #[error("{family} has no parameter {name}{}; it has {known}", did_you_mean(*nearest))]
    UnknownParameter {
        /// The family.
        family: &'static str,
        /// The name given.
        name: String,
        /// The name that was probably meant.
        nearest: Option<&'static str>,
        /// All parameters.
        known: String,
    },
    /// A parameter given twice.
    #[error("{name} is given twice")]
    Repeated {
        /// The parameter.
        name: &'static str,
    },
    /// No number where one is needed.
    #[error("{name} is `{value}`, which is no {}", kind(*digits))]
    NotANumber {
        /// The parameter.
        name: &'static str,
        /// The value given.
        value: String,
        /// How many digits may stand behind the point.
        digits: usize,
    },
    /// A number outside the range.
    #[error("{name} is {value}, outside {range}")]
    OutOfRange {
        /// The parameter.
        name: &'static str,
        /// The value given.
        value: String,
        /// The range.
        range: String,
    },
    /// None of the names that a parameter takes.
    #[error("{name} is `{value}`, none of {choices}{}", did_you_mean(*nearest))]
    UnknownChoice {
        /// The parameter.
        name: &'static str,
        /// The value given.
        value: String,
        /// The name that was probably meant.
        nearest: Option<&'static str>,
        /// The names it takes.
        choices: String,
    },
}

fn did_you_mean(nearest: Option<&'static str>) -> String {
    nearest.map_or(String::new(), |n| format!(" (did you mean {n}?)"))
}

fn kind(digits: usize) -> String {
    match digits {
        0 => "whole number".to_owned(),
        _ => format!("number with at most {digits} digits behind the point"),
    }
}
