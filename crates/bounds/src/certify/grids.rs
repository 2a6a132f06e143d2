//! Evaluates grids of accumulations again, from their lists of buffers and the prices alone.
//!
//! The proof stands in [`crate::grid`]. An op counts as a product when it uses one listed accumulator
//! and gets one listed row and one listed column, each in one way; any other op is passed over, which
//! can only lower what is proven. All amounts are multiplied by the denominator of the price.

use super::{CertifyError, Misfit};
use crate::certificate::Grid;
use spillbench_core::graph::NodeKind;
use spillbench_core::index::{BufIx, CacheIx, NodeIx};
use spillbench_core::{BufId, Graph, Machine};
use std::collections::{BTreeMap, BTreeSet};

/// Larger numbers prove nothing, so that sums do not overflow.
const MOST_BYTES: u128 = 1 << 60;
const MOST_NUMERATOR: u64 = 1 << 40;
const MOST_DENOMINATOR: u64 = 1 << 20;
/// Further prices are passed over.
const MOST_PRICES: usize = 12;
/// Wider windows are not tried, nor more ways to end one.
const WIDEST: u64 = 1024;
const STEPS: u64 = 100_000_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Row,
    Column,
    Accumulator,
}

/// An op of the grid: the buffer with its carrier for each side.
struct Product {
    sum: BufIx,
    sides: [(BufIx, Option<BufIx>); 2],
}

/// What every grid proves, with the cache of its accumulators; `listed` says which buffers may not be
/// used any more, and takes up those of the grids.
pub(super) fn evaluate(
    graph: &Graph,
    machine: &Machine,
    grids: &[Grid],
    listed: &mut [bool],
) -> Result<Vec<(CacheIx, u64)>, CertifyError> {
    let roles: Vec<BTreeMap<BufIx, Role>> = grids.iter().map(|g| roles(graph, g, listed)).collect::<Result<_, _>>()?;
    let mut shares = Vec::new();
    for (grid, roles) in grids.iter().zip(&roles) {
        let products = products(graph, roles, listed);
        let Some(first) = products.first() else { continue };
        let cache = graph.buf(first.sum).cache;
        let prices: Vec<(u64, u64)> = std::iter::once(grid.price).chain(grid.more_prices.iter().copied()).collect();
        let known = prices.len().min(MOST_PRICES);
        shares.push((cache, value(graph, machine, &products, &prices[..known], grid.window).unwrap_or(0)));
    }
    Ok(shares)
}

fn roles(graph: &Graph, grid: &Grid, listed: &mut [bool]) -> Result<BTreeMap<BufIx, Role>, CertifyError> {
    let mut roles = BTreeMap::new();
    let mut cache = None;
    let lists = [(&grid.rows, Role::Row), (&grid.columns, Role::Column), (&grid.accumulators, Role::Accumulator)];
    let named = lists.into_iter().flat_map(|(list, role)| list.iter().map(move |&id: &BufId| (id, role)));
    for (id, role) in named {
        let refused = |why| CertifyError::GridBuffer { buf: id, why };
        let b = graph.buf_by_id(id).ok_or_else(|| refused(Misfit::Absent { of: graph.buffer_count() }))?;
        if listed[b.index()] {
            return Err(refused(Misfit::Twice));
        }
        if role == Role::Accumulator && *cache.get_or_insert(graph.buf(b).cache) != graph.buf(b).cache {
            return Err(refused(Misfit::Elsewhere));
        }
        listed[b.index()] = true;
        roles.insert(b, role);
    }
    Ok(roles)
}

/// The products, and marks their carriers as listed.
fn products(graph: &Graph, roles: &BTreeMap<BufIx, Role>, listed: &mut [bool]) -> Vec<Product> {
    let sums = roles.iter().filter(|r| *r.1 == Role::Accumulator).map(|r| *r.0);
    let ops: BTreeSet<NodeIx> = sums.flat_map(|b| graph.users(b)).copied().collect();
    let mut carries: BTreeMap<BufIx, BufIx> = BTreeMap::new();
    let mut products = Vec::new();
    for op in ops {
        let Some(product) = product(graph, op, roles, listed) else { continue };
        // A carrier that brings now one and now another row or column would pay for both at once.
        let brings_one = |(source, carrier): &(BufIx, Option<BufIx>)| {
            carrier.is_none_or(|x| carries.get(&x).is_none_or(|other| other == source))
        };
        let [(_, one), (_, other)] = product.sides;
        if product.sides.iter().all(brings_one) && (one.is_none() || one != other) {
            carries.extend(product.sides.iter().filter_map(|&(source, carrier)| Some((carrier?, source))));
            products.push(product);
        }
    }
    carries.keys().for_each(|x| listed[x.index()] = true);
    products
}

fn product(graph: &Graph, op: NodeIx, roles: &BTreeMap<BufIx, Role>, listed: &[bool]) -> Option<Product> {
    let (mut sums, mut rows, mut columns) = (Vec::new(), Vec::new(), Vec::new());
    let mut note = |b: BufIx, carrier: Option<BufIx>| match roles.get(&b) {
        Some(Role::Row) => rows.push((b, carrier)),
        Some(Role::Column) => columns.push((b, carrier)),
        Some(Role::Accumulator) if carrier.is_none() => sums.push(b),
        _ => {}
    };
    for &x in graph.operands(op) {
        note(x, None);
        if listed[x.index()] {
            continue;
        }
        // What an op before this one used together with `x`, unless that op is of the grid itself.
        for &before in graph.predecessors(op) {
            let beside = graph.operands(before);
            let is_sum = |b: &BufIx| roles.get(b) == Some(&Role::Accumulator);
            if graph.kind(before) == NodeKind::Op && beside.contains(&x) && !beside.iter().any(is_sum) {
                beside.iter().filter(|&&b| b != x).for_each(|&b| note(b, Some(x)));
            }
        }
    }
    match (&sums[..], &rows[..], &columns[..]) {
        (&[sum], &[row], &[column]) => Some(Product { sum, sides: [row, column] }),
        _ => None,
    }
}

/// Counts of keys.
fn tally<K: Ord>(keys: impl Iterator<Item = K>) -> BTreeMap<K, u64> {
    let mut counts = BTreeMap::new();
    keys.for_each(|k| *counts.entry(k).or_insert(0) += 1);
    counts
}

fn largest<K: Ord>(counts: &BTreeMap<K, u64>) -> u64 {
    counts.values().copied().max().unwrap_or(0)
}

/// The layer of every row and column: the first buffer of it that is met.
fn layers(products: &[Product]) -> BTreeMap<BufIx, BufIx> {
    let mut beside: BTreeMap<BufIx, Vec<BufIx>> = BTreeMap::new();
    for p in products {
        let [(row, _), (column, _)] = p.sides;
        beside.entry(row).or_default().push(column);
        beside.entry(column).or_default().push(row);
    }
    let mut layers = BTreeMap::new();
    for &start in beside.keys() {
        let mut open = vec![start];
        while let Some(b) = open.pop() {
            if let std::collections::btree_map::Entry::Vacant(unseen) = layers.entry(b) {
                unseen.insert(start);
                open.extend(&beside[&b]);
            }
        }
    }
    layers
}

/// What is proven; `None` where a number is too large or nothing limits the plan.
fn value(graph: &Graph, machine: &Machine, products: &[Product], prices: &[(u64, u64)], window: u64) -> Option<u64> {
    if prices.iter().any(|p| p.0 > MOST_NUMERATOR || p.1 > MOST_DENOMINATOR || p.1 == 0) {
        return None;
    }
    let sums = tally(products.iter().map(|p| p.sum));
    let carriers = tally(products.iter().flat_map(|p| p.sides).filter_map(|s| s.1));
    let layers = layers(products);
    let buffers: BTreeSet<BufIx> = sums.keys().chain(carriers.keys()).chain(layers.keys()).copied().collect();
    let movement = |b: BufIx| graph.buf(b).movement().0;
    let total: u128 = buffers.iter().map(|&b| u128::from(movement(b))).sum();
    if total >= MOST_BYTES || buffers.iter().any(|&b| graph.buf(b).size.0 == 0) {
        return None;
    }
    let mut cost: BTreeMap<BufIx, u64> = layers.keys().map(|&b| (b, movement(b))).collect();
    for (source, carrier) in products.iter().flat_map(|p| p.sides) {
        let least = carrier.map_or(u64::MAX, movement).min(cost[&source]);
        cost.insert(source, least);
    }
    let (value, straddling) = at_a_cut(graph, machine, products, &carriers, &cost)?;
    let side = |i: usize| products.iter().map(move |p| p.sides[i].0);
    let in_layer = |i: usize| largest(&tally(side(i).collect::<BTreeSet<_>>().into_iter().map(|b| layers[&b])));
    let capacity = machine.cache(graph.buf(products.first()?.sum).cache).capacity.0;
    let smallest = sums.keys().map(|&b| graph.buf(b).size.0).min()?;
    let layer_count = layers.values().collect::<BTreeSet<_>>().len() as i128;
    let sides = [in_layer(0), in_layer(1)];
    let costs = [side(0).map(|b| cost[&b]).min()?, side(1).map(|b| cost[&b]).min()?];
    let of_pair = largest(&tally(products.iter().map(|p| (p.sides[0].0, p.sides[1].0))));
    let of_sum_in_layer = largest(&tally(products.iter().map(|p| (p.sum, layers[&p.sides[0].0]))));
    let first: i128 = cost.values().map(|&c| i128::from(c)).sum();
    let account = |&(worth, unit): &(u64, u64)| Account {
        worth: i128::from(worth),
        unit: i128::from(unit),
        layers: layer_count,
        sides,
        costs,
        of_pair,
        of_sum_in_layer,
        of_sum: largest(&sums),
        sums: sums.len() as u64,
        cut: i128::from(unit) * i128::from(value) + i128::from(worth) * i128::from(straddling),
        beside: (capacity / smallest).max(1) - 1,
        start: i128::from(worth) * products.len() as i128 - i128::from(unit) * first,
    };
    let back = sums.keys().map(|&b| movement(b)).min()?;
    let accounts: Vec<Account> = prices.iter().map(account).collect();
    let bytes = u64::try_from(least_movement(&accounts, back, window.min(WIDEST))).ok()?;
    let unit = buffers.iter().map(|&b| movement(b)).fold(0, common).max(1);
    bytes.checked_next_multiple_of(unit)
}

/// The value that may be resident at a cut, and the products whose carriers may.
fn at_a_cut(
    graph: &Graph,
    machine: &Machine,
    products: &[Product],
    carriers: &BTreeMap<BufIx, u64>,
    cost: &BTreeMap<BufIx, u64>,
) -> Option<(u64, u64)> {
    let (mut value, mut straddling) = (0u128, 0u64);
    for cache in graph.caches() {
        let capacity = machine.cache(cache).capacity.0;
        let here = |b: &&BufIx| graph.buf(**b).cache == cache;
        let size = |b: &BufIx| graph.buf(*b).size.0;
        let sources: Vec<&BufIx> = cost.keys().filter(here).collect();
        if !sources.is_empty() {
            let unit = sources.iter().map(|b| size(b)).fold(0, common);
            let bytes = u128::from(capacity - capacity % unit);
            let filled = sources.iter().map(|b| (bytes * u128::from(cost[*b])).div_ceil(size(b).into())).max()?;
            value += filled.min(sources.iter().map(|b| u128::from(cost[*b])).sum());
        }
        let Some(smallest) = carriers.keys().filter(here).map(size).min() else { continue };
        if carriers.iter().any(|(b, &serves)| here(&b) && serves > 1) {
            value += u128::from(capacity / smallest) * u128::from(*cost.values().max()?);
        } else {
            let used = |p: &Product| p.sides.iter().filter_map(|s| s.1.as_ref()).filter(here).map(size).sum::<u64>();
            straddling = straddling.checked_add((capacity - products.iter().map(used).min()?) / smallest)?;
        }
    }
    (value < MOST_BYTES && straddling < 1 << 32).then_some((value as u64, straddling))
}

fn common(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common(b, a % b) }
}

/// All that the bound depends on.
struct Account {
    worth: i128,
    unit: i128,
    layers: i128,
    sides: [u64; 2],
    costs: [u64; 2],
    of_pair: u64,
    of_sum_in_layer: u64,
    of_sum: u64,
    sums: u64,
    cut: i128,
    beside: u64,
    start: i128,
}

impl Account {
    /// What `count` accumulators let a window gain over what its rows and columns cost.
    fn gain(&self, count: u64) -> i128 {
        let most = count.min(self.sums) * self.of_sum_in_layer;
        let mut best = 0;
        for x in 1..=self.sides[0].min(most) {
            // Columns pay evenly until all products that there can be are there.
            let needed = most.div_ceil(self.of_pair * x);
            for y in [1, needed.max(2) - 1, needed] {
                let y = y.min(self.sides[1]);
                let products = i128::from(self.of_pair * x) * i128::from(y);
                let cost = i128::from(x) * i128::from(self.costs[0]) + i128::from(y) * i128::from(self.costs[1]);
                best = best.max(self.worth * products.min(i128::from(most)) - self.unit * cost);
            }
        }
        self.layers * best
    }

    fn at_most(&self, count: u64) -> i128 {
        self.worth * i128::from(self.of_sum) * i128::from(count)
    }

    /// What windows lose at most, by their number of arrivals: the first from none on, others from one.
    fn losses(&self, window: u64) -> (Vec<i128>, Vec<i128>) {
        let beside = self.beside.min(WIDEST);
        let gains: Vec<i128> = (0..=window + beside).map(|c| self.gain(c).min(self.at_most(c))).collect();
        let lose = |w: u64| match self.beside {
            b if b > WIDEST => self.at_most(w.saturating_add(b).min(self.sums)),
            b => (self.cut + gains[(w + b) as usize]).min(self.at_most(w + b)),
        };
        let later = (1..=window).map(lose).collect();
        (gains, later)
    }
}

/// A price on its way through the numbers of arrivals.
struct Way<'a> {
    account: &'a Account,
    first: Vec<i128>,
    later: Vec<i128>,
    /// The least loss of windows that end with an arrival, by its number.
    loss: Vec<i128>,
}

impl Way<'_> {
    /// The bytes that rows and columns move at least with one arrival more.
    fn next(&mut self) -> u128 {
        let arrivals = self.loss.len();
        let before = self.loss.iter().rev().zip(&self.later).take(arrivals - 1).map(|(l, w)| l + w);
        let alone = self.first.get(arrivals).copied();
        let all = self.account.at_most(self.account.sums.max(arrivals as u64));
        let loss = before.chain(alone).min().unwrap_or(all);
        self.loss.push(loss);
        (self.account.start - loss).max(0).unsigned_abs().div_ceil(self.account.unit.unsigned_abs())
    }
}

/// The least movement over all numbers of arrivals, of which the account that shows most tells.
fn least_movement(accounts: &[Account], back: u64, window: u64) -> u128 {
    let way = |account| {
        let (first, later) = Account::losses(account, window);
        Way { account, first, later, loss: vec![0] }
    };
    let mut ways: Vec<Way<'_>> = accounts.iter().map(way).collect();
    let sums = accounts.first().map_or(0, |a| a.sums);
    let mut least: Option<u128> = None;
    for arrivals in 1u64.. {
        let back = u128::from(back) * u128::from(arrivals.saturating_sub(sums));
        let enough = arrivals > sums && least.is_some_and(|l| l <= back);
        if enough || arrivals.saturating_mul(window + 1) > STEPS {
            return least.map_or(0, |l| l.min(back));
        }
        let most = ways.iter_mut().map(Way::next).max().unwrap_or(0);
        if arrivals >= sums {
            least = Some(least.map_or(back + most, |l| l.min(back + most)));
        }
    }
    0
}
