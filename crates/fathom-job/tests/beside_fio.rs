//! The same job files given to an installed fio: what it makes of them is what we make of them.

mod world;

use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use fathom_core::{Direction, PerDirection};
use fathom_job::BlockSize;
use world::{World, file};

/// Runs fio in a folder of its own; `None` where it is not installed.
#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
fn fio(args: &[&str], job_file: &str) -> Option<Output> {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    // Relaxed: only the numbers must differ.
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let name = format!("fathom-job-beside-fio-{}-{call}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).ok()?;
    std::fs::write(folder.join("j.fio"), job_file).ok()?;
    let output = Command::new("fio").args(args).current_dir(&folder).output();
    // What stays in the folder for temporary files does no harm.
    let _ = std::fs::remove_dir_all(&folder);
    if output.is_err() {
        println!("skipped: no fio");
    }
    output.ok()
}

/// The sizes of ops in fio's header line: `bs=(R) 4096B-8192B, (W) …`.
fn header_sizes(line: &str) -> Vec<u64> {
    let sizes = line.split("bs=(R) ").nth(1).unwrap_or_default();
    let sizes = sizes.split(", ioengine").next().unwrap_or_default();
    sizes
        .split([' ', ',', '-'])
        .filter_map(|word| word.strip_suffix('B')?.parse().ok())
        .collect()
}

fn our_sizes(sizes: &PerDirection<BlockSize>) -> Vec<u64> {
    let ends = |direction| match &sizes[direction] {
        BlockSize::Fixed(bytes) => [*bytes; 2],
        BlockSize::Range { min, max } => [*min, *max],
        BlockSize::Split(entries) => {
            let bytes = || entries.iter().map(|(bytes, _)| *bytes);
            [bytes().min().unwrap_or(0), bytes().max().unwrap_or(0)]
        }
    };
    Direction::ALL.into_iter().flat_map(ends).collect()
}

#[test]
fn sizes_of_ops_are_fios() {
    let forms = [
        "bs=3k",
        "bs=3k,5k",
        "bs=3k,",
        "bs=,3k",
        "bs=,,3k",
        "bs=3k,,1k",
        "bs=3kib",
        "bs=3ki",
        "bs=3KB",
        "bs=3072b",
        "bs=0x600",
        "bs=1k-2k",
        "bs=1k:2k:3k",
        "bsrange=1k-2k",
        "bsrange=2k:1k",
        "bsrange=1k-2k,,3k-5k",
        "bssplit=1k:2k",
        "bssplit=1k/50:2k/50,",
        "bssplit=,1k/50:2k",
        "bssplit=1k/10:2k/,3k/100",
        "blocksize=1k\nbsrange=,2k-3k",
    ];
    let mut text = String::from("[global]\nioengine=null\nsize=64k\nnumber_ios=1\nrw=randrw\n");
    for (index, form) in forms.iter().enumerate() {
        text.push_str(&format!("[j{index}]\n{form}\n"));
    }
    let Some(output) = fio(&["j.fio"], &text) else {
        return;
    };
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let theirs: Vec<_> = printed
        .lines()
        .filter(|line| line.contains("rw=randrw"))
        .collect();
    assert_eq!(theirs.len(), forms.len(), "{printed}");
    let jobs = file(&text).plan("j.fio").jobs;
    for ((form, job), line) in forms.iter().zip(&jobs).zip(theirs) {
        assert_eq!(
            our_sizes(&job.options.block_sizes),
            header_sizes(line),
            "{form}: {line}"
        );
    }
}

#[test]
fn typed_options_are_those_of_fios_json() {
    let text = "[global]\nioengine=null\nkb_base=1000\ntimeout=1\n[a b]\nfilename=$jobname.$ncpus\n\
                readwrite=randread\nblocksize=1k\niodepth_batch_submit=1\nnorandommap=1\nsize=8k\n\
                disable_bw=0\n";
    let Some(output) = fio(&["--output-format=json", "--numjob=1", "j.fio"], text) else {
        return;
    };
    let json = String::from_utf8_lossy(&output.stdout).into_owned();
    let plan = file(text).plan("--numjob=1 --output-format=json j.fio");
    let own = plan.jobs[0]
        .typed
        .iter()
        .map(|typed| (typed.name.clone(), typed.value.clone()));
    let replaced = |value: String| match value.as_str() {
        // The machine that fio sees has other processors than the made-up one.
        "$jobname.4" => "$jobname.".to_owned(),
        _ => format!("{value}\""),
    };
    let mut from = json.find("global options").unwrap();
    for (name, value) in plan.global_options.into_iter().chain(own) {
        let pair = format!("\"{name}\" : \"{}", replaced(value));
        let found = json[from..].find(&pair);
        assert!(found.is_some(), "{pair} is not in order in\n{json}");
        from += found.unwrap_or_default();
    }
}

/// Whether fio and Fathom accept a command line.
fn both(line: &str) -> Option<(bool, bool)> {
    let args: Vec<_> = line.split_whitespace().collect();
    let theirs = fio(&args, "")?.status.success();
    Some((theirs, World::default().parse(line).is_ok()))
}

#[test]
fn command_lines_are_accepted_as_by_fio() {
    let base = "--parse-only --name=x --ioengine=null --size=1m";
    for line in [
        "--parse-only --terse-version=4",
        "--parse-only --eta-interval=1s --max-jobs=4 --alloc-size=16",
        "--cmdhelp=bs",
        "--cmdhelp=nosuchoption",
        "--enghelp",
        "-version",
        "--parse-only -name x -ioengine null -rw=randread -numjob 2",
        "--parse-only --nam=x --readw=read",
    ]
    .into_iter()
    .map(str::to_owned)
    .chain(
        [
            "--direct=0",
            "--iodepth=1k",
            "--percentile_list=50:99.9",
            "--fallocate=1",
            "--sync=1",
        ]
        .map(|option| format!("{base} {option}")),
    ) {
        let Some(verdicts) = both(&line) else { return };
        assert_eq!(verdicts, (true, true), "{line}");
    }
    for option in [
        "--foo=1",
        "--re",
        "--bs",
        "--bs=0",
        "--rw=foo",
        "--direct=2",
        "--nice=30",
        "--fixedbufs",
    ] {
        let line = format!("{base} {option}");
        let Some(verdicts) = both(&line) else { return };
        assert_eq!(verdicts, (false, false), "{line}");
    }
}
