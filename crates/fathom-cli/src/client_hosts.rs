//! Hosts of `--client`, in fio's forms: `host`, `ip:host`, `ip6:host`, each with `,port`, or a file
//! with one of them a line.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::failure::with_hint;
use crate::output;

/// Host that `--client` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientHost {
    /// Name or IPv4 address.
    pub(crate) name: String,
    /// Port of fio's server, which is in its reports; nothing listens there.
    pub(crate) port: u16,
}

/// Returns the hosts of one `--client`.
pub(crate) fn hosts(text: &str) -> Result<Vec<ClientHost>> {
    let path = Path::new(text);
    if !path.is_file() {
        let host = host(text).with_context(|| format!("--client: {}", output::beginning(text)))?;
        return Ok(vec![host]);
    }
    let list = read(path).with_context(|| format!("--client: {text}"))?;
    listed(&list).with_context(|| format!("--client: {text}"))
}

/// Reads a list. Beyond a limit, the file is another one.
fn read(path: &Path) -> Result<String> {
    let mut list = Vec::new();
    let mut file = File::open(path)?.take(LIST_BYTES_MAX + 1);
    file.read_to_end(&mut list)?;
    let hint = "name a text file with a host a line, or a host";
    if list.len() as u64 > LIST_BYTES_MAX {
        let why = format!(
            "more than {} MiB: not a list of hosts",
            LIST_BYTES_MAX >> 20
        );
        return Err(with_hint(why, Some(hint)));
    }
    String::from_utf8(list).map_err(|_| with_hint("not a text in UTF-8", Some(hint)))
}

/// Returns the hosts of a list; empty lines and those that begin with `#` are skipped.
fn listed(list: &str) -> Result<Vec<ClientHost>> {
    let lines = list.lines().map(str::trim).enumerate();
    let named = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let hosts = named.map(|(at, line)| host(line).with_context(|| format!("line {}", at + 1)));
    let hosts: Vec<_> = hosts.collect::<Result<_>>()?;
    if hosts.is_empty() {
        bail!("the list names no host");
    }
    if hosts.len() > HOSTS_MAX {
        bail!("{} hosts, more than {HOSTS_MAX}", hosts.len());
    }
    Ok(hosts)
}

fn host(text: &str) -> Result<ClientHost> {
    if text.starts_with("sock:") {
        let hint = "name the host; for this one, `localhost`";
        return Err(with_hint(
            "ranks are started over ssh, not a socket",
            Some(hint),
        ));
    }
    let bare = text
        .strip_prefix("ip6:")
        .or_else(|| text.strip_prefix("ip:"));
    let bare = bare.unwrap_or(text);
    let (name, port) = match bare.split_once(',') {
        Some((name, port)) => {
            let port = port.trim();
            let number = port.parse().ok().filter(|&number| number > 0);
            let why = || format!("`{}` is not a port", output::beginning(port));
            (name.trim(), number.with_context(why)?)
        }
        None => (bare, FIO_PORT),
    };
    if name.is_empty() {
        bail!("no host");
    }
    if name.contains(':') {
        let hint = "give the host a name, such as in /etc/hosts";
        return Err(with_hint(
            "launchers take no address with colons in their lists of hosts",
            Some(hint),
        ));
    }
    // The launcher and ssh would take it for a switch of theirs, or a shell for a command.
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
    let is_host =
        !name.starts_with(['-', '.']) && name.len() <= NAME_BYTES_MAX && name.chars().all(is_plain);
    if !is_host {
        let hint = "letters, digits, `-`, `.` and `_`, and no `-` or `.` in front";
        let shown = output::beginning(name);
        return Err(with_hint(
            format!("`{shown}` is not a host name"),
            Some(hint),
        ));
    }
    Ok(ClientHost {
        name: name.to_owned(),
        port,
    })
}

/// Port of fio's server.
const FIO_PORT: u16 = 8765;
/// Longest name of a host, of RFC 1035.
const NAME_BYTES_MAX: usize = 253;
/// Bytes of a list: 4,096 names of the longest kind, four times.
const LIST_BYTES_MAX: u64 = 4 << 20;
/// Most hosts: their names are words of one command line.
const HOSTS_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(list: &str, want: &[(&str, u16)]) {
        let got = listed(list).unwrap();
        let got: Vec<_> = got.iter().map(|host| (&*host.name, host.port)).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn hosts_come_in_fios_forms() {
        check("a", &[("a", 8765)]);
        check("ip:10.0.0.1,9000", &[("10.0.0.1", 9000)]);
        let list = "# cluster\nnode-1.example\n\n  ip6:node_2 , 1 \nnode-1.example\n";
        let twice = ("node-1.example", 8765);
        check(list, &[twice, ("node_2", 1), twice]);
    }

    #[track_caller]
    fn refused(list: &str, want: &str) {
        let error = listed(list).unwrap_err();
        let error = format!("{error:#}");
        assert_eq!(error.lines().next(), Some(want), "{list:?}");
    }

    #[test]
    fn what_is_no_host_is_refused() {
        refused("", "the list names no host");
        refused("# a\n\n", "the list names no host");
        let socket = "line 1: ranks are started over ssh, not a socket";
        refused("sock:/tmp/fio.sock", socket);
        refused(
            "a\n-oProxyCommand=x",
            "line 2: `-oProxyCommand=x` is not a host name",
        );
        refused("a b", "line 1: `a b` is not a host name");
        refused("a;reboot", "line 1: `a;reboot` is not a host name");
        refused("root@a", "line 1: `root@a` is not a host name");
        refused("a,0", "line 1: `0` is not a port");
        refused("a,70000", "line 1: `70000` is not a port");
        refused("ip:,80", "line 1: no host");
        let colons = "line 1: launchers take no address with colons in their lists of hosts";
        refused("ip6:::1", colons);
        let long = "x".repeat(254);
        let shown = "x".repeat(80);
        refused(&long, &format!("line 1: `{shown}…` is not a host name"));
        refused("..", "line 1: `..` is not a host name");
        refused("a\u{1b}[2J", r"line 1: `a\u{1b}[2J` is not a host name");
        refused(
            &format!("a,{long}"),
            &format!("line 1: `{shown}…` is not a port"),
        );
    }

    #[test]
    fn a_file_that_is_no_list_is_refused() {
        let path = std::env::temp_dir().join(format!("fathom-list-{}", std::process::id()));
        let check = |bytes: &[u8], want: &str| {
            std::fs::write(&path, bytes).unwrap();
            let error = format!("{:#}", read(&path).unwrap_err());
            assert!(error.starts_with(want), "{error}");
        };
        let limit = usize::try_from(LIST_BYTES_MAX).unwrap();
        check(&vec![b'a'; limit + 1], "more than 4 MiB");
        check(b"\xff\n", "not a text in UTF-8");
        std::fs::remove_file(&path).unwrap();
    }
}
