//! The output folder of a sweep: `runs.csv` with its dictionary, `timings.csv`, `timed.csv`,
//! tables, figures and,
//! last, the manifest. Each file is renamed into place whole.

use crate::columns;
use crate::error::HarnessError;
use crate::experiment::{Experiment, FigureKind, FigureSpec, TableSpec};
use crate::figure;
use crate::manifest::{CellSeconds, Manifest, moment};
use crate::rows::Rows;
use crate::study::Study;
use crate::summary;
use crate::sweep::{Shard, Swept};
use crate::table::{Row, Table, dictionary};
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The table of rows.
pub const RUNS: &str = "runs.csv";
/// The data dictionary of the table.
pub const COLUMNS: &str = "columns.csv";
/// The rows of cells whose results depend on the machine; absent without any.
pub const TIMED: &str = "timed.csv";
/// The wall times of the cells.
pub const TIMINGS: &str = "timings.csv";
/// The experiment file that the run was made from.
pub const EXPERIMENT: &str = "experiment.toml";
/// The manifest; a folder without it holds an unfinished run.
pub const MANIFEST: &str = "manifest.json";
/// The folder of summaries.
pub const TABLES: &str = "tables";
/// The folder of figures.
pub const FIGURES: &str = "figures";

/// What was written.
#[derive(Debug, Default)]
pub struct Written {
    /// The files, in the order in which they were written.
    pub files: Vec<PathBuf>,
    /// What was left out, and why.
    pub notices: Vec<String>,
}

/// Writes a file beside its final place and renames it there.
///
/// # Errors
/// When it cannot be written.
pub fn write_file(path: &Path, fill: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<(), HarnessError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(HarnessError::io(folder))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // One name for each file: what a killed process left behind is overwritten, not gathered.
    let partial = folder.join(format!(".{name}.partial"));
    let written = File::create(&partial).and_then(|file| {
        let mut out = BufWriter::new(file);
        fill(&mut out)?;
        out.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_data()?;
        std::fs::rename(&partial, path)
    });
    written.map_err(|source| {
        let _ = std::fs::remove_file(&partial);
        HarnessError::Io { path: path.to_owned(), source }
    })
}

struct Output<'a> {
    folder: &'a Path,
    written: Written,
}

impl Output<'_> {
    fn file(
        &mut self,
        name: impl AsRef<Path>,
        fill: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
    ) -> Result<(), HarnessError> {
        let path = self.folder.join(name);
        write_file(&path, fill)?;
        self.written.files.push(path);
        Ok(())
    }

    fn rows(&mut self, name: &str, rows: &Rows) -> Result<(), HarnessError> {
        let path = self.folder.join(name);
        rows.publish(&path)?;
        self.written.files.push(path);
        Ok(())
    }

    fn table(&mut self, name: impl AsRef<Path>, table: &Table) -> Result<(), HarnessError> {
        self.file(name, |out| table.write(out))
    }
}

/// Writes all that comes of a sweep. Tables and figures of a part of the cells would mislead, so a
/// shard, or a run that a defect ended, leaves the rows only.
///
/// # Errors
/// When a file cannot be written or a figure cannot be drawn.
pub fn write(study: &Study, swept: &Swept, folder: &Path, shard: Shard) -> Result<Written, HarnessError> {
    let mut output = Output { folder, written: Written::default() };
    output.rows(RUNS, &swept.runs)?;
    if !swept.timed.is_empty() {
        output.rows(TIMED, &swept.timed)?;
    }
    output.table(COLUMNS, &dictionary(&study.columns))?;
    output.rows(TIMINGS, &swept.timings)?;
    output.file(EXPERIMENT, |out| out.write_all(study.experiment.text.as_bytes()))?;
    if !shard.is_whole() {
        output.written.notices.push(format!("shard {shard}: tables and figures are left to the merged run"));
    } else if swept.missing > 0 {
        output.written.notices.push(format!("{} cells were not run: no tables, no figures", swept.missing));
        return Ok(output.written);
    } else {
        pictures(study, &mut output)?;
    }
    let manifest = manifest(study, swept, shard);
    output.file(MANIFEST, |out| {
        serde_json::to_writer_pretty(&mut *out, &manifest)?;
        out.write_all(b"\n")
    })?;
    Ok(output.written)
}

/// The rows as Parquet.
#[cfg(feature = "parquet")]
pub const PARQUET: &str = "runs.parquet";

/// Writes the rows of a folder as Parquet, beside its `runs.csv`.
///
/// # Errors
/// When the file cannot be read or written.
#[cfg(feature = "parquet")]
pub fn write_parquet(study: &Study, folder: &Path) -> Result<(), HarnessError> {
    let (path, partial) = (folder.join(PARQUET), folder.join(format!(".{PARQUET}.partial")));
    let file = File::create(&partial).map_err(HarnessError::io(&partial))?;
    crate::parquet::write(&study.columns, &folder.join(RUNS), file)
        .map_err(|e| HarnessError::Table { path: path.clone(), message: e.to_string() })?;
    std::fs::rename(&partial, &path).map_err(HarnessError::io(&path))
}

/// Tables and figures, from what was written.
fn pictures(study: &Study, output: &mut Output<'_>) -> Result<(), HarnessError> {
    let Experiment { tables, figures, .. } = &study.experiment;
    let shows_rows = |f: &&FigureSpec| !matches!(f.kind, FigureKind::Plan { .. });
    if tables.is_empty() && figures.is_empty() {
        return Ok(());
    }
    let named: HashSet<&str> = tables
        .iter()
        .flat_map(TableSpec::columns)
        .chain(figures.iter().filter(shows_rows).flat_map(FigureSpec::columns))
        .map(|column| column.value.as_str())
        .collect();
    let wanted = |column: &str| named.contains(column) || columns::is_axis(column) || figure::reads(column);
    let runs = Table::read_columns(&output.folder.join(RUNS), wanted)?;
    let timed = figures.iter().any(FigureSpec::is_timed).then(|| output.folder.join(TIMED)).filter(|p| p.exists());
    let timed = timed.map_or_else(|| Ok(Table::default()), |path| Table::read_columns(&path, wanted))?;
    summaries(tables, &runs, output)?;
    for spec in figures {
        let rows = if spec.is_timed() { &timed } else { &runs };
        let drawn = if shows_rows(&spec) {
            figure::of_study(study, rows, spec)?
        } else {
            let ok = |row: &Row<'_>| row.text("status") == "ok";
            let row = Table::find(&output.folder.join(RUNS), &spec.filter, ok)?;
            row.map_or(Ok(None), |row| figure::of_study(study, &row, spec))?
        };
        let Some(drawn) = drawn else {
            output.written.notices.push(format!("figure {}: no row passes its filter", spec.name.value));
            continue;
        };
        let stem = Path::new(FIGURES).join(&spec.name.value);
        let with = |extension: &str| PathBuf::from(format!("{}.{extension}", stem.display()));
        output.file(with("svg"), |out| out.write_all(drawn.svg.as_bytes()))?;
        output.file(with("png"), |out| out.write_all(&drawn.png))?;
    }
    Ok(())
}

fn summaries(tables: &[TableSpec], runs: &Table, output: &mut Output<'_>) -> Result<(), HarnessError> {
    for spec in tables {
        let summary = summary::summarize(runs, spec);
        if summary.lines.is_empty() {
            output.written.notices.push(format!("table {}: no row passes its filter", spec.name.value));
            continue;
        }
        let stem = Path::new(TABLES).join(&spec.name.value);
        let with = |extension: &str| PathBuf::from(format!("{}.{extension}", stem.display()));
        output.table(with("csv"), &summary.table())?;
        output.file(with("md"), |out| out.write_all(summary.markdown().as_bytes()))?;
        output.file(with("tex"), |out| out.write_all(summary.latex().as_bytes()))?;
    }
    Ok(())
}

fn manifest(study: &Study, swept: &Swept, shard: Shard) -> Manifest {
    let rows = swept.runs.len() + swept.timed.len();
    let (total, longest) = (swept.cell_time.0.as_secs_f64(), swept.cell_time.1.as_secs_f64());
    let mut manifest = Manifest::of(study);
    manifest.shard = (!shard.is_whole()).then(|| shard.to_string());
    manifest.rows = rows;
    manifest.resumed = swept.resumed;
    manifest.start = moment(swept.span.0);
    manifest.end = moment(swept.span.1);
    manifest.cell_seconds = CellSeconds { total, mean: total / rows.max(1) as f64, longest };
    manifest
}
