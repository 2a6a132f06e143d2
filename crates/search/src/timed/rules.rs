//! How the decoder chooses: the few numbers that its rules leave open.

use super::program::{Buf, Program};
use crate::draw::Draw;

/// How much the cost of evicting falls with the distance of the next use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fall {
    Root,
    Linear,
    ThreeHalves,
    Square,
}

/// The rules of the decoder. Which serve a graph best is for the search to find.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rules {
    /// Bytes left over in a hole that one cycle of waiting for it is worth.
    pub wait: f64,
    /// Cost of evicting that one cycle of waiting is worth.
    pub stall: f64,
    pub fall: Fall,
    /// Buffers smaller than this go to the high end of a hole.
    pub high_below: u64,
}

const WAITS: [f64; 5] = [0.0, 0.25, 1.0, 4.0, 16.0];
const STALLS: [f64; 6] = [0.0, 0.002, 0.01, 0.05, 0.2, 1.0];
const FALLS: [Fall; 4] = [Fall::Root, Fall::Linear, Fall::ThreeHalves, Fall::Square];

impl Default for Rules {
    fn default() -> Self {
        Self { wait: 1.0, stall: 0.01, fall: Fall::Linear, high_below: 0 }
    }
}

impl Rules {
    /// Rules drawn at random.
    pub(super) fn drawn(program: &Program<'_>, draw: &mut Draw) -> Self {
        Self::default().varied(program, draw).varied(program, draw).varied(program, draw).varied(program, draw)
    }

    /// The rules with one number drawn anew.
    pub(super) fn varied(mut self, program: &Program<'_>, draw: &mut Draw) -> Self {
        match draw.below(4) {
            0 => self.wait = WAITS[draw.below(WAITS.len())],
            1 => self.stall = STALLS[draw.below(STALLS.len())],
            2 => self.fall = FALLS[draw.below(FALLS.len())],
            _ => {
                let at = draw.below(program.bufs.len().max(1) * 2);
                self.high_below = program.bufs.get(at).map_or(0, |b| b.size);
            }
        }
        self
    }

    /// What evicting a buffer costs that is needed again that many items later.
    #[inline]
    pub(super) fn eviction(&self, buf: &Buf, distance: f64) -> f64 {
        let fallen = match self.fall {
            Fall::Root => distance.sqrt(),
            Fall::Linear => distance,
            Fall::ThreeHalves => distance * distance.sqrt(),
            Fall::Square => distance * distance,
        };
        (buf.moved as f64 + buf.price as f64 * 1e-3) / fallen
    }

    #[inline]
    pub(super) fn is_high(&self, buf: &Buf) -> bool {
        buf.size < self.high_below
    }
}
