//! Options of the engine.

use fathom_core::{
    EngineInfo, EngineOption, EngineValues, Nanos, OptionEffect, OptionWord, Storage, Synchronous,
};
use fathom_engine::options::{CONNECT_TIMEOUT, REPLY_TIMEOUT};
use fathom_nbd::{Command, ReplyForm};

/// Facts about the engine.
pub(crate) static INFO: EngineInfo = EngineInfo {
    synchronous: Synchronous::Never,
    storage: Storage::Remote,
    options: &[
        URI,
        CONNECTIONS,
        REPLIES,
        WRITE_MODE,
        CONNECT_TIMEOUT,
        REPLY_TIMEOUT,
        BUSY_POLL,
    ],
    shares_buffers: true,
    different: "has a client of its own instead of libnbd; TLS is refused",
    ..EngineInfo::new("nbd", "exports of NBD servers")
};

const URI: EngineOption = EngineOption::text(
    "uri",
    "Export to use, nbd://HOST[:PORT]/NAME or nbd+unix:///NAME?socket=PATH; the job's only file",
    "uri=nbd://localhost:10809/",
)
.effect(OptionEffect::FileName)
.different("nbds:// and passwords are refused");

const CONNECTIONS: EngineOption = EngineOption::int(
    "connections",
    1,
    128,
    "Connections to the export, over which ops are spread",
    "connections=4",
)
.default("1")
.different("not in fio");

const REPLIES: EngineOption = EngineOption::choice(
    "replies",
    &[
        OptionWord {
            word: "structured",
            help: "with the place and text of errors, and holes; simple where the server has none",
        },
        OptionWord {
            word: "simple",
            help: "with an error number alone, as the kernel's client",
        },
    ],
    "Form of the server's replies",
    "replies=simple",
)
.default("structured")
.different("not in fio");

const WRITE_MODE: EngineOption = EngineOption::choice(
    "write_mode",
    &[
        OptionWord {
            word: "write",
            help: "data",
        },
        OptionWord {
            word: "zeroes",
            help: "zeroes, which are not transferred",
        },
    ],
    "Request of the job's writes",
    "write_mode=zeroes",
)
.default("write")
.different("not in fio with nbd");

const BUSY_POLL: EngineOption = EngineOption {
    help: "Poll the sockets for completions instead of sleeping",
    effect: Some(OptionEffect::PolledCompletions),
    ..EngineOption::flag("hipri", "")
};

/// The engine's options, resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) connections: u32,
    pub(crate) replies: ReplyForm,
    /// Request of writes.
    pub(crate) write: Command,
    pub(crate) connect_timeout: Nanos,
    pub(crate) reply_timeout: Nanos,
    pub(crate) busy_poll: bool,
}

impl Options {
    /// Resolves the values of a job.
    pub(crate) fn resolve(values: &EngineValues) -> Self {
        let number = |option: &EngineOption| {
            let fallback = || option.default.parse().ok();
            values.number(option).or_else(fallback).unwrap_or(1)
        };
        Self {
            connections: u32::try_from(number(&CONNECTIONS)).unwrap_or(1).max(1),
            replies: match values.text(&REPLIES) {
                Some("simple") => ReplyForm::Simple,
                _ => ReplyForm::Structured,
            },
            write: match values.text(&WRITE_MODE) {
                Some("zeroes") => Command::WriteZeroes,
                _ => Command::Write,
            },
            connect_timeout: Nanos::from_secs(number(&CONNECT_TIMEOUT)),
            reply_timeout: Nanos::from_secs(number(&REPLY_TIMEOUT)),
            busy_poll: values.flag(&BUSY_POLL),
        }
    }
}

#[cfg(test)]
mod tests {
    use fathom_core::OptionKind;

    use super::*;

    #[test]
    fn defaults_are_those_of_the_table() {
        let options = Options::resolve(&EngineValues::default());
        let want = Options {
            connections: 1,
            replies: ReplyForm::Structured,
            write: Command::Write,
            connect_timeout: Nanos::from_secs(10),
            reply_timeout: Nanos::from_secs(30),
            busy_poll: false,
        };
        assert_eq!(options, want);
    }

    #[test]
    fn kinds_of_options_fit_their_defaults() {
        for option in INFO.options {
            match option.kind {
                OptionKind::Int { min, max } => {
                    let default: u64 = option.default.parse().expect(option.name);
                    assert!((min..=max).contains(&default), "{}", option.name);
                }
                OptionKind::Choice(words) => {
                    assert!(words.iter().any(|word| word.word == option.default));
                }
                _ => {}
            }
        }
    }
}
