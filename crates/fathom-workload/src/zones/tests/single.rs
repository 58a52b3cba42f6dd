//! Single situations of one job.

use super::*;

/// Returns a target in a file of zones.
fn target(direction: Direction, offset: u64, length: u64) -> OpTarget {
    OpTarget {
        direction,
        file: FileIndex::new(0),
        offset,
        length: u32::try_from(length).expect("short"),
    }
}

fn rules(table: &ZoneTable) -> ZoneRules {
    ZoneRules {
        job: 0,
        range: 0..table.len(),
        random: true,
        pairs: false,
        smallest_read: 4096,
        smallest_write: 4096,
        open_max: None,
        job_open_max: None,
        reads_beyond: false,
        writes_remainder: false,
        keeps_data: false,
        reset: None,
        areas: false,
        appends: false,
    }
}

#[track_caller]
fn hold_of(answer: ZoneAnswer) -> (OpTarget, ZoneHold) {
    match answer {
        ZoneAnswer::Issue(target, hold) => (target, hold),
        other => panic!("not issued: {other:?}"),
    }
}

#[test]
fn a_report_leaves_an_open_zone_to_its_job() {
    let mut device = Device::new(2, ZONE, &[]);
    let mut table = ZoneTable::new(&device.report());
    let limited = ZoneRules {
        job_open_max: Some(1),
        ..rules(&table)
    };
    let mut user = table.register(&limited);
    let now = Tick::ZERO;
    let first = target(Direction::Write, 0, 8 * KIB);
    let (placed, hold) = hold_of(table.admit(&limited, &mut user, &first, now));
    device.write(&placed, true);
    table.end(hold, false);
    let ZoneAnswer::Do(step) = table.admit(&limited, &mut user, &first, now) else {
        panic!("a failed write is followed by a report");
    };
    table.settle(&step, Some(&device.zones[0]));
    let second = target(Direction::Write, ZONE, 8 * KIB);
    let (placed, _) = hold_of(table.admit(&limited, &mut user, &second, now));
    assert_eq!(placed.offset, 8 * KIB, "a second zone was opened");
}

#[test]
fn writes_of_an_area_complete_in_any_order() {
    let area = WriteArea {
        bytes: 16 * KIB,
        granule: 8 * KIB,
        zones: None,
    };
    let mut device = Device::new(1, 32 * KIB, &[]).with_areas(Some(area), false);
    let mut table = ZoneTable::new(&device.report());
    let rules = ZoneRules {
        areas: true,
        ..rules(&table)
    };
    let mut user = table.register(&rules);
    let write = target(Direction::Write, 0, 4096);
    let mut ask = |table: &mut ZoneTable| table.admit(&rules, &mut user, &write, Tick::ZERO);
    let ZoneAnswer::Do(open) = ask(&mut table) else {
        panic!("an empty zone is opened first");
    };
    assert_eq!(open.kind, StepKind::OpenWithArea);
    device.manage(ZoneAction::OpenWithArea, 0);
    table.settle(&open, Some(&open.zone));
    let mut issued: Vec<_> = (0..4).map(|_| hold_of(ask(&mut table))).collect();
    let offsets = issued.iter().map(|(target, _)| target.offset / 4096);
    assert_eq!(offsets.collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(ask(&mut table), ZoneAnswer::Wait, "the area is full");
    let mut end = |table: &mut ZoneTable, number: usize| {
        let (target, hold) = issued.remove(number);
        device.write_in_area(&target, true);
        table.end(hold, true);
        table.zone(0).write_pointer / 4096
    };
    assert_eq!(end(&mut table, 3), 0);
    assert_eq!(end(&mut table, 1), 0);
    assert_eq!(end(&mut table, 0), 1, "the first was a group of its own");
    assert_eq!(
        ask(&mut table),
        ZoneAnswer::Wait,
        "less than a granule is done"
    );
    assert_eq!(end(&mut table, 0), 4);
    let (placed, hold) = hold_of(ask(&mut table));
    assert_eq!(placed.offset, 16 * KIB);
    table.give_back(hold);
    assert_eq!(hold_of(ask(&mut table)).0.offset, 16 * KIB, "given back");
}

#[test]
fn appends_complete_in_any_order_and_leave_no_room_for_writes_at_the_pointer() {
    let mut device = Device::new(1, 24 * KIB, &[]);
    let mut table = ZoneTable::new(&device.report());
    let plain = rules(&table);
    let appends = ZoneRules {
        appends: true,
        ..plain.clone()
    };
    let (mut user, mut other) = (table.register(&appends), table.register(&plain));
    let write = target(Direction::Write, 0, 8 * KIB);
    let mut ask = |table: &mut ZoneTable| table.admit(&appends, &mut user, &write, Tick::ZERO);
    let mut issued: Vec<_> = (0..3).map(|_| hold_of(ask(&mut table))).collect();
    assert_eq!(ask(&mut table), ZoneAnswer::Wait, "the zone is given away");
    for (number, pointer) in [(2, 0), (0, 8), (0, 24)] {
        let plain = table.admit(&plain, &mut other, &write, Tick::ZERO);
        assert_eq!(plain, ZoneAnswer::Wait);
        let (target, hold) = issued.remove(number);
        device.append(&target, true);
        table.end(hold, true);
        assert_eq!(table.zone(0).write_pointer, pointer * KIB);
    }
    assert_eq!(device.zones[0].condition, ZoneCondition::Full);
    let ZoneAnswer::Do(step) = ask(&mut table) else {
        panic!("a full zone is reset");
    };
    device.manage(ZoneAction::Reset, 0);
    table.settle(&step, Some(&device.zones[0]));
    // One of two fails, and the device says how far it has come.
    let (first, second) = (hold_of(ask(&mut table)), hold_of(ask(&mut table)));
    assert_eq!(second.0.offset, 8 * KIB);
    device.append(&first.0, true);
    assert!(table.agrees(second.1, &device.zones[0]));
    table.end(second.1, false);
    assert_eq!(ask(&mut table), ZoneAnswer::Wait, "one is in flight");
    table.end(first.1, true);
    let ZoneAnswer::Do(step) = ask(&mut table) else {
        panic!("a failed write is followed by a report");
    };
    table.settle(&step, Some(&device.zones[0]));
    let (placed, hold) = hold_of(table.admit(&plain, &mut other, &write, Tick::ZERO));
    assert_eq!(placed.offset, 8 * KIB);
    assert_eq!(ask_again(&mut table, &appends, &write), ZoneAnswer::Wait);
    table.give_back(hold);
}

fn ask_again(table: &mut ZoneTable, rules: &ZoneRules, write: &OpTarget) -> ZoneAnswer {
    let mut user = table.register(rules);
    table.admit(rules, &mut user, write, Tick::ZERO)
}

#[test]
fn an_op_that_is_not_issued_gives_its_zone_back() {
    let device = Device::new(2, ZONE, &[ZoneCondition::Full]);
    let mut table = ZoneTable::new(&device.report());
    let rules = rules(&table);
    let mut user = table.register(&rules);
    for direction in [Direction::Read, Direction::Trim] {
        let length = if direction == Direction::Read {
            4096
        } else {
            ZONE
        };
        let drawn = target(direction, 0, length);
        let (_, hold) = hold_of(table.admit(&rules, &mut user, &drawn, Tick::ZERO));
        table.give_back(hold);
        assert_eq!((table.zones[0].reads, table.zones[0].held), (0, Held::Free));
    }
}

/// A pass that is skipped whole is not a success.
#[test]
fn a_sequential_pass_over_lost_zones_ends_with_the_reason() {
    let (write, trim) = (Direction::Write, Direction::Trim);
    for (direction, block) in [(write, 16384), (write, 12288), (trim, ZONE)] {
        let lost = [ZoneCondition::Offline, ZoneCondition::ReadOnly];
        let device = Device::new(2, ZONE, &lost);
        let mut table = ZoneTable::new(&device.report());
        let rules = ZoneRules {
            random: false,
            ..rules(&table)
        };
        let mut user = table.register(&rules);
        let pass = 2 * ZONE / block;
        for number in 0..pass {
            let drawn = target(direction, number * block, block);
            let answer = table.admit(&rules, &mut user, &drawn, Tick::ZERO);
            let want = match number + 1 == pass {
                true => ZoneAnswer::Exhausted { for_good: true },
                false => ZoneAnswer::Skip,
            };
            assert_eq!(answer, want, "{block}: target {number} of {pass}");
        }
    }
}

/// Empty zones may yet be written by another job; lost ones may not.
#[test]
fn random_trims_end_for_good_only_where_no_zone_can_be_reset() {
    let (offline, empty) = (ZoneCondition::Offline, ZoneCondition::Empty);
    for (conditions, for_good) in [([offline, offline], true), ([offline, empty], false)] {
        let mut table = ZoneTable::new(&Device::new(2, ZONE, &conditions).report());
        let rules = rules(&table);
        let mut user = table.register(&rules);
        let drawn = target(Direction::Trim, 0, ZONE);
        let answer = table.admit(&rules, &mut user, &drawn, Tick::ZERO);
        assert_eq!(answer, ZoneAnswer::Exhausted { for_good });
    }
}

#[test]
fn recorded_ops_must_fit_their_zones() {
    let odd = [ZoneCondition::Closed, ZoneCondition::NotWritePointer];
    let mut table = ZoneTable::new(&Device::new(4, 48 * KIB, &odd).report());
    let mut rules = rules(&table);
    rules.open_max = Some(1);
    let check = |table: &mut ZoneTable, direction, offset, length, want: &str| {
        let asked = target(direction, offset, length);
        let said = match table.admit_recorded(&rules, &asked) {
            RecordedAnswer::Issue(hold) => {
                table.end(hold, true);
                String::new()
            }
            RecordedAnswer::Refused(refusal) => refusal.to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(said.is_empty(), want.is_empty(), "{asked:?}: {said}");
        assert!(said.contains(want), "{said}");
    };
    let (write, trim) = (Direction::Write, Direction::Trim);
    check(
        &mut table,
        write,
        0,
        4096,
        "writes at 0, but its write pointer is at 8192",
    );
    check(&mut table, write, 8192, 4096, "");
    check(
        &mut table,
        write,
        12288,
        48 * KIB,
        "writes up to 61440, beyond its capacity, which ends at 49152",
    );
    check(
        &mut table,
        write,
        2 * ZONE,
        4096,
        "beside the 1 zones that may be open",
    );
    check(&mut table, write, ZONE + 8192, 4096, "");
    check(&mut table, trim, ZONE, ZONE, "conventional");
    check(
        &mut table,
        trim,
        0,
        4096,
        "trims 0 to 4096, but a zone is reset whole",
    );
    check(&mut table, write, 12288, 36 * KIB, "");
    check(&mut table, write, 0, 4096, "it is full");
    check(&mut table, trim, 0, ZONE, "");
    check(&mut table, write, 0, 4096, "");
    check(&mut table, Direction::Read, 4096, 4096, "");
}
