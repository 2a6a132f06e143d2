//! The least movement of a restriction over all its orders, by Dijkstra's algorithm.
//!
//! A state is the set of ops done and the set of live buffers that are out; the other live buffers
//! are resident. A spill is charged when the buffer goes out; coming back is free. Buffers go out
//! only when an op needs the room, and only inclusion-minimal choices are tried, since one more
//! could go later at the same price. Three rules keep the states few:
//!
//! - A state is dropped when another with the same ops done is at least as good: a buffer that is
//!   out and paid for takes no room and comes back for nothing, so it is worth no less than when it
//!   were resident; and what is resident may yet be paid for. So `(D, out₂)` at distance `d₂`
//!   supersedes `(D, out₁)` at `d₁` when `d₂ + cost(out₁ \ out₂) ≤ d₁`.
//! - An op is run at once when it is ready, its operands fit as things are, each operand that lives
//!   is resident or ends with this op, and the op leaves no new buffer live: run later, it would
//!   need the same and give the same.
//! - The same holds when it leaves one new buffer that is no larger and no costlier than a resident
//!   one that ends with this op: whatever becomes of the old one until then can become of the new.

use super::bits::{self, Bits};
use super::restrict::Restriction;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// What the search proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// No plan of the restriction moves less.
    pub bound: u64,
    /// Whether some plan of it, capacity counted in bytes, moves just that.
    pub optimal: bool,
    /// States generated.
    pub states: u64,
}

/// Searches until the optimum is known or `limit` states have been generated.
pub(super) fn least_movement(problem: &Restriction, limit: u64) -> Found {
    let mut search = Search::new(problem, None);
    let (bound, end) = search.run_until(u64::MAX, limit);
    Found { bound, optimal: end.is_some(), states: search.generated }
}

/// Whether every plan of a restriction moves as much as asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// It does.
    Yes,
    /// A plan moves less: how often it spills each buffer.
    No(Vec<u64>),
    /// The states did not suffice.
    Unknown,
}

/// Whether no plan moves less than `target`, and the states that finding out took, `limit` at most.
pub(super) fn reaches(problem: &Restriction, target: u64, limit: u64) -> (Reach, u64) {
    let mut search = Search::new(problem, Some(Vec::new()));
    let reach = match search.run_until(target, limit) {
        (distance, _) if distance >= target => Reach::Yes,
        (_, Some(end)) => Reach::No(search.spills(end)),
        (_, None) => Reach::Unknown,
    };
    (reach, search.generated)
}

#[derive(Clone)]
struct State {
    done: Bits,
    out: Bits,
    distance: u64,
}

struct Search<'a> {
    problem: &'a Restriction,
    op_words: usize,
    buf_words: usize,
    /// Numbers of the sets of done ops.
    sets: FxHashMap<Bits, u32>,
    /// The states of every such set that no other supersedes, by number.
    fronts: Vec<Vec<u32>>,
    states: Vec<State>,
    queue: BTreeMap<u64, Vec<u32>>,
    generated: u64,
    /// Where the way of a state is asked for: the state before each, and what went out on the way from
    /// it.
    trail: Option<Vec<Step>>,
}

/// The state before, and what went out.
type Step = (Option<u32>, Box<[usize]>);

/// What a buffer is when some ops are done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    New,
    Live,
    Dead,
}

impl<'a> Search<'a> {
    fn new(problem: &'a Restriction, trail: Option<Vec<Step>>) -> Self {
        Self {
            problem,
            op_words: bits::words(problem.ops()),
            buf_words: bits::words(problem.sizes.len()),
            sets: FxHashMap::default(),
            fronts: Vec::new(),
            states: Vec::new(),
            queue: BTreeMap::new(),
            generated: 0,
            trail,
        }
    }

    /// Searches until all states nearer than `target` are known, an end is met, or `limit` states have
    /// been generated. Returns a distance that every plan reaches, and the end if that was met below
    /// the target.
    fn run_until(&mut self, target: u64, limit: u64) -> (u64, Option<u32>) {
        let mut start = State { done: bits::empty(self.op_words), out: bits::empty(self.buf_words), distance: 0 };
        self.run_free_ops(&mut start);
        self.add(start, None, &[]);
        let mut bound = 0;
        while let Some((distance, at)) = self.pop() {
            bound = distance;
            if distance >= target {
                break;
            }
            if self.is_end(at) {
                return (bound, Some(at));
            }
            if self.generated >= limit {
                break;
            }
            self.expand(at, limit);
        }
        (bound, None)
    }

    /// How often each buffer goes out on the way to a state.
    fn spills(&self, end: u32) -> Vec<u64> {
        let mut counts = vec![0; self.problem.sizes.len()];
        let (mut at, trail) = (Some(end), self.trail.as_deref().unwrap_or_default());
        while let Some((before, out)) = at.and_then(|at| trail.get(at as usize)) {
            out.iter().for_each(|&b| counts[b] += 1);
            at = *before;
        }
        counts
    }

    fn life(&self, done: &[u64], b: usize) -> Life {
        let users = &self.problem.users[b];
        if bits::is_disjoint(users, done) {
            Life::New
        } else if bits::is_subset(users, done) {
            Life::Dead
        } else {
            Life::Live
        }
    }

    /// True when `op` is the last user of `b` that is not done.
    fn ends(&self, done: &[u64], b: usize, op: usize) -> bool {
        bits::difference(&self.problem.users[b], done).eq([op])
    }

    fn is_end(&self, at: u32) -> bool {
        let done: u32 = self.states[at as usize].done.iter().map(|w| w.count_ones()).sum();
        done as usize == self.problem.ops()
    }

    fn ready(&self, done: &[u64]) -> Vec<usize> {
        let before = &self.problem.before;
        let is_ready = |&op: &usize| !bits::contains(done, op) && bits::is_subset(&before[op], done);
        (0..self.problem.ops()).filter(is_ready).collect()
    }

    /// The bytes of the buffers that are resident.
    fn taken(&self, state: &State) -> u64 {
        self.residents(state).map(|b| self.problem.sizes[b]).sum()
    }

    fn residents(&self, state: &State) -> impl Iterator<Item = usize> {
        (0..self.problem.sizes.len())
            .filter(|&b| !bits::contains(&state.out, b) && self.life(&state.done, b) == Life::Live)
    }

    /// Runs ops that cost nothing to run now, until there are none.
    fn run_free_ops(&self, state: &mut State) {
        let mut taken = self.taken(state);
        let mut again = true;
        while again {
            again = false;
            for op in self.ready(&state.done) {
                if let Some(after) = self.is_free(state, op, taken) {
                    taken = after;
                    self.run(state, op);
                    again = true;
                }
            }
        }
    }

    /// The bytes taken after `op`, if the rules allow to run it at once.
    fn is_free(&self, state: &State, op: usize, taken: u64) -> Option<u64> {
        let (mut needed, mut after) = (taken, taken);
        let mut left: Option<usize> = None;
        let mut replaced = false;
        for b in self.problem.operands[op].iter().map(|&b| b as usize) {
            let (size, ends) = (self.problem.sizes[b], self.ends(&state.done, b, op));
            match self.life(&state.done, b) {
                Life::New => {
                    needed += size;
                    if !ends {
                        if left.is_some() {
                            return None;
                        }
                        left = Some(b);
                        after += size;
                    }
                }
                _ if bits::contains(&state.out, b) => {
                    if !ends {
                        return None;
                    }
                    needed += size;
                }
                _ if ends => after -= size,
                _ => {}
            }
        }
        if let Some(new) = left {
            let (sizes, costs) = (&self.problem.sizes, &self.problem.costs);
            replaced = self.problem.operands[op].iter().map(|&b| b as usize).any(|b| {
                self.life(&state.done, b) == Life::Live
                    && !bits::contains(&state.out, b)
                    && self.ends(&state.done, b, op)
                    && sizes[new] <= sizes[b]
                    && costs[new] <= costs[b]
            });
        }
        (needed <= self.problem.room[op] && (left.is_none() || replaced)).then_some(after)
    }

    /// Marks `op` as done; its operands are resident or dead now.
    fn run(&self, state: &mut State, op: usize) {
        bits::insert(&mut state.done, op);
        self.problem.operands[op].iter().for_each(|&b| bits::remove(&mut state.out, b as usize));
    }

    /// Adds a state unless another supersedes it; it follows `before` by letting `out` go.
    fn add(&mut self, state: State, before: Option<u32>, out: &[usize]) {
        self.generated += 1;
        let number = self.fronts.len() as u32;
        let set = match self.sets.get(&state.done) {
            Some(&set) => set,
            None => {
                self.sets.insert(state.done.clone(), number);
                self.fronts.push(Vec::new());
                number
            }
        };
        let front = &self.fronts[set as usize];
        // Long fronts take time to compare with.
        self.generated += front.len() as u64 / 32;
        if front.iter().any(|&other| self.supersedes(&self.states[other as usize], &state)) {
            return;
        }
        let kept: Vec<u32> =
            front.iter().copied().filter(|&other| !self.supersedes(&state, &self.states[other as usize])).collect();
        let at = self.states.len() as u32;
        self.fronts[set as usize] = kept;
        self.fronts[set as usize].push(at);
        self.queue.entry(state.distance).or_default().push(at);
        self.states.push(state);
        if let Some(trail) = &mut self.trail {
            trail.push((before, out.into()));
        }
    }

    /// Both have the same ops done.
    fn supersedes(&self, better: &State, worse: &State) -> bool {
        if better.distance > worse.distance {
            return false;
        }
        let more = bits::difference(&worse.out, &better.out).map(|b| self.problem.costs[b]);
        more.fold(better.distance, u64::saturating_add) <= worse.distance
    }

    /// The nearest state that no other supersedes.
    fn pop(&mut self) -> Option<(u64, u32)> {
        loop {
            let mut nearest = self.queue.first_entry()?;
            let distance = *nearest.key();
            let at = nearest.get_mut().pop();
            if nearest.get().is_empty() {
                nearest.remove();
            }
            let Some(at) = at else { continue };
            let set = self.sets[&self.states[at as usize].done];
            if self.fronts[set as usize].contains(&at) {
                return Some((distance, at));
            }
        }
    }

    /// Adds what may follow a state: every ready op, with every minimal choice of what goes out.
    fn expand(&mut self, at: u32, limit: u64) {
        let state = self.states[at as usize].clone();
        let taken = self.taken(&state);
        for op in self.ready(&state.done) {
            let operands = &self.problem.operands[op];
            let is_operand = |b: usize| operands.iter().any(|&o| o as usize == b);
            let absent = operands
                .iter()
                .map(|&b| b as usize)
                .filter(|&b| self.life(&state.done, b) == Life::New || bits::contains(&state.out, b));
            let needed = absent.map(|b| self.problem.sizes[b]).sum::<u64>() + taken;
            let missing = needed.saturating_sub(self.problem.room[op]);
            let mut movable: Vec<usize> = self.residents(&state).filter(|&b| !is_operand(b)).collect();
            movable.sort_by_key(|&b| std::cmp::Reverse(self.problem.sizes[b]));
            let mut choices = Choices::new(&self.problem.sizes, &movable, missing);
            while let Some(choice) = choices.next() {
                let mut next = state.clone();
                for &b in choice {
                    bits::insert(&mut next.out, b);
                    next.distance = next.distance.saturating_add(self.problem.costs[b]);
                }
                self.run(&mut next, op);
                self.run_free_ops(&mut next);
                self.add(next, Some(at), choice);
                if self.generated >= limit {
                    // What was not added is no nearer than this state, whose distance is the bound.
                    self.queue.entry(state.distance).or_default().push(at);
                    return;
                }
            }
        }
    }
}

/// The inclusion-minimal sets of buffers of at least `missing` bytes, one by one.
struct Choices<'a> {
    sizes: &'a [u64],
    /// By falling size, so that a set is minimal when it was short before its last member.
    movable: &'a [usize],
    /// Bytes of `movable[i..]`.
    rest: Vec<u64>,
    missing: u64,
    /// Places of the members of the current set, and their buffers.
    places: Vec<usize>,
    chosen: Vec<usize>,
    bytes: u64,
    started: bool,
}

impl<'a> Choices<'a> {
    fn new(sizes: &'a [u64], movable: &'a [usize], missing: u64) -> Self {
        let mut rest = vec![0; movable.len() + 1];
        for i in (0..movable.len()).rev() {
            rest[i] = rest[i + 1] + sizes[movable[i]];
        }
        Self { sizes, movable, rest, missing, places: Vec::new(), chosen: Vec::new(), bytes: 0, started: false }
    }

    fn next(&mut self) -> Option<&[usize]> {
        let mut from = 0;
        if self.started {
            from = self.drop_last()?;
        }
        self.started = true;
        while self.bytes < self.missing {
            if self.bytes + self.rest[from] >= self.missing {
                self.places.push(from);
                self.chosen.push(self.movable[from]);
                self.bytes += self.sizes[self.movable[from]];
                from += 1;
            } else {
                from = self.drop_last()?;
            }
        }
        Some(&self.chosen)
    }

    /// Takes the last member back and returns the place behind it.
    fn drop_last(&mut self) -> Option<usize> {
        let place = self.places.pop()?;
        self.chosen.pop();
        self.bytes -= self.sizes[self.movable[place]];
        Some(place + 1)
    }
}
