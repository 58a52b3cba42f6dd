//! Allocated bytes of a run's files: reads of holes and of unwritten extents return zeros without
//! reaching the device.

use std::path::Path;

use fathom_sys::files::{self, Access, FileKind};

/// Share of some files' bytes that is allocated and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocatedBytes {
    /// Bytes of the files whose extents could be queried.
    pub total_bytes: u64,
    /// Bytes in extents that hold data.
    pub data_bytes: u64,
}

impl AllocatedBytes {
    /// Returns the bytes that are read without the device.
    #[must_use]
    pub const fn hole_bytes(self) -> u64 {
        self.total_bytes.saturating_sub(self.data_bytes)
    }

    /// Percentage of the bytes that are read without the device; `None` of no bytes.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "exact below 2^53, enough for a sentence"
    )]
    pub fn hole_percent(self) -> Option<f64> {
        let (holes, total) = (self.hole_bytes() as f64, self.total_bytes as f64);
        (self.total_bytes > 0).then(|| holes * 100.0 / total)
    }
}

/// Sums the first `length` bytes of each regular file; other kinds are skipped. Call it after dirty
/// pages were written back: before that, some file systems report delayed allocations as holes.
#[must_use]
pub fn allocated_bytes<'a>(files: impl IntoIterator<Item = (&'a Path, u64)>) -> AllocatedBytes {
    let mut sum = AllocatedBytes::default();
    for (path, length) in files {
        let Some((total, data)) = filled_of(path, length) else {
            continue;
        };
        sum.total_bytes += total;
        sum.data_bytes += data;
    }
    sum
}

fn filled_of(path: &Path, length: u64) -> Option<(u64, u64)> {
    let metadata = path.metadata().ok()?;
    if FileKind::of(&metadata) != FileKind::Regular {
        return None;
    }
    let file = files::open(path, Access::default()).ok()?;
    let total = metadata.len().min(length);
    Some((total, files::data_bytes(&file, total, EXTENTS_MAX).ok()?))
}

/// Extents queried per file. Bounds the query to 2 ms; a file in more pieces counts as data from
/// there on.
const EXTENTS_MAX: u32 = 1024;

/// Below this, the metadata of a file system may be taken for holes (guess).
pub const HOLES_PERCENT_MIN: f64 = 1.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparse_file_is_told_from_a_full_one() {
        let name = format!("fathom-run-holes-{}", std::process::id());
        let full = std::env::temp_dir().join(name);
        let sparse = full.with_extension("sparse");
        std::fs::write(&full, [1; 8192]).unwrap();
        std::fs::File::create(&sparse)
            .unwrap()
            .set_len(8192)
            .unwrap();
        let found = allocated_bytes([
            (&*full, 4096),
            (&*sparse, 1 << 20),
            (Path::new("/dev/null"), 9),
        ]);
        std::fs::remove_file(&full).unwrap();
        std::fs::remove_file(&sparse).unwrap();
        assert_eq!(found.total_bytes, 4096 + 8192);
        if found.hole_bytes() == 0 {
            println!("skipped: this file system does not report holes");
            return;
        }
        assert_eq!(found.hole_bytes(), 8192);
    }
}
