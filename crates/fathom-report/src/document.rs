//! JSON report: fio's schema, key by key in its order, with additions nested under `"fathom"`.

use fathom_core::IoPriority;
use fathom_record::{
    DirectionRecord, Display, Idleness, JobRecord, LatencyTargetRecord, Record, SyncRecord, Unified,
};
use fathom_stats::Latency;

use crate::block_lives::block_object;
use crate::disks;
use crate::distribution::{
    BATCHES, LEVELS, LONG, LatencyShares, SHORT, depth_shares, level_shares,
};
use crate::extensions;
use crate::group::{ReportedJob, reported_jobs};
use crate::json::Object;
use crate::number::percent;
use crate::percentiles::percentiles;
use crate::priorities;
use crate::rate::{GroupRate, GroupRates, bytes_per_s, exact_ops_per_s, of_direction};
use crate::steady::steady_object;
use crate::unified;
use crate::{FIO_VERSION, show_disks};

/// Renders the record in fio's JSON; with `plus`, including histogram bins (`json+`).
pub(crate) fn json(record: &Record, plus: bool) -> String {
    let entries = reported_jobs(record);
    let mut document = Object::new();
    document.set("fio version", FIO_VERSION);
    document.set("timestamp", record.timestamp_ms / 1000);
    document.set("timestamp_ms", record.timestamp_ms);
    document.set("time", record.time.as_str());
    if !record.global_options.is_empty() {
        document.set("global options", options(&record.global_options));
    }
    let rates = GroupRates::of_groups(&entries);
    let frame = Frame::of_run(record);
    let jobs: Vec<Object> = entries
        .iter()
        .map(|entry| {
            let mut out = job(frame, &rates[&entry.job.group_id], entry, plus);
            out.set("fathom", extensions::job(entry, plus));
            out
        })
        .collect();
    document.set("jobs", jobs);
    if show_disks(record) {
        document.set("disk_util", disk_objects(record));
    }
    if let Some(found) = &record.idleness {
        document.set("cpu_idleness", idleness(found));
    }
    document.set("fathom", extensions::run(record, plus));
    document.into_document()
}

/// Returns the elements of `disk_util`.
pub(crate) fn disk_objects(record: &Record) -> Vec<Object> {
    let disks = record.disks.iter();
    disks
        .map(|disk| disks::object(disk, &record.disks))
        .collect()
}

/// Document that a job is an element of, which decides on some of its keys, as in fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// A run, with the time since it began and until it ends, s.
    Run { elapsed_s: u64, eta_s: u64 },
    /// The run of a client.
    Client,
    /// The sum of all clients, which has no target of its own.
    AllClients,
}

impl Frame {
    fn of_run(record: &Record) -> Self {
        let elapsed_s = record.elapsed_ms.div_ceil(1000);
        let eta_s = if elapsed_s < 3 {
            ETA_UNKNOWN
        } else {
            record.eta_s.unwrap_or(0)
        };
        Self::Run {
            elapsed_s,
            eta_s: eta_s.min(ETA_UNKNOWN),
        }
    }
}

/// Returns one element of `jobs`, without Fathom's additions.
pub(crate) fn job(
    frame: Frame,
    rates: &GroupRates<'_>,
    entry: &ReportedJob<'_>,
    plus: bool,
) -> Object {
    let job: &JobRecord = &entry.job;
    let mut out = Object::new();
    out.set("jobname", job.name.as_str());
    out.set("groupid", job.group_id);
    out.set("job_start", job.start_ms);
    out.set("error", error_of(job));
    if let Frame::Run { elapsed_s, eta_s } = frame {
        out.set("eta", eta_s);
        out.set("elapsed", elapsed_s);
    }
    if !job.options.is_empty() {
        out.set("job options", options(&job.options));
    }
    let shown = Shown { job, plus };
    for (kind, name) in unified::shown(job) {
        out.set(
            name,
            direction(shown, of_direction(job, kind), &rates.each[kind]),
        );
    }
    if job.display.unified != Unified::Mixed {
        out.set("sync", sync(&job.sync, &job.display, plus));
    }
    if let Some(mixed) = &entry.mixed {
        out.set(unified::MIXED, direction(shown, mixed, &rates.mixed));
    }
    out.set("job_runtime", job.runtime_ms);
    let cpu_share = |time_us: u64| percent(time_us as f64, job.cpu.wall_us as f64);
    out.set("usr_cpu", cpu_share(job.cpu.user_us));
    out.set("sys_cpu", cpu_share(job.cpu.system_us));
    out.set("ctx", job.cpu.context_switches);
    out.set("majf", job.cpu.major_faults);
    out.set("minf", job.cpu.minor_faults);
    distributions(&mut out, job);
    if let Some(tolerated) = shown_errors(job) {
        out.set("total_err", tolerated.total);
        out.set("first_error", tolerated.first);
    }
    // As in fio: for every job that ran, with or without a target.
    if frame != Frame::AllClients && job.depth_level.iter().any(|&ops| ops > 0) {
        latency_target(&mut out, job);
    }
    if let Some(description) = &job.description {
        out.set("desc", description.as_str());
    }
    if let Some(lives) = &job.block_lives {
        out.set("block", block_object(lives, &job.display));
    }
    if let Some(steady) = &job.steady_state {
        out.set("steadystate", steady_object(steady));
    }
    if let Some(resets) = job.zone_resets {
        out.set("zone_resets", resets);
    }
    out
}

/// Sets fio's keys of a latency target, which it prints for jobs without one too.
fn latency_target(out: &mut Object, job: &JobRecord) {
    let target = job.latency_target.unwrap_or(LatencyTargetRecord {
        share_percent: 100.0,
        depth: job.iodepth,
        ..LatencyTargetRecord::default()
    });
    out.set("latency_depth", target.depth);
    out.set("latency_target", target.target_ns);
    out.set("latency_target_ns", target.target_ns);
    out.set("latency_percentile", target.share_percent);
    out.set("latency_window", target.window_us);
    out.set("latency_window_us", target.window_us);
}

/// Returns the job's error, or else the first one it tolerated, as in fio.
pub(crate) fn error_of(job: &JobRecord) -> u32 {
    let tolerated = job.tolerated.map_or(0, |tolerated| tolerated.first);
    if job.error == 0 { tolerated } else { job.error }
}

/// Returns the tolerated errors, if they are printed.
pub(crate) fn shown_errors(job: &JobRecord) -> Option<fathom_record::Tolerated> {
    let tolerates = job.display.tolerates_errors;
    job.tolerated.or_else(|| tolerates.then(Default::default))
}

pub(crate) fn options(options: &[(String, String)]) -> Object {
    options
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

/// Job to render, with or without histogram bins.
#[derive(Clone, Copy)]
struct Shown<'a> {
    job: &'a JobRecord,
    plus: bool,
}

/// Returns `read`, `write` or `trim` of a job.
fn direction(shown: Shown<'_>, direction: &DirectionRecord, group: &GroupRate) -> Object {
    let display = &shown.job.display;
    let bytes_per_s = bytes_per_s(direction);
    let mut out = Object::new();
    out.set("io_bytes", direction.bytes);
    out.set("io_kbytes", direction.bytes / 1024);
    out.set("bw_bytes", bytes_per_s);
    out.set("bw", bytes_per_s / 1024);
    out.set("iops", exact_ops_per_s(direction));
    out.set("runtime", direction.runtime_ms);
    out.set("total_ios", direction.ios);
    out.set("short_ios", direction.short_ios);
    out.set("drop_ios", direction.dropped_ios);
    let slat = direction.slat.as_ref().filter(|_| shown.job.asynchronous);
    let kinds = [
        ("slat_ns", slat, display.slat_percentiles),
        ("clat_ns", direction.clat.as_ref(), display.clat_percentiles),
        ("lat_ns", direction.lat.as_ref(), display.lat_percentiles),
    ];
    for (key, latency_record, spread) in kinds {
        out.set(key, latency(latency_record, display, spread, shown.plus));
    }
    if let Some(list) = priorities(direction, shown) {
        out.set("prios", list);
    }
    let bandwidth = &direction.bandwidth;
    out.set("bw_min", bandwidth.min());
    out.set("bw_max", bandwidth.max());
    out.set("bw_agg", group.share(bandwidth.mean()));
    out.set("bw_mean", bandwidth.mean());
    out.set("bw_dev", bandwidth.stddev());
    out.set("bw_samples", bandwidth.count());
    let iops = &direction.iops;
    out.set("iops_min", iops.min());
    out.set("iops_max", iops.max());
    out.set("iops_mean", iops.mean());
    out.set("iops_stddev", iops.stddev());
    out.set("iops_samples", iops.count());
    out
}

/// Returns an entry per I/O priority.
fn priorities(direction: &DirectionRecord, shown: Shown<'_>) -> Option<Vec<Object>> {
    let display = &shown.job.display;
    let (name, spread) = priorities::timed(display);
    let entries = priorities::sampled(direction)?.map(|entry| {
        let priority = IoPriority::from_raw(entry.priority);
        let mut out = Object::new();
        out.set("prioclass", u64::from(priority.class));
        out.set("prio", u64::from(priority.level));
        out.set("priohint", u64::from(priority.hint));
        let times = latency(Some(&entry.latency), display, spread, shown.plus);
        out.set(format!("{name}_ns"), times);
        out
    });
    Some(entries.collect())
}

/// Returns one kind of latency; with `spread` its percentiles, and with `plus` the bins as well.
pub(crate) fn latency(
    latency: Option<&Latency>,
    display: &Display,
    spread: bool,
    plus: bool,
) -> Object {
    let nothing = Latency::default();
    let latency = latency.unwrap_or(&nothing);
    let summary = &latency.summary;
    let mut out = Object::new();
    out.set("min", summary.min());
    out.set("max", summary.max());
    out.set("mean", summary.mean());
    out.set("stddev", summary.stddev());
    out.set("N", summary.count());
    let histogram = latency
        .histogram
        .as_ref()
        .filter(|_| spread && summary.count() > 0);
    if let Some(histogram) = histogram {
        let list: Object = percentiles(histogram, display)
            .map(|(percent, ns)| (format!("{percent:.6}"), ns))
            .collect();
        out.set("percentile", list);
        if plus {
            let bins: Object = histogram
                .bins()
                .map(|(ns, count)| (ns.to_string(), count))
                .collect();
            out.set("bins", bins);
        }
    }
    out
}

fn sync(sync: &SyncRecord, display: &Display, plus: bool) -> Object {
    let mut out = Object::new();
    out.set("total_ios", sync.ios);
    out.set("lat_ns", latency(Some(&sync.lat), display, true, plus));
    out
}

/// Sets the shares of ops by queue depth and by completion latency.
fn distributions(out: &mut Object, job: &JobRecord) {
    let levels = level_shares(job);
    let submits = depth_shares(&job.depth_submit, job.submissions);
    let completes = depth_shares(&job.depth_complete, job.reapings);
    let shares = LatencyShares::of(job);
    out.set("iodepth_level", named(LEVELS, levels));
    out.set("iodepth_submit", named(BATCHES, submits));
    out.set("iodepth_complete", named(BATCHES, completes));
    out.set("latency_ns", named(SHORT, shares.ns));
    out.set("latency_us", named(SHORT, shares.us));
    out.set("latency_ms", named(LONG, shares.ms));
}

fn named<const N: usize>(names: [&str; N], shares: [f64; N]) -> Object {
    names.into_iter().zip(shares).collect()
}

fn idleness(found: &Idleness) -> Object {
    let mut out = Object::new();
    out.set("system", found.all_percent);
    for (number, percent) in &found.each_percent {
        out.set(format!("cpu-{number}"), *percent);
    }
    out.set("unit_mean", found.unit_mean_us);
    out.set("unit_stddev", found.unit_stddev_us);
    out
}

/// fio's value of an unknown ETA, printed by every run shorter than three seconds.
const ETA_UNKNOWN: u64 = 2_147_483_647;
