//! What the output of commands shares: tables, numbers, durations.

use crate::analysis::gap::Gap;
use crate::console::Console;
use crate::error::CliError;
use crate::resolve::{Task, normalize_name};
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};
use spillbench_bounds::attribution::When;
use spillbench_bounds::{Cover, is_fixed};
use spillbench_core::checker::{Report, Rule};
use spillbench_core::hardware::Hardware;
use spillbench_core::metrics::{Metrics, Movement, Split};
use spillbench_core::plan::Settings;
use spillbench_core::units::{Bytes, Cycles};
use spillbench_core::{Graph, Machine, Shown};
use std::fmt;

/// A table with a head, numbers to the right, in plain text.
#[derive(Debug)]
pub struct Grid {
    table: Table,
}

impl Grid {
    /// A table with the given head. A head that begins with `<` is set to the left, any other to
    /// the right.
    pub fn new(head: &[&str]) -> Self {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(head.iter().map(|h| h.trim_start_matches('<')));
        for (column, name) in table.column_iter_mut().zip(head) {
            let left = name.starts_with('<');
            column.set_cell_alignment(if left { CellAlignment::Left } else { CellAlignment::Right });
            column.set_padding((2, 0)).set_constraint(ColumnConstraint::ContentWidth);
        }
        Self { table }
    }

    /// A table without a head, all columns to the left.
    pub fn plain() -> Self {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        Self { table }
    }

    /// Adds a row. Cells under a head are names and numbers, and shown as names are; those of a plain
    /// table are our own words.
    pub fn row<T: fmt::Display>(&mut self, cells: impl IntoIterator<Item = T>) -> &mut Self {
        let headed = self.table.header().is_some();
        let cell = |c: T| if headed { Shown(&c.to_string()).to_string() } else { c.to_string() };
        self.table.add_row(cells.into_iter().map(cell));
        self
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in self.table.lines() {
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A number with its thousands set apart.
pub fn grouped(number: impl Into<u64>) -> String {
    let digits = number.into().to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A capacity: grouped, or `unbounded`.
pub fn capacity(bytes: Bytes) -> String {
    if bytes == Hardware::UNBOUNDED { "unbounded".to_owned() } else { grouped(bytes) }
}

/// `1 node`, `2 nodes`.
pub fn count(number: usize, what: &str) -> String {
    format!("{} {what}{}", grouped(number as u64), if number == 1 { "" } else { "s" })
}

/// `1 byte`, `2 bytes`.
pub fn bytes(number: Bytes) -> String {
    format!("{number} byte{}", if number.0 == 1 { "" } else { "s" })
}

/// As [`bytes`], with the thousands set apart.
pub fn grouped_bytes(number: Bytes) -> String {
    format!("{} byte{}", grouped(number), if number.0 == 1 { "" } else { "s" })
}

/// `part` of `whole` in per cent; `-` when the whole is 0.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.1}%", part as f64 * 100.0 / whole as f64) }
}

/// What was planned, on what, and how, in one line.
pub fn headline(task: &Task, settings: &Settings) -> String {
    let chain = if settings.strategies.is_empty() { "no strategy".to_owned() } else { settings.strategies.join("+") };
    format!(
        "{} on {}: {}, {}; {}, {chain}, {}, normalize {}",
        Shown(&task.name),
        Shown(&settings.hardware.name),
        count(task.graph.node_count(), "node"),
        count(task.graph.buffer_count(), "buffer"),
        settings.heuristic,
        settings.placement,
        normalize_name(settings.normalize),
    )
}

/// The figures of a valid plan: a table by cache, and what is one number for all of them.
pub fn figures(graph: &Graph, machine: &Machine, metrics: &Metrics) -> String {
    let mut text = cache_grid(graph, machine, metrics).to_string();
    let cycles = |c: Option<Cycles>| c.map_or_else(|| "unknown".to_owned(), grouped);
    text.push_str(&format!("{}; peak demand {}.\n", movement(&metrics.movement), grouped_bytes(metrics.peak_demand)));
    text.push_str(&match metrics.makespan {
        Some(_) => format!(
            "Makespan {} cycles (literal {}), at least {}.",
            cycles(metrics.makespan),
            cycles(metrics.makespan_literal),
            cycles(metrics.makespan_lower_bound)
        ),
        None => "Makespan unknown: some op has no Pipe or no Cycles.".to_owned(),
    });
    if let Some(energy) = metrics.energy {
        text.push_str(&format!("\nEnergy {} pJ.", grouped(energy)));
    }
    text
}

/// What the spills of a plan move, in a few words.
pub fn movement(movement: &Movement) -> String {
    format!("Extra movement {} in {}", grouped_bytes(movement.bytes()), count(movement.spills() as usize, "spill"))
}

/// Which plans a bound covers, after "plan that".
pub fn covered(cover: Cover) -> &'static str {
    match cover {
        Cover::Schedule => "keeps this schedule",
        Cover::OpOrder => "keeps this order of ops",
        Cover::EveryOrder => "runs this graph, in whatever order,",
    }
}

/// Says that a bound leaves out reservations whose places are not fixed in all plans that it covers.
pub fn note_reservations(graph: &Graph, machine: &Machine, cover: Cover, console: &Console) {
    let left_out = machine.reservations().iter().filter(|r| r.bytes.0 > 0 && !is_fixed(graph, r, cover)).count();
    if left_out > 0 {
        let reservations = count(left_out, "reservation");
        console.note(format_args!(
            "the bound leaves out {reservations} from or to an ALLOC or FREE, which may move under the cover {}: it is \
             true, and lower than it could be",
            cover.name()
        ));
    }
}

/// Says which pipes of the energy model neither graph nor hardware knows, and when the energy of a
/// plan is too large to be told.
pub fn note_energy(machine: &Machine, hardware: &Hardware, metrics: Option<&Metrics>, console: &Console) {
    let Some(energy) = &hardware.energy else { return };
    let unknown = |pipe: &&String| !machine.pipe_names().contains(pipe) && !hardware.pipes.contains(pipe);
    let unknown: Vec<_> = energy.per_busy_cycle.keys().filter(unknown).map(|p| Shown(p).to_string()).collect();
    if !unknown.is_empty() {
        console.note(format_args!("energy.per_busy_cycle: no op and no spill uses the pipe {}", unknown.join(", ")));
    }
    if metrics.is_some_and(|m| m.energy.is_none_or(|e| e == u64::MAX) && m.makespan.is_some()) {
        console.note("the energy of the plan passes 2^64-1 pJ and is left out");
    }
}

/// Why a bound of a schedule may say nothing of its plan. Of all that the planner does, only retiming
/// moves ops.
pub const UNCOVERED: &str = "retiming changed the order of ops, so the bound of the schedule does not cover the plan";

/// How far a plan is from its bound, in a sentence; `None` where no bound was asked for.
pub fn gap(gap: &Gap, when: When) -> Option<String> {
    let (Some(bound), Some(more), Some(kind), Some(cover)) = (gap.bound, gap.gap, gap.bound_kind, gap.bound_cover)
    else {
        if gap.uncovered {
            return Some(format!("No lower bound: {UNCOVERED}."));
        }
        let most = grouped(When::AUTO_GAPS as u64);
        return (when == When::Auto)
            .then(|| format!("No lower bound: more than {most} gaps between uses; --bound always computes it."));
    };
    let covered = covered(cover);
    Some(match (bound, more) {
        (_, Bytes(0)) => format!("Optimal: no plan that {covered} moves less ({kind} bound)."),
        (Bytes(0), _) => format!("A plan that {covered} may move nothing, as far as the {kind} bound tells."),
        _ => format!(
            "Every plan that {covered} moves at least {} ({kind} bound); this one moves {} more ({}).",
            grouped_bytes(bound),
            grouped(more),
            percent(more.0, bound.0)
        ),
    })
}

/// Movement and occupancy by cache, with the sums below where there are several caches.
fn cache_grid(graph: &Graph, machine: &Machine, metrics: &Metrics) -> Grid {
    let mut grid = Grid::new(&[
        "<cache",
        "capacity",
        "peak",
        "fragmented",
        "spills",
        "moved",
        "backed",
        "generated",
        "by capacity",
        "by fragmentation",
    ]);
    for c in graph.caches() {
        let name = graph.cache_name(c);
        let split = metrics.movement.by_cache.get(name).copied().unwrap_or_default();
        let place = [
            name.to_owned(),
            capacity(machine.cache(c).capacity),
            metrics.peak_residency.get(name).map_or_else(|| "-".to_owned(), |&b| grouped(b)),
            metrics.fragmentation.get(name).map_or_else(|| "-".to_owned(), |f| format!("{:.1}%", f * 100.0)),
        ];
        grid.row(place.into_iter().chain(movement_cells(&split)));
    }
    if graph.caches().len() > 1 {
        let m = &metrics.movement;
        let all = Split {
            spills: m.spills(),
            backed: m.backed,
            generated: m.generated,
            capacity: m.capacity,
            fragmentation: m.fragmentation,
            unknown_cause: m.unknown_cause,
            counts: m.counts,
        };
        grid.row(["all", "", "", ""].map(str::to_owned).into_iter().chain(movement_cells(&all)));
    }
    grid
}

fn movement_cells(split: &Split) -> [String; 6] {
    let known = |bytes: Bytes| if split.unknown_cause > Bytes(0) { "?".to_owned() } else { grouped(bytes) };
    [
        grouped(split.spills),
        grouped(split.bytes()),
        grouped(split.backed),
        grouped(split.generated),
        known(split.capacity),
        known(split.fragmentation),
    ]
}

/// Every listed violation, rule by rule, and how many more there are.
///
/// # Errors
/// When standard output is closed.
pub fn violations(report: &Report, console: &mut Console) -> Result<(), CliError> {
    for rule in Rule::ALL {
        let total = report.offenders(rule);
        if total == 0 {
            continue;
        }
        console.line(format_args!("{rule} is broken {}: {}", times(total), rule.statement()))?;
        let mut listed = 0;
        for fault in report.of(rule) {
            listed += 1;
            console.line(format_args!("  {fault}"))?;
        }
        if total > listed {
            console.line(format_args!("  and {} more", grouped(total - listed)))?;
        }
    }
    Ok(())
}

/// `once`, `2 times`.
pub fn times(number: u64) -> String {
    if number == 1 { "once".to_owned() } else { format!("{} times", grouped(number)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        let cases =
            [(0, "0"), (999, "999"), (1000, "1,000"), (123_456, "123,456"), (u64::MAX, "18,446,744,073,709,551,615")];
        for (number, text) in cases {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn grids_align() {
        let mut grid = Grid::new(&["<name", "bytes", "<note"]);
        grid.row(["a", "1", "x"]).row(["long", "1,000", ""]);
        insta::assert_snapshot!(grid, @r"
        name  bytes  note
        a         1  x
        long  1,000
        ");
    }
}
