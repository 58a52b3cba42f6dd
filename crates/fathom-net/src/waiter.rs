//! Waiting for the answers to ops that go over sockets.

use fathom_core::{Completion, EngineError, EngineStep, Errno, Submitted, Tick};
use fathom_sys::clock::Clock;
use fathom_sys::epoll::{Epoll, Events, Readiness};

/// Connections of a job, as the wait for their answers sees them.
pub(crate) trait Connections {
    /// Sends what is queued.
    fn flush(&mut self);

    /// Handles what has arrived; looks at each socket if `is_forced`, else at those that changed.
    fn look(&mut self, epoll: &Epoll, is_forced: bool);

    /// Gives up connections that left an op unanswered for too long; returns when to look again.
    fn check_answers(&mut self, epoll: &Epoll, now: Tick) -> Option<Tick>;

    /// Notes a change of a socket.
    fn changed(&mut self, change: Readiness);

    /// Returns how many ops can be reaped.
    fn ready(&self) -> usize;

    /// Reaps ops; returns how many.
    fn reap(&mut self, out: &mut [Completion]) -> usize;
}

/// The wait of a job's thread for its connections: asleep in `epoll`, or polling.
#[derive(Debug)]
pub(crate) struct Waiter {
    /// Name of the engine, for errors.
    engine: &'static str,
    clock: Clock,
    busy_poll: bool,
    /// The thread has slept since the sockets were last looked at without need.
    has_slept: bool,
    /// The last `reap` looked at the sockets.
    has_looked: bool,
    epoll: Epoll,
    events: Events,
}

impl Waiter {
    pub(crate) fn new(
        engine: &'static str,
        clock: Clock,
        busy_poll: bool,
    ) -> Result<Self, EngineError> {
        let epoll = Epoll::new().map_err(failed(engine, EngineStep::Call("epoll_create")))?;
        Ok(Self {
            engine,
            clock,
            busy_poll,
            has_slept: false,
            has_looked: false,
            epoll,
            events: Events::new(EVENTS),
        })
    }

    /// Returns the set in which the thread waits.
    pub(crate) const fn epoll(&self) -> &Epoll {
        &self.epoll
    }

    /// Waits until `min` ops can be reaped, or until a time.
    pub(crate) fn wait(
        &mut self,
        connections: &mut impl Connections,
        min: u32,
        until: Option<Tick>,
    ) -> Result<(), EngineError> {
        connections.flush();
        connections.look(&self.epoll, self.busy_poll);
        while connections.ready() < min as usize {
            let now = self.clock.now();
            let check = connections.check_answers(&self.epoll, now);
            if connections.ready() >= min as usize {
                break;
            }
            if self.busy_poll {
                connections.look(&self.epoll, true);
            } else {
                self.sleep(connections, now, [until, check].into_iter().flatten().min())?;
            }
            if until.is_some_and(|until| until <= now) {
                break;
            }
        }
        Ok(())
    }

    /// Sends what is queued, and waits until `want` ops can be reaped.
    ///
    /// Holds the ops back while completions wait to be reaped: each is replaced by an op, and all
    /// of them leave in one call. A worker that submits one op at a time, which is fio's default,
    /// would make a call for each.
    pub(crate) fn submit(&mut self, connections: &mut impl Connections, want: u32) -> Submitted {
        if connections.ready() == 0 {
            connections.flush();
        }
        let now = self.clock.now();
        if connections.ready() < want as usize {
            // An error shows again in the `wait` that follows.
            let _shows_again = self.wait(connections, want, None);
        }
        Submitted::Issued { issue: now, now }
    }

    /// Reaps what there is, without waiting.
    pub(crate) fn reap(
        &mut self,
        connections: &mut impl Connections,
        out: &mut [Completion],
    ) -> usize {
        if connections.ready() == 0 {
            // A worker that sleeps when it finds nothing would look at each socket twice per turn,
            // once in vain. One that polls comes again at once.
            let is_forced = self.busy_poll || !std::mem::take(&mut self.has_slept);
            connections.look(&self.epoll, is_forced);
            self.has_looked = true;
        }
        connections.reap(out)
    }

    /// Returns the time at which the ops of the last `reap` had arrived, if it looked for them.
    pub(crate) fn reaped_at(&mut self) -> Option<Tick> {
        std::mem::take(&mut self.has_looked).then(|| self.clock.now())
    }

    /// Sleeps until a socket has something to tell, and handles it.
    fn sleep(
        &mut self,
        connections: &mut impl Connections,
        now: Tick,
        until: Option<Tick>,
    ) -> Result<(), EngineError> {
        let waited = self
            .epoll
            .wait(&mut self.events, until.map(|until| until - now));
        waited.map_err(failed(self.engine, EngineStep::Call("epoll_wait")))?;
        self.has_slept = true;
        for change in self.events.iter() {
            connections.changed(change);
        }
        connections.look(&self.epoll, false);
        Ok(())
    }
}

/// Returns what makes the failure of a step of the engine's an error.
pub(crate) fn failed(
    engine: &'static str,
    step: EngineStep,
) -> impl FnOnce(std::io::Error) -> EngineError {
    move |error| EngineError {
        step,
        target: format!("engine `{engine}`"),
        errno: Errno::of(&error),
        hint: String::new(),
    }
}

/// Events taken per wait.
const EVENTS: u16 = 64;
