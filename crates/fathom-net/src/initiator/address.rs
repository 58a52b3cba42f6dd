//! Addresses of namespaces, as job files name them: the keys of fio's SPDK plugin.

use std::fmt;

/// Address of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamespaceAddress {
    /// Controller that gives access to it.
    pub(crate) controller: ControllerAddress,
    /// Namespace identifier.
    pub(crate) nsid: u32,
}

/// Address of a subsystem at a target, and the name under which to connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ControllerAddress {
    /// Host name or IP address.
    pub(crate) host: String,
    /// TCP port.
    pub(crate) port: u16,
    /// Address family, if one is required.
    pub(crate) family: Option<Family>,
    /// NQN of the subsystem.
    pub(crate) subsystem_nqn: String,
    /// NQN of the host; `None`: that of the job.
    pub(crate) host_nqn: Option<String>,
}

/// Address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

/// Reason why a name is not an address, or an option has no value that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AddressError {
    pub(crate) why: String,
    pub(crate) hint: &'static str,
}

impl NamespaceAddress {
    /// Reads an address: pairs of key and value, separated by blanks.
    pub(crate) fn parse(text: &str) -> Result<Self, AddressError> {
        let mut fields = Fields::default();
        for pair in text.split_whitespace() {
            let (key, value) = pair
                .split_once('=')
                .ok_or_else(|| error(format!("`{pair}` is not a pair of key and value"), FORM))?;
            fields.set(key, value)?;
        }
        fields.finish()
    }
}

/// Values of the keys seen so far.
#[derive(Debug, Default)]
struct Fields {
    transport: Option<String>,
    family: Option<Family>,
    host: Option<String>,
    port: Option<u16>,
    subsystem_nqn: Option<String>,
    host_nqn: Option<String>,
    nsid: Option<u32>,
}

impl Fields {
    fn set(&mut self, key: &str, value: &str) -> Result<(), AddressError> {
        let number = |limit| error(format!("{key}={value}: not a number from 1{limit}"), FORM);
        match key.to_ascii_lowercase().as_str() {
            "trtype" => self.transport = Some(transport(value)?),
            "adrfam" => self.family = Some(family(value)?),
            "traddr" => self.host = Some(value.to_owned()),
            "trsvcid" => {
                let port = value.parse().ok().filter(|&port: &u16| port > 0);
                self.port = Some(port.ok_or_else(|| number(" to 65535"))?);
            }
            "subnqn" => self.subsystem_nqn = Some(nqn(key, value)?),
            "hostnqn" => self.host_nqn = Some(nqn(key, value)?),
            "ns" => {
                let nsid = value.parse().ok().filter(|&nsid: &u32| nsid > 0);
                self.nsid = Some(nsid.ok_or_else(|| number(""))?);
            }
            // A priority of sockets, which SPDK's posix sockets ignore, too.
            "priority" => {}
            "hostaddr" | "hostsvcid" => {
                let why = format!("`{key}` is not supported");
                return Err(error(
                    why,
                    "leave it out: the routing table selects the source",
                ));
            }
            _ => return Err(error(format!("unknown key `{key}`"), FORM)),
        }
        Ok(())
    }

    fn finish(self) -> Result<NamespaceAddress, AddressError> {
        let missing = |key: &str| error(format!("`{key}` is missing"), FORM);
        self.transport.ok_or_else(|| missing("trtype"))?;
        Ok(NamespaceAddress {
            controller: ControllerAddress {
                host: self.host.ok_or_else(|| missing("traddr"))?,
                port: self.port.unwrap_or(DEFAULT_PORT),
                family: self.family,
                subsystem_nqn: self.subsystem_nqn.ok_or_else(|| missing("subnqn"))?,
                host_nqn: self.host_nqn,
            },
            nsid: self.nsid.unwrap_or(1),
        })
    }
}

fn transport(value: &str) -> Result<String, AddressError> {
    match value.to_ascii_lowercase().as_str() {
        "tcp" => Ok(value.to_owned()),
        "rdma" | "pcie" | "fc" | "vfiouser" | "loop" => Err(error(
            format!("trtype={value}: this transport is not supported"),
            "use trtype=tcp; for a local device use io_uring with its block device",
        )),
        _ => Err(error(
            format!("trtype={value}: unknown transport"),
            "use trtype=tcp",
        )),
    }
}

fn family(value: &str) -> Result<Family, AddressError> {
    match value.to_ascii_lowercase().as_str() {
        "ipv4" => Ok(Family::V4),
        "ipv6" => Ok(Family::V6),
        _ => Err(error(
            format!("adrfam={value}: unknown address family"),
            "use adrfam=ipv4 or adrfam=ipv6",
        )),
    }
}

/// Checks the length of an NQN, the value of `key`.
pub(crate) fn nqn(key: &str, value: &str) -> Result<String, AddressError> {
    match value.len() {
        1..=NQN_BYTES_MAX => Ok(value.to_owned()),
        length => Err(error(
            format!("{key}: an NQN of {length} bytes"),
            "an NQN has 1 to 223 bytes",
        )),
    }
}

fn error(why: String, hint: &'static str) -> AddressError {
    AddressError { why, hint }
}

impl fmt::Display for ControllerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (host, port) = (&self.host, self.port);
        match host.contains(':') {
            true => write!(f, "[{host}]:{port}")?,
            false => write!(f, "{host}:{port}")?,
        }
        write!(f, " {}", self.subsystem_nqn)
    }
}

const FORM: &str =
    "write filename='trtype=tcp adrfam=ipv4 traddr=ADDRESS trsvcid=PORT subnqn=NQN ns=1'";

/// Port that IANA assigned to NVMe over fabrics.
const DEFAULT_PORT: u16 = 4420;
/// Longest NQN by the specification.
const NQN_BYTES_MAX: usize = 223;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_the_spdk_plugin_are_read() {
        let text = "trtype=TCP adrfam=IPv4 traddr=127.0.0.1 trsvcid=4421 \
                    subnqn=nqn.2016-06.io.spdk:cnode1 ns=3";
        let address = NamespaceAddress::parse(text).expect("an address");
        assert_eq!(address.nsid, 3);
        let controller = address.controller;
        assert_eq!(
            (controller.port, controller.family),
            (4421, Some(Family::V4))
        );
        let want = "127.0.0.1:4421 nqn.2016-06.io.spdk:cnode1";
        assert_eq!(controller.to_string(), want);
        let short = NamespaceAddress::parse("trtype=tcp traddr=::1 subnqn=nqn.a hostnqn=nqn.b");
        let short = short.expect("an address");
        assert_eq!(
            (short.nsid, short.controller.host_nqn.as_deref()),
            (1, Some("nqn.b"))
        );
        assert_eq!(short.controller.to_string(), "[::1]:4420 nqn.a");
    }

    #[track_caller]
    fn check(text: &str, want: &str) {
        let error = NamespaceAddress::parse(text).expect_err("no address");
        assert_eq!(error.why, want);
    }

    #[test]
    fn faults_are_named() {
        check(
            "trtype=rdma",
            "trtype=rdma: this transport is not supported",
        );
        check(
            "trtype=PCIe traddr=0000.04.00.0",
            "trtype=PCIe: this transport is not supported",
        );
        check("trtype=udp", "trtype=udp: unknown transport");
        check("", "`trtype` is missing");
        check("trtype=tcp traddr=::1", "`subnqn` is missing");
        check("trtype=tcp x=1", "unknown key `x`");
        check(
            "trtype=tcp /dev/null",
            "`/dev/null` is not a pair of key and value",
        );
        check("trtype=tcp ns=0", "ns=0: not a number from 1");
        check(
            "trtype=tcp trsvcid=70000",
            "trsvcid=70000: not a number from 1 to 65535",
        );
        check("trtype=tcp adrfam=ib", "adrfam=ib: unknown address family");
        check("trtype=tcp hostaddr=1.2.3.4", "`hostaddr` is not supported");
        check(
            &format!("trtype=tcp subnqn={}", "x".repeat(224)),
            "subnqn: an NQN of 224 bytes",
        );
    }
}
