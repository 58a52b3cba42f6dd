//! A server of the test's own: objects in memory, a log of requests, and faults.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use fathom_conformance::{BLOCK, BLOCKS, content};
use md5::{Digest as _, Md5};

/// Running server; its threads end with the process.
pub(crate) struct Server {
    port: u16,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    objects: HashMap<String, Vec<u8>>,
    requests: Vec<Request>,
    connections: u32,
    /// Faults of the next requests, the last one first.
    faults: Vec<Fault>,
}

/// Request, as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// `GET /path`.
    pub(crate) line: String,
    /// Names in lower case.
    pub(crate) headers: HashMap<String, String>,
}

/// Misbehaviour in one request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// None.
    None,
    /// This status, further headers, and this body.
    Status(u16, &'static str, &'static str),
    /// Half of the object, and the end of the connection.
    Truncated,
    /// Half of the object, and nothing more.
    Stalled,
    /// An object of half the length.
    Short,
    /// An object with one byte more, of unknown length.
    Long,
    /// An object with a flipped bit.
    Flipped,
    /// The ETag of something else.
    OtherEtag,
    /// No answer.
    Silent,
    /// The end of the connection in place of an answer.
    Closed,
    /// A part of an object that may be any part.
    UntoldRange,
    /// This status, and a body of which a byte comes every 100 ms.
    Dribbling(u16),
    /// Something else than HTTP.
    Garbage,
}

impl Server {
    /// Starts a server with the blocks of `/b/o`.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let blocks = (0..BLOCKS).map(|block| (name(block), content(block)));
        let state = State {
            objects: blocks.collect(),
            ..State::default()
        };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                state.lock().unwrap().connections += 1;
                thread::spawn(move || serve(stream, &state));
            }
        });
        Self { port, state }
    }

    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Makes the next requests fail, in this order.
    pub(crate) fn fail(&self, faults: &[Fault]) {
        self.state.lock().unwrap().faults = faults.iter().rev().copied().collect();
    }

    pub(crate) fn object(&self, path: &str) -> Option<Vec<u8>> {
        self.state.lock().unwrap().objects.get(path).cloned()
    }

    pub(crate) fn put(&self, path: &str, data: Vec<u8>) {
        let mut state = self.state.lock().unwrap();
        state.objects.insert(path.to_owned(), data);
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.state.lock().unwrap().requests.clone()
    }

    pub(crate) fn connections(&self) -> u32 {
        self.state.lock().unwrap().connections
    }
}

/// Returns the path of a block's object.
pub(crate) fn name(block: u32) -> String {
    format!("/b/o_{}_{BLOCK}", u64::from(block) * u64::from(BLOCK))
}

/// Answers the requests of a connection.
fn serve(stream: TcpStream, state: &Mutex<State>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    stream.set_nodelay(true).unwrap();
    while let Some((request, body)) = receive(&mut reader) {
        let (line, headers) = (request.line.clone(), request.headers.clone());
        let fault = {
            let mut state = state.lock().unwrap();
            state.requests.push(request);
            state.faults.pop()
        };
        let (method, path) = line.split_once(' ').unwrap();
        match fault {
            Some(Fault::Closed) => return,
            Some(Fault::Silent) => {
                thread::sleep(Duration::from_secs(60));
                return;
            }
            Some(Fault::Garbage) => {
                let _gone = stream.write_all(b"SSH-2.0-OpenSSH_9\r\n\r\n");
                return;
            }
            Some(Fault::Dribbling(status)) => {
                let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {BLOCK}\r\n\r\n");
                let _gone = stream.write_all(head.as_bytes());
                while stream.write_all(b"x").is_ok() {
                    thread::sleep(Duration::from_millis(100));
                }
                return;
            }
            Some(Fault::Status(status, headers, body)) => {
                send(&mut stream, status, headers, body.as_bytes());
                continue;
            }
            _ => {}
        }
        match method {
            "PUT" => {
                let etag = match fault {
                    Some(Fault::OtherEtag) => etag(b"else"),
                    _ => etag(&body),
                };
                state.lock().unwrap().objects.insert(path.to_owned(), body);
                send(&mut stream, 201, &etag, b"");
            }
            "DELETE" => {
                let was_there = state.lock().unwrap().objects.remove(path).is_some();
                send(&mut stream, if was_there { 204 } else { 404 }, "", b"");
            }
            _ => {
                let found = state.lock().unwrap().objects.get(path).cloned();
                let Some(object) = found else {
                    send(&mut stream, 404, "", b"");
                    continue;
                };
                if !send_object(&mut stream, &object, headers.get("range"), fault) {
                    return;
                }
            }
        }
    }
}

/// Sends an object, and returns false if the connection is to end.
fn send_object(
    stream: &mut TcpStream,
    object: &[u8],
    range: Option<&String>,
    fault: Option<Fault>,
) -> bool {
    if let Some(range) = range {
        let (first, last) = range
            .strip_prefix("bytes=")
            .unwrap()
            .split_once('-')
            .unwrap();
        let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
        match object.get(first..=last.min(object.len() - 1)) {
            Some(part) => {
                let told = match fault {
                    Some(Fault::UntoldRange) => String::new(),
                    _ => format!("content-range: bytes {first}-{last}/{}\r\n", object.len()),
                };
                send(stream, 206, &told, part);
            }
            None => send(stream, 416, "", b""),
        }
        return true;
    }
    let half = &object[..object.len() / 2];
    match fault {
        Some(Fault::Truncated | Fault::Stalled) => {
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n",
                object.len()
            );
            let _gone = stream.write_all(&[head.as_bytes(), half].concat());
            if matches!(fault, Some(Fault::Stalled)) {
                thread::sleep(Duration::from_secs(60));
            }
            false
        }
        Some(Fault::Long) => {
            let head = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
            let _gone = stream.write_all(&[head, object, b"x"].concat());
            false
        }
        Some(Fault::Short) => {
            send(stream, 200, "", half);
            true
        }
        Some(Fault::Flipped) => {
            let mut flipped = object.to_vec();
            flipped[7] ^= 1;
            send(stream, 200, &etag(object), &flipped);
            true
        }
        _ => {
            send(stream, 200, &etag(object), object);
            true
        }
    }
}

fn receive(reader: &mut BufReader<TcpStream>) -> Option<(Request, Vec<u8>)> {
    let mut line = String::new();
    reader
        .read_line(&mut line)
        .ok()
        .filter(|&count| count > 0)?;
    let mut words = line.split(' ');
    let line = format!("{} {}", words.next()?, words.next()?);
    let mut headers = HashMap::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers
        .get("content-length")
        .map_or(0, |text| text.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((Request { line, headers }, body))
}

fn send(stream: &mut TcpStream, status: u16, headers: &str, body: &[u8]) {
    let length = match status {
        204 => String::new(),
        _ => format!("content-length: {}\r\n", body.len()),
    };
    let head = format!("HTTP/1.1 {status} x\r\n{length}{headers}\r\n");
    let _gone = stream.write_all(&[head.as_bytes(), body].concat());
}

fn etag(body: &[u8]) -> String {
    let digits: String = Md5::digest(body)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("etag: \"{digits}\"\r\n")
}
