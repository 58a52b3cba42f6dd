//! Automatic pacing against a model of a target, beside every fixed setting.

#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a model; its numbers are far below 2^53"
)]

#[path = "target_model/mod.rs"]
mod target_model;

use fathom_block::{AutoConfig, PacingConfig};
use fathom_core::{Nanos, Tick};
use target_model::{Job, Machine, Target};

const KIB: u32 = 1024;

/// A thread whose processor is the bottleneck, with a cache of 2 MiB.
fn memory() -> Machine {
    Machine {
        threads: 1,
        devices: vec![Nanos::ZERO],
        cache_bytes: 2 << 20,
        turn_ns: 3000.0,
        op_ns: 1000.0,
        hit_ns: 165.0,
        miss_ns: 215.0,
        link_ns: 0.0,
        noise: 0.2,
        slice_noise: 0.02,
        seed: 1,
    }
}

fn null() -> Machine {
    Machine {
        miss_ns: 165.0,
        ..memory()
    }
}

/// Four threads and sixteen disks on a link of two times 100 Gb/s, as published.
fn disks() -> Machine {
    Machine {
        threads: 4,
        devices: vec![Nanos::from_micros(90); 16],
        cache_bytes: 14 << 20,
        turn_ns: 1000.0,
        op_ns: 1500.0,
        hit_ns: 60.0,
        miss_ns: 240.0,
        link_ns: 43.5,
        ..memory()
    }
}

fn job(devices: std::ops::Range<u32>, depth: u32) -> Job {
    Job {
        devices,
        depth,
        bytes: 128 * KIB,
        from: Tick::ZERO,
        until: Tick::MAX,
        think: Nanos::from_micros(20),
    }
}

fn at_ms(ms: u64) -> Tick {
    Tick::ZERO + Nanos::from_millis(ms)
}

/// Bytes per second of each job between two times.
fn rates(target: &mut Target, from_ms: u64, until_ms: u64) -> Vec<f64> {
    target.run(at_ms(from_ms));
    let before = target.sent.clone();
    target.run(at_ms(until_ms));
    let sent = target.sent.iter().zip(before);
    let seconds = (until_ms - from_ms) as f64 / 1e3;
    sent.map(|(after, before)| (after - before) as f64 / seconds)
        .collect()
}

const AUTO: PacingConfig = PacingConfig::Auto(AutoConfig { slow_part: 16 });

/// Checks a depth beside no limit and every fixed one. The figures are those of the issue but for
/// the noise of two measurements and what looking for a better limit costs.
#[track_caller]
fn check_depth(name: &str, machine: &Machine, depth: u32) {
    let devices = machine.devices.len() as u32;
    let rate = |count, pacing, from, until| {
        let mut target = Target::new(machine.clone(), vec![job(0..devices, depth)], count, pacing);
        (rates(&mut target, from, until)[0], target.auto())
    };
    let open = rate(None, PacingConfig::None, 200, 700).0;
    let fixed = [8, 16, 32, 48, 96].map(|count| rate(Some(count), PacingConfig::None, 200, 700).0);
    let best = fixed.into_iter().fold(open, f64::max);
    let (auto, statistics) = rate(None, AUTO, 2000, 3000);
    let seed = machine.seed;
    let why = format!(
        "{name}, depth {depth}, seed {seed}: {auto:.3e}, best {best:.3e}, open {open:.3e}, \
         {statistics:?}"
    );
    assert!(auto >= best * 0.965, "{why}");
    assert!(auto >= open * 0.98, "{why}");
    let statistics = statistics.expect("automatic pacing");
    if depth >= 512 && open < best * 0.9 {
        // The limit holds something back, and says on what evidence.
        assert!(statistics.limit_bytes.is_some(), "{why}");
        let above = statistics.above.expect("a higher limit was measured");
        assert!(above.bandwidth < statistics.bandwidth * 102 / 100, "{why}");
        assert!(statistics.changed_at > Tick::ZERO, "{why}");
    }
}

#[test]
fn auto_is_as_good_as_the_best_fixed_setting() {
    for (seed, depth) in [1, 2, 8, 32, 64, 256, 1024, 2048].into_iter().enumerate() {
        let seed = seed as u64;
        let with_seed = |machine| Machine { seed, ..machine };
        check_depth("memory", &with_seed(memory()), depth);
        check_depth("null", &with_seed(null()), depth);
        check_depth("disks", &with_seed(disks()), depth);
    }
}

#[test]
fn auto_does_not_depend_on_the_seed() {
    for seed in 10..20 {
        check_depth("memory", &Machine { seed, ..memory() }, 256);
        check_depth("disks", &Machine { seed, ..disks() }, 1024);
    }
}

#[test]
fn threads_that_share_a_cache_keep_to_it_together() {
    let machine = Machine {
        threads: 4,
        devices: vec![Nanos::ZERO; 4],
        cache_bytes: 8 << 20,
        ..memory()
    };
    for depth in [16, 128, 1024] {
        check_depth("threads", &machine, depth);
    }
}

/// Runs a fast device alone and beside slow ones; returns its part of the bandwidth.
fn beside_slow(slow: u32, depth: u32, fast_depth: u32, count: Option<u32>, seed: u64) -> [f64; 2] {
    let mut machine = Machine { seed, ..memory() };
    machine
        .devices
        .extend(vec![Nanos::from_millis(1); slow as usize]);
    let jobs = vec![job(0..1, fast_depth), job(1..1 + slow, depth)];
    let mut alone = Target::new(machine.clone(), jobs[..1].to_vec(), count, AUTO);
    let alone = rates(&mut alone, 1500, 2000)[0];
    let mut target = Target::new(machine, jobs, count, AUTO);
    let rates = rates(&mut target, 2000, 3000);
    rates
        .try_into()
        .map(|[fast, slow]: [f64; 2]| [fast / alone, slow / alone])
        .expect("two jobs")
}

#[test]
fn a_fast_device_keeps_nine_tenths_beside_slow_ones() {
    let cases = [
        (16, 1, 8, None),
        (16, 16, 256, None),
        (16, 512, 8, None),
        (32, 1, 64, None),
        (32, 32, 64, None),
        (32, 2048, 256, None),
        (32, 512, 64, Some(48)),
        (16, 512, 256, Some(96)),
    ];
    for (seed, (slow, depth, fast_depth, count)) in (0_u64..).zip(cases) {
        let [fast_part, slow_part] = beside_slow(slow, depth, fast_depth, count, seed);
        let case = (slow, depth, fast_depth, count);
        assert!(
            fast_part >= 0.9,
            "{case:?}: {fast_part:.3} beside {slow_part:.3}"
        );
        assert!(
            slow_part >= 0.01,
            "{case:?}: slow devices starve: {slow_part:.3}"
        );
    }
}

#[test]
fn slow_devices_have_what_the_others_leave() {
    // A fast device that is hardly used loses nothing beside busy slow ones.
    let mut machine = memory();
    machine.devices.extend([Nanos::from_millis(1); 16]);
    let light = Job {
        think: Nanos::from_micros(500),
        ..job(0..1, 2)
    };
    let jobs = vec![light, job(1..17, 16)];
    let mut target = Target::new(machine, jobs, None, AUTO);
    let rates = rates(&mut target, 3000, 4000);
    assert!(rates[1] > 1.2e9, "{rates:?} {:?}", target.auto());
}

#[test]
fn a_limit_is_found_within_two_seconds_of_a_change_of_load() {
    let until = |job, until_ms| Job {
        until: at_ms(until_ms),
        ..job
    };
    let from = |job, from_ms| Job {
        from: at_ms(from_ms),
        ..job
    };
    for seed in 0..4 {
        let machine = Machine { seed, ..memory() };
        // Four requests, then 512 more, then few again.
        let jobs = vec![job(0..1, 4), until(from(job(0..1, 512), 3000), 6000)];
        let mut target = Target::new(machine.clone(), jobs, None, AUTO);
        let few = rates(&mut target, 2000, 3000).iter().sum::<f64>();
        let many = rates(&mut target, 5000, 6000).iter().sum::<f64>();
        let limit = target.auto().and_then(|auto| auto.limit_bytes);
        let few_again = rates(&mut target, 8000, 9000).iter().sum::<f64>();
        assert!(few > 5.4e9 && few_again > 5.4e9, "{few:e} {few_again:e}");
        assert!(many > 5.65e9, "{many:e} at {limit:?}");
        assert!(limit.is_some_and(|bytes| bytes <= 3 << 20), "{limit:?}");
    }
}

#[test]
fn an_idle_target_forgets_its_limit() {
    let busy = Job {
        until: at_ms(1500),
        ..job(0..1, 256)
    };
    let light = Job {
        think: Nanos::from_millis(30),
        ..job(0..1, 1)
    };
    let mut target = Target::new(memory(), vec![busy, light], None, AUTO);
    target.run(at_ms(1400));
    assert!(target.auto().is_some_and(|auto| auto.limit_bytes.is_some()));
    target.run(at_ms(2500));
    assert_eq!(target.auto().and_then(|auto| auto.limit_bytes), None);
}
