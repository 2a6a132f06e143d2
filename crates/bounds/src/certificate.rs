//! Certificates: what proves a lower bound, small enough to publish and simple enough to check.
//!
//! A certificate is a JSON object:
//!
//! ```json
//! {"format": "spillbench-certificate", "version": 1, "cover": "op-order", "bound": 34944,
//!  "proof": {"kind": "prices", "scale": 1, "caches": [{"cache": "L1", "prices": [[17, 2], [40, 1]]}]}}
//! ```
//!
//! - `cover` says of which plans the bound speaks: `schedule`, `op-order` or `every-order`.
//! - `bound` is what the writer claims, in bytes. The checker ignores it and reports its own figure.
//! - `of`, where it stands, says what the certificate was made for: a fingerprint of the graph, one of
//!   the schedule unless it covers every order, and how many nodes and buffers there were. It is no part
//!   of the proof; it lets a reader say what does not match.
//! - A proof of kind `prices` gives, per cache, nodes of the schedule with the price of a byte of
//!   room there, in bytes of movement, times `scale`; all other nodes have price 0. With `R_t` the
//!   capacity less the operand bytes of step `t` and what is reserved there, `c_g` what giving up gap `g` costs and `s_g` its
//!   size, weak duality says that no plan under the cover moves less than
//!   `Σ c_g − Σ_t R_t·y_t − Σ_g max(0, c_g − s_g·Σ_{t∈g} y_t)` for **any** prices `y ≥ 0`.
//! - A proof of kind `partition` gives sets of buffers, each of one cache; the bound is the sum over
//!   the sets of the least movement of the graph restricted to the set (see [`crate::orders`]), which
//!   the checker solves again. A set may state with `shares`, one for each of its buffers, what a
//!   spill costs in it, `{"cache": "L1", "buffers": [4, 7], "shares": [128, 64], "bound": 64}`; without
//!   them, and in certificates of before there were any, it has the whole cost of all its buffers. The
//!   shares of a buffer in all sets add up to no more than its spill costs. Beside the sets it may list
//!   grids of accumulations with prices of their products (see [`crate::grid`]), which have the whole
//!   cost of their buffers. It speaks of every order.
//!
//! Whatever the numbers in it, a certificate proves a true bound or is refused; a wrong one proves
//! less, never more.

use crate::model::Cover;
use serde::{Deserialize, Serialize};
use spillbench_core::{BufId, Bytes, Id};
use thiserror::Error;

/// What proves a lower bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    format: String,
    version: u32,
    /// Of which plans the bound speaks.
    pub cover: Cover,
    /// What the writer claims. Not part of the proof.
    pub bound: Bytes,
    /// What it was made for. Not part of the proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Subject>,
    /// The proof.
    pub proof: Proof,
}

/// What a certificate was made for, in fingerprints of the writer's choice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// Fingerprint of the graph.
    pub graph: String,
    /// Fingerprint of the schedule, normalised; none where every order is covered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// Nodes of the graph.
    pub nodes: usize,
    /// Its buffers.
    pub buffers: usize,
}

/// The numbers that prove a bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Proof {
    /// Dual prices of the capacity rows of a schedule.
    Prices {
        /// What the prices are multiplied by, at least 1.
        scale: u64,
        /// The prices of each cache; a cache left out proves 0.
        caches: Vec<CachePrices>,
    },
    /// Sets of buffers that share out what spills cost, and grids of accumulations.
    Partition {
        /// The sets.
        sets: Vec<BufferSet>,
        /// The grids.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        grids: Vec<Grid>,
    },
}

/// The prices of one cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CachePrices {
    /// Name of the cache.
    pub cache: String,
    /// Nodes with the scaled price of a byte of room there, each node at most once.
    pub prices: Vec<(Id, u64)>,
}

/// A set of buffers of one cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BufferSet {
    /// Name of the cache.
    pub cache: String,
    /// The buffers, each once.
    pub buffers: Vec<BufId>,
    /// What a spill of each buffer costs in this set, in bytes; all of its cost where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<Vec<Bytes>>,
    /// What the writer claims for the set. Not part of the proof.
    pub bound: Bytes,
}

/// A grid of accumulations and prices of its products; see [`crate::grid`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    /// The buffers that are rows, each listed once in all of the certificate, as are the next two.
    pub rows: Vec<BufId>,
    /// The buffers that are columns.
    pub columns: Vec<BufId>,
    /// The accumulators, all of one cache.
    pub accumulators: Vec<BufId>,
    /// Numerator and denominator of the price of a product, in bytes of movement.
    pub price: (u64, u64),
    /// More such prices: whatever the number of arrivals, the price that proves most of it counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_prices: Vec<(u64, u64)>,
    /// The most arrivals of accumulators that a window is given.
    pub window: u64,
    /// What the writer claims for the grid. Not part of the proof.
    pub bound: Bytes,
}

/// Why a text is no certificate.
#[derive(Debug, Error)]
pub enum CertificateError {
    /// Broken JSON, an unknown or missing key, or a value of the wrong type.
    #[error("not a certificate: {0}")]
    Syntax(#[from] serde_json::Error),
    /// A document of another format or of a version that this program does not know.
    #[error("not a certificate of version 1: format {format:?}, version {version}")]
    Version {
        /// Its `format`.
        format: String,
        /// Its `version`.
        version: u32,
    },
}

const FORMAT: &str = "spillbench-certificate";
const VERSION: u32 = 1;

impl Certificate {
    /// A certificate of the current version.
    pub fn new(cover: Cover, bound: Bytes, proof: Proof) -> Self {
        Self { format: FORMAT.to_owned(), version: VERSION, cover, bound, of: None, proof }
    }

    /// The same, with what it was made for.
    #[must_use]
    pub fn about(self, subject: Subject) -> Self {
        Self { of: Some(subject), ..self }
    }

    /// Reads a certificate.
    ///
    /// # Errors
    /// When the text is not a certificate of version 1.
    pub fn read(bytes: &[u8]) -> Result<Self, CertificateError> {
        let certificate: Self = serde_json::from_slice(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes))?;
        if certificate.format != FORMAT || certificate.version != VERSION {
            return Err(CertificateError::Version { format: certificate.format, version: certificate.version });
        }
        Ok(certificate)
    }

    /// Writes a certificate as one line of JSON.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn write(&self, mut out: impl std::io::Write) -> std::io::Result<()> {
        serde_json::to_writer(&mut out, self)?;
        out.write_all(b"\n")
    }
}
