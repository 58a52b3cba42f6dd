//! Options of `net` and `netsplice`, and the address that they amount to.

use std::fmt;
use std::net::Ipv4Addr;

use fathom_core::{EngineError, EngineOption, EngineStep, OptionWord};

use crate::EngineConfig;
use crate::options::U32;

/// Options of both engines.
pub(crate) const ALL: &[EngineOption] = &[
    HOSTNAME,
    PORT,
    PROTOCOL,
    PROTO,
    NODELAY,
    LISTEN,
    PINGPONG,
    INTERFACE,
    TTL,
    WINDOW_SIZE,
    MSS,
];

const HOSTNAME: EngineOption = EngineOption::text(
    "hostname",
    "Host to connect to, address to listen on, multicast group, or path of a Unix socket",
    "hostname=localhost",
)
.different(
    "a listener takes an address, too, and listens on the loopback address without one; in fio it \
     always listens on all",
);

const PORT: EngineOption = EngineOption::int(
    "port",
    1,
    65_535,
    "Port of TCP or UDP; each clone of a job takes the next",
    "port=8888",
);

const PROTOCOL: EngineOption = EngineOption::choice(
    "protocol",
    WORDS,
    "Protocol of the connection",
    "protocol=udp",
)
.different("no `vsock`")
.default("tcp");

/// Second name of [`PROTOCOL`].
const PROTO: EngineOption =
    EngineOption::choice("proto", WORDS, "Second name of `protocol`", "proto=udp")
        .different("as `protocol`");

const WORDS: &[OptionWord] = &[
    word("tcp", "TCP over IPv4"),
    word("tcpv6", "TCP over IPv6"),
    word("udp", "UDP over IPv4"),
    word("udpv6", "UDP over IPv6"),
    word("unix", "a stream over a Unix socket"),
];

const fn word(word: &'static str, help: &'static str) -> OptionWord {
    OptionWord { word, help }
}

const NODELAY: EngineOption = EngineOption::boolean(
    "nodelay",
    "Send small segments at once (TCP_NODELAY)",
    "nodelay=1",
);

const LISTEN: EngineOption = EngineOption::flag(
    "listen",
    "Wait for a TCP connection instead of making one; UDP and Unix readers always wait",
);

const PINGPONG: EngineOption = EngineOption::flag(
    "pingpong",
    "Send each block back, so that an op is a round trip",
);

const INTERFACE: EngineOption = EngineOption::text(
    "interface",
    "Address of the network interface to listen on, or for multicast",
    "interface=127.0.0.1",
);

const TTL: EngineOption = EngineOption::int(
    "ttl",
    0,
    255,
    "Hops that multicast datagrams may take",
    "ttl=4",
)
.default("1");

const WINDOW_SIZE: EngineOption = EngineOption::int(
    "window_size",
    0,
    U32,
    "Bytes of the socket's buffers, which bound the TCP window; 0: as the kernel adapts them",
    "window_size=65536",
);

const MSS: EngineOption = EngineOption::int(
    "mss",
    0,
    U32,
    "Bytes of the largest TCP segment (TCP_MAXSEG); 0: as the path allows",
    "mss=1400",
);

/// Protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Tcp,
    Udp,
    Unix,
}

/// Options of a job, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) protocol: Protocol,
    /// IPv6 instead of IPv4.
    pub(super) is_v6: bool,
    /// Host, group or address; the path of a Unix socket.
    pub(super) host: Option<String>,
    pub(super) port: u16,
    /// Waits for its peer, instead of connecting to it.
    pub(super) listens: bool,
    pub(super) pingpong: bool,
    pub(super) nodelay: bool,
    pub(super) interface: Option<Ipv4Addr>,
    pub(super) ttl: u32,
    pub(super) window: Option<u32>,
    pub(super) segment: Option<u32>,
}

impl Options {
    /// Resolves and checks the options of a job.
    pub(super) fn resolve(config: &EngineConfig, spliced: bool) -> Result<Self, EngineError> {
        let values = &config.options;
        let word = values.text(&PROTOCOL).or_else(|| values.text(&PROTO));
        let (protocol, is_v6) = match word.unwrap_or("tcp") {
            "tcpv6" => (Protocol::Tcp, true),
            "udp" => (Protocol::Udp, false),
            "udpv6" => (Protocol::Udp, true),
            "unix" => (Protocol::Unix, false),
            _ => (Protocol::Tcp, false),
        };
        let size = |option| {
            let number = values.number(option).filter(|&number| number > 0)?;
            u32::try_from(number).ok()
        };
        let mut options = Self {
            protocol,
            is_v6,
            host: values.text(&HOSTNAME).map(str::to_owned),
            port: 0,
            listens: match protocol {
                Protocol::Tcp => values.flag(&LISTEN),
                Protocol::Udp | Protocol::Unix => {
                    !config.files.first().is_some_and(|file| file.write)
                }
            },
            pingpong: values.flag(&PINGPONG),
            nodelay: values.flag(&NODELAY),
            interface: interface(values.text(&INTERFACE))?,
            ttl: values
                .number(&TTL)
                .and_then(|ttl| ttl.try_into().ok())
                .unwrap_or(1),
            window: size(&WINDOW_SIZE),
            segment: size(&MSS),
        };
        if spliced && options.is_datagram() {
            let why = "data are spliced over a stream only";
            return Err(wrong(
                PROTOCOL.name,
                why,
                "use protocol=tcp, or ioengine=net",
            ));
        }
        options.set_address(config)?;
        options.check(config)?;
        Ok(options)
    }

    /// Returns whether each transfer is a datagram.
    pub(super) const fn is_datagram(&self) -> bool {
        matches!(self.protocol, Protocol::Udp)
    }

    /// Sets the port of this clone, or the path.
    fn set_address(&mut self, config: &EngineConfig) -> Result<(), EngineError> {
        let port = config.options.number(&PORT);
        if self.protocol == Protocol::Unix {
            if port.is_some() {
                let why = "a Unix socket has no port";
                return Err(wrong(PORT.name, why, "leave out `port`"));
            }
            let path = config.files.first().map(|file| file.path.clone());
            self.host = self.host.take().or(path);
            return Ok(());
        }
        let Some(first) = port else {
            let why = "TCP and UDP need a port";
            return Err(wrong(PORT.name, why, "add `port=8888`"));
        };
        let port = first + u64::from(config.job.clone);
        self.port = u16::try_from(port).map_err(|_| {
            let why = format!("port {port} of clone {} does not exist", config.job.clone);
            wrong(PORT.name, &why, "choose a lower port, or reduce `numjobs`")
        })?;
        if self.host.is_none() && !self.listens {
            let hint = "add `hostname=localhost`, or `listen` to wait for the peer";
            return Err(wrong(HOSTNAME.name, "there is no host to connect to", hint));
        }
        Ok(())
    }

    fn check(&self, config: &EngineConfig) -> Result<(), EngineError> {
        if config.files.iter().any(|file| file.random) {
            let why = "data of a network have an order";
            return Err(wrong("rw", why, "use rw=read, rw=write or rw=rw"));
        }
        let both = config.files.iter().any(|file| file.read && file.write);
        if both && (self.protocol != Protocol::Tcp || self.pingpong) {
            let why = "a job that reads and writes needs TCP, without `pingpong`";
            return Err(wrong("rw", why, "use rw=read or rw=write"));
        }
        if self.protocol == Protocol::Udp && config.buffer_bytes > DATAGRAM_MAX {
            let why = format!("{} bytes do not fit into a datagram", config.buffer_bytes);
            return Err(wrong("bs", &why, "use bs=65507 or less"));
        }
        Ok(())
    }
}

/// The peer of a job, for messages.
impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.host, self.protocol) {
            (Some(path), Protocol::Unix) => f.write_str(path),
            (Some(host), _) if host.contains(':') => write!(f, "[{host}]:{}", self.port),
            (Some(host), _) => write!(f, "{host}:{}", self.port),
            (None, _) => write!(f, "port {}", self.port),
        }
    }
}

fn interface(text: Option<&str>) -> Result<Option<Ipv4Addr>, EngineError> {
    let parse = |text: &str| {
        let why = format!("{text} is not an IPv4 address");
        text.parse()
            .map_err(|_| wrong(INTERFACE.name, &why, "give the address of an interface"))
    };
    text.map(parse).transpose()
}

fn wrong(option: &'static str, why: &str, hint: &str) -> EngineError {
    EngineError {
        step: EngineStep::Option(option),
        target: why.into(),
        errno: None,
        hint: hint.into(),
    }
}

/// Payload of the largest UDP datagram over IPv4: 65,535 less the headers, 20 and 8.
const DATAGRAM_MAX: u32 = 65_507;

#[cfg(test)]
mod tests {
    use fathom_core::{EngineValues, OptionValue};
    use fathom_sys::clock::Clock;

    use super::*;
    use crate::{EngineFile, JobFacts, built_in};

    /// Resolves words such as `port=1`, of a job that writes.
    fn resolve(words: &str, write: bool, clone: u32) -> Result<Options, String> {
        let mut options = EngineValues::default();
        for word in words.split_whitespace() {
            let (name, value) = word.split_once('=').unwrap_or((word, "1"));
            let option = ALL.iter().find(|option| option.name == name).unwrap();
            let text = || OptionValue::Text(value.to_owned());
            options.set(
                option.name,
                value.parse().map_or_else(|_| text(), OptionValue::Number),
            );
        }
        let config = EngineConfig {
            options,
            files: vec![EngineFile {
                path: "t.0.0".into(),
                read: !write,
                write,
                ..EngineFile::default()
            }],
            job: JobFacts {
                clone,
                ..JobFacts::default()
            },
            ..EngineConfig::new(built_in("net"), Clock::monotonic())
        };
        Options::resolve(&config, false).map_err(|error| error.to_string())
    }

    #[test]
    fn roles_follow_protocol_and_direction() {
        let listens = |words, write| resolve(words, write, 0).unwrap().listens;
        assert!(listens("port=1 listen", true) && listens("port=1 listen", false));
        assert!(!listens("port=1 hostname=h", false));
        assert!(listens("port=1 proto=udp", false));
        assert!(!listens("port=1 protocol=udp hostname=h", true));
        assert!(listens("protocol=unix", false) && !listens("protocol=unix", true));
    }

    #[test]
    fn addresses_are_checked_before_anything_starts() {
        let text = |words, clone| match resolve(words, true, clone) {
            Ok(options) => options.to_string(),
            Err(why) => why,
        };
        assert_eq!(text("hostname=h port=8888", 3), "h:8891");
        assert_eq!(text("hostname=::1 protocol=tcpv6 port=1", 0), "[::1]:1");
        assert_eq!(text("protocol=unix", 0), "t.0.0");
        assert_eq!(text("protocol=unix hostname=/x", 0), "/x");
        assert_eq!(text("listen port=1", 0), "port 1");
        assert_eq!(
            text("hostname=h port=65535", 1),
            "port: port 65536 of clone 1 does not exist"
        );
        assert_eq!(text("hostname=h", 0), "port: TCP and UDP need a port");
        assert_eq!(
            text("protocol=unix port=1", 0),
            "port: a Unix socket has no port"
        );
        assert_eq!(
            text("port=1", 0),
            "hostname: there is no host to connect to"
        );
        assert_eq!(
            text("listen port=1 interface=x", 0),
            "interface: x is not an IPv4 address"
        );
    }
}
