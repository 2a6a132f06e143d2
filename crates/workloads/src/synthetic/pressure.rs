//! Scaling sizes to a memory pressure.

use crate::cost;
use crate::emit::Emitter;
use crate::emit::Peak;
use crate::error::WorkloadError;
use spillbench_core::Bytes;

/// The pressure is met within this share, in per cent.
const TOLERANCE: u64 = 10;
/// Rounding to whole bytes moves the peak; a few corrections settle it.
const ROUNDS: usize = 6;

/// Scales the weights that stand as sizes in `program` so that its peak demand comes to `pressure`
/// thousandths of `capacity`, and prices its ops by the sizes.
///
/// # Errors
/// When whole bytes do not come within 10 % of it, or an op then needs more than the capacity.
pub(super) fn fit(mut program: Emitter, pressure: u64, capacity: u64) -> Result<Emitter, WorkloadError> {
    let wanted = (u128::from(pressure) * u128::from(capacity) / 1000).max(1);
    let weights = program.sizes();
    let peak = program.peak()?;
    let mut aim = wanted;
    let mut best: Option<(u128, Peak, u128)> = None;
    for _ in 0..ROUNDS {
        scale(&mut program, &weights, aim, peak.bytes);
        let reached = program.peak()?;
        let off = u128::from(reached.bytes).abs_diff(wanted);
        if best.is_none_or(|b| off < b.0) {
            best = Some((off, reached, aim));
        }
        if off * 200 <= wanted {
            break;
        }
        aim = (aim * wanted / u128::from(reached.bytes.max(1))).max(1);
    }
    let Some((off, reached, aim)) = best else { return Ok(program) };
    if off * 100 > wanted * u128::from(TOLERANCE) {
        let wanted = Bytes(u64::try_from(wanted).unwrap_or(u64::MAX));
        return Err(WorkloadError::Pressure { wanted, reached: Bytes(reached.bytes), buffers: reached.buffers });
    }
    scale(&mut program, &weights, aim, peak.bytes);
    let needed = program.largest_op();
    if needed > capacity {
        return Err(WorkloadError::Operands { needed: Bytes(needed), capacity: Bytes(capacity) });
    }
    program.reprice(|op, bytes| match op {
        cost::LOAD => cost::load(bytes),
        cost::STORE => cost::store(bytes),
        _ => cost::vector(op, bytes),
    });
    Ok(program)
}

/// Sizes in proportion to the weights, `aim` bytes at the peak, rounded to whole bytes of at least 1.
fn scale(program: &mut Emitter, weights: &[u64], aim: u128, peak: u64) {
    let peak = u128::from(peak.max(1));
    program.resize(weights.iter().map(|&w| {
        let size = (u128::from(w) * aim + peak / 2) / peak;
        u64::try_from(size).unwrap_or(u64::MAX).max(1)
    }));
}
