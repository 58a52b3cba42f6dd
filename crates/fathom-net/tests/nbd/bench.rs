//! Bench of the engine: a server with known content, and an account of every op.

use fathom_conformance::{Account, BLOCK, Subject, option_values};
use fathom_core::{Engine, EngineError, FileIndex, Tick};
use fathom_engine::{AnyEngine, EngineConfig, EngineFile, start};
use fathom_net::NBD;
use fathom_sys::clock::Clock;

use crate::programs::Program;
use crate::server::Server;

pub(crate) struct Bench {
    engine: AnyEngine,
    served: Served,
    clock: Clock,
    account: Account,
}

/// Server behind a bench.
pub(crate) enum Served {
    Ours(Server),
    Theirs(Program),
}

impl Served {
    fn uri(&self) -> String {
        match self {
            Self::Ours(server) => server.uri(),
            Self::Theirs(program) => program.uri(),
        }
    }
}

impl From<Server> for Served {
    fn from(server: Server) -> Self {
        Self::Ours(server)
    }
}

impl From<Program> for Served {
    fn from(program: Program) -> Self {
        Self::Theirs(program)
    }
}

impl Bench {
    pub(crate) fn new(served: impl Into<Served>, depth: u32, options: &str) -> Self {
        Self::with(served, depth, options, |_| {})
    }

    /// Returns a bench of a changed configuration.
    pub(crate) fn with(
        served: impl Into<Served>,
        depth: u32,
        options: &str,
        change: impl FnOnce(&mut EngineConfig),
    ) -> Self {
        let served = served.into();
        let clock = Clock::monotonic();
        let mut config = config(&served.uri(), options, clock);
        (config.depth, config.buffer_bytes) = (depth, BLOCK);
        change(&mut config);
        Self {
            engine: start(config).unwrap(),
            account: Account::new(format!("depth {depth} {options} {}", served.uri()), depth),
            served,
            clock,
        }
    }

    pub(crate) fn server(&self) -> &Server {
        match &self.served {
            Served::Ours(server) => server,
            Served::Theirs(_) => panic!("not our server"),
        }
    }

    pub(crate) const fn is_ours(&self) -> bool {
        matches!(self.served, Served::Ours(_))
    }

    pub(crate) fn try_open(&mut self) -> Result<(), EngineError> {
        self.engine.as_dyn().open(FileIndex::new(0))
    }

    /// Checks that nothing is left.
    #[track_caller]
    pub(crate) fn finish(&mut self) {
        assert_eq!(self.in_flight(), 0);
        assert_eq!(self.reap(4), []);
    }
}

/// Returns the configuration of a job on an export.
pub(crate) fn config(uri: &str, options: &str, clock: Clock) -> EngineConfig {
    let file = EngineFile {
        path: uri.to_owned(),
        read: true,
        write: true,
        ..EngineFile::default()
    };
    EngineConfig {
        files: vec![file],
        options: option_values(NBD.info, options),
        ..EngineConfig::new(NBD, clock)
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
        match &self.served {
            Served::Ours(server) => server.block(block),
            Served::Theirs(program) => program.block(block),
        }
    }

    fn now(&self) -> Tick {
        self.clock.now()
    }
}
