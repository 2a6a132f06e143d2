//! Graphs as a pair of CSV files: nodes (`Id,Op,BufId,Size,Type,Pipe,Cycles,Bufs`) and edges
//! (`StartNodeId,EndNodeId`).
//!
//! Columns are found by name, in any order; `Pipe`, `Cycles` and `Writes` may be missing, unknown
//! columns are ignored with one notice each. An empty cell is an absent field. `Bufs` is a quoted
//! comma list and may be empty. `Writes` is a list of the same form, where `-` stands for a list
//! that is known to be empty. The free-form `Meta` object has no place in CSV: see [`drops_meta`].

use super::graph_json::{UnknownKeys, finish};
use super::{FormatError, body};
use crate::graph::{Field, Graph, GraphBuilder, GraphError, GraphErrors, InternedNode, NodeKind, Notice};
use crate::index::{BufIx, NodeIx};
use crate::units::{BufId, Cycles, Id};
use csv::ByteRecord;
use std::fmt::{self, Write as _};
use std::io;
use thiserror::Error;

/// Why a pair could not be read: which of the two files, and what is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CsvError {
    /// The nodes file.
    #[error("nodes file: {0}")]
    Nodes(FormatError),
    /// The edges file.
    #[error("edges file: {0}")]
    Edges(FormatError),
    /// Both were read, and the graph they describe is unsound. `Nodes[k]` and `Edges[k]` in a
    /// message count data rows from 0.
    #[error(transparent)]
    Graph(GraphErrors),
}

/// The columns of the nodes file in the order in which they are written, each with whether a file
/// must have it.
const NODE_COLUMNS: [(Field, bool); 9] = [
    (Field::Id, true),
    (Field::Op, true),
    (Field::BufId, true),
    (Field::Size, true),
    (Field::Type, true),
    (Field::Pipe, false),
    (Field::Cycles, false),
    (Field::Bufs, true),
    (Field::Writes, false),
];

const EDGE_COLUMNS: [&str; 2] = ["StartNodeId", "EndNodeId"];

/// A `Writes` cell that says: none of the operands.
const NO_WRITES: &str = "-";

/// Reads a graph from the bytes of its nodes file and its edges file.
///
/// # Errors
/// Missing columns, all named; a row of the wrong length or a field of the wrong form, with its
/// line and column; otherwise all that is wrong with the graph.
pub fn read(nodes: &[u8], edges: &[u8]) -> Result<(Graph, Vec<Notice>), CsvError> {
    let mut builder = GraphBuilder::new();
    let mut unknown = UnknownKeys::default();
    read_nodes(nodes, &mut builder, &mut unknown).map_err(CsvError::Nodes)?;
    read_edges(edges, &mut builder, &mut unknown).map_err(CsvError::Edges)?;
    finish(builder, unknown.notices()).map_err(|e| match e {
        FormatError::Graph(errors) => CsvError::Graph(errors),
        other => CsvError::Nodes(other),
    })
}

fn read_nodes(bytes: &[u8], builder: &mut GraphBuilder, unknown: &mut UnknownKeys) -> Result<(), FormatError> {
    let mut table = Table::open(bytes)?;
    let wanted = NODE_COLUMNS.map(|(field, needed)| (field.name(), needed));
    let places = table.find_columns(&wanted, unknown)?;
    let mut writes = Vec::new();
    while table.next_row()? {
        let row = Row { table: &table, places: &places };
        let has_bufs = row.list(Field::Bufs, |b| builder.push_buf(b))?;
        writes.clear();
        let none_written = row.cell(Field::Writes) == NO_WRITES.as_bytes();
        let has_writes = none_written || row.list(Field::Writes, |b| writes.push(b))?;
        let node = InternedNode {
            id: row.number(Field::Id)?.ok_or_else(|| row.error(Field::Id, "is empty"))?,
            op: builder.ops.intern(row.text(Field::Op)?.ok_or_else(|| row.error(Field::Op, "is empty"))?),
            buf: row.number(Field::BufId)?,
            size: row.number(Field::Size)?,
            cache: row.text(Field::Type)?.map(|name| builder.caches.intern(name)),
            pipe: row.text(Field::Pipe)?.map(|name| builder.pipes.intern(name)),
            cycles: row.number(Field::Cycles)?,
            has_bufs,
            has_writes,
        };
        builder.push(node, &writes);
    }
    Ok(())
}

fn read_edges(bytes: &[u8], builder: &mut GraphBuilder, unknown: &mut UnknownKeys) -> Result<(), FormatError> {
    let mut table = Table::open(bytes)?;
    let [from, to] = table.find_columns(&EDGE_COLUMNS.map(|name| (name, true)), unknown)?;
    while table.next_row()? {
        let end = |place: Option<usize>, name| {
            let cell = place.and_then(|p| table.row.get(p)).unwrap_or_default();
            number(cell).ok_or_else(|| table.error(name, &format!("is {}", not_a_number(cell, "2^63-1"))))
        };
        builder.edge(end(from, EDGE_COLUMNS[0])?, end(to, EDGE_COLUMNS[1])?);
    }
    Ok(())
}

/// A CSV text whose rows are as long as its header and follow each other without blank lines.
struct Table<'a> {
    text: &'a [u8],
    reader: csv::Reader<&'a [u8]>,
    header: ByteRecord,
    row: ByteRecord,
    line: usize,
}

impl<'a> Table<'a> {
    fn open(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let text = without_blank_end(body(bytes)?);
        let reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text);
        let mut table = Self { text, reader, header: ByteRecord::new(), row: ByteRecord::new(), line: 0 };
        table.advance()?;
        table.header = table.row.clone();
        Ok(table)
    }

    /// Reads the next row; false at the end.
    fn next_row(&mut self) -> Result<bool, FormatError> {
        if !self.advance()? {
            return Ok(false);
        }
        let (found, wanted) = (self.row.len(), self.header.len());
        if found != wanted {
            let plural = if found == 1 { "" } else { "s" };
            let message = format!("the row has {found} field{plural}, the header has {wanted}");
            return Err(FormatError::at(self.line, message));
        }
        Ok(true)
    }

    fn advance(&mut self) -> Result<bool, FormatError> {
        let more =
            self.reader.read_byte_record(&mut self.row).map_err(|e| FormatError::at(self.line, e.to_string()))?;
        let Some(position) = self.row.position().filter(|_| more) else { return Ok(false) };
        // The reader passes over line ends before a row: the second half of CRLF, and blank lines.
        let (start, line) = (position.byte() as usize, position.line() as usize);
        let skipped = self.text[start..].iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
        let gap = &self.text[start..start + skipped];
        self.line = line + gap.iter().filter(|&&b| b == b'\n').count();
        let after = self.text[..start].last();
        match (after, gap) {
            (None | Some(b'\n'), []) | (Some(b'\r'), [b'\n']) => Ok(true),
            (Some(b'\r'), []) => Err(FormatError::at(self.line, "the line before ends in a carriage return only")),
            _ => Err(FormatError::at(self.line.saturating_sub(1), "the line is blank")),
        }
    }

    /// Finds the wanted columns, each a name and whether it must be there.
    fn find_columns<const N: usize>(
        &self,
        wanted: &[(&str, bool); N],
        unknown: &mut UnknownKeys,
    ) -> Result<[Option<usize>; N], FormatError> {
        let mut places = [None; N];
        for (place, name) in self.header.iter().enumerate() {
            let Some(k) = wanted.iter().position(|w| w.0.as_bytes() == name) else {
                unknown.add(&String::from_utf8_lossy(name));
                continue;
            };
            if places[k].replace(place).is_some() {
                return Err(FormatError::at(self.line, format!("the header has the column {} twice", wanted[k].0)));
            }
        }
        let missing = wanted.iter().zip(&places).filter(|(w, place)| w.1 && place.is_none());
        let missing: Vec<_> = missing.map(|(w, _)| w.0).collect();
        if missing.is_empty() {
            return Ok(places);
        }
        let plural = if missing.len() == 1 { "" } else { "s" };
        Err(FormatError::at(self.line, format!("the header lacks the column{plural} {}", missing.join(", "))))
    }

    fn error(&self, column: &str, message: &str) -> FormatError {
        FormatError::at(self.line, format!("{column} {message}"))
    }
}

/// A text without the blank lines at its end; the last line keeps its line end.
fn without_blank_end(text: &[u8]) -> &[u8] {
    let end = text.trim_ascii_end().len();
    match text[end..].iter().position(|&b| b == b'\n') {
        Some(newline) => &text[..=end + newline],
        None => text,
    }
}

/// One row of the nodes file.
struct Row<'a, 'b> {
    table: &'a Table<'b>,
    places: &'a [Option<usize>; NODE_COLUMNS.len()],
}

impl<'a> Row<'a, '_> {
    fn error(&self, field: Field, message: &str) -> FormatError {
        self.table.error(field.name(), message)
    }

    /// A cell; empty where there is no such column.
    fn cell(&self, field: Field) -> &'a [u8] {
        // `Field` is declared in the order of the columns.
        self.places[field as usize].and_then(|place| self.table.row.get(place)).unwrap_or_default()
    }

    fn text(&self, field: Field) -> Result<Option<&'a str>, FormatError> {
        let cell = self.cell(field);
        let text = std::str::from_utf8(cell).map_err(|_| self.error(field, "is not UTF-8 text"))?;
        Ok(Some(text).filter(|t| !t.is_empty()))
    }

    fn number(&self, field: Field) -> Result<Option<u64>, FormatError> {
        let cell = self.cell(field);
        if cell.trim_ascii().is_empty() {
            return Ok(None);
        }
        number(cell).map(Some).ok_or_else(|| self.error(field, &format!("is {}", not_a_number(cell, most(field)))))
    }

    /// Hands each number of a comma list to `take`; false when the cell is empty.
    fn list(&self, field: Field, mut take: impl FnMut(u64)) -> Result<bool, FormatError> {
        let cell = self.cell(field);
        if cell.trim_ascii().is_empty() {
            return Ok(false);
        }
        for part in cell.split(|&b| b == b',') {
            take(number(part).ok_or_else(|| self.error(field, &format!("holds {}", not_a_number(part, most(field)))))?);
        }
        Ok(true)
    }
}

/// A whole number that fills a cell, spaces around it aside.
fn number(cell: &[u8]) -> Option<u64> {
    let digits = cell.trim_ascii();
    let add = |sum: u64, b: &u8| sum.checked_mul(10)?.checked_add(u64::from(b.is_ascii_digit().then(|| b - b'0')?));
    if digits.is_empty() { None } else { digits.iter().try_fold(0, add) }
}

/// The largest number that a field may hold.
fn most(field: Field) -> &'static str {
    if matches!(field, Field::Size | Field::Cycles) { "2^64-1" } else { "2^63-1" }
}

fn not_a_number(cell: &[u8], most: &str) -> String {
    let text = String::from_utf8_lossy(&cell[..cell.len().min(40)]);
    let dots = if cell.len() > 40 { "..." } else { "" };
    format!("{text:?}{dots}, not a whole number from 0 to {most}")
}

/// One file of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// The nodes file.
    Nodes,
    /// The edges file.
    Edges,
}

/// The file and the line, from 1, of what an error of [`CsvError::Graph`] is about; `None` where it
/// is about no single row, or the texts are not those that were read.
pub fn locate(nodes: &[u8], edges: &[u8], error: &GraphError) -> Option<(Half, usize)> {
    use GraphError as E;
    let row = match error {
        E::EdgeToMissing { place, .. } => return Some((Half::Edges, line_where(edges, |i, _| i == *place)?)),
        E::DuplicateId { second: place, .. } | E::IdOutOfRange { place, .. } => {
            return Some((Half::Nodes, line_where(nodes, |i, _| i == *place)?));
        }
        E::MissingField { node, .. }
        | E::ZeroSize { node, .. }
        | E::NoAlloc { node, .. }
        | E::NoFree { alloc: node, .. }
        | E::Twice { second: node, .. }
        | E::SizeMismatch { free: node, .. }
        | E::CacheMismatch { free: node, .. }
        | E::UnknownBuffer { node, .. }
        | E::WritesOutsideBufs { node, .. }
        | E::Overflow { node, .. } => *node,
        E::Empty | E::TooMany { .. } | E::UseOutsideLife { .. } | E::Cycle { .. } => return None,
    };
    let Id(id) = row;
    let column = Table::open(nodes).ok()?.header.iter().position(|name| name == Field::Id.name().as_bytes())?;
    Some((Half::Nodes, line_where(nodes, |_, row| row.get(column).and_then(number) == Some(id))?))
}

/// The line of the first data row that is wanted, by its place from 0 and its cells.
fn line_where(text: &[u8], wanted: impl Fn(usize, &ByteRecord) -> bool) -> Option<usize> {
    let mut table = Table::open(text).ok()?;
    let mut place = 0;
    while table.next_row().ok()? {
        if wanted(place, &table.row) {
            return Some(table.line);
        }
        place += 1;
    }
    None
}

/// True when the pair of files says less than the graph: CSV has no place for its `Meta` object.
pub fn drops_meta(graph: &Graph) -> bool {
    graph.meta().is_some()
}

/// Writes the nodes file of a graph; the column `Writes` only when some op has it.
///
/// # Errors
/// When the writer fails, or a name is empty (in CSV that would be an absent field).
pub fn write_nodes(graph: &Graph, out: impl io::Write) -> io::Result<()> {
    let has_writes = graph.nodes().any(|n| graph.writes(n).is_some());
    let columns = &NODE_COLUMNS[..if has_writes { 9 } else { 8 }];
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(columns.iter().map(|c| c.0.name()))?;
    let mut row = NodeRow::default();
    for n in graph.nodes() {
        row.fill(graph, n)?;
        csv.write_record(&row.cells[..columns.len()])?;
    }
    csv.flush()
}

/// The cells of one node, by `Field`.
#[derive(Default)]
struct NodeRow {
    cells: [String; NODE_COLUMNS.len()],
}

impl NodeRow {
    fn fill(&mut self, graph: &Graph, n: NodeIx) -> io::Result<()> {
        self.cells.iter_mut().for_each(String::clear);
        self.set(Field::Id, graph.id(n))?;
        self.set(Field::Op, named(graph, n, Field::Op, graph.op_name(n))?)?;
        if let NodeKind::Alloc(b) | NodeKind::Free(b) = graph.kind(n) {
            let buf = graph.buf(b);
            self.set(Field::BufId, buf.id)?;
            self.set(Field::Size, buf.size)?;
            return self.set(Field::Type, named(graph, n, Field::Type, graph.cache_name(buf.cache))?);
        }
        if let Some(pipe) = graph.pipe(n) {
            self.set(Field::Pipe, named(graph, n, Field::Pipe, &graph.pipe_names()[pipe])?)?;
        }
        if let Some(Cycles(cycles)) = graph.cycles(n) {
            self.set(Field::Cycles, cycles)?;
        }
        self.set(Field::Bufs, List(graph, graph.operands(n)))?;
        match graph.writes(n) {
            Some([]) => self.set(Field::Writes, NO_WRITES),
            Some(writes) => self.set(Field::Writes, List(graph, writes)),
            None => Ok(()),
        }
    }

    fn set(&mut self, field: Field, value: impl fmt::Display) -> io::Result<()> {
        write!(self.cells[field as usize], "{value}").map_err(io::Error::other)
    }
}

fn named<'a>(graph: &Graph, node: NodeIx, field: Field, name: &'a str) -> io::Result<&'a str> {
    if !name.is_empty() {
        return Ok(name);
    }
    let message = format!("node {} has an empty {field}, which CSV cannot tell from an absent one", graph.id(node));
    Err(io::Error::new(io::ErrorKind::InvalidData, message))
}

/// Buffer ids as a comma list.
struct List<'a>(&'a Graph, &'a [BufIx]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, &b) in self.1.iter().enumerate() {
            let BufId(id) = self.0.buf(b).id;
            f.write_str(if i == 0 { "" } else { "," })?;
            write!(f, "{id}")?;
        }
        Ok(())
    }
}

/// Writes the edges file of a graph.
///
/// # Errors
/// When the writer fails.
pub fn write_edges(graph: &Graph, out: impl io::Write) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(EDGE_COLUMNS)?;
    for from in graph.nodes() {
        for &to in graph.successors(from) {
            csv.write_record([from, to].map(|n| graph.id(n).to_string()))?;
        }
    }
    csv.flush()
}
