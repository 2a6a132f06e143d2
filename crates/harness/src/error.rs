//! What can go wrong in the workbench.

use crate::experiment::{Complaints, Problem};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What can go wrong in the workbench.
#[derive(Debug, Error)]
pub enum HarnessError {
    /// A file or folder could not be read or written.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// An experiment file that is wrong.
    #[error("{}:\n{complaints}", .path.display())]
    Experiment {
        /// The file.
        path: PathBuf,
        /// All that is wrong with it.
        complaints: Complaints,
    },
    /// A figure asked for by hand that is wrong.
    #[error("{0}")]
    Figure(Complaints),
    /// The folder holds an unfinished run.
    #[error(
        "{} holds {finished} finished cells of an unfinished run: continue it with --resume, or start anew with --overwrite",
        .folder.display()
    )]
    Unfinished {
        /// The output folder.
        folder: PathBuf,
        /// Cells in its journal.
        finished: usize,
    },
    /// Another process writes into the folder.
    #[error("{}: another sweep writes into this folder", .folder.display())]
    Locked {
        /// The output folder.
        folder: PathBuf,
    },
    /// A journal of another version of the tool, whose rows may differ.
    #[error("{}: written by {written_by}, this is {tool}: start anew with --overwrite", .path.display())]
    OtherTool {
        /// The journal.
        path: PathBuf,
        /// The version that wrote it.
        written_by: String,
        /// The version that runs.
        tool: String,
    },
    /// A file that is no journal.
    #[error("{}: not a journal of a sweep", .path.display())]
    NoJournal {
        /// The file.
        path: PathBuf,
    },
    /// A table that could not be read.
    #[error("{}: {message}", .path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// A shard that does not exist.
    #[error("there is no shard {index}/{count}: shards count from 1")]
    NoShard {
        /// The number of the shard.
        index: u32,
        /// The number of shards.
        count: u32,
    },
    /// A figure that could not be drawn.
    #[error("figure {figure}: {message}")]
    Drawing {
        /// Its name.
        figure: String,
        /// Why.
        message: String,
    },
    /// A plan that does not belong to its graph.
    #[error(transparent)]
    Plan(#[from] spillbench_core::metrics::MeasureError),
}

impl HarnessError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), source }
    }

    pub(crate) fn problem(path: &Path, problem: Problem) -> Self {
        let complaints = Complaints(vec![crate::experiment::Complaint { place: None, problem }]);
        Self::Experiment { path: path.to_owned(), complaints }
    }
}
