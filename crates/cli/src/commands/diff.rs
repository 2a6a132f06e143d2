//! `spillbench diff`: what changed between two result folders, cell by cell.

use crate::console::{Console, Outcome};
use crate::error::CliError;
use crate::input;
use crate::report::Grid;
use clap::Args;
use spillbench_harness::HarnessError;
use spillbench_harness::diff::{self, ChangedColumn, Difference};
use spillbench_harness::results;
use spillbench_harness::table::Table;
use std::path::{Path, PathBuf};

/// Arguments of `diff`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    spillbench diff results/heuristics /tmp/after\n  \
    spillbench diff before/runs.csv after/runs.csv --cells 100\n\n\
    Cells are matched by their axes. Exit status: 0 when they are the same, 1 when they differ, 2 when\n\
    something cannot be read.")]
pub struct DiffArgs {
    /// The first results: a folder or a runs.csv
    #[arg(value_name = "A")]
    first: PathBuf,
    /// The second results
    #[arg(value_name = "B")]
    second: PathBuf,
    /// How many of the cells that differ are shown
    #[arg(long, value_name = "N", default_value_t = 20)]
    cells: usize,
}

/// The table of a results folder, or of the file itself.
pub(super) fn read_runs(path: &Path) -> Result<Table, HarnessError> {
    let file = if path.is_dir() { path.join(results::RUNS) } else { path.to_owned() };
    input::note_read(&file);
    Table::read(&file)
}

impl DiffArgs {
    /// Compares and reports.
    ///
    /// # Errors
    /// When a table cannot be read.
    pub fn run(self, console: &mut Console) -> Result<Outcome, CliError> {
        let difference = diff::compare(&read_runs(&self.first)?, &read_runs(&self.second)?);
        self.report(&difference, console)?;
        Ok(if difference.is_empty() { Outcome::Done } else { Outcome::Refuted })
    }

    fn report(&self, difference: &Difference, console: &mut Console) -> Result<(), CliError> {
        let Difference { common, same, only_first, only_second, other_columns, changed, columns } = difference;
        console.line(format_args!("{common} cells in both: {same} the same, {} differ", changed.len()))?;
        for (path, only) in [(&self.first, only_first), (&self.second, only_second)] {
            if !only.is_empty() {
                console.line(format_args!("{} cells only in {}:", only.len(), path.display()))?;
                self.list(only.iter(), console)?;
            }
        }
        if !other_columns.is_empty() {
            console.line(format_args!("columns of one side only: {}", other_columns.join(", ")))?;
        }
        if !columns.is_empty() {
            console.line(format_args!("\n{}", table(columns).trim_end()))?;
        }
        if !changed.is_empty() {
            console.line("")?;
            let change = |(name, a, b): &(String, String, String)| format!("{name} {} -> {}", shown(a), shown(b));
            let line = |cell: &diff::ChangedCell| {
                format!("{}: {}", cell.cell, cell.changes.iter().map(change).collect::<Vec<_>>().join(", "))
            };
            self.list(changed.iter().map(line), console)?;
        }
        Ok(())
    }

    /// At most as many lines as were asked for, and how many more there are.
    fn list(
        &self,
        lines: impl ExactSizeIterator<Item: std::fmt::Display>,
        console: &mut Console,
    ) -> Result<(), CliError> {
        let more = lines.len().saturating_sub(self.cells);
        for line in lines.take(self.cells) {
            console.line(format_args!("  {line}"))?;
        }
        if more > 0 { console.line(format_args!("  and {more} more (--cells {})", self.cells + more)) } else { Ok(()) }
    }
}

/// An empty value has to be seen.
fn shown(text: &str) -> &str {
    if text.is_empty() { "(none)" } else { text }
}

fn table(columns: &[ChangedColumn]) -> String {
    let mut grid = Grid::new(&["<column", "B lower", "B higher", "other", "B/A (geometric mean, 95 %)"]);
    for column in columns {
        let ratio = column.ratio.map_or(String::new(), |r| {
            let ends = r.ends.map_or(String::new(), |(low, high)| format!(" [{low:.4}, {high:.4}]"));
            format!("{:.4}{ends}", r.mean)
        });
        let counts = [column.lower, column.higher, column.other].map(|n| n.to_string());
        grid.row(std::iter::once(column.name.clone()).chain(counts).chain([ratio]));
    }
    grid.to_string()
}
