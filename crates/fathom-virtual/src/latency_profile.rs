//! Machine file of the latencies of a run: `--save-distribution`.
//!
//! ```text
//! clat of each job ─► one histogram per direction ─► [device.distribution.read] … ─► --machine
//! ```
//!
//! Each bucket of a histogram becomes a latency with its count, so the model's percentiles equal
//! the recorded ones within a bucket, 1/64 of a value.

use std::fmt::Write as _;

use fathom_host::target_kind::{FileSystemProbe, HostFileSystem};
use fathom_job::Plan;
use fathom_record::{DirectionRecord, JobRecord, Record};
use fathom_setup::translate::content::measure;
use fathom_setup::translate::{JobSetup, translate};
use fathom_setup::{ProblemKind, RunError, RunProblem};
use fathom_stats::Histogram;

use crate::modelled::{Home, MachineModel, is_device, place};

/// Refuses a plan with jobs that keep no histogram from which
/// [`distribution_file`] could be made, before it runs.
///
/// # Errors
/// A job keeps none.
pub fn refuse_without_histograms(plan: &Plan) -> Result<(), RunError> {
    let jobs = plan.jobs.iter().filter(|job| {
        let measure = measure(&job.options);
        !(measure.clat_histogram || measure.lat_histogram)
    });
    let problems: Vec<RunProblem> = jobs.map(|job| without_histogram(&job.name)).collect();
    match problems.is_empty() {
        true => Ok(()),
        false => Err(RunError { problems }),
    }
}

/// Returns a machine file with one device for all names, with the latencies of `record`. `machine`
/// is the modelled machine that the plan ran on, if any.
///
/// # Errors
/// No op was recorded, or a job kept no histogram.
pub fn distribution_file(
    plan: &Plan,
    machine: Option<&MachineModel>,
    record: &Record,
) -> Result<String, RunError> {
    let mut latencies: [Histogram; 3] = Default::default();
    let mut problems = Vec::new();
    for job in &record.jobs {
        let directions = job.directions.each();
        for (all, direction) in latencies.iter_mut().zip(directions) {
            match (direction.ios, histogram(direction)) {
                (0, _) => {}
                (_, Some(histogram)) => all.merge(histogram),
                (_, None) => problems.push(without_histogram(&job.name)),
            }
        }
    }
    if latencies.iter().all(|all| all.count() == 0) && problems.is_empty() {
        let why = "there are no latencies to save: no job completed an op in the measured time";
        let hint = "see the reason above; a shorter `ramp_time` or a longer `runtime` may help";
        problems.push(RunProblem::new(ProblemKind::NothingRecorded, why).hint(hint));
    }
    if !problems.is_empty() {
        problems.dedup();
        return Err(RunError { problems });
    }
    let probe: &dyn FileSystemProbe = machine.map_or(&HostFileSystem, |machine| machine);
    let setups = translate(plan, probe, &mut || 0).setups;
    let mut text = head(record, machine);
    device(&mut text, capacity_gib(&setups));
    for (name, all) in ["read", "write", "trim"].into_iter().zip(&latencies) {
        if all.count() > 0 {
            table(&mut text, name, all);
        }
    }
    Ok(text)
}

/// Returns the latencies of the device: clat, or lat if a job has only that.
fn histogram(direction: &DirectionRecord) -> Option<&Histogram> {
    let mut kept = [&direction.clat, &direction.lat].into_iter().flatten();
    kept.find_map(|latency| latency.histogram.as_ref())
}

fn without_histogram(job: &str) -> RunProblem {
    let why = "its latencies are not kept: there is nothing to save for `--save-distribution`";
    let mut problem = RunProblem::new(ProblemKind::NoHistogram, why)
        .hint("leave out `gtod_reduce=1`, `disable_clat=1` and `disable_lat=1`");
    job.clone_into(&mut problem.job);
    problem
}

/// Returns the comment at the top of the file: content, origin and limits.
fn head(record: &Record, machine: Option<&MachineModel>) -> String {
    let mut text = String::from(
        "# Latencies that `fathom run --save-distribution` recorded: from handing an op over to \
         its\n# completion (clat; lat of jobs without it), the time of a ramp left out.\n#\n",
    );
    match machine {
        Some(machine) => push(
            &mut text,
            &format!("modelled, virtual time: {}", machine.file),
        ),
        None => push(&mut text, &record.time),
    }
    let mut lines: Vec<(String, u32)> = Vec::new();
    for line in record.jobs.iter().map(job_line) {
        match lines.iter_mut().find(|(told, _)| *told == line) {
            Some((_, times)) => *times += 1,
            None => lines.push((line, 1)),
        }
    }
    for (line, times) in lines {
        push(&mut text, &format!("{times} × {line}"));
    }
    text.push_str(
        "#\n# Good for: the same jobs at the same depth. Not for another depth, number of jobs, \
         block size or\n# pattern, nor for bandwidth: each op draws a latency of its own, however \
         many are in flight.\n# fathom run --machine THIS_FILE JOBFILE\n\n",
    );
    text
}

fn job_line(job: &JobRecord) -> String {
    let sizes = &job.block_sizes;
    let used = [
        ("read", sizes.read),
        ("write", sizes.write),
        ("trim", sizes.trim),
    ];
    let counts = job.directions.each().map(|direction| direction.ios);
    let used = used.into_iter().zip(counts).filter(|(_, ios)| *ios > 0);
    let sizes: Vec<String> = used
        .map(|((name, (least, most)), _)| match least == most {
            true => format!("{name} {least} B"),
            false => format!("{name} {least}–{most} B"),
        })
        .collect();
    let sizes = sizes.join(", ");
    let (name, rw, engine, depth) = (&job.name, &job.rw, &job.engine, job.iodepth);
    format!("job `{name}`: {rw}, {sizes}; {engine}, iodepth {depth}")
}

fn push(text: &mut String, line: &str) {
    // Names may contain line feeds, which would end the comment.
    let plain: String = line.chars().filter(|letter| !letter.is_control()).collect();
    text.push_str("# ");
    text.push_str(plain.trim_end());
    text.push('\n');
}

/// Writes one device, for all names.
fn device(text: &mut String, capacity_gib: f64) {
    let _infallible = writeln!(
        text,
        "[[device]]\nnames = [\"*\"]\nmodel = \"distribution\"\ncapacity_gib = {capacity_gib}\n\n\
         [device.distribution]\nseed = 1"
    );
}

/// Returns a capacity with space for all files of the jobs, at least that of the largest device.
#[expect(
    clippy::cast_precision_loss,
    reason = "devices are below 2^53 bytes; this says how large to make a model"
)]
fn capacity_gib(setups: &[JobSetup]) -> f64 {
    let placed = place(setups, &|path| Home {
        storage: 0,
        is_device: is_device(path),
    });
    let files = setups.iter().flat_map(|setup| &setup.files);
    let largest = files.map(|file| {
        file.file_bytes()
            .max(file.offset.saturating_add(file.length))
    });
    let bytes = largest.chain(placed.used.into_values()).max().unwrap_or(0);
    let whole = bytes.max(DEVICE_BYTES_MIN).next_multiple_of(UNIT_BYTES);
    whole as f64 / f64::from(1 << 30)
}

/// Writes the latencies of a direction.
fn table(text: &mut String, name: &str, latencies: &Histogram) {
    let [half, most] = [50.0, 99.0].map(|percent| latencies.percentile(percent));
    let (midpoints, counts): (Vec<u64>, Vec<u64>) = latencies.bins().unzip();
    let _infallible = writeln!(
        text,
        "\n[device.distribution.{name}]    # {} ops: half within {half} ns, 99 % within {most} ns",
        latencies.count(),
    );
    list(text, "latency_ns", &midpoints);
    list(text, "count", &counts);
}

/// Writes a list of numbers, wrapped at `COLUMNS`.
fn list(text: &mut String, key: &str, numbers: &[u64]) {
    let mut line = format!("{key} = [");
    for number in numbers {
        let number = format!(" {number},");
        if line.len() + number.len() > COLUMNS {
            text.push_str(&line);
            text.push('\n');
            line = "   ".to_owned();
        }
        line.push_str(&number);
    }
    text.push_str(line.trim_end_matches(','));
    text.push_str(" ]\n");
}

/// Smallest device of a machine file, bytes.
const DEVICE_BYTES_MIN: u64 = 2 << 20;
/// Unit of which a device's capacity is a multiple, bytes.
const UNIT_BYTES: u64 = 4096;
const COLUMNS: usize = 100;
