//! Classes of devices: those that are slow beside others, and the rest.

use fathom_core::{Nanos, Tick};

/// Speeds of the devices of one thread, and their bytes in flight.
///
/// A device is slow if even its quickest command takes a multiple of what the others need. The
/// quickest one counts, because a long queue makes the others of a fast device slow as well; and
/// only devices that move a good part of the data are the measure, so that one that is hardly used
/// does not make all others slow.
#[derive(Debug)]
pub(super) struct DeviceSpeeds {
    devices: Box<[Speed]>,
    fast_bytes: u64,
    slow_bytes: u64,
    slow_count: u32,
    until: Tick,
}

#[derive(Clone, Copy, Debug)]
struct Speed {
    in_flight: u64,
    is_slow: bool,
    /// Quickest command of this window and of the last one.
    quickest: [Nanos; 2],
    /// Bytes moved in these.
    bytes: [u64; 2],
}

impl DeviceSpeeds {
    pub(super) fn new(devices: u32) -> Self {
        let speed = Speed {
            in_flight: 0,
            is_slow: false,
            quickest: [Nanos::MAX; 2],
            bytes: [0; 2],
        };
        Self {
            devices: vec![speed; devices as usize].into_boxed_slice(),
            fast_bytes: 0,
            slow_bytes: 0,
            slow_count: 0,
            until: Tick::ZERO,
        }
    }

    #[inline]
    pub(super) fn begin(&mut self, device: u32, bytes: u64) {
        let speed = &mut self.devices[device as usize];
        speed.in_flight += bytes;
        if speed.is_slow {
            self.slow_bytes += bytes;
        } else {
            self.fast_bytes += bytes;
        }
    }

    #[inline]
    pub(super) fn end(&mut self, device: u32, bytes: u64) {
        let speed = &mut self.devices[device as usize];
        speed.in_flight -= bytes;
        if speed.is_slow {
            self.slow_bytes -= bytes;
        } else {
            self.fast_bytes -= bytes;
        }
    }

    #[inline]
    pub(super) fn moved(&mut self, device: u32, bytes: u64) {
        self.devices[device as usize].bytes[0] += bytes;
    }

    #[inline]
    pub(super) fn served(&mut self, device: u32, took: Nanos) {
        let quickest = &mut self.devices[device as usize].quickest[0];
        *quickest = took.min(*quickest);
    }

    /// Sorts the devices into classes once per window, and returns true if one has changed its.
    pub(super) fn classify(&mut self, now: Tick) -> bool {
        if now < self.until {
            return false;
        }
        self.until = now + WINDOW;
        let most = self.devices.iter().map(Speed::bytes).max().unwrap_or(0);
        let measure = self.devices.iter();
        let measure = measure.filter(|speed| speed.bytes() > 0 && speed.bytes() >= most / 8);
        let quickest = measure.map(Speed::quickest).min().unwrap_or(Nanos::MAX);
        let limit = quickest.max(QUICK).get().saturating_mul(SLOWER);
        let mut is_changed = false;
        (self.fast_bytes, self.slow_bytes, self.slow_count) = (0, 0, 0);
        for speed in &mut self.devices {
            let quickest = speed.quickest();
            if quickest != Nanos::MAX {
                let is_slow = quickest.get() > limit;
                is_changed |= is_slow != speed.is_slow;
                speed.is_slow = is_slow;
            }
            if speed.is_slow {
                self.slow_count += 1;
                self.slow_bytes += speed.in_flight;
            } else {
                self.fast_bytes += speed.in_flight;
            }
            speed.quickest = [Nanos::MAX, speed.quickest[0]];
            speed.bytes = [0, speed.bytes[0]];
        }
        is_changed
    }

    #[inline]
    pub(super) fn is_slow(&self, device: u32) -> bool {
        self.devices[device as usize].is_slow
    }

    /// Returns the bytes in flight of devices that are not slow.
    #[inline]
    pub(super) const fn fast_bytes(&self) -> u64 {
        self.fast_bytes
    }

    /// Returns the bytes in flight of slow devices.
    #[inline]
    pub(super) const fn slow_bytes(&self) -> u64 {
        self.slow_bytes
    }

    pub(super) const fn slow_count(&self) -> u32 {
        self.slow_count
    }
}

impl Speed {
    fn quickest(&self) -> Nanos {
        self.quickest[0].min(self.quickest[1])
    }

    fn bytes(&self) -> u64 {
        self.bytes[0] + self.bytes[1]
    }
}

/// Time after which speeds are looked at again.
const WINDOW: Nanos = Nanos::from_millis(50);
/// Slow is a device that takes this many times as long as the quickest one that matters.
const SLOWER: u64 = 4;
/// Time below which devices count as equally quick: what a turn of the target takes, which is as
/// much a matter of its load as of the device.
const QUICK: Nanos = Nanos::from_micros(20);

#[cfg(test)]
mod tests {
    use super::*;

    fn window(speeds: &mut DeviceSpeeds, now_ms: u64, served: &[(u32, u64, u64)]) -> bool {
        for &(device, us, bytes) in served {
            speeds.served(device, Nanos::from_micros(us));
            speeds.served(device, Nanos::from_micros(us * 20));
            speeds.moved(device, bytes);
        }
        speeds.classify(Tick::ZERO + Nanos::from_millis(now_ms))
    }

    fn slow(speeds: &DeviceSpeeds) -> Vec<u32> {
        (0..4).filter(|device| speeds.is_slow(*device)).collect()
    }

    #[test]
    fn a_device_is_slow_beside_quick_ones_that_move_data() {
        let mut speeds = DeviceSpeeds::new(4);
        speeds.begin(1, 100);
        speeds.begin(0, 10);
        assert!(window(
            &mut speeds,
            50,
            &[(0, 5, 1000), (1, 1000, 500), (2, 70, 900)]
        ));
        assert_eq!(slow(&speeds), [1]);
        assert_eq!((speeds.fast_bytes(), speeds.slow_bytes()), (10, 100));
        // The quick one is hardly used any more: those that move data are the measure.
        let served = [(0, 5, 10), (1, 1000, 500), (2, 900, 900)];
        window(&mut speeds, 100, &served);
        window(&mut speeds, 150, &served);
        window(&mut speeds, 200, &served);
        assert_eq!(slow(&speeds), []);
        assert_eq!((speeds.fast_bytes(), speeds.slow_bytes()), (110, 0));
        speeds.end(1, 100);
        assert_eq!(speeds.fast_bytes(), 10);
    }

    #[test]
    fn without_measurements_all_devices_are_alike() {
        let mut speeds = DeviceSpeeds::new(4);
        assert!(!window(&mut speeds, 50, &[]));
        speeds.moved(3, 5);
        assert!(!window(&mut speeds, 100, &[]));
        assert_eq!(slow(&speeds), []);
    }
}
