//! Parallel layout of several jobs (`create_serialize=0`).
//!
//! ```text
//! jobs ─► lanes; no two share a file ─► one thread per lane ─► one report
//!                 the calling thread forwards their events ◄─┘
//! ```

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use super::{
    Layout, LayoutError, LayoutErrorKind, LayoutEvent, LayoutJob, LayoutOptions, LayoutReport,
    OpenSink,
};

/// Event sent from a lane to the calling thread.
struct Starting {
    job: String,
    files: usize,
    bytes: u64,
}

/// Lays out the files of `jobs` in parallel.
pub(super) fn lay_out(
    jobs: &[&LayoutJob],
    options: &LayoutOptions<'_>,
    tell: &mut dyn FnMut(&LayoutEvent<'_>),
    open: OpenSink<'_>,
) -> (LayoutReport, Result<(), LayoutError>) {
    let lanes = lanes(jobs);
    let clock = options.clock;
    let stop = AtomicBool::new(false);
    let stop = &stop;
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        let mut threads = Vec::with_capacity(lanes.len());
        for lane in lanes {
            let sender = sender.clone();
            threads.push(scope.spawn(move || {
                let options = LayoutOptions {
                    clock,
                    // Relaxed: the flag carries no data.
                    stop: &|| stop.load(Ordering::Relaxed),
                };
                run(&lane, &options, open, sender, stop)
            }));
        }
        drop(sender);
        loop {
            match receiver.recv_timeout(LOOK_EVERY) {
                Ok(Starting { job, files, bytes }) => tell(&LayoutEvent::Starting {
                    job: &job,
                    files,
                    bytes,
                }),
                Err(RecvTimeoutError::Timeout) if (options.stop)() => {
                    stop.store(true, Ordering::Relaxed);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let ended = threads.into_iter().map(|thread| match thread.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        together(ended)
    })
}

/// Lays out the jobs of one lane, in order. A failure stops the other lanes.
fn run(
    jobs: &[&LayoutJob],
    options: &LayoutOptions<'_>,
    open: OpenSink<'_>,
    sender: Sender<Starting>,
    stop: &AtomicBool,
) -> (LayoutReport, Result<(), LayoutError>) {
    let mut tell = |event: &LayoutEvent<'_>| {
        if let LayoutEvent::Starting { job, files, bytes } = *event {
            // Cannot fail: the receiver outlives the lanes.
            let _told = sender.send(Starting {
                job: job.to_owned(),
                files,
                bytes,
            });
        }
    };
    let mut layout = Layout {
        options,
        tell: &mut tell,
        open,
        report: LayoutReport::default(),
    };
    let result = jobs.iter().try_for_each(|job| layout.job(job));
    if result.is_err() {
        stop.store(true, Ordering::Relaxed);
    }
    (layout.report, result)
}

/// Merges the reports of all lanes, and selects the failure that stopped the others.
fn together(
    ended: impl Iterator<Item = (LayoutReport, Result<(), LayoutError>)>,
) -> (LayoutReport, Result<(), LayoutError>) {
    let mut all = LayoutReport::default();
    let mut first = Ok(());
    for (report, result) in ended {
        all.add(report);
        first = match (first, result) {
            (Ok(()), result) => result,
            (Err(known), Err(new)) if is_stop(&known) => Err(new),
            (known, _) => known,
        };
    }
    (all, first)
}

const fn is_stop(error: &LayoutError) -> bool {
    matches!(error.kind, LayoutErrorKind::Interrupted)
}

/// Distributes jobs over lanes. Jobs that share a file, directly or through other jobs, stay in
/// one lane, in order; lanes beyond the limit are merged.
fn lanes<'a>(jobs: &[&'a LayoutJob]) -> Vec<Vec<&'a LayoutJob>> {
    let mut lane_of: Vec<usize> = (0..jobs.len()).collect();
    let mut owner: HashMap<&Path, usize> = HashMap::new();
    for (index, job) in jobs.iter().enumerate() {
        for file in &job.files {
            let first = *owner.entry(&file.path).or_insert(index);
            let (from, to) = (lane_of[index], lane_of[first]);
            if from != to {
                lane_of
                    .iter_mut()
                    .filter(|lane| **lane == from)
                    .for_each(|lane| *lane = to);
            }
        }
    }
    let mut lanes: Vec<Vec<&LayoutJob>> = Vec::new();
    let mut number: HashMap<usize, usize> = HashMap::new();
    for (job, lane) in jobs.iter().zip(lane_of) {
        let next = number.len() % LANES_MAX;
        let place = *number.entry(lane).or_insert(next);
        if place == lanes.len() {
            lanes.push(Vec::new());
        }
        lanes[place].push(job);
    }
    lanes
}

/// Maximum number of lanes. More would not write faster, and each has a buffer of 1 MiB.
const LANES_MAX: usize = 64;

/// Interval between checks for a stop request.
const LOOK_EVERY: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use fathom_job::Fallocate;

    use super::*;
    use crate::layout::{FileContent, LayoutFile};

    fn job(name: &str, files: &str) -> LayoutJob {
        let file = |path: &str| LayoutFile {
            path: path.into(),
            length: 1,
            written: true,
        };
        LayoutJob {
            index: 0,
            name: name.to_owned(),
            files: files.split_whitespace().map(file).collect(),
            directories: Vec::new(),
            content: FileContent::Zeros,
            fallocate: Fallocate::None,
            fsync: false,
            may_create: true,
            keep_cached: false,
            in_parallel: true,
        }
    }

    #[track_caller]
    fn check(jobs: &[(&str, &str)], want: &[&str]) {
        let jobs: Vec<_> = jobs.iter().map(|(name, files)| job(name, files)).collect();
        let lanes = lanes(&jobs.iter().collect::<Vec<_>>());
        let text = |lane: &Vec<&LayoutJob>| {
            let names: Vec<_> = lane.iter().map(|job| job.name.as_str()).collect();
            names.join(" ")
        };
        assert_eq!(lanes.iter().map(text).collect::<Vec<_>>(), want);
    }

    #[test]
    fn jobs_sharing_a_file_share_a_lane() {
        check(&[("a", "1"), ("b", "2"), ("c", "3")], &["a", "b", "c"]);
        check(&[("a", "1"), ("b", "2"), ("c", "1")], &["a c", "b"]);
        check(&[("a", "1"), ("b", "2"), ("c", "3 2 1")], &["a b c"]);
        check(
            &[("a", "1 2"), ("b", "2 3"), ("c", "3 4"), ("d", "5")],
            &["a b c", "d"],
        );
        check(&[("a", ""), ("b", "1 1")], &["a", "b"]);
    }

    #[test]
    fn lane_count_is_limited() {
        let names: Vec<String> = (0..200).map(|n| n.to_string()).collect();
        let jobs: Vec<_> = names.iter().map(|name| job(name, name)).collect();
        let lanes = lanes(&jobs.iter().collect::<Vec<_>>());
        assert_eq!(lanes.len(), LANES_MAX);
        assert_eq!(lanes.iter().map(Vec::len).sum::<usize>(), 200);
    }
}
