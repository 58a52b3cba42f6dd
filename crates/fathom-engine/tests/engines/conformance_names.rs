//! Conformance suite of the engines whose op is a system call on the name of a file: the guarantees
//! of `conformance.rs` as far as they have a meaning there, and what is under the names afterwards.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use fathom_core::{
    Completion, Direction, Engine, EngineError, EngineInfo, Errno, FileIndex, NameWork, Op, OpKind,
    Slot, Submitted, SyncKind,
};
use fathom_engine::{EngineConfig, EngineFile, FileLock, Kick, Registry, built_in, start};
use fathom_sys::clock::Clock;

/// Files of a bench.
const FILES: u32 = 40;
const BLOCK: u32 = 4096;

/// Engine on files or directories of a folder of its own, all opened.
struct Bench {
    title: String,
    names: NameWork,
    changes: bool,
    engine: Box<dyn Engine>,
    folder: PathBuf,
    depth: u32,
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _already_gone = fs::remove_dir_all(&self.folder);
    }
}

/// Runs a case on every engine, at depths of 1 and 8, with workers and with locks.
fn each(case: impl Fn(&mut Bench)) {
    for (depth, offload, locked) in [
        (1, None, false),
        (8, None, false),
        (8, Some(Kick::Batch), false),
        (8, Some(Kick::Each), false),
        (8, None, true),
    ] {
        for info in Registry::built_in().infos() {
            if let Some(names) = info.name_work() {
                case(&mut Bench::new(info, names, depth, offload, locked));
            }
        }
    }
}

fn config(info: &EngineInfo, paths: &[PathBuf]) -> EngineConfig {
    let files = paths.iter().map(|path| EngineFile {
        path: path.to_str().unwrap().into(),
        read: true,
        write: true,
        create: true,
        bytes: BLOCK.into(),
        ..EngineFile::default()
    });
    EngineConfig {
        files: files.collect(),
        buffer_bytes: BLOCK,
        ..EngineConfig::new(built_in(info.name), Clock::monotonic())
    }
}

fn scratch() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("names-{}-{number}", std::process::id());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

impl Bench {
    fn new(
        info: &EngineInfo,
        names: NameWork,
        depth: u32,
        offload: Option<Kick>,
        locked: bool,
    ) -> Self {
        let folder = scratch();
        let paths: Vec<PathBuf> = (0..FILES).map(|file| path(&folder, file)).collect();
        for path in paths.iter().filter(|_| names.laid_out) {
            match names.directories {
                true => fs::create_dir(path).unwrap(),
                false => fs::write(path, "content").unwrap(),
            }
        }
        let locks = paths.iter().map(|_| FileLock::new(false));
        let config = EngineConfig {
            depth,
            offload,
            locks: locks.filter(|_| locked).collect(),
            ..config(info, &paths)
        };
        let mut engine = start(config).unwrap().boxed();
        for file in 0..FILES {
            engine.open(FileIndex::new(file)).unwrap();
        }
        Self {
            title: format!("{} depth {depth} offload {offload:?}", info.name),
            names,
            changes: info.always_writes,
            engine,
            folder,
            depth,
        }
    }

    /// Submits these ops together and returns the results by slot.
    fn run(&mut self, ops: &[Op]) -> Vec<Completion> {
        ops.iter().for_each(|op| self.engine.prepare(op));
        loop {
            match self.engine.submit(0) {
                Submitted::Issued { issue, now } => break assert!(issue <= now),
                Submitted::Blocked => {}
            }
        }
        let mut all = Vec::new();
        while all.len() < ops.len() {
            self.engine.wait(1, None).unwrap();
            let mut out = [Completion::default(); 3];
            let count = self.engine.reap(&mut out);
            all.extend_from_slice(&out[..count]);
        }
        let none = self.engine.reap(&mut [Completion::default()]);
        assert_eq!(none, 0, "{}: one too many", self.title);
        let slots: BTreeSet<Slot> = all.iter().map(|completion| completion.slot).collect();
        let want: BTreeSet<Slot> = ops.iter().map(|op| op.slot).collect();
        assert_eq!(slots, want, "{}", self.title);
        all.sort_by_key(|completion| completion.slot);
        all
    }

    /// Performs an op on each file, at full depth, and returns the results by file.
    fn run_all(&mut self) -> Vec<i32> {
        let mut results = Vec::new();
        let depth = self.depth;
        for first in (0..FILES).step_by(depth as usize) {
            let files = first..(first + depth).min(FILES);
            let ops: Vec<Op> = files.map(|file| op(file % depth, file)).collect();
            let done = self.run(&ops);
            results.extend(done.iter().map(|completion| completion.result));
        }
        results
    }

    /// Checks that the names exist, or that none does.
    #[track_caller]
    fn check_files(&self, exist: bool) {
        for file in 0..FILES {
            let path = path(&self.folder, file);
            match (exist, self.names.directories) {
                (true, true) => assert!(path.is_dir(), "{}", self.title),
                (true, false) => assert!(path.is_file(), "{}", self.title),
                (false, _) => assert!(!path.exists(), "{}", self.title),
            }
        }
    }
}

fn path(folder: &Path, file: u32) -> PathBuf {
    folder.join(format!("f{file}"))
}

fn op(slot: u32, file: u32) -> Op {
    Op {
        slot: Slot::new(slot),
        kind: OpKind::Data([Direction::Read, Direction::Write][file as usize % 2]),
        priority: 0,
        file: FileIndex::new(file),
        length: BLOCK,
        buffer_offset: 0,
        offset: 0,
        sequence: file.into(),
    }
}

fn block_bytes() -> i32 {
    BLOCK.cast_signed()
}

#[test]
fn each_op_completes_once_and_does_what_it_is_for() {
    each(|bench| {
        bench.check_files(bench.names.laid_out);
        let results = bench.run_all();
        assert_eq!(results, [block_bytes(); FILES as usize], "{}", bench.title);
        let exist = !bench.names.laid_out || !bench.changes;
        bench.check_files(exist);
    });
}

#[test]
fn a_second_op_on_a_name_fails_where_the_engine_says_so() {
    each(|bench| {
        bench.run_all();
        for result in bench.run_all() {
            assert_eq!(result < 0, bench.names.once, "{}: {result}", bench.title);
        }
    });
}

#[test]
fn a_failed_op_leaves_its_neighbours_alone() {
    each(|bench| {
        // Something else than the engine is for, but under the last name.
        let odd = path(&bench.folder, 3);
        let _other = fs::remove_file(&odd).or_else(|_| fs::remove_dir(&odd));
        fs::create_dir(&odd).unwrap();
        fs::write(odd.join("content"), "").unwrap();
        let results = bench.run_all();
        for (file, result) in results.into_iter().enumerate() {
            let fails = file == 3 && bench.changes;
            let want = if fails { result.min(-1) } else { block_bytes() };
            assert_eq!(result, want, "{}: file {file}", bench.title);
        }
        assert!(odd.join("content").exists());
    });
}

#[test]
fn nothing_is_open_that_could_be_synced() {
    each(|bench| {
        let sync = Op {
            kind: OpKind::Sync(SyncKind::Full),
            length: 0,
            ..op(0, 0)
        };
        assert_eq!(bench.run(&[sync])[0].result, Errno::EINVAL.result());
        assert!(bench.engine.buffer(Slot::new(0)).is_empty());
        assert!(!bench.engine.capabilities().moves_data);
    });
}

#[test]
fn files_can_be_closed_and_opened_again() {
    each(|bench| {
        for file in (0..FILES).map(FileIndex::new) {
            bench.engine.invalidate(file).unwrap();
            bench.engine.close(file).unwrap();
        }
        for file in (0..FILES).map(FileIndex::new) {
            bench.engine.open(file).unwrap();
        }
        assert!(bench.run_all().iter().all(|&result| result > 0));
    });
}

#[test]
fn an_engine_may_be_dropped_with_ops_in_flight() {
    each(|bench| {
        for slot in 0..bench.depth {
            bench.engine.prepare(&op(slot, slot));
        }
        let _blocked = bench.engine.submit(0);
    });
}

/// Opens the only file of each engine whose names fit, and returns the errors.
fn refusals(directories: bool, path: &Path) -> Vec<(&'static EngineInfo, Option<EngineError>)> {
    let registry = Registry::built_in();
    let infos = registry.infos().iter();
    let fitting = infos.filter(|info| {
        let names = info.name_work();
        info.always_writes && names.is_some_and(|names| names.directories == directories)
    });
    fitting
        .map(|info| {
            let mut engine = start(config(info, &[path.to_owned()])).unwrap().boxed();
            (*info, engine.open(FileIndex::new(0)).err())
        })
        .collect()
}

#[test]
fn links_devices_and_other_kinds_are_refused_and_stay() {
    let folder = scratch();
    let (target, link) = (folder.join("target"), folder.join("link"));
    fs::write(&target, "content").unwrap();
    symlink(&target, &link).unwrap();
    for (directories, path) in [
        (false, &*link),
        (false, Path::new("/dev/null")),
        (false, &folder),
        (true, &link),
        (true, &target),
    ] {
        for (info, refused) in refusals(directories, path) {
            let error = refused.unwrap_or_else(|| panic!("{}: {}", info.name, path.display()));
            assert_eq!(error.target, path.to_str().unwrap());
            assert!(!error.hint.is_empty());
        }
    }
    let missing = Path::new("/dev/fathom-no-such-device");
    for directories in [false, true] {
        for (info, refused) in refusals(directories, missing) {
            let creates = info.name_work().is_some_and(|names| !names.laid_out);
            assert_eq!(refused.is_some(), creates, "{}", info.name);
        }
    }
    assert!(link.is_symlink() && fs::read_to_string(&target).unwrap() == "content");
    fs::remove_dir_all(&folder).unwrap();
}
