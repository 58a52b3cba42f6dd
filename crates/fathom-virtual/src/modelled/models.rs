//! The models that a machine file may name, and their parameters.

use std::ops::RangeInclusive;

use fathom_core::{BlockDevice, Nanos, PerDirection};
use fathom_sim::{
    Array, Constant, Drawn, Hdd, HddConfig, PlatterConfig, Recorded, Ssd, SsdConfig, WriteCache,
    Zone,
};

use super::fields::Fields;

/// A model with its parameters.
#[derive(Clone, Debug)]
pub(crate) enum Model {
    /// Every op takes as long.
    Constant(Nanos),
    /// Latencies that were recorded, and what they are drawn from.
    Distribution(PerDirection<Option<Recorded>>, u64),
    /// A hard disk.
    Hdd(HddConfig),
    /// A flash drive.
    Ssd(SsdConfig),
    /// Several of one model, spread over chunk by chunk.
    Array(Box<ArrayModel>),
}

/// Like devices that look like one.
#[derive(Clone, Debug)]
pub(crate) struct ArrayModel {
    member: Model,
    members: u32,
    chunk_bytes: u64,
}

impl Model {
    /// The model that a `[[device]]` names, from the table of that name.
    pub(super) fn read(device: &Fields<'_>, capacity: u64) -> Option<Self> {
        Self::read_one_of(&MODELS, device, capacity)
    }

    /// The same, where only these models make sense.
    fn read_one_of(models: &[&'static str], device: &Fields<'_>, capacity: u64) -> Option<Self> {
        let (name, _) = device.text("model", false)?;
        let Some(known) = models.iter().copied().find(|known| *known == name) else {
            let why = match MODELS.contains(&name) {
                true => format!("there is no `{name}` of this one"),
                false => format!("there is no model `{name}`"),
            };
            device.refuse("model", why, &format!("models: {}", models.join(", ")));
            return None;
        };
        refuse_others(device, known);
        let fields = device.table(known, false)?;
        let model = match known {
            "constant" => Self::Constant(fields.time("latency_us", US, 0.001..=1e9, None)),
            "distribution" => distribution(&fields),
            "hdd" => Self::Hdd(hdd(&fields, capacity)),
            "ssd" => Self::Ssd(ssd(&fields, capacity)),
            _ => Self::Array(Box::new(array(&fields, capacity)?)),
        };
        fields.finish();
        Some(model)
    }

    /// Its name.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Constant(_) => "constant",
            Self::Distribution(..) => "distribution",
            Self::Hdd(_) => "hdd",
            Self::Ssd(_) => "ssd",
            Self::Array(_) => "array",
        }
    }

    /// A new device.
    pub(super) fn device(&self) -> Box<dyn BlockDevice> {
        self.member(0)
    }

    /// A new device that is this one of an array: what is drawn by chance is its own.
    fn member(&self, number: u64) -> Box<dyn BlockDevice> {
        match self {
            Self::Constant(latency) => Box::new(Constant::new(*latency)),
            Self::Distribution(recorded, seed) => {
                Box::new(Drawn::new(recorded.clone(), seed.wrapping_add(number)))
            }
            Self::Hdd(config) => Box::new(Hdd::new(config.clone())),
            Self::Ssd(config) => Box::new(Ssd::new(config.clone())),
            Self::Array(array) => {
                let members = (0..u64::from(array.members)).map(|at| array.member.member(at));
                Box::new(Array::new(members.collect(), array.chunk_bytes))
            }
        }
    }

    /// Its latencies, if it draws them.
    pub(super) fn recorded(&self) -> Option<&PerDirection<Option<Recorded>>> {
        match self {
            Self::Distribution(recorded, _) => Some(recorded),
            Self::Array(array) => array.member.recorded(),
            Self::Constant(_) | Self::Hdd(_) | Self::Ssd(_) => None,
        }
    }
}

/// Tables of models that the device is not of.
fn refuse_others(device: &Fields<'_>, model: &str) {
    for other in MODELS.into_iter().filter(|other| *other != model) {
        if device.has(other) {
            let why = format!("there is a table of `{other}`, and the model is `{model}`");
            let hint = match model {
                "array" => format!("that of the members is `[device.array.{other}]`"),
                _ => format!("take it out, or write `model = \"{other}\"`"),
            };
            device.refuse(other, why, &hint);
        }
    }
}

fn distribution(fields: &Fields<'_>) -> Model {
    let keys = ["read", "write", "trim"];
    let [read, write, trim] = keys.map(|key| {
        let table = fields.table(key, true)?;
        let recorded = recorded(&table);
        table.finish();
        recorded
    });
    let each = PerDirection::new(read, write, trim);
    if !keys.iter().any(|key| fields.has(key)) {
        let why = "there are no latencies";
        fields.refuse(
            "read",
            why,
            "write `[device.distribution.read]`, or of `write`",
        );
    }
    Model::Distribution(each, fields.whole("seed", 0..=u64::MAX, Some(1)))
}

/// The latencies of one direction.
fn recorded(table: &Fields<'_>) -> Option<Recorded> {
    let (latencies, counts) = (table.wholes("latency_ns"), table.wholes("count"));
    let (latencies, counts) = (latencies?, counts?);
    if latencies.len() != counts.len() {
        let (these, those) = (latencies.len(), counts.len());
        let why = format!("{these} latencies and {those} counts: they must be as many");
        table.refuse("count", why, "give each latency its count");
        return None;
    }
    if latencies.iter().any(|ns| *ns > LATENCY_NS_MAX) {
        let why = format!("a latency is longer than {LATENCY_NS_MAX} ns, which is eleven days");
        table.refuse("latency_ns", why, "write nanoseconds");
        return None;
    }
    let recorded = Recorded::new(latencies.into_iter().zip(counts));
    if recorded.is_none() {
        table.refuse("count", "nothing was counted", "give latencies and counts");
    }
    recorded
}

fn hdd(fields: &Fields<'_>, capacity: u64) -> HddConfig {
    let zones = zones(fields, capacity);
    let write_cache = fields.table("write_cache", true).map(|cache| {
        let write_cache = WriteCache {
            bytes: cache.whole("size_mib", 1..=65_536, None) << 20,
            writes: cache.count("writes", 1..=65_536, None),
            bytes_per_second: rate(&cache, "fill_mb_per_s"),
        };
        cache.finish();
        write_cache
    });
    let milliseconds = |key, bounds: RangeInclusive<f64>| fields.time(key, MS, bounds, None);
    HddConfig {
        platter: PlatterConfig {
            capacity,
            rpm: fields.count("rpm", 1..=100_000, None),
            zones,
            settle: milliseconds("settle_ms", 0.0..=1000.0),
            seek_root: milliseconds("seek_root_ms", 0.0..=1000.0),
            seek_linear: milliseconds("seek_linear_ms", 0.0..=1000.0),
        },
        overhead: fields.time("overhead_us", US, 0.0..=1e6, Some(0.0)),
        reorder_window: fields.count("looks_at", 1..=65_536, None),
        reports_together: fields.count("reports_together", 1..=65_536, Some(1)),
        write_cache,
    }
}

/// Evenly wide zones, from the rate of the outermost to that of the innermost.
fn zones(fields: &Fields<'_>, capacity: u64) -> Vec<Zone> {
    let outer = rate(fields, "outer_mb_per_s");
    let inner = rate(fields, "inner_mb_per_s");
    if inner > outer {
        let why = "the innermost tracks cannot hold more than the outermost";
        fields.refuse("inner_mb_per_s", why, "exchange the two rates");
    }
    let count = fields.whole("zones", 1..=1000, Some(16));
    let lost = outer.saturating_sub(inner);
    let zone = |number: u64| Zone {
        from: capacity / count * number,
        bytes_per_second: outer - lost * number / (count - 1).max(1),
    };
    (0..count).map(zone).collect()
}

fn ssd(fields: &Fields<'_>, capacity: u64) -> SsdConfig {
    let page_bytes = fields.count("page_kib", 4..=1024, None) * 1024;
    if !page_bytes.is_multiple_of(4096) {
        let why = "`page_kib` must be a multiple of 4";
        fields.refuse(
            "page_kib",
            why,
            "data are mapped in units of 4 KiB: write 4, 8, 16 …",
        );
    }
    let buffer_bytes = fields.whole("buffer_kib", 8..=16 << 20, None) << 10;
    if buffer_bytes < 2 * u64::from(page_bytes) {
        let why = "the buffer holds less than two pages: no page would ever be full";
        fields.refuse("buffer_kib", why, "raise `buffer_kib`");
    }
    let (channels, dies_per_channel) = (
        fields.count("channels", 1..=1024, None),
        fields.count("dies_per_channel", 1..=1024, None),
    );
    let microseconds = |key| fields.time(key, US, 0.001..=1e6, None);
    let config = SsdConfig {
        capacity,
        spare_percent: fields.count("spare_percent", 3..=300, None),
        channels,
        dies_per_channel,
        page_bytes,
        pages_per_block: fields.count("pages_per_block", 1..=65_536, None),
        read: microseconds("read_us"),
        program: microseconds("program_us"),
        erase: microseconds("erase_us"),
        channel_bytes_per_second: rate(fields, "channel_mb_per_s"),
        link_bytes_per_second: rate(fields, "link_mb_per_s"),
        command: fields.time("command_us", US, 0.0..=1e6, None),
        buffer_bytes,
        buffer_is_safe: fields.flag("buffer_is_safe", false),
        worn: fields.flag("worn", false),
        slow_die: slow_die(fields, channels * dies_per_channel),
    };
    let block = u64::from(page_bytes) * u64::from(config.pages_per_block);
    let dies = u64::from(channels * dies_per_channel);
    if capacity < 8 * block * dies {
        let (blocks, kib) = (capacity / block, block >> 10);
        let why = format!("{blocks} blocks of {kib} KiB are less than 8 for each of {dies} dies");
        let hint = "raise `capacity_gib`, or lower the dies or `pages_per_block`";
        fields.refuse("pages_per_block", why, hint);
    }
    if capacity / block > BLOCKS_MAX {
        let (blocks, kib) = (capacity / block, block >> 10);
        let why = format!("{blocks} blocks of {kib} KiB are more than the {BLOCKS_MAX} of a model");
        let hint = "lower `capacity_gib`, or raise `pages_per_block`";
        fields.refuse("pages_per_block", why, hint);
    }
    config
}

/// Members have their model's table in that of the array. `capacity` is that of all together.
fn array(fields: &Fields<'_>, capacity: u64) -> Option<ArrayModel> {
    let members = fields.count("members", 2..=64, None);
    let chunk_bytes = fields.whole("chunk_kib", 4..=1 << 20, None) << 10;
    if !chunk_bytes.is_multiple_of(4096) {
        let why = "`chunk_kib` must be a multiple of 4";
        fields.refuse("chunk_kib", why, "write 64, 128, 512 …");
    }
    let chunks = capacity.div_ceil(chunk_bytes).div_ceil(members.into());
    let member = Model::read_one_of(&MEMBERS, fields, chunks * chunk_bytes)?;
    if let Model::Ssd(ssd) = &member {
        let block = u64::from(ssd.page_bytes) * u64::from(ssd.pages_per_block);
        let blocks = ssd.capacity / block.max(1) * u64::from(members);
        if blocks > BLOCKS_MAX {
            let why = format!("{blocks} blocks of flash are more than the {BLOCKS_MAX} of a model");
            let hint = "lower `members` or `capacity_gib`, or raise `pages_per_block`";
            fields.refuse("members", why, hint);
        }
    }
    Some(ArrayModel {
        member,
        members,
        chunk_bytes,
    })
}

/// A die that is slower than the others, and how many times.
fn slow_die(fields: &Fields<'_>, dies: u32) -> Option<(u32, u32)> {
    let slow = fields.table("slow_die", true)?;
    let die = slow.count("die", 0..=dies.saturating_sub(1), None);
    let times = slow.count("times", 1..=100_000, None);
    slow.finish();
    Some((die, times))
}

/// A rate in millions of bytes each second.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bounds are far below 2^53, and not negative"
)]
fn rate(fields: &Fields<'_>, key: &'static str) -> u64 {
    (fields.number(key, 0.001..=1e6, None) * 1e6) as u64
}

const MODELS: [&str; 5] = ["constant", "distribution", "hdd", "ssd", "array"];
/// Models that the members of an array may have.
const MEMBERS: [&str; 4] = ["constant", "distribution", "hdd", "ssd"];
/// As long as `latency_us` of a constant device may be.
const LATENCY_NS_MAX: u64 = 1_000_000_000_000_000;
/// Of a modelled flash drive: each takes memory.
const BLOCKS_MAX: u64 = 1 << 22;
const US: Nanos = Nanos::from_micros(1);
const MS: Nanos = Nanos::from_millis(1);
