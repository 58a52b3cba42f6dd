//! Coverage-guided fuzzing of the decoders: `cargo xtask fuzz`.
//!
//! This runs libFuzzer on each target of `fuzz/` in turn; `fuzz/src/main.rs` has the targets and
//! says why this works on a stable compiler. Inputs found on the way are kept in
//! `fuzz-inputs/corpus/` of the target folder, so that the next run begins where this one ended.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::bench::programs;
use crate::process;

/// `cargo xtask fuzz [TARGET...] [--seconds S] [--seed N] [--self-test]`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let options = Options::parse(args)?;
    let root = process::root()?;
    if !has_compiler() {
        println!(
            "skipped: no C++ compiler, which libFuzzer needs; `cargo test` replays the corpus"
        );
        return Ok(());
    }
    let fuzzer = Fuzzer::new(root, options.seed)?;
    if options.self_test {
        return fuzzer.self_test();
    }
    let known = fuzzer.targets()?;
    let unknown = options.targets.iter().find(|name| !known.contains(name));
    if let Some(name) = unknown {
        bail!(
            "fuzz has no target `{name}`: targets are {}",
            known.join(", ")
        );
    }
    let targets = if options.targets.is_empty() {
        known
    } else {
        options.targets
    };
    let count = u64::try_from(targets.len())?;
    let seconds = (options.seconds / count.max(1)).max(1);
    for target in &targets {
        fuzzer.fuzz(target, seconds)?;
    }
    Ok(())
}

struct Options {
    /// Targets to fuzz; all if empty.
    targets: Vec<String>,
    /// Seconds of all targets together.
    seconds: u64,
    seed: u32,
    self_test: bool,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self> {
        let mut options = Self {
            targets: Vec::new(),
            seconds: 60,
            seed: 1,
            self_test: false,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut number = || -> Result<u64> {
                let text = args
                    .next()
                    .with_context(|| format!("{arg} needs a number"))?;
                text.parse().with_context(|| format!("{arg}: {text}"))
            };
            match arg.as_str() {
                "--seconds" => options.seconds = number()?,
                "--seed" => options.seed = u32::try_from(number()?)?,
                "--self-test" => options.self_test = true,
                other if other.starts_with('-') => {
                    bail!("fuzz has no option `{other}`: only --seconds, --seed and --self-test")
                }
                target => options.targets.push(target.to_owned()),
            }
        }
        Ok(options)
    }
}

/// The instrumented program, built once per run.
struct Fuzzer {
    root: PathBuf,
    /// Folder of inputs and dictionaries.
    folder: PathBuf,
    program: PathBuf,
    seed: u32,
}

impl Fuzzer {
    fn new(root: PathBuf, seed: u32) -> Result<Self> {
        let target = programs::target_folder()?;
        let host = process::host_triple()?;
        let mut build = process::cargo();
        build
            .args(["build", "--quiet", "--package", "fathom-fuzz"])
            .args(["--features", "libfuzzer", "--profile", "fuzz"])
            // With a target triple the flags leave build scripts and procedural macros alone.
            .args(["--target", &host])
            .env("RUSTFLAGS", INSTRUMENTATION.join(" "));
        process::run(build.current_dir(&root))?;
        Ok(Self {
            program: target.join(&host).join("fuzz/fathom-fuzz"),
            folder: target.join("fuzz-inputs"),
            root,
            seed,
        })
    }

    /// Returns the targets, which are the directories of the corpus; a test of fathom-fuzz holds
    /// that.
    fn targets(&self) -> Result<Vec<String>> {
        let corpus = self.root.join("fuzz/corpus");
        let context = || corpus.display().to_string();
        let mut names = Vec::new();
        for entry in fs::read_dir(&corpus).with_context(context)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    /// Fuzzes one target; fails with the kept input and the command that replays it.
    fn fuzz(&self, target: &str, seconds: u64) -> Result<()> {
        let found = self.folder.join("corpus").join(target);
        fs::create_dir_all(&found).with_context(|| found.display().to_string())?;
        let seeds = self.root.join("fuzz/corpus").join(target);
        let mut command = self.command(target);
        command.arg(format!("-max_total_time={seconds}"));
        command.args([&found, &seeds]);
        let outcome = self.outcome(target, command)?;
        if let Some(failure) = outcome.failure {
            bail!("{target}: {failure}");
        }
        println!("fuzz: {target}: {}", summary(&outcome.log));
        Ok(())
    }

    /// Checks that libFuzzer finds the planted bug, which only coverage leads to.
    fn self_test(&self) -> Result<()> {
        let mut command = self.command("planted");
        command.arg(format!("-runs={PLANTED_RUNS}"));
        let outcome = self.outcome("planted", command)?;
        if outcome.failure.is_none() || !outcome.log.contains("the planted bug") {
            bail!(
                "self-test: {PLANTED_RUNS} inputs did not lead to the planted bug: {}",
                summary(&outcome.log)
            );
        }
        println!("fuzz: self-test: planted bug found within {PLANTED_RUNS} inputs");
        Ok(())
    }

    fn command(&self, target: &str) -> Command {
        let dictionary = self.folder.join(format!("{target}.dict"));
        let mut command = Command::new(&self.program);
        command
            .env("FATHOM_FUZZ_TARGET", target)
            .env("FATHOM_FUZZ_DICTIONARY", &dictionary)
            .current_dir(&self.root)
            .arg(format!("-dict={}", dictionary.display()))
            .arg(format!(
                "-artifact_prefix={}/{target}-",
                self.folder.display()
            ))
            .arg(format!("-max_len={INPUT_BYTES_MAX}"))
            .arg(format!("-seed={}", self.seed))
            .arg("-print_final_stats=1")
            // The oracle measures memory itself; the watchdog ends a hang.
            .args(["-rss_limit_mb=0", "-timeout=300"]);
        command
    }

    fn outcome(&self, target: &str, mut command: Command) -> Result<Outcome> {
        fs::create_dir_all(&self.folder).with_context(|| self.folder.display().to_string())?;
        let line = process::shown(&command);
        let output = command
            .output()
            .with_context(|| format!("cannot start `{line}`"))?;
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        let failure = (!output.status.success()).then(|| {
            let kept = log.lines().find_map(kept_input);
            let replay = kept.map_or_else(
                || format!("hint: run it again: {line}"),
                |path| format!("hint: replay it: cargo run -p fathom-fuzz -- {target} {path}"),
            );
            format!("{}\n{replay}", failure_lines(&log))
        });
        Ok(Outcome { log, failure })
    }
}

/// One run of libFuzzer.
struct Outcome {
    log: String,
    /// The reason and the command that replays it, if an input failed.
    failure: Option<String>,
}

/// Returns the path to which libFuzzer, or the watchdog, has written a failing input.
fn kept_input(line: &str) -> Option<&str> {
    let written = line
        .split_once("Test unit written to ")
        .map(|(_, path)| path);
    written.or_else(|| line.split_once(": hang: ").map(|(_, path)| path))
}

/// Returns the lines of a failed run with the reason: from the panic to the beginning of the
/// backtrace.
fn failure_lines(log: &str) -> String {
    let is_reason = |line: &&str| line.contains("panicked at") || line.contains("ERROR:");
    let lines = log
        .lines()
        .skip_while(|line| !is_reason(line) && !line.contains(": hang: "));
    let reason = lines.take_while(|line| !line.starts_with("stack backtrace"));
    reason.take(REASON_LINES).collect::<Vec<_>>().join("\n")
}

/// Inputs and coverage, from the last of libFuzzer's lines:
/// `#4096 DONE cov: 812 ft: 2907 corp: 211/3Kb …`.
fn summary(log: &str) -> String {
    let is_status = |line: &&str| line.starts_with('#') && line.contains(" cov: ");
    let Some(line) = log.lines().rev().find(is_status) else {
        return "no inputs".to_owned();
    };
    let words: Vec<&str> = line.split_whitespace().collect();
    let inputs = words
        .first()
        .map_or("", |word| word.trim_start_matches('#'));
    let after = |name: &str| {
        let place = words.iter().position(|word| *word == name);
        place
            .and_then(|place| words.get(place + 1))
            .copied()
            .unwrap_or("?")
    };
    let (edges, corpus) = (after("cov:"), after("corp:"));
    format!("passed: {inputs} inputs, {edges} edges covered, corpus {corpus}")
}

fn has_compiler() -> bool {
    let named = std::env::var_os("CXX").map(PathBuf::from);
    named.is_some_and(|path| path.is_file())
        || ["c++", "g++"]
            .iter()
            .any(|name| process::find(name).is_some())
}

/// Edge counters and comparison hooks, inserted by LLVM's coverage pass on any toolchain.
const INSTRUMENTATION: [&str; 5] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// Longest input: larger ones are slow and cover nothing more. `fuzz/src/large.rs` has those of
/// 1 MiB.
const INPUT_BYTES_MAX: u32 = 4 << 10;
/// Inputs for the self-test. Blind mutation is given as many in `fuzz/src/decoders/planted.rs`.
const PLANTED_RUNS: u32 = 2_000_000;
/// Lines of a failure that are shown.
const REASON_LINES: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kept_input_and_the_reason_are_taken_from_the_log() {
        let log = "INFO: Seed: 1\nthread '<unnamed>' panicked at fuzz/src/guided.rs:20:13:\n\
                   job-file: panic\nstack backtrace:\n   0: a\n\
                   artifact_prefix='t/'; Test unit written to t/job-file-crash-0f\n";
        assert_eq!(
            log.lines().find_map(kept_input),
            Some("t/job-file-crash-0f")
        );
        let reason = "thread '<unnamed>' panicked at fuzz/src/guided.rs:20:13:\njob-file: panic";
        assert_eq!(failure_lines(log), reason);
        let hang = "INFO: Seed: 1\nfuzz: record: hang: target/fuzz/record-hang-1\n";
        assert_eq!(
            hang.lines().find_map(kept_input),
            Some("target/fuzz/record-hang-1")
        );
    }

    #[test]
    fn the_summary_is_that_of_the_last_status_line() {
        let log = "#2\tINITED cov: 3 ft: 4 corp: 1/1b\n\
                   #4096\tDONE   cov: 812 ft: 2907 corp: 211/3Kb lim: 64 exec/s: 12\n\
                   ###### End of recommended dictionary. ######\nDone\n";
        let want = "passed: 4096 inputs, 812 edges covered, corpus 211/3Kb";
        assert_eq!(summary(log), want);
    }
}
