//! Import of interval files: buffers with fixed lives, to be packed.
//!
//! The format is the CSV of the minimalloc benchmark: a header, then one buffer per row. Columns, in
//! any order: `id` (or `buffer`, `buffer_id`), `lower` (or `start`), `upper` (exclusive; or `end`,
//! inclusive), `size`, and where present `alignment`, `hint`, `offset` and `gaps`. A buffer is live
//! over `[lower, upper)`. Gaps are a blank-separated list of `from-to` (the buffer is not live over
//! `[from, to)`) or `from-to@low:high` (only its bytes `[low, high)` are).
//!
//! The graph has no ops: an `ALLOC` per row at `lower`, a `FREE` at `upper`, at one moment all
//! `FREE`s before all `ALLOC`s and each kind in the order of the rows. Ids count from 0 in that
//! order, and an edge from each node to the next makes it the only schedule, so that no
//! normalisation and no postponement changes a life. Alignments, hints, offsets and gaps are read
//! for packing, but mean nothing in a graph: a notice says so.

use super::text::{self, TextError};
use crate::emit::NODE_LIMIT;
use crate::error::WorkloadError;
use serde::Serialize;
use spillbench_core::{Bytes, Graph, GraphBuilder, Schedule};
use std::collections::HashMap;
use std::fmt;

/// A buffer with a fixed life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Its name in the file: often a number.
    pub id: String,
    /// The first moment of its life.
    pub lower: i64,
    /// The first moment behind its life; later than `lower`.
    pub upper: i64,
    /// Bytes, at least 1.
    pub size: u64,
    /// Its offset must be a multiple of this; at least 1.
    pub alignment: u64,
    /// Where it is not, or not wholly, live.
    pub gaps: Vec<Gap>,
    /// A place that it has.
    pub offset: Option<u64>,
    /// A place that it would like to have.
    pub hint: Option<u64>,
}

/// A part of a life over which a buffer needs fewer bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Its first moment.
    pub lower: i64,
    /// The first moment behind it.
    pub upper: i64,
    /// The bytes `[low, high)` of the buffer that are needed all the same; `None` for none.
    pub window: Option<(u64, u64)>,
}

/// How an interval file is imported.
#[derive(Clone, Debug)]
pub struct IntervalOptions {
    /// The cache that all buffers are in.
    pub cache: String,
}

impl Default for IntervalOptions {
    fn default() -> Self {
        Self { cache: "UB".to_owned() }
    }
}

/// Something that an interval import tells without stopping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IntervalNotice {
    /// Lives that are given by their last moment.
    Inclusive,
    /// A column that is not known, ignored.
    UnknownColumn {
        /// The column.
        column: String,
    },
    /// Values that a graph cannot hold.
    NotInGraph {
        /// The column.
        column: &'static str,
        /// On how many rows.
        rows: usize,
    },
    /// Ids that are no numbers: the buffers are numbered by row, from 0.
    Numbered {
        /// The first such id.
        first: String,
    },
}

impl fmt::Display for IntervalNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inclusive => f.write_str(
                "the column end holds the last moment of a life, as in MiniMalloc; upper would hold the first behind it",
            ),
            Self::UnknownColumn { column } => write!(f, "the column {column:?} is not known and is ignored"),
            Self::NotInGraph { column, rows } => {
                write!(f, "{column} of {rows} row(s) has no place in a graph and is left out")
            }
            Self::Numbered { first } => {
                write!(f, "ids such as {first:?} are no numbers: buffers are numbered by row, from 0")
            }
        }
    }
}

/// Reads an interval file.
///
/// # Errors
/// The first thing that is wrong, with its line.
pub fn read(bytes: &[u8]) -> Result<(Vec<Interval>, Vec<IntervalNotice>), TextError> {
    let text = text::text(bytes)?;
    let mut csv = csv::ReaderBuilder::new().flexible(true).trim(csv::Trim::All).from_reader(text.as_bytes());
    let header = csv.headers().map_err(|e| broken(&e))?.clone();
    let (columns, notices) = Columns::new(&header)?;
    let mut intervals = Vec::new();
    let mut lines: HashMap<String, u64> = HashMap::new();
    let mut record = csv::StringRecord::new();
    while csv.read_record(&mut record).map_err(|e| broken(&e))? {
        let line = record.position().map_or(0, csv::Position::line);
        if record.len() != header.len() {
            return Err(TextError::Fields { line, found: record.len(), wanted: "one per column of the header" });
        }
        let interval = columns.interval(&record, line)?;
        if let Some(first) = lines.insert(interval.id.clone(), line) {
            return Err(TextError::RepeatedId { line, id: interval.id, first });
        }
        intervals.push(interval);
    }
    if intervals.is_empty() { Err(TextError::Empty) } else { Ok((intervals, notices)) }
}

/// Writes intervals with an offset for each, in the format that [`read`] reads; alignments and gaps
/// only where some interval has them.
///
/// # Errors
/// When the writer fails.
pub fn write_packed(intervals: &[Interval], offsets: &[u64], out: impl std::io::Write) -> std::io::Result<()> {
    let aligned = intervals.iter().any(|i| i.alignment > 1);
    let gapped = intervals.iter().any(|i| !i.gaps.is_empty());
    let mut csv = csv::Writer::from_writer(out);
    let optional = |column: &'static str, there: bool| there.then_some(column);
    let header = ["id", "lower", "upper", "size"].into_iter().chain(optional("alignment", aligned));
    csv.write_record(header.chain(optional("gaps", gapped)).chain(["offset"]))?;
    for (i, offset) in intervals.iter().zip(offsets) {
        let fixed = [i.id.clone(), i.lower.to_string(), i.upper.to_string(), i.size.to_string()];
        let alignment = aligned.then(|| i.alignment.to_string());
        let gaps = gapped.then(|| i.gaps.iter().map(Gap::to_string).collect::<Vec<_>>().join(" "));
        csv.write_record(fixed.into_iter().chain(alignment).chain(gaps).chain([offset.to_string()]))?;
    }
    csv.flush()
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.lower, self.upper)?;
        self.window.map_or(Ok(()), |(low, high)| write!(f, "@{low}:{high}"))
    }
}

fn broken(error: &csv::Error) -> TextError {
    TextError::NotText { line: error.position().map_or(0, csv::Position::line) }
}

/// Imports an interval file: a graph, its only schedule, and notices.
///
/// # Errors
/// The first thing that is wrong in the file, or sizes that a graph cannot sum up.
pub fn import(bytes: &[u8], options: &IntervalOptions) -> Result<(Graph, Schedule, Vec<IntervalNotice>), TextError> {
    let (intervals, mut notices) = read(bytes)?;
    let count = |has: fn(&Interval) -> bool| intervals.iter().filter(|i| has(i)).count();
    let left_out = [
        ("alignment", count(|i| i.alignment > 1)),
        ("gaps", count(|i| !i.gaps.is_empty())),
        ("offset", count(|i| i.offset.is_some())),
        ("hint", count(|i| i.hint.is_some())),
    ];
    let left_out = left_out.into_iter().filter(|c| c.1 > 0);
    notices.extend(left_out.map(|(column, rows)| IntervalNotice::NotInGraph { column, rows }));
    let ids = numbers(&intervals);
    if ids.is_none() {
        let first = intervals.iter().find(|i| number(&i.id).is_none());
        notices.extend(first.map(|i| IntervalNotice::Numbered { first: i.id.clone() }));
    }
    let graph = graph(&intervals, ids, options)?;
    let schedule = Schedule::default_for(&graph);
    Ok((graph, schedule, notices))
}

/// The most bytes that are live at one moment: no packing is lower. Gaps count, alignments do not.
pub fn height_lower_bound(intervals: &[Interval]) -> Bytes {
    let mut events: Vec<(i64, i128)> = Vec::with_capacity(2 * intervals.len());
    let mut span = |lower, upper, bytes: i128| events.extend([(lower, bytes), (upper, -bytes)]);
    for interval in intervals {
        span(interval.lower, interval.upper, interval.size.into());
        for gap in &interval.gaps {
            let needed = gap.window.map_or(0, |(low, high)| high.saturating_sub(low));
            span(gap.lower, gap.upper, i128::from(needed) - i128::from(interval.size));
        }
    }
    // What ends at a moment makes room for what begins there, so that all of a moment is summed up.
    events.sort_unstable();
    let (mut live, mut most) = (0i128, 0i128);
    for (i, &(at, bytes)) in events.iter().enumerate() {
        live += bytes;
        if events.get(i + 1).is_none_or(|next| next.0 != at) {
            most = most.max(live);
        }
    }
    Bytes(u64::try_from(most).unwrap_or(u64::MAX))
}

fn number(id: &str) -> Option<u64> {
    let digits = !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit());
    id.parse().ok().filter(|&n| digits && n <= i64::MAX as u64)
}

/// The ids as numbers, when all are and no two are the same (as `1` and `01`).
fn numbers(intervals: &[Interval]) -> Option<Vec<u64>> {
    let ids = intervals.iter().map(|i| number(&i.id)).collect::<Option<Vec<_>>>()?;
    let mut sorted = ids.clone();
    sorted.sort_unstable();
    sorted.windows(2).all(|w| w[0] != w[1]).then_some(ids)
}

fn graph(intervals: &[Interval], ids: Option<Vec<u64>>, options: &IntervalOptions) -> Result<Graph, WorkloadError> {
    let nodes = 2 * intervals.len() as u64;
    if nodes > NODE_LIMIT {
        return Err(WorkloadError::TooLarge { nodes, limit: NODE_LIMIT });
    }
    // At one moment FREE, the smaller flag, comes first.
    let mut events: Vec<(i64, bool, usize)> = Vec::with_capacity(2 * intervals.len());
    for (row, interval) in intervals.iter().enumerate() {
        events.extend([(interval.lower, true, row), (interval.upper, false, row)]);
    }
    events.sort_unstable();
    let mut builder = GraphBuilder::new();
    for (node, &(_, begins, row)) in events.iter().enumerate() {
        let (node, size) = (node as u64, intervals[row].size);
        let buf = ids.as_ref().map_or(row as u64, |ids| ids[row]);
        match begins {
            true => builder.alloc(node, buf, size, &options.cache),
            false => builder.free(node, buf, size, &options.cache),
        };
        if node > 0 {
            builder.edge(node - 1, node);
        }
    }
    let names = ids.is_none().then(|| intervals.iter().map(|i| i.id.as_str()).collect());
    let provenance = Provenance { source: "intervals", height_lower_bound: height_lower_bound(intervals), names };
    builder.meta(serde_json::to_string(&provenance).map_err(WorkloadError::Provenance)?);
    Ok(builder.build()?.0)
}

/// What the graph says of its origin.
#[derive(Serialize)]
struct Provenance<'a> {
    source: &'static str,
    height_lower_bound: Bytes,
    /// The ids of the file by buffer, where they are no numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    names: Option<Vec<&'a str>>,
}

/// Where the columns stand in a row.
struct Columns {
    id: usize,
    lower: usize,
    upper: usize,
    /// True when the last moment of a life is given, not the first behind it.
    inclusive: bool,
    size: usize,
    alignment: Option<usize>,
    gaps: Option<usize>,
    offset: Option<usize>,
    hint: Option<usize>,
}

impl Columns {
    fn new(header: &csv::StringRecord) -> Result<(Self, Vec<IntervalNotice>), TextError> {
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut notices = Vec::new();
        for (i, name) in header.iter().enumerate() {
            let known = match name {
                "buffer" | "buffer_id" => "id",
                "start" => "lower",
                "id" | "lower" | "upper" | "end" | "size" | "alignment" | "gaps" | "offset" | "hint" => name,
                _ => {
                    notices.push(IntervalNotice::UnknownColumn { column: name.chars().take(80).collect() });
                    continue;
                }
            };
            if places.insert(known, i).is_some() {
                return Err(TextError::RepeatedColumn { column: name.to_owned() });
            }
        }
        let place = |name: &str| places.get(name).copied();
        let found = || header.iter().take(20).collect::<Vec<_>>().join(", ").chars().take(200).collect();
        let needed = |column: &'static str, at: Option<usize>| {
            at.ok_or_else(|| TextError::MissingColumn { column, found: found() })
        };
        if place("upper").is_some() && place("end").is_some() {
            return Err(TextError::RepeatedColumn { column: "end (beside upper)".to_owned() });
        }
        if place("end").is_some() {
            notices.push(IntervalNotice::Inclusive);
        }
        let columns = Self {
            id: needed("id", place("id"))?,
            lower: needed("lower (or start)", place("lower"))?,
            upper: needed("upper (or end)", place("upper").or(place("end")))?,
            inclusive: place("end").is_some(),
            size: needed("size", place("size"))?,
            alignment: place("alignment"),
            gaps: place("gaps"),
            offset: place("offset"),
            hint: place("hint"),
        };
        Ok((columns, notices))
    }

    fn interval(&self, record: &csv::StringRecord, line: u64) -> Result<Interval, TextError> {
        let field = |at: usize| record.get(at).unwrap_or_default();
        let id = field(self.id);
        if id.is_empty() {
            return Err(TextError::field(line, "id", id, "a name"));
        }
        let lower = moment(field(self.lower), "lower", line)?;
        let last = moment(field(self.upper), "upper", line)?;
        let upper = last.checked_add(i64::from(self.inclusive));
        let upper = upper.ok_or_else(|| TextError::field(line, "upper", field(self.upper), "below 2^63-1"))?;
        if lower >= upper {
            let id = id.chars().take(80).collect();
            return Err(TextError::EmptyLife { line, id, lower, upper });
        }
        let optional = |column: &'static str, at: Option<usize>| {
            at.map(field).filter(|text| !text.is_empty()).map(|text| bytes(text, column, line)).transpose()
        };
        let size = bytes(field(self.size), "size", line)?;
        let alignment = optional("alignment", self.alignment)?.unwrap_or(1);
        for (value, column) in [(size, "size"), (alignment, "alignment")] {
            if value == 0 {
                return Err(TextError::field(line, column, "0", "at least 1"));
            }
        }
        let gaps = self.gaps.map_or("", field).split_whitespace();
        let gap = |text: &str| gap(text, (lower, upper), size).ok_or(text.to_owned());
        let gaps = gaps.map(gap).collect::<Result<Vec<_>, _>>().map_err(|text| {
            TextError::field(line, "gaps", &text, "a list of from-to[@low:high] in order, inside life and size")
        })?;
        check_order(&gaps, line)?;
        let (offset, hint) = (optional("offset", self.offset)?, optional("hint", self.hint)?);
        Ok(Interval { id: id.to_owned(), lower, upper, size, alignment, gaps, offset, hint })
    }
}

fn check_order(gaps: &[Gap], line: u64) -> Result<(), TextError> {
    match gaps.windows(2).find(|w| w[0].upper > w[1].lower) {
        None => Ok(()),
        Some(w) => {
            let text = format!("{}-{} {}-{}", w[0].lower, w[0].upper, w[1].lower, w[1].upper);
            Err(TextError::field(line, "gaps", &text, "apart and in order"))
        }
    }
}

fn moment(text: &str, column: &'static str, line: u64) -> Result<i64, TextError> {
    text.parse().map_err(|_| TextError::field(line, column, text, "a whole number"))
}

/// A number of bytes: below 2⁶², so that a few of them can be added.
fn bytes(text: &str, column: &'static str, line: u64) -> Result<u64, TextError> {
    let value = text.parse().ok().filter(|v: &u64| *v < 1 << 62);
    value.ok_or_else(|| TextError::field(line, column, text, "a whole number from 0 to 2^62"))
}

/// One gap, inside a life and a size.
fn gap(text: &str, life: (i64, i64), size: u64) -> Option<Gap> {
    let (moments, window) = match text.split_once('@') {
        None => (text, None),
        Some((moments, window)) => {
            let (low, high) = window.split_once(':')?;
            (moments, Some((low.parse().ok()?, high.parse().ok()?)))
        }
    };
    let (lower, upper) = moments.split_once('-')?;
    let (lower, upper) = (lower.parse().ok()?, upper.parse().ok()?);
    let inside = life.0 <= lower && lower < upper && upper <= life.1;
    let fits = window.is_none_or(|(low, high)| low <= high && high <= size);
    (inside && fits).then_some(Gap { lower, upper, window })
}
