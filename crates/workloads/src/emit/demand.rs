//! What a program demands of memory, and changing its sizes and cycles after the fact: for
//! generators that fix the structure first and the sizes by what they come to.

use super::{BY_HAND, Buf, Emitter, Frees, Step};
use crate::error::WorkloadError;

/// The largest demand of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Peak {
    /// Bytes live at once.
    pub bytes: u64,
    /// How many buffers those are.
    pub buffers: u64,
}

impl Emitter {
    /// The most bytes that are live at once, over all caches, in program order.
    pub(crate) fn peak(&self) -> Result<Peak, WorkloadError> {
        let last_uses = self.last_uses()?;
        let (mut live, mut peak) = (Peak::default(), Peak::default());
        for (at, &step) in self.steps.iter().enumerate() {
            if let Step::Alloc(buf) = step {
                live = Peak { bytes: live.bytes.saturating_add(self.size(buf)), buffers: live.buffers + 1 };
                peak = if live.bytes > peak.bytes { live } else { peak };
            }
            let dies = |buf: &Buf| {
                let last = last_uses[buf.0 as usize];
                matches!(step, Step::Free(_)) || (last == at as u32 && last != BY_HAND && self.frees == Frees::LastUse)
            };
            for &buf in self.touched(&step).filter(|&buf| dies(buf)) {
                live = Peak { bytes: live.bytes - self.size(buf), buffers: live.buffers - 1 };
            }
        }
        Ok(peak)
    }

    /// The most bytes that one op uses.
    pub(crate) fn largest_op(&self) -> u64 {
        let steps = self.steps.iter().filter(|step| matches!(step, Step::Op(_)));
        steps.map(|step| self.touched(step).map(|&b| self.size(b)).fold(0, u64::saturating_add)).max().unwrap_or(0)
    }

    /// The sizes of all buffers.
    pub(crate) fn sizes(&self) -> Vec<u64> {
        self.bufs.iter().map(|b| b.size).collect()
    }

    /// Sets the sizes of all buffers.
    pub(crate) fn resize(&mut self, sizes: impl IntoIterator<Item = u64>) {
        self.bufs.iter_mut().zip(sizes).for_each(|(buf, size)| buf.size = size);
    }

    /// Sets the cycles of all ops by their names and the largest buffer that each uses.
    pub(crate) fn reprice(&mut self, cycles: impl Fn(&str, u64) -> u64) {
        for at in 0..self.ops.len() {
            let op = &self.ops[at];
            let operands = &self.operands[op.operands as usize..][..(op.writes + op.reads) as usize];
            let largest = operands.iter().map(|&b| self.size(b)).max().unwrap_or(0);
            self.ops[at].cycles = cycles(&self.names[op.name as usize], largest);
        }
    }

    /// The buffers of a step.
    fn touched<'a>(&'a self, step: &'a Step) -> impl Iterator<Item = &'a Buf> {
        let (single, lists) = match step {
            Step::Alloc(buf) | Step::Free(buf) => (Some(buf), (&[][..], &[][..])),
            Step::Op(op) => (None, self.operands_of(*op)),
        };
        single.into_iter().chain(lists.0).chain(lists.1)
    }
}
