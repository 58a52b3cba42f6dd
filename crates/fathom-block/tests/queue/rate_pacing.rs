//! Rate pacing in virtual time.

use std::sync::Arc;

use fathom_block::{
    Admission, AdmissionClass, BufferConfig, BufferPool, PacingConfig, RateConfig, Sharing, Wanted,
};
use fathom_core::{DataBuffer, Nanos, Tick};
use proptest::prelude::*;

/// A thread whose devices complete requests when the test says so.
struct Paced {
    admission: Admission,
    held: Vec<(u64, u32, Box<DataBuffer>)>,
    requests: Vec<Wanted>,
    now: Tick,
}

impl Paced {
    fn new(config: RateConfig) -> Self {
        let buffers = BufferConfig {
            count: None,
            bytes: 4096,
            cache: 0,
        };
        let pool = BufferPool::new(
            buffers,
            Sharing {
                threads: 1,
                devices: 4,
            },
        );
        Self {
            admission: Admission::new(Arc::clone(&pool), &PacingConfig::Rate(config), 0),
            held: Vec::new(),
            requests: Vec::new(),
            now: Tick::ZERO,
        }
    }

    fn request(&mut self, device: u32, bytes: u32, class: AdmissionClass) -> u64 {
        let id = self.requests.len() as u64;
        let wanted = Wanted {
            id,
            device,
            bytes,
            class,
        };
        self.requests.push(wanted);
        if let Some(buffer) = self.admission.request(wanted, self.now) {
            self.held.push((id, device, buffer));
        }
        id
    }

    fn paced(&mut self, device: u32, bytes: u32) -> u64 {
        self.request(device, bytes, AdmissionClass::Paced)
    }

    /// Grants what may be granted now, and returns the requests.
    fn turn(&mut self) -> Vec<u64> {
        let mut ids = Vec::new();
        while let Some((id, buffer)) = self.admission.granted(self.now) {
            let index = usize::try_from(id).expect("small");
            self.held.push((id, self.requests[index].device, buffer));
            ids.push(id);
        }
        ids
    }

    fn release(&mut self, id: u64) {
        let place = self.held.iter().position(|held| held.0 == id);
        let (id, device, buffer) = self.held.remove(place.expect("in flight"));
        let bytes = self.requests[usize::try_from(id).expect("small")].bytes;
        self.admission.release(buffer, device, bytes, self.now);
    }

    fn release_all(&mut self) {
        while let Some(held) = self.held.first() {
            let id = held.0;
            self.release(id);
        }
    }
}

fn config(period_us: u64, credit: u32) -> RateConfig {
    RateConfig {
        period: Nanos::from_micros(period_us),
        credit,
        ..RateConfig::default()
    }
}

#[test]
fn the_rate_is_kept_however_late_the_loop_comes_round() {
    // Turns of a fraction of a period, and of several.
    for turn_us in [3, 10, 47, 100] {
        let mut paced = Paced::new(config(10, 4096));
        for index in 0..2000 {
            paced.paced(index % 4, 4096);
        }
        while paced.admission.statistics().pending > 1000 {
            paced.now += Nanos::from_micros(turn_us);
            paced.turn();
            paced.release_all();
        }
        let statistics = paced.admission.statistics().rate.expect("rate");
        let due = paced.now.get() / 10_000 + 1;
        let grants = statistics.grants;
        assert!(
            (due - 1..=due).contains(&grants),
            "{turn_us}: {grants} of {due}"
        );
    }
}

#[test]
fn the_next_deadline_is_when_a_request_may_go_on() {
    let mut paced = Paced::new(config(10, 4096));
    // A debt of two and a half credits: one was there.
    paced.paced(0, 4096 * 3 + 2048);
    assert_eq!(paced.held.len(), 1);
    let waits = paced.paced(1, 512);
    let due = paced.admission.next().expect("a deadline");
    assert_eq!(due, Tick::new(30_000));
    paced.now = Tick::new(29_999);
    assert_eq!(paced.turn(), []);
    paced.now = due;
    assert_eq!(paced.turn(), [waits]);
    assert_eq!(paced.admission.next(), None);
}

#[test]
fn unused_credit_is_one_period_s() {
    let mut paced = Paced::new(config(10, 4096));
    paced.paced(0, 512);
    paced.now += Nanos::from_millis(5);
    for _ in 0..20 {
        paced.paced(0, 1024);
    }
    assert_eq!(paced.held.len(), 1 + 4);
}

#[test]
fn requests_in_capsules_and_small_ones_are_not_paced() {
    let mut paced = Paced::new(RateConfig {
        threshold: 512,
        ..config(10, 4096)
    });
    paced.paced(0, 8192);
    paced.paced(0, 4096);
    assert_eq!(paced.held.len(), 1);
    paced.paced(0, 512);
    paced.request(0, 4096, AdmissionClass::Unpaced);
    assert_eq!(paced.held.len(), 3);
}

#[test]
fn a_device_has_its_credit_in_flight_and_no_more() {
    let mut paced = Paced::new(RateConfig {
        device_credit: 2,
        ..config(1, 65_536)
    });
    let slow: Vec<u64> = (0..5).map(|_| paced.paced(0, 512)).collect();
    let fast = paced.paced(1, 512);
    let held = |paced: &Paced| paced.held.iter().map(|held| held.0).collect::<Vec<_>>();
    assert_eq!(held(&paced), [slow[0], slow[1], fast]);
    paced.release(slow[1]);
    assert_eq!(paced.turn(), [slow[2]]);
    paced.admission.withdraw(slow[3], paced.now);
    paced.release(slow[0]);
    assert_eq!(paced.turn(), [slow[4]]);
    assert!(paced.admission.next().is_none());
}

proptest! {
    /// Any mix of sizes, devices, releases and withdrawals: order within a device, never more than
    /// the credit allows, and everything is granted in the end.
    #[test]
    fn bytes_keep_to_the_credit(
        steps in prop::collection::vec((0..5_u8, 0..4_u32, 1..10_000_u32, 0..30_u64), 1..200),
        device_credit in 0..3_u32,
    ) {
        let mut paced = Paced::new(RateConfig { device_credit, ..config(10, 4096) });
        let mut bytes = 0;
        for (what, device, size, us) in steps {
            paced.now += Nanos::from_micros(us);
            match what {
                0 | 1 => {
                    paced.paced(device, size);
                }
                2 => paced.release_all(),
                3 => paced.admission.withdraw(u64::from(size) % 64, paced.now),
                _ => {}
            }
            paced.turn();
            bytes = paced.admission.statistics().bytes;
            // What is there at first, one credit per period, and the rest of the last request.
            let most = 4096 * (1 + paced.now.get() / 10_000) + 10_000;
            prop_assert!(bytes <= most, "{bytes} bytes by {:?}", paced.now);
        }
        let mut turns = 0;
        while paced.admission.statistics().pending > 0 {
            paced.release_all();
            paced.now = paced.now.max(paced.admission.next().expect("a deadline"));
            paced.turn();
            turns += 1;
            prop_assert!(turns < 10_000, "requests starve");
        }
        paced.release_all();
        prop_assert!(paced.admission.statistics().bytes >= bytes);
        prop_assert_eq!(paced.admission.statistics().in_use_bytes, 0);
    }
}
