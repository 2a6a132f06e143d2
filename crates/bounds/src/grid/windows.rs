//! What the windows of a grid prove, and the prices of a product that prove most together.

use super::figures::Figures;

/// The most arrivals of a window that are tried, and the most steps of cutting arrivals into windows.
const WIDEST: u64 = 256;
const STEPS: u64 = 20_000_000;
/// Rows of a layer beyond which prices are not tried.
const MOST_SIDES: u64 = 64;
/// Prices that are tried in full, the best by a first estimate.
const TRIED: usize = 12;
/// Prices with a larger numerator or denominator are not tried.
const MOST_NUMERATOR: u64 = 1 << 40;
const MOST_DENOMINATOR: u64 = 1 << 20;

/// Prices of a product and what they prove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Best {
    pub bound: u64,
    /// Numerator and denominator of the price that proves most by itself, in bytes.
    pub price: (u64, u64),
    /// Those that prove more of some numbers of arrivals.
    pub more_prices: Vec<(u64, u64)>,
    /// The most arrivals of a window.
    pub window: u64,
}

/// The prices that prove most; `None` if none proves anything.
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
    let tried: Vec<(u64, u64)> = prices.into_iter().take(TRIED).filter(|p| p.0 > 0).map(|p| p.1).collect();
    let curves = Curves::new(figures, &tried, window);
    let mut kept: Vec<usize> = (0..tried.len()).collect();
    kept.sort_by(|&a, &b| curves.least(&[b]).cmp(&curves.least(&[a])).then(tried[a].cmp(&tried[b])));
    let least = curves.least(&kept);
    // What proves least by itself is the first to go, if the others do without.
    for at in (1..kept.len()).rev() {
        let without: Vec<usize> = kept.iter().copied().filter(|&i| i != kept[at]).collect();
        if curves.least(&without) == least {
            kept = without;
        }
    }
    let bound = least.checked_next_multiple_of(figures.grain).unwrap_or(0);
    let (first, more) = kept.split_first()?;
    let more_prices = more.iter().map(|&i| tried[i]).collect();
    (bound > 0).then(|| Best { bound, price: tried[*first], more_prices, window })
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

/// What prices prove for every number of arrivals from that of the accumulators on, in bytes.
struct Curves {
    of: Vec<Vec<u64>>,
    /// What any larger number of arrivals moves at least.
    beyond: u64,
}

impl Curves {
    /// Windows have at most `window` arrivals.
    fn new(f: &Figures, prices: &[(u64, u64)], window: u64) -> Self {
        let losses: Vec<Losses> = prices.iter().map(|&price| Losses::new(f, price, window)).collect();
        // The least loss by number of arrivals.
        let mut least: Vec<Vec<i128>> = vec![vec![0]; prices.len()];
        let mut of = vec![Vec::new(); prices.len()];
        let mut movement = u64::MAX;
        for arrivals in 1u64.. {
            let back = f.reload.saturating_mul(arrivals - f.accumulators.min(arrivals));
            let is_over = arrivals > f.accumulators && back >= movement;
            if is_over || arrivals * window > 2 * STEPS {
                return Self { of, beyond: back };
            }
            for (losses, least) in losses.iter().zip(&mut least) {
                let cut = (1..losses.later.len()).take_while(|&w| w < least.len());
                let cut = cut.map(|w| least[least.len() - w] + losses.later[w]).min();
                let whole = losses.first.get(arrivals as usize).copied();
                least.push(cut.into_iter().chain(whole).min().unwrap_or(i128::MAX / 4));
            }
            if arrivals >= f.accumulators {
                for ((least, &price), curve) in least.iter().zip(prices).zip(&mut of) {
                    let paid = (worth(f, price) - least[arrivals as usize]).max(0).unsigned_abs();
                    let bytes = paid.div_ceil(u128::from(price.1));
                    curve.push(back.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX)));
                }
                let most = of.iter().filter_map(|curve: &Vec<u64>| curve.last().copied()).max();
                movement = movement.min(most.unwrap_or(0));
            }
        }
        Self { of, beyond: 0 }
    }

    /// The least that any number of arrivals moves, by some of the prices.
    fn least(&self, prices: &[usize]) -> u64 {
        let numbers = self.of.first().map_or(0, Vec::len);
        let most = |at: usize| prices.iter().map(|&i| self.of[i][at]).max().unwrap_or(0);
        (0..numbers).map(most).min().unwrap_or(0).min(self.beyond)
    }
}
