//! Import of access traces, as cache simulators read them: one access per line, `time id size
//! [next]`, separated by blanks or commas.
//!
//! Each object is a buffer, each access an op that uses it: `COPY_IN` the first time (so that the
//! buffer is backed, as a cached object is), `ACCESS` later. `ALLOC` stands before the first access
//! and `FREE` right behind the last, so that an object leaves as soon as nothing needs it any more.
//! Every access waits for the one before, which makes the order of the file the only one.
//!
//! So with objects of one size, an object is spilled as often as a cache of that many objects loads
//! it again: the number of spills is the number of misses less the first load of each object, in a
//! simulator that drops an object behind its last access.
//!
//! Times serve to check the order. The optional `next` (moment of the next access, −1 or a huge
//! number for never) follows from the order and is checked to be a number only.

use super::text::{self, TextError};
use crate::cost::{self, LOAD, MTE2, VECTOR};
use crate::emit::NODE_LIMIT;
use crate::error::WorkloadError;
use serde::Serialize;
use spillbench_core::{Graph, GraphBuilder, Schedule};
use std::collections::HashMap;
use std::fmt;

/// One access.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Access {
    /// When, in whatever unit the trace has.
    pub time: f64,
    /// The object.
    pub id: u64,
    /// Its bytes, at least 1.
    pub size: u64,
}

/// How a trace is imported.
#[derive(Clone, Debug)]
pub struct TraceOptions {
    /// The cache that all objects are in.
    pub cache: String,
}

impl Default for TraceOptions {
    fn default() -> Self {
        Self { cache: "UB".to_owned() }
    }
}

/// Something that a trace import tells without stopping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceNotice {
    /// Objects with more than one size: the largest is taken.
    SizeChanges {
        /// How many objects.
        objects: usize,
        /// The first of them.
        first: u64,
    },
    /// Accesses with an earlier time than the one before: the order of the lines is kept.
    TimeGoesBack {
        /// How many.
        accesses: usize,
        /// The line of the first.
        line: u64,
    },
    /// Ids past 2⁶³ − 1: objects are numbered in the order of their first access, from 0.
    Numbered {
        /// The first such id.
        first: u64,
    },
}

impl fmt::Display for TraceNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SizeChanges { objects, first } => {
                write!(f, "{objects} object(s), the first {first}, change in size: the largest is taken")
            }
            Self::TimeGoesBack { accesses, line } => {
                write!(
                    f,
                    "{accesses} access(es), the first in line {line}, go back in time: the order of lines is kept"
                )
            }
            Self::Numbered { first } => {
                write!(f, "ids such as {first} pass 2^63-1: objects are numbered by first access, from 0")
            }
        }
    }
}

/// Reads a trace.
///
/// # Errors
/// The first thing that is wrong, with its line.
pub fn read(bytes: &[u8]) -> Result<(Vec<Access>, Vec<TraceNotice>), TextError> {
    let mut accesses: Vec<Access> = Vec::new();
    let (mut back, mut first_back) = (0, 0);
    for (i, line) in text::text(bytes)?.trim_end().split('\n').enumerate() {
        let number = i as u64 + 1;
        if i == 0 && is_header(line) {
            continue;
        }
        let access = access(line, number)?;
        if accesses.last().is_some_and(|before| access.time < before.time) {
            back += 1;
            first_back = if back == 1 { number } else { first_back };
        }
        accesses.push(access);
    }
    if accesses.is_empty() {
        return Err(TextError::Empty);
    }
    let notice = TraceNotice::TimeGoesBack { accesses: back, line: first_back };
    Ok((accesses, (back > 0).then_some(notice).into_iter().collect()))
}

fn fields(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| c == ',' || c.is_ascii_whitespace()).filter(|f| !f.is_empty())
}

fn is_header(line: &str) -> bool {
    let names = ["time", "id", "size", "next"];
    let count = fields(line).count();
    (3..=4).contains(&count) && fields(line).zip(names).all(|(field, name)| field.eq_ignore_ascii_case(name))
}

fn access(line: &str, number: u64) -> Result<Access, TextError> {
    let mut parts = [""; 4];
    let mut found = 0;
    for field in fields(line) {
        if let Some(part) = parts.get_mut(found) {
            *part = field;
        }
        found += 1;
    }
    if !(3..=4).contains(&found) {
        return Err(TextError::Fields { line: number, found, wanted: "three or four: time id size [next]" });
    }
    let [time, id, size, next] = parts;
    let real = |text: &str| text.parse::<f64>().ok().filter(|t| t.is_finite());
    let at = real(time).ok_or_else(|| TextError::field(number, "time", time, "a number"))?;
    let id = id.parse().map_err(|_| TextError::field(number, "id", id, "a whole number from 0 to 2^64-1"))?;
    let bytes = size.parse().ok().filter(|s| (1..1 << 62).contains(s));
    let bytes = bytes.ok_or_else(|| TextError::field(number, "size", size, "a whole number from 1 to 2^62"))?;
    if found == 4 && real(next).is_none() {
        return Err(TextError::field(number, "next", next, "a number"));
    }
    Ok(Access { time: at, id, size: bytes })
}

/// Imports a trace: a graph, its only schedule, and notices.
///
/// # Errors
/// The first thing that is wrong in the file, or more nodes or bytes than a graph can have.
pub fn import(bytes: &[u8], options: &TraceOptions) -> Result<(Graph, Schedule, Vec<TraceNotice>), TextError> {
    let (accesses, mut notices) = read(bytes)?;
    let objects = Objects::new(&accesses);
    notices.extend(objects.notices(&accesses));
    let graph = objects.graph(&accesses, options)?;
    let schedule = Schedule::default_for(&graph);
    Ok((graph, schedule, notices))
}

/// What the graph says of its origin.
#[derive(Serialize)]
struct Provenance {
    source: &'static str,
    accesses: usize,
    objects: usize,
}

/// The objects of a trace, in the order of their first access.
struct Objects {
    /// The object of each access.
    of: Vec<usize>,
    sizes: Vec<u64>,
    ids: Vec<u64>,
    changed: Vec<bool>,
    first: Vec<usize>,
    last: Vec<usize>,
}

impl Objects {
    fn new(accesses: &[Access]) -> Self {
        let mut known: HashMap<u64, usize> = HashMap::new();
        let (sizes, ids) = (Vec::new(), Vec::new());
        let mut objects = Self { of: Vec::new(), sizes, ids, changed: Vec::new(), first: Vec::new(), last: Vec::new() };
        for (i, access) in accesses.iter().enumerate() {
            let object = *known.entry(access.id).or_insert(objects.ids.len());
            objects.of.push(object);
            if object == objects.ids.len() {
                objects.ids.push(access.id);
                objects.sizes.push(access.size);
                objects.changed.push(false);
                objects.first.push(i);
                objects.last.push(i);
            }
            objects.changed[object] |= objects.sizes[object] != access.size;
            objects.sizes[object] = objects.sizes[object].max(access.size);
            objects.last[object] = i;
        }
        objects
    }

    fn too_large(&self) -> Option<u64> {
        self.ids.iter().copied().find(|&id| id > i64::MAX as u64)
    }

    fn notices(&self, accesses: &[Access]) -> impl Iterator<Item = TraceNotice> {
        let objects = self.changed.iter().filter(|&&c| c).count();
        let first = self.changed.iter().position(|&c| c).map(|o| accesses[self.first[o]].id);
        let changes = first.map(|first| TraceNotice::SizeChanges { objects, first });
        changes.into_iter().chain(self.too_large().map(|first| TraceNotice::Numbered { first }))
    }

    fn graph(&self, accesses: &[Access], options: &TraceOptions) -> Result<Graph, WorkloadError> {
        let nodes = accesses.len() as u64 + 2 * self.ids.len() as u64;
        if nodes > NODE_LIMIT {
            return Err(WorkloadError::TooLarge { nodes, limit: NODE_LIMIT });
        }
        let numbered = self.too_large().is_some();
        let mut builder = GraphBuilder::new();
        let (mut node, mut before) = (0u64, None);
        for (i, &object) in self.of.iter().enumerate() {
            let buf = if numbered { object as u64 } else { self.ids[object] };
            let size = self.sizes[object];
            let is_first = self.first[object] == i;
            if is_first {
                builder.alloc(node, buf, size, &options.cache);
                node += 1;
            }
            match is_first {
                true => builder.op(node, LOAD, MTE2, cost::load(size), &[buf]),
                false => builder.op(node, "ACCESS", VECTOR, cost::vector("ACCESS", size), &[buf]),
            };
            if let Some(before) = before.replace(node) {
                builder.edge(before, node);
            }
            node += 1;
            if self.last[object] == i {
                builder.free(node, buf, size, &options.cache);
                node += 1;
            }
        }
        let provenance = Provenance { source: "trace", accesses: accesses.len(), objects: self.ids.len() };
        builder.meta(serde_json::to_string(&provenance).map_err(WorkloadError::Provenance)?);
        Ok(builder.build()?.0)
    }
}
