//! Intervals of a single run's figures, from the windows of its timeline.
//!
//! Ops of a run depend on each other: a stall hits all that are in flight, a level wanders. The
//! textbook interval of a quantile takes them as independent, and holds the true value in 8 to 59 %
//! of such runs instead of 95. Here the windows are the sample, and their dependence is fitted.
//!
//! A quantile is found by Woodruff's inversion (1952): not the quantiles of the windows are
//! averaged, but the share of ops below the run's quantile, which is a mean. Its interval is turned
//! back into latencies by the exact histogram:
//!
//! ```text
//! share below  1 ┤              ,--------
//!         p + h  ┤ . . . . . ./.             p: 0.5 for the median
//!             p  ┤ . . . . ./. .             h: half-width of the interval of the windows' mean
//!         p − h  ┤ . . . ./. . .
//!              0 ┼──────´─┴─┴─┴───────────► latency
//!                        low   high
//! ```
//!
//! They describe one run: how well it has measured itself, for a reader and for a search that asks
//! whether to run on. They do not tell how the next run will differ, as it differs in more than
//! what varies within one: two runs are never compared by them.

use std::fmt;

use crate::series::SeriesMean;
use crate::windows::{Window, Windows};
use crate::{BEYOND_MIN, Histogram};

/// Intervals of the figures of one timeline, each of which holds the true value in about 95 % of
/// runs.
///
/// "About" is measured (`tests/statistics/within_run.rs`): with ops that depend on each other, 90 %
/// and more for the median, 85 % and more for the 99th percentile.
#[derive(Debug)]
pub struct WithinRun<'a> {
    windows: &'a Windows,
    histogram: Histogram,
    /// Windows until the end of measuring, those without ops included.
    whole: usize,
    /// Independent windows that would say as much about the median.
    effective: Option<f64>,
}

/// Interval of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Reason for which a figure has no interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NoInterval {
    /// The windows say as much as `effective` independent ones, fewer than
    /// [`EFFECTIVE_MIN`](WithinRun::EFFECTIVE_MIN).
    RunTooShort {
        /// Independent windows that would say as much.
        effective: f64,
        /// Length of a run that has enough if it goes on like this one.
        needed_ns: u64,
    },
    /// Fewer than ten ops are beyond the percentile.
    FewOps,
    /// The timeline has no such figure.
    NotMeasured,
}

impl<'a> WithinRun<'a> {
    /// Effective windows from which on there is an interval: with fewer, the fit of their
    /// dependence is itself a guess.
    pub const EFFECTIVE_MIN: f64 = 30.0;

    /// Prepares the intervals of a timeline.
    #[must_use]
    pub fn new(windows: &'a Windows) -> Self {
        let whole = windows.whole().min(WHOLE_MAX);
        let whole = whole.max(windows.windows.len());
        let mut run = Self {
            windows,
            histogram: windows.histogram(),
            whole,
            effective: None,
        };
        let median = run.histogram.interpolated(50.0);
        let shares = median.and_then(|median| run.share_below(median));
        run.effective = shares.map(|shares| shares.effective);
        run
    }

    /// Returns the number of independent windows that would say as much about the median; `None`
    /// without latencies, or of a run of less than a second.
    #[must_use]
    pub const fn effective_windows(&self) -> Option<f64> {
        self.effective
    }

    /// Returns the interval of a percentile, ns.
    ///
    /// # Errors
    /// The run is too short, or too few ops are beyond the percentile.
    pub fn percentile(&self, percent: f64) -> Result<Interval, NoInterval> {
        let percent = percent.clamp(0.0, 100.0);
        let ops = self.histogram.count() as f64;
        let value = self.histogram.interpolated(percent);
        let value = value.ok_or(NoInterval::NotMeasured)?;
        if percent.min(100.0 - percent) / 100.0 * ops < BEYOND_MIN - 1e-6 {
            return Err(NoInterval::FewOps);
        }
        let shares = self.share_below(value);
        let shares = self.of_enough(shares, self.effective)?;
        let half = 100.0 * shares.half_width();
        let (least, most) = self.bounds();
        let turned = |percent: f64, end: f64| {
            let inside = percent > 0.0 && percent < 100.0;
            let value = self.histogram.interpolated(percent).filter(|_| inside);
            value.map_or(end, |value| value.max(least).min(most))
        };
        Ok(Interval {
            low: turned(percent - half, least),
            high: turned(percent + half, most),
        })
    }

    /// Returns the interval around the ops per second of the run.
    ///
    /// # Errors
    /// The run is too short.
    pub fn ops_per_s(&self, of_run: f64) -> Result<Interval, NoInterval> {
        self.rate(of_run, |window| window.ios)
    }

    /// Returns the interval around the bytes per second of the run.
    ///
    /// # Errors
    /// The run is too short.
    pub fn bytes_per_s(&self, of_run: f64) -> Result<Interval, NoInterval> {
        self.rate(of_run, |window| window.bytes)
    }

    /// Returns the interval around the mean latency of the run, ns. Sums of a window are those of
    /// its buckets' midpoints, which are off by less than 1 %: enough for a width.
    ///
    /// # Errors
    /// The run is too short, or no latency was recorded.
    pub fn mean_latency(&self, of_run: f64) -> Result<Interval, NoInterval> {
        if self.histogram.count() == 0 {
            return Err(NoInterval::NotMeasured);
        }
        let ratio = self.of_enough(self.ratio(Window::latency_sum), self.effective)?;
        Ok(Interval::around(of_run, ratio.half_width()))
    }

    /// Returns half the width of the interval of the share of ops with latencies below a limit.
    ///
    /// It decides whether a percentile clears the limit, and asks only for enough windows of this
    /// share. The median's do not count: under a load that is too high, latencies grow all the time
    /// and say little about their median, while nearly all are beyond the limit.
    ///
    /// # Errors
    /// The run is too short, or no latency was recorded.
    pub fn share_half_width(&self, limit_ns: f64) -> Result<f64, NoInterval> {
        self.own_half_width(self.share_below(limit_ns))
    }

    /// Returns half the width of the interval of the mean latency, ns, with enough windows of its
    /// own.
    ///
    /// # Errors
    /// The run is too short, or no latency was recorded.
    pub fn mean_half_width(&self) -> Result<f64, NoInterval> {
        self.own_half_width(self.ratio(Window::latency_sum))
    }

    /// Returns half the width of the interval of a rate, per second, with enough windows of its
    /// own.
    ///
    /// # Errors
    /// The run is too short.
    pub fn rate_half_width(&self, amount: fn(&Window) -> u64) -> Result<f64, NoInterval> {
        self.own_half_width(self.rates(amount))
    }

    fn own_half_width(&self, fit: Option<SeriesMean>) -> Result<f64, NoInterval> {
        let effective = fit.map(|fit| fit.effective);
        self.of_enough(fit, effective).map(|fit| fit.half_width())
    }

    /// Returns the interval of a rate: of its mean over the windows that were measured as a whole.
    fn rate(&self, of_run: f64, amount: fn(&Window) -> u64) -> Result<Interval, NoInterval> {
        let fit = self.rates(amount);
        let own = fit.map(|fit| fit.effective);
        let effective = match (own, self.effective) {
            (Some(own), Some(median)) => Some(own.min(median)),
            (own, _) => own,
        };
        let fit = self.of_enough(fit, effective)?;
        Ok(Interval::around(of_run, fit.half_width()))
    }

    /// Fits a rate to the windows that were measured as a whole.
    fn rates(&self, amount: fn(&Window) -> u64) -> Option<SeriesMean> {
        let whole = self.windows.whole().min(self.whole);
        let per_s = 1e9 / self.windows.width_ns.max(1) as f64;
        let values: Vec<f64> = (0..whole)
            .map(|index| {
                let window = self.windows.windows.get(index);
                window.map_or(0.0, |window| amount(window) as f64 * per_s)
            })
            .collect();
        SeriesMean::of(&values)
    }

    /// Returns the fit of a mean, if the run has enough windows for one.
    fn of_enough(
        &self,
        fit: Option<SeriesMean>,
        effective: Option<f64>,
    ) -> Result<SeriesMean, NoInterval> {
        let windows = self.windows.whole().min(self.whole);
        let effective = effective.unwrap_or(windows as f64);
        match fit.filter(|_| effective >= Self::EFFECTIVE_MIN) {
            Some(fit) => Ok(fit),
            None => Err(NoInterval::RunTooShort {
                effective,
                needed_ns: self.needed_ns(effective),
            }),
        }
    }

    /// Returns the length of a run with enough windows, if those of this one count as `effective`.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates; not negative"
    )]
    fn needed_ns(&self, effective: f64) -> u64 {
        let measured = self.windows.end_ns.max(self.windows.width_ns) as f64;
        (measured * Self::EFFECTIVE_MIN / effective.max(1.0)).ceil() as u64
    }

    /// Returns the smallest and the largest latency, ns.
    fn bounds(&self) -> (f64, f64) {
        let windows = self.windows.windows.iter();
        let windows = windows.filter(|window| !window.bins.is_empty());
        windows.fold((f64::INFINITY, 0.0), |(least, most), window| {
            (
                least.min(window.min_ns as f64),
                most.max(window.max_ns as f64),
            )
        })
    }

    /// Fits the share of ops below a latency.
    fn share_below(&self, value: f64) -> Option<SeriesMean> {
        self.ratio(|window| window.latencies_below(value))
    }

    /// Fits a mean over ops: of a window's amount, per op. A window counts by its ops, so one in
    /// which a device stalls and one with a thousand times as many ops do not weigh the same.
    fn ratio(&self, amount: impl Fn(&Window) -> f64) -> Option<SeriesMean> {
        let ops = self.histogram.count() as f64;
        if ops <= 0.0 {
            return None;
        }
        let all = self.windows.windows.iter();
        let amounts: Vec<(f64, f64)> = all
            .map(|window| (amount(window), window.latencies() as f64))
            .collect();
        let mean = amounts.iter().map(|(amount, _)| amount).sum::<f64>() / ops;
        let per_window = ops / self.whole as f64;
        // Deviations from what the ops of the window would make on average; their mean is 0.
        let deviations = amounts.iter().map(|(amount, ops)| amount - mean * ops);
        let mut deviations: Vec<f64> = deviations.map(|value| value / per_window).collect();
        deviations.resize(self.whole, 0.0);
        SeriesMean::of(&deviations)
    }
}

impl Interval {
    /// Returns the interval of an estimate that is not negative.
    fn around(estimate: f64, half_width: f64) -> Self {
        Self {
            low: (estimate - half_width).max(0.0),
            high: estimate + half_width,
        }
    }
}

impl fmt::Display for NoInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RunTooShort {
                effective,
                needed_ns,
            } => write!(
                f,
                "its windows say as much as {effective:.0} independent ones, 30 are needed: \
                 a run of {} s",
                needed_ns.div_ceil(1_000_000_000)
            ),
            Self::FewOps => f.write_str("fewer than ten ops are beyond this percentile"),
            Self::NotMeasured => f.write_str("not recorded by windows"),
        }
    }
}

/// Windows that are evaluated at most: a stored record may claim any time.
const WHOLE_MAX: usize = 4 * crate::Timeline::WINDOWS_MAX;
