//! A timed plan in the Trace Event Format, which Perfetto and `chrome://tracing` open: each pipe is
//! a track of slices, each cache a counter of resident bytes, each spill an arrow from its
//! `SPILL_OUT` to its `SPILL_IN`.
//!
//! The format knows microseconds; one of them stands for one cycle. Written are the event kinds `M`
//! (names), `X` (a slice), `C` (a counter) and `s`, `f` (start and end of an arrow).

use crate::index::{CacheIx, PipeIx, StepIx, indices};
use crate::metrics::steps::Step;
use crate::metrics::timing::{Gap, IdleCause, TimedPlan};
use crate::units::{BufId, Bytes, Cycles, Id};
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The process whose threads are the pipes.
const PIPES: u32 = 1;
/// The process whose counters are the caches.
const CACHES: u32 = 2;

/// Writes the trace of a plan of the task called `task`.
///
/// # Errors
/// When `out` cannot be written.
pub fn write(timed: &TimedPlan<'_>, task: &str, mut out: impl Write) -> io::Result<()> {
    let trace = Trace { events: Events { timed, task }, unit: "ms", other: Other { cycle: "1 us", task } };
    serde_json::to_writer(&mut out, &trace)?;
    writeln!(out)
}

#[derive(Serialize)]
struct Trace<'a> {
    #[serde(rename = "traceEvents")]
    events: Events<'a>,
    #[serde(rename = "displayTimeUnit")]
    unit: &'static str,
    #[serde(rename = "otherData")]
    other: Other<'a>,
}

#[derive(Serialize)]
struct Other<'a> {
    cycle: &'static str,
    task: &'a str,
}

/// One event; the keys are those of the format.
#[derive(Serialize)]
struct Event<'a, A> {
    ph: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'static str>,
    pid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<Cycles>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<Cycles>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<usize>,
    /// `e` binds the end of an arrow to the slice it lies in, not to the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    bp: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<A>,
}

impl<'a, A> Event<'a, A> {
    fn new(ph: &'static str, name: &'a str, pid: u32) -> Self {
        Self { ph, name, cat: None, pid, tid: None, ts: None, dur: None, id: None, bp: None, args: None }
    }
}

/// What a slice tells beside its name and time.
#[derive(Serialize)]
struct StepArgs {
    node: Id,
    position: usize,
    buffers: Vec<BufId>,
    /// When it could have started, had its pipe been free.
    ready: Cycles,
    /// Why its pipe was idle before it, if it was; the cycles by cause.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    idle_before: BTreeMap<&'static str, Cycles>,
    /// What the pipe was idle for: the node that this one waited for, or that could have run.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_for: Option<Id>,
}

struct Events<'a> {
    timed: &'a TimedPlan<'a>,
    task: &'a str,
}

impl Serialize for Events<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        self.names(&mut list)?;
        for pipe in indices(self.timed.machine().pipe_names()) {
            self.slices(pipe, &mut list)?;
        }
        for cache in self.timed.graph().caches() {
            self.counter(cache, &mut list)?;
        }
        list.end()
    }
}

/// The thread of a pipe. Some viewers give 0 a meaning of its own.
fn thread(pipe: PipeIx) -> usize {
    pipe.index() + 1
}

impl Events<'_> {
    fn names<S: SerializeSeq>(&self, list: &mut S) -> Result<(), S::Error> {
        let name_of = |text: &str| Some(BTreeMap::from([("name", text.to_owned())]));
        for (pid, what) in [(PIPES, "pipes"), (CACHES, "caches")] {
            let args = name_of(&format!("{}: {what}", self.task));
            list.serialize_element(&Event { args, ..Event::new("M", "process_name", pid) })?;
        }
        for (pipe, name) in self.timed.machine().pipe_names().iter_enumerated() {
            let tid = Some(thread(pipe));
            list.serialize_element(&Event { tid, args: name_of(name), ..Event::new("M", "thread_name", PIPES) })?;
            let args = Some(BTreeMap::from([("sort_index", thread(pipe))]));
            list.serialize_element(&Event { tid, args, ..Event::new("M", "thread_sort_index", PIPES) })?;
        }
        Ok(())
    }

    /// The steps of a pipe. An end of an arrow stands just behind its slice and at its start, so that
    /// even a slice of no length is the one that it lies in.
    fn slices<S: SerializeSeq>(&self, pipe: PipeIx, list: &mut S) -> Result<(), S::Error> {
        let timed = self.timed;
        let mut gaps: BTreeMap<StepIx, Vec<Gap>> = BTreeMap::new();
        for gap in timed.gaps(pipe) {
            if let Some(next) = gap.next {
                gaps.entry(next).or_default().push(gap);
            }
        }
        for step in timed.on_pipe(pipe) {
            let (name, cat, arrow) = match timed.step(step) {
                Step::Node(n) => (timed.graph().op_name(n), "op", None),
                Step::SpillOut { spill, .. } => ("SPILL_OUT", "spill", Some(("s", spill as usize))),
                Step::SpillIn { spill, .. } => ("SPILL_IN", "spill", Some(("f", spill as usize))),
            };
            let (tid, ts, cat) = (Some(thread(pipe)), Some(timed.start(step)), Some(cat));
            let args = Some(self.args(step, gaps.get(&step).map_or(&[], Vec::as_slice)));
            let dur = Some(timed.cycles(step));
            list.serialize_element(&Event { cat, tid, ts, dur, args, ..Event::new("X", name, PIPES) })?;
            if let Some((ph, spill)) = arrow {
                let bp = (ph == "f").then_some("e");
                let (id, cat) = (Some(spill), Some("spill"));
                let arrow: Event<'_, ()> = Event { cat, tid, ts, id, bp, ..Event::new(ph, "spill", PIPES) };
                list.serialize_element(&arrow)?;
            }
        }
        Ok(())
    }

    fn args(&self, step: StepIx, gaps: &[Gap]) -> StepArgs {
        let timed = self.timed;
        let graph = timed.graph();
        let buffers = match timed.step(step) {
            Step::Node(n) => graph.operands(n).iter().map(|&b| graph.buf(b).id).collect(),
            Step::SpillOut { buf, .. } | Step::SpillIn { buf, .. } => vec![graph.buf(buf).id],
        };
        let mut idle_before = BTreeMap::new();
        for gap in gaps {
            *idle_before.entry(gap.cause.name()).or_default() += gap.to - gap.from;
        }
        let waits_for = gaps.iter().rev().find(|g| g.cause != IdleCause::Head).and_then(|g| g.other);
        StepArgs {
            node: timed.id(step),
            position: timed.place(step).index(),
            buffers,
            ready: timed.ready(step),
            idle_before,
            waits_for: waits_for.map(|s| timed.id(s)),
        }
    }

    /// The bytes of a cache that are resident from each time on at which they change: from the start
    /// of an `ALLOC` or a `SPILL_IN` to the end of a `SPILL_OUT` or a `FREE`.
    fn counter<S: SerializeSeq>(&self, cache: CacheIx, list: &mut S) -> Result<(), S::Error> {
        let timed = self.timed;
        let mut changes: BTreeMap<Cycles, i128> = BTreeMap::new();
        for (seg_cache, size, from, to) in timed.residencies() {
            if seg_cache == cache {
                *changes.entry(from).or_default() += i128::from(size.0);
                *changes.entry(to).or_default() -= i128::from(size.0);
            }
        }
        let name = format!("{} resident", timed.graph().cache_name(cache));
        let mut resident = 0i128;
        let first = (!changes.contains_key(&Cycles(0))).then_some((Cycles(0), 0));
        for (at, change) in first.into_iter().chain(changes) {
            resident += change;
            // A sum of sizes that fit their cache together.
            let args = Some(BTreeMap::from([("bytes", Bytes(u64::try_from(resident).unwrap_or(0)))]));
            list.serialize_element(&Event { ts: Some(at), args, ..Event::new("C", &name, CACHES) })?;
        }
        Ok(())
    }
}
