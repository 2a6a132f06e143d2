//! Tables as Parquet, with the types that the data dictionary tells; behind the feature `parquet`.

use crate::columns::Column;
use crate::table::Table;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// Rows of one row group, which are in memory at once.
const GROUP: usize = 1 << 14;

/// How the values of a column are stored.
fn physical(column: &Column) -> Physical {
    match (column.numeric, column.unit) {
        (false, _) => Physical::BYTE_ARRAY,
        (true, "share" | "times" | "s") => Physical::DOUBLE,
        (true, _) => Physical::INT64,
    }
}

fn schema(columns: &[Column]) -> Result<TypePtr> {
    let field = |column: &Column| {
        let kind = physical(column);
        let logical = (kind == Physical::BYTE_ARRAY).then_some(LogicalType::String);
        let field = Type::primitive_type_builder(&column.name, kind).with_repetition(Repetition::OPTIONAL);
        field.with_logical_type(logical).build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<Vec<_>>>()?;
    Type::group_type_builder("runs").with_fields(fields).build().map(Arc::new)
}

/// Writes the table of a file whose columns are `columns`; empty values become null.
///
/// # Errors
/// When the file cannot be read, the writer fails, or a value is not of the type of its column.
pub fn write(columns: &[Column], table: &Path, out: impl Write + Send) -> Result<()> {
    let properties = Arc::new(WriterProperties::builder().build());
    let mut file = SerializedFileWriter::new(out, schema(columns)?, properties)?;
    let mut failure = None;
    Table::read_parts(table, GROUP, |part| {
        failure = write_group(&mut file, columns, part).err();
        failure.is_none()
    })
    .map_err(|e| ParquetError::External(e.into()))?;
    failure.map_or(Ok(()), Err)?;
    file.close().map(drop)
}

fn write_group(file: &mut SerializedFileWriter<impl Write + Send>, columns: &[Column], part: &Table) -> Result<()> {
    let mut group = file.next_row_group()?;
    for column in columns {
        let texts = part.rows().map(|row| row.text(&column.name));
        match physical(column) {
            Physical::INT64 => write_column::<Int64Type>(&mut group, texts, |t| t.parse().ok(), column)?,
            Physical::DOUBLE => write_column::<DoubleType>(&mut group, texts, |t| t.parse().ok(), column)?,
            _ => write_column::<ByteArrayType>(&mut group, texts, |t| Some(ByteArray::from(t)), column)?,
        }
    }
    group.close().map(drop)
}

fn write_column<'a, T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    texts: impl Iterator<Item = &'a str>,
    parse: impl Fn(&str) -> Option<T::T>,
    column: &Column,
) -> Result<()> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    for text in texts {
        levels.push(i16::from(!text.is_empty()));
        if !text.is_empty() {
            let value = parse(text);
            let wrong =
                || ParquetError::General(format!("{text:?} in column {} is no number of its type", column.name));
            values.push(value.ok_or_else(wrong)?);
        }
    }
    let missing = || ParquetError::General(format!("column {} has no place in the schema", column.name));
    let mut writer = group.next_column()?.ok_or_else(missing)?;
    writer.typed::<T>().write_batch(&values, Some(&levels), None)?;
    writer.close()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{ExperimentFile, parse};
    use crate::results;
    use crate::study::{Folders, Study};
    use crate::sweep::{self, Options, Shard, Silent};
    use parquet::file::reader::{FileReader, SerializedFileReader};

    #[test]
    fn every_value_reads_back() {
        let text =
            "name = \"p\"\n[axes]\ngraphs = \"conv(layers=2)\"\nheuristics = \"all\"\n[capacities]\nL1 = [64, 4096]";
        let Ok(ExperimentFile::Study(experiment)) = parse(text) else { panic!("a study") };
        let study = Study::load(*experiment, &Folders { base: ".".into(), data: ".".into() }).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let swept = sweep::run(&study, folder.path(), &Options::default(), &mut Silent).unwrap();
        results::write(&study, &swept, folder.path(), Shard::WHOLE).unwrap();
        results::write_parquet(&study, folder.path()).unwrap();
        let path = folder.path().join(results::PARQUET);
        let runs = Table::read(&folder.path().join(results::RUNS)).unwrap();
        let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        let mut rows = 0;
        for (read, row) in reader.get_row_iter(None).unwrap().zip(runs.rows()) {
            for (name, field) in read.unwrap().get_column_iter() {
                let text = match field {
                    parquet::record::Field::Null => String::new(),
                    parquet::record::Field::Str(text) => text.clone(),
                    parquet::record::Field::Double(x) => x.to_string(),
                    other => other.to_string(),
                };
                assert_eq!(text, row.text(name), "{name}");
            }
            rows += 1;
        }
        assert_eq!(rows, runs.len());
    }
}
