//! What happens when a request finds no hole: the strategies, in the order of the chain, and the
//! last resort.

use super::runs::Run;
use super::walk::{Room, Walk};
use super::workspace::Place;
use super::{Decision, Outcome, PlanError, Strategy, Victim};
use crate::address_space::Hole;
use crate::graph::Buffer;
use crate::heuristic::Request;
use crate::index::{BufIx, Pos};
use crate::plan::Cause;
use crate::units::{BufId, Bytes};

/// A scored buffer that may be evicted.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    score: f64,
    id: BufId,
    buf: BufIx,
    /// Its place among the blocks of its cache.
    place: usize,
}

impl Candidate {
    /// Orders by score, highest first, then by buffer id.
    fn before(&self, other: &Self) -> std::cmp::Ordering {
        other.score.total_cmp(&self.score).then(self.id.cmp(&other.id))
    }
}

/// A failed request and what was measured when it failed.
#[derive(Clone, Copy, Debug)]
struct Failure {
    request: Request,
    buf: BufIx,
    is_alloc: bool,
    free: Bytes,
    largest_hole: Bytes,
    cause: Cause,
}

impl Walk<'_> {
    /// Finds or makes room for `b`.
    pub(super) fn make_room(&mut self, b: BufIx, is_alloc: bool) -> Result<Room, PlanError> {
        let (cache, needed) = (self.graph.buf(b).cache, self.graph.buf(b).size);
        self.counters.requests += 1;
        if let Some(hole) = self.find_hole(b) {
            return Ok(Room::Hole(hole));
        }
        self.counters.failed_requests += 1;
        let (free, largest_hole) = (self.ws.spaces[cache].free_bytes(), self.ws.spaces[cache].largest_free());
        let request = Request { cache, pos: self.pos, needed, missing: needed - largest_hole };
        let cause = if free < needed { Cause::Capacity } else { Cause::Fragmentation };
        let failure = Failure { request, buf: b, is_alloc, free, largest_hole, cause };
        self.runs.load(&self.ws.spaces[cache]);
        for link in 0.. {
            match self.chain_for(&failure).get(link) {
                None => break,
                Some(Strategy::Postpone) => {
                    if let Some(pos) = self.postpone(&failure) {
                        self.report(&failure, Outcome::PostponedTo(pos), &[], None);
                        return Ok(Room::Postponed);
                    }
                }
                Some(&strategy) => {
                    if let Some(hole) = self.evict_by(strategy, &failure)? {
                        return Ok(Room::Hole(hole));
                    }
                }
            }
        }
        self.last_resort(&failure)
    }

    fn chain_for(&self, failure: &Failure) -> &[Strategy] {
        if self.evict_last[failure.request.cache] { &self.chain_evict_last } else { &self.chain }
    }

    /// Evicts what `strategy` chooses; `None` when it finds no way.
    fn evict_by(&mut self, strategy: Strategy, failure: &Failure) -> Result<Option<Hole>, PlanError> {
        let chosen = match strategy {
            Strategy::Single => self.choose_single(failure).into_iter().collect(),
            Strategy::Multi => self.choose_multi(failure),
            Strategy::Window => self.choose_window(failure),
            Strategy::Postpone => Vec::new(),
        };
        if chosen.is_empty() {
            return Ok(None);
        }
        // The runner-up is looked for while the chosen still stand in their places.
        let runner_up = self.observer.is_some().then(|| self.runner_up(failure, &chosen)).flatten();
        let victims = self.victims(&chosen);
        for candidate in &chosen {
            self.evict(candidate.buf, failure.cause)?;
        }
        match strategy {
            Strategy::Single => self.counters.single += 1,
            Strategy::Multi => self.counters.multi += 1,
            Strategy::Window | Strategy::Postpone => self.counters.window += 1,
        }
        self.report(failure, Outcome::Evicted(strategy), &victims, runner_up);
        Ok(self.find_hole(failure.buf))
    }

    fn may_go(&self, buf: BufIx, failure: &Failure) -> bool {
        // Only an op pins, and only while it brings back its operands.
        failure.is_alloc || self.ws.pinned_by[buf] != self.pin_stamp()
    }

    fn candidate(&self, failure: &Failure, place: usize, buf: BufIx) -> Candidate {
        let score = self.victim.score(self.view(), &failure.request, buf);
        Candidate { score, id: self.graph.buf(buf).id, buf, place }
    }

    /// The best victim among those whose eviction alone opens a large enough hole.
    fn choose_single(&mut self, failure: &Failure) -> Option<Candidate> {
        let mut best: Option<Candidate> = None;
        let mut scores = 0;
        for (place, _, buf) in self.runs.residents() {
            let enough = self.runs.hole(place, place).1 >= failure.request.needed;
            if enough && self.may_go(buf, failure) {
                scores += 1;
                let candidate = self.candidate(failure, place, buf);
                if best.is_none_or(|b| candidate.before(&b).is_lt()) {
                    best = Some(candidate);
                }
            }
        }
        self.counters.scores += scores;
        best
    }

    fn candidates(&mut self, failure: &Failure) -> Vec<Candidate> {
        let candidates: Vec<_> = self
            .runs
            .residents()
            .filter(|&(_, _, buf)| self.may_go(buf, failure))
            .map(|(place, _, buf)| self.candidate(failure, place, buf))
            .collect();
        self.counters.scores += candidates.len() as u64;
        candidates
    }

    /// Victims in heuristic order until a hole is open, without the superfluous.
    fn choose_multi(&mut self, failure: &Failure) -> Vec<Candidate> {
        let mut chosen = self.candidates(failure);
        chosen.sort_unstable_by(Candidate::before);
        let mut open: Option<(usize, Run)> = None;
        for (taken, candidate) in chosen.iter().enumerate() {
            let (run, bytes) = self.runs.open(candidate.place);
            if bytes >= failure.request.needed {
                open = Some((taken + 1, run));
                break;
            }
        }
        let Some((taken, run)) = open else {
            self.runs.load(&self.ws.spaces[failure.request.cache]);
            return Vec::new();
        };
        chosen.truncate(taken);
        self.runs.give_back(run, failure.request.needed, &mut chosen, |c| c.place);
        chosen
    }

    /// The buffers under the address window of the least Σ movement cost / max(score, 1), then of
    /// the fewest bytes, then of the lowest address.
    fn choose_window(&mut self, failure: &Failure) -> Vec<Candidate> {
        let candidates = self.candidates(failure);
        let needed = failure.request.needed;
        let price = |c: &Candidate| self.graph.buf(c.buf).movement().0 as f64 / c.score.max(1.0);
        let sums = PrefixSums::of(candidates.iter().map(price));
        let bytes = |c: &Candidate| u128::from(self.graph.buf(c.buf).size.0);
        let byte_sums: Vec<u128> = std::iter::once(0)
            .chain(candidates.iter().scan(0, |sum, c| {
                *sum += bytes(c);
                Some(*sum)
            }))
            .collect();
        // A pinned buffer between two candidates ends every window.
        let adjoin = |a: &Candidate, b: &Candidate| !self.runs.occupied_between(a.place, b.place);
        let (mut first, mut best) = (0, None::<(f64, u128, usize, usize)>);
        for last in 0..candidates.len() {
            if last > 0 && !adjoin(&candidates[last - 1], &candidates[last]) {
                first = last;
            }
            while first <= last && self.runs.hole(candidates[first].place, candidates[last].place).1 >= needed {
                let (price, bytes) = (sums.between(first, last + 1), byte_sums[last + 1] - byte_sums[first]);
                // Windows come by rising address, so that only a better one replaces the best.
                if best.is_none_or(|b| price.total_cmp(&b.0).then(bytes.cmp(&b.1)).is_lt()) {
                    best = Some((price, bytes, first, last));
                }
                first += 1;
            }
        }
        best.map_or(Vec::new(), |(_, _, first, last)| candidates[first..=last].to_vec())
    }

    /// Puts the `ALLOC` behind the earliest later `FREE` that, were nothing else allocated meanwhile,
    /// opens a large enough hole, if that stands before the buffer's first successor.
    fn postpone(&mut self, failure: &Failure) -> Option<Pos> {
        let b = failure.buf;
        if !failure.is_alloc || self.ws.attempts[b] == 0 || self.reserved.bound(self.node) {
            return None;
        }
        let limit = self.ws.first_successor[b];
        let mut frees: Vec<_> = self
            .runs
            .residents()
            .map(|(place, _, buf)| (self.ws.states[buf].free, place))
            .filter(|f| f.0 < limit)
            .collect();
        frees.sort_unstable();
        let opens = frees.iter().find(|f| {
            self.runs.open(f.1).1 >= failure.request.needed
                && self.reserved.allow(failure.request.cache, failure.request.needed, f.0)
        });
        let pos = opens.map(|f| f.0);
        match pos {
            Some(pos) => {
                self.ws.attempts[b] -= 1;
                self.counters.postponed += 1;
                self.ws.waiting.entry(pos).or_default().push(self.node);
            }
            None => self.runs.load(&self.ws.spaces[failure.request.cache]),
        }
        pos
    }

    /// Evicts every non-operand of the cache; if that is not enough, moves the resident operands out
    /// and reloads all operands from offset 0 in `Bufs` order.
    fn last_resort(&mut self, failure: &Failure) -> Result<Room, PlanError> {
        let cache = failure.request.cache;
        self.counters.last_resort += 1;
        let residents: Vec<_> = self.runs.residents().map(|(place, _, buf)| (place, buf)).collect();
        let gone: Vec<_> = residents.iter().filter(|r| self.may_go(r.1, failure)).map(|&r| unscored(r)).collect();
        let mut victims = self.victims(&gone);
        for candidate in &gone {
            self.evict(candidate.buf, failure.cause)?;
        }
        if let Some(hole) = self.find_hole(failure.buf) {
            self.report(failure, Outcome::LastResort { repack: false }, &victims, None);
            return Ok(Room::Hole(hole));
        }
        self.counters.repacks += 1;
        let stayed: Vec<_> = residents.iter().filter(|r| !self.may_go(r.1, failure)).map(|&r| unscored(r)).collect();
        victims.extend(self.victims(&stayed));
        for candidate in &stayed {
            self.evict(candidate.buf, failure.cause)?;
        }
        self.report(failure, Outcome::LastResort { repack: true }, &victims, None);
        for &b in self.graph.operands(self.node) {
            let buf = self.graph.buf(b);
            // The cache holds nothing else, so the first fit is the end of the operand before.
            if buf.cache == cache
                && let Some(hole) = self.ws.spaces[cache].first_fit(buf.size)
            {
                self.reload(b, hole);
            }
        }
        Ok(Room::Repacked)
    }

    /// What the observer is told of `chosen`, before they go; empty when nobody listens.
    fn victims(&self, chosen: &[Candidate]) -> Vec<Victim> {
        if self.observer.is_none() {
            return Vec::new();
        }
        chosen.iter().filter_map(|c| self.as_victim(c.buf, c.score)).collect()
    }

    /// A resident buffer as one that goes.
    pub(super) fn as_victim(&self, buf: BufIx, score: f64) -> Option<Victim> {
        let Place::Resident(block) = self.ws.places[buf] else { return None };
        let &Buffer { cache, size, .. } = self.graph.buf(buf);
        Some(Victim { buf, score, offset: self.ws.spaces[cache].start(block), size })
    }

    /// The best-scored buffer that may go and was not chosen.
    fn runner_up(&mut self, failure: &Failure, chosen: &[Candidate]) -> Option<(BufIx, f64)> {
        let others = self
            .runs
            .residents()
            .filter(|&(place, _, buf)| self.may_go(buf, failure) && chosen.iter().all(|c| c.place != place));
        let best = others.map(|(place, _, buf)| self.candidate(failure, place, buf)).min_by(Candidate::before);
        best.map(|c| (c.buf, c.score))
    }

    fn report(&mut self, failure: &Failure, outcome: Outcome, victims: &[Victim], runner_up: Option<(BufIx, f64)>) {
        let Some(observer) = self.observer.as_deref_mut() else { return };
        let hole = match outcome {
            Outcome::PostponedTo(_) => None,
            _ => self.ws.spaces[failure.request.cache].largest_hole(),
        };
        observer.decided(&Decision {
            node: self.node,
            buf: failure.buf,
            request: failure.request,
            free: failure.free,
            largest_hole: failure.largest_hole,
            cause: failure.cause,
            outcome,
            victims,
            runner_up,
            hole,
        });
    }
}

fn unscored((place, buf): (usize, BufIx)) -> Candidate {
    Candidate { score: f64::NAN, id: BufId(0), buf, place }
}

/// Sums of any stretch of a sequence of numbers, in double-double arithmetic, so that equal windows
/// get equal sums wherever they begin.
struct PrefixSums(Vec<(f64, f64)>);

impl PrefixSums {
    fn of(terms: impl Iterator<Item = f64>) -> Self {
        let mut sums = vec![(0.0, 0.0)];
        let (mut high, mut low) = (0.0, 0.0);
        for term in terms {
            let (sum, error) = two_sum(high, term);
            (high, low) = two_sum(sum, low + error);
            sums.push((high, low));
        }
        Self(sums)
    }

    /// The sum of terms `first..end`.
    fn between(&self, first: usize, end: usize) -> f64 {
        let (from, to) = (self.0[first], self.0[end]);
        let (difference, error) = two_sum(to.0, -from.0);
        difference + (error + (to.1 - from.1))
    }
}

/// The rounded sum and its exact rounding error (Knuth, TAOCP vol. 2, 4.2.2).
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_part = sum - a;
    let a_part = sum - b_part;
    (sum, (a - a_part) + (b - b_part))
}
