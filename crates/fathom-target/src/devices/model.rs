//! Disk model in real time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fathom_block::{Exchange, HomeDevice, Parameters, RemoteDevice};
use fathom_core::{BlockDevice, Geometry, Tick};
use fathom_sim::{Model, read_model};
use fathom_toml::Fields;

use super::{Storage, Surroundings, Threads, size_and_block};
use crate::error::DeviceError;

/// Modelled device, one for all threads and parts: a disk has one head.
///
/// It lives on thread 0. Each user, a namespace or a part, has a port of the exchange on each
/// thread: `user * threads + thread`.
#[derive(Debug)]
struct ModelDevice {
    name: &'static str,
    model: Arc<dyn Model>,
    bytes: u64,
    block_bytes: u32,
    shared: Mutex<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    threads: Option<Threads>,
    users: u32,
    /// Made when the first thread opens the device: all users are known by then.
    exchange: Option<Arc<Exchange>>,
    /// Ports that each thread has opened.
    opened: Vec<u32>,
}

impl ModelDevice {
    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Returns the exchange and the next port of a thread; `None` for a target that was not
    /// prepared, which has one user.
    fn port(&mut self, thread: u32) -> Option<(Arc<Exchange>, u32)> {
        let threads = self.threads.clone()?;
        let (count, ports) = (threads.count, threads.count * self.users);
        let rouse = move |port: u32| (threads.rouse)(port % count);
        let exchange = self
            .exchange
            .get_or_insert_with(|| Exchange::new(ports, Arc::new(rouse)));
        let opened = &mut self.opened[thread as usize];
        let port = *opened * count + thread;
        *opened += 1;
        Some((Arc::clone(exchange), port))
    }
}

impl Storage for ModelDevice {
    fn geometry(&self) -> Geometry {
        Geometry {
            bytes: self.bytes,
            block_bytes: self.block_bytes,
            ..Geometry::UNBOUNDED
        }
    }

    fn prepare(&self, threads: &Threads) -> Result<(), DeviceError> {
        let mut shared = self.shared();
        shared.users += 1;
        shared.opened = vec![0; threads.count as usize];
        shared.threads = Some(threads.clone());
        Ok(())
    }

    fn open(&self, thread: u32, _now: Tick) -> Result<Box<dyn BlockDevice>, DeviceError> {
        let Some((exchange, port)) = self.shared().port(thread) else {
            return Ok(self.model.device(0));
        };
        Ok(match port {
            HOME => Box::new(HomeDevice::new(exchange, HOME, self.model.device(0))),
            port => Box::new(RemoteDevice::new(exchange, HOME, port, self.geometry())),
        })
    }

    fn describe(&self) -> String {
        format!("model {}", self.name)
    }
}

pub(super) fn read(fields: &Fields<'_>, _around: &Surroundings<'_>) -> Option<Arc<dyn Storage>> {
    let size = size_and_block(fields);
    let parameters: &dyn Parameters = fields;
    let capacity = size.map_or(CAPACITY, |(bytes, _)| bytes);
    let model = read_model(parameters, capacity);
    let ((bytes, block_bytes), (name, model)) = (size?, model?);
    Some(Arc::new(ModelDevice {
        name,
        model,
        bytes,
        block_bytes,
        shared: Mutex::default(),
    }))
}

/// Port of the first user on thread 0.
const HOME: u32 = 0;
/// Size for which a model is read whose own was refused, so that all problems are found.
const CAPACITY: u64 = 1 << 40;
