//! `random_distribution=sequence:…`: an explicit sequence of blocks.

use super::row::{Row, ValueKind};
use crate::findings::Findings;
use crate::number;
use crate::plan::{Options, RandomDistribution};
use crate::problem::{Piece, Problem};

pub(super) const ROWS: &[Row] = &[Row::new(
    "random_sequence_stride",
    "0",
    "Shift `random_distribution=sequence` by its length after each pass",
    "random_sequence_stride=1",
    ValueKind::Bool(|o, v| o.random_sequence_stride = v),
)];

/// Reads a comma-separated list of block numbers.
pub(super) fn sequence(
    options: &mut Options,
    list: Piece<'_>,
    findings: &mut Findings,
) -> Result<(), Problem> {
    let mut blocks = Vec::new();
    for piece in list.split(&[',']) {
        let block = number::read_part(piece, options.kb_base, 0, u64::MAX / 2, findings)?;
        blocks.push(block);
    }
    if blocks.len() > BLOCKS_MAX {
        let why = format!("the sequence has more than {BLOCKS_MAX} blocks");
        return Err(Problem::new("too-many-values", list.range(), why));
    }
    options.random_distribution = RandomDistribution::Random;
    options.access_zones = None;
    options.random_sequence = Some(blocks);
    Ok(())
}

/// Limit of the sequence; a line has room for less.
const BLOCKS_MAX: usize = 1 << 16;
