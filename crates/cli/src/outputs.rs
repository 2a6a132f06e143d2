//! What a command will write, held against what it has read: no output takes the place of an input, and
//! no two outputs are one file.
//!
//! Asked once all inputs are read, which is before the work begins and before anything is written.

use crate::error::CliError;
use crate::input;
use crate::resolve::{EDGES_CSV, MEMORY_TXT, NODES_CSV, PLAN_JSON, SCHEDULE_TXT, SPILL_TXT};
use crate::write::Target;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The files that a command will write, each with the option that asks for it.
#[derive(Debug, Default)]
pub struct Outputs {
    files: Vec<(&'static str, PathBuf)>,
}

impl Outputs {
    /// No files yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A file, if it is asked for.
    #[must_use]
    pub fn file(mut self, option: &'static str, path: Option<&Path>) -> Self {
        self.files.extend(path.map(|path| (option, path.to_owned())));
        self
    }

    /// Files of a directory, if it is asked for.
    #[must_use]
    pub fn files<N: AsRef<Path>>(
        mut self,
        option: &'static str,
        directory: Option<&Path>,
        names: impl IntoIterator<Item = N>,
    ) -> Self {
        if let Some(directory) = directory {
            self.files.extend(names.into_iter().map(|name| (option, directory.join(name))));
        }
        self
    }

    /// The files of the plan of a task.
    #[must_use]
    pub fn plan(self, option: &'static str, directory: Option<&Path>, task: &str) -> Self {
        let names = [SCHEDULE_TXT, MEMORY_TXT, SPILL_TXT, PLAN_JSON].map(|end| format!("{task}{end}"));
        self.files(option, directory, names)
    }

    /// Both forms of a figure.
    #[must_use]
    pub fn figure(self, option: &'static str, stem: Option<&Path>) -> Self {
        let form = |extension: &str| stem.map(|stem| PathBuf::from(format!("{}.{extension}", stem.display())));
        self.file(option, form("svg").as_deref()).file(option, form("png").as_deref())
    }

    /// The files of a graph.
    #[must_use]
    pub fn graph(self, option: &'static str, target: &Target) -> Self {
        match target {
            Target::Stdout => self,
            Target::Json { directory, name } => self.files(option, Some(directory), [name]),
            Target::Csv { directory, task } => {
                self.files(option, Some(directory), [NODES_CSV, EDGES_CSV].map(|end| format!("{task}{end}")))
            }
        }
    }

    /// Holds the outputs against what was read so far, and against each other.
    ///
    /// # Errors
    /// The first output that is a file that was read, or another output.
    pub fn check(&self) -> Result<(), CliError> {
        let mut taken: BTreeMap<PathBuf, &'static str> = BTreeMap::new();
        for (option, path) in &self.files {
            let place = input::place(path);
            if input::was_read(&place) {
                return Err(CliError::usage(
                    format!("{option} would write {}, which this command reads", path.display()),
                    format!("nothing was written; give another {option}"),
                ));
            }
            if let Some(other) = taken.insert(place, option) {
                let both = if other == *option { format!("{option} twice") } else { format!("{other} and {option}") };
                return Err(CliError::usage(
                    format!("{}: {both} would write this one file", path.display()),
                    "nothing was written; give each output a place of its own",
                ));
            }
        }
        Ok(())
    }
}
