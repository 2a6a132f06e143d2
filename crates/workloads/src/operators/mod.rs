//! Tensor operators lowered to the instructions of a neural processor, the way a kernel compiler
//! does it: tiles are loaded into L1, fed to L0A and L0B, multiplied into L0C, drained to the
//! unified buffer (UB) for vector work, and stored.
//!
//! All lowerings number their nodes in program order: an `ALLOC` stands at the first use of its
//! buffer, a `FREE` behind the last (`free=last-use`) or, as in the public graphs, at the end of
//! the program (`free=end`). Cycles come from [`crate::cost`].

pub(crate) mod attention;
pub(crate) mod conv;
pub(crate) mod fft;
mod kernel;
pub(crate) mod matmul;
pub(crate) mod mlp;
pub(crate) mod moe;
pub(crate) mod reduction;
pub(crate) mod stencil;
pub(crate) mod transformer;

use crate::emit::Frees;
use crate::registry::{Parameter, Values};

/// Where `FREE`s stand; every operator has it.
const FREE: Parameter =
    Parameter::choice("free", "where FREEs stand: behind the last use or at the end of the program", FREES);
const FREES: &[&str] = &["last-use", "end"];

/// The bytes of a tile in L0A or L0B; the default is that of the public graphs.
const TILE: Parameter = Parameter::int("tile", "bytes of a tile of 16-bit numbers in L0A or L0B", 128, 2, 1 << 40);

fn frees(values: &Values) -> Frees {
    if values.choice("free") == "end" { Frees::End } else { Frees::LastUse }
}

/// The sum of products, saturating: node counts before anything is made.
fn sum_of_products(terms: &[&[u64]]) -> u64 {
    let product = |factors: &&[u64]| factors.iter().fold(1u64, |p, &f| p.saturating_mul(f));
    terms.iter().map(product).fold(0, u64::saturating_add)
}
