//! Tables as Parquet files.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use super::{TableColumn, TableKind};
use crate::parquet::io_error;

/// Parquet file of a table.
///
/// [`create`](Self::create) it with its columns, [`write`](Self::write) groups of rows, some
/// thousand each, and [`finish`](Self::finish) it: without its footer it cannot be read.
pub struct TableFile<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    kinds: Vec<TableKind>,
}

impl<W: Write + Send> TableFile<W> {
    /// Starts a file with columns of these names, no two of which may be the same.
    ///
    /// # Errors
    /// The error of writing its first bytes.
    pub fn create<'a>(
        to: W,
        columns: impl Iterator<Item = (&'a str, TableKind)>,
    ) -> io::Result<Self> {
        let mut kinds = Vec::new();
        let fields = columns.map(|(name, kind)| {
            kinds.push(kind);
            let (physical, logical) = match kind {
                TableKind::Whole => (Physical::INT64, Some(LogicalType::integer(64, true))),
                TableKind::Number => (Physical::DOUBLE, None),
                TableKind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
                TableKind::Moment => {
                    let in_utc = LogicalType::timestamp(true, TimeUnit::MILLIS);
                    (Physical::INT64, Some(in_utc))
                }
            };
            let field = Type::primitive_type_builder(name, physical);
            let field = field.with_repetition(Repetition::OPTIONAL);
            Ok(Arc::new(field.with_logical_type(logical).build()?))
        });
        let fields: Result<Vec<_>, ParquetError> = fields.collect();
        let schema = Type::group_type_builder("table").with_fields(fields.map_err(io_error)?);
        let properties = WriterProperties::builder()
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .set_created_by(concat!("fathom ", env!("CARGO_PKG_VERSION")).to_owned());
        let schema = Arc::new(schema.build().map_err(io_error)?);
        let writer = SerializedFileWriter::new(to, schema, Arc::new(properties.build()));
        Ok(Self {
            writer: writer.map_err(io_error)?,
            kinds,
        })
    }

    /// Writes rows, given as as many columns as the table has, of the same length.
    ///
    /// # Errors
    /// The error of writing, or a column is of another kind than the table's.
    pub fn write(&mut self, columns: &[TableColumn]) -> io::Result<()> {
        let kinds = self.kinds.iter().copied();
        let are_right = columns.len() == kinds.len()
            && columns
                .iter()
                .zip(kinds)
                .all(|(column, kind)| column.is(kind));
        if !are_right {
            let why = "the rows have other columns than the table";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let mut group = self.writer.next_row_group().map_err(io_error)?;
        for column in columns {
            let Some(mut writer) = group.next_column().map_err(io_error)? else {
                break; // as many as the schema has
            };
            match column {
                TableColumn::Whole(cells) => {
                    write_cells::<Int64Type, _>(&mut writer, cells, |one| *one)
                }
                TableColumn::Number(cells) => {
                    write_cells::<DoubleType, _>(&mut writer, cells, |one| *one)
                }
                TableColumn::Text(cells) => {
                    let bytes = |one: &String| ByteArray::from(one.as_str());
                    write_cells::<ByteArrayType, _>(&mut writer, cells, bytes)
                }
            }
            .map_err(io_error)?;
            writer.close().map_err(io_error)?;
        }
        group.close().map_err(io_error)?;
        Ok(())
    }

    /// Writes the footer and returns what the file was written to.
    ///
    /// # Errors
    /// The error of writing.
    pub fn finish(self) -> io::Result<W> {
        self.writer.into_inner().map_err(io_error)
    }
}

impl<W: Write + Send> std::fmt::Debug for TableFile<W> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("TableFile").finish_non_exhaustive()
    }
}

fn write_cells<T: DataType, C>(
    writer: &mut SerializedColumnWriter<'_>,
    cells: &[Option<C>],
    value: impl Fn(&C) -> T::T,
) -> Result<(), ParquetError> {
    let values: Vec<T::T> = cells.iter().flatten().map(value).collect();
    let is_there = cells.iter().map(|cell| i16::from(cell.is_some()));
    let is_there: Vec<i16> = is_there.collect();
    let typed = writer.typed::<T>();
    typed.write_batch(&values, Some(&is_there), None)?;
    Ok(())
}
