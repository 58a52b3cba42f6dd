//! Runs of `fathom peak`, whose result is read as the record of one job.

use std::process::Output;

use fathom_record::{
    DirectionRecord, JobRecord, PeakPoint, PeakRecord, PerDirectionRecord, RECORD_VERSION, Record,
};

use super::commands::{Commands, first_line};
use super::measured::Measured;
use crate::lab::devices::{device_of, may_write};
use crate::lab::executor::{RunDone, RunFailure, RunOutcome};
use crate::lab_plan::PeakArguments;

impl Measured<'_> {
    /// Runs `fathom peak` and reads its result, unless it is over before.
    pub(super) fn run_peak(
        &self,
        peak: &PeakArguments,
        commands: &Commands<'_>,
        is_over: &dyn Fn() -> bool,
    ) -> RunOutcome {
        self.refuse_unnamed_device(peak)?;
        let throttle = self.throttle()?;
        let mut command = self.command(commands, &self.program(), throttle.as_ref());
        // The lab repeats runs itself.
        command.args(["peak", "--json", "--repeats=1"]);
        command.args(peak.words());
        of_peak(&commands.wait(&mut command, "the run", is_over)?, peak)
    }

    /// Refuses to write a device that the lab does not name, also where a link leads to it.
    fn refuse_unnamed_device(&self, peak: &PeakArguments) -> Result<(), RunFailure> {
        let Some(target) = peak.value("target").filter(|_| peak.writes()) else {
            return Ok(());
        };
        if device_of(target).is_some_and(|number| !may_write(self.writes, number)) {
            let why = format!("`{target}` is a device that `writes` does not name");
            return Err(RunFailure::Hopeless(why));
        }
        Ok(())
    }
}

/// Reads the result of a run of `fathom peak`.
fn of_peak(output: &Output, peak: &PeakArguments) -> RunOutcome {
    let failed = |why: String| RunFailure::Failed(why);
    if !output.status.success() {
        return Err(failed(first_line(&output.stderr)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let result = PeakRecord::from_json(&text).map_err(|error| failed(error.to_string()))?;
    let [point] = result.points.as_slice() else {
        let points = result.points.len();
        return Err(failed(format!("`fathom peak` measured {points} points")));
    };
    let warnings = result.warnings.iter().map(|one| one.message.as_str());
    let warnings = warnings.collect::<Vec<_>>().join("; ");
    Ok(RunDone {
        disturbance: (!warnings.is_empty()).then_some(warnings),
        ..RunDone::of_record(record(&result, point, peak))
    })
}

/// Returns the record of one job that did what was measured.
fn record(result: &PeakRecord, point: &PeakPoint, peak: &PeakArguments) -> Record {
    let runtime_ms = (point.wall_ns + 500_000) / 1_000_000;
    let moved = DirectionRecord {
        bytes: point.moved_bytes,
        ios: point.ops,
        runtime_ms,
        lat: point.lat.as_ref().map(|lat| lat.all.clone()),
        ..DirectionRecord::default()
    };
    let directions = match peak.writes() {
        true => PerDirectionRecord {
            write: moved,
            ..PerDirectionRecord::default()
        },
        false => PerDirectionRecord {
            read: moved,
            ..PerDirectionRecord::default()
        },
    };
    let job = JobRecord {
        name: "peak".into(),
        number: 1,
        options: peak.0.clone(),
        start_ms: result.timestamp_ms.saturating_sub(runtime_ms),
        engine: result.engine.clone(),
        iodepth: point.depth,
        runtime_ms,
        directions,
        ..JobRecord::default()
    };
    Record {
        version: RECORD_VERSION,
        timestamp_ms: result.timestamp_ms,
        elapsed_ms: runtime_ms,
        jobs: vec![job],
        machine: result.machine.clone(),
        warnings: result.warnings.clone(),
        ..Record::default()
    }
}

#[cfg(test)]
mod tests {
    use fathom_record::{MetricName, PeakLatency};
    use fathom_stats::Latency;

    use super::*;

    #[test]
    fn a_point_is_the_record_of_one_job() {
        let mut all = Latency::new(true);
        all.record_n(1_000, 1_900);
        all.record_n(50_000, 100);
        let point = PeakPoint {
            depth: 8,
            ops: 2_000,
            moved_bytes: 2_000 * 512,
            wall_ns: 500_100_000,
            lat: Some(PeakLatency::new(all)),
            ..PeakPoint::default()
        };
        let result = PeakRecord::default();
        let arguments = |write: &str| {
            let pairs = [("target", "/dev/x"), ("write", write)];
            PeakArguments(
                pairs
                    .map(|(name, value)| (name.into(), value.into()))
                    .to_vec(),
            )
        };
        let value = |write: &str, metric: &str| {
            let record = record(&result, &point, &arguments(write));
            MetricName::parse(metric).unwrap().value(&record)
        };
        assert_eq!(value("0", "read.iops"), Some(4_000.0));
        assert_eq!(value("0", "read.bw"), Some(4_000.0 * 512.0));
        assert_eq!(value("0", "read.lat_mean"), Some(3_450.0));
        assert!(value("0", "read.lat_p99").unwrap() > 49_000.0);
        assert_eq!(value("0", "write.iops"), None);
        assert_eq!(value("1", "write.iops"), Some(4_000.0));
        assert_eq!(value("1", "write.clat_mean"), None);
    }
}
