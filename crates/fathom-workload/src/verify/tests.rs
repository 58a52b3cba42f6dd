//! Tests: stamps are recognised, damage is found and named as fio names it.

use fathom_checksum::CHECKSUMS;

use super::*;

/// Checksum that no table lists: the verifier needs only a row.
static SUM: Checksum = Checksum {
    name: "sum",
    aliases: &[],
    title: "Sum of all bytes",
    header_id: 200,
    bytes: 8,
    digest: |data, out| {
        let sum: u64 = data.iter().copied().map(u64::from).sum();
        out.copy_from_slice(&sum.to_le_bytes());
    },
};

const SIZES: SizeChoice = SizeChoice::Fixed(4096);

fn verifier(method: VerifyMethod, pattern: Option<&[u8]>) -> Verifier {
    let pattern = pattern.map(<[u8]>::to_vec);
    let config = VerifyConfig {
        method,
        pattern,
        pattern_offsets: Vec::new(),
        read_back: true,
        thread: 3,
    };
    Verifier::new(&config, &SIZES, 0x89).unwrap()
}

fn by(checksum: &str) -> VerifyMethod {
    VerifyMethod::Checksum(Checksum::find(checksum).expect(checksum))
}

/// Returns every method, and one with the checksum of this test.
fn methods() -> impl Iterator<Item = VerifyMethod> {
    let rows = CHECKSUMS.iter().chain([&SUM]);
    rows.map(VerifyMethod::Checksum)
        .chain([VerifyMethod::Pattern])
}

/// Returns two blocks stamped as write number 7 at 12 KiB.
fn written(verifier: &Verifier) -> Vec<u8> {
    let mut buffer = vec![0xff; 8192];
    let stamp = Stamp {
        offset: 12_288,
        sequence: 7,
        time_ns: 5_000_000_009,
    };
    verifier.stamp(&mut buffer, &stamp);
    buffer
}

#[test]
fn stamped_blocks_verify() {
    for pattern in [None, Some(&b"abc"[..])] {
        for method in methods() {
            let verifier = verifier(method, pattern);
            let buffer = written(&verifier);
            assert_eq!(verifier.check(&buffer, 12_288, Some(7)), Ok(()));
            assert_eq!(verifier.check(&buffer[4096..], 16_384, None), Ok(()));
        }
    }
}

#[test]
fn the_header_is_laid_out_as_in_fio() {
    let buffer = written(&verifier(by("crc32c"), Some(&[0xde, 0xad])));
    let second = &buffer[4096..];
    assert_eq!(second[..8], [0xca, 0xac, 0x81, 5, 0, 16, 0, 0]);
    assert_eq!(second[16..24], 16_384u64.to_le_bytes());
    assert_eq!(second[24..32], [5, 0, 0, 0, 9, 0, 0, 0]);
    assert_eq!(second[32..44], [7, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0]);
    assert_eq!(second[44..48], crc32c(&second[..44]).to_le_bytes());
    assert_eq!(second[48..52], crc32c(&second[52..]).to_le_bytes());
    assert!(
        second[52..]
            .iter()
            .zip([0xde, 0xad].iter().cycle())
            .all(|(a, b)| a == b)
    );
}

#[test]
fn every_damaged_byte_is_found() {
    for method in methods() {
        let verifier = verifier(method, Some(b"xyz"));
        let good = written(&verifier);
        for at in (0..80).chain([4095, 4096, 4140, 8191]) {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            let error = verifier.check(&bad, 12_288, Some(7)).unwrap_err();
            assert_eq!(error.offset, 12_288 + (at as u64 & !4095), "byte {at}");
            assert_eq!((error.request_offset, error.request_length), (12_288, 8192));
        }
    }
}

#[track_caller]
fn check_message(method: VerifyMethod, at: usize, byte: u8, sequence: u64, want: &str) {
    let verifier = verifier(method, Some(&[0xde, 0xad, 0xbe, 0xef]));
    let mut buffer = written(&verifier);
    buffer[at] = byte;
    let error = verifier.check(&buffer, 12_288, Some(sequence)).unwrap_err();
    let place = "at file V offset 12288, length 4096 (requested block: offset=12288, length=8192)";
    assert_eq!(error.describe("V"), format!("{want} {place}"));
    assert!(!error.to_string().contains("file"));
}

#[test]
fn the_messages_are_those_of_fio() {
    let crc = by("crc32c");
    check_message(crc, 0, 0, 7, "verify: bad magic header ac00, wanted acca");
    check_message(crc, 2, 1, 7, "verify: bad header version 1, wanted 129");
    check_message(crc, 6, 1, 7, "verify: bad header length 69632, wanted 4096");
    check_message(
        crc,
        18,
        1,
        7,
        "verify: bad header offset 77824, wanted 12288",
    );
    check_message(crc, 63, 0xef, 8, "verify: bad header numberio 7, wanted 8");
    check_message(
        VerifyMethod::Checksum(&SUM),
        4095,
        0xee,
        7,
        "sum: verify failed (expected f0b20c0000000000, received efb20c0000000000)",
    );
    let pattern = "pattern: verify failed (got '7a', wanted 'de', bad bits 3, block offset 904)";
    check_message(VerifyMethod::Pattern, 904, b'z', 7, pattern);
}

#[test]
fn another_methods_block_is_refused() {
    let buffer = written(&verifier(by("md5"), None));
    let error = verifier(by("crc32c"), None)
        .check(&buffer, 12_288, None)
        .unwrap_err();
    let want = Mismatch::Header {
        what: "verify type",
        got: 2,
        want: 5,
    };
    assert_eq!(error.mismatch, want);
}

#[test]
fn the_interval_divides_every_size() {
    let range = |min, max| interval_of(&SizeChoice::Range { min, max });
    assert_eq!(range(4096, 16_384), 4096);
    assert_eq!(range(3072, 8192), 1024);
    assert_eq!(
        interval_of(&SizeChoice::Split(vec![(9, 0), (8192, 40), (4096, 60)])),
        4096
    );
}

#[test]
fn blocks_too_small_for_a_header_are_refused() {
    let with = |method, size| {
        let config = VerifyConfig {
            method,
            pattern: None,
            pattern_offsets: Vec::new(),
            read_back: true,
            thread: 1,
        };
        Verifier::new(&config, &SizeChoice::Fixed(size), 0).is_ok()
    };
    assert!(!with(by("crc32c"), 52) && with(by("crc32c"), 53));
    assert!(!with(VerifyMethod::Checksum(&SUM), 56) && with(VerifyMethod::Checksum(&SUM), 57));
    assert!(!with(by("md5"), 64) && with(by("md5"), 65));
    assert!(with(VerifyMethod::Pattern, 1));
}
