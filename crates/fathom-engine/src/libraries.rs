//! Engines that use a library's client: the loop around it, their limits on time, and errors.

use fathom_core::{EngineError, EngineOption, EngineStep, EngineValues, Errno, Nanos, Tick};
use fathom_sys::clock::Clock;
use fathom_sys::library::LibraryError;

use crate::options::{CONNECT_TIMEOUT, REPLY_TIMEOUT};

/// Client of a library, to be served by the job's thread.
pub(crate) trait Client {
    /// Returns the number of ops to be reaped.
    fn ready(&self) -> usize;

    /// Returns the number of ops that have a request.
    fn in_flight(&self) -> u32;

    /// Sends and receives, waiting for at most so long; returns whether anything has happened.
    fn serve(&mut self, timeout: Option<Nanos>) -> bool;

    /// Gives the connection up.
    fn abandon(&mut self, errno: Errno, text: String);
}

/// The waits of an engine.
#[derive(Debug)]
pub(crate) struct Waits {
    pub(crate) clock: Clock,
    pub(crate) limits: Limits,
    /// Begin of the wait in which nothing has come yet.
    quiet_since: Option<Tick>,
}

/// Limits on time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Of a call that opens or closes something.
    pub(crate) connect: Nanos,
    /// Of the silence of a server that owes an answer.
    pub(crate) reply: Nanos,
}

impl Waits {
    pub(crate) const fn new(clock: Clock, limits: Limits) -> Self {
        Self {
            clock,
            limits,
            quiet_since: None,
        }
    }

    /// Waits until `min` ops can be reaped.
    pub(crate) fn wait_for(&mut self, client: &mut impl Client, min: u32, until: Option<Tick>) {
        while client.ready() < min as usize && client.in_flight() > 0 {
            let now = self.clock.now();
            let quiet = *self.quiet_since.get_or_insert(now) + self.limits.reply;
            let wake = until.map_or(quiet, |until| until.min(quiet));
            let happened = client.serve(Some(match wake > now {
                true => wake - now,
                false => Nanos::ZERO,
            }));
            if happened {
                self.quiet_since = None;
            } else if quiet <= now {
                let text = LibraryError::Silent(self.limits.reply).to_string();
                client.abandon(Errno::ETIMEDOUT, text);
            }
            if until.is_some_and(|until| until <= now) {
                break;
            }
        }
    }

    /// Looks for completions without waiting.
    pub(crate) fn look(&mut self, client: &mut impl Client) {
        if client.in_flight() > 0 && client.serve(Some(Nanos::ZERO)) {
            self.quiet_since = None;
        }
    }
}

impl Limits {
    /// Resolves the values of a job.
    pub(crate) fn resolve(values: &EngineValues) -> Self {
        let number = |option: &EngineOption| {
            let fallback = || option.default.parse().ok();
            values.number(option).or_else(fallback).unwrap_or(1)
        };
        Self {
            connect: Nanos::from_secs(number(&CONNECT_TIMEOUT)),
            reply: Nanos::from_secs(number(&REPLY_TIMEOUT)),
        }
    }
}

/// Returns the error of an engine whose library fails; `hint` is for failures of the server.
pub(crate) fn engine_error(
    step: EngineStep,
    target: &str,
    error: &LibraryError,
    hint: &str,
) -> EngineError {
    let errno = match error {
        LibraryError::Call { errno, .. } => *errno,
        LibraryError::Silent(_) => Some(Errno::ETIMEDOUT),
        LibraryError::NoMemory => Some(Errno::ENOMEM),
        _ => None,
    };
    EngineError {
        step,
        target: format!("{target}: {error}"),
        errno,
        hint: match error {
            LibraryError::Missing { package, .. } => format!("install the package {package}"),
            LibraryError::Static { .. } => "use a build with shared libraries".into(),
            LibraryError::Lacks { .. } => "install the library of Debian 12".into(),
            _ => hint.into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Client whose server answers after some looks, or never.
    struct Model {
        looks: u32,
        ready: usize,
        in_flight: u32,
        lost: Option<Errno>,
    }

    impl Client for Model {
        fn ready(&self) -> usize {
            self.ready
        }

        fn in_flight(&self) -> u32 {
            self.in_flight
        }

        fn serve(&mut self, _timeout: Option<Nanos>) -> bool {
            self.looks = self.looks.saturating_sub(1);
            if self.looks == 0 {
                self.ready += 1;
                self.in_flight -= 1;
            }
            self.looks == 0
        }

        fn abandon(&mut self, errno: Errno, _text: String) {
            self.lost = Some(errno);
            (self.ready, self.in_flight) = (self.in_flight as usize, 0);
        }
    }

    fn waited(looks: u32, reply: Nanos, until: Option<Tick>) -> Model {
        let limits = Limits {
            connect: reply,
            reply,
        };
        let mut client = Model {
            looks,
            ready: 0,
            in_flight: 1,
            lost: None,
        };
        Waits::new(Clock::monotonic(), limits).wait_for(&mut client, 1, until);
        client
    }

    #[test]
    fn waits_end_with_an_answer_or_in_time() {
        let hour = Nanos::from_secs(3600);
        assert_eq!(waited(3, hour, None).ready, 1);
        assert_eq!(waited(u32::MAX, hour, Some(Tick::ZERO)).ready, 0);
        let silent = waited(u32::MAX, Nanos::ZERO, None);
        assert_eq!(silent.lost, Some(Errno::ETIMEDOUT));
    }

    #[test]
    fn defaults_are_those_of_the_table() {
        let want = Limits {
            connect: Nanos::from_secs(10),
            reply: Nanos::from_secs(30),
        };
        assert_eq!(Limits::resolve(&EngineValues::default()), want);
    }
}
