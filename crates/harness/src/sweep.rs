//! The sweep: every cell of a study over all threads, each journalled as soon as it is done.
//!
//! Threads send finished cells to one writer, which alone appends to the journal; the table is
//! sorted by cell at the end, so it depends neither on the number of threads nor on the order in
//! which they finish, nor on how often the run was killed and resumed.

use crate::error::HarnessError;
use crate::experiment::FigureSpec;
use crate::hash::Hash;
use crate::journal::{self, Journal};
use crate::manifest;
use crate::record::{self, Record, Status, Times};
use crate::study::{Cell, Study};
use crate::table::Table;
use csv::StringRecord;
use rayon::prelude::*;
use spillbench_core::planner::Workspace;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant, SystemTime};

/// Finished cells that may wait for the writer.
const QUEUE: usize = 1024;

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
    pub runs: Table,
    /// `timed.csv`: the rows of cells whose results depend on the machine.
    pub timed: Table,
    /// `timings.csv`.
    pub timings: Table,
    /// Rows taken from journals.
    pub resumed: u64,
    /// Journal lines that were cut short or damaged, and counted for nothing.
    pub dropped: usize,
    /// Cells of the shard that have no row, because a defect ended the run.
    pub missing: u64,
    /// Cells that point to a defect.
    pub defects: u64,
    /// Wall time of all cells together, and of the longest.
    pub cell_time: (Duration, Duration),
    /// When it began and ended.
    pub span: (SystemTime, SystemTime),
}

impl Swept {
    /// The rows that a figure shows.
    pub fn rows_of(&self, figure: &FigureSpec) -> &Table {
        if figure.is_timed() { &self.timed } else { &self.runs }
    }
}

/// A finished cell on its way to the writer.
struct Done<'a> {
    cell: Cell<'a>,
    status: Status,
    times: Times,
    row: StringRecord,
    /// The journal line; `None` when the journal has it.
    payload: Option<Vec<u8>>,
    /// True when it was not run now.
    resumed: bool,
}

/// Payloads of earlier runs by key.
#[derive(Default)]
struct Known {
    /// Of the journal of this folder.
    own: HashMap<Hash, Box<[u8]>>,
    /// Of the journals of other folders.
    others: HashMap<Hash, Box<[u8]>>,
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
    let cells = options.shard.cells(study.cell_count());
    let (sender, receiver) = sync_channel(QUEUE);
    let stop = AtomicBool::new(false);
    let resumed_at_most = (known.own.len() + known.others.len()) as u64;
    progress.begin(cells, resumed_at_most.min(cells));
    let written = std::thread::scope(|scope| {
        let writer = scope.spawn(|| write(receiver, journal, options, progress, &stop));
        (0..cells as usize).into_par_iter().with_max_len(1).for_each_with(sender, |sender, place| {
            if !stop.load(Ordering::Relaxed) {
                run_one(study.cell(options.shard.cell(place as u64)), &known, sender);
            }
        });
        writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    let mut collected = written?;
    collected.done.sort_unstable_by_key(|d| d.index);
    Ok(collected.finish(study, cells, known.dropped, start))
}

fn open(folder: &Path, options: &Options) -> Result<(Journal, Known), HarnessError> {
    let tool = manifest::tool();
    let mut known = Known::default();
    for other in &options.merge {
        let take = |key, payload: &[u8]| drop(known.others.insert(key, payload.into()));
        known.dropped += journal::read(&other.join(journal::FILE_NAME), &tool, take)?.dropped;
    }
    let path = folder.join(journal::FILE_NAME);
    let finished = folder.join(crate::results::MANIFEST).exists();
    let journal = if options.resume {
        let take = |key, payload: &[u8]| drop(known.own.insert(key, payload.into()));
        let (journal, read) = Journal::open(folder, &tool, options.fsync, take)?;
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
    match std::fs::remove_file(folder.join(crate::results::MANIFEST)) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(HarnessError::Io { path, source: e }),
        _ => Ok((journal, known)),
    }
}

thread_local! {
    static WORKSPACE: RefCell<Workspace> = RefCell::default();
}

fn run_one<'a>(cell: Cell<'a>, known: &Known, sender: &SyncSender<Done<'a>>) {
    let own = known.own.get(&cell.key);
    let earlier = own.or_else(|| known.others.get(&cell.key));
    let earlier = earlier.and_then(|payload| serde_json::from_slice::<Record>(payload).ok());
    let resumed = earlier.is_some();
    let record = earlier.unwrap_or_else(|| WORKSPACE.with_borrow_mut(|workspace| record::run(&cell, workspace)));
    // A record is plain data with text keys, which always serialises.
    let payload = (own.is_none() || !resumed).then(|| serde_json::to_vec(&record).unwrap_or_default());
    let row = row(&cell, &record);
    let done = Done { cell, status: record.status, times: record.times, row, payload, resumed };
    // The writer hangs up only after an error, which it reports itself.
    let _ = sender.send(done);
}

/// The row of a cell.
fn row(cell: &Cell<'_>, record: &Record) -> StringRecord {
    let (mut row, mut text) = (StringRecord::new(), String::new());
    for column in cell.columns() {
        text.clear();
        column.write(cell, Some(record), &mut text);
        row.push_field(&text);
    }
    row
}

struct Finished {
    index: u64,
    key: Hash,
    timed: bool,
    times: Times,
    row: StringRecord,
}

#[derive(Default)]
struct Collected {
    done: Vec<Finished>,
    resumed: u64,
    defects: u64,
}

fn write(
    receiver: Receiver<Done<'_>>,
    mut journal: Journal,
    options: &Options,
    progress: &mut dyn Progress,
    stop: &AtomicBool,
) -> Result<Collected, HarnessError> {
    let mut collected = Collected::default();
    for done in receiver {
        if let Some(payload) = &done.payload {
            journal.append(done.cell.key, payload).inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
        }
        collected.resumed += u64::from(done.resumed);
        if done.status.is_defect() {
            collected.defects += 1;
            stop.fetch_or(options.fail_fast, Ordering::Relaxed);
        }
        progress.done(&done.cell, done.status);
        let Done { cell, times, row, .. } = done;
        let (index, key, timed) = (cell.index, cell.key, cell.is_timed());
        collected.done.push(Finished { index, key, timed, times, row });
    }
    Ok(collected)
}

/// Nanoseconds as seconds with all nine decimals.
fn seconds(nanos: u64) -> String {
    format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

impl Collected {
    fn finish(self, study: &Study, cells: u64, dropped: usize, start: SystemTime) -> Swept {
        let mut runs = Table::new(study.columns.iter().map(|c| &c.name));
        let mut timed_rows = runs.clone();
        let mut timings = Table::new(["cell", "plan_s", "check_s", "measure_s", "total_s"]);
        let (mut total, mut longest) = (0u64, 0u64);
        let missing = cells - self.done.len() as u64;
        for Finished { key, timed, times, row, .. } in self.done {
            total = total.saturating_add(times.total());
            longest = longest.max(times.total());
            let spans = [times.plan, times.check, times.measure, times.total()].map(seconds);
            timings.push(StringRecord::from_iter(std::iter::once(key.to_string()).chain(spans)));
            if timed { &mut timed_rows } else { &mut runs }.push(row);
        }
        Swept {
            runs,
            timed: timed_rows,
            timings,
            resumed: self.resumed,
            dropped,
            missing,
            defects: self.defects,
            cell_time: (Duration::from_nanos(total), Duration::from_nanos(longest)),
            span: (start, SystemTime::now()),
        }
    }
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
            let _ = cell.bound(cell.likely_cover());
            bounding += one.elapsed();
        }
        let one = Instant::now();
        let record = record::run(&cell, &mut workspace);
        let _ = row(&cell, &record);
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
