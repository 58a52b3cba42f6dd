//! Parquet logs (`log_format=parquet`), which pandas, DuckDB and Polars read without parsing text.
//!
//! All columns are 64-bit integers in delta encoding: a constant column takes almost no space. No
//! further compression. They are signed, although never negative, because readers subtract unsigned
//! columns without sign: for 1 − 2, pandas and Polars give 2⁶⁴ − 1, and DuckDB an error.
//!
//! # What this costs
//! 4 MiB per file until its row group is written, and until the end some 100 bytes of footer for
//! each column of each group of 65,536 lines.

use std::io;
use std::sync::Arc;

use parquet::basic::{Encoding, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::ColumnReader;
use parquet::data_type::Int64Type;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use super::output::Sink;
use super::record_format::{RecordFile, RecordFormat, RowVisitor};
use super::row::{LogRow, Shape, WORDS, Words, unknown_direction};
use super::writer::TABLE_PAGE_BYTES_MAX;

/// Parquet logs.
pub(super) static FORMAT: RecordFormat = RecordFormat {
    name: "parquet",
    extension: "parquet",
    magic: b"PAR1",
    page_bytes_max: TABLE_PAGE_BYTES_MAX,
    // A file ends with its footer.
    can_append: false,
    unavailable: None,
    lacks: |_| None,
    encode: |row, shape, page| {
        let words = row.words(shape);
        words.iter().for_each(|word| page.text(&word.to_ne_bytes()));
    },
    start: |sink, form| Ok(Box::new(Table::new(sink, form.shape, &form.value)?)),
    read,
    value_name: |file| {
        let reader = SerializedFileReader::new(file).map_err(io_error)?;
        let schema = reader.metadata().file_metadata().schema_descr_ptr();
        let names = schema.columns().iter().map(|column| column.name());
        Ok(Shape::value_name(names))
    },
};

/// Parquet file being written.
struct Table {
    writer: SerializedFileWriter<Sink>,
    /// Index of each column among a row's words.
    places: Vec<usize>,
    column: Vec<i64>,
}

impl Table {
    /// Starts a file for logs of this shape; `value` names the value column.
    fn new(to: Sink, shape: Shape, value: &str) -> io::Result<Self> {
        let columns = shape.columns(value);
        let fields = columns.iter().map(|(_, name)| {
            let field = Type::primitive_type_builder(name, Physical::INT64);
            let field = field.with_repetition(Repetition::REQUIRED);
            let signed = LogicalType::integer(64, true);
            Ok(Arc::new(field.with_logical_type(Some(signed)).build()?))
        });
        let fields: Result<Vec<_>, ParquetError> = fields.collect();
        let schema = Type::group_type_builder("log").with_fields(fields.map_err(io_error)?);
        let properties = WriterProperties::builder()
            .set_dictionary_enabled(false)
            .set_encoding(Encoding::DELTA_BINARY_PACKED)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .set_created_by(concat!("fathom ", env!("CARGO_PKG_VERSION")).to_owned());
        let schema = Arc::new(schema.build().map_err(io_error)?);
        let writer = SerializedFileWriter::new(to, schema, Arc::new(properties.build()));
        Ok(Self {
            writer: writer.map_err(io_error)?,
            places: columns.into_iter().map(|(place, _)| place).collect(),
            column: Vec::new(),
        })
    }
}

impl RecordFile for Table {
    /// Writes rows, given as words, as one row group.
    fn write_page(&mut self, records: &[u8]) -> io::Result<()> {
        let mut group = self.writer.next_row_group().map_err(io_error)?;
        for &place in &self.places {
            self.column.clear();
            let words = records.chunks_exact(WORDS * 8).map(|row| {
                let word = &row[place * 8..place * 8 + 8];
                i64::from_ne_bytes(word.try_into().unwrap_or_default())
            });
            self.column.extend(words);
            let Some(mut column) = group.next_column().map_err(io_error)? else {
                break; // as many as the schema has
            };
            let values = column.typed::<Int64Type>();
            values
                .write_batch(&self.column, None, None)
                .map_err(io_error)?;
            column.close().map_err(io_error)?;
        }
        group.close().map_err(io_error)?;
        Ok(())
    }

    /// Writes the footer, without which the rows before an error would be unreadable.
    fn finish(self: Box<Self>) -> io::Result<Sink> {
        self.writer.into_inner().map_err(io_error)
    }
}

impl std::fmt::Debug for Table {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Table")
            .field("places", &self.places)
            .finish_non_exhaustive()
    }
}

/// Reads a file row by row.
fn read(file: std::fs::File, each: RowVisitor<'_>) -> io::Result<()> {
    let reader = SerializedFileReader::new(file).map_err(io_error)?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let names: Vec<&str> = schema
        .columns()
        .iter()
        .map(|column| column.name())
        .collect();
    let Some((shape, places)) = Shape::of_columns(names) else {
        return Err(other("its columns are not those of a log"));
    };
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(io_error)?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        let mut words = vec![[0; WORDS]; rows];
        for (column, &place) in places.iter().enumerate() {
            for (row, value) in words.iter_mut().zip(column_of(&*group, column, rows)?) {
                row[place] = value.cast_unsigned();
            }
        }
        for words in words {
            let row = LogRow::of_words(words, shape);
            each(&row.ok_or_else(|| no_row(words))?, shape)?;
        }
    }
    Ok(())
}

/// Returns the error of a row whose numbers are out of range.
fn no_row(words: Words) -> io::Error {
    match unknown_direction(words) {
        Some(number) => other(&format!("direction {number} is unknown")),
        None => other("a number is too large for its column"),
    }
}

fn column_of(group: &dyn RowGroupReader, column: usize, rows: usize) -> io::Result<Vec<i64>> {
    let reader = group.get_column_reader(column).map_err(io_error)?;
    let ColumnReader::Int64ColumnReader(mut reader) = reader else {
        return Err(other("a column does not hold 64-bit numbers"));
    };
    let mut values = Vec::with_capacity(rows);
    while values.len() < rows {
        let left = rows - values.len();
        let read = reader
            .read_records(left, None, None, &mut values)
            .map_err(io_error)?;
        if read.1 == 0 {
            return Err(other("a column has fewer rows than there are"));
        }
    }
    Ok(values)
}

fn other(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

pub(crate) fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(inner) => *inner,
            Err(inner) => io::Error::other(inner),
        },
        error => io::Error::new(io::ErrorKind::InvalidData, error.to_string()),
    }
}
