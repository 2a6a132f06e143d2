//! The page: legend on top, panels in a grid below, and the values that panels show.

use super::axis::look;
use super::scene::{Align, Color, Mark, Rect, Scene, Stroke};
use super::text;
use crate::experiment::{At, Width};
use crate::table::{Row, distinct};
use std::collections::HashMap;

/// The width of a figure in points.
pub fn page_width(width: Width) -> f64 {
    match width {
        Width::Column => 252.0,
        Width::Page => 504.0,
    }
}

/// What a legend shows before a name.
#[derive(Clone, Copy)]
pub enum Sample {
    /// A filled square.
    Patch(Color),
    /// A line with a mark.
    Curve(Color, Mark),
    /// A mark.
    Point(Color, Mark),
    /// A line.
    Line(Stroke),
}

/// The words of a legend for a text of a column: those that mean nothing by themselves, such as `true`,
/// `8` and `+10%`, with the name of the column.
pub fn series_name(column: &str, text: &str) -> String {
    let column = column.replace('_', " ");
    let speaks = text.starts_with(char::is_alphabetic) && !matches!(text, "true" | "false" | "none");
    match text {
        "" => format!("no {column}"),
        _ if speaks => text.to_owned(),
        _ => format!("{column} {text}"),
    }
}

const SAMPLE_WIDTH: f64 = 14.0;
const MARGIN: f64 = 4.0;

/// A slot narrower than this has no room for a name that runs upwards.
const NARROWEST: f64 = look::SMALL + 1.0;

/// The start of a figure: its heading and legend. Returns where the panels may begin.
pub fn head(scene: &mut Scene, heading: Option<&str>, entries: &[(String, Sample)]) -> f64 {
    let mut top = MARGIN;
    if let Some(heading) = heading {
        for line in text::wrapped(heading, look::NORMAL, scene.width - 2.0 * MARGIN, 4).unwrap_or_default() {
            scene.text((scene.width / 2.0, top + 5.0), line, look::NORMAL, look::INK, Align::Center);
            top += look::NORMAL + 2.0;
        }
    }
    top + legend(scene, top, entries)
}

/// Draws the legend in as many lines as it takes; returns its height.
fn legend(scene: &mut Scene, top: f64, entries: &[(String, Sample)]) -> f64 {
    let room = scene.width - 2.0 * MARGIN;
    let longest = room - SAMPLE_WIDTH - 3.0;
    let mut lines: Vec<Vec<(String, Sample, f64)>> = vec![Vec::new()];
    let mut used = 0.0;
    for (name, sample) in entries {
        let name = text::shortened(name, look::SMALL, longest);
        let width = SAMPLE_WIDTH + 3.0 + text::width(&name, look::SMALL) + 7.0;
        if used + width > room + 7.0 && used > 0.0 {
            lines.push(Vec::new());
            used = 0.0;
        }
        used += width;
        if let Some(line) = lines.last_mut() {
            line.push((name, *sample, width));
        }
    }
    lines.retain(|line| !line.is_empty());
    for (k, line) in lines.iter().enumerate() {
        let y = top + (k as f64 + 0.5) * look::LINE;
        let total: f64 = line.iter().map(|entry| entry.2).sum::<f64>() - 7.0;
        let mut x = (scene.width - total) / 2.0;
        for (name, sample, width) in line {
            draw_sample(scene, *sample, x, y);
            scene.text((x + SAMPLE_WIDTH + 3.0, y), name.as_str(), look::SMALL, look::INK, Align::Left);
            x += width;
        }
    }
    lines.len() as f64 * look::LINE + 2.0
}

fn draw_sample(scene: &mut Scene, sample: Sample, x: f64, y: f64) {
    match sample {
        Sample::Patch(color) => scene.fill(Rect { x: x + 6.0, y: y - 3.0, w: 8.0, h: 6.0 }, color),
        Sample::Curve(color, mark) => {
            scene.line(vec![(x, y), (x + SAMPLE_WIDTH, y)], Stroke::solid(color, 1.0));
            scene.shapes.push(super::scene::Shape::Mark(mark, (x + SAMPLE_WIDTH / 2.0, y), 2.0, color));
        }
        Sample::Point(color, mark) => {
            scene.shapes.push(super::scene::Shape::Mark(mark, (x + SAMPLE_WIDTH / 2.0, y), 2.0, color));
        }
        Sample::Line(stroke) => scene.line(vec![(x, y), (x + SAMPLE_WIDTH, y)], stroke),
    }
}

/// A panel: its outer space below its heading.
pub struct Panel<'a> {
    /// The value of the facet column; empty for the only panel.
    pub facet: &'a str,
    /// The space for plot, ticks and labels.
    pub outer: Rect,
}

/// Lays out panels of one height below `top`, writes their headings, and sets the height of the
/// page. Panels of many slots get fewer neighbours, so that every slot has room for its name.
pub fn panels<'a>(scene: &mut Scene, top: f64, facets: &[&'a str], height: f64, slots: usize) -> Vec<Panel<'a>> {
    /// Ticks, labels and the scale of a heat map.
    const BESIDE: f64 = 75.0;
    let wide = scene.width > 300.0;
    let mut columns = match (facets.len(), wide) {
        (0 | 1, _) => 1,
        (n @ (2 | 3), true) => n,
        (4, true) => 2,
        (_, true) => 3,
        (_, false) => 2,
    };
    while columns > 1 && scene.width / columns as f64 - BESIDE < slots as f64 * NARROWEST {
        columns -= 1;
    }
    let gap = 6.0;
    let width = (scene.width - 2.0 * MARGIN - gap * (columns - 1) as f64) / columns as f64;
    let heading = if facets.len() > 1 { look::NORMAL + 4.0 } else { 4.0 };
    let mut panels = Vec::new();
    for (k, &facet) in facets.iter().enumerate() {
        let (x, y) =
            (MARGIN + (k % columns) as f64 * (width + gap), top + (k / columns) as f64 * (height + heading + 4.0));
        if facets.len() > 1 {
            let shown = text::shortened(facet, look::NORMAL, width);
            scene.text((x + width / 2.0, y + heading / 2.0), shown, look::NORMAL, look::INK, Align::Center);
        }
        panels.push(Panel { facet, outer: Rect { x, y: y + heading, w: width, h: height } });
    }
    scene.height = top + facets.len().div_ceil(columns) as f64 * (height + heading + 4.0) - 2.0;
    panels
}

/// What a figure shows for one combination of texts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shown {
    /// The mean over so many rows.
    Mean(f64, usize),
    /// Some row has no result.
    NoPlan,
}

impl Shown {
    /// The number, where there is one.
    pub fn number(self) -> Option<f64> {
        if let Self::Mean(mean, _) = self { Some(mean) } else { None }
    }
}

/// Values by the texts of some columns.
pub struct Values<'a> {
    by_key: HashMap<Vec<&'a str>, Shown>,
    /// The most rows that one value is the mean of.
    pub most_rows: usize,
}

impl<'a> Values<'a> {
    /// The means of `value` over the rows that agree in `keys`.
    pub fn of(rows: &[Row<'a>], keys: &[&str], value: &str) -> Self {
        let mut sums: HashMap<Vec<&str>, (f64, usize, usize)> = HashMap::new();
        for row in rows {
            let key = keys.iter().map(|k| row.text(k)).collect();
            let (sum, count, lacking) = sums.entry(key).or_default();
            match row.number(value) {
                Some(x) => (*sum, *count) = (*sum + x, *count + 1),
                None => *lacking += 1,
            }
        }
        let most_rows = sums.values().map(|s| s.1).max().unwrap_or(0);
        let shown = |(sum, count, lacking): (f64, usize, usize)| {
            if lacking > 0 || count == 0 { Shown::NoPlan } else { Shown::Mean(sum / count as f64, count) }
        };
        Self { by_key: sums.into_iter().map(|(key, sum)| (key, shown(sum))).collect(), most_rows }
    }

    /// The value of a combination; `None` when no row has it.
    pub fn get(&self, key: &[&'a str]) -> Option<Shown> {
        self.by_key.get(key).copied()
    }

    /// The label of the value axis: that of the column, and whether means are shown.
    pub fn label(&self, column: &str) -> String {
        let label = super::axis::column_label(column);
        if self.most_rows > 1 { format!("mean {label}") } else { label }
    }
}

/// The texts of a facet column, or one empty text when there is none.
pub fn facets<'a>(rows: &[Row<'a>], facet: Option<&At<String>>) -> Vec<&'a str> {
    facet.map_or_else(|| vec![""], |column| distinct(rows, &column.value))
}

/// The rows of one facet.
pub fn of_facet<'a>(rows: &[Row<'a>], facet: Option<&At<String>>, text: &str) -> Vec<Row<'a>> {
    rows.iter().copied().filter(|row| facet.is_none_or(|column| row.text(&column.value) == text)).collect()
}

/// Texts below the slots of an axis: side by side if they fit, upwards otherwise. Returns the depth
/// they take.
pub struct SlotLabels {
    lines: Vec<Vec<String>>,
    /// Points from the axis down to the last of them.
    pub depth: f64,
    turned: bool,
}

impl SlotLabels {
    /// Fits texts into slots of a width.
    pub fn fit(names: &[&str], slot: f64) -> Self {
        let size = look::SMALL;
        let wrapped: Option<Vec<_>> = names.iter().map(|name| text::wrapped(name, size, slot - 3.0, 3)).collect();
        if let Some(lines) = wrapped {
            let most = lines.iter().map(Vec::len).max().unwrap_or(1);
            return Self { lines, depth: 3.0 + most as f64 * (size + 1.0), turned: false };
        }
        // Upwards, in as many columns of text as fit side by side into a slot; where not even one
        // fits, some names have to be left out.
        let columns = ((slot / NARROWEST) as usize).clamp(1, 2);
        let stride = (NARROWEST / slot.max(0.01)).ceil().max(1.0) as usize;
        let names = names.iter().enumerate().map(|(k, name)| if k % stride == 0 { name } else { "" });
        let room = 62.0;
        let lines: Vec<_> = names
            .map(|name| {
                text::balanced(name, size, room, columns).unwrap_or_else(|| vec![text::shortened(name, size, room)])
            })
            .collect();
        let longest = lines.iter().flatten().map(|l| text::width(l, size)).fold(0.0, f64::max);
        Self { lines, depth: 4.0 + longest, turned: true }
    }

    /// Writes them under a plot.
    pub fn draw(&self, scene: &mut Scene, plot: Rect) {
        let slot = plot.w / self.lines.len().max(1) as f64;
        for (k, lines) in self.lines.iter().enumerate() {
            let x = plot.x + (k as f64 + 0.5) * slot;
            for (i, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
                if self.turned {
                    let side = (i as f64 - (lines.len() as f64 - 1.0) / 2.0) * (look::SMALL + 1.0);
                    scene.turned((x + side, plot.bottom() + 3.0), line, look::SMALL, look::INK, Align::Right);
                } else {
                    let y = plot.bottom() + 3.0 + (i as f64 + 0.5) * (look::SMALL + 1.0);
                    scene.text((x, y), line, look::SMALL, look::INK, Align::Center);
                }
            }
        }
    }
}

/// The texts of a column over some rows: by value if all are numbers, in order of mention if not.
pub fn ordered<'a>(rows: &[Row<'a>], column: &str) -> Vec<&'a str> {
    let mut texts = distinct(rows, column);
    let numbers: Option<Vec<f64>> = texts.iter().map(|t| t.parse().ok()).collect();
    if numbers.is_some() {
        texts.sort_by(|a, b| a.parse::<f64>().unwrap_or(0.0).total_cmp(&b.parse::<f64>().unwrap_or(0.0)));
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legends_speak() {
        let names = ["lru", "true", "+10%", "none", "8", ""].map(|text| series_name("max_movement", text));
        let named =
            ["max movement true", "max movement +10%", "max movement none", "max movement 8", "no max movement"];
        assert_eq!(names[0], "lru");
        assert_eq!(names[1..], named);
    }
}
