//! Start and stop of a target with everything beside it.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use fathom_core::{BlockDevice, Errno, Geometry, Nanos, Tick};
use fathom_net::target::{
    DeviceError as NamespaceError, DeviceFactory, NamespaceConfig, NetError, SubsystemConfig,
    Target, TargetConfig, TargetLimits, Wakers,
};
use fathom_nvme::Digests;
use fathom_record::TargetRecord;
use fathom_sys::clock::Clock;
use fathom_sys::thread;

use crate::devices::{Device, Threads};
use crate::error::DeviceError;
use crate::log::EventLog;
use crate::metrics::Metrics;
use crate::pacing::policy_name;
use crate::plan::{AllowedHosts, SubsystemPlan, TargetPlan};
use crate::service::Snapshot;
use crate::snapshot::Facts;
use crate::stats_socket::{BoundSocket, StatsError, StatsSocket};

/// Target that serves, with its statistics socket and Prometheus endpoint.
#[derive(Debug)]
pub struct RunningTarget {
    // Dropped first: they hold the target.
    metrics: Option<Metrics>,
    socket: Option<StatsSocket>,
    target: Arc<Target>,
    facts: Arc<Facts>,
    log: Arc<EventLog>,
    plan: TargetPlan,
}

impl RunningTarget {
    /// Starts a plan. Returns a warning, too, if the default statistics socket cannot be had.
    ///
    /// # Errors
    /// The target cannot be started as planned; nothing is left behind, except files that were
    /// created for devices.
    pub fn start(
        plan: TargetPlan,
        log: Arc<EventLog>,
    ) -> Result<(Self, Option<StatsError>), StartError> {
        // Before anything listens: a target that cannot be had as planned is not announced.
        let stats = match (BoundSocket::bind(plan.socket.as_deref()), &plan.socket) {
            (Err(error), Some(_)) => return Err(StartError::Stats(error)),
            (bound, _) => bound,
        };
        let config = configure(&plan)?;
        let cpus = config.cpus.clone().unwrap_or_default();
        let target = Target::start(config, Arc::clone(&log) as _).map_err(StartError::Net)?;
        let target = Arc::new(target);
        let facts = Arc::new(Facts {
            clock: Clock::monotonic(),
            listen: target.addresses().iter().map(ToString::to_string).collect(),
            buffers: plan.buffers,
            policy: policy_name(&plan.pacing, &plan.buffers),
            cpus,
            devices: plan
                .subsystems
                .iter()
                .flat_map(|subsystem| &subsystem.namespaces)
                .map(|namespace| namespace.device.describe())
                .collect(),
        });
        let mut running = Self {
            metrics: None,
            socket: None,
            target,
            facts,
            log,
            plan,
        };
        let warning = running.serve_statistics(stats)?;
        Ok((running, warning))
    }

    fn serve_statistics(
        &mut self,
        stats: Result<BoundSocket, StatsError>,
    ) -> Result<Option<StatsError>, StartError> {
        let snapshot = self.snapshot_function();
        if let Some(address) = self.plan.metrics {
            let metrics = Metrics::start(address, Arc::clone(&snapshot));
            self.metrics = Some(metrics.map_err(|source| StartError::Metrics { address, source })?);
        }
        match (
            stats.and_then(|bound| bound.serve(snapshot)),
            &self.plan.socket,
        ) {
            (Ok(socket), _) => self.socket = Some(socket),
            (Err(error), Some(_)) => return Err(StartError::Stats(error)),
            (Err(error), None) => return Ok(Some(error)),
        }
        Ok(None)
    }

    fn snapshot_function(&self) -> Snapshot {
        let (target, facts) = (Arc::clone(&self.target), Arc::clone(&self.facts));
        let log = Arc::clone(&self.log);
        Arc::new(move || facts.record(target.statistics(), log.counts()))
    }

    /// Returns the addresses that the target listens on, with the ports that were free.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        self.target.addresses()
    }

    /// Returns the address of the Prometheus endpoint, if there is one.
    #[must_use]
    pub fn metrics(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(Metrics::address)
    }

    /// Returns the statistics socket, if there is one.
    #[must_use]
    pub const fn socket(&self) -> Option<&StatsSocket> {
        self.socket.as_ref()
    }

    /// Returns the lines that announce the target: one for each subsystem and address, with all
    /// that a host needs.
    #[must_use]
    pub fn announcement(&self) -> String {
        let mut text = String::new();
        for subsystem in &self.plan.subsystems {
            for address in self.addresses() {
                let (traddr, trsvcid) = (address.ip(), address.port());
                text += &format!("nqn {} traddr {traddr} trsvcid {trsvcid}", subsystem.nqn);
                for namespace in &subsystem.namespaces {
                    text += &format!(" ns {} {}", namespace.nsid, namespace.device.describe());
                }
                text.push('\n');
            }
        }
        text
    }

    /// Returns a thread of the target that has ended by a failure, which was reported.
    #[must_use]
    pub fn failed_thread(&self) -> Option<u32> {
        self.target.failed_thread()
    }

    /// Stops: connections end, devices finish what they have. Returns the last state.
    #[must_use]
    pub fn stop(self) -> TargetRecord {
        let Self {
            metrics,
            socket,
            target,
            facts,
            log,
            plan: _,
        } = self;
        drop((metrics, socket));
        // The services held the only other references.
        let counted = match Arc::try_unwrap(target) {
            Ok(target) => target.stop(),
            Err(shared) => shared.statistics(),
        };
        facts.record(counted, log.counts())
    }
}

fn configure(plan: &TargetPlan) -> Result<TargetConfig, StartError> {
    let cpus = Some(plan.cpus.clone()).filter(|cpus| !cpus.is_empty());
    let threads = match (plan.threads, &cpus) {
        (Some(threads), _) => threads,
        (None, Some(cpus)) => u32::try_from(cpus.len()).unwrap_or(u32::MAX),
        (None, None) => {
            let allowed = thread::allowed_cpus().map_or(1, |cpus| cpus.len());
            u32::try_from(allowed).unwrap_or(1).max(1)
        }
    };
    let wakers = Wakers::new(threads).map_err(StartError::Wakers)?;
    let rouse = Arc::clone(&wakers);
    let seen = Threads {
        count: threads,
        rouse: Arc::new(move |thread| rouse.wake(thread)),
    };
    let subsystems = plan.subsystems.iter();
    let subsystems: Result<_, _> = subsystems
        .map(|one| configure_subsystem(one, &seen))
        .collect();
    Ok(TargetConfig {
        listen: plan.listen.clone(),
        threads,
        wakers,
        cpus,
        busy_poll: plan.busy_poll,
        subsystems: subsystems?,
        limits: limits(plan),
        buffers: plan.buffers,
        pacing: plan.pacing,
        digests: Digests {
            header: true,
            data: true,
        },
        success_in_data: true,
    })
}

fn configure_subsystem(
    plan: &SubsystemPlan,
    threads: &Threads,
) -> Result<SubsystemConfig, StartError> {
    let mut namespaces = Vec::new();
    for namespace in &plan.namespaces {
        let prepared = namespace.device.prepare(threads);
        prepared.map_err(StartError::Device)?;
        namespaces.push(NamespaceConfig {
            nsid: namespace.nsid,
            nguid: namespace.nguid,
            block_bytes: namespace.device.geometry().block_bytes,
            device: Arc::new(Factory(namespace.device.clone())),
        });
    }
    Ok(SubsystemConfig {
        nqn: plan.nqn.clone(),
        serial: plan.serial.clone(),
        model: plan.model.clone(),
        allowed_hosts: match &plan.hosts {
            AllowedHosts::Local | AllowedHosts::Any => None,
            AllowedHosts::Listed(hosts) => Some(hosts.clone()),
        },
        namespaces,
    })
}

fn limits(plan: &TargetPlan) -> TargetLimits {
    let (usual, given) = (TargetLimits::DEFAULT, plan.limits);
    let seconds = |seconds: u32| Nanos::from_secs(seconds.into());
    TargetLimits {
        queue_entries: given.queue_entries.unwrap_or(usual.queue_entries),
        queues: given.queues.unwrap_or(usual.queues),
        in_capsule_bytes: given.in_capsule_bytes.unwrap_or(usual.in_capsule_bytes),
        io_bytes_max: plan.buffers.bytes,
        connections_max: given.connections.unwrap_or(usual.connections_max),
        connections_per_address_max: given
            .connections_per_address
            .unwrap_or(usual.connections_per_address_max),
        initialization_timeout: given
            .initialization_timeout_s
            .map_or(usual.initialization_timeout, seconds),
        transfer_timeout: given
            .transfer_timeout_s
            .map_or(usual.transfer_timeout, seconds),
        ..usual
    }
}

/// Device of a namespace, for the target.
#[derive(Debug)]
struct Factory(Device);

impl DeviceFactory for Factory {
    fn open(&self, thread: u32, now: Tick) -> Result<Box<dyn BlockDevice>, NamespaceError> {
        Ok(self.0.open(thread, now)?)
    }

    fn geometry(&self) -> Geometry {
        self.0.geometry()
    }
}

/// Reason why a target does not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// A device cannot be used.
    Device(DeviceError),
    /// The target itself.
    Net(NetError),
    /// The means to wake its threads.
    Wakers(io::Error),
    /// The Prometheus endpoint cannot listen.
    Metrics {
        /// Its address.
        address: SocketAddr,
        /// Error of the socket.
        source: io::Error,
    },
    /// The statistics socket cannot be served.
    Stats(StatsError),
}

impl StartError {
    /// Returns the remedy, in the imperative; may be empty.
    #[must_use]
    pub fn hint(&self) -> &str {
        let of_socket = |error: &io::Error| match error.kind() {
            io::ErrorKind::AddrInUse => "choose another port, or 0 for a free one",
            io::ErrorKind::AddrNotAvailable => "choose an address of this machine",
            io::ErrorKind::PermissionDenied => "choose a port from 1024 on, or run as root",
            _ => "",
        };
        match self {
            Self::Device(error) => error.hint(),
            Self::Net(NetError::Listen { source, .. }) | Self::Metrics { source, .. } => {
                of_socket(source)
            }
            Self::Net(NetError::Device { source, .. }) => {
                source.downcast_ref().map_or("", DeviceError::hint)
            }
            Self::Net(NetError::Cpu { .. }) => "choose CPUs that `taskset --pid $$` shows",
            Self::Net(NetError::Thread { source, .. })
                if Errno::of(source) == Some(Errno::EMFILE) =>
            {
                OPEN_FILES
            }
            Self::Net(NetError::Thread { .. }) => "raise the limits of processes and memory",
            Self::Net(_) => "",
            Self::Wakers(_) => OPEN_FILES,
            Self::Stats(error) => error.hint(),
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(error) => write!(f, "{error}"),
            Self::Net(error) => write!(f, "{error}"),
            Self::Wakers(error) => write!(f, "cannot start threads: eventfd: {error}"),
            Self::Metrics { address, source } => {
                write!(f, "cannot serve metrics: {address}: {source}")
            }
            Self::Stats(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for StartError {}

const OPEN_FILES: &str = "raise the limit of open files with `ulimit -n`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_without_a_descriptor_needs_another_limit() {
        let hint = |errno| {
            let source = io::Error::from_raw_os_error(errno);
            let failed = NetError::Thread { thread: 0, source };
            StartError::Net(failed).hint().to_owned()
        };
        assert!(hint(24).contains("open files"), "EMFILE");
        assert!(hint(11).contains("processes"), "EAGAIN");
    }
}
