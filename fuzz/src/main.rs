//! Throws mutated job files and command lines at the parser: it must answer each, soon, and in
//! little memory.
//!
//! `cargo run -p fathom-fuzz -- --seconds 60` begins with the corpus, then mutates it; the same
//! seed gives the same inputs. An input that breaks a rule is written to `target/fuzz/`, and
//! `cargo run -p fathom-fuzz -- FILE` tries it again. There is no coverage to steer by, as there is
//! on nightly compilers: what makes the parser say something new is mutated further.
#![forbid(unsafe_code)]

#[cfg(test)]
mod large;
mod mutate;
mod pool;
mod target;
mod watchdog;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use fathom_core::Nanos;
use fathom_core::Xoshiro256;
use fathom_sys::clock::Clock;
use fathom_sys::peak_allocation::HighWater;

use crate::pool::Pool;
use crate::target::{Target, Verdict};
use crate::watchdog::Watchdog;

#[global_allocator]
static MEASURED: HighWater = HighWater;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            say(&format!("fuzz: {error:#}"));
            ExitCode::from(2)
        }
    }
}

/// What the command line asks for.
struct Asked {
    seconds: u64,
    seed: u64,
    /// Inputs to try once, instead of the corpus.
    files: Vec<PathBuf>,
    /// Adds what is new to the corpus.
    keep: bool,
}

fn asked() -> Result<Asked> {
    let mut asked = Asked {
        seconds: 60,
        seed: 1,
        files: Vec::new(),
        keep: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || -> Result<u64> {
            let text = words
                .next()
                .with_context(|| format!("{word} needs a number"))?;
            text.parse().with_context(|| format!("{word}: {text}"))
        };
        match word.as_str() {
            "--seconds" => asked.seconds = number()?,
            "--seed" => asked.seed = number()?,
            "--keep" => asked.keep = true,
            other if other.starts_with('-') => {
                bail!("no option `{other}`: only --seconds, --seed, --keep and files")
            }
            file => asked.files.push(file.into()),
        }
    }
    Ok(asked)
}

/// Whether no input broke a rule.
fn run() -> Result<bool> {
    let asked = asked()?;
    // A panic is a finding; its text comes with it.
    std::panic::set_hook(Box::new(|_| {}));
    let watchdog = Watchdog::start();
    if !asked.files.is_empty() {
        return replay(&asked.files, &watchdog);
    }
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut pool = Pool::read(&corpus)?;
    let clock = Clock::monotonic();
    let begun = clock.now();
    let mut random = Xoshiro256::new(asked.seed);
    for (target, input) in pool.inputs() {
        if let Err(breach) = target.try_with(&input, &watchdog) {
            return report(target, &input, &breach);
        }
    }
    let mut tried = 0_u64;
    while clock.now() - begun < Nanos::from_secs(asked.seconds) {
        let (target, seed) = pool.draw(&mut random);
        let input = mutate::mutated(seed, pool.words(), &mut random);
        match target.try_with(&input, &watchdog) {
            Ok(verdict) => learn(&mut pool, &asked, &corpus, target, &input, &verdict)?,
            Err(breach) => {
                say(&format!("fuzz: seed {}, input {tried}", asked.seed));
                return report(target, &input, &breach);
            }
        }
        tried += 1;
    }
    say(&format!(
        "fuzz: seed {}: {tried} inputs in {} s, {} of them new, nothing broken; at most {} KiB and \
         {} for one",
        asked.seed,
        asked.seconds,
        pool.learnt(),
        watchdog.most_bytes() >> 10,
        watchdog.longest(),
    ));
    Ok(true)
}

fn learn(
    pool: &mut Pool,
    asked: &Asked,
    corpus: &Path,
    target: Target,
    input: &[u8],
    verdict: &Verdict,
) -> Result<()> {
    let is_new = pool.learn(target, input, verdict);
    if is_new && asked.keep && input.len() <= KEPT_BYTES_MAX {
        let name = format!("{}-{}", asked.seed, pool.learnt());
        let path = corpus.join(target.name()).join(name);
        std::fs::write(&path, input).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn replay(files: &[PathBuf], watchdog: &Watchdog) -> Result<bool> {
    let mut sound = true;
    for file in files {
        let input = std::fs::read(file).with_context(|| file.display().to_string())?;
        // Its folder, or the beginning of its name, says what it is.
        let text = file.to_string_lossy();
        let target = if text.contains("line") {
            Target::Line
        } else {
            Target::File
        };
        let said = match target.try_with(&input, watchdog) {
            Ok(verdict) => format!("{verdict}"),
            Err(breach) => {
                sound = false;
                breach
            }
        };
        say(&format!("{}: {}: {said}", file.display(), target.name()));
    }
    Ok(sound)
}

/// Keeps an input that broke a rule, and says which.
fn report(target: Target, input: &[u8], breach: &str) -> Result<bool> {
    let path = watchdog::keep(target, input)?;
    say(&format!(
        "fuzz: {}: {breach}\nhint: `cargo run -p fathom-fuzz -- {}` tries it again",
        target.name(),
        path.display()
    ));
    Ok(false)
}

#[expect(clippy::print_stderr, reason = "this is a tool of the developers'")]
fn say(text: &str) {
    eprintln!("{text}");
}

/// Larger inputs are made of smaller ones.
const KEPT_BYTES_MAX: usize = 400;
