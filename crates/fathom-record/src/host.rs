//! Hosts of a run: the ranks that ran the same plan, each with its clock.

use serde::{Deserialize, Serialize};

use crate::{JobRecord, Machine, PerDirectionRecord, ProcessorsRecord, Validity, Warning};

/// One of the hosts that ran a plan together, since record version 3.
///
/// A rank writes itself into its record. A sum of ranks has an entry of each, in order of rank,
/// with what it shows of that rank alone; a run alone has none.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct HostRecord {
    /// Name of the host.
    pub name: String,
    /// Rank, from 0.
    pub rank: u32,
    /// Number of ranks of the run.
    pub ranks: u32,
    /// Name by which a user of `--client` has called it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Port that was given with that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Program and version.
    pub program: String,
    /// Wall clock of the host.
    pub clock: HostClock,
    /// Agreed start on that clock, ns since 1970-01-01 UTC; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreed_ns: Option<u64>,
    /// Start of the first jobs on that clock, ns since 1970.
    pub start_ns: u64,
    /// End of the last job; 0 if none ran.
    pub end_ns: u64,
    /// Waves that ran here, if the ranks agreed on their starts by messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waves: Vec<HostWave>,
    /// The record was written while its jobs ran, and ends with `end_ns`: of a rank that was
    /// killed, it is the last.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
    /// Sections that other ranks alone have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Machine; in a sum alone, because a record of one host has it beside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// Use of the processors; in a sum alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<ProcessorsRecord>,
    /// Failed validity checks of its jobs; in a sum alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub validity: Vec<Validity>,
    /// Its warnings; in a sum alone, whose own are about the ranks together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// Results by section and direction, of those with ops; in a sum alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<HostResult>,
}

impl HostRecord {
    /// Returns start and end on the common clock, ns since 1970; `None` if no job ran.
    #[must_use]
    pub fn span(&self) -> Option<(u64, u64)> {
        let lasted_ns = i128::from(self.end_ns) - i128::from(self.start_ns);
        let drift = i128::from(self.clock.drift_ppb.unwrap_or(0));
        let drifted_ns = i64::try_from(lasted_ns * drift / 1_000_000_000).unwrap_or(0);
        let offset_ns = self.clock.offset_ns;
        let common = |own: u64, offset: i64| own.saturating_add_signed(offset.saturating_neg());
        (self.end_ns > 0).then(|| {
            let end_offset_ns = offset_ns.saturating_add(drifted_ns);
            let start_ns = common(self.start_ns, offset_ns);
            (start_ns, common(self.end_ns, end_offset_ns))
        })
    }
}

/// Wall clock of a host, against the one that the hosts have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostClock {
    /// Means of comparison: `kernel`, which keeps the clock as its time service directs; `messages`
    /// between the ranks, with rank 0's clock in common; or `none` in virtual time.
    pub compared: String,
    /// The clock is kept in step with others.
    pub is_synchronised: bool,
    /// This clock minus the common one, at the start of the first jobs.
    pub offset_ns: i64,
    /// Largest error of the offset; `None` if nothing is known of it.
    pub bound_ns: Option<u64>,
    /// Rate of this clock against the common one, in billionths; `None` if it was not compared.
    pub drift_ppb: Option<i64>,
}

/// Wave of a host whose start was agreed on. Times are those of its own clock, ns since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostWave {
    /// Number of the wave, from 0.
    pub wave: u32,
    /// Agreed start.
    pub agreed_ns: u64,
    /// Largest error of the agreed start against the common clock.
    pub bound_ns: u64,
    /// Start of the first job.
    pub start_ns: u64,
    /// End of the last job.
    pub end_ns: u64,
}

/// Result of one section and direction on a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostResult {
    /// Name of the section; its clones are one.
    pub job: String,
    /// `read`, `write` or `trim`.
    pub direction: String,
    /// Ops completed.
    pub ios: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Runtime: the longest of the clones'.
    pub runtime_ms: u64,
    /// Latency of the figures below: `resp` if the ops had due times, else `clat`, else `lat`;
    /// `None` if none was kept.
    pub latency: Option<String>,
    /// Mean.
    pub mean_ns: f64,
    /// Median, from the histogram; `None` without one.
    pub p50_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// Largest.
    pub max_ns: u64,
    /// `slow` or `fast`, if the host is off the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
}

impl HostResult {
    /// Returns ops per second.
    #[must_use]
    pub fn iops(&self) -> f64 {
        per_second(self.ios, self.runtime_ms)
    }

    /// Returns bytes per second.
    #[must_use]
    pub fn bytes_per_s(&self) -> f64 {
        per_second(self.bytes, self.runtime_ms)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate")]
fn per_second(amount: u64, runtime_ms: u64) -> f64 {
    match runtime_ms {
        0 => 0.0,
        ms => amount as f64 * 1000.0 / ms as f64,
    }
}

/// Returns the results of a host's jobs by section and direction; hidden jobs are left out.
pub(crate) fn results(jobs: &[JobRecord]) -> Vec<HostResult> {
    let shown = jobs.iter().filter(|job| !job.display.hidden);
    let shown: Vec<&JobRecord> = shown.collect();
    let mut results = Vec::new();
    for (at, job) in shown.iter().enumerate() {
        if shown[..at].iter().any(|earlier| earlier.name == job.name) {
            continue;
        }
        let mut clones = shown[at + 1..]
            .iter()
            .filter(|later| later.name == job.name);
        let Some(first) = clones.next() else {
            add_results(&mut results, job);
            continue;
        };
        let mut sum = (*job).clone();
        sum.add(first);
        clones.for_each(|clone| sum.add(clone));
        add_results(&mut results, &sum);
    }
    results
}

/// Adds the directions of a job that have ops.
fn add_results(results: &mut Vec<HostResult>, job: &JobRecord) {
    let PerDirectionRecord { read, write, trim } = &job.directions;
    for (name, direction) in [("read", read), ("write", write), ("trim", trim)] {
        if direction.ios == 0 && direction.bytes == 0 {
            continue;
        }
        let kept = [
            ("resp", &direction.resp),
            ("clat", &direction.clat),
            ("lat", &direction.lat),
        ];
        let kept = kept
            .into_iter()
            .find_map(|(name, latency)| Some((name, latency.as_ref()?)));
        let histogram = kept.and_then(|(_, latency)| latency.histogram.as_ref());
        let histogram = histogram.filter(|histogram| histogram.count() > 0);
        let summary = kept.map(|(_, latency)| &latency.summary);
        results.push(HostResult {
            job: job.name.clone(),
            direction: name.to_owned(),
            ios: direction.ios,
            bytes: direction.bytes,
            runtime_ms: direction.runtime_ms,
            latency: kept.map(|(name, _)| name.to_owned()),
            mean_ns: summary.map_or(0.0, |summary| summary.mean()),
            p50_ns: histogram.map(|histogram| histogram.percentile(50.0)),
            p99_ns: histogram.map(|histogram| histogram.percentile(99.0)),
            max_ns: summary.map_or(0, |summary| summary.max()),
            mark: None,
        });
    }
}
