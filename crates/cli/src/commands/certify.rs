//! `spillbench certify`: what a certificate proves, evaluated by code that shares nothing with the
//! solvers.

use crate::analysis::run::milliseconds;
use crate::args::{GraphArgs, HardwareArgs, ScheduleArgs};
use crate::console::{Console, Outcome};
use crate::error::CliError;
use crate::input::Expect;
use crate::report::{Grid, count, covered, grouped, grouped_bytes};
use crate::resolve;
use clap::Args;
use serde::Serialize;
use spillbench_bounds::certify::DEFAULT_STATES;
use spillbench_bounds::{Certificate, Certified, Cover, Subject, certify_within};
use spillbench_core::{Bytes, Shown};
use std::path::PathBuf;
use std::time::Instant;

/// Arguments of `certify`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    spillbench bound Conv_Case0.json --normalize memory --certificate conv.json\n  \
    spillbench certify Conv_Case0.json --normalize memory --certificate conv.json\n\n\
    The schedule is what the certificate speaks of; for one that covers every order it plays no part.\n\
    Whatever a certificate holds, it proves a true bound or is refused. Exit status: 0 when it proves what\n\
    it claims, 1 when it proves less, 2 when it is refused or cannot be read.")]
pub struct CertifyArgs {
    #[command(flatten)]
    graph: GraphArgs,
    /// The certificate
    #[arg(long, value_name = "FILE")]
    certificate: PathBuf,
    /// States at most for each set of a certificate over every order, and never more than 2 GiB of
    /// them
    #[arg(long, value_name = "N", default_value_t = DEFAULT_STATES)]
    states: u64,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    schedule: ScheduleArgs,
    #[command(flatten)]
    hardware: HardwareArgs,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Proven<'a> {
    task: &'a str,
    certificate: String,
    bound: Bytes,
    bound_cover: &'static str,
    claimed: Bytes,
    /// What the certificate says it was made for; null where it does not.
    made_for: Option<&'a Subject>,
    per_cache: Vec<Share<'a>>,
    elapsed_ms: f64,
}

#[derive(Debug, Serialize)]
struct Share<'a> {
    cache: &'a str,
    bound: Bytes,
}

impl CertifyArgs {
    /// Evaluates the certificate.
    ///
    /// # Errors
    /// When something cannot be read, or the certificate does not fit the graph.
    pub fn run(self, console: &mut Console) -> Result<Outcome, CliError> {
        let hardware = resolve::hardware(&self.hardware)?;
        let task = resolve::task(&self.graph, console)?;
        let machine = resolve::machine(&task, &hardware)?;
        let file = &self.certificate;
        let certificate = Certificate::read(&resolve::read(file, Expect::Certificate)?)
            .map_err(|source| CliError::Certificate { file: file.clone(), source })?;
        let schedule = match certificate.cover {
            Cover::EveryOrder => None,
            _ => Some(resolve::schedule(&self.schedule, &task, Some(&machine), console)?),
        };
        let other = || difference(&certificate, &resolve::subject(&task.graph, schedule.as_ref()));
        let checking = console.progress("evaluating the certificate", 1);
        let started = Instant::now();
        let certified = certify_within(&task.graph, &machine, schedule.as_ref(), &certificate, self.states)
            .map_err(|e| resolve::certify_error(&task, &hardware, file, e, other()))?;
        let elapsed_ms = milliseconds(started.elapsed());
        drop(checking);
        if self.json {
            console.json(&Proven {
                task: &task.name,
                certificate: file.display().to_string(),
                bound: certified.bound,
                bound_cover: certified.cover.name(),
                claimed: certificate.bound,
                made_for: certificate.of.as_ref(),
                per_cache: certified.per_cache.iter().map(|(cache, bound)| Share { cache, bound: *bound }).collect(),
                elapsed_ms,
            })?;
        } else {
            let on = format!("{} on {}", Shown(&task.name), Shown(&hardware.name));
            print(&on, &certified, (certificate.bound, other), console)?;
            console.line(format_args!("Evaluated in {elapsed_ms:.1} ms."))?;
        }
        Ok(if certified.bound < certificate.bound { Outcome::Refuted } else { Outcome::Done })
    }
}

/// What of graph and schedule is not what a certificate was made for, as far as it says so.
fn difference(certificate: &Certificate, here: &Subject) -> Option<String> {
    let made = certificate.of.as_ref()?;
    let size = |s: &Subject| format!("{}, {}", count(s.nodes, "node"), count(s.buffers, "buffer"));
    if made.graph != here.graph {
        let (was, is) = (Shown(&made.graph), &here.graph);
        return Some(format!(
            "It was made for another graph: that had {} and the fingerprint {was}, this one has {} and {is}.",
            size(made),
            size(here)
        ));
    }
    match (&made.schedule, &here.schedule) {
        (Some(was), Some(is)) if was != is => Some(format!(
            "It was made for this graph and another schedule: that had the fingerprint {}, this one has {is} (--schedule, \
             --order, --normalize).",
            Shown(was)
        )),
        _ => None,
    }
}

fn print(
    on: &str,
    certified: &Certified,
    (claimed, other): (Bytes, impl Fn() -> Option<String>),
    console: &mut Console,
) -> Result<(), CliError> {
    let mut grid = Grid::new(&["<cache", "proven"]);
    for (cache, bound) in &certified.per_cache {
        grid.row([cache.clone(), grouped(*bound)]);
    }
    console.line(format_args!("{on}\n\n{grid}"))?;
    let (plans, proven) = (covered(certified.cover), grouped_bytes(certified.bound));
    console.line(format_args!("Proven: no plan that {plans} moves less than {proven}."))?;
    if certified.bound < claimed {
        let claimed = grouped_bytes(claimed);
        console.line(format_args!("The certificate claims {claimed}, which it does not prove here."))?;
        return other().map_or(Ok(()), |other| console.line(other));
    }
    Ok(())
}
