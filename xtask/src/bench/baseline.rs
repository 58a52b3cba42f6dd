//! Kept instruction counts, the baseline of later ones: `xtask/baseline.json`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use crate::process;

/// Instructions per op, by row name.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Baseline {
    counts: Map<String, Value>,
}

impl Baseline {
    /// Reads the counts kept in the tree.
    pub(crate) fn read() -> Result<Self> {
        let path = path()?;
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("cannot parse {}", path.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        let mut file: Value = serde_json::from_str(text)?;
        match file[COUNTS].take() {
            Value::Object(counts) => Ok(Self { counts }),
            _ => anyhow::bail!("no object `{COUNTS}`"),
        }
    }

    /// Returns the kept count of a row.
    pub(crate) fn get(&self, row: &str) -> Result<f64> {
        let count = self.counts.get(row).and_then(Value::as_f64);
        count.with_context(|| format!("no kept count for {row}: `--keep` keeps the one measured"))
    }

    /// Replaces the kept count of a row.
    pub(crate) fn set(&mut self, row: &str, count: f64) {
        let rounded = (count * 10.0).round() / 10.0;
        self.counts.insert(row.to_owned(), rounded.into());
    }

    /// Writes the counts into the tree, with the compiler version, which they depend on.
    pub(crate) fn write(&self) -> Result<()> {
        let path = path()?;
        let compiler = process::capture(std::process::Command::new("rustc").arg("--version"))?;
        fs::write(&path, self.text(compiler.trim())?)
            .with_context(|| format!("cannot write {}", path.display()))?;
        println!("bench: wrote {}", path.display());
        Ok(())
    }

    fn text(&self, compiler: &str) -> Result<String> {
        let file = json!({"compiler": compiler, COUNTS: self.counts});
        Ok(serde_json::to_string_pretty(&file)? + "\n")
    }
}

fn path() -> Result<PathBuf> {
    Ok(process::root()?.join("xtask/baseline.json"))
}

const COUNTS: &str = "instructions_per_op";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_back() {
        let mut baseline = Baseline::default();
        baseline.set("null", 123.456);
        baseline.set("null", 123.44);
        let text = baseline.text("rustc 1.2.3").expect("a text");
        let again = Baseline::parse(&text).expect("the same text");
        assert_eq!(again, baseline);
        assert_eq!(again.get("null").ok(), Some(123.4));
        assert!(again.get("other").is_err());
        assert!(Baseline::parse("{}").is_err());
    }
}
