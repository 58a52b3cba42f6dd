//! The command line: dashes, prefixes, letters, globals, switches.

use crate::world::{World, file, job, words};
use fathom_core::{Nanos, OutputFormat};
use fathom_engine::options::FIXEDBUFS;
use fathom_job::{Dialect, IdleProfile, Invocation, SelfTest, Settings, ShowMode, Size, parse};

#[track_caller]
fn refuse(line: &str, want: &[&str]) {
    assert_eq!(World::default().errors(line), want, "{line}");
}

#[track_caller]
fn print(line: &str) -> String {
    match World::default().parse(line) {
        Ok(Invocation::Print(text)) => text,
        Ok(other) => panic!("{line}: {other:?}"),
        Err(errors) => panic!("{line}: {}", errors.render("fio", false)),
    }
}

#[track_caller]
fn settings(line: &str) -> Settings {
    match World::default().parse(line) {
        Ok(Invocation::Run { settings, .. }) => *settings,
        Ok(other) => panic!("{line}: {other:?}"),
        Err(errors) => panic!("{line}: {}", errors.render("fio", false)),
    }
}

/// Not a job that a launcher has started without one.
#[test]
fn a_wrong_rank_is_one_problem() {
    let world = World::default()
        .with_variable("OMPI_COMM_WORLD_RANK", "x")
        .with_variable("OMPI_COMM_WORLD_SIZE", "3");
    let codes = |line: &str| -> Vec<&str> {
        let refused = parse(&words(line), Dialect::Fathom, &world).unwrap_err();
        refused.diagnostics.iter().map(|found| found.code).collect()
    };
    assert_eq!(codes("--name=a --size=1m"), ["launched-alone"]);
    let wrong = codes("--rank=auto --name=a --size=1m");
    assert!(wrong.len() == 1 && wrong != ["launched-alone"], "{wrong:?}");
}

/// Virtual time starts no threads, so there may be more jobs than their limit.
#[test]
fn virtual_time_has_room_for_more_jobs() {
    for line in [
        "--machine=m --name=a --numjobs=10000",
        "--name=a --numjobs=5000 --name=b --numjobs=5000 --machine=m",
        "--name=a --numjobs=65536 --machine=m",
        "--name=a --numjobs=4096",
    ] {
        settings(line);
    }
    for (line, most) in [
        ("--name=a --numjobs=5000 --name=b", 4096),
        ("--name=a --numjobs=4000 --name=b --numjobs=97", 4096),
        ("--name=a --numjobs=65537 --machine=m", 65_536),
        ("--max-jobs=9000 --name=a --numjobs=4097", 4096),
    ] {
        let errors = World::default().parse(line).expect_err(line);
        let (told, want) = (
            errors.render("fio", false),
            format!("more than {most} jobs"),
        );
        assert!(told.contains(&want), "{line}: {told}");
        assert_eq!(told.matches("jobs in total").count(), 1, "{line}: {told}");
    }
    let names = " --name=a".repeat(4098);
    settings(&format!("--machine=m{names}"));
    let late = format!("{names} --machine=m");
    let told = World::default().parse(&late).err();
    let told = told.map(|errors| errors.render("fio", false));
    assert!(told.is_some_and(|told| told.contains("before `--machine`")));
}

#[test]
fn an_option_can_be_written_in_many_ways() {
    let forms = ["--iodepth=8", "-iodepth=8", "--iodepth 8", "-iodepth 8"];
    for form in forms {
        assert_eq!(
            job(&format!("--ioengine=null {form}")).options.iodepth,
            8,
            "{form}"
        );
    }
    assert_eq!(job("--numjob=2").options.numjobs, 2);
    assert_eq!(job("--size 5M").options.size, Some(Size::Bytes(5 << 20)));
    assert!(job("--group_reporting --bs=4k").options.group_reporting);
    assert_eq!(job("-rw read -direct=1").typed[1].name, "rw");
    assert_eq!(job("--nice -5").options.nice, -5);
}

#[test]
fn options_before_the_first_name_are_for_all() {
    let world = World::default();
    let plan = world.plan("--ioengine=null --size=4k --name=a --name=global --bs=2k --name=b");
    assert_eq!(plan.jobs.len(), 2);
    let sizes: Vec<_> = plan.jobs.iter().map(|job| job.options.size).collect();
    assert_eq!(sizes, [Some(Size::Bytes(4096)); 2]);
    let block = |index: usize| plan.jobs[index].options.block_sizes.read.clone();
    assert_ne!(block(0), block(1));
    let names: Vec<_> = plan
        .global_options
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(names, ["ioengine", "size", "name", "bs"]);
}

#[test]
fn the_command_lines_globals_hold_for_the_first_file() {
    let jobs = file("[a]\nbs=1k\n")
        .plan("j.fio --size=8k --rw=write --output-format=json")
        .jobs;
    assert_eq!(jobs[0].options.size, Some(Size::Bytes(8192)));
}

#[test]
fn order_counts_on_the_command_line() {
    refuse(
        "--name=x --fixedbufs --ioengine=io_uring",
        &["0:2 other-engine"],
    );
    assert!(
        job("--ioengine=io_uring --fixedbufs")
            .options
            .engine_values
            .flag(&FIXEDBUFS)
    );
    let sizes = (
        job("--kb_base=1000 --size=8k"),
        job("--size=8k --kb_base=1000"),
    );
    assert_eq!(sizes.0.options.size, Some(Size::Bytes(8000)));
    assert_eq!(sizes.1.options.size, Some(Size::Bytes(8192)));
}

#[test]
fn what_cannot_be_meant_is_refused_at_its_argument() {
    refuse("--name=x --bs=4q", &["0:2 bad-suffix"]);
    refuse(
        "--name=x --foo=1 --bar 2",
        &["0:2 unknown-option", "0:3 unknown-option"],
    );
    refuse("--name=x --re", &["0:2 ambiguous"]);
    refuse("--name=x --bs", &["0:2 no-value"]);
    refuse("--name=x --size --rw=read", &["0:2 no-value"]);
    refuse("--name=x --bs=", &["0:2 no-value"]);
    refuse("--name=", &["0:1 no-value"]);
    // In a job file it stands for the job's name.
    refuse("--name=x --write_bw_log=", &["0:2 no-value"]);
    refuse("--output= --name=x", &["0:1 no-value"]);
    refuse("--direct=1--ioengine=null --name=x", &["0:1 glued"]);
    refuse("--filename=a--direct=1 --name=x", &["0:1 glued"]);
    refuse(
        "--name=x --gpu_dev_id=1 --profile tiobench",
        &["0:2 not-in-fathom", "0:3 not-here"],
    );
    refuse("--name=x --readonly=1", &["0:2 needless-value"]);
    refuse("--name=x --status-interval=0", &["0:2 out-of-range"]);
    refuse("--name=x --status-interval=x", &["0:2 not-a-number"]);
    refuse("--name=x -Z", &["0:2 unknown-option"]);
    refuse("", &["0:0 no-jobs"]);
    refuse("--bs=4k", &["0:0 no-jobs"]);
}

#[test]
fn the_caret_is_under_the_argument() {
    let errors = World::default()
        .parse("--name=x --bs=4q --size=1m")
        .unwrap_err();
    let text = errors.render("fio", false);
    assert!(text.contains("--name=x --bs=4q --size=1m"), "{text}");
    assert!(text.contains("fio reads it as 4"), "{text}");
    let marks = text.lines().find(|line| line.contains('^')).unwrap();
    assert!(marks.contains(" ^") && !marks.contains("^^"), "{text}");
    assert!(
        text.starts_with("fio: command line, argument 2: "),
        "{text}"
    );
}

#[test]
fn switches_are_settings() {
    let got = settings("--name=x --output=o -r --rw=read --eta=never --eta-interval=500ms -w");
    assert_eq!(got.output.as_deref(), Some("o"));
    assert!(got.read_only && got.warnings_fatal);
    assert_eq!(got.eta, ShowMode::Never);
    assert_eq!(got.eta_interval, Some(Nanos::from_millis(500)));
    let interval = settings("--name=x --status-interval=500ms").status_interval;
    assert_eq!(interval, Some(Nanos::from_millis(500)));
    assert_eq!(settings("-o f --name=x").output.as_deref(), Some("f"));
    assert_eq!(settings("-ofile --name=x").output.as_deref(), Some("file"));
    assert!(settings("-rP --name=x").read_only);
    let formats = settings("--name=x --output-f=json,normal").formats;
    assert_eq!(formats, [OutputFormat::Json, OutputFormat::Normal]);
    assert_eq!(
        settings("--alloc-size=16 --max-jobs 8 --name=x").sections,
        [""; 0]
    );
}

#[test]
fn what_is_fios_alone_is_refused_with_what_to_do_instead() {
    for switch in ["--server", "--daemonize=p", "--trigger-remote=c"] {
        refuse(&format!("{switch} --name=x"), &["0:1 not-here"]);
    }
    refuse("--profile=tiobench", &["0:1 not-here"]);
    let errors = World::default().parse("--server j.fio").unwrap_err();
    let text = errors.render("fio", false);
    assert!(text.contains("`--client` starts ranks over ssh"), "{text}");
}

#[test]
fn some_switches_try_something_out() {
    #[track_caller]
    fn check(line: &str, want: &SelfTest) {
        match World::default().parse(line) {
            Ok(Invocation::SelfTest(got)) => assert_eq!(&got, want, "{line}"),
            other => panic!("{line}: {other:?}"),
        }
    }
    check("--cpuclock-test", &SelfTest::CpuClock);
    check("--idle-prof=calibrate", &SelfTest::UnitOfWork);
    check("--crctest", &SelfTest::Checksums(Vec::new()));
    let both = vec!["md5".to_owned(), "crc32c".to_owned()];
    check("--crctest=md5,crc32c", &SelfTest::Checksums(both));
    check("--memcpytest --name=x", &SelfTest::Copies(Vec::new()));
    refuse("--idle-prof=often --name=x", &["0:1 bad-value"]);
    let profile = settings("--idle-prof=percpu --name=x").idle_profile;
    assert_eq!(profile, Some(IdleProfile::PerCpu));
}

#[test]
fn terse_output_comes_in_four_layouts() {
    assert!(settings("--parse-only --terse-version=4").parse_only);
    refuse("--terse-version=9 --parse-only", &["0:1 bad-value"]);
    refuse("--terse-version=1 --parse-only", &["0:1 bad-value"]);
    use OutputFormat::{Json, JsonPlus, Normal, Terse};
    let of = |line: &str| {
        let settings = settings(&format!("{line} --name=x --ioengine=null --size=4k"));
        (settings.formats, settings.terse_version)
    };
    assert_eq!(of("--minimal --terse-version=5"), (vec![Terse], 5));
    assert_eq!(of("--output-format=json,csv"), (vec![Json, Terse], 0));
    assert_eq!(of("--append-terse"), (vec![Normal, Terse], 0));
    assert_eq!(of("--output-format=json+ -f"), (vec![JsonPlus, Terse], 0));
    // The last one counts.
    assert_eq!(of("--minimal --output-format=json"), (vec![Json], 0));
    assert_eq!(of("--output-format=json --minimal"), (vec![Terse], 0));
    refuse("--output-format=foo --name=x", &["0:1 bad-format"]);
}

#[test]
fn readonly_refuses_what_writes() {
    for rw in ["write", "randwrite", "trim", "rw", "trimwrite"] {
        refuse(
            &format!("--readonly --name=x --rw={rw}"),
            &["0:3 read-only"],
        );
    }
    let late = "--name=x --rw=write --name=y --rw=read --readonly";
    refuse(late, &["0:2 read-only"]);
    assert!(settings("--readonly --name=x --rw=randread").read_only);
}

#[test]
fn versions_are_the_callers() {
    let version = |dialect| match parse(&["-v".to_owned()], dialect, &World::default()) {
        Ok(Invocation::Print(text)) => text,
        _ => panic!("no version"),
    };
    assert!(version(Dialect::Fio).starts_with("fio-3.42-fathom-"));
    assert!(version(Dialect::Fathom).starts_with("fathom "));
}

#[test]
fn help_is_drawn_from_the_table() {
    let text = print("--cmdhelp=blocksize");
    for part in [
        "bs: ",
        "alias: blocksize",
        "default: 4k",
        "min=1",
        "example: bs=4k,64k",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(print("--cmdhelp=profile").contains("exists in fio, but not yet in Fathom"));
    assert!(print("--cmdhelp").lines().count() > 90);
    assert!(print("--enghelp").contains("\tio_uring\n"));
    assert!(print("--enghelp=libaio").contains("userspace_reap"));
    assert!(print("--enghelp=io_uring,hipri").contains("example: hipri"));
    refuse("--enghelp=nox", &["0:1 unknown-engine"]);
    let unknown = World::default().parse("--enghelp=iouring").unwrap_err();
    let text = unknown.render("fathom", false);
    assert!(
        text.contains("hint: did you mean `io_uring`? `--enghelp`"),
        "{text}"
    );
    assert!(print("--help").contains("--parse-only"));
}

#[test]
fn help_on_what_there_is_not_says_so() {
    let world = World::default();
    let asked = |line: &str| world.parse(line);
    let Ok(Invocation::NoEngineOptions(text)) = asked("--enghelp=null") else {
        panic!("null: options");
    };
    assert_eq!(text, "IO engine null has no options\n");
    for (name, said, shown) in [
        (
            "iodep",
            "No such command: iodep - showing closest match\n",
            "iodepth: ",
        ),
        ("bogus", "No such command: bogus\n", ""),
    ] {
        let Ok(Invocation::NoSuchOption { complaint, closest }) =
            asked(&format!("--cmdhelp={name}"))
        else {
            panic!("{name}: an option");
        };
        assert_eq!(complaint, said);
        assert!(
            closest.contains(shown) && closest.is_empty() == shown.is_empty(),
            "{closest}"
        );
    }
}

#[test]
fn showcmd_is_a_command_line_that_means_the_same() {
    let one =
        "[global]\nioengine=null\nsize=4k\n[a]\nthread\nbs= 1k\ndescription=it's me\n[b]\nbs=2k\n";
    let two =
        "[global]\nioengine=null\n[a]\nsize=4k\n[global]\nbs=1k\n[b]\nsize=8k\n[c]\nsize=2k\n";
    for (job_file, words, want) in [
        (
            one,
            "j.fio",
            "fio --ioengine=null --size=4k --name=a --thread --bs=1k --description=\"it's me\" \
             --name=b --bs=2k\n",
        ),
        (
            two,
            "j.fio",
            "fio --ioengine=null --name=a --size=4k --name=global --bs=1k --name=b --size=8k \
             --name=c --size=2k\n",
        ),
        (
            "[a]\nsize=4k\n",
            "--ioengine=null j.fio j.fio --name=z --size=8k",
            "fio --ioengine=null --name=z --size=8k\nfio --ioengine=null --name=a --size=4k\n\
             fio --name=a --size=4k\n",
        ),
        (
            "[job-1]\nname=wal\nfilename_format=$jobname-$jobnum\n[b]\nname=c\nfilename=f\n",
            "j.fio",
            "fio --name=wal --filename_format='job-1-$jobnum' --name=c --filename=f\n",
        ),
        // Each `filename` adds to those before it; of other options the last one counts.
        (
            "[global]\nfilename=a\n[global]\nfilename=b\n[x]\nfilename=c\nfilename=d\nbs=1k\n\
             bs=2k\n",
            "j.fio",
            "fio --filename=a --filename=b --name=x --bs=2k --filename=c --filename=d\n",
        ),
        (
            "[global]\nbs=8k\nfilename=a\nfilename=b\n",
            "j.fio",
            "fio --bs=8k --filename=a --filename=b\n",
        ),
        (
            "[global]\nbs=8k\n",
            "--name=z --size=4k j.fio j.fio",
            "fio --name=z --size=4k\nfio --bs=8k\nfio --bs=8k\n",
        ),
    ] {
        let Ok(Invocation::Print(text)) = file(job_file).parse(&format!("--showcmd {words}"))
        else {
            panic!("nothing was printed");
        };
        assert_eq!(text, want);
    }
}

#[test]
fn the_help_names_every_output_format() {
    let Ok(Invocation::Print(help)) = parse(&["--help".into()], Dialect::Fathom, &World::default())
    else {
        panic!("no help");
    };
    let line = help.lines().find(|line| line.contains("--output-format"));
    for (name, _) in OutputFormat::NAMES {
        assert!(line.is_some_and(|line| line.contains(name)), "{name}");
    }
}

/// The groups of hosts, each as its hosts, words, and job files of its own.
#[track_caller]
fn clients(line: &str, want: &[(&str, &str, &str)]) {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    match parse(&words, Dialect::Fathom, &World::default()) {
        Ok(Invocation::Clients(clients)) => {
            let groups = clients.groups.iter();
            let got: Vec<_> = groups
                .map(|group| {
                    (
                        &*group.hosts,
                        group.words.join(" "),
                        group.own_files.join(" "),
                    )
                })
                .collect();
            let want: Vec<_> = want
                .iter()
                .map(|(hosts, words, own)| (*hosts, (*words).to_owned(), (*own).to_owned()))
                .collect();
            assert_eq!(got, want, "{line}");
        }
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn hosts_get_the_job_files_behind_them() {
    clients("--client=a j.fio", &[("a", "j.fio", "")]);
    clients("--client hosts.list j.fio", &[("hosts.list", "j.fio", "")]);
    clients("-C a j.fio", &[("a", "j.fio", "")]);
    let line = "--output=o --client=a j.fio --client=b,8765 --bs=4k k.fio";
    let words = |file: &str| format!("--output=o {file}");
    clients(
        line,
        &[
            ("a", &words("j.fio --bs=4k"), ""),
            ("b,8765", &words("--bs=4k k.fio"), ""),
        ],
    );
    let both = [("a", "j.fio", ""), ("b", "j.fio", "")];
    clients("j.fio --client=a --client=b", &both);
    clients("--client=a --client=b j.fio", &both);
    let own = [("a", "", "/j.fio"), ("b", "", "/j.fio")];
    clients("--client=a --client=b --remote-config=/j.fio", &own);
    let mixed = [("a", "", "/j.fio"), ("b", "k.fio", "")];
    clients("--client=a --remote-config /j.fio --client=b k.fio", &mixed);
    clients(
        "--client=a --name=x --rw=read",
        &[("a", "--name=x --rw=read", "")],
    );
}

#[test]
fn what_makes_no_sense_with_hosts_is_refused() {
    refuse(
        "--client=a --client=b j.fio --client=c",
        &["0:0 no-job-file"],
    );
    refuse("--client=a j.fio --machine=m.toml", &["0:0 one-host"]);
    refuse("--client=a j.fio --foo=1", &["0:3 unknown-option"]);
    refuse("--remote-config=f --client=a", &["0:1 no-client"]);
    refuse("--client= --name=x", &["0:1 no-value"]);
}

#[test]
fn one_of_many_processes_runs_nothing_by_itself() {
    let under = |variable: &str, count: &str, line: &str, dialect| {
        let world = World::default().with_variable(variable, count);
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let refused = parse(&words, dialect, &world).err();
        refused.map(|refused| refused.diagnostics.render("fathom", false))
    };
    for variable in ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"] {
        let text = under(variable, "4", "--name=x --size=1m", Dialect::Fathom).unwrap();
        assert!(text.contains("has started 4 processes"), "{text}");
        assert!(
            text.contains(variable) && text.contains("fathom-mpi run"),
            "{text}"
        );
        assert_eq!(
            under(variable, "1", "--name=x --size=1m", Dialect::Fathom),
            None
        );
        assert_eq!(
            under(variable, "4", "--name=x --size=1m", Dialect::Fio),
            None
        );
        let line = "--name=x --size=1m --rank=1/4";
        assert_eq!(under(variable, "4", line, Dialect::Fathom), None);
        let line = "--name=x --size=1m --parse-only";
        assert_eq!(under(variable, "4", line, Dialect::Fathom), None);
    }
}
