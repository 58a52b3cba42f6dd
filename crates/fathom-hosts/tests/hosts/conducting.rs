//! Rules of the conductor that depend on time, and those for single ranks.

use fathom_core::{Nanos, PerDirection, Tick};
use fathom_hosts::{
    Alignment, Checks, Conductor, Event, Gate, Member, Offset, Order, Output, Progress, Rank,
    RemoteClock, Report, SILENCE_MAX, START_LEAD, Stage, Start, StopReason, Text, Wave,
};

fn at(ms: u64) -> Tick {
    Tick::ZERO + Nanos::from_millis(ms)
}

fn conductor(ranks: u32) -> Conductor {
    Conductor::new(at(0), ranks, false).expect("a few ranks")
}

fn says(conductor: &mut Conductor, now: Tick, rank: u32, stage: Stage) {
    let report = Report {
        stage,
        wants_stop: None,
        wants_end: None,
        progress: Progress::default(),
    };
    conductor.handle_report(now, Rank::new(rank), report);
}

fn checked(reasons: &[&str]) -> Stage {
    let reasons: Vec<String> = reasons.iter().map(|&reason| reason.into()).collect();
    Stage::Checked(Checks::new(&reasons, Vec::new()).expect("no files"))
}

/// Returns the events so far, and drops the orders.
fn events(conductor: &mut Conductor) -> Vec<Event> {
    let outputs = std::iter::from_fn(|| conductor.poll_output());
    let events = outputs.filter_map(|output| match output {
        Output::Tell(event) => Some(event),
        Output::Send { .. } => None,
    });
    events.collect()
}

/// Returns the orders to a rank so far, without those that say nothing.
fn orders(conductor: &mut Conductor, rank: u32) -> Vec<Order> {
    let outputs = std::iter::from_fn(|| conductor.poll_output());
    let orders = outputs.filter_map(|output| match output {
        Output::Send { to, order } if to.get() == rank && order != Order::Heard => Some(order),
        _ => None,
    });
    orders.collect()
}

/// Brings all ranks to the gate of wave 0, where they start.
fn running(ranks: u32, stop_together: bool) -> Conductor {
    let mut conductor = Conductor::new(at(0), ranks, stop_together).expect("a few ranks");
    for stage in [checked(&[]), Stage::LaidOut, Stage::Ready(Wave::new(0))] {
        for rank in 0..ranks {
            says(&mut conductor, at(0), rank, stage.clone());
        }
    }
    conductor
}

#[test]
fn a_start_is_told_on_the_clock_of_each_rank() {
    let mut conductor = conductor(2);
    let mut clock = RemoteClock::ours();
    let offset = Offset {
        offset_ns: -7_000,
        bound: Nanos::new(300),
    };
    clock.align(Alignment {
        at: at(1000),
        offset,
    });
    conductor.set_clock(at(0), Rank::new(1), clock);
    for stage in [checked(&[]), Stage::LaidOut, Stage::Ready(Wave::new(0))] {
        says(&mut conductor, at(980), 0, stage.clone());
        says(&mut conductor, at(980), 1, stage);
    }
    let mut again = conductor.clone();
    let start = Start {
        wave: Wave::new(0),
        at: Tick::new(at(1000).get() - 7_000),
        // 1 ns for the rounding of what the clocks drift in no time.
        bound: Nanos::new(301),
        origin: Tick::new(at(1000).get() - 7_000),
    };
    assert_eq!(orders(&mut conductor, 1).last(), Some(&Order::Start(start)));
    let told = Event::WaveStarts {
        wave: Wave::new(0),
        at: at(980) + START_LEAD,
        ranks: 2,
        bound: Nanos::new(301),
    };
    assert_eq!(events(&mut again), [Event::Sound, told]);
}

#[test]
fn all_reasons_against_a_plan_are_told_at_once() {
    let mut conductor = conductor(3);
    says(&mut conductor, at(0), 2, checked(&["no io_uring"]));
    says(&mut conductor, at(0), 0, checked(&[]));
    assert_eq!(events(&mut conductor), []);
    says(
        &mut conductor,
        at(0),
        1,
        checked(&["no space", "no io_uring"]),
    );
    let told = events(&mut conductor);
    let [
        Event::Refused {
            refusals,
            left_out: 0,
        },
    ] = &told[..]
    else {
        panic!("{told:?}");
    };
    let reasons: Vec<_> = refusals.iter().map(|one| one.reason.as_str()).collect();
    assert_eq!(
        reasons,
        ["no space", "no io_uring"],
        "by the lowest rank, then by more"
    );
    assert_eq!(conductor.worst_code(), 2);
    // Told again to a rank that did not hear it.
    says(&mut conductor, at(1), 0, checked(&[]));
    assert_eq!(orders(&mut conductor, 0), [Order::Refused]);
}

#[test]
fn a_silent_rank_is_named_within_twelve_seconds_and_the_others_end() {
    let mut conductor = running(3, false);
    let _before = events(&mut conductor);
    for second in 1..=12 {
        for rank in [0, 1] {
            says(
                &mut conductor,
                at(second * 1000),
                rank,
                Stage::Running(Wave::new(0)),
            );
        }
        while conductor.wake_at() <= at(second * 1000) {
            let now = conductor.wake_at();
            conductor.handle_timeout(now);
        }
    }
    let told = events(&mut conductor);
    let lost = Rank::new(2);
    let [
        Event::RankLost { rank, silent },
        Event::Stopping { reason, .. },
    ] = told[..]
    else {
        panic!("{told:?}");
    };
    assert_eq!((rank, reason), (lost, StopReason::RankLost));
    assert!(
        (SILENCE_MAX..Nanos::from_secs(12)).contains(&silent),
        "{silent}"
    );
    assert_eq!(conductor.lost().collect::<Vec<_>>(), [lost]);
    // One that runs, runs on; the next wave does not start.
    says(&mut conductor, at(12_001), 0, Stage::Running(Wave::new(0)));
    assert_eq!(orders(&mut conductor, 0), []);
    says(&mut conductor, at(12_001), 0, Stage::Ready(Wave::new(1)));
    assert_eq!(
        orders(&mut conductor, 0),
        [Order::Stop(StopReason::RankLost)]
    );
    for rank in [0, 1] {
        says(&mut conductor, at(12_002), rank, Stage::Through { code: 0 });
    }
    assert_eq!(events(&mut conductor), [Event::AllThrough]);
    assert_eq!(conductor.worst_code(), 2);
    // It was only slow: it hears that nothing starts on it, and is reported.
    says(&mut conductor, at(13_000), 2, Stage::Ready(Wave::new(0)));
    let mut again = conductor.clone();
    assert_eq!(
        orders(&mut conductor, 2),
        [Order::Stop(StopReason::RankLost)]
    );
    assert_eq!(events(&mut again), [Event::RankReturned(lost)]);
}

#[test]
fn a_pause_of_the_conductor_loses_nobody() {
    let mut conductor = running(2, false);
    let _before = events(&mut conductor);
    conductor.handle_timeout(at(500));
    // Its process was stopped for a minute.
    conductor.handle_timeout(at(60_500));
    assert_eq!(events(&mut conductor), []);
    for half in 0..=22 {
        conductor.handle_timeout(at(61_000 + half * 500));
    }
    assert_eq!(conductor.lost().count(), 2);
}

#[test]
fn a_rank_that_loses_its_conductor_runs_to_the_end_and_leaves() {
    let mut member = Member::new(at(0));
    let wave = Wave::new(0);
    member.enter(Stage::Ready(wave));
    let start = Start {
        wave,
        at: at(20),
        bound: Nanos::ZERO,
        origin: at(20),
    };
    member.handle_order(at(1), Order::Start(start));
    assert_eq!(member.gate(wave), Gate::At(start));
    for second in 1..=12 {
        member.handle_timeout(at(second * 1000));
        assert!(member.poll_report().is_some(), "a report each second");
        assert!(member.poll_report().is_none(), "and no more");
    }
    assert_eq!(member.stop(), Some(StopReason::ConductorLost));
    assert!(!member.ends(wave), "its wave runs on");
    member.enter(Stage::Ready(Wave::new(1)));
    let over = Gate::Over(StopReason::ConductorLost);
    assert_eq!(member.gate(Wave::new(1)), over);
    assert_eq!(member.may_leave(), None);
    member.enter(Stage::Through { code: 0 });
    assert_eq!(member.may_leave(), Some(2));
}

/// Seed 94 of 8 simulated ranks: the reason to stop hid that the conductor was lost.
#[test]
fn a_rank_that_stops_leaves_when_its_conductor_is_lost_then() {
    let mut member = Member::new(at(0));
    member.handle_order(at(0), Order::Stop(StopReason::Requested));
    member.enter(Stage::Through { code: 0 });
    for second in 1..=11 {
        assert_eq!(member.may_leave(), None);
        member.handle_timeout(at(second * 1000));
    }
    assert_eq!(member.may_leave(), Some(2));
}

#[test]
fn a_rank_that_was_stopped_itself_blames_nobody() {
    let mut member = Member::new(at(0));
    member.handle_timeout(at(60_000));
    assert_eq!(member.stop(), None);
    for second in 61..=72 {
        member.handle_timeout(at(second * 1000));
    }
    assert_eq!(member.stop(), Some(StopReason::ConductorLost));
}

#[test]
fn a_request_to_stop_reaches_all_and_ends_what_runs() {
    for reason in [
        StopReason::Requested,
        StopReason::ExitAll,
        StopReason::ExitAllOnError,
    ] {
        let mut conductor = running(3, false);
        let _before = events(&mut conductor);
        let report = Report {
            stage: Stage::Running(Wave::new(0)),
            wants_stop: Some(reason),
            wants_end: None,
            progress: Progress::default(),
        };
        conductor.handle_report(at(30), Rank::new(1), report.clone());
        conductor.handle_report(at(31), Rank::new(1), report);
        let mut again = conductor.clone();
        assert_eq!(orders(&mut conductor, 2), [Order::Stop(reason)]);
        let rank = Rank::new(1);
        assert_eq!(events(&mut again), [Event::Stopping { reason, rank }]);
    }
}

#[test]
fn together_means_that_the_first_ends_the_wave_of_all() {
    let wave = Wave::new(0);
    for (together, want) in [(true, vec![Order::EndWave(wave)]), (false, vec![])] {
        let mut conductor = running(3, together);
        says(&mut conductor, at(30), 1, Stage::Running(wave));
        let _before = events(&mut conductor);
        says(&mut conductor, at(40), 2, Stage::Ended(wave));
        assert_eq!(orders(&mut conductor.clone(), 1), want);
        // Rank 0 has not even said that it runs.
        let told = orders(&mut conductor, 0);
        assert_eq!(told.last(), want.last());
        for rank in 0..3 {
            says(&mut conductor, at(50), rank, Stage::Ended(wave));
        }
        let _ended = events(&mut conductor);
        for rank in 0..3 {
            says(&mut conductor, at(50), rank, Stage::Ready(Wave::new(1)));
        }
        let next = orders(&mut conductor, 0);
        assert!(matches!(&next[..], [Order::Start(start)] if start.wave == Wave::new(1)));
    }
}

#[test]
fn a_rank_that_fails_is_named_and_the_others_go_on() {
    let mut conductor = running(2, false);
    let _before = events(&mut conductor);
    let reason = Text::new("disk full");
    says(&mut conductor, at(30), 0, Stage::Failed(reason.clone()));
    says(&mut conductor, at(30), 1, Stage::Ready(Wave::new(1)));
    let told = events(&mut conductor);
    let rank = Rank::new(0);
    assert_eq!(told[0], Event::RankFailed { rank, reason });
    assert!(
        matches!(told[1], Event::WaveStarts { ranks: 1, .. }),
        "{told:?}"
    );
    assert_eq!(conductor.worst_code(), 2);
}

#[test]
fn progress_is_summed_and_never_goes_back() {
    let mut conductor = running(2, false);
    let mut say = |rank, ms, ios| {
        let progress = Progress {
            elapsed: Nanos::from_millis(ms),
            jobs_running: 2,
            jobs_ended: 1,
            ios: PerDirection::new(ios, 0, 1),
            bytes: PerDirection::new(0, ios, 0),
        };
        let report = Report {
            stage: Stage::Running(Wave::new(0)),
            wants_stop: None,
            wants_end: None,
            progress,
        };
        conductor.handle_report(at(ms), Rank::new(rank), report);
        conductor.progress()
    };
    say(0, 1000, 10);
    say(1, 1100, 5);
    let sum = say(0, 900, 9);
    assert_eq!(sum.ios, PerDirection::new(15, 0, 2));
    assert_eq!(sum.bytes, PerDirection::new(0, 15, 0));
    assert_eq!((sum.jobs_running, sum.jobs_ended), (4, 2));
    assert_eq!(sum.elapsed, Nanos::from_millis(1100));
}

#[test]
fn the_number_of_ranks_has_limits() {
    for ranks in [0, 65_537] {
        let error = Conductor::new(at(0), ranks, false).expect_err("a limit");
        let want = format!("{ranks} ranks: between 1 and 65536 can run");
        assert_eq!(error.to_string(), want);
    }
    // Reports from beyond are nobody's.
    let mut conductor = conductor(1);
    says(&mut conductor, at(0), 1, checked(&[]));
    assert_eq!(events(&mut conductor), []);
}

#[test]
fn a_rank_can_ask_all_to_end_the_wave_that_runs_and_no_other() {
    let wave = Wave::new(0);
    let asks = |wants_end: u32| Report {
        stage: Stage::Running(wave),
        wants_stop: None,
        wants_end: Some(Wave::new(wants_end)),
        progress: Progress::default(),
    };
    for (wants_end, want) in [(0, vec![Order::EndWave(wave)]), (1, vec![])] {
        let mut conductor = running(3, false);
        let _before = events(&mut conductor);
        says(&mut conductor, at(30), 2, Stage::Running(wave));
        conductor.handle_report(at(30), Rank::new(1), asks(wants_end));
        assert_eq!(orders(&mut conductor, 2), want);
    }
    let mut member = Member::new(at(0));
    member.ask_end(wave);
    let report = member.poll_report();
    assert_eq!(report.and_then(|report| report.wants_end), Some(wave));
}

#[test]
fn the_next_wave_is_prepared_once_all_have_ended_the_last() {
    let wave = Wave::new(0);
    let mut conductor = running(3, false);
    let _before = events(&mut conductor);
    says(&mut conductor, at(30), 0, Stage::Ended(wave));
    // Rank 1 has not said that it runs; rank 2 is lost.
    conductor.handle_gone(at(31), Rank::new(2));
    let mut again = conductor.clone();
    assert_eq!(orders(&mut again, 0), [Order::Stop(StopReason::RankLost)]);
    let mut conductor = running(3, false);
    let _before = events(&mut conductor);
    says(&mut conductor, at(30), 0, Stage::Ended(wave));
    says(&mut conductor, at(31), 1, Stage::Ended(wave));
    assert_eq!(orders(&mut conductor.clone(), 0), []);
    says(&mut conductor, at(32), 2, Stage::Ended(wave));
    assert_eq!(orders(&mut conductor.clone(), 0), [Order::AllEnded(wave)]);
    // Told again to a rank that did not hear it, and of no use to one that is further.
    says(&mut conductor, at(33), 2, Stage::Ended(wave));
    assert_eq!(
        orders(&mut conductor, 2).last(),
        Some(&Order::AllEnded(wave))
    );
    let mut member = Member::new(at(0));
    member.enter(Stage::Ended(wave));
    assert!(!member.may_prepare());
    member.handle_order(at(1), Order::AllEnded(Wave::new(1)));
    assert!(!member.may_prepare());
    member.handle_order(at(1), Order::AllEnded(wave));
    assert!(member.may_prepare());
}

#[test]
fn nothing_starts_on_a_rank_whose_clock_is_not_known() {
    let conductor = Conductor::new(at(0), 3, false).expect("a few ranks");
    let mut conductor = conductor.awaiting_clocks();
    for stage in [checked(&[]), Stage::LaidOut, Stage::Ready(Wave::new(0))] {
        for rank in 0..3 {
            says(&mut conductor, at(0), rank, stage.clone());
        }
    }
    let starts = |conductor: &mut Conductor| {
        let starts = events(conductor)
            .into_iter()
            .filter_map(|event| match event {
                Event::WaveStarts { at, ranks, .. } => Some((at, ranks)),
                _ => None,
            });
        starts.collect::<Vec<_>>()
    };
    assert_eq!(starts(&mut conductor), []);
    assert!(!conductor.awaits_clock(Rank::new(0)) && conductor.awaits_clock(Rank::new(2)));
    conductor.set_clock(at(5), Rank::new(2), RemoteClock::ours());
    assert_eq!(starts(&mut conductor), []);
    conductor.set_clock(at(7), Rank::new(1), RemoteClock::ours());
    assert_eq!(starts(&mut conductor), [(at(7) + START_LEAD, 3)]);
}

#[test]
fn a_rank_that_lacks_the_first_wave_is_told_when_the_run_began() {
    let (mut conductor, second) = (conductor(2), Wave::new(1));
    for stage in [checked(&[]), Stage::LaidOut] {
        for rank in 0..2 {
            says(&mut conductor, at(0), rank, stage.clone());
        }
    }
    says(&mut conductor, at(10), 1, Stage::Ready(second));
    says(&mut conductor, at(10), 0, Stage::Ready(Wave::new(0)));
    says(&mut conductor, at(500), 0, Stage::Ended(Wave::new(0)));
    let _before = events(&mut conductor);
    says(&mut conductor, at(501), 0, Stage::Ready(second));
    let start = Start {
        wave: second,
        at: at(501) + START_LEAD,
        bound: Nanos::ZERO,
        origin: at(10) + START_LEAD,
    };
    assert_eq!(orders(&mut conductor, 1), [Order::Start(start)]);
}
