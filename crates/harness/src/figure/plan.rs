//! Views of one plan: residency over the schedule, and the address map; the timeline has a file of
//! its own.

use super::axis::{self, HORIZONTAL_ROOM, Range, look};
use super::layout::{Sample, head, page_width, panels};
use super::scene::{Align, Color, Rect, Scene, Stroke};
use super::{text, timeline};
use crate::experiment::{PlanView, Width};
use spillbench_core::hardware::Hardware;
use spillbench_core::index::{CacheIx, Pos};
use spillbench_core::metrics::MeasureError;
use spillbench_core::metrics::residency::{self, Segment};
use spillbench_core::plan::Plan;
use spillbench_core::{Graph, Machine};
use std::fmt::Write;

/// Never moved.
const STAYS: Color = Color::rgb(160, 190, 215);
/// Of a buffer that is spilled and whose contents also stand in the next level.
const BACKED: Color = look::PALETTE[1];
/// Of a buffer that is spilled and has to be written back.
const GENERATED: Color = look::PALETTE[3];
/// The capacity of a cache.
const LIMIT: Stroke = Stroke { color: look::PALETTE[3], width: 0.8, dash: Some((3.0, 2.0)) };
/// Where a spill ends or begins a segment.
const EDGE: Stroke = Stroke::solid(Color::rgb(0, 0, 0), 0.6);

/// A plan with all that is needed to draw it.
#[derive(Clone, Copy)]
pub struct PlanPicture<'a> {
    /// Its graph.
    pub graph: &'a Graph,
    /// Its hardware, as the graph sees it.
    pub machine: &'a Machine,
    /// The plan.
    pub plan: &'a Plan,
    /// The one cache to show; all when `None`.
    pub cache: Option<&'a str>,
    /// A heading.
    pub heading: Option<&'a str>,
    /// The width of the figure.
    pub width: Width,
}

/// Draws a view; `None` for a timeline of a graph without timing.
///
/// # Errors
/// When the plan does not belong to the graph, or is not valid.
pub fn view(view: PlanView, picture: &PlanPicture<'_>) -> Result<Option<Scene>, MeasureError> {
    match view {
        PlanView::Residency => picture.residency().map(Some),
        PlanView::Map => picture.map().map(Some),
        PlanView::Timeline => timeline::draw(picture),
    }
}

/// The color of a segment and whether its buffer is ever spilled.
fn segment_color(graph: &Graph, spilled: &[bool], segment: &Segment) -> Color {
    match (spilled[segment.buf.index()], graph.buf(segment.buf).backed) {
        (false, _) => STAYS,
        (true, true) => BACKED,
        (true, false) => GENERATED,
    }
}

impl PlanPicture<'_> {
    fn scene(&self) -> Scene {
        Scene::new(page_width(self.width), 0.0)
    }

    /// The caches to show: those asked for that the graph uses.
    fn caches(&self) -> Vec<CacheIx> {
        let wanted = |c: &CacheIx| self.cache.is_none_or(|name| self.graph.cache_name(*c) == name);
        self.graph.caches().filter(wanted).collect()
    }

    fn names(&self) -> Vec<&str> {
        self.caches().into_iter().map(|c| self.graph.cache_name(c)).collect()
    }

    /// The capacity of a cache, unless it is unbounded.
    fn capacity(&self, cache: CacheIx) -> Option<u64> {
        Some(self.machine.cache(cache).capacity).filter(|c| *c < Hardware::UNBOUNDED).map(|c| c.0)
    }

    fn x_range(&self) -> Range {
        Range::exact(0.0, self.plan.schedule.len() as f64, 6)
    }

    /// The frame of a panel over the schedule; returns its plot.
    fn frame(&self, scene: &mut Scene, outer: Rect, y_range: &Range, label: &str) -> Rect {
        let left = axis::vertical_room(y_range, label, outer.h - HORIZONTAL_ROOM);
        let plot = outer.inset(left, 5.0, 8.0, HORIZONTAL_ROOM);
        axis::vertical(scene, plot, outer.x, y_range, label);
        axis::horizontal(scene, plot, outer, &self.x_range(), "position in the schedule");
        plot
    }

    fn residency(&self) -> Result<Scene, MeasureError> {
        let segments = residency::segments(self.graph, self.machine, self.plan)?;
        let mut scene = self.scene();
        let entries =
            [("resident".to_owned(), Sample::Patch(look::PALETTE[5])), ("capacity".to_owned(), Sample::Line(LIMIT))];
        let top = head(&mut scene, self.heading, &entries);
        let caches = self.caches();
        for (panel, cache) in panels(&mut scene, top, &self.names(), 105.0, 0).into_iter().zip(caches) {
            let steps = resident_bytes(&segments, cache, self.plan.schedule.len());
            let peak = steps.iter().copied().max().unwrap_or(0);
            let capacity = self.capacity(cache);
            let high = capacity.unwrap_or(peak).max(peak).max(1);
            let y_range = Range::exact(0.0, high as f64 * 1.06, 4);
            let plot = self.frame(&mut scene, panel.outer, &y_range, "resident (bytes)");
            draw_area(&mut scene, plot, &steps, &y_range);
            if let Some(capacity) = capacity {
                let y = plot.bottom() - y_range.share(capacity as f64) * plot.h;
                scene.line(vec![(plot.x, y), (plot.right(), y)], LIMIT);
            }
            let limit = capacity.map_or_else(|| "unbounded".to_owned(), |c| c.to_string());
            let name = self.graph.cache_name(cache);
            let _ = writeln!(scene.description, "{name}: capacity {limit}, peak residency {peak}");
        }
        Ok(scene)
    }

    fn map(&self) -> Result<Scene, MeasureError> {
        let segments = residency::segments(self.graph, self.machine, self.plan)?;
        let mut spilled = vec![false; self.graph.buffer_count()];
        segments.iter().filter(|s| s.evicted_by.is_some()).for_each(|s| spilled[s.buf.index()] = true);
        let mut scene = self.scene();
        let patch = |words: &str, color| (words.to_owned(), Sample::Patch(color));
        let entries = [
            patch("never spilled", STAYS),
            patch("spilled, backed", BACKED),
            patch("spilled, generated", GENERATED),
            ("spill or reload".to_owned(), Sample::Line(EDGE)),
            ("capacity".to_owned(), Sample::Line(LIMIT)),
        ];
        let top = head(&mut scene, self.heading, &entries);
        let caches = self.caches();
        for (panel, cache) in panels(&mut scene, top, &self.names(), 130.0, 0).into_iter().zip(caches) {
            let own: Vec<&Segment> = segments.iter().filter(|s| s.cache == cache).collect();
            let reach = own.iter().map(|s| s.offset.end(s.size).0).max().unwrap_or(1);
            let capacity = self.capacity(cache);
            let y_range = Range::exact(0.0, capacity.unwrap_or(reach).max(1) as f64 * 1.06, 4);
            let plot = self.frame(&mut scene, panel.outer, &y_range, "address (bytes)");
            self.draw_segments(&mut scene, plot, &y_range, &own, &spilled);
            if let Some(capacity) = capacity {
                let y = plot.bottom() - y_range.share(capacity as f64) * plot.h;
                scene.line(vec![(plot.x, y), (plot.right(), y)], LIMIT);
            }
            let spills = own.iter().filter(|s| s.evicted_by.is_some()).count();
            let name = self.graph.cache_name(cache);
            let _ = writeln!(scene.description, "{name}: {} segments, {spills} spills", own.len());
        }
        Ok(scene)
    }

    fn draw_segments(&self, scene: &mut Scene, plot: Rect, y_range: &Range, own: &[&Segment], spilled: &[bool]) {
        let x_range = self.x_range();
        let x = |pos: Pos| plot.x + x_range.share(pos.index() as f64) * plot.w;
        let y = |address: u64| plot.bottom() - y_range.share(address as f64) * plot.h;
        let rect_of = |s: &Segment| {
            let (left, right, top) = (x(s.from), x(s.to), y(s.offset.end(s.size).0));
            Rect { x: left, y: top, w: right - left, h: y(s.offset.0) - top }
        };
        for segment in own {
            let rect = rect_of(segment);
            // A hair of white parts neighbours, as long as there is something left to part.
            let (dx, dy) = (0.12f64.min(rect.w / 6.0), 0.12f64.min(rect.h / 6.0));
            let body = Rect { x: rect.x + dx, y: rect.y + dy, w: rect.w - 2.0 * dx, h: rect.h - 2.0 * dy };
            let color = segment_color(self.graph, spilled, segment);
            scene.fill(body, color);
            let name = self.graph.buf(segment.buf).id.to_string();
            if text::width(&name, look::SMALL - 1.0) + 2.0 <= rect.w && rect.h > look::SMALL {
                let middle = (rect.x + rect.w / 2.0, rect.y + rect.h / 2.0);
                let ink = if color.is_dark() { Color::rgb(255, 255, 255) } else { look::INK };
                scene.text(middle, name, look::SMALL - 1.0, ink, Align::Center);
            }
        }
        for segment in own {
            let rect = rect_of(segment);
            if segment.reloaded_by.is_some() {
                scene.line(vec![(rect.x, rect.y), (rect.x, rect.bottom())], EDGE);
            }
            if segment.evicted_by.is_some() {
                scene.line(vec![(rect.right(), rect.y), (rect.right(), rect.bottom())], EDGE);
            }
        }
    }
}

/// The bytes of a cache resident at each position.
fn resident_bytes(segments: &[Segment], cache: CacheIx, positions: usize) -> Vec<u64> {
    let mut change = vec![0i128; positions + 1];
    for segment in segments.iter().filter(|s| s.cache == cache) {
        change[segment.from.index()] += i128::from(segment.size.0);
        change[segment.to.index()] -= i128::from(segment.size.0);
    }
    let mut now = 0;
    let step = |delta: &i128| {
        now += delta;
        u64::try_from(now).unwrap_or(0)
    };
    change[..positions].iter().map(step).collect()
}

/// More steps than this are drawn as the maxima of so many equal parts.
const MOST_STEPS: usize = 1500;

fn draw_area(scene: &mut Scene, plot: Rect, steps: &[u64], y_range: &Range) {
    let parts = steps.len().min(MOST_STEPS);
    let x = |k: usize| plot.x + k as f64 / parts.max(1) as f64 * plot.w;
    let tops: Vec<u64> = (0..parts)
        .map(|k| &steps[k * steps.len() / parts..(k + 1) * steps.len() / parts])
        .map(|part| part.iter().copied().max().unwrap_or(0))
        .collect();
    let mut outline = vec![(plot.x, plot.bottom())];
    let mut k = 0;
    // Run by run of one height, because a polygon of a thousand corners is slow to fill.
    for run in tops.chunk_by(|a, b| a == b) {
        let (left, right) = (x(k), x(k + run.len()));
        let y = plot.bottom() - y_range.share(run[0] as f64) * plot.h;
        if run[0] > 0 {
            scene.fill(Rect { x: left, y, w: right - left, h: plot.bottom() - y }, look::PALETTE[5]);
        }
        outline.extend([(left, y), (right, y)]);
        k += run.len();
    }
    outline.push((plot.right(), plot.bottom()));
    scene.line(outline, Stroke::solid(look::PALETTE[0], 0.5));
}
