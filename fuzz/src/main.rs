//! Fuzz targets, one per decoder, and the tool that replays their inputs.
//!
//! ```text
//! cargo xtask fuzz                                  all targets, 60 s in total
//! cargo xtask fuzz machine-file --seconds 600       one target
//! cargo run -p fathom-fuzz                          replay the corpus
//! cargo run -p fathom-fuzz -- TARGET FILE...        replay inputs, such as one that failed
//! ```
//!
//! A target passes an input to its decoder and uses the result as the program does. The oracle in
//! `target.rs` reports a panic, a hang, more than 5 s of processor time or 64 MiB of memory, an
//! error without text, a message with control characters, and whatever the target itself checks,
//! such as a value that changes when it is written and read again.
//!
//! To add a decoder: a file in `decoders/`, a row in `TARGETS`, and a folder of seeds in `corpus/`.
//! An input that failed joins that folder once its defect is fixed; `cargo test -p fathom-fuzz`
//! replays all of them.
//!
//! # Coverage guidance on the stable toolchain
//!
//! The inputs come from libFuzzer. `-Zsanitizer` and cargo-fuzz need a nightly compiler, but LLVM's
//! coverage pass does not: `-Cpasses=sancov-module` with `-Cllvm-args=-sanitizer-coverage-…` works
//! on a stable rustc (1.95 was tried) and inserts the counters and the comparison hooks that
//! libFuzzer steers by. `cargo xtask fuzz` passes these flags. AddressSanitizer is what stable
//! lacks, and the decoders contain no `unsafe` that would need it.
//!
//! The crate libfuzzer-sys compiles libFuzzer from C++ in half a minute, so it is behind a feature,
//! and everything else builds without a C++ compiler. Not tried, since this worked: bolero and
//! honggfuzz (which wrap C or C++ code of the same kind) and LibAFL (which is Rust alone, with a
//! hundred dependencies more).
//!
//! `cargo xtask fuzz --self-test` shows the guidance at work: libFuzzer finds a planted bug behind
//! nested comparisons (`decoders/planted.rs`) that blind mutation does not find in as many inputs.
#![forbid(unsafe_code)]
#![cfg_attr(feature = "libfuzzer", no_main)]

#[cfg(test)]
mod corpus;
mod decoders;
#[cfg(feature = "libfuzzer")]
mod guided;
#[cfg(test)]
mod large;
#[cfg(not(feature = "libfuzzer"))]
mod replay;
mod target;
mod watchdog;

use fathom_sys::peak_allocation::HighWater;

#[global_allocator]
static MEASURED: HighWater = HighWater;

#[cfg(not(feature = "libfuzzer"))]
fn main() -> std::process::ExitCode {
    replay::run()
}

#[expect(clippy::print_stderr, reason = "a tool for developers")]
fn say(text: &str) {
    eprintln!("{text}");
}
