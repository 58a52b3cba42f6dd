//! Bench of the engine: a server with known content, and an account of every op.

use fathom_conformance::{Account, BLOCK, Subject};
use fathom_core::{
    Engine, EngineError, EngineValues, Errno, OptionKind, OptionValue, StopRequest, Tick,
};
use fathom_engine::{AnyEngine, EngineConfig, EngineFile, start};
use fathom_http::HTTP;
use fathom_sys::clock::Clock;

use crate::moto::Moto;
use crate::programs::Apache;
use crate::server::{self, Server};

pub(crate) struct Bench {
    engine: AnyEngine,
    served: Served,
    clock: Clock,
    /// Request that the job stops.
    pub(crate) stop: StopRequest,
    account: Account,
}

/// Server behind a bench.
pub(crate) enum Served {
    Ours(Server),
    Theirs(Apache),
    /// By its address alone.
    Elsewhere(String),
}

impl From<Server> for Served {
    fn from(server: Server) -> Self {
        Self::Ours(server)
    }
}

impl From<&Moto> for Served {
    fn from(moto: &Moto) -> Self {
        Self::Elsewhere(moto.host())
    }
}

impl From<Apache> for Served {
    fn from(apache: Apache) -> Self {
        Self::Theirs(apache)
    }
}

impl Bench {
    pub(crate) fn new(served: impl Into<Served>, depth: u32, options: &str) -> Self {
        let served = served.into();
        let host = match &served {
            Served::Ours(server) => server.host(),
            Served::Theirs(apache) => apache.host(),
            Served::Elsewhere(host) => host.clone(),
        };
        let options = format!("http_host={host} {options}");
        let config = config(&options, depth);
        Self {
            stop: config.stop.clone(),
            engine: start(config).unwrap(),
            served,
            clock: Clock::monotonic(),
            account: Account::new(format!("depth {depth} {options}"), depth),
        }
    }

    pub(crate) fn server(&self) -> &Server {
        match &self.served {
            Served::Ours(server) => server,
            Served::Theirs(_) | Served::Elsewhere(_) => panic!("not our server"),
        }
    }

    /// Returns the description of the latest failure with this errno.
    pub(crate) fn said(&mut self, errno: Errno) -> String {
        self.engine.as_dyn().explain(errno).unwrap_or_default()
    }

    /// Checks that nothing is left.
    #[track_caller]
    pub(crate) fn finish(&mut self) {
        assert_eq!(self.in_flight(), 0);
        assert_eq!(self.reap(4), []);
    }
}

/// Returns the error of an engine that does not start.
pub(crate) fn refused(options: &str) -> EngineError {
    start(config(options, 1)).err().unwrap()
}

/// Returns the configuration of a job; with ranges, of one that only reads.
pub(crate) fn config(options: &str, depth: u32) -> EngineConfig {
    // Buckets of S3 have names of three letters or more.
    let path = match options.contains("in_bucket") {
        true => "/bucket/o",
        false => "/b/o",
    };
    let file = EngineFile {
        path: path.to_owned(),
        read: true,
        write: !options.contains("reads_only"),
        ..EngineFile::default()
    };
    EngineConfig {
        depth,
        buffer_bytes: BLOCK,
        files: vec![file],
        options: values(&options.replace("reads_only", "").replace("in_bucket", "")),
        ..EngineConfig::new(HTTP, Clock::monotonic())
    }
}

impl Subject for Bench {
    fn engine(&mut self) -> &mut dyn Engine {
        self.engine.as_dyn()
    }

    fn account(&self) -> &Account {
        &self.account
    }

    fn account_mut(&mut self) -> &mut Account {
        &mut self.account
    }

    fn stored(&mut self, block: u32) -> Vec<u8> {
        let name = server::name(block);
        match &self.served {
            Served::Ours(server) => server.object(&name).unwrap(),
            Served::Theirs(apache) => apache.object(&name).unwrap(),
            Served::Elsewhere(_) => panic!("its objects are not seen"),
        }
    }

    fn now(&self) -> Tick {
        self.clock.now()
    }
}

/// Reads options as in a job file, separated by blanks.
fn values(text: &str) -> EngineValues {
    let mut values = EngineValues::default();
    for pair in text.split_whitespace() {
        let (name, value) = pair.split_once('=').unwrap();
        let option = HTTP.info.option(name).unwrap();
        let value = match option.kind {
            OptionKind::Text | OptionKind::Choice(_) => OptionValue::Text(value.into()),
            _ => OptionValue::Number(value.parse().unwrap()),
        };
        values.set(option.name, value);
    }
    values
}
