//! Options of the engine.

use std::fs;

use fathom_core::{
    EngineInfo, EngineOption, EngineValues, Nanos, OptionEffect, Storage, Synchronous,
};
use fathom_nvme::Digests;

use crate::initiator::address::{AddressError, nqn};

/// Facts about the engine.
pub(crate) static INFO: EngineInfo = EngineInfo {
    synchronous: Synchronous::Never,
    storage: Storage::Remote,
    options: &[
        HOSTNQN,
        HOSTID,
        HDGST,
        DDGST,
        QUEUES,
        KEEP_ALIVE,
        RECONNECT,
        CONNECT_TIMEOUT,
        IO_TIMEOUT,
        BUSY_POLL,
    ],
    shares_buffers: true,
    ..EngineInfo::new("nvme_tcp", "namespaces of NVMe/TCP targets")
};

const HOSTNQN: EngineOption = EngineOption::text(
    "hostnqn",
    "NQN of this host; the target may admit some hosts only",
    "hostnqn=nqn.2014-08.org.nvmexpress:uuid:00000000-0000-0000-0000-000000000001",
);

const HOSTID: EngineOption = EngineOption::text(
    "hostid",
    "Identifier of this host, a UUID",
    "hostid=00000000-0000-0000-0000-000000000001",
);

const HDGST: EngineOption =
    EngineOption::flag("hdgst", "Protect the headers of PDUs by CRC-32C digests");

const DDGST: EngineOption =
    EngineOption::flag("ddgst", "Protect the data of PDUs by CRC-32C digests");

const QUEUES: EngineOption = EngineOption::int(
    "queues",
    1,
    128,
    "I/O queues, each a connection, that the job has to each subsystem",
    "queues=2",
)
.default("1");

const KEEP_ALIVE: EngineOption = EngineOption::int(
    "keep_alive",
    0,
    3600,
    "Keep-alive time-out in seconds, after which host and target consider the other lost; 0: none",
    "keep_alive=5",
)
.default("5");

const RECONNECT: EngineOption = EngineOption::int(
    "reconnect",
    0,
    86_400,
    "Seconds of attempts to connect again after a connection is lost; ops wait, then fail",
    "reconnect=60",
)
.default("30");

const CONNECT_TIMEOUT: EngineOption = EngineOption::int(
    "connect_timeout",
    1,
    3600,
    "Seconds that a connection, or a command that sets one up, may take",
    "connect_timeout=10",
)
.default("10");

const IO_TIMEOUT: EngineOption = EngineOption::int(
    "io_timeout",
    0,
    86_400,
    "Seconds that an op may be unanswered before its connection is closed; 0: no limit",
    "io_timeout=30",
)
.default("30");

const BUSY_POLL: EngineOption = EngineOption {
    help: "Poll the sockets for completions instead of sleeping",
    effect: Some(OptionEffect::PolledCompletions),
    ..EngineOption::flag("hipri", "")
};

/// The engine's options, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) host_nqn: String,
    pub(crate) host_id: [u8; 16],
    pub(crate) digests: Digests,
    pub(crate) queues: u16,
    pub(crate) keep_alive: Option<Nanos>,
    pub(crate) reconnect: Nanos,
    pub(crate) connect_timeout: Nanos,
    /// `None`: no limit.
    pub(crate) io_timeout: Option<Nanos>,
    pub(crate) busy_poll: bool,
}

impl Options {
    /// Resolves the values of a job; the error is a faulty option.
    pub(crate) fn resolve(values: &EngineValues) -> Result<Self, AddressError> {
        let number = |option: &EngineOption| {
            let fallback = || option.default.parse().ok();
            values.number(option).or_else(fallback).unwrap_or(0)
        };
        let seconds = |option| Nanos::from_secs(number(option));
        let host_id = match values.text(&HOSTID) {
            Some(text) => uuid(text).ok_or_else(|| AddressError {
                why: format!("hostid={text}: not a UUID"),
                hint: "write hostid=xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx",
            })?,
            None => own_host_id(),
        };
        let host_nqn = match values.text(&HOSTNQN) {
            Some(text) => nqn(HOSTNQN.name, text)?,
            None => own_host_nqn(&host_id),
        };
        let limit = |option| Some(seconds(option)).filter(|limit| !limit.is_zero());
        Ok(Self {
            host_nqn,
            host_id,
            digests: Digests {
                header: values.flag(&HDGST),
                data: values.flag(&DDGST),
            },
            queues: u16::try_from(number(&QUEUES)).unwrap_or(1).max(1),
            keep_alive: limit(&KEEP_ALIVE),
            reconnect: seconds(&RECONNECT),
            connect_timeout: seconds(&CONNECT_TIMEOUT),
            io_timeout: limit(&IO_TIMEOUT),
            busy_poll: values.flag(&BUSY_POLL),
        })
    }
}

/// Returns the identifier that nvme-cli uses, or else one that follows from this machine's.
fn own_host_id() -> [u8; 16] {
    let files = ["/etc/nvme/hostid", "/etc/machine-id"];
    let found = files
        .iter()
        .find_map(|path| uuid(fs::read_to_string(path).ok()?.trim()));
    found.unwrap_or(*b"fathom-initiator")
}

/// Returns the NQN that nvme-cli uses, or else one of the host's identifier.
fn own_host_nqn(host_id: &[u8; 16]) -> String {
    let known = fs::read_to_string("/etc/nvme/hostnqn").unwrap_or_default();
    match known.trim() {
        "" => format!("nqn.2014-08.org.nvmexpress:uuid:{}", hyphenated(host_id)),
        known => known.to_owned(),
    }
}

/// Reads a UUID, with or without its hyphens.
fn uuid(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.chars().filter(|&letter| letter != '-').collect();
    let is_hex = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = is_hex.then(|| u128::from_str_radix(&digits, 16).ok())?;
    number.map(u128::to_be_bytes)
}

fn hyphenated(id: &[u8; 16]) -> String {
    let digits = format!("{:032x}", u128::from_be_bytes(*id));
    let parts = [
        &digits[..8],
        &digits[8..12],
        &digits[12..16],
        &digits[16..20],
        &digits[20..],
    ];
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use fathom_core::{OptionKind, OptionValue};

    use super::*;

    #[test]
    fn defaults_are_those_of_the_table() {
        let options = Options::resolve(&EngineValues::default()).expect("options");
        assert_eq!(options.keep_alive, Some(Nanos::from_secs(5)));
        assert_eq!(options.io_timeout, Some(Nanos::from_secs(30)));
        assert_eq!((options.queues, options.digests), (1, Digests::default()));
        assert!(options.host_nqn.starts_with("nqn."));
        let off = EngineValues::default().with(&KEEP_ALIVE, 0);
        assert_eq!(Options::resolve(&off).expect("options").keep_alive, None);
    }

    #[test]
    fn an_nqn_that_is_too_long_is_refused() {
        let with = |length| {
            let mut values = EngineValues::default();
            values.set(HOSTNQN.name, OptionValue::Text("n".repeat(length)));
            Options::resolve(&values).map(|options| options.host_nqn.len())
        };
        assert_eq!(with(223), Ok(223));
        let fault = with(224).expect_err("too long");
        assert_eq!(fault.why, "hostnqn: an NQN of 224 bytes");
        assert_eq!(fault.hint, "an NQN has 1 to 223 bytes");
    }

    #[test]
    fn identifiers_of_hosts_are_uuids() {
        let id = uuid("00112233-4455-6677-8899-aabbccddeeff").expect("a UUID");
        assert_eq!(id[..3], [0, 0x11, 0x22]);
        assert_eq!(hyphenated(&id), "00112233-4455-6677-8899-aabbccddeeff");
        assert_eq!(uuid("00112233445566778899aabbccddeeff"), Some(id));
        assert_eq!(uuid("0011"), None);
        assert_eq!(uuid("g0112233445566778899aabbccddeeff"), None);
    }

    #[test]
    fn kinds_of_options_fit_their_defaults() {
        for option in INFO.options {
            if let OptionKind::Int { min, max } = option.kind {
                let default: u64 = option.default.parse().expect(option.name);
                assert!((min..=max).contains(&default), "{}", option.name);
            }
        }
    }
}
