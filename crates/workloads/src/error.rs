//! What can be wrong with a workload that was asked for.

use spillbench_core::BufId;
use spillbench_core::graph::GraphErrors;
use thiserror::Error;

/// Why no graph was made.
#[derive(Debug, Error)]
pub enum WorkloadError {
    /// More nodes than a generated graph may have.
    #[error("the graph would have {nodes} nodes, more than the {limit} that a generated graph may have")]
    TooLarge {
        /// How many nodes, or the first number past the limit where counting stopped.
        nodes: u64,
        /// How many are allowed.
        limit: u64,
    },
    /// A program that uses a buffer behind the place where it freed it by hand.
    #[error("{op} uses buffer {buf} behind its FREE")]
    UseAfterFree {
        /// The buffer.
        buf: BufId,
        /// The operation.
        op: String,
    },
    /// The emitted nodes and edges are no sound graph.
    #[error(transparent)]
    Graph(#[from] GraphErrors),
}
