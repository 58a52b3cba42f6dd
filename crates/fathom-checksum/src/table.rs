//! Table of the checksums.

use crc::{CRC_7_MMC, Crc};
use crc_fast::CrcAlgorithm;
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};
use sha3::{Sha3_224, Sha3_256, Sha3_384, Sha3_512};
use twox_hash::XxHash32;

use crate::{Checksum, crc32c, fio_forms};

/// Checksums that `verify=` offers, in the order of fio's documentation.
///
/// Numbers and sizes are those of fio's header; the bytes of each digest were compared with blocks
/// that fio 3.33 wrote.
pub static CHECKSUMS: &[Checksum] = &[
    row("md5", "MD5", 2, 16, hash::<Md5>),
    row("crc64", "CRC-64 of Jones", 3, 8, |data, out| {
        let sum = crc_fast::checksum(CrcAlgorithm::Crc64Redis, data);
        out.copy_from_slice(&sum.to_le_bytes());
    }),
    row("crc32", "CRC-32, not reflected", 4, 4, |data, out| {
        // The low half, as for all that are narrower than 64 bits, without the final inversion.
        let sum = !crc_fast::checksum(CrcAlgorithm::Crc32Cksum, data);
        out.copy_from_slice(&sum.to_le_bytes()[..4]);
    }),
    Checksum {
        aliases: &["crc32c-intel"],
        ..row("crc32c", "CRC-32C", 5, 4, |data, out| {
            out.copy_from_slice(&crc32c(data).to_le_bytes());
        })
    },
    row("crc16", "CRC-16/ARC", 7, 2, |data, out| {
        let sum = crc_fast::checksum(CrcAlgorithm::Crc16Arc, data);
        out.copy_from_slice(&sum.to_le_bytes()[..2]);
    }),
    row("crc7", "CRC-7", 8, 1, |data, out| {
        out.copy_from_slice(&[CRC7.checksum(data)]);
    }),
    row("sha1", "SHA-1", 16, 20, |data, out| {
        hash::<Sha1>(data, out);
        // fio stores the words of the state as they are in memory.
        out.as_chunks_mut::<4>()
            .0
            .iter_mut()
            .for_each(|word| word.reverse());
    }),
    Checksum {
        // Version 0.1.0 wrote the digest of the standard.
        accepted: &[hash::<Sha256>],
        ..row("sha256", "SHA-256", 9, 64, fio_forms::sha256)
    },
    Checksum {
        digest_fio_3_33: Some(fio_forms::sha512_of_3_33),
        accepted: &[hash::<Sha512>, fio_forms::sha512_of_3_33],
        ..row("sha512", "SHA-512", 10, 128, fio_forms::sha512)
    },
    row("sha3-224", "SHA3-224", 11, 28, hash::<Sha3_224>),
    row("sha3-256", "SHA3-256", 12, 32, hash::<Sha3_256>),
    row("sha3-384", "SHA3-384", 13, 48, hash::<Sha3_384>),
    row("sha3-512", "SHA3-512", 14, 64, hash::<Sha3_512>),
    row("xxhash", "XXH32 with seed 1", 15, 4, |data, out| {
        out.copy_from_slice(&XxHash32::oneshot(1, data).to_le_bytes());
    }),
];

/// Header without a checksum of the payload (`verify=meta`).
pub static META: Checksum = row("meta", "no checksum", 1, 0, |_, _| {});

/// Header in front of a pattern, which is compared (`verify=pattern_hdr`).
pub static PATTERN_HEADER: Checksum = row("pattern_hdr", "no checksum", 17, 0, |_, _| {});

const fn row(
    name: &'static str,
    title: &'static str,
    header_id: u8,
    bytes: usize,
    digest: crate::Digest,
) -> Checksum {
    Checksum {
        name,
        aliases: &[],
        title,
        header_id,
        bytes,
        digest,
        digest_fio_3_33: None,
        accepted: &[],
    }
}

/// Writes a digest, and zeros into what is left of its place.
fn hash<D: Digest>(data: &[u8], out: &mut [u8]) {
    let digest = D::digest(data);
    let (place, rest) = out.split_at_mut(digest.len());
    place.copy_from_slice(&digest);
    rest.fill(0);
}

static CRC7: Crc<u8> = Crc::<u8>::new(&CRC_7_MMC);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CHECKSUM_BYTES_MAX, HeaderLayout};

    #[test]
    fn names_and_header_numbers_are_unique() {
        let rows = || CHECKSUMS.iter().chain([&META, &PATTERN_HEADER]);
        let mut names: Vec<_> = rows().flat_map(Checksum::names).collect();
        let mut numbers: Vec<_> = rows().map(|row| row.header_id).collect();
        let counts = (names.len(), numbers.len());
        names.sort_unstable();
        names.dedup();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!((names.len(), numbers.len()), counts);
    }

    #[test]
    fn every_digest_fills_its_bytes() {
        for row in CHECKSUMS {
            assert!((1..=CHECKSUM_BYTES_MAX).contains(&row.bytes), "{row:?}");
            let mut buffers = [[0; CHECKSUM_BYTES_MAX], [0xff; CHECKSUM_BYTES_MAX]];
            for buffer in &mut buffers {
                (row.digest)(b"fathom", &mut buffer[..row.bytes]);
            }
            assert_eq!(buffers[0][..row.bytes], buffers[1][..row.bytes], "{row:?}");
        }
    }

    #[test]
    fn every_changed_bit_changes_the_digest() {
        for row in CHECKSUMS {
            let digest = |data: &[u8]| {
                let mut out = vec![0; row.bytes];
                (row.digest)(data, &mut out);
                out
            };
            let mut data = [0x5a; 300];
            let good = digest(&data);
            for bit in 0..data.len() * 8 {
                data[bit / 8] ^= 1 << (bit % 8);
                assert_ne!(digest(&data), good, "{row:?}, bit {bit}");
                data[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }

    /// fio 3.33 wrote blocks of 512 bytes with `verify_pattern=0xdeadbeef`: a header of 40 bytes in
    /// that version, the checksum, and the rest of the pattern, which begins with the block.
    #[track_caller]
    fn check_as_fio(name: &str, want: &str) {
        check_under(HeaderLayout::Fio3_33, name, want);
    }

    #[track_caller]
    fn check_under(layout: HeaderLayout, name: &str, want: &str) {
        let row = Checksum::find(name).expect(name);
        let block: Vec<u8> = [0xde, 0xad, 0xbe, 0xef].repeat(128);
        let mut got = vec![0; row.bytes];
        let payload = &block[row.payload_start(layout)..];
        row.digest_under(layout)(payload, &mut got);
        assert!(row.matches(layout, payload, &got), "{name}");
        let hex: String = got.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, want, "{name}");
    }

    #[test]
    fn digests_are_those_of_fio() {
        check_as_fio("md5", "800984f493774970cfcd67c099adbcc7");
        check_as_fio("crc64", "9aebcd1ae70fa422");
        check_as_fio("crc32", "e5f92181");
        check_as_fio("crc32c", "3df95b2d");
        check_as_fio("crc32c-intel", "3df95b2d");
        check_as_fio("crc16", "8542");
        check_as_fio("crc7", "00");
        check_as_fio("sha1", "9e7f0aba48d5c7decb6fb85b9b048415504db76a");
        check_as_fio(
            "sha3-224",
            "0d5a9f763fc2ddaef4f493a51449bd710411972aac3d49e9a25fa132",
        );
        check_as_fio(
            "sha3-256",
            "a4e2e930fee64bc4c670a8dcf7867f031fbdf1bcd12191790e38f1fdc587921d",
        );
        check_as_fio(
            "sha3-384",
            "a876cc0af313812b4da2bac91cc5a7538162ee3221b039c5bc050386c201992621dd1c5bda0aa935bcb5\
             6839dc02f225",
        );
        check_as_fio(
            "sha3-512",
            "c7b94bfa292c2cea8502c2b07acd70c6e2d6ea05734c0b062550d90ec0c36764fbcc477326a236150725\
             c60a7acef688f1524800387b38349514c1c8f5cc91f0",
        );
        check_as_fio("xxhash", "4863ccd8");
        let sha256 = "b2ba26d474a55df7deadbeefdeadbeefdeadbeefdeadbeef80".to_owned()
            + &"00".repeat(31)
            + "c00c000000000000";
        check_as_fio("sha256", &sha256);
        check_as_fio("sha512", &"deadbeef".repeat(32));
    }

    /// The same blocks of fio 3.41, whose header has 48 bytes.
    #[test]
    fn digests_under_the_larger_header_are_those_of_fio() {
        let sha256 =
            "d1817584a180de23deadbeefdeadbeef80".to_owned() + &"00".repeat(39) + "800c000000000000";
        check_under(HeaderLayout::Fio3_42, "sha256", &sha256);
        let sha512 =
            "15094ff1792078d64ec12b6de3a6a3c4a6f19115df4d4729dfcc265cfff38c2fe7b7ae177ae3dc\
                      4f1dbb71ec7c79f652fdb860874c546987cf69c992823a3421"
                .to_owned()
                + &"deadbeef".repeat(4)
                + "80"
                + &"00".repeat(45)
                + "0a80";
        check_under(HeaderLayout::Fio3_42, "sha512", &sha512);
    }

    /// No block of the padded message has room for both the end of the payload and its length.
    #[test]
    fn payloads_that_nearly_fill_a_block_have_another_one() {
        let row = Checksum::find("sha512").expect("a row");
        for (bytes, kept) in [(111, 47), (112, 0), (127, 0), (128, 0)] {
            let mut out = [0; 128];
            (row.digest)(&vec![7; bytes], &mut out);
            let rest = out[64..112].iter().filter(|byte| **byte == 7).count();
            assert_eq!(rest, kept, "{bytes}");
            assert_eq!(
                out[126..],
                u16::try_from(bytes * 8).expect("short").to_be_bytes()
            );
        }
    }

    #[test]
    fn digests_of_version_0_1_0_are_accepted() {
        for (name, digest) in [
            ("sha256", hash::<Sha256> as crate::Digest),
            ("sha512", hash::<Sha512>),
        ] {
            let row = Checksum::find(name).expect(name);
            let mut stored = vec![0; row.bytes];
            digest(b"123456789", &mut stored);
            assert!(row.matches(HeaderLayout::Fio3_42, b"123456789", &stored));
            assert!(!row.matches(HeaderLayout::Fio3_42, b"123456780", &stored));
            assert!(!row.matches(HeaderLayout::Fio3_33, b"123456789", &stored));
        }
    }

    /// Check values of the literature, for the digits 1 to 9.
    #[test]
    fn digests_are_those_of_the_standards() {
        let digest = |name: &str| {
            let row = Checksum::find(name).expect(name);
            let mut out = vec![0; row.bytes];
            (row.digest)(b"123456789", &mut out);
            out
        };
        // Without the final inversion.
        assert_eq!(digest("crc32c"), (!0xe306_9283_u32).to_le_bytes());
        assert_eq!(digest("crc16"), 0xbb3d_u16.to_le_bytes());
        assert_eq!(digest("crc7"), [0x75]);
        assert_eq!(digest("crc64"), 0xe9c6_d914_c4b8_d9ca_u64.to_le_bytes());
        // CRC-32/CKSUM without the final inversion.
        assert_eq!(digest("crc32"), (!0x765e_7680_u32).to_le_bytes());
        assert_eq!(digest("sha1")[..4], [0x1d, 0xbc, 0xc3, 0xf7]);
        assert_eq!(digest("sha512")[..4], [0xd9, 0xe6, 0x76, 0x2d]);
    }
}
