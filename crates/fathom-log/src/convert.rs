//! `fathom log convert`: conversion between log formats, of ours or fio's logs.
//!
//! The content of the source determines its format; the name of the destination selects the format
//! written.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use fathom_host::output_file::{OutputFile, Stop, is_same_file};

use super::convert_error::ConvertError;
use super::output::{FileFormat, LogFormat, Output, Sink};
use super::plan::{NAMELESS, value_of};
use super::record_format::RecordFormat;
use super::row::{LogRow, Shape};
use super::source::LogSource;

/// Outcome of a conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// Lines of the log.
    pub lines: u64,
    /// No name gives the quantity, so that the value column of a table is `value`, without a unit.
    pub is_nameless: bool,
}

/// Converts a log. `kind` is its quantity, such as `clat`; if omitted, it is taken from the name of
/// the file, else of its value column.
///
/// # Errors
/// The path that cannot be read or written, and why. An existing destination is then unchanged, and
/// no partial file remains.
pub fn convert_log(
    from: &Path,
    to: &Path,
    kind: Option<&str>,
    stop: &Stop,
) -> Result<Converted, ConvertError> {
    let read = |source| ConvertError::Read {
        path: from.to_owned(),
        source,
    };
    let write = |source| ConvertError::Write {
        path: to.to_owned(),
        source,
    };
    if is_same_file(from, to) {
        return Err(ConvertError::SameFile(to.to_owned()));
    }
    let extension = to.extension().unwrap_or_default().to_string_lossy();
    let records = RecordFormat::of_extension(&extension);
    // A pipe or a device has no extension, and takes text.
    let is_named = to.is_file() || !to.exists();
    if is_named && records.is_none() && !TEXT_EXTENSIONS.contains(&&*extension) {
        return Err(ConvertError::NoSuchFormat(to.to_owned()));
    }
    // A regular file, because it is read more than once, and opening a FIFO could block.
    if !from.metadata().map_err(read)?.is_file() {
        return Err(ConvertError::NotAFile(from.to_owned()));
    }
    let source = LogSource::open(from).map_err(read)?;
    let shape = source.shape();
    if let Some(format) = records
        && let Some(column) = (format.lacks)(shape)
    {
        return Err(ConvertError::MissingColumn {
            path: to.to_owned(),
            format: format.name,
            column,
        });
    }
    let value = value(kind, from, source.value_name());
    let is_nameless = value == NAMELESS && (records.is_some() || extension == "csv");
    let file = OutputFile::create(to, stop).map_err(|error| write(error.into()))?;
    let mut writer = match records {
        Some(format) => Writer::of_records(format, file, shape, value),
        None => Writer::of_text(file, extension == "csv", shape, &value),
    };
    let mut ended = Ok(());
    let mut rows = 0;
    let rows_read = source.rows(&mut |row, _| {
        rows += 1;
        ended = match stop.is_asked() {
            true => Err(ConvertError::Interrupted(to.to_owned())),
            false => writer.row(row).map_err(write),
        };
        match ended {
            Ok(()) => Ok(()),
            Err(_) => Err(io::Error::other("not written")),
        }
    });
    ended?;
    rows_read.map_err(read)?;
    writer.finish().map_err(write)?;
    Ok(Converted {
        lines: rows,
        is_nameless,
    })
}

/// Returns the name of the value column: of the quantity `kind`, else of the one in the file's name
/// (`randread_clat.1.log` holds clat), else that of the column in the source.
fn value(kind: Option<&str>, path: &Path, column: Option<&str>) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.split('.').next().unwrap_or_default();
    let kind = kind.or_else(|| stem.rsplit('_').next());
    // A table names its unit, too.
    let told = column.filter(|column| column.split('_').next() == kind);
    match (kind, told) {
        (_, Some(column)) => column.to_owned(),
        // Neither name nor quantity tell whether the unit is KiB/s or kB/s.
        (Some("bw"), None) => "bw".to_owned(),
        (kind, None) => match value_of(kind.unwrap_or_default(), false) {
            NAMELESS => column.unwrap_or(NAMELESS).to_owned(),
            name => name.to_owned(),
        },
    }
}

/// Extensions of text: fio's, and with a header.
const TEXT_EXTENSIONS: [&str; 2] = ["log", "csv"];

/// Writer of the destination.
enum Writer {
    Text(BufWriter<OutputFile>, Shape),
    Csv(BufWriter<OutputFile>, Shape),
    /// Records in pages. An error of writing the header is returned by `finish`.
    Records(Box<Output>, &'static RecordFormat, Shape),
}

impl Writer {
    fn of_records(
        format: &'static RecordFormat,
        file: OutputFile,
        shape: Shape,
        value: String,
    ) -> Self {
        let form = FileFormat {
            format: LogFormat::Records(format),
            shape,
            value,
        };
        let output = Output::new(Sink::Whole(file), &form, format.page_bytes_max);
        Self::Records(Box::new(output), format, shape)
    }

    fn of_text(file: OutputFile, is_csv: bool, shape: Shape, value: &str) -> Self {
        let mut to = BufWriter::new(file);
        if !is_csv {
            return Self::Text(to, shape);
        }
        let names = shape.columns(value).into_iter().map(|(_, name)| name);
        let line = names.collect::<Vec<_>>().join(",");
        // An error recurs with the first row, or at the end.
        let _later = writeln!(to, "{line}");
        Self::Csv(to, shape)
    }

    fn row(&mut self, row: &LogRow) -> io::Result<()> {
        match self {
            Self::Text(to, shape) => row.print(*shape, to),
            Self::Csv(to, shape) => {
                let words = row.words(*shape);
                let columns = shape.columns("").into_iter();
                let columns = columns.map(|(place, _)| words[place].to_string());
                writeln!(to, "{}", columns.collect::<Vec<_>>().join(","))
            }
            Self::Records(output, format, shape) => {
                if output.page.is_full() {
                    output.flush();
                }
                (format.encode)(row, *shape, &mut output.page);
                output.lines += 1;
                Ok(())
            }
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Text(to, _) | Self::Csv(to, _) => to
                .into_inner()
                .map_err(|error| error.into_error())?
                .finish(),
            Self::Records(mut output, ..) => {
                output.flush();
                match output.into_end() {
                    (Some(error), _) => Err(error),
                    (None, Some(Sink::Whole(file))) => file.finish(),
                    (None, _) => Ok(()),
                }
            }
        }
    }
}
