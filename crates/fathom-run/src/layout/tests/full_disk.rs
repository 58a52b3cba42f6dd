//! Layouts on a small file system of their own, which fills up.

use super::*;

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
