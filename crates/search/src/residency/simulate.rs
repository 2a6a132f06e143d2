//! The simulation of one cache over a window.

use super::BLOCK;
use super::cache::{Cache, NOWHERE, Use};
use crate::model::ItemIx;

/// The next use of a buffer that has none.
const NEVER: u32 = u32::MAX;
/// The next use of a buffer whose next use, behind the window, is charged already.
const PAID: u32 = u32::MAX - 1;

impl Cache {
    /// Simulates `items` at the positions from `first`, which begins a block, to the end of a block
    /// or of the order. Returns what their misses cost, and what uses behind the window now miss;
    /// `None` when that passes `limit`. With `COMMIT` the outcome becomes the state.
    pub(super) fn simulate<const COMMIT: bool>(&mut self, first: usize, items: &[ItemIx], limit: u64) -> Option<u64> {
        self.scratch.stamp += 1;
        self.find_next_uses(first, items);
        self.enter(first);
        if COMMIT {
            let blocks = first / BLOCK..(first + items.len()).div_ceil(BLOCK);
            self.charged[blocks].fill(0);
            self.take_uses(first, items);
        }
        let charged = self.run::<COMMIT>(first, items, limit);
        if COMMIT {
            self.leave(first + items.len());
        }
        for &b in &self.scratch.residents {
            self.bufs[b as usize].at = NOWHERE;
        }
        charged
    }

    /// Notes for every access of the window the position of the next use of its buffer.
    fn find_next_uses(&mut self, first: usize, items: &[ItemIx]) {
        let stamp = self.scratch.stamp;
        let mut accesses = 0;
        for &item in items {
            for access in self.accesses_of(item) {
                let (rank, buf) = (self.rank[access], &mut self.bufs[self.access_buf[access] as usize]);
                if buf.stamp == stamp {
                    buf.low = buf.low.min(rank);
                    buf.high = buf.high.max(rank);
                } else {
                    (buf.stamp, buf.low, buf.high) = (stamp, rank, rank);
                }
                accesses += 1;
            }
        }
        self.scratch.next.resize(accesses, NEVER);
        for (i, &item) in items.iter().enumerate().rev() {
            for access in self.accesses_of(item).rev() {
                accesses -= 1;
                let b = self.access_buf[access] as usize;
                let next = if self.bufs[b].next_stamp == stamp {
                    self.bufs[b].next
                } else {
                    self.use_behind(b, self.bufs[b].high + 1)
                };
                self.scratch.next[accesses] = next;
                (self.bufs[b].next, self.bufs[b].next_stamp) = ((first + i) as u32, stamp);
            }
        }
    }

    /// What the window needs to know of the use of `buf` at `rank`, which is behind the window.
    fn use_behind(&self, buf: usize, rank: u32) -> u32 {
        if rank >= self.bufs[buf].end_use {
            return NEVER;
        }
        let next = self.uses[rank as usize];
        if self.hit[next.access as usize] { next.pos } else { PAID }
    }

    /// Makes resident what stands in the snapshot at `first`.
    fn enter(&mut self, first: usize) {
        self.scratch.residents.clear();
        let snapshot = self.snapshots.get(first / BLOCK).map_or(&[][..], Vec::as_slice);
        self.scratch.residents.extend_from_slice(snapshot);
        for (at, &b) in self.scratch.residents.iter().enumerate() {
            self.bufs[b as usize].at = at as u32;
        }
    }

    fn run<const COMMIT: bool>(&mut self, first: usize, items: &[ItemIx], limit: u64) -> Option<u64> {
        let stamp = self.scratch.stamp;
        let residents = self.scratch.residents.iter();
        let mut used = residents.fold(0u64, |sum, &b| sum.saturating_add(self.bufs[b as usize].size));
        let (mut charged, mut seen) = (0u64, 0);
        for (i, &item) in items.iter().enumerate() {
            let pos = first + i;
            if COMMIT && pos.is_multiple_of(BLOCK) && i > 0 {
                self.snapshots[pos / BLOCK].clone_from(&self.scratch.residents);
            }
            for step in self.steps_of(item) {
                self.scratch.step += 1;
                let accesses = self.accesses_in(step);
                let mut needed = 0u64;
                for access in accesses.clone() {
                    let buf = &mut self.bufs[self.access_buf[access] as usize];
                    buf.pin = self.scratch.step;
                    let resident = buf.at != NOWHERE;
                    let is_first = buf.touched != stamp && buf.low == buf.first_use;
                    if !resident {
                        needed = needed.saturating_add(buf.size);
                        if buf.touched != stamp && !is_first {
                            charged += buf.cost;
                        }
                    }
                    buf.touched = stamp;
                    if COMMIT {
                        let cost = buf.cost;
                        let hit = resident || is_first;
                        self.set_hit(access, hit);
                        self.charged[pos / BLOCK] += if hit { 0 } else { cost };
                    }
                }
                if used.saturating_add(needed) > self.capacity {
                    charged += self.make_room(pos, &mut used, needed);
                    self.note_dropped::<COMMIT>(first + items.len());
                }
                if charged > limit {
                    return None;
                }
                used = used.saturating_add(needed);
                for access in accesses {
                    self.settle(access, self.scratch.next[seen], &mut used);
                    seen += 1;
                }
            }
        }
        Some(charged)
    }

    /// Ends the step for one access: its buffer is resident, or gone if that was its last use.
    fn settle(&mut self, access: usize, next: u32, used: &mut u64) {
        let b = self.access_buf[access];
        let buf = &mut self.bufs[b as usize];
        buf.next = next;
        if next == NEVER {
            *used -= buf.size.min(*used);
            self.remove(b);
        } else if buf.at == NOWHERE {
            buf.at = self.scratch.residents.len() as u32;
            self.scratch.residents.push(b);
        }
    }

    fn remove(&mut self, b: u32) {
        let at = std::mem::replace(&mut self.bufs[b as usize].at, NOWHERE);
        if at != NOWHERE {
            self.scratch.residents.swap_remove(at as usize);
            if let Some(&moved) = self.scratch.residents.get(at as usize) {
                self.bufs[moved as usize].at = at;
            }
        }
    }

    /// Evicts until `needed` bytes are free; returns what that costs.
    fn make_room(&mut self, pos: usize, used: &mut u64, needed: u64) -> u64 {
        let mut chosen = std::mem::take(&mut self.scratch.chosen);
        chosen.clear();
        while used.saturating_add(needed) > self.capacity {
            let missing = used.saturating_add(needed) - self.capacity;
            let Some(b) = self.worst_resident(pos, missing) else { break };
            *used -= self.bufs[b as usize].size;
            self.remove(b);
            chosen.push(b);
        }
        if chosen.len() > 1 {
            self.take_back(&mut chosen, used, needed);
        }
        let mut cost = 0;
        for &b in &chosen {
            let buf = &mut self.bufs[b as usize];
            buf.touched = self.scratch.stamp;
            cost += if buf.next == PAID { 0 } else { buf.cost };
        }
        self.scratch.chosen = chosen;
        cost
    }

    /// The resident that may go with the highest score, ties to the first buffer.
    fn worst_resident(&mut self, pos: usize, missing: u64) -> Option<u32> {
        let (mut best, mut best_score) = (None, -1.0);
        for i in 0..self.scratch.residents.len() {
            let b = self.scratch.residents[i];
            if self.bufs[b as usize].pin == self.scratch.step {
                continue;
            }
            self.look_up_next(b as usize, pos);
            let buf = &self.bufs[b as usize];
            let score = match buf.next {
                PAID | NEVER => f64::INFINITY,
                next => f64::from(next - pos as u32) * missing.min(buf.size) as f64 * buf.weight,
            };
            if score > best_score || (score == best_score && best.is_some_and(|other| b < other)) {
                (best, best_score) = (Some(b), score);
            }
        }
        best
    }

    /// Finds the next use of a resident that the window does not use.
    #[inline]
    fn look_up_next(&mut self, b: usize, pos: usize) {
        let buf = &self.bufs[b];
        if buf.next_stamp != self.scratch.stamp {
            let uses = &self.uses[buf.first_use as usize..buf.end_use as usize];
            let rank = buf.first_use + uses.partition_point(|u| u.pos < pos as u32) as u32;
            let next = self.use_behind(b, rank);
            (self.bufs[b].next, self.bufs[b].next_stamp, self.bufs[b].high) = (next, self.scratch.stamp, rank - 1);
        }
    }

    /// Takes back evictions without which there is room, dearest first.
    fn take_back(&mut self, chosen: &mut Vec<u32>, used: &mut u64, needed: u64) {
        let price = |bufs: &[super::cache::Buf], b: u32| match bufs[b as usize].next {
            PAID => 0,
            _ => bufs[b as usize].cost,
        };
        chosen.sort_unstable_by_key(|&b| (std::cmp::Reverse(price(&self.bufs, b)), b));
        chosen.retain(|&b| {
            let size = self.bufs[b as usize].size;
            let superfluous = used.saturating_add(needed).saturating_add(size) <= self.capacity;
            if superfluous {
                *used += size;
                self.bufs[b as usize].at = self.scratch.residents.len() as u32;
                self.scratch.residents.push(b);
            }
            !superfluous
        });
    }

    /// Remembers those just evicted whose next use is behind the window and was a hit.
    fn note_dropped<const COMMIT: bool>(&mut self, end: usize) {
        if COMMIT {
            let bufs = &self.bufs;
            let behind = |&&b: &&u32| (end..PAID as usize).contains(&(bufs[b as usize].next as usize));
            self.scratch.dropped.extend(self.scratch.chosen.iter().filter(behind));
        }
    }

    /// Lays the uses of the window in their new order.
    fn take_uses(&mut self, first: usize, items: &[ItemIx]) {
        for (i, &item) in items.iter().enumerate() {
            for access in self.accesses_of(item) {
                let buf = &mut self.bufs[self.access_buf[access] as usize];
                self.uses[buf.low as usize] = Use { pos: (first + i) as u32, access: access as u32 };
                self.rank[access] = buf.low;
                buf.low += 1;
            }
        }
        // `low` is the first rank again.
        for &item in items {
            for access in self.accesses_of(item) {
                let buf = &mut self.bufs[self.access_buf[access] as usize];
                buf.low = buf.low.min(self.rank[access]);
            }
        }
    }

    /// Brings what follows the window in line: uses that now miss, and residents that are none.
    fn leave(&mut self, end: usize) {
        while let Some(b) = self.scratch.dropped.pop() {
            let next = self.uses[self.bufs[b as usize].high as usize + 1];
            self.set_hit(next.access as usize, false);
            self.charged[next.pos as usize / BLOCK] += self.bufs[b as usize].cost;
        }
        let Some(snapshot) = self.snapshots.get_mut(end / BLOCK).filter(|_| end.is_multiple_of(BLOCK)) else { return };
        let old = std::mem::take(snapshot);
        for b in old {
            if self.bufs[b as usize].at != NOWHERE {
                self.snapshots[end / BLOCK].push(b);
                continue;
            }
            let buf = &self.bufs[b as usize];
            let uses = &self.uses[buf.first_use as usize..buf.end_use as usize];
            let next = uses[uses.partition_point(|u| (u.pos as usize) < end)..].first().map_or(end, |u| u.pos as usize);
            for block in end / BLOCK + 1..=next / BLOCK {
                let Some(at) = self.snapshots[block].iter().position(|&other| other == b) else { break };
                self.snapshots[block].swap_remove(at);
            }
        }
    }
}
