//! What a grid comes to in numbers: all that its bound depends on.

use super::find::Product;
use rustc_hash::{FxHashMap, FxHashSet};
use spillbench_core::index::{BufIx, CacheIx};
use spillbench_core::{Graph, Machine};
use std::collections::BTreeMap;

/// Sums of sizes and costs stay below this, so that nothing overflows.
const MOST_BYTES: u64 = 1 << 60;

/// The letters are those of the proof in the module doc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Figures {
    /// Products in all.
    pub products: u64,
    /// `N`.
    pub accumulators: u64,
    /// `D`, the most products of an accumulator.
    pub per_accumulator: u64,
    /// `Q`.
    pub layers: u64,
    /// The most rows and columns of a layer.
    pub rows: u64,
    pub columns: u64,
    /// `μ`, the most products of a row with a column.
    pub per_pair: u64,
    /// `ν`, the most products of an accumulator in a layer.
    pub per_layer: u64,
    /// `σ_row` and `σ_column`.
    pub row_cost: u64,
    pub column_cost: u64,
    /// `Σ σ(b)`.
    pub operands: u64,
    /// `V`.
    pub resident: u64,
    /// `s`, the products whose carriers straddle a cut.
    pub straddling: u64,
    /// `a`, the accumulators that fit beside another.
    pub beside: u64,
    /// `κ`, what bringing an accumulator back costs.
    pub reload: u64,
    /// Extra movement of the grid's buffers is a multiple of this.
    pub grain: u64,
}

impl Figures {
    /// `None` where the numbers say at once that nothing can be proven: something is free to move, or
    /// all rows and columns may be resident at once.
    pub(super) fn measure(graph: &Graph, machine: &Machine, products: &[Product]) -> Option<Self> {
        let prices = Prices::new(graph, products)?;
        let (extra, straddling) = straddlers(graph, machine, products, &prices)?;
        let resident = resident(graph, machine, &prices)?.checked_add(extra)?;
        let operands = prices.of.values().sum::<u64>();
        if resident >= operands {
            return None;
        }
        let accumulator = products.first()?.accumulator;
        let capacity = machine.cache(graph.buf(accumulator).cache).capacity.0;
        let least = products.iter().map(|p| graph.buf(p.accumulator).size.0).min()?;
        let sides = |of: fn(&Product) -> BufIx| most_distinct(products.iter().map(|p| (p.layer, of(p))));
        Some(Self {
            products: products.len() as u64,
            accumulators: products.iter().map(|p| p.accumulator).collect::<FxHashSet<_>>().len() as u64,
            per_accumulator: most(products.iter().map(|p| p.accumulator)),
            layers: products.iter().map(|p| p.layer).collect::<FxHashSet<_>>().len() as u64,
            rows: sides(|p| p.row),
            columns: sides(|p| p.column),
            per_pair: most(products.iter().map(|p| (p.row, p.column))),
            per_layer: most(products.iter().map(|p| (p.layer, p.accumulator))),
            row_cost: products.iter().map(|p| prices.of[&p.row]).min()?,
            column_cost: products.iter().map(|p| prices.of[&p.column]).min()?,
            operands,
            resident,
            straddling,
            beside: (capacity / least).saturating_sub(1),
            reload: products.iter().map(|p| graph.buf(p.accumulator).movement().0).min()?,
            grain: products.iter().flat_map(Product::buffers).map(|b| graph.buf(b).movement().0).fold(0, gcd).max(1),
        })
    }
}

/// `σ` of every row and column.
struct Prices {
    of: BTreeMap<BufIx, u64>,
}

impl Prices {
    fn new(graph: &Graph, products: &[Product]) -> Option<Self> {
        let movement = |b: BufIx| graph.buf(b).movement().0;
        let mut of = BTreeMap::new();
        for p in products {
            for (source, carrier) in [(p.row, p.row_carrier), (p.column, p.column_carrier)] {
                let price = of.entry(source).or_insert(movement(source));
                *price = carrier.map_or(*price, |x| movement(x).min(*price));
            }
        }
        let buffers: FxHashSet<BufIx> = products.iter().flat_map(Product::buffers).collect();
        let total = buffers.iter().try_fold(0u64, |sum, &b| sum.checked_add(movement(b)))?;
        let is_free = buffers.iter().any(|&b| graph.buf(b).size.0 == 0);
        (!is_free && total < MOST_BYTES).then_some(Self { of })
    }
}

/// `V`: per cache, the bytes that whole rows and columns can fill, at the highest price of a byte.
fn resident(graph: &Graph, machine: &Machine, prices: &Prices) -> Option<u64> {
    let mut caches: BTreeMap<CacheIx, Vec<(u64, u64)>> = BTreeMap::new();
    for (&b, &price) in &prices.of {
        caches.entry(graph.buf(b).cache).or_default().push((graph.buf(b).size.0, price));
    }
    caches.into_iter().try_fold(0u64, |sum, (cache, buffers)| {
        let unit = buffers.iter().map(|b| b.0).fold(0, gcd);
        let bytes = machine.cache(cache).capacity.0 / unit * unit;
        let worth = |&(size, price): &(u64, u64)| (u128::from(bytes) * u128::from(price)).div_ceil(u128::from(size));
        let most = buffers.iter().map(worth).max().unwrap_or(0);
        let all: u64 = buffers.iter().map(|b| b.1).sum();
        sum.checked_add(u64::try_from(most).unwrap_or(u64::MAX).min(all))
    })
}

/// What straddles a cut: value where carriers serve several products, and products otherwise.
fn straddlers(graph: &Graph, machine: &Machine, products: &[Product], prices: &Prices) -> Option<(u64, u64)> {
    /// The least size of a carrier, the most products of one, and the least bytes of them at a product.
    struct Carriers {
        least: u64,
        served: u64,
        used: u64,
    }
    let mut caches: BTreeMap<CacheIx, Carriers> = BTreeMap::new();
    let mut served: FxHashMap<BufIx, u64> = FxHashMap::default();
    for x in products.iter().flat_map(Product::carriers) {
        let count = served.entry(x).or_default();
        *count += 1;
        let buf = graph.buf(x);
        let cache = caches.entry(buf.cache).or_insert(Carriers { least: u64::MAX, served: 0, used: u64::MAX });
        cache.least = cache.least.min(buf.size.0);
        cache.served = cache.served.max(*count);
    }
    for (cache, carriers) in &mut caches {
        let bytes = |p: &Product| {
            p.carriers().filter(|&x| graph.buf(x).cache == *cache).map(|x| graph.buf(x).size.0).sum::<u64>()
        };
        carriers.used = products.iter().map(bytes).min().unwrap_or(0);
    }
    let dearest = prices.of.values().copied().max()?;
    let (mut value, mut count) = (0u64, 0u64);
    for (cache, carriers) in caches {
        let capacity = machine.cache(cache).capacity.0;
        if carriers.served == 1 {
            count = count.checked_add(capacity.saturating_sub(carriers.used) / carriers.least)?;
        } else {
            value = value.checked_add((capacity / carriers.least).checked_mul(dearest)?)?;
        }
    }
    (value < MOST_BYTES && count < 1 << 32).then_some((value, count))
}

/// How often the most frequent key occurs.
fn most<K: std::hash::Hash + Eq>(keys: impl Iterator<Item = K>) -> u64 {
    let mut counts: FxHashMap<K, u64> = FxHashMap::default();
    keys.for_each(|k| *counts.entry(k).or_default() += 1);
    counts.into_values().max().unwrap_or(0)
}

/// The most different buffers of a layer.
fn most_distinct(pairs: impl Iterator<Item = (usize, BufIx)>) -> u64 {
    most(pairs.collect::<FxHashSet<_>>().into_iter().map(|(layer, _)| layer))
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
