//! Files that a layout creates, extends or leaves alone.

use super::*;

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
