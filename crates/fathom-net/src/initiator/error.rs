//! Failures of connections, with what a user can do about them.

use std::fmt;
use std::io;

use fathom_core::{EngineError, EngineStep, Errno, Nanos};
use fathom_nvme::{ControllerError, QueueError};

use crate::dial::DialError;
use crate::initiator::address::ControllerAddress;

/// Failure of a connection or of the controller behind it.
#[derive(Debug)]
pub(crate) enum LinkError {
    /// A system call failed.
    Socket(&'static str, io::Error),
    /// The name of the host is not known.
    Unresolved(io::Error),
    /// The name of the host has no address of the family.
    NoAddress,
    /// The target closed the connection.
    Closed,
    /// The target did not answer in time.
    Silent(&'static str),
    /// The target answered other commands, but not an op.
    Unanswered(Nanos),
    /// A rule of the protocol was broken.
    Queue(QueueError),
    /// The controller refuses, or is not usable.
    Controller(ControllerError),
    /// The controller grants fewer I/O queues than the job has.
    Queues { wanted: u16, granted: u16 },
    /// The namespaces are not those of the connection before.
    Replaced,
}

impl LinkError {
    /// Returns the error of an engine that cannot connect.
    pub(crate) fn of_engine(&self, address: &ControllerAddress, host_nqn: &str) -> EngineError {
        let (call, target, errno) = match self {
            Self::Socket(call, error) => (*call, address.to_string(), Errno::of(error)),
            other => ("connect", format!("{address}: {other}"), other.errno()),
        };
        EngineError {
            step: EngineStep::Call(call),
            target,
            errno,
            hint: self.hint(address, host_nqn),
        }
    }

    /// Returns the errno of a connection that was lost or never came to be; none of a refusal.
    const fn errno(&self) -> Option<Errno> {
        match self {
            Self::Closed => Some(Errno::ECONNRESET),
            Self::Silent(_) | Self::Unanswered(_) => Some(Errno::ETIMEDOUT),
            _ => None,
        }
    }

    fn hint(&self, address: &ControllerAddress, host_nqn: &str) -> String {
        let (host, port) = (&address.host, address.port);
        match self {
            Self::Socket(_, error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                "start the target, or check traddr and trsvcid".into()
            }
            Self::Socket(_, error)
                if matches!(Errno::of(error), Some(Errno::EMFILE | Errno::ENFILE)) =>
            {
                "raise `ulimit -n`, or lower the number of queues".into()
            }
            Self::Socket(..) | Self::Silent(_) => {
                "check traddr, trsvcid, and the network in between".into()
            }
            Self::Unresolved(_) => "check the name in traddr".into(),
            Self::NoAddress => "check adrfam, or leave it out".into(),
            Self::Unanswered(_) => "raise io_timeout, or look at the target's device".into(),
            Self::Closed => "check that an NVMe/TCP target listens there".into(),
            Self::Queue(QueueError::Digests { .. }) => {
                "change hdgst and ddgst, or the target's settings".into()
            }
            Self::Queue(_) => String::new(),
            Self::Queues { granted, .. } => format!("use queues={granted} or less"),
            Self::Replaced => "to use what is there now, run the job again".into(),
            Self::Controller(error) => match error {
                ControllerError::Refused { status, result, .. } => match status.type_and_code() {
                    // Invalid parameters of Connect, of which the subsystem NQN is one.
                    (1, 0x82) if result & 0x1_ffff == SUBSYSTEM_NQN => format!(
                        "use a subnqn that the target has: `nvme discover -t tcp -a {host} -s \
                         {port}` lists them"
                    ),
                    (1, 0x84) => format!("let the target admit host {host_nqn}, or set hostnqn"),
                    _ => String::new(),
                },
                ControllerError::NotReady => "raise connect_timeout, or look at the target".into(),
                ControllerError::NoNamespace { .. } => {
                    "set ns to a namespace of the subsystem".into()
                }
                _ => String::new(),
            },
        }
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(call, error) => write!(f, "{call}: {error}"),
            Self::Unresolved(error) => write!(f, "{error}"),
            Self::NoAddress => f.write_str("the host has no address of this family"),
            Self::Closed => f.write_str("the target closed the connection"),
            Self::Silent(what) => write!(f, "{what}: no answer in time"),
            Self::Unanswered(limit) => {
                write!(f, "an op had no answer within io_timeout ({limit})")
            }
            Self::Queue(error) => write!(f, "{error}"),
            Self::Controller(error) => write!(f, "{error}"),
            Self::Queues { wanted, granted } => {
                write!(f, "the controller grants {granted} I/O queues of {wanted}")
            }
            Self::Replaced => f.write_str("the namespace has another size or identity"),
        }
    }
}

impl From<DialError> for LinkError {
    fn from(error: DialError) -> Self {
        match error {
            DialError::Unresolved(error) => Self::Unresolved(error),
            DialError::NoAddress => Self::NoAddress,
            DialError::Connect(error) => Self::Socket("connect", error),
        }
    }
}

impl From<QueueError> for LinkError {
    fn from(error: QueueError) -> Self {
        Self::Queue(error)
    }
}

impl From<ControllerError> for LinkError {
    fn from(error: ControllerError) -> Self {
        Self::Controller(error)
    }
}

/// Result of a refused Connect that names the subsystem NQN: its offset, in the data.
const SUBSYSTEM_NQN: u64 = 1 << 16 | 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::initiator::address::NamespaceAddress;

    #[test]
    fn a_lack_of_descriptors_is_not_one_of_the_network() {
        let text = "trtype=tcp adrfam=ipv4 traddr=127.0.0.1 subnqn=nqn.2026-01.org.example:a";
        let address = NamespaceAddress::parse(text).unwrap().controller;
        let error = LinkError::Socket("epoll", io::Error::from(Errno::EMFILE));
        let hint = error.of_engine(&address, "").hint;
        assert_eq!(hint, "raise `ulimit -n`, or lower the number of queues");
    }
}
