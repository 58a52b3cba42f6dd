//! Test bench of an engine that needs a server: the file behind its blocks, an account of every op,
//! and what holds for any such engine beside the conformance suite.

use std::fs;

use fathom_conformance::{Account, BLOCK, Subject};
use fathom_core::{Engine, EngineError, Errno, FileIndex, SyncKind, Tick};
use fathom_engine::{AnyEngine, EngineConfig, start};
use fathom_sys::clock::Clock;

/// Running server.
pub(crate) trait Server {
    /// Ends the server without a chance to answer.
    fn kill(&mut self);

    /// Stops the server: its connections stay, and it answers no more.
    fn stop(&self);
}

/// Engine, the server that it connects to, and the ops in flight.
pub(crate) struct ServerBench<S> {
    engine: AnyEngine,
    pub(crate) server: S,
    clock: Clock,
    /// File behind the blocks.
    path: &'static str,
    account: Account,
}

impl<S: Server> ServerBench<S> {
    /// Starts an engine with ops of one block, after another `change` to the configuration. The
    /// file is not open.
    pub(crate) fn start(
        (server, path): (S, &'static str),
        (depth, title): (u32, &str),
        mut config: EngineConfig,
        change: impl FnOnce(&mut EngineConfig),
    ) -> Self {
        let clock = config.clock;
        (config.depth, config.buffer_bytes) = (depth, BLOCK);
        change(&mut config);
        Self {
            engine: start(config).unwrap(),
            server,
            clock,
            path,
            account: Account::new(format!("depth {depth} {title}"), depth),
        }
    }

    pub(crate) fn try_open(&mut self) -> Result<(), EngineError> {
        self.engine.as_dyn().open(FileIndex::new(0))
    }

    /// Checks that nothing is left.
    #[track_caller]
    pub(crate) fn finish(&mut self) {
        assert_eq!(self.in_flight(), 0, "{}", self.title());
        assert_eq!(self.reap(4), [], "{}", self.title());
    }

    /// Drops the engine with ops in flight, prepared ones among them.
    pub(crate) fn drop_in_flight(mut self) {
        self.open();
        let last = self.depth() - 1;
        for slot in 0..last {
            self.prepare(self.read(slot, slot));
        }
        self.submit(0);
        self.reap(1);
        self.prepare(self.write(last, 1));
    }

    /// Closes and opens the file: what was written is stored then, and ops on a closed file fail.
    #[track_caller]
    pub(crate) fn check_reopening(&mut self) {
        for number in 0..3 {
            self.open();
            self.fill(0, number);
            self.run_one(self.write(0, 5));
            self.engine().close(FileIndex::new(0)).unwrap();
            self.check_stored(5, number);
            assert_eq!(self.run(self.read(0, 0)).result, Errno::EBADF.result());
        }
    }

    /// Checks that all ops fail after a fault that ends the connection, those in flight and later
    /// ones. Returns the reason that the engine gives.
    #[track_caller]
    pub(crate) fn check_lost(&mut self, fault: impl FnOnce(&mut Self), errno: Errno) -> String {
        self.open();
        self.run_one(self.write(0, 1));
        fault(self);
        for slot in 0..self.depth() {
            self.prepare(self.read(slot, slot));
        }
        self.submit(0);
        let done = self.collect();
        let results: Vec<i32> = done.iter().map(|done| done.result).collect();
        assert_eq!(results, vec![errno.result(); self.depth() as usize]);
        let sync = self.run(self.sync(0, SyncKind::Full));
        assert_eq!(sync.result, errno.result());
        let text = self.engine().explain(errno).unwrap_or_default();
        assert_eq!(self.engine().explain(Errno::EPERM), None);
        self.engine().close(FileIndex::new(0)).unwrap();
        let error = self.try_open().unwrap_err();
        assert_eq!(error.errno, Some(errno), "{error}");
        self.finish();
        text
    }

    /// Kills the server when the requests of all slots have left, and checks that they fail.
    #[track_caller]
    pub(crate) fn kill_in_flight(&mut self) {
        self.server.stop();
        for slot in 0..self.depth() {
            self.prepare(self.write(slot, slot));
        }
        self.submit(0);
        self.server.kill();
        for done in self.collect() {
            let known = Errno::try_from(-done.result).ok();
            let text = known.and_then(|errno| self.engine().explain(errno));
            assert_eq!(done.result, Errno::ECONNRESET.result(), "{text:?}");
        }
    }
}

impl<S> Subject for ServerBench<S> {
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
        let all = fs::read(self.path).unwrap();
        let start = (block * BLOCK) as usize;
        all[start..start + BLOCK as usize].to_vec()
    }

    fn now(&self) -> Tick {
        self.clock.now()
    }
}

/// Checks that an engine refuses its configuration or its file, and the words of error and hint.
#[track_caller]
pub(crate) fn check_refused(config: EngineConfig, errno: Option<Errno>, want: [&str; 2]) {
    let error = match start(config) {
        Ok(mut engine) => engine.as_dyn().open(FileIndex::new(0)).unwrap_err(),
        Err(error) => error,
    };
    assert!(error.to_string().contains(want[0]), "{error}");
    assert!(error.hint.contains(want[1]), "{error}: {}", error.hint);
    assert_eq!(error.errno, errno, "{error}");
}
