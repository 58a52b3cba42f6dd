use std::io::{Read as _, Write as _};
use std::net::Shutdown;

use super::*;
use crate::live::{Figures, RunPhase};

fn server() -> (Server, Arc<Hub>) {
    let hub = Arc::new(Hub::default());
    let server = Server::start("127.0.0.1:0".parse().unwrap(), Arc::clone(&hub)).unwrap();
    (server, hub)
}

fn connect(server: &Server, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

fn ask(server: &Server, method: &str, path: &str) -> (String, String) {
    let request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut reply = String::new();
    connect(server, &request)
        .read_to_string(&mut reply)
        .unwrap();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

fn publish(hub: &Hub, elapsed_ms: u64, phase: RunPhase) {
    hub.publish(Arc::new(Figures {
        elapsed_ms,
        phase,
        ..Figures::default()
    }));
}

#[test]
fn each_path_has_its_reply() {
    let (server, hub) = server();
    publish(&hub, 7, RunPhase::Running);
    let (head, body) = ask(&server, "GET", "/");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(
        head.contains("\r\nContent-Security-Policy: default-src 'none';"),
        "{head}"
    );
    assert!(
        !head.to_ascii_lowercase().contains("access-control"),
        "{head}"
    );
    assert!(body.ends_with("</html>\n"));
    let (_, body) = ask(&server, "GET", "/figures.json");
    let json: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        (&json["elapsed_ms"], &json["phase"]),
        (&7.into(), &"running".into())
    );
    let (head, body) = ask(&server, "GET", "/metrics");
    assert!(
        head.contains("\r\nContent-Type: application/openmetrics-text;"),
        "{head}"
    );
    assert!(body.ends_with("# EOF\n"));
    let (head, body) = ask(&server, "HEAD", "/metrics");
    assert!(
        head.contains("\r\nContent-Length: ") && body.is_empty(),
        "{head}"
    );
    let (head, _) = ask(&server, "POST", "/");
    assert!(
        head.starts_with("HTTP/1.1 405 ") && head.contains("\r\nAllow: GET, HEAD"),
        "{head}"
    );
    assert!(ask(&server, "GET", "/x").0.starts_with("HTTP/1.1 404 "));
}

#[test]
fn events_come_until_the_run_ends() {
    let (server, hub) = server();
    publish(&hub, 1, RunPhase::Running);
    let mut stream = connect(&server, "GET /events HTTP/1.1\r\nHost: [::1]\r\n\r\n");
    let mut seen = String::new();
    let mut piece = [0; 4096];
    while !seen.contains("\"elapsed_ms\":1,") {
        let read = stream.read(&mut piece).unwrap();
        assert!(read > 0, "{seen}");
        seen += std::str::from_utf8(&piece[..read]).unwrap();
    }
    publish(&hub, 2, RunPhase::Ended);
    stream.read_to_string(&mut seen).unwrap();
    assert!(
        seen.contains("\r\nContent-Type: text/event-stream\r\n"),
        "{seen}"
    );
    assert!(
        seen.ends_with("\n\n") && seen.contains("\"elapsed_ms\":2,"),
        "{seen}"
    );
    server.finish();
}

#[test]
fn one_client_too_many_is_turned_away_and_places_become_free() {
    let (server, _hub) = server();
    let silent = || TcpStream::connect(server.address()).unwrap();
    let all: Vec<TcpStream> = (0..Crowd::CLIENTS_MAX).map(|_| silent()).collect();
    let mut late = silent();
    let mut reply = String::new();
    late.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 503 "), "{reply}");
    for stream in &all {
        stream.shutdown(Shutdown::Both).unwrap();
    }
    while server.shared.clients.count() > 0 {
        std::thread::yield_now();
    }
    assert!(ask(&server, "GET", "/").0.starts_with("HTTP/1.1 200 OK"));
}

#[test]
fn a_client_that_does_not_read_is_dropped() {
    let (server, hub) = server();
    publish(&hub, 1, RunPhase::Running);
    let stream = connect(&server, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    // Far more than the buffers of both sockets hold.
    let figures = Figures {
        warnings: vec!["x".repeat(64 << 20)],
        ..Figures::default()
    };
    hub.publish(Arc::new(figures));
    while server.shared.clients.count() == 0 {
        std::thread::yield_now();
    }
    while server.shared.clients.count() > 0 {
        std::thread::yield_now();
    }
    drop(stream);
}
