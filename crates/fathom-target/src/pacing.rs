//! `[pacing]` and the buffers: what limits the data in flight.

use fathom_block::{BufferConfig, PacingConfig};
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

/// Reads the size of a buffer: a power of two, since it is the largest transfer, too.
#[must_use]
pub fn read_buffer_size(text: &str) -> Option<u32> {
    let bytes = u32::try_from(read_size(text)?).ok()?;
    let is_allowed = bytes.is_power_of_two() && (4096..=1 << 20).contains(&bytes);
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
                let why = format!("there is no policy `{name}`");
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
];

pub(crate) const BUFFER_SIZE: &str = "a power of two from 4k to 1m";
/// As many as 128 queues of 1024 entries on 8 controllers ask for.
const BUFFERS_MAX: u32 = 1 << 20;
