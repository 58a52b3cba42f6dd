//! Additions to fio's JSON under the key `"fathom"`, where readers of fio's schema ignore them:
//! machine, validity, warnings, lag and response times.

use fathom_core::Direction;
use fathom_record::{
    DirectionRecord, Machine, ModelledMachine, ProcessorsRecord, RECORD_VERSION, Record,
    SchedulingRecord, SeekRecord, StorageRecord, Validity, Warning,
};

use crate::device_trace;
use crate::document::latency;
use crate::group::ReportedJob;
use crate::hosts;
use crate::json::{Object, Value};
use crate::late::late_ops;
use crate::rate::of_direction;
use crate::stalls::stall_objects;
use crate::timelines;

/// Returns the additions for the whole run.
pub(crate) fn run(record: &Record, plus: bool) -> Object {
    let mut out = Object::new();
    out.set("version", env!("CARGO_PKG_VERSION"));
    out.set("record_version", RECORD_VERSION);
    out.set("elapsed_ms", record.elapsed_ms);
    if let Some(found) = &record.machine {
        out.set("machine", machine(found));
    }
    if let Some(found) = &record.processors {
        out.set("processors", processors(found));
    }
    if let Some(found) = &record.modelled {
        out.set("modelled", modelled(found));
    }
    if let Some(found) = &record.device_trace {
        out.set("trace", device_trace::json(found));
    }
    if !record.timelines.is_empty() {
        out.set("timelines", timelines::objects(record, plus));
    }
    if !record.hosts.is_empty() {
        out.set("hosts", hosts::objects(record));
        if let Some(found) = hosts::together_object(record) {
            out.set("together", found);
        }
    }
    let validity: Vec<Object> = record.validity.iter().map(validity).collect();
    out.set("validity", validity);
    let warnings: Vec<Object> = record.warnings.iter().map(warning).collect();
    out.set("warnings", warnings);
    out
}

/// Returns the additions for one job or group.
pub(crate) fn job(entry: &ReportedJob<'_>, plus: bool) -> Object {
    let job = &entry.job;
    let mut out = Object::new();
    out.set("members", entry.members);
    out.set("number", job.number);
    out.set("pid", job.pid);
    out.set("rw", job.rw.as_str());
    out.set("engine", job.engine.as_str());
    out.set("iodepth", job.iodepth);
    if let Some(found) = &job.scheduling {
        out.set("scheduling", scheduling(found));
    }
    // Those of a group's members overlap, and have no sum.
    if let Some(found) = job.processors.filter(|_| entry.members == 1) {
        out.set("processors", processors(&found));
    }
    if let Some(text) = &job.error_text {
        out.set("error_text", text.as_str());
    }
    if let Some(verify) = &job.verify {
        let mut found = Object::new();
        found.set("mismatches", verify.mismatches);
        found.set("compared", verify.compared);
        found.set("unknown", verify.unknown);
        let first = verify.first.iter().map(|text| text.as_str().into());
        found.set("first", Value::Array(first.collect()));
        out.set("verify", found);
    }
    if let Some(log) = &job.log {
        let mut lines = Object::new();
        lines.set("lines_kept", log.lines_kept);
        lines.set("lines_dropped", log.lines_dropped);
        out.set("log", lines);
    }
    if job.repeated_requests > 0 {
        out.set("repeated_requests", job.repeated_requests);
    }
    if let Some(cost) = &job.own_cost {
        let mut own = Object::new();
        own.set("clock_read_ns", cost.clock_read_ns);
        if let Some(ns) = cost.loop_ns_per_op {
            own.set("loop_ns_per_op", ns);
        }
        out.set("own_cost", own);
    }
    if !job.stalls.is_empty() {
        out.set("stalls", stall_objects(job));
    }
    for kind in Direction::ALL {
        let DirectionRecord {
            lag, resp, queued, ..
        } = of_direction(job, kind);
        let mut times = Object::new();
        for (key, record) in [("lag_ns", lag), ("resp_ns", resp), ("queued_ns", queued)] {
            if record.is_some() {
                times.set(key, latency(record.as_ref(), &job.display, true, plus));
            }
        }
        if let Some(late) = lag.as_ref().and_then(late_ops) {
            times.set("late_ios", late);
        }
        if !times.is_empty() {
            out.set(kind.name(), times);
        }
    }
    out
}

/// Marks the run as modelled: no real device served its ops and no clock timed them.
fn modelled(machine: &ModelledMachine) -> Object {
    let mut out = Object::new();
    out.set("clock", MODELLED);
    out.set("machine", machine.file.as_str());
    if let Some(noise) = &machine.noise {
        out.set("assumed_noise", noise.as_str());
    }
    let devices = machine.devices.iter().map(|device| {
        let mut out = Object::new();
        let names: Vec<&str> = device.names.iter().map(String::as_str).collect();
        out.set("names", names);
        out.set("model", device.model.as_str());
        out.set("capacity_bytes", device.capacity_bytes);
        if let Some(found) = &device.seeks {
            out.set("seeks", seeks(found));
        }
        out
    });
    out.set("devices", devices.collect::<Vec<Object>>());
    out
}

fn seeks(found: &SeekRecord) -> Object {
    let mut out = Object::new();
    out.set("dispatched", found.dispatched);
    out.set("merged", found.merged);
    out.set("sequential", found.sequential);
    if let Some(ratio) = found.sequential_ratio {
        out.set("sequential_ratio", ratio);
    }
    let mut distances = Object::new();
    distances.set("from_kib", found.distances.from_kib.clone());
    distances.set("to_kib", found.distances.to_kib.clone());
    distances.set("count", found.distances.count.clone());
    out.set("distances", distances);
    out
}

/// Label of results that come from models.
pub(crate) const MODELLED: &str = "modelled, virtual time";

pub(crate) fn machine(machine: &Machine) -> Object {
    let mut out = Object::new();
    out.set("kernel", machine.kernel.as_str());
    out.set("cpu", machine.cpu.as_str());
    out.set("cpus_online", machine.cpus_online);
    out.set("memory_bytes", machine.memory_bytes);
    out.set("clock_source", machine.clock_source.as_str());
    out.set("clock_hz", machine.clock_hz);
    out.set("clock_read_ns", machine.clock_read_ns);
    let storage: Vec<Object> = machine.storage.iter().map(storage).collect();
    out.set("storage", storage);
    let features: Vec<&str> = machine.engine_features.iter().map(String::as_str).collect();
    out.set("engine_features", features);
    if !machine.governor.is_empty() {
        out.set("governor", machine.governor.as_str());
    }
    out
}

fn storage(storage: &StorageRecord) -> Object {
    let mut out = Object::new();
    out.set("path", storage.path.as_str());
    out.set("mount", storage.mount.as_str());
    out.set("filesystem", storage.filesystem.as_str());
    out.set("device", storage.device.as_str());
    out.set("scheduler", storage.scheduler.as_str());
    out.set("logical_block_bytes", storage.logical_block_bytes);
    out.set("physical_block_bytes", storage.physical_block_bytes);
    out.set("nr_requests", storage.nr_requests);
    out.set("max_sectors_kib", storage.max_sectors_kib);
    out.set("rotational", storage.rotational);
    out
}

pub(crate) fn processors(found: &ProcessorsRecord) -> Object {
    let mut out = Object::new();
    out.set("cpus", found.cpus);
    out.set("wall_us", found.wall_us);
    out.set("busy_us", found.busy_us);
    out.set("own_us", found.own_us);
    out.set("stolen_us", found.stolen_us);
    for (key, value) in [
        ("throttled_us", found.throttled_us),
        ("throttled_periods", found.throttled_periods),
        ("thermal_throttles", found.thermal_throttles),
        ("frequency_before_mhz", found.frequency_before_mhz),
        ("frequency_after_mhz", found.frequency_after_mhz),
        ("frequency_max_mhz", found.frequency_max_mhz),
    ] {
        if let Some(value) = value {
            out.set(key, value);
        }
    }
    out
}

fn scheduling(found: &SchedulingRecord) -> Object {
    let mut out = Object::new();
    out.set("ran_ns", found.ran_ns);
    out.set("waited_ns", found.waited_ns);
    out.set("turns", found.turns);
    out.set("involuntary_switches", found.involuntary_switches);
    if let Some(mhz) = found.frequency_mhz {
        out.set("frequency_mhz", mhz);
    }
    out
}

pub(crate) fn validity(validity: &Validity) -> Object {
    let figures = validity.figures.iter();
    let figures: Object = figures
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    let mut out = Object::new();
    out.set("job", validity.job.as_str());
    out.set("check", validity.check.as_str());
    out.set("ok", validity.ok);
    out.set("sentence", validity.sentence.as_str());
    out.set("figures", figures);
    out
}

pub(crate) fn warning(warning: &Warning) -> Object {
    let mut out = Object::new();
    out.set("code", warning.code.as_str());
    out.set("job", warning.job.as_str());
    out.set("message", warning.message.as_str());
    out.set("hint", warning.hint.as_str());
    out
}
