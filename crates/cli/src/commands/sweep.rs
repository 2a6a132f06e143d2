//! `spillbench sweep`: every cell of an experiment, its tables and figures.

use crate::console::{self, Console, Outcome};
use crate::error::CliError;
use crate::input;
use crate::outputs::Outputs;
use clap::Args;
use spillbench_harness::HarnessError;
use spillbench_harness::experiment::ExperimentFile;
use spillbench_harness::record::Status;
use spillbench_harness::results;
use spillbench_harness::study::{self, Cell, Folders, Study};
use spillbench_harness::sweep::{self, Options, Progress, Shard, Swept};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// Arguments of `sweep`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    spillbench sweep experiments/quickstart.toml\n  \
    spillbench sweep experiments/capacity.toml --dry-run\n  \
    spillbench sweep experiments/capacity.toml --shard 1/2 --out part1\n  \
    spillbench sweep experiments/capacity.toml --merge part1 --merge part2 --out whole\n  \
    spillbench sweep experiments/search-for-time.toml\n\n\
    The last runs searches ([search]: objectives, max_movement, evaluations, seeds) and retiming\n\
    (retime = [false, true]) as axes; bound_cover says which plans the bound of a row speaks of.\n\n\
    A run that was interrupted goes on with --resume: no finished cell is run again. The folder then\n\
    holds runs.csv (columns.csv says what its columns are), timings.csv, tables/, figures/ and\n\
    manifest.json; rows of searches with a budget in seconds stand in timed.csv, apart from all that\n\
    does not depend on the machine.\n\n\
    Exit status: 0 when all cells ran, those in which no plan exists included; 1 when some are invalid or\n\
    failed; 2 when the experiment is wrong, or something cannot be read or written.")]
pub struct SweepArgs {
    /// The experiment file (TOML)
    #[arg(value_name = "EXPERIMENT")]
    experiment: PathBuf,
    /// Where results go; by default results/NAME
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Threads; by default one for each core
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=4096))]
    jobs: Option<u32>,
    /// Run one of N parts of the cells
    #[arg(long, value_name = "I/N")]
    shard: Option<ShardArg>,
    /// Take the finished cells of another folder, such as a shard of this experiment; may be repeated
    #[arg(long, value_name = "DIR")]
    merge: Vec<PathBuf>,
    /// Go on with the unfinished run in the folder
    #[arg(long, conflicts_with = "overwrite")]
    resume: bool,
    /// Start anew even if the folder holds an unfinished run
    #[arg(long)]
    overwrite: bool,
    /// Stop at the first cell whose plan is invalid or that fails for another reason than space
    #[arg(long)]
    fail_fast: bool,
    /// Let each finished cell reach the disk at once: safe against power loss, and slower
    #[arg(long)]
    fsync: bool,
    /// Write the rows as Parquet, too
    #[cfg(feature = "parquet")]
    #[arg(long)]
    parquet: bool,
    /// Say how many cells there are and how long they are likely to take, and run none
    #[arg(long)]
    dry_run: bool,
    /// Where graphs written as data:... are; by default $SPILLBENCH_DATA, or datasets/external
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// `I/N`.
#[derive(Clone, Copy, Debug)]
struct ShardArg(Shard);

impl FromStr for ShardArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        let (index, count) = parts.ok_or("expected I/N, such as 1/3")?;
        Shard::new(index, count).map(Self).map_err(|e| e.to_string())
    }
}

/// One study with where its results go.
struct Job {
    study: Study,
    out: PathBuf,
}

impl SweepArgs {
    /// Runs the cells, or says how many there are.
    ///
    /// # Errors
    /// When the experiment is wrong, or a file cannot be read or written.
    pub fn run(self, console: &mut Console) -> Result<Outcome, CliError> {
        let threads = self.jobs.map_or(0, |n| n as usize);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
        pool.map_err(|e| CliError::usage(format!("no threads: {e}"), "ask for fewer --jobs"))?;
        let jobs = self.jobs()?;
        for notice in jobs.iter().flat_map(|job| &job.study.notices) {
            console.note(notice);
        }
        for job in &jobs {
            self.check_places(job)?;
        }
        let mut outcome = Outcome::Done;
        for job in &jobs {
            if self.dry_run {
                self.estimate(job, console)?;
            } else if self.sweep(job, console)? == Outcome::Refuted {
                outcome = Outcome::Refuted;
            }
        }
        Ok(outcome)
    }

    /// Every study is loaded, and so checked, before any runs.
    fn jobs(&self) -> Result<Vec<Job>, CliError> {
        input::note_read(&self.experiment);
        match study::read_file(&self.experiment)? {
            ExperimentFile::Study(experiment) => {
                let out = self.out.clone().unwrap_or_else(|| Path::new("results").join(&experiment.name));
                Ok(vec![Job { study: self.load(&self.experiment, *experiment)?, out }])
            }
            ExperimentFile::Collection { name, studies } => {
                let out = self.out.clone().unwrap_or_else(|| Path::new("results").join(name));
                let folder = folder_of(&self.experiment);
                let job = |path: PathBuf| match study::read_file(&path)? {
                    ExperimentFile::Study(experiment) => {
                        let out = out.join(&experiment.name);
                        Ok(Job { study: self.load(&path, *experiment)?, out })
                    }
                    ExperimentFile::Collection { .. } => Err(CliError::usage(
                        format!("{} is a list of studies, and so is {}", path.display(), self.experiment.display()),
                        "list the studies themselves",
                    )),
                };
                studies.iter().map(|study| job(folder.join(&study.value))).collect()
            }
        }
    }

    fn load(&self, path: &Path, experiment: spillbench_harness::experiment::Experiment) -> Result<Study, CliError> {
        let data = self.data.clone().or_else(|| std::env::var_os("SPILLBENCH_DATA").map(PathBuf::from));
        let data = data.unwrap_or_else(|| PathBuf::from("datasets/external"));
        let folders = Folders { base: folder_of(path), data };
        Study::load(experiment, &folders)
            .map_err(|complaints| HarnessError::Experiment { path: path.to_owned(), complaints }.into())
    }

    /// Refuses a folder that is to be merged into itself, and a table of the results that would take the
    /// place of the experiment. Its copy may: it holds the same.
    fn check_places(&self, job: &Job) -> Result<(), CliError> {
        let place = input::place(&job.out);
        if let Some(merged) = self.merge.iter().find(|merged| input::place(merged) == place) {
            return Err(CliError::usage(
                format!("--merge {} is where the results go", merged.display()),
                "merge into another folder (--out DIR), or go on in this one with --resume",
            ));
        }
        let names = [results::RUNS, results::TIMED, results::COLUMNS, results::TIMINGS, results::MANIFEST];
        Outputs::new().files("--out", Some(&job.out), names).check()
    }

    fn shard(&self) -> Shard {
        self.shard.map_or(Shard::WHOLE, |s| s.0)
    }

    fn estimate(&self, job: &Job, console: &mut Console) -> Result<(), CliError> {
        let estimate = sweep::estimate(&job.study, self.shard(), Duration::from_secs(2));
        console.line(format_args!(
            "{}: {} cells, about {} on {} (estimated from {} of them)",
            job.study.experiment.name,
            estimate.cells,
            human(estimate.time),
            plural(estimate.threads as u64, "thread"),
            estimate.sampled,
        ))
    }

    fn sweep(&self, job: &Job, console: &mut Console) -> Result<Outcome, CliError> {
        let options = Options {
            shard: self.shard(),
            resume: self.resume,
            overwrite: self.overwrite,
            fsync: self.fsync,
            fail_fast: self.fail_fast,
            merge: self.merge.clone(),
        };
        let progress = console.progress("cells", options.shard.cells(job.study.cell_count()));
        let swept = sweep::run(&job.study, &job.out, &options, &mut Bar(&progress))?;
        drop(progress);
        let written = results::write(&job.study, &swept, &job.out, options.shard)?;
        #[cfg(feature = "parquet")]
        if self.parquet {
            results::write_parquet(&job.study, &job.out)?;
        }
        written.notices.iter().for_each(|notice| console.note(notice));
        if swept.dropped > 0 {
            console.note(format_args!(
                "{} of the journal cut short or damaged: run again",
                plural(swept.dropped as u64, "line")
            ));
        }
        report(job, &swept, console)
    }
}

fn folder_of(path: &Path) -> PathBuf {
    path.parent().filter(|p| *p != Path::new("")).unwrap_or(Path::new(".")).to_owned()
}

fn plural(n: u64, word: &str) -> String {
    format!("{n} {word}{}", if n == 1 { "" } else { "s" })
}

/// A time in a unit that suits it.
fn human(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 120.0 => format!("{s:.1} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

fn report(job: &Job, swept: &Swept, console: &mut Console) -> Result<Outcome, CliError> {
    let counts = swept.ends.iter().map(|(status, n)| format!("{n} {}", status.name())).collect::<Vec<_>>().join(", ");
    let time = swept.span.1.duration_since(swept.span.0).unwrap_or_default();
    let resumed = if swept.resumed > 0 { format!(", {} taken from the journal", swept.resumed) } else { String::new() };
    console.line(format_args!(
        "{}: {} ({counts}{resumed}) in {}, written to {}",
        job.study.experiment.name,
        plural(swept.runs.len() + swept.timed.len(), "cell"),
        human(time),
        job.out.display(),
    ))?;
    if swept.defects() > 0 {
        let runs = job.out.join(results::RUNS);
        let defects = plural(swept.defects(), "cell");
        console
            .note(format_args!("{defects} invalid or failed: see the columns status and reason of {}", runs.display()));
        return Ok(Outcome::Refuted);
    }
    Ok(Outcome::Done)
}

/// Steps the progress bar.
struct Bar<'a>(&'a console::Progress);

impl Progress for Bar<'_> {
    fn done(&mut self, _cell: &Cell<'_>, _status: Status) {
        self.0.step();
    }
}
