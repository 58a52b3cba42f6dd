//! `[pacing]` and the buffers: what limits the data in flight.

use fathom_block::{AutoConfig, BufferConfig, PacingConfig, RateConfig, Tuner, TunerConfig};
use fathom_core::Nanos;
use fathom_toml::Fields;

use crate::plan::DEFAULT_BUFFERS;
use crate::sizes::read_size;

/// Reads `buffers`, `buffer_size` and `buffer_cache`.
pub(crate) fn read_buffers(top: &Fields<'_>) -> BufferConfig {
    let count = top.count("buffers", 1..=BUFFERS_MAX, Some(1));
    let count = top.has("buffers").then_some(count);
    let bytes = top.parsed("buffer_size", true, BUFFER_SIZE, read_buffer_size);
    BufferConfig {
        count,
        bytes: bytes.unwrap_or(DEFAULT_BUFFERS.bytes),
        cache: top.count("buffer_cache", 0..=BUFFERS_MAX, Some(DEFAULT_BUFFERS.cache)),
    }
}

/// Reads the size of a buffer: a power of two, since it is the largest transfer, too. Hosts are
/// told that as MDTS, which has no value for 4 KiB.
#[must_use]
pub fn read_buffer_size(text: &str) -> Option<u32> {
    let bytes = u32::try_from(read_size(text)?).ok()?;
    let is_allowed = bytes.is_power_of_two() && (8192..=1 << 20).contains(&bytes);
    is_allowed.then_some(bytes)
}

/// Reads `[pacing]`.
pub(crate) fn read_pacing(top: &Fields<'_>, buffers: &BufferConfig) -> PacingConfig {
    let Some(fields) = top.table("pacing", true) else {
        return PacingConfig::None;
    };
    if let Some((name, span)) = fields.text("policy", false) {
        let names: Vec<&str> = POLICIES.iter().map(|policy| policy.name).collect();
        match POLICIES.iter().find(|policy| policy.name == name) {
            None => {
                let why = format!("unknown policy `{name}`");
                fields.refuse_at(&span, why, format!("policies: {}", names.join(", ")));
            }
            Some(policy) if policy.name == "buffers" && buffers.count.is_none() => {
                let hint = "write `buffers = 32` above, or another number of buffers";
                fields.refuse_at(&span, "the pool has no limit", hint);
            }
            Some(policy) => {
                let pacing = (policy.read)(&fields);
                fields.finish();
                return pacing;
            }
        }
    }
    PacingConfig::None
}

/// Row of the table of pacing policies.
#[derive(Clone, Copy, Debug)]
pub struct PolicyInfo {
    /// Name in files and on the command line.
    pub name: &'static str,
    /// Purpose, in one line.
    pub help: &'static str,
    /// Keys in `[pacing]`, beside `policy`.
    pub keys: &'static [&'static str],
    read: fn(&Fields<'_>) -> PacingConfig,
}

/// All pacing policies.
pub const POLICIES: &[PolicyInfo] = &[
    PolicyInfo {
        name: "none",
        help: "No pacing",
        keys: &[],
        read: |_| PacingConfig::None,
    },
    PolicyInfo {
        name: "buffers",
        help: "The number of buffers is the limit",
        keys: &[],
        read: |_| PacingConfig::None,
    },
    PolicyInfo {
        name: "rate",
        help: "A credit of bytes per period, on each thread",
        keys: &[
            "period_us",
            "credit",
            "threshold",
            "device_credit",
            "tuner",
            "tuner_interval_ms",
            "tuner_step_us",
            "tuner_threshold",
            "tuner_factor",
        ],
        read: |fields| PacingConfig::Rate(read_rate(fields)),
    },
    PolicyInfo {
        name: "auto",
        help: "The fewest bytes in flight that keep full bandwidth, searched while it runs",
        keys: &["slow_part"],
        read: |fields| PacingConfig::Auto(read_auto(fields)),
    },
];

/// Returns the name of the policy in force, as in files.
#[must_use]
pub const fn policy_name(pacing: &PacingConfig, buffers: &BufferConfig) -> &'static str {
    match (pacing, buffers.count) {
        (PacingConfig::None, None) => "none",
        (PacingConfig::None, Some(_)) => "buffers",
        (PacingConfig::Rate(_), _) => "rate",
        (PacingConfig::Auto(_), _) => "auto",
    }
}

fn read_auto(fields: &Fields<'_>) -> AutoConfig {
    let usual = AutoConfig::default();
    AutoConfig {
        slow_part: fields.count("slow_part", 1..=1024, Some(usual.slow_part)),
    }
}

fn read_rate(fields: &Fields<'_>) -> RateConfig {
    let usual = RateConfig::default();
    let size = |key, usual: u32| {
        let read = |text: &str| u32::try_from(read_size(text)?).ok();
        let found = fields.parsed(key, true, "a size below 4G, such as \"128k\"", read);
        found.unwrap_or(usual)
    };
    let credit = size("credit", usual.credit);
    if credit == 0 {
        let hint = "write the bytes that may pass in a period";
        fields.refuse("credit", "a credit of 0 lets no request pass", hint);
    }
    RateConfig {
        period: fields.time("period_us", US, 0.001..=1e6, Some(23.0)),
        credit,
        threshold: size("threshold", usual.threshold),
        device_credit: fields.count("device_credit", 0..=1 << 20, Some(usual.device_credit)),
        tuner: read_tuner(fields),
    }
}

/// Reads the tuner of a rate pacer and its parameters.
fn read_tuner(fields: &Fields<'_>) -> Option<TunerConfig> {
    let name = fields.choice("tuner", &["none", "io-period", "in-flight"], true);
    let tuner = match name {
        "io-period" => Tuner::IoPeriod,
        "in-flight" => Tuner::InFlight,
        _ => {
            let keys = [
                "tuner_interval_ms",
                "tuner_step_us",
                "tuner_threshold",
                "tuner_factor",
            ];
            for key in keys.into_iter().filter(|key| fields.has(key)) {
                let hint = "write `tuner = \"in-flight\"` or `tuner = \"io-period\"`";
                fields.refuse(key, format!("`{key}` without a tuner has no effect"), hint);
            }
            return None;
        }
    };
    let usual = TunerConfig::new(tuner);
    let threshold = fields.parsed("tuner_threshold", true, "a size such as \"12m\"", read_size);
    Some(TunerConfig {
        tuner,
        interval: fields.time("tuner_interval_ms", MS, 0.1..=10_000.0, Some(10.0)),
        step: fields.time("tuner_step_us", US, 0.001..=1e6, Some(1.0)),
        threshold_bytes: threshold.unwrap_or(usual.threshold_bytes),
        factor: fields.count("tuner_factor", 1..=1 << 20, Some(usual.factor)),
    })
}

const US: Nanos = Nanos::from_micros(1);
const MS: Nanos = Nanos::from_millis(1);
pub(crate) const BUFFER_SIZE: &str = "a power of two from 8k to 1m";
/// As many as 128 queues of 1024 entries on 8 controllers ask for.
const BUFFERS_MAX: u32 = 1 << 20;
