//! Archive of the guest's first file system: cpio in the form `newc`, which the kernel unpacks.

use std::io::Write as _;

/// Archive under construction.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    /// Adds a folder; those above it must have been added.
    pub(crate) fn folder(&mut self, path: &str) {
        self.entry(path, 0o040_755, &[]);
    }

    /// Adds a file that may be executed.
    pub(crate) fn file(&mut self, path: &str, content: &[u8]) {
        self.entry(path, 0o100_755, content);
    }

    /// Returns the bytes of the whole archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        // Magic; then, in hexadecimal: inode, mode, user, group, links, time, size, two device
        // numbers in two parts each, length of the name with its end, sum.
        let fields = [
            self.entries,
            mode,
            0,
            0,
            1,
            0,
            length(content.len()),
            0,
            0,
            0,
            0,
            length(path.len() + 1),
            0,
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            // Writing to a vector cannot fail.
            let _ = write!(self.bytes, "{field:08x}");
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    /// Names and contents end at a multiple of 4 bytes.
    fn pad(&mut self) {
        let end = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(end, 0);
    }
}

/// The format has 32 bits for a length; the longest file here is a library of some megabytes.
fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_aligned_and_end_with_the_trailer() {
        let mut archive = Archive::default();
        archive.folder("bin");
        archive.file("bin/a", b"hello");
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8_lossy(&bytes);
        assert_eq!(text.matches("070701").count(), 3);
        let file = text.find("bin/a").expect("the file's name");
        // The header is 110 bytes long; mode and size are its second and seventh fields.
        let header = &text[file - 110..file];
        assert_eq!(&header[14..22], "000081ed");
        assert_eq!(&header[54..62], "00000005");
        assert_eq!(&text[file + 6..file + 11], "hello");
        assert!(text.trim_end_matches('\0').ends_with("TRAILER!!!"));
    }
}
