//! Intervals within a run against runs whose true quantiles are known: of 1,000 runs of 240 windows
//! of each kind, a known share of intervals holds the true value.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "latencies are whole nanoseconds"
)]

use fathom_core::Taus258;
use fathom_stats::{Histogram, Interval, NoInterval, Window, Windows, WithinRun, standard_normal};

/// Kind of a run.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Ops do not depend on each other.
    Independent,
    /// In one window of 50, three ops of ten take 30 times as long.
    Stalls,
    /// The level of a window carries over this share of its deviation.
    Wanders(f64),
}

/// Median of an op, ns.
const MEDIAN_NS: f64 = 100_000.0;
/// Standard deviation of the logarithm of a latency, within a window and of the windows' level.
const WITHIN: f64 = 0.5;
const LEVEL: f64 = 0.25;
const STALLED_WINDOWS: f64 = 0.02;
const STALLED_OPS: f64 = 0.3;
const STALL_TIMES: f64 = 30.0;
const WINDOWS: usize = 240;
const OPS: u64 = 200;
const RUNS: u64 = 1000;

impl Kind {
    /// Returns the share of ops that take longer.
    fn beyond(self, ns: f64) -> f64 {
        let spread = match self {
            Self::Wanders(_) => WITHIN.hypot(LEVEL),
            _ => WITHIN,
        };
        let tail = |ns: f64| libm::erfc((ns / MEDIAN_NS).ln() / spread / 2.0_f64.sqrt()) / 2.0;
        match self {
            Self::Stalls => {
                let late = STALLED_WINDOWS * STALLED_OPS;
                (1.0 - late) * tail(ns) + late * tail(ns / STALL_TIMES)
            }
            _ => tail(ns),
        }
    }

    /// Returns the true percentile.
    fn truth(self, percent: f64) -> f64 {
        let (mut low, mut high) = (1.0, 1e12);
        for _ in 0..200 {
            let middle = f64::midpoint(low, high);
            if self.beyond(middle) > 1.0 - percent / 100.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Draws a run.
    fn run(self, draws: &mut Draws) -> Windows {
        let mut level = draws.normal();
        let windows = (0..WINDOWS).map(|_| {
            if let Self::Wanders(carried) = self {
                level = carried * level + (1.0 - carried * carried).sqrt() * draws.normal();
            }
            self.window(level, draws)
        });
        Windows {
            width_ns: 100_000_000,
            end_ns: WINDOWS as u64 * 100_000_000,
            windows: windows.collect(),
        }
    }

    fn window(self, level: f64, draws: &mut Draws) -> Window {
        let scale = match self {
            Self::Wanders(_) => (LEVEL * level).exp(),
            _ => 1.0,
        };
        let stalls = matches!(self, Self::Stalls) && draws.random.unit() < STALLED_WINDOWS;
        let (mut min_ns, mut max_ns) = (u64::MAX, 0);
        for _ in 0..OPS {
            let late = stalls && draws.random.unit() < STALLED_OPS;
            let times = if late { STALL_TIMES } else { 1.0 };
            let latency = (draws.latency() * scale * times) as u64;
            (min_ns, max_ns) = (latency.min(min_ns), latency.max(max_ns));
            draws.counts[Histogram::index_of(latency)] += 1;
        }
        let first = Histogram::index_of(min_ns);
        let counts = &mut draws.counts[first..=Histogram::index_of(max_ns)];
        let bins = (first..).zip(counts.iter_mut().map(std::mem::take));
        Window {
            ios: OPS,
            bytes: OPS,
            min_ns,
            max_ns,
            bins: bins.filter(|(_, count)| *count > 0).collect(),
        }
    }
}

/// Source of random values.
struct Draws {
    random: Taus258,
    /// Latencies at equally likely places of their distribution.
    latencies: Vec<f64>,
    /// Places drawn ahead.
    places: Vec<u16>,
    /// Latencies of a window by bucket.
    counts: Vec<u64>,
}

impl Draws {
    fn new(seed: u64) -> Self {
        let places = 1 << 13;
        let latency =
            |place| Kind::Independent.truth((f64::from(place) + 0.5) / f64::from(places) * 100.0);
        Self {
            random: Taus258::new(seed),
            latencies: (0..places).map(latency).collect(),
            places: Vec::new(),
            counts: vec![0; Histogram::BUCKETS],
        }
    }

    fn normal(&mut self) -> f64 {
        standard_normal(&mut self.random)
    }

    fn latency(&mut self) -> f64 {
        // One draw has the places of four.
        if self.places.is_empty() {
            let bits = self.random.next_u64();
            self.places
                .extend([0, 16, 32, 48].map(|shift| (bits >> shift) as u16));
        }
        let place = self.places.pop().unwrap() >> 3;
        self.latencies[usize::from(place)]
    }
}

/// Numbers of runs.
#[derive(Debug, Default)]
struct Held {
    /// The interval of the median holds the true one.
    median: u64,
    /// And that of the 99th percentile.
    p99: u64,
    /// Runs without intervals.
    refused: u64,
}

fn held(kind: Kind) -> Held {
    let mut draws = Draws::new(7);
    let mut held = Held::default();
    let truths = [50.0, 99.0].map(|percent| kind.truth(percent));
    for _ in 0..RUNS {
        let windows = kind.run(&mut draws);
        let run = WithinRun::new(&windows);
        let holds = |percent, truth| {
            run.percentile(percent)
                .map(|interval| (interval.low..=interval.high).contains(&truth))
        };
        match (holds(50.0, truths[0]), holds(99.0, truths[1])) {
            (Ok(median), Ok(p99)) => {
                held.median += u64::from(median);
                held.p99 += u64::from(p99);
            }
            (_, why) => {
                assert!(
                    matches!(why, Err(NoInterval::RunTooShort { .. })),
                    "{why:?}"
                );
                held.refused += 1;
            }
        }
    }
    held
}

#[track_caller]
fn check(kind: Kind) {
    let held = held(kind);
    // A few runs of the last kind look as if they wandered more than they do.
    assert!(held.refused < 50, "{kind:?}: {held:?}");
    let given = RUNS - held.refused;
    assert!(held.median * 10 >= given * 9, "{kind:?}: {held:?}");
    assert!(held.p99 * 20 >= given * 17, "{kind:?}: {held:?}");
}

#[test]
fn independent_ops() {
    check(Kind::Independent);
}

#[test]
fn stalls() {
    check(Kind::Stalls);
}

#[test]
fn a_level_that_wanders() {
    check(Kind::Wanders(0.5));
}

#[test]
fn a_level_that_wanders_further() {
    check(Kind::Wanders(0.7));
}

#[test]
fn a_level_that_hardly_returns_has_no_interval() {
    let held = held(Kind::Wanders(0.9));
    assert!(held.refused * 10 >= RUNS * 9, "{held:?}");
}

/// Run of 96 windows with these ops, and the latencies of the bins.
fn golden(ios: impl Fn(u64) -> u64, bins: impl Fn(u64) -> Vec<(usize, u64)>) -> Windows {
    let window = |number| Window {
        ios: ios(number),
        bytes: 512 * ios(number),
        min_ns: 1,
        max_ns: 127,
        bins: bins(number),
    };
    Windows {
        width_ns: 100_000_000,
        end_ns: 9_650_000_000,
        windows: (0..96).map(window).collect(),
    }
}

#[track_caller]
fn close(got: Result<Interval, NoInterval>, low: f64, high: f64) {
    let got = got.unwrap();
    for (got, want) in [(got.low, low), (got.high, high)] {
        assert!((got - want).abs() <= want * 1e-9, "{got}, not {want}");
    }
}

/// SciPy 1.17.1 and NumPy 2.4.6: mean ± `t.ppf(0.975, n / tau - 1) * sqrt(variance * tau / n)`,
/// with `phi = (n * r1 + 1) / (n - 4)`, `tau = 1 + 2 * sum((1 - k / n) * phi**k)` over all lags
/// and `variance = sum(d**2) / (n - tau)`.
#[test]
fn rates() {
    let ios = |i: u64| 200 + (i * i * 7 + 3 * i) % 41 + (i / 4 % 4) * 8;
    let windows = golden(ios, |_| Vec::new());
    let run = WithinRun::new(&windows);
    let mean = (0..96).map(ios).sum::<u64>() as f64 * 10.0 / 96.0;
    let (low, high) = (2_276.646_514_703_208, 2_386.061_818_630_124_5);
    close(run.ops_per_s(mean), low, high);
    close(run.bytes_per_s(512.0 * mean), 512.0 * low, 512.0 * high);
    assert_eq!(run.percentile(50.0), Err(NoInterval::NotMeasured));
    assert_eq!(run.mean_latency(1.0), Err(NoInterval::NotMeasured));
}

/// The same, of the shares of ops below the quantile; turned back by linear interpolation of the
/// cumulated counts.
#[test]
fn quantiles() {
    let index = |i: u64, k: u64| usize::try_from(40 + i * i / 2 % 7 + i / 2 % 3 + k).unwrap();
    let bins = |i: u64| (0..20).map(|k| (index(i, k), 1 + (i + k) % 3)).collect();
    let mut windows = golden(|_| 1, bins);
    let run = WithinRun::new(&windows);
    let effective = run.effective_windows().unwrap();
    assert!((effective - 56.176_910_485_827).abs() < 1e-9, "{effective}");
    close(
        run.percentile(50.0),
        53.001_425_742_236_03,
        54.056_730_054_306_74,
    );
    close(
        run.percentile(90.0),
        61.246_626_087_396_05,
        62.351_995_852_332_28,
    );
    close(
        run.percentile(99.0),
        64.825_200_303_305_82,
        65.688_370_944_726_43,
    );
    let mean = (52.495_246_149_537_78 + 53.571_420_517_128_885) / 2.0;
    close(
        run.mean_latency(mean),
        52.495_246_149_537_78,
        53.571_420_517_128_885,
    );
    assert_eq!(run.percentile(99.9), Err(NoInterval::FewOps));
    // Half of it is too short, and says how long the run should be.
    windows.windows.truncate(48);
    windows.end_ns = 4_800_000_000;
    let Err(NoInterval::RunTooShort {
        effective,
        needed_ns,
    }) = WithinRun::new(&windows).percentile(50.0)
    else {
        panic!("half of the run is enough");
    };
    assert!(effective < 30.0);
    assert_eq!(needed_ns, (4.8e9 * 30.0 / effective).ceil() as u64);
}

#[test]
fn equal_windows_have_an_interval_without_width() {
    let windows = golden(|_| 100, |_| vec![(50, 100)]);
    let run = WithinRun::new(&windows);
    close(run.ops_per_s(1000.0), 1000.0, 1000.0);
    close(run.percentile(50.0), 50.5, 50.5);
}

#[test]
fn stored_windows_that_make_no_sense_do_not_panic() {
    let absurd = Window {
        ios: u64::MAX,
        bytes: 0,
        min_ns: 9,
        max_ns: 3,
        bins: vec![(usize::MAX, u64::MAX), (1, u64::MAX)],
    };
    for (width_ns, end_ns) in [(0, u64::MAX), (1, 0), (u64::MAX, u64::MAX)] {
        let mut windows = Windows {
            width_ns,
            end_ns,
            windows: vec![absurd.clone(); 3000],
        };
        let run = WithinRun::new(&windows);
        let _no_matter = (
            run.percentile(50.0),
            run.ops_per_s(f64::NAN),
            run.mean_latency(1.0),
        );
        windows.merge(&windows.clone(), u64::MAX);
    }
}
