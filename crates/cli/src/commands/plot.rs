//! `spillbench plot`: figures from the rows of a sweep, without running anything.

use super::diff::read_runs;
use crate::console::{Console, Outcome};
use crate::error::CliError;
use crate::input;
use crate::outputs::Outputs;
use clap::Args;
use spillbench_harness::HarnessError;
use spillbench_harness::experiment::{ExperimentFile, FIGURE_KINDS, FigureOptions, FigureSpec, figure_from_options};
use spillbench_harness::figure::{self, Drawn};
use spillbench_harness::results;
use spillbench_harness::study;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Arguments of `plot`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    spillbench plot results/capacity --figure curves --set x=capacity.L1 --set where.placement=best-fit\n  \
    spillbench plot runs.csv --figure bars --set group=graph --set series=heuristic --set scale=log\n  \
    spillbench plot results/capacity --figure movement\n\n\
    A figure is the name of one that the experiment asks for, or a kind: bars, curves, anytime, heat,\n\
    profile, over-bound, causes. Keys of --set are those of [[figures]] in an experiment file.")]
pub struct PlotArgs {
    /// A results folder or a runs.csv
    #[arg(value_name = "RUNS")]
    runs: PathBuf,
    /// A kind of figure, or the name of one in the experiment; may be repeated
    #[arg(long, value_name = "KIND|NAME", required = true)]
    figure: Vec<String>,
    /// A property of figures of a kind, such as x=capacity.L1; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<Setting>,
    /// Where the figures go; by default beside the rows, in figures/
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// `KEY=VALUE`.
#[derive(Clone, Debug)]
struct Setting(String, String);

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE, such as x=capacity.L1")?;
        Ok(Self(key.trim().to_owned(), value.trim().to_owned()))
    }
}

impl PlotArgs {
    /// Draws the figures.
    ///
    /// # Errors
    /// When the rows cannot be read, there is no such figure or column, or nothing can be written.
    pub fn run(self, console: &mut Console) -> Result<Outcome, CliError> {
        let table = read_runs(&self.runs)?;
        let folder = if self.runs.is_dir() { self.runs.clone() } else { self.runs.with_file_name("") };
        let out = self.out.clone().unwrap_or_else(|| folder.join(results::FIGURES));
        let specs: Vec<_> = self.figure.iter().map(|name| self.spec(name, &folder)).collect::<Result<_, _>>()?;
        let timed = specs.iter().any(FigureSpec::is_timed).then(|| folder.join(results::TIMED));
        let timed = timed.filter(|path| path.exists()).map(|path| read_runs(&path)).transpose()?;
        let figures = specs.iter().map(|spec| out.join(&spec.name.value));
        figures.fold(Outputs::new(), |outputs, stem| outputs.figure("--figure", Some(&stem))).check()?;
        for spec in &specs {
            let table = if spec.is_timed() { timed.as_ref().unwrap_or(&table) } else { &table };
            if let Some(column) = spec.columns().into_iter().find(|c| table.place(&c.value).is_none()) {
                let known = table.names().map(str::to_owned).collect();
                return Err(CliError::UnknownName { kind: "column", name: column.value.clone(), meant: None, known });
            }
            let Some(scene) = figure::of_rows(table, spec) else {
                let name = &spec.name.value;
                return Err(CliError::usage(
                    format!("figure {name}: no row passes its filter and has what it shows, or it shows a plan"),
                    "look at the where.* settings; a plan is drawn by `spillbench figure`",
                ));
            };
            let drawn = Drawn::of(&scene, &spec.name.value)?;
            write(&drawn, &out.join(&spec.name.value), console)?;
        }
        Ok(Outcome::Done)
    }

    /// The figure of that name in the experiment, or of that kind.
    fn spec(&self, name: &str, folder: &Path) -> Result<FigureSpec, CliError> {
        let experiment = folder.join(results::EXPERIMENT);
        let mut known: Vec<String> = FIGURE_KINDS.iter().map(|kind| kind.name.to_owned()).collect();
        if experiment.exists()
            && self.set.is_empty()
            && let ExperimentFile::Study(study) = study::read_file(&experiment)?
        {
            input::note_read(&experiment);
            if let Some(spec) = study.figures.iter().find(|f| f.name.value == name) {
                return Ok(spec.clone());
            }
            known.extend(study.figures.iter().map(|f| f.name.value.clone()));
        }
        if !FIGURE_KINDS.iter().any(|kind| kind.name == name) {
            return Err(crate::resolve::unknown("figure", name, known.iter().map(String::as_str)));
        }
        let keys = self.set.iter().map(|Setting(key, value)| (key.clone(), value.clone())).collect();
        let options = FigureOptions { kind: name.to_owned(), keys };
        figure_from_options(&options).map_err(|complaints| HarnessError::Figure(complaints).into())
    }
}

/// Writes both forms of a figure and says where they are.
pub(super) fn write(drawn: &Drawn, stem: &Path, console: &mut Console) -> Result<(), CliError> {
    write_quietly(drawn, stem)?.iter().try_for_each(|path| console.line(path.display()))
}

/// Writes both forms of a figure.
pub(super) fn write_quietly(drawn: &Drawn, stem: &Path) -> Result<[PathBuf; 2], CliError> {
    let paths = ["svg", "png"].map(|extension| PathBuf::from(format!("{}.{extension}", stem.display())));
    for (path, bytes) in paths.iter().zip([drawn.svg.as_bytes(), drawn.png.as_slice()]) {
        results::write_file(path, |out| out.write_all(bytes))?;
    }
    Ok(paths)
}
