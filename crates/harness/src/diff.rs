//! Comparing two runs cell by cell: what a change of a heuristic changed.
//!
//! Cells are matched by their axes, not by their hash, so that two versions of a graph of one name
//! are compared and the change of the graph is told as one more difference.

use crate::columns;
use crate::stats::{self, Interval};
use crate::table::{Row, Table};
use std::collections::HashMap;

/// What two tables have in common and what not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Difference {
    /// Cells that both have.
    pub common: usize,
    /// Cells of which every compared column is the same.
    pub same: usize,
    /// Cells that only the first has.
    pub only_first: Vec<String>,
    /// Cells that only the second has.
    pub only_second: Vec<String>,
    /// Compared columns that only one of them has.
    pub other_columns: Vec<String>,
    /// Cells that differ.
    pub changed: Vec<ChangedCell>,
    /// Columns that differ somewhere, in the order of the table.
    pub columns: Vec<ChangedColumn>,
}

/// A cell that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangedCell {
    /// Its varied axes, as `axis=value`.
    pub cell: String,
    /// The columns that differ: name, first value, second value.
    pub changes: Vec<(String, String, String)>,
}

/// A column that differs somewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangedColumn {
    /// Its name.
    pub name: String,
    /// Cells in which the second value is lower, higher, or cannot be compared.
    pub lower: usize,
    /// See `lower`.
    pub higher: usize,
    /// See `lower`.
    pub other: usize,
    /// Geometric mean of second over first, over all common cells in which both are positive.
    pub ratio: Option<Interval>,
}

impl Difference {
    /// True when the tables say the same.
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty()
            && self.only_first.is_empty()
            && self.only_second.is_empty()
            && self.other_columns.is_empty()
    }
}

/// The columns that are compared: the results, and the hash of the graph.
fn is_compared(name: &str) -> bool {
    name == "graph_hash" || (columns::describe(name).is_some() && columns::is_result(name))
}

/// Compares two tables.
pub fn compare(first: &Table, second: &Table) -> Difference {
    let axes: Vec<&str> = first.names().filter(|n| columns::is_axis(n) && second.place(n).is_some()).collect();
    let shown = varied(first, second, &axes);
    let compared: Vec<&str> = first.names().filter(|n| is_compared(n) && second.place(n).is_some()).collect();
    let mut difference = Difference { other_columns: unshared(first, second), ..Difference::default() };
    let mut waiting: HashMap<String, Vec<Row<'_>>> = HashMap::new();
    // Cells of one key are matched in the order of the table; taken from the end, so turned first.
    second.rows().rev().for_each(|row| waiting.entry(key(&row, &axes)).or_default().push(row));
    let mut pairs = Vec::new();
    for row in first.rows() {
        match waiting.get_mut(&key(&row, &axes)).and_then(Vec::pop) {
            Some(other) => pairs.push((row, other)),
            None => difference.only_first.push(name(&row, &shown)),
        }
    }
    let mut left: HashMap<String, usize> = waiting.into_iter().map(|(k, rows)| (k, rows.len())).collect();
    for row in second.rows() {
        if let Some(count) = left.get_mut(&key(&row, &axes)).filter(|c| **c > 0) {
            *count -= 1;
            difference.only_second.push(name(&row, &shown));
        }
    }
    difference.common = pairs.len();
    for (a, b) in &pairs {
        let change = |c: &&&str| a.text(c) != b.text(c);
        let as_change = |c: &&str| ((*c).to_owned(), a.text(c).to_owned(), b.text(c).to_owned());
        let changes: Vec<_> = compared.iter().filter(change).map(as_change).collect();
        if changes.is_empty() {
            difference.same += 1;
        } else {
            difference.changed.push(ChangedCell { cell: name(a, &shown), changes });
        }
    }
    difference.columns = compared.iter().filter_map(|c| changed_column(&pairs, c)).collect();
    difference
}

fn unshared(first: &Table, second: &Table) -> Vec<String> {
    let lacks = |table: &Table, name: &str| table.place(name).is_none();
    let only_first = first.names().filter(|n| lacks(second, n));
    only_first.chain(second.names().filter(|n| lacks(first, n))).map(str::to_owned).collect()
}

/// The axes along which some cell differs from another: the others need not be said.
fn varied<'a>(first: &'a Table, second: &'a Table, axes: &[&'a str]) -> Vec<&'a str> {
    let reference = first.rows().chain(second.rows()).next();
    let varies = |axis: &&&str| {
        let text = reference.map_or("", |row| row.text(axis));
        first.rows().chain(second.rows()).any(|row| row.text(axis) != text)
    };
    let varied: Vec<_> = axes.iter().filter(varies).copied().collect();
    if varied.is_empty() { vec!["graph", "heuristic"] } else { varied }
}

fn key(row: &Row<'_>, axes: &[&str]) -> String {
    axes.iter().map(|axis| row.text(axis)).collect::<Vec<_>>().join("\u{1f}")
}

fn name(row: &Row<'_>, axes: &[&str]) -> String {
    axes.iter().map(|axis| format!("{axis}={}", row.text(axis))).collect::<Vec<_>>().join(" ")
}

fn changed_column(pairs: &[(Row<'_>, Row<'_>)], column: &str) -> Option<ChangedColumn> {
    let mut changed = ChangedColumn { name: column.to_owned(), lower: 0, higher: 0, other: 0, ratio: None };
    let mut ratios = Vec::new();
    for (a, b) in pairs {
        let numbers = a.number(column).zip(b.number(column));
        if a.text(column) != b.text(column) {
            match numbers {
                Some((a, b)) if b < a => changed.lower += 1,
                Some((a, b)) if b > a => changed.higher += 1,
                _ => changed.other += 1,
            }
        }
        ratios.extend(numbers.filter(|(a, b)| *a > 0.0 && *b > 0.0).map(|(a, b)| b / a));
    }
    if changed.lower + changed.higher + changed.other == 0 {
        return None;
    }
    changed.ratio = stats::geometric_mean(&ratios, 0);
    Some(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[[&str; 6]]) -> Table {
        let mut table = Table::new(["cell", "graph", "heuristic", "seed", "status", "extra_movement"]);
        rows.iter().for_each(|row| table.push(row));
        table
    }

    #[test]
    fn equal_tables_do_not_differ() {
        let a = table(&[["1", "g", "lru", "7", "ok", "10"], ["2", "g", "mru", "8", "ok", "0"]]);
        let b = table(&[["9", "g", "mru", "6", "ok", "0"], ["8", "g", "lru", "5", "ok", "10"]]);
        let difference = compare(&a, &b);
        assert!(difference.is_empty(), "order, hashes and seeds do not count: {difference:?}");
        assert_eq!((difference.common, difference.same), (2, 2));
    }

    #[test]
    fn changes_are_told_cell_by_cell() {
        let a = table(&[
            ["1", "g", "lru", "7", "ok", "10"],
            ["2", "g", "mru", "8", "ok", "4"],
            ["3", "h", "lru", "8", "ok", "4"],
        ]);
        let b = table(&[
            ["1", "g", "lru", "7", "ok", "5"],
            ["2", "g", "mru", "8", "infeasible", ""],
            ["4", "k", "lru", "8", "ok", "4"],
        ]);
        let difference = compare(&a, &b);
        assert_eq!((difference.common, difference.same), (2, 0));
        assert_eq!(difference.only_first, ["graph=h heuristic=lru"]);
        assert_eq!(difference.only_second, ["graph=k heuristic=lru"]);
        assert_eq!(difference.changed[0].cell, "graph=g heuristic=lru");
        assert_eq!(difference.changed[0].changes, [("extra_movement".to_owned(), "10".to_owned(), "5".to_owned())]);
        let movement = difference.columns.iter().find(|c| c.name == "extra_movement").unwrap();
        assert_eq!((movement.lower, movement.higher, movement.other), (1, 0, 1));
        assert!((movement.ratio.unwrap().mean - 0.5).abs() < 1e-12);
        assert_eq!(difference.columns.iter().find(|c| c.name == "status").unwrap().other, 1);
    }

    #[test]
    fn a_cell_that_stands_twice_is_matched_once() {
        let row = ["1", "g", "lru", "7", "ok", "10"];
        let difference = compare(&table(&[row, row]), &table(&[row]));
        assert_eq!((difference.common, difference.only_first.len(), difference.only_second.len()), (1, 1, 0));
    }
}
