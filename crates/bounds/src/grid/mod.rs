//! A lower bound over all orders for grids of accumulations: windows in the manner of Hong and Kung.
//!
//! **A grid.** A *product* is an op that adds to one *accumulator* what it makes of one *row* buffer
//! and one *column* buffer. It uses a row or column either itself or by way of a *carrier*: a buffer
//! that it uses and that an op before it, in every order, used together with the row or column. Rows
//! and columns that meet in products, over chains of them, make a *layer* (in a product of matrices
//! all that share a place in the sum). Grids are found by these relations alone, see `find`.
//!
//! **Windows.** Take any plan and its products in order. Call a product an *arrival* when it is the
//! first of its accumulator or the accumulator was brought back since the product before it. Cut the
//! products into windows that each begin with an arrival; window `t` then has `w_t ≥ 1` arrivals. Let
//! `p` be the position of the last product before window `t ≥ 1`; everything behind `p` up to the
//! last product of the window counts as its time, and all before the first cut belongs to window 0.
//! The accumulators of a window's products arrive in it or are resident at its first product, beside
//! that product's own, which arrives. With `a` the most accumulators that fit beside another, there
//! are `c_t ≤ w_t + a` of them, and `c_0 ≤ w_0`.
//!
//! **What a window pays.** Let `σ(b)` be the least of what a spill of a row or column `b` and of any
//! of its carriers costs; every carrier has one such `b`. Say that an entry of `b` (its `ALLOC`, or
//! the end of a spill) or the end of a spill of one of its carriers *pays* `σ(b)`. A product of window
//! `t ≥ 1` needs its row `b`. Where the op that needs it resident stands behind `p`, `b` was resident
//! at `p` or entered in the window. Where it stands before `p`, the carrier lives at `p`; it was out
//! and came back in the window, or it is resident at `p` for a later product: it *straddles*. So the
//! rows and columns used by products without straddling carriers either were resident at `p`, which
//! is worth at most `V`, the greatest `Σσ` of rows and columns that fit their caches together, or are
//! paid for in the window. A carrier of one product costs a window at most this product; at most `s`
//! straddle, those that fit beside the carriers used at `p`. Carriers of several products count as
//! so much more value that is resident. In window 0 nothing is resident and nothing straddles.
//!
//! **What a window can do.** With `x` rows and `y` columns of a layer and `c` accumulators, no more
//! than `min(μ·x·y, ν·c)` of its products run, where `μ` is the most products of one row and one
//! column and `ν` the most products of one accumulator in one layer. For any price `λ ≥ 0` of a
//! product, a window with `P` such products pays for its operands at least
//! `λ·P − Q·γ(c)`, where `γ(c) = max over x, y of λ·min(μ·x·y, ν·c) − x·σ_row − y·σ_column`, `Q` is the
//! number of layers and `σ_row`, `σ_column` are the least `σ` of a row and of a column. And
//! `λ·P ≤ λ·D·c`, with `D` the most products of one accumulator, so what a window adds to the loss is
//! at most the smaller of the two.
//!
//! **The bound.** All payments together are at most `Σ_b σ(b)`, for the first entries, and the extra
//! movement of rows, columns and carriers. With `E` arrivals, at least `E − N` spills of accumulators
//! happen, `N` being their number, at `κ` each or more. So with `P` products in all, the plan moves at
//! least
//!
//! `κ·(E − N) + max(0, λ·P − Σσ(b) − L(E))`, where `L(E)` is the least, over all ways to cut `E` arrivals
//! into `w_0, …, w_n`, of
//! `min(Q·γ(w_0), λ·D·w_0) + Σ_{t≥1} min(V + λ·s + Q·γ(w_t + a), λ·D·(w_t + a))`,
//!
//! and the bound is the least of this over `E ≥ N`, rounded up to a multiple of what all spills are
//! multiples of. Any price holds for any `E`, so that of several prices the one counts, for each `E`, that
//! proves most: few arrivals are long stays of accumulators, for which a high price is right, many are
//! short ones that ask for a low price. Only spills of the grid's buffers are counted, so it adds to what other buffers prove.
//!
//! The windows are those of Hong and Kung, "I/O Complexity: The Red-Blue Pebble Game", STOC 1981, but
//! cut by accumulators, as these are what is scarce; `λ` is the dual price of spreading the products
//! over the windows.

mod figures;
mod find;
mod windows;

use crate::certificate::Grid;
use figures::Figures;
use rustc_hash::FxHashSet;
use spillbench_core::index::BufIx;
use spillbench_core::{BufId, Bytes, Graph, Machine};

/// What one grid proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridBound {
    /// The grid with what its windows prove; what a certificate lists.
    pub grid: Grid,
    /// Its products.
    pub products: usize,
    /// All its buffers, carriers included, sorted.
    pub buffers: Vec<BufId>,
}

/// A grid that proves something, with its buffers.
pub(crate) struct Proven {
    pub bound: GridBound,
    pub buffers: FxHashSet<BufIx>,
}

/// Finds grids without a common buffer that prove more than 0, those that prove most first.
pub fn grids(graph: &Graph, machine: &Machine) -> Vec<GridBound> {
    proven(graph, machine).into_iter().map(|p| p.bound).collect()
}

pub(crate) fn proven(graph: &Graph, machine: &Machine) -> Vec<Proven> {
    let mut found: Vec<Proven> =
        find::grids(graph).iter().filter_map(|products| prove(graph, machine, products)).collect();
    found.sort_by(|a, b| {
        b.bound.grid.bound.cmp(&a.bound.grid.bound).then_with(|| a.bound.buffers.cmp(&b.bound.buffers))
    });
    let mut taken: FxHashSet<BufIx> = FxHashSet::default();
    found.retain(|p| {
        let is_free = p.buffers.is_disjoint(&taken);
        if is_free {
            taken.extend(&p.buffers);
        }
        is_free
    });
    found
}

fn prove(graph: &Graph, machine: &Machine, products: &[find::Product]) -> Option<Proven> {
    let figures = Figures::measure(graph, machine, products)?;
    let best = windows::best(&figures)?;
    let buffers: FxHashSet<BufIx> = products.iter().flat_map(find::Product::buffers).collect();
    let ids = |of: fn(&find::Product) -> BufIx| {
        let mut ids: Vec<BufId> = products.iter().map(|p| graph.buf(of(p)).id).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    };
    let grid = Grid {
        rows: ids(|p| p.row),
        columns: ids(|p| p.column),
        accumulators: ids(|p| p.accumulator),
        price: best.price,
        more_prices: best.more_prices,
        window: best.window,
        bound: Bytes(best.bound),
    };
    let mut all: Vec<BufId> = buffers.iter().map(|&b| graph.buf(b).id).collect();
    all.sort_unstable();
    Some(Proven { bound: GridBound { grid, products: products.len(), buffers: all }, buffers })
}
