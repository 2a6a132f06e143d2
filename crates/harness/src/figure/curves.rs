//! Curves: a measured column over a number, and performance profiles.

use super::axis::{self, HORIZONTAL_ROOM, Range, column_label, look, number};
use super::bars::describe;
use super::layout::{Panel, Sample, Values, facets, head, of_facet, ordered, page_width, panels, series_name};
use super::scene::{Align, Mark, Rect, Scene, Shape, Stroke};
use crate::experiment::{At, FigureSpec, Scale};
use crate::summary;
use crate::table::{Row, Table};
use std::fmt::Write;

/// More points than this stand too close for a mark on each.
const MOST_MARKS: usize = 24;

/// What curves show.
pub struct Curves<'s> {
    /// The measured column.
    pub value: &'s str,
    /// The column along the horizontal axis.
    pub x: &'s str,
    /// The column of the curves.
    pub series: &'s str,
    /// The column of the panels.
    pub facet: Option<&'s At<String>>,
    /// The scale of the values.
    pub scale: Scale,
}

pub(super) fn legend(column: &str, series: &[&str]) -> Vec<(String, Sample)> {
    let entry = |(k, s): (usize, &&str)| (series_name(column, s), Sample::Curve(look::series(k), mark(k)));
    series.iter().enumerate().map(entry).collect()
}

pub(super) fn mark(k: usize) -> Mark {
    Mark::ALL[k % Mark::ALL.len()]
}

/// Draws curves.
pub fn curves(spec: &FigureSpec, rows: &[Row<'_>], what: &Curves<'_>) -> Scene {
    let mut scene = Scene::new(page_width(spec.width), 0.0);
    let series = ordered(rows, what.series);
    let top = head(&mut scene, spec.title.as_deref(), &legend(what.series, &series));
    let facets = facets(rows, what.facet);
    for panel in panels(&mut scene, top, &facets, if facets.len() > 1 { 120.0 } else { 150.0 }, 0) {
        let rows = of_facet(rows, what.facet, panel.facet);
        curves_panel(&mut scene, &panel, &rows, what, &series);
    }
    scene
}

fn curves_panel<'a>(scene: &mut Scene, panel: &Panel<'_>, rows: &[Row<'a>], what: &Curves<'_>, series: &[&'a str]) {
    let values = Values::of(rows, &[what.series, what.x], what.value);
    let xs: Vec<(&str, f64)> = ordered(rows, what.x).into_iter().filter_map(|x| Some((x, x.parse().ok()?))).collect();
    let points = |one: &'a str| {
        xs.iter().filter_map(|&(text, x)| Some((text, x, values.get(&[one, text])?))).collect::<Vec<_>>()
    };
    let numbers: Vec<f64> = series.iter().flat_map(|&s| points(s)).filter_map(|p| p.2.number()).collect();
    let y_range = Range::of_values(numbers.iter().copied(), what.scale);
    let x_range = Range::at_values(&xs.iter().map(|x| x.1).collect::<Vec<_>>());
    let label = values.label(what.value);
    let left = axis::vertical_room(&y_range, &label, panel.outer.h - HORIZONTAL_ROOM);
    let plot = panel.outer.inset(left, 4.0, 8.0, HORIZONTAL_ROOM);
    axis::vertical(scene, plot, panel.outer.x, &y_range, &label);
    axis::horizontal(scene, plot, panel.outer, &x_range, &column_label(what.x));
    if numbers.is_empty() {
        scene.text(
            (plot.x + plot.w / 2.0, plot.y + plot.h / 2.0),
            "no plan",
            look::NORMAL,
            look::NOTHING,
            Align::Center,
        );
    }
    for (k, one) in series.iter().enumerate() {
        let mut pieces = vec![Vec::new()];
        for (text, x, shown) in points(one) {
            describe(scene, panel.facet, &[(what.series, one), (what.x, text)], what.value, shown);
            match (shown.number(), pieces.last_mut()) {
                (Some(y), Some(piece)) => piece.push(place(plot, &x_range, &y_range, x, y)),
                // Where there is no plan the curve has a gap.
                _ => pieces.push(Vec::new()),
            }
        }
        pieces.into_iter().for_each(|piece| draw_curve(scene, piece, k));
    }
}

pub(super) fn place(plot: Rect, x_range: &Range, y_range: &Range, x: f64, y: f64) -> (f64, f64) {
    (plot.x + x_range.share(x) * plot.w, plot.bottom() - y_range.share(y) * plot.h)
}

pub(super) fn draw_curve(scene: &mut Scene, points: Vec<(f64, f64)>, k: usize) {
    let color = look::series(k);
    let stride = points.len().div_ceil(MOST_MARKS).max(1);
    let marks: Vec<_> = points.iter().copied().step_by(stride).collect();
    scene.line(points, Stroke::solid(color, 1.0));
    // Later curves have smaller marks, so that one that lies on another does not hide it.
    let radius = if k.is_multiple_of(2) { 2.1 } else { 1.6 };
    scene.shapes.extend(marks.into_iter().map(|at| Shape::Mark(mark(k), at, radius, color)));
}

/// The largest factor that a profile shows.
const MOST_FACTOR: f64 = 100.0;

/// Draws the share of cases in which each series is within a factor of the best (Dolan & Moré,
/// Benchmarking optimization software with performance profiles, 2002).
pub fn profile(spec: &FigureSpec, table: &Table, rows: &[Row<'_>], value: &str, by: &str) -> Scene {
    let mut scene = Scene::new(page_width(spec.width), 0.0);
    let series = ordered(rows, by);
    let top = head(&mut scene, spec.title.as_deref(), &legend(by, &series));
    let factors = factors(&summary::cases(table, rows, by, value, &series), series.len());
    let cases = factors.first().map_or(0, Vec::len);
    let most = factors.iter().flatten().copied().filter(|f| *f <= MOST_FACTOR).fold(1.2, f64::max);
    let x_range = Range::log_between(1.0, most * 1.05, &ticks(most));
    let y_range = Range::linear(0.0, 1.0, 5);
    for panel in panels(&mut scene, top, &[""], 150.0, 0) {
        let label = format!("share of {cases} cases");
        let left = axis::vertical_room(&y_range, &label, panel.outer.h - HORIZONTAL_ROOM);
        let plot = panel.outer.inset(left, 4.0, 8.0, HORIZONTAL_ROOM);
        axis::vertical(&mut scene, plot, panel.outer.x, &y_range, &label);
        let name = column_label(value);
        let name = name.split(" (").next().unwrap_or(&name);
        axis::horizontal(&mut scene, plot, panel.outer, &x_range, &format!("{name} within a factor of the best"));
        for (k, one) in series.iter().enumerate() {
            profile_curve(&mut scene, plot, (&x_range, &y_range), (by, one, k), &factors[k]);
        }
    }
    scene
}

/// Round factors between 1 and `most`, few enough to be read.
fn ticks(most: f64) -> Vec<f64> {
    match most {
        m if m < 1.5 => vec![1.0, 1.1, 1.2, 1.3, 1.4, 1.5],
        m if m < 4.0 => vec![1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0],
        _ => vec![1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0],
    }
}

/// For each series its factor of the best in each case, rising; infinite without a plan, and where
/// the best is 0 and it is not.
fn factors(cases: &[Vec<Option<f64>>], series: usize) -> Vec<Vec<f64>> {
    let mut factors = vec![Vec::new(); series];
    for case in cases {
        let Some(best) = case.iter().flatten().copied().min_by(f64::total_cmp) else { continue };
        for (k, value) in case.iter().enumerate() {
            factors[k].push(match value {
                Some(v) if *v == best => 1.0,
                Some(v) if best > 0.0 => v / best,
                _ => f64::INFINITY,
            });
        }
    }
    factors.iter_mut().for_each(|f| f.sort_unstable_by(f64::total_cmp));
    factors
}

fn profile_curve(
    scene: &mut Scene,
    plot: Rect,
    ranges: (&Range, &Range),
    series: (&str, &str, usize),
    factors: &[f64],
) {
    let ((x_range, y_range), (by, name, k)) = (ranges, series);
    let total = factors.len().max(1) as f64;
    let within = |limit: f64| factors.iter().filter(|f| **f <= limit).count() as f64 / total;
    let mut share = within(1.0);
    let mut points = vec![place(plot, x_range, y_range, 1.0, share)];
    for group in factors.chunk_by(|a, b| a == b).filter(|g| g[0] > 1.0 && g[0] <= MOST_FACTOR) {
        points.push(place(plot, x_range, y_range, group[0], share));
        share = within(group[0]);
        points.push(place(plot, x_range, y_range, group[0], share));
    }
    points.push((plot.right(), plot.bottom() - y_range.share(share) * plot.h));
    let shares = [1.0, 1.1, 1.5, 2.0].map(|limit| format!("{} within {}", number(within(limit)), number(limit)));
    let _ = writeln!(scene.description, "{by}={name}: {}", shares.join(", "));
    let color = look::series(k);
    let marks: Vec<_> = (0..6)
        .filter_map(|j| on_curve(&points, plot.x + plot.w * (f64::from(j) + 0.3 + 0.06 * k as f64) / 6.2))
        .collect();
    scene.line(points, Stroke::solid(color, 1.0));
    scene.shapes.extend(marks.into_iter().map(|at| Shape::Mark(mark(k), at, 1.9, color)));
}

/// The point of a step curve at a place along the horizontal axis.
fn on_curve(points: &[(f64, f64)], x: f64) -> Option<(f64, f64)> {
    let before = points.iter().rev().find(|p| p.0 <= x)?;
    (x <= points.last()?.0).then_some((x, before.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_of_the_best() {
        let cases = [vec![Some(2.0), Some(3.0), None], vec![Some(0.0), Some(5.0), Some(0.0)], vec![None, None, None]];
        let factors = factors(&cases, 3);
        assert_eq!(factors, [vec![1.0, 1.0], vec![1.5, f64::INFINITY], vec![1.0, f64::INFINITY]]);
    }

    #[test]
    fn marks_lie_on_the_steps() {
        let steps = [(0.0, 9.0), (4.0, 9.0), (4.0, 5.0), (8.0, 5.0)];
        assert_eq!(on_curve(&steps, 2.0), Some((2.0, 9.0)));
        assert_eq!(on_curve(&steps, 6.0), Some((6.0, 5.0)));
        assert_eq!(on_curve(&steps, 8.5), None);
    }
}
