//! Surface and arm of a disk: the position of each byte and the time to reach it.

use fathom_core::{Nanos, Tick};

/// Configuration of a surface and its arm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlatterConfig {
    /// Capacity in bytes.
    pub capacity: u64,
    /// Revolutions per minute.
    pub rpm: u32,
    /// Zones from the outer edge inwards; the first begins at 0.
    pub zones: Vec<Zone>,
    /// Shortest seek time.
    pub settle: Nanos,
    /// Part of a full-stroke seek that grows with the square root of the distance.
    pub seek_root: Nanos,
    /// Part of a full-stroke seek that grows with the distance.
    pub seek_linear: Nanos,
}

/// Zone of tracks with equal capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Offset of its first byte.
    pub from: u64,
    /// Media transfer rate.
    pub bytes_per_second: u64,
}

/// Zone as a part of the stroke.
#[derive(Clone, Copy, Debug)]
struct ZoneTracks {
    /// Offset of its first byte, and number of bytes.
    from: u64,
    bytes: u64,
    /// Bytes per track.
    track: u64,
    /// Tracks outside it and tracks in it, in 2⁻³² of all tracks.
    outside: u64,
    width: u64,
}

/// Surface and arm.
#[derive(Debug)]
pub(crate) struct Platter {
    /// Duration of one revolution, ns.
    turn: u64,
    /// Zones from the outer edge inwards.
    zones: Vec<ZoneTracks>,
    settle: Nanos,
    seek_root: u64,
    seek_linear: u64,
}

impl Platter {
    pub(crate) fn new(config: &PlatterConfig) -> Self {
        assert!(config.rpm > 0 && config.capacity > 0, "a disk that turns");
        let rates = config.zones.iter().all(|zone| zone.bytes_per_second > 0);
        assert!(rates && !config.zones.is_empty(), "zones with rates");
        let turn = MINUTE / u64::from(config.rpm);
        Self {
            turn,
            zones: zones(config),
            settle: config.settle,
            seek_root: config.seek_root.get(),
            seek_linear: config.seek_linear.get(),
        }
    }

    /// Returns the seek time from the track of one byte to that of another; the settling time if
    /// both are on one track, zero for the same byte.
    pub(crate) fn seek(&self, from: u64, to: u64) -> Nanos {
        if from == to {
            return Nanos::ZERO;
        }
        // In 2⁻³² of the stroke, so that its root is in 2⁻¹⁶.
        let part = self.stroke(from).abs_diff(self.stroke(to));
        let root = (self.seek_root * part.isqrt()) >> 16;
        let linear = (u128::from(self.seek_linear) * u128::from(part)) >> 32;
        let linear = u64::try_from(linear).unwrap_or(u64::MAX);
        self.settle + Nanos::new(root) + Nanos::new(linear)
    }

    /// Returns the position of a byte's track: the part of all tracks outside it, in 2⁻³².
    ///
    /// Tracks, not bytes: the arm crosses fewer tracks per byte where they hold more.
    fn stroke(&self, offset: u64) -> u64 {
        let zone = self.zone(offset);
        let within = (offset - zone.from).min(zone.bytes);
        let tracks = u128::from(within) * u128::from(zone.width) / u128::from(zone.bytes.max(1));
        zone.outside + u64::try_from(tracks).unwrap_or(zone.width)
    }

    /// Returns the rotational delay until the byte passes a head that is on its track at `at`.
    pub(crate) fn turn_to(&self, offset: u64, at: Tick) -> Nanos {
        let ZoneTracks { from, track, .. } = *self.zone(offset);
        let angle = share((offset - from) % track, self.turn, track);
        let head = at.get() % self.turn;
        Nanos::new((angle + self.turn - head) % self.turn)
    }

    /// Returns the transfer time of this number of bytes.
    pub(crate) fn transfer(&self, offset: u64, length: u32) -> Nanos {
        let track = self.zone(offset).track;
        Nanos::new(share(length.into(), self.turn, track).max(1))
    }

    fn zone(&self, offset: u64) -> &ZoneTracks {
        let zone = self.zones.partition_point(|zone| zone.from <= offset);
        &self.zones[zone.max(1) - 1]
    }
}

/// Returns the zones with the part of the stroke that each takes.
fn zones(config: &PlatterConfig) -> Vec<ZoneTracks> {
    let starts = config.zones.iter().skip(1).map(|zone| zone.from);
    let ends = starts.chain(Some(config.capacity));
    let each = || config.zones.iter().zip(ends.clone());
    let bytes = |zone: &Zone, end: u64| end.saturating_sub(zone.from);
    // In 2⁻³² of what is read in a second, which keeps the bits of a track's part.
    let tracks =
        |zone: &Zone, end| (u128::from(bytes(zone, end)) << 32) / u128::from(zone.bytes_per_second);
    let all: u128 = each().map(|(zone, end)| tracks(zone, end)).sum();
    let part = |tracks: u128| u64::try_from((tracks << 32) / all.max(1)).unwrap_or(1 << 32);
    let mut outside = 0;
    let zone = |(zone, end): (&Zone, u64)| {
        let before = outside;
        outside += tracks(zone, end);
        ZoneTracks {
            from: zone.from,
            bytes: bytes(zone, end),
            track: (zone.bytes_per_second * 60 / u64::from(config.rpm)).max(SECTOR),
            outside: part(before),
            width: part(outside) - part(before),
        }
    };
    each().map(zone).collect()
}

/// Returns the part of a turn that some bytes of a track take.
fn share(bytes: u64, turn: u64, track: u64) -> u64 {
    // The product of a slow and a dense disk does not fit into 64 bits.
    let time = u128::from(bytes) * u128::from(turn) / u128::from(track);
    u64::try_from(time).unwrap_or(u64::MAX)
}

const MINUTE: u64 = 60_000_000_000;

/// Bytes that a track holds at least, however slow and fast the disk.
const SECTOR: u64 = 512;

#[cfg(test)]
mod tests {
    use super::*;

    fn platter() -> Platter {
        Platter::new(&PlatterConfig {
            capacity: 1 << 40,
            rpm: 7500,
            zones: vec![
                Zone {
                    from: 0,
                    bytes_per_second: 125_000_000,
                },
                Zone {
                    from: 1 << 39,
                    bytes_per_second: 62_500_000,
                },
            ],
            settle: Nanos::from_micros(500),
            seek_root: Nanos::from_millis(8),
            seek_linear: Nanos::from_millis(4),
        })
    }

    #[test]
    fn every_rate_and_speed_is_a_disk() {
        for (rpm, bytes_per_second) in [(100_000, 1000), (1, 1_000_000_000_000)] {
            let platter = Platter::new(&PlatterConfig {
                capacity: 1 << 40,
                rpm,
                zones: vec![Zone {
                    from: 0,
                    bytes_per_second,
                }],
                settle: Nanos::ZERO,
                seek_root: Nanos::ZERO,
                seek_linear: Nanos::ZERO,
            });
            let turn = MINUTE / u64::from(rpm);
            assert!(platter.turn_to((1 << 40) - 512, Tick::new(5)).get() < turn);
            let track = (bytes_per_second * 60 / u64::from(rpm)).max(SECTOR);
            let bytes = u32::try_from(track / 2).unwrap_or(u32::MAX);
            let want = u128::from(bytes) * u128::from(turn) / u128::from(track);
            let took = platter.transfer(0, bytes).get();
            assert_eq!(u128::from(took), want);
        }
    }

    #[test]
    fn seek_time_has_a_root_and_a_linear_part() {
        // The inner half of the bytes takes two thirds of the tracks.
        let seek = |from, to| platter().seek(from, to).get();
        assert_eq!(seek(0, 0), 0);
        assert_eq!(seek(0, 1), 500_000);
        assert_eq!(seek(0, 1 << 40), 12_500_000);
        assert_eq!(seek(0, 1 << 50), 12_500_000);
        // A quarter of the stroke costs half the root and a quarter of the linear part.
        let quarter = (1 << 39) / 4 * 3;
        assert!(seek(0, quarter).abs_diff(500_000 + 4_000_000 + 1_000_000) < 1000);
        let inner = (1 << 40) - (1 << 39) / 8 * 3;
        assert!(seek(inner, 1 << 40).abs_diff(500_000 + 4_000_000 + 1_000_000) < 1000);
    }

    /// A turn is 8 ms and a track of the outer zone 1 MB.
    #[track_caller]
    fn check_turn(offset: u64, at: u64, want: u64) {
        let turn = platter().turn_to(offset, Tick::new(at));
        assert_eq!(turn.get(), want);
    }

    #[test]
    fn each_byte_comes_by_once_a_turn() {
        check_turn(0, 0, 0);
        check_turn(500_000, 0, 4_000_000);
        check_turn(500_000, 4_000_001, 7_999_999);
        check_turn(1_000_000, 8_000_000, 0);
        check_turn((1 << 39) + 125_000, 0, 2_000_000);
    }

    #[test]
    fn inner_tracks_are_slower() {
        assert_eq!(platter().transfer(0, 125_000).get(), 1_000_000);
        assert_eq!(platter().transfer(1 << 39, 125_000).get(), 2_000_000);
    }
}
