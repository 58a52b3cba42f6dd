//! Self-tests without a job: the clock, checksums, memory copies.

use std::hint::black_box;

use fathom_checksum::{CHECKSUM_BYTES_MAX, CHECKSUMS, Checksum};
use fathom_core::Nanos;
use fathom_job::{Dialect, SelfTest};
use fathom_sys::clock::Clock;

use crate::exit::ProgramEnd;
use crate::output::{self, StandardStream};

/// Runs a self-test and prints its result.
pub(crate) fn run(test: &SelfTest, dialect: Dialect) -> ProgramEnd {
    let result = match test {
        SelfTest::CpuClock => cpu_clock(),
        SelfTest::Checksums(names) => {
            let known: Vec<_> = CHECKSUMS.iter().map(|row| (row.name, row)).collect();
            each(names, &known, "checksum", checksum)
        }
        SelfTest::Copies(names) => each(names, &COPIES, "copy method", copies),
        SelfTest::UnitOfWork => {
            let (mean, stddev) = fathom_run::unit_of_work(&Clock::calibrated());
            Ok(format!(
                "CPU idleness:\n{}",
                fathom_report::unit_of_work(mean, stddev)
            ))
        }
    };
    match result {
        Ok(text) => output::show(&text, dialect.program(), ProgramEnd::Printed),
        Err(why) => {
            output::print(StandardStream::Error, &format!("{why}\n"));
            ProgramEnd::Refused
        }
    }
}

fn cpu_clock() -> Result<String, String> {
    match Clock::cpu() {
        Ok(clock) => Ok(format!(
            "cs: reliable_tsc: yes\ncs: {} ticks per second, synchronised across CPUs\n",
            clock.hz()
        )),
        Err(why) => Err(format!("cs: reliable_tsc: no\ncs: {why}")),
    }
}

/// Function to measure, with its name.
type Named<F> = (&'static str, F);
/// Copies the first half of the bytes to the second.
type CopyBytes = fn(&mut [u8]);

/// Measures the named functions, or all of them.
fn each<F: Copy>(
    names: &[String],
    known: &[Named<F>],
    what: &str,
    measure: fn(&str, F) -> String,
) -> Result<String, String> {
    let unknown = names
        .iter()
        .find(|name| known.iter().all(|(known, _)| known != name));
    if let Some(name) = unknown {
        let list: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        return Err(format!(
            "unknown {what}: `{name}`\nhint: use {}",
            list.join(", ")
        ));
    }
    let wanted = known
        .iter()
        .filter(|(known, _)| names.is_empty() || names.iter().any(|name| name == known));
    Ok(wanted.map(|&(name, run)| measure(name, run)).collect())
}

fn checksum(name: &str, row: &Checksum) -> String {
    let data = vec![0x5a; CHUNK];
    let mut out = [0; CHECKSUM_BYTES_MAX];
    let rate = mib_per_s(CHUNK, || {
        (row.digest)(black_box(&data), black_box(&mut out[..row.bytes]));
    });
    format!("{name}:\t\t{rate:8.2} MiB/sec\n")
}

fn copies(name: &str, copy: CopyBytes) -> String {
    let mut out = format!("{name}\n");
    for size in SIZES {
        let mut both = vec![0x5a; 2 * size];
        let rate = mib_per_s(size, || copy(black_box(&mut both)));
        out += &format!("\t{size} bytes:\t{rate:8.2} MiB/sec\n");
    }
    out
}

/// Returns the rate of `work`, which handles `bytes` per call, in MiB/s.
fn mib_per_s(bytes: usize, mut work: impl FnMut()) -> f64 {
    let clock = Clock::calibrated();
    let begun = clock.now();
    let mut rounds = 0_u32;
    let mut span = Nanos::ZERO;
    while span < MEASUREMENT_MIN {
        for _ in 0..16 {
            work();
        }
        rounds = rounds.saturating_add(16);
        span = clock.now() - begun;
    }
    let mib = f64::from(rounds) * bytes as f64 / f64::from(1 << 20);
    mib * 1e9 / span.get() as f64
}

/// fio's copy methods: disjoint, possibly overlapping, byte by byte, and chosen by size.
const COPIES: [Named<CopyBytes>; 4] = [
    ("memcpy", copy_halves),
    ("memmove", |both| {
        both.copy_within(..both.len() / 2, both.len() / 2)
    }),
    ("simple", byte_by_byte),
    ("hybrid", |both| match both.len() / 2 {
        ..MEMCPY_BYTES_MIN => byte_by_byte(both),
        _ => copy_halves(both),
    }),
];

fn copy_halves(both: &mut [u8]) {
    let (source, target) = both.split_at_mut(both.len() / 2);
    target.copy_from_slice(source);
}

fn byte_by_byte(both: &mut [u8]) {
    let (source, target) = both.split_at_mut(both.len() / 2);
    for (to, from) in target.iter_mut().zip(source) {
        *to = *from;
    }
}

/// Size below which a call of `memcpy` costs more than it saves (guess).
const MEMCPY_BYTES_MIN: usize = 16;

/// fio's sizes.
const SIZES: [usize; 11] = [
    8, 16, 96, 128, 256, 512, 2048, 8192, 131_072, 262_144, 524_288,
];
/// Bytes per checksum.
const CHUNK: usize = 128 * 1024;
/// Shortest measurement.
const MEASUREMENT_MIN: Nanos = Nanos::from_millis(50);
