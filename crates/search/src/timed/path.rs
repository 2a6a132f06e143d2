//! What holds up a plan: its critical path, and the buffers that come back.

use super::clock::{Tagged, Why};
use super::decode::Sink;
use super::program::Buf;
use crate::evaluator::Gap;

/// One wait on the critical path: the item at position `from` holds up the one at `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub from: usize,
    pub to: usize,
    pub why: Why,
}

/// Notes every event of a plan and what it waits for.
#[derive(Debug, Default)]
pub(super) struct Watcher {
    events: Vec<(usize, Tagged)>,
    /// The event that ends last, and when.
    last: Option<(usize, u64)>,
    pub spills: Vec<Gap>,
}

impl Watcher {
    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.events.clear();
        self.spills.clear();
        self.last = None;
    }

    /// The waits between different items along the critical path, backward from the end.
    pub(super) fn path(&self, path: &mut Vec<Wait>) {
        path.clear();
        let mut at = self.last.map(|l| l.0);
        while let Some(&(to, start)) = at.and_then(|e| self.events.get(e)) {
            // An event waits for an earlier one.
            let before = self.events[..at.unwrap_or(0)].get(start.event as usize);
            let Some(&(from, _)) = before else { return };
            if from < to {
                path.push(Wait { from, to, why: start.why });
            }
            at = Some(start.event as usize);
        }
    }
}

impl Sink<Tagged> for Watcher {
    fn event(&mut self, pos: usize, start: Tagged, cycles: u64) -> u32 {
        let (event, end) = (self.events.len(), start.at + cycles);
        if self.last.is_none_or(|l| end >= l.1) {
            self.last = Some((event, end));
        }
        self.events.push((pos, start));
        event as u32
    }

    fn back(&mut self, _buf: &Buf, _offset: u64, since: usize, pos: usize) {
        if since < pos {
            self.spills.push(Gap { from: since, to: pos });
        }
    }
}
