//! Values of options on files, memory and content.

use crate::world::{World, check, note, refuse};
use fathom_checksum::{CHECKSUMS, Checksum, HeaderLayout};
use fathom_job::{BlockSize, DedupeMode, FadviseHint, Fallocate, MemoryKind, ReadWrite, Verify};

/// A message shows a part of a long line: here from within the URL.
#[test]
fn passwords_are_not_shown_where_the_line_is_cut() {
    let user = "u".repeat(4100);
    let line = format!("--name=x --filename=iscsi://{user}%secret@h/t/1 --rw=red");
    let errors = World::default().parse(&line).unwrap_err();
    let text = errors.render("fathom", false);
    assert!(text.contains("%******@h/t/1 --rw=red"), "{text}");
    assert!(!text.contains("secret@"), "{text}");
}

#[test]
fn files() {
    check("--filename=a:b --nrfiles=1", |o| o.nrfiles == 1);
    check("--nrfiles=1 --filename=a:b", |o| o.nrfiles == 2);
    refuse("--filename=:", "no-value");
    refuse("--filename=a:-", "stream-as-file");
    for option in ["filename", "directory", "filename_format"] {
        let line = format!("--{option}=iscsi://me%pw@h/t/1");
        refuse(&line, "secret-in-name");
    }
    refuse("--description=nfs://me:pw@h/x", "secret-in-name");
    check("--filename=iscsi://me@h/t%3Ax/1", |o| o.nrfiles == 1);
    check("--directory=/a:/b", |o| {
        o.directory == Some(vec!["/a".into(), "/b".into()])
    });
    check("--filename_format=$jobnum", |o| {
        o.filename_format == "$jobnum"
    });
    check("--nr_files=4", |o| o.nrfiles == 4);
    for (word, mode) in [
        ("none", Fallocate::None),
        ("0", Fallocate::None),
        ("native", Fallocate::Native),
        ("posix", Fallocate::Posix),
        ("1", Fallocate::Posix),
        ("keep", Fallocate::Keep),
        ("truncate", Fallocate::Truncate),
    ] {
        check(&format!("--fallocate={word}"), |o| o.fallocate == mode);
    }
    check("--fsync=3 --fdatasync=4", |o| {
        (o.fsync, o.fdatasync) == (3, 4)
    });
    check("--end_fsync=1 --fsync_on_close=1", |o| {
        o.end_fsync && o.fsync_on_close
    });
    check("--sync=dsync", |o| o.sync == 2);
    check("--sync=1", |o| o.sync == 1);
    refuse("--sync=2", "bad-value");
    check("--create_serialize=0 --create_fsync=0", |o| {
        !o.create_serialize && !o.create_fsync
    });
    check("--create_on_open=1 --create_only=1", |o| {
        o.create_on_open && o.create_only
    });
    check("--allow_file_create=0", |o| !o.allow_file_create);
    check("--allow_mounted_write=1", |o| o.allow_mounted_write);
    check("--unlink=1 --overwrite=1", |o| o.unlink && o.overwrite);
    check("--invalidate=0 --pre_read=1", |o| {
        !o.invalidate && o.pre_read
    });
}

#[test]
fn content_and_verification() {
    check("--zero_buffers --refill_buffers", |o| {
        o.zero_buffers && o.refill_buffers
    });
    check("--scramble_buffers=0", |o| {
        o.scramble_buffers == Some(false)
    });
    check("--buffer_pattern=0xab", |o| {
        o.buffer_pattern == Some(vec![0xab]) && o.scramble_buffers == Some(false)
    });
    refuse("--buffer_pattern=abc", "bad-pattern");
    refuse("--buffer_pattern='missing'", "no-pattern-file");
    refuse("--buffer_pattern='missing", "bad-pattern");
    for name in CHECKSUMS.iter().flat_map(Checksum::names) {
        check(&format!("--verify={name} --do_verify=0"), |o| {
            matches!(o.verify, Verify::Checksum(row) if row.names().any(|own| own == name))
                && !o.do_verify
        });
    }
    check("--verify=pattern --verify_pattern=0xff", |o| {
        o.verify == Verify::Pattern && o.verify_pattern == Some(vec![0xff])
    });
    refuse("--verify=pattern", "no-pattern");
    refuse("--verify=pattern_hdr", "no-pattern");
    check("--verify_pattern=0xff", |o| {
        o.verify == Verify::PatternHeader
    });
    check("--verify=null --verify_pattern=0xff", |o| {
        o.verify == Verify::Null
    });
    check(
        "--verify=meta",
        |o| matches!(o.verify, Verify::Checksum(row) if row.bytes == 0),
    );
    refuse("--verify=murmur3", "bad-value");
    refuse("--verify=none", "bad-value");
    refuse("--verify=md5 --rw=write --bs=32", "bs-too-small");
    refuse("--verify=md5 --rw=write --bs=64", "bs-too-small");
    note(
        "--verify=md5 --rw=write --time_based --runtime=1",
        "no-verify-phase",
    );
    note("--verifysort=1", "ignored");
}

#[test]
fn verification_headers_have_their_places() {
    check("--verify_interval=512 --verify_offset=100", |o| {
        o.verification.interval == Some(512) && o.verification.header_offset == 100
    });
    check("--verify_pattern_interval=512", |o| {
        o.verification.pattern_interval == 512
    });
    check("--verify_header=fio-3.33", |o| {
        o.verification.layout == HeaderLayout::Fio3_33
    });
    refuse("--verify_header=48", "bad-value");
    check("--verify_fatal=1 --verify_dump=1", |o| {
        o.verification.is_fatal && o.verification.dumps
    });
    check("--verify_write_sequence=0 --verify_header_seed=0", |o| {
        !o.verification.checks_sequence && !o.verification.checks_seed
    });
    check(
        "--verify=md5 --verify_state_save=1 --verify_state_load=1",
        |o| o.verification.saves_state && o.verification.loads_state,
    );
    check("--verify_async=2 --verify_async_cpus=0-1", |o| {
        o.verify_threads == 2 && o.verify_cpus == Some(vec![0, 1])
    });
    refuse("--verify_async=257", "out-of-range");
    note("--experimental_verify=1", "ignored");
    refuse("--verify_interval=64", "out-of-range");
}

#[test]
fn a_job_that_only_verifies_reads_and_keeps_what_it_would_write() {
    for (words, rw) in [
        ("randwrite", ReadWrite::Write),
        ("rw", ReadWrite::Mixed),
        ("randtrimwrite", ReadWrite::TrimWrite),
    ] {
        check(&format!("--rw={words} --verify=md5 --verify_only"), |o| {
            o.rw == ReadWrite::Read && o.drawn_rw() == rw
        });
    }
    check("--rw=read --verify=md5 --verify_only", |o| {
        o.drawn_rw() == ReadWrite::Read && o.verification.dry_run.is_none()
    });
    let zones = "--zonemode=zbd --zonesize=1m --verify=md5 --verify_only";
    check(&format!("--rw=write --bs=4k,8k {zones}"), |o| {
        o.verification.dry_run.is_none() && o.block_sizes.read == BlockSize::Fixed(8192)
    });
    let refused = |words: &str| {
        let words = format!("{words} --verify=md5 --verify_only");
        refuse(&words, "verify-only-unknown");
    };
    refused("--rw=write --trim_percentage=9");
    refused("--rw=rw --rate=1m");
    refused("--rw=randrw --rate_iops=,100");
    refused("--rw=write --number_ios=9 --verify_backlog=2");
    refused("--rw=rw --zonemode=zbd --zonesize=1m");
    refused("--rw=randwrite --blockalign=512 --time_based --runtime=1 --verify_backlog=9");
    refused("--rw=write --file_append=1");
    refused("--rw=randrw --randrepeat=0");
    refused("--rw=randwrite --randrepeat=0 --norandommap");
    refused("--rw=randwrite --randrepeat=0 --number_ios=4");
    for words in [
        "randwrite --randrepeat=0",
        "randrw --randrepeat=0 --randseed=7",
    ] {
        check(&format!("--rw={words} --verify=md5 --verify_only"), |o| {
            o.verification.dry_run.is_some()
        });
    }
    refuse("--rw=trim --verify_only", "verify-only-trims");
    note("--rw=rw --verify_only", "nothing-to-verify");
    note(
        "--rw=write --verify=md5 --do_verify=0 --verify_only",
        "nothing-to-verify",
    );
}

#[test]
fn states_are_for_jobs_that_verify() {
    refuse("--rw=read --verify_state_load=1", "nothing-to-verify");
    check("--rw=read --verify=md5 --verify_state_load=1", |o| {
        o.verification.loads_state
    });
}

#[test]
fn content_that_compresses_and_repeats() {
    check("--buffer_compress_percentage=40", |o| {
        o.content.compress_percentage == Some(40) && o.content.compress_chunk == 512
    });
    check("--buffer_compress_chunk=4k", |o| {
        o.content.compress_chunk == 4096
    });
    check("--dedupe_percentage=30 --dedupe_mode=working_set", |o| {
        o.content.dedupe_percentage == Some(30) && o.content.dedupe_mode == DedupeMode::WorkingSet
    });
    refuse("--dedupe_percentage=101", "out-of-range");
    let set = "--dedupe_percentage=70 --dedupe_mode=working_set --dedupe_working_set_percentage";
    check(&format!("{set}=30"), |o| {
        o.content.dedupe_working_set_percentage == 30
    });
    refuse(&format!("{set}=31"), "contradiction");
    refuse("--buffer_compress_percentage=101", "out-of-range");
}

#[test]
fn memory_and_files() {
    check("--mem=malloc", |o| o.memory.kind == MemoryKind::Private);
    check("--iomem=mmapshared:/tmp/x:y --mem_align=512", |o| {
        o.memory.file.as_deref() == Some("/tmp/x:y") && o.memory.align == 512
    });
    check("--mem=shmhuge --hugepage-size=1g", |o| {
        (o.memory.kind, o.memory.hugepage_size) == (MemoryKind::SharedHuge, 1 << 30)
    });
    refuse("--mem=shm:x", "bad-value");
    refuse("--mem=mmap:", "bad-value");
    refuse("--mem=cudamalloc", "not-yet");
    refuse("--hugepage-size=3m", "bad-page-size");
    check("--opendir=/tmp", |o| {
        o.files.opendir.as_deref() == Some("/tmp")
    });
    check("--fadvise_hint=noreuse --write_hint=long", |o| {
        (o.files.fadvise_hint, o.files.write_hint) == (FadviseHint::NoReuse, 4)
    });
    check("--offset_align=1m --file_append=1", |o| {
        (o.files.offset_align, o.files.append) == (1 << 20, true)
    });
    check("--fill_fs=1 --filetype=file --unique_filename=0", |o| {
        o.fill_device
    });
    check("--serialize_overlap=1 --rate_ignore_thinktime=1", |o| {
        o.serialize_overlap && o.rate_ignore_thinktime
    });
    refuse("--write_hint=brief", "bad-value");
}

#[test]
fn a_pattern_from_a_file_is_read_however_long_it_is() {
    let world = World::default()
        .with_file("p", "abc")
        .with_file("long", vec![7; 600]);
    let pattern = |value: &str| {
        let plan = world.plan(&format!("--name=x --buffer_pattern={value}"));
        plan.jobs[0]
            .options
            .buffer_pattern
            .clone()
            .expect("a pattern")
    };
    assert_eq!(pattern("'p'\"xy\"'p'"), b"abcxyabc");
    assert_eq!(pattern("'long'"), [7; 600]);
    assert_eq!(pattern("'long'1").len(), 601);
    let plan = world.plan("--name=x --verify=pattern --verify_pattern='p'1");
    let verified = plan.jobs[0].options.verify_pattern.as_deref();
    assert_eq!(verified, Some(b"abc\x01".as_slice()));
}
