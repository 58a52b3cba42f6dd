//! Targets for tests.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use fathom_block::{BufferConfig, Null, PacingConfig, SharedMemory};
use fathom_core::{BlockDevice, Geometry, Tick};
use fathom_net::target::{
    DeviceError, DeviceFactory, NamespaceConfig, SubsystemConfig, Target, TargetConfig,
    TargetEvent, TargetLimits, TargetLog, TargetStatistics, Wakers,
};
use fathom_nvme::Digests;

pub(crate) const NQN: &str = "nqn.2026-01.io.fathom:test";
pub(crate) const NO_DIGESTS: Digests = Digests {
    header: false,
    data: false,
};
pub(crate) const BOTH: Digests = Digests {
    header: true,
    data: true,
};

#[derive(Debug)]
pub(crate) struct Nulls(pub(crate) u64);

impl DeviceFactory for Nulls {
    fn open(&self, _thread: u32, _now: Tick) -> Result<Box<dyn BlockDevice>, DeviceError> {
        Ok(Box::new(Null::new(self.0, 512)))
    }

    fn geometry(&self) -> Geometry {
        Null::new(self.0, 512).geometry()
    }
}

#[derive(Debug)]
pub(crate) struct Memories(pub(crate) SharedMemory);

impl DeviceFactory for Memories {
    fn open(&self, _thread: u32, _now: Tick) -> Result<Box<dyn BlockDevice>, DeviceError> {
        Ok(Box::new(self.0.open()))
    }

    fn geometry(&self) -> Geometry {
        self.0.geometry()
    }
}

/// A log of lines.
#[derive(Debug, Default)]
pub(crate) struct Lines(pub(crate) Mutex<Vec<String>>);

impl TargetLog for Lines {
    fn event(&self, event: &TargetEvent<'_>) {
        self.0.lock().unwrap().push(format!("{event:?}"));
    }
}

impl Lines {
    pub(crate) fn contain(&self, text: &str) -> bool {
        self.0
            .lock()
            .unwrap()
            .iter()
            .any(|line| line.contains(text))
    }
}

pub(crate) fn config(device: Arc<dyn DeviceFactory>, threads: u32) -> TargetConfig {
    TargetConfig {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        threads,
        wakers: Wakers::new(threads).unwrap(),
        cpus: None,
        busy_poll: false,
        subsystems: vec![SubsystemConfig {
            nqn: NQN.to_owned(),
            serial: "1".to_owned(),
            model: "Fathom".to_owned(),
            allowed_hosts: None,
            namespaces: vec![NamespaceConfig {
                nsid: 1,
                nguid: [9; 16],
                block_bytes: 512,
                device,
            }],
        }],
        limits: TargetLimits::DEFAULT,
        buffers: BufferConfig {
            count: None,
            bytes: 131_072,
            cache: 8,
        },
        pacing: PacingConfig::None,
        digests: BOTH,
        success_in_data: true,
    }
}

pub(crate) fn memory(bytes: u64) -> Arc<dyn DeviceFactory> {
    Arc::new(Memories(SharedMemory::new(bytes)))
}

pub(crate) fn null() -> Arc<dyn DeviceFactory> {
    Arc::new(Nulls(1 << 33))
}

pub(crate) fn start(config: TargetConfig) -> (Target, SocketAddr, Arc<Lines>) {
    let log = Arc::new(Lines::default());
    let target = Target::start(config, Arc::clone(&log) as Arc<dyn TargetLog>).unwrap();
    let address = target.addresses()[0];
    (target, address, log)
}

/// Waits until the statistics are as wanted: the target notices the end of a connection some time
/// after the host has closed it.
#[track_caller]
pub(crate) fn wait_for(target: &Target, wanted: impl Fn(&TargetStatistics) -> bool) {
    for _ in 0..100_000 {
        if wanted(&target.statistics()) {
            return;
        }
        std::thread::yield_now();
    }
    panic!("still {:#?}", target.statistics());
}

/// Returns the number of open connections.
pub(crate) fn connections(statistics: &TargetStatistics) -> usize {
    let threads = statistics.threads.iter();
    threads.map(|thread| thread.connections.len()).sum()
}
