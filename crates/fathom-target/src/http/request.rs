//! Requests of a client: the path, and reasons to refuse it.

use std::net::IpAddr;

/// Head of a request that may be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Path that is asked for, without its query.
    pub path: String,
    /// The client wants no body (`HEAD`).
    pub head_only: bool,
}

/// Names by which clients may ask for what is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// Addresses, and `localhost`.
    Addresses,
    /// Any name, for clients on other hosts.
    Any,
}

/// Reason to refuse a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// It is not a request of HTTP/1.
    Malformed,
    /// It is too long.
    TooLong,
    /// It is neither `GET` nor `HEAD`.
    Method,
    /// `Host` names something else: a page of another name may be behind it, which its owner has
    /// pointed to this machine to read what is served here.
    Host,
    /// Another page asks, in a browser.
    CrossSite,
}

impl Request {
    /// Parses the head of a request to one of the names in `hosts`.
    ///
    /// # Errors
    /// The reason to refuse it.
    pub fn parse(bytes: &[u8], hosts: Hosts) -> Result<Self, Refusal> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(bytes) {
            Ok(status) if status.is_complete() => {}
            Ok(_) if bytes.len() >= REQUEST_BYTES_MAX => return Err(Refusal::TooLong),
            Err(httparse::Error::TooManyHeaders) => return Err(Refusal::TooLong),
            Ok(_) | Err(_) => return Err(Refusal::Malformed),
        }
        let head_only = match request.method {
            Some("GET") => false,
            Some("HEAD") => true,
            _ => return Err(Refusal::Method),
        };
        // A target with a host of its own (`GET http://name/`) is for proxies.
        let target = request.path.filter(|path| path.starts_with('/'));
        let path = target.ok_or(Refusal::Malformed)?.split('?').next();
        let headers = Headers(request.headers);
        let host = headers.only("host").ok_or(Refusal::Malformed)?;
        if hosts == Hosts::Addresses && !is_address(host) {
            return Err(Refusal::Host);
        }
        let navigates = headers.only("sec-fetch-mode") == Some(b"navigate");
        if headers.only("sec-fetch-site") == Some(b"cross-site") && !navigates {
            return Err(Refusal::CrossSite);
        }
        Ok(Self {
            path: path.unwrap_or_default().to_owned(),
            head_only,
        })
    }
}

/// Returns whether what was read has the whole head of a request.
#[must_use]
pub fn is_whole(read: &[u8]) -> bool {
    read.windows(4).any(|end| end == b"\r\n\r\n")
}

/// Header fields of a request.
struct Headers<'a>(&'a [httparse::Header<'a>]);

impl<'a> Headers<'a> {
    /// Returns the value of a field that is given once.
    fn only(&self, name: &str) -> Option<&'a [u8]> {
        let mut fields = self
            .0
            .iter()
            .filter(|field| field.name.eq_ignore_ascii_case(name));
        let value = fields.next()?.value;
        fields.next().is_none().then_some(value)
    }
}

/// Returns whether a `Host` can only mean a machine, not a page: an IP address, or `localhost`. The
/// port may be another one, as behind `ssh -L`.
fn is_address(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else {
        return false;
    };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let bracketed = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    match bracketed {
        Some(name) => matches!(name.parse(), Ok(IpAddr::V6(_))),
        None => name.eq_ignore_ascii_case("localhost") || matches!(name.parse(), Ok(IpAddr::V4(_))),
    }
}

/// Browsers send some hundred bytes.
pub const REQUEST_BYTES_MAX: usize = 8192;
/// Fields of a request: browsers send some twenty.
const HEADERS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(request: &str, want: Result<&str, Refusal>) {
        let parsed = Request::parse(request.as_bytes(), Hosts::Addresses);
        let path = parsed.as_ref().map(|request| request.path.as_str());
        assert_eq!(path.map_err(|refusal| *refusal), want, "{request}");
    }

    #[test]
    fn only_addresses_and_localhost_are_answered() {
        let get = |path: &str, host: &str| format!("GET {path} HTTP/1.1\r\nhOst: {host}\r\n\r\n");
        for host in [
            "127.0.0.1:80",
            "localhost:9",
            "LOCALHOST",
            "[::1]:1",
            "192.0.2.7:80",
        ] {
            check(&get("/", host), Ok("/"));
        }
        let names = [
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "::1",
            "[::1",
            "[127.0.0.1]",
            "127.1",
            "",
            "[]:80",
        ];
        for host in names {
            check(&get("/", host), Err(Refusal::Host));
        }
        check(&get("/metrics?x=1", "localhost"), Ok("/metrics"));
        check(&get("/../etc/passwd", "localhost"), Ok("/../etc/passwd"));
        check(
            &get("http://127.0.0.1/", "localhost"),
            Err(Refusal::Malformed),
        );
    }

    #[test]
    fn clients_on_other_hosts_may_use_any_name() {
        let request = b"GET / HTTP/1.1\r\nHost: storage1.example:9500\r\n\r\n";
        assert!(Request::parse(request, Hosts::Any).is_ok());
        let none = Request::parse(b"GET / HTTP/1.1\r\n\r\n", Hosts::Any);
        assert_eq!(none, Err(Refusal::Malformed));
    }

    #[test]
    fn other_requests_are_refused() {
        check("GET / HTTP/1.1\r\n\r\n", Err(Refusal::Malformed));
        let two = "GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n";
        check(two, Err(Refusal::Malformed));
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "get"] {
            let request = format!("{method} / HTTP/1.1\r\nHost: localhost\r\n\r\n");
            check(&request, Err(Refusal::Method));
        }
        let head = b"HEAD /events HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let head = Request::parse(head, Hosts::Addresses);
        assert!(head.unwrap().head_only);
        for cut in ["", "GET", "GET / HTTP/1.1\r\nHost: localhost\r\n"] {
            check(cut, Err(Refusal::Malformed));
        }
        check(
            "GET / HTTP/3\r\nHost: localhost\r\n\r\n",
            Err(Refusal::Malformed),
        );
        check("\u{7f}\0\r\n\r\n", Err(Refusal::Malformed));
        let long = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(REQUEST_BYTES_MAX));
        check(&long, Err(Refusal::TooLong));
        let many = format!(
            "GET / HTTP/1.1\r\n{}\r\n",
            "A: b\r\n".repeat(HEADERS_MAX + 1)
        );
        check(&many, Err(Refusal::TooLong));
    }

    #[test]
    fn other_pages_read_nothing_and_may_link() {
        let from = |mode: &str, site: &str| {
            format!(
                "GET / HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Mode: {mode}\r\nSec-Fetch-Site: \
                 {site}\r\n\r\n"
            )
        };
        check(&from("no-cors", "cross-site"), Err(Refusal::CrossSite));
        check(&from("navigate", "cross-site"), Ok("/"));
        check(&from("cors", "same-origin"), Ok("/"));
    }
}
