//! What the output of commands shares: tables, numbers, durations.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};
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

    /// Adds a row.
    pub fn row<T: fmt::Display>(&mut self, cells: impl IntoIterator<Item = T>) -> &mut Self {
        self.table.add_row(cells.into_iter().map(|c| c.to_string()));
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
pub fn capacity(bytes: spillbench_core::units::Bytes) -> String {
    if bytes == spillbench_core::hardware::Hardware::UNBOUNDED { "unbounded".to_owned() } else { grouped(bytes) }
}

/// `1 node`, `2 nodes`.
pub fn count(number: usize, what: &str) -> String {
    format!("{} {what}{}", grouped(number as u64), if number == 1 { "" } else { "s" })
}

/// `part` of `whole` in per cent; `-` when the whole is 0.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.1}%", part as f64 * 100.0 / whole as f64) }
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
