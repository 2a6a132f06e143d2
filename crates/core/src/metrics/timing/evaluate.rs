//! Start and end of every step: all at once, or those that a change reaches.

use super::network::{NONE, TimedPlan};
use crate::index::{Pos, StepIx};
use crate::units::Cycles;

/// Positions that are to be timed again, one bit each.
#[derive(Debug, Default)]
pub(super) struct Marks {
    words: Vec<u64>,
}

impl Marks {
    pub(super) fn new(positions: usize) -> Self {
        Self { words: vec![0; positions.div_ceil(64)] }
    }

    #[inline]
    pub(super) fn set(&mut self, pos: Pos) {
        self.words[pos.index() / 64] |= 1 << (pos.index() % 64);
    }

    /// Takes the first mark of a word.
    #[inline]
    fn take(&mut self, word: usize) -> Option<Pos> {
        let bits = self.words[word];
        if bits == 0 {
            return None;
        }
        self.words[word] = bits & (bits - 1);
        Some(Pos::new(64 * word + bits.trailing_zeros() as usize))
    }
}

impl TimedPlan<'_> {
    /// When the last step ends.
    pub fn makespan(&self) -> Cycles {
        // A cache node ends with some step that ran on a pipe, or at 0.
        let ends = self.pipe_last.iter().filter(|&&s| s != NONE).map(|&s| self.ends[s]);
        ends.max().unwrap_or_default()
    }

    /// Times all steps in order.
    pub(super) fn evaluate(&mut self) {
        for pos in 0..self.order.len() {
            let step = self.order[Pos::new(pos)];
            let start = self.earliest(step);
            self.starts[step] = start;
            self.ends[step] = start + self.cycles[step];
        }
    }

    /// When a step can start, everything it waits for being timed.
    #[inline]
    fn earliest(&self, step: StepIx) -> Cycles {
        let mut start = Cycles(0);
        self.for_each_link(step, |link| start = start.max(self.ends[link.from]));
        start
    }

    /// Times the marked steps again, from position `from` on, and all that wait for one whose end
    /// changes. Ends where times agree again.
    pub(super) fn propagate(&mut self, from: Pos) {
        let mut marks = std::mem::take(&mut self.scratch.marks);
        for word in from.index() / 64..marks.words.len() {
            // Who waits for a step stands behind it, so that no mark appears before the one taken.
            while let Some(pos) = marks.take(word) {
                let step = self.order[pos];
                let start = self.earliest(step);
                let end = start + self.cycles[step];
                self.starts[step] = start;
                if self.ends[step] != end {
                    self.ends[step] = end;
                    self.for_each_follower(step, |follower| marks.set(self.places[follower]));
                }
            }
        }
        self.scratch.marks = marks;
    }
}
