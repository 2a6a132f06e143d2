//! What can go wrong, and how it is worded: what is wrong, where, and what would help, on one
//! screen, with exit status 2.

use crate::analysis::run::RunError;
use crate::input::{Expect, ReadError, is_stdin};
use spillbench_bounds::pack::PackError;
use spillbench_bounds::{CertificateError, CertifyError};
use spillbench_core::Shown;
use spillbench_core::formats::FormatError;
use spillbench_core::formats::graph_csv::Half;
use spillbench_core::formats::output::OutputError;
use spillbench_core::graph::{GraphError, GraphErrors};
use spillbench_core::hardware::{FitError, HardwareError};
use spillbench_core::reservation::Reservation;
use spillbench_core::schedule::ScheduleErrors;
use spillbench_harness::HarnessError;
use spillbench_workloads::WorkloadError;
use spillbench_workloads::import::onnx::OnnxError;
use spillbench_workloads::import::{ImportError, TextError};
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use thiserror::Error;

/// A path as messages show it.
pub fn shown(path: &Path) -> String {
    if is_stdin(path) { "standard input".to_owned() } else { path.display().to_string() }
}

/// Why a command could not do its work.
#[derive(Debug, Error)]
pub enum CliError {
    /// Standard output cannot be written.
    #[error("standard output: {0}")]
    Stdout(io::Error),
    /// A file could not be read.
    #[error("{}: {source}", shown(.file))]
    Read {
        /// The file; `-` for standard input.
        file: PathBuf,
        /// What it was to hold.
        expect: Expect,
        /// Why.
        source: ReadError,
    },
    /// A file was read and makes no sense.
    #[error("{}: {source}", shown(.file))]
    Format {
        /// The file; `-` for standard input.
        file: PathBuf,
        /// Why.
        source: FormatError,
    },
    /// A CSV pair was read, and the graph that it describes is unsound.
    #[error("{} and {}: {source}", .nodes.display(), .edges.display())]
    CsvGraph {
        /// The nodes file.
        nodes: PathBuf,
        /// The edges file.
        edges: PathBuf,
        /// Why.
        source: GraphErrors,
        /// The file and the line of each error that is shown, where it has one.
        places: Vec<Option<(Half, usize)>>,
    },
    /// A schedule that does not belong to the graph.
    #[error("{}: {source}", shown(.file))]
    Schedule {
        /// The file; `-` for standard input.
        file: PathBuf,
        /// Why.
        source: ScheduleErrors,
    },
    /// The graph cannot run on the hardware, whatever its schedule.
    #[error("{}: no plan exists on {}", shown(.file), Shown(.hardware))]
    Misfit {
        /// The graph.
        file: PathBuf,
        /// Name of the hardware.
        hardware: String,
        /// What does not fit.
        misfits: Vec<FitError>,
    },
    /// A run without a result, for another reason than a misfit.
    #[error("{}: {source}", shown(.file))]
    Run {
        /// The graph.
        file: PathBuf,
        /// Why.
        source: RunError,
    },
    /// A hardware description that makes no sense.
    #[error("{0}")]
    Hardware(#[from] HardwareError),
    /// A name that nothing has.
    #[error("there is no {kind} {name:?}")]
    UnknownName {
        /// What was asked for: `heuristic`, `placement`, ….
        kind: &'static str,
        /// The name given.
        name: String,
        /// The name that was probably meant.
        meant: Option<String>,
        /// All names there are.
        known: Vec<String>,
    },
    /// An output file could not be written.
    #[error(transparent)]
    Write(#[from] OutputError),
    /// A graph could not be made.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A file that could not be imported.
    #[error("{}: {source}", shown(.file))]
    Import {
        /// The file; `-` for standard input.
        file: PathBuf,
        /// Why.
        source: Box<ImportError>,
    },
    /// A file that is no certificate.
    #[error("{}: {source}", shown(.file))]
    Certificate {
        /// The file.
        file: PathBuf,
        /// Why.
        source: CertificateError,
    },
    /// A certificate that proves nothing of this graph.
    #[error("{}: {source}", shown(.file))]
    Certify {
        /// The certificate.
        file: PathBuf,
        /// Why.
        source: CertifyError,
        /// What else it was made for, in words, where it says so.
        other: Option<String>,
    },
    /// Intervals that cannot be packed, whatever the capacity.
    #[error("{}: {source}", shown(.file))]
    Pack {
        /// The file; `-` for standard input.
        file: PathBuf,
        /// Why.
        source: PackError,
    },
    /// An experiment, a table or a figure that is wrong or could not be written.
    #[error(transparent)]
    Harness(#[from] HarnessError),
    /// Arguments that do not go together.
    #[error("{what}")]
    Usage {
        /// What is wrong.
        what: String,
        /// What would help.
        help: String,
    },
}

impl CliError {
    /// Arguments that do not go together, with what would help.
    pub fn usage(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Usage { what: what.into(), help: help.into() }
    }
}

/// How many errors of one kind are shown.
pub const SHOWN: usize = 10;

/// Prints an error on standard error and gives the exit status, 2.
pub fn report(error: &CliError) -> ExitCode {
    // Nothing can be done when standard error is closed.
    let _ = io::stderr().lock().write_all(word(error).as_bytes());
    ExitCode::from(2)
}

/// The whole message.
fn word(error: &CliError) -> String {
    let (details, total) = details(error);
    let mut text = match error {
        CliError::Format { file, source: FormatError::Graph(_) } => {
            format!("error: {}: {} in the graph\n", shown(file), errors(total))
        }
        CliError::CsvGraph { nodes, edges, .. } => {
            format!("error: {} and {}: {} in the graph\n", nodes.display(), edges.display(), errors(total))
        }
        CliError::Schedule { file, .. } => {
            format!("error: {}: {} in the schedule\n", shown(file), errors(total))
        }
        other => format!("error: {}\n", one_screen(&other.to_string())),
    };
    for detail in details.iter().take(SHOWN) {
        let _ = writeln!(text, "  {}", one_screen(detail));
    }
    if total > details.len().min(SHOWN) {
        let _ = writeln!(text, "  and {} more", total - details.len().min(SHOWN));
    }
    if let Some(help) = help(error) {
        let _ = writeln!(text, "help: {help}");
    }
    text
}

fn errors(total: usize) -> String {
    format!("{total} error{}", if total == 1 { "" } else { "s" })
}

/// Cuts what a file put into a message (a key of a megabyte, say) to a few lines, and makes control
/// characters visible.
fn one_screen(text: &str) -> String {
    const LONGEST: usize = 1500;
    let shown = |c: char| if c.is_control() && c != '\n' { '\u{fffd}' } else { c };
    let cut = text.chars().nth(LONGEST).is_some();
    let kept = text.chars().take(LONGEST).map(shown).collect::<String>();
    if cut { format!("{kept}...") } else { kept }
}

/// One line per thing that is wrong, at most a hundred, and how many there are in all.
fn details(error: &CliError) -> (Vec<String>, usize) {
    match error {
        CliError::Format { source: FormatError::Graph(GraphErrors { list, total }), .. } => {
            (list.iter().map(ToString::to_string).collect(), *total)
        }
        CliError::CsvGraph { nodes, edges, source, places } => {
            let place = |i: usize| match places.get(i).copied().flatten() {
                Some((Half::Nodes, line)) => format!("{}, line {line}: ", nodes.display()),
                Some((Half::Edges, line)) => format!("{}, line {line}: ", edges.display()),
                None => String::new(),
            };
            let list = source.list.iter().enumerate();
            (list.map(|(i, e)| format!("{}{}", place(i), in_csv(e))).collect(), source.total)
        }
        CliError::Schedule { source, .. } => (source.list.iter().map(ToString::to_string).collect(), source.total),
        CliError::Misfit { misfits, .. } => (misfits.iter().take(100).map(misfit).collect(), misfits.len()),
        CliError::Certify { other: Some(other), .. } => (vec![other.clone()], 1),
        _ => (Vec::new(), 0),
    }
}

/// An error of a graph in a CSV pair, where a line says what the place in a JSON list would.
fn in_csv(error: &GraphError) -> String {
    match error {
        GraphError::DuplicateId { id, .. } => format!("node id {id} stands here for the second time"),
        GraphError::IdOutOfRange { field, value, .. } => format!("{field} {value} passes 2^63-1"),
        GraphError::EdgeToMissing { from, to, missing, .. } => {
            format!("edge {from} -> {to}: there is no node {missing}")
        }
        other => other.to_string(),
    }
}

/// A misfit with each operand that takes part in it.
fn misfit(error: &FitError) -> String {
    const LISTED: usize = 16;
    let FitError::OperandsTooLarge { operands, .. } = error else { return error.to_string() };
    let mut text = format!("{error}:");
    for (buf, size) in operands.iter().take(LISTED) {
        let _ = write!(text, " buffer {buf} ({size})");
    }
    if operands.len() > LISTED {
        let _ = write!(text, " and {} more", operands.len() - LISTED);
    }
    text
}

fn help(error: &CliError) -> Option<String> {
    match error {
        CliError::Stdout(_) | CliError::Run { .. } | CliError::Harness(_) | CliError::Pack { .. } => None,
        CliError::Certificate { .. } => Some("`spillbench bound --certificate FILE` writes one".to_owned()),
        CliError::Certify { .. } => {
            Some("give the graph, schedule, hardware and capacities that the certificate was made for".to_owned())
        }
        CliError::Write(_) => Some("nothing was written; give another --out DIR".to_owned()),
        CliError::Workload(error) => workload_help(error),
        CliError::Import { source, .. } => import_help(source),
        CliError::Read { source, expect, .. } => source.help(*expect),
        CliError::Format { source, .. } => format_help(source),
        CliError::CsvGraph { source, .. } => graph_help(source),
        CliError::Schedule { .. } => Some(
            "a schedule lists every node of the graph once, one id per line, in an order in which every edge goes \
             forward; without --schedule, nodes go by id"
                .to_owned(),
        ),
        CliError::Misfit { misfits, .. } => misfit_help(misfits),
        CliError::Hardware(HardwareError::ZeroCapacity { .. }) => {
            Some("a capacity is a whole number of bytes, at least 1".to_owned())
        }
        CliError::Hardware(HardwareError::ZeroBandwidth) => {
            Some("give at least 1 byte per cycle: bandwidth:A,B with A from 1 up".to_owned())
        }
        CliError::Hardware(HardwareError::ReservesTooMuch { .. }) => {
            Some("a reservation keeps at most the whole cache from buffers".to_owned())
        }
        CliError::Hardware(_) => None,
        CliError::UnknownName { meant, known, .. } => {
            let all = format!("known: {}", known.iter().map(|k| Shown(k).to_string()).collect::<Vec<_>>().join(", "));
            Some(meant.as_ref().map_or(all.clone(), |meant| format!("did you mean \"{}\"? ({all})", Shown(meant))))
        }
        CliError::Usage { help, .. } => Some(help.clone()),
    }
}

fn workload_help(error: &WorkloadError) -> Option<String> {
    let text = match error {
        WorkloadError::Spec(_) => "`spillbench list workloads` shows families with their parameters and ranges",
        WorkloadError::TooLarge { .. } => "give smaller parameters",
        _ => return None,
    };
    Some(text.to_owned())
}

fn import_help(error: &ImportError) -> Option<String> {
    let text = match error {
        ImportError::Onnx(OnnxError::TooManyNodes { .. }) => {
            "raise --max-nodes, or let the unit be found (no --bytes-per-unit)"
        }
        ImportError::Onnx(OnnxError::Tile { .. }) => "give another --tile, or larger caches (--capacity, --hardware)",
        ImportError::Onnx(OnnxError::MissingCache { .. }) => "give a hardware with L1, UB, L0A, L0B and L0C",
        ImportError::Onnx(OnnxError::MissingShape { .. }) => "export the model with the shapes of its inputs",
        ImportError::Text(TextError::MissingColumn { .. }) => {
            "the first line names the columns: id,lower,upper,size and where wanted alignment,gaps,offset,hint; upper is \
             exclusive, end in its place inclusive"
        }
        ImportError::Onnx(OnnxError::Workload(e)) | ImportError::Text(TextError::Workload(e)) => {
            return workload_help(e);
        }
        _ => return None,
    };
    Some(text.to_owned())
}

fn format_help(error: &FormatError) -> Option<String> {
    match error {
        FormatError::Graph(errors) => graph_help(errors),
        _ => None,
    }
}

fn graph_help(errors: &GraphErrors) -> Option<String> {
    use spillbench_core::graph::GraphError as E;
    let text = match errors.list.first()? {
        E::Cycle { .. } => "drop or turn one of these edges: a graph runs only if its edges form no cycle",
        E::UseOutsideLife { .. } => {
            "ALLOC(b) -> every user of b -> FREE(b) is implied, whether the file lists it or not: \
             drop the edge that contradicts it, or give the op another buffer"
        }
        E::NoAlloc { .. } | E::NoFree { .. } | E::Twice { .. } | E::UnknownBuffer { .. } => {
            "every buffer has exactly one ALLOC and one FREE, with the same BufId, Size and Type"
        }
        E::SizeMismatch { .. } | E::CacheMismatch { .. } | E::ZeroSize { .. } => {
            "ALLOC and FREE of a buffer carry the same Size, at least 1, and the same Type"
        }
        E::MissingField { .. } => "ALLOC and FREE need Id, Op, BufId, Size and Type; ops need Id and Op",
        E::DuplicateId { .. } | E::IdOutOfRange { .. } => "ids are distinct whole numbers from 0 to 2^63-1",
        E::EdgeToMissing { .. } => "an edge is a pair of the Ids of two nodes of the same file",
        E::WritesOutsideBufs { .. } => "Writes is a subset of Bufs",
        E::Empty => "a graph has at least one node",
        E::Overflow { .. } => "sums of sizes and cycles must stay below 2^63 and 2^64; sizes may be in any unit",
        _ => return None,
    };
    Some(text.to_owned())
}

/// What would help against all misfits of the cache that the first is about.
fn misfit_help(misfits: &[FitError]) -> Option<String> {
    let need = |error: &FitError| match error {
        FitError::UnknownCache { cache, .. } => (cache.clone(), None),
        FitError::BufferTooLarge { cache, size, .. } => (cache.clone(), Some(*size)),
        FitError::OperandsTooLarge { cache, needed, .. } => (cache.clone(), Some(*needed)),
        FitError::ReservedTooMuch { cache, .. } => (cache.clone(), None),
        FitError::ReservedNode { reservation, .. } | FitError::ReservedBackwards { reservation, .. } => {
            (reservation.cache.clone(), None)
        }
    };
    match misfits.first()? {
        FitError::ReservedTooMuch { cache, needed, capacity, .. } => {
            let (name, most) = (Shown(cache), capacity.saturating_sub(*needed));
            return Some(format!("reserve at most {most} bytes of {name} while this node runs (--reserve)"));
        }
        FitError::ReservedNode { .. } => {
            return Some("the ends of a reservation are ids of nodes of the graph, as its file has them".to_owned());
        }
        FitError::ReservedBackwards { reservation, .. } => {
            let turned = Reservation { from: reservation.to, to: reservation.from, ..reservation.clone() };
            return Some(format!(
                "the ends stand as in the schedule once it is normalised (--schedule, --order, --normalize): give \
                 {turned} if that is meant"
            ));
        }
        _ => {}
    }
    let (cache, _) = need(misfits.first()?);
    let name = Shown(&cache);
    let most = misfits.iter().map(need).filter(|n| n.0 == cache).filter_map(|n| n.1).max();
    Some(match most {
        None => format!("give a hardware file that has {name} (--hardware FILE), or rename the Type in the graph"),
        Some(most) => format!(
            "the operands of an op must be in {name} together: give it {most} bytes (--capacity {name}={most}), or \
             split what is too large; `spillbench inspect` lists the smallest capacities that do"
        ),
    })
}
