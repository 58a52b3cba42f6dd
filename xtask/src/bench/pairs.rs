//! Pairs of runs, turn about, so that a slow drift of the machine hits both programs alike.

use std::path::Path;

use anyhow::Result;

use super::Options;
use super::programs::{Program, Programs};
use super::rows::Row;

/// What one pair of runs gave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) fio: f64,
    pub(crate) fathom: f64,
}

/// Runs a row's pairs; every second one begins with the other program.
pub(crate) fn measure(
    programs: &Programs,
    row: &Row,
    options: &Options,
    file: &Path,
) -> Result<Vec<Pair>> {
    let run = |program| programs.measure(program, row, options.seconds, file);
    let mut pairs = Vec::with_capacity(options.pairs);
    for index in 0..options.pairs {
        let pair = if index % 2 == 0 {
            let fio = run(Program::Fio)?;
            Pair {
                fio,
                fathom: run(Program::Fathom)?,
            }
        } else {
            let fathom = run(Program::Fathom)?;
            Pair {
                fio: run(Program::Fio)?,
                fathom,
            }
        };
        println!("bench:   fio {:.1}, fathom {:.1}", pair.fio, pair.fathom);
        pairs.push(pair);
    }
    Ok(pairs)
}
