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
use std::sync::Arc;

/// Rows of one row group.
const GROUP: usize = 1 << 17;

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

/// Writes a table whose columns are `columns`; empty values become null.
///
/// # Errors
/// When the writer fails, or a value is not of the type of its column.
pub fn write(columns: &[Column], table: &Table, out: impl Write + Send) -> Result<()> {
    let properties = Arc::new(WriterProperties::builder().build());
    let mut file = SerializedFileWriter::new(out, schema(columns)?, properties)?;
    let mut from = 0;
    while from < table.len() || from == 0 {
        let mut group = file.next_row_group()?;
        for column in columns {
            let texts = table.rows().skip(from).take(GROUP).map(|row| row.text(&column.name));
            match physical(column) {
                Physical::INT64 => write_column::<Int64Type>(&mut group, texts, |t| t.parse().ok(), column)?,
                Physical::DOUBLE => write_column::<DoubleType>(&mut group, texts, |t| t.parse().ok(), column)?,
                _ => write_column::<ByteArrayType>(&mut group, texts, |t| Some(ByteArray::from(t)), column)?,
            }
        }
        group.close()?;
        from += GROUP;
    }
    file.close().map(drop)
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
    use crate::study::{Folders, Study};
    use crate::sweep::{self, Options, Silent};
    use parquet::file::reader::{FileReader, SerializedFileReader};

    #[test]
    fn every_value_reads_back() {
        let text =
            "name = \"p\"\n[axes]\ngraphs = \"conv(layers=2)\"\nheuristics = \"all\"\n[capacities]\nL1 = [64, 4096]";
        let Ok(ExperimentFile::Study(experiment)) = parse(text) else { panic!("a study") };
        let study = Study::load(*experiment, &Folders { base: ".".into(), data: ".".into() }).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let runs = sweep::run(&study, folder.path(), &Options::default(), &mut Silent).unwrap().runs;
        let path = folder.path().join("runs.parquet");
        write(&study.columns, &runs, std::fs::File::create(&path).unwrap()).unwrap();
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
