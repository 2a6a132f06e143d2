//! Tables as text: rows of named columns, read from and written to CSV.
//!
//! Figures and summaries read nothing else, so that what is drawn from a sweep and what is redrawn
//! later from its `runs.csv` are the same.

use crate::columns::Column;
use crate::error::HarnessError;
use crate::experiment::Filter;
use csv::StringRecord;
use indexmap::IndexSet;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Columns in which cells may differ though they are one case: repetitions under other seeds.
const REPETITION: &str = "repetition";

/// Rows of named columns. Each text is kept once, however many rows hold it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    names: StringRecord,
    places: HashMap<String, usize>,
    texts: IndexSet<Box<str>>,
    /// Row after row, the number of the text in each column.
    cells: Vec<u32>,
}

impl Table {
    /// A table without rows.
    pub fn new(names: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let names = StringRecord::from_iter(names);
        let places = names.iter().enumerate().map(|(i, name)| (name.to_owned(), i)).collect();
        Self { names, places, texts: IndexSet::new(), cells: Vec::new() }
    }

    /// Appends a row, which has a value for each column.
    pub fn push<T: AsRef<str>>(&mut self, row: impl IntoIterator<Item = T>) {
        row.into_iter().for_each(|text| self.push_text(text.as_ref()));
        debug_assert!(self.cells.len().is_multiple_of(self.names.len()), "a row has a value for each column");
    }

    fn push_text(&mut self, text: &str) {
        let number = self.texts.get_index_of(text).unwrap_or_else(|| self.texts.insert_full(text.into()).0);
        // More texts than this do not fit into memory.
        self.cells.push(u32::try_from(number).unwrap_or(u32::MAX));
    }

    /// Reads a table with its header.
    ///
    /// # Errors
    /// When the file cannot be read or is no CSV.
    pub fn read(path: &Path) -> Result<Self, HarnessError> {
        Self::read_columns(path, |_| true)
    }

    /// Reads the columns of a table that are `wanted`.
    ///
    /// # Errors
    /// As [`Table::read`].
    pub fn read_columns(path: &Path, wanted: impl Fn(&str) -> bool) -> Result<Self, HarnessError> {
        let (mut reader, names) = open(path)?;
        let kept: Vec<usize> = (0..names.len()).filter(|&i| wanted(&names[i])).collect();
        let mut table = Self::new(kept.iter().map(|&i| &names[i]));
        let mut row = StringRecord::new();
        while reader.read_record(&mut row).map_err(broken(path))? {
            kept.iter().for_each(|&i| table.push_text(&row[i]));
        }
        Ok(table)
    }

    /// Reads a table in parts of at most `most` rows, for as long as `take` says so; one part without rows
    /// where it has none.
    ///
    /// # Errors
    /// As [`Table::read`].
    pub fn read_parts(path: &Path, most: usize, mut take: impl FnMut(&Self) -> bool) -> Result<(), HarnessError> {
        let (mut reader, names) = open(path)?;
        let (mut part, mut row) = (Self::new(&names), StringRecord::new());
        let mut first = true;
        while reader.read_record(&mut row).map_err(broken(path))? {
            part.push(&row);
            if part.len() == most {
                if !take(&part) {
                    return Ok(());
                }
                first = false;
                part.clear();
            }
        }
        if first || !part.is_empty() {
            take(&part);
        }
        Ok(())
    }

    /// Takes all rows away.
    fn clear(&mut self) {
        self.texts.clear();
        self.cells.clear();
    }

    /// Reads on until a row passes a filter and `fits`: a table of that row alone, if there is one.
    ///
    /// # Errors
    /// As [`Table::read`].
    pub fn find(path: &Path, filter: &Filter, fits: impl Fn(&Row<'_>) -> bool) -> Result<Option<Self>, HarnessError> {
        let (mut reader, names) = open(path)?;
        let (mut table, mut row) = (Self::new(&names), StringRecord::new());
        while reader.read_record(&mut row).map_err(broken(path))? {
            table.clear();
            table.push(&row);
            if table.filtered(filter).first().is_some_and(&fits) {
                return Ok(Some(table));
            }
        }
        Ok(None)
    }

    /// Writes the table with its header.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn write(&self, out: impl Write) -> std::io::Result<()> {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(&self.names)?;
        for row in self.rows() {
            writer.write_record((0..self.names.len()).map(|i| row.at(i)))?;
        }
        writer.flush()
    }

    /// The names of the columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter()
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.cells.len() / self.names.len().max(1)
    }

    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The rows, in order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row<'_>> + DoubleEndedIterator + Clone {
        self.cells.chunks_exact(self.names.len().max(1)).map(|values| Row { table: self, values })
    }

    /// The place of a column.
    pub fn place(&self, column: &str) -> Option<usize> {
        self.places.get(column).copied()
    }

    /// The rows that pass a filter. A column that the table lacks passes nothing.
    pub fn filtered<'a>(&'a self, filter: &Filter) -> Vec<Row<'a>> {
        let passes = |row: &Row<'_>| {
            filter.0.iter().all(|(column, values)| {
                row.get(&column.value).is_some_and(|text| values.iter().any(|v| same_value(&v.value, text)))
            })
        };
        self.rows().filter(passes).collect()
    }

    /// The places of the axis columns: those in which cells may differ.
    pub fn axes(&self) -> Vec<usize> {
        let is_axis = |name: &str| crate::columns::is_axis(name);
        self.names.iter().enumerate().filter(|(_, name)| is_axis(name)).map(|(i, _)| i).collect()
    }

    /// The places of the axis columns that tell cases apart when `free` columns may differ:
    /// repetitions never do, and of capacities swept together each follows the other.
    pub fn case_axes(&self, free: &[&str]) -> Vec<usize> {
        let factor_free = free.contains(&"capacity_factor");
        let capacity_free = free.iter().any(|f| f.starts_with("capacity."));
        let follows = |name: &str| {
            name == REPETITION
                || free.contains(&name)
                || (factor_free && name.starts_with("capacity."))
                || (capacity_free && name == "capacity_factor")
        };
        self.axes().into_iter().filter(|&i| !follows(&self.names[i])).collect()
    }
}

/// True for a column that some rows leave empty and all others hold one value in, such as the
/// placement rule beside searches: it tells no cases apart.
pub fn is_partial(rows: &[Row<'_>], place: usize) -> bool {
    let texts = || rows.iter().map(|row| row.at(place));
    let mut held = texts().filter(|text| !text.is_empty());
    let first = held.next();
    texts().any(str::is_empty) && held.all(|text| Some(text) == first)
}

/// Numbers are compared as numbers, so that `1.0` in a filter finds `1`.
fn same_value(wanted: &str, text: &str) -> bool {
    wanted == text || matches!((wanted.parse::<f64>(), text.parse::<f64>()), (Ok(a), Ok(b)) if a == b)
}

/// A row of a table.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    table: &'a Table,
    values: &'a [u32],
}

impl<'a> Row<'a> {
    /// The text of a column, if the table has it.
    pub fn get(&self, column: &str) -> Option<&'a str> {
        self.table.place(column).map(|place| self.at(place))
    }

    /// The text of a column; empty if the table lacks it.
    pub fn text(&self, column: &str) -> &'a str {
        self.get(column).unwrap_or("")
    }

    /// The number in a column; `None` where it is empty or no number.
    pub fn number(&self, column: &str) -> Option<f64> {
        self.text(column).parse().ok().filter(|x: &f64| x.is_finite())
    }

    /// The text at a place.
    pub fn at(&self, place: usize) -> &'a str {
        self.values.get(place).and_then(|&text| self.table.texts.get_index(text as usize)).map_or("", |text| text)
    }

    /// The texts at some places, joined: equal for rows that agree there.
    pub fn key(&self, places: &[usize]) -> String {
        places.iter().map(|&i| self.at(i)).collect::<Vec<_>>().join("\u{1f}")
    }
}

fn broken(path: &Path) -> impl FnOnce(csv::Error) -> HarnessError + '_ {
    move |e| HarnessError::Table { path: path.to_owned(), message: e.to_string() }
}

/// The rows of a file, and its header, in which no name stands twice.
fn open(path: &Path) -> Result<(csv::Reader<File>, StringRecord), HarnessError> {
    let mut reader = csv::Reader::from_path(path).map_err(broken(path))?;
    let names = reader.headers().map_err(broken(path))?.clone();
    let distinct: HashSet<&str> = names.iter().collect();
    if distinct.len() != names.len() {
        return Err(HarnessError::Table { path: path.to_owned(), message: "a column stands twice".to_owned() });
    }
    Ok((reader, names))
}

/// The data dictionary of columns: name, unit, role and description.
pub fn dictionary(columns: &[Column]) -> Table {
    let mut table = Table::new(["column", "unit", "role", "description"]);
    for column in columns {
        table.push([column.name.as_str(), column.unit, column.role.name(), column.doc]);
    }
    table
}

/// The distinct texts of a column over some rows, in order of first mention.
pub fn distinct<'a>(rows: &[Row<'a>], column: &str) -> Vec<&'a str> {
    let mut seen = HashSet::new();
    rows.iter().map(|row| row.text(column)).filter(|text| seen.insert(*text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table =
            Table::new(["graph", "heuristic", "repetition", "capacity_factor", "capacity.L1", "extra_movement"]);
        for (graph, rep, movement) in [("matmul(m=8,n=8)", "0", "12"), ("a \"b\"", "1", ""), ("é", "0", "0.5")] {
            table.push([graph, "lru", rep, "1", "4096", movement]);
        }
        table
    }

    #[test]
    fn csv_round_trips() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.csv");
        sample().write(std::fs::File::create(&path).unwrap()).unwrap();
        assert_eq!(Table::read(&path).unwrap(), sample());
    }

    #[test]
    fn broken_tables_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.csv");
        for text in ["a,b\n1\n", "a,a\n1,2\n", "a\n\u{fffd}"] {
            let mut bytes = text.replace('\u{fffd}', "").into_bytes();
            if text.contains('\u{fffd}') {
                bytes.push(0xff);
            }
            std::fs::write(&path, bytes).unwrap();
            assert!(matches!(Table::read(&path), Err(HarnessError::Table { .. })), "{text}");
        }
    }

    #[test]
    fn numbers_and_filters() {
        use crate::experiment::At;
        let table = sample();
        let rows: Vec<_> = table.rows().collect();
        assert_eq!(rows[0].number("extra_movement"), Some(12.0));
        assert_eq!(rows[1].number("extra_movement"), None);
        let at = |text: &str| At::nowhere(text.to_owned());
        let filter = Filter(vec![(at("capacity.L1"), vec![at("4096.0")]), (at("repetition"), vec![at("0")])]);
        assert_eq!(table.filtered(&filter).len(), 2);
        assert_eq!(table.filtered(&Filter(vec![(at("nothing"), vec![at("")])])).len(), 0);
    }

    #[test]
    fn what_follows_a_free_axis_tells_no_cases_apart() {
        let table = sample();
        let names =
            |free: &[&str]| table.case_axes(free).into_iter().map(|i| table.names[i].to_owned()).collect::<Vec<_>>();
        assert_eq!(names(&["heuristic"]), ["graph", "capacity_factor", "capacity.L1"]);
        assert_eq!(names(&["capacity_factor"]), ["graph", "heuristic"]);
        assert_eq!(names(&["capacity.L1"]), ["graph", "heuristic"]);
    }
}
