//! The house rules that a program can check: `cargo xtask tidy`.
//!
//! These are the rules that rustc, rustfmt and clippy cannot check: edges between crates, units,
//! documents and comments. Whatever they can check is set in `Cargo.toml` and `clippy.toml`.
//!
//! Each rule is a function from the tree to findings; none of them changes a file. A finding is one
//! line, `tidy: file:line: what: why`, so that an editor can jump to it.

mod columns;
mod doc_comments;
mod docs;
mod edges;
mod leftovers;
mod lexer;
mod licences;
mod modules;
mod purity;
mod tree;
mod units;
mod words;

use std::fmt;

use anyhow::{Context, Result, bail};

use crate::process;
use tree::Tree;

/// Runs `cargo xtask tidy`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    if let Some(arg) = args.first() {
        bail!("tidy takes no option: `{arg}`");
    }
    let metadata = process::metadata()?;
    let tree = Tree::read(&process::root()?)?;
    let mut findings = Vec::new();
    findings.extend(edges::check(&metadata));
    let dependencies = process::dependencies()?;
    findings.extend(edges::check_reach(&dependencies));
    let deny = tree.file("deny.toml").context("deny.toml is missing")?;
    findings.extend(licences::Licences::parse(&deny.text)?.check(&dependencies));
    findings.extend(modules::check(&tree, &metadata));
    findings.extend(leftovers::check(&tree));
    findings.extend(columns::check(&tree));
    findings.extend(doc_comments::check(&tree));
    findings.extend(words::check(&tree));
    findings.extend(purity::check(&tree));
    findings.extend(units::check(&tree));
    findings.extend(docs::check(&tree, &metadata));
    findings.sort();
    for finding in &findings {
        println!("tidy: {finding}");
    }
    if !findings.is_empty() {
        bail!("tidy: {} found", findings.len());
    }
    println!("tidy: {} files, nothing found", tree.files.len());
    Ok(())
}

/// One breach of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// Path from the workspace's root.
    pub(crate) path: String,
    /// Line, from 1.
    pub(crate) line: usize,
    /// Description of the breach.
    pub(crate) what: String,
    /// The rule, with a remedy.
    pub(crate) why: &'static str,
}

impl Finding {
    fn new(path: &str, line: usize, what: impl Into<String>, why: &'static str) -> Self {
        Self {
            path: path.to_owned(),
            line,
            what: what.into(),
            why,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: {}: {}",
            self.path, self.line, self.what, self.why
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_one_line_that_an_editor_can_jump_to() {
        let finding = Finding::new("a/b.rs", 7, "101 columns", "100 is the limit");
        assert_eq!(
            finding.to_string(),
            "a/b.rs:7: 101 columns: 100 is the limit"
        );
    }
}
