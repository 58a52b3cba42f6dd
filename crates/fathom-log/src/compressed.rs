//! Compressed logs (`log_store_compressed`): concatenated zlib streams of records in the host's
//! byte order, as observed in files of fio 3.33.
//!
//! ```text
//!  0        8        16          20         24      32       40
//! │ time ms │ value  │ direction │ priority │ bytes │ offset │   offset: if bit 31 of direction is
//! set
//! ```
//!
//! Bit 30 of the direction: show the whole priority, not only its class.

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};

use flate2::Compression;
use flate2::bufread::ZlibDecoder;
use flate2::write::ZlibEncoder;

use super::output::Sink;
use super::record_format::{RecordFile, RecordFormat, RowVisitor};
use super::row::{LogRow, Shape};
use super::writer::PAGE_BYTES_MAX;

/// Compressed logs.
pub(super) static FORMAT: RecordFormat = RecordFormat {
    name: "compressed",
    extension: "log.fz",
    // A zlib stream with a window of 32 KiB begins with `x`, which no log in text begins with.
    magic: &[0x78],
    page_bytes_max: PAGE_BYTES_MAX,
    can_append: true,
    unavailable: None,
    lacks: |shape| match shape {
        Shape { max: true, .. } => Some("the maximum"),
        Shape { issued: true, .. } => Some("the time of issue"),
        _ => None,
    },
    encode: |row, shape, page| {
        let (record, length) = encode(row, shape);
        page.text(&record[..length]);
    },
    start: |sink, _form| Ok(Box::new(Streams(sink))),
    read: |file, each| inflate(&mut BufReader::new(file), each),
    value_name: |_file| Ok(None),
};

/// Compressed log being written: a zlib stream for each page.
#[derive(Debug)]
struct Streams(Sink);

impl RecordFile for Streams {
    fn write_page(&mut self, records: &[u8]) -> io::Result<()> {
        deflate(records, &mut self.0)
    }

    fn finish(self: Box<Self>) -> io::Result<Sink> {
        Ok(self.0)
    }
}

/// Encodes a record; returns a buffer and the record's length in it.
fn encode(row: &LogRow, shape: Shape) -> ([u8; RECORD_BYTES_MAX], usize) {
    let mut record = [0; RECORD_BYTES_MAX];
    let flags = if shape.offset { HAS_OFFSET } else { 0 };
    let flags = flags | if shape.priority { HAS_PRIORITY } else { 0 };
    record[..8].copy_from_slice(&row.time_ms.to_ne_bytes());
    record[8..16].copy_from_slice(&row.value.to_ne_bytes());
    record[16..20].copy_from_slice(&(row.direction | flags).to_ne_bytes());
    record[20..24].copy_from_slice(&row.priority.to_ne_bytes());
    record[24..32].copy_from_slice(&row.bytes.to_ne_bytes());
    record[32..].copy_from_slice(&row.offset.to_ne_bytes());
    (
        record,
        if shape.offset {
            RECORD_BYTES_MAX
        } else {
            RECORD_BYTES_MIN
        },
    )
}

/// Decodes the record at the start of `bytes`; `None` if it is incomplete. Returns its length too.
fn decode(bytes: &[u8]) -> Option<(LogRow, Shape, usize)> {
    let word = |at: usize| {
        let bytes = bytes.get(at..at + 8)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    };
    let half = |at: usize| {
        let bytes = bytes.get(at..at + 4)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    };
    let tag = half(16)?;
    let shape = Shape {
        offset: tag & HAS_OFFSET != 0,
        priority: tag & HAS_PRIORITY != 0,
        ..Shape::default()
    };
    let row = LogRow {
        time_ms: word(0)?,
        value: word(8)?,
        direction: tag & !(HAS_OFFSET | HAS_PRIORITY),
        priority: half(20)?,
        bytes: word(24)?,
        offset: if shape.offset { word(32)? } else { 0 },
        ..LogRow::default()
    };
    Some((
        row,
        shape,
        if shape.offset {
            RECORD_BYTES_MAX
        } else {
            RECORD_BYTES_MIN
        },
    ))
}

/// Appends records as another zlib stream.
fn deflate(records: &[u8], to: &mut impl Write) -> io::Result<()> {
    // The fastest level, because the writer must keep up with the jobs.
    let mut encoder = ZlibEncoder::new(to, Compression::fast());
    encoder.write_all(records)?;
    encoder.finish()?;
    Ok(())
}

/// Reads a compressed log, record by record.
///
/// # Errors
/// A damaged stream; all records before the damage were passed to `each`.
fn inflate(from: &mut impl BufRead, each: RowVisitor<'_>) -> io::Result<()> {
    let mut page = vec![0; INFLATE_BYTES];
    while !from.fill_buf()?.is_empty() {
        let mut stream = ZlibDecoder::new(&mut *from);
        let (mut kept, mut any) = (0, false);
        loop {
            let got = stream
                .read(&mut page[kept..])
                .map_err(|error| broken(&error, any))?;
            let filled = kept + got;
            let mut at = 0;
            while let Some((row, shape, length)) = decode(&page[at..filled]) {
                each(&row, shape)?;
                at += length;
            }
            page.copy_within(at..filled, 0);
            (kept, any) = (filled - at, any || at > 0);
            if got == 0 {
                break;
            }
        }
        if kept > 0 {
            let why = format!("it ends within a record: {kept} bytes are left over");
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
        }
    }
    Ok(())
}

/// Prints a compressed log (`--inflate-log`).
///
/// # Errors
/// A damaged stream; all records before the damage were printed.
pub fn inflate_log(mut from: impl BufRead, to: impl Write) -> io::Result<()> {
    let mut to = BufWriter::new(to);
    let inflated = inflate(&mut from, &mut |row, shape| row.print(shape, &mut to));
    to.flush()?;
    inflated
}

fn broken(error: &io::Error, any: bool) -> io::Error {
    let (kind, why) = match error.kind() {
        kind @ io::ErrorKind::UnexpectedEof => (kind, "it breaks off within a compressed stream"),
        io::ErrorKind::InvalidInput if any => (
            io::ErrorKind::InvalidData,
            "its compressed data are damaged",
        ),
        io::ErrorKind::InvalidInput => (io::ErrorKind::InvalidData, "it is not a compressed log"),
        kind => return io::Error::new(kind, error.to_string()),
    };
    io::Error::new(kind, why)
}

const HAS_OFFSET: u32 = 1 << 31;
const HAS_PRIORITY: u32 = 1 << 30;

/// Bytes of a record with and without an offset.
const RECORD_BYTES_MAX: usize = 40;
const RECORD_BYTES_MIN: usize = 32;

/// Bytes inflated at a time.
const INFLATE_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows() -> impl Strategy<Value = LogRow> {
        (any::<[u64; 4]>(), 0..3_u32, any::<u16>()).prop_map(|(words, direction, priority)| {
            LogRow {
                time_ms: words[0],
                value: words[1],
                bytes: words[2],
                offset: words[3],
                direction,
                priority: u32::from(priority),
                ..LogRow::default()
            }
        })
    }

    fn inflated(bytes: &[u8]) -> (Vec<(LogRow, Shape)>, io::Result<()>) {
        let mut all = Vec::new();
        let end = inflate(&mut &*bytes, &mut |row, shape| {
            all.push((*row, shape));
            Ok(())
        });
        (all, end)
    }

    fn deflated(rows: &[LogRow], shape: Shape, of_stream: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for rows in rows.chunks(of_stream) {
            let encoded = rows.iter().map(|row| encode(row, shape));
            let records: Vec<u8> = encoded
                .flat_map(|(record, length)| record.into_iter().take(length))
                .collect();
            deflate(&records, &mut bytes).expect("memory");
        }
        bytes
    }

    proptest! {
        #[test]
        fn what_was_deflated_is_inflated(
            rows in prop::collection::vec(rows(), 0..400),
            offset: bool,
            priority: bool,
            of_stream in 1..300_usize,
        ) {
            let shape = Shape { offset, priority, ..Shape::default() };
            let (got, end) = inflated(&deflated(&rows, shape, of_stream));
            prop_assert!(end.is_ok());
            let place = |row: &LogRow| if offset { row.offset } else { 0 };
            let kept = |row: &LogRow| LogRow { offset: place(row), ..*row };
            let want: Vec<_> = rows.iter().map(|row| (kept(row), shape)).collect();
            prop_assert_eq!(got, want);
        }

        #[test]
        fn whatever_is_inflated_ends(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _either = inflated(&bytes);
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let rows = [LogRow::default(); 5];
        let whole = deflated(&rows, Shape::default(), 5);
        let mut ragged = Vec::new();
        deflate(&[0; RECORD_BYTES_MIN + 7], &mut ragged).expect("memory");
        for (bytes, got, want) in [
            (b"hello".to_vec(), 0, "it is not a compressed log"),
            (whole[..whole.len() - 6].to_vec(), 5, "it breaks off within"),
            (ragged, 1, "7 bytes are left over"),
        ] {
            let (all, end) = inflated(&bytes);
            let text = end.expect_err(want).to_string();
            assert!(text.contains(want), "{text}");
            assert!(all.len() <= got, "{want}: {}", all.len());
        }
        assert!(inflated(b"").1.is_ok(), "an empty log is a log");
    }
}
