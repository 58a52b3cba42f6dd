//! Loads that are asked of open-loop runs, and their division among the jobs.
//!
//! fio's rates are those of a job, and each clone of `numjobs` is one. A load is that of all jobs
//! together, so each gets an equal part:
//!
//! ```text
//! 9,000 IOPS, numjobs=3 ─► rate_iops=3000 in each
//! 9,000 IOPS, numjobs=3, rw=randrw, rwmixread=70 ─► rate_iops=2100,900 in each
//! ```

use fathom_core::Nanos;
use fathom_job::{Job, Plan, ReadWrite};

use super::{LabPlan, RunText, Setting};
use crate::order::Slot;

/// Load of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Rate that is asked of all jobs together, ops or bytes per second; `None` for a closed loop.
    pub rate: Option<u64>,
    /// Duration of the run; `None` for that of the job.
    pub length: Option<Nanos>,
}

/// Load of a curve's cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CurveLoad {
    /// The closed-loop maximum.
    Max,
    /// A share of it.
    Share(f64),
}

/// Properties of jobs on which the division of a load depends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpenLoop {
    /// Jobs that share the load, clones included.
    pub jobs: u64,
    /// Percentage of reads of jobs that read and write.
    reads_percent: Option<u8>,
    /// Shares of the ops that read, write and trim.
    shares: [f64; 3],
    /// The jobs say how ops arrive; otherwise they arrive at random times.
    has_process: bool,
    /// Duration of the jobs; `None` if one has none, or they differ.
    pub length: Option<Nanos>,
    /// Largest rate of a job.
    rate_max: u64,
}

/// Reason why a load cannot be divided among jobs, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Indivisible {
    pub(crate) why: String,
    pub(crate) hint: String,
}

impl OpenLoop {
    /// Takes the properties from jobs; `vary` is the option that sets the load.
    ///
    /// # Errors
    /// A load would not be that of all jobs together.
    pub(crate) fn of(plan: &Plan, vary: &str) -> Result<Self, Indivisible> {
        let jobs = &plan.jobs;
        refuse_rates(jobs)?;
        if let Some(job) = jobs.iter().skip(1).find(|job| job.options.stonewall) {
            return Err(indivisible(
                format!(
                    "job `{}` waits for those before it: they share no load",
                    job.name
                ),
                "remove `stonewall`, or describe one job",
            ));
        }
        let reads_percent = reads_percent(jobs, vary)?;
        let clones = |job: &Job| u64::from(job.options.numjobs.max(1));
        let all: u64 = jobs.iter().map(clones).sum();
        let mut shares = [0.0; 3];
        for job in jobs {
            let part = clones(job) as f64 / all as f64;
            let reads = reads_percent.map_or(0.0, |percent| f64::from(percent) / 100.0);
            match job.options.rw {
                ReadWrite::Read => shares[0] += part,
                ReadWrite::Write => shares[1] += part,
                ReadWrite::Mixed => {
                    shares[0] += part * reads;
                    shares[1] += part * (1.0 - reads);
                }
                ReadWrite::Trim | ReadWrite::TrimWrite => shares[2] += part,
            }
        }
        let mut lengths = jobs.iter().map(|job| job.options.runtime);
        let first = lengths.next().flatten();
        Ok(Self {
            jobs: all,
            reads_percent,
            shares,
            has_process: jobs.iter().any(|job| job.written("rate_process").is_some()),
            length: first.filter(|_| lengths.all(|length| length == first)),
            rate_max: rate_max(vary),
        })
    }

    /// Creates the properties of `jobs` jobs that only read, as ops per second divide among them.
    #[cfg(test)]
    pub(crate) fn of_jobs(jobs: u64) -> Self {
        Self {
            jobs,
            rate_max: rate_max(RATE_IOPS),
            ..Self::default()
        }
    }

    /// Returns the load nearest to `rate` that can be divided: the same whole rate for each job, at
    /// least 1 per second in each direction.
    #[must_use]
    pub fn nearest(&self, rate: f64) -> u64 {
        let each = whole((rate / self.jobs as f64).round());
        let each = each.max(self.least()).min(self.rate_max);
        each.saturating_mul(self.jobs)
    }

    /// Returns the smallest load.
    #[must_use]
    pub fn smallest(&self) -> u64 {
        self.least() * self.jobs
    }

    /// Returns the largest load.
    #[must_use]
    pub const fn most(&self) -> u64 {
        self.rate_max.saturating_mul(self.jobs)
    }

    /// Returns the share of a load that is asked of a direction; `None` of syncs, which have no
    /// rate.
    #[must_use]
    pub fn share_of(&self, direction: &str) -> Option<f64> {
        match direction {
            "all" => Some(1.0),
            "read" => Some(self.shares[0]),
            "write" => Some(self.shares[1]),
            "trim" => Some(self.shares[2]),
            _ => None,
        }
    }

    /// Returns the smallest rate of a job.
    fn least(&self) -> u64 {
        match self.reads_percent {
            None | Some(0 | 100) => 1,
            Some(percent) => 100_u64.div_ceil(percent.min(100 - percent).into()),
        }
    }

    /// Returns the options of each job under a load.
    fn settings(&self, vary: &str, load: &Load) -> Vec<Setting> {
        let mut settings = Vec::new();
        if let Some(rate) = load.rate {
            let each = rate / self.jobs.max(1);
            let value = match self.reads_percent {
                None => each.to_string(),
                Some(percent) => {
                    let reads = (each * u64::from(percent) + 50) / 100;
                    format!("{reads},{}", each - reads)
                }
            };
            settings.push(Setting::of_job(vary, &value));
            if !self.has_process {
                settings.push(Setting::of_job("rate_process", "poisson"));
            }
        }
        if let Some(length) = load.length {
            let microseconds = length.get() / 1_000;
            settings.push(Setting::of_job("runtime", &format!("{microseconds}us")));
        }
        settings
    }
}

impl LabPlan {
    /// Returns the texts of a run under its load.
    ///
    /// # Panics
    /// If there is no such cell or variant.
    #[must_use]
    pub fn run_of_slot(&self, slot: &Slot) -> RunText {
        let Some(load) = &slot.load else {
            return self.run_of(slot.cell, slot.variant, slot.seed);
        };
        let jobs = self.open_loop(slot.cell, slot.variant);
        let added = jobs.settings(self.vary(), load);
        let (cell, variant) = (&self.cells[slot.cell], &self.variants[slot.variant]);
        let settings = cell.settings().chain(&variant.settings).chain(&added);
        let settings: Vec<&Setting> = settings.collect();
        self.run_with(variant.job.as_ref(), &settings, slot.seed)
    }

    /// Returns the jobs of a cell and variant, as they share loads.
    ///
    /// # Panics
    /// If there is no such cell or variant, or loads are not varied.
    #[must_use]
    pub fn open_loop(&self, cell: usize, variant: usize) -> &OpenLoop {
        &self.open_loops[self.without_load(cell) * self.variants.len() + variant]
    }

    /// Returns the load of a curve's cell; `None` without a curve.
    #[must_use]
    pub fn curve_load(&self, cell: usize) -> Option<CurveLoad> {
        let curve = self.curve.as_ref()?;
        Some(match cell % (curve.loads.len() + 1) {
            0 => CurveLoad::Max,
            at => CurveLoad::Share(curve.loads[at - 1]),
        })
    }

    /// Returns the cell of the closed-loop maximum to which a curve's cell belongs.
    #[must_use]
    pub fn max_cell(&self, cell: usize) -> usize {
        let loads = self.curve.as_ref().map_or(1, |curve| curve.loads.len() + 1);
        cell - cell % loads
    }

    /// Returns the option that sets the load.
    pub(crate) fn vary(&self) -> &str {
        let of_curve = self.curve.as_ref().map(|curve| &curve.vary);
        let of_search = self.search.as_ref().map(|search| &search.vary);
        of_curve.or(of_search).map_or(RATE_IOPS, String::as_str)
    }

    /// Returns the bits of the largest rate of a job: a load can be halved as often.
    pub(crate) fn load_bits(&self) -> u64 {
        (u64::BITS - rate_max(self.vary()).leading_zeros()).into()
    }

    /// Returns the metric of all jobs together that the load is a rate of, and its unit.
    pub(crate) fn load_metric(&self) -> (&'static str, &'static str) {
        match self.vary() {
            RATE_IOPS => ("all.iops", "IOPS"),
            _ => ("all.bw", "B/s"),
        }
    }

    /// Returns the number of a cell among those of the axes in the file.
    fn without_load(&self, cell: usize) -> usize {
        cell / self.curve.as_ref().map_or(1, |curve| curve.loads.len() + 1)
    }
}

/// Refuses rates of the jobs themselves: the maximum is found without one.
fn refuse_rates(jobs: &[Job]) -> Result<(), Indivisible> {
    for job in jobs {
        for option in ["rate", RATE_IOPS] {
            if job.written(option).is_some() {
                return Err(indivisible(
                    format!("job `{}` sets `{option}` itself", job.name),
                    "remove it from the job: the load is varied",
                ));
            }
        }
    }
    Ok(())
}

/// Returns the percentage of reads of jobs that read and write.
fn reads_percent(jobs: &[Job], vary: &str) -> Result<Option<u8>, Indivisible> {
    let is_mixed = |job: &&Job| job.options.rw == ReadWrite::Mixed;
    if let Some(job) = jobs
        .iter()
        .find(|job| job.options.rw == ReadWrite::TrimWrite)
    {
        let why = format!("job `{}` writes where it trimmed, at one rate", job.name);
        return Err(indivisible(why, "vary the load of reads, writes or trims"));
    }
    let Some(mixed) = jobs.iter().find(is_mixed) else {
        return Ok(None);
    };
    let percent = mixed.options.rwmixread;
    let is_same = |job: &Job| is_mixed(&job) && job.options.rwmixread == percent;
    if !jobs.iter().all(is_same) {
        let why = "a load cannot be divided among jobs with different mixes of reads and writes";
        return Err(indivisible(
            why.into(),
            "give all jobs the same `rwmixread`",
        ));
    }
    if vary != RATE_IOPS {
        let why = "bytes per second cannot be divided between reads and writes";
        return Err(indivisible(why.into(), "vary `rate_iops`"));
    }
    Ok(Some(percent))
}

fn indivisible(why: String, hint: &str) -> Indivisible {
    Indivisible {
        why,
        hint: hint.into(),
    }
}

/// Converts a rate; negative ones and those of no number become 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates"
)]
const fn whole(rate: f64) -> u64 {
    rate as u64
}

/// Returns the largest rate of a job by the option that sets it: `rate_iops` has 32 bits, and of
/// `rate` the whole numbers that a float holds exactly are more than any device moves.
fn rate_max(vary: &str) -> u64 {
    match vary {
        RATE_IOPS => u32::MAX.into(),
        _ => 1 << f64::MANTISSA_DIGITS,
    }
}

/// Option that sets a load in ops per second.
const RATE_IOPS: &str = "rate_iops";

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(jobs: u64, reads_percent: Option<u8>) -> OpenLoop {
        OpenLoop {
            reads_percent,
            ..OpenLoop::of_jobs(jobs)
        }
    }

    #[track_caller]
    fn check(of: &OpenLoop, rate: u64, want: &str) {
        let load = Load {
            rate: Some(rate),
            length: None,
        };
        let settings = of.settings(RATE_IOPS, &load);
        assert_eq!(settings[0].value, want);
        assert_eq!(settings[1].value, "poisson");
    }

    #[test]
    fn each_job_gets_an_equal_part() {
        check(&jobs(3, None), 9_000, "3000");
        check(&jobs(3, Some(70)), 9_000, "2100,900");
        check(&jobs(1, Some(1)), 100, "1,99");
    }

    #[test]
    fn loads_are_multiples_of_the_jobs() {
        let three = jobs(3, None);
        assert_eq!(three.nearest(10_000.0), 9_999);
        assert_eq!(three.nearest(0.1), 3);
        assert_eq!(three.nearest(f64::INFINITY), three.most());
        assert_eq!(jobs(2, Some(70)).smallest(), 8);
        assert_eq!(jobs(2, Some(100)).smallest(), 2);
    }

    #[test]
    fn bytes_per_second_exceed_32_bits() {
        let bytes = OpenLoop {
            rate_max: rate_max("rate"),
            ..OpenLoop::of_jobs(2)
        };
        assert_eq!(bytes.nearest(20e9), 20_000_000_000);
        assert_eq!(bytes.nearest(f64::INFINITY), bytes.most());
        let many = OpenLoop {
            jobs: u64::from(u32::MAX),
            ..bytes
        };
        assert_eq!(many.nearest(f64::INFINITY), u64::MAX);
        assert_eq!(jobs(1, None).nearest(20e9), u64::from(u32::MAX));
    }
}
