//! Failures of connections, with what a user can do about them.

use std::fmt;
use std::io;

use fathom_core::{EngineError, EngineStep, Errno, Nanos};
use fathom_nbd::{HandshakeError, ReplyError};

use crate::dial::DialError;

/// Failure of a connection or of the server behind it.
#[derive(Debug)]
pub(crate) enum LinkError {
    /// A system call failed.
    Socket(&'static str, io::Error),
    /// The name of the host is not known.
    Unresolved(io::Error),
    /// The name of the host has no address.
    NoAddress,
    /// The server closed the connection.
    Closed,
    /// The server did not answer in time.
    Silent(Nanos),
    /// The server refuses, or broke a rule of the handshake.
    Handshake(HandshakeError),
    /// The server broke a rule about replies.
    Reply(ReplyError),
    /// The connections of a job are to exports that differ.
    Differs,
    /// The server does not let several connections share an export.
    OneConnection,
    /// The export lacks what an option of the job needs.
    Lacks {
        option: &'static str,
        what: &'static str,
    },
}

impl LinkError {
    /// Returns the error of an engine that cannot connect.
    pub(crate) fn of_engine(&self, uri: &str) -> EngineError {
        let (call, target, errno) = match self {
            Self::Socket(call, error) => (*call, uri.to_string(), Errno::of(error)),
            other => ("connect", format!("{uri}: {other}"), None),
        };
        EngineError {
            step: EngineStep::Call(call),
            target,
            errno,
            hint: self.hint(),
        }
    }

    /// Returns the errno with which the ops of a lost connection fail.
    pub(crate) fn errno(&self) -> Errno {
        match self {
            Self::Socket(_, error) => Errno::of(error).unwrap_or(Errno::EIO),
            Self::Closed => Errno::ECONNRESET,
            Self::Silent(_) => Errno::ETIMEDOUT,
            _ => Errno::EPROTO,
        }
    }

    fn hint(&self) -> String {
        match self {
            Self::Socket(_, error) => match error.kind() {
                io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => {
                    "start the server, or check uri".into()
                }
                io::ErrorKind::PermissionDenied => "check the permissions of the socket".into(),
                _ => "check uri, and the network in between".into(),
            },
            Self::Unresolved(_) | Self::NoAddress => "check the host name in uri".into(),
            Self::Closed => "check that an NBD server listens there, and its log".into(),
            Self::Silent(_) => "check uri, and the network in between".into(),
            Self::OneConnection => "remove `connections`".into(),
            Self::Lacks { option, .. } => format!("remove `{option}`"),
            Self::Handshake(error) => match error {
                HandshakeError::NotNbd => "check the port in uri".into(),
                HandshakeError::Oldstyle => "use a server that names its exports".into(),
                HandshakeError::TlsRequired => {
                    "let the server accept connections without TLS".into()
                }
                HandshakeError::UnknownExport { .. } => {
                    "name an export of the server: `nbdinfo --list` lists them".into()
                }
                _ => String::new(),
            },
            Self::Reply(_) | Self::Differs => String::new(),
        }
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(call, error) => write!(f, "{call}: {error}"),
            Self::Unresolved(error) => write!(f, "{error}"),
            Self::NoAddress => f.write_str("the host has no address"),
            Self::Closed => f.write_str("the server closed the connection"),
            Self::Silent(timeout) => write!(f, "no answer of the server for {timeout}"),
            Self::Handshake(error) => write!(f, "{error}"),
            Self::Reply(error) => write!(f, "protocol error: {error}"),
            Self::Differs => f.write_str("the export changed from one connection to the next"),
            Self::OneConnection => {
                f.write_str("the server does not support several connections to the export")
            }
            Self::Lacks { what, .. } => write!(f, "the export does not support {what}"),
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

impl From<HandshakeError> for LinkError {
    fn from(error: HandshakeError) -> Self {
        Self::Handshake(error)
    }
}

impl From<ReplyError> for LinkError {
    fn from(error: ReplyError) -> Self {
        Self::Reply(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(error: &LinkError, want: &str) {
        assert_eq!(error.of_engine("nbd://h/").to_string(), want);
    }

    #[test]
    fn a_call_is_named_once() {
        let refused = || io::Error::from(Errno::EPERM);
        let text = "Operation not permitted (os error 1)";
        let connect = LinkError::Socket("connect", refused());
        check(&connect, &format!("connect: nbd://h/: {text}"));
        let send = LinkError::Socket("send", refused());
        check(&send, &format!("send: nbd://h/: {text}"));
        let closed = "connect: nbd://h/: the server closed the connection";
        check(&LinkError::Closed, closed);
    }
}
