//! Size of each file and the job's range in it, from `size`, `io_size`, `filesize`, `offset`,
//! `offset_increment` and the existing files.
//!
//! ```text
//!  0        offset                        offset + length            bytes
//!  ├──────────┼───────── the job's range ────────┼─────── not touched ──┤
//! ```

use std::fmt;

use fathom_job::Size;
use fathom_workload::WorkerConfig;

/// Size options of a job, and the existing files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SizeRequest<'a> {
    /// `size`.
    pub(crate) size: Option<Size>,
    /// `io_size`.
    pub(crate) io_size: Option<Size>,
    /// `loops`.
    pub(crate) loops: u32,
    /// The job runs for a fixed time over its whole range, whatever `io_size` says.
    pub(crate) time_based: bool,
    /// End of a pass over the range.
    pub(crate) pass_end: PassEnd,
    /// The job only writes, and reads everything back after each pass.
    pub(crate) reads_back: bool,
    /// `filesize`: minimum and maximum.
    pub(crate) filesize: Option<(u64, u64)>,
    /// `offset`.
    pub(crate) offset: Size,
    /// `offset_increment`.
    pub(crate) offset_increment: Size,
    /// Sub-job number, the factor of `offset_increment`.
    pub(crate) clone: u32,
    /// Smallest op of the job in bytes; ≥ 1.
    pub(crate) smallest: u64,
    /// An op needs only to begin in the range: sequential ops, all of the smallest size.
    pub(crate) begins_in_range: bool,
    /// `offset_align`: alignment of an offset in percent; 0 for the smallest op.
    pub(crate) offset_align: u64,
    /// `file_append`: start at the end of the existing file.
    pub(crate) append: bool,
    /// `fill_device` of a job that only writes: without a size, until the disk is full.
    pub(crate) fill: bool,
    /// An op is a file, whatever its length: the range in each is one op.
    pub(crate) op_per_file: bool,
    /// Existing files in the job's order; at least one.
    pub(crate) files: &'a [Existing],
}

/// State of a file before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Existing {
    /// Size; `None` if the file does not exist or has no size (a character device).
    pub(crate) bytes: Option<u64>,
    /// The file cannot grow.
    pub(crate) fixed: bool,
}

/// End of a pass over the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PassEnd {
    /// At the end of the range, after the ops that it holds.
    Range,
    /// After as many bytes as the range holds: zones start over at its end.
    Bytes,
    /// When one of two directions, each with its own position, reaches the end of the range.
    FirstDirection,
    /// When the random map is full, after a number of bytes unknown in advance: directions share
    /// the map, or some ops take no block from it.
    FullMap,
    /// When this gap after an op, in bytes and > 0, leads out of the range. Where it leads past the
    /// end of the file, too, offsets wrap around.
    Gap(u64),
    /// Never: blocks repeat, or offsets wrap around.
    Never,
}

/// Resolved sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResolvedSizes {
    /// Sizes in the order of the request's files.
    pub(crate) files: Vec<FileSize>,
    /// Bytes transferred per pass.
    pub(crate) bytes_per_pass: u64,
    /// Number of passes.
    pub(crate) loops: u32,
    /// Bytes transferred in all passes, if they end the job.
    pub(crate) bytes_in_all: Option<u64>,
}

/// Size of one file and the job's range in it, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileSize {
    /// Start of the range.
    pub(crate) offset: u64,
    /// Length of the range.
    pub(crate) length: u64,
    /// Size needed before the job starts: the end of the range, or `filesize`.
    pub(crate) bytes: u64,
    /// The range was truncated to the size of a device.
    pub(crate) cut: bool,
}

/// Error in a job's size options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SizeFault {
    /// Neither a size nor an existing file to take it from; index of the file.
    NoSize(usize),
    /// A percentage of a file that does not exist; index of the file.
    PercentOfNothing(usize),
    /// The offset is at or beyond the end of the file.
    OffsetBehindEnd {
        /// Index of the file.
        file: usize,
        /// Offset in bytes.
        offset: u64,
        /// Size of the file in bytes.
        bytes: u64,
    },
    /// The result exceeds 64 bits.
    TooLarge,
}

impl fmt::Display for SizeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSize(_) => f.write_str("you need to specify size="),
            Self::PercentOfNothing(_) => f.write_str("a percentage of a file that does not exist"),
            Self::OffsetBehindEnd { offset, bytes, .. } => {
                write!(f, "offset {offset} is beyond the end ({bytes} B)")
            }
            Self::TooLarge => f.write_str("size plus offset exceeds 64 bits"),
        }
    }
}

/// Resolves the sizes. `draw(low, high)` returns a random number in that closed range, for
/// `filesize`.
pub(crate) fn sizes(
    request: &SizeRequest<'_>,
    draw: &mut dyn FnMut(u64, u64) -> u64,
) -> Result<ResolvedSizes, SizeFault> {
    let mut files = Vec::with_capacity(request.files.len());
    for index in 0..request.files.len() {
        files.push(file_size(request, index, draw)?);
    }
    // A file that ends at the offset is skipped, unless all do.
    let at_end = |file: &FileSize| file.length == 0 && file.offset > 0 && file.bytes == file.offset;
    if let Some(first) = files.first()
        && files.iter().all(at_end)
    {
        return Err(SizeFault::OffsetBehindEnd {
            file: 0,
            offset: first.offset,
            bytes: first.bytes,
        });
    }
    let total = sum(files.iter().map(|file| file.length))?;
    let asked = match request.size {
        Some(Size::Bytes(size)) if !request.op_per_file => size.min(total),
        _ => total,
    };
    let bytes_per_pass = match request.io_size {
        Some(Size::Bytes(bytes)) => bytes,
        // Of the files, as in fio, which `filesize` makes larger than `size`.
        Some(Size::Percent(percent)) => percent_of(total, percent).min(asked),
        // The parser converts zones into bytes.
        Some(Size::Zones(_)) => asked,
        // Includes tails too short for an op: a pattern without an end issues one op for them, as
        // in fio.
        None => asked,
    };
    // Beyond `size` a pass goes on to the end of the files, which `filesize` makes larger.
    let range = if bytes_per_pass > asked { total } else { asked };
    let covered = match request.pass_end {
        PassEnd::Range => covered(request, &files).min(range),
        _ => range,
    };
    let passes_of = SizeRequest {
        pass_end: pass_end(request, &files),
        ..*request
    };
    let (bytes_per_pass, loops, bytes_in_all) =
        passes(&passes_of, (range, covered), bytes_per_pass);
    Ok(ResolvedSizes {
        files,
        bytes_per_pass,
        loops,
        bytes_in_all,
    })
}

/// Returns the bytes of all files that the ops of a pass move, of a tail too short for an op none;
/// but all if there is no op, which is found later.
fn covered(request: &SizeRequest<'_>, files: &[FileSize]) -> u64 {
    let smallest = request.smallest;
    let each = files.iter().zip(request.files).map(|(file, existing)| {
        let room = match request.begins_in_range {
            true => whole(file, *existing).saturating_sub(file.offset),
            false => file.length,
        };
        // The end of an op beyond the range does not count: the next pass has fewer bytes for it.
        (room - room % smallest).min(file.length)
    });
    match each.fold(0, u64::saturating_add) {
        0 => files.iter().map(|file| file.length).sum(),
        bytes => bytes,
    }
}

/// Returns the size that a file has when the job runs.
fn whole(file: &FileSize, existing: Existing) -> u64 {
    file.bytes.max(existing.bytes.unwrap_or(0))
}

/// Returns the end of a pass, once the sizes of the files tell where a gap leads.
fn pass_end(request: &SizeRequest<'_>, files: &[FileSize]) -> PassEnd {
    let PassEnd::Gap(gap) = request.pass_end else {
        return request.pass_end;
    };
    let wraps = |(file, existing): (&FileSize, &Existing)| {
        wraps_around(request.smallest, gap, file, whole(file, *existing))
    };
    match files.iter().zip(request.files).any(wraps) {
        true => PassEnd::Never,
        false => PassEnd::Gap(gap),
    }
}

/// Returns whether sequential ops of `length` bytes with a gap after each start over forever in a
/// file of `whole` bytes: the last one in the range ends before the end of the file, and the gap
/// leads past it. The gap counts from the start of the range, not of the file, as in fio.
fn wraps_around(length: u64, gap: u64, file: &FileSize, whole: u64) -> bool {
    let Some(room) = whole.checked_sub(file.offset.saturating_add(length)) else {
        return false;
    };
    let step = length.saturating_add(gap);
    let last = room.min(file.length.saturating_sub(1)) / step * step;
    last < room && last.saturating_add(step) >= whole
}

/// Returns the bytes per pass, the number of passes, and the total bytes if those end the job
/// instead, from the range (`asked`), the bytes that a pass over it moves, and `io_size`.
///
/// Observed with fio 3.33:
/// - With several passes, or `time_based`, each pass covers the whole range; a sequential mix ends
///   its pass when one direction reaches the end.
/// - Passes that end with a full map repeat until `io_size` bytes are transferred.
/// - Passes that end after a gap, which leaves bytes of the range out, repeat until `io_size` bytes
///   are transferred, but only up to `loops` times as many.
/// - An `io_size` above the range takes as many passes as it needs, up to `loops` times `io_size`
///   bytes. Bytes read back count, and every pass is completed.
/// - With an `io_size` below the range, the next loop continues where the last one ended instead of
///   starting over.
fn passes(
    request: &SizeRequest<'_>,
    (asked, covered): (u64, u64),
    io_size: u64,
) -> (u64, u32, Option<u64>) {
    let loops = request.loops.max(1);
    let all = io_size.saturating_mul(loops.into());
    let has_tails = request.io_size.is_some() && covered < asked;
    let to_the_end = match request.pass_end {
        PassEnd::FirstDirection => request.time_based || loops > 1,
        PassEnd::FullMap => request.time_based || loops > 1 || request.io_size.is_some(),
        PassEnd::Gap(_) => request.io_size.is_some(),
        // An op is left of `io_size` when the last one of the range is done.
        PassEnd::Range => {
            let left = all.checked_sub(covered);
            let has_op = left.is_some_and(|left| left >= request.smallest);
            has_op && has_tails && io_size <= asked && !request.time_based
        }
        PassEnd::Bytes | PassEnd::Never => false,
    };
    if asked == 0 || io_size == asked && !to_the_end {
        return (io_size, loops, None);
    }
    if to_the_end {
        return (
            WorkerConfig::WHOLE_PATTERN,
            loops,
            (!request.time_based).then_some(all),
        );
    }
    if request.time_based {
        return (asked, loops, None);
    }
    // What is left after the last pass may be less than an op, which takes no further one.
    let in_ops = match has_tails {
        true => io_size.saturating_sub(request.smallest.saturating_sub(1)),
        false => io_size,
    };
    let needed = |bytes: u64| u32::try_from(in_ops.div_ceil(bytes.max(1))).unwrap_or(u32::MAX);
    let has_end = matches!(request.pass_end, PassEnd::Range | PassEnd::Bytes);
    if request.reads_back && io_size > asked && has_end {
        return (asked, loops.max(needed(covered.saturating_mul(2))), None);
    }
    match (io_size < asked, loops) {
        (_, 1) => (io_size, 1, None),
        (true, _) if all <= asked => (all, 1, None),
        (_, _) if request.pass_end == PassEnd::Never => (all, 1, None),
        (true, _) => (asked, loops, Some(all)),
        (false, _) => (asked, loops.max(needed(covered)), None),
    }
}

/// Returns the size of one file and the job's range in it.
fn file_size(
    request: &SizeRequest<'_>,
    index: usize,
    draw: &mut dyn FnMut(u64, u64) -> u64,
) -> Result<FileSize, SizeFault> {
    let existing = request.files[index];
    let wanted = wanted(request, index, draw)?;
    let whole = match wanted {
        Wanted::Length(length) => existing.bytes.unwrap_or(length),
        Wanted::End(end) | Wanted::Part { end, .. } => end,
    };
    let mut offset = match request.append && !existing.fixed {
        // `offset` has no effect then, as in fio.
        true => existing.bytes.unwrap_or(0),
        false => offset(request, whole)?,
    };
    let behind = |bytes| SizeFault::OffsetBehindEnd {
        file: index,
        offset,
        bytes,
    };
    let (mut length, mut bytes) = match wanted {
        Wanted::Length(length) => {
            let end = offset.checked_add(length).ok_or(SizeFault::TooLarge)?;
            (length, end)
        }
        Wanted::End(end) if offset <= end => (end - offset, end),
        Wanted::Part { length, end } if offset <= end => {
            let length = length.min(end - offset);
            (length, offset + length)
        }
        Wanted::End(end) | Wanted::Part { end, .. } => return Err(behind(end)),
    };
    let mut cut = false;
    if let (true, Some(there)) = (existing.fixed, existing.bytes) {
        if offset > there {
            return Err(behind(there));
        }
        cut = bytes > there;
        length = length.min(there - offset);
        bytes = bytes.min(there);
    }
    if request.op_per_file {
        (offset, length) = (0, request.smallest);
    }
    Ok(FileSize {
        offset,
        length,
        // No layout: the job itself writes until the disk is full.
        bytes: if request.fill { 0 } else { bytes },
        cut,
    })
}

/// Length of a range without a bound: beyond any file system, yet below the maximum file size even
/// with an offset added.
const ENDLESS: u64 = 1 << 62;

/// Bound of the range in a file.
enum Wanted {
    /// This many bytes from any offset.
    Length(u64),
    /// Up to this offset.
    End(u64),
    /// This many bytes, but not beyond the end of the file.
    Part { length: u64, end: u64 },
}

/// Returns the bound that the options set for one file.
fn wanted(
    request: &SizeRequest<'_>,
    index: usize,
    draw: &mut dyn FnMut(u64, u64) -> u64,
) -> Result<Wanted, SizeFault> {
    let existing = request.files[index].bytes;
    if let Some((low, high)) = request.filesize {
        let end = match existing {
            Some(bytes) if (low..=high).contains(&bytes) => bytes,
            _ => filesize(low, high, request.smallest, draw),
        };
        return Ok(match request.size {
            Some(Size::Percent(percent)) => part(percent, end, request.smallest),
            _ => Wanted::End(end),
        });
    }
    match request.size {
        Some(Size::Bytes(size)) => Ok(Wanted::Length(share(size, request, index))),
        Some(Size::Percent(percent)) => {
            let there = existing.ok_or(SizeFault::PercentOfNothing(index))?;
            Ok(part(percent, there, request.smallest))
        }
        None if request.fill && !request.files[index].fixed => {
            Ok(Wanted::Length(ENDLESS / request.files.len() as u64))
        }
        None | Some(Size::Zones(_)) => match existing {
            Some(bytes) if bytes > 0 => Ok(Wanted::End(bytes)),
            _ => Err(SizeFault::NoSize(index)),
        },
    }
}

fn part(percent: u32, end: u64, smallest: u64) -> Wanted {
    Wanted::Part {
        length: round_down(percent_of(end, percent), smallest),
        end,
    }
}

/// Draws a file size between the bounds, rounded down to whole ops if the bounds allow it.
fn filesize(low: u64, high: u64, smallest: u64, draw: &mut dyn FnMut(u64, u64) -> u64) -> u64 {
    if low >= high {
        return low;
    }
    round_down(draw(low, high), smallest).max(low)
}

/// Returns one file's share of `size`: equal parts; the first files get one of the ops left over.
fn share(size: u64, request: &SizeRequest<'_>, index: usize) -> u64 {
    let (count, index) = (request.files.len() as u64, index as u64);
    let even = size / count;
    let left_over = (size - even * count) / request.smallest;
    if index < left_over {
        even + request.smallest
    } else {
        even
    }
}

/// Returns the start of the range. Percentages refer to `whole`; with one, the sum is rounded up to
/// whole ops, once, as in fio: rounded increments would add up to more than the file.
fn offset(request: &SizeRequest<'_>, whole: u64) -> Result<u64, SizeFault> {
    let unit = match request.offset_align {
        0 => request.smallest,
        align => align,
    };
    let parts = [request.offset, request.offset_increment];
    let [first, increment] = parts.map(|size| match size {
        Size::Bytes(bytes) => bytes,
        Size::Zones(_) => 0,
        Size::Percent(percent) => percent_of(whole, percent),
    });
    let sum = increment.checked_mul(request.clone.into());
    let sum = sum.and_then(|added| added.checked_add(first));
    let is_percent = parts.iter().any(|size| matches!(size, Size::Percent(_)));
    let offset = match is_percent {
        true => sum.and_then(|sum| sum.checked_next_multiple_of(unit)),
        false => sum,
    };
    offset.ok_or(SizeFault::TooLarge)
}

fn percent_of(bytes: u64, percent: u32) -> u64 {
    let part = u128::from(bytes) * u128::from(percent) / 100;
    u64::try_from(part).unwrap_or(u64::MAX)
}

fn round_down(bytes: u64, unit: u64) -> u64 {
    bytes - bytes % unit
}

fn sum(mut values: impl Iterator<Item = u64>) -> Result<u64, SizeFault> {
    values
        .try_fold(0_u64, u64::checked_add)
        .ok_or(SizeFault::TooLarge)
}

#[cfg(test)]
mod tests;
