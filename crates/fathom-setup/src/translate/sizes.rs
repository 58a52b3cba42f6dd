//! How large each file is and which part of it a job works on: `size`, `io_size`, `filesize`,
//! `offset`, `offset_increment`, and what is already there.
//!
//! ```text
//!  0        offset                        offset + length            bytes
//!  ├──────────┼───────── the job's range ────────┼─────── not touched ──┤
//! ```

use std::fmt;

use fathom_job::Size;
use fathom_workload::WorkerConfig;

/// What a job asks for, and what lies under its file names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SizeRequest<'a> {
    /// `size`.
    pub(crate) size: Option<Size>,
    /// `io_size`.
    pub(crate) io_size: Option<Size>,
    /// `loops`.
    pub(crate) loops: u32,
    /// The job goes on for a time, and through its whole range, whatever `io_size` says.
    pub(crate) time_based: bool,
    /// End of a pass over the range.
    pub(crate) pass_end: PassEnd,
    /// All that a pass writes is read back after it, and the job does nothing else.
    pub(crate) reads_back: bool,
    /// `filesize`, smallest and largest.
    pub(crate) filesize: Option<(u64, u64)>,
    /// `offset`.
    pub(crate) offset: Size,
    /// `offset_increment`.
    pub(crate) offset_increment: Size,
    /// Sub-job number, which `offset_increment` is multiplied by.
    pub(crate) clone: u32,
    /// The smallest op of the job, bytes; ≥ 1.
    pub(crate) smallest: u64,
    /// `offset_align`: what an offset in percent is rounded up to; 0 for the smallest op.
    pub(crate) offset_align: u64,
    /// `file_append`: begin at the end of what is there.
    pub(crate) append: bool,
    /// `fill_device`: where there is no size, as far as there is room.
    pub(crate) fill: bool,
    /// Each file in the job's order; at least one.
    pub(crate) files: &'a [Existing],
}

/// What lies under a file name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Existing {
    /// Its size; `None` if it does not exist or has no size (a character device).
    pub(crate) bytes: Option<u64>,
    /// It cannot grow.
    pub(crate) fixed: bool,
}

/// End of a pass over the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PassEnd {
    /// As many bytes as the range holds.
    Range,
    /// One of two directions, each with a position of its own, has reached the range's end.
    FirstDirection,
    /// The map has no free block, wherever that is: directions share it, or not each op needs one.
    FullMap,
    /// Nowhere: blocks repeat, or ops go round.
    Never,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// In the order of the request's files.
    pub(crate) files: Vec<FileSize>,
    /// Bytes that one pass moves.
    pub(crate) bytes_per_pass: u64,
    /// Passes.
    pub(crate) loops: u32,
    /// Bytes that all passes move, where those end the job.
    pub(crate) bytes_in_all: Option<u64>,
}

/// One file's size and the job's range in it, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileSize {
    /// Where the range begins.
    pub(crate) offset: u64,
    /// How long it is.
    pub(crate) length: u64,
    /// What the file must hold before the job starts: the end of the range, or `filesize`.
    pub(crate) bytes: u64,
    /// The range was cut to what a device holds.
    pub(crate) cut: bool,
}

/// Why no sizes can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SizeFault {
    /// Neither a size nor a file that has one; the file's index.
    NoSize(usize),
    /// A percentage of a file that does not exist; the file's index.
    PercentOfNothing(usize),
    /// The offset lies at or behind the end of what is there.
    OffsetBehindEnd {
        /// The file's index.
        file: usize,
        /// The offset.
        offset: u64,
        /// The file's size.
        bytes: u64,
    },
    /// The numbers do not fit into 64 bits.
    TooLarge,
}

impl fmt::Display for SizeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSize(_) => f.write_str("you need to specify size="),
            Self::PercentOfNothing(_) => f.write_str("a percentage of a file that does not exist"),
            Self::OffsetBehindEnd { offset, bytes, .. } => {
                write!(f, "offset {offset} lies behind the end ({bytes} B)")
            }
            Self::TooLarge => f.write_str("size and offset do not fit into 64 bits"),
        }
    }
}

/// Works the sizes out. `draw(low, high)` gives a number in that closed range, for `filesize`.
pub(crate) fn sizes(
    request: &SizeRequest<'_>,
    draw: &mut dyn FnMut(u64, u64) -> u64,
) -> Result<Sizes, SizeFault> {
    let mut files = Vec::with_capacity(request.files.len());
    for index in 0..request.files.len() {
        files.push(file_size(request, index, draw)?);
    }
    let total = sum(files.iter().map(|file| file.length))?;
    let asked = match request.size {
        Some(Size::Bytes(size)) => size.min(total),
        _ => total,
    };
    let bytes_per_pass = match request.io_size {
        Some(Size::Bytes(bytes)) => bytes,
        Some(Size::Percent(percent)) => percent_of(asked, percent),
        // The parser turns zones into bytes.
        Some(Size::Zones(_)) => asked,
        // Tails that no op fits into count: a pattern that need not end does one op for them, as in
        // fio.
        None => asked,
    };
    let (bytes_per_pass, loops, bytes_in_all) = passes(request, asked, bytes_per_pass);
    Ok(Sizes {
        files,
        bytes_per_pass,
        loops,
        bytes_in_all,
    })
}

/// Bytes of a pass, passes, and the bytes that end the job in their place, from the range
/// (`asked`) and `io_size`.
///
/// As seen of fio 3.33: where there are several passes, or a time to fill, each pass goes through
/// the whole range, a sequential mix until one direction is through. Passes that end where the map
/// is full go on until as many bytes are moved as `io_size` says. An `io_size` above the range
/// takes as many passes as it needs, but no more than `loops` times `io_size` bytes; what a pass
/// reads back counts, and each is made whole. After one
/// below it the next loop goes on where the last one ended; it does not begin at the front again.
fn passes(request: &SizeRequest<'_>, asked: u64, io_size: u64) -> (u64, u32, Option<u64>) {
    let loops = request.loops.max(1);
    let all = io_size.saturating_mul(loops.into());
    let to_the_end = match request.pass_end {
        PassEnd::FirstDirection => request.time_based || loops > 1,
        PassEnd::FullMap => request.time_based || loops > 1 || request.io_size.is_some(),
        PassEnd::Range | PassEnd::Never => false,
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
    if request.reads_back && io_size > asked && request.pass_end == PassEnd::Range {
        let needed = io_size.div_ceil(asked.saturating_mul(2));
        let needed = u32::try_from(needed).unwrap_or(u32::MAX);
        return (asked, loops.max(needed), None);
    }
    match (io_size < asked, loops) {
        (_, 1) => (io_size, 1, None),
        (true, _) if all <= asked => (all, 1, None),
        (_, _) if request.pass_end == PassEnd::Never => (all, 1, None),
        (true, _) => (asked, loops, Some(all)),
        (false, _) => {
            let needed = u32::try_from(io_size.div_ceil(asked)).unwrap_or(u32::MAX);
            (asked, loops.max(needed), None)
        }
    }
}

/// One file's size and range.
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
    let mut offset = offset(request, whole)?;
    if request.append && !existing.fixed {
        let there = existing.bytes.unwrap_or(0);
        offset = offset.checked_add(there).ok_or(SizeFault::TooLarge)?;
    }
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
        Wanted::End(end) if offset < end => (end - offset, end),
        Wanted::Part { length, end } if offset < end => {
            let length = length.min(end - offset);
            (length, offset + length)
        }
        Wanted::End(end) | Wanted::Part { end, .. } => return Err(behind(end)),
    };
    let mut cut = false;
    if let (true, Some(there)) = (existing.fixed, existing.bytes) {
        if offset >= there {
            return Err(behind(there));
        }
        cut = bytes > there;
        length = length.min(there - offset);
        bytes = bytes.min(there);
    }
    Ok(FileSize {
        offset,
        length,
        // What is to fill the device finds its room as it goes.
        bytes: if request.fill { 0 } else { bytes },
        cut,
    })
}

/// More than any file system has room for; with an offset still no more than a file can have.
const ENDLESS: u64 = 1 << 62;

/// How a file's range is bounded.
enum Wanted {
    /// So many bytes, wherever they begin.
    Length(u64),
    /// Up to here.
    End(u64),
    /// So many bytes, and not beyond the end of what is there.
    Part { length: u64, end: u64 },
}

/// Which bound the options give for one file.
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

/// A file length between the bounds, whole ops where there is a choice.
fn filesize(low: u64, high: u64, smallest: u64, draw: &mut dyn FnMut(u64, u64) -> u64) -> u64 {
    if low >= high {
        return low;
    }
    round_down(draw(low, high), smallest).max(low)
}

/// One file's share of `size`: the same for all, whole ops that are left over to the first ones.
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

/// Where the range begins; percentages are of `whole` and rounded up to whole ops.
fn offset(request: &SizeRequest<'_>, whole: u64) -> Result<u64, SizeFault> {
    let unit = match request.offset_align {
        0 => request.smallest,
        align => align,
    };
    let in_bytes = |size| match size {
        Size::Bytes(bytes) => Ok(bytes),
        Size::Zones(_) => Ok(0),
        Size::Percent(percent) => percent_of(whole, percent)
            .checked_next_multiple_of(unit)
            .ok_or(SizeFault::TooLarge),
    };
    in_bytes(request.offset_increment)?
        .checked_mul(u64::from(request.clone))
        .and_then(|added| added.checked_add(in_bytes(request.offset).ok()?))
        .ok_or(SizeFault::TooLarge)
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
