//! Compressibility and duplication of written data are as configured: measured with zstd and by
//! counting equal blocks.

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Returns the bytes that a 4 MiB job with these options writes.
#[track_caller]
fn written(name: &str, options: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("content-{name}"));
    let _ = fs::remove_file(&path);
    let words = "run --name=t --ioengine=psync --rw=write --size=4m --output-format=json";
    let output = Command::new(env!("CARGO_BIN_EXE_fathom"))
        .args(words.split(' '))
        .args(options.split(' '))
        .arg(format!("--filename={}", path.display()))
        // Files of other jobs of the line are left there.
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .output()
        .expect("the program can be started");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{options}: {text}");
    let bytes = fs::read(&path).expect("the file is there");
    fs::remove_file(&path).expect("the file can be removed");
    assert_eq!(bytes.len(), 4 << 20);
    bytes
}

/// Returns the size after compression by zstd; `None` if zstd is not installed.
fn compressed(bytes: &[u8]) -> Option<usize> {
    let zstd = Command::new("zstd")
        .args(["-q", "-c", "-3"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut zstd) = zstd else {
        eprintln!("skipped: no zstd");
        return None;
    };
    let mut input = zstd.stdin.take().expect("a pipe");
    let own = bytes.to_vec();
    let feed = std::thread::spawn(move || input.write_all(&own));
    let output = zstd.wait_with_output().expect("zstd ends");
    feed.join().expect("no panic").expect("zstd takes all");
    Some(output.stdout.len())
}

/// Checks that the compressed size is within one percent of the requested one.
#[track_caller]
fn leaves(percent_left: f64, part: &[u8], what: &str) {
    let Some(left) = compressed(part) else {
        return;
    };
    #[expect(clippy::cast_precision_loss, reason = "a few megabytes")]
    let got = 100.0 * left as f64 / part.len() as f64;
    let off = (got - percent_left).abs();
    assert!(
        off <= 1.0,
        "{what}: {got:.2} % are left, not {percent_left}"
    );
}

#[test]
fn the_whole_compresses_as_asked() {
    for (percent, left) in [(0, 100.0), (10, 90.0), (50, 50.0), (75, 25.0), (100, 0.0)] {
        let options = format!("--bs=64k --refill_buffers --buffer_compress_percentage={percent}");
        leaves(
            left,
            &written(&format!("whole-{percent}"), &options),
            &options,
        );
    }
}

#[test]
fn each_chunk_compresses_as_asked() {
    for (bs, chunk, unit) in [
        ("64k", "4k", 4096),
        ("64k", "0", 65536),
        ("16k", "16k", 16384),
    ] {
        let options =
            format!("--bs={bs} --buffer_compress_percentage=60 --buffer_compress_chunk={chunk}");
        let bytes = written(&format!("chunk-{unit}"), &options);
        for part in bytes.chunks(unit).step_by((4 << 20) / unit / 8) {
            leaves(40.0, part, &options);
        }
    }
}

#[test]
fn the_pattern_compresses_in_place_of_zeros() {
    let options = "--bs=64k --buffer_pattern=\"fathom\" --buffer_compress_percentage=50";
    let bytes = written("pattern", options);
    leaves(50.0, &bytes, options);
    assert!(bytes.windows(12).any(|part| part == b"fathomfathom"));
}

/// Returns how many of a thousand blocks of 4 KiB repeat earlier ones.
fn repeated(bytes: &[u8]) -> usize {
    let mut seen = HashSet::new();
    let blocks = bytes.chunks(4096).take(1000);
    blocks.filter(|block| !seen.insert(*block)).count()
}

#[test]
fn blocks_repeat_as_asked() {
    for percent in [0, 20, 50, 99] {
        let options = format!("--bs=4k --dedupe_percentage={percent}");
        let count = repeated(&written(&format!("repeat-{percent}"), &options));
        assert!(
            count.abs_diff(percent * 10) <= 10,
            "{options}: {count} of 1000"
        );
    }
}

#[test]
fn a_working_set_repeats_and_is_shared_by_jobs_with_its_seed() {
    let set = "--bs=4k --dedupe_percentage=30 --dedupe_mode=working_set";
    // Every block of the set is new once, whatever its size.
    for size in [1, 20, 70] {
        let options = format!("{set} --dedupe_working_set_percentage={size}");
        let bytes = written("set", &options);
        let distinct: HashSet<_> = bytes.chunks(4096).collect();
        let count = 1024 - distinct.len();
        assert!(count.abs_diff(307) <= 10, "{options}: {count} of 1024");
    }
    let small = format!("{set} --dedupe_working_set_percentage=1");
    // Another job has another set, unless both say that they share one.
    let both = |options: &str| {
        let one = written("one", options);
        let known: HashSet<_> = one.chunks(4096).collect();
        let other = written(
            "other",
            &format!("{options} --stonewall --name=u {AGAIN} {options}"),
        );
        other
            .chunks(4096)
            .filter(|block| known.contains(block))
            .count()
    };
    assert_eq!(both(&small), 0);
    let common = both(&format!("{small} --dedupe_global=1"));
    assert!((250..=330).contains(&common), "{common} of 1024");
}

/// Options with which a second job writes the same file.
const AGAIN: &str = "--ioengine=psync --rw=write --size=4m";

#[test]
fn content_compresses_and_repeats_at_once() {
    let options = "--bs=4k --buffer_compress_percentage=50 --buffer_compress_chunk=4k \
                   --dedupe_percentage=40";
    let bytes = written("both", options);
    let count = repeated(&bytes);
    assert!(count.abs_diff(400) <= 10, "{count} of 1000");
    for part in bytes.chunks(4096).step_by(100) {
        leaves(50.0, part, options);
    }
}
