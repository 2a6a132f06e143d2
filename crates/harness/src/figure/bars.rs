//! Bars: a measured column per group and series, and extra movement split into its parts.

use super::axis::{self, Range, column_label, look, number};
use super::layout::{
    Panel, Sample, Shown, SlotLabels, Values, facets, head, of_facet, ordered, page_width, panels, series_name,
};
use super::scene::{Align, Color, Mark, Rect, Scene, Shape};
use super::text;
use crate::experiment::{At, FigureSpec, Part, Scale};
use crate::table::{Row, Table};
use std::fmt::Write;

/// The room above the highest bar for its number.
const HEADROOM: f64 = 24.0;

/// The share of a slot that its bars fill.
const FILLED: f64 = 0.86;

/// What grouped bars show.
pub struct Grouped<'s> {
    /// The measured column.
    pub value: &'s str,
    /// The column of the groups.
    pub group: &'s str,
    /// The column of the bars in a group.
    pub series: &'s str,
    /// The column of the panels.
    pub facet: Option<&'s At<String>>,
    /// The scale of the values.
    pub scale: Scale,
}

/// Draws grouped bars.
pub fn grouped(spec: &FigureSpec, rows: &[Row<'_>], what: &Grouped<'_>) -> Scene {
    let mut scene = Scene::new(page_width(spec.width), 0.0);
    let series = ordered(rows, what.series);
    let entries: Vec<_> =
        series.iter().enumerate().map(|(k, s)| (series_name(what.series, s), Sample::Patch(look::series(k)))).collect();
    let top = head(&mut scene, spec.title.as_deref(), &entries);
    let facets = facets(rows, what.facet);
    let height = if facets.len() > 1 { 150.0 } else { 175.0 };
    for panel in panels(&mut scene, top, &facets, height, ordered(rows, what.group).len()) {
        let rows = of_facet(rows, what.facet, panel.facet);
        grouped_panel(&mut scene, &panel, &rows, what, &series);
    }
    scene
}

fn grouped_panel<'a>(scene: &mut Scene, panel: &Panel<'_>, rows: &[Row<'a>], what: &Grouped<'_>, series: &[&'a str]) {
    let groups = ordered(rows, what.group);
    let values = Values::of(rows, &[what.group, what.series], what.value);
    let shown = |group: &'a str, one: &'a str| values.get(&[group, one]);
    let numbers: Vec<f64> =
        groups.iter().flat_map(|&g| series.iter().filter_map(move |&s| shown(g, s)?.number())).collect();
    let range = tight(numbers.iter().copied(), what.scale);
    let label = values.label(what.value);
    let plot = frame(scene, panel.outer.inset(0.0, HEADROOM, 0.0, 0.0), (&range, &label), &groups, what.group);
    let slot = plot.w / groups.len().max(1) as f64;
    let width = slot * FILLED / series.len().max(1) as f64;
    for (g, group) in groups.iter().enumerate() {
        let left = plot.x + (g as f64 + (1.0 - FILLED) / 2.0) * slot;
        for (s, one) in series.iter().enumerate() {
            let Some(shown) = shown(group, one) else { continue };
            let bar = Rect { x: left + s as f64 * width, y: plot.y, w: width * 0.92, h: plot.h };
            draw_bar(scene, bar, shown, &range, look::series(s));
            describe(scene, panel.facet, &[(what.group, group), (what.series, one)], what.value, shown);
        }
    }
}

/// A range that ends at the highest bar: its number stands in the headroom.
fn tight(values: impl Iterator<Item = f64> + Clone, scale: Scale) -> Range {
    let high = values.clone().fold(0.0, f64::max);
    Range::of_values(values, scale).up_to(high)
}

/// The axes of a panel of slots; returns its plot.
pub fn frame(scene: &mut Scene, outer: Rect, (range, label): (&Range, &str), slots: &[&str], column: &str) -> Rect {
    let slots_label = column_label(column);
    let left = axis::vertical_room(range, label, outer.h - 50.0);
    let names = SlotLabels::fit(slots, (outer.w - left) / slots.len().max(1) as f64);
    let plot = outer.inset(left, 0.0, 1.0, names.depth + look::NORMAL + 4.0);
    axis::vertical(scene, plot, outer.x, range, label);
    scene.line(vec![(plot.x, plot.bottom()), (plot.right(), plot.bottom())], look::AXIS);
    names.draw(scene, plot);
    let below = plot.bottom() + names.depth + look::NORMAL / 2.0 + 2.0;
    axis::below(scene, plot, outer, below, &slots_label);
    plot
}

/// Draws a bar in the column `room`, with its number above it where there is room for it.
fn draw_bar(scene: &mut Scene, room: Rect, shown: Shown, range: &Range, color: Color) {
    let middle = room.x + room.w / 2.0;
    let fits = room.w / 0.92 >= look::SMALL + 0.2;
    match shown {
        Shown::Mean(value, _) => {
            let height = range.share(value) * room.h;
            let bar = Rect { x: room.x, y: room.bottom() - height, w: room.w, h: height };
            if height > 0.0 {
                scene.fill(bar, color);
            }
            if fits {
                scene.turned((middle, bar.y - 2.0), number(value), look::SMALL, look::INK, Align::Left);
            }
        }
        Shown::NoPlan if fits => {
            scene.turned((middle, room.bottom() - 2.0), "no plan", look::SMALL, look::NOTHING, Align::Left);
        }
        Shown::NoPlan => {
            let radius = (room.w / 2.0).min(2.0);
            scene.shapes.push(Shape::Mark(Mark::Cross, (middle, room.bottom() - 3.0), radius, look::NOTHING));
        }
    }
}

/// Adds a number to the description of a figure.
pub fn describe(scene: &mut Scene, facet: &str, keys: &[(&str, &str)], column: &str, shown: Shown) {
    // Writing into a String does not fail.
    let facet = if facet.is_empty() { String::new() } else { format!("{facet}; ") };
    let keys = keys.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join("; ");
    let _ = match shown {
        Shown::Mean(value, _) => writeln!(scene.description, "{facet}{keys}: {column}={value}"),
        Shown::NoPlan => writeln!(scene.description, "{facet}{keys}: no plan"),
    };
}

/// True for columns that are read whatever the figure names.
pub fn reads(column: &str) -> bool {
    column.starts_with("movement_") || column.starts_with("movement.")
}

/// The parts of a stacked bar: columns with the words of the legend.
fn parts(table: &Table, rows: &[Row<'_>], part: Part) -> Vec<(String, String)> {
    let named =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(c, w)| ((*c).to_owned(), (*w).to_owned())).collect::<Vec<_>>();
    let mut parts = match part {
        Part::Backing => named(&[("movement_backed", "backed"), ("movement_generated", "generated")]),
        Part::Cause => named(&[
            ("movement_capacity", "capacity"),
            ("movement_fragmentation", "fragmentation"),
            ("movement_unknown_cause", "unknown cause"),
        ]),
        Part::Cache => {
            let caches = table.names().filter_map(|name| Some((name, name.strip_prefix("movement.")?)));
            caches.map(|(column, cache)| (column.to_owned(), cache.to_owned())).collect()
        }
    };
    // What never moves anything would only lengthen the legend, unless nothing moves at all.
    let moves = |column: &str| rows.iter().any(|row| row.number(column).is_some_and(|x| x > 0.0));
    if parts.iter().any(|(column, _)| moves(column)) {
        parts.retain(|(column, words)| moves(column) || (part == Part::Cause && words != "unknown cause"));
    }
    parts
}

/// Draws extra movement split into parts, as stacked bars.
pub fn stacked(
    spec: &FigureSpec,
    table: &Table,
    rows: &[Row<'_>],
    part: Part,
    group: &str,
    facet: Option<&At<String>>,
) -> Scene {
    let mut scene = Scene::new(page_width(spec.width), 0.0);
    let parts = parts(table, rows, part);
    let entries: Vec<_> =
        parts.iter().enumerate().map(|(k, (_, words))| (words.clone(), Sample::Patch(look::series(k)))).collect();
    let top = head(&mut scene, spec.title.as_deref(), &entries);
    let facets = facets(rows, facet);
    for panel in panels(&mut scene, top, &facets, 165.0, ordered(rows, group).len()) {
        let rows = of_facet(rows, facet, panel.facet);
        stacked_panel(&mut scene, &panel, &rows, &parts, group);
    }
    scene
}

fn stacked_panel(scene: &mut Scene, panel: &Panel<'_>, rows: &[Row<'_>], parts: &[(String, String)], group: &str) {
    let groups = ordered(rows, group);
    let split: Vec<_> = parts.iter().map(|(column, _)| Values::of(rows, &[group], column)).collect();
    let part = |k: usize, g| split[k].get(&[g]).unwrap_or(Shown::NoPlan);
    let totals: Vec<Option<f64>> =
        groups.iter().map(|&g| (0..parts.len()).map(|k| part(k, g).number()).sum::<Option<f64>>()).collect();
    let range = tight(totals.iter().copied().flatten(), Scale::Linear);
    let label = split.first().map_or_else(String::new, |s| s.label("extra_movement"));
    // Totals stand side by side if they fit, and need less room then.
    let rough = (panel.outer.w - 40.0) / groups.len().max(1) as f64;
    let level = totals.iter().flatten().all(|t| text::width(&number(*t), look::SMALL) <= rough - 3.0);
    let outer = panel.outer.inset(0.0, if level { look::LINE } else { HEADROOM }, 0.0, 0.0);
    let plot = frame(scene, outer, (&range, &label), &groups, group);
    let slot = plot.w / groups.len().max(1) as f64;
    let width = (slot * FILLED).min(24.0);
    for (g, name) in groups.iter().enumerate() {
        let x = plot.x + (g as f64 + 0.5) * slot - width / 2.0;
        let Some(total) = totals[g] else {
            draw_bar(scene, Rect { x, w: width, ..plot }, Shown::NoPlan, &range, look::NOTHING);
            describe(scene, panel.facet, &[(group, name)], "extra_movement", Shown::NoPlan);
            continue;
        };
        let mut below = 0.0;
        for (k, (column, _)) in parts.iter().enumerate() {
            let Some(value) = part(k, name).number() else { continue };
            let (bottom, top) = [below, below + value].map(|v| plot.bottom() - range.share(v) * plot.h).into();
            if value > 0.0 {
                scene.fill(Rect { x, y: top, w: width, h: bottom - top }, look::series(k));
            }
            describe(scene, panel.facet, &[(group, name)], column, Shown::Mean(value, 1));
            below += value;
        }
        let y = plot.bottom() - range.share(total) * plot.h;
        let total = number(total);
        if level {
            scene.text((x + width / 2.0, y - 5.0), total, look::SMALL, look::INK, Align::Center);
        } else if slot >= look::SMALL + 0.5 {
            scene.turned((x + width / 2.0, y - 2.0), total, look::SMALL, look::INK, Align::Left);
        }
    }
}
