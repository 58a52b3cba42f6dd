//! Which files, how they are laid out, and what is done to them besides reading and writing.

use super::general::choice;
use super::read::narrow;
use super::row::{Kind, Row};
use crate::findings::Findings;
use crate::names::{in_directory, split_list};
use crate::plan::{Fallocate, Options};
use crate::problem::Problem;

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "filename",
        "from `filename_format`",
        "The files, with colons between them; `\\:` is a colon in a name",
        "filename=/dev/nvme0n1",
        Kind::Special {
            form: "path[:path…]",
            read: filename,
        },
    )
    .different("`-` is refused: in fio it is standard input or output, which has no offsets"),
    Row::new(
        "directory",
        "",
        "What file names after it begin with; clones take turns through a list with colons",
        "directory=/mnt/test",
        Kind::Special {
            form: "path[:path…]",
            read: directory,
        },
    ),
    Row::new(
        "filename_format",
        "$jobname.$jobnum.$filenum",
        "How files without a name are called",
        "filename_format=$jobname.$filenum",
        Kind::Text(|o, text| o.filename_format = text.to_owned()),
    ),
    Row::new(
        "nrfiles",
        "1",
        "Over how many files the job's size is spread",
        "nrfiles=4",
        Kind::Int {
            min: 1,
            max: FILES_MAX,
            set: |o, v| o.nrfiles = narrow(v),
        },
    )
    .fio(0, FILES_MAX)
    .aliases(&["nr_files"])
    .different("0, with which fio runs nothing, and more than 1048576 are refused"),
    Row::new(
        "fallocate",
        "native",
        "How space is reserved when a file is laid out",
        "fallocate=none",
        Kind::Choice(&[
            choice("none", "not at all", |o| o.fallocate = Fallocate::None),
            choice("native", "fallocate(2) where the filesystem can", |o| {
                o.fallocate = Fallocate::Native;
            }),
            choice("posix", "posix_fallocate(3)", |o| {
                o.fallocate = Fallocate::Posix
            }),
            choice("keep", "fallocate(2), keeping the size", |o| {
                o.fallocate = Fallocate::Keep
            }),
            choice("truncate", "ftruncate(2)", |o| {
                o.fallocate = Fallocate::Truncate
            }),
            choice("0", "as `none`", |o| o.fallocate = Fallocate::None),
            choice("1", "as `posix`", |o| o.fallocate = Fallocate::Posix),
        ]),
    ),
    Row::new(
        "fsync",
        "0",
        "fsync(2) after so many writes",
        "fsync=32",
        Kind::Int {
            min: 0,
            max: u32::MAX as u64,
            set: |o, v| o.fsync = narrow(v),
        },
    )
    .different(
        "with ops in flight exactly one for so many writes, where fio's number depends on when \
         they complete; of several files the one last written is synced, in fio the next in turn",
    ),
    Row::new(
        "fdatasync",
        "0",
        "fdatasync(2) after so many writes",
        "fdatasync=32",
        Kind::Int {
            min: 0,
            max: u32::MAX as u64,
            set: |o, v| o.fdatasync = narrow(v),
        },
    )
    .different("as `fsync`; counted in the JSON's `sync`, in fio among the reads' short transfers"),
    Row::new(
        "end_fsync",
        "0",
        "fsync(2) at the job's end",
        "end_fsync=1",
        Kind::Bool(|o, v| o.end_fsync = v),
    ),
    Row::new(
        "fsync_on_close",
        "0",
        "fsync(2) before a file is closed",
        "fsync_on_close=1",
        Kind::Bool(|o, v| o.fsync_on_close = v),
    ),
    Row::new(
        "sync",
        "none",
        "Open files so that every write is durable at once",
        "sync=dsync",
        Kind::Choice(&[
            choice("none", "no", |o| o.sync = 0),
            choice("0", "as `none`", |o| o.sync = 0),
            choice("sync", "O_SYNC: data and all metadata", |o| o.sync = 1),
            choice("1", "as `sync`", |o| o.sync = 1),
            choice(
                "dsync",
                "O_DSYNC: data and what is needed to read it",
                |o| o.sync = 2,
            ),
        ]),
    ),
    Row::new(
        "create_serialize",
        "1",
        "Lay out the files of one job after the other",
        "create_serialize=0",
        Kind::Bool(|o, v| o.create_serialize = v),
    )
    .different(
        "with 0 the jobs' files are laid out at the same time, but all before the first job \
         starts, so that all are laid out or none",
    ),
    Row::new(
        "create_fsync",
        "1",
        "fsync(2) files after laying them out",
        "create_fsync=0",
        Kind::Bool(|o, v| o.create_fsync = v),
    ),
    Row::new(
        "create_on_open",
        "0",
        "Do not lay files out: create them when they are opened",
        "create_on_open=1",
        Kind::Bool(|o, v| o.create_on_open = v),
    ),
    Row::new(
        "create_only",
        "0",
        "Lay files out and stop",
        "create_only=1",
        Kind::Bool(|o, v| o.create_only = v),
    ),
    Row::new(
        "allow_file_create",
        "1",
        "Whether files that are missing may be made",
        "allow_file_create=0",
        Kind::Bool(|o, v| o.allow_file_create = v),
    )
    .stricter(
        "as `fathom` a plan whose file is missing is refused; as `fio` the job fails and the \
         others run, and its `error` in JSON is ENOENT, where fio's is 0",
    ),
    Row::new(
        "allow_mounted_write",
        "0",
        "Whether devices with mounted filesystems may be written to",
        "allow_mounted_write=1",
        Kind::Bool(|o, v| o.allow_mounted_write = v),
    ),
    Row::new(
        "unlink",
        "0",
        "Remove the files at the end",
        "unlink=1",
        Kind::Bool(|o, v| o.unlink = v),
    ),
    Row::new(
        "overwrite",
        "0",
        "Lay files out with data before they are written to",
        "overwrite=1",
        Kind::Bool(|o, v| o.overwrite = v),
    ),
    Row::new(
        "invalidate",
        "1",
        "Drop the files' pages from the page cache first",
        "invalidate=0",
        Kind::Bool(|o, v| o.invalidate = v),
    ),
    Row::new(
        "pre_read",
        "0",
        "Read the files into memory first",
        "pre_read=1",
        Kind::Bool(|o, v| o.pre_read = v),
    ),
];

/// Adds to the files that are there, from `[global]` or from the same section, as fio does.
/// The files lie in the directory that is known by now (the first of several): in a section that
/// is read first, on a command line a `directory` that follows is too late.
fn filename(options: &mut Options, text: &str, findings: &mut Findings) -> Result<(), Problem> {
    let directory = options.directory.as_ref().and_then(|all| all.first());
    let new = listed(text)?;
    if new.iter().any(|name| name == "-") {
        let message = "`-` is standard input or output, which has no offsets";
        let problem = Problem::new("stream-as-file", 0..text.len(), message);
        return Err(problem.fix("name a file or a device; `./-` is a file of that name"));
    }
    let new: Vec<_> = new
        .into_iter()
        .map(|name| in_directory(directory.map(String::as_str), name))
        .collect();
    let mut names = options.filename.take().unwrap_or_default();
    if !names.is_empty() && names != new {
        findings.warn(
            Problem::new(
                "more-files",
                0..text.len(),
                format!(
                    "the job works on these files and on those given before (`{}`), as in fio",
                    some_of(&names)
                ),
            )
            .fix("name the files in one place"),
        );
    }
    names.extend(new);
    options.nrfiles = u32::try_from(names.len()).unwrap_or(u32::MAX);
    options.filename = Some(names);
    Ok(())
}

/// The names, or the first of many.
fn some_of(names: &[String]) -> String {
    match names.get(..SHOWN_MAX) {
        Some(first) if names.len() > SHOWN_MAX => format!("{}:…", first.join(":")),
        _ => names.join(":"),
    }
}

fn directory(options: &mut Options, text: &str, _: &mut Findings) -> Result<(), Problem> {
    options.directory = Some(listed(text)?);
    Ok(())
}

fn listed(text: &str) -> Result<Vec<String>, Problem> {
    let names: Vec<_> = split_list(text);
    if names.is_empty() {
        return Err(Problem::new(
            "no-value",
            0..text.len(),
            "there is no name between the colons",
        )
        .fix("write the name, or leave the option away"));
    }
    Ok(names)
}

/// Names that a message shows.
const SHOWN_MAX: usize = 4;

/// Each file costs memory and a descriptor; more has not been tried.
const FILES_MAX: u64 = 1 << 20;
