//! URIs of exports.

use std::fmt;

use crate::handshake::NAME_BYTES_MAX;

/// Address of an export, from its URI.
///
/// ```
/// use fathom_nbd::{Endpoint, ExportAddress};
///
/// let address = ExportAddress::parse("nbd://localhost/disk").unwrap();
/// let Endpoint::Tcp { host, port } = &address.endpoint else { panic!() };
/// assert_eq!((host.as_str(), *port, address.name.as_str()), ("localhost", 10809, "disk"));
/// assert!(ExportAddress::parse("nbd+unix:///disk?socket=/run/nbd.sock").is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportAddress {
    /// Socket of the server.
    pub endpoint: Endpoint,
    /// Name of the export; empty: the server's default.
    pub name: String,
}

/// Socket of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// TCP.
    Tcp {
        /// Host name or IP address, without brackets.
        host: String,
        /// Port.
        port: u16,
    },
    /// Unix-domain socket.
    Unix {
        /// Path of the socket.
        path: String,
    },
}

/// Reason why a text is not a usable URI of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UriError {
    /// Not of the form `scheme://…`.
    NoScheme,
    /// A scheme of another protocol.
    Scheme(String),
    /// A scheme with TLS.
    Tls,
    /// An unfinished or unknown escape (`%xx`).
    Escape(String),
    /// A port that is not a number from 1 to 65535.
    Port(String),
    /// An address in brackets without its end, or text after it.
    Host(String),
    /// A Unix-domain socket without a path (`socket=`).
    NoSocket,
    /// A host in the URI of a Unix-domain socket.
    UnixHost(String),
    /// A parameter that is not supported.
    Parameter(String),
    /// An export name beyond the protocol's limit.
    NameTooLong(usize),
}

impl ExportAddress {
    /// Bytes of an export name at most.
    pub const NAME_BYTES_MAX: usize = NAME_BYTES_MAX;

    /// Reads a URI: `nbd://HOST[:PORT]/EXPORT` or `nbd+unix:///EXPORT?socket=PATH`.
    ///
    /// # Errors
    /// The part that cannot be read or used.
    pub fn parse(uri: &str) -> Result<Self, UriError> {
        let (scheme, rest) = uri.split_once("://").ok_or(UriError::NoScheme)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, name) = rest.split_once('/').unwrap_or((rest, ""));
        let socket = socket(query)?;
        let endpoint = match scheme.to_ascii_lowercase().as_str() {
            "nbd" if socket.is_some() => return Err(UriError::Parameter("socket".to_owned())),
            "nbd" => tcp(authority)?,
            "nbd+unix" if !authority.is_empty() => {
                return Err(UriError::UnixHost(authority.to_owned()));
            }
            "nbd+unix" => {
                let path = socket.filter(|path| !path.is_empty());
                let path = path.ok_or(UriError::NoSocket)?;
                Endpoint::Unix { path }
            }
            "nbds" | "nbds+unix" | "nbds+vsock" => return Err(UriError::Tls),
            _ => return Err(UriError::Scheme(scheme.to_owned())),
        };
        let name = unescaped(name)?;
        match name.len() {
            0..=NAME_BYTES_MAX => Ok(Self { endpoint, name }),
            bytes => Err(UriError::NameTooLong(bytes)),
        }
    }
}

/// Returns the path of the parameter `socket`, the only one there is without TLS.
fn socket(query: &str) -> Result<Option<String>, UriError> {
    let mut socket = None;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        match key {
            "socket" => socket = Some(unescaped(value)?),
            key => return Err(UriError::Parameter(key.to_owned())),
        }
    }
    Ok(socket)
}

fn tcp(authority: &str) -> Result<Endpoint, UriError> {
    // A user name is for TLS; without it, it means nothing.
    let place = authority
        .rsplit_once('@')
        .map_or(authority, |(_, place)| place);
    let wrong = || UriError::Host(place.to_owned());
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, behind) = rest.split_once(']').ok_or_else(wrong)?;
            match (behind, behind.strip_prefix(':')) {
                ("", _) => (host, None),
                (_, Some(port)) => (host, Some(port)),
                _ => return Err(wrong()),
            }
        }
        None => match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    let port = match port {
        None | Some("") => DEFAULT_PORT,
        Some(text) => {
            let port = text.parse().ok().filter(|&port: &u16| port > 0);
            port.ok_or_else(|| UriError::Port(text.to_owned()))?
        }
    };
    let host = match host {
        "" => "localhost".to_owned(),
        host => unescaped(host)?,
    };
    Ok(Endpoint::Tcp { host, port })
}

/// Replaces `%xx`.
fn unescaped(text: &str) -> Result<String, UriError> {
    let wrong = || UriError::Escape(text.to_owned());
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, behind) = rest.split_first_chunk::<2>().ok_or_else(wrong)?;
        rest = behind;
        let digit = |digit: u8| char::from(digit).to_digit(16).ok_or_else(wrong);
        let value = digit(digits[0])? << 4 | digit(digits[1])?;
        // Zero would end the path of a socket.
        bytes.push(
            u8::try_from(value)
                .ok()
                .filter(|&byte| byte > 0)
                .ok_or_else(wrong)?,
        );
    }
    String::from_utf8(bytes).map_err(|_not_text| wrong())
}

impl fmt::Display for UriError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoScheme => f.write_str("not a URI"),
            Self::Scheme(scheme) => write!(f, "`{scheme}` is not a scheme of NBD"),
            Self::Tls => f.write_str("TLS is not supported"),
            Self::Escape(text) => write!(f, "bad escape in `{text}`"),
            Self::Port(text) => write!(f, "`{text}` is no port"),
            Self::Host(text) => write!(f, "bad address `{text}`"),
            Self::NoSocket => f.write_str("no path of the Unix-domain socket"),
            Self::UnixHost(text) => write!(f, "host `{text}` for a Unix-domain socket"),
            Self::Parameter(key) => write!(f, "parameter `{key}` is not supported"),
            Self::NameTooLong(bytes) => write!(
                f,
                "export name of {bytes} B; the limit is {NAME_BYTES_MAX} B"
            ),
        }
    }
}

impl std::error::Error for UriError {}

/// Port that IANA has assigned to NBD.
const DEFAULT_PORT: u16 = 10809;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_tcp(uri: &str, host: &str, port: u16, name: &str) {
        let want = ExportAddress {
            endpoint: Endpoint::Tcp {
                host: host.to_owned(),
                port,
            },
            name: name.to_owned(),
        };
        assert_eq!(ExportAddress::parse(uri), Ok(want), "{uri}");
    }

    #[test]
    fn tcp_addresses_have_hosts_ports_and_names() {
        check_tcp("nbd://localhost", "localhost", 10809, "");
        check_tcp("nbd://localhost/", "localhost", 10809, "");
        check_tcp("NBD://h:1/a/b%20c", "h", 1, "a/b c");
        check_tcp("nbd://h//a", "h", 10809, "/a");
        check_tcp("nbd://[::1]:2/x", "::1", 2, "x");
        check_tcp("nbd://[fe80::1]", "fe80::1", 10809, "");
        check_tcp("nbd://user@h:3", "h", 3, "");
        check_tcp("nbd:///x", "localhost", 10809, "x");
    }

    #[track_caller]
    fn check_unix(uri: &str, path: &str, name: &str) {
        let want = ExportAddress {
            endpoint: Endpoint::Unix {
                path: path.to_owned(),
            },
            name: name.to_owned(),
        };
        assert_eq!(ExportAddress::parse(uri), Ok(want), "{uri}");
    }

    #[test]
    fn unix_sockets_have_paths() {
        check_unix("nbd+unix:///?socket=/tmp/s", "/tmp/s", "");
        check_unix("nbd+unix://?socket=s%3Ft", "s?t", "");
        check_unix("nbd+unix:///disk?socket=/a%20b", "/a b", "disk");
    }

    #[track_caller]
    fn refuse(uri: &str, want: &str) {
        let error = ExportAddress::parse(uri).expect_err(uri);
        assert_eq!(error.to_string(), want, "{uri}");
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        refuse("localhost:10809", "not a URI");
        refuse("", "not a URI");
        refuse("http://h/", "`http` is not a scheme of NBD");
        refuse("nbds://h/", "TLS is not supported");
        refuse("nbds+unix:///?socket=/s", "TLS is not supported");
        refuse("nbd://h:0", "`0` is no port");
        refuse("nbd://h:99999", "`99999` is no port");
        refuse("nbd://[::1", "bad address `[::1`");
        refuse("nbd://[::1]x", "bad address `[::1]x`");
        refuse("nbd://h/%4", "bad escape in `%4`");
        refuse("nbd://h/%00", "bad escape in `%00`");
        refuse("nbd://h/%ff", "bad escape in `%ff`");
        refuse("nbd+unix:///x", "no path of the Unix-domain socket");
        refuse(
            "nbd+unix://h/?socket=/s",
            "host `h` for a Unix-domain socket",
        );
        refuse("nbd://h/?socket=/s", "parameter `socket` is not supported");
        refuse(
            "nbd://h/?tls-username=x",
            "parameter `tls-username` is not supported",
        );
        let long = format!("nbd://h/{}", "x".repeat(4097));
        refuse(&long, "export name of 4097 B; the limit is 4096 B");
    }
}
