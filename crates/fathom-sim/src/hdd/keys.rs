//! Keys of a hard disk in a file.

use std::ops::RangeInclusive;
use std::sync::Arc;

use fathom_block::Parameters;
use fathom_core::{BlockDevice, Nanos};

use super::{Hdd, HddConfig, WriteCache};
use crate::models::Model;
use crate::platter::{PlatterConfig, Zone};

impl Model for HddConfig {
    fn device(&self, _number: u64) -> Box<dyn BlockDevice> {
        Box::new(Hdd::new(self.clone()))
    }
}

/// Reads the keys of `[device.hdd]`.
pub(crate) fn read(fields: &dyn Parameters, capacity: u64) -> Option<Arc<dyn Model>> {
    let zones = zones(fields, capacity);
    let write_cache = fields.table("write_cache", true).map(|cache| {
        let write_cache = WriteCache {
            bytes: cache.whole("size_mib", 1..=65_536, None) << 20,
            writes: cache.count("writes", 1..=65_536, None),
            bytes_per_second: cache.rate("fill_mb_per_s"),
        };
        cache.finish();
        write_cache
    });
    let milliseconds = |key, bounds: RangeInclusive<f64>| fields.time(key, MS, bounds, None);
    Some(Arc::new(HddConfig {
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
    }))
}

/// Returns zones of equally many tracks, from the rate of the outermost to that of the innermost.
fn zones(fields: &dyn Parameters, capacity: u64) -> Vec<Zone> {
    let outer = fields.rate("outer_mb_per_s");
    let inner = fields.rate("inner_mb_per_s");
    if inner > outer {
        let why = "the innermost tracks cannot hold more than the outermost";
        fields.refuse("inner_mb_per_s", why, "exchange the two rates");
    }
    let count = fields.whole("zones", 1..=1000, Some(16));
    let lost = outer.saturating_sub(inner);
    let rate = |number: u64| outer - lost * number / (count - 1).max(1);
    let all: u128 = (0..count).map(|number| u128::from(rate(number))).sum();
    let mut outside = 0;
    let zone = |number: u64| {
        let from = u128::from(capacity) * outside / all.max(1);
        outside += u128::from(rate(number));
        Zone {
            from: u64::try_from(from).unwrap_or(capacity),
            bytes_per_second: rate(number),
        }
    };
    (0..count).map(zone).collect()
}

const US: Nanos = Nanos::from_micros(1);
const MS: Nanos = Nanos::from_millis(1);
