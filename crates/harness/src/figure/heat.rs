//! Heat maps: a measured column over two parameters.

use super::axis::{self, Range, axis_title, column_label, look, number};
use super::bars::describe;
use super::layout::{Panel, Shown, SlotLabels, Values, facets, head, of_facet, ordered, page_width, panels};
use super::scene::{Align, Color, Mark, Rect, Scene, Shape};
use super::text;
use crate::experiment::{At, FigureSpec, Scale};
use crate::table::Row;

/// Anchors of the colour map cividis (Nuñez, Anderton & Renslow 2018), light to dark: the same
/// order of lightness for all colour visions, and in grey.
const MAP: [[u8; 3]; 6] =
    [[255, 234, 70], [203, 186, 105], [149, 143, 120], [102, 105, 112], [49, 68, 107], [0, 32, 77]];

/// Width of the colour bar with its ticks and its distance.
const BAR_ROOM: f64 = 34.0;

/// What a heat map shows.
pub struct Heat<'s> {
    /// The measured column.
    pub value: &'s str,
    /// The column along the horizontal axis.
    pub x: &'s str,
    /// The column along the vertical axis.
    pub y: &'s str,
    /// The column of the panels.
    pub facet: Option<&'s At<String>>,
}

fn color(share: f64) -> Color {
    let place = share.clamp(0.0, 1.0) * (MAP.len() - 1) as f64;
    let k = (place as usize).min(MAP.len() - 2);
    let mix = |i: usize| {
        let (a, b) = (f64::from(MAP[k][i]), f64::from(MAP[k + 1][i]));
        (a + (b - a) * (place - k as f64)).round() as u8
    };
    Color::rgb(mix(0), mix(1), mix(2))
}

/// Draws heat maps.
pub fn heat(spec: &FigureSpec, rows: &[Row<'_>], what: &Heat<'_>) -> Scene {
    let mut scene = Scene::new(page_width(spec.width), 0.0);
    let top = head(&mut scene, spec.title.as_deref(), &[]);
    let facets = facets(rows, what.facet);
    // The value axis has no room of its own: its label heads the panels.
    let values = Values::of(rows, &[what.x, what.y], what.value);
    let label = values.label(what.value);
    let label = text::shortened(&label, look::NORMAL, scene.width - 8.0);
    scene.text((scene.width / 2.0, top + 5.0), label, look::NORMAL, look::INK, Align::Center);
    let height = |facet: &str| {
        let lines = ordered(&of_facet(rows, what.facet, facet), what.y).len() as f64;
        (lines * 16.0).clamp(80.0, 220.0) + 48.0
    };
    let height = facets.iter().map(|f| height(f)).fold(0.0, f64::max);
    for panel in panels(&mut scene, top + 9.0, &facets, height, ordered(rows, what.x).len()) {
        let rows = of_facet(rows, what.facet, panel.facet);
        heat_panel(&mut scene, &panel, &rows, what);
    }
    scene
}

fn heat_panel(scene: &mut Scene, panel: &Panel<'_>, rows: &[Row<'_>], what: &Heat<'_>) {
    let values = Values::of(rows, &[what.x, what.y], what.value);
    let (xs, ys) = (ordered(rows, what.x), ordered(rows, what.y));
    let numbers: Vec<f64> =
        xs.iter().flat_map(|&x| ys.iter().filter_map(|&y| values.get(&[x, y])?.number()).collect::<Vec<_>>()).collect();
    let high = numbers.iter().copied().fold(0.0, f64::max);
    let range = Range::of_values(numbers.iter().copied(), Scale::Auto).up_to(high);
    let y_names: Vec<_> = ys.iter().map(|y| text::shortened(&tick(y), look::SMALL, 70.0)).collect();
    let left = look::NORMAL + 8.0 + y_names.iter().map(|y| text::width(y, look::SMALL)).fold(0.0, f64::max);
    let x_names: Vec<_> = xs.iter().map(|x| tick(x)).collect();
    let x_names: Vec<&str> = x_names.iter().map(String::as_str).collect();
    let slot = (panel.outer.w - left - BAR_ROOM) / xs.len().max(1) as f64;
    let names = SlotLabels::fit(&x_names, slot);
    let plot = panel.outer.inset(left, 4.0, BAR_ROOM, names.depth + look::NORMAL + 4.0);
    names.draw(scene, plot);
    let tile = (plot.w / xs.len().max(1) as f64, plot.h / ys.len().max(1) as f64);
    for (j, y) in ys.iter().enumerate() {
        // The first value stands at the bottom, as on any axis.
        let top = plot.bottom() - (j + 1) as f64 * tile.1;
        scene.text((plot.x - 3.0, top + tile.1 / 2.0), y_names[j].as_str(), look::SMALL, look::INK, Align::Right);
        for (i, x) in xs.iter().enumerate() {
            let Some(shown) = values.get(&[x, y]) else { continue };
            let rect = Rect { x: plot.x + i as f64 * tile.0, y: top, w: tile.0, h: tile.1 };
            draw_tile(scene, rect, shown, &range);
            describe(scene, panel.facet, &[(what.x, x), (what.y, y)], what.value, shown);
        }
    }
    let below = plot.bottom() + names.depth + look::NORMAL / 2.0 + 2.0;
    axis::below(scene, plot, panel.outer, below, &column_label(what.x));
    axis_title(scene, plot, panel.outer.x, column_label(what.y).as_str());
    draw_scale(scene, Rect { x: plot.right() + 5.0, w: 6.0, ..plot }, &range);
}

/// The text of a value on an axis: numbers are shortened.
fn tick(text: &str) -> String {
    text.parse().map_or_else(|_| text.to_owned(), number)
}

fn draw_tile(scene: &mut Scene, rect: Rect, shown: Shown, range: &Range) {
    let middle = (rect.x + rect.w / 2.0, rect.y + rect.h / 2.0);
    let inner = rect.inset(0.2, 0.2, 0.2, 0.2);
    let (fill, text, ink) = match shown {
        Shown::Mean(value, _) => {
            let fill = color(range.share(value));
            (fill, number(value), if fill.is_dark() { Color::rgb(255, 255, 255) } else { look::INK })
        }
        Shown::NoPlan => (Color::rgb(235, 235, 235), "no plan".to_owned(), look::NOTHING),
    };
    scene.fill(inner, fill);
    if text::width(&text, look::SMALL) <= rect.w - 1.5 && rect.h > look::SMALL + 1.0 {
        scene.text(middle, text, look::SMALL, ink, Align::Center);
    } else if shown == Shown::NoPlan {
        scene.shapes.push(Shape::Mark(Mark::Cross, middle, 1.5, look::NOTHING));
    }
}

fn draw_scale(scene: &mut Scene, bar: Rect, range: &Range) {
    const STEPS: usize = 48;
    for k in 0..STEPS {
        let share = (k as f64 + 0.5) / STEPS as f64;
        let h = bar.h / STEPS as f64;
        // Steps overlap a little, so that no gap shows between them.
        scene.fill(Rect { y: bar.bottom() - (k + 1) as f64 * h, h: h + 0.1, ..bar }, color(share));
    }
    for (value, text) in &range.ticks {
        let y = bar.bottom() - range.share(*value) * bar.h;
        scene.line(vec![(bar.right(), y), (bar.right() + 1.5, y)], look::AXIS);
        scene.text((bar.right() + 2.5, y), text, look::SMALL, look::INK, Align::Left);
    }
}
