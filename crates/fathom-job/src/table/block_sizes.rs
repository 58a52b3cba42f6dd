//! Block and file sizes: `bs`, `bsrange`, `bssplit`, `filesize`.

use fathom_core::{Direction, PerDirection};

use super::general::not_a_range;
use super::read::{byte, narrow, spread, up_to_three};
use crate::findings::Findings;
use crate::number;
use crate::plan::{BlockSize, Options};
use crate::problem::{Piece, Problem};
use crate::reading::{self, Reading, Shown};

/// Sets the sizes of the directions that were given.
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
    });
    let sizes = match sizes {
        Ok(sizes) => sizes,
        Err(problem) => {
            let ranges = ranges_in_fio(text, kb_base).ok_or_else(|| problem.clone())?;
            findings.misread(problem, ranges.shown())?;
            ranges.map(|range| range.map(|(min, max)| BlockSize::Range { min, max }))
        }
    };
    set_sizes(options, sizes);
    Ok(())
}

/// Returns fio's reading: the first two sizes of each entry. An entry without a second size leaves
/// its direction unchanged.
fn ranges_in_fio(text: &str, kb_base: u64) -> Option<PerDirection<Option<(u64, u64)>>> {
    if text.contains('%') {
        return None;
    }
    let size = |text: &str| reading::count(text, kb_base);
    let range = |entry: &str| {
        let (low, high) = entry.split_once(['-', ':'])?;
        let (low, high) = (size(low)?, size(high)?);
        // fio replaces 0 at either end by the default block size.
        let (low, high) = (low.min(high), low.max(high));
        let sized = |size| if size == 0 { SIZE_DEFAULT } else { size };
        Some((sized(low), sized(high).max(sized(low))))
    };
    let ranges: Vec<_> = text.split(',').take(3).map(range).collect();
    ranges.iter().any(Option::is_some).then(|| spread(&ranges))
}

/// Reads `a-b` or `a:b`, at least 1, and returns the smaller first.
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
            let why = format!("`{}` is not part of the range before it", rest.text);
            return Err(Problem::new("bad-range", rest.range(), why)
                .fix("separate the ranges for reads, writes and trims by commas"));
        }
        ends.truncate(2);
        for end in &mut ends {
            *end = end.part(0..end.text.find('/').unwrap_or(end.text.len()));
        }
        let why = "only the first two sizes are used, without percentages, as in fio";
        let problem = Problem::new("range-with-shares", piece.range(), why);
        findings.warn(problem.fix("write sizes with percentages as `bssplit=512/25:1k/25:4k/50`"));
    }
    // fio looks for a dash first: of `1k:2k-4k` it reads 1k-4k.
    let after_dash = |end: &Piece<'_>| piece.text[..end.at - piece.at].ends_with('-');
    let second = ends.iter().position(after_dash).unwrap_or(1);
    let (Some(low), Some(high)) = (ends.first(), ends.get(second)) else {
        return Err(not_a_range(piece.text, example).shifted(piece.at));
    };
    if ends.len() > 2 {
        let shown = format!("{}-{}", low.text, high.text);
        findings.misread(not_a_range(piece.text, example).shifted(piece.at), shown)?;
    }
    let mut read = |piece: Piece<'_>| number::read_part(piece, kb_base, 1, u64::MAX, findings);
    let (low, high): (u64, u64) = (read(*low)?, read(*high)?);
    Ok((low.min(high), low.max(high)))
}

/// Returns whether this is `25` or `25:…`: the text after the slash of a size with a percentage.
fn is_share(text: &str) -> bool {
    let digits = text.split(':').next().unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) fn filesize(
    options: &mut Options,
    text: &str,
    findings: &mut Findings,
) -> Result<(), Problem> {
    let mut piece = Piece::new(text).trim();
    if piece.text.ends_with(')') && !piece.text.contains('(') {
        // One of fio's own test scripts writes it like this.
        let end = piece.text.len() - 1;
        let problem = Problem::new("stray-parenthesis", end..end + 1, "unmatched `)`");
        findings.warn(problem.fio("ignores it too").fix("remove it"));
        piece = piece.part(0..end);
    }
    let kb_base = options.kb_base;
    let documented = |findings: &mut Findings| {
        match piece.split(&['-', ':']).len() {
            1 => {}
            2 => return size_range(piece, kb_base, findings, "filesize=1m-4m"),
            _ => return Err(not_a_range(piece.text, "filesize=1m-4m").shifted(piece.at)),
        }
        let size = number::counted(piece, kb_base, 1, u64::MAX, findings)?;
        Ok((size, size))
    };
    // The first number and the last, unlike a `bsrange`.
    let fio = || {
        let size = |text: &str| reading::in_range(reading::count(text, kb_base)?, 1, u64::MAX);
        let mut parts = piece.text.split([',', ':', '-']);
        let low = size(parts.next()?)?;
        let high = parts.filter_map(size).next_back().unwrap_or(low);
        Some((low.min(high), low.max(high)))
    };
    let size = findings.documented_or_fio_value(documented, fio);
    let size = size.map_err(|problem| late_if_giant(problem, piece.text, kb_base))?;
    options.filesize = Some(size);
    Ok(())
}

/// Returns the problem of a size. fio reads a negative one and a percentage as a number near 2⁶⁴,
/// and fails on it only when the job runs.
fn late_if_giant(problem: Problem, text: &str, kb_base: u64) -> Problem {
    match reading::is_giant(text, kb_base) {
        true => problem.when_run(),
        false => problem,
    }
}

pub(super) fn bssplit(
    options: &mut Options,
    text: &str,
    findings: &mut Findings,
) -> Result<(), Problem> {
    let kb_base = options.kb_base;
    let lists = Piece::new(text).split(&[',']);
    let mut text = text;
    if let Some(fourth) = lists.get(3) {
        let why = "more than three lists (read,write,trim)";
        let problem = Problem::new("too-many-values", fourth.range(), why).fix("remove it");
        findings.misread(problem, reading::NOTHING)?;
        text = &text[..fourth.at - 1];
    }
    let sizes = up_to_three(text, "lists", |piece| {
        let split = one_split(piece, kb_base, findings)?;
        Ok(split.map(BlockSize::Split))
    })?;
    set_sizes(options, sizes.map(Option::flatten));
    Ok(())
}

/// Reads `size/percent:…` of one direction. The rest is divided equally among sizes without a
/// percentage, or goes to the last size if all have one. `None` if fio finds no size.
fn one_split(
    piece: Piece<'_>,
    kb_base: u64,
    findings: &mut Findings,
) -> Result<Option<Vec<(u64, u8)>>, Problem> {
    let mut entries = Vec::new();
    for entry in piece.split(&[':']) {
        if entry.text.is_empty() {
            // fio reads as far as the first empty entry.
            let shown = match entry.at - piece.at {
                0 => reading::NOTHING,
                end => piece.text[..end].trim_end_matches(':'),
            };
            findings.misread(bad_entry(entry), shown)?;
            break;
        }
        let parts = entry.split(&['/']);
        let (size, percent) = match parts.as_slice() {
            [size] => (*size, None),
            [size, percent] if percent.text.trim().is_empty() => (*size, None),
            [size, percent] => (*size, Some(*percent)),
            [size, percent, ..] => {
                findings.misread(bad_entry(entry), format!("{}/{}", size.text, percent.text))?;
                (*size, Some(*percent))
            }
            [] => return Err(bad_entry(entry)),
        };
        let bytes = match number::integer(size, kb_base) {
            Ok(number) if number.value == 0 => 0,
            _ => number::read_part(size, kb_base, 1, u64::MAX, findings)
                .map_err(|problem| late_if_giant(problem, size.text, kb_base))?,
        };
        let percent = match percent {
            Some(percent) => split_percent(percent, findings)?,
            None => None,
        };
        entries.push((bytes, percent));
        if entries.len() > SPLIT_MAX {
            return Err(Problem::new(
                "too-many-values",
                entry.range(),
                "too many sizes",
            ));
        }
    }
    drop_empty(piece, &mut entries, findings)?;
    if entries.is_empty() {
        return Ok(None);
    }
    share_rest(piece, &entries, findings).map(Some)
}

/// Drops sizes of 0 if they have no share, or if there are no others: fio then uses the default
/// size. Beside others they are refused: in fio, the first op of 0 bytes ends the job at random.
fn drop_empty(
    piece: Piece<'_>,
    entries: &mut Vec<(u64, Option<u32>)>,
    findings: &mut Findings,
) -> Result<(), Problem> {
    let zero = |&(bytes, _): &(u64, _)| bytes == 0;
    if !entries.iter().any(zero) {
        return Ok(());
    }
    let problem =
        Problem::new("out-of-range", piece.range(), "a block size of 0").fix("write at least 1");
    let only = entries.iter().all(zero);
    if !only
        && entries
            .iter()
            .any(|&(bytes, share)| bytes == 0 && share != Some(0))
    {
        return Err(problem);
    }
    entries.retain(|entry| !zero(entry));
    let shown = match only {
        true => reading::NOTHING,
        false => "the other sizes",
    };
    findings.misread(problem, shown)
}

/// Reads a percentage; `None` if fio ignores the text and gives the size a share of the rest.
fn split_percent(piece: Piece<'_>, findings: &mut Findings) -> Result<Option<u32>, Problem> {
    let digits = piece.trim();
    let text = digits.text.strip_suffix('%').unwrap_or(digits.text);
    let documented = |_: &mut Findings| match text.parse() {
        Ok(percent) if percent <= 100 => Ok(percent),
        _ => Err(not_a_percentage(digits)),
    };
    // Read without a sign: a negative one is far above 100.
    let fio = || {
        let digits = text.trim_start_matches('-');
        Some(match reading::atoi(digits) {
            0 => Reading::Nothing,
            percent if percent > 100 || text.starts_with('-') => Reading::Value(100),
            percent => Reading::Value(narrow(percent)),
        })
    };
    findings.documented_or_fio(documented, fio)
}

/// Returns the problem of a share that is not a number from 0 to 100.
pub(super) fn not_a_percentage(piece: Piece<'_>) -> Problem {
    let why = format!("`{}` is not a percentage", piece.text);
    let problem = Problem::new("bad-percent", piece.range(), why);
    problem.fix("write a whole number from 0 to 100")
}

fn share_rest(
    piece: Piece<'_>,
    entries: &[(u64, Option<u32>)],
    findings: &mut Findings,
) -> Result<Vec<(u64, u8)>, Problem> {
    let given: u32 = entries.iter().filter_map(|(_, percent)| *percent).sum();
    let blanks = entries.iter().filter(|(_, percent)| percent.is_none());
    let blanks = u32::try_from(blanks.count()).unwrap_or(u32::MAX);
    let Some(rest) = 100_u32.checked_sub(given) else {
        return share_too_much(piece, entries, (given, blanks), findings);
    };
    let share = rest.checked_div(blanks);
    if blanks == 0 && rest > 0 {
        findings.warn(
            Problem::new(
                "bad-split",
                piece.range(),
                format!(
                    "the percentages add up to {given}; the last size gets the remaining {rest}, \
                     as in fio"
                ),
            )
            .fix("raise them to a total of 100"),
        );
    }
    let own = |&(size, percent): &(u64, Option<u32>)| (size, percent.or(share).unwrap_or(0));
    Ok(cut_at_100(entries.iter().map(own)))
}

/// Of more than 100 percent fio serves the smallest shares first; a size without a percentage is
/// then owed less than nothing, which counts as everything.
fn share_too_much(
    piece: Piece<'_>,
    entries: &[(u64, Option<u32>)],
    (given, blanks): (u32, u32),
    findings: &mut Findings,
) -> Result<Vec<(u64, u8)>, Problem> {
    let why = format!("the percentages add up to {given}, not 100");
    let problem = Problem::new("bad-split", piece.range(), why).fix("lower them to a total of 100");
    if blanks > 1 {
        return Err(problem);
    }
    let own = |&(size, percent): &(u64, Option<u32>)| match percent {
        Some(percent) if blanks == 0 => (size, percent),
        Some(_) => (size, 0),
        None => (size, 100),
    };
    let mut shares: Vec<_> = entries.iter().map(own).collect();
    shares.sort_by_key(|(_, percent)| *percent);
    let shares = cut_at_100(shares.into_iter());
    let shown: Vec<_> = shares
        .iter()
        .map(|(size, own)| format!("{size}/{own}"))
        .collect();
    findings.misread(problem, shown.join(":"))?;
    Ok(shares)
}

/// Shares as far as 100 percent go; the last one gets what is left.
fn cut_at_100(shares: impl ExactSizeIterator<Item = (u64, u32)>) -> Vec<(u64, u8)> {
    let (mut left, count) = (100, shares.len());
    let cut = shares.enumerate().map(|(index, (size, own))| {
        let own = if index + 1 == count {
            left
        } else {
            own.min(left)
        };
        left -= own;
        (size, byte(u64::from(own)))
    });
    cut.collect()
}

fn bad_entry(entry: Piece<'_>) -> Problem {
    let why = match entry.text {
        "" => "an entry between the colons is empty".to_owned(),
        text => format!("`{text}` is not a size and a percentage"),
    };
    Problem::new("bad-split", entry.range(), why).fix("write it like `4k/60`")
}

/// fio's limit of sizes in a `bssplit`.
const SPLIT_MAX: usize = 64;

/// The default of `bs`.
const SIZE_DEFAULT: u64 = 4096;
