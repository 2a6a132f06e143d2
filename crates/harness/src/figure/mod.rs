//! Figures: from rows of a table, or from one plan, to SVG and PNG.
//!
//! A figure is laid out as a [`scene::Scene`] first, then drawn in both forms; nothing of the system
//! is needed, not even a font. The same rows give the same bytes.

mod anytime;
mod axis;
mod bars;
mod curves;
mod heat;
mod layout;
mod over;
mod plan;
mod render;
pub mod scene;
mod text;
mod timeline;

pub use plan::PlanPicture;

use crate::error::HarnessError;
use crate::experiment::{FigureKind, FigureSpec, PlanView};
use crate::study::Study;
use crate::table::{Row, Table};
use scene::Scene;
use spillbench_core::planner::Workspace;

/// A figure in both forms.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// As SVG, for papers.
    pub svg: String,
    /// As PNG of 360 pixels per inch.
    pub png: Vec<u8>,
}

impl Drawn {
    /// Draws a scene; `name` is for the error.
    ///
    /// # Errors
    /// When drawing fails.
    pub fn of(scene: &Scene, name: &str) -> Result<Self, HarnessError> {
        let failed = |e: Box<dyn std::error::Error + Send + Sync>| HarnessError::Drawing {
            figure: name.to_owned(),
            message: e.to_string(),
        };
        Ok(Self { svg: render::svg(scene).map_err(failed)?, png: render::png(scene).map_err(failed)? })
    }
}

/// Lays out a figure of rows; `None` when no row passes its filter or has what it shows, or when it
/// shows a plan, for which rows are not enough.
pub fn of_rows(table: &Table, spec: &FigureSpec) -> Option<Scene> {
    let rows = table.filtered(&spec.filter);
    if rows.is_empty() {
        return None;
    }
    let mut scene = match &spec.kind {
        FigureKind::Bars { value, group, series, facet, scale } => {
            let (value, group, series, facet) =
                (value.value.as_str(), group.value.as_str(), series.value.as_str(), facet.as_ref());
            bars::grouped(spec, &rows, &bars::Grouped { value, group, series, facet, scale: *scale })
        }
        FigureKind::Curves { value, x, series, facet, scale } => {
            let (value, x, series, facet) =
                (value.value.as_str(), x.value.as_str(), series.value.as_str(), facet.as_ref());
            curves::curves(spec, &rows, &curves::Curves { value, x, series, facet, scale: *scale })
        }
        FigureKind::Anytime { value, x, series, facet, scale } => {
            let (value, x, series, facet) =
                (value.value.as_str(), x.value.as_str(), series.value.as_str(), facet.as_ref());
            anytime::anytime(spec, &rows, &curves::Curves { value, x, series, facet, scale: *scale })
        }
        FigureKind::Heat { value, x, y, facet } => {
            let (value, x, y, facet) = (value.value.as_str(), x.value.as_str(), y.value.as_str(), facet.as_ref());
            heat::heat(spec, &rows, &heat::Heat { value, x, y, facet })
        }
        FigureKind::Profile { value, series } => curves::profile(spec, table, &rows, &value.value, &series.value),
        FigureKind::OverBound { series, facet } => over::over_bound(spec, &rows, &series.value, facet.as_ref())?,
        FigureKind::Causes { part, group, facet } => {
            bars::stacked(spec, table, &rows, *part, &group.value, facet.as_ref())
        }
        FigureKind::Plan { .. } => return None,
    };
    scene.title = format!("{}: {}", spec.name.value, caption(&spec.kind));
    Some(scene)
}

/// True for columns that figures read without naming them.
pub(crate) fn reads(column: &str) -> bool {
    matches!(column, "status" | "bound") || over::reads(column) || bars::reads(column)
}

/// What a figure shows, in words.
fn caption(kind: &FigureKind) -> String {
    let label = axis::column_label;
    match kind {
        FigureKind::Bars { value, group, series, .. } => {
            format!("{} by {} and {}", label(&value.value), group.value, series.value)
        }
        FigureKind::Curves { value, x, series, .. } => {
            format!("{} over {} by {}", label(&value.value), x.value, series.value)
        }
        FigureKind::Anytime { value, x, series, .. } => {
            format!("{} over {} by {}, median and range", label(&value.value), x.value, series.value)
        }
        FigureKind::Heat { value, x, y, .. } => format!("{} over {} and {}", label(&value.value), x.value, y.value),
        FigureKind::Profile { value, series } => {
            format!("performance profile of {} by {}", label(&value.value), series.value)
        }
        FigureKind::OverBound { series, .. } => format!("extra data movement over its lower bound by {}", series.value),
        FigureKind::Causes { group, .. } => format!("extra data movement (bytes) by {} in parts", group.value),
        FigureKind::Plan { view, .. } => format!("{view} of one plan"),
    }
}

/// Lays out a view of a plan; `None` for a timeline of a graph without timing.
///
/// # Errors
/// When the plan is not one of the graph.
pub fn of_plan(view: PlanView, picture: &PlanPicture<'_>) -> Result<Option<Scene>, HarnessError> {
    let scene = plan::view(view, picture)?;
    Ok(scene.map(|mut scene| {
        scene.title = format!("{view} of one plan");
        scene
    }))
}

/// Draws a figure of a study from its rows; `None` when there is nothing to draw.
///
/// # Errors
/// When drawing fails.
pub fn of_study(study: &Study, rows: &Table, spec: &FigureSpec) -> Result<Option<Drawn>, HarnessError> {
    let scene = match &spec.kind {
        FigureKind::Plan { view, cache } => {
            let first = rows.filtered(&spec.filter).into_iter().find(|row| row.text("status") == "ok");
            let cache = cache.as_ref().map(|c| c.value.as_str());
            match first {
                Some(row) => plan_of_row(study, row, spec, *view, cache)?,
                None => None,
            }
        }
        _ => of_rows(rows, spec),
    };
    let Some(mut scene) = scene else { return Ok(None) };
    scene.title = format!("{} ({})", scene.title, study.experiment.name);
    Drawn::of(&scene, &spec.name.value).map(Some)
}

/// Makes the plan of a row again and draws it.
fn plan_of_row(
    study: &Study,
    row: Row<'_>,
    spec: &FigureSpec,
    view: PlanView,
    cache: Option<&str>,
) -> Result<Option<Scene>, HarnessError> {
    let key = row.text("cell");
    let Some(cell) = (0..study.cell_count()).map(|i| study.cell(i)).find(|cell| cell.key.to_string() == key) else {
        return Ok(None);
    };
    let graph = &cell.graph.graph;
    let failed = |message: String| HarnessError::Drawing { figure: spec.name.value.clone(), message };
    let machine = cell.machine().map_err(failed)?;
    let plan = cell.plan(&machine, &mut Workspace::default());
    let plan = plan.map_err(|e| failed(e.to_string()))?.plan;
    let heading = spec.title.as_deref();
    let picture = PlanPicture { graph, machine: &machine, plan: &plan, cache, heading, width: spec.width };
    let mut scene = of_plan(view, &picture)?;
    if let Some(scene) = &mut scene {
        scene.title = format!("{}: {view} of {} under {}", spec.name.value, cell.graph.name, cell.maker());
    }
    Ok(scene)
}
