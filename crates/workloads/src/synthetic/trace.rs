//! Access traces: objects that are brought in at their first access and read at each, in one fixed
//! order, as a cache simulator replays them. An object lives from its first access to its last.
//!
//! * `trace-zipf`: independent accesses, popularity falling as rank^-skew (Breslau et al. 1999);
//! * `trace-loop`: all objects in turn, over and over, with some accesses at random: the worst case
//!   of least recently used;
//! * `trace-scan`: a hot set accessed at random, interrupted by runs over the cold objects;
//! * `trace-phases`: working sets that change from phase to phase (Denning 1968).

use super::program::Program;
use super::{BACKED, CACHE, CAPACITY, NODES, PRESSURE, SIZES, nodes};
use crate::draw::{Draw, Zipf};
use crate::emit::{Buf, Emitter};
use crate::error::WorkloadError;
use crate::registry::{Family, FamilyKind, Parameter, Values};

const OBJECTS: Parameter = Parameter::int("objects", "objects, at most an eighth of the nodes", 100, 1, 1_000_000);

const fn family(
    name: &'static str,
    doc: &'static str,
    parameters: &'static [Parameter],
    build: fn(&Values, u64) -> Result<Emitter, WorkloadError>,
) -> Family {
    Family { name, doc, kind: FamilyKind::Synthetic, seeded: true, parameters, nodes, build }
}

pub(crate) static ZIPF: Family = family(
    "trace-zipf",
    "access trace: independent draws, popularity falling as rank^-skew",
    &[
        NODES,
        OBJECTS,
        Parameter::decimal("skew", "popularity falls as rank^-skew", 800, 0, 4000),
        SIZES,
        BACKED,
        PRESSURE,
        CAPACITY,
        CACHE,
    ],
    |values, seed| {
        let zipf = Zipf::new(objects(values), values.get("skew"));
        replay(values, seed, |draw, _| zipf.draw(draw))
    },
);

pub(crate) static LOOP: Family = family(
    "trace-loop",
    "access trace: all objects in turn, over and over, with some random accesses",
    &[
        NODES,
        OBJECTS,
        Parameter::int("noise", "per cent of the accesses that are random", 5, 0, 100),
        SIZES,
        BACKED,
        PRESSURE,
        CAPACITY,
        CACHE,
    ],
    |values, seed| {
        let (objects, noise) = (objects(values), values.get("noise"));
        let mut next = 0;
        replay(values, seed, |draw, _| {
            if draw.chance(noise) {
                return draw.below(objects);
            }
            next = (next + 1) % objects;
            next
        })
    },
);

pub(crate) static SCAN: Family = family(
    "trace-scan",
    "access trace: a hot set at random, interrupted by runs over the cold objects",
    &[
        NODES,
        OBJECTS,
        Parameter::int("hot", "per cent of the objects that are hot", 20, 1, 99),
        Parameter::int("run", "cold objects of a run", 20, 1, 1_000_000),
        Parameter::int("pause", "hot accesses between two runs", 40, 1, 1_000_000),
        SIZES,
        BACKED,
        PRESSURE,
        CAPACITY,
        CACHE,
    ],
    |values, seed| {
        let [run, pause, hot] = ["run", "pause", "hot"].map(|name| values.get(name));
        let objects = objects(values);
        let hot = (objects * hot / 100).max(1);
        let cold = objects - hot;
        let mut next = 0;
        replay(values, seed, |draw, at| {
            if at % (run + pause) < pause || cold == 0 {
                return draw.below(hot);
            }
            next = (next + 1) % cold;
            hot + next
        })
    },
);

pub(crate) static PHASES: Family = family(
    "trace-phases",
    "access trace: random accesses to a working set that changes from phase to phase",
    &[
        NODES,
        OBJECTS,
        Parameter::int("phases", "phases", 5, 1, 10_000),
        Parameter::int("working", "per cent of the objects in a working set", 30, 1, 100),
        SIZES,
        BACKED,
        PRESSURE,
        CAPACITY,
        CACHE,
    ],
    |values, seed| {
        let [phases, working] = ["phases", "working"].map(|name| values.get(name));
        let mut set: Vec<_> = (0..objects(values)).collect();
        let working = (set.len() as u64 * working / 100).max(1);
        let length = (values.get("nodes") / phases).max(1);
        replay(values, seed, |draw, at| {
            if at % length == 0 {
                draw.shuffle(&mut set);
            }
            set[draw.below(working) as usize]
        })
    },
);

/// An object takes three nodes besides its accesses; small traces have fewer of them.
fn objects(values: &Values) -> u64 {
    values.get("objects").min(values.get("nodes") / 8)
}

/// Emits the accesses that `next` names, given the number of accesses so far.
fn replay(values: &Values, seed: u64, mut next: impl FnMut(&mut Draw, u64) -> u64) -> Result<Emitter, WorkloadError> {
    let mut program = Program::new(values, seed);
    let mut objects: Vec<Option<Buf>> = vec![None; objects(values) as usize];
    let mut last = None;
    let mut accesses = 0;
    while program.has_room(4) {
        let at = next(&mut program.draw, accesses) as usize;
        let buf = *objects[at].get_or_insert_with(|| program.source());
        last = Some(program.read(buf, last));
        accesses += 1;
    }
    program.finish()
}
