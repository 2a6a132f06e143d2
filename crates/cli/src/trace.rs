//! The log of `-v`: each decision of the planner on one line, with its reason.

use crate::report::bytes;
use spillbench_core::planner::{Clearing, Decision, Observer, Outcome, Victim};
use spillbench_core::{Graph, Shown};
use std::io::{self, BufWriter, StderrLock, Write};

/// How many victims one line names.
const NAMED: usize = 8;

/// Writes each decision to a log.
#[derive(Debug)]
pub struct DecisionLog<'a, W: Write> {
    graph: &'a Graph,
    /// What every line begins with.
    label: String,
    out: W,
}

impl<'a> DecisionLog<'a, BufWriter<StderrLock<'static>>> {
    /// A log to standard error.
    pub fn to_stderr(graph: &'a Graph) -> Self {
        Self::labelled(graph, String::new())
    }

    /// A log to standard error whose every line begins with `label`.
    pub fn labelled(graph: &'a Graph, label: String) -> Self {
        Self { graph, label, out: BufWriter::new(io::stderr().lock()) }
    }
}

impl<W: Write> Observer for DecisionLog<'_, W> {
    fn decided(&mut self, decision: &Decision<'_>) {
        // A closed standard error is no reason to stop planning.
        let _ = write!(self.out, "{}", self.label);
        let _ = write_decision(&mut self.out, self.graph, decision);
    }

    fn cleared(&mut self, clearing: &Clearing<'_>) {
        let _ = write!(self.out, "{}", self.label);
        let _ = write_clearing(&mut self.out, self.graph, clearing);
    }
}

fn write_clearing(out: &mut impl Write, graph: &Graph, c: &Clearing<'_>) -> io::Result<()> {
    let (node, op, cache) = (graph.id(c.node), Shown(graph.op_name(c.node)), Shown(graph.cache_name(c.cache)));
    write!(out, "node {node} ({op}): a reservation leaves {} of {cache}; {}: evicts", bytes(c.usable), c.cause)?;
    write_victims(out, graph, c.victims)?;
    writeln!(out)
}

fn write_decision(out: &mut impl Write, graph: &Graph, d: &Decision<'_>) -> io::Result<()> {
    let (node, op) = (graph.id(d.node), Shown(graph.op_name(d.node)));
    let (cache, wanted) = (Shown(graph.cache_name(d.request.cache)), graph.buf(d.buf).id);
    write!(
        out,
        "position {} of the normalised schedule, node {node} ({op}): buffer {wanted} needs {} of {cache}; {} ({} free, \
         largest hole {}): ",
        d.request.pos.index(),
        bytes(d.request.needed),
        d.cause,
        d.free,
        d.largest_hole
    )?;
    match d.outcome {
        Outcome::PostponedTo(pos) => return writeln!(out, "postponed to after position {}", pos.index()),
        Outcome::Evicted(strategy) => write!(out, "{strategy} evicts")?,
        Outcome::LastResort { repack: false } => write!(out, "last resort evicts")?,
        Outcome::LastResort { repack: true } => write!(out, "last resort repacks, evicting")?,
    }
    write_victims(out, graph, d.victims)?;
    if let Some((buf, runner_up)) = d.runner_up {
        write!(out, "; best-scored that stays: buffer {} (score {})", graph.buf(buf).id, score(runner_up))?;
    }
    if let Some((offset, size)) = d.hole {
        write!(out, "; hole of {size} at {offset}")?;
    }
    writeln!(out)
}

fn write_victims(out: &mut impl Write, graph: &Graph, victims: &[Victim]) -> io::Result<()> {
    for (i, victim) in victims.iter().take(NAMED).enumerate() {
        let comma = if i == 0 { "" } else { "," };
        write!(out, "{comma} buffer {} ({} at {}", graph.buf(victim.buf).id, bytes(victim.size), victim.offset)?;
        if !victim.score.is_nan() {
            write!(out, ", score {}", score(victim.score))?;
        }
        out.write_all(b")")?;
    }
    if victims.len() > NAMED {
        write!(out, " and {} more", victims.len() - NAMED)?;
    }
    Ok(())
}

/// A score: whole where it is whole, with three decimals otherwise.
pub fn score(score: f64) -> String {
    if score.fract() == 0.0 && score.abs() < 1e15 { format!("{score:.0}") } else { format!("{score:.3}") }
}
