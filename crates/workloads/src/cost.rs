//! Cycles of instructions by the bytes they move or work on.
//!
//! Calibrated on the public kernel graphs: each formula gives the cycles that stand there for the
//! sizes that stand there (named with it), and is linear in the bytes between and beyond. Only the
//! cycles of [`convolve`] and [`load`] are off by up to a few per cent for some of those sizes.

use spillbench_core::graph::COPY_IN;

/// The operation that loads from main memory.
pub const LOAD: &str = COPY_IN;
/// The operation that stores to main memory.
pub const STORE: &str = "COPY_OUT";

/// The pipe of loads from main memory.
pub const MTE2: &str = "MTE2";
/// The pipe of moves within the chip that feed the cube.
pub const MTE1: &str = "MTE1";
/// The pipe of stores from the unified buffer.
pub const MTE3: &str = "MTE3";
/// The pipe that moves results of the cube out of L0C.
pub const FIXP: &str = "FIXP";
/// The matrix unit.
pub const CUBE: &str = "CUBE";
/// The vector unit.
pub const VECTOR: &str = "VECTOR";

/// `a` at 0 bytes and `b` at 128, straight in between.
fn line(a: u64, b: u64, bytes: u64) -> u64 {
    let rise = u128::from(b - a) * u128::from(bytes) / 128;
    a.saturating_add(u64::try_from(rise).unwrap_or(u64::MAX))
}

/// A load from main memory: 325 for 128 bytes, 581 for 256, 1605 for 768.
pub fn load(bytes: u64) -> u64 {
    line(69, 325, bytes)
}

/// A store from the unified buffer or L1: 150 for 2 bytes, 191 for 128.
pub fn store(bytes: u64) -> u64 {
    line(150, 191, bytes)
}

/// A store straight from the accumulator: 263 for 256 bytes.
pub fn store_accumulator(bytes: u64) -> u64 {
    line(7, 135, bytes)
}

/// A move from L1 to L0A or L0B: 31 for 128 bytes.
pub fn feed(bytes: u64) -> u64 {
    line(15, 31, bytes)
}

/// A move from L1 to L0B that transposes: 54 for 128 bytes.
pub fn feed_transposed(bytes: u64) -> u64 {
    line(15, 54, bytes)
}

/// A move of a convolution kernel from L1 to L0B: 30 for 8 bytes, 34 for 16, 74 for 96.
pub fn feed_kernel(bytes: u64) -> u64 {
    line(26, 90, bytes)
}

/// A copy of a tile of `bytes` from the accumulator to the unified buffer: 41 for 128.
pub fn drain(bytes: u64) -> u64 {
    line(9, 41, bytes)
}

/// A copy between the unified buffer and L1: 271 for 128 bytes.
pub fn exchange(bytes: u64) -> u64 {
    line(15, 271, bytes)
}

/// A product of two square tiles of `bytes` of 16-bit numbers each: 128 for 128 bytes, and with
/// the cube of the side.
pub fn multiply(bytes: u64) -> u64 {
    let side = (u128::from(bytes) / 2).isqrt();
    u64::try_from(side * side * side / 4).unwrap_or(u64::MAX).max(1)
}

/// A convolution step with a kernel of `taps` over a block of `bytes`: 481 for 9 taps over 96
/// bytes, 1777 (in the public graphs 1778 to 1785) over 384, 3505 over 768.
pub fn convolve(taps: u64, bytes: u64) -> u64 {
    49u64.saturating_add(taps.saturating_mul(bytes) / 2)
}

/// What adding a block of `bytes` costs on top of a convolution step: 220 for 768 bytes.
pub fn convolve_add(bytes: u64) -> u64 {
    line(28, 60, bytes)
}

/// The vector operations that stand in the public graphs, with their cycles for 0 and 128 bytes
/// such that those of 2 bytes come out as well where both stand there.
const VECTOR_OPS: &[(&str, u64, u64)] = &[
    ("ADD", 24, 37),
    ("COMPACT", 24, 113),
    ("EXP", 29, 218),
    ("MAX", 23, 36),
    ("MUL", 25, 38),
    ("REC", 35, 224),
    ("ROWMAX", 24, 310),
    ("ROWSUM", 24, 342),
    ("SUB", 22, 151),
];

/// A vector operation over `bytes`; one that is not known costs what `ADD` does.
pub fn vector(op: &str, bytes: u64) -> u64 {
    let known = VECTOR_OPS.iter().find(|o| o.0 == op);
    known.map_or_else(|| line(24, 37, bytes), |&(_, a, b)| line(a, b, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_those_of_the_public_graphs() {
        assert_eq!([128, 144, 192, 256, 768].map(load), [325, 357, 453, 581, 1605]);
        assert_eq!([2, 128].map(store), [150, 191]);
        assert_eq!([store_accumulator(256), feed(128), feed_transposed(128)], [263, 31, 54]);
        assert_eq!([8, 16, 96].map(feed_kernel), [30, 34, 74]);
        assert_eq!([drain(128), exchange(128), multiply(128)], [41, 271, 128]);
        assert_eq!([96, 384, 768].map(|bytes| convolve(9, bytes)), [481, 1777, 3505]);
        assert_eq!(convolve_add(768), 220);
        let at_2 = ["ADD", "EXP", "MAX", "MUL", "REC", "SUB"].map(|op| vector(op, 2));
        assert_eq!(at_2, [24, 31, 23, 25, 37, 24]);
        let at_128 = ["ADD", "COMPACT", "EXP", "MUL", "ROWMAX", "ROWSUM", "SUB"].map(|op| vector(op, 128));
        assert_eq!(at_128, [37, 113, 218, 38, 310, 342, 151]);
    }

    #[test]
    fn no_size_overflows() {
        for bytes in [0, 1, u64::MAX] {
            let all = [load, store, store_accumulator, feed, feed_transposed, feed_kernel, drain, exchange, multiply];
            assert!(all.iter().all(|cost| cost(bytes) > 0));
            assert!(convolve(9, bytes) > 0 && convolve_add(bytes) > 0 && vector("EXP", bytes) > 0);
        }
    }
}
