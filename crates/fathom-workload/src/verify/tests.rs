//! Tests: stamps are recognised, damage is found and named as fio names it.

use fathom_checksum::{CHECKSUMS, META, crc32c};

use super::*;

/// Checksum that no table lists: the verifier needs only a row.
static SUM: Checksum = Checksum {
    name: "sum",
    aliases: &[],
    title: "Sum of all bytes",
    header_id: 30,
    bytes: 8,
    digest: |data, out| {
        let sum: u64 = data.iter().copied().map(u64::from).sum();
        out.copy_from_slice(&sum.to_le_bytes());
    },
    digest_fio_3_33: None,
    accepted: &[],
};

const SIZES: SizeChoice = SizeChoice::Fixed(4096);

fn verifier(method: VerifyMethod, pattern: Option<&[u8]>) -> Verifier {
    let pattern = pattern.map(<[u8]>::to_vec);
    let config = VerifyConfig {
        pattern,
        thread: 3,
        ..VerifyConfig::new(method)
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
        .chain([VerifyMethod::Pattern, VerifyMethod::PatternHeader])
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
fn a_valid_block_of_another_write_is_outdated() {
    let verifier = verifier(by("crc32c"), None);
    let mut buffer = written(&verifier);
    let stamp = |time_ns| Stamp {
        offset: 12_288,
        sequence: 7,
        time_ns,
    };
    let [older, newer] = [9, 5_000_000_009].map(|time| verifier.generation(&stamp(time)));
    let latest = |generation| Expected::Latest {
        generation,
        sequence: Some(7),
    };
    let mut check = |expected: &Expected| {
        let checked = verifier.check(&mut buffer, 12_288, |_, _| expected.clone());
        checked.map_err(|error| error.mismatch)
    };
    let outdated = Mismatch::Outdated {
        time_ns: 5_000_000_009,
        sequence: 7,
        thread: 3,
    };
    assert_eq!(check(&latest(older)), Err(outdated));
    assert_eq!(check(&latest(newer)), Ok(()));
    assert_eq!(check(&Expected::OneOf(vec![older, newer])), Ok(()));
}

#[test]
fn trimmed_blocks_are_zeros() {
    let verifier = verifier(by("crc32c"), None);
    let mut buffer = vec![0; 8192];
    let zeros = |_, _| Expected::Zeros;
    assert_eq!(verifier.check(&mut buffer, 12_288, zeros), Ok(()));
    buffer[5000] = 7;
    let error = verifier.check(&mut buffer, 12_288, zeros).unwrap_err();
    assert_eq!(error.mismatch, Mismatch::NotZero { at: 904, got: 7 });
}

#[test]
fn stamped_blocks_verify() {
    for pattern in [None, Some(&b"abc"[..])] {
        for method in methods() {
            let verifier = verifier(method, pattern);
            let mut buffer = written(&verifier);
            assert_eq!(
                verifier.check(&mut buffer, 12_288, |_, _| Expected::Write(7)),
                Ok(())
            );
            assert_eq!(
                verifier.check(&mut buffer[4096..], 16_384, |_, _| Expected::Valid),
                Ok(())
            );
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
            let error = verifier
                .check(&mut bad, 12_288, |_, _| Expected::Write(7))
                .unwrap_err();
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
    let error = verifier
        .check(&mut buffer, 12_288, |_, _| Expected::Write(sequence))
        .unwrap_err();
    let place = "at file V offset 12288, length 4096 (requested block: offset=12288, length=8192)";
    assert_eq!(error.describe("V"), want.replace("PLACE", place));
    assert!(!error.to_string().contains("file"));
}

#[test]
fn the_messages_are_those_of_fio() {
    let crc = by("crc32c");
    check_message(
        crc,
        0,
        0,
        7,
        "verify: bad magic header ac00, wanted acca PLACE",
    );
    check_message(
        crc,
        2,
        1,
        7,
        "verify: bad header version 1, wanted 129 PLACE",
    );
    check_message(
        crc,
        6,
        1,
        7,
        "verify: bad header length 69632, wanted 4096 PLACE",
    );
    check_message(
        crc,
        18,
        1,
        7,
        "verify: bad header offset 77824, wanted 12288 PLACE",
    );
    check_message(
        crc,
        63,
        0xef,
        8,
        "verify: bad header numberio 7, wanted 8 PLACE",
    );
    check_message(
        VerifyMethod::Checksum(&SUM),
        4095,
        0xee,
        7,
        "sum: verify failed PLACE\n       Expected CRC: f0b20c0000000000\n       \
         Received CRC: efb20c0000000000",
    );
    let pattern = "fio: got pattern '7a', wanted 'de'. Bad bits 3\n\
                   fio: bad pattern block offset 904\npattern: verify failed PLACE";
    check_message(VerifyMethod::Pattern, 904, b'z', 7, pattern);
}

#[test]
fn another_methods_block_is_refused() {
    let mut buffer = written(&verifier(by("md5"), None));
    let error = verifier(by("crc32c"), None)
        .check(&mut buffer, 12_288, |_, _| Expected::Valid)
        .unwrap_err();
    let want = Mismatch::Header {
        what: "verify type",
        got: 2,
        want: 5,
    };
    assert_eq!(error.mismatch, want);
}

#[test]
fn blocks_too_small_for_a_header_are_refused() {
    let with = |method, size| {
        let config = VerifyConfig::new(method);
        Verifier::new(&config, &SizeChoice::Fixed(size), 0).is_ok()
    };
    assert!(!with(by("crc32c"), 52) && with(by("crc32c"), 53));
    assert!(!with(VerifyMethod::Checksum(&SUM), 56) && with(VerifyMethod::Checksum(&SUM), 57));
    assert!(!with(by("md5"), 64) && with(by("md5"), 65));
    assert!(with(VerifyMethod::Pattern, 1));
}

/// Returns the job's verifier with these changes.
fn with(method: VerifyMethod, change: impl Fn(&mut VerifyConfig)) -> Verifier {
    let mut config = VerifyConfig::new(method);
    change(&mut config);
    Verifier::new(&config, &SIZES, 0x89).unwrap()
}

#[test]
fn the_older_header_is_laid_out_as_in_fio_3_33() {
    let verifier = with(by("crc32c"), |config| {
        config.layout = HeaderLayout::Fio3_33;
        config.pattern = Some(b"ab".to_vec());
    });
    let mut buffer = written(&verifier);
    let second = &buffer[4096..];
    assert_eq!(second[..8], [0xca, 0xac, 5, 0, 0, 16, 0, 0]);
    assert_eq!(second[8..16], [0; 8], "a pattern has no seed");
    assert_eq!(second[16..24], 16_384u64.to_le_bytes());
    assert_eq!(second[24..36], [5, 0, 0, 0, 9, 0, 0, 0, 1, 0, 7, 0]);
    assert_eq!(second[36..40], crc32c(&second[..36]).to_le_bytes());
    assert_eq!(second[40..44], crc32c(&second[44..]).to_le_bytes());
    // Whatever it writes, a job reads both.
    let newer = with(by("crc32c"), |_| {});
    assert_eq!(
        newer.check(&mut buffer, 12_288, |_, _| Expected::Valid),
        Ok(())
    );
}

#[test]
fn every_method_reads_both_layouts() {
    for method in methods().chain([VerifyMethod::Checksum(&META)]) {
        let newer = with(method, |config| config.pattern = Some(b"xyz".to_vec()));
        let older = with(method, |config| {
            config.pattern = Some(b"xyz".to_vec());
            config.layout = HeaderLayout::Fio3_33;
        });
        for (writer, reader) in [(&newer, &older), (&older, &newer)] {
            let mut buffer = written(writer);
            let read = reader.check(&mut buffer, 12_288, |_, _| Expected::Write(7));
            assert_eq!(read, Ok(()), "{method:?}");
        }
    }
}

#[test]
fn the_header_changes_places_with_the_bytes_at_its_offset() {
    let pattern: Vec<u8> = (0..=250).collect();
    let plain = pattern.repeat(40);
    let verifier = with(by("crc32c"), |config| {
        config.header_offset = 100;
        config.pattern = Some(pattern.clone());
    });
    let mut buffer = written(&verifier);
    let block = &buffer[..4096];
    assert_eq!(block[..52], plain[100..152]);
    assert_eq!(block[52..100], plain[52..100]);
    assert_eq!(block[100..104], [0xca, 0xac, 0x81, 5]);
    assert_eq!(block[148..152], crc32c(&plain[52..4096]).to_le_bytes());
    assert_eq!(block[152..], plain[152..4096]);
    let good = buffer.clone();
    let passed = verifier.check(&mut buffer, 12_288, |_, _| Expected::Write(7));
    assert_eq!((passed, buffer), (Ok(()), good));
}

#[test]
fn a_place_without_room_for_the_header_is_refused() {
    let at = |offset| {
        let mut config = VerifyConfig::new(by("crc32c"));
        config.header_offset = offset;
        let verifier = Verifier::new(&config, &SizeChoice::Fixed(512), 1);
        verifier.map(drop).map_err(|unfit| unfit.to_string())
    };
    assert_eq!((at(52), at(460)), (Ok(()), Ok(())));
    assert!(at(51).unwrap_err().ends_with("from 52 to 460"));
    assert!(at(461).unwrap_err().contains("at 461 within 512 B"));
}

/// Offsets of the intervals that have a header, in a block of 4 KiB.
#[track_caller]
fn check_interval(interval: u32, want: &[usize]) {
    let buffer = written(&with(by("crc32c"), |config| {
        config.interval = Some(interval);
        config.pattern = Some(vec![1]);
    }));
    let headers = (0..4096).filter(|&at| buffer[at..at + 2] == [0xca, 0xac]);
    assert_eq!(headers.collect::<Vec<_>>(), want);
}

#[test]
fn an_interval_that_divides_the_block_is_used() {
    check_interval(2048, &[0, 2048]);
    check_interval(4096, &[0]);
    check_interval(3000, &[0]);
    check_interval(8192, &[0]);
}

#[test]
fn a_pattern_begins_with_each_block_or_pattern_interval() {
    let with = |pattern_interval| {
        with(VerifyMethod::PatternHeader, |config| {
            config.interval = Some(1024);
            config.pattern = Some([&[1, 2][..], &[0; 8]].concat());
            config.pattern_offsets = vec![2];
            config.pattern_interval = pattern_interval;
        })
    };
    let (mut block, mut interval) = (written(&with(0)), written(&with(1024)));
    // Bytes 1080..1088 of the block are bytes 56..64 of its second interval.
    assert_eq!(block[1080..1090], [1, 2, 0, 0x30, 0, 0, 0, 0, 0, 0]);
    assert_eq!(interval[1084..1094], [1, 2, 0, 0x34, 0, 0, 0, 0, 0, 0]);
    assert_eq!(
        with(0).check(&mut block, 12_288, |_, _| Expected::Valid),
        Ok(())
    );
    assert_eq!(
        with(1024).check(&mut interval, 12_288, |_, _| Expected::Valid),
        Ok(())
    );
    assert!(
        with(0)
            .check(&mut interval, 12_288, |_, _| Expected::Valid)
            .is_err()
    );
}

#[test]
fn a_pattern_interval_need_not_divide_the_interval() {
    let with = |pattern_interval| {
        with(VerifyMethod::Pattern, |config| {
            config.interval = Some(1024);
            config.pattern = Some(vec![0; 8]);
            config.pattern_offsets = vec![0];
            config.pattern_interval = pattern_interval;
        })
    };
    for pattern_interval in [1, 512, 600, 1024, 1500, 4096, 5000] {
        let verifier = with(pattern_interval);
        let mut buffer = written(&verifier);
        for (position, byte) in buffer[..4096].iter().enumerate() {
            let inside = position % pattern_interval as usize;
            let begin = 12_288 + (position - inside) as u64;
            assert_eq!(*byte, begin.to_le_bytes()[inside % 8], "{pattern_interval}");
        }
        let checked = verifier.check(&mut buffer, 12_288, |_, _| Expected::Valid);
        assert_eq!(checked, Ok(()), "{pattern_interval}");
        buffer[3003] ^= 1;
        let error = verifier
            .check(&mut buffer, 12_288, |_, _| Expected::Valid)
            .unwrap_err();
        assert_eq!(error.offset, 12_288 + 2048);
        assert!(matches!(error.mismatch, Mismatch::Pattern { at: 955, .. }));
        let depends = !matches!(pattern_interval, 1 | 512 | 1024);
        assert_eq!(verifier.depends_on_start(), depends, "{pattern_interval}");
    }
}

#[test]
fn a_seed_of_another_write_is_found() {
    let own = |checks_sequence, checks_seed| {
        let verifier = with(by("crc32c"), |config| {
            config.checks_sequence = checks_sequence;
            config.checks_seed = checks_seed;
        });
        let checked = verifier.check(&mut written(&verifier), 12_288, |_, _| Expected::Write(8));
        checked.map_err(|error| error.mismatch)
    };
    let of =
        |what, error| matches!(error, Err(Mismatch::Header { what: field, .. }) if field == what);
    assert!(of("numberio", own(true, true)));
    assert!(of("numberio", own(true, false)));
    assert!(of("rand_seed", own(false, true)));
    assert_eq!(own(false, false), Ok(()));
}

#[test]
fn an_intact_header_tells_of_its_write() {
    let verifier = with(by("crc32c"), |_| {});
    let mut buffer = written(&verifier);
    buffer[100] ^= 1;
    let error = verifier
        .check(&mut buffer, 12_288, |_, _| Expected::Valid)
        .unwrap_err();
    let found = error.found.expect("a header");
    assert_eq!((found.sequence, found.thread, found.offset), (7, 1, 12_288));
    let text = error.to_string();
    let place = "at offset 12288, length 4096 (requested block: offset=12288, length=8192); its";
    assert!(text.contains(place), "{text}");
    assert!(
        text.ends_with("write 7 of job 1 at offset 12288, 5.000000009 s on its clock"),
        "{text}"
    );
    let error = verifier
        .check(&mut buffer[..4096], 12_288, |_, _| Expected::Valid)
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("at offset 12288, length 4096; its"),
        "told twice: {text}"
    );
    buffer[20] ^= 1;
    let error = verifier
        .check(&mut buffer, 12_288, |_, _| Expected::Valid)
        .unwrap_err();
    assert_eq!(error.found, None);
}

#[test]
fn null_checks_and_fills_nothing() {
    let null = with(VerifyMethod::Null, |_| {});
    assert!(!null.fills() && with(VerifyMethod::Null, |c| c.pattern = Some(vec![1])).fills());
    assert_eq!(written(&null), [0xff; 8192]);
    assert_eq!(
        null.check(&mut [0; 4096], 0, |_, _| Expected::Write(3)),
        Ok(())
    );
}
