//! Other side of a comparison: `fathom peak --against`.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::Parser;
use fathom_record::{PeakRecord, Warning};

use crate::failure::with_hint;
use crate::peak_arguments::PeakArguments;

/// Other side of a comparison.
pub(crate) enum Against {
    /// A saved result.
    Saved(Box<PeakRecord>),
    /// The same command with more options, measured in turn.
    InTurn(Box<PeakArguments>),
}

impl Against {
    /// Reads the value of `--against`: options if it begins with a hyphen, or else a file. `words`
    /// are those of the whole command line.
    pub(crate) fn read(value: &str, words: &[OsString]) -> Result<Self> {
        if value.starts_with('-') {
            let other = other_side(value, words)?;
            return Ok(Self::InTurn(Box::new(other)));
        }
        Ok(Self::Saved(Box::new(saved(Path::new(value))?)))
    }
}

/// Command line of the other side.
#[derive(Parser)]
#[command(name = "fathom peak", no_binary_name = true, args_override_self = true)]
struct OtherSide {
    #[command(flatten)]
    arguments: PeakArguments,
}

/// Parses the command line with the options of `value` in place of `--against`.
fn other_side(value: &str, words: &[OsString]) -> Result<PeakArguments> {
    // The program's name and `peak` precede the arguments.
    let mut own = words.iter().skip(2);
    let mut all: Vec<OsString> = Vec::new();
    while let Some(word) = own.next() {
        let text = word.to_string_lossy();
        if text == "--" {
            break;
        }
        if text == "--against" {
            own.next();
        } else if !text.starts_with("--against=") {
            all.push(word.clone());
        }
    }
    all.extend(value.split_whitespace().map(OsString::from));
    let mut targets = own.cloned().peekable();
    if targets.peek().is_some() {
        all.push("--".into());
        all.extend(targets);
    }
    let parsed = OtherSide::try_parse_from(all).map_err(|error| {
        let text = error.render().to_string();
        let reason = text.lines().next().unwrap_or_default().to_owned();
        let reason = reason.strip_prefix("error: ").unwrap_or(&reason).to_owned();
        let hint = "name options of this command, such as --against '--engine libaio'";
        with_hint(format!("--against: {reason}"), Some(hint))
    })?;
    if parsed.arguments.against.is_some() {
        bail!("--against: options to compare with cannot name --against again");
    }
    Ok(parsed.arguments)
}

/// Reads a saved result of `--json`.
fn saved(path: &Path) -> Result<PeakRecord> {
    let name = || format!("--against: {}", path.display());
    let mut text = String::new();
    let file = File::open(path).with_context(name)?;
    let mut source = file.take(SAVED_BYTES_MAX + 1);
    let bytes = source.read_to_string(&mut text).with_context(name)?;
    if bytes as u64 > SAVED_BYTES_MAX {
        return Err(anyhow::anyhow!("more than {SAVED_BYTES_MAX} B")).with_context(name);
    }
    PeakRecord::from_json(&text).with_context(name)
}

/// Returns the settings in which a saved result differs, so that its figures do not compare.
pub(crate) fn different(record: &PeakRecord, saved: &PeakRecord) -> Option<Warning> {
    let pairs = [
        ("engine", record.engine != saved.engine),
        ("block size", record.block_bytes != saved.block_bytes),
        ("threads", record.threads != saved.threads),
        ("targets", record.targets != saved.targets),
        ("settings", record.settings != saved.settings),
    ];
    let other = pairs.iter().filter(|(_, differs)| *differs);
    let other: Vec<&str> = other.map(|(name, _)| *name).collect();
    (!other.is_empty()).then(|| Warning {
        code: "against_differs".into(),
        job: String::new(),
        message: format!(
            "--against: the saved result differs in {}",
            other.join(", ")
        ),
        hint: "compare options of this command in turn: --against 'OPTIONS'".into(),
    })
}

/// Largest saved result; a sweep has less than 200 KiB, and an endless file must not be read.
const SAVED_BYTES_MAX: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn other(line: &str, value: &str) -> Result<PeakArguments> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        other_side(value, &words)
    }

    #[test]
    fn the_other_side_takes_the_same_options_and_more() {
        let line = "fathom peak --depth 8 --against=--x --cpu 1 data";
        let parsed = other(line, "--depth 16 --no-fixed").unwrap();
        let config = &parsed.configs()[0];
        assert_eq!((config.depth, config.cpu), (16, Some(1)));
        assert!(!config.fixed_buffers);
        let targets = other(
            "fathom peak --against --nop --depth 8 -- -data",
            "--depth 4",
        );
        let targets = targets.unwrap().targets;
        assert_eq!(targets, [Path::new("-data")]);
    }

    #[test]
    fn unknown_options_are_named() {
        let why = other("fathom peak data", "--nonsense").unwrap_err();
        assert!(why.to_string().contains("--nonsense"), "{why}");
        let why = other("fathom peak data", "--against x").unwrap_err();
        assert!(why.to_string().contains("again"), "{why}");
    }
}
