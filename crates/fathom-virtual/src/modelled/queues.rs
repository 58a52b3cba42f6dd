//! The request queue that a machine file puts in front of a device, the host's threads and noise.

use fathom_block::{DeadlineConfig, Limits, Policy, QueueConfig, SchedulerConfig};
use fathom_core::Nanos;
use fathom_sim::{DeepIdle, HostConfig, NoiseConfig};
use fathom_toml::Fields;

/// `[device.queue]`; `None` where there is none.
pub(super) fn queue(device: &Fields<'_>) -> Option<QueueConfig> {
    let fields = device.table("queue", true)?;
    let max_kib = fields.count("max_sectors_kb", 4..=1 << 20, Some(1280));
    let scheduler = match fields.choice("scheduler", &["none", "mq-deadline"], false) {
        "none" => SchedulerConfig::None,
        _ => SchedulerConfig::Deadline(deadline(&fields)),
    };
    let policies = ["plain", "fair", "fair-roundrobin", "elastic"];
    let policy = match fields.choice("policy", &policies, true) {
        "fair" => Policy::Fair,
        "fair-roundrobin" => Policy::FairRoundRobin,
        "elastic" => Policy::Elastic,
        _ => Policy::Plain,
    };
    let queue_depth = fields.count("queue_depth", 1..=1 << 20, None);
    let usual_requests = match scheduler {
        SchedulerConfig::None => queue_depth,
        SchedulerConfig::Deadline(_) => 64,
    };
    let config = QueueConfig {
        limits: Limits {
            max_bytes: max_kib * 1024,
            max_segments: fields.count("max_segments", 1..=65_536, Some(4096)),
        },
        scheduler,
        nr_requests: fields.count("nr_requests", 1..=1 << 20, Some(usual_requests)),
        queue_depth,
        policy,
        together: fields.flag("together", true),
        plug: fields.flag("plug", false),
        hardware_queues: fields.count("hardware_queues", 1..=4096, Some(1)),
    };
    fields.finish();
    Some(config)
}

fn deadline(queue: &Fields<'_>) -> DeadlineConfig {
    let usual = DeadlineConfig::default();
    let Some(fields) = queue.table("mq-deadline", true) else {
        return usual;
    };
    let ms = |key, usual| fields.time(key, Nanos::from_millis(1), 0.0..=1e9, Some(usual));
    let config = DeadlineConfig {
        read_expire: ms("read_expire_ms", 500.0),
        write_expire: ms("write_expire_ms", 5000.0),
        writes_starved: fields.count("writes_starved", 0..=1 << 20, Some(usual.writes_starved)),
        fifo_batch: fields.count("fifo_batch", 1..=1 << 20, Some(usual.fifo_batch)),
        front_merges: fields.flag("front_merges", usual.front_merges),
        prio_aging_expire: ms("prio_aging_expire_ms", 10_000.0),
    };
    fields.finish();
    config
}

/// `[host]`: what threads cost; nothing where there is none.
pub(super) fn host(top: &Fields<'_>) -> HostConfig {
    let Some(fields) = top.table("host", true) else {
        return HostConfig::default();
    };
    let us = |key| fields.time(key, Nanos::from_micros(1), 0.0..=1e6, Some(0.0));
    let config = HostConfig {
        piece: us("piece_us"),
        wake: us("wake_us"),
        wake_each: us("wake_each_us"),
        wake_spread: us("wake_spread_us"),
        idle: fields.table("idle", true).map(|idle| {
            let time = |key| idle.time(key, Nanos::from_micros(1), 0.0..=1e6, None);
            let config = DeepIdle {
                cpus: idle.count("cpus", 1..=65_536, None),
                exit: time("exit_us"),
                expected_max: time("expects_us"),
            };
            idle.finish();
            config
        }),
        seed: fields.whole("seed", 0..=u64::MAX, Some(1)),
    };
    fields.finish();
    config
}

/// `[noise]`; `None` where there is none.
pub(super) fn noise(top: &Fields<'_>) -> Option<NoiseConfig> {
    let fields = top.table("noise", true)?;
    let noise = NoiseConfig::read(&fields);
    fields.finish();
    Some(noise)
}
