//! Names of objects, as URLs have them.

use std::net::Ipv6Addr;

use fathom_core::{EngineError, EngineStep};

use crate::options::{Options, Tls};

/// Server, as URLs name it.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    /// `http://host:port`.
    pub(crate) origin: String,
    /// `host:port`, as in the header `Host`.
    pub(crate) authority: String,
}

impl Server {
    /// Creates the target from a job's host: a name or an address, perhaps with a port.
    pub(crate) fn new(options: &Options) -> Result<Self, EngineError> {
        let scheme = match options.tls {
            Tls::Off => "http",
            Tls::Checked | Tls::Unchecked => "https",
        };
        let authority = options.host.clone();
        check(&authority).map_err(|(target, hint)| EngineError {
            step: EngineStep::Option("http_host"),
            target,
            errno: None,
            hint: hint.into(),
        })?;
        Ok(Self {
            origin: format!("{scheme}://{authority}"),
            authority,
        })
    }
}

/// Checks `HOST` or `HOST:PORT`. The client takes the scheme's port in place of one that it cannot
/// read, which would be another server.
///
/// # Errors
/// The mistake and the remedy.
fn check(authority: &str) -> Result<(), (String, &'static str)> {
    let form = "put paths and buckets into `filename`, passwords into `http_pass`";
    // A password before `@` would be shown by messages, and a path not be signed.
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    if !authority.bytes().all(is_host) {
        return Err(("not HOST or HOST:PORT".into(), form));
    }
    let (host, port) = split(authority);
    let number = port.map(|port| port.parse().unwrap_or(0_u16));
    let inner = host.strip_prefix('[').map(|rest| rest.strip_suffix(']'));
    let is_ipv6 = |text: &str| text.parse::<Ipv6Addr>().is_ok();
    match (inner, number) {
        (None, _) if is_ipv6(authority) => Err((
            format!("`{authority}` has no brackets"),
            "write an IPv6 address as `[::1]` or `[::1]:PORT`",
        )),
        (_, Some(0)) => Err((
            format!("invalid port `{}`", port.unwrap_or_default()),
            "choose one from 1 to 65535, or leave it out with its colon",
        )),
        (None, _) if !host.is_empty() && !host.contains([':', '[', ']']) => Ok(()),
        (Some(Some(address)), _) if is_ipv6(address) => Ok(()),
        _ if host.is_empty() => Err(("empty host".to_owned(), "write HOST or HOST:PORT")),
        _ => Err((format!("invalid host `{host}`"), "write HOST or HOST:PORT")),
    }
}

/// Splits `HOST` or `HOST:PORT`, whose host may be an IPv6 address in brackets.
fn split(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !authority.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    }
}

/// Returns the server of a job as `HOST:PORT`.
pub(crate) fn address(options: &Options) -> String {
    let (host, port) = split(&options.host);
    let port = port.unwrap_or(match options.tls {
        Tls::Off => "80",
        Tls::Checked | Tls::Unchecked => "443",
    });
    format!("{host}:{port}")
}

/// Returns the encoded path of the object of a block.
pub(crate) fn block(file: &str, offset: u64, length: u32) -> String {
    format!("{}_{offset}_{length}", path(file))
}

/// Returns the encoded path of a file.
pub(crate) fn path(file: &str) -> String {
    let mut path = String::with_capacity(file.len() + 48);
    if !file.starts_with('/') {
        path.push('/');
    }
    for byte in file.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                path.push(char::from(byte));
            }
            _ => {
                path.push('%');
                for digit in [byte >> 4, byte & 15] {
                    path.push(char::from(HEX[usize::from(digit)]));
                }
            }
        }
    }
    path
}

const HEX: &[u8; 16] = b"0123456789ABCDEF";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refuse(authority: &str, want: &str) {
        let (why, _) = check(authority).expect_err(authority);
        assert_eq!(why, want);
    }

    #[test]
    fn only_hosts_with_usable_ports_are_taken() {
        for good in ["h", "a-b.c_d:1", "127.0.0.1:65535", "[::1]", "[::1]:80"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        refuse("h:65536", "invalid port `65536`");
        refuse("h:x", "invalid port `x`");
        refuse("h:0", "invalid port `0`");
        refuse("h:", "invalid port ``");
        refuse("[::1]:", "invalid port ``");
        refuse(":80", "empty host");
        refuse("", "empty host");
        refuse("::1", "`::1` has no brackets");
        refuse("a:b:1", "invalid host `a:b`");
        refuse("[::1:80", "invalid host `[::1`");
        refuse("[h]:80", "invalid host `[h]`");
        refuse("[]", "invalid host `[]`");
        refuse("u:p@h", "not HOST or HOST:PORT");
    }

    #[test]
    fn objects_are_named_as_by_fio() {
        assert_eq!(
            block("/bucket/object", 8192, 4096),
            "/bucket/object_8192_4096"
        );
        assert_eq!(block("x.0.0", 0, 512), "/x.0.0_0_512");
        assert_eq!(path("/b/a b+c%/é~"), "/b/a%20b%2Bc%25/%C3%A9~");
    }
}
