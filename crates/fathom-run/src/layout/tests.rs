//! Layouts in a scratch directory that is removed when the test ends.

mod created;
mod full_disk;
mod parallel;
mod refused;
mod undo;

use super::*;
use fathom_core::Errno;
use fathom_setup::ProblemKind;
use std::cell::Cell;
use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Scratch directory of one test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("fathom-run-layout-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Returns a job with these files: name, length, `written`.
    fn job(&self, files: &[(&str, u64, bool)]) -> LayoutJob {
        let files = files.iter().map(|&(name, length, written)| LayoutFile {
            path: self.0.join(name),
            length,
            written,
        });
        LayoutJob {
            index: 0,
            name: "t".into(),
            files: files.collect(),
            directories: Vec::new(),
            content: FileContent::Random { seed: 1 },
            fallocate: Fallocate::Native,
            fsync: true,
            may_create: true,
            keep_cached: false,
            in_parallel: false,
        }
    }

    /// Returns parallel jobs with one file each.
    fn beside(&self, files: &[&str], length: u64) -> Vec<LayoutJob> {
        let each = files.iter().map(|name| LayoutJob {
            in_parallel: true,
            ..self.job(&[(name, length, true)])
        });
        each.collect()
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.0.join(name), bytes).unwrap();
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.join(name)).unwrap()
    }

    /// Returns names and lengths of the files.
    fn list(&self) -> Vec<(String, u64)> {
        let entries = fs::read_dir(&self.0).unwrap().map(Result::unwrap);
        let mut list: Vec<_> = entries
            .map(|entry| {
                let name = entry.file_name().into_string().unwrap();
                (name, entry.metadata().unwrap().len())
            })
            .collect();
        list.sort();
        list
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _gone_is_fine = fs::remove_dir_all(&self.0);
    }
}

fn options() -> LayoutOptions<'static> {
    LayoutOptions {
        clock: Clock::monotonic(),
        stop: &|| false,
    }
}

fn lay(jobs: &[LayoutJob]) -> Result<LayoutReport, LayoutError> {
    lay_out(jobs, &options(), &mut |_| {})
}

/// File sink that fails with `errno` after `room` bytes.
struct Full {
    file: FileSink,
    room: u64,
    errno: i32,
}

impl LayoutSink for Full {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        if self.room == 0 {
            return Err(io::Error::from_raw_os_error(self.errno));
        }
        let room = usize::try_from(self.room).unwrap();
        let count = self
            .file
            .write_at(&bytes[..bytes.len().min(room)], offset)?;
        self.room -= u64::try_from(count).unwrap();
        Ok(count)
    }

    fn send(&mut self, range: &Range<u64>) -> io::Result<()> {
        self.file.send(range)
    }

    fn finish_writeback(&mut self, range: &Range<u64>) -> io::Result<()> {
        self.file.finish_writeback(range)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }
}

/// Lays out files that each fail after `room` bytes.
fn lay_failing(jobs: &[LayoutJob], room: u64, errno: i32) -> LayoutError {
    let open = move |file, keep_cached| -> Box<dyn LayoutSink> {
        let file = FileSink { file, keep_cached };
        Box::new(Full { file, room, errno })
    };
    lay_out_through(jobs, &options(), &mut |_| {}, &open).unwrap_err()
}
