//! Choices that pack, made by leaving room on purpose.
//!
//! A choice that fills every byte of many steps is hard to pack, or does not pack at all; one that
//! leaves some room mostly packs at once and costs little more. So the cheapest choice is sought for a
//! cache that is smaller by a *margin*: first by one for all steps, halved until the choice no longer
//! packs, then with less of it over ever shorter runs of steps.

use super::packing::Packable;
use super::relax::State;
use super::stretches::Stretches;
use crate::pack::{Budget, Verdict};
use spillbench_core::Bytes;

/// How often the margin of all steps is halved.
const HALVINGS: u32 = 8;

/// The shortest runs of steps whose margin is tried alone.
const SHORTEST: usize = 8;

/// Nodes that one packing may take in the first round, and by how much they grow from round to round.
const PACK_NODES: u64 = 500;
const GROWTH: u64 = 4;

/// The parts of a margin that are taken from a run of steps: all of it, a half, a quarter.
const TAKEN: [u64; 3] = [1, 2, 4];

/// How a choice with margins comes out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Probe {
    /// It packs and is the best so far.
    Packs,
    /// It does not pack, or not soon.
    Fails,
    /// It is no better than the best so far.
    Costs,
}

/// A search for choices that pack, which can be gone on with.
pub(super) struct Squeeze<'a> {
    of: &'a Stretches,
    grain: u64,
    /// Nodes of one packing.
    nodes: u64,
    /// The margin of each step, those of the best choice.
    margins: Vec<u64>,
    /// The length of the runs to try and the first step of the next; `None` before a round.
    next: Option<(usize, usize)>,
    /// No choice that packs costs less.
    bound: u64,
    /// What is to be beaten.
    below: u64,
    best: Option<Packable>,
}

impl<'a> Squeeze<'a> {
    pub fn new(of: &'a Stretches, grain: u64) -> Self {
        let margins = vec![0; of.model.steps.len()];
        Self { of, grain, nodes: PACK_NODES, margins, next: None, bound: 0, below: u64::MAX, best: None }
    }

    /// Searches on for a choice that packs and costs less than `below`, to the end of a round or of the
    /// budget; ends early at `bound`.
    pub fn run(&mut self, (bound, below): (u64, u64), budget: &mut Budget) -> Option<Packable> {
        (self.bound, self.below) = (bound, below);
        let (length, at) = self.next.take().unwrap_or_else(|| {
            if self.margins.iter().all(|&m| m == 0) {
                self.all_steps(budget);
            }
            (self.margins.len().div_ceil(2), 0)
        });
        self.runs(length, at, budget);
        if self.next.is_none() {
            self.nodes = self.nodes.saturating_mul(GROWTH);
        }
        self.best.take()
    }

    /// Finds the least margin that makes the choice pack, as far as halving tells.
    fn all_steps(&mut self, budget: &mut Budget) {
        let steps = self.margins.len();
        let (mut high, mut low) = (self.of.model.capacity.0, 0);
        for _ in 0..HALVINGS {
            if high - low < 2 || budget.spent() {
                break;
            }
            let margin = low + (high - low) / 2;
            match self.probe(vec![margin; steps], budget) {
                Probe::Packs | Probe::Costs => high = margin,
                Probe::Fails => low = margin,
            }
        }
    }

    /// Takes the margin from runs of steps, or half of it, while the choice still packs.
    fn runs(&mut self, mut length: usize, mut at: usize, budget: &mut Budget) {
        while length >= SHORTEST {
            while at < self.margins.len() {
                let end = (at + length).min(self.margins.len());
                if budget.spent() {
                    self.next = Some((length, at));
                    return;
                }
                for part in TAKEN {
                    let run = &self.margins[at..end];
                    if self.below <= self.bound || run.iter().all(|&m| m == 0) {
                        break;
                    }
                    let mut less = self.margins.clone();
                    less[at..end].iter_mut().for_each(|m| *m -= m.div_ceil(part));
                    if self.probe(less, budget) == Probe::Packs {
                        break;
                    }
                }
                at = end;
            }
            (length, at) = (length.div_ceil(2), 0);
        }
    }

    /// How the cheapest choice with these margins comes out.
    fn probe(&mut self, margins: Vec<u64>, budget: &mut Budget) -> Probe {
        let mut model = self.of.model.clone();
        for (step, &margin) in model.steps.iter_mut().zip(&margins) {
            step.demand = (step.demand + Bytes(margin)).min(model.capacity);
        }
        let states = vec![State::Free; self.of.list.len()];
        let Some(relaxed) = self.of.relax_in(&model, &states, self.grain) else { return Probe::Costs };
        let chosen = self.of.choose(&states, &relaxed, self.below, true, budget);
        let Some((cost, keep)) = chosen.best else { return Probe::Costs };
        let packed = self.of.pack(&keep, self.nodes, budget);
        match packed.best {
            Some(packing) if packed.verdict == Verdict::Packed => {
                (self.below, self.margins) = (cost, margins);
                self.best = Some(Packable { keep, offsets: packing.offsets, cost });
                Probe::Packs
            }
            _ => Probe::Fails,
        }
    }
}
