//! Options on random offsets.

use super::general::choice;
use super::read::{byte, unknown_word};
use super::row::{Row, ValueKind};
use super::sequence::sequence;
use super::zones;
use crate::findings::Findings;
use crate::plan::{Options, RandomDistribution, RandomGenerator};
use crate::problem::{Piece, Problem};
use crate::reading;

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "norandommap",
        "0",
        "Do not track visited blocks; offsets may repeat",
        "norandommap",
        ValueKind::Flag(|o, v| o.norandommap = v),
    )
    .different(
        "directions with different smallest `bs` (even unused ones) share one map, as in fio, and \
         the job may end before `size`; with `random_generator=lfsr`, `zonemode=strided` or \
         `bs_is_seq_rand` only fio ends early",
    ),
    Row::new(
        "softrandommap",
        "0",
        "Continue without the map of visited blocks if memory is short",
        "softrandommap=1",
        ValueKind::Bool(|o, v| o.softrandommap = v),
    ),
    Row::new(
        "randrepeat",
        "1",
        "Use the same random sequence in every run",
        "randrepeat=0",
        ValueKind::Bool(|o, v| o.randrepeat = v),
    ),
    Row::new(
        "allrandrepeat",
        "0",
        "Use the same random sequence in every run and on every rank",
        "allrandrepeat=1",
        ValueKind::Bool(|o, v| {
            o.randrepeat = v;
            o.allrandrepeat = v;
        }),
    )
    .different("sets `randrepeat`, too; with several ranks, they draw the same numbers"),
    Row::new(
        "randseed",
        "0x89",
        "Seed of the random sequence",
        "randseed=42",
        ValueKind::Int {
            min: 0,
            max: u64::MAX,
            set: |o, v| o.randseed = Some(v),
        },
    )
    .different("the sequence is the same on every machine, but differs from fio's"),
    Row::new(
        "random_generator",
        "tausworthe",
        "Random number generator for offsets",
        "random_generator=lfsr",
        ValueKind::Choice(&[
            choice("tausworthe", "32 bits", |o| {
                o.random_generator = RandomGenerator::Tausworthe;
            }),
            choice("tausworthe64", "64 bits", |o| {
                o.random_generator = RandomGenerator::Tausworthe64;
            }),
            choice(
                "lfsr",
                "linear feedback shift register: every block once, without a map",
                |o| {
                    o.random_generator = RandomGenerator::Lfsr;
                },
            ),
        ]),
    ),
    Row::new(
        "random_distribution",
        "random",
        "Distribution of random offsets",
        "random_distribution=zipf:1.2",
        ValueKind::Special {
            form: "random|zipf[:theta[:center]]|pareto[:h[:center]]|normal[:dev[:center]]\
                   |zoned:access/size:…|zoned_abs:access/bytes:…|sequence:block,block…",
            read: distribution,
        },
    )
    .different(
        "the deviation of `normal` is as given; fio's is never less than a twelfth of the range. \
         With a center, neighbouring blocks stay adjacent; fio 3.33 scatters them. Values after \
         `random`, a theta of 0 or less, parameters that are no finite numbers, and zones without \
         a size or with too many are flagged. Zones of `zoned_abs` are cut at the end of a file, \
         with a warning; fio prints an error and ends the job, or repeats a few blocks",
    ),
    Row::new(
        "percentage_random",
        "100",
        "Percentage of random ops in a random pattern; the rest is sequential",
        "percentage_random=80",
        ValueKind::PerDirection {
            min: 0,
            max: 100,
            set: |o, values| {
                for (direction, value) in values.iter() {
                    if let Some(value) = value {
                        o.percentage_random[direction] = byte(*value);
                    }
                }
            },
        },
    ),
];

fn distribution(options: &mut Options, text: &str, findings: &mut Findings) -> Result<(), Problem> {
    let whole = Piece::new(text);
    for (word, bytes) in [("zoned:", false), ("zoned_abs:", true)] {
        if text.starts_with(word) {
            let rest = whole.part(word.len()..text.len());
            return zones::zoned(options, rest, bytes, findings);
        }
    }
    if let Some(list) = text.strip_prefix("sequence:") {
        return sequence(
            options,
            whole.part(text.len() - list.len()..text.len()),
            findings,
        );
    }
    if whole.split(&[':', ','])[0].text == "gauss" {
        // `file_service_type` alone knows the alias, as in fio.
        let word = whole.part(0.."gauss".len());
        return Err(unknown_word("random_distribution", word, &WORDS, &[]));
    }
    options.random_distribution = read_distribution(whole, findings)?;
    options.access_zones = None;
    options.random_sequence = None;
    Ok(())
}

/// Reads a distribution with its parameter and center.
pub(super) fn read_distribution(
    whole: Piece<'_>,
    findings: &mut Findings,
) -> Result<RandomDistribution, Problem> {
    let pieces = whole.split(&[':', ',']);
    let word = pieces[0].trim();
    let most = if word.text == "random" { 1 } else { 3 };
    if let Some(extra) = pieces.get(most) {
        let extra = extra.range().start..whole.range().end;
        let problem = Problem::new("too-many-values", extra, "too many values");
        findings.misread(problem.fix("remove the extra values"), reading::NOTHING)?;
    }
    let center = pieces
        .get(2)
        .map(|piece| center(*piece, findings))
        .transpose();
    let mut parameter = |default| match pieces.get(1) {
        Some(piece) => number(*piece, findings),
        None => Ok(default),
    };
    let at = || pieces.get(1).copied().unwrap_or(word);
    Ok(match word.text {
        "random" => RandomDistribution::Random,
        "zipf" => {
            // Far beyond the exponents that differ in a draw: all ops go to one block.
            let theta = parameter(1.1)?.clamp(-THETA_MAX, THETA_MAX);
            let center = center?;
            let different = (theta - 1.0).abs() > f64::EPSILON;
            let sound = check(
                theta > 0.0 && different,
                at(),
                "theta",
                "positive and not 1",
            );
            if let Err(problem) = sound {
                let reading = match theta {
                    0.0 => "equal shares of the blocks",
                    ..0.0 => "a larger share for each later rank",
                    _ => return Err(problem),
                };
                findings.misread(problem, reading)?;
            }
            RandomDistribution::Zipf(theta, center)
        }
        "pareto" => {
            let h = parameter(0.2)?;
            let sound = check(
                h > 0.0 && h < 1.0,
                at(),
                "h",
                "greater than 0 and less than 1",
            );
            let h = nan_as(h, H_MIN, "all ops at one block", sound, findings)?;
            RandomDistribution::Pareto(h, center?)
        }
        "normal" | "gauss" => {
            let deviation = parameter(10.0)?;
            let sound = check(
                (0.0..100.0).contains(&deviation),
                at(),
                "the deviation",
                "at least 0 and less than 100 percent",
            );
            let deviation = nan_as(deviation, 0.0, "0", sound, findings)?;
            RandomDistribution::Normal(deviation, center?)
        }
        _ => {
            return Err(unknown_word("random_distribution", word, &WORDS, &[]));
        }
    })
}

fn number(piece: Piece<'_>, findings: &mut Findings) -> Result<f64, Problem> {
    let piece = piece.trim();
    let documented = |_: &mut Findings| match piece.text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err(Problem::new(
            "not-a-number",
            piece.range(),
            format!("`{}` is not a number", piece.text),
        )),
    };
    findings.documented_or_fio_value(documented, || reading::float(piece.text))
}

fn center(piece: Piece<'_>, findings: &mut Findings) -> Result<f64, Problem> {
    let value = number(piece, findings)?;
    let sound = check(
        (0.0..=1.0).contains(&value),
        piece,
        "the center",
        "from 0 to 1",
    );
    nan_as(value, 0.0, "0", sound, findings)
}

/// Returns a checked parameter. NaN passes fio's limits, and its draws are those of `same`.
fn nan_as(
    value: f64,
    same: f64,
    reading: &str,
    sound: Result<(), Problem>,
    findings: &mut Findings,
) -> Result<f64, Problem> {
    match sound {
        Ok(()) => Ok(value),
        Err(problem) if value.is_nan() => findings.misread(problem, reading).map(|()| same),
        Err(problem) => Err(problem),
    }
}

fn check(good: bool, piece: Piece<'_>, what: &str, want: &str) -> Result<(), Problem> {
    if good {
        return Ok(());
    }
    Err(Problem::new(
        "out-of-range",
        piece.range(),
        format!("{what} must be {want}"),
    ))
}

/// Exponents beyond this are as good as infinite.
const THETA_MAX: f64 = 1e9;

/// A share so small that the rest of the blocks is drawn less than once in 10¹² ops.
const H_MIN: f64 = 1e-15;

const WORDS: [&str; 7] = [
    "random",
    "zipf",
    "pareto",
    "normal",
    "zoned:",
    "zoned_abs:",
    "sequence:",
];
