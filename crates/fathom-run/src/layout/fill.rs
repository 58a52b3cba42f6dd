//! Writes a file's bytes: as fast as its disk takes them, without filling memory with them.
//!
//! Writes go through the page cache, because any offset and any file system can be written so; but
//! each window is sent to the disk while the next is made, and waited for one window later, so the
//! disk never rests and no more than two windows are dirty:
//!
//! ```text
//! made          |#### window n+1 ####|
//! on its way    |#### window n   ####|
//! waited for    |#### window n−1 ####|  and dropped from the cache
//! ```

use std::fs::File;
use std::io;
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::FileExt;

use fathom_core::{Xoshiro256, stream_seed};
use fathom_sys::files::{self, Advice};

/// What a laid-out file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// What no disk can compress or find twice; the same for the same seed.
    Random {
        /// The seed.
        seed: u64,
    },
    /// Zeros (`zero_buffers`).
    Zeros,
    /// These bytes over and over (`buffer_pattern`); never empty.
    Pattern(Vec<u8>),
}

impl Content {
    /// The bytes from `offset`, a multiple of `CHUNK`: each chunk is made by itself, so a file
    /// that is extended holds what it would hold if it had been made in one piece.
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

/// Where the bytes go: a file, or something that fails in tests.
pub(super) trait Sink {
    /// Writes some of the bytes; gives how many.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// Sends a range to the disk, without waiting.
    fn send(&mut self, range: &Range<u64>) -> io::Result<()>;
    /// Waits until a range is on the disk and, unless it is to stay, drops it from the cache.
    fn settle(&mut self, range: &Range<u64>) -> io::Result<()>;
    /// Makes the whole file durable.
    fn sync(&mut self) -> io::Result<()>;
}

/// A file as a sink.
pub(super) struct FileSink {
    /// Open for writing.
    pub(super) file: File,
    /// Leave what is written in the page cache.
    pub(super) keep_cached: bool,
}

impl Sink for FileSink {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(bytes, offset)
    }

    fn send(&mut self, range: &Range<u64>) -> io::Result<()> {
        files::start_writeback(&self.file, range.start, range.end - range.start)
    }

    fn settle(&mut self, range: &Range<u64>) -> io::Result<()> {
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

/// Why a file was not filled.
#[derive(Debug)]
pub(super) enum FillError {
    /// The watcher said so.
    Interrupted,
    /// `what` failed after `written` bytes.
    Failed {
        what: &'static str,
        written: u64,
        source: io::Error,
    },
}

/// Writes `range` of a file. `watch` is told after each chunk how many bytes are written, and may
/// break off.
pub(super) fn fill(
    sink: &mut dyn Sink,
    content: &Content,
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
                let settled = ignore_unsupported(sink.settle(&before));
                settled.map_err(|error| failed("write", at, error))?;
            }
            window.start = at;
        }
    }
    if let Some(last) = sent {
        let settled = ignore_unsupported(sink.settle(&last));
        settled.map_err(|error| failed("write", at, error))?;
    }
    if fsync {
        sink.sync().map_err(|error| failed("fsync", at, error))?;
    }
    Ok(())
}

/// Advances `at` by what was written, so that it is right in the case of an error too.
fn write_all(sink: &mut dyn Sink, mut bytes: &[u8], at: &mut u64) -> io::Result<()> {
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

/// A file system without these calls writes the data all the same, when it likes.
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

/// At most `CHUNK`, which fits everywhere.
fn usize_of(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(0)
}

/// One write: large enough that its system call does not count, small enough for the cache of a
/// processor core.
pub(super) const CHUNK: u64 = 1 << 20;

/// What is sent to the disk at once: enough for it to work on while the next is made.
const WINDOW: u64 = 8 << 20;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Keeps what was written in memory, takes at most `bite` bytes a write, and after `room`
    /// bytes fails with `errno`.
    pub(crate) struct Faulty {
        pub(crate) data: Vec<u8>,
        pub(crate) bite: usize,
        pub(crate) room: usize,
        pub(crate) errno: i32,
        pub(crate) settled: Vec<Range<u64>>,
        pub(crate) syncs: u32,
    }

    impl Faulty {
        pub(crate) fn new(room: usize, errno: i32) -> Self {
            Self {
                data: Vec::new(),
                bite: usize::MAX,
                room,
                errno,
                settled: Vec::new(),
                syncs: 0,
            }
        }
    }

    impl Sink for Faulty {
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

        fn settle(&mut self, range: &Range<u64>) -> io::Result<()> {
            self.settled.push(range.clone());
            Ok(())
        }

        fn sync(&mut self) -> io::Result<()> {
            self.syncs += 1;
            Ok(())
        }
    }

    fn filled(content: &Content, range: Range<u64>, bite: usize) -> Faulty {
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
    fn any_start_and_any_bite_gives_the_same_bytes() {
        let length = 3 * CHUNK + 1234;
        for content in [
            Content::Random { seed: 7 },
            Content::Pattern(b"abcdefg".to_vec()),
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
        let data = filled(&Content::Random { seed: 1 }, 0..4 * CHUNK, usize::MAX).data;
        let blocks: std::collections::HashSet<&[u8]> = data.chunks(512).collect();
        assert_eq!(blocks.len(), data.len() / 512);
        let other = filled(&Content::Random { seed: 2 }, 0..CHUNK, usize::MAX).data;
        assert!(data[..other.len()] != other[..]);
    }

    #[test]
    fn a_pattern_runs_on_across_chunks() {
        let data = filled(&Content::Pattern(b"xyz".to_vec()), 0..2 * CHUNK, usize::MAX).data;
        assert!(
            data.iter()
                .zip(b"xyz".iter().cycle())
                .all(|(have, want)| have == want)
        );
        assert!(filled(&Content::Zeros, 0..10, 3).data == [0; 10]);
    }

    #[test]
    fn every_byte_is_settled_once_and_synced() {
        let sink = filled(&Content::Zeros, 5..40 * CHUNK + 17, usize::MAX);
        let mut at = 5;
        for range in &sink.settled {
            assert_eq!(range.start, at);
            assert!(range.end - range.start <= WINDOW + CHUNK);
            at = range.end;
        }
        assert_eq!(at, 40 * CHUNK + 17);
        assert_eq!(sink.syncs, 1);
    }

    #[test]
    fn a_full_disk_tells_how_far_it_came() {
        let room = usize_of(CHUNK) + 300;
        let mut sink = Faulty::new(room, 28);
        let mut watch = |_| ControlFlow::Continue(());
        let error = fill(&mut sink, &Content::Zeros, 0..4 * CHUNK, true, &mut watch).unwrap_err();
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
    fn a_watcher_can_break_off() {
        let mut sink = Faulty::new(usize::MAX, 0);
        let mut watch = |written| match written {
            0..=CHUNK => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        };
        let error = fill(&mut sink, &Content::Zeros, 0..9 * CHUNK, true, &mut watch).unwrap_err();
        assert!(matches!(error, FillError::Interrupted));
        assert_eq!(sink.data.len(), usize_of(2 * CHUNK));
    }

    #[test]
    fn nothing_to_write_is_nothing() {
        assert!(filled(&Content::Zeros, 9..9, 1).data.is_empty());
    }
}
