//! What the windows of a grid prove, and the price of a product that proves most.

use super::figures::Figures;

/// The most arrivals of a window that are tried, and the most steps of cutting arrivals into windows.
const WIDEST: u64 = 256;
const STEPS: u64 = 20_000_000;
/// Rows of a layer beyond which prices are not tried.
const MOST_SIDES: u64 = 64;
/// Prices that are tried in full, the best by a first estimate.
const TRIED: usize = 6;
/// Prices with a larger numerator or denominator are not tried.
const MOST_NUMERATOR: u64 = 1 << 40;
const MOST_DENOMINATOR: u64 = 1 << 20;

/// A price of a product and what it proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Best {
    pub bound: u64,
    /// Numerator and denominator of the price, in bytes.
    pub price: (u64, u64),
    /// The most arrivals of a window.
    pub window: u64,
}

/// The price that proves most; `None` if none proves anything.
pub(super) fn best(figures: &Figures) -> Option<Best> {
    let window = WIDEST.min(figures.accumulators).min((STEPS / figures.accumulators.max(1)).max(8));
    let mut prices: Vec<(i128, (u64, u64))> = prices(figures)
        .into_iter()
        .map(|price| {
            let losses = Losses::new(figures, price, window);
            // Compared over different denominators: in 2⁻²⁰ bytes.
            ((losses.estimate(figures, price) << 20) / i128::from(price.1), price)
        })
        .collect();
    prices.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let tried = prices.into_iter().take(TRIED).filter(|p| p.0 > 0);
    let proven = tried.map(|(_, price)| Best { bound: proven(figures, price, window), price, window });
    proven.filter(|b| b.bound > 0).max_by(|a, b| a.bound.cmp(&b.bound).then(b.price.cmp(&a.price)))
}

/// The prices at which blocks of `x` rows and `y` columns just pay for themselves: between such
/// prices the loss of a window has no bend that matters.
fn prices(figures: &Figures) -> Vec<(u64, u64)> {
    let (row, column) = (figures.row_cost, figures.column_cost);
    let mut prices = Vec::new();
    for x in 1..=figures.rows.min(MOST_SIDES) {
        let like = (u128::from(x) * u128::from(row) / u128::from(column)).min(u128::from(figures.columns)) as u64;
        for y in [like, like + 1] {
            if (1..=figures.columns).contains(&y) {
                let cost = u128::from(x) * u128::from(row) + u128::from(y) * u128::from(column);
                let work = u128::from(x) * u128::from(y) * u128::from(figures.per_pair);
                let unit = gcd(cost, work);
                let (cost, work) = (cost / unit, work / unit);
                if cost <= u128::from(MOST_NUMERATOR) && work <= u128::from(MOST_DENOMINATOR) {
                    prices.push((cost as u64, work as u64));
                }
            }
        }
    }
    prices.sort_unstable();
    prices.dedup();
    prices
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

/// What windows take from the worth of the products, by their number of arrivals, all times the
/// denominator of the price.
struct Losses {
    first: Vec<i128>,
    later: Vec<i128>,
}

impl Losses {
    fn new(f: &Figures, price: (u64, u64), window: u64) -> Self {
        let (worth, unit) = (i128::from(price.0), i128::from(price.1));
        let most = window + f.beside.min(WIDEST);
        let of_all = |c: u64| worth * i128::from(f.per_accumulator) * i128::from(c);
        let operands: Vec<i128> =
            (0..=most).map(|c| i128::from(f.layers) * gain(f, price, c.min(f.accumulators))).collect();
        let first = (0..=most).map(|c| operands[c as usize].min(of_all(c))).collect();
        let cut = unit * i128::from(f.resident) + worth * i128::from(f.straddling);
        // Beside more accumulators than are looked at, only all of them are known to be there.
        let later = (0..=window).map(|w| {
            let c = w + f.beside;
            let paid = if c <= most { operands[c as usize] } else { of_all(f.accumulators) };
            of_all(c).min(cut + paid)
        });
        Self { first, later: later.collect() }
    }

    /// What is proven if no accumulator comes back, with windows of one width.
    fn estimate(&self, f: &Figures, price: (u64, u64)) -> i128 {
        let arrivals = f.accumulators;
        let of_width = |w: u64| {
            let first = (w + f.beside).min(arrivals).min(self.first.len() as u64 - 1);
            let cuts = (arrivals - first).div_ceil(w);
            self.first[first as usize] + i128::from(cuts) * self.later[w as usize]
        };
        worth(f, price) - (1..self.later.len() as u64).map(of_width).min().unwrap_or(0)
    }
}

/// The worth of all products less the first entries of rows and columns, times the denominator.
fn worth(f: &Figures, price: (u64, u64)) -> i128 {
    i128::from(price.0) * i128::from(f.products) - i128::from(price.1) * i128::from(f.operands)
}

/// `γ(c)`, times the denominator of the price.
fn gain(f: &Figures, price: (u64, u64), c: u64) -> i128 {
    let (worth, unit) = (i128::from(price.0), i128::from(price.1));
    let limit = f.per_layer * c;
    let at = |x: u64, y: u64| {
        let products = u128::from(f.per_pair) * u128::from(x) * u128::from(y);
        let products = products.min(u128::from(limit)) as i128;
        worth * products - unit * (i128::from(x) * i128::from(f.row_cost) + i128::from(y) * i128::from(f.column_cost))
    };
    // For given rows, more columns help evenly until the limit is reached.
    let of_rows = |x: u64| {
        let full = limit / (f.per_pair * x);
        [1, full, full + 1].into_iter().map(move |y| (x, y.clamp(1, f.columns)))
    };
    let sides = (1..=f.rows.min(limit)).flat_map(of_rows);
    sides.map(|(x, y)| at(x, y)).max().unwrap_or(0).max(0)
}

/// What a price proves, windows having at most `window` arrivals.
fn proven(f: &Figures, price: (u64, u64), window: u64) -> u64 {
    let losses = Losses::new(f, price, window);
    let (worth, unit) = (worth(f, price), i128::from(price.1));
    let reload = i128::from(f.reload) * unit;
    // The least loss by number of arrivals, and the least movement by any number so far.
    let mut least: Vec<i128> = vec![0];
    let mut movement: Option<i128> = None;
    for arrivals in 1.. {
        let back = reload * i128::from(arrivals as u64 - f.accumulators.min(arrivals as u64));
        let is_over = arrivals as u64 > f.accumulators && movement.is_some_and(|m| back >= m);
        if is_over || arrivals as u64 * window > 2 * STEPS {
            // More arrivals cost at least this.
            movement = Some(movement.map_or(0, |m| m.min(back)));
            break;
        }
        let cut = (1..=arrivals.min(losses.later.len() - 1)).filter(|w| arrivals > *w);
        let cut = cut.map(|w| least[arrivals - w] + losses.later[w]).min();
        let whole = losses.first.get(arrivals).copied();
        least.push(cut.into_iter().chain(whole).min().unwrap_or(i128::MAX / 4));
        if arrivals as u64 >= f.accumulators {
            let now = back + (worth - least[arrivals]).max(0);
            movement = Some(movement.map_or(now, |m| m.min(now)));
        }
    }
    let bytes = movement.unwrap_or(0).max(0).unsigned_abs().div_ceil(unit.unsigned_abs());
    u64::try_from(bytes).unwrap_or(u64::MAX).checked_next_multiple_of(f.grain).unwrap_or(0)
}
