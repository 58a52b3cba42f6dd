//! Engines whose data are elsewhere (`Storage::Remote`): what a run does with their files, on the
//! job's thread and on workers.
#![expect(
    clippy::unwrap_used,
    reason = "the whole file is a test, its helpers too"
)]

mod host;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use fathom_core::{
    Capabilities, Completion, Direction, Engine, EngineError, EngineInfo, EngineStep, Errno,
    FileIndex, Op, OpKind, Queueing, RemoteFile, Slot, Storage, Submitted, Synchronous, Tick,
};
use fathom_engine::{AnyEngine, EngineConfig, Registration};
use fathom_record::Record;
use fathom_setup::RunError;
use fathom_sys::clock::Clock;
use fathom_sys::in_flight::Ready;
use fathom_sys::memory::Buffers;

use host::{Host, run_with};

/// Bytes of a volume.
const VOLUME_BYTES: usize = 1 << 20;

type Volume = Arc<Mutex<Vec<u8>>>;

/// Volumes by name: the place elsewhere. Static, as a server is for all engines that reach it.
static VOLUMES: Mutex<BTreeMap<String, Volume>> = Mutex::new(BTreeMap::new());

static INFO: EngineInfo = EngineInfo {
    synchronous: Synchronous::Never,
    storage: Storage::Remote,
    shares_buffers: true,
    ..EngineInfo::new("volumes", "volumes of a server")
};

/// The same engine, whose buffers stay with one thread.
static UNSHARED: EngineInfo = EngineInfo {
    shares_buffers: false,
    ..INFO
};

fn engine(info: &'static EngineInfo) -> Registration {
    Registration::new(info, |config| {
        Ok(AnyEngine::Boxed(Box::new(Volumes::start(config))))
    })
}

/// Engine on volumes; it completes ops when they are submitted.
struct Volumes {
    names: Vec<String>,
    open: Vec<Option<Volume>>,
    buffers: Buffers,
    ready: Ready,
    clock: Clock,
}

impl Volumes {
    fn start(config: &EngineConfig) -> Self {
        let names: Vec<_> = config.files.iter().map(|file| file.path.clone()).collect();
        Self {
            open: names.iter().map(|_| None).collect(),
            names,
            buffers: Buffers::within(&config.memory, config.depth, config.buffer_bytes).unwrap(),
            ready: Ready::new(config.depth),
            clock: config.clock,
        }
    }

    fn transfer(&mut self, op: &Op) -> i32 {
        let Some(volume) = &self.open[op.file.index()] else {
            return Errno::EBADF.result();
        };
        let buffer = self.buffers.get(op.slot);
        let (from, length) = (usize::try_from(op.offset).unwrap(), op.length as usize);
        let mut volume = volume.lock().unwrap();
        let there = &mut volume[from..from + length];
        let at = op.buffer_offset as usize;
        let here = &mut buffer[at..at + length];
        match op.kind {
            OpKind::Data(Direction::Read) => here.copy_from_slice(there),
            OpKind::Data(Direction::Write) => there.copy_from_slice(here),
            OpKind::Data(Direction::Trim) => there.fill(0),
            OpKind::Sync(_) => return 0,
        }
        op.length.cast_signed()
    }
}

impl Engine for Volumes {
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
        let name = &self.names[file.index()];
        if name == "no-such-volume" {
            return Err(EngineError {
                step: EngineStep::Call("connect"),
                target: name.clone(),
                errno: Some(Errno::ENOENT),
                hint: "name a volume of the server".into(),
            });
        }
        let mut volumes = VOLUMES.lock().unwrap();
        let volume = volumes.entry(name.clone()).or_default();
        volume.lock().unwrap().resize(VOLUME_BYTES, 0);
        self.open[file.index()] = Some(Arc::clone(volume));
        Ok(())
    }

    fn close(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.open[file.index()] = None;
        Ok(())
    }

    fn invalidate(&mut self, _file: FileIndex) -> Result<(), EngineError> {
        Ok(())
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        self.buffers.get(slot)
    }

    fn prepare(&mut self, op: &Op) {
        let result = self.transfer(op);
        self.ready.push(op.slot, result);
    }

    fn submit(&mut self, _want: u32) -> Submitted {
        let now = self.clock.now();
        Submitted::Issued { issue: now, now }
    }

    fn reap(&mut self, out: &mut [Completion]) -> usize {
        self.ready.take(out)
    }

    fn wait(&mut self, _min: u32, _until: Option<Tick>) -> Result<(), EngineError> {
        Ok(())
    }

    fn release(&mut self, slot: Slot) {
        self.buffers.release(slot);
    }
}

fn run_words(info: &'static EngineInfo, words: &str) -> Result<Record, RunError> {
    let host = Host::with("", engine(info));
    let words = format!("--name=x --ioengine=volumes --bs=4k --size=64k {words}");
    run_with(&host, &host.engines, &words)
}

/// Writes two volumes and verifies them, and checks that nothing is left on this machine.
#[track_caller]
fn check_verified(volumes: [&str; 2], words: &str) {
    let names = volumes.join(":");
    let words = format!("--filename={names} --rw=randwrite --verify=crc32c --iodepth=8 {words}");
    let record = run_words(&INFO, &words).expect("a record");
    let job = &record.jobs[0];
    assert_eq!(job.error, 0, "{:?}", record.warnings);
    let directions = &job.directions;
    assert_eq!(
        (directions.write.bytes, directions.read.bytes),
        (64 << 10, 64 << 10)
    );
    let sentences = record.validity.iter().map(|validity| &validity.sentence);
    let denied: Vec<_> = sentences
        .filter(|sentence| sentence.contains("no data"))
        .collect();
    assert!(denied.is_empty(), "{denied:?}");
    for name in volumes {
        assert!(!Path::new(name).exists(), "{name} is a local file");
        let volume = Arc::clone(&VOLUMES.lock().unwrap()[name]);
        assert!(volume.lock().unwrap().iter().any(|&byte| byte != 0));
    }
}

#[test]
fn data_elsewhere_are_written_and_verified() {
    check_verified(["alone-1", "alone-2"], "");
}

#[test]
fn workers_write_and_verify_data_elsewhere() {
    check_verified(["shared-1", "shared-2"], "--io_submit_mode=offload");
}

#[test]
fn a_volume_that_cannot_be_opened_fails_the_job_with_its_error() {
    for mode in ["inline", "offload"] {
        let words =
            format!("--filename=no-such-volume --rw=read --iodepth=2 --io_submit_mode={mode}");
        let record = run_words(&INFO, &words).expect("a record");
        let job = &record.jobs[0];
        assert_eq!(job.error, Errno::ENOENT.get().cast_unsigned(), "{mode}");
        assert_eq!(job.directions.read.ios, 0, "{mode}");
        let text = format!("{record:?}");
        assert!(text.contains("connect: no-such-volume"), "{mode}: {text}");
    }
}

#[test]
fn workers_refuse_an_engine_that_keeps_its_buffers_to_one_thread() {
    let words = "--filename=v --rw=read --io_submit_mode=offload";
    let error = run_words(&UNSHARED, words).expect_err("refused");
    assert!(error.to_string().contains("io_submit_mode"), "{error}");
    let inline = "--filename=v --rw=read";
    assert!(run_words(&UNSHARED, inline).is_ok());
}

#[test]
fn a_job_without_a_size_covers_its_volumes() {
    let known = Registration {
        remote_file: Some(|config| {
            let name = &config.files[0].path;
            let found = (name != "no-such-volume").then_some(RemoteFile {
                bytes: VOLUME_BYTES as u64,
                block_bytes: 1024,
                directions: &Direction::ALL,
            });
            found.ok_or_else(|| EngineError {
                step: EngineStep::Call("connect"),
                target: name.clone(),
                errno: Some(Errno::ENOENT),
                hint: "name a volume of the server".into(),
            })
        }),
        ..engine(&INFO)
    };
    let host = Host::with("", known);
    let run = |words: &str| {
        let words = format!("--name=x --ioengine=volumes --filename={words}");
        run_with(&host, &host.engines, &words)
    };
    let record = run("whole-1:whole-2 --rw=write --bs=4k").expect("a record");
    assert_eq!(record.jobs[0].directions.write.bytes, 2 << 20);
    let half = run("whole-1 --rw=read --bs=4k --size=50%").expect("a record");
    assert_eq!(half.jobs[0].directions.read.bytes, 1 << 19);
    let odd = run("whole-1 --rw=read --bs=512").expect_err("half a block");
    assert!(
        odd.to_string()
            .contains("512 B is not a multiple of the 1024 B"),
        "{odd}"
    );
    let missing = run("no-such-volume --rw=read").expect_err("no volume");
    assert!(
        missing.to_string().contains("connect: no-such-volume"),
        "{missing}"
    );
}
