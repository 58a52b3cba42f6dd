use fathom_record::{CpuRecord, JobRecord};

use super::*;
use crate::validity::judge_run;
use crate::validity::tests::{Seen, check, judge, run_of};

const MS: u64 = 1_000;
const S: u64 = 1_000_000;

/// Job that ran for 10 s and waited this long in all, in 50,000 turns.
fn waited(waited_us: u64) -> impl Fn(&mut JobRecord, &mut Seen) {
    move |record, seen| {
        record.cpu = CpuRecord {
            user_us: S,
            system_us: S,
            wall_us: 10 * S,
            ..CpuRecord::default()
        };
        record.scheduling = Some(SchedulingRecord {
            ran_ns: 2 * S * 1_000,
            waited_ns: waited_us * 1_000,
            turns: 50_000,
            ..SchedulingRecord::default()
        });
        seen.processors = JobProcessors { cpus: 2, jobs: 1 };
        seen.used = Some(ProcessorsRecord {
            cpus: 2,
            wall_us: 10 * S,
            busy_us: 19 * S,
            own_us: 3 * S,
            ..ProcessorsRecord::default()
        });
    }
}

#[track_caller]
fn says(judgements: &[Validity], name: &str, words: &str) {
    check(judgements, name, Some(false));
    let found = judgements.iter().find(|validity| validity.check == name);
    let sentence = &found.unwrap().sentence;
    assert!(sentence.contains(words), "{sentence}");
}

#[test]
fn waits_on_busy_processors_name_the_other_load() {
    let judged = judge("", waited(3 * S));
    says(
        &judged,
        "contention",
        "waited 3.00 s for a processor, 30 % of the run (60 µs at a time): other programs used 1.6 \
         of the 2 CPUs on which it may run",
    );
}

#[test]
fn little_waiting_is_no_contention() {
    check(&judge("", waited(0)), "contention", Some(true));
    check(&judge("", waited(99 * MS)), "contention", Some(true));
    // Waking up on an idle processor, often: each wait is short.
    check(&judge("", waited(450 * MS)), "contention", Some(true));
    check(&judge("", waited(550 * MS)), "contention", Some(false));
    // Processors with deep sleep states: the waits are long, but nothing else ran.
    let asleep = judge("", |record, seen| {
        waited(3 * S)(record, seen);
        seen.used.as_mut().unwrap().busy_us = 4 * S;
    });
    check(&asleep, "contention", Some(true));
    let short = judge("", |record, seen| {
        waited(3 * S)(record, seen);
        record.cpu.wall_us = 49 * MS;
    });
    check(&short, "contention", Some(true));
    check(&judge("", |_, _| {}), "contention", None);
}

#[test]
fn jobs_that_wait_for_each_other_are_told_apart_from_other_load() {
    let jobs = |cpus, jobs| {
        judge("", move |record, seen| {
            waited(30 * S)(record, seen);
            seen.processors.cpus = cpus;
            seen.processors.jobs = jobs;
            seen.used.as_mut().unwrap().own_us = 18 * S;
        })
    };
    says(&jobs(2, 8), "contention", ": 8 jobs share 2 CPUs and");
    says(&jobs(1, 2), "contention", ": 2 jobs share one CPU and");
    says(&jobs(2, 2), "contention", ": other threads of this run");
}

#[test]
fn a_cause_is_named_only_if_it_explains_the_waits() {
    let unexplained = judge("", |record, seen| {
        waited(8 * S)(record, seen);
        let used = seen.used.as_mut().unwrap();
        (used.busy_us, used.own_us) = (11 * S, 10 * S);
        record.cpu.user_us = 9 * S;
    });
    says(&unexplained, "contention", "at a time); latencies include");
    let held = judge("", |record, seen| {
        waited(8 * S)(record, seen);
        seen.used.as_mut().unwrap().throttled_us = Some(5 * S);
    });
    says(&held, "contention", "CPU limit of its control group");
}

#[test]
fn a_job_is_judged_by_the_processors_that_it_had_while_it_ran() {
    let of = |busy_us| {
        judge("", move |record, seen| {
            waited(3 * S)(record, seen);
            record.processors = Some(ProcessorsRecord {
                cpus: 1,
                wall_us: 10 * S,
                busy_us,
                own_us: 2 * S,
                ..ProcessorsRecord::default()
            });
        })
    };
    says(&of(9 * S), "contention", "used 0.7 of the one CPU");
    check(&of(4 * S), "contention", Some(true));
}

#[test]
fn a_slow_processor_matters_to_a_job_that_uses_it() {
    let at = |mhz, user_us| {
        judge("", move |record, seen| {
            waited(0)(record, seen);
            record.cpu.user_us = user_us;
            record.cpu.system_us = 0;
            record.scheduling.as_mut().unwrap().frequency_mhz = Some(mhz);
            seen.used.as_mut().unwrap().frequency_max_mhz = Some(3_500);
        })
    };
    says(
        &at(1_200, 2 * S),
        "frequency",
        "1.2 GHz, of at most 3.5 GHz",
    );
    check(&at(2_000, 2 * S), "frequency", Some(true));
    check(&at(1_200, S / 2), "frequency", Some(true));
    check(&judge("", waited(0)), "frequency", None);
}

#[test]
fn heat_is_reported_if_it_slowed_the_processors() {
    let run = |count| {
        judge_run(&RunEvidence {
            processors: Some(ProcessorsRecord {
                thermal_throttles: count,
                ..ProcessorsRecord::default()
            }),
            ..run_of(0)
        })
    };
    check(&run(None), "overheating", None);
    check(&run(Some(0)), "overheating", Some(true));
    says(&run(Some(1)), "overheating", "(1 time)");
}

#[test]
fn short_runs_and_few_ops_are_said() {
    let of = |runtime_ms, ops| {
        judge("", move |record, _| {
            record.runtime_ms = runtime_ms;
            record.directions.read.ios = ops;
        })
    };
    check(&of(50, 100), "length", Some(true));
    says(&of(49, 100_000), "length", "from 49 ms (100000 ops)");
    says(&of(1, 1), "length", "from 1 ms (1 op)");
    says(&of(5_000, 99), "length", "from 99 ops: p99 is the slowest");
    check(&of(5_000, 0), "length", None);
}
