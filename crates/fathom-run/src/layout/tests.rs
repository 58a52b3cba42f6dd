//! Layouts in a scratch directory that is removed when the test ends.

use std::cell::Cell;
use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fathom_core::Errno;
use fathom_setup::ProblemKind;

use super::*;

/// Scratch directory of one test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("fathom-run-layout-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Returns a job with these files: name, length, `written`.
    fn job(&self, files: &[(&str, u64, bool)]) -> LayoutJob {
        let files = files.iter().map(|&(name, length, written)| LayoutFile {
            path: self.0.join(name),
            length,
            written,
        });
        LayoutJob {
            name: "t".into(),
            files: files.collect(),
            content: FileContent::Random { seed: 1 },
            fallocate: Fallocate::Native,
            fsync: true,
            may_create: true,
            keep_cached: false,
            in_parallel: false,
        }
    }

    /// Returns parallel jobs with one file each.
    fn beside(&self, files: &[&str], length: u64) -> Vec<LayoutJob> {
        let each = files.iter().map(|name| LayoutJob {
            in_parallel: true,
            ..self.job(&[(name, length, true)])
        });
        each.collect()
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.0.join(name), bytes).unwrap();
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.join(name)).unwrap()
    }

    /// Returns names and lengths of the files.
    fn list(&self) -> Vec<(String, u64)> {
        let entries = fs::read_dir(&self.0).unwrap().map(Result::unwrap);
        let mut list: Vec<_> = entries
            .map(|entry| {
                let name = entry.file_name().into_string().unwrap();
                (name, entry.metadata().unwrap().len())
            })
            .collect();
        list.sort();
        list
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _gone_is_fine = fs::remove_dir_all(&self.0);
    }
}

fn options() -> LayoutOptions<'static> {
    LayoutOptions {
        clock: Clock::monotonic(),
        stop: &|| false,
    }
}

fn lay(jobs: &[LayoutJob]) -> Result<LayoutReport, LayoutError> {
    lay_out(jobs, &options(), &mut |_| {})
}

/// File sink that fails with `errno` after `room` bytes.
struct Full {
    file: FileSink,
    room: u64,
    errno: i32,
}

impl LayoutSink for Full {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        if self.room == 0 {
            return Err(io::Error::from_raw_os_error(self.errno));
        }
        let room = usize::try_from(self.room).unwrap();
        let count = self
            .file
            .write_at(&bytes[..bytes.len().min(room)], offset)?;
        self.room -= u64::try_from(count).unwrap();
        Ok(count)
    }

    fn send(&mut self, range: &Range<u64>) -> io::Result<()> {
        self.file.send(range)
    }

    fn finish_writeback(&mut self, range: &Range<u64>) -> io::Result<()> {
        self.file.finish_writeback(range)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }
}

/// Lays out files that each fail after `room` bytes.
fn lay_failing(jobs: &[LayoutJob], room: u64, errno: i32) -> LayoutError {
    let open = move |file, keep_cached| -> Box<dyn LayoutSink> {
        let file = FileSink { file, keep_cached };
        Box::new(Full { file, room, errno })
    };
    lay_out_through(jobs, &options(), &mut |_| {}, &open).unwrap_err()
}

#[test]
fn a_missing_file_is_made_and_written() {
    let scratch = Scratch::new("missing");
    let length = (3 << 20) + 77;
    let report = lay(&[scratch.job(&[("a", length, true)])]).unwrap();
    assert_eq!(report.written_bytes, length);
    assert_eq!(report.created().collect::<Vec<_>>(), [scratch.0.join("a")]);
    let data = scratch.read("a");
    assert_eq!(data.len(), usize::try_from(length).unwrap());
    assert!(
        data.chunks_exact(512)
            .all(|block| block.iter().any(|&byte| byte != 0))
    );
    let mode = fs::metadata(scratch.0.join("a"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o133, 0);
}

#[test]
fn a_short_file_keeps_what_it_holds() {
    let scratch = Scratch::new("short");
    scratch.write("a", b"precious");
    let report = lay(&[scratch.job(&[("a", 2 << 20, true)])]).unwrap();
    assert_eq!(report.written_bytes, (2 << 20) - 8);
    assert_eq!(report.created().count(), 0);
    let data = scratch.read("a");
    assert_eq!(data.len(), 2 << 20);
    assert_eq!(&data[..8], b"precious");
    assert!(data[8..40].iter().any(|&byte| byte != 0));
}

#[test]
fn a_file_that_is_long_enough_is_left_alone() {
    let scratch = Scratch::new("long");
    scratch.write("a", &[7; 5000]);
    let mut told = 0;
    let job = scratch.job(&[("a", 4096, true)]);
    lay_out(&[job], &options(), &mut |_| told += 1).unwrap();
    assert_eq!(scratch.read("a"), [7; 5000]);
    assert_eq!(told, 0);
}

#[test]
fn a_file_that_is_only_written_gets_room_by_its_mode() {
    for (mode, length, allocated) in [
        (Fallocate::None, 0, false),
        (Fallocate::Truncate, 1 << 20, false),
        (Fallocate::Native, 1 << 20, true),
        (Fallocate::Posix, 1 << 20, true),
        (Fallocate::Keep, 0, true),
    ] {
        let scratch = Scratch::new(&format!("room-{mode:?}"));
        let mut job = scratch.job(&[("a", 1 << 20, false)]);
        job.fallocate = mode;
        match lay(&[job]) {
            Ok(report) => assert_eq!(report.written_bytes, 0, "{mode:?}"),
            Err(error) => {
                assert_eq!(mode, Fallocate::Keep, "{error}");
                println!("skipped: fallocate=keep: {error}");
                continue;
            }
        }
        let metadata = fs::metadata(scratch.0.join("a")).unwrap();
        assert_eq!(metadata.len(), length, "{mode:?}");
        assert_eq!(metadata.blocks() * 512 >= 1 << 20, allocated, "{mode:?}");
    }
}

#[test]
fn a_short_file_that_is_only_written_keeps_what_it_holds() {
    for mode in [
        Fallocate::None,
        Fallocate::Truncate,
        Fallocate::Native,
        Fallocate::Posix,
    ] {
        let scratch = Scratch::new(&format!("grown-{mode:?}"));
        scratch.write("a", b"precious");
        let mut job = scratch.job(&[("a", 1 << 20, false)]);
        job.fallocate = mode;
        lay(&[job]).unwrap();
        assert_eq!(&scratch.read("a")[..8], b"precious", "{mode:?}");
    }
}

#[test]
fn a_later_job_finds_what_an_earlier_one_has_left() {
    let scratch = Scratch::new("later");
    let mut writer = scratch.job(&[("a", 1 << 20, false)]);
    let reader = scratch.job(&[("a", 1 << 20, true), ("b", 4096, true)]);
    let report = lay(&[writer.clone(), reader.clone()]).unwrap();
    assert_eq!(report.written_bytes, 4096);
    assert!(report.undo().is_empty());
    writer.fallocate = Fallocate::None;
    let report = lay(&[writer, reader]).unwrap();
    assert_eq!(report.written_bytes, (1 << 20) + 4096);
}

#[test]
fn a_file_named_twice_is_laid_out_once() {
    let scratch = Scratch::new("twice");
    let report = lay(&[scratch.job(&[("a", 8192, true), ("a", 8192, true)])]).unwrap();
    assert_eq!(report.written_bytes, 8192);
    assert_eq!(report.created().count(), 1);
}

#[test]
fn missing_folders_are_made_and_taken_away_again() {
    let scratch = Scratch::new("folders");
    let report = lay(&[scratch.job(&[("x/y/a", 4096, true), ("x/b", 4096, true)])]).unwrap();
    for folder in ["x", "x/y"] {
        let mode = fs::metadata(scratch.0.join(folder))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, 0o700, "{folder}");
    }
    assert!(report.undo().is_empty());
    assert_eq!(scratch.list(), []);
}

#[test]
fn a_file_that_may_not_be_made_is_refused_before_anything_is_made() {
    let scratch = Scratch::new("forbidden");
    let mut second = scratch.job(&[("b", 4096, true)]);
    second.may_create = false;
    let error = lay(&[scratch.job(&[("a", 4096, true)]), second]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("disallowed by allow_file_create=0"),
        "{error}"
    );
    assert_eq!(scratch.list(), []);
}

#[test]
fn what_obviously_does_not_fit_is_refused_before_anything_is_made() {
    let scratch = Scratch::new("obvious");
    let job = scratch.job(&[("a", 4096, true), ("b", 1 << 60, true)]);
    let error = lay(&[job]).unwrap_err();
    let LayoutErrorKind::NoRoom {
        needed_bytes,
        missing_bytes,
        begun: false,
    } = error.kind
    else {
        panic!("{error}");
    };
    assert_eq!(needed_bytes, (1 << 60) + 4096);
    let available = files::space(&scratch.0).unwrap().available_bytes;
    // Other processes write to the same file system meanwhile.
    assert!((needed_bytes - missing_bytes).abs_diff(available) < 8 << 30);
    assert_eq!(scratch.list(), []);
}

#[test]
fn a_disk_that_fills_up_leaves_everything_as_it_was() {
    let scratch = Scratch::new("full");
    scratch.write("old", b"precious");
    let files = [("old", 1 << 20, true), ("x/new", 4 << 20, true)];
    let mut job = scratch.job(&files);
    for fallocate in [Fallocate::Native, Fallocate::None] {
        job.fallocate = fallocate;
        let error = lay_failing(std::slice::from_ref(&job), 2 << 20, Errno::ENOSPC.get());
        assert_eq!(error.path, scratch.0.join("x/new"));
        assert_eq!(error.problem_kind(), ProblemKind::NoRoom);
        assert!(
            error.to_string().contains("2.0 MiB needed, 2.0 MiB short"),
            "{error}"
        );
        assert!(
            error
                .to_string()
                .ends_with("files laid out so far were removed"),
            "{error}"
        );
        assert_eq!(scratch.list(), [("old".to_owned(), 8)]);
        assert_eq!(scratch.read("old"), b"precious");
    }
}

#[test]
fn files_laid_out_side_by_side_are_those_laid_out_in_turn() {
    let scratch = Scratch::new("beside");
    let jobs = scratch.beside(&["a", "d/b", "d/e/c", "d/e/c"], 3 << 20);
    let report = lay(&jobs).unwrap();
    assert_eq!(report.written_bytes, 9 << 20);
    assert_eq!(report.created().count(), 3);
    let side_by_side = ["a", "d/b", "d/e/c"].map(|name| scratch.read(name));
    assert_eq!(report.undo(), []);
    assert_eq!(scratch.list(), []);
    let in_turn = jobs.into_iter().map(|job| LayoutJob {
        in_parallel: false,
        ..job
    });
    lay(&in_turn.collect::<Vec<_>>()).unwrap();
    let in_turn = ["a", "d/b", "d/e/c"].map(|name| scratch.read(name));
    assert!(side_by_side == in_turn);
}

#[test]
fn what_was_laid_out_side_by_side_is_unmade_when_one_fails() {
    let scratch = Scratch::new("beside-failing");
    scratch.write("kept", b"what was there");
    let jobs = scratch.beside(&["d/a", "d/e/b", "kept", "f"], 3 << 20);
    let error = lay_failing(&jobs, 1 << 20, 5);
    assert!(
        matches!(error.kind, LayoutErrorKind::System { .. }),
        "{error}"
    );
    assert_eq!(error.left_behind, []);
    assert_eq!(scratch.list(), [("kept".to_owned(), 14)]);
    assert_eq!(scratch.read("kept"), b"what was there");
}

#[test]
fn a_stop_ends_all_that_are_laid_out_side_by_side() {
    let scratch = Scratch::new("beside-stopped");
    let stopped = LayoutOptions {
        stop: &|| true,
        ..options()
    };
    let jobs = scratch.beside(&["a", "b"], 1 << 30);
    let error = lay_out(&jobs, &stopped, &mut |_| {}).unwrap_err();
    assert!(matches!(error.kind, LayoutErrorKind::Interrupted));
    assert_eq!(scratch.list(), []);
}

#[test]
fn another_failure_is_told_as_the_system_tells_it() {
    let scratch = Scratch::new("eio");
    let error = lay_failing(
        &[scratch.job(&[("a", 1 << 20, true)])],
        4096,
        Errno::EIO.get(),
    );
    assert_eq!(error.errno(), Some(Errno::EIO));
    assert!(
        error.to_string().contains("/a: write: Input/output error"),
        "{error}"
    );
    assert_eq!(scratch.list(), []);
}

#[test]
fn a_stop_leaves_everything_as_it_was() {
    let scratch = Scratch::new("stop");
    scratch.write("old", b"precious");
    let asked = Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 5
    };
    let options = LayoutOptions {
        stop: &stop,
        ..options()
    };
    let job = scratch.job(&[("a", 1 << 20, true), ("old", 64 << 20, true)]);
    let error = lay_out(&[job], &options, &mut |_| {}).unwrap_err();
    assert!(matches!(error.kind, LayoutErrorKind::Interrupted));
    assert_eq!(error.path, scratch.0.join("old"));
    assert_eq!(scratch.list(), [("old".to_owned(), 8)]);
}

#[test]
fn jobs_are_announced_with_the_files_that_are_missing() {
    let scratch = Scratch::new("announced");
    scratch.write("a", &[0; 4096]);
    let job = scratch.job(&[("a", 4096, true), ("b", 8192, true), ("c", 8192, false)]);
    let mut told = Vec::new();
    lay_out(&[job], &options(), &mut |event| {
        if let LayoutEvent::Starting { job, files, bytes } = event {
            told.push((job.to_string(), *files, *bytes));
        }
    })
    .unwrap();
    assert_eq!(told, [("t".to_owned(), 2, 16384)]);
}

#[test]
fn the_message_is_fios() {
    let one = announcement("t", 1, 256 << 20);
    assert_eq!(one, "t: Laying out IO file (1 file / 256MiB)");
    let some = announcement("t", 3, (4 << 20) - 1);
    assert_eq!(some, "t: Laying out IO files (3 files / total 3MiB)");
}

#[test]
fn devices_are_left_alone_and_folders_refused() {
    let scratch = Scratch::new("kinds");
    let mut job = scratch.job(&[]);
    for (path, fine) in [("/dev/null", true), ("/tmp", false)] {
        job.files = vec![LayoutFile {
            path: path.into(),
            length: 4096,
            written: true,
        }];
        assert_eq!(lay(std::slice::from_ref(&job)).is_ok(), fine, "{path}");
    }
}

#[test]
fn files_of_one_seed_differ() {
    let scratch = Scratch::new("differ");
    lay(&[scratch.job(&[("a", 4096, true), ("b", 4096, true)])]).unwrap();
    assert!(scratch.read("a") != scratch.read("b"));
}

#[test]
fn a_missing_file_is_made_where_its_link_leads() {
    let scratch = Scratch::new("link");
    fs::create_dir(scratch.0.join("below")).unwrap();
    symlink("below/target", scratch.0.join("a")).unwrap();
    for written in [true, false] {
        let report = lay(&[scratch.job(&[("a", 4096, written)])]).unwrap();
        assert_eq!(scratch.read("below/target").len(), 4096);
        assert!(report.undo().is_empty());
        assert!(!scratch.0.join("below/target").exists());
        assert!(scratch.0.join("a").is_symlink());
    }
    // No directory is created for a link.
    symlink("nowhere/target", scratch.0.join("b")).unwrap();
    let error = lay(&[scratch.job(&[("b", 4096, true)])]).unwrap_err();
    assert_eq!(error.errno(), Some(Errno::ENOENT));
    assert!(!scratch.0.join("nowhere").exists());
}

#[test]
fn runs_that_begin_at_the_same_time_share_their_new_file() {
    let scratch = Scratch::new("race");
    let job = scratch.job(&[("x/y/a", 256 << 10, true), ("x/b", 4096, false)]);
    for round in 0..30 {
        std::thread::scope(|scope| {
            let runs = [(); 4].map(|()| scope.spawn(|| lay(std::slice::from_ref(&job)).map(drop)));
            for run in runs {
                run.join()
                    .unwrap()
                    .unwrap_or_else(|error| panic!("round {round}: {error}"));
            }
        });
        let data = scratch.read("x/y/a");
        assert_eq!(data.len(), 256 << 10);
        assert!(
            data.chunks(512)
                .all(|block| block.iter().any(|&byte| byte != 0))
        );
        assert_eq!(scratch.read("x/b").len(), 4096);
        fs::remove_dir_all(scratch.0.join("x")).unwrap();
    }
}

#[test]
fn a_file_of_several_jobs_is_undone_as_one() {
    let scratch = Scratch::new("twice-undone");
    scratch.write("old", b"precious");
    symlink("old", scratch.0.join("again")).unwrap();
    let jobs = [
        scratch.job(&[("new", 4096, true), ("old", 4096, false)]),
        scratch.job(&[("new", 8192, true), ("again", 1 << 20, true)]),
        scratch.job(&[("new", 1 << 20, false)]),
    ];
    let report = lay(&jobs).unwrap();
    assert_eq!(report.created().count(), 1);
    assert_eq!(report.undo(), []);
    assert_eq!(scratch.read("old"), b"precious");
    assert!(!scratch.0.join("new").exists());
}

/// Lays out a new file and extends an old one, applies `meanwhile` to both, and undoes the layout.
/// Returns whether the new file remains, the length of the other, and the files reported as left.
fn undone_after(name: &str, meanwhile: impl Fn(&Path)) -> (bool, u64, Vec<LeftBehind>) {
    let scratch = Scratch::new(name);
    scratch.write("old", b"precious");
    let report = lay(&[scratch.job(&[("new", 8192, true), ("old", 8192, true)])]).unwrap();
    meanwhile(&scratch.0.join("new"));
    meanwhile(&scratch.0.join("old"));
    let left = report.undo();
    let new = scratch.0.join("new").exists();
    (new, scratch.read("old").len() as u64, left)
}

#[test]
fn what_others_use_is_not_undone() {
    type Use<'a> = (&'a str, &'a dyn Fn(&Path));
    let held = Mutex::new(Vec::new());
    let long_ago = fs::FileTimes::new().set_modified(std::time::UNIX_EPOCH);
    let open = |path: &Path| fs::OpenOptions::new().write(true).open(path).unwrap();
    let cases: [Use<'_>; 3] = [
        ("read", &|path| {
            held.lock().unwrap().push(File::open(path).unwrap())
        }),
        ("grown", &|path| open(path).set_len(10_000).unwrap()),
        // A write within one tick of the file system's clock would go unnoticed.
        ("written", &|path| open(path).set_times(long_ago).unwrap()),
    ];
    for (what, meanwhile) in cases {
        let (new, old, left) = undone_after(what, meanwhile);
        if left.is_empty() && what != "grown" {
            println!("skipped: {what}: this file system grants no leases");
            continue;
        }
        assert!(new && old >= 8192, "{what}: {new} {old}");
        assert!(left.iter().all(|left| left.in_use), "{what}: {left:?}");
        assert_eq!(left.len(), 2, "{what}: {left:?}");
    }
}

#[test]
fn a_file_that_took_the_name_is_not_undone() {
    let replace = |path: &Path| {
        let other = path.with_extension("other");
        fs::write(&other, [1; 9000]).unwrap();
        fs::rename(&other, path).unwrap();
    };
    assert_eq!(undone_after("replaced", replace), (true, 9000, Vec::new()));
}

#[test]
fn nothing_is_laid_out_on_interfaces_to_the_kernel() {
    let scratch = Scratch::new("interface");
    symlink("/proc/self/task", scratch.0.join("link")).unwrap();
    for (path, file_system) in [
        (Path::new("/proc/self/oom_score_adj"), "procfs"),
        (Path::new("/proc/self/no/such/file"), "procfs"),
        (&scratch.0.join("link/new"), "procfs"),
        (Path::new("/sys/kernel/fathom-test/new"), "sysfs"),
    ] {
        for written in [true, false] {
            let mut job = scratch.job(&[("first", 4096, true)]);
            job.files.push(LayoutFile {
                path: path.into(),
                length: 4096,
                written,
            });
            let error = lay(&[job]).unwrap_err();
            assert_eq!(error.problem_kind(), ProblemKind::KernelInterface);
            assert!(error.to_string().contains(file_system), "{error}");
            assert!(!scratch.0.join("first").exists());
        }
    }
}

#[test]
fn more_than_a_file_may_hold_is_no_matter_to_a_job_that_writes_itself() {
    let scratch = Scratch::new("too-large");
    scratch.write("old", b"precious");
    for fallocate in [Fallocate::Native, Fallocate::Posix] {
        let mut job = scratch.job(&[("old", 1 << 62, false), ("new", 1 << 62, false)]);
        job.fallocate = fallocate;
        let report = lay(&[job]).unwrap();
        assert_eq!(scratch.read("old"), b"precious");
        assert_eq!(scratch.read("new"), b"");
        assert!(report.undo().is_empty());
    }
    for fallocate in [Fallocate::Keep, Fallocate::Truncate] {
        let mut job = scratch.job(&[("new", 1 << 62, false)]);
        job.fallocate = fallocate;
        let error = lay(&[job]).unwrap_err();
        assert!(error.hint().contains("size"), "{error}");
        assert!(!scratch.0.join("new").exists());
    }
}

/// File system of 8 MiB; needs the right to mount.
///
/// Serialised: a forked child holds copies of all open files until it execs, so a `mount` started
/// by a concurrent test would keep the blocks of a removed file allocated.
struct Small(
    Scratch,
    #[expect(dead_code, reason = "held")] MutexGuard<'static, ()>,
);

impl Small {
    fn new(name: &str) -> Option<Self> {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let scratch = Scratch::new(name);
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=8m", "fathom-test"])
            .arg(&scratch.0)
            .output();
        mount
            .is_ok_and(|output| output.status.success())
            .then_some(Self(scratch, alone))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _told_by_the_leftover = Command::new("umount").arg(&self.0.0).status();
    }
}

#[test]
fn a_small_file_system_fills_up_and_is_empty_again() {
    let Some(small) = Small::new("small") else {
        println!("skipped: a tmpfs cannot be mounted");
        return;
    };
    let scratch = &small.0;
    scratch.write("old", b"precious");
    let mut job = scratch.job(&[("old", 2 << 20, true), ("new", 12 << 20, true)]);
    let error = lay(std::slice::from_ref(&job)).unwrap_err();
    assert!(
        error.to_string().ends_with("nothing was written"),
        "{error}"
    );
    // Patterns are not counted against the free space.
    job.content = FileContent::Pattern(b"x".to_vec());
    for fallocate in [Fallocate::Native, Fallocate::None] {
        job.fallocate = fallocate;
        let error = lay(std::slice::from_ref(&job)).unwrap_err();
        let LayoutErrorKind::NoRoom {
            missing_bytes,
            begun: true,
            ..
        } = error.kind
        else {
            panic!("{error}");
        };
        // 14 MiB into 8 MiB, minus one page for the old file and one for the directory.
        assert!(
            missing_bytes.abs_diff(6 << 20) <= 64 << 10,
            "{fallocate:?}: {missing_bytes}"
        );
        assert_eq!(scratch.list(), [("old".to_owned(), 8)]);
        assert_eq!(scratch.read("old"), b"precious");
    }
    assert!(files::space(&scratch.0).unwrap().available_bytes >= (8 << 20) - (64 << 10));
}

#[test]
fn a_write_job_too_large_for_its_disk_begins_all_the_same() {
    let Some(small) = Small::new("begins") else {
        println!("skipped: a tmpfs cannot be mounted");
        return;
    };
    let mut job = small.0.job(&[("a", 64 << 20, false)]);
    for fallocate in [Fallocate::Native, Fallocate::Posix] {
        job.fallocate = fallocate;
        let report = lay(std::slice::from_ref(&job)).unwrap();
        assert_eq!(report.notes.len(), 1, "{fallocate:?}");
        assert_eq!(small.0.list(), [("a".to_owned(), 0)]);
        assert!(report.undo().is_empty());
    }
    job.fallocate = Fallocate::Keep;
    let error = lay(std::slice::from_ref(&job)).unwrap_err();
    assert_eq!(error.problem_kind(), ProblemKind::NoRoom);
    assert_eq!(small.0.list(), []);
}
