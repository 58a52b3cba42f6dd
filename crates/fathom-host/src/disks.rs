//! Statistics of the devices under a run's files, from `/sys/block/*/stat`.

use std::path::Path;

use fathom_core::Tick;
use fathom_record::DiskRecord;

use crate::block_tree::{BlockTree, HostDevice};
use crate::storage::disks_under;

/// Devices under a run's files, with their counters at its start.
#[derive(Clone, Debug)]
pub struct DiskWatch {
    disks: Vec<(HostDevice, Counters)>,
    since: Tick,
}

impl DiskWatch {
    /// Reads the counters of every disk under these files, each once: whole disks, and the members
    /// of a stacked device (`dm-0`, `md0`).
    #[must_use]
    pub fn start<'a>(
        files: impl IntoIterator<Item = &'a Path>,
        tree: &BlockTree,
        now: Tick,
    ) -> Self {
        let mut disks = Vec::new();
        for disk in disks_under(files, tree) {
            add_with_slaves(&disk, &mut disks);
        }
        Self { disks, since: now }
    }

    /// Reads the counters of these disks alone.
    #[must_use]
    pub fn of(disks: Vec<HostDevice>, now: Tick) -> Self {
        let read = |disk: HostDevice| Counters::read(&disk).map(|counters| (disk, counters));
        Self {
            disks: disks.into_iter().filter_map(read).collect(),
            since: now,
        }
    }

    /// Returns each disk's activity since the start or the previous call.
    pub fn lap(&mut self, now: Tick) -> Vec<DiskRecord> {
        let wall_ms = (now - self.since).as_millis();
        self.since = now;
        let each = self.disks.iter_mut().filter_map(|(disk, counters)| {
            let after = Counters::read(disk)?;
            let before = std::mem::replace(counters, after);
            let mut made_of: Vec<String> = parts(disk).map(|part| part.name).collect();
            made_of.dedup();
            Some(DiskRecord {
                parts: made_of,
                ..after.since(&before).record(&disk.name, wall_ms)
            })
        });
        each.collect()
    }

    /// Returns true if one of the disks is a loop device.
    #[must_use]
    pub fn has_loop(&self) -> bool {
        let mut disks = self.disks.iter();
        disks.any(|(disk, _)| disk.attribute("loop/backing_file").is_some())
    }

    /// Returns each disk's activity since the start. A disk that was removed meanwhile is left out.
    #[must_use]
    pub fn finish(&self, now: Tick) -> Vec<DiskRecord> {
        self.clone().lap(now)
    }
}

fn add_with_slaves(disk: &HostDevice, disks: &mut Vec<(HostDevice, Counters)>) {
    if disks.iter().any(|(known, _)| known == disk) {
        return;
    }
    let Some(counters) = Counters::read(disk) else {
        return;
    };
    disks.push((disk.clone(), counters));
    for part in parts(disk) {
        add_with_slaves(&part, disks);
    }
}

/// Returns the whole disks that back a stacked device.
fn parts(disk: &HostDevice) -> impl Iterator<Item = HostDevice> {
    disk.slaves().into_iter().map(|slave| slave.whole_disk())
}

/// Fields of a `stat` file that are reported, in the file's order; times in ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    read_ios: u64,
    read_merges: u64,
    read_sectors: u64,
    read_ticks: u64,
    write_ios: u64,
    write_merges: u64,
    write_sectors: u64,
    write_ticks: u64,
    busy_ticks: u64,
    queue_ticks: u64,
}

impl Counters {
    fn read(disk: &HostDevice) -> Option<Self> {
        Self::parse(&disk.attribute("stat")?)
    }

    fn parse(stat: &str) -> Option<Self> {
        let mut fields = stat.split_ascii_whitespace().map(str::parse);
        let mut next = || fields.next()?.ok();
        Some(Self {
            read_ios: next()?,
            read_merges: next()?,
            read_sectors: next()?,
            read_ticks: next()?,
            write_ios: next()?,
            write_merges: next()?,
            write_sectors: next()?,
            write_ticks: next()?,
            // The ninth field, requests in flight, is a gauge and not a counter.
            busy_ticks: {
                let _in_flight: u64 = next()?;
                next()?
            },
            queue_ticks: next()?,
        })
    }

    fn since(self, before: &Self) -> Self {
        Self {
            read_ios: grown(before.read_ios, self.read_ios),
            read_merges: grown(before.read_merges, self.read_merges),
            read_sectors: grown(before.read_sectors, self.read_sectors),
            read_ticks: grown(before.read_ticks, self.read_ticks),
            write_ios: grown(before.write_ios, self.write_ios),
            write_merges: grown(before.write_merges, self.write_merges),
            write_sectors: grown(before.write_sectors, self.write_sectors),
            write_ticks: grown(before.write_ticks, self.write_ticks),
            busy_ticks: grown(before.busy_ticks, self.busy_ticks),
            queue_ticks: grown(before.queue_ticks, self.queue_ticks),
        }
    }

    fn record(self, name: &str, wall_ms: u64) -> DiskRecord {
        DiskRecord {
            name: name.to_owned(),
            host: None,
            parts: Vec::new(),
            read_ios: self.read_ios,
            write_ios: self.write_ios,
            read_sectors: self.read_sectors,
            write_sectors: self.write_sectors,
            read_merges: self.read_merges,
            write_merges: self.write_merges,
            read_ticks_ms: self.read_ticks,
            write_ticks_ms: self.write_ticks,
            in_queue_ms: self.queue_ticks,
            util_percent: percent(self.busy_ticks, wall_ms),
        }
    }
}

/// Returns the growth of a counter. The kernel prints times as 32-bit values, which wrap after 49
/// days.
fn grown(before: u64, after: u64) -> u64 {
    after
        .checked_sub(before)
        .unwrap_or_else(|| (after + (1 << 32)).saturating_sub(before))
}

/// Capped at 100: the two clocks are not read at the same moment.
fn percent(part: u64, whole: u64) -> f64 {
    // Integer hundredths, which is what is printed.
    let share = (part.saturating_mul(10_000))
        .checked_div(whole)
        .unwrap_or(0)
        .min(10_000);
    u32::try_from(share).map_or(100.0, |share| f64::from(share) / 100.0)
}

#[cfg(test)]
mod tests {
    use fathom_core::Nanos;

    use super::*;
    use crate::fixture::FakeHost;

    #[test]
    fn a_stat_file_is_read_by_position() {
        let counters = Counters::parse("  1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n").unwrap();
        let record = counters.record("vda", 20);
        assert_eq!((record.read_ios, record.write_ios), (1, 5));
        assert_eq!((record.read_merges, record.write_merges), (2, 6));
        assert_eq!((record.read_sectors, record.write_sectors), (3, 7));
        assert_eq!((record.read_ticks_ms, record.write_ticks_ms), (4, 8));
        assert_eq!(record.in_queue_ms, 11);
        assert!((record.util_percent - 50.0).abs() < 1e-9);
        assert_eq!(Counters::parse("1 2 3"), None);
        assert_eq!(Counters::parse(""), None);
    }

    #[test]
    fn a_counter_that_came_round_has_grown() {
        assert_eq!(grown(10, 30), 20);
        assert_eq!(grown((1 << 32) - 5, 5), 10);
    }

    #[test]
    fn utilisation_stays_within_bounds() {
        for (part, whole, want) in [(0, 0, 0.0), (5, 0, 0.0), (30, 20, 100.0), (1, 3, 33.33)] {
            assert!((percent(part, whole) - want).abs() < 1e-9, "{part}/{whole}");
        }
    }

    #[test]
    fn the_parts_of_a_stacked_device_are_watched_once() {
        let fake = FakeHost::new("stacked");
        fake.device("sda", "8:0")
            .device("sda/sda1", "8:1")
            .device("sda/sda2", "8:2")
            .device("md0", "9:0")
            .stack("md0", "sda/sda1")
            .stack("md0", "sda/sda2");
        for disk in ["sda", "md0"] {
            fake.attribute(disk, "stat", "1 0 8 2 0 0 0 0 0 100 5\n");
        }
        let mut disks = Vec::new();
        add_with_slaves(&fake.tree().named("md0").unwrap(), &mut disks);
        let watch = DiskWatch {
            disks,
            since: Tick::ZERO,
        };
        fake.attribute("sda", "stat", "11 0 88 2 0 0 0 0 0 600 5\n");
        let records = watch.finish(Tick::ZERO + Nanos::from_secs(1));
        let names: Vec<&str> = records.iter().map(|record| record.name.as_str()).collect();
        assert_eq!(names, ["md0", "sda"]);
        assert_eq!(records[0].parts, ["sda"]);
        assert_eq!(records[1].read_ios, 10);
        assert_eq!(records[1].read_sectors, 80);
        assert!((records[1].util_percent - 50.0).abs() < 1e-9);
    }
}
