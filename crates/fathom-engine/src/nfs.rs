//! `nfs`: files of an NFS export, by libnfs in user space.

use std::ops::RangeInclusive;

use fathom_core::{
    Capabilities, Completion, Direction, Engine, EngineError, EngineInfo, EngineOption, EngineStep,
    Errno, FileIndex, Nanos, Op, OpKind, Queueing, Slot, Storage, Submitted, Synchronous, Tick,
};
use fathom_sys::libnfs::{Nfs, NfsOp, NfsOpKind, NfsOpen};
use fathom_sys::library::LibraryError;

use crate::libraries::{Client, Limits, Waits, engine_error};
use crate::options::{CONNECT_TIMEOUT, REPLY_TIMEOUT};
use crate::{AnyEngine, EngineConfig, EngineFile, Registration};

/// Facts about `nfs`.
static INFO: EngineInfo = EngineInfo {
    synchronous: Synchronous::Never,
    storage: Storage::Remote,
    directions: &[Direction::Read, Direction::Write],
    options: &[NFS_URL, CONNECT_TIMEOUT, REPLY_TIMEOUT],
    shares_buffers: true,
    different: "loads libnfs when it starts; NFSv4 is refused; never reconnects",
    ..EngineInfo::new("nfs", "files of NFS exports, by libnfs (package libnfs13)")
};

const NFS_URL: EngineOption = EngineOption::text(
    "nfs_url",
    "Export with the job's files, nfs://HOST/PATH[?ARGUMENT=VALUE…], as libnfs reads it",
    "nfs_url=nfs://localhost/export",
)
.different("version=4, passwords, and what libnfs 4.0 would ignore are refused");

/// Row of the registry.
pub(crate) const REGISTRATION: Registration = Registration::new(&INFO, |config| {
    Ok(AnyEngine::Boxed(Box::new(NfsEngine::start(config)?)))
});

/// `nfs`: a mount of the job's own, on which each op is a request, or several if it is longer than
/// the server takes.
struct NfsEngine {
    nfs: Nfs,
    waits: Waits,
    url: String,
    files: Box<[EngineFile]>,
    sync: bool,
    /// The last `reap` looked at the socket.
    has_looked: bool,
}

impl NfsEngine {
    fn start(config: &EngineConfig) -> Result<Self, EngineError> {
        let url = url(config)?;
        let (depth, bytes) = (config.depth, config.buffer_bytes);
        let nfs = Nfs::load(depth, bytes, config.files.len(), &config.memory);
        let step = EngineStep::Call("load library");
        let nfs = nfs.map_err(|error| engine_error(step, "engine `nfs`", &error, ""))?;
        Ok(Self {
            nfs,
            waits: Waits::new(config.clock, Limits::resolve(&config.options)),
            url,
            files: config.files.clone().into_boxed_slice(),
            sync: config.syncs_writes(),
            has_looked: false,
        })
    }

    fn limit(&self) -> Nanos {
        self.waits.limits.connect
    }

    fn mount(&mut self) -> Result<(), EngineError> {
        if self.nfs.is_mounted() {
            return Ok(());
        }
        let limit = self.limit();
        self.nfs.mount(&self.url, limit).map_err(|error| {
            let hint = match error {
                LibraryError::Url { .. } => "write nfs://HOST/PATH",
                _ => "check nfs_url, that the server exports the path to this host, and its ports",
            };
            engine_error(EngineStep::Call("mount"), &self.url, &error, hint)
        })
    }
}

impl Engine for NfsEngine {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: INFO.name,
            synchronous: false,
            moves_data: true,
            syncs: Queueing::Queued,
            trims: Queueing::Queued,
        }
    }

    fn open(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.mount()?;
        let limit = self.limit();
        let facts = &self.files[file.index()];
        let path = &facts.path;
        // As in fio, a writer creates its files, and nothing is laid out for a reader.
        let how = NfsOpen {
            write: facts.write,
            create: facts.write,
            sync: self.sync,
        };
        let name = format!("/{}", path.trim_start_matches('/'));
        let opened = self.nfs.open(file.get(), &name, how, limit);
        let _bytes = opened.map_err(|error| {
            let target = format!("{path} in {}", self.url);
            let hint = match error {
                LibraryError::Call {
                    errno: Some(Errno::ENOENT),
                    ..
                } => "write the file before a job reads it",
                LibraryError::Call {
                    errno: Some(Errno::EROFS),
                    ..
                } => "the export is read-only: use `rw=read`",
                LibraryError::Call {
                    errno: Some(Errno::EACCES | Errno::EPERM),
                    ..
                } => {
                    "add `uid=` and `gid=` to the arguments of nfs_url, or check the server's rules"
                }
                _ => "",
            };
            engine_error(EngineStep::Open, &target, &error, hint)
        })?;
        Ok(())
    }

    fn close(&mut self, file: FileIndex) -> Result<(), EngineError> {
        let limit = self.limit();
        self.nfs.close(file.get(), limit).map_err(|error| {
            let path = &self.files[file.index()].path;
            engine_error(EngineStep::Call("close"), path, &error, "")
        })
    }

    fn invalidate(&mut self, _file: FileIndex) -> Result<(), EngineError> {
        // No page cache on this side.
        Ok(())
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        self.nfs.buffer(slot)
    }

    fn prepare(&mut self, op: &Op) {
        let kind = match op.kind {
            OpKind::Data(Direction::Read) => NfsOpKind::Read,
            OpKind::Data(Direction::Write) => NfsOpKind::Write,
            OpKind::Data(Direction::Trim) => {
                return self.nfs.finish(op.slot, Errno::EOPNOTSUPP.result());
            }
            OpKind::Sync(_) => NfsOpKind::Commit,
        };
        let length = match kind {
            NfsOpKind::Commit => 0,
            _ => op.length,
        };
        let request = NfsOp {
            kind,
            file: op.file.get(),
            offset: op.offset,
            buffer_offset: op.buffer_offset,
            length,
        };
        self.nfs.begin(op.slot, request);
    }

    fn submit(&mut self, want: u32) -> Submitted {
        self.waits.look(&mut self.nfs);
        let now = self.waits.clock.now();
        self.waits.wait_for(&mut self.nfs, want, None);
        Submitted::Issued { issue: now, now }
    }

    fn reap(&mut self, out: &mut [Completion]) -> usize {
        if self.nfs.ready() == 0 {
            self.waits.look(&mut self.nfs);
            self.has_looked = true;
        }
        self.nfs.reap(out)
    }

    fn reaped_at(&mut self) -> Option<Tick> {
        std::mem::take(&mut self.has_looked).then(|| self.waits.clock.now())
    }

    fn wait(&mut self, min: u32, until: Option<Tick>) -> Result<(), EngineError> {
        self.waits.wait_for(&mut self.nfs, min, until);
        Ok(())
    }

    fn release(&mut self, slot: Slot) {
        self.nfs.release(slot);
    }

    fn explain(&self, errno: Errno) -> Option<String> {
        self.nfs.explanation(errno)
    }
}

impl Client for Nfs {
    fn ready(&self) -> usize {
        self.ready()
    }

    fn in_flight(&self) -> u32 {
        self.in_flight()
    }

    fn serve(&mut self, timeout: Option<Nanos>) -> bool {
        self.serve(timeout)
    }

    fn abandon(&mut self, errno: Errno, text: String) {
        self.abandon(errno, text);
    }
}

/// Returns the URL of a job; refuses what libnfs 4.0 does not do well.
fn url(config: &EngineConfig) -> Result<String, EngineError> {
    let refuse = |target: &str, hint: &str| EngineError {
        step: EngineStep::Option(NFS_URL.name),
        target: target.into(),
        errno: None,
        hint: hint.into(),
    };
    let Some(url) = config.options.text(&NFS_URL) else {
        return Err(refuse(
            "engine `nfs` has no export",
            "add `nfs_url=nfs://HOST/PATH`",
        ));
    };
    if !url.starts_with("nfs://") {
        return Err(refuse(url, "write nfs://HOST/PATH"));
    }
    let arguments = url.split_once('?').map_or("", |(_, arguments)| arguments);
    for argument in arguments.split('&').filter(|argument| !argument.is_empty()) {
        if let Err((why, hint)) = check_argument(argument) {
            return Err(refuse(&format!("{url}: {why}"), &hint));
        }
    }
    Ok(url.to_owned())
}

/// Refuses an argument that libnfs 4.0 would ignore, or take a number for that is none: it then
/// mounts otherwise than the job says. The error is the reason, and a remedy.
fn check_argument(argument: &str) -> Result<(), (String, String)> {
    let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
    let Some((_, range)) = ARGUMENTS.iter().find(|(known, _)| *known == name) else {
        let names: Vec<&str> = ARGUMENTS.iter().map(|(known, _)| *known).collect();
        let hint = format!("remove it; the arguments are {}", names.join(", "));
        return Err((format!("libnfs 4.0 has no argument `{name}`"), hint));
    };
    let remedy = |why: &str| Err((why.to_owned(), format!("remove `{argument}`")));
    let Some(range) = range else {
        return match value {
            "" => remedy("an argument needs a value"),
            _ => Ok(()),
        };
    };
    let number: Option<i64> = value.parse().ok();
    match (name, number) {
        ("version", Some(4)) => remedy("libnfs 4.0 cannot write over NFSv4"),
        (_, Some(number)) if range.contains(&number) => Ok(()),
        _ => {
            let why = format!(
                "`{argument}` is not a number from {} to {}",
                range.start(),
                range.end()
            );
            remedy(&why)
        }
    }
}

/// Arguments of libnfs 4.0 with the range of their numbers; `None`: a name.
const ARGUMENTS: [(&str, Option<RangeInclusive<i64>>); 13] = [
    ("tcp-syncnt", Some(0..=255)),
    ("uid", Some(0..=u32::MAX as i64)),
    ("gid", Some(0..=u32::MAX as i64)),
    ("readahead", Some(0..=i32::MAX as i64)),
    ("pagecache", Some(0..=i32::MAX as i64)),
    ("debug", Some(0..=i32::MAX as i64)),
    ("auto-traverse-mounts", Some(0..=1)),
    ("dircache", Some(0..=1)),
    ("autoreconnect", Some(-1..=i32::MAX as i64)),
    ("if", None),
    ("version", Some(3..=3)),
    ("nfsport", Some(1..=65_535)),
    ("mountport", Some(1..=65_535)),
];

#[cfg(test)]
mod tests {
    use fathom_core::{EngineValues, OptionValue};
    use fathom_sys::clock::Clock;

    use super::*;

    #[track_caller]
    fn check(value: Option<&str>, want: Result<&str, &str>) {
        let mut options = EngineValues::default();
        if let Some(value) = value {
            options.set("nfs_url", OptionValue::Text(value.into()));
        }
        let config = EngineConfig {
            options,
            ..EngineConfig::new(REGISTRATION, Clock::stopped())
        };
        let got = url(&config).map_err(|error| error.hint);
        assert_eq!(got, want.map(str::to_owned).map_err(str::to_owned));
    }

    #[test]
    fn urls_are_judged_before_libnfs_sees_them() {
        check(Some("nfs://h/x?uid=1"), Ok("nfs://h/x?uid=1"));
        check(Some("nfs://h/x?uid=1&version=4"), Err("remove `version=4`"));
        check(Some("http://h/x"), Err("write nfs://HOST/PATH"));
        let all = "nfs://h/x?uid=4294967294&gid=0&&nfsport=2049&if=lo&autoreconnect=-1&version=3";
        check(Some(all), Ok(all));
        for odd in [
            "uid=",
            "uid=-1",
            "uid=me",
            "nfsport=0",
            "mountport=65536",
            "version=2",
            "version=99",
            "if",
        ] {
            let url = format!("nfs://h/x?gid=1&{odd}");
            check(Some(&url), Err(&format!("remove `{odd}`")));
        }
        let names = "remove it; the arguments are tcp-syncnt, uid, gid, readahead, pagecache, \
                     debug, auto-traverse-mounts, dircache, autoreconnect, if, version, nfsport, \
                     mountport";
        for unknown in ["bogus=1", "timeo=1", "sec=krb5", "UID=1"] {
            check(Some(&format!("nfs://h/x?{unknown}")), Err(names));
        }
        check(None, Err("add `nfs_url=nfs://HOST/PATH`"));
    }
}
