//! `spillbench figure`: one plan as a picture.

use crate::args::{GRAPH_HELP, HardwareArgs, PlanFilesArgs};
use crate::commands::plot;
use crate::console::{Console, Outcome};
use crate::error::CliError;
use crate::outputs::Outputs;
use crate::resolve::{self, GivenPlan};
use clap::{Args, ValueEnum};
use spillbench_harness::experiment::{PlanView, Width};
use spillbench_harness::figure::{self, Drawn, PlanPicture};
use std::path::PathBuf;

/// Arguments of `figure`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    spillbench figure map out/Conv_Case0_plan.json Conv_Case0.json\n  \
    spillbench figure timeline out/Conv_Case0_plan.json Conv_Case0.json --width page\n  \
    spillbench figure residency out/Conv_Case0_plan.json Conv_Case0.json --cache UB --out ub\n\n\
    Writes OUT.svg and OUT.png. The hardware is that of the plan document unless another is given.")]
pub struct FigureArgs {
    /// What is shown
    #[arg(value_enum)]
    view: View,
    /// The plan: its document (JSON), or the directory of its files
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// The graph of the plan
    #[arg(value_name = "GRAPH", help = GRAPH_HELP)]
    graph: PathBuf,
    /// Show one cache only
    #[arg(long, value_name = "NAME")]
    cache: Option<String>,
    /// One column of a two-column page, or the whole page
    #[arg(long, value_enum, default_value_t = Size::Page)]
    width: Size,
    /// A heading above the picture
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Stem of the files; by default TASK_VIEW
    #[arg(long, value_name = "STEM")]
    out: Option<PathBuf>,
    #[command(flatten)]
    hardware: HardwareArgs,
}

/// A view of a plan.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum View {
    /// Addresses over the schedule: a rectangle for each residency segment
    Map,
    /// Pipes over cycles: a bar for each op, and why a pipe is idle
    Timeline,
    /// Bytes resident in each cache over the schedule, with its capacity
    Residency,
}

/// The width of a picture.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Size {
    /// 3.5 inches
    Column,
    /// 7 inches
    Page,
}

impl FigureArgs {
    /// Draws the picture.
    ///
    /// # Errors
    /// When the plan or the graph cannot be read, do not belong together, or have no timing.
    pub fn run(self, console: &mut Console) -> Result<Outcome, CliError> {
        let files = PlanFilesArgs { plan: Some(self.plan.clone()), schedule: None, memory: None, spill: None };
        let GivenPlan { task, source, machine, .. } =
            resolve::given_plan((&self.graph, None), &files, &self.hardware, console)?;
        let (view, width) = (self.view.resolve(), self.width.resolve());
        let stem = self.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}_{view}", task.name)));
        Outputs::new().figure("--out", Some(&stem)).check()?;
        if let Some(cache) = &self.cache {
            let names = task.graph.cache_names();
            if !names.contains(cache) {
                return Err(resolve::unknown("cache in this graph", cache, names.iter().map(String::as_str)));
            }
        }
        let (cache, heading) = (self.cache.as_deref(), self.title.as_deref());
        let picture = PlanPicture { graph: &task.graph, machine: &machine, plan: &source.plan, cache, heading, width };
        let Some(mut scene) = figure::of_plan(view, &picture)? else {
            return Err(CliError::usage(
                format!("{}: no timeline, because some op has no Pipe or no Cycles", self.graph.display()),
                "draw the map or the residency instead",
            ));
        };
        scene.title = format!("{view} of a plan of {}", task.name);
        plot::write(&Drawn::of(&scene, &view.to_string())?, &stem, console)?;
        Ok(Outcome::Done)
    }
}

impl View {
    fn resolve(self) -> PlanView {
        match self {
            Self::Map => PlanView::Map,
            Self::Timeline => PlanView::Timeline,
            Self::Residency => PlanView::Residency,
        }
    }
}

impl Size {
    fn resolve(self) -> Width {
        match self {
            Self::Column => Width::Column,
            Self::Page => Width::Page,
        }
    }
}
