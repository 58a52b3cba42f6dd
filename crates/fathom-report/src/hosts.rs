//! Hosts of a run: a table with a row each, and how they ran together.

use fathom_record::{HostRecord, HostResult, HostWave, Record};

use crate::extensions;
use crate::host_differences::differences;
use crate::json::{Object, Value};
use crate::peak::{aligned, short};
use crate::peak_table::us;

/// Formats the table of a sum of hosts, and lines about their time; empty for other records.
///
/// From [`MANY`] hosts on, each section and direction has the rows of the host with the fewest
/// IOPS, of that in the middle, of that with the most, and of those that are marked.
pub(crate) fn text(record: &Record) -> String {
    let hosts = &record.hosts;
    let works = works(hosts);
    if works.is_empty() {
        return String::new();
    }
    let mut rows = vec![HEAD.map(str::to_owned).to_vec()];
    for (job, direction) in works {
        let of_work = hosts.iter().filter_map(|host| {
            let mut results = host.results.iter();
            let found = results.find(|one| one.job == job && one.direction == direction);
            Some((host, found?))
        });
        let all: Vec<_> = of_work.collect();
        rows.extend(shown(&all).map(|(host, result)| row(host, result)));
    }
    let (first, ranks) = (&hosts[0], hosts.len());
    let left_out = match ranks >= MANY {
        true => " (fewest, middle, most IOPS)",
        false => "",
    };
    let of = match u64::from(first.ranks) {
        all if all == ranks as u64 => ranks.to_string(),
        all => format!("{ranks} of {all}"),
    };
    format!(
        "\nHosts: {of}{left_out}\n{}{}{}{}{}",
        aligned(&rows),
        differences(hosts),
        together(hosts),
        starts(hosts),
        clocks(hosts)
    )
}

/// Returns sections and directions, in order of the first host that has them.
fn works(hosts: &[HostRecord]) -> Vec<(&str, &str)> {
    let mut works = Vec::new();
    for result in hosts.iter().flat_map(|host| &host.results) {
        let work = (result.job.as_str(), result.direction.as_str());
        if !works.contains(&work) {
            works.push(work);
        }
    }
    works
}

/// Host and its result of the section and direction.
type OfHost<'a> = (&'a HostRecord, &'a HostResult);

/// Returns the rows to show, in order of rank.
fn shown<'a>(all: &'a [OfHost<'a>]) -> impl Iterator<Item = OfHost<'a>> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|&a, &b| all[a].1.iops().total_cmp(&all[b].1.iops()).then(a.cmp(&b)));
    let middle = order.len().saturating_sub(1) / 2;
    let named = [order.first(), order.get(middle), order.last()];
    let named: Vec<usize> = named.into_iter().flatten().copied().collect();
    let is_shown = move |at: usize, result: &HostResult| {
        all.len() < MANY || named.contains(&at) || result.mark.is_some()
    };
    let rows = all.iter().enumerate();
    rows.filter(move |(at, (host, result))| host.is_cut || is_shown(*at, result))
        .map(|(_, row)| *row)
}

fn row(host: &HostRecord, result: &HostResult) -> Vec<String> {
    let percentile = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), us);
    let has_latency = result.latency.is_some();
    let other = |ns: u64| percentile(has_latency.then_some(ns));
    vec![
        result.job.clone(),
        result.direction.clone(),
        host.rank.to_string(),
        host.name.clone(),
        short(result.iops()),
        format!("{:.1}", result.bytes_per_s() / MIB),
        other(whole(result.mean_ns)),
        percentile(result.p50_ns),
        percentile(result.p99_ns),
        other(result.max_ns),
        marks(host, result),
    ]
}

/// Returns the marks of a row: off the others, and cut.
fn marks(host: &HostRecord, result: &HostResult) -> String {
    let cut = host.is_cut.then_some("cut");
    let marks = result.mark.as_deref().into_iter().chain(cut);
    marks.collect::<Vec<_>>().join(", ")
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates"
)]
fn whole(ns: f64) -> u64 {
    ns.round() as u64
}

/// Formats when the first and the last host were done, and for which share of the time all ran.
fn together(hosts: &[HostRecord]) -> String {
    let Some(overlap) = overlap(hosts) else {
        return String::new();
    };
    format!(
        "first done after {} s, last done after {} s; all ran together for {:.1} % of that\n",
        seconds(overlap.first_done_ns),
        seconds(overlap.last_done_ns),
        overlap.share_percent
    )
}

/// Times of several hosts together, from the first start on the common clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Overlap {
    /// First end of a host.
    pub(crate) first_done_ns: u64,
    /// Last end of a host.
    pub(crate) last_done_ns: u64,
    /// Share of the time until then in which all ran, percent 0–100.
    pub(crate) share_percent: f64,
}

/// Returns the times of the hosts that ran; `None` if none did.
#[expect(clippy::cast_precision_loss, reason = "a share")]
pub(crate) fn overlap(hosts: &[HostRecord]) -> Option<Overlap> {
    let spans = || hosts.iter().filter_map(HostRecord::span);
    let (began, all_began) = (
        spans().map(|span| span.0).min()?,
        spans().map(|span| span.0).max()?,
    );
    let (first, last) = (
        spans().map(|span| span.1).min()?,
        spans().map(|span| span.1).max()?,
    );
    let common = first.saturating_sub(all_began);
    let whole = last.saturating_sub(began);
    Some(Overlap {
        first_done_ns: first.saturating_sub(began),
        last_done_ns: whole,
        share_percent: common as f64 * 100.0 / whole.max(1) as f64,
    })
}

/// Formats the starts that differ most from the agreed moment; empty without one.
fn starts(hosts: &[HostRecord]) -> String {
    let ran = hosts.iter().filter(|host| host.end_ns > 0);
    let off = ran.filter_map(|host| {
        Some((
            host,
            i128::from(host.start_ns) - i128::from(host.agreed_ns?),
        ))
    });
    let off: Vec<_> = off.collect();
    let (Some(first), Some(last)) = (
        off.iter().min_by_key(|(_, off)| *off),
        off.iter().max_by_key(|(_, off)| *off),
    ) else {
        return String::new();
    };
    let told = |(host, off): &(&HostRecord, i128)| {
        let (us, sign) = (off.unsigned_abs() / 1_000, if *off < 0 { '-' } else { '+' });
        format!(
            "{sign}{}.{:03} ms (rank {}, {})",
            us / 1_000,
            us % 1_000,
            host.rank,
            host.name
        )
    };
    format!(
        "starts against the agreed moment, by each host's clock: {} to {}\n",
        told(first),
        told(last)
    )
}

/// Formats the largest bound of the clocks, and the hosts without one.
fn clocks(hosts: &[HostRecord]) -> String {
    if hosts.iter().all(|host| host.clock.compared == "none") {
        return String::new();
    }
    let bound = hosts.iter().filter_map(|host| host.clock.bound_ns).max();
    if let Some(ns) = bound.filter(|_| hosts.iter().all(|host| host.clock.compared == "messages")) {
        return format!(
            "clocks: within {} ms of rank 0's, by messages between the ranks\n",
            millis(ns)
        );
    }
    let bound = bound.map(|ns| format!("within {} ms of UTC, as their kernels say", millis(ns)));
    let free = hosts.iter().filter(|host| !host.clock.is_synchronised);
    let free: Vec<&str> = free.map(|host| host.name.as_str()).collect();
    let named = match free.len() {
        0 => None,
        count if count > NAMED_MAX => {
            let named = free[..NAMED_MAX].join(", ");
            Some(format!(
                "not synchronised: {named} and {} more",
                count - NAMED_MAX
            ))
        }
        _ => Some(format!("not synchronised: {}", free.join(", "))),
    };
    let parts: Vec<String> = bound.into_iter().chain(named).collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!("clocks: {}\n", parts.join("; ")),
    }
}

/// Returns the hosts for JSON.
pub(crate) fn objects(record: &Record) -> Vec<Object> {
    record.hosts.iter().map(object).collect()
}

/// Returns the times of the hosts together; `None` if none ran.
pub(crate) fn together_object(record: &Record) -> Option<Object> {
    let found = overlap(&record.hosts)?;
    let mut out = Object::new();
    out.set("first_done_ns", found.first_done_ns);
    out.set("last_done_ns", found.last_done_ns);
    out.set("share_percent", found.share_percent);
    Some(out)
}

fn object(host: &HostRecord) -> Object {
    let mut out = Object::new();
    out.set("name", host.name.as_str());
    out.set("rank", host.rank);
    out.set("ranks", host.ranks);
    out.set("program", host.program.as_str());
    let mut clock = Object::new();
    clock.set("compared", host.clock.compared.as_str());
    clock.set("is_synchronised", host.clock.is_synchronised);
    clock.set("offset_ns", host.clock.offset_ns);
    if let Some(bound_ns) = host.clock.bound_ns {
        clock.set("bound_ns", bound_ns);
    }
    if let Some(drift_ppb) = host.clock.drift_ppb {
        clock.set("drift_ppb", drift_ppb);
    }
    out.set("clock", clock);
    if let Some(agreed_ns) = host.agreed_ns {
        out.set("agreed_ns", agreed_ns);
    }
    out.set("start_ns", host.start_ns);
    out.set("end_ns", host.end_ns);
    if !host.waves.is_empty() {
        let waves: Vec<Object> = host.waves.iter().map(wave_object).collect();
        out.set("waves", waves);
    }
    if host.is_cut {
        out.set("is_cut", true);
    }
    if !host.left_out.is_empty() {
        let names = host.left_out.iter().map(String::as_str);
        out.set("left_out", Value::row(names));
    }
    if let Some(found) = &host.machine {
        out.set("machine", extensions::machine(found));
    }
    if let Some(found) = &host.processors {
        out.set("processors", extensions::processors(found));
    }
    let validity: Vec<Object> = host.validity.iter().map(extensions::validity).collect();
    out.set("validity", validity);
    let warnings: Vec<Object> = host.warnings.iter().map(extensions::warning).collect();
    out.set("warnings", warnings);
    out.set(
        "results",
        host.results.iter().map(result_object).collect::<Vec<_>>(),
    );
    out
}

fn wave_object(wave: &HostWave) -> Object {
    let mut out = Object::new();
    out.set("wave", wave.wave);
    out.set("agreed_ns", wave.agreed_ns);
    out.set("bound_ns", wave.bound_ns);
    out.set("start_ns", wave.start_ns);
    out.set("end_ns", wave.end_ns);
    out
}

fn result_object(result: &HostResult) -> Object {
    let mut out = Object::new();
    out.set("job", result.job.as_str());
    out.set("direction", result.direction.as_str());
    out.set("total_ios", result.ios);
    out.set("io_bytes", result.bytes);
    out.set("runtime_ms", result.runtime_ms);
    out.set("iops", result.iops());
    out.set("bw_bytes", result.bytes_per_s());
    if let Some(latency) = &result.latency {
        out.set("latency", latency.as_str());
        out.set("mean_ns", result.mean_ns);
        out.set("max_ns", result.max_ns);
    }
    for (key, ns) in [("p50_ns", result.p50_ns), ("p99_ns", result.p99_ns)] {
        if let Some(ns) = ns {
            out.set(key, ns);
        }
    }
    if let Some(mark) = &result.mark {
        out.set("mark", mark.as_str());
    }
    out
}

/// Formats seconds to three decimals.
fn seconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000_000_000, ns / 1_000_000 % 1_000)
}

/// Formats milliseconds to three decimals.
fn millis(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000_000, ns / 1_000 % 1_000)
}

const HEAD: [&str; 11] = [
    "job", "rw", "rank", "host", "IOPS", "MiB/s", "mean us", "p50 us", "p99 us", "max us", "",
];

/// Number of hosts from which a table of all no longer fits a screen.
pub(crate) const MANY: usize = 32;

/// Hosts named in one line.
const NAMED_MAX: usize = 8;

const MIB: f64 = 1_048_576.0;

#[cfg(test)]
mod tests {
    use fathom_record::HostClock;

    use super::*;

    fn host(rank: u32, ranks: u32, ios: u64) -> HostRecord {
        HostRecord {
            name: format!("n{rank}"),
            rank,
            ranks,
            clock: HostClock {
                compared: "kernel".to_owned(),
                is_synchronised: rank != 1,
                bound_ns: (rank != 1).then_some(250_000),
                ..HostClock::default()
            },
            agreed_ns: Some(1_000_000_000),
            start_ns: 1_000_000_000 + u64::from(rank) * 20_000,
            end_ns: 3_000_000_000 - u64::from(rank) * 2_000_000,
            results: vec![HostResult {
                job: "a".to_owned(),
                direction: "read".to_owned(),
                ios,
                bytes: ios * 4096,
                runtime_ms: 2000,
                latency: Some("clat".to_owned()),
                mean_ns: 85_200.0,
                p50_ns: Some(80_000),
                p99_ns: None,
                max_ns: 1_500_000,
                mark: None,
            }],
            ..HostRecord::default()
        }
    }

    fn of(hosts: Vec<HostRecord>) -> String {
        text(&Record {
            hosts,
            ..Record::default()
        })
    }

    #[test]
    fn each_host_has_a_row() {
        let mut slow = host(1, 3, 10_000);
        slow.results[0].mark = Some("slow".to_owned());
        let mut early = host(0, 3, 20_000);
        early.start_ns -= 500_000;
        assert_eq!(of(vec![]), "");
        assert_eq!(
            of(vec![early, slow]),
            "\nHosts: 2 of 3\n\
             job    rw  rank  host   IOPS  MiB/s  mean us  p50 us  p99 us  max us\n  \
             a  read     0    n0  10.0k   39.1     85.2    80.0       -    1500\n  \
             a  read     1    n1   5000   19.5     85.2    80.0       -    1500  slow\n\
             first done after 1.998 s, last done after 2.000 s; all ran together for 99.9 % of \
             that\n\
             starts against the agreed moment, by each host's clock: -0.500 ms (rank 0, n0) to \
             +0.020 ms (rank 1, n1)\n\
             clocks: within 0.250 ms of UTC, as their kernels say; not synchronised: n1\n"
        );
    }

    #[test]
    fn clocks_compared_by_messages_have_a_bound_against_rank_0() {
        let by_messages = |rank, bound_ns| {
            let mut host = host(rank, 2, 1);
            host.clock.compared = "messages".to_owned();
            host.clock.bound_ns = Some(bound_ns);
            host
        };
        let hosts = [by_messages(0, 0), by_messages(1, 12_300)];
        let want = "clocks: within 0.012 ms of rank 0's, by messages between the ranks\n";
        assert_eq!(clocks(&hosts), want);
    }

    #[test]
    fn hosts_that_were_cut_are_marked() {
        let mut cut = host(1, 2, 10_000);
        cut.is_cut = true;
        cut.results[0].mark = Some("slow".to_owned());
        let text = of(vec![host(0, 2, 20_000), cut]);
        assert!(text.contains("1500  slow, cut\n"), "{text}");
    }

    #[test]
    fn of_many_hosts_the_extremes_are_shown() {
        let mut hosts: Vec<HostRecord> = (0..41)
            .map(|rank| host(rank, 41, 2000 + u64::from(rank)))
            .collect();
        hosts
            .iter_mut()
            .for_each(|host| host.end_ns = 3_000_000_000);
        hosts[7].results[0].mark = Some("slow".to_owned());
        let text = of(hosts);
        let ranks: Vec<&str> = text
            .lines()
            .filter(|line| line.trim_start().starts_with("a "))
            .filter_map(|line| line.split_whitespace().nth(2))
            .collect();
        assert_eq!(ranks, ["0", "7", "20", "40"], "{text}");
    }
}
