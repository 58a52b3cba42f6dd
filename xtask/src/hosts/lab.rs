//! The hosts: namespaces joined by a bridge, with an sshd each.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::job::Job;
use crate::process;

/// Three hosts and the user's, until this process ends.
#[derive(Debug)]
pub(crate) struct Lab {
    nodes: Vec<Node>,
    /// `fathom`; `fathom-mpi` is beside it.
    fathom: PathBuf,
}

/// A host.
#[derive(Debug)]
pub(crate) struct Node {
    name: String,
    /// Its first process, as seen from the user's host; when that ends, so does the host.
    init: u32,
    /// End of its cable at the bridge.
    port: String,
    /// Parent of `init`.
    _unshare: Child,
}

impl Lab {
    /// Sets up the hosts. The calling process must be alone in its namespaces: it mounts over
    /// `/run` and `/etc/hosts`.
    pub(crate) fn set_up(fathom: &Path) -> Result<Self> {
        let fathom = fathom
            .canonicalize()
            .with_context(|| fathom.display().to_string())?;
        if fathom.starts_with("/run") {
            bail!("the program must not lie under /run");
        }
        sh("mount -t tmpfs -o mode=0755 tmpfs /run")?;
        sh("mkdir -p /run/sshd /run/tmp /run/bin /run/lab")?;
        write_files(&fathom)?;
        sh(
            "hostname user && ip link set lo up && mount --bind /run/lab/hosts /etc/hosts && \
            ip link add br0 type bridge && ip addr add 10.77.0.1/24 dev br0 && \
            ip -6 addr add fd77::1/64 dev br0 nodad && ip link set br0 up",
        )?;
        let nodes = (1..=NODES).map(Node::start).collect::<Result<Vec<_>>>()?;
        let lab = Self { nodes, fathom };
        lab.clear()?;
        for node in &lab.nodes {
            node.wait_for_sshd()?;
        }
        Ok(lab)
    }

    /// Returns a command on the user's host, in the empty folder of a test.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .current_dir(WORK)
            .stdin(Stdio::null())
            .env("PATH", format!("/run/bin:{path}"))
            .env("TMPDIR", "/run/tmp")
            // Harmless for others than root.
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command
    }

    /// Starts `fathom` on the user's host.
    pub(crate) fn fathom(&self, words: &str) -> Result<Job> {
        let mut command = self.command(&self.fathom);
        Job::start(command.args(words.split_whitespace()))
    }

    /// Starts `fathom` on the user's host under the name `fio`.
    pub(crate) fn fio(&self, words: &str) -> Result<Job> {
        let mut command = self.command("/run/bin/fio");
        Job::start(command.args(words.split_whitespace()))
    }

    /// Starts a rank on each host of the file `hosts`.
    pub(crate) fn mpirun(&self, words: &str) -> Result<Job> {
        let ranks = self.fathom.with_file_name("fathom-mpi");
        self.launch(&format!("{} run {words}", ranks.display()))
    }

    /// Starts a program on each host of the file `hosts`.
    pub(crate) fn launch(&self, words: &str) -> Result<Job> {
        let mut command = self.command("mpirun");
        command.args(["--hostfile", "/run/lab/nodes"]);
        command.args(["--map-by", "ppr:1:node", "--bind-to", "none"]);
        Job::start(command.args(words.split_whitespace()))
    }

    /// Returns the path of `fathom`, the same on all hosts.
    pub(crate) fn program(&self) -> &Path {
        &self.fathom
    }

    /// Returns the hosts, in the order of their ranks.
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Empties the folders that tests write to.
    pub(crate) fn clear(&self) -> Result<()> {
        sh(&format!("rm -rf {WORK} && mkdir {WORK}"))?;
        for node in &self.nodes {
            let local = node.local("");
            sh(&format!("rm -rf {}/*", local.display()))?;
        }
        Ok(())
    }

    /// Fails if a launcher or a rank runs on one of these hosts, or a launcher beside the user.
    pub(crate) fn expect_idle<'a>(&self, nodes: impl Iterator<Item = &'a Node>) -> Result<()> {
        let mut places = vec![net_of(std::process::id())?];
        for node in nodes {
            places.push(net_of(node.init)?);
        }
        let busy = || -> Result<Vec<String>> {
            let all = processes()?.into_iter();
            let all = all.filter(|(pid, name)| {
                LAUNCHED.contains(&name.as_str())
                    && net_of(*pid).is_ok_and(|net| places.contains(&net))
            });
            Ok(all.map(|(pid, name)| format!("{name} ({pid})")).collect())
        };
        let start = process::now();
        // A daemon of the launcher may outlive it by a moment.
        while !busy()?.is_empty() {
            if start.elapsed() > Duration::from_secs(10) {
                bail!("still running: {}", busy()?.join(", "));
            }
            process::pause(Duration::from_millis(20));
        }
        Ok(())
    }
}

/// Writes what names, ssh and sshd need.
fn write_files(fathom: &Path) -> Result<()> {
    let mut hosts = "127.0.0.1 localhost\n10.77.0.1 user\n".to_owned();
    let mut nodes = String::new();
    for at in 1..=NODES {
        hosts += &format!("10.77.0.{} node{at}\nfd77::{} node{at}-6\n", at + 1, at + 1);
        nodes += &format!("node{at}\n");
    }
    let file = |name: &str, text: &str| fs::write(Path::new("/run/lab").join(name), text);
    file("hosts", &hosts)?;
    file("nodes", &nodes)?;
    sh(
        "ssh-keygen -q -t ed25519 -N '' -f /run/lab/key && cp /run/lab/key.pub /run/lab/keys && \
        ssh-keygen -q -t ed25519 -N '' -f /run/lab/host_key",
    )?;
    file(
        "sshd_config",
        "HostKey /run/lab/host_key\nAuthorizedKeysFile /run/lab/keys\nPidFile none\n\
         UsePAM no\nStrictModes no\nPermitRootLogin yes\nMaxStartups 100\nSetEnv TMPDIR=/run/tmp\n",
    )?;
    file(
        "ssh_config",
        "IdentityFile /run/lab/key\nUserKnownHostsFile /run/lab/known\n\
         StrictHostKeyChecking accept-new\nConnectTimeout 5\nLogLevel ERROR\n",
    )?;
    let ssh = process::find("ssh").context("no ssh")?;
    let script = Path::new("/run/bin/ssh");
    let text = format!(
        "#!/bin/sh\nexec {} -F /run/lab/ssh_config \"$@\"\n",
        ssh.display()
    );
    fs::write(script, text)?;
    fs::set_permissions(script, fs::Permissions::from_mode(0o755))?;
    symlink(fathom, "/run/bin/fio")?;
    Ok(())
}

impl Node {
    /// Returns its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Starts host `at`, from 1.
    fn start(at: u8) -> Result<Self> {
        let (name, port) = (format!("node{at}"), format!("port{at}"));
        let sshd = process::find("sshd").context("no sshd")?;
        let script = format!(
            "hostname {name} && mkdir -p /run/local && mount -t tmpfs tmpfs /run/local && \
             ip link set lo up && echo up && read cable && \
             exec {} -D -e -f /run/lab/sshd_config",
            sshd.display()
        );
        let log = fs::File::create(format!("/run/lab/{name}.log"))?;
        let mut unshare = process::tied("unshare")
            .args(NAMESPACES)
            .args(["sh", "-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .context("unshare")?;
        let mut up = [0; 3];
        let out = unshare.stdout.as_mut().context("no pipe")?;
        std::io::Read::read_exact(out, &mut up)
            .with_context(|| format!("{name} does not start"))?;
        let init = child_of(unshare.id())?;
        let address = at + 1;
        sh(&format!(
            "ip link add {port} type veth peer name eth0 netns {init} && \
             ip link set {port} master br0 up && \
             nsenter --target {init} --net ip addr add 10.77.0.{address}/24 dev eth0 && \
             nsenter --target {init} --net ip -6 addr add fd77::{address}/64 dev eth0 nodad && \
             nsenter --target {init} --net ip link set eth0 up"
        ))?;
        let mut cable = unshare.stdin.take().context("no pipe")?;
        cable.write_all(b"cable\n")?;
        Ok(Self {
            name,
            init,
            port,
            _unshare: unshare,
        })
    }

    fn wait_for_sshd(&self) -> Result<()> {
        let start = process::now();
        let try_it = format!(
            "PATH=/run/bin:$PATH ssh {} true 2>/run/lab/ssh.log",
            self.name
        );
        while sh(&try_it).is_err() {
            if start.elapsed() > Duration::from_secs(20) {
                let log = fs::read_to_string("/run/lab/ssh.log").unwrap_or_default();
                bail!("no ssh to {}: {log}", self.name);
            }
            process::pause(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Returns the path of a file of this host alone, `/run/local/…` there.
    pub(crate) fn local(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root/run/local/{name}", self.init))
    }

    /// Unplugs the cable, or plugs it in.
    pub(crate) fn set_link(&self, is_up: bool) -> Result<()> {
        let word = if is_up { "up" } else { "down" };
        sh(&format!("ip link set {} {word}", self.port))
    }

    /// Sends a signal to all processes of this name on the host, of which there must be one.
    pub(crate) fn signal(&self, name: &str, signal: &str) -> Result<()> {
        let net = net_of(self.init)?;
        let mut sent = false;
        for (pid, _) in processes()?.iter().filter(|(_, found)| found == name) {
            if net_of(*pid).is_ok_and(|found| found == net) {
                sh(&format!("kill -{signal} {pid}"))?;
                sent = true;
            }
        }
        match sent {
            true => Ok(()),
            false => bail!("no {name} on {}", self.name),
        }
    }
}

/// Returns processes and their names.
fn processes() -> Result<Vec<(u32, String)>> {
    let entries = fs::read_dir("/proc").context("/proc")?.flatten();
    let found = entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let name = fs::read_to_string(entry.path().join("comm")).ok()?;
        Some((pid, name.trim().to_owned()))
    });
    Ok(found.collect())
}

/// Returns the identity of a process's network.
fn net_of(pid: u32) -> Result<PathBuf> {
    Ok(fs::read_link(format!("/proc/{pid}/ns/net"))?)
}

fn child_of(parent: u32) -> Result<u32> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let text = fs::read_to_string(&path).with_context(|| path.clone())?;
    let first = text.split_whitespace().next().context("no child")?;
    Ok(first.parse()?)
}

/// Runs a line of shell, which must succeed.
pub(crate) fn sh(line: &str) -> Result<()> {
    process::run(Command::new("sh").args(["-c", line]).stdin(Stdio::null()))
}

/// Arguments of `unshare` for a host.
pub(super) const NAMESPACES: [&str; 7] = [
    "--net",
    "--uts",
    "--mount",
    "--pid",
    "--fork",
    "--kill-child=KILL",
    "--mount-proc",
];
/// Folder of a test, on all hosts.
pub(crate) const WORK: &str = "/run/shared";
const NODES: u8 = 3;
/// Programs of which none is left after a run.
const LAUNCHED: [&str; 3] = ["mpirun", "orted", "fathom-mpi"];
