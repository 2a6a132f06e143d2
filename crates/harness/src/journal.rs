//! The journal of a sweep: one line per finished cell, appended at once.
//!
//! A line is `KEY CHECKSUM PAYLOAD`: the cell's key (32 hexadecimal digits), the XXH3-64 checksum of
//! key and payload (16 digits), and the payload, which holds no line break. The first line has the
//! same form, with the version of the tool as its payload. A line that is cut short or does not
//! match its checksum counts for nothing; an unfinished tail is cut off before anything is appended,
//! so a process killed at any moment loses at most the cell whose line it was writing.

use crate::error::HarnessError;
use crate::hash::Hash;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read as _, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use xxhash_rust::xxh3::Xxh3;

/// Name of the journal in an output folder.
pub const FILE_NAME: &str = "journal.txt";

/// The key of the first line, which no cell has in practice.
const HEADER: Hash = Hash(0);

/// Digits of key and checksum with the blanks behind them.
const PREFIX: usize = 32 + 1 + 16 + 1;

/// An open journal at its end, held against other writers.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    fsync: bool,
    line: Vec<u8>,
}

/// What reading a journal came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// Lines that count.
    pub lines: usize,
    /// Lines that were cut short or damaged.
    pub dropped: usize,
    /// Where the last whole line ends, in bytes.
    end: u64,
}

fn checksum(key: &str, payload: &[u8]) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(key.as_bytes());
    hash.update(payload);
    hash.digest()
}

fn frame(line: &mut Vec<u8>, key: Hash, payload: &[u8]) {
    let key = key.to_string();
    line.clear();
    line.extend_from_slice(format!("{key} {:016x} ", checksum(&key, payload)).as_bytes());
    line.extend_from_slice(payload);
    line.push(b'\n');
}

/// Key and payload of a whole line without its line break.
fn unframe(line: &[u8]) -> Option<(Hash, &[u8])> {
    let (prefix, payload) = line.split_at_checked(PREFIX)?;
    let prefix = std::str::from_utf8(prefix).ok()?;
    let (key, rest) = prefix.split_at(32);
    let sum = rest.strip_prefix(' ')?.strip_suffix(' ')?;
    let sum = u64::from_str_radix(sum, 16).ok()?;
    (sum == checksum(key, payload)).then_some((Hash::parse(key)?, payload))
}

/// Payloads of journals by key, left on disk: what is kept of each is where it stands.
#[derive(Debug, Default)]
pub struct Index {
    files: Vec<Mutex<File>>,
    places: HashMap<Hash, Place>,
}

/// Where a payload stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    file: u32,
    length: u32,
    offset: u64,
}

impl Index {
    /// Adds the lines of a journal that `tool` wrote.
    ///
    /// # Errors
    /// As [`read`].
    pub fn add(&mut self, path: &Path, tool: &str) -> Result<Read, HarnessError> {
        let file = self.files.len() as u32;
        self.files.push(Mutex::new(File::open(path).map_err(HarnessError::io(path))?));
        let places = &mut self.places;
        read(path, tool, |key, offset, payload| {
            if let Ok(length) = u32::try_from(payload.len()) {
                places.insert(key, Place { file, length, offset });
            }
        })
    }

    /// How many payloads there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The payload of a key; `None` where there is none, or it can no longer be read.
    pub fn get(&self, key: Hash) -> Option<Vec<u8>> {
        let place = self.places.get(&key)?;
        let mut file = self.files[place.file as usize].lock().unwrap_or_else(PoisonError::into_inner);
        let mut payload = vec![0; place.length as usize];
        file.seek(SeekFrom::Start(place.offset)).and_then(|_| file.read_exact(&mut payload)).ok()?;
        Some(payload)
    }
}

/// Reads a journal that `tool` wrote and hands each line that counts to `visit`: its key, where its
/// payload begins, and the payload. A file that ends before its first line break is an empty journal.
///
/// # Errors
/// When the file cannot be read, is no journal, or was written by another version of the tool.
pub fn read(path: &Path, tool: &str, mut visit: impl FnMut(Hash, u64, &[u8])) -> Result<Read, HarnessError> {
    let mut reader = BufReader::with_capacity(1 << 16, File::open(path).map_err(HarnessError::io(path))?);
    let (mut line, mut read, mut at) = (Vec::new(), Read::default(), 0u64);
    loop {
        line.clear();
        let length = reader.read_until(b'\n', &mut line).map_err(HarnessError::io(path))?;
        let first = at == 0;
        if length == 0 {
            return Ok(read);
        }
        at += length as u64;
        let Some(whole) = line.strip_suffix(b"\n") else {
            read.dropped += usize::from(!first);
            return Ok(read);
        };
        match unframe(whole) {
            Some((HEADER, payload)) if first => check_tool(path, tool, payload)?,
            _ if first => return Err(HarnessError::NoJournal { path: path.to_owned() }),
            Some((key, payload)) => {
                read.lines += 1;
                visit(key, at - 1 - payload.len() as u64, payload);
            }
            None => read.dropped += 1,
        }
        read.end = at;
    }
}

/// The number of lines that count, whichever version wrote them.
///
/// # Errors
/// When the file cannot be read.
pub fn count(path: &Path) -> Result<usize, HarnessError> {
    let mut reader = BufReader::new(File::open(path).map_err(HarnessError::io(path))?);
    let (mut line, mut lines) = (Vec::new(), 0usize);
    while reader.read_until(b'\n', &mut line).map_err(HarnessError::io(path))? > 0 {
        let whole = line.strip_suffix(b"\n").and_then(unframe);
        lines += usize::from(whole.is_some_and(|(key, _)| key != HEADER));
        line.clear();
    }
    Ok(lines)
}

fn check_tool(path: &Path, tool: &str, payload: &[u8]) -> Result<(), HarnessError> {
    if payload == tool.as_bytes() {
        return Ok(());
    }
    let written_by = String::from_utf8_lossy(payload).into_owned();
    Err(HarnessError::OtherTool { path: path.to_owned(), written_by, tool: tool.to_owned() })
}

impl Journal {
    /// Opens the journal of a folder for appending, or begins one; `known` gets the lines it has.
    /// With `fsync` each append reaches the disk before it returns.
    ///
    /// # Errors
    /// As [`read`], or when another process holds the journal.
    pub fn open(folder: &Path, tool: &str, fsync: bool, known: &mut Index) -> Result<(Self, Read), HarnessError> {
        let (mut journal, path) = Self::lock(folder, fsync)?;
        let read = known.add(&path, tool)?;
        journal.cut(read.end)?;
        if read.end == 0 {
            journal.append(HEADER, tool.as_bytes())?;
        }
        Ok((journal, read))
    }

    /// Begins the journal of a folder anew, whatever stood there.
    ///
    /// # Errors
    /// When the file cannot be written, or another process holds it.
    pub fn begin(folder: &Path, tool: &str, fsync: bool) -> Result<Self, HarnessError> {
        let (mut journal, _) = Self::lock(folder, fsync)?;
        journal.cut(0)?;
        journal.append(HEADER, tool.as_bytes())?;
        Ok(journal)
    }

    fn lock(folder: &Path, fsync: bool) -> Result<(Self, PathBuf), HarnessError> {
        std::fs::create_dir_all(folder).map_err(HarnessError::io(folder))?;
        let path = folder.join(FILE_NAME);
        let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = open.map_err(HarnessError::io(&path))?;
        match file.try_lock() {
            Ok(()) => Ok((Self { path: path.clone(), file, fsync, line: Vec::new() }, path)),
            Err(std::fs::TryLockError::WouldBlock) => Err(HarnessError::Locked { folder: folder.to_owned() }),
            Err(std::fs::TryLockError::Error(source)) => Err(HarnessError::Io { path, source }),
        }
    }

    fn cut(&mut self, end: u64) -> Result<(), HarnessError> {
        let cut = self.file.set_len(end).and_then(|()| self.file.seek(SeekFrom::Start(end)));
        cut.map(drop).map_err(HarnessError::io(&self.path))
    }

    /// Appends a line in one write.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&mut self, key: Hash, payload: &[u8]) -> Result<(), HarnessError> {
        debug_assert!(!payload.contains(&b'\n'), "a payload is one line");
        frame(&mut self.line, key, payload);
        let written =
            self.file.write_all(&self.line).and_then(|()| if self.fsync { self.file.sync_data() } else { Ok(()) });
        written.map_err(HarnessError::io(&self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOL: &str = "spillbench 1";

    fn lines(folder: &Path) -> (Vec<(Hash, String)>, Read) {
        let mut lines = Vec::new();
        let mut known = Index::default();
        let (_, opened) = Journal::open(folder, TOOL, false, &mut known).unwrap();
        let visit = |k, _, p: &[u8]| lines.push((k, String::from_utf8(p.to_vec()).unwrap()));
        read(&folder.join(FILE_NAME), TOOL, visit).unwrap();
        assert!(lines.iter().all(|(k, p)| known.get(*k).as_deref() == Some(p.as_bytes())));
        assert_eq!(known.len(), lines.len());
        (lines, opened)
    }

    fn sample(folder: &Path) -> Vec<u8> {
        let mut journal = Journal::begin(folder, TOOL, false).unwrap();
        for k in 1..=4u128 {
            journal.append(Hash(k << 99), format!("{{\"cell\":{k}}}").as_bytes()).unwrap();
        }
        drop(journal);
        std::fs::read(folder.join(FILE_NAME)).unwrap()
    }

    #[test]
    fn lines_come_back_in_order() {
        let folder = tempfile::tempdir().unwrap();
        sample(folder.path());
        let (lines, read) = lines(folder.path());
        assert_eq!((read.lines, read.dropped), (4, 0));
        assert_eq!(lines[2], (Hash(3 << 99), "{\"cell\":3}".to_owned()));
    }

    #[test]
    fn a_journal_torn_at_any_byte_keeps_every_whole_line_and_takes_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        let whole = sample(folder.path());
        for torn in 0..=whole.len() {
            std::fs::write(&path, &whole[..torn]).unwrap();
            let breaks = whole[..torn].iter().filter(|&&b| b == b'\n').count();
            let mut seen = Index::default();
            let (mut journal, read) = Journal::open(folder.path(), TOOL, false, &mut seen).unwrap();
            assert_eq!(seen.len(), breaks.saturating_sub(1), "torn at byte {torn}");
            let inside = whole[..torn].last().is_some_and(|&b| b != b'\n');
            assert_eq!(read.dropped, usize::from(inside && breaks > 0), "torn at byte {torn}");
            for k in seen.len() as u128 + 1..=4 {
                journal.append(Hash(k << 99), format!("{{\"cell\":{k}}}").as_bytes()).unwrap();
            }
            drop(journal);
            assert_eq!(std::fs::read(&path).unwrap(), whole, "torn at byte {torn}");
        }
    }

    #[test]
    fn a_damaged_line_counts_for_nothing_and_costs_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        let whole = sample(folder.path());
        let header = whole.iter().position(|&b| b == b'\n').unwrap() + 1;
        for byte in header..whole.len() {
            let mut damaged = whole.clone();
            damaged[byte] ^= 1;
            std::fs::write(&path, &damaged).unwrap();
            let (lines, read) = lines(folder.path());
            // Without its line break a line runs into the next, and both are lost.
            let lost = if whole[byte] == b'\n' && byte + 1 < whole.len() { 2 } else { 1 };
            assert_eq!(lines.len(), 4 - lost, "bit flipped in byte {byte}");
            assert!(read.dropped >= 1);
            assert!(lines.iter().all(|(k, p)| *p == format!("{{\"cell\":{}}}", k.0 >> 99)));
        }
    }

    #[test]
    fn other_tools_other_files_and_other_writers_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        sample(folder.path());
        let other = Journal::open(folder.path(), "spillbench 2", false, &mut Index::default());
        assert!(matches!(other, Err(HarnessError::OtherTool { written_by, .. }) if written_by == TOOL));
        let held = Journal::open(folder.path(), TOOL, false, &mut Index::default()).unwrap();
        let second = Journal::open(folder.path(), TOOL, false, &mut Index::default());
        assert!(matches!(second, Err(HarnessError::Locked { .. })));
        drop(held);
        std::fs::write(folder.path().join(FILE_NAME), "cell,graph\n1,2\n").unwrap();
        let table = Journal::open(folder.path(), TOOL, false, &mut Index::default());
        assert!(matches!(table, Err(HarnessError::NoJournal { .. })));
    }
}
