//! Keys of a flash drive in a file.

use std::sync::Arc;

use fathom_block::Parameters;
use fathom_core::{BlockDevice, Nanos};

use super::{Ssd, SsdConfig};
use crate::models::Model;

impl Model for SsdConfig {
    fn device(&self, _number: u64) -> Box<dyn BlockDevice> {
        Box::new(Ssd::new(self.clone()))
    }

    fn erase_blocks(&self) -> u64 {
        let block = u64::from(self.page_bytes) * u64::from(self.pages_per_block);
        self.capacity / block.max(1)
    }
}

/// Reads the keys of `[device.ssd]`.
pub(crate) fn read(fields: &dyn Parameters, capacity: u64) -> Option<Arc<dyn Model>> {
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
        channel_bytes_per_second: fields.rate("channel_mb_per_s"),
        link_bytes_per_second: fields.rate("link_mb_per_s"),
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
        fields.refuse("pages_per_block", &why, hint);
    }
    if capacity / block > BLOCKS_MAX {
        let (blocks, kib) = (capacity / block, block >> 10);
        let why = format!("{blocks} blocks of {kib} KiB are more than the {BLOCKS_MAX} of a model");
        let hint = "lower `capacity_gib`, or raise `pages_per_block`";
        fields.refuse("pages_per_block", &why, hint);
    }
    Some(Arc::new(config))
}

/// Reads the die that is slower than the others, and by which factor.
fn slow_die(fields: &dyn Parameters, dies: u32) -> Option<(u32, u32)> {
    let slow = fields.table("slow_die", true)?;
    let die = slow.count("die", 0..=dies.saturating_sub(1), None);
    let times = slow.count("times", 1..=100_000, None);
    slow.finish();
    Some((die, times))
}

/// Erase blocks of a model, of all members together: each takes memory.
pub(crate) const BLOCKS_MAX: u64 = 1 << 22;
const US: Nanos = Nanos::from_micros(1);
