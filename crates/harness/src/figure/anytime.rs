//! What searches reach over their budget: the median over seeds as a curve, the range as whiskers.

use super::axis::{self, HORIZONTAL_ROOM, Range, column_label};
use super::curves::{Curves, draw_curve, legend, place};
use super::layout::{Panel, facets, head, of_facet, ordered, page_width, panels};
use super::scene::{Scene, Stroke};
use crate::experiment::FigureSpec;
use crate::table::Row;
use std::fmt::Write;

/// Half the width of the ends of a whisker.
const WHISKER: f64 = 1.6;

/// Draws a measured column over a budget. Rows without such a budget are no searches and left out.
pub fn anytime(spec: &FigureSpec, rows: &[Row<'_>], what: &Curves<'_>) -> Scene {
    let rows: Vec<_> = rows.iter().copied().filter(|row| row.number(what.x).is_some()).collect();
    let mut scene = Scene::new(page_width(spec.width), 0.0);
    let series = ordered(&rows, what.series);
    let top = head(&mut scene, spec.title.as_deref(), &legend(what.series, &series));
    let facets = facets(&rows, what.facet);
    for panel in panels(&mut scene, top, &facets, if facets.len() > 1 { 120.0 } else { 150.0 }, 0) {
        draw_panel(&mut scene, &panel, &of_facet(&rows, what.facet, panel.facet), what, &series);
    }
    scene
}

/// What the seeds of one budget reach.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    least: f64,
    median: f64,
    most: f64,
    seeds: usize,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_unstable_by(f64::total_cmp);
        let (&least, &most) = (values.first()?, values.last()?);
        let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        Some(Self { least, median: (low + high) / 2.0, most, seeds: values.len() })
    }
}

fn draw_panel(scene: &mut Scene, panel: &Panel<'_>, rows: &[Row<'_>], what: &Curves<'_>, series: &[&str]) {
    let xs: Vec<(&str, f64)> = ordered(rows, what.x).into_iter().filter_map(|x| Some((x, x.parse().ok()?))).collect();
    let spread = |one: &str, x: &str| {
        let own = rows.iter().filter(|row| row.text(what.series) == one && row.text(what.x) == x);
        Spread::of(own.filter_map(|row| row.number(what.value)).collect())
    };
    let shown: Vec<Vec<_>> = series
        .iter()
        .map(|one| xs.iter().filter_map(|&(text, x)| Some((text, x, spread(one, text)?))).collect())
        .collect();
    let numbers: Vec<f64> = shown.iter().flatten().flat_map(|(_, _, s)| [s.least, s.most]).collect();
    let y_range = Range::of_values(numbers.iter().copied(), what.scale);
    let x_range = Range::at_values(&xs.iter().map(|x| x.1).collect::<Vec<_>>());
    let label = column_label(what.value);
    let left = axis::vertical_room(&y_range, &label, panel.outer.h - HORIZONTAL_ROOM);
    let plot = panel.outer.inset(left, 4.0, 8.0, HORIZONTAL_ROOM);
    axis::vertical(scene, plot, panel.outer.x, &y_range, &label);
    axis::horizontal(scene, plot, panel.outer, &x_range, &column_label(what.x));
    for (k, (one, points)) in series.iter().zip(&shown).enumerate() {
        let stroke = Stroke::solid(axis::look::series(k), 0.7);
        for &(text, x, Spread { least, median, most, seeds }) in points {
            let facet = if panel.facet.is_empty() { String::new() } else { format!("{}, ", panel.facet) };
            let _ = writeln!(
                scene.description,
                "{facet}{}={one}, {}={text}: {} median {median}, {least} to {most} over {seeds} seeds",
                what.series, what.x, what.value
            );
            let [(x, low), (_, high)] = [least, most].map(|y| place(plot, &x_range, &y_range, x, y));
            if low - high > 0.2 {
                scene.line(vec![(x, low), (x, high)], stroke);
                for y in [low, high] {
                    scene.line(vec![(x - WHISKER, y), (x + WHISKER, y)], stroke);
                }
            }
        }
        draw_curve(scene, points.iter().map(|p| place(plot, &x_range, &y_range, p.1, p.2.median)).collect(), k);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_ends() {
        let spread = |values: &[f64]| Spread::of(values.to_vec()).map(|s| (s.least, s.median, s.most));
        assert_eq!(spread(&[5.0, 1.0, 2.0]), Some((1.0, 2.0, 5.0)));
        assert_eq!(spread(&[4.0, 1.0]), Some((1.0, 2.5, 4.0)));
        assert_eq!(spread(&[]), None);
    }
}
