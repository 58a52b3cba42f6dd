//! Options on files: names, layout, syncing and removal.

use std::sync::Arc;

use super::general::choice;
use super::read::{U31, narrow};
use super::row::{Row, ValueKind};
use crate::findings::Findings;
use crate::names::{in_directory, split_list};
use crate::plan::{Fallocate, Options};
use crate::problem::Problem;
use crate::reading;
use crate::url_passwords::no_passwords;

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "filename",
        "derived from `filename_format`",
        "Files, separated by colons; `\\:`: a colon in a name",
        "filename=/dev/nvme0n1",
        ValueKind::Special {
            form: "path[:path…]",
            read: filename,
        },
    )
    .different(
        "`-` (in fio standard input or output) is refused: a stream has no offsets; so is a \
         password in a URL",
    ),
    Row::new(
        "directory",
        "",
        "Directory of the files; colon-separated list: clones are distributed over it",
        "directory=/mnt/test",
        ValueKind::Special {
            form: "path[:path…]",
            read: directory,
        },
    ),
    Row::new(
        "filename_format",
        "$jobname.$jobnum.$filenum",
        "Name pattern of files when `filename` is not set",
        "filename_format=$jobname.$filenum",
        ValueKind::Special {
            form: "string (opt=bla)",
            read: filename_format,
        },
    ),
    Row::new(
        "nrfiles",
        "1",
        "Number of files `size` is divided over",
        "nrfiles=4",
        ValueKind::Int {
            min: 1,
            max: FILES_MAX,
            set: |o, v| o.nrfiles = narrow(v),
        },
    )
    .fio(0, FILES_MAX)
    .aliases(&["nr_files"])
    .stricter("flags 0, with which the job ends at once without an op")
    .different("more than 1048576 are refused"),
    Row::new(
        "fallocate",
        "native",
        "Preallocation when laying out files",
        "fallocate=none",
        ValueKind::Choice(&[
            choice("none", "none", |o| o.fallocate = Fallocate::None),
            choice(
                "native",
                "fallocate(2) where the file system supports it",
                |o| {
                    o.fallocate = Fallocate::Native;
                },
            ),
            choice("posix", "posix_fallocate(3)", |o| {
                o.fallocate = Fallocate::Posix
            }),
            choice("keep", "fallocate(2) with FALLOC_FL_KEEP_SIZE", |o| {
                o.fallocate = Fallocate::Keep
            }),
            choice("truncate", "ftruncate(2)", |o| {
                o.fallocate = Fallocate::Truncate
            }),
            choice("0", "same as `none`", |o| o.fallocate = Fallocate::None),
            choice("1", "same as `posix`", |o| o.fallocate = Fallocate::Posix),
        ]),
    ),
    Row::new(
        "fsync",
        "0",
        "Issue fsync(2) after every N writes; 0: never",
        "fsync=32",
        ValueKind::Int {
            min: 0,
            max: u32::MAX as u64,
            set: |o, v| o.fsync = narrow(v),
        },
    )
    .different(
        "one sync per N writes, as in fio 3.41; fio 3.33 makes one more after each read until the \
         next write, and none in `trimwrite`. With several ops in flight, fio's number depends on \
         completion timing. With several files, the last one written is synced; fio syncs the \
         next in turn",
    ),
    Row::new(
        "fdatasync",
        "0",
        "Issue fdatasync(2) after every N writes; 0: never",
        "fdatasync=32",
        ValueKind::Int {
            min: 0,
            max: u32::MAX as u64,
            set: |o, v| o.fdatasync = narrow(v),
        },
    )
    .different("as `fsync`; counted under `sync` in JSON, where fio counts short reads"),
    Row::new(
        "end_fsync",
        "0",
        "Issue fsync(2) at the end of the job",
        "end_fsync=1",
        ValueKind::Bool(|o, v| o.end_fsync = v),
    ),
    Row::new(
        "fsync_on_close",
        "0",
        "Issue fsync(2) before closing each file",
        "fsync_on_close=1",
        ValueKind::Bool(|o, v| o.fsync_on_close = v),
    ),
    Row::new(
        "sync",
        "none",
        "Open files for synchronous writes",
        "sync=dsync",
        ValueKind::Choice(&[
            choice("none", "no", |o| o.sync = 0),
            choice("0", "same as `none`", |o| o.sync = 0),
            choice("sync", "O_SYNC: data and all metadata", |o| o.sync = 1),
            choice("1", "same as `sync`", |o| o.sync = 1),
            choice(
                "dsync",
                "O_DSYNC: data and the metadata needed to read it",
                |o| o.sync = 2,
            ),
        ]),
    ),
    Row::new(
        "create_serialize",
        "1",
        "Lay out the files of one job at a time",
        "create_serialize=0",
        ValueKind::Bool(|o, v| o.create_serialize = v),
    )
    .different(
        "with 0 files are laid out in parallel, but all before the first job starts: layout is \
         all-or-nothing",
    ),
    Row::new(
        "create_fsync",
        "1",
        "Issue fsync(2) after laying out each file",
        "create_fsync=0",
        ValueKind::Bool(|o, v| o.create_fsync = v),
    ),
    Row::new(
        "create_on_open",
        "0",
        "Skip layout; create files when they are opened",
        "create_on_open=1",
        ValueKind::Bool(|o, v| o.create_on_open = v),
    )
    .different(
        "a job that only reads creates no files, and fails with ENOENT; fio creates empty ones, of \
         which its reads fail with EIO",
    ),
    Row::new(
        "create_only",
        "0",
        "Lay out files and exit",
        "create_only=1",
        ValueKind::Bool(|o, v| o.create_only = v),
    ),
    Row::new(
        "allow_file_create",
        "1",
        "Allow creation of missing files",
        "allow_file_create=0",
        ValueKind::Bool(|o, v| o.allow_file_create = v),
    )
    .stricter(
        "under the name `fathom` a plan with a missing file is refused; as `fio` the job fails \
         and the others run, with `error` ENOENT in JSON and a block in the text report, where fio \
         has 0 and none: the job did fail",
    ),
    Row::new(
        "allow_mounted_write",
        "0",
        "Allow writes to devices with mounted file systems",
        "allow_mounted_write=1",
        ValueKind::Bool(|o, v| o.allow_mounted_write = v),
    ),
    Row::new(
        "unlink",
        "0",
        "Remove the job's files at the end",
        "unlink=1",
        ValueKind::Bool(|o, v| o.unlink = v),
    ),
    Row::new(
        "overwrite",
        "0",
        "Lay out files before writing to them",
        "overwrite=1",
        ValueKind::Bool(|o, v| o.overwrite = v),
    ),
    Row::new(
        "invalidate",
        "1",
        "Drop the files from the page cache before the job",
        "invalidate=0",
        ValueKind::Bool(|o, v| o.invalidate = v),
    )
    .fio(0, U31)
    .stricter("flags numbers other than 0 and 1, which fio reads as 1"),
    Row::new(
        "noatime",
        "0",
        "Read files without updating their access time (O_NOATIME)",
        "noatime=1",
        ValueKind::Bool(|o, v| o.files.noatime = v),
    )
    .different(
        "Fathom extension; as in fio, block devices are always opened this way, where permitted",
    ),
    Row::new(
        "pre_read",
        "0",
        "Read the files into the page cache before the job",
        "pre_read=1",
        ValueKind::Bool(|o, v| o.pre_read = v),
    ),
];

/// Adds to files given before, in `[global]` or in the same section, as fio does. The files are in
/// the directory known at this point (the first of several): in a section `directory` is read
/// first, on a command line a later one has no effect.
fn filename(options: &mut Options, text: &str, findings: &mut Findings) -> Result<(), Problem> {
    let directory = options.directory.as_ref().and_then(|all| all.first());
    let new = match listed(text) {
        Ok(new) => new,
        Err(problem) => return no_file(options, problem, findings),
    };
    if new.iter().any(|name| name == "-") {
        let message = "`-` is standard input or output, and a stream has no offsets";
        let problem = Problem::new("stream-as-file", 0..text.len(), message);
        return Err(problem.fix("name a file or device; write `./-` for a file named `-`"));
    }
    no_passwords(&new, text.len())?;
    let new: Vec<_> = new
        .into_iter()
        .map(|name| in_directory(directory.map(String::as_str), name))
        .collect();
    let mut names = options.filename.take().unwrap_or_default();
    if !names.is_empty() && *names != new {
        findings.warn(
            Problem::new(
                "more-files",
                0..text.len(),
                format!(
                    "the job uses these files in addition to those given before (`{}`), as in fio",
                    some_of(&names)
                ),
            )
            .fix("list all files in one place"),
        );
    }
    // Copies the names only if another job has them too.
    Arc::make_mut(&mut names).extend(new);
    options.nrfiles = u32::try_from(names.len()).unwrap_or(u32::MAX);
    options.filename = Some(names);
    Ok(())
}

/// Leaves the files given before, or none: fio then runs the job without an op.
fn no_file(
    options: &mut Options,
    problem: Problem,
    findings: &mut Findings,
) -> Result<(), Problem> {
    if options.filename.is_some() {
        return findings.misread(problem, reading::NOTHING);
    }
    findings.misread(problem, "no files")?;
    options.nrfiles = 0;
    Ok(())
}

/// Joins the names, or the first of many.
fn some_of(names: &[String]) -> String {
    match names.get(..SHOWN_MAX) {
        Some(first) if names.len() > SHOWN_MAX => format!("{}:…", first.join(":")),
        _ => names.join(":"),
    }
}

fn directory(options: &mut Options, text: &str, _: &mut Findings) -> Result<(), Problem> {
    let names = listed(text)?;
    no_passwords(&names, text.len())?;
    options.directory = Some(names);
    Ok(())
}

fn filename_format(options: &mut Options, text: &str, _: &mut Findings) -> Result<(), Problem> {
    no_passwords(&[text], text.len())?;
    text.clone_into(&mut options.filename_format);
    Ok(())
}

fn listed(text: &str) -> Result<Vec<String>, Problem> {
    let names: Vec<_> = split_list(text);
    if names.is_empty() {
        return Err(
            Problem::new("no-value", 0..text.len(), "no file name between the colons")
                .fix("name a file, or remove the option"),
        );
    }
    Ok(names)
}

/// Number of names shown in a message.
const SHOWN_MAX: usize = 4;

/// Limit of files per job: each takes memory and a descriptor; more was not tested.
const FILES_MAX: u64 = 1 << 20;
