//! Rows on their way to disk: written in the order of the cells, in whatever order these are done, in
//! memory that does not grow with them.
//!
//! Threads take cells in order, so a row waits only for cells that were begun before it. Rows that wait
//! are kept in memory up to a fixed number of bytes, and beyond that in a file without a name.

use crate::error::HarnessError;
use crate::table::Table;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Bytes of rows that may wait in memory.
const WAITING: usize = 8 << 20;

/// The values of a row, which `fill` hands on one by one, as a line of CSV.
pub(crate) fn line(fill: impl FnOnce(&mut dyn FnMut(&str))) -> Vec<u8> {
    let mut writer = csv::WriterBuilder::new().buffer_capacity(2048).from_writer(Vec::new());
    // Writing into memory does not fail.
    fill(&mut |value| drop(writer.write_field(value)));
    let _ = writer.write_record(None::<&[u8]>);
    writer.into_inner().unwrap_or_default()
}

/// A finished table on disk, not yet in its place.
#[derive(Debug)]
pub struct Rows {
    path: PathBuf,
    len: u64,
}

impl Rows {
    /// The number of rows.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All of it, in memory.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn table(&self) -> Result<Table, HarnessError> {
        Table::read(&self.path)
    }

    /// Gives it its name; from then on it is there whatever happens.
    pub(crate) fn publish(&self, path: &Path) -> Result<(), HarnessError> {
        std::fs::rename(&self.path, path).map_err(HarnessError::io(path))
    }
}

impl Drop for Rows {
    /// Takes away what was given no name.
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A table in the making.
pub(crate) struct Writer {
    path: PathBuf,
    out: BufWriter<File>,
    len: u64,
}

impl Writer {
    /// Begins a table of that name in a folder, under another name.
    pub fn begin<'c>(
        folder: &Path,
        name: &str,
        columns: impl IntoIterator<Item = &'c str>,
    ) -> Result<Self, HarnessError> {
        let path = folder.join(format!(".{name}.partial"));
        let file = File::create(&path).map_err(HarnessError::io(&path))?;
        let mut writer = Self { path, out: BufWriter::new(file), len: 0 };
        writer.write(&line(|put| columns.into_iter().for_each(put)))?;
        writer.len = 0;
        Ok(writer)
    }

    pub fn write(&mut self, line: &[u8]) -> Result<(), HarnessError> {
        self.len += 1;
        self.out.write_all(line).map_err(HarnessError::io(&self.path))
    }

    pub fn end(self) -> Result<Rows, HarnessError> {
        let rows = Rows { path: self.path, len: self.len };
        let synced = self.out.into_inner().map_err(std::io::IntoInnerError::into_error).and_then(|f| f.sync_data());
        synced.map_err(HarnessError::io(&rows.path))?;
        Ok(rows)
    }
}

/// Brings what comes in any order into that of its places.
pub(crate) struct Order {
    /// The place whose turn it is.
    next: u64,
    folder: PathBuf,
    waiting: BTreeMap<u64, Waiting>,
    in_memory: usize,
    most_in_memory: usize,
    beside: Option<File>,
    beside_end: u64,
}

enum Waiting {
    Here(Vec<u8>),
    Beside { offset: u64, length: usize },
}

impl Order {
    /// With files in `folder`.
    pub fn new(folder: &Path) -> Self {
        Self::with_room(folder, WAITING)
    }

    fn with_room(folder: &Path, most_in_memory: usize) -> Self {
        let (folder, waiting) = (folder.to_owned(), BTreeMap::new());
        Self { next: 0, folder, waiting, in_memory: 0, most_in_memory, beside: None, beside_end: 0 }
    }

    /// Takes what belongs to a place, which comes once; hands on all whose turn it is.
    pub fn take(
        &mut self,
        place: u64,
        bytes: Vec<u8>,
        mut hand_on: impl FnMut(&[u8]) -> Result<(), HarnessError>,
    ) -> Result<(), HarnessError> {
        if place != self.next {
            return self.wait(place, bytes).map_err(HarnessError::io(&self.folder));
        }
        hand_on(&bytes)?;
        self.next += 1;
        while let Some(waiting) = self.waiting.remove(&self.next) {
            hand_on(&self.fetch(waiting)?)?;
            self.next += 1;
        }
        Ok(())
    }

    /// Hands on what still waits, in order, because what stands before it will not come.
    pub fn end(mut self, mut hand_on: impl FnMut(&[u8]) -> Result<(), HarnessError>) -> Result<(), HarnessError> {
        while let Some((_, waiting)) = self.waiting.pop_first() {
            hand_on(&self.fetch(waiting)?)?;
        }
        Ok(())
    }

    fn wait(&mut self, place: u64, bytes: Vec<u8>) -> std::io::Result<()> {
        let waiting = if self.in_memory + bytes.len() <= self.most_in_memory {
            self.in_memory += bytes.len();
            Waiting::Here(bytes)
        } else {
            let file = match &mut self.beside {
                Some(file) => file,
                none => none.insert(tempfile::tempfile_in(&self.folder)?),
            };
            let offset = self.beside_end;
            file.seek(SeekFrom::Start(offset))?;
            file.write_all(&bytes)?;
            self.beside_end += bytes.len() as u64;
            Waiting::Beside { offset, length: bytes.len() }
        };
        self.waiting.insert(place, waiting);
        Ok(())
    }

    fn fetch(&mut self, waiting: Waiting) -> Result<Vec<u8>, HarnessError> {
        self.bytes(waiting).map_err(HarnessError::io(&self.folder))
    }

    fn bytes(&mut self, waiting: Waiting) -> std::io::Result<Vec<u8>> {
        match (waiting, &mut self.beside) {
            (Waiting::Here(bytes), _) => {
                self.in_memory -= bytes.len();
                Ok(bytes)
            }
            (Waiting::Beside { offset, length }, Some(file)) => {
                let mut bytes = vec![0; length];
                file.seek(SeekFrom::Start(offset))?;
                file.read_exact(&mut bytes)?;
                Ok(bytes)
            }
            (Waiting::Beside { .. }, None) => Err(std::io::ErrorKind::NotFound.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes out when places come in this order, with room for so many bytes.
    fn through(room: usize, places: &[u64]) -> Vec<u8> {
        let mut order = Order::with_room(&std::env::temp_dir(), room);
        let mut out = Vec::new();
        for &place in places {
            let hand_on = |bytes: &[u8]| {
                out.extend_from_slice(bytes);
                Ok(())
            };
            order.take(place, format!("{place};").into_bytes(), hand_on).unwrap();
        }
        order
            .end(|bytes| {
                out.extend_from_slice(bytes);
                Ok(())
            })
            .unwrap();
        out
    }

    #[test]
    fn any_order_becomes_that_of_the_places_in_any_room() {
        let in_order: Vec<u64> = (0..200).collect();
        let turned: Vec<u64> = (0..200).rev().collect();
        let mixed: Vec<u64> = (0..200).map(|i| i * 77 % 200).collect();
        let sorted = through(0, &in_order);
        for room in [0, 20, 1 << 20] {
            for places in [&in_order, &turned, &mixed] {
                assert_eq!(through(room, places), sorted, "{room} {places:?}");
            }
            assert_eq!(through(room, &[3, 1, 0, 7, 5]), b"0;1;3;5;7;", "what never comes is left out");
        }
    }

    #[test]
    fn a_line_is_csv() {
        assert_eq!(line(|put| ["a", "b,c", "d\"e", ""].into_iter().for_each(put)), b"a,\"b,c\",\"d\"\"e\",\n");
    }
}
