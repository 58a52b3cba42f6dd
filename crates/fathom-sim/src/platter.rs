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

/// Surface and arm.
#[derive(Debug)]
pub(crate) struct Platter {
    capacity: u64,
    /// Duration of one revolution, ns.
    turn: u64,
    /// Bytes per track, from these offsets on.
    tracks: Vec<(u64, u64)>,
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
        let track = |zone: &Zone| {
            (
                zone.from,
                (zone.bytes_per_second * 60) / u64::from(config.rpm),
            )
        };
        Self {
            capacity: config.capacity,
            turn,
            tracks: config.zones.iter().map(track).collect(),
            settle: config.settle,
            seek_root: config.seek_root.get(),
            seek_linear: config.seek_linear.get(),
        }
    }

    /// Returns the seek time; zero for no distance.
    pub(crate) fn seek(&self, distance: u64) -> Nanos {
        if distance == 0 {
            return Nanos::ZERO;
        }
        // Distance in 2⁻³² of the disk, so that its root is in 2⁻¹⁶.
        let part = (u128::from(distance) << 32) / u128::from(self.capacity);
        let part = u64::try_from(part).unwrap_or(u64::MAX).min(1 << 32);
        let root = (self.seek_root * part.isqrt()) >> 16;
        let linear = (u128::from(self.seek_linear) * u128::from(part)) >> 32;
        let linear = u64::try_from(linear).unwrap_or(u64::MAX);
        self.settle + Nanos::new(root) + Nanos::new(linear)
    }

    /// Returns the rotational delay until the byte passes a head that is on its track at `at`.
    pub(crate) fn turn_to(&self, offset: u64, at: Tick) -> Nanos {
        let (from, track) = self.track(offset);
        let angle = (offset - from) % track * self.turn / track;
        let head = at.get() % self.turn;
        Nanos::new((angle + self.turn - head) % self.turn)
    }

    /// Returns the transfer time of this number of bytes.
    pub(crate) fn transfer(&self, offset: u64, length: u32) -> Nanos {
        let (_, track) = self.track(offset);
        Nanos::new((u64::from(length) * self.turn / track).max(1))
    }

    fn track(&self, offset: u64) -> (u64, u64) {
        let zone = self.tracks.partition_point(|(from, _)| *from <= offset);
        self.tracks[zone.max(1) - 1]
    }
}

const MINUTE: u64 = 60_000_000_000;

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
    fn seek_time_has_a_root_and_a_linear_part() {
        let seek = |distance| platter().seek(distance).get();
        assert_eq!(seek(0), 0);
        assert_eq!(seek(1), 500_000);
        assert_eq!(seek(1 << 38), 500_000 + 4_000_000 + 1_000_000);
        assert_eq!(seek(1 << 40), 12_500_000);
        assert_eq!(seek(1 << 50), 12_500_000);
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
