//! Placement of a file's bytes on the sectors of its disk.

use std::fs::{self, File};
use std::path::Path;

use fathom_host::block_tree::BlockTree;
use fathom_host::storage;
use fathom_sys::files::{self, FileExtent, FileKind};

use crate::error::TraceError;
use crate::target::TracedDevice;

/// Sectors of a file or block device, as the events of its disk name them.
///
/// A snapshot: it holds as long as nothing extends, truncates or moves the file's blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskMap {
    pub(crate) device: TracedDevice,
    /// Ascending and disjoint.
    pieces: Vec<Piece>,
}

/// Contiguous bytes of the file on contiguous sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    offset: u64,
    length: u64,
    sector: u64,
}

/// Contiguous sectors of the disk, in units of 512 B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectorRange {
    /// First sector.
    pub first: u64,
    /// Number of sectors.
    pub count: u64,
}

impl DiskMap {
    /// Examines the regular file or block device at `path`, which must have its full size and be
    /// allocated already.
    ///
    /// # Errors
    /// The path does not exist, its file system does not tell where its bytes are, or they are on
    /// several devices.
    pub fn of(path: &Path) -> Result<Self, TraceError> {
        let tree = BlockTree::default();
        let metadata = fs::metadata(path).map_err(|source| TraceError::Missing {
            path: path.to_path_buf(),
            source,
        })?;
        match FileKind::of(&metadata) {
            FileKind::Block => {
                let device = TracedDevice::with_bios(path, &tree)?;
                let sector = device.first_sector();
                let whole = Piece {
                    offset: 0,
                    length: u64::MAX,
                    sector,
                };
                Ok(Self {
                    pieces: vec![whole],
                    device,
                })
            }
            FileKind::Regular => of_file(path, metadata.len(), &tree),
            FileKind::Character | FileKind::Directory | FileKind::Other => {
                Err(unmapped(path, "neither a regular file nor a block device"))
            }
        }
    }

    /// Checks that the file or device at `path`, or one created there, is on a block device.
    ///
    /// # Errors
    /// It is in memory, on a network file system, or on several devices.
    pub fn check_place(path: &Path) -> Result<(), TraceError> {
        let number = storage::number_under(path).map(|(_is_device, number)| number);
        let device = number.and_then(|number| BlockTree::default().device(number));
        device.map(drop).ok_or_else(|| no_device(path))
    }

    /// Returns the device's name, without `/dev/`.
    #[must_use]
    pub fn device(&self) -> &str {
        &self.device.name
    }

    /// Returns the sectors of `length` bytes at `offset`, in the order of the bytes; `None` if a
    /// part of them is not on the disk.
    #[must_use]
    pub fn sectors(&self, offset: u64, length: u64) -> Option<Vec<SectorRange>> {
        let end = offset.checked_add(length)?;
        let mut at = offset;
        let first = (self.pieces).partition_point(|piece| piece.end() <= offset);
        let mut ranges = Vec::new();
        for piece in &self.pieces[first..] {
            if at >= end || piece.offset > at {
                break;
            }
            let until = piece.end().min(end);
            let from = piece.sector + (at - piece.offset) / SECTOR;
            let count = (until - at).div_ceil(SECTOR);
            ranges.push(SectorRange { first: from, count });
            at = until;
        }
        (at == end).then_some(ranges)
    }
}

impl Piece {
    const fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}

fn of_file(path: &Path, length: u64, tree: &BlockTree) -> Result<DiskMap, TraceError> {
    let number = storage::number_under(path).map(|(_is_device, number)| number);
    let device = number.and_then(|number| tree.device(number));
    let device = device.ok_or_else(|| no_device(path))?;
    let device = TracedDevice::of(&device);
    let file = File::open(path).map_err(|source| TraceError::Missing {
        path: path.to_path_buf(),
        source,
    })?;
    let extents = files::extents(&file, length, EXTENTS_MAX).map_err(|error| {
        unmapped(
            path,
            &format!("its file system does not report where its blocks are: {error}"),
        )
    })?;
    let extents = extents.ok_or_else(|| {
        let why = format!("it has more than {EXTENTS_MAX} extents");
        unmapped(path, &why)
    })?;
    Ok(DiskMap {
        pieces: pieces(&extents, device.first_sector()),
        device,
    })
}

/// Returns the pieces whose reads and writes reach the disk where the map says.
fn pieces(extents: &[FileExtent], start: u64) -> Vec<Piece> {
    let plain = extents.iter().filter(|extent| extent.is_plain);
    plain
        .map(|extent| Piece {
            offset: extent.offset,
            length: extent.length,
            sector: start + extent.device_offset / SECTOR,
        })
        .collect()
}

/// Returns the error for tmpfs, overlays, network file systems, and btrfs, which may use several
/// devices.
fn no_device(path: &Path) -> TraceError {
    unmapped(path, "its file system is on no block device of its own")
}

fn unmapped(path: &Path, why: &str) -> TraceError {
    TraceError::Unmapped {
        path: path.to_path_buf(),
        why: why.to_owned(),
    }
}

/// The kernel's sector size, independent of the device's.
const SECTOR: u64 = 512;

/// Extents of a file: a terabyte in pieces of 1 MiB, 24 MiB of memory.
const EXTENTS_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(offset: u64, device_offset: u64, length: u64) -> FileExtent {
        FileExtent {
            offset,
            device_offset,
            length,
            is_plain: true,
            is_unwritten: false,
        }
    }

    fn map(extents: &[FileExtent]) -> DiskMap {
        DiskMap {
            device: TracedDevice::default(),
            pieces: pieces(extents, 2048),
        }
    }

    #[track_caller]
    fn check(map: &DiskMap, offset: u64, length: u64, want: &[(u64, u64)]) {
        let found = map.sectors(offset, length).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|range| (range.first, range.count))
            .collect();
        assert_eq!(found, want, "{offset} + {length}");
    }

    #[test]
    fn offsets_are_found_by_extent_behind_the_start_of_the_partition() {
        let map = map(&[
            extent(0, 1 << 20, 8192),
            extent(8192, 4096, 4096),
            extent(16384, 65536, 4096),
        ]);
        check(&map, 0, 4096, &[(2048 + 2048, 8)]);
        check(&map, 4096, 4096, &[(2048 + 2056, 8)]);
        check(&map, 4096, 8192, &[(2048 + 2056, 8), (2048 + 8, 8)]);
        check(&map, 16384, 512, &[(2048 + 128, 1)]);
        // A hole, and the end of the file.
        assert_eq!(map.sectors(8192, 8192), None);
        assert_eq!(map.sectors(20480, 512), None);
    }

    #[test]
    fn encoded_extents_are_on_no_sector() {
        let encoded = FileExtent {
            is_plain: false,
            ..extent(0, 0, 4096)
        };
        assert_eq!(map(&[encoded]).sectors(0, 4096), None);
    }

    #[test]
    fn files_without_a_place_on_a_disk_are_refused() {
        for path in ["/dev/null", "/proc/self/stat"] {
            assert!(DiskMap::of(Path::new(path)).is_err(), "{path}");
        }
    }
}
