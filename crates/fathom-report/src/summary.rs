//! Summary of a run: a line per report and direction, in 80 columns.

use fathom_core::Direction;
use fathom_record::{DirectionRecord, JobRecord, Record};
use fathom_stats::Latency;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::characters::printable;
use crate::group::{ReportedJob, reported_jobs};
use crate::peak::{aligned, short};
use crate::peak_table::us;
use crate::rate::{bytes_per_s, exact_ops_per_s, of_direction};
use crate::unified;

/// Returns the number of reports of a record: of jobs, or of groups with `group_reporting`.
#[must_use]
pub fn report_count(record: &Record) -> usize {
    reported_jobs(record).len()
}

/// Formats a table with a line per report and direction.
#[must_use]
pub fn summary(record: &Record) -> String {
    let entries = reported_jobs(record);
    let has_resp = entries.iter().any(|entry| {
        let each = entry.job.directions.each();
        each.iter().any(|direction| direction.resp.is_some())
    });
    let mut rows = vec![head(has_resp)];
    for entry in &entries {
        rows.extend(lines(entry, has_resp));
    }
    let others = aligned(&rows);
    let width = others.lines().map(|line| line.chars().count()).max();
    // Two columns between the name and the rest.
    let room = COLUMNS.saturating_sub(width.unwrap_or(0) + 2).max(NAME_MIN);
    let names = entries.iter().flat_map(|entry| {
        let lines = lines(entry, has_resp).len();
        (0..lines).map(|line| {
            if line == 0 {
                entry.job.name.as_str()
            } else {
                ""
            }
        })
    });
    let names: Vec<String> = std::iter::once("job")
        .chain(names)
        .map(|name| shortened(&printable(name), room))
        .collect();
    let longest = names.iter().map(|name| name.width()).max().unwrap_or(0);
    let lines = names.iter().zip(others.lines());
    lines
        .map(|(name, line)| {
            let pad = " ".repeat(longest - name.width());
            format!("{name}{pad}  {line}\n")
        })
        .collect()
}

fn head(has_resp: bool) -> Vec<String> {
    let mut head = vec!["rw", "bs", "depth", "IOPS", "MiB/s", "p50 µs", "p99 µs"];
    if has_resp {
        // Under a rate the latency that clients see is resp.
        head.push("resp p99");
    }
    head.push("err");
    head.into_iter().map(str::to_owned).collect()
}

/// Returns the lines of one report, without its name: one per direction with ops, or one.
fn lines(entry: &ReportedJob<'_>, has_resp: bool) -> Vec<Vec<String>> {
    let job: &JobRecord = &entry.job;
    if let Some(mixed) = &entry.mixed {
        return vec![line(job, &job.rw, Direction::Read, mixed, has_resp)];
    }
    let used: Vec<(Direction, &str)> = unified::shown(job)
        .filter(|(kind, _)| of_direction(job, *kind).ios > 0)
        .collect();
    match &used[..] {
        [] => vec![line(
            job,
            &job.rw,
            Direction::Read,
            &DirectionRecord::default(),
            has_resp,
        )],
        [(kind, _)] => vec![line(
            job,
            &job.rw,
            *kind,
            of_direction(job, *kind),
            has_resp,
        )],
        several => several
            .iter()
            .map(|(kind, name)| line(job, name, *kind, of_direction(job, *kind), has_resp))
            .collect(),
    }
}

fn line(
    job: &JobRecord,
    rw: &str,
    kind: Direction,
    direction: &DirectionRecord,
    has_resp: bool,
) -> Vec<String> {
    let sizes = *job.block_sizes.each()[kind.index()];
    let mut row = vec![
        rw.to_owned(),
        range(sizes),
        job.iodepth.to_string(),
        short(exact_ops_per_s(direction)),
        mib(bytes_per_s(direction)),
    ];
    let latency = match job.display.lat_percentiles {
        true => direction.lat.as_ref(),
        false => direction.clat.as_ref(),
    };
    row.extend([50.0, 99.0].map(|percent| at(latency, percent)));
    if has_resp {
        row.push(at(direction.resp.as_ref(), 99.0));
    }
    let tolerated = job.tolerated.map_or(0, |tolerated| tolerated.total);
    row.push((tolerated + u64::from(job.error != 0)).to_string());
    row
}

/// Formats a size or a range of sizes: 4k, 4k-64k.
fn range((min, max): (u64, u64)) -> String {
    let size = |bytes: u64| match bytes {
        bytes if bytes > 0 && bytes % (1 << 20) == 0 => format!("{}m", bytes >> 20),
        bytes if bytes > 0 && bytes % 1024 == 0 => format!("{}k", bytes >> 10),
        bytes => bytes.to_string(),
    };
    if min == max {
        size(min)
    } else {
        format!("{}-{}", size(min), size(max))
    }
}

/// Formats MiB/s with at least three digits.
fn mib(bytes_per_s: u64) -> String {
    let hundredths = bytes_per_s.saturating_mul(100) >> 20;
    match hundredths {
        0..1_000 => format!("{}.{:02}", hundredths / 100, hundredths % 100),
        1_000..10_000 => format!("{}.{}", hundredths / 100, hundredths % 100 / 10),
        _ => (hundredths / 100).to_string(),
    }
}

/// Formats a percentile in microseconds; a dash without a histogram or ops.
fn at(latency: Option<&Latency>, percent: f64) -> String {
    let histogram = latency.and_then(|latency| latency.histogram.as_ref());
    let Some(histogram) = histogram.filter(|histogram| histogram.count() > 0) else {
        return "-".to_owned();
    };
    us(histogram.percentile(percent))
}

/// Shortens a name to `room` columns. The middle is left out: names often differ in their ends.
fn shortened(name: &str, room: usize) -> String {
    if name.width() <= room {
        return name.to_owned();
    }
    let kept = room.saturating_sub(1);
    let start = fitting(name.chars(), kept / 2);
    let end = fitting(name.chars().rev(), kept - kept / 2);
    let start: String = name.chars().take(start).collect();
    let end: String = name.chars().skip(name.chars().count() - end).collect();
    // An accent whose letter has been left out.
    let end = end.trim_start_matches(|letter: char| letter.width() == Some(0));
    format!("{start}…{end}")
}

/// Returns the number of first characters that fit into `room` columns.
fn fitting(letters: impl Iterator<Item = char>, room: usize) -> usize {
    let mut taken = 0;
    letters
        .take_while(|letter| {
            taken += letter.width().unwrap_or(0);
            taken <= room
        })
        .count()
}

/// Width of a terminal.
const COLUMNS: usize = 80;

/// Columns of a name that are kept in any case.
const NAME_MIN: usize = 12;

#[cfg(test)]
mod tests {
    use fathom_record::{Display, Tolerated};

    use super::*;

    fn direction(ios: u64, ns: u64) -> DirectionRecord {
        let mut clat = Latency::new(true);
        clat.record_n(ns, ios);
        DirectionRecord {
            ios,
            bytes: ios * 4096,
            runtime_ms: 1000,
            clat: Some(clat),
            ..DirectionRecord::default()
        }
    }

    fn job(name: &str, rw: &str, read: DirectionRecord, write: DirectionRecord) -> JobRecord {
        let mut job = JobRecord {
            name: name.into(),
            rw: rw.into(),
            iodepth: 32,
            display: Display {
                kb_base: 1024,
                ..Display::default()
            },
            ..JobRecord::default()
        };
        job.directions.read = read;
        job.directions.write = write;
        job.block_sizes.read = (4096, 4096);
        job.block_sizes.write = (4096, 65536);
        job
    }

    #[test]
    fn a_line_per_report_and_direction() {
        let none = DirectionRecord::default;
        let mut failed = job("failed", "randread", none(), none());
        failed.error = 5;
        failed.tolerated = Some(Tolerated { total: 2, first: 5 });
        let record = Record {
            jobs: vec![
                job("reads", "randread", direction(123_456, 72_000), none()),
                job(
                    "mixed",
                    "randrw",
                    direction(700, 1_500),
                    direction(300, 12_345_678),
                ),
                failed,
            ],
            ..Record::default()
        };
        assert_eq!(report_count(&record), 3);
        let want = "\
job           rw      bs  depth    IOPS  MiB/s  p50 µs  p99 µs  err
reads   randread      4k     32  123.5k    482    72.2    72.2    0
mixed       read      4k     32     700   2.73    1.50    1.50    0
           write  4k-64k     32     300   1.17   12386   12386    0
failed  randread      4k     32       0   0.00       -       -    3
";
        assert_eq!(summary(&record), want);
    }

    #[test]
    fn names_that_differ_in_their_ends_stay_different() {
        let names = ["1", "16", "128"].map(|depth| format!("database-randread-4k-depth-{depth}"));
        let jobs = names.map(|name| {
            let none = DirectionRecord::default();
            let mut read = direction(123_456, 72_000);
            read.resp = read.clat.clone();
            job(&name, "randread", read, none)
        });
        let record = Record {
            jobs: jobs.into(),
            ..Record::default()
        };
        let text = summary(&record);
        let mut shown: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split(' ').next())
            .collect();
        shown.dedup();
        assert_eq!(shown.len(), 4, "{text}");
        assert!(text.lines().all(|line| line.width() <= 80), "{text}");
    }

    #[track_caller]
    fn check_shortened(name: &str, room: usize, want: &str) {
        assert_eq!(shortened(name, room), want);
    }

    #[test]
    fn the_middle_of_a_name_is_left_out() {
        check_shortened("database-randread-4k-depth-16", 14, "databa…epth-16");
        check_shortened("database-16", 11, "database-16");
        check_shortened("日本語の名前", 12, "日本語の名前");
        check_shortened("日本語の名前", 8, "日…名前");
        check_shortened("aaaaae\u{301}bbbb", 9, "aaaa…bbbb");
    }

    #[test]
    fn columns_stand_below_each_other_whatever_the_name() {
        let none = DirectionRecord::default;
        let names = ["日本語", "e\u{301}te\u{301}", "plain"];
        let record = Record {
            jobs: names
                .map(|name| job(name, "randread", direction(10, 1_000), none()))
                .into(),
            ..Record::default()
        };
        let text = summary(&record);
        let mut columns = text.lines().skip(1).map(|line| {
            let at = line.find("randread").expect("the direction");
            line[..at].width()
        });
        assert!(columns.all(|column| column == "日本語  ".width()), "{text}");
    }

    #[test]
    fn long_names_are_cut_to_the_width() {
        let name = "a-very-long-name-of-a-job-that-says-all-of-its-parameters-in-full-length";
        let none = DirectionRecord::default;
        let record = Record {
            jobs: vec![job(name, "randread", direction(10, 1_000), none())],
            ..Record::default()
        };
        let text = summary(&record);
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        assert!(text.contains("a-very-long-…-full-length "), "{text}");
    }
}
