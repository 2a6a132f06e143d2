//! The certificate checker: what a certificate proves, from nothing but the graph and its numbers.
//!
//! It shares no code with the solvers or their models. It trusts nothing in a certificate: what is
//! not refused is evaluated, and a proof is true whatever its numbers, so a wrong or hostile
//! certificate can prove less than the best bound but never more.

mod grids;
mod partition;
mod prices;
mod reserved;

use crate::certificate::{BufferSet, Certificate, Proof};
use crate::model::Cover;
use spillbench_core::hardware::FitError;
use spillbench_core::{BufId, Bytes, Graph, Id, Machine, Schedule, Shown};
use std::fmt;
use thiserror::Error;

/// What a certificate proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certified {
    /// The bound, in bytes of extra movement.
    pub bound: Bytes,
    /// Of which plans it speaks.
    pub cover: Cover,
    /// The share of every cache of the graph, in its order; they add up to the bound. What a grid
    /// proves of several caches together is counted where its accumulators are.
    pub per_cache: Vec<(String, Bytes)>,
}

/// Why a certificate proves nothing here.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CertifyError {
    /// No plan exists, so that there is nothing to bound. Never empty.
    #[error("{}", .0[0])]
    Misfit(Vec<FitError>),
    /// The schedule or the machine is of another graph.
    #[error("the graph has {graph} {what} and the {of} {other}")]
    OtherGraph {
        /// What was counted.
        what: &'static str,
        /// Where.
        of: &'static str,
        /// The number in the graph.
        graph: usize,
        /// The number there.
        other: usize,
    },
    /// The certificate speaks of a schedule and none was given.
    #[error("the certificate speaks of one schedule (cover {}): give that schedule", cover.name())]
    NoSchedule {
        /// Its cover.
        cover: Cover,
    },
    /// This kind of proof cannot have this cover.
    #[error("a proof by {proof} cannot cover {}", cover.name())]
    Cover {
        /// The kind of proof.
        proof: &'static str,
        /// The cover it claims.
        cover: Cover,
    },
    /// A scale of 0.
    #[error("the scale is 0")]
    ZeroScale,
    /// A cache that the graph does not have, or that stands twice.
    #[error("cache {} {why}", Shown(.cache))]
    Cache {
        /// The cache.
        cache: String,
        /// What is wrong with it.
        why: Misfit,
    },
    /// A node that is not a step of the schedule, or that is priced twice for one cache.
    #[error("node {node}, priced for {}, {}", Shown(.cache), match .why {
        Misfit::Elsewhere => "is no op, and without a fixed place it has no price".to_owned(),
        other => other.to_string(),
    })]
    Node {
        /// The node.
        node: Id,
        /// The cache.
        cache: String,
        /// What is wrong with it.
        why: Misfit,
    },
    /// A buffer that is not of that cache, or that stands twice in one set.
    #[error("buffer {buf}, of a set in {}, {why}", Shown(.cache))]
    Buffer {
        /// The buffer.
        buf: BufId,
        /// The cache of the set.
        cache: String,
        /// What is wrong with it.
        why: Misfit,
    },
    /// A set with another number of shares than of buffers.
    #[error("a set of {buffers} buffers of {} has {shares} shares", Shown(.cache))]
    ShareCount {
        /// The cache of the set.
        cache: String,
        /// Its buffers.
        buffers: usize,
        /// Its shares.
        shares: usize,
    },
    /// A buffer that is shared out for more than its spill costs.
    #[error("the shares of buffer {buf} add up to more than its spill costs, {cost}")]
    Overshared {
        /// The buffer.
        buf: BufId,
        /// What its spill costs.
        cost: Bytes,
    },
    /// A buffer of a grid that the graph does not have, that stands twice or has a share in a set, or
    /// an accumulator of another cache than the first.
    #[error("buffer {buf}, of a grid, {why}")]
    GridBuffer {
        /// The buffer.
        buf: BufId,
        /// What is wrong with it.
        why: Misfit,
    },
}

/// What is wrong with something that a certificate names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// The graph has so many of its kind, and it is none of them.
    Absent {
        /// How many.
        of: usize,
    },
    /// It is named twice, or has a share in a set besides.
    Twice,
    /// It is in another cache, or a cache node where only ops are steps.
    Elsewhere,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent { of } => write!(f, "is none of the {of} that the graph has"),
            Self::Twice => f.write_str("stands twice in the certificate"),
            Self::Elsewhere => f.write_str("is in another cache"),
        }
    }
}

/// How many states [`certify`] looks at for each set of a partition; twice what finding one takes
/// by default.
pub const DEFAULT_STATES: u64 = 10_000_000;

/// Evaluates a certificate. `schedule` is what its prices speak of; a proof for every order needs
/// none.
///
/// # Errors
/// When the certificate does not fit the graph, or nothing can be planned at all.
pub fn certify(
    graph: &Graph,
    machine: &Machine,
    schedule: Option<&Schedule>,
    certificate: &Certificate,
) -> Result<Certified, CertifyError> {
    certify_within(graph, machine, schedule, certificate, DEFAULT_STATES)
}

/// Evaluates a certificate as [`certify`] does, looking at no more than `states` states for each set
/// of a partition; with too few, it proves less. Whatever the certificate and `states`, the states of
/// a set take no more than about 2 GiB, and all sets together get twelve times `states`.
///
/// # Errors
/// As [`certify`].
pub fn certify_within(
    graph: &Graph,
    machine: &Machine,
    schedule: Option<&Schedule>,
    certificate: &Certificate,
    states: u64,
) -> Result<Certified, CertifyError> {
    let caches = graph.cache_names().len();
    if machine.cache_count() != caches {
        let other = machine.cache_count();
        return Err(CertifyError::OtherGraph { what: "caches", of: "machine", graph: caches, other });
    }
    let misfits = machine.misfits(graph);
    if !misfits.is_empty() {
        return Err(CertifyError::Misfit(misfits));
    }
    let cover = certificate.cover;
    let shares = match &certificate.proof {
        Proof::Partition { sets, grids } => {
            if cover != Cover::EveryOrder {
                return Err(CertifyError::Cover { proof: "partition", cover });
            }
            let mut listed = partition::shared_out(graph, sets)?;
            let mut shares = partition::evaluate(graph, machine, sets, states)?;
            for (cache, share) in grids::evaluate(graph, machine, grids, &mut listed)? {
                shares[cache.index()].0 = shares[cache.index()].0.saturating_add(share);
            }
            shares
        }
        Proof::Prices { scale, caches } => {
            if cover == Cover::EveryOrder {
                return Err(CertifyError::Cover { proof: "prices", cover });
            }
            let schedule = schedule.ok_or(CertifyError::NoSchedule { cover })?;
            let (nodes, other) = (graph.node_count(), schedule.len());
            if nodes != other {
                return Err(CertifyError::OtherGraph { what: "nodes", of: "schedule", graph: nodes, other });
            }
            prices::evaluate(graph, machine, schedule, cover, *scale, caches)?
        }
    };
    let bound = shares.iter().fold(0u64, |sum, s| sum.saturating_add(s.0));
    let per_cache = graph.cache_names().iter().cloned().zip(shares).collect();
    Ok(Certified { bound: Bytes(bound), cover, per_cache })
}

/// What each set of a partition proves by itself where [`certify_within`] looks at no more than `states`
/// states for each.
///
/// # Errors
/// When the sets do not fit the graph.
pub fn certify_sets(
    graph: &Graph,
    machine: &Machine,
    sets: &[BufferSet],
    states: u64,
) -> Result<Vec<Bytes>, CertifyError> {
    partition::shared_out(graph, sets)?;
    let proven = partition::each(graph, machine, sets, states)?;
    Ok(proven.into_iter().map(|(_, bound)| Bytes(bound)).collect())
}
