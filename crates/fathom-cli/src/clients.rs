//! `--client`: starts a rank beside the user and one on each host, by the site's MPI.
//!
//! ```text
//! fathom run --client=… ── launcher ─┬─ fathom-mpi conduct   rank 0, here: measures nothing
//!        ▲                           ├─ ssh ─ fathom-mpi join   rank 1
//!        └── exit code, in a file ◄──┘─ ssh ─ fathom-mpi join   rank 2
//! ```
//!
//! Launchers change exit codes, print about them, and end the ranks when they get a signal. So the
//! code and requests to stop go through a folder that only this program and rank 0 know. Before MPI
//! has started, which may take forever, ranks announce themselves by marks on standard error.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io::{self, IsTerminal as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use fathom_core::Nanos;
use fathom_job::{ClientGroup, Clients, Dialect, Rank, RankPlace, ShowMode, parse};
use fathom_sys::child::Child;
use fathom_sys::clock::{self, Clock};
use fathom_sys::lease::Lease;
use fathom_sys::signals::Interrupts;

use crate::client_hosts::{self, ClientHost};
use crate::client_start;
use crate::environment::Process;
use crate::exit::ProgramEnd;
use crate::failure::with_hint;
use crate::launcher_voice::LauncherVoice;
use crate::mpi_launcher::{self, MpiLauncher, RankCommand};
use crate::output::{self, StandardStream};

/// Hosts of a run, in the order of their ranks, each with the index of its group.
pub(crate) fn hosts(clients: &Clients) -> Result<Vec<(ClientHost, usize)>> {
    let mut all = Vec::new();
    for (at, group) in clients.groups.iter().enumerate() {
        let hosts = client_hosts::hosts(&group.hosts)?;
        all.extend(hosts.into_iter().map(|host| (host, at)));
    }
    Ok(all)
}

/// Returns the command line of a group, as the ranks there parse it.
pub(crate) fn words(group: &ClientGroup) -> Vec<String> {
    let own = group.own_files.iter();
    group.words.iter().chain(own).cloned().collect()
}

/// Starts the ranks, and waits until they have ended.
pub(crate) fn run(line: &[String], clients: &Clients, dialect: Dialect) -> ProgramEnd {
    match started(line, clients, dialect) {
        Ok(end) => end,
        Err(error) => {
            let text = format!("{}: {error:#}\n", dialect.program());
            output::print(StandardStream::Error, &text);
            ProgramEnd::Refused
        }
    }
}

fn started(line: &[String], clients: &Clients, dialect: Dialect) -> Result<ProgramEnd> {
    let hosts = hosts(clients)?;
    for name in named_twice(&hosts) {
        let text = format!(
            "{}: note: --client: `{name}` is named more than once: a rank each time\n",
            dialect.program()
        );
        output::print(StandardStream::Error, &text);
    }
    if let Some(refused) = refused(clients, &hosts, dialect) {
        output::print(StandardStream::Error, &refused);
        return Ok(ProgramEnd::Refused);
    }
    let patience = client_start::patience()?;
    let launcher = MpiLauncher::find()?;
    let rank = RankCommand {
        program: rank_program()?,
        words: vec!["join".into()],
    };
    let exchange = Exchange::create()?;
    let mut here: Vec<OsString> = vec!["conduct".into(), exchange.folder.clone().into()];
    here.push(dialect.program().into());
    // Rank 0 writes to a pipe of the launcher, whatever is behind it.
    if clients.settings.eta == ShowMode::Auto && is_terminal(dialect) {
        here.push("--eta=always".into());
    }
    here.extend(line.iter().map(OsString::from));
    let names: Vec<&str> = hosts.iter().map(|(host, _)| &*host.name).collect();
    let mut command = launcher.command(&rank, &here, &names, is_root())?;
    if clients.settings.debug.includes("process") {
        let text = format!("process  {}\n", mpi_launcher::line(&command));
        output::print(StandardStream::Error, &text);
    }
    // Its process group is not the terminal's, which would stop it when it reads.
    if !reads_stdin(clients) {
        command.stdin(Stdio::null());
    }
    let interrupts = Interrupts::install().context("signals")?;
    let shown = command.get_program().to_string_lossy().into_owned();
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Child::spawn(&mut command).with_context(|| format!("--client: {shown}"))?;
    let no_thread = "--client: cannot start a thread";
    let data = match child.take_stdout() {
        Some(pipe) => LauncherVoice::pass_on(pipe, io::stdout()).context(no_thread)?,
        None => LauncherVoice::default(),
    };
    let voice = match child.take_stderr() {
        Some(pipe) => LauncherVoice::pass_on(pipe, io::stderr()).context(no_thread)?,
        None => LauncherVoice::default(),
    };
    let start = Start {
        patience,
        hosts: &names,
        data: &data,
        voice: &voice,
    };
    let ended = wait(child, &exchange, interrupts, &start);
    data.finish();
    voice.finish();
    match data.take_error() {
        // A closed pipe is no error.
        Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let error = anyhow::Error::new(error).context("standard output");
            let lost = output::not_written(&error, dialect.program());
            ended.map(|end| match end {
                ProgramEnd::Ranks(0) => lost,
                end => end,
            })
        }
        _ => ended,
    }
}

/// Start of the ranks, which has a limit of time.
struct Start<'a> {
    patience: Nanos,
    hosts: &'a [&'a str],
    /// Standard output of the launcher.
    data: &'a LauncherVoice,
    /// Standard error of the launcher.
    voice: &'a LauncherVoice,
}

impl Start<'_> {
    /// Ends a launcher that has not started all ranks. There is no report then, and nothing that it
    /// prints is passed on to standard output, where MPICH's launcher reports its end.
    fn end(&self, launcher: &mut Child) {
        self.data.mute();
        launcher.end();
    }
}

/// Returns whether the status line goes to a terminal: fio's to standard output.
fn is_terminal(dialect: Dialect) -> bool {
    match dialect {
        Dialect::Fio => io::stdout().is_terminal(),
        Dialect::Fathom => io::stderr().is_terminal(),
    }
}

/// Waits until the launcher has ended, or for some time after rank 0 has: a launcher that waits for
/// a host that is cut off, or that has not started, may never end.
fn wait(
    mut child: Child,
    exchange: &Exchange,
    interrupts: Interrupts,
    start: &Start<'_>,
) -> Result<ProgramEnd> {
    let clock = Clock::monotonic();
    let begun = clock.now();
    let (mut stopped, mut through, mut has_started) = (0, None, false);
    let status = loop {
        if let Some(status) = child.poll().context("--client: the launcher")? {
            break Some(status);
        }
        has_started = has_started || exchange.has_started();
        if interrupts.count() > stopped {
            stopped = interrupts.count();
            if !has_started {
                start.end(&mut child);
                bail!("--client: interrupted before all ranks had started");
            }
            exchange
                .ask_stop()
                .context("--client: cannot stop rank 0")?;
        }
        if through.is_none() && exchange.code().is_some() {
            through = Some(clock.now());
        }
        if through.is_some_and(|since| clock.now() - since >= LAUNCHER_PATIENCE) {
            child.end();
            break None;
        }
        if !has_started && through.is_none() && clock.now() - begun >= start.patience {
            // The marks of ranks that are there have come long ago.
            let late = client_start::late(start.patience, &start.voice.ranks(), start.hosts);
            start.end(&mut child);
            return Err(late);
        }
        clock::sleep(NAP);
    };
    match (exchange.code(), status) {
        (Some(code), _) => Ok(ProgramEnd::Ranks(code)),
        (None, Some(status)) => Err(with_hint(
            format!("--client: the launcher has ended ({status}) before there was a report"),
            Some(
                "what ranks have recorded is in the folder of `--record`, here or on their hosts: \
                 `fathom merge` adds it up",
            ),
        )),
        (None, None) => bail!("--client: the launcher was ended"),
    }
}

/// Folder through which this program and rank 0 talk; removed at the end.
struct Exchange {
    folder: PathBuf,
    /// By which rank 0 sees that this program lives; `None` where folders cannot be locked.
    _alive: Option<Lease>,
}

impl Exchange {
    /// Creates a folder that no other user can read.
    fn create() -> Result<Self> {
        let name = format!("fathom-client-{}-{}", std::process::id(), clock::wall_ns());
        let folder = std::env::temp_dir().join(name);
        DirBuilder::new()
            .mode(0o700)
            .create(&folder)
            .map_err(|error| {
                let shown = folder.display();
                let hint = "set TMPDIR to a folder that can be written to";
                with_hint(format!("--client: {shown}: {error}"), Some(hint))
            })?;
        let alive = Lease::take(&folder).unwrap_or_default();
        Ok(Self {
            folder,
            _alive: alive,
        })
    }

    fn code(&self) -> Option<u8> {
        let text = fs::read_to_string(self.folder.join(CODE)).ok()?;
        text.trim().parse().ok()
    }

    /// Returns whether MPI has started on all ranks.
    fn has_started(&self) -> bool {
        self.folder.join(STARTED).exists()
    }

    fn ask_stop(&self) -> io::Result<()> {
        fs::write(self.folder.join(STOP), "")
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        // Left behind at worst.
        let _left = fs::remove_dir_all(&self.folder);
    }
}

/// Rank 0's side of the exchange.
#[cfg_attr(
    not(feature = "mpi"),
    expect(dead_code, reason = "this program is not a rank")
)]
pub(crate) mod rank_side {
    use super::*;

    /// Returns whether the user wants all to stop.
    pub(crate) fn stop_is_asked(folder: &Path) -> bool {
        folder.join(STOP).exists()
    }

    /// Returns whether the user's program has ended, in whatever way, and left the folder.
    pub(crate) fn is_abandoned(folder: &Path) -> bool {
        matches!(Lease::take(folder), Ok(Some(_)))
    }

    /// Removes an abandoned folder.
    pub(crate) fn remove(folder: &Path) {
        // Left behind at worst.
        let _left = fs::remove_dir_all(folder);
    }

    /// Reports that MPI has started on all ranks.
    pub(crate) fn tell_started(folder: &Path) -> io::Result<()> {
        fs::write(folder.join(STARTED), "")
    }

    /// Reports the exit code.
    pub(crate) fn tell_code(folder: &Path, code: u8) -> io::Result<()> {
        let path = folder.join(CODE);
        let new = path.with_extension("new");
        fs::write(&new, format!("{code}\n"))?;
        fs::rename(new, path)
    }
}

/// Parses the command line of each group as its first host does, so that errors are reported before
/// a host is contacted; returns the results.
fn refused(clients: &Clients, hosts: &[(ClientHost, usize)], dialect: Dialect) -> Option<String> {
    for (at, group) in clients.groups.iter().enumerate() {
        // Those that are read elsewhere or only once are left to the ranks.
        if !group.own_files.is_empty() || group.words.iter().any(|word| word == "-") {
            continue;
        }
        let first = hosts.iter().position(|(_, of)| *of == at).unwrap_or(0);
        let first = u32::try_from(first).unwrap_or(u32::MAX);
        let environment = Process::among(first, places(hosts));
        if let Err(refusal) = parse(&words(group), dialect, &environment) {
            return Some(output::render(&refusal.diagnostics, dialect));
        }
    }
    None
}

/// Returns the places of the hosts, as far as they are known before these are asked.
fn places(hosts: &[(ClientHost, usize)]) -> Vec<RankPlace> {
    let ranks = u32::try_from(hosts.len()).unwrap_or(u32::MAX);
    let each = (0..ranks).zip(hosts).map(|(rank, (host, _))| RankPlace {
        rank: Rank { rank, ranks },
        host: host.name.clone(),
        client: Some(host.name.clone()),
        port: Some(host.port),
        ..RankPlace::default()
    });
    each.collect()
}

fn reads_stdin(clients: &Clients) -> bool {
    let mut words = clients.groups.iter().flat_map(|group| &group.words);
    words.any(|word| word == "-")
}

fn named_twice(hosts: &[(ClientHost, usize)]) -> BTreeSet<&str> {
    let mut seen = BTreeSet::new();
    let names = hosts.iter().map(|(host, _)| &*host.name);
    names.filter(|name| !seen.insert(*name)).collect()
}

/// Finds the program of the ranks: beside this one, else in the PATH.
fn rank_program() -> Result<PathBuf> {
    let own = std::env::current_exe().ok();
    let beside = own.map(|own| own.with_file_name(RANK_PROGRAM));
    let beside = beside.filter(|file| file.is_file());
    beside
        .or_else(|| mpi_launcher::in_path(RANK_PROGRAM))
        .ok_or_else(|| {
            let hint = "install it here and on the hosts, under the same path: \
                    `cargo install --path crates/fathom-cli --features mpi`";
            with_hint(
                format!("--client: no program `{RANK_PROGRAM}` beside this one or in the PATH"),
                Some(hint),
            )
        })
}

fn is_root() -> bool {
    // Its owner is the effective user.
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

const RANK_PROGRAM: &str = "fathom-mpi";
/// File with the exit code of the run.
const CODE: &str = "code";
/// File that says that MPI has started on all ranks.
const STARTED: &str = "started";
/// File that asks rank 0 to stop all.
const STOP: &str = "stop";
const NAP: Nanos = Nanos::from_millis(20);
/// Time that the launcher has to end after rank 0. Open MPI 4 waits for a host that is cut off
/// without end.
const LAUNCHER_PATIENCE: Nanos = Nanos::from_secs(5);
