//! Text report, in fio's layout.

use fathom_record::{DirectionRecord, Idleness, JobRecord, Record, errno_text};
use fathom_stats::{Latency, SampleStats};

use crate::block_lives::block_lines;
use crate::caveats::{caveats, notes};
use crate::characters::printable_lines;
use crate::device_trace;
use crate::disks;
use crate::distribution::{
    BATCHES, LEVELS, LONG, LatencyShares, SHORT, depth_shares, level_shares,
};
use crate::document::{error_of, shown_errors};
use crate::extensions::MODELLED;
use crate::group::{ReportedJob, reported_jobs};
use crate::hosts;
use crate::late::late_ops;
use crate::number::percent;
use crate::priorities;
use crate::rate::{GroupRate, GroupRates, Units, bytes_per_s, of_direction, ops_per_s};
use crate::seeks::seeks;
use crate::show_disks;
use crate::stalls::stall_lines;
use crate::steady::{latency_line, steady_line};
use crate::text_latency::{percentile_table, summary_line};
use crate::unified;

/// Style of a text report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextStyle {
    /// With Fathom's words and tables.
    Fathom,
    /// With fio's lines alone, for programs that parse them.
    Fio,
}

/// Renders jobs, groups, disk statistics, stalls, hosts and then the caveats.
pub(crate) fn text(record: &Record) -> String {
    let mut out = body(record, TextStyle::Fathom);
    out += &stall_lines(record);
    out += &printable_lines(&hosts::text(record));
    out += &caveats(record);
    out
}

/// Renders the report of a run under the name `fio`, whose readers look for fio's lines by their
/// words and their place: stalls and caveats stand where fio prints its notes, before the jobs;
/// errors are in fio's words; percentiles of `resp`, a second table, are in JSON alone. Warnings
/// whose messages were `told` before are left out.
#[must_use]
pub fn text_as_fio(record: &Record, told: &[String]) -> String {
    let stalls = stall_lines(record);
    let stalls = stalls.lines().filter(|line| !line.is_empty());
    let stalls: String = stalls.map(|line| format!("note: {line}\n")).collect();
    let hosts = printable_lines(&hosts::text(record));
    stalls + &notes(record, told) + &body(record, TextStyle::Fio) + &hosts
}

/// Renders fio's part of the report.
fn body(record: &Record, style: TextStyle) -> String {
    let entries = reported_jobs(record);
    let mut out = String::from("\n");
    if let Some(machine) = &record.modelled {
        out += &format!("{MODELLED}: {}\n", machine.file);
        if let Some(noise) = &machine.noise {
            out += &format!("assumed noise: {noise}\n");
        }
    }
    let groups = GroupRates::of_groups(&entries);
    for entry in &entries {
        out += &block(entry, &record.time, &groups[&entry.job.group_id], style);
    }
    for (group_id, rates) in &groups {
        out += &group_status(*group_id, rates);
    }
    if show_disks(record) && record.hosts.len() < hosts::MANY {
        out += "\nDisk stats (read/write):\n";
        let line = |disk| disks::line(disk, &record.disks);
        out.extend(record.disks.iter().map(line));
    }
    out += &modelled_seeks(record);
    out += &record
        .device_trace
        .as_ref()
        .map_or_else(String::new, device_trace::text);
    out + &record.idleness.as_ref().map_or_else(String::new, idleness)
}

/// Formats the seek statistics of modelled devices, if requested.
fn modelled_seeks(record: &Record) -> String {
    let devices = record.modelled.iter().flat_map(|machine| &machine.devices);
    let told = devices.filter_map(|device| {
        let seeks = seeks(device.seeks.as_ref()?);
        Some(format!("\n{}:\n{seeks}", device.names.join(", ")))
    });
    told.collect()
}

fn idleness(found: &Idleness) -> String {
    let mut out = format!("\nCPU idleness:\n  system: {:.2}%\n", found.all_percent);
    let each = found.each_percent.iter();
    let each: Vec<String> = each.map(|(_, percent)| format!("{percent:.2}%")).collect();
    if !each.is_empty() {
        out += &format!("  percpu: {}\n", each.join(", "));
    }
    out + &unit_of_work(found.unit_mean_us, found.unit_stddev_us)
}

/// Formats fio's line about its unit of work.
#[must_use]
pub fn unit_of_work(mean_us: f64, stddev_us: f64) -> String {
    format!("  unit work: mean={mean_us:.2}us, stddev={stddev_us:.2}\n")
}

/// Formats one job or group; empty if it neither completed an op nor failed.
fn block(entry: &ReportedJob<'_>, time: &str, rates: &GroupRates<'_>, style: TextStyle) -> String {
    let job: &JobRecord = &entry.job;
    let moved = job
        .directions
        .each()
        .iter()
        .any(|d| d.bytes > 0 || d.ios > 0);
    if !moved && job.error == 0 {
        return String::new();
    }
    let mut out = format!(
        "{}: (groupid={}, jobs={}): err={:2}{}: pid={}: {time}\n",
        job.name,
        job.group_id,
        entry.members,
        error_of(job),
        error_text(job, style),
        job.pid,
    );
    if let Some(description) = &job.description {
        out += &format!("  Description  : [{description}]\n");
    }
    for (kind, name) in unified::shown(job) {
        let direction = of_direction(job, kind);
        out += &direction_lines(job, name, direction, &rates.each[kind], style);
    }
    if let Some(mixed) = &entry.mixed {
        out += &direction_lines(job, unified::MIXED, mixed, &rates.mixed, style);
    }
    out += &latency_shares(job);
    out += &sync_lines(job);
    out += &cpu_line(job);
    out += &depth_lines(job);
    if let Some(errors) = shown_errors(job) {
        let text = errno_text(errors.first);
        out += &format!(
            "     errors    : total={}, first_error={}/<{text}>\n",
            errors.total, errors.first
        );
    }
    if job.repeated_requests > 0 {
        out += &format!(
            "     repeated  : requests={}, sent again by the engine\n",
            job.repeated_requests
        );
    }
    if let Some(verify) = job.verify.as_ref().filter(|_| style == TextStyle::Fathom) {
        out += &format!(
            "     verify    : blocks compared={}, unknown={}; reads that differ={}\n",
            verify.compared, verify.unknown, verify.mismatches
        );
    }
    out += &latency_line(job);
    out += &block_lines(job);
    out += &steady_line(job);
    out
}

/// Returns ` (error text)` for a job that failed.
fn error_text(job: &JobRecord, style: TextStyle) -> String {
    let of_fio = job.fio_error.as_ref();
    if let Some(found) = of_fio.filter(|_| style == TextStyle::Fio) {
        return format!(" ({})", found.text(job.error));
    }
    match (&job.error_text, error_of(job)) {
        (_, 0) => String::new(),
        (Some(text), _) => format!(" ({text})"),
        (None, error) => format!(" ({})", errno_text(error)),
    }
}

/// Returns the number of zones that a job has reset, for the lines of writes and trims.
fn zone_resets(job: &JobRecord, name: &str) -> String {
    match job.zone_resets {
        Some(resets) if ["write", "trim"].contains(&name) => format!("; {resets} zone resets"),
        _ => String::new(),
    }
}

/// Formats rates, latencies and samples of one direction; empty if no bytes were moved.
fn direction_lines(
    job: &JobRecord,
    name: &str,
    direction: &DirectionRecord,
    group: &GroupRate,
    style: TextStyle,
) -> String {
    if direction.bytes == 0 {
        return String::new();
    }
    let display = &job.display;
    let units = Units::of(display);
    let (bandwidth, other_bandwidth) = units.bandwidth(bytes_per_s(direction));
    let mut out = format!(
        "  {}: IOPS={}, BW={bandwidth} ({other_bandwidth})({}/{}msec){}\n",
        name,
        units.iops(ops_per_s(direction)),
        units.size(direction.bytes).0,
        direction.runtime_ms,
        zone_resets(job, name),
    );
    let slat = direction.slat.as_ref().filter(|_| job.asynchronous);
    let kinds = [
        ("slat", slat, display.slat_percentiles),
        ("clat", direction.clat.as_ref(), display.clat_percentiles),
        ("lat", direction.lat.as_ref(), display.lat_percentiles),
    ];
    for (title, latency, _) in kinds {
        out += &summary_line(title, latency);
    }
    out += &priorities::summary_lines(direction, display);
    for (title, latency, _) in kinds.into_iter().filter(|&(_, _, spread)| spread) {
        out += &percentile_table(title, latency, display);
    }
    out += &priorities::percentile_tables(direction, display);
    // Not fio's: latency from the due time, for jobs with a rate.
    out += &summary_line("resp", direction.resp.as_ref());
    if style == TextStyle::Fathom {
        out += &percentile_table("resp", direction.resp.as_ref(), display);
    }
    out += &lag_line(direction.lag.as_ref());
    // Not fio's: time that ops waited for an offload worker.
    out += &summary_line("queued", direction.queued.as_ref());
    out += &bandwidth_line(&direction.bandwidth, display.kb_base, group);
    out += &iops_line(&direction.iops);
    out
}

/// Formats the line of the lag, with the number of ops that started late.
fn lag_line(lag: Option<&Latency>) -> String {
    let line = summary_line("lag", lag);
    match lag.and_then(late_ops) {
        Some(late) if !line.is_empty() => format!("{}, late={late}\n", line.trim_end()),
        _ => line,
    }
}

fn bandwidth_line(samples: &SampleStats, kb_base: u64, group: &GroupRate) -> String {
    if samples.count() == 0 {
        return String::new();
    }
    // As in fio: values are in KiB or MiB whatever `kb_base`, even where the unit says kB.
    let (unit, divisor) = match kb_base {
        base if samples.mean() > (base * base) as f64 => ("MiB/s", 1024),
        1000 => ("kB/s", 1),
        _ => ("KiB/s", 1),
    };
    format!(
        "   bw ({unit:>7}): min={:5}, max={:5}, per={:.2}%, avg={:5.2}, stdev={:5.2}, samples={}\n",
        samples.min() / divisor,
        samples.max() / divisor,
        group.share(samples.mean()),
        samples.mean() / divisor as f64,
        samples.stddev() / divisor as f64,
        samples.count(),
    )
}

fn iops_line(samples: &SampleStats) -> String {
    if samples.count() == 0 {
        return String::new();
    }
    format!(
        "   iops        : min={:5}, max={:5}, avg={:5.2}, stdev={:5.2}, samples={}\n",
        samples.min(),
        samples.max(),
        samples.mean(),
        samples.stddev(),
        samples.count(),
    )
}

/// Formats the lines `lat (usec)   : 50=37.50%, …`, five shares a line, none for empty units.
fn latency_shares(job: &JobRecord) -> String {
    let shares = LatencyShares::of(job);
    share_lines("nsec", &SHORT, &shares.ns)
        + &share_lines("usec", &SHORT, &shares.us)
        + &share_lines("msec", &LONG, &shares.ms)
}

fn share_lines(unit: &str, names: &[&str], shares: &[f64]) -> String {
    let there = names.iter().zip(shares).filter(|&(_, &share)| share > 0.0);
    let cells: Vec<String> = there
        .map(|(name, share)| format!("{name}={share:.2}%"))
        .collect();
    let line = |cells: &[String]| format!("  lat ({unit})   : {}\n", cells.join(", "));
    cells.chunks(5).map(line).collect()
}

fn sync_lines(job: &JobRecord) -> String {
    let lat = Some(&job.sync.lat);
    let line = summary_line("sync", lat);
    if line.is_empty() {
        return line;
    }
    let table = percentile_table("sync", lat, &job.display);
    format!("  fsync/fdatasync/sync_file_range/syncfs:\n{line}{table}")
}

fn cpu_line(job: &JobRecord) -> String {
    let cpu = &job.cpu;
    let share = |time_us: u64| percent(time_us as f64, cpu.wall_us as f64);
    format!(
        "  cpu          : usr={:.2}%, sys={:.2}%, ctx={}, majf={}, minf={}\n",
        share(cpu.user_us),
        share(cpu.system_us),
        cpu.context_switches,
        cpu.major_faults,
        cpu.minor_faults,
    )
}

fn depth_lines(job: &JobRecord) -> String {
    let line = |title: &str, names: [&str; 7], shares: [f64; 7]| {
        let cells: Vec<String> = names
            .iter()
            .zip(shares)
            .map(|(name, share)| format!("{name}={share:.1}%"))
            .collect();
        format!("  {title}: {}\n", cells.join(", "))
    };
    let counts = |f: fn(&DirectionRecord) -> u64| job.directions.each().map(f);
    let [reads, writes, trims] = counts(|direction| direction.ios);
    let [short_reads, short_writes, short_trims] = counts(|direction| direction.short_ios);
    let [lost_reads, lost_writes, lost_trims] = counts(|direction| direction.dropped_ios);
    line("IO depths    ", LEVELS, level_shares(job))
        + &line(
            "   submit    ",
            BATCHES,
            depth_shares(&job.depth_submit, job.submissions),
        )
        + &line(
            "   complete  ",
            BATCHES,
            depth_shares(&job.depth_complete, job.reapings),
        )
        + &format!(
            "     issued rwts: total={reads},{writes},{trims},{} \
             short={short_reads},{short_writes},{short_trims},0 \
             dropped={lost_reads},{lost_writes},{lost_trims},0\n",
            job.sync.ios,
        )
}

/// Formats the totals of a group.
fn group_status(group_id: u32, rates: &GroupRates<'_>) -> String {
    let mut out = format!("\nRun status group {group_id} (all jobs):\n");
    let first = rates.first;
    let units = Units::of(&first.job.display);
    let mut shown: Vec<_> = unified::shown(&first.job)
        .map(|(kind, name)| (name, rates.each[kind]))
        .collect();
    if first.mixed.is_some() {
        shown.push((unified::MIXED, rates.mixed));
    }
    for (name, rate) in shown {
        if rate.bytes == 0 {
            continue;
        }
        let (all, all_other) = units.bandwidth(rate.bytes_per_s());
        let (slowest, slowest_other) = units.bandwidth(rate.slowest_bytes_per_s);
        let (fastest, fastest_other) = units.bandwidth(rate.fastest_bytes_per_s);
        let (size, size_other) = units.size(rate.bytes);
        out += &format!(
            "{:>7}: bw={all} ({all_other}), {slowest}-{fastest} ({slowest_other}-{fastest_other}), \
             io={size} ({size_other}), run={}-{}msec\n",
            name.to_uppercase(),
            rate.shortest_ms,
            rate.longest_ms,
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zone_resets_end_the_lines_of_writes_and_trims() {
        let direction = DirectionRecord {
            bytes: 4096,
            ios: 1,
            runtime_ms: 1,
            ..DirectionRecord::default()
        };
        let ends = |resets: Option<u64>, name: &str| {
            let job = JobRecord {
                zone_resets: resets,
                ..JobRecord::default()
            };
            let group = GroupRate::default();
            let lines = direction_lines(&job, name, &direction, &group, TextStyle::Fathom);
            let first = lines.lines().next().unwrap_or_default();
            first.rsplit_once("msec)").unwrap_or_default().1.to_owned()
        };
        assert_eq!(ends(Some(3), "write"), "; 3 zone resets");
        assert_eq!(ends(Some(0), "trim"), "; 0 zone resets");
        assert_eq!(ends(Some(3), "read"), "");
        assert_eq!(ends(None, "write"), "");
    }
}
