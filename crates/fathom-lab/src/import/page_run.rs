//! The one run of a file that a page is about, as far as the file describes it.

use fathom_record::{Record, Warning};
use serde_json::Value;

use super::{INTERIM, ImportError, ReadRun, fio, fio_2, for_each_run};

/// Run of a page.
#[derive(Clone, Debug, Default)]
pub struct PageRun {
    /// Record; omissions of the file are among its warnings.
    pub record: Record,
    /// Percentiles of a report without histograms.
    pub percentiles: Vec<ReportedPercentiles>,
}

/// Percentiles of a latency, as a report has them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportedPercentiles {
    /// Job, direction and latency: `job, read, clat`.
    pub name: String,
    /// Percent and latency, ns, ascending; only those beyond which there are ten ops.
    pub points: Vec<(f64, f64)>,
}

/// Reads the only run of a file.
///
/// # Errors
/// As [`import`](super::import), or there is more than one run, or it has no record.
pub fn page_run(text: &str) -> Result<PageRun, ImportError> {
    let mut count = 0;
    let mut last = None;
    for_each_run(text, &mut |read| {
        let is_newer = matches!(read, ReadRun::Fio { is_newer: true, .. });
        count += usize::from(!is_newer);
        last = Some((read, is_newer));
    })?;
    match last {
        None => Err(ImportError::NoDocument),
        Some(_) if count > 1 => Err(ImportError::Several(count)),
        Some((ReadRun::Record(record), _)) => Ok(PageRun {
            record: *record,
            percentiles: Vec::new(),
        }),
        Some((ReadRun::Exported(run), _)) => {
            let record = run.run.record.as_deref().ok_or(ImportError::Empty)?;
            let record = Record::from_json(record).map_err(ImportError::Record)?;
            let percentiles = Vec::new();
            Ok(PageRun {
                record,
                percentiles,
            })
        }
        Some((ReadRun::Fio { report, .. }, is_newer)) => of_report(&report, is_newer),
    }
}

fn of_report(report: &Value, is_newer: bool) -> Result<PageRun, ImportError> {
    let (mut record, of_waves) = fio::record(report);
    if record.jobs.is_empty() {
        return Err(ImportError::Empty);
    }
    let program = report["fio version"].as_str().unwrap_or("fio");
    let mut notes = vec![format!(
        "made from a report of {program}: it has neither the course of the run nor the machine, \
         and no checks of the run"
    )];
    let of_fio_2 = fio_2::notes(report);
    let no_histograms = match of_fio_2.is_empty() {
        true => NO_HISTOGRAMS,
        false => NO_HISTOGRAMS_OF_FIO_2,
    };
    notes.extend(of_fio_2);
    let percentiles = match fio::has_histograms(&record) {
        true => Vec::new(),
        false => {
            notes.push(no_histograms.into());
            reported(report)
        }
    };
    notes.extend(of_waves.map(str::to_owned));
    notes.extend(is_newer.then(|| INTERIM.to_owned()));
    record
        .warnings
        .extend(notes.into_iter().map(|message| Warning {
            code: "made_from_a_report".into(),
            message,
            ..Warning::default()
        }));
    Ok(PageRun {
        record,
        percentiles,
    })
}

/// Returns the percentiles of all latencies of all jobs.
fn reported(report: &Value) -> Vec<ReportedPercentiles> {
    let mut all = Vec::new();
    for job in fio::jobs(report) {
        let name = job["jobname"].as_str().unwrap_or_default();
        for direction in ["read", "write", "trim"] {
            for kind in ["slat", "clat", "lat"] {
                let points = points(&job[direction][format!("{kind}_ns")]);
                if !points.is_empty() {
                    let name = format!("{name}, {direction}, {kind}");
                    all.push(ReportedPercentiles { name, points });
                }
            }
        }
    }
    all
}

fn points(latency: &Value) -> Vec<(f64, f64)> {
    let ops = fio::number(&latency["N"]);
    let percentiles = latency["percentile"].as_object().into_iter().flatten();
    let mut points: Vec<(f64, f64)> = percentiles
        .filter_map(|(percent, ns)| Some((percent.parse().ok()?, ns.as_f64()?)))
        .filter(|(percent, _)| (0.0..100.0).contains(percent) && fio::has_enough(*percent, ops))
        .collect();
    points.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    points
}

/// Note on a report as plain JSON.
const NO_HISTOGRAMS: &str = "plain JSON has no histograms: there are no percentile curves, only \
                             the report's percentiles; `--output-format=json+` keeps histograms";

/// Note on a report of fio 2, as plain JSON or as JSON+.
const NO_HISTOGRAMS_OF_FIO_2: &str = "histograms of fio 2 have numbers of buckets in place of \
                                      latencies and are not read: there are no percentile \
                                      curves, only the report's percentiles; fio 3 with \
                                      `--output-format=json+` keeps histograms";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_plus_has_histograms_and_json_percentiles() {
        let plus = page_run(include_str!("../../tests/import/fio-json-plus.json")).unwrap();
        assert!(plus.percentiles.is_empty());
        let clat = plus.record.jobs[0].directions.read.clat.as_ref().unwrap();
        assert!(clat.histogram.is_some());
        assert_eq!(plus.record.warnings.len(), 1, "{:?}", plus.record.warnings);

        let plain = page_run(include_str!("../../tests/import/fio-json.json")).unwrap();
        let first = &plain.percentiles[0];
        assert_eq!(first.name, "a, read, clat");
        // 10,714 ops: 10 and more are beyond p99.9, 5 beyond p99.95.
        assert_eq!(first.points.first(), Some(&(1.0, 44288.0)));
        assert_eq!(first.points.last(), Some(&(99.9, 3_325_952.0)));
        let notes = plain.record.warnings.iter();
        assert!(notes.clone().any(|one| one.message.contains("plain JSON")));
    }

    #[test]
    fn a_page_is_about_one_run() {
        #[track_caller]
        fn refuse(text: &str, want: &str) {
            let error = page_run(text).unwrap_err().to_string();
            assert!(error.contains(want), "{error}");
        }
        let report = |start: u32| {
            format!(
                "{{\"fio version\": \"fio-3.33\", \"jobs\": [{{\"jobname\": \"a\", \
                 \"job_start\": {start}}}]}}\n"
            )
        };
        refuse(&(report(1) + &report(2)), "2 runs, where one is wanted");
        refuse("{\"fio version\": \"fio-3.33\", \"jobs\": []}", "no job");
        refuse("{\"version\": 99, \"jobs\": []}", "version 99");
        refuse("", "no JSON document");
        let run = page_run(&(report(1) + &report(1))).unwrap();
        let notes = run.record.warnings.iter();
        assert!(notes.clone().any(|one| one.message.contains("interim")));
    }
}
