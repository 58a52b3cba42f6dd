//! Cached bytes of a run's files: buffered reads of them do not reach the device.

use std::fs::File;
use std::path::Path;

use fathom_sys::files::{self, Access, FileKind};

/// Share of some files' bytes that is in the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CachedBytes {
    /// Bytes of the files whose pages could be queried.
    pub total_bytes: u64,
    /// Bytes in the page cache.
    pub cached_bytes: u64,
}

impl CachedBytes {
    /// Returns the cached percentage; 0 if there are no bytes.
    #[must_use]
    pub fn percent(self) -> f64 {
        let permille = (u128::from(self.cached_bytes) * 1_000)
            .checked_div(u128::from(self.total_bytes))
            .unwrap_or(0);
        u32::try_from(permille).map_or(100.0, |permille| f64::from(permille) / 10.0)
    }
}

/// Sums the first `length` bytes of each file. Files that are missing, cannot be opened or have no
/// page cache (character devices) are skipped.
#[must_use]
pub fn cached_bytes<'a>(files: impl IntoIterator<Item = (&'a Path, u64)>) -> CachedBytes {
    let mut sum = CachedBytes::default();
    for (path, length) in files {
        let Some((total, cached)) = cached_of(path, length) else {
            continue;
        };
        sum.total_bytes += total;
        sum.cached_bytes += cached;
    }
    sum
}

fn cached_of(path: &Path, length: u64) -> Option<(u64, u64)> {
    // Before the open: opening a FIFO would wait for its other end.
    let kind = FileKind::of(&path.metadata().ok()?);
    if !matches!(kind, FileKind::Regular | FileKind::Block) {
        return None;
    }
    let file: File = files::open(path, Access::default()).ok()?;
    let total = files::size(&file).ok()?.min(length);
    Some((total, files::cached_bytes(&file, total).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_just_written_is_cached() {
        let name = format!("fathom-run-page-cache-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, vec![1; 64 << 10]).unwrap();
        let missing = path.with_extension("missing");
        let null = Path::new("/dev/null");
        let found = cached_bytes([(&*path, 16 << 10), (&*missing, 4096), (null, 4096)]);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(found.total_bytes, 16 << 10);
        assert_eq!(found.cached_bytes, 16 << 10);
        assert!((found.percent() - 100.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_is_no_part_of_nothing() {
        assert!(cached_bytes([]).percent().abs() < 1e-9);
        let third = CachedBytes {
            total_bytes: 3,
            cached_bytes: 1,
        };
        assert!((third.percent() - 33.3).abs() < 1e-9);
    }
}
