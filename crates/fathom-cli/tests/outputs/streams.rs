//! Streams of reports, notes and errors, and exit codes, as `fathom` and as `fio`.

use std::process::Stdio;

use crate::common::{Folder, Run};

const NULL: &str = "--name=t --ioengine=null --size=1m --rw=randread";
const SYNC_DEPTH: &str = "--name=t --rw=read --size=64k --iodepth=4";

#[test]
fn the_report_is_the_only_thing_on_standard_output() {
    let folder = Folder::new();
    let run = folder
        .fathom(&format!("run {NULL} --output-format=json"))
        .expect(0);
    assert_eq!(run.err, "");
    assert!(
        run.out.starts_with("{\n") && run.out.ends_with("}\n"),
        "{}",
        run.out
    );
    run.json();
}

#[test]
fn text_comes_in_fios_order() {
    let folder = Folder::new();
    for run in [folder.fathom(&format!("run {NULL}")), folder.fio(NULL)] {
        let run = run.expect(0);
        assert_eq!(run.err, "");
        let find = |text: &str| {
            run.out
                .find(text)
                .unwrap_or_else(|| panic!("{text}: {run:#?}"))
        };
        let places = [
            find("t: (g=0): rw=randread"),
            find("Starting 1 thread"),
            find("t: (groupid=0, jobs=1): err= 0:"),
            find("  read: IOPS="),
            find("Run status group 0 (all jobs):"),
        ];
        assert!(places.is_sorted(), "{}", run.out);
    }
}

#[test]
fn the_status_line_stays_out_of_json() {
    let folder = Folder::new();
    let words = format!("{NULL} --rate_iops=500 --eta=always --eta-interval=250ms");
    let run = folder.fio(&format!("{words} --output-format=json"));
    run.expect(0).json();
    let run = folder.fio(&words).expect(0);
    assert!(run.out.contains("Jobs: 1 (f=1)"), "{run:#?}");
    assert!(!run.out.contains("Jobs: 0 (f=0)\rJobs: 1"), "{run:#?}");
}

#[test]
fn the_status_line_has_percentiles_on_request() {
    let folder = Folder::new();
    let words = "run --name=t --ioengine=null --size=1g --rw=randrw --rate_iops=1000 --time_based \
                 --runtime=4 --eta=always --eta-interval=250ms";
    let asked = folder
        .fathom(&format!("{words} --eta-percentiles"))
        .expect(0);
    let lines = asked.err.split('\r');
    let shown = lines.filter_map(|line| line.split_once(" p50/p99][eta ")?.0.rsplit_once('['));
    let shown: Vec<&str> = shown.map(|(_, percentiles)| percentiles).collect();
    assert!(!shown.is_empty(), "{asked:#?}");
    for percentiles in shown {
        let directions = percentiles.split_once(',');
        let (read, write) = directions.unwrap_or_else(|| panic!("{percentiles}"));
        assert!(
            read.starts_with("r=") && write.starts_with("w="),
            "{percentiles}"
        );
        assert!(read.contains("s/") && read.ends_with('s'), "{percentiles}");
    }
    let plain = folder.fathom(words).expect(0);
    assert!(!plain.err.contains("p99"), "{plain:#?}");
}

#[test]
fn help_fits_the_terminal() {
    let folder = Folder::new();
    for words in [
        "",
        "--help",
        "run --help",
        "run --cmdhelp=all",
        "run --enghelp",
    ] {
        let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), words);
        command.env("COLUMNS", "80");
        let run = Run::of(command);
        let text = run.out + &run.err;
        assert!(text.lines().count() > 10, "{words}: {text}");
        let is_command = |line: &str| line.trim_start().starts_with("fathom ");
        let wide = text
            .lines()
            .find(|line| line.chars().count() > 80 && !is_command(line));
        assert_eq!(wide, None, "{words}");
    }
    // Tools read fio's lists line by line.
    let list = folder.fio("--cmdhelp=all").expect(0).out;
    assert!(list.lines().any(|line| line.len() > 80), "{list}");
}

#[test]
fn versions() {
    let folder = Folder::new();
    let run = folder.fio("--version").expect(0);
    assert!(run.out.starts_with("fio-3."), "{run:#?}");
    let run = folder.fathom("--version").expect(0);
    // The commit is part of the first line unless an archive was built.
    let commit = env!("FATHOM_COMMIT_SUFFIX");
    let is_commit =
        |digits: &str| digits.len() >= 12 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let digits = commit
        .strip_prefix(" (commit ")
        .and_then(|rest| rest.strip_suffix(')'));
    assert!(
        commit.is_empty() || digits.is_some_and(is_commit),
        "{commit}"
    );
    let built = [
        ("history", cfg!(feature = "history")),
        ("http", cfg!(feature = "http")),
        ("live", cfg!(feature = "live")),
        ("mpi", cfg!(feature = "mpi")),
        ("parquet", cfg!(feature = "parquet")),
    ];
    let built = built.into_iter().filter(|(_, is_built)| *is_built);
    let mut features = built.map(|(name, _)| name).collect::<Vec<_>>().join(", ");
    if features.is_empty() {
        features = "none".into();
    }
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        run.out,
        format!("fathom {version}{commit}\nfeatures: {features}\n")
    );
    assert!(folder.fathom("--help").expect(0).out.contains("run"));
    assert!(
        folder
            .fathom("run --help")
            .expect(0)
            .out
            .contains("--output-format")
    );
}

#[test]
fn notes_go_to_standard_error_or_before_fios_report() {
    let folder = Folder::new();
    let words = format!("run {SYNC_DEPTH} --output-format=json");
    let run = folder.fathom(&words).expect(0);
    assert!(run.err.contains("queue depth"), "{run:#?}");
    let warnings = &run.json()["fathom"]["warnings"];
    assert_eq!(warnings[0]["code"], "depth_capped", "{warnings}");

    let run = folder.fio(SYNC_DEPTH).expect(0);
    assert_eq!(run.err, "");
    assert!(
        run.out.find("queue depth") < run.out.find("groupid="),
        "{run:#?}"
    );

    let run = folder
        .fio(&format!("{SYNC_DEPTH} --output-format=json"))
        .expect(0);
    assert_eq!(run.err, "");
    assert_eq!(run.json()["fathom"]["warnings"][0]["code"], "depth_capped");
}

#[test]
fn a_report_goes_to_a_file() {
    let folder = Folder::new();
    let words = format!("{NULL} --output-format=json --output=report.json");
    for called in ["fathom", "fio"] {
        let run = match called {
            "fio" => folder.fio(&words),
            _ => folder.fathom(&format!("run {words}")),
        };
        let run = run.expect(0);
        assert_eq!((run.out.as_str(), run.err.as_str()), ("", ""));
        let text = std::fs::read_to_string(folder.path().join("report.json")).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap();
        std::fs::remove_file(folder.path().join("report.json")).unwrap();
    }
    assert_eq!(folder.names(), ["bin"]);
    let run = folder
        .fathom(&format!("run {NULL} --output=missing/report"))
        .expect(2);
    assert!(run.err.contains("missing/report"), "{run:#?}");
}

/// A link, a bind-mounted file, and a file readable by its owner alone: none may be replaced by
/// another file.
#[test]
fn a_file_that_was_there_is_written_where_it_is() {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = Folder::new();
    let words = format!("{NULL} --output-format=json --output=report.json");
    let [file, link, none] = ["kept", "report.json", "none"].map(|name| folder.path().join(name));
    fs::write(
        &file,
        "an old report, and longer than the new one ".repeat(1000),
    )
    .unwrap();
    fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    for target in [&file, &none] {
        symlink(target, &link).unwrap();
        folder.fio(&words).expect(0);
        assert!(link.is_symlink());
        serde_json::from_str::<serde_json::Value>(&fs::read_to_string(target).unwrap()).unwrap();
        fs::remove_file(&link).unwrap();
    }
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    // Standard output, where that is a file: the link to it in /dev stays.
    let mut command = folder.command("sh", "-c");
    let fathom = env!("CARGO_BIN_EXE_fathom");
    command.arg(format!("{fathom} run {NULL} --output=/dev/fd/3 3>three"));
    Run::from(command.output().unwrap()).expect(0);
    assert!(
        fs::read_to_string(folder.path().join("three"))
            .unwrap()
            .contains("READ: bw=")
    );
}

/// Interim reports reach the reader of a pipe while the jobs run.
#[test]
fn a_pipe_gets_each_report_once() {
    let folder = Folder::new();
    let mut command = folder.command("sh", "-c");
    let fathom = env!("CARGO_BIN_EXE_fathom");
    command.arg(format!(
        "{fathom} run --name=t --ioengine=null --size=1g --rate_iops=100 --runtime=1 --time_based \
         --status-interval=300ms --output-format=terse --output=/dev/fd/3 3>&1 | cat"
    ));
    let run = Run::from(command.output().unwrap()).expect(0);
    let lines: Vec<&str> = run.out.lines().collect();
    let mut apart = lines.clone();
    apart.dedup();
    assert!(lines.len() >= 2 && apart == lines, "{run:#?}");
}

#[test]
fn failed_jobs_are_counted() {
    let folder = Folder::new();
    // A file that shrinks under its jobs: they read past its end.
    let job =
        "--rw=read --size=1m --filename=data --allow_file_create=1 --rate_iops_min=1000000000";
    let three = format!("--name=a {job} --time_based --runtime=4 --numjobs=3");
    let run = folder.fio(&three).expect(3);
    assert!(run.err.contains("err="), "{run:#?}");
    assert_eq!(folder.fio("--name=t --nonsense=1").expect(1).out, "");
}

#[test]
fn a_closed_standard_output_is_not_an_error() {
    let folder = Folder::new();
    for format in ["normal", "json"] {
        let words = format!("run {NULL} --output-format={format}");
        let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), &words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let run = Run::from(child.wait_with_output().unwrap()).expect(0);
        assert_eq!(run.err, "");
    }
}

#[test]
fn parse_only_runs_nothing() {
    let folder = Folder::new();
    folder.fio("--parse-only --terse-version=4").expect(0);
    folder
        .fathom("run --parse-only --name=t --rw=read --size=1m")
        .expect(0);
    assert_eq!(folder.names(), ["bin"]);
}

#[test]
fn errors_of_fio_go_to_its_output_file() {
    let folder = Folder::new();
    for (words, error) in [
        ("--output=log --name=t --nonsense=1", "nonsense"),
        // The job ends alone, so the file has its report, too.
        ("--output log --name=t --rw=read", "size="),
    ] {
        let run = folder.fio(words).expect(1);
        assert_eq!(run.out, "", "{words}");
        let text = std::fs::read_to_string(folder.path().join("log")).unwrap();
        let mut lines = text.lines().filter(|line| line.contains(error));
        let on_both = lines.any(|line| run.err.contains(line));
        assert!(on_both, "as in fio on both: {run:#?} {text}");
    }
}

#[test]
fn files_are_laid_out_and_nothing_else_when_only_that_is_asked() {
    let folder = Folder::new();
    let words = "--output-format=json --create_only=1 --filename=data --size=1m --name=prepare";
    let json = folder.fio(words).expect(0).json();
    assert_eq!(json["jobs"][0]["error"], 0);
    assert_eq!(json["jobs"][0]["read"]["io_bytes"], 0);
    assert_eq!(
        std::fs::metadata(folder.path().join("data")).unwrap().len(),
        1 << 20
    );
}

#[test]
fn processors_are_as_idle_as_the_kernel_says() {
    let folder = Folder::new();
    let words = "--name=t --ioengine=null --rw=read --size=1g --runtime=300ms --time_based \
                 --idle-prof=percpu";
    let run = folder
        .fio(&format!("{words} --output-format=json"))
        .expect(0);
    let document = run.json();
    let idleness = document["cpu_idleness"].as_object().unwrap();
    let names: Vec<&str> = idleness.keys().map(String::as_str).collect();
    assert_eq!(names[0], "system");
    assert!(names[1].starts_with("cpu-"), "{names:?}");
    assert_eq!(names[names.len() - 2..], ["unit_mean", "unit_stddev"]);
    assert!(idleness.values().all(serde_json::Value::is_f64));
    // One job keeps one processor busy.
    let least = idleness.iter().filter(|(name, _)| name.starts_with("cpu-"));
    let least = least
        .map(|(_, value)| value.as_f64().unwrap())
        .fold(100.0, f64::min);
    assert!(least < 60.0, "{idleness:?}");
    let run = folder.fio(&words.replace("percpu", "system")).expect(0);
    assert!(run.out.contains("\nCPU idleness:\n  system: "), "{run:#?}");
    assert!(!run.out.contains("percpu"), "{run:#?}");
}

#[test]
fn self_tests_run_without_a_job() {
    let folder = Folder::new();
    let run = folder.fio("--crctest=crc32c").expect(0);
    assert!(
        run.out.starts_with("crc32c:\t\t") && run.out.ends_with(" MiB/sec\n"),
        "{run:#?}"
    );
    let run = folder.fio("--crctest=crc8").expect(1);
    assert!(run.err.contains("use md5, crc64, "), "{run:#?}");
    let run = folder.fio("--memcpytest").expect(0);
    assert!(run.out.starts_with("memcpy\n\t8 bytes:\t"), "{run:#?}");
    let run = folder.fio("--idle-prof=calibrate").expect(0);
    assert!(
        run.out.starts_with("CPU idleness:\n  unit work: mean="),
        "{run:#?}"
    );
    let run = folder.fio("--cpuclock-test");
    let (code, said) = if run.out.is_empty() {
        (1, &run.err)
    } else {
        (0, &run.out)
    };
    assert_eq!(run.code, Some(code));
    assert!(said.starts_with("cs: reliable_tsc: "), "{run:#?}");
}

#[test]
fn failure_to_print_is_a_failure() {
    let folder = Folder::new();
    folder.write(
        "job.fio",
        "[t]\nrw=read\nsize=1m\nioengine=sync\niodepth=4\n",
    );
    let bin = env!("CARGO_BIN_EXE_fathom");
    for words in [
        "--help",
        "--version",
        "table",
        "micro",
        "micro tags --threads 1 --repeats 1",
        "lint --rules",
        "lint --json job.fio",
        "lint job.fio",
        "run --version",
        "run --cmdhelp=bs",
        "run --crctest=crc32c",
        "run --showcmd job.fio",
    ] {
        let into = |path: &str| {
            let file = std::fs::OpenOptions::new().write(true).open(path).ok()?;
            let mut command = folder.command(bin, words);
            command.stdout(Stdio::from(file)).stderr(Stdio::piped());
            Some(Run::from(command.output().unwrap()))
        };
        let Some(run) = into("/dev/full") else {
            println!("skipped: no /dev/full");
            return;
        };
        let run = run.expect(2);
        assert!(run.err.contains("standard output: "), "{words}: {run:#?}");
        assert_ne!(into("/dev/null").unwrap().code, Some(2), "{words}");
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let folder = Folder::new();
    for words in ["--help", "table", "run --cmdhelp"] {
        // Nobody reads: the pipe is closed before the program begins.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), words);
        command.stdout(Stdio::from(writer)).stderr(Stdio::piped());
        let run = Run::from(command.output().unwrap()).expect(0);
        assert_eq!(run.err, "", "{words}");
    }
}

/// fio's reports keep 127 bytes of a name; its logs and files use all of it.
#[test]
fn a_long_name_is_complete_in_every_report() {
    let folder = Folder::new();
    for bytes in [127, 128, 200] {
        let name = format!("{:n>bytes$}", "end");
        let words = format!("--name={name} --ioengine=null --size=64k --rw=read");
        let run = folder.fio(&format!("{words} --output-format=normal,json,terse"));
        let run = run.expect(0);
        assert!(
            run.out.contains(&format!("\n{name}: (groupid=0")),
            "{run:?}"
        );
        assert!(
            run.out.contains(&format!("\"jobname\" : \"{name}\"")),
            "{run:?}"
        );
        assert!(run.out.contains(&format!(";{name};0;0;")), "{run:?}");
    }
}
