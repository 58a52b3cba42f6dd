//! Random jobs on a naive device that refuses what breaks the rules of zones.

use fathom_core::{
    Direction, FileIndex, Tick, WriteArea, Xoshiro256, Zone, ZoneAction, ZoneCondition, ZoneKind,
};
use proptest::prelude::*;

use super::access::ResetRule;
use super::answer::{
    FinishReason, ResetReason, StepKind, ZoneAnswer, ZoneHold, ZoneRules, ZoneStep, ZoneUser,
};
use super::recorded::RecordedAnswer;
use super::table::{Held, ZoneTable};
use crate::pattern::OpTarget;

mod device;
mod single;

use device::{Device, KIB, ZONE, can_be_reset};

/// Job of a test.
struct Job {
    rules: ZoneRules,
    user: ZoneUser,
    /// Target that waits.
    target: Option<OpTarget>,
    position: u64,
    in_flight: Vec<(OpTarget, ZoneHold, bool)>,
    depth: usize,
    left: u32,
}

#[derive(Clone, Debug)]
struct Case {
    zones: u64,
    capacity: u64,
    odd: Vec<ZoneCondition>,
    open_max: Option<u32>,
    jobs: Vec<JobCase>,
    area: Option<WriteArea>,
    fails: bool,
    seed: u64,
}

#[derive(Clone, Debug)]
struct JobCase {
    random: bool,
    /// It trims, and does nothing else.
    trims: bool,
    reads: u8,
    block: u32,
    depth: usize,
    own_max: Option<u32>,
    keeps: bool,
    remainder: bool,
    reset: Option<ResetRule>,
    areas: bool,
    appends: bool,
    from: u64,
    zones: u64,
}

fn job_case() -> impl Strategy<Value = JobCase> {
    let reset = (0_u32..=1_000_000, 1_u32..5).prop_map(|(threshold_ppm, every)| ResetRule {
        threshold_ppm,
        every,
    });
    let trims = prop::bool::weighted(0.2);
    let kinds = (
        any::<bool>(),
        trims,
        prop_oneof![Just(0_u8), Just(50), Just(100)],
    );
    let sizes = (
        prop_oneof![Just(4096_u32), Just(12288), Just(16384)],
        1_usize..5,
    );
    let rules = (
        prop_oneof![Just(None), Just(Some(1_u32)), Just(Some(2))],
        any::<bool>(),
        any::<bool>(),
        prop::option::of(reset),
        prop_oneof![2 => Just((false, false)), 1 => Just((true, false)), 1 => Just((false, true))],
    );
    let range = (0_u64..8, 1_u64..8);
    (kinds, sizes, rules, range).prop_map(|(kinds, sizes, rules, range)| JobCase {
        random: kinds.0,
        trims: kinds.1,
        reads: kinds.2,
        block: sizes.0,
        depth: sizes.1,
        own_max: rules.0,
        keeps: rules.1,
        remainder: rules.2,
        reset: rules.3,
        areas: rules.4.0,
        appends: rules.4.1,
        from: range.0,
        zones: range.1,
    })
}

fn case() -> impl Strategy<Value = Case> {
    let odd = prop_oneof![
        4 => Just(ZoneCondition::Empty),
        1 => Just(ZoneCondition::Closed),
        1 => Just(ZoneCondition::Full),
        1 => Just(ZoneCondition::ReadOnly),
        1 => Just(ZoneCondition::Offline),
        1 => Just(ZoneCondition::NotWritePointer),
    ];
    let device = (
        2_u64..9,
        prop_oneof![Just(ZONE), Just(48 * KIB), Just(20 * KIB)],
        prop::collection::vec(odd, 0..6),
    );
    let limits = prop_oneof![Just(None), (1_u32..5).prop_map(Some)];
    let jobs = prop::collection::vec(job_case(), 1..5);
    let area = (1_u64..4, prop_oneof![Just(4 * KIB), Just(8 * KIB)]);
    let area = area.prop_map(|(granules, granule)| WriteArea {
        // At least a block of any job.
        bytes: (granules * granule).max(16 * KIB),
        granule,
        zones: None,
    });
    let device = (device, prop::option::of(area));
    (device, limits, jobs, any::<bool>(), any::<u64>()).prop_map(
        |((device, area), open_max, jobs, fails, seed)| Case {
            zones: device.0,
            capacity: device.1,
            odd: device.2,
            open_max,
            jobs,
            area,
            fails,
            seed,
        },
    )
}

fn start(case: &Case, table: &mut ZoneTable) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (number, one) in (0..).zip(&case.jobs) {
        let from = one.from % case.zones;
        let to = (from + one.zones).min(case.zones);
        let rules = ZoneRules {
            job: number,
            range: table.inside(from * ZONE, to * ZONE),
            random: one.random,
            pairs: false,
            smallest_read: 4096,
            smallest_write: one.block,
            open_max: case.open_max,
            job_open_max: one.own_max,
            reads_beyond: false,
            writes_remainder: one.remainder,
            // Only one job may read back what it writes: the others would move its writes.
            keeps_data: one.keeps && case.jobs.len() == 1,
            reset: one.reset.filter(|_| !one.keeps),
            areas: one.areas,
            appends: one.appends,
        };
        let user = table.register(&rules);
        jobs.push(Job {
            rules,
            user,
            target: None,
            position: 0,
            in_flight: Vec::new(),
            depth: one.depth,
            left: 120,
        });
    }
    jobs
}

/// Draws the next target of a job.
fn draw(job: &mut Job, case: &JobCase, random: &mut Xoshiro256) -> OpTarget {
    let block = match case.trims {
        true => ZONE,
        false => u64::from(job.rules.smallest_write),
    };
    let start = job.rules.range.start as u64 * ZONE;
    let blocks = (job.rules.range.len() as u64 * ZONE / block).max(1);
    let place = match job.rules.random {
        true => random.below(blocks),
        false => job.position % blocks,
    };
    job.position += 1;
    OpTarget {
        direction: match random.below(100) < u64::from(case.reads) {
            _ if case.trims => Direction::Trim,
            true => Direction::Read,
            false => Direction::Write,
        },
        file: FileIndex::new(0),
        offset: start + place * block,
        length: u32::try_from(block).expect("short"),
    }
}

/// Checks the reason of a step against the device, and carries it out.
fn carry_out(case: &Case, device: &mut Device, job: &Job, step: &ZoneStep, open: usize) -> Zone {
    let index = step.number as usize;
    let zone = device.zones[index];
    let rules = &job.rules;
    let written = device.end(index) - zone.start;
    let room = zone.write_end() - device.end(index);
    // A failed write may have been the last one of its zone.
    let has_holes = case.fails && case.area.is_some();
    match step.kind {
        StepKind::Reset(ResetReason::Full) => assert_eq!(zone.condition, ZoneCondition::Full),
        StepKind::Reset(ResetReason::OldData) => {
            assert!(rules.keeps_data && (written > 0 || has_holes));
        }
        StepKind::Reset(ResetReason::Threshold) => {
            let zones = || rules.range.clone();
            let all: u64 = zones().map(|index| device.zones[index].length).sum();
            let has_pointer = |&index: &usize| device.zones[index].kind != ZoneKind::Conventional;
            let used = |index: usize| device.end(index) - device.zones[index].start;
            let used: u64 = zones().filter(has_pointer).map(used).sum();
            let rule = rules.reset.expect("a rule");
            // The device also has the writes in flight, which count when they complete.
            let is_beyond = used * 1_000_000 >= all * u64::from(rule.threshold_ppm);
            assert!(is_beyond && written > 0 || has_holes);
        }
        StepKind::Finish(FinishReason::Remainder) => {
            let is_short = room < u64::from(rules.smallest_write) || has_holes;
            assert!(is_short && !rules.writes_remainder);
        }
        StepKind::Finish(FinishReason::WrittenWhole) => {
            assert!((room == 0 || has_holes) && zone.has_area);
        }
        StepKind::Finish(FinishReason::Area) => assert!(rules.appends && zone.has_area),
        StepKind::Finish(FinishReason::OpenLimit) => {
            let full = case.open_max.is_some_and(|max| open >= max as usize);
            assert!(full || rules.job_open_max.is_some());
        }
        StepKind::OpenWithArea => assert_eq!(zone.condition, ZoneCondition::Empty),
        StepKind::Commit => assert!(zone.has_area),
        StepKind::Report => return zone,
    }
    assert_ne!(zone.condition, ZoneCondition::Offline);
    device.manage(step.kind.action().expect("a command"), zone.start);
    zone
}

/// Checks that no write is in flight in a zone whose state a command changes.
#[track_caller]
fn meets_no_write(in_flight: &[OpTarget], step: &ZoneStep) {
    let meets = in_flight
        .iter()
        .find(|op| op.direction != Direction::Read && op.offset / ZONE == u64::from(step.number));
    assert_eq!(meets, None, "{step:?}");
}

fn run(case: &Case) {
    let mut device =
        Device::new(case.zones, case.capacity, &case.odd).with_areas(case.area, case.fails);
    let before = device.active();
    let mut table = ZoneTable::new(&device.report());
    let mut jobs = start(case, &mut table);
    let mut random = Xoshiro256::new(case.seed);
    let mut steps = 0_u64;
    while jobs
        .iter()
        .any(|job| job.left > 0 || !job.in_flight.is_empty())
    {
        steps += 1;
        assert!(steps < 400_000, "no progress: {case:?}");
        let number = usize::try_from(random.below(jobs.len() as u64)).expect("a job");
        let in_flight = || jobs.iter().flat_map(|job| &job.in_flight);
        let used: Vec<_> = in_flight().map(|(target, ..)| *target).collect();
        let job = &mut jobs[number];
        let full = job.in_flight.len() >= job.depth;
        if !job.in_flight.is_empty() && (full || job.left == 0 || random.below(3) == 0) {
            complete_one(&mut device, &mut table, job, &mut random);
            continue;
        }
        if job.left == 0 {
            commit(case, &mut device, &mut table, job, &used);
            table.leave(job.rules.job);
            continue;
        }
        let held = job.target.take();
        let target = held.unwrap_or_else(|| draw(job, &case.jobs[number], &mut random));
        let now = Tick::new(steps * 1_000_000);
        match table.admit(&job.rules, &mut job.user, &target, now) {
            ZoneAnswer::Issue(target, hold) => {
                job.left -= 1;
                meets_no_reset(&used, &target);
                let fails = case.fails && random.below(20) == 0;
                if hold.mark.is_none() {
                    issue(&mut device, &target, fails, &mut random);
                }
                job.in_flight.push((target, hold, !fails));
            }
            ZoneAnswer::Do(step) => {
                meets_no_write(&used, &step);
                let zone = carry_out(case, &mut device, job, &step, table.open_count());
                table.settle(&step, Some(&zone));
                job.target = Some(target);
            }
            ZoneAnswer::Wait => job.target = Some(target),
            ZoneAnswer::Skip => {}
            ZoneAnswer::Exhausted { for_good } => {
                let may_end = !for_good || !any_zone_takes(target.direction, &device, job);
                assert!(may_end, "{:?} gave up: {case:?}", job.rules);
                // A pass of this job ends here; one of another begins when it pleases.
                job.left = 0;
            }
        }
        assert!(table.open_count() <= usize::try_from(case.zones).expect("few"));
        let most = case.open_max.map(|max| (max as usize).max(before));
        let active = device.active();
        assert!(
            most.is_none_or(|most| active <= most),
            "{active} open zones"
        );
    }
    for job in &jobs {
        commit(case, &mut device, &mut table, job, &[]);
        let mut zones = job.rules.range.clone();
        // What is in a zone after a failure is asked for by the next write, if there is one.
        let are_committed = case.fails || zones.all(|zone| device.lies_behind_pointer(zone));
        assert!(are_committed, "{:?}", device.zones);
    }
}

/// Completes an op of a job.
fn complete_one(
    device: &mut Device,
    table: &mut ZoneTable,
    job: &mut Job,
    random: &mut Xoshiro256,
) {
    let chosen = random.below(job.in_flight.len() as u64);
    let (target, hold, done) = job
        .in_flight
        .remove(usize::try_from(chosen).expect("an op"));
    // A reset takes effect when it completes, and one that fails changes nothing.
    if target.direction == Direction::Trim && done {
        device.manage(ZoneAction::Reset, target.offset);
    }
    let takes_effect = done || random.below(2) == 0;
    match hold.mark {
        Some(_) if job.rules.appends => device.append(&target, takes_effect),
        Some(_) => device.write_in_area(&target, takes_effect),
        None => {}
    }
    table.end(hold, done);
}

/// Commits the zones of a job that ends.
fn commit(
    case: &Case,
    device: &mut Device,
    table: &mut ZoneTable,
    job: &Job,
    in_flight: &[OpTarget],
) {
    while let Some(step) = table.commit_of(&job.rules) {
        meets_no_write(in_flight, &step);
        let zone = carry_out(case, device, job, &step, table.open_count());
        table.settle(&step, Some(&zone));
    }
}

/// Checks that no op is in flight in a zone that is reset.
#[track_caller]
fn meets_no_reset(in_flight: &[OpTarget], target: &OpTarget) {
    for other in in_flight {
        let resets = [other, target]
            .iter()
            .any(|op| op.direction == Direction::Trim);
        let same = other.offset / ZONE == target.offset / ZONE;
        assert!(!(resets && same), "{target:?} beside {other:?}");
    }
}

/// Carries out an op on the device, or fails it, with or without effect.
fn issue(device: &mut Device, target: &OpTarget, fails: bool, random: &mut Xoshiro256) {
    let index = usize::try_from(target.offset / ZONE).expect("a zone");
    if target.direction == Direction::Read {
        return device.check_read(index, target);
    }
    if target.direction == Direction::Trim {
        return device.check_trim(target);
    }
    device.write(target, !fails || random.below(2) == 0);
}

/// Returns whether a zone of the job's range takes a write or a trim, now or when it is emptied.
fn any_zone_takes(direction: Direction, device: &Device, job: &Job) -> bool {
    let takes = match direction {
        Direction::Read => return true,
        Direction::Write => is_writable,
        Direction::Trim => |zone: &Zone, _: &Job| can_be_reset(zone),
    };
    let mut zones = device.zones[job.rules.range.clone()].iter();
    zones.any(|zone| takes(zone, job))
}

fn is_writable(zone: &Zone, job: &Job) -> bool {
    let ended = matches!(
        zone.condition,
        ZoneCondition::ReadOnly | ZoneCondition::Offline | ZoneCondition::NotWritePointer
    );
    let fits = zone.capacity >= u64::from(job.rules.smallest_write);
    !ended && (fits || job.rules.writes_remainder)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_write_leaves_the_pointer_and_no_job_is_left_behind(case in case()) {
        run(&case);
    }
}
