//! Random plans of mixed jobs: the totals of both programs must agree within random variation.
//!
//! The programs have different random generators, so directions and sizes of single ops differ. The
//! totals that a plan determines must not: the bytes at its end, the share of reads, and the mean
//! op size, which with the bytes gives the number of ops. Under the hypothesis that both draw from
//! the same distributions, with n ops of each program in all runs of a plan:
//!
//! ```text
//! bytes of a run   |fio − ours| ≤ the largest op        each may reach past the end by less
//! share of reads   σ² = p·(1 − p)·(1/n + 1/n)           binomial; fio's draws vary no more
//! number of ops    σ² = 2·n·v/m²                        renewal theorem: mean m, variance v
//! ```
//!
//! A difference beyond 4.5 σ occurs by chance in 1 of 150,000 comparisons. The sum of all plans'
//! differences, each divided by its σ, has the same limit, which detects a bias too small to show
//! in one plan. Seeds are fixed and no plan depends on time, so failures are reproducible.
//!
//! Directions whose smallest sizes differ share a random map. A search for a free block may run
//! past the map's end, which ends the pass anywhere between its first op and `size`. Only plans
//! that end by `io_size` are compared then; a case over 400 files covers the end of passes.

use anyhow::{Context, Result};
use serde_json::Value;

use super::trial::{self, Programs};

/// A generated plan and its outcome.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) number: u64,
    pub(crate) words: Vec<String>,
    /// Share of reads, 0–1.
    share: f64,
    sizes: [Sizes; 2],
    /// The directions share a map, so a pass may end anywhere.
    uneven: bool,
}

/// Op sizes of one direction, bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sizes {
    min: f64,
    max: f64,
    mean: f64,
    square: f64,
}

/// Differences of one plan, in units of their standard deviations.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scores {
    ops: f64,
    share: f64,
}

/// Totals of one program: reads, writes, bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    reads: f64,
    ops: f64,
    bytes: f64,
}

impl Plan {
    /// Generates the plan with this number.
    pub(crate) fn new(number: u64) -> Self {
        let mut draw = Draw::new(number);
        let random = draw.chance(70);
        let rw = match (draw.chance(75), random) {
            (true, true) => "randrw",
            (true, false) => "rw",
            (false, true) => *draw.of(&["randread", "randwrite"]),
            (false, false) => *draw.of(&["read", "write"]),
        };
        let mut share = match rw {
            "randrw" | "rw" => 50,
            "randread" | "read" => 100,
            _ => 0,
        };
        let mut words = vec![format!("--rw={rw}")];
        if rw.ends_with("rw") && draw.chance(60) {
            share = *draw.of(&[10, 25, 30, 70, 80, 90]);
            words.push(format!("--rwmixread={share}"));
        }
        let (text, sizes) = *draw.of(SIZES);
        words.push(text.to_owned());
        words.push(format!("--size={}", draw.of(&["8m", "12m", "16m", "20m"])));
        let fixed = sizes.iter().all(|sizes| sizes.min >= sizes.max);
        let uneven = random && sizes[0].min < sizes[1].min;
        words.extend(draw.rest(random, fixed, uneven));
        let has_map = !words.iter().any(|word| {
            word.starts_with("--norandommap") || word.starts_with("--random_distribution")
        });
        Self {
            number,
            words,
            share: f64::from(share) / 100.0,
            sizes,
            uneven: uneven && has_map,
        }
    }

    /// Runs the plan with both programs; returns its differences and scores.
    pub(crate) fn run(&self, programs: &Programs) -> Result<(Vec<String>, Scores)> {
        let [mut fio, mut ours] = [Totals::default(); 2];
        let mut found = Vec::new();
        for seed in 1..=RUNS {
            let one_fio = self.totals(programs, "fio", seed)?;
            let one_ours = self.totals(programs, "ours", seed)?;
            found.extend(self.ends_differ(one_fio, one_ours));
            fio.add(one_fio);
            ours.add(one_ours);
        }
        if self.uneven {
            return Ok((found, Scores::default()));
        }
        let scores = self.scores(fio, ours);
        for (what, score) in [("ops", scores.ops), ("share of reads", scores.share)] {
            if score.abs() > SIGMA_MAX {
                found.push(format!(
                    "{what}: {score:.1} σ apart: fio {}, ours {}",
                    fio.shown(),
                    ours.shown()
                ));
            }
        }
        Ok((found, scores))
    }

    fn ends_differ(&self, fio: Totals, ours: Totals) -> Option<String> {
        let has = |option: &str| self.words.iter().any(|word| word.starts_with(option));
        if self.uneven && (!has("--io_size") || has("--loops") || has("--number_ios")) {
            return None;
        }
        let largest = self.sizes[0].max.max(self.sizes[1].max);
        let far = (fio.bytes - ours.bytes).abs() > largest;
        far.then(|| format!("ends: fio {}, ours {}", fio.shown(), ours.shown()))
    }

    fn scores(&self, fio: Totals, ours: Totals) -> Scores {
        let both = fio.ops + ours.ops;
        let mean = (fio.bytes + ours.bytes) / both.max(1.0);
        let moment = |of: fn(&Sizes) -> f64| {
            self.share * of(&self.sizes[0]) + (1.0 - self.share) * of(&self.sizes[1])
        };
        let variance = moment(|sizes| sizes.square) - moment(|sizes| sizes.mean).powi(2);
        let of_ops = (both * variance.max(0.0)).sqrt() / mean.max(1.0);
        let of_share = self.share * (1.0 - self.share) * (1.0 / fio.ops + 1.0 / ours.ops);
        let score = |difference: f64, deviation: f64| match deviation > 1e-9 {
            true => difference / deviation,
            // Nothing is drawn, so the counts must be equal.
            false if difference.abs() < 1e-9 => 0.0,
            false => f64::INFINITY,
        };
        Scores {
            ops: score(fio.ops - ours.ops, of_ops),
            share: score(fio.reads / fio.ops - ours.reads / ours.ops, of_share.sqrt()),
        }
    }

    fn totals(&self, programs: &Programs, who: &str, seed: u64) -> Result<Totals> {
        let program = match who {
            "fio" => &programs.fio,
            _ => &programs.ours,
        };
        let folder = programs.folder.join(format!("plan-{}-{who}", self.number));
        std::fs::create_dir_all(&folder)?;
        let seed = format!("--randseed={seed}");
        let mut words = vec!["--name=t", "--ioengine=null", "--output-format=json", &seed];
        words.extend(self.words.iter().map(String::as_str));
        let ran = trial::run(program, &folder, &words)?;
        let start = ran.stdout.find("{\n").unwrap_or(0);
        let report: Value = serde_json::from_str(&ran.stdout[start..])
            .with_context(|| format!("{who}: no report: {}", ran.stderr.trim_end()))?;
        let job = &report["jobs"][0];
        let number = |direction: &str, key: &str| job[direction][key].as_f64().unwrap_or(0.0);
        Ok(Totals {
            reads: number("read", "total_ios"),
            ops: number("read", "total_ios") + number("write", "total_ios"),
            bytes: number("read", "io_bytes") + number("write", "io_bytes"),
        })
    }
}

impl Totals {
    fn add(&mut self, other: Self) {
        self.reads += other.reads;
        self.ops += other.ops;
        self.bytes += other.bytes;
    }

    fn shown(&self) -> String {
        let Self { reads, ops, bytes } = self;
        format!(
            "{reads} reads, {} writes, {} KiB",
            ops - reads,
            bytes / 1024.0
        )
    }
}

/// Returns the biases of all plans together, if any.
pub(crate) fn bias(scores: &[Scores]) -> Vec<String> {
    let all = |what: &str, of: fn(&Scores) -> f64| {
        let drawn: Vec<f64> = scores
            .iter()
            .map(of)
            .filter(|score| score.abs() > 0.0)
            .collect();
        let plans = u32::try_from(drawn.len()).map_or(1.0, f64::from);
        let sum = drawn.iter().sum::<f64>() / plans.max(1.0).sqrt();
        (sum.abs() > SIGMA_MAX).then(|| format!("{what} of all plans: {sum:.1} σ apart"))
    };
    let found = [
        all("ops", |one| one.ops),
        all("shares of reads", |one| one.share),
    ];
    found.into_iter().flatten().collect()
}

/// Random generator of plans: SplitMix64.
struct Draw(u64);

impl Draw {
    /// Creates the generator of a plan; neighbouring numbers give unrelated plans.
    fn new(number: u64) -> Self {
        Self(number.wrapping_mul(0xd134_2543_de82_ef95))
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % limit
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        let index = self.below(list.len() as u64);
        &list[usize::try_from(index).unwrap_or(0)]
    }

    /// Draws the options that determine the ops' offsets and the job's end.
    fn rest(&mut self, random: bool, fixed: bool, uneven: bool) -> Vec<String> {
        let mut words = Vec::new();
        let mut add = |has: bool, text: String| words.extend(has.then_some(text));
        let loops = 2 + self.below(2);
        let again = self.chance(40);
        add(again, format!("--loops={loops}"));
        // Otherwise a sequential mix in loops ends with a pass, whose bytes depend on chance.
        let io_sizes: &[&str] = match again && !random {
            true => &["3m", "5m"],
            false => &["3m", "5m", "10m", "30m"],
        };
        let io_size = *self.of(io_sizes);
        add(self.chance(40), format!("--io_size={io_size}"));
        let offset = *self.of(&["64k", "1m"]);
        add(self.chance(20), format!("--offset={offset}"));
        let ops = *self.of(&[500, 1000]);
        add(fixed && self.chance(15), format!("--number_ios={ops}"));
        let depth = *self.of(&[2, 8, 32]);
        add(self.chance(30), format!("--iodepth={depth}"));
        let distribution = *self.of(&["zipf:1.2", "pareto:0.3"]);
        let skewed = random && !uneven && self.chance(15);
        add(skewed, format!("--random_distribution={distribution}"));
        // If file sizes leave a partial block at the end, fio may draw it, and ends there.
        let several = !skewed && self.chance(35);
        let files = *self.of(&[2, 3, 5]);
        add(several, format!("--nrfiles={files}"));
        let service = *self.of(&["sequential", "random", "roundrobin:4"]);
        add(
            several && self.chance(40),
            format!("--file_service_type={service}"),
        );
        add(random && self.chance(30), "--norandommap".to_owned());
        let percent = *self.of(&[20, 50, 80]);
        add(
            random && !uneven && self.chance(20),
            format!("--percentage_random={percent}"),
        );
        words
    }
}

const KIB: f64 = 1024.0;

const fn fixed(kib: f64) -> Sizes {
    let bytes = kib * KIB;
    Sizes {
        min: bytes,
        max: bytes,
        mean: bytes,
        square: bytes * bytes,
    }
}

/// Builds sizes from KiB and shares, in ascending order.
const fn split(parts: [(f64, f64); 3]) -> Sizes {
    let (mut mean, mut square, mut index) = (0.0, 0.0, 0);
    while index < parts.len() {
        let (bytes, share) = (parts[index].0 * KIB, parts[index].1);
        mean += share * bytes;
        square += share * bytes * bytes;
        index += 1;
    }
    Sizes {
        min: parts[0].0 * KIB,
        max: parts[2].0 * KIB,
        mean,
        square,
    }
}

/// Op sizes of plans, for reads and writes.
const SIZES: &[(&str, [Sizes; 2])] = &[
    ("--bs=4k", [fixed(4.0), fixed(4.0)]),
    ("--bs=8k", [fixed(8.0), fixed(8.0)]),
    ("--bs=4k,16k", [fixed(4.0), fixed(16.0)]),
    (
        "--bssplit=4k/60:16k/30:64k/10",
        [split([(4.0, 0.6), (16.0, 0.3), (64.0, 0.1)]); 2],
    ),
    (
        "--bssplit=4k/50:8k/30:16k/20,4k/20:32k/50:64k/30",
        [
            split([(4.0, 0.5), (8.0, 0.3), (16.0, 0.2)]),
            split([(4.0, 0.2), (32.0, 0.5), (64.0, 0.3)]),
        ],
    ),
    (
        "--bssplit=8k/40:16k/30:64k/30,16k/50:64k/20:128k/30",
        [
            split([(8.0, 0.4), (16.0, 0.3), (64.0, 0.3)]),
            split([(16.0, 0.5), (64.0, 0.2), (128.0, 0.3)]),
        ],
    ),
    // Nearly one eighth each of 4, 8, …, 32 KiB: treated as uniform.
    (
        "--bsrange=4k-32k",
        [Sizes {
            min: 4.0 * KIB,
            max: 32.0 * KIB,
            mean: 18.0 * KIB,
            square: 408.0 * KIB * KIB,
        }; 2],
    ),
];

/// Default number of plans.
pub(crate) const PLANS: u64 = 50;

/// Runs of each plan per program, with different seeds.
const RUNS: u64 = 2;

/// Largest difference attributed to chance, in standard deviations.
const SIGMA_MAX: f64 = 4.5;

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(reads: f64, writes: f64, bytes: f64) -> Totals {
        Totals {
            reads,
            ops: reads + writes,
            bytes,
        }
    }

    fn plan(text: &str, share: f64) -> Plan {
        let (_, sizes) = SIZES
            .iter()
            .find(|(known, _)| known.contains(text))
            .unwrap();
        Plan {
            number: 0,
            words: Vec::new(),
            share,
            sizes: *sizes,
            uneven: false,
        }
    }

    #[test]
    fn a_number_gives_one_plan_and_plans_differ() {
        assert_eq!(Plan::new(7).words, Plan::new(7).words);
        let mut seen: Vec<_> = (0..PLANS).map(|number| Plan::new(number).words).collect();
        seen.sort();
        seen.dedup();
        assert!(seen.len() > 45, "{}", seen.len());
        let plans = || (0..PLANS).map(Plan::new);
        for word in [
            "--rw=randrw",
            "--rw=rw",
            "--io_size",
            "--loops",
            "--nrfiles",
            "--bssplit",
        ] {
            let has = |plan: &Plan| plan.words.iter().any(|own| own.starts_with(word));
            assert!(plans().filter(has).count() > 2, "{word}");
        }
    }

    #[test]
    fn chance_is_told_from_a_rule() {
        let half = plan("--bs=4k", 0.5);
        let scores = half.scores(totals(520.0, 480.0, 4e6), totals(480.0, 520.0, 4e6));
        assert!(scores.share.abs() < SIGMA_MAX && scores.ops.abs() < 1e-9);
        let scores = half.scores(totals(600.0, 400.0, 4e6), totals(480.0, 520.0, 4e6));
        assert!(scores.share > SIGMA_MAX);
        let scores = half.scores(totals(500.0, 501.0, 4e6), totals(500.0, 500.0, 4e6));
        assert!(scores.ops.is_infinite());
        let split = plan("60:16k", 1.0);
        let bytes = 13_500.0 * 800.0;
        let scores = split.scores(totals(800.0, 0.0, bytes), totals(760.0, 0.0, bytes));
        assert!(scores.ops.abs() < SIGMA_MAX, "{scores:?}");
        let scores = split.scores(totals(1000.0, 0.0, bytes), totals(700.0, 0.0, bytes));
        assert!(scores.ops > SIGMA_MAX, "{scores:?}");
    }

    #[test]
    fn a_small_bias_of_all_plans_shows() {
        let scores = |ops| vec![Scores { ops, share: 0.0 }; 50];
        assert!(bias(&scores(0.5)).is_empty());
        assert_eq!(bias(&scores(0.8)).len(), 1);
    }

    #[test]
    fn an_early_end_is_seen() {
        let half = plan("--bs=4k", 0.5);
        let whole = totals(128.0, 128.0, 1_048_576.0);
        assert!(half.ends_differ(whole, whole).is_none());
        assert!(
            half.ends_differ(totals(40.0, 40.0, 320_000.0), whole)
                .is_some()
        );
        let early = totals(40.0, 40.0, 320_000.0);
        let mut uneven = Plan {
            uneven: true,
            ..half
        };
        assert!(uneven.ends_differ(early, whole).is_none());
        uneven.words.push("--io_size=5m".to_owned());
        assert!(uneven.ends_differ(early, whole).is_some());
    }
}
