//! Reading input: looks at what a file is and how it begins before reading the rest, so that a
//! directory, a device or a large file of garbage is refused at once.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use thiserror::Error;

/// The largest input, in bytes.
pub const LARGEST: u64 = 2 << 30;

/// The largest certificate, in bytes: as many prices as a graph of several million nodes needs.
pub const LARGEST_CERTIFICATE: u64 = 256 << 20;

/// How much of an input is looked at before the rest is read.
const HEAD: usize = 64 << 10;

/// What stands for standard input.
pub const STDIN: &str = "-";

/// Why an input was not read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The operating system refuses.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Standard input, a second time.
    #[error("holds one input only, and two are to come from it")]
    StdinTaken,
    /// A directory in place of a file.
    #[error("is a directory, not a file")]
    Directory,
    /// More than is read of its kind.
    #[error("is larger than {most} bytes, the most that is read")]
    TooLarge {
        /// The most that is read.
        most: u64,
    },
    /// Nothing but white space at the start of a long input.
    #[error("holds nothing but white space in its first {HEAD} bytes")]
    Blank,
    /// The first byte that counts begins no JSON document.
    #[error("is not JSON: it begins with {found}, where a document begins with '{{'")]
    NotJson {
        /// The byte or character, made visible.
        found: String,
    },
    /// JSON, but no object.
    #[error("is JSON, but not a {wanted} object: it begins with {found}")]
    NotObject {
        /// `graph`, `plan` or `certificate`.
        wanted: &'static str,
        /// The byte or character, made visible.
        found: String,
    },
    /// Bytes that stand in no text.
    #[error("is not text: line {line} holds {found}")]
    NotText {
        /// Line, from 1.
        line: usize,
        /// The byte, made visible.
        found: String,
    },
    /// Something other than digits and separators.
    #[error("line {line}: {found} stands in no list of {list}")]
    NotNumbers {
        /// Line, from 1.
        line: usize,
        /// The character, made visible.
        found: String,
        /// What is listed: `ids` or `BufId:Offset pairs`.
        list: &'static str,
    },
    /// A CSV table in place of JSON.
    #[error("looks like a CSV table; a CSV graph is a pair of files <task>_Nodes.csv and <task>_Edges.csv")]
    Csv,
    /// The JSON is broken in the part that was looked at.
    #[error("line {line}, column {column}: {message}")]
    BrokenHead {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// One file of a CSV pair is missing.
    #[error("the other file of the CSV pair, {missing}, is not there")]
    HalfPair {
        /// The missing file.
        missing: String,
    },
    /// A CSV file whose name does not say which half of a graph it is.
    #[error("a CSV graph is a pair of files <task>_Nodes.csv and <task>_Edges.csv")]
    CsvName,
}

impl ReadError {
    /// What would help.
    pub fn help(&self, expect: Expect) -> Option<String> {
        let text = match self {
            Self::Io(e) if e.kind() == io::ErrorKind::NotFound && expect == Expect::Graph => {
                "give the path of a JSON graph, of one file of a CSV pair or their common prefix, or - for standard \
                 input"
            }
            Self::StdinTaken => "give the others as files",
            Self::Directory => "give a file inside it",
            Self::NotJson { .. } | Self::NotObject { .. } | Self::Blank | Self::Csv if expect == Expect::Graph => {
                "a graph is {\"Nodes\": [...], \"Edges\": [[from, to], ...]} or a CSV pair; \
                 `spillbench convert` turns one into the other"
            }
            Self::HalfPair { .. } | Self::CsvName => {
                "give either file of the pair, or their common prefix; both must be there"
            }
            Self::NotNumbers { .. } if expect == Expect::Pairs => {
                "a memory or spill file has one BufId:Offset per line, such as 7:4096"
            }
            Self::NotNumbers { .. } => "a schedule has one node id per line, or is a JSON array of ids",
            _ => return None,
        };
        Some(text.to_owned())
    }
}

/// What an input is expected to hold; decides how its first bytes are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// A graph, as a JSON object.
    Graph,
    /// A plan document, a JSON object.
    Plan,
    /// A certificate, a JSON object.
    Certificate,
    /// Whole numbers, one per line, or a JSON array of them.
    Numbers,
    /// Pairs of whole numbers, `BufId:Offset`, one per line.
    Pairs,
    /// Text in UTF-8: CSV or TOML.
    Text,
    /// Any bytes: a model.
    Bytes,
}

impl Expect {
    /// The most bytes that are read.
    fn largest(self) -> u64 {
        if self == Self::Certificate { LARGEST_CERTIFICATE } else { LARGEST }
    }
}

/// True for the path that stands for standard input.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == STDIN
}

/// The places of the files that were read so far, so that no output takes one.
static READ: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Where a path leads, links followed; of a file that is not there, where it would stand.
pub fn place(path: &Path) -> PathBuf {
    let beside = || {
        let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some(directory.canonicalize().ok()?.join(path.file_name()?))
    };
    let anywhere = || std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.canonicalize().ok().or_else(beside).unwrap_or_else(anywhere)
}

/// Remembers a file that is read.
pub fn note_read(path: &Path) {
    READ.lock().unwrap_or_else(PoisonError::into_inner).insert(place(path));
}

/// True for the place ([`place`]) of a file that was read.
pub fn was_read(place: &Path) -> bool {
    READ.lock().unwrap_or_else(PoisonError::into_inner).contains(place)
}

/// Reads a file, or standard input for `-`.
///
/// # Errors
/// When it cannot be read, is a directory, is too large, or begins with what cannot be right.
pub fn read(path: &Path, expect: Expect) -> Result<Vec<u8>, ReadError> {
    if is_stdin(path) {
        static TAKEN: AtomicBool = AtomicBool::new(false);
        if TAKEN.swap(true, Ordering::Relaxed) {
            return Err(ReadError::StdinTaken);
        }
        return read_checked(io::stdin().lock(), 0, expect);
    }
    let file = File::open(path)?;
    let meta = file.metadata()?;
    if meta.is_dir() {
        return Err(ReadError::Directory);
    }
    note_read(path);
    let most = expect.largest();
    if meta.len() > most {
        return Err(ReadError::TooLarge { most });
    }
    read_checked(file, meta.len() as usize, expect)
}

fn read_checked(mut from: impl Read, size: usize, expect: Expect) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    from.by_ref().take(HEAD as u64).read_to_end(&mut bytes)?;
    let whole = bytes.len() < HEAD;
    check_head(&bytes, whole, expect)?;
    if !whole {
        bytes.reserve_exact(size.saturating_sub(bytes.len()) + 1);
        let most = expect.largest();
        from.take(most + 1 - HEAD as u64).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            return Err(ReadError::TooLarge { most });
        }
    }
    Ok(bytes)
}

/// Looks at the first bytes. An empty input is left to the readers, which say so.
fn check_head(head: &[u8], whole: bool, expect: Expect) -> Result<(), ReadError> {
    let body = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let Some(&first) = body.trim_ascii_start().first() else {
        return if whole { Ok(()) } else { Err(ReadError::Blank) };
    };
    match expect {
        Expect::Text => check_text_prefix(head),
        Expect::Bytes => Ok(()),
        Expect::Numbers | Expect::Pairs => {
            let list = if expect == Expect::Pairs { "BufId:Offset pairs" } else { "ids" };
            let stray = |&b: &u8| !b.is_ascii_digit() && !b.is_ascii_whitespace() && !b":,[]-+.".contains(&b);
            match body.iter().position(stray) {
                Some(at) => Err(ReadError::NotNumbers { line: line_of(body, at), found: visible(body[at]), list }),
                None => Ok(()),
            }
        }
        Expect::Graph | Expect::Plan | Expect::Certificate if first != b'{' => {
            let table = [&b"Id,"[..], b"StartNodeId,"].iter().any(|h| body.trim_ascii_start().starts_with(h));
            let found = visible(first);
            let wanted = match expect {
                Expect::Plan => "plan",
                Expect::Certificate => "certificate",
                _ => "graph",
            };
            Err(match table {
                true => ReadError::Csv,
                false if is_json(body, whole) => ReadError::NotObject { wanted, found },
                false => ReadError::NotJson { found },
            })
        }
        // A broken short input is left to the reader of the format, whose message says more.
        Expect::Graph | Expect::Plan | Expect::Certificate if whole => Ok(()),
        Expect::Graph | Expect::Plan | Expect::Certificate => check_json_prefix(body),
    }
}

/// Refuses a head with a zero byte or, but for a character cut at its end, outside UTF-8.
fn check_text_prefix(head: &[u8]) -> Result<(), ReadError> {
    let broken = std::str::from_utf8(head).err().filter(|e| e.error_len().is_some()).map(|e| e.valid_up_to());
    match head.iter().position(|&b| b == 0).or(broken) {
        Some(at) => Err(ReadError::NotText { line: line_of(head, at), found: visible(head[at]) }),
        None => Ok(()),
    }
}

fn line_of(text: &[u8], at: usize) -> usize {
    text[..at].iter().filter(|&&b| b == b'\n').count() + 1
}

/// Refuses a head that no continuation turns into JSON.
fn check_json_prefix(body: &[u8]) -> Result<(), ReadError> {
    let mut json = serde_json::Deserializer::from_slice(body);
    match serde::de::Deserialize::deserialize(&mut json) {
        Err(e) if !e.is_eof() => {
            let text = e.to_string();
            let message = text.rfind(" at line ").map_or(text.as_str(), |end| &text[..end]).to_owned();
            Err(ReadError::BrokenHead { line: e.line(), column: e.column(), message })
        }
        Ok(serde::de::IgnoredAny) | Err(_) => Ok(()),
    }
}

/// True for one JSON value, or the beginning of one that goes on.
fn is_json(head: &[u8], whole: bool) -> bool {
    match serde_json::from_slice::<serde::de::IgnoredAny>(head) {
        Ok(_) => true,
        Err(e) => !whole && e.is_eof(),
    }
}

fn visible(byte: u8) -> String {
    if byte.is_ascii_graphic() { format!("{:?}", char::from(byte)) } else { format!("byte 0x{byte:02x}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(bytes: &[u8], expect: Expect) -> String {
        read_checked(bytes, 0, expect).expect_err("must be refused").to_string()
    }

    /// Counts what is read, so that a test can tell that garbage is not read to its end.
    struct Endless {
        byte: u8,
        given: usize,
    }

    impl Read for Endless {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            buf.fill(self.byte);
            self.given += buf.len();
            Ok(buf.len())
        }
    }

    #[test]
    fn endless_garbage_is_refused_from_its_first_bytes() {
        for (byte, expect) in [
            (0, Expect::Graph),
            (b'{', Expect::Graph),
            (b' ', Expect::Graph),
            (0, Expect::Text),
            (b'y', Expect::Numbers),
        ] {
            let mut endless = Endless { byte, given: 0 };
            assert!(read_checked(&mut endless, 0, expect).is_err(), "{byte} {expect:?}");
            assert!(endless.given <= 2 * HEAD, "{} bytes were read of byte {byte}", endless.given);
        }
    }

    #[test]
    fn a_long_document_passes_the_look_at_its_head() {
        let mut json = b"\xef\xbb\xbf \n{\"Nodes\":[".to_vec();
        for i in 0..20_000 {
            json.extend_from_slice(format!("{{\"Id\":{i},\"Op\":\"\u{e9}\u{e9}\"}},").as_bytes());
        }
        assert_eq!(read_checked(&json[..], 3, Expect::Graph).unwrap(), json);
    }

    #[test]
    fn the_first_byte_is_named() {
        assert_eq!(
            error(b"\x00\x00", Expect::Graph),
            "is not JSON: it begins with byte 0x00, where a document begins with '{'"
        );
        assert_eq!(error(b" [1]", Expect::Graph), "is JSON, but not a graph object: it begins with '['");
        assert_eq!(error(b"null", Expect::Plan), "is JSON, but not a plan object: it begins with 'n'");
        assert!(error(b"nul", Expect::Plan).starts_with("is not JSON: it begins with 'n'"));
        assert!(error(b"Id,Op,BufId\n", Expect::Graph).contains("CSV table"));
    }

    #[test]
    fn short_inputs_are_left_to_the_reader_of_the_format() {
        for text in [&b""[..], b"  \n", b"{\"Nodes\": oops"] {
            assert_eq!(read_checked(text, 0, Expect::Graph).unwrap(), text);
        }
    }
}
