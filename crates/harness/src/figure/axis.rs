//! Axes: scales, ticks at round values, and the panel that they frame.

use super::scene::{Align, Color, Rect, Scene, Stroke};
use super::text;
use crate::columns;
use crate::experiment::Scale;

/// The sizes and colours of axes and words.
pub mod look {
    use super::{Color, Stroke};

    /// Font size of ticks, legends and values.
    pub const SMALL: f64 = 6.5;
    /// Font size of axis labels and panel headings.
    pub const NORMAL: f64 = 7.5;
    /// Words.
    pub const INK: Color = Color::rgb(30, 30, 30);
    /// Axes.
    pub const AXIS: Stroke = Stroke::solid(Color::rgb(80, 80, 80), 0.5);
    /// Lines across a panel.
    pub const GRID: Stroke = Stroke::solid(Color::rgb(225, 225, 225), 0.4);
    /// What has no value.
    pub const NOTHING: Color = Color::rgb(120, 120, 120);
    /// Height of a line of small words.
    pub const LINE: f64 = 8.5;

    /// Colours that people of all common colour visions can tell apart: those of Okabe & Ito (2008)
    /// but for the pale yellow, which comes last, with four of Tol's muted set (2021) before it.
    pub const PALETTE: [Color; 12] = [
        Color::rgb(0, 114, 178),
        Color::rgb(230, 159, 0),
        Color::rgb(0, 158, 115),
        Color::rgb(213, 94, 0),
        Color::rgb(204, 121, 167),
        Color::rgb(86, 180, 233),
        Color::rgb(0, 0, 0),
        Color::rgb(150, 150, 150),
        Color::rgb(51, 34, 136),
        Color::rgb(136, 34, 85),
        Color::rgb(153, 153, 51),
        Color::rgb(240, 228, 66),
    ];

    /// The colour of the k-th series.
    pub fn series(k: usize) -> Color {
        PALETTE[k % PALETTE.len()]
    }
}

/// From values to places along an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    low: f64,
    high: f64,
    log: bool,
    /// Values with their texts.
    pub ticks: Vec<(f64, String)>,
}

impl Range {
    /// An axis from 0 (or a power of ten) that holds all values; see [`Scale`].
    pub fn of_values(values: impl Iterator<Item = f64> + Clone, scale: Scale) -> Self {
        let high = values.clone().fold(0.0, f64::max);
        let least = values.filter(|v| *v > 0.0).fold(f64::INFINITY, f64::min);
        let log = match scale {
            Scale::Linear => false,
            Scale::Log => least.is_finite(),
            Scale::Auto => least.is_finite() && high / least > 100.0,
        };
        match (log, high > 0.0) {
            (true, _) => Self::log(least, high),
            (false, true) => Self::linear(0.0, high, 5),
            (false, false) => Self { low: 0.0, high: 1.0, log: false, ticks: vec![(0.0, number(0.0))] },
        }
    }

    /// The axis cut off at a value, with the ticks up to there.
    pub fn up_to(mut self, high: f64) -> Self {
        if high > self.low && high < self.high {
            self.high = high;
            self.ticks.retain(|(v, _)| *v <= high * (1.0 + 1e-9));
        }
        self
    }

    /// A logarithmic axis over whole decades.
    fn log(least: f64, most: f64) -> Self {
        let mut low = least.log10().floor();
        let high = most.log10().ceil().max(low + 1.0);
        // The smallest value is to stand above the foot, where zeros stand.
        if least.log10() - low < 0.05 {
            low -= 1.0;
        }
        let step = ((high - low) / 6.0).ceil().max(1.0);
        let count = ((high - low) / step) as usize;
        let ticks = (0..=count).map(|k| 10f64.powf(low + k as f64 * step)).map(|v| (v, number(v))).collect();
        Self { low: 10f64.powf(low), high: 10f64.powf(high), log: true, ticks }
    }

    /// A linear axis that ends at round values, with about `wanted` steps.
    pub fn linear(low: f64, high: f64, wanted: usize) -> Self {
        let step = round_step((high - low).max(f64::MIN_POSITIVE) / wanted as f64);
        let (first, last) = ((low / step).floor(), (high / step - 1e-9).ceil());
        let ticks = (first as i64..=last as i64).map(|k| k as f64 * step).map(|v| (v, number(v))).collect();
        Self { low: first * step, high: last * step, log: false, ticks }
    }

    /// A linear axis that ends where its values do, with ticks at round values.
    pub fn exact(low: f64, high: f64, wanted: usize) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        let mut range = Self::linear(low, high, wanted);
        (range.low, range.high) = (low, high);
        range.ticks.retain(|(v, _)| (low..=high).contains(v));
        range
    }

    /// An axis with ticks at the values given, a little wider than they are; logarithmic when the
    /// largest is 30 times the smallest.
    pub fn at_values(values: &[f64]) -> Self {
        let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
        let ticks = values.iter().map(|v| (*v, number(*v))).collect();
        if low > 0.0 && high / low >= 30.0 {
            let margin = (high / low).powf(0.04);
            return Self { low: low / margin, high: high * margin, log: true, ticks };
        }
        let margin = if high > low { (high - low) * 0.04 } else { 0.5 };
        Self { low: low - margin, high: high + margin, log: false, ticks }
    }

    /// A logarithmic axis between two values, with the ticks given.
    pub fn log_between(low: f64, high: f64, ticks: &[f64]) -> Self {
        let ticks = ticks.iter().filter(|t| (low..=high * 1.0001).contains(*t)).map(|v| (*v, number(*v))).collect();
        Self { low, high: high.max(low * 1.01), log: true, ticks }
    }

    /// The share of the axis below a value, 0 to 1; what the axis does not reach stands at its end.
    pub fn share(&self, value: f64) -> f64 {
        let share = if self.log {
            if value <= 0.0 {
                return 0.0;
            }
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        share.clamp(0.0, 1.0)
    }

    /// Leaves out ticks until neighbouring texts, centred, keep apart on an axis of that length.
    pub fn thinned(mut self, length: f64, size: f64) -> Self {
        for stride in 1..=self.ticks.len().max(1) {
            let kept: Vec<_> = self.ticks.iter().step_by(stride).collect();
            let apart = kept.windows(2).all(|pair| {
                let gap = (self.share(pair[1].0) - self.share(pair[0].0)).abs() * length;
                (text::width(&pair[0].1, size) + text::width(&pair[1].1, size)) / 2.0 + 3.0 <= gap
            });
            if apart {
                self.ticks = kept.into_iter().cloned().collect();
                break;
            }
        }
        self
    }
}

/// 1, 2 or 5 times a power of ten, at least `rough`.
fn round_step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.log10().floor());
    let times = [1.0, 2.0, 5.0].into_iter().find(|t| t * power >= rough * 0.999).unwrap_or(10.0);
    times * power
}

/// A number in few digits: `4096`, `12.3k`, `1.5M`, `0.25`.
pub fn number(value: f64) -> String {
    let magnitude = value.abs();
    let steps = [(1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")];
    if let Some((least, letter)) = steps.into_iter().find(|s| magnitude >= s.0 * 0.999_95) {
        let unit = if letter == "k" { 1e3 } else { least };
        return format!("{}{letter}", digits(value / unit, 3));
    }
    if magnitude >= 100.0 || value == value.trunc() { format!("{value:.0}") } else { digits(value, 3) }
}

/// A number with so many significant digits and no trailing zeros.
fn digits(value: f64, significant: i32) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let decimals = (significant - 1 - value.abs().log10().floor() as i32).clamp(0, 12) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// What a column is, with its unit, in words for an axis.
pub fn column_label(column: &str) -> String {
    let Some((unit, doc)) = columns::describe(column) else { return column.to_owned() };
    let (name, of) = column.split_once('.').unwrap_or((column, ""));
    let words = match (name, of) {
        ("capacity", cache) => format!("capacity of {cache}"),
        ("makespan", _) => "makespan".to_owned(),
        ("movement", cache) => format!("extra data movement of {cache}"),
        (axis, "") if columns::is_axis(axis) => axis.replace('_', " "),
        (_, "") => doc.split([';', ',', '(']).next().unwrap_or(doc).trim().to_owned(),
        (_, of) => doc.replace("the cache", of).replace("the pipe", of),
    };
    if unit.is_empty() || (unit == "count" && columns::is_axis(column)) { words } else { format!("{words} ({unit})") }
}

/// Draws the vertical axis of a panel: grid, ticks, and its label at the left edge of `outer`.
pub fn vertical(scene: &mut Scene, plot: Rect, outer_left: f64, range: &Range, label: &str) {
    for (value, tick) in &range.ticks {
        let y = plot.bottom() - range.share(*value) * plot.h;
        scene.line(vec![(plot.x, y), (plot.right(), y)], look::GRID);
        scene.text((plot.x - 3.0, y), tick, look::SMALL, look::INK, Align::Right);
    }
    scene.line(vec![(plot.x, plot.y), (plot.x, plot.bottom())], look::AXIS);
    axis_title(scene, plot, outer_left, label);
}

/// Writes the label of a vertical axis, in two lines where one is too long.
pub fn axis_title(scene: &mut Scene, plot: Rect, outer_left: f64, label: &str) {
    let lines = title_lines(label, plot.h);
    for (i, line) in lines.iter().enumerate() {
        let x = outer_left + look::NORMAL / 2.0 + 1.0 + i as f64 * (look::NORMAL + 1.0);
        scene.turned((x, plot.y + plot.h / 2.0), line, look::NORMAL, look::INK, Align::Center);
    }
}

/// The lines of an axis label along a length.
fn title_lines(label: &str, length: f64) -> Vec<String> {
    let room = length + 14.0;
    let lines = text::balanced(label, look::NORMAL, room, 1).or_else(|| text::balanced(label, look::NORMAL, room, 2));
    lines.unwrap_or_else(|| vec![text::shortened(label, look::NORMAL, room)])
}

/// The room left of a panel for the ticks and the label of its vertical axis.
pub fn vertical_room(range: &Range, label: &str, height: f64) -> f64 {
    let ticks = range.ticks.iter().map(|(_, t)| text::width(t, look::SMALL)).fold(0.0, f64::max);
    ticks + 3.0 + title_lines(label, height).len() as f64 * (look::NORMAL + 1.0) + 4.0
}

/// Draws the horizontal axis of a panel: ticks below it and its label under them.
pub fn horizontal(scene: &mut Scene, plot: Rect, outer: Rect, range: &Range, label: &str) {
    scene.line(vec![(plot.x, plot.bottom()), (plot.right(), plot.bottom())], look::AXIS);
    for (value, tick) in &range.clone().thinned(plot.w, look::SMALL).ticks {
        let x = plot.x + range.share(*value) * plot.w;
        scene.line(vec![(x, plot.bottom()), (x, plot.bottom() + 2.0)], look::AXIS);
        scene.text((x, plot.bottom() + 7.0), tick, look::SMALL, look::INK, Align::Center);
    }
    below(scene, plot, outer, plot.bottom() + 16.5, label);
}

/// Writes the label of a horizontal axis under the middle of its plot, or as near to that as it fits
/// into `outer`.
pub fn below(scene: &mut Scene, plot: Rect, outer: Rect, y: f64, label: &str) {
    let label = text::shortened(label, look::NORMAL, outer.w);
    let half = text::width(&label, look::NORMAL) / 2.0;
    let middle = (plot.x + plot.w / 2.0).min(outer.right() - half).max(outer.x + half);
    scene.text((middle, y), label, look::NORMAL, look::INK, Align::Center);
}

/// The room below a panel for the ticks and the label of its horizontal axis.
pub const HORIZONTAL_ROOM: f64 = 23.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 4096.0, 12_345.0, 1_500_000.0, 0.25, 99.5, 1.0, 1e4, 3.9e9, 0.000_123].map(number);
        assert_eq!(shown, ["0", "4096", "12.3k", "1.5M", "0.25", "99.5", "1", "10k", "3.9G", "0.000123"]);
    }

    #[test]
    fn linear_axes_end_at_round_values() {
        let range = Range::of_values([3.0, 87.0].into_iter(), Scale::Linear);
        assert_eq!(range.ticks.iter().map(|t| t.1.as_str()).collect::<Vec<_>>(), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(range.share(50.0), 0.5);
        assert_eq!(Range::of_values([0.0].into_iter(), Scale::Auto).share(0.0), 0.0);
    }

    #[test]
    fn wide_spans_become_logarithmic() {
        let range = Range::of_values([0.0, 20.0, 50_000.0].into_iter(), Scale::Auto);
        assert!(range.log);
        assert_eq!((range.share(10.0), range.share(100_000.0), range.share(0.0)), (0.0, 1.0, 0.0));
        assert!(!Range::of_values([20.0, 500.0].into_iter(), Scale::Auto).log);
        assert!(!Range::of_values([0.0].into_iter(), Scale::Log).log, "nothing but zeros has no logarithm");
    }

    #[test]
    fn crowded_ticks_are_thinned() {
        let range = Range::at_values(&(0..40).map(|k| 1000.0 + f64::from(k)).collect::<Vec<_>>()).thinned(100.0, 6.5);
        assert!((2..7).contains(&range.ticks.len()), "{:?}", range.ticks);
    }

    #[test]
    fn labels_have_units() {
        assert_eq!(column_label("extra_movement"), "extra data movement (bytes)");
        assert_eq!(column_label("capacity.L1"), "capacity of L1 (bytes)");
        assert_eq!(column_label("heuristic"), "heuristic");
        assert_eq!(column_label("attempts"), "attempts");
        assert_eq!(column_label("prefetch"), "prefetch (op nodes)");
        assert_eq!(column_label("makespan"), "makespan (cycles)");
        assert_eq!(column_label("peak_residency.UB"), "most bytes of UB resident at once (bytes)");
    }
}
