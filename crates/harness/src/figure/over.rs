//! Movement over its lower bound: a mark for each case and the geometric mean of each series, so that
//! what is left to gain is seen, and not only who is ahead.
//!
//! A plan stands over the bound that covers it. Those that left their order stand over a bound of every
//! order, which is lower: they have marks and a mean of their own, so that no mean mixes the two.

use super::axis::{Range, look, number};
use super::bars::frame;
use super::layout::{Panel, Sample, facets, head, of_facet, ordered, page_width, panels};
use super::scene::{Align, Color, Mark, Rect, Scene, Shape, Stroke};
use crate::experiment::{At, FigureSpec};
use crate::stats;
use crate::table::Row;
use spillbench_bounds::Cover;
use std::fmt::Write;

/// The column of the ratios.
const RATIO: &str = "over_bound";
/// The room above the plot for the means.
const HEADROOM: f64 = 26.0;
/// How far above the plot they begin, so that crosses on its edge do not touch them.
const ABOVE_CROSSES: f64 = 4.5;
/// The share of a slot over which its marks are spread.
const SPREAD: f64 = 0.62;
const MEAN: Stroke = Stroke::solid(look::INK, 1.3);
const OPTIMAL: Stroke = Stroke::solid(Color::rgb(120, 120, 120), 0.6);

/// The column of what a bound speaks of.
const COVER: &str = "bound_cover";

/// True for columns that are read whatever the figure names.
pub(super) fn reads(column: &str) -> bool {
    [RATIO, COVER].contains(&column)
}

/// What covers a plan: its order, or every order.
#[derive(Clone, Copy, PartialEq)]
enum Over {
    ThisOrder,
    EveryOrder,
}

impl Over {
    fn of(row: &Row<'_>) -> Self {
        if row.text(COVER) == Cover::EveryOrder.name() { Self::EveryOrder } else { Self::ThisOrder }
    }

    fn mark(self) -> Mark {
        if self == Self::ThisOrder { Mark::Disc } else { Mark::Diamond }
    }
}

/// What one series came to over the bounds of one cover.
struct Ratios {
    over: Over,
    /// Movement over bound of each case that has it, rising.
    finite: Vec<f64>,
    /// Cases that move although their bound is 0.
    boundless: usize,
}

impl Ratios {
    /// One for each cover that the series has.
    fn of(rows: &[Row<'_>], by: &str, series: &str) -> Vec<Self> {
        let own = || rows.iter().filter(|row| row.text(by) == series);
        let covers = [Over::ThisOrder, Over::EveryOrder].into_iter().filter(|&o| own().any(|row| Over::of(row) == o));
        let ratios = |over| {
            let (mut finite, mut boundless) = (Vec::new(), 0);
            for row in own().filter(|row| Over::of(row) == over) {
                match row.number(RATIO) {
                    Some(ratio) => finite.push(ratio),
                    None => boundless += 1,
                }
            }
            finite.sort_unstable_by(f64::total_cmp);
            Self { over, finite, boundless }
        };
        covers.map(ratios).collect()
    }

    fn mean(&self) -> Option<f64> {
        stats::geometric_mean(&self.finite, 0).map(|interval| interval.mean)
    }
}

/// Draws the rows that have a bound; `None` where none has.
pub fn over_bound(spec: &FigureSpec, rows: &[Row<'_>], series: &str, facet: Option<&At<String>>) -> Option<Scene> {
    let rows: Vec<_> = rows.iter().copied().filter(|row| row.number("bound").is_some()).collect();
    if rows.is_empty() {
        return None;
    }
    let rows = rows.as_slice();
    let mut scene = Scene::new(page_width(spec.width), 0.0);
    let names = ordered(rows, series);
    let boundless = rows.iter().any(|row| row.number(RATIO).is_none());
    let kinds = [(Over::ThisOrder, "a case"), (Over::EveryOrder, "a case, over the bound of every order")];
    let kinds = kinds.into_iter().filter(|k| rows.iter().any(|row| Over::of(row) == k.0));
    let mut legend: Vec<_> =
        kinds.map(|(over, text)| (text.to_owned(), Sample::Point(look::series(0), over.mark()))).collect();
    legend.push(("geometric mean".to_owned(), Sample::Line(MEAN)));
    legend.push(("lower bound".to_owned(), Sample::Line(OPTIMAL)));
    if boundless {
        legend.push(("moves though the bound is 0".to_owned(), Sample::Point(look::NOTHING, Mark::Cross)));
    }
    let top = head(&mut scene, spec.title.as_deref(), &legend);
    let facets = facets(rows, facet);
    let height = if facets.len() > 1 { 150.0 } else { 175.0 };
    for panel in panels(&mut scene, top, &facets, height, names.len()) {
        draw_panel(&mut scene, &panel, &of_facet(rows, facet, panel.facet), series, &names);
    }
    Some(scene)
}

fn draw_panel(scene: &mut Scene, panel: &Panel<'_>, rows: &[Row<'_>], by: &str, names: &[&str]) {
    let ratios: Vec<Vec<Ratios>> = names.iter().map(|name| Ratios::of(rows, by, name)).collect();
    let most = ratios.iter().flatten().filter_map(|r| r.finite.last().copied()).fold(1.2, f64::max);
    // Crosses on the upper edge are to stand above all marks.
    let room = if ratios.iter().flatten().any(|r| r.boundless > 0) { 1.25 } else { 1.04 };
    let range = Range::log_between(1.0, most * room, &ticks(most));
    let outer = panel.outer.inset(0.0, HEADROOM, 0.0, 0.0);
    let plot = frame(scene, outer, (&range, "movement over lower bound"), names, by);
    scene.line(vec![(plot.x, plot.bottom()), (plot.right(), plot.bottom())], OPTIMAL);
    let slot = plot.w / names.len().max(1) as f64;
    for (k, (name, ratios)) in names.iter().zip(&ratios).enumerate() {
        // Bounds of two kinds stand side by side.
        let width = slot / ratios.len().max(1) as f64;
        for (part, ratios) in ratios.iter().enumerate() {
            let middle = plot.x + k as f64 * slot + (part as f64 + 0.5) * width;
            let mean = draw_ratios(scene, (plot, &range), (middle, width), look::series(k), ratios);
            describe(scene, panel.facet, (by, name), ratios, mean);
        }
    }
}

/// Draws the marks of one series over the bounds of one cover; returns their mean.
fn draw_ratios(
    scene: &mut Scene,
    (plot, range): (Rect, &Range),
    (middle, width): (f64, f64),
    color: Color,
    ratios: &Ratios,
) -> Option<f64> {
    let y = |ratio: f64| plot.bottom() - range.share(ratio) * plot.h;
    let x = |i| middle + spread(i) * SPREAD * width;
    let mean = ratios.mean();
    if let Some(mean) = mean {
        let half = width * (SPREAD + 0.2) / 2.0;
        scene.line(vec![(middle - half, y(mean)), (middle + half, y(mean))], MEAN);
        if width >= look::SMALL + 0.5 {
            let text = number((mean * 1000.0).round() / 1000.0);
            scene.turned((middle, plot.y - ABOVE_CROSSES), text, look::SMALL, look::INK, Align::Left);
        }
    }
    // Marks come last, so that no mean hides them.
    let marks = ratios.finite.iter().enumerate();
    scene.shapes.extend(marks.map(|(i, &ratio)| Shape::Mark(ratios.over.mark(), (x(i), y(ratio)), 1.4, color)));
    let above = (0..ratios.boundless).map(|i| Shape::Mark(Mark::Cross, (x(i), plot.y), 1.6, look::NOTHING));
    scene.shapes.extend(above);
    mean
}

/// Where the i-th mark stands within its slot, from −½ to ½: neighbours far apart, the same each
/// time (multiples of the golden ratio).
fn spread(i: usize) -> f64 {
    (i as f64 * 0.618_033_988_75 + 0.5).fract() - 0.5
}

/// Round ratios between 1 and `most`, few enough to be read.
fn ticks(most: f64) -> Vec<f64> {
    match most {
        m if m < 1.5 => vec![1.0, 1.1, 1.2, 1.3, 1.4, 1.5],
        m if m < 4.0 => vec![1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0],
        m if m < 60.0 => vec![1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0],
        m => (0..=m.log10().ceil() as i32).map(|k| 10f64.powi(k)).collect(),
    }
}

/// Adds a series to the description of the figure.
fn describe(scene: &mut Scene, facet: &str, (by, name): (&str, &str), ratios: &Ratios, mean: Option<f64>) {
    let facet = if facet.is_empty() { String::new() } else { format!("{facet}; ") };
    let optimal = ratios.finite.iter().filter(|r| **r <= 1.0).count();
    let over = if ratios.over == Over::EveryOrder { " (bound of every order)" } else { "" };
    let mean = mean.map_or_else(|| "none".to_owned(), number);
    // Writing into a String does not fail.
    let _ = writeln!(
        scene.description,
        "{facet}{by}={name}{over}: geometric mean {mean} over {} cases, {optimal} at the bound, {} move though it is 0",
        ratios.finite.len(),
        ratios.boundless
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_spread_over_their_slot() {
        let places: Vec<f64> = (0..100).map(spread).collect();
        assert!(places.iter().all(|p| (-0.5..0.5).contains(p)) && places[0] == 0.0);
        let tenths: std::collections::BTreeSet<i64> = places.iter().map(|p| (p * 10.0).floor() as i64).collect();
        assert_eq!(tenths.len(), 10);
    }

    #[test]
    fn ticks_begin_at_the_bound() {
        for most in [1.2, 2.0, 30.0, 1e5] {
            let ticks = ticks(most);
            assert!(ticks[0] == 1.0 && ticks.is_sorted() && *ticks.last().unwrap() * 1.5 >= most.min(50.0), "{most}");
        }
    }
}
