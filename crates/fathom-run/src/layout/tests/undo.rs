//! Failures and stops, after which everything created is removed.

use super::*;

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
