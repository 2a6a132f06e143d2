//! The sweep: every cell of a study over all threads, each journalled as soon as it is done.
//!
//! Threads take cells in order and send them, when done, to one writer, which alone appends to the
//! journal and writes the rows in the order of the cells. So the table depends neither on the number of
//! threads nor on the order in which they finish, nor on how often the run was killed and resumed; and
//! memory does not grow with the cells, but for a few words for each line of a journal that is resumed.

use crate::error::HarnessError;
use crate::journal::{self, Index, Journal};
use crate::manifest;
use crate::record::{self, Record, Status, Times};
use crate::results;
use crate::rows::{self, Order, Rows};
use crate::study::{Cell, Study};
use rayon::prelude::*;
use spillbench_core::planner::Workspace;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant, SystemTime};

/// Finished cells that may wait for the writer.
const QUEUE: usize = 256;

/// One of `count` parts of a sweep: the cells whose number leaves `index - 1` over `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u32,
    count: u32,
}

impl Shard {
    /// All cells.
    pub const WHOLE: Self = Self { index: 1, count: 1 };

    /// Part `index` of `count`, from 1.
    ///
    /// # Errors
    /// When there is no such part.
    pub fn new(index: u32, count: u32) -> Result<Self, HarnessError> {
        if (1..=count).contains(&index) {
            Ok(Self { index, count })
        } else {
            Err(HarnessError::NoShard { index, count })
        }
    }

    /// True for all cells.
    pub fn is_whole(self) -> bool {
        self.count == 1
    }

    /// How many of all cells it has.
    pub fn cells(self, all: u64) -> u64 {
        let (index, count) = (u64::from(self.index), u64::from(self.count));
        (all + count - index) / count
    }

    fn cell(self, place: u64) -> u64 {
        place * u64::from(self.count) + u64::from(self.index) - 1
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

/// How to sweep.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cells to run.
    pub shard: Shard,
    /// Take what the journal of the folder has.
    pub resume: bool,
    /// Start anew even where the folder holds an unfinished run.
    pub overwrite: bool,
    /// Let each journal line reach the disk before the next.
    pub fsync: bool,
    /// Stop at the first cell that points to a defect.
    pub fail_fast: bool,
    /// Folders whose journals are taken as well: the shards of this experiment.
    pub merge: Vec<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        let merge = Vec::new();
        Self { shard: Shard::WHOLE, resume: false, overwrite: false, fsync: false, fail_fast: false, merge }
    }
}

/// What a sweep tells while it runs; called from one thread at a time.
pub trait Progress: Send {
    /// The run begins: so many cells, of which the journal has some.
    fn begin(&mut self, _cells: u64, _resumed: u64) {}

    /// A cell is done.
    fn done(&mut self, _cell: &Cell<'_>, _status: Status) {}
}

/// Tells nothing.
pub struct Silent;

impl Progress for Silent {}

/// What a sweep came to.
#[derive(Debug)]
pub struct Swept {
    /// `runs.csv`.
    pub runs: Rows,
    /// `timed.csv`: the rows of cells whose results depend on the machine.
    pub timed: Rows,
    /// `timings.csv`.
    pub timings: Rows,
    /// How many cells ended how.
    pub ends: BTreeMap<Status, u64>,
    /// Rows taken from journals.
    pub resumed: u64,
    /// Journal lines that were cut short or damaged, and counted for nothing.
    pub dropped: usize,
    /// Cells of the shard that have no row, because a defect ended the run.
    pub missing: u64,
    /// Wall time of all cells together, and of the longest.
    pub cell_time: (Duration, Duration),
    /// When it began and ended.
    pub span: (SystemTime, SystemTime),
}

impl Swept {
    /// Cells that point to a defect.
    pub fn defects(&self) -> u64 {
        self.ends.iter().filter(|end| end.0.is_defect()).map(|end| end.1).sum()
    }
}

/// A finished cell on its way to the writer.
struct Done<'a> {
    cell: Cell<'a>,
    /// Its place in the shard.
    place: u64,
    status: Status,
    times: Times,
    lines: Vec<u8>,
    /// The journal line; `None` when the journal has it.
    payload: Option<Vec<u8>>,
    /// True when it was not run now.
    resumed: bool,
}

/// Payloads of earlier runs.
#[derive(Default)]
struct Known {
    /// Of the journal of this folder.
    own: Index,
    /// Of the journals of other folders.
    others: Index,
    dropped: usize,
}

/// Runs the cells of a study over the threads of the current pool.
///
/// # Errors
/// When the folder holds an unfinished run and neither `resume` nor `overwrite` is set, when
/// another sweep writes into it, or when the journal cannot be read or written.
pub fn run(
    study: &Study,
    folder: &Path,
    options: &Options,
    progress: &mut dyn Progress,
) -> Result<Swept, HarnessError> {
    let start = SystemTime::now();
    let (journal, known) = open(folder, options)?;
    let tables = Tables::begin(study, folder)?;
    let cells = options.shard.cells(study.cell_count());
    let (sender, receiver) = sync_channel(QUEUE);
    let stop = AtomicBool::new(false);
    let resumed_at_most = (known.own.len() + known.others.len()) as u64;
    progress.begin(cells, resumed_at_most.min(cells));
    let written = std::thread::scope(|scope| {
        let mut collected = Collected { journal, tables, order: Order::new(folder), counts: Counts::default() };
        let writer = scope.spawn(|| collected.write(receiver, options, progress, &stop).map(|()| collected));
        // One after another, so that few rows have to wait for those before them.
        (0..cells).par_bridge().for_each_with(sender, |sender, place| {
            if !stop.load(Ordering::Relaxed) {
                run_one(study.cell(options.shard.cell(place)), place, &known, sender);
            }
        });
        writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    written?.finish(cells, known.dropped, start)
}

fn open(folder: &Path, options: &Options) -> Result<(Journal, Known), HarnessError> {
    let tool = manifest::tool();
    let mut known = Known::default();
    for other in &options.merge {
        known.dropped += known.others.add(&other.join(journal::FILE_NAME), &tool)?.dropped;
    }
    let path = folder.join(journal::FILE_NAME);
    let finished = folder.join(results::MANIFEST).exists();
    let journal = if options.resume {
        let (journal, read) = Journal::open(folder, &tool, options.fsync, &mut known.own)?;
        known.dropped += read.dropped;
        journal
    } else {
        if path.exists() && !finished && !options.overwrite {
            let lines = journal::count(&path)?;
            if lines > 0 {
                return Err(HarnessError::Unfinished { folder: folder.to_owned(), finished: lines });
            }
        }
        Journal::begin(folder, &tool, options.fsync)?
    };
    // Without its manifest a folder counts as unfinished.
    match std::fs::remove_file(folder.join(results::MANIFEST)) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(HarnessError::Io { path, source: e }),
        _ => Ok((journal, known)),
    }
}

thread_local! {
    static WORKSPACE: RefCell<Workspace> = RefCell::default();
}

fn run_one<'a>(cell: Cell<'a>, place: u64, known: &Known, sender: &SyncSender<Done<'a>>) {
    let read = |payload: Vec<u8>| serde_json::from_slice::<Record>(&payload).ok();
    let own = known.own.get(cell.key).and_then(read);
    let is_own = own.is_some();
    let earlier = own.or_else(|| known.others.get(cell.key).and_then(read));
    let resumed = earlier.is_some();
    let record = earlier.unwrap_or_else(|| WORKSPACE.with_borrow_mut(|workspace| record::run(&cell, workspace)));
    // A record is plain data with text keys, which always serialises.
    let payload = (!is_own).then(|| serde_json::to_vec(&record).unwrap_or_default());
    let lines = lines(&cell, &record);
    let done = Done { cell, place, status: record.status, times: record.times, lines, payload, resumed };
    // The writer hangs up only after an error, which it reports itself.
    let _ = sender.send(done);
}

/// The first byte of the lines of a cell whose row stands in `timed.csv`, and of the others.
const IS_TIMED: [u8; 2] = [0, 1];

/// What is written of a cell: to which table, its row, and its times.
fn lines(cell: &Cell<'_>, record: &Record) -> Vec<u8> {
    let mut text = String::new();
    let row = rows::line(|put| {
        for column in cell.columns() {
            text.clear();
            column.write(cell, Some(record), &mut text);
            put(&text);
        }
    });
    let times = record.times;
    let spans = [times.plan, times.check, times.measure, times.total()].map(seconds);
    let spans = rows::line(|put| {
        put(&cell.key.to_string());
        spans.iter().for_each(|span| put(span));
    });
    let mut lines = vec![IS_TIMED[usize::from(cell.is_timed())]];
    lines.extend((row.len() as u64).to_le_bytes());
    lines.extend(row);
    lines.extend(spans);
    lines
}

/// The tables of a sweep in the making.
struct Tables {
    runs: rows::Writer,
    timed: rows::Writer,
    timings: rows::Writer,
}

impl Tables {
    fn begin(study: &Study, folder: &Path) -> Result<Self, HarnessError> {
        let columns = || study.columns.iter().map(|c| c.name.as_str());
        let timings = ["cell", "plan_s", "check_s", "measure_s", "total_s"];
        Ok(Self {
            runs: rows::Writer::begin(folder, results::RUNS, columns())?,
            timed: rows::Writer::begin(folder, results::TIMED, columns())?,
            timings: rows::Writer::begin(folder, results::TIMINGS, timings)?,
        })
    }

    /// Writes the [`lines`] of a cell.
    fn write(&mut self, lines: &[u8]) -> Result<(), HarnessError> {
        let Some((&timed, Some((length, lines)))) = lines.split_first().map(|(t, rest)| (t, rest.split_first_chunk()))
        else {
            return Ok(());
        };
        let (row, spans) = lines.split_at(u64::from_le_bytes(*length) as usize);
        let table = if timed == IS_TIMED[1] { &mut self.timed } else { &mut self.runs };
        table.write(row)?;
        self.timings.write(spans)
    }
}

/// What the writer counts.
#[derive(Default)]
struct Counts {
    done: u64,
    resumed: u64,
    ends: BTreeMap<Status, u64>,
    total: u64,
    longest: u64,
}

struct Collected {
    journal: Journal,
    tables: Tables,
    order: Order,
    counts: Counts,
}

impl Collected {
    fn write(
        &mut self,
        receiver: Receiver<Done<'_>>,
        options: &Options,
        progress: &mut dyn Progress,
        stop: &AtomicBool,
    ) -> Result<(), HarnessError> {
        for done in receiver {
            self.take(done, options, progress, stop).inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
        }
        Ok(())
    }

    fn take(
        &mut self,
        done: Done<'_>,
        options: &Options,
        progress: &mut dyn Progress,
        stop: &AtomicBool,
    ) -> Result<(), HarnessError> {
        let Done { cell, place, status, times, lines, payload, resumed } = done;
        if let Some(payload) = &payload {
            self.journal.append(cell.key, payload)?;
        }
        let counts = &mut self.counts;
        counts.done += 1;
        counts.resumed += u64::from(resumed);
        *counts.ends.entry(status).or_default() += 1;
        counts.total = counts.total.saturating_add(times.total());
        counts.longest = counts.longest.max(times.total());
        stop.fetch_or(options.fail_fast && status.is_defect(), Ordering::Relaxed);
        progress.done(&cell, status);
        self.order.take(place, lines, |lines| self.tables.write(lines))
    }

    fn finish(mut self, cells: u64, dropped: usize, start: SystemTime) -> Result<Swept, HarnessError> {
        self.order.end(|lines| self.tables.write(lines))?;
        let Tables { runs, timed, timings } = self.tables;
        let Counts { done, resumed, ends, total, longest } = self.counts;
        Ok(Swept {
            runs: runs.end()?,
            timed: timed.end()?,
            timings: timings.end()?,
            ends,
            resumed,
            dropped,
            missing: cells - done,
            cell_time: (Duration::from_nanos(total), Duration::from_nanos(longest)),
            span: (start, SystemTime::now()),
        })
    }
}

/// Nanoseconds as seconds with all nine decimals.
fn seconds(nanos: u64) -> String {
    format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

/// What a sweep is likely to take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Cells of the shard.
    pub cells: u64,
    /// Cells that were run to find out.
    pub sampled: u64,
    /// Wall time on `threads` threads, from the mean over the cells sampled.
    pub time: Duration,
    /// Threads it is meant for.
    pub threads: usize,
}

/// Runs a few cells, spread evenly over the study and for about `budget`, and extrapolates.
pub fn estimate(study: &Study, shard: Shard, budget: Duration) -> Estimate {
    /// Enough for a mean over every graph of a study of some size.
    const MOST: u64 = 200;
    let cells = shard.cells(study.cell_count());
    let wanted = cells.min(MOST);
    let begin = Instant::now();
    let mut workspace = Workspace::default();
    let (mut sampled, mut spent, mut bounding) = (0, Duration::ZERO, Duration::ZERO);
    for k in scattered(wanted) {
        // The middle of the k-th of `wanted` equal parts.
        let place = ((2 * u128::from(k) + 1) * u128::from(cells) / (2 * u128::from(wanted))) as u64;
        let cell = study.cell(shard.cell(place.min(cells - 1)));
        cell.prepare();
        let one = Instant::now();
        if cell.is_bounded() {
            // Many cells share a bound, so it counts once for all of them.
            if let Ok(machine) = cell.machine() {
                let _ = cell.bound(&machine, cell.likely_cover());
            }
            bounding += one.elapsed();
        }
        let one = Instant::now();
        let record = record::run(&cell, &mut workspace);
        let _ = lines(&cell, &record);
        spent += one.elapsed();
        sampled += 1;
        if begin.elapsed() > budget {
            break;
        }
    }
    let threads = rayon::current_num_threads();
    let mean = |time: Duration| time.as_secs_f64() / sampled.max(1) as f64;
    let bounds = study.bound_count().min(cells) as f64;
    let time = mean(spent) * cells as f64 + mean(bounding) * bounds;
    let time = Duration::try_from_secs_f64(time / threads as f64).unwrap_or(Duration::MAX);
    Estimate { cells, sampled, time, threads }
}

/// The numbers below `n`, coarse steps first, so that a sample cut short is spread evenly too.
fn scattered(n: u64) -> impl Iterator<Item = u64> {
    let bits = n.next_power_of_two().trailing_zeros();
    (0..n.next_power_of_two())
        .map(move |k| if bits == 0 { 0 } else { k.reverse_bits() >> (64 - bits) })
        .filter(move |&k| k < n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_part_the_cells() {
        for all in 0..20 {
            for count in 1..5 {
                let mut cells = Vec::new();
                for index in 1..=count {
                    let shard = Shard::new(index, count).unwrap();
                    cells.extend((0..shard.cells(all)).map(|place| shard.cell(place)));
                }
                cells.sort_unstable();
                assert_eq!(cells, (0..all).collect::<Vec<_>>(), "{all} cells in {count} shards");
            }
        }
        assert!(Shard::new(0, 3).is_err() && Shard::new(4, 3).is_err() && Shard::new(0, 0).is_err());
    }

    #[test]
    fn a_scattered_order_holds_every_number_once() {
        for n in 0..40 {
            let mut order: Vec<_> = scattered(n).collect();
            order.sort_unstable();
            assert_eq!(order, (0..n).collect::<Vec<_>>());
        }
    }

    #[test]
    fn seconds_keep_their_zeros() {
        assert_eq!(seconds(1_000_000_001), "1.000000001");
        assert_eq!(seconds(42), "0.000000042");
    }
}
