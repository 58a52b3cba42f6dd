//! Start, state and stop of a target.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use fathom_block::{Admission, BufferPool, Sharing};
use fathom_core::BlockDevice;
use fathom_nvme::{Health, QUEUE_ENTRIES_MAX};
use fathom_sys::clock::Clock;
use fathom_sys::{signals, thread as this_thread};

use super::config::{TargetConfig, TargetLimits};
use super::devices::Devices;
use super::error::{ConfigFault, NetError};
use super::listener::{Census, Listener};
use super::log::{TargetEvent, TargetLog};
use super::mailbox::{Mailbox, Message};
use super::poll_group::PollGroup;
use super::registry::Registry;
use super::statistics::{IoCounters, NamespaceStatistics, TargetStatistics, ThreadStatistics};
use super::subsystem::{Served, TRANSFER_BYTES_MIN};

/// Running target. Dropping it stops it, as [`stop`](Self::stop) does.
#[derive(Debug)]
pub struct Target {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<io::Result<ThreadStatistics>>>,
}

/// State of a target that its threads share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: TargetConfig,
    pub(crate) subsystems: Vec<Arc<Served>>,
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) registry: Registry,
    pub(crate) mailboxes: Vec<Mailbox>,
    pub(crate) log: Arc<dyn TargetLog>,
    pub(crate) clock: Clock,
    pool: Arc<BufferPool>,
    census: Mutex<Census>,
    /// Counters by thread and device, some time old: for the health page.
    published: Vec<Mutex<Vec<IoCounters>>>,
}

impl Target {
    /// Starts a target; it serves when this returns.
    ///
    /// # Errors
    /// The configuration contradicts itself, an address cannot be listened on, a device cannot be
    /// opened, or a thread cannot be started.
    pub fn start(config: TargetConfig, log: Arc<dyn TargetLog>) -> Result<Self, NetError> {
        check(&config).map_err(NetError::Config)?;
        let subsystems = Served::all(&config)?;
        let sockets = listen(&config.listen)?;
        let mailboxes = (0..config.threads).map(|_| Mailbox::default());
        let sharing = Sharing {
            threads: config.threads,
            devices: device_count(&config),
        };
        let shared = Arc::new(Shared {
            subsystems,
            addresses: sockets.iter().map(|(_, address)| *address).collect(),
            registry: Registry::default(),
            mailboxes: mailboxes.collect(),
            log,
            clock: Clock::calibrated(),
            pool: BufferPool::new(config.buffers, sharing),
            census: Mutex::default(),
            published: (0..config.threads).map(|_| Mutex::default()).collect(),
            config,
        });
        let sockets = sockets.into_iter().map(|(socket, _)| socket).collect();
        let mut target = Self {
            shared,
            threads: Vec::new(),
        };
        target.start_threads(Listener::new(sockets))?;
        for &address in &target.shared.addresses {
            (target.shared.log).event(&TargetEvent::Listening { address });
        }
        Ok(target)
    }

    /// Returns the addresses that the target listens on, with the ports that were free.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.shared.addresses
    }

    /// Returns the counters. Each thread answers between two turns, within some milliseconds.
    #[must_use]
    pub fn statistics(&self) -> TargetStatistics {
        let (reply, replies) = mpsc::channel();
        for thread in 0..self.shared.config.threads {
            self.shared.post(thread, Message::Count(reply.clone()));
        }
        // Ends when all threads have answered, or are gone.
        drop(reply);
        self.sum(replies.into_iter().collect())
    }

    /// Returns a thread that has ended although the target was not stopped: its connections are
    /// dead, and with the first one no more are accepted.
    #[must_use]
    pub fn failed_thread(&self) -> Option<u32> {
        let mut threads = (0..).zip(&self.threads);
        threads.find_map(|(thread, handle)| handle.is_finished().then_some(thread))
    }

    /// Stops the target: its connections end, its devices finish what they have. Returns the
    /// counters.
    pub fn stop(mut self) -> TargetStatistics {
        let threads = self.end_threads();
        self.sum(threads)
    }

    fn start_threads(&mut self, listener: Listener) -> Result<(), NetError> {
        let (started, starts) = mpsc::channel();
        let mut listener = Some(listener);
        for thread in 0..self.shared.config.threads {
            let (shared, listener) = (Arc::clone(&self.shared), listener.take());
            let started = started.clone();
            let run = move || serve(thread, &shared, listener, &started);
            let spawned = thread::Builder::new()
                .name(format!("target-{thread}"))
                .spawn(run);
            let spawned = spawned.map_err(|source| NetError::Thread { thread, source })?;
            self.threads.push(spawned);
        }
        // Threads keep their sender while they serve.
        starts.into_iter().take(self.threads.len()).collect()
    }

    fn end_threads(&mut self) -> Vec<ThreadStatistics> {
        for thread in 0..self.shared.config.threads {
            self.shared.post(thread, Message::Stop);
        }
        let threads = self.threads.drain(..);
        // A thread that has panicked has nothing to say; its panic was reported.
        let ended = threads.filter_map(|thread| thread.join().ok()?.ok());
        ended.collect()
    }

    fn sum(&self, mut threads: Vec<ThreadStatistics>) -> TargetStatistics {
        threads.sort_by_key(|thread| thread.thread);
        let config = &self.shared.config;
        let subsystems = config.subsystems.iter();
        let named = subsystems.flat_map(|subsystem| {
            let namespaces = subsystem.namespaces.iter();
            namespaces.map(|namespace| (&subsystem.nqn, namespace.nsid))
        });
        let namespaces = named.enumerate().map(|(device, (nqn, nsid))| {
            let mut io = IoCounters::default();
            for thread in &threads {
                io.merge(&thread.namespaces[device]);
            }
            NamespaceStatistics {
                subsystem_nqn: nqn.clone(),
                nsid,
                io,
            }
        });
        TargetStatistics {
            namespaces: namespaces.collect(),
            buffers_in_use: self.shared.pool.in_use(),
            threads,
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.end_threads();
    }
}

impl Shared {
    pub(crate) fn census(&self) -> MutexGuard<'_, Census> {
        self.census.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes the counters of a thread.
    pub(crate) fn publish(&self, thread: u32, counters: &[IoCounters]) {
        let published = &self.published[thread as usize];
        let mut published = published.lock().unwrap_or_else(PoisonError::into_inner);
        published.clear();
        published.extend_from_slice(counters);
    }

    /// Returns what the namespaces of a subsystem have done, as published last.
    pub(crate) fn health(&self, served: &Served) -> Health {
        let mut sum = IoCounters::default();
        for published in &self.published {
            let published = published.lock().unwrap_or_else(PoisonError::into_inner);
            for namespace in &served.namespaces {
                if let Some(counters) = published.get(namespace.device as usize) {
                    sum.merge(counters);
                }
            }
        }
        Health {
            read_bytes: sum.read_bytes,
            written_bytes: sum.written_bytes,
            reads: sum.reads,
            writes: sum.writes,
        }
    }

    /// Sends a message to a thread.
    pub(crate) fn post(&self, thread: u32, message: Message) {
        self.mailboxes[thread as usize].push(message);
        self.config.wakers.wake(thread);
    }

    /// Notes the end of a connection.
    pub(crate) fn forget(&self, peer: SocketAddr) {
        self.census().forget(peer);
    }

    /// Returns the number of devices.
    pub(crate) fn device_count(&self) -> usize {
        device_count(&self.config) as usize
    }
}

/// Thread of a target: opens its devices, says that it has started, and serves.
fn serve(
    thread: u32,
    shared: &Arc<Shared>,
    listener: Option<Listener>,
    started: &Sender<Result<(), NetError>>,
) -> io::Result<ThreadStatistics> {
    let _presence = Presence(&shared.mailboxes[thread as usize]);
    let group = prepare(thread, shared, listener);
    let (result, group) = match group {
        Ok(group) => (Ok(()), Some(group)),
        Err(error) => (Err(error), None),
    };
    // Fails where another thread's failure has ended the start.
    let _gone = started.send(result);
    match group {
        Some(group) => group.run().inspect_err(|error| {
            let event = TargetEvent::ThreadFailed { thread, error };
            shared.log.event(&event);
        }),
        None => Ok(ThreadStatistics {
            thread,
            namespaces: vec![IoCounters::default(); shared.device_count()],
            ..ThreadStatistics::default()
        }),
    }
}

/// Presence of a thread, which ends with it, even by a panic: nothing waits for its answer then.
struct Presence<'a>(&'a Mailbox);

impl Drop for Presence<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

fn prepare(
    thread: u32,
    shared: &Arc<Shared>,
    listener: Option<Listener>,
) -> Result<PollGroup, NetError> {
    let failed = |source| NetError::Thread { thread, source };
    signals::block_in_this_thread().map_err(failed)?;
    let cpus = shared.config.cpus.as_deref();
    if let Some(&cpu) = cpus.and_then(|cpus| cpus.get(thread as usize)) {
        let bound = this_thread::set_allowed_cpus(&[cpu]);
        bound.map_err(|source| NetError::Cpu {
            thread,
            cpu,
            source,
        })?;
    }
    // A device's delay of a millisecond must not end 50 µs late.
    this_thread::set_timer_slack_ns(1).map_err(failed)?;
    let mut devices: Vec<Box<dyn BlockDevice>> = Vec::new();
    for subsystem in &shared.config.subsystems {
        for namespace in &subsystem.namespaces {
            let opened = namespace.device.open(thread, shared.clock.now());
            devices.push(opened.map_err(|source| NetError::Device {
                nqn: subsystem.nqn.clone(),
                nsid: namespace.nsid,
                source,
            })?);
        }
    }
    let pool = Arc::clone(&shared.pool);
    let admission = Admission::new(pool, &shared.config.pacing, thread);
    let parts = (Devices::new(devices), admission);
    PollGroup::new(thread, shared, listener, parts).map_err(failed)
}

fn listen(addresses: &[SocketAddr]) -> Result<Vec<(TcpListener, SocketAddr)>, NetError> {
    let listening = addresses.iter().map(|&address| {
        let socket = TcpListener::bind(address).and_then(|socket| {
            socket.set_nonblocking(true)?;
            let address = socket.local_addr()?;
            Ok((socket, address))
        });
        socket.map_err(|source| NetError::Listen { address, source })
    });
    listening.collect()
}

fn check(config: &TargetConfig) -> Result<(), ConfigFault> {
    let cpus = config
        .cpus
        .as_ref()
        .map_or(u64::MAX, |cpus| cpus.len() as u64);
    let has_wakers = config.wakers.count() == config.threads as usize;
    if config.threads == 0 || !has_wakers || cpus < u64::from(config.threads) {
        return Err(ConfigFault::Threads);
    }
    let TargetLimits {
        queue_entries,
        queues,
        in_capsule_bytes,
        io_bytes_max,
        connections_max,
        connections_per_address_max,
        initialization_timeout,
        transfer_timeout,
        termination_timeout,
    } = config.limits;
    let buffer_bytes = config.buffers.bytes;
    let is_transfer = io_bytes_max.is_power_of_two() && io_bytes_max >= TRANSFER_BYTES_MIN;
    let checks = [
        (
            "queue_entries",
            (2..=QUEUE_ENTRIES_MAX).contains(&queue_entries),
        ),
        ("queues", (1..=QUEUES_MAX).contains(&queues)),
        (
            "in_capsule_bytes",
            (IN_CAPSULE_BYTES_MIN..=IN_CAPSULE_BYTES_MAX.min(buffer_bytes))
                .contains(&in_capsule_bytes)
                && in_capsule_bytes.is_multiple_of(16),
        ),
        ("io_bytes_max", is_transfer && io_bytes_max <= buffer_bytes),
        ("connections_max", connections_max > 0),
        (
            "connections_per_address_max",
            connections_per_address_max > 0,
        ),
        ("initialization_timeout", !initialization_timeout.is_zero()),
        ("transfer_timeout", !transfer_timeout.is_zero()),
        ("termination_timeout", !termination_timeout.is_zero()),
        ("buffers", config.buffers.count != Some(0)),
    ];
    match checks.into_iter().find(|(_, holds)| !holds) {
        Some((name, _)) => Err(ConfigFault::Limit(name)),
        None => Ok(()),
    }
}

fn device_count(config: &TargetConfig) -> u32 {
    let namespaces = config.subsystems.iter().map(|one| one.namespaces.len());
    u32::try_from(namespaces.sum::<usize>()).unwrap_or(u32::MAX)
}

const QUEUES_MAX: u16 = 128;
const IN_CAPSULE_BYTES_MIN: u32 = 4096;
const IN_CAPSULE_BYTES_MAX: u32 = 16_384;
