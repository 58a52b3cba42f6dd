//! Target files.
//!
//! ```toml
//! listen = "127.0.0.1:4420"
//!
//! [[device]]
//! name = "disk"
//! kind = "memory"
//! size = "1G"
//!
//! [[subsystem]]
//! nqn = "nqn.2026-01.org.example:disk"
//! [[subsystem.namespace]]
//! device = "disk"
//! ```

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;

use fathom_toml::{Fields, FileKind, Source};

use crate::devices::{self, Device, Surroundings};
use crate::host::Host;
use crate::pacing::{read_buffers, read_pacing};
use crate::plan::{DEFAULT_LISTEN, LimitsPlan, PORT, TargetPlan};
use crate::problem::TargetFileError;
use crate::sizes::read_size;
use crate::subsystems::{self, Shelf, User};

impl TargetPlan {
    /// Reads the plan that `text`, the content of `file`, describes.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its line and column.
    pub fn parse(file: &str, text: &str, host: &dyn Host) -> Result<Self, TargetFileError> {
        let source = Source::new(file, text, TARGET_FILE);
        let plan = source.parse().map(|document| {
            let top = source.top(&document);
            let plan = read(&source, &top, host);
            top.finish();
            plan
        });
        let problems = source.into_problems();
        match plan {
            Some(plan) if problems.is_empty() => Ok(plan),
            _ => Err(TargetFileError { problems }),
        }
    }
}

fn read(source: &Source<'_>, top: &Fields<'_>, host: &dyn Host) -> TargetPlan {
    let threads = top.count("threads", 1..=THREADS_MAX, Some(1));
    let threads = top.has("threads").then_some(threads);
    let buffers = read_buffers(top);
    let (devices, users) = read_devices(top, host, buffers.bytes);
    let mut shelf = Shelf {
        devices: &devices.by_name,
        users,
    };
    let mut plan = TargetPlan {
        listen: listen(top),
        threads,
        cpus: cpus(top, threads),
        busy_poll: top.flag("busy_poll", false),
        pacing: read_pacing(top, &buffers),
        limits: limits(top, buffers.bytes),
        metrics: metrics(top),
        socket: top.parsed("socket", true, "a path", |text| {
            (!text.is_empty()).then(|| PathBuf::from(text))
        }),
        buffers,
        subsystems: Vec::new(),
    };
    plan.subsystems = subsystems::read(source, top, &mut shelf);
    for (name, span) in &devices.places {
        if !shelf.users.contains_key(name) {
            let why = format!("device `{name}` is used by no namespace or part");
            top.refuse_at(span, why, "remove it, or name it in a namespace");
        }
    }
    too_much_memory(top, &devices, host);
    plan
}

/// Devices of a file.
struct Devices {
    /// `None` for one that was refused.
    by_name: BTreeMap<String, Option<Device>>,
    places: Vec<(String, Range<usize>)>,
}

fn read_devices(
    top: &Fields<'_>,
    host: &dyn Host,
    transfer_bytes_max: u32,
) -> (Devices, BTreeMap<String, Vec<User>>) {
    let mut devices = Devices {
        by_name: BTreeMap::new(),
        places: Vec::new(),
    };
    let mut users: BTreeMap<String, Vec<User>> = BTreeMap::new();
    for fields in top.tables("device") {
        let name = fields.parsed("name", false, "a name in quotes", |text| {
            (!text.is_empty()).then(|| text.to_owned())
        });
        let around = Surroundings {
            host,
            device: &|name| devices.by_name.get(name).cloned(),
            transfer_bytes_max,
        };
        let device = devices::read(&fields, &around);
        if let Some(part) = device.as_ref().and_then(Device::part) {
            let user = User {
                what: format!("`{}`", name.as_deref().unwrap_or("a part")),
                part: Some(part.range.clone()),
            };
            let others = users.entry(part.of.clone()).or_default();
            overlapping(&fields, &user, others);
            others.push(user);
        }
        let Some(name) = name else { continue };
        if devices.by_name.contains_key(&name) {
            let why = format!("another device is called `{name}`");
            fields.refuse("name", why, "give each its own name");
        }
        devices.places.push((name.clone(), fields.span()));
        devices.by_name.insert(name, device);
    }
    (devices, users)
}

/// Notes a part that shares bytes with another one: their hosts would overwrite each other's data.
fn overlapping(fields: &Fields<'_>, user: &User, others: &[User]) {
    let Some(range) = &user.part else { return };
    let overlaps = |other: &&User| {
        let part = other.part.as_ref();
        part.is_some_and(|other| other.start < range.end && range.start < other.end)
    };
    if let Some(other) = others.iter().find(overlaps) {
        let why = format!("the part overlaps with {}", other.what);
        fields.refuse(
            "from",
            why,
            "set `from` to the end of the other one, or beyond",
        );
    }
}

/// Notes memory devices that together do not fit into the machine.
fn too_much_memory(top: &Fields<'_>, devices: &Devices, host: &dyn Host) {
    let each = devices.by_name.values().flatten().map(Device::memory_bytes);
    let sum = each.fold(0_u64, u64::saturating_add);
    let memory = host.memory_bytes();
    // A single one is noted where it is read.
    let largest = devices
        .by_name
        .values()
        .flatten()
        .map(Device::memory_bytes)
        .max();
    if sum > memory && largest.is_some_and(|bytes| bytes <= memory) {
        let why = format!("memory devices of {sum} B, and this machine has {memory} B");
        let span = devices
            .places
            .first()
            .map_or(0..0, |(_, span)| span.clone());
        top.refuse_at(
            &span,
            why,
            "lower their sizes, or use devices of kind `file`",
        );
    }
}

fn listen(top: &Fields<'_>) -> Vec<SocketAddr> {
    let Some(found) = top.list("listen", true, ADDRESS, read_address) else {
        return vec![DEFAULT_LISTEN];
    };
    let mut listen: Vec<SocketAddr> = Vec::new();
    for (address, span) in found {
        if address.port() != 0 && listen.contains(&address) {
            top.refuse_at(&span, format!("{address} is listed twice"), "remove one");
        }
        listen.push(address);
    }
    listen
}

/// Reads an address with a port, or with that of NVMe/TCP.
#[must_use]
pub fn read_address(text: &str) -> Option<SocketAddr> {
    let bare = || {
        let inner = text
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        let address: IpAddr = inner.unwrap_or(text).parse().ok()?;
        Some(SocketAddr::new(address, PORT))
    };
    text.parse().ok().or_else(bare)
}

fn metrics(top: &Fields<'_>) -> Option<SocketAddr> {
    let wanted = "a port, or an IP address with one";
    top.parsed("metrics", true, wanted, read_metrics_address)
}

/// Reads an address with a port, or a port on this machine alone.
#[must_use]
pub fn read_metrics_address(text: &str) -> Option<SocketAddr> {
    let port = || Some(SocketAddr::new(DEFAULT_LISTEN.ip(), text.parse().ok()?));
    text.parse().ok().or_else(port)
}

fn cpus(top: &Fields<'_>, threads: Option<u32>) -> Vec<u32> {
    let Some(lists) = top.list("cpus", true, CPUS, read_cpus) else {
        return Vec::new();
    };
    let cpus: Vec<u32> = lists.into_iter().flat_map(|(list, _)| list).collect();
    let differs = |threads: &u32| !cpus.is_empty() && cpus.len() != *threads as usize;
    if let Some(threads) = threads.filter(differs) {
        let why = format!("{} CPUs for {threads} threads", cpus.len());
        top.refuse("cpus", why, "name one for each thread");
    }
    cpus
}

/// Reads a list of CPUs: `0-3,8`.
#[must_use]
pub fn read_cpus(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (u32, u32) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
        if from > to || to >= CPUS_MAX {
            return None;
        }
        cpus.extend(from..=to);
    }
    Some(cpus)
}

fn limits(top: &Fields<'_>, buffer_bytes: u32) -> LimitsPlan {
    let Some(fields) = top.table("limits", true) else {
        return LimitsPlan::default();
    };
    let count = |key, bounds: std::ops::RangeInclusive<u32>| {
        let least = *bounds.start();
        let found = fields.count(key, bounds, Some(least));
        fields.has(key).then_some(found)
    };
    let short = |found: Option<u32>| found.and_then(|found| u16::try_from(found).ok());
    let in_capsule = |text: &str| {
        let bytes = u32::try_from(read_size(text)?).ok()?;
        let is_allowed = bytes.is_multiple_of(16) && (4096..=16_384).contains(&bytes);
        is_allowed.then_some(bytes)
    };
    let limits = LimitsPlan {
        queue_entries: short(count("queue_entries", 32..=1024)),
        queues: short(count("queues", 1..=128)),
        in_capsule_bytes: fields.parsed("in_capsule_size", true, IN_CAPSULE, in_capsule),
        connections: count("connections", 1..=CONNECTIONS_MAX),
        connections_per_address: count("connections_per_address", 1..=CONNECTIONS_MAX),
        initialization_timeout_s: count("initialization_timeout_s", 1..=3600),
        transfer_timeout_s: count("transfer_timeout_s", 1..=3600),
    };
    if let Some(bytes) = limits
        .in_capsule_bytes
        .filter(|&bytes| bytes > buffer_bytes)
    {
        let why = format!("{bytes} B in a capsule, and a buffer has {buffer_bytes} B");
        fields.refuse("in_capsule_size", why, "lower it, or raise `buffer_size`");
    }
    fields.finish();
    limits
}

const TARGET_FILE: FileKind = FileKind {
    noun: "a target file",
    document: "docs/TARGET.md",
    examples: "examples/targets",
};
const ADDRESS: &str = "an IP address with a port, as in \"127.0.0.1:4420\"";
const CPUS: &str = "a list of CPUs, as in \"0-3,8\"";
const IN_CAPSULE: &str = "a multiple of 16 from 4k to 16k";
const THREADS_MAX: u32 = 1024;
const CPUS_MAX: u32 = 8192;
const CONNECTIONS_MAX: u32 = 1 << 20;
