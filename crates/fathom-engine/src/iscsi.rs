//! `libiscsi`: logical units of iSCSI targets, by libiscsi in user space.

mod unit;
mod url;

use std::env;

use fathom_core::{
    Capabilities, Completion, Direction, Engine, EngineError, EngineInfo, EngineOption, EngineStep,
    Errno, FileIndex, Nanos, Op, OpKind, Queueing, RemoteFile, Slot, Storage, Submitted,
    Synchronous, Tick,
};
use fathom_sys::libiscsi::{Iscsi, IscsiPortal};
use fathom_sys::memory::MemoryPlacement;
use fathom_sys::scsi::{ScsiCommand, ScsiData};

use crate::libraries::{Client, Limits, Waits, engine_error};
use crate::options::{CONNECT_TIMEOUT, REPLY_TIMEOUT};
use crate::scsi::cdb;
use crate::scsi::{blocks, outcome};
use crate::serial::whole;
use crate::{AnyEngine, EngineConfig, EngineFile, Registration};
use unit::{Opening, Unit};

/// Facts about `libiscsi`.
static INFO: EngineInfo = EngineInfo {
    synchronous: Synchronous::Never,
    storage: Storage::Remote,
    options: &[INITIATOR, CONNECT_TIMEOUT, REPLY_TIMEOUT],
    shares_buffers: true,
    different: "loads libiscsi when it starts; refuses passwords in URLs, and takes them from the \
                environment; trims are UNMAP; never reconnects",
    ..EngineInfo::new(
        "libiscsi",
        "units of iSCSI targets, iscsi://HOST/TARGET/LUN, by libiscsi (package libiscsi7)",
    )
};

const INITIATOR: EngineOption = EngineOption::text(
    "initiator",
    "Name by which the job logs in to iSCSI targets",
    "initiator=iqn.2026-01.org.example:host",
)
.default("iqn.2019-04.org.fio:fio");

/// Row of the registry.
pub(crate) const REGISTRATION: Registration = Registration {
    remote_file: Some(remote_file),
    ..Registration::new(&INFO, |config| {
        Ok(AnyEngine::Boxed(Box::new(IscsiEngine::start(config)?)))
    })
};

/// `libiscsi`: a session for each file, on which each op is one SCSI command: READ(16), WRITE(16),
/// UNMAP, or SYNCHRONIZE CACHE. All may be in flight together.
struct IscsiEngine {
    iscsi: Iscsi,
    waits: Waits,
    initiator: String,
    files: Box<[EngineFile]>,
    /// By file; those of closed files are kept, to compare with when they are opened again.
    units: Box<[Option<Unit>]>,
    /// By slot.
    in_flight: Box<[CommandOp]>,
    /// Writes complete when they are on the medium.
    sync: bool,
    /// Reason of the first failure with each errno, which is the one that a job reports.
    failures: Vec<(Errno, String)>,
    /// The last `reap` looked at the sockets.
    has_looked: bool,
}

/// Command in flight.
#[derive(Clone, Copy, Debug, Default)]
struct CommandOp {
    /// Result of success.
    length: i32,
    /// Bytes of which none may be missing.
    transferred: u32,
    is_unmap: bool,
}

impl IscsiEngine {
    fn start(config: &EngineConfig) -> Result<Self, EngineError> {
        let initiator = initiator(config);
        for file in &config.files {
            portal(&file.path, &initiator)?;
        }
        let (depth, bytes, files) = (config.depth, config.buffer_bytes, config.files.len());
        Ok(Self {
            iscsi: load(depth, bytes, files, &config.memory)?,
            waits: Waits::new(config.clock, Limits::resolve(&config.options)),
            initiator,
            files: config.files.clone().into_boxed_slice(),
            units: vec![None; files].into_boxed_slice(),
            in_flight: vec![CommandOp::default(); depth as usize].into_boxed_slice(),
            sync: config.syncs_writes(),
            failures: Vec::new(),
            has_looked: false,
        })
    }

    fn limit(&self) -> Nanos {
        self.waits.limits.connect
    }

    /// Encodes an op and queues its command.
    fn queue(&mut self, op: &Op) -> Result<(), Errno> {
        let unit = self.units[op.file.index()].ok_or(Errno::EBADF)?;
        let (command, transferred) = self.encode(op, unit)?;
        self.in_flight[op.slot.index()] = CommandOp {
            length: whole(op),
            transferred,
            is_unmap: op.kind == OpKind::Data(Direction::Trim),
        };
        self.iscsi.begin(op.slot, op.file.get(), &command);
        Ok(())
    }

    /// Returns the command of an op, and the bytes of which none may be missing.
    fn encode(&mut self, op: &Op, unit: Unit) -> Result<(ScsiCommand, u32), Errno> {
        let OpKind::Data(direction) = op.kind else {
            let (cdb, data) = (cdb::synchronize_cache(), ScsiData::None);
            return Ok((ScsiCommand { cdb, data }, 0));
        };
        let extent = blocks::extent(op, unit.capacity.block_bytes).ok_or(Errno::EINVAL)?;
        let (offset, length) = (op.buffer_offset, op.length);
        let (cdb, data, transferred) = match direction {
            Direction::Read => {
                let data = ScsiData::In { offset, length };
                (cdb::read_16(extent), data, length)
            }
            Direction::Write => {
                let data = ScsiData::Out { offset, length };
                (cdb::write_16(extent, self.sync), data, length)
            }
            Direction::Trim if !unit.can_unmap => return Err(Errno::EOPNOTSUPP),
            Direction::Trim => {
                let length = cdb::unmap_list_bytes(1).into();
                cdb::write_unmap_list(&[extent], self.iscsi.list(op.slot));
                // Its transfer is not compared, nor is it by Linux: tgt reports the list as not
                // taken, and unmaps.
                (cdb::unmap(1), ScsiData::Parameters { length }, 0)
            }
        };
        Ok((ScsiCommand { cdb, data }, transferred))
    }

    /// Completes an op that cannot be a command.
    #[cold]
    fn reject(&mut self, op: &Op, errno: Errno) {
        if let (Errno::EINVAL, Some(unit)) = (errno, self.units[op.file.index()]) {
            let bytes = unit.capacity.block_bytes;
            self.explained(errno, || format!("not a whole number of {bytes} B blocks"));
        }
        self.iscsi.finish(op.slot, errno.result());
    }

    /// Returns the result of a completed op, given what the client has of it.
    fn result(&mut self, slot: Slot, result: i32) -> i32 {
        if result != 0 {
            return result;
        }
        let op = self.in_flight[slot.index()];
        let outcome = self.iscsi.outcome(slot);
        let Some(why) = outcome::failure(&outcome, op.transferred) else {
            return op.length;
        };
        let why = match op.is_unmap {
            true => outcome::advise_limits(&outcome, why),
            false => why,
        };
        self.explained(Errno::EIO, || why);
        Errno::EIO.result()
    }

    /// Keeps the reason of the first failure with an errno.
    #[cold]
    fn explained(&mut self, errno: Errno, why: impl FnOnce() -> String) {
        if self.explain(errno).is_none() {
            self.failures.push((errno, why()));
        }
    }

    /// Refuses a unit that is not as the job needs it.
    fn check(&self, file: FileIndex, unit: &Unit) -> Result<(), EngineError> {
        let facts = &self.files[file.index()];
        let refuse = |step, errno, hint: &str| {
            Err(EngineError {
                step,
                target: facts.path.clone(),
                errno: Some(errno),
                hint: hint.into(),
            })
        };
        if facts.write && unit.is_read_only {
            let hint = "the unit is write-protected: use `rw=read`";
            return refuse(EngineStep::Open, Errno::EROFS, hint);
        }
        if facts.write && self.sync && !unit.has_fua {
            let hint = "the unit cannot complete writes on the medium (FUA): use `fsync=1`";
            return refuse(EngineStep::Option("sync"), Errno::EOPNOTSUPP, hint);
        }
        match self.units[file.index()] {
            Some(before) if before.capacity != unit.capacity => {
                let hint = "the unit's capacity changed while the run used it: run it again";
                refuse(EngineStep::Open, Errno::EIO, hint)
            }
            _ => Ok(()),
        }
    }
}

impl Engine for IscsiEngine {
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
        let limit = self.limit();
        let url = &self.files[file.index()].path;
        let portal = portal(url, &self.initiator)?;
        let opening = Opening {
            iscsi: &mut self.iscsi,
            file: file.get(),
            url,
            limit,
        };
        let unit = opening.open(portal)?;
        if let Err(error) = self.check(file, &unit) {
            self.close(file)?;
            return Err(error);
        }
        self.units[file.index()] = Some(unit);
        Ok(())
    }

    fn close(&mut self, file: FileIndex) -> Result<(), EngineError> {
        let limit = self.limit();
        self.iscsi.logout(file.get(), limit).map_err(|error| {
            let path = &self.files[file.index()].path;
            engine_error(EngineStep::Call("logout"), path, &error, "")
        })
    }

    fn invalidate(&mut self, _file: FileIndex) -> Result<(), EngineError> {
        // No page cache on this side.
        Ok(())
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        self.iscsi.buffer(slot)
    }

    fn prepare(&mut self, op: &Op) {
        if let Err(errno) = self.queue(op) {
            self.reject(op, errno);
        }
    }

    fn submit(&mut self, want: u32) -> Submitted {
        self.waits.look(&mut self.iscsi);
        let now = self.waits.clock.now();
        self.waits.wait_for(&mut self.iscsi, want, None);
        Submitted::Issued { issue: now, now }
    }

    fn reap(&mut self, out: &mut [Completion]) -> usize {
        if self.iscsi.ready() == 0 {
            self.waits.look(&mut self.iscsi);
            self.has_looked = true;
        }
        let count = self.iscsi.reap(out);
        for completion in &mut out[..count] {
            completion.result = self.result(completion.slot, completion.result);
        }
        count
    }

    fn reaped_at(&mut self) -> Option<Tick> {
        std::mem::take(&mut self.has_looked).then(|| self.waits.clock.now())
    }

    fn wait(&mut self, min: u32, until: Option<Tick>) -> Result<(), EngineError> {
        self.waits.wait_for(&mut self.iscsi, min, until);
        Ok(())
    }

    fn release(&mut self, slot: Slot) {
        self.iscsi.release(slot);
    }

    fn explain(&self, errno: Errno) -> Option<String> {
        let known = self.failures.iter().find(|(own, _)| *own == errno);
        let known = known.map(|(_, text)| text.clone());
        known.or_else(|| self.iscsi.explanation(errno))
    }
}

impl Client for Iscsi {
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
        self.abandon(errno, &text);
    }
}

/// Looks a unit up before a run.
fn remote_file(config: &EngineConfig) -> Result<RemoteFile, EngineError> {
    let url = config.files.first().map_or("", |file| &file.path);
    let portal = portal(url, &initiator(config))?;
    let limit = Limits::resolve(&config.options).connect;
    let mut iscsi = load(1, 512, 1, &MemoryPlacement::default())?;
    let opening = Opening {
        iscsi: &mut iscsi,
        file: 0,
        url,
        limit,
    };
    let unit = opening.open(portal)?;
    // A target that does not say goodbye in time has said what was asked.
    let _ended = iscsi.logout(0, limit);
    Ok(unit.file())
}

fn load(
    depth: u32,
    bytes: u32,
    files: usize,
    memory: &MemoryPlacement,
) -> Result<Iscsi, EngineError> {
    let step = EngineStep::Call("load library");
    Iscsi::load(depth, bytes, files, memory)
        .map_err(|error| engine_error(step, "engine `libiscsi`", &error, ""))
}

fn initiator(config: &EngineConfig) -> String {
    let given = config.options.text(&INITIATOR);
    given.unwrap_or(INITIATOR.default).to_owned()
}

fn portal(url: &str, initiator: &str) -> Result<IscsiPortal, EngineError> {
    url::portal(url, initiator, &|name| env::var(name).ok())
}
