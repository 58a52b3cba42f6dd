//! Timeline against a naive version that keeps every op.

use fathom_stats::{Addition, Histogram, Timeline, Window, Windows};
use proptest::prelude::*;

/// Job as its recorder sees it: all latencies so far, and those that the timeline has.
#[derive(Default)]
struct Job {
    now: Histogram,
    before: Histogram,
}

/// Ops of one job: job, nanoseconds since the last ones of any job, latencies.
type Ops = (usize, u64, Vec<u64>);

fn ops() -> impl Strategy<Value = Ops> {
    let latency = (any::<u64>(), 0..64_u32).prop_map(|(bits, shift)| bits >> shift);
    // Mostly a few windows on, and sometimes far.
    let step =
        prop_oneof![8 => 0..400_000_000_u64, 2 => 0..20_000_000_000_u64, 1 => 0..1_u64 << 45];
    (0..3_usize, step, prop::collection::vec(latency, 0..5))
}

/// Adds the ops to a timeline of its own kind, and to a list.
fn run(all: &[Ops]) -> (Timeline, Vec<(u64, u64)>) {
    let mut timeline = Timeline::new(true);
    let mut jobs: [Job; 3] = Default::default();
    let (mut at, mut list) = (0, Vec::new());
    for (job, step, latencies) in all {
        at += step;
        let job = &mut jobs[*job];
        job.now.record_all(latencies);
        let bounds = latencies.iter().min().zip(latencies.iter().max());
        let added = Addition {
            ios: latencies.len() as u64,
            bytes: 512 * latencies.len() as u64,
            bounds: bounds.map(|(min, max)| (*min, *max)),
            histograms: Some((&job.now, &mut job.before)),
        };
        timeline.add(at, at + 1, added);
        list.extend(latencies.iter().map(|latency| (at, *latency)));
    }
    (timeline, list)
}

/// Returns the windows of a width.
fn naive(list: &[(u64, u64)], width_ns: u64, end_ns: u64) -> Windows {
    let mut windows: Vec<Window> = Vec::new();
    for &(at, latency) in list {
        let index = usize::try_from(at / width_ns).unwrap();
        windows.resize(windows.len().max(index + 1), Window::default());
        let op = Window {
            ios: 1,
            bytes: 512,
            min_ns: latency,
            max_ns: latency,
            bins: vec![(Histogram::index_of(latency), 1)],
        };
        windows[index].merge(&op);
    }
    Windows {
        width_ns,
        end_ns,
        windows,
    }
}

proptest! {
    #[test]
    fn windows_are_those_of_the_single_ops(all in prop::collection::vec(ops(), 1..300)) {
        let (timeline, list) = run(&all);
        let windows = timeline.windows();
        prop_assert!(windows.windows.len() <= Timeline::WINDOWS_MAX);
        let end: u64 = all.iter().map(|(_, step, _)| step).sum();
        prop_assert_eq!(&windows, &naive(&list, windows.width_ns, end + 1));
        let mut total = Histogram::new();
        list.iter().for_each(|&(_, latency)| total.record(latency));
        prop_assert_eq!(windows.histogram(), total);
    }

    #[test]
    fn windows_are_no_wider_than_the_last_op_demands(all in prop::collection::vec(ops(), 1..50)) {
        let (timeline, list) = run(&all);
        let last = list.iter().map(|(at, _)| *at).max().unwrap_or(0);
        let (start, end) = Timeline::window_at(last);
        prop_assert!((start..end).contains(&last));
        prop_assert_eq!(timeline.windows().width_ns, end - start);
        let fits = last / (end - start) < 240;
        let narrower = end - start > 100_000_000 && last / ((end - start) / 2) < 240;
        prop_assert!(fits && !narrower);
    }

    #[test]
    fn merged_timelines_have_all_ops(
        one in prop::collection::vec(ops(), 0..50),
        other in prop::collection::vec(ops(), 0..50),
        later_ns in 0..1_u64 << 40,
    ) {
        let (one, other) = (run(&one).0.windows(), run(&other).0.windows());
        let mut merged = one.clone();
        merged.merge(&other, later_ns);
        let mut total = one.total();
        total.merge(&other.total());
        prop_assert_eq!(merged.total(), total);
        prop_assert_eq!(merged.end_ns, one.end_ns.max(other.end_ns + later_ns));
    }
}

#[test]
fn a_timeline_starts_with_windows_of_100_ms() {
    let (timeline, _) = run(&[
        (0, 0, vec![5]),
        (0, 23_900_000_000, vec![6, 7]),
        (1, 99_999_999, vec![9]),
    ]);
    let windows = timeline.windows();
    assert_eq!(
        (windows.width_ns, windows.windows.len()),
        (100_000_000, 240)
    );
    let last = &windows.windows[239];
    assert_eq!((last.ios, last.min_ns, last.max_ns), (3, 6, 9));
    assert_eq!(windows.whole(), 240);
}

#[test]
fn the_latest_time_is_in_a_window() {
    let (timeline, _) = run(&[(0, u64::MAX - 1, vec![5])]);
    assert_eq!(timeline.windows().total().ios, 1);
    assert!(Timeline::window_at(u64::MAX).1 > u64::MAX - 1);
}

#[test]
fn without_histograms_sums_are_kept() {
    let mut timeline = Timeline::new(false);
    for at in [0, 50_000_000_000, 900_000_000_000] {
        let added = Addition {
            ios: 2,
            bytes: 10,
            bounds: None,
            histograms: None,
        };
        timeline.add(at, at, added);
    }
    let total = timeline.windows().total();
    assert_eq!((total.ios, total.bytes, total.bins.len()), (6, 30, 0));
}
