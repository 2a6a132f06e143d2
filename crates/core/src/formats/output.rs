//! Writing several files so that each appears whole or not at all.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use thiserror::Error;

/// Why an output could not be written.
#[derive(Debug, Error)]
pub enum OutputError {
    /// The system refused.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The place of the output directory is taken by something else.
    #[error("{} is not a directory", .path.display())]
    NotADirectory {
        /// The place.
        path: PathBuf,
    },
    /// The place of a file is taken by a directory.
    #[error("cannot write {}: a directory has that name", .path.display())]
    IsADirectory {
        /// The place.
        path: PathBuf,
    },
    /// A name that is not the plain name of one file.
    #[error("{name:?} is not a file name")]
    BadName {
        /// The name.
        name: String,
    },
    /// Two files of one set with the same name.
    #[error("two outputs are called {name:?}")]
    NamedTwice {
        /// The name.
        name: String,
    },
}

/// Files of one directory that are written aside first and renamed into place together, in the
/// order in which they were added. Dropping the set before [`FileSet::commit`] leaves nothing
/// behind, directories that it made included.
#[derive(Debug)]
pub struct FileSet {
    directory: PathBuf,
    /// Directories that were missing, outermost first.
    made: Vec<PathBuf>,
    files: Vec<(String, NamedTempFile)>,
}

impl FileSet {
    /// An empty set for `directory`, which is made if it is missing.
    ///
    /// # Errors
    /// When the directory cannot be made or something else has its name.
    pub fn new(directory: impl Into<PathBuf>) -> Result<Self, OutputError> {
        let mut set = Self { directory: directory.into(), made: Vec::new(), files: Vec::new() };
        if set.directory.as_os_str().is_empty() {
            set.directory.push(".");
        }
        let missing: Vec<_> = set
            .directory
            .ancestors()
            .take_while(|d| !d.as_os_str().is_empty() && !d.exists())
            .map(Path::to_owned)
            .collect();
        for path in missing.into_iter().rev() {
            match fs::create_dir(&path) {
                Ok(()) => set.made.push(path),
                // Another process may have made it meanwhile.
                Err(_) if path.is_dir() => {}
                Err(source) => return Err(OutputError::Io { action: "create the directory", path, source }),
            }
        }
        if set.directory.is_dir() { Ok(set) } else { Err(OutputError::NotADirectory { path: set.directory.clone() }) }
    }

    /// Where a file of that name will stand.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Adds a file with these contents.
    ///
    /// # Errors
    /// As [`FileSet::write`].
    pub fn add(&mut self, name: &str, contents: &[u8]) -> Result<(), OutputError> {
        self.write(name, |out| out.write_all(contents))
    }

    /// Adds a file with what `fill` writes.
    ///
    /// # Errors
    /// A name that is none or is taken, a directory that cannot be written, an error of `fill`.
    pub fn write(
        &mut self,
        name: &str,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), OutputError> {
        let path = self.path(name);
        if Path::new(name).file_name() != Some(OsStr::new(name)) {
            return Err(OutputError::BadName { name: name.to_owned() });
        }
        if self.files.iter().any(|f| f.0 == name) {
            return Err(OutputError::NamedTwice { name: name.to_owned() });
        }
        if path.is_dir() {
            return Err(OutputError::IsADirectory { path });
        }
        let file = self.write_aside(fill).map_err(|source| OutputError::Io { action: "write", path, source })?;
        self.files.push((name.to_owned(), file));
        Ok(())
    }

    fn write_aside(&self, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<NamedTempFile> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".spillbench-").suffix(".part");
        // What any new file gets: the umask takes away from this.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut file = builder.tempfile_in(&self.directory)?;
        let mut out = BufWriter::new(file.as_file_mut());
        fill(&mut out)?;
        out.flush()?;
        drop(out);
        Ok(file)
    }

    /// Renames every file into place, in the order in which they were added, and returns their
    /// paths.
    ///
    /// # Errors
    /// When a file cannot be renamed; those before it are in place then, those after it are gone.
    pub fn commit(mut self) -> Result<Vec<PathBuf>, OutputError> {
        self.commit_so_far()
    }

    /// Renames what was added so far into place, and goes on with an empty set.
    ///
    /// # Errors
    /// As [`FileSet::commit`].
    pub fn commit_so_far(&mut self) -> Result<Vec<PathBuf>, OutputError> {
        let mut paths = Vec::with_capacity(self.files.len());
        for (name, file) in std::mem::take(&mut self.files) {
            let path = self.path(&name);
            if let Err(error) = file.persist(&path) {
                return Err(OutputError::Io { action: "write", path, source: error.error });
            }
            paths.push(path);
        }
        self.made.clear();
        Ok(paths)
    }
}

impl Drop for FileSet {
    fn drop(&mut self) {
        self.files.clear();
        // A directory that holds something by now is not removed, and that is right.
        self.made.drain(..).rev().for_each(|path| drop(fs::remove_dir(path)));
    }
}
