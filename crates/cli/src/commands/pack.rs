//! `spillbench pack`: offsets for buffers of fixed lives within a capacity, or a proof that there are
//! none.

use crate::analysis::run::milliseconds;
use crate::args::{parse_bytes, parse_time};
use crate::console::{Console, Outcome};
use crate::error::{CliError, shown};
use crate::input::Expect;
use crate::outputs::Outputs;
use crate::report::{count, grouped, grouped_bytes};
use crate::resolve;
use crate::write::OneFile;
use clap::Args;
use serde::Serialize;
use spillbench_bounds::pack::{self, Conflict, Interval, Limits, LiveGap, Packed, Problem, Verdict};
use spillbench_core::{Bytes, Shown as Name};
use spillbench_workloads::import::intervals::{self, Interval as Row};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long a search lasts where no limit is given.
const PATIENCE: Duration = Duration::from_secs(60);

/// Arguments of `pack`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    spillbench pack A.1048576.csv --capacity 1M --out A.packed.csv\n  \
    spillbench pack lives.csv --capacity 4096 --nodes 1000000\n\n\
    INTERVALS has the columns id, lower, upper and size, and where wanted alignment, gaps, offset (fixed)\n\
    and hint, in the format of the MiniMalloc benchmark. upper is exclusive: the first moment behind a\n\
    life. start and end may stand for lower and upper, and as there end is inclusive: the last moment of a\n\
    life. --out writes the rows back as lower and upper, with an offset for each. With --nodes and without --time the result is the same on every machine.\n\
    Exit status: 0 when packed, 1 when there is no packing or none was found within the limits, 2 when\n\
    something cannot be read or written.")]
pub struct PackArgs {
    /// The interval file (CSV); - for standard input
    #[arg(value_name = "INTERVALS")]
    intervals: PathBuf,
    /// Bytes that there are; K, M and G stand for 1024, 1024², 1024³
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    capacity: Bytes,
    /// How long to search, such as 500ms, 60s or 5m [default: 60s, or no limit with --nodes]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    time: Option<Duration>,
    /// How many search nodes to spend
    #[arg(long, value_name = "N")]
    nodes: Option<u64>,
    /// Write the intervals with the offsets found, where they fit the capacity
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Shown {
    intervals: usize,
    capacity: Bytes,
    verdict: &'static str,
    /// Of the lowest packing found, which may not fit.
    height: Option<u64>,
    height_lower_bound: u64,
    /// Which fixed offsets contradict one another, the alignment or the capacity, in words.
    conflict: Option<String>,
    nodes: u64,
    elapsed_ms: f64,
}

impl PackArgs {
    /// Packs.
    ///
    /// # Errors
    /// When the file cannot be read or makes no sense, or the result cannot be written.
    pub fn run(self, console: &mut Console) -> Result<Outcome, CliError> {
        let out = self.out.as_deref().map(OneFile::new).transpose()?;
        let file = &self.intervals;
        let in_file = |source| CliError::Import { file: file.clone(), source: Box::new(source) };
        let (rows, notices) =
            intervals::read(&resolve::read(file, Expect::Text)?).map_err(|source| in_file(source.into()))?;
        notices.iter().for_each(|notice| console.note(notice));
        Outputs::new().file("--out", self.out.as_deref()).check()?;
        let problem = Problem { intervals: rows.iter().map(interval).collect(), capacity: self.capacity.0 };
        let searching = console.progress("packing", 1);
        let started = Instant::now();
        let packed =
            pack::pack(&problem, self.limits()).map_err(|source| CliError::Pack { file: file.clone(), source })?;
        let elapsed_ms = milliseconds(started.elapsed());
        drop(searching);
        if let (Verdict::Packed, Some(best)) = (packed.verdict, &packed.best) {
            if let Err(conflict) = pack::verify(&problem, &best.offsets) {
                console.line(format_args!("The packing found is wrong ({conflict}): this is a defect."))?;
                return Ok(Outcome::Refuted);
            }
            if let Some(out) = out {
                out.write(|to| intervals::write_packed(&rows, &best.offsets, to))?;
            }
        }
        let verdict = packed.verdict;
        let conflict = packed.conflict.as_ref().map(|conflict| contradiction(conflict, &rows, self.capacity));
        if self.json {
            console.json(&Shown {
                intervals: rows.len(),
                capacity: self.capacity,
                verdict: verdict_name(verdict),
                height: packed.best.as_ref().map(|b| b.height),
                height_lower_bound: packed.lower_bound,
                conflict,
                nodes: packed.nodes,
                elapsed_ms,
            })?;
        } else {
            let what = format!("{}: {}", shown(file), count(rows.len(), "interval"));
            console.line(format_args!("{what} in {}", grouped_bytes(self.capacity)))?;
            match conflict {
                Some(conflict) => console.line(format_args!("Proven: there is no packing, for {conflict}."))?,
                None => console.line(sentence(&packed))?,
            }
            console.line(format_args!("{} in {elapsed_ms:.1} ms.", count(packed.nodes as usize, "search node")))?;
            if let (Verdict::Packed, Some(path)) = (verdict, &self.out) {
                console.line(format_args!("Written: {}", path.display()))?;
            }
        }
        Ok(if verdict == Verdict::Packed { Outcome::Done } else { Outcome::Refuted })
    }

    fn limits(&self) -> Limits {
        Limits { nodes: self.nodes, time: self.time.or(self.nodes.is_none().then_some(PATIENCE)) }
    }
}

fn interval(row: &Row) -> Interval {
    let gap = |g: &intervals::Gap| LiveGap { lower: g.lower, upper: g.upper, window: g.window };
    Interval {
        lower: row.lower,
        upper: row.upper,
        size: row.size,
        alignment: row.alignment,
        gaps: row.gaps.iter().map(gap).collect(),
        offset: row.offset,
        hint: row.hint,
    }
}

/// Which fixed offsets leave no packing, in the names of the file.
fn contradiction(conflict: &Conflict, rows: &[Row], capacity: Bytes) -> String {
    let fixed = |n: usize| {
        let row = &rows[n];
        let low = row.offset.unwrap_or_default();
        let bytes = format!("bytes {low} up to {}", low.saturating_add(row.size));
        format!("{} (fixed at {bytes}, live from {} up to {})", Name(&row.id), row.lower, row.upper)
    };
    match *conflict {
        Conflict::Overlap { first, second, moment } => {
            format!("{} and {} overlap at moment {moment}", fixed(first), fixed(second))
        }
        Conflict::Capacity { interval, .. } => {
            format!("{} ends above the capacity of {}", fixed(interval), grouped_bytes(capacity))
        }
        Conflict::Place { interval, offset } => {
            format!("{} has the alignment {}, and {offset} is no multiple", fixed(interval), rows[interval].alignment)
        }
        Conflict::Count { .. } => conflict.to_string(),
    }
}

fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Packed => "packed",
        Verdict::Infeasible => "infeasible",
        Verdict::NotProven => "not-proven",
    }
}

fn sentence(packed: &Packed) -> String {
    let least = grouped(packed.lower_bound);
    let best = packed.best.as_ref().map(|b| grouped(b.height));
    match (packed.verdict, best) {
        (Verdict::Packed, Some(height)) => format!("Packed: height {height}; no packing is lower than {least}."),
        (Verdict::Infeasible, None) => format!("Proven: there is no packing (none is lower than {least})."),
        (Verdict::Infeasible, Some(height)) => {
            format!("Proven: there is no packing (none is lower than {least}; the lowest found is {height}).")
        }
        (_, Some(height)) => {
            format!("Not proven: the lowest packing found has height {height}; none is lower than {least}.")
        }
        (_, None) => format!("Not proven: no packing was found; none is lower than {least}."),
    }
}
