use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use fathom_core::{Nanos, PerDirection};
use fathom_job::Plan;
use fathom_record::{DiskRecord, JobRecord, Warning};
use fathom_setup::{JobSnapshot, JobState, LatenciesSoFar, Snapshot};
use fathom_stats::Histogram;
use fathom_workload::Phase;

use super::*;
use crate::live::LiveState;

/// Returns figures of two groups after `seconds`.
fn figures(seconds: u64) -> Figures {
    let job = |name: &str, group_id, number| JobRecord {
        name: name.to_owned(),
        group_id,
        number,
        asynchronous: true,
        iodepth: 32,
        ..JobRecord::default()
    };
    let mut state = LiveState::new(&Plan::default());
    state.planned(&[job("reader", 0, 1), job("a name of many characters", 1, 2)]);
    state.warn(&Warning {
        code: "x".into(),
        job: "reader".to_owned(),
        message: "the page cache was used".to_owned(),
        hint: String::new(),
    });
    for half in 1..=2 * seconds {
        let ios = half * 10_000;
        let mut latencies = Histogram::new();
        latencies.record_n(80_000, ios - ios / 100);
        latencies.record_n(3_000_000, ios / 100);
        let job = JobSnapshot {
            state: JobState::Working(Phase::Running),
            ios: PerDirection::new(ios, 0, 0),
            bytes: PerDirection::new(ios * 4096, 0, 0),
            in_flight: 32,
            ..JobSnapshot::default()
        };
        let counts = |job: usize| LatenciesSoFar {
            jobs: job..job + 1,
            kinds: PerDirection::default(),
            histograms: PerDirection::new(Some(latencies.clone()), None, None),
        };
        state.sample(&Snapshot {
            elapsed: Nanos::from_millis(500 * half),
            jobs: vec![job, job],
            latencies: vec![counts(0), counts(1)],
            disks: vec![DiskRecord {
                name: "vda".to_owned(),
                util_percent: 87.0,
                ..DiskRecord::default()
            }],
        });
    }
    state.figures()
}

fn screen(width: u16, height: u16, figures: &Figures, view: &ViewState) -> String {
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    draw(&mut buffer, figures, view, Glyphs::BLOCKS);
    let lines = buffer.content.chunks(usize::from(width.max(1)));
    let lines = lines.map(|line| line.iter().map(|cell| cell.symbol()).collect::<String>());
    lines.collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn check(screen: &str, wanted: &[&str]) {
    for want in wanted {
        assert!(screen.contains(want), "no `{want}` in\n{screen}");
    }
}

#[test]
fn a_small_and_a_large_screen_show_the_same() {
    let figures = figures(30);
    for (width, height) in [(80, 24), (200, 50)] {
        let screen = screen(width, height, &figures, &ViewState::default());
        check(
            &screen,
            &[
                "fathom run: running  30.0 s",
                "of 2 jobs run  all",
                "read last second",
                "40.0k",
                "156 MiB",
                "read whole run",
                "1.20M ops",
                "80.4 us",
                "reader",
                "32.0/32",
                "vda: 87 % busy",
                "warning 1 of 1: reader: the page cache was used",
                "group 1",
                "q stop",
                "█",
            ],
        );
        assert!(
            screen
                .lines()
                .all(|line| line.chars().count() == usize::from(width))
        );
    }
}

#[test]
fn a_group_shows_its_jobs_alone() {
    let view = ViewState {
        track: 2,
        ..ViewState::default()
    };
    let screen = screen(80, 24, &figures(5), &view);
    check(&screen, &["group 1", "20.0k", "a name of ma"]);
    assert!(
        !screen.lines().any(|line| line.starts_with("reader ")),
        "{screen}"
    );
}

#[test]
fn the_table_scrolls_to_the_last_of_its_rows() {
    let (figures, mut view) = (figures(5), ViewState::default());
    let down = KeyEvent::new(KeyCode::Down, KeyModifiers::NONE);
    for _ in 0..9 {
        view.press(&down, figures.tracks.len(), job_rows(&figures, &view));
    }
    // Two groups and two jobs.
    assert_eq!(view.first_row, 3);
    let screen = screen(80, 24, &figures, &view);
    let mut lines = screen.lines().skip_while(|line| !line.starts_with("job "));
    let first = lines.nth(1).unwrap();
    assert!(first.starts_with("a name of ma"), "{screen}");
}

#[test]
fn keys_are_explained_and_a_pause_is_told() {
    let view = ViewState {
        help: true,
        paused: true,
        stopped: true,
        ..ViewState::default()
    };
    let screen = screen(80, 24, &figures(5), &view);
    check(&screen, &["PAUSED", "Shift-Tab", "Ctrl-C again aborts"]);
}

#[test]
fn no_size_panics_and_a_small_one_says_so() {
    let figures = figures(5);
    let help = ViewState {
        help: true,
        track: 7,
        first_row: 9,
        ..ViewState::default()
    };
    for width in [0, 1, 10, 59, 60, 61, 80, 500] {
        for height in [0, 1, 2, 17, 18, 19, 24, 25, 100] {
            for (figures, view) in [
                (&figures, &help),
                (&Figures::default(), &ViewState::default()),
            ] {
                let _drawn = screen(width, height, figures, view);
            }
        }
    }
    check(
        &screen(40, 10, &figures, &help),
        &["too small for --live", "40x10, needs 60x18"],
    );
}

#[test]
fn ascii_is_enough() {
    let mut buffer = Buffer::empty(Rect::new(0, 0, 80, 24));
    draw(
        &mut buffer,
        &figures(20),
        &ViewState::default(),
        Glyphs::ASCII,
    );
    let symbols = buffer.content.iter().map(|cell| cell.symbol());
    assert!(symbols.clone().all(str::is_ascii) && symbols.clone().any(|symbol| symbol == "#"));
}
