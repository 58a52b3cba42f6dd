//! Prometheus endpoint: answers requests for `/metrics`, and nothing else.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use fathom_report::prometheus;

use crate::crowd::Crowd;
use crate::http::{Hosts, REQUEST_BYTES_MAX, Reply, Request, is_whole};
use crate::plan::is_loopback;
use crate::service::{Client, Service, Snapshot};

/// Prometheus endpoint of a target, until it is dropped. Clients that are being answered, which use
/// the target, may delay that by up to two seconds.
#[derive(Debug)]
pub struct Metrics {
    address: SocketAddr,
    service: Option<Service>,
    clients: Arc<Crowd>,
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
        // Prometheus on another host may know this one by any name. On the loopback address, a name
        // can only be that of a page in a browser here, pointed to this machine by its owner.
        let hosts = match is_loopback(address.ip()) {
            true => Hosts::Addresses,
            false => Hosts::Any,
        };
        let clients = Arc::new(Crowd::default());
        let crowd = Arc::clone(&clients);
        let service = Service::start("metrics", listener, move |stream| {
            let snapshot = Arc::clone(&snapshot);
            crowd.admit("metrics", stream, move |client| {
                // A client that has gone, or is too slow, gets nothing: it will ask again.
                let _gone = answer(client, hosts, &snapshot);
            });
        })?;
        Ok(Self {
            address,
            service: Some(service),
            clients,
        })
    }

    /// Returns the address that it listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        // First, so that no client is added.
        self.service = None;
        self.clients.wait(FAREWELL);
    }
}

fn answer(client: &mut Client<TcpStream>, hosts: Hosts, snapshot: &Snapshot) -> io::Result<()> {
    let bytes = client.read_until(REQUEST_BYTES_MAX, is_whole)?;
    let (reply, wants_body) = match Request::parse(&bytes, hosts) {
        Ok(request) if request.path == PATH => {
            let reply = Reply::ok(CONTENT_TYPE, &prometheus(&snapshot()));
            (reply, !request.head_only)
        }
        Ok(request) => (Reply::not_found(PATH), !request.head_only),
        Err(refusal) => (Reply::refused(refusal), true),
    };
    client.write_all(&reply.bytes(wants_body))
}

/// Longer than any client is served (`CLIENT_TIME_MAX`).
const FAREWELL: Duration = Duration::from_secs(2);
const PATH: &str = "/metrics";
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::Shutdown;
    use std::sync::Arc;

    use fathom_record::TargetRecord;

    use super::*;

    const BAD_REQUEST: &str = "400 Bad Request";

    fn endpoint() -> Metrics {
        on("127.0.0.1:0")
    }

    fn on(address: &str) -> Metrics {
        let snapshot = || TargetRecord {
            uptime_ns: 5_000_000_000,
            ..TargetRecord::default()
        };
        Metrics::start(address.parse().unwrap(), Arc::new(snapshot)).unwrap()
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
            b"GET /metrics HTTP/1.1\r\nHost: localhost:9500\r\n\r\n",
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
        let ask = |line: &str, want| {
            let request = format!("{line}\r\nHost: 127.0.0.1\r\n\r\n");
            check(&endpoint, request.as_bytes(), want)
        };
        ask("GET /metrics?x=1 HTTP/1.0", "200 OK");
        let reply = ask("HEAD /metrics HTTP/1.1", "200 OK");
        assert!(reply.ends_with("\r\n\r\n"), "{reply}");
        ask("GET / HTTP/1.1", "404 Not Found");
        ask("GET /metrics/x HTTP/1.1", "404 Not Found");
        let reply = ask("POST /metrics HTTP/1.1", "405 Method Not Allowed");
        assert!(reply.contains("\r\nAllow: GET, HEAD\r\n"), "{reply}");
        ask("GET /metrics", BAD_REQUEST);
        ask("GET /metrics HTTP/2", BAD_REQUEST);
        check(&endpoint, b"\xff\xfe\r\n\r\n", BAD_REQUEST);
        check(&endpoint, b"GET /met", BAD_REQUEST);
        check(&endpoint, b"", BAD_REQUEST);
    }

    #[test]
    fn pages_of_other_names_read_nothing() {
        let endpoint = endpoint();
        let ask = |fields: &str, want| {
            let request = format!("GET /metrics HTTP/1.1\r\n{fields}\r\n");
            check(&endpoint, request.as_bytes(), want)
        };
        let reply = ask("Host: evil.example:9500\r\n", "421 Misdirected Request");
        assert!(!reply.contains("fathom_target"), "{reply}");
        ask("", BAD_REQUEST);
        let cross = "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n";
        ask(cross, "403 Forbidden");
    }

    #[test]
    fn other_hosts_may_use_any_name() {
        let endpoint = on("0.0.0.0:0");
        let request = b"GET /metrics HTTP/1.1\r\nHost: storage1.example\r\n\r\n";
        check(&endpoint, request, "200 OK");
    }

    #[test]
    fn long_requests_are_refused_and_the_next_client_is_answered() {
        let endpoint = endpoint();
        let mut long = b"GET /metrics HTTP/1.1\r\nX: ".to_vec();
        long.resize(REQUEST_BYTES_MAX, b'x');
        check(&endpoint, &long, "431 Request Header Fields Too Large");
        check(&endpoint, REQUEST, "200 OK");
    }

    #[test]
    fn silent_clients_keep_no_other_waiting() {
        let endpoint = endpoint();
        let connect = || TcpStream::connect(endpoint.address()).unwrap();
        let silent: Vec<TcpStream> = (1..Crowd::CLIENTS_MAX).map(|_| connect()).collect();
        check(&endpoint, REQUEST, "200 OK");
        while endpoint.clients.count() > silent.len() {
            std::thread::yield_now();
        }
        let (_silent, mut late) = (connect(), connect());
        let mut reply = String::new();
        late.read_to_string(&mut reply).unwrap();
        assert!(reply.starts_with("HTTP/1.1 503 "), "{reply}");
    }

    #[test]
    fn an_endpoint_that_is_dropped_lets_go_of_its_target() {
        let target = Arc::new(());
        let used = Arc::clone(&target);
        let snapshot = move || {
            let _used = &used;
            TargetRecord::default()
        };
        let endpoint = Metrics::start("127.0.0.1:0".parse().unwrap(), Arc::new(snapshot)).unwrap();
        let silent = TcpStream::connect(endpoint.address()).unwrap();
        while endpoint.clients.count() == 0 {
            std::thread::yield_now();
        }
        drop(endpoint);
        assert_eq!(Arc::strong_count(&target), 1);
        drop(silent);
    }

    const REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
}
