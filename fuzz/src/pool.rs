//! What is mutated: the corpus, and inputs that made the parser say something new.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail};
use fathom_core::Xoshiro256;
use fathom_job::option_examples;

use crate::mutate::pick;
use crate::target::{Target, Verdict};

/// Inputs to mutate, and words to mutate them with.
pub(crate) struct Pool {
    inputs: Vec<(Target, Vec<u8>)>,
    words: Vec<String>,
    known: BTreeSet<(bool, Verdict)>,
    learnt: usize,
}

impl Pool {
    /// The corpus, in the order of its names.
    pub(crate) fn read(corpus: &Path) -> Result<Self> {
        let mut inputs = Vec::new();
        for target in Target::ALL {
            let folder = corpus.join(target.name());
            let context = || folder.display().to_string();
            let entries = std::fs::read_dir(&folder).with_context(context)?;
            let mut paths = Vec::new();
            for entry in entries {
                paths.push(entry.with_context(context)?.path());
            }
            paths.sort();
            for path in paths {
                let input = std::fs::read(&path).with_context(|| path.display().to_string())?;
                inputs.push((target, input));
            }
        }
        if inputs.is_empty() {
            bail!("{}: there is no corpus", corpus.display());
        }
        let pieces = PIECES.lines().chain(UNPRINTABLE.iter().copied());
        Ok(Self {
            inputs,
            words: option_examples().chain(pieces).map(str::to_owned).collect(),
            known: BTreeSet::new(),
            learnt: 0,
        })
    }

    /// All inputs as they are.
    pub(crate) fn inputs(&self) -> Vec<(Target, Vec<u8>)> {
        self.inputs.clone()
    }

    /// One of them.
    pub(crate) fn draw(&self, random: &mut Xoshiro256) -> (Target, &[u8]) {
        let (target, input) = &self.inputs[pick(self.inputs.len(), random)];
        (*target, input)
    }

    /// Words of the job language.
    pub(crate) fn words(&self) -> &[String] {
        &self.words
    }

    /// Keeps an input if nothing was answered like this before.
    pub(crate) fn learn(&mut self, target: Target, input: &[u8], verdict: &Verdict) -> bool {
        let is_new = input.len() <= LEARNT_BYTES_MAX
            && self.known.insert((target == Target::File, verdict.clone()));
        if is_new {
            self.inputs.push((target, input.to_vec()));
            self.learnt += 1;
        }
        is_new
    }

    /// How many inputs were kept.
    pub(crate) const fn learnt(&self) -> usize {
        self.learnt
    }
}

/// Larger ones only slow the search down.
const LEARNT_BYTES_MAX: usize = 16 << 10;

/// What the examples of options do not have, a piece a line.
const PIECES: &str = include_str!("../pieces.txt");

/// Pieces that no line of text can hold.
const UNPRINTABLE: &[&str] = &["\u{202e}", "\0", "\t", "\r\n"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corpus_is_there_and_the_words_hold_the_options() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
        let pool = Pool::read(&corpus).unwrap();
        for target in Target::ALL {
            assert!(pool.inputs.iter().any(|(kind, _)| *kind == target));
        }
        assert!(pool.words.iter().any(|word| word.starts_with("rwmixread=")));
    }
}
