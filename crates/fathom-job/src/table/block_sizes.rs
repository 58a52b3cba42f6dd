//! Sizes of ops and files: `bs`, `bsrange`, `bssplit`, `filesize`.

use fathom_core::{Direction, PerDirection};

use super::general::not_a_range;
use super::read::{Findings, byte, up_to_three};
use crate::number;
use crate::plan::{BlockSize, Options};
use crate::problem::{Piece, Problem};

/// Replaces the sizes that were given.
pub(super) fn set_sizes(options: &mut Options, sizes: PerDirection<Option<BlockSize>>) {
    for direction in Direction::ALL {
        if let Some(size) = &sizes[direction] {
            options.block_sizes[direction] = size.clone();
        }
    }
}

pub(super) fn bsrange(
    options: &mut Options,
    text: &str,
    findings: &mut Findings,
) -> Result<(), Problem> {
    let kb_base = options.kb_base;
    let sizes = up_to_three(text, "ranges", |piece| {
        let (min, max) = size_range(piece, kb_base, findings, "bsrange=4k-64k")?;
        Ok(BlockSize::Range { min, max })
    })?;
    set_sizes(options, sizes);
    Ok(())
}

/// `a-b` or `a:b`, at least 1, the smaller first.
fn size_range(
    piece: Piece<'_>,
    kb_base: u64,
    findings: &mut Findings,
    example: &str,
) -> Result<(u64, u64), Problem> {
    let mut ends = piece.split(&['-', ':']);
    if let Some(slash) = piece.text.find('/') {
        let rest = piece.part(slash..piece.text.len());
        if !rest.text.split('/').skip(1).all(is_share) {
            let why = format!("`{}` does not belong to the range before it", rest.text);
            return Err(Problem::new("bad-range", rest.range(), why)
                .fio("would forget it, though its manual allows it")
                .fix("put a comma between the ranges for reads, writes and trims"));
        }
        ends.truncate(2);
        for end in &mut ends {
            *end = end.part(0..end.text.find('/').unwrap_or(end.text.len()));
        }
        let why = "no more than the first two sizes count, and no shares, as in fio";
        let problem = Problem::new("range-with-shares", piece.range(), why);
        findings.warn(problem.fix("write sizes with shares as `bssplit=512/25:1k/25:4k/50`"));
    }
    let [low, high] = ends.as_slice() else {
        return Err(not_a_range(piece.text, example).shifted(piece.at));
    };
    let mut read = |piece: Piece<'_>| {
        let (value, reversed) = number::counted(piece, kb_base, 1, u64::MAX)?;
        findings.reversed(piece, reversed);
        Ok(value)
    };
    let (low, high): (u64, u64) = (read(*low)?, read(*high)?);
    Ok((low.min(high), low.max(high)))
}

/// `25` or `25:…`: what follows the slash of a size with a share.
fn is_share(text: &str) -> bool {
    let digits = text.split(':').next().unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) fn filesize(
    options: &mut Options,
    text: &str,
    findings: &mut Findings,
) -> Result<(), Problem> {
    let mut piece = Piece::whole(text).trim();
    if piece.text.ends_with(')') && !piece.text.contains('(') {
        // So writes one of the scripts that fio is tested with.
        let end = piece.text.len() - 1;
        let problem = Problem::new("stray-parenthesis", end..end + 1, "`)` closes nothing");
        findings.warn(problem.fio("ignores it too").fix("leave it out"));
        piece = piece.part(0..end);
    }
    options.filesize = Some(if piece.split(&['-', ':']).len() == 1 {
        let (size, reversed) = number::counted(piece, options.kb_base, 1, u64::MAX)?;
        findings.reversed(piece, reversed);
        (size, size)
    } else {
        size_range(piece, options.kb_base, findings, "filesize=1m-4m")?
    });
    Ok(())
}

pub(super) fn bssplit(
    options: &mut Options,
    text: &str,
    findings: &mut Findings,
) -> Result<(), Problem> {
    let kb_base = options.kb_base;
    let sizes = up_to_three(text, "lists", |piece| {
        one_split(piece, kb_base, findings).map(BlockSize::Split)
    })?;
    set_sizes(options, sizes);
    Ok(())
}

/// `size/percent:…` of one direction; what is left goes to those without a percentage in equal
/// shares, and to the last one if all have theirs.
fn one_split(
    piece: Piece<'_>,
    kb_base: u64,
    findings: &mut Findings,
) -> Result<Vec<(u64, u8)>, Problem> {
    let mut entries = Vec::new();
    for entry in piece.split(&[':']) {
        let parts = entry.split(&['/']);
        let (size, percent) = match parts.as_slice() {
            [size] => (*size, None),
            [size, percent] if percent.text.trim().is_empty() => (*size, None),
            [size, percent] => (*size, Some(*percent)),
            _ => return Err(bad_entry(entry)),
        };
        let (bytes, reversed) = number::counted(size, kb_base, 1, u64::MAX)?;
        findings.reversed(size, reversed);
        let percent = percent.map(split_percent).transpose()?;
        entries.push((bytes, percent));
        if entries.len() > SPLIT_MAX {
            return Err(Problem::new(
                "too-many-values",
                entry.range(),
                "too many sizes",
            ));
        }
    }
    share_rest(piece, entries, findings)
}

fn split_percent(piece: Piece<'_>) -> Result<u32, Problem> {
    let digits = piece.trim();
    let text = digits.text.strip_suffix('%').unwrap_or(digits.text);
    match text.parse() {
        Ok(percent) if percent <= 100 => Ok(percent),
        _ => Err(Problem::new(
            "bad-percent",
            digits.range(),
            format!("`{}` is not a percentage", digits.text),
        )
        .fix("write a whole number from 0 to 100")),
    }
}

fn share_rest(
    piece: Piece<'_>,
    entries: Vec<(u64, Option<u32>)>,
    findings: &mut Findings,
) -> Result<Vec<(u64, u8)>, Problem> {
    let given: u32 = entries.iter().filter_map(|(_, percent)| *percent).sum();
    if given > 100 {
        return Err(Problem::new(
            "bad-split",
            piece.range(),
            format!("the percentages add up to {given}, not to 100"),
        )
        .fio("would cut off what is beyond 100")
        .fix("lower them until they add up to 100"));
    }
    let rest = 100 - given;
    let blanks = entries
        .iter()
        .filter(|(_, percent)| percent.is_none())
        .count();
    let share = rest.checked_div(u32::try_from(blanks).unwrap_or(u32::MAX));
    if blanks == 0 && rest > 0 {
        findings.warn(
            Problem::new(
                "bad-split",
                piece.range(),
                format!(
                    "the percentages add up to {given}; \
                     the last size gets the other {rest}, as in fio"
                ),
            )
            .fix("raise them until they add up to 100"),
        );
    }
    let mut left = 100;
    let count = entries.len();
    let shared = entries
        .into_iter()
        .enumerate()
        .map(|(index, (size, percent))| {
            let own = percent.or(share).unwrap_or(0).min(left);
            let own = if index + 1 == count { left } else { own };
            left -= own;
            (size, byte(u64::from(own)))
        });
    Ok(shared.collect())
}

fn bad_entry(entry: Piece<'_>) -> Problem {
    Problem::new(
        "bad-split",
        entry.range(),
        format!("`{}` is not a size and a percentage", entry.text),
    )
    .fix("write it as in `4k/60`")
}

/// fio's limit of sizes in a `bssplit`.
const SPLIT_MAX: usize = 64;
