//! Files and sizes that are refused before anything is created.

use super::*;

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
    let refused = [Fallocate::Keep, Fallocate::Truncate];
    for (fallocate, length) in refused
        .into_iter()
        .flat_map(|how| [(how, 1 << 62), (how, 1 << 63)])
    {
        let mut job = scratch.job(&[("new", length, false)]);
        job.fallocate = fallocate;
        let error = lay(&[job]).unwrap_err();
        assert!(error.hint().contains("size"), "{error}");
        assert!(!scratch.0.join("new").exists());
    }
}
