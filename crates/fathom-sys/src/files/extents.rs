//! Extents of a file on its device, from `FS_IOC_FIEMAP`.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Contiguous bytes of a file that are contiguous on its device too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileExtent {
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Offset on the device of the file system, bytes.
    pub device_offset: u64,
    /// Bytes.
    pub length: u64,
    /// The data is at this place as it is: neither compressed, encrypted, inline nor delayed.
    pub is_plain: bool,
    /// Allocated but never written: reads return zeros without reaching the device.
    pub is_unwritten: bool,
}

/// Returns the extents of the first `length` bytes of a regular file, after writing its dirty pages
/// back; `None` if there are more than `extents_max`.
///
/// # Errors
/// The error of `ioctl(2)`; `EOPNOTSUPP` or `ENOTTY` on file systems without such a map.
pub fn extents(
    file: &File,
    length: u64,
    extents_max: usize,
) -> io::Result<Option<Vec<FileExtent>>> {
    let mut found: Vec<FileExtent> = Vec::new();
    let mut at = 0;
    while at < length {
        let (part, is_last) = part(file, at, length - at)?;
        found.extend(&part);
        if found.len() > extents_max {
            return Ok(None);
        }
        match found.last() {
            // An empty extent would repeat this call forever.
            Some(last) if !is_last && last.offset + last.length > at => {
                at = last.offset + last.length;
            }
            _ => break,
        }
    }
    Ok(Some(found))
}

/// Returns up to `PART` extents from `offset`, and whether they include the file's last one.
fn part(file: &File, offset: u64, length: u64) -> io::Result<(Vec<FileExtent>, bool)> {
    let mut words = vec![0_u64; HEAD_WORDS + PART * EXTENT_WORDS];
    words[0] = offset;
    words[1] = length;
    // Two fields of 32 bits each, in memory order: flags and the kernel's count, room and reserve.
    words[2] = pair(FLAG_SYNC, 0);
    words[3] = pair(u32::try_from(PART).unwrap_or(u32::MAX), 0);
    // SAFETY: the request reads the head and writes at most `PART` extents after it, which is what
    // the vector holds; the descriptor is open.
    let rc = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, words.as_mut_ptr()) };
    if rc < 0 {
        return Err(io::Error::last_os_error());
    }
    let mapped = usize::try_from(halves(words[2])[1])
        .unwrap_or(PART)
        .min(PART);
    let found = words[HEAD_WORDS..].chunks_exact(EXTENT_WORDS).take(mapped);
    let mut is_last = mapped == 0;
    let extents = found.map(|words| {
        let flags = halves(words[5])[0];
        is_last |= flags & LAST != 0;
        FileExtent {
            offset: words[0],
            device_offset: words[1],
            length: words[2],
            is_plain: flags & NOT_PLAIN == 0,
            is_unwritten: flags & UNWRITTEN != 0,
        }
    });
    Ok((extents.collect(), is_last))
}

/// Composes two fields of 32 bits, the first one at the lower address.
const fn pair(first: u32, second: u32) -> u64 {
    let [[a, b, c, d], [e, f, g, h]] = [first.to_ne_bytes(), second.to_ne_bytes()];
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

/// Splits a word into the fields at the lower and at the higher address.
const fn halves(word: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    [
        u32::from_ne_bytes([a, b, c, d]),
        u32::from_ne_bytes([e, f, g, h]),
    ]
}

/// `_IOWR('f', 11, struct fiemap)`.
const FS_IOC_FIEMAP: libc::Ioctl = 0xC020_660B_u32 as libc::Ioctl;
/// Words of `struct fiemap` without its extents.
const HEAD_WORDS: usize = 4;
/// Words of `struct fiemap_extent`.
const EXTENT_WORDS: usize = 7;
/// Extents per call: 28 KiB.
const PART: usize = 512;

/// Write dirty pages back first, so that no extent is delayed.
const FLAG_SYNC: u32 = 1;
const LAST: u32 = 1;
const UNWRITTEN: u32 = 0x800;
/// Unknown place, delayed allocation, encoded, encrypted, unaligned, inline, shared tail.
const NOT_PLAIN: u32 = 0x2 | 0x4 | 0x8 | 0x80 | 0x100 | 0x200 | 0x400;

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom, Write};

    use super::super::tests::Scratch;
    use super::*;

    #[test]
    fn the_extents_of_a_file_skip_its_holes() {
        let (_scratch, mut file) = Scratch::new("extents");
        file.write_all(&[1; 64 << 10]).unwrap();
        file.seek(SeekFrom::Start(512 << 10)).unwrap();
        file.write_all(&[1; 64 << 10]).unwrap();
        let found = match extents(&file, u64::MAX, 64) {
            Err(error) => return println!("skipped: no map of extents here: {error}"),
            Ok(found) => found.unwrap(),
        };
        let in_pieces = |range: std::ops::Range<u64>| {
            let inside = found.iter().filter(|extent| range.contains(&extent.offset));
            inside.map(|extent| extent.length).sum::<u64>()
        };
        assert_eq!(in_pieces(0..512 << 10), 64 << 10);
        assert_eq!(in_pieces(512 << 10..u64::MAX), 64 << 10);
        assert_eq!(extents(&file, u64::MAX, 1).unwrap(), None);
        let first = extents(&file, 4096, 64).unwrap().unwrap();
        assert_eq!(first[0].offset, 0);
    }

    #[test]
    fn fields_keep_their_order_in_memory() {
        assert_eq!(halves(pair(7, 9)), [7, 9]);
        assert_eq!(pair(7, 9).to_ne_bytes()[..4], 7_u32.to_ne_bytes());
    }
}
