//! Importers for graphs that people have: ONNX models, interval files, access traces.
//!
//! Each takes the bytes of a file and options, and returns a graph (with its schedule where the file
//! fixes one) and notices about what it passed over. No file content makes an importer panic, run
//! long or take more memory than the file and its options ask for.

pub mod intervals;
pub mod onnx;
mod text;
pub mod trace;

pub use text::TextError;

use thiserror::Error;

/// Why a file could not be imported.
#[derive(Debug, Error)]
pub enum ImportError {
    /// An ONNX model.
    #[error(transparent)]
    Onnx(#[from] onnx::OnnxError),
    /// An interval file or a trace.
    #[error(transparent)]
    Text(#[from] TextError),
}
