//! Writes file content at the speed of the disk, without filling the page cache.
//!
//! Writes are buffered, since direct I/O would restrict offsets and file systems. Writeback of each
//! window starts while the next is generated, and is waited for one window later, so the disk never
//! idles and at most two windows are dirty:
//!
//! ```text
//! generating    |#### window n+1 ####|
//! writeback     |#### window n   ####|
//! waiting       |#### window n−1 ####|  then dropped from the cache
//! ```

use std::fs::File;
use std::io;
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::FileExt;

use fathom_core::{Xoshiro256, stream_seed};
use fathom_sys::files::{self, Advice};

/// Content of a laid-out file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileContent {
    /// Incompressible data without duplicates; reproducible from the seed.
    Random {
        /// Seed of the generator.
        seed: u64,
    },
    /// Zeros (`zero_buffers`).
    Zeros,
    /// These bytes, repeated (`buffer_pattern`); never empty.
    Pattern(Vec<u8>),
}

impl FileContent {
    /// Generates the bytes at `offset`, a multiple of `CHUNK`. Each chunk is independent of the
    /// others, so an extended file has the same content as one created in a single pass.
    fn make(&self, offset: u64, chunk: &mut [u8]) {
        match self {
            Self::Random { seed } => {
                Xoshiro256::new(stream_seed(*seed, offset / CHUNK)).fill(chunk);
            }
            Self::Zeros => chunk.fill(0),
            Self::Pattern(pattern) => {
                let length = u64::try_from(pattern.len()).unwrap_or(u64::MAX).max(1);
                let skip = usize::try_from(offset % length).unwrap_or(0);
                let bytes = pattern.iter().cycle().skip(skip);
                chunk
                    .iter_mut()
                    .zip(bytes)
                    .for_each(|(to, from)| *to = *from);
            }
        }
    }
}

/// Destination of the bytes: a file, or a fault injector in tests.
pub(super) trait LayoutSink {
    /// Writes some of the bytes and returns their number.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// Starts writeback of a range without waiting.
    fn send(&mut self, range: &Range<u64>) -> io::Result<()>;
    /// Waits for the writeback of a range and drops it from the page cache unless it is to stay.
    fn finish_writeback(&mut self, range: &Range<u64>) -> io::Result<()>;
    /// Syncs the whole file.
    fn sync(&mut self) -> io::Result<()>;
}

/// Sink that writes to a file.
pub(super) struct FileSink {
    /// File, open for writing.
    pub(super) file: File,
    /// Keep the written data in the page cache.
    pub(super) keep_cached: bool,
}

impl LayoutSink for FileSink {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(bytes, offset)
    }

    fn send(&mut self, range: &Range<u64>) -> io::Result<()> {
        files::start_writeback(&self.file, range.start, range.end - range.start)
    }

    fn finish_writeback(&mut self, range: &Range<u64>) -> io::Result<()> {
        let length = range.end - range.start;
        files::finish_writeback(&self.file, range.start, length)?;
        if !self.keep_cached {
            files::advise(&self.file, Advice::DontNeed, range.start, length)?;
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_all()
    }
}

/// Reason why a file was not filled.
#[derive(Debug)]
pub(super) enum FillError {
    /// The watcher stopped it.
    Interrupted,
    /// `what` failed after `written` bytes.
    Failed {
        what: &'static str,
        written: u64,
        source: io::Error,
    },
}

/// Writes `range` of a file. `watch` is called after each chunk with the number of bytes written,
/// and may stop the layout.
pub(super) fn fill(
    sink: &mut dyn LayoutSink,
    content: &FileContent,
    range: Range<u64>,
    fsync: bool,
    watch: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<(), FillError> {
    let mut chunk = vec![0_u8; usize::try_from(CHUNK).unwrap_or(0)];
    let mut at = range.start;
    let mut window = at..at;
    let mut sent: Option<Range<u64>> = None;
    let failed = |what, at: u64, source| FillError::Failed {
        what,
        written: at - range.start,
        source,
    };
    while at < range.end {
        let base = at / CHUNK * CHUNK;
        let end = (base + CHUNK).min(range.end);
        let part = usize_of(at - base)..usize_of(end - base);
        content.make(base, &mut chunk[..part.end]);
        write_all(sink, &chunk[part], &mut at).map_err(|error| failed("write", at, error))?;
        if watch(at - range.start).is_break() {
            return Err(FillError::Interrupted);
        }
        if at - window.start >= WINDOW || at == range.end {
            window.end = at;
            ignore_unsupported(sink.send(&window)).map_err(|error| failed("write", at, error))?;
            if let Some(before) = sent.replace(window.clone()) {
                let written_back = ignore_unsupported(sink.finish_writeback(&before));
                written_back.map_err(|error| failed("write", at, error))?;
            }
            window.start = at;
        }
    }
    if let Some(last) = sent {
        let written_back = ignore_unsupported(sink.finish_writeback(&last));
        written_back.map_err(|error| failed("write", at, error))?;
    }
    if fsync {
        sink.sync().map_err(|error| failed("fsync", at, error))?;
    }
    Ok(())
}

/// Writes all of `bytes`. Advances `at` after each partial write, so that it is exact on error.
fn write_all(sink: &mut dyn LayoutSink, mut bytes: &[u8], at: &mut u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match sink.write_at(bytes, *at) {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero)),
            Ok(count) => {
                bytes = &bytes[count.min(bytes.len())..];
                *at += u64::try_from(count).unwrap_or(0);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Ignores file systems without writeback control; they write the data at their own pace.
fn ignore_unsupported(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::Unsupported
                    | io::ErrorKind::InvalidInput
                    | io::ErrorKind::NotSeekable
            ) =>
        {
            Ok(())
        }
        result => result,
    }
}

/// Converts a size of at most `CHUNK`, which fits every `usize`.
fn usize_of(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(0)
}

/// Bytes per write: large enough to amortise the system call, small enough for a core's cache.
pub(super) const CHUNK: u64 = 1 << 20;

/// Bytes per writeback: enough to keep the disk busy while the next window is generated.
const WINDOW: u64 = 8 << 20;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Sink in memory that accepts at most `bite` bytes per write and fails with `errno` after
    /// `room` bytes.
    pub(crate) struct Faulty {
        pub(crate) data: Vec<u8>,
        pub(crate) bite: usize,
        pub(crate) room: usize,
        pub(crate) errno: i32,
        pub(crate) written_back: Vec<Range<u64>>,
        pub(crate) syncs: u32,
    }

    impl Faulty {
        pub(crate) fn new(room: usize, errno: i32) -> Self {
            Self {
                data: Vec::new(),
                bite: usize::MAX,
                room,
                errno,
                written_back: Vec::new(),
                syncs: 0,
            }
        }
    }

    impl LayoutSink for Faulty {
        fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize> {
            let offset = usize::try_from(offset).unwrap();
            let count = bytes.len().min(self.bite).min(self.room);
            if count == 0 {
                return Err(io::Error::from_raw_os_error(self.errno));
            }
            self.room -= count;
            self.data.resize(self.data.len().max(offset + count), 0);
            self.data[offset..offset + count].copy_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn send(&mut self, _range: &Range<u64>) -> io::Result<()> {
            Err(io::Error::from(io::ErrorKind::Unsupported))
        }

        fn finish_writeback(&mut self, range: &Range<u64>) -> io::Result<()> {
            self.written_back.push(range.clone());
            Ok(())
        }

        fn sync(&mut self) -> io::Result<()> {
            self.syncs += 1;
            Ok(())
        }
    }

    fn filled(content: &FileContent, range: Range<u64>, bite: usize) -> Faulty {
        let mut sink = Faulty::new(usize::MAX, 0);
        sink.bite = bite;
        let mut last = 0;
        let mut watch = |written| {
            last = written;
            ControlFlow::Continue(())
        };
        fill(&mut sink, content, range.clone(), true, &mut watch).unwrap();
        assert_eq!(last, range.end - range.start);
        sink
    }

    #[test]
    fn content_is_independent_of_start_and_write_size() {
        let length = 3 * CHUNK + 1234;
        for content in [
            FileContent::Random { seed: 7 },
            FileContent::Pattern(b"abcdefg".to_vec()),
        ] {
            let whole = filled(&content, 0..length, usize::MAX).data;
            for (start, bite) in [
                (0, 100_000),
                (1, usize::MAX),
                (CHUNK, 999),
                (CHUNK + 5, 70_001),
            ] {
                let part = filled(&content, start..length, bite).data;
                let start = usize_of(start);
                assert!(part[..start].iter().all(|&byte| byte == 0));
                assert!(
                    part[start..] == whole[start..],
                    "{content:?} {start} {bite}"
                );
            }
        }
    }

    #[test]
    fn random_content_does_not_repeat() {
        let data = filled(&FileContent::Random { seed: 1 }, 0..4 * CHUNK, usize::MAX).data;
        let blocks: std::collections::HashSet<&[u8]> = data.chunks(512).collect();
        assert_eq!(blocks.len(), data.len() / 512);
        let other = filled(&FileContent::Random { seed: 2 }, 0..CHUNK, usize::MAX).data;
        assert!(data[..other.len()] != other[..]);
    }

    #[test]
    fn pattern_continues_across_chunks() {
        let data = filled(
            &FileContent::Pattern(b"xyz".to_vec()),
            0..2 * CHUNK,
            usize::MAX,
        )
        .data;
        assert!(
            data.iter()
                .zip(b"xyz".iter().cycle())
                .all(|(have, want)| have == want)
        );
        assert!(filled(&FileContent::Zeros, 0..10, 3).data == [0; 10]);
    }

    #[test]
    fn every_byte_is_settled_once_and_synced() {
        let sink = filled(&FileContent::Zeros, 5..40 * CHUNK + 17, usize::MAX);
        let mut at = 5;
        for range in &sink.written_back {
            assert_eq!(range.start, at);
            assert!(range.end - range.start <= WINDOW + CHUNK);
            at = range.end;
        }
        assert_eq!(at, 40 * CHUNK + 17);
        assert_eq!(sink.syncs, 1);
    }

    #[test]
    fn full_disk_reports_bytes_written() {
        let room = usize_of(CHUNK) + 300;
        let mut sink = Faulty::new(room, 28);
        let mut watch = |_| ControlFlow::Continue(());
        let error = fill(
            &mut sink,
            &FileContent::Zeros,
            0..4 * CHUNK,
            true,
            &mut watch,
        )
        .unwrap_err();
        let FillError::Failed {
            written, source, ..
        } = error
        else {
            panic!("{error:?}");
        };
        assert_eq!(source.kind(), io::ErrorKind::StorageFull);
        assert_eq!(written, CHUNK + 300);
        assert_eq!(sink.syncs, 0);
    }

    #[test]
    fn watcher_can_stop() {
        let mut sink = Faulty::new(usize::MAX, 0);
        let mut watch = |written| match written {
            0..=CHUNK => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        };
        let error = fill(
            &mut sink,
            &FileContent::Zeros,
            0..9 * CHUNK,
            true,
            &mut watch,
        )
        .unwrap_err();
        assert!(matches!(error, FillError::Interrupted));
        assert_eq!(sink.data.len(), usize_of(2 * CHUNK));
    }

    #[test]
    fn empty_range_writes_nothing() {
        assert!(filled(&FileContent::Zeros, 9..9, 1).data.is_empty());
    }
}
