//! Requests to a server, one at a time.

use std::fmt::Write as _;
use std::io::{self, Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use fathom_core::{EngineError, Errno, Nanos, StopRequest, Tick};
use fathom_engine::{EngineConfig, RepeatedRequests};
use fathom_sys::clock::{self, Clock};
use md5::{Digest as _, Md5};
use ureq::http::{HeaderMap, Request, Response};
use ureq::{Agent, Body};

use crate::credentials::{Credentials, S3Keys};
use crate::fault::{Answer, Fault, FaultKind};
use crate::options::{Mode, ObjectMode, Options};
use crate::sign::{self, Signer, Unsigned};
use crate::target::{self, Server};
use crate::trust;

/// Client of a server, with one connection.
#[derive(Debug)]
pub(crate) struct Client {
    agent: Agent,
    server: Server,
    options: Options,
    credentials: Credentials,
    clock: Clock,
    repeated: RepeatedRequests,
    stop: StopRequest,
    /// Time of the last answer: a connection unused for a while may be closed.
    last: Option<Tick>,
}

/// Request for a block.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) method: Method,
    /// Encoded path of the object.
    path: String,
    /// First and last byte of a part of the object.
    range: Option<(u64, u64)>,
    /// SHA-256 of the body, if the request is signed.
    sha256: String,
    /// MD5 of the body, if the answer is to have it.
    md5: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Put,
    Delete,
}

/// Success of a request.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// MD5 of the object, if the server gives it.
    pub(crate) md5: Option<String>,
}

impl Client {
    pub(crate) fn new(
        options: Options,
        credentials: Credentials,
        config: &EngineConfig,
    ) -> Result<Self, EngineError> {
        Ok(Self {
            agent: trust::agent(&options)?,
            server: Server::new(&options)?,
            options,
            credentials,
            clock: config.clock,
            repeated: config.repeated.clone(),
            stop: config.stop.clone(),
            last: None,
        })
    }

    /// Returns the request for a block, with the hashes of what it writes.
    pub(crate) fn exchange(
        &self,
        method: Method,
        file: &str,
        offset: u64,
        length: u32,
        data: &[u8],
    ) -> Exchange {
        let is_write = method == Method::Put;
        let last = offset.saturating_add(u64::from(length).saturating_sub(1));
        let (path, range) = match self.options.objects {
            ObjectMode::Block => (target::block(file, offset, length), None),
            ObjectMode::Range => (target::path(file), Some((offset, last))),
        };
        Exchange {
            method,
            path,
            range,
            sha256: match (self.options.mode, is_write) {
                (Mode::S3, true) => sign::sha256(data),
                _ => sign::EMPTY.to_owned(),
            },
            md5: (is_write && self.gives_md5()).then(|| md5(data)),
        }
    }

    /// Performs a request, repeatedly if it has to be and the job permits it. `data` is sent, or
    /// filled.
    pub(crate) fn perform(&mut self, exchange: &Exchange, data: &mut [u8]) -> Result<Done, Fault> {
        let mut pause = FIRST_PAUSE;
        let mut left = self.options.retries;
        loop {
            let begun = self.clock.now();
            let is_stale = self.last.is_some_and(|last| begun - last >= STALE);
            let mut fault = match self.attempt(exchange, data) {
                Ok(done) => {
                    self.last = Some(self.clock.now());
                    return Ok(done);
                }
                Err(fault) => fault,
            };
            self.say(exchange, &fault.text);
            self.last = None;
            match fault.kind {
                // A server may close a connection that is not used while the request is on its way.
                FaultKind::Lost if is_stale => {}
                FaultKind::Lost | FaultKind::Busy(_) if left > 0 => {
                    left -= 1;
                    let asked = match fault.kind {
                        FaultKind::Busy(asked) => asked.unwrap_or(pause),
                        _ => pause,
                    };
                    if !self.sleep(asked.min(LONGEST_PAUSE)) {
                        fault.kind = FaultKind::Stopped;
                        return Err(fault);
                    }
                    pause = (pause + pause).min(LONGEST_PAUSE);
                }
                _ => return Err(fault),
            }
            self.repeated.count();
        }
    }

    /// Sleeps, and returns false as soon as the job is to stop.
    fn sleep(&self, time: Nanos) -> bool {
        let end = self.clock.now() + time;
        while !self.stop.is_requested() {
            let left = end - self.clock.now();
            if left.is_zero() {
                return true;
            }
            clock::sleep(left.min(STOP_CHECK));
        }
        false
    }

    /// Compares data read with the MD5 that the server gave.
    pub(crate) fn check(done: &Done, data: &[u8]) -> Result<(), Fault> {
        match &done.md5 {
            Some(want) if *want != md5(data) => Err(Fault::lasting(
                Errno::EILSEQ,
                "the object is not the one of its ETag: other data arrived than the server has",
            )),
            _ => Ok(()),
        }
    }

    fn attempt(&self, exchange: &Exchange, data: &mut [u8]) -> Result<Done, Fault> {
        let url = format!("{}{}", self.server.origin, exchange.path);
        let mut request = Request::builder().method(exchange.method.name()).uri(url);
        for (name, value) in self.headers(exchange) {
            request = request.header(name, value);
        }
        let invalid = |error: ureq::http::Error| Fault::lasting(Errno::EINVAL, error.to_string());
        let answer = match exchange.method {
            Method::Put => self.agent.run(request.body(&*data).map_err(invalid)?),
            _ => self.agent.run(request.body(()).map_err(invalid)?),
        };
        let answer = answer.map_err(|error| Fault::of_transport(&error, &self.options))?;
        self.say_answer(exchange, &answer);
        self.take(exchange, answer, data)
    }

    /// Takes the body of an answer, or finds out what went wrong.
    fn take(
        &self,
        exchange: &Exchange,
        answer: Response<Body>,
        data: &mut [u8],
    ) -> Result<Done, Fault> {
        let (parts, mut body) = answer.into_parts();
        let status = parts.status.as_u16();
        match (exchange.method, status) {
            (Method::Get, 200) if exchange.range.is_none() => {
                self.read_all(&mut body, data)?;
                let md5 = self.md5_of(&parts.headers);
                Ok(Done { md5 })
            }
            (Method::Get, 206) if exchange.range.is_some() => {
                check_range(exchange, &parts.headers)?;
                self.read_all(&mut body, data)?;
                Ok(Done::default())
            }
            (Method::Get, 200) => Err(Fault::lasting(
                Errno::EOPNOTSUPP,
                "the server sends whole objects only: use http_object_mode=block",
            )),
            (Method::Put, 200..=204) => {
                self.drain(&mut body)?;
                self.check_stored(exchange, &parts.headers)?;
                Ok(Done::default())
            }
            (Method::Delete, 200..=204) => {
                self.drain(&mut body)?;
                Ok(Done::default())
            }
            _ => {
                let text = self.beginning(&mut body);
                let answer = Answer {
                    status,
                    headers: &parts.headers,
                    body: &text,
                };
                if status == 404 && answer.code() != "NoSuchBucket" {
                    match exchange.method {
                        // As fio: a block that was never written reads as zeroes.
                        Method::Get => {
                            data.fill(0);
                            return Ok(Done::default());
                        }
                        Method::Delete => return Ok(Done::default()),
                        Method::Put => {}
                    }
                }
                Err(Fault::of_status(&answer, &self.options, &self.credentials))
            }
        }
    }

    /// Returns the headers of a request, in the order of their names.
    fn headers(&self, exchange: &Exchange) -> Vec<(&'static str, String)> {
        let mut headers = vec![("host", self.server.authority.clone())];
        let is_put = exchange.method == Method::Put;
        if let Some((first, last)) = exchange.range {
            headers.push(("range", format!("bytes={first}-{last}")));
        }
        match &self.credentials {
            Credentials::None => {}
            Credentials::Basic { user, pass } => {
                let pair = format!("{user}:{}", pass.expose());
                headers.push(("authorization", format!("Basic {}", BASE64.encode(pair))));
            }
            Credentials::Token(token) => {
                headers.push(("x-auth-token", token.expose().to_owned()));
                if let (true, Some(md5)) = (is_put, &exchange.md5) {
                    headers.push(("etag", md5.clone()));
                }
            }
            Credentials::S3(keys) => {
                let date = sign::date(clock::wall_ms());
                headers.push(("x-amz-content-sha256", exchange.sha256.clone()));
                headers.push(("x-amz-date", date.clone()));
                self.add_s3(keys, exchange.method, &mut headers);
                let signer = Signer {
                    id: keys.id.expose(),
                    secret: keys.secret.expose(),
                    region: &self.options.region,
                };
                let unsigned = Unsigned {
                    method: exchange.method.name(),
                    path: &exchange.path,
                    headers: &headers,
                    body: &exchange.sha256,
                };
                let signature = signer.sign(&unsigned, &date);
                headers.push(("authorization", signature));
            }
        }
        headers
    }

    /// Adds the headers of S3 that not every request has, in the order of their names.
    fn add_s3(&self, keys: &S3Keys, method: Method, headers: &mut Vec<(&'static str, String)>) {
        if let Some(token) = &keys.session {
            headers.push(("x-amz-security-token", token.expose().to_owned()));
        }
        if let (Some(customer), Method::Get | Method::Put) = (&keys.customer, method) {
            let key = customer.key.expose().as_bytes();
            let prefixed = [
                (
                    "x-amz-server-side-encryption-customer-algorithm",
                    customer.algorithm.clone(),
                ),
                (
                    "x-amz-server-side-encryption-customer-key",
                    BASE64.encode(key),
                ),
                (
                    "x-amz-server-side-encryption-customer-key-md5",
                    BASE64.encode(Md5::digest(key)),
                ),
            ];
            headers.extend(prefixed);
        }
        // The class that a server takes by itself is not named: servers without classes refuse it.
        if method == Method::Put && self.options.storage_class != "STANDARD" {
            headers.push(("x-amz-storage-class", self.options.storage_class.clone()));
        }
    }

    fn check_stored(&self, exchange: &Exchange, headers: &HeaderMap) -> Result<(), Fault> {
        match (&exchange.md5, self.md5_of(headers)) {
            (Some(sent), Some(stored)) if *sent != stored => Err(Fault::lasting(
                Errno::EILSEQ,
                "the server stored other data than were sent: its ETag is another MD5",
            )),
            _ => Ok(()),
        }
    }

    /// Returns the MD5 of an object, if its ETag is one.
    fn md5_of(&self, headers: &HeaderMap) -> Option<String> {
        if !self.gives_md5() || OTHER_ETAGS.iter().any(|name| headers.contains_key(*name)) {
            return None;
        }
        let of_kms = headers.get("x-amz-server-side-encryption");
        if of_kms.is_some_and(|value| value != "AES256") {
            return None;
        }
        let etag = headers.get("etag")?.to_str().ok()?.trim_matches('"');
        let is_md5 = etag.len() == 32 && etag.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_md5.then(|| etag.to_ascii_lowercase())
    }

    /// Reads a body that must be as long as `data`. A job that is to stop waits `reply_timeout` for
    /// the rest, even if a byte arrives now and then.
    fn read_all(&self, body: &mut Body, data: &mut [u8]) -> Result<(), Fault> {
        let mut give_up_at = None;
        let want = data.len();
        let length = |holds: String| {
            Fault::lasting(
                Errno::EIO,
                format!("the object has {holds}, and the block {want} B"),
            )
        };
        if let Some(told) = body.content_length()
            && told != want as u64
        {
            return Err(length(format!("{told} B")));
        }
        let mut reader = body.as_reader();
        let mut done = 0;
        // One byte more is asked for, so that the end is seen and the connection can be kept.
        loop {
            let mut more = [0];
            let place = match done == want {
                true => &mut more[..],
                false => &mut data[done..],
            };
            match reader.read(place) {
                Ok(0) if done == want => return Ok(()),
                Ok(0) => return Err(length(format!("{done} B"))),
                Ok(_) if done == want => return Err(length("more bytes".to_owned())),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let fault = of_body(error);
                    let text = match fault.kind {
                        FaultKind::Lost => format!("the answer ends after {done} of {want} B"),
                        _ => fault.text.clone(),
                    };
                    return Err(Fault { text, ..fault });
                }
            }
            if self.stop.is_requested() {
                let now = self.clock.now();
                if now >= *give_up_at.get_or_insert(now + self.options.reply_timeout) {
                    return Err(stopped());
                }
            }
        }
    }

    /// Reads the rest of an answer, so that the connection can be kept.
    fn drain(&self, body: &mut Body) -> Result<(), Fault> {
        self.read_rest(body, &mut |_| {})
    }

    /// Returns the beginning of an answer; empty if it cannot be read.
    fn beginning(&self, body: &mut Body) -> String {
        let mut text: Vec<u8> = Vec::new();
        let _partial = self.read_rest(body, &mut |bytes| text.extend(bytes));
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Reads an answer that is not a block, up to a limit, for `reply_timeout` at most: a server
    /// that sends a byte now and then would hold the job for hours.
    fn read_rest(&self, body: &mut Body, take: &mut dyn FnMut(&[u8])) -> Result<(), Fault> {
        let until = self.clock.now() + self.options.reply_timeout;
        let mut rest = body.as_reader().take(REST_MAX);
        let mut chunk = [0; 4096];
        loop {
            match rest.read(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(count) => take(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(of_body(error)),
            }
            if self.clock.now() >= until {
                return Err(stopped());
            }
        }
    }

    fn gives_md5(&self) -> bool {
        self.options.check_etag && matches!(self.options.mode, Mode::S3 | Mode::Swift)
    }

    fn say_answer(&self, exchange: &Exchange, answer: &Response<Body>) {
        if self.options.verbose == 0 {
            return;
        }
        let mut text = answer.status().to_string();
        if self.options.verbose > 1 {
            for (name, value) in answer.headers() {
                let _never_fails = write!(text, "\n  {name}: {}", value.to_str().unwrap_or("…"));
            }
        }
        self.say(exchange, &text);
    }

    /// Writes a line to standard error, if the job wants it.
    fn say(&self, exchange: &Exchange, text: &str) {
        if self.options.verbose > 0 {
            let (method, path) = (exchange.method.name(), &exchange.path);
            let line = format!("http: {method} {path}: {text}\n");
            let _closed = io::stderr().write_all(line.as_bytes());
        }
    }
}

impl Method {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
        }
    }
}

/// Checks that the part sent is the one asked for.
fn check_range(exchange: &Exchange, headers: &HeaderMap) -> Result<(), Fault> {
    let told = headers
        .get("content-range")
        .and_then(|value| value.to_str().ok());
    match (told, exchange.range) {
        (Some(told), Some((first, last)))
            if told.starts_with(&format!("bytes {first}-{last}/")) =>
        {
            Ok(())
        }
        (None, _) => Err(Fault::lasting(
            Errno::EIO,
            "the server does not say which part of the object it sent (Content-Range)",
        )),
        _ => Err(Fault::lasting(
            Errno::EIO,
            "the server sent another part of the object than it was asked for",
        )),
    }
}

fn of_body(error: io::Error) -> Fault {
    match error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<ureq::Error>())
    {
        Some(ureq::Error::Timeout(_)) => stopped(),
        Some(ureq::Error::Io(inner)) => Fault::of_io(inner),
        _ => Fault::of_io(&error),
    }
}

fn stopped() -> Fault {
    Fault::lasting(
        Errno::ETIMEDOUT,
        "the server stopped in the middle of its answer (reply_timeout)",
    )
}

fn md5(data: &[u8]) -> String {
    sign::hex(&Md5::digest(data))
}

/// Headers of objects whose ETag is not an MD5.
const OTHER_ETAGS: [&str; 3] = [
    "x-amz-server-side-encryption-customer-algorithm",
    "x-static-large-object",
    "x-object-manifest",
];
/// Idle time after which a server may close a connection; it is reopened, once.
const STALE: Nanos = Nanos::from_secs(1);
/// Pause before the first repetition; each further one is twice as long.
const FIRST_PAUSE: Nanos = Nanos::from_millis(100);
/// Longest pause, also if a server asks for more.
const LONGEST_PAUSE: Nanos = Nanos::from_secs(5);
/// Interval between checks for a stop request.
const STOP_CHECK: Nanos = Nanos::from_millis(50);
/// Bytes read of an answer that is not a block.
const REST_MAX: u64 = 64 << 10;
