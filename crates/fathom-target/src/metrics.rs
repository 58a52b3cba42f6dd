//! Prometheus endpoint: answers `GET /metrics`, and nothing else.
//!
//! A few dozen lines instead of a dependency: one method, one path, no keep-alive, no body.

use std::io;
use std::net::{SocketAddr, TcpListener};

use fathom_report::prometheus;

use crate::service::{Client, Service, Snapshot};

/// Prometheus endpoint of a target, until it is dropped.
#[derive(Debug)]
pub struct Metrics {
    address: SocketAddr,
    _service: Service,
}

impl Metrics {
    /// Listens on `address`; port 0 takes a free one.
    ///
    /// # Errors
    /// The error of a system call: `AddrInUse`, `AddrNotAvailable`.
    pub fn start(address: SocketAddr, snapshot: Snapshot) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let service = Service::start("metrics", listener, move |listener: &TcpListener| {
            // A client that has gone, or is too slow, gets nothing: it will ask again.
            let _gone = answer(listener, &snapshot);
        })?;
        Ok(Self {
            address,
            _service: service,
        })
    }

    /// Returns the address that it listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

fn answer(listener: &TcpListener, snapshot: &Snapshot) -> io::Result<()> {
    let (stream, _peer) = listener.accept()?;
    stream.set_nonblocking(true)?;
    let mut client = Client::new(stream);
    let is_whole = |read: &[u8]| read.windows(4).any(|end| end == b"\r\n\r\n");
    let request = client.read_until(REQUEST_BYTES_MAX, is_whole)?;
    let reply = match judge(&request, is_whole(&request)) {
        Ok(()) => reply(
            "200 OK",
            "text/plain; version=0.0.4; charset=utf-8",
            &prometheus(&snapshot()),
        ),
        Err(status) => reply(status, "text/plain", &format!("{status}\n")),
    };
    client.write_all(reply.as_bytes())
}

/// Judges a request by its first line.
fn judge(request: &[u8], is_whole: bool) -> Result<(), &'static str> {
    if !is_whole {
        return Err(match request.len() >= REQUEST_BYTES_MAX {
            true => "431 Request Header Fields Too Large",
            false => BAD_REQUEST,
        });
    }
    let line = request.split(|&byte| byte == b'\r').next();
    let line = line.and_then(|line| std::str::from_utf8(line).ok());
    let mut words = line.ok_or(BAD_REQUEST)?.split(' ');
    let (Some(method), Some(path), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(BAD_REQUEST);
    };
    if !version.starts_with("HTTP/1.") {
        return Err(BAD_REQUEST);
    }
    match (method, path.split('?').next()) {
        ("GET", Some("/metrics")) => Ok(()),
        (_, Some("/metrics")) => Err("405 Method Not Allowed"),
        _ => Err("404 Not Found"),
    }
}

fn reply(status: &str, kind: &str, body: &str) -> String {
    let allow = match status.starts_with("405") {
        true => "Allow: GET\r\n",
        false => "",
    };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{allow}Connection: \
         close\r\n\r\n{body}",
        body.len()
    )
}

/// Scrapers send some hundred bytes.
const REQUEST_BYTES_MAX: usize = 8192;
const BAD_REQUEST: &str = "400 Bad Request";

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{Shutdown, TcpStream};
    use std::sync::Arc;

    use fathom_record::TargetRecord;

    use super::*;

    fn endpoint() -> Metrics {
        let snapshot = || TargetRecord {
            uptime_ns: 5_000_000_000,
            ..TargetRecord::default()
        };
        Metrics::start("127.0.0.1:0".parse().unwrap(), Arc::new(snapshot)).unwrap()
    }

    #[track_caller]
    fn check(endpoint: &Metrics, request: &[u8], want: &str) -> String {
        let mut stream = TcpStream::connect(endpoint.address()).unwrap();
        stream.write_all(request).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut reply = String::new();
        // A reset follows a reply to a request that was not read to its end.
        let _reset = stream.read_to_string(&mut reply);
        let status = reply.lines().next().unwrap_or_default();
        assert_eq!(status, format!("HTTP/1.1 {want}"), "{reply}");
        reply
    }

    #[test]
    fn only_metrics_are_served() {
        let endpoint = endpoint();
        let reply = check(
            &endpoint,
            b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
            "200 OK",
        );
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        assert!(
            body.contains("fathom_target_uptime_seconds 5.000"),
            "{body}"
        );
        assert!(
            head.contains(&format!("Content-Length: {}", body.len())),
            "{head}"
        );
        check(&endpoint, b"GET /metrics?x=1 HTTP/1.0\r\n\r\n", "200 OK");
        check(&endpoint, b"GET / HTTP/1.1\r\n\r\n", "404 Not Found");
        check(
            &endpoint,
            b"GET /metrics/x HTTP/1.1\r\n\r\n",
            "404 Not Found",
        );
        let reply = check(
            &endpoint,
            b"POST /metrics HTTP/1.1\r\n\r\n",
            "405 Method Not Allowed",
        );
        assert!(reply.contains("\r\nAllow: GET\r\n"), "{reply}");
        check(&endpoint, b"GET /metrics\r\n\r\n", BAD_REQUEST);
        check(&endpoint, b"GET /metrics HTTP/2\r\n\r\n", BAD_REQUEST);
        check(&endpoint, b"\xff\xfe\r\n\r\n", BAD_REQUEST);
        check(&endpoint, b"GET /met", BAD_REQUEST);
        check(&endpoint, b"", BAD_REQUEST);
    }

    #[test]
    fn long_requests_are_refused_and_the_next_client_is_answered() {
        let endpoint = endpoint();
        let mut long = b"GET /metrics HTTP/1.1\r\nX: ".to_vec();
        long.resize(REQUEST_BYTES_MAX, b'x');
        check(&endpoint, &long, "431 Request Header Fields Too Large");
        // One that says nothing is given up after a second.
        let silent = TcpStream::connect(endpoint.address()).unwrap();
        check(&endpoint, b"GET /metrics HTTP/1.1\r\n\r\n", "200 OK");
        drop(silent);
    }
}
