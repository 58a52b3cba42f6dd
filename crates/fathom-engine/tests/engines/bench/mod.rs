//! Test bench of one engine: a file with known content, and an account of every op.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use fathom_conformance::{Account, BLOCK, BLOCKS, Subject, content};
use fathom_core::{
    Capabilities, Direction, Engine, EngineInfo, EngineOption, EngineValues, Errno, FileIndex, Op,
    OpKind, OptionEffect, OptionValue, Slot, Storage, Tick, Work,
};
use fathom_engine::options::{
    FIXEDBUFS, FORCE_ASYNC, HIPRI, LIBAIO_VECTORED, NONVECTORED, REGISTERFILES, SQTHREAD_POLL,
    UNCACHED, USERSPACE_REAP,
};
use fathom_engine::{
    AnyEngine, EngineConfig, EngineFile, FileLock, Kick, Registry, built_in, start,
};
use fathom_sys::clock::Clock;
use fathom_sys::files::{self, Allocation};

/// ENOTTY: the result of an ioctl that the file system does not have.
const NOT_AN_IOCTL: i32 = -25;

/// Engine under test, and its configuration.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) name: &'static str,
    pub(crate) variant: &'static str,
    pub(crate) depth: u32,
    pub(crate) direct: bool,
    pub(crate) options: EngineValues,
    pub(crate) offload: Option<Kick>,
    pub(crate) locks: Vec<FileLock>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            name: "",
            variant: "",
            depth: 1,
            direct: false,
            options: EngineValues::default(),
            offload: None,
            locks: Vec::new(),
        }
    }
}

impl Setup {
    /// Returns every engine of `names` at depths 1 and 16, and with each option of its own.
    pub(crate) fn all(base: &Self) -> Vec<Self> {
        let mut all = Vec::new();
        for name in names() {
            for depth in [1, 16] {
                all.push(Self {
                    name,
                    depth,
                    ..base.clone()
                });
            }
        }
        let mut add = |name, variant, options: &[(&EngineOption, u64)]| {
            let mut setup = Self {
                name,
                variant,
                depth: 16,
                ..base.clone()
            };
            for &(option, value) in options {
                setup.options = setup.options.with(option, value);
            }
            all.push(setup);
        };
        add("io_uring", "fixedbufs", &[(&FIXEDBUFS, 1)]);
        add("io_uring", "registerfiles", &[(&REGISTERFILES, 1)]);
        add("io_uring", "vectored", &[(&NONVECTORED, 0)]);
        add("io_uring", "force_async", &[(&FORCE_ASYNC, 3)]);
        let registered = [(&FIXEDBUFS, 1), (&REGISTERFILES, 1)];
        add("io_uring", "all registered", &registered);
        let polled_queue = [(&SQTHREAD_POLL, 1), (&REGISTERFILES, 1)];
        add("io_uring", "sqthread_poll", &polled_queue);
        add("libaio", "vectored", &[(&LIBAIO_VECTORED, 1)]);
        add("libaio", "userspace_reap", &[(&USERSPACE_REAP, 1)]);
        if base.direct {
            add("io_uring", "hipri", &[(&HIPRI, 1)]);
            add("pvsync2", "hipri", &[(&HIPRI, 1)]);
        } else {
            add("io_uring", "uncached", &[(&UNCACHED, 1)]);
            add("pvsync2", "uncached", &[(&UNCACHED, 1)]);
        }
        all.extend(Self::offloaded(base));
        all.extend(Self::locked(base));
        all
    }

    /// Returns every engine with offload workers.
    fn offloaded(base: &Self) -> Vec<Self> {
        let mut all = Vec::new();
        for name in names() {
            for (variant, depth, kick) in [
                ("offload", 1, Kick::Batch),
                ("offload", 16, Kick::Batch),
                ("offload each", 16, Kick::Each),
                ("offload delayed", 16, Kick::Delayed),
                ("offload reap", 16, Kick::Reap),
            ] {
                all.push(Self {
                    name,
                    variant,
                    depth,
                    offload: Some(kick),
                    ..base.clone()
                });
            }
        }
        all
    }

    /// Returns engines whose ops wait for file locks.
    fn locked(base: &Self) -> Vec<Self> {
        let mut all = Vec::new();
        for (name, depth) in [("psync", 1), ("libaio", 16), ("io_uring", 16), ("mmap", 1)] {
            // One that nothing else takes.
            let locks = vec![FileLock::new(false)];
            all.push(Self {
                name,
                variant: "locked",
                depth,
                locks,
                ..base.clone()
            });
        }
        all
    }

    fn title(&self) -> String {
        format!("{} {} depth {}", self.name, self.variant, self.depth)
    }
}

/// Engine, its file, and the ops in flight.
pub(crate) struct Bench {
    engine: AnyEngine,
    path: PathBuf,
    account: Account,
    clock: Clock,
    data: bool,
    info: &'static EngineInfo,
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _already_gone = fs::remove_file(&self.path);
        let _rarely_there = fs::remove_file(beside(&self.path));
    }
}

fn config(setup: &Setup, path: &str, clock: Clock) -> EngineConfig {
    let info = built_in(setup.name).info;
    let mut options = setup.options.clone();
    let written = info.options.iter();
    for option in written.filter(|option| option.effect == Some(OptionEffect::WrittenFile)) {
        let beside = beside(Path::new(path)).to_string_lossy().into_owned();
        options.set(option.name, OptionValue::Text(beside));
    }
    EngineConfig {
        depth: setup.depth,
        buffer_bytes: BLOCK,
        files: vec![EngineFile {
            path: path.into(),
            read: true,
            write: true,
            create: true,
            recreate: false,
            trims_reset_zones: false,
            // A file that is mapped has its own size.
            bytes: if info.moves_data() {
                0
            } else {
                64 * u64::from(BLOCK)
            },
            random: true,
        }],
        direct: setup.direct,
        options,
        offload: setup.offload,
        locks: setup.locks.clone(),
        ..EngineConfig::new(built_in(setup.name), clock)
    }
}

/// Returns the name of the file that an engine may write beside its own.
fn beside(path: &Path) -> PathBuf {
    path.with_extension("beside")
}

/// Creates a file of blocks without data.
fn allocate(path: &Path, bytes: u64) {
    let file = fs::File::create(path).unwrap();
    if files::allocate(&file, Allocation::Native, 0, bytes).is_err() {
        file.set_len(bytes).unwrap();
    }
}

/// Returns the names of the built-in engines that perform I/O on an open file, or on none. Those on
/// names are tested in `conformance_names.rs`, those with a peer, with storage elsewhere or without
/// I/O by themselves.
fn names() -> Vec<&'static str> {
    let registry = Registry::built_in();
    let infos = registry.infos().iter();
    let with_files = infos.filter(|info| {
        let elsewhere = [Storage::Peer, Storage::Device, Storage::Remote];
        let has_files = !elsewhere.contains(&info.storage);
        info.performs_io() && has_files && info.name_work().is_none()
    });
    with_files.map(|info| info.name).collect()
}

/// Checks that opening a missing name under /dev fails and creates nothing.
pub(crate) fn missing_file(setup: &Setup, path: &str) {
    let Ok(mut engine) = start(config(setup, path, Clock::monotonic())) else {
        return;
    };
    if built_in(setup.name).info.storage == Storage::None {
        return;
    }
    let error = engine.as_dyn().open(FileIndex::new(0)).unwrap_err();
    assert_eq!(
        (error.target.as_str(), error.errno),
        (path, Some(Errno::ENOENT))
    );
    assert!(error.hint.contains("/dev"), "{error:?}");
    assert!(!fs::exists(path).unwrap());
}

impl Bench {
    /// Creates a bench over a file of known content; prints why if the kernel lacks
    /// something.
    pub(crate) fn new(setup: &Setup) -> Option<Self> {
        // The file is there from the start: some engines map it when it is opened.
        let blocks: Vec<u8> = (0..BLOCKS).flat_map(content).collect();
        Self::over(setup, |path| {
            match built_in(setup.name).info.work {
                // As a run lays it out. Data just written have no blocks yet, or busy ones.
                Work::Allocation => allocate(path, blocks.len() as u64),
                Work::Data | Work::Names(_) => fs::write(path, blocks).unwrap(),
            }
        })
    }

    /// Creates a bench over a named pipe.
    pub(crate) fn over_pipe(setup: &Setup) -> Option<Self> {
        Self::over(setup, |path| {
            let made = Command::new("mkfifo").arg(path).status().unwrap();
            assert!(made.success());
        })
    }

    fn over(setup: &Setup, make: impl FnOnce(&Path)) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("engine-{}-{number}", std::process::id());
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        make(&path);
        let clock = Clock::monotonic();
        let mut engine = match start(config(setup, path.to_str().unwrap(), clock)) {
            Ok(engine) => engine,
            Err(error) => {
                let _gone = fs::remove_file(&path);
                let kernel_has_it = !["io_uring", "libaio"].contains(&setup.name);
                assert!(!kernel_has_it, "{}: {error}", setup.title());
                println!("skipped: {}: {error} ({})", setup.title(), error.hint);
                return None;
            }
        };
        if let Err(error) = engine.as_dyn().open(FileIndex::new(0)) {
            let _gone = fs::remove_file(&path);
            assert!(setup.direct, "{}: {error}", setup.title());
            println!("skipped: {}: {error} ({})", setup.title(), error.hint);
            return None;
        }
        let data = engine.as_dyn().capabilities().moves_data;
        let mut bench = Self {
            engine,
            path,
            account: Account::new(setup.title(), setup.depth),
            clock,
            data,
            info: built_in(setup.name).info,
        };
        let needs_support = setup.options.flag(&UNCACHED) || bench.info.work == Work::Allocation;
        let no_support = [Errno::EOPNOTSUPP.result(), NOT_AN_IOCTL];
        if needs_support && no_support.contains(&bench.run(bench.read(0, 0)).result) {
            println!("skipped: {}: not on this filesystem", setup.title());
            return None;
        }
        Some(bench)
    }

    pub(crate) fn block(&self) -> u32 {
        BLOCK
    }

    pub(crate) fn performs(&self, direction: Direction) -> bool {
        self.info.directions.contains(&direction)
    }

    pub(crate) fn capabilities(&mut self) -> Capabilities {
        self.engine.as_dyn().capabilities()
    }

    pub(crate) fn truncate(&self, bytes: u64) {
        let file = fs::OpenOptions::new().write(true).open(&self.path).unwrap();
        file.set_len(bytes).unwrap();
    }

    pub(crate) fn write_to_pipe(&self, data: &[u8]) {
        fs::write(&self.path, data).unwrap();
    }

    pub(crate) fn invalidate(&mut self) {
        self.engine.as_dyn().invalidate(FileIndex::new(0)).unwrap();
    }

    /// Returns a read, or an op of another direction if the engine performs no reads.
    pub(crate) fn read(&self, slot: u32, block: u32) -> Op {
        let direction = match self.performs(Direction::Read) {
            true => Direction::Read,
            false => self.info.directions[0],
        };
        Op {
            slot: Slot::new(slot),
            kind: OpKind::Data(direction),
            priority: 0,
            file: FileIndex::new(0),
            length: BLOCK,
            buffer_offset: 0,
            offset: u64::from(block) * u64::from(BLOCK),
            sequence: 0,
        }
    }

    /// Prepares reads of these blocks, one for each slot from 0.
    pub(crate) fn prepare_reads(&mut self, blocks: &[u32]) {
        let op = self.read(0, 0);
        let slots: Vec<Slot> = (0..).map(Slot::new).take(blocks.len()).collect();
        for &slot in &slots {
            self.account.prepare(Op { slot, ..op });
        }
        let mut next = blocks.iter();
        let offset = || u64::from(*next.next().unwrap()) * u64::from(BLOCK);
        match &mut self.engine {
            AnyEngine::Null(engine) => Engine::prepare_many(engine, &op, &slots, offset),
            AnyEngine::Sync(engine) => Engine::prepare_many(engine, &op, &slots, offset),
            AnyEngine::Libaio(engine) => Engine::prepare_many(engine, &op, &slots, offset),
            AnyEngine::Uring(engine) => Engine::prepare_many(engine, &op, &slots, offset),
            AnyEngine::Passthrough(engine) => Engine::prepare_many(engine, &op, &slots, offset),
            AnyEngine::Offload(engine) => {
                Engine::prepare_many(&mut **engine, &op, &slots, offset);
            }
            AnyEngine::Boxed(engine) => Engine::prepare_many(engine, &op, &slots, offset),
        }
    }

    /// Ends a case and checks that nothing is left in flight.
    #[track_caller]
    pub(crate) fn finish(mut self) {
        assert_eq!(
            self.account.in_flight(),
            0,
            "{}: ops left over",
            self.title()
        );
        self.close();
    }
}

impl Subject for Bench {
    fn engine(&mut self) -> &mut dyn Engine {
        self.engine.as_dyn()
    }

    fn account(&self) -> &Account {
        &self.account
    }

    fn account_mut(&mut self) -> &mut Account {
        &mut self.account
    }

    fn moves_data(&self) -> bool {
        self.data
    }

    fn stored(&mut self, block: u32) -> Vec<u8> {
        let mut bytes = vec![0; BLOCK as usize];
        let file = fs::File::open(&self.path).unwrap();
        let offset = u64::from(block) * u64::from(BLOCK);
        file.read_exact_at(&mut bytes, offset).unwrap();
        bytes
    }

    fn now(&self) -> Tick {
        self.clock.now()
    }

    fn read(&self, slot: u32, block: u32) -> Op {
        Self::read(self, slot, block)
    }
}
