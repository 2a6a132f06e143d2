//! The workbench: experiment file → sweep → tables → figures, with resume, shards and a manifest.
//!
//! An [`experiment`] file is parsed and checked, [`study::Study::load`] reads its graphs, [`sweep`]
//! runs the cells and journals each, [`results`] writes tables, figures and the manifest. Nothing
//! here prints: progress goes to a [`sweep::Progress`], all else is returned.

pub mod columns;
pub mod diff;
mod error;
pub mod experiment;
pub mod figure;
pub mod hash;
pub mod journal;
pub mod manifest;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod partition;
pub mod record;
pub mod results;
mod rows;
pub mod stats;
pub mod study;
pub mod summary;
pub mod sweep;
pub mod table;

pub use error::HarnessError;
pub use rows::Rows;
