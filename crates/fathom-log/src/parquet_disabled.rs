//! Replacement of `parquet.rs` in a program built without the feature `parquet`: a format that can
//! be recognised, but neither written nor read.

use std::io;

use super::record_format::RecordFormat;
use super::writer::TABLE_PAGE_BYTES_MAX;

/// Parquet logs, which this program cannot write.
pub(super) static FORMAT: RecordFormat = RecordFormat {
    name: "parquet",
    extension: "parquet",
    magic: b"PAR1",
    page_bytes_max: TABLE_PAGE_BYTES_MAX,
    can_append: false,
    unavailable: Some(NOT_BUILT_IN),
    lacks: |_| None,
    encode: |_row, _shape, _page| {},
    start: |_sink, _form| Err(not_built_in()),
    read: |_file, _each| Err(not_built_in()),
    value_name: |_file| Err(not_built_in()),
};

pub(crate) fn not_built_in() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, NOT_BUILT_IN)
}

const NOT_BUILT_IN: &str = "this program was built without Parquet tables (leave out \
                            `--no-default-features`)";
