//! The timeline of a plan: pipes over cycles, a bar for each step, and why a pipe is idle.
//!
//! Where the bars of a pipe are too narrow to be told apart, its lane is cut into columns instead,
//! each filled from below by the shares of its time.

use super::axis::{self, HORIZONTAL_ROOM, Range, look, number};
use super::layout::{Sample, head, page_width, panels};
use super::plan::PlanPicture;
use super::scene::{Align, Color, Rect, Scene};
use super::text;
use spillbench_core::index::{PipeIx, indices};
use spillbench_core::metrics::MeasureError;
use spillbench_core::metrics::steps::Step;
use spillbench_core::metrics::timing::{IdleCause, PipeUse, TimedPlan};
use spillbench_core::units::Cycles;
use std::fmt::Write;

/// What fills a lane, in the order in which a column stacks it: work in full colors, idle time in
/// pale ones. Before its first and after its last work a lane is empty.
const KINDS: [(&str, Color); 6] = [
    ("op", look::PALETTE[0]),
    ("SPILL_OUT", look::PALETTE[3]),
    ("SPILL_IN", look::PALETTE[1]),
    ("idle: data", Color::rgb(222, 222, 222)),
    ("idle: address", Color::rgb(247, 203, 214)),
    ("idle: order", Color::rgb(219, 200, 238)),
];

/// The kind of a span of idle time.
fn idle_kind(cause: IdleCause) -> Option<usize> {
    match cause {
        IdleCause::Data => Some(3),
        IdleCause::Address => Some(4),
        IdleCause::Order => Some(5),
        IdleCause::Head | IdleCause::Tail => None,
    }
}

/// Width of a column of shares in points.
const COLUMN: f64 = 1.5;

/// A lane of more bars than one in so many points is cut into columns.
const POINTS_PER_BAR: f64 = 1.5;

/// A part of a lane: start, end, kind, and the name of an op.
type Bar<'a> = (u64, u64, usize, &'a str);

/// What happens on one pipe.
struct Lane<'a> {
    name: &'a str,
    /// In order; no two overlap.
    bars: Vec<Bar<'a>>,
    used: PipeUse,
}

/// Draws the timeline; `None` when some op has no pipe or no cycles.
///
/// # Errors
/// When the plan does not belong to the graph, or is not valid.
pub fn draw(picture: &PlanPicture<'_>) -> Result<Option<Scene>, MeasureError> {
    let Some(timed) = TimedPlan::new(picture.graph, picture.machine, picture.plan)? else { return Ok(None) };
    let entries = KINDS.map(|(name, color)| (name.to_owned(), Sample::Patch(color)));
    let mut scene = Scene::new(page_width(picture.width), 0.0);
    let top = head(&mut scene, picture.heading, &entries);
    let pipes = indices(picture.machine.pipe_names()).map(|pipe| lane(&timed, pipe));
    let lanes: Vec<Lane<'_>> = pipes.filter(|lane| lane.used.busy > Cycles(0)).collect();
    let height = lanes.len() as f64 * 17.0 + HORIZONTAL_ROOM + 6.0;
    for panel in panels(&mut scene, top, &[""], height, 0) {
        draw_lanes(&mut scene, panel.outer, &lanes, timed.makespan().0);
    }
    Ok(Some(scene))
}

fn lane<'a>(timed: &'a TimedPlan<'_>, pipe: PipeIx) -> Lane<'a> {
    let mut bars: Vec<Bar<'_>> = Vec::new();
    for step in timed.on_pipe(pipe).into_iter().filter(|&s| timed.cycles(s) > Cycles(0)) {
        let (kind, name) = match timed.step(step) {
            Step::Node(n) => (0, timed.graph().op_name(n)),
            Step::SpillOut { .. } => (1, ""),
            Step::SpillIn { .. } => (2, ""),
        };
        bars.push((timed.start(step).0, timed.end(step).0, kind, name));
    }
    for gap in timed.gaps(pipe) {
        bars.extend(idle_kind(gap.cause).map(|kind| (gap.from.0, gap.to.0, kind, "")));
    }
    bars.sort_by_key(|bar| (bar.0, bar.1));
    Lane { name: &timed.machine().pipe_names()[pipe], bars, used: timed.pipe_use(pipe) }
}

fn draw_lanes(scene: &mut Scene, outer: Rect, lanes: &[Lane<'_>], makespan: u64) {
    let names: Vec<_> = lanes.iter().map(|l| text::shortened(l.name, look::SMALL, 60.0)).collect();
    let left = names.iter().map(|n| text::width(n, look::SMALL)).fold(0.0, f64::max) + 5.0;
    let plot = outer.inset(left, 4.0, 8.0, HORIZONTAL_ROOM);
    let x_range = Range::exact(0.0, makespan as f64, 6);
    axis::horizontal(scene, plot, outer, &x_range, "time (cycles)");
    let _ = writeln!(scene.description, "makespan {makespan}");
    let lane_height = plot.h / lanes.len().max(1) as f64;
    for (k, lane) in lanes.iter().enumerate() {
        let top = plot.y + k as f64 * lane_height;
        scene.text((plot.x - 3.0, top + lane_height / 2.0), names[k].as_str(), look::SMALL, look::INK, Align::Right);
        let body = Rect { x: plot.x, y: top + 1.5, w: plot.w, h: lane_height - 3.0 };
        if lane.bars.len() as f64 * POINTS_PER_BAR > plot.w {
            draw_columns(scene, body, lane, makespan);
        } else {
            draw_bars(scene, body, lane, &x_range);
        }
        scene.line(vec![(plot.x, top + lane_height), (plot.right(), top + lane_height)], look::GRID);
        describe(scene, lane, makespan);
    }
}

fn draw_bars(scene: &mut Scene, body: Rect, lane: &Lane<'_>, x_range: &Range) {
    let x = |cycle: u64| body.x + x_range.share(cycle as f64) * body.w;
    for &(start, end, kind, name) in &lane.bars {
        let bar = Rect { x: x(start), w: x(end) - x(start), ..body };
        // A hair of white parts neighbouring bars of work.
        let gap = if kind < 3 { 0.15f64.min(bar.w / 5.0) } else { 0.0 };
        scene.fill(Rect { w: bar.w - gap, ..bar }, KINDS[kind].1);
        if !name.is_empty() && text::width(name, look::SMALL) + 2.0 <= bar.w {
            let ink = if KINDS[kind].1.is_dark() { Color::rgb(255, 255, 255) } else { look::INK };
            let middle = (bar.x + bar.w / 2.0, bar.y + bar.h / 2.0);
            scene.text(middle, name, look::SMALL, ink, Align::Center);
        }
    }
}

/// Draws a lane as columns of shares; neighbours that look the same are one.
fn draw_columns(scene: &mut Scene, body: Rect, lane: &Lane<'_>, makespan: u64) {
    let columns = ((body.w / COLUMN) as usize).max(1);
    let heights = shares(&lane.bars, columns, makespan).into_iter().map(|shares| {
        // Heights in steps that a reader can see, so that neighbours can be joined.
        let mut below = 0.0;
        shares.map(|share| {
            below += share;
            (below * body.h * 10.0).round() / 10.0
        })
    });
    let heights: Vec<[f64; KINDS.len()]> = heights.collect();
    let mut first = 0;
    for run in heights.chunk_by(|a, b| a == b) {
        let x = |column: usize| body.x + column as f64 / columns as f64 * body.w;
        let (left, right) = (x(first), x(first + run.len()));
        let mut below = 0.0;
        for (&height, (_, color)) in run[0].iter().zip(KINDS) {
            if height > below {
                let rect = Rect { x: left, y: body.bottom() - height, w: right - left, h: height - below };
                scene.fill(rect, color);
            }
            below = height;
        }
        first += run.len();
    }
}

/// The share of each kind in the time of each of so many equal columns.
fn shares(bars: &[Bar<'_>], columns: usize, makespan: u64) -> Vec<[f64; KINDS.len()]> {
    let width = makespan.max(1) as f64 / columns as f64;
    let mut shares = vec![[0.0; KINDS.len()]; columns];
    for &(start, end, kind, _) in bars {
        let (start, end) = (start as f64 / width, end as f64 / width);
        let last = (end.ceil() as usize).clamp(1, columns) - 1;
        let first = (start as usize).min(last);
        for (column, share) in (first..).zip(&mut shares[first..=last]) {
            let inside = end.min(column as f64 + 1.0) - start.max(column as f64);
            share[kind] += inside.max(0.0);
        }
    }
    shares
}

fn describe(scene: &mut Scene, lane: &Lane<'_>, makespan: u64) {
    let share = number(lane.used.busy.0 as f64 / makespan.max(1) as f64);
    let works = lane.bars.iter().filter(|bar| bar.2 < 3).count();
    let _ = write!(scene.description, "{}: {works} bars, busy {} cycles ({share})", lane.name, lane.used.busy);
    for cause in IdleCause::ALL {
        let _ = write!(scene.description, ", {cause} {}", lane.used.idle(cause));
    }
    scene.description.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_the_time_that_is_covered() {
        // 10 cycles in 4 columns of 2.5: work 0-4, nothing 4-5, idle 5-10.
        let shares = shares(&[(0, 4, 0, ""), (5, 10, 4, "")], 4, 10);
        let of = |kind: usize| shares.iter().map(|s| (s[kind] * 1000.0).round() / 1000.0).collect::<Vec<_>>();
        assert_eq!(of(0), [1.0, 0.6, 0.0, 0.0]);
        assert_eq!(of(4), [0.0, 0.0, 1.0, 1.0]);
    }
}
