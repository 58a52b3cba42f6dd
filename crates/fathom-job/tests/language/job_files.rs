//! Job files: sections, inheritance, includes, variables, and errors.

use crate::world::{World, file, jobs};
use fathom_core::Nanos;
use fathom_engine::options::{FIXEDBUFS, HIPRI};
use fathom_job::{BlockSize, Dialect, Job, Rank, Size, parse};

#[track_caller]
fn refuse(text: &str, want: &[&str]) {
    assert_eq!(file(text).errors("j.fio"), want, "{text}");
}

#[test]
fn values_may_name_the_rank_but_not_as_plain_fio() {
    let job = "[a]\nsize=10g\noffset=($rank*10g)\nrate_iops=(100000/$ranks)\n\
               filename=/mnt/f.$rank\nzonemode=strided\nzonerange=1m\nzonesize=1m\n\
               zoneskip=(($ranks-1)*1m)\n";
    let world = World::default().with_file("a.fio", job);
    let line = "a.fio --name=b --filename=$hostname.$hostrank --size=1m --rank 3/16";
    let plan = world.plan_of_fathom(line);
    assert_eq!(plan.place.rank, Rank { rank: 3, ranks: 16 });
    let [line, file] = &plan.jobs[..] else {
        panic!("{plan:?}")
    };
    let names = |job: &Job| job.options.filename.as_ref().unwrap().join(":");
    assert_eq!([line, file].map(names), ["node-7.0", "/mnt/f.3"]);
    assert_eq!(
        file.typed[1].value, "($rank*10g)",
        "all ranks report one plan"
    );
    assert_eq!(file.options.offset, Size::Bytes(30 << 30));
    assert_eq!(file.options.zones.skip, Size::Bytes(15 << 20));
    assert_eq!(file.options.rate_iops.read, Some(6250));

    let plain = world.plan("--name=b --filename=$hostname.$rank --size=1m");
    assert_eq!(plain.place.rank, Rank { rank: 0, ranks: 1 });
    assert_eq!(names(&plain.jobs[0]), "$hostname.$rank", "text, as in fio");
    let notes = world.notes("--name=b --filename=x.$rank --size=1m");
    assert_eq!(notes, ["0:2 rank-is-text"]);
}

/// Job file of a section for rank 0, one for all and one for the others.
const SHARES: &str = "[global]\nsize=1m\n[w]\nranks=0\nnumjobs=2\n[all]\nstonewall\n\
                      [r]\nranks=1-\nstonewall\n[odd]\nhosts=node-[1357]\n";

#[test]
fn sections_of_other_ranks_are_counted_and_left_out() {
    let world = World::default().with_file("s.fio", SHARES);
    let check = |rank: &str, has: &[(&str, u32, u32, u32)], left_out: &[&str]| {
        let plan = world.plan_of_fathom(&format!("--rank={rank} s.fio"));
        let jobs = plan.jobs.iter().map(|job| {
            let numbers = job.numbering;
            let name = job.name.as_str();
            (name, numbers.first_thread, numbers.group, numbers.wave)
        });
        assert_eq!(jobs.collect::<Vec<_>>(), has);
        assert_eq!(plan.left_out, left_out);
    };
    let all = ("all", 3, 1, 1);
    check("0/2", &[("w", 1, 0, 0), all, ("odd", 5, 2, 2)], &["r"]);
    check("1/2", &[all, ("r", 4, 2, 2), ("odd", 5, 2, 2)], &["w"]);
}

#[test]
fn sections_for_no_rank_are_refused() {
    let refuse = |words: &str, want: &str| {
        let world = World::default().with_file("s.fio", SHARES);
        let args: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let refusal = parse(&args, Dialect::Fathom, &world).unwrap_err();
        let text = refusal.diagnostics.render("fathom", false);
        assert!(text.contains(want), "{words}: {text}");
    };
    refuse(
        "s.fio",
        "s.fio:9:7: `ranks` names no rank of this run, whose only rank is 0",
    );
    refuse(
        "--rank=0/4 --name=a --size=1m --ranks=4-",
        "`ranks` names none of the 4 ranks, 0 to 3",
    );
    refuse("--name=a --size=1m --ranks=x", "`x` is not a rank");
    refuse(
        "--name=a --size=1m --rank_shift=1",
        "`rank_shift=1` needs other ranks, and this run has one",
    );
    refuse(
        "--rank=0/2 --name=a --size=1m --rank_shift=2",
        "`rank_shift=2` leads each of 2 ranks back to itself",
    );
    refuse(
        "--rank=0/2 --name=a --size=1m --rank_shift=node",
        "no launcher reports which ranks share a host",
    );
    refuse(
        "--rank=0/2 --filename=$hostname.f --name=a --size=1m --rank_shift=1",
        "job `a` works in the place of rank 1, whose `$hostname` is not known here",
    );
}

#[test]
fn a_shifted_section_is_read_in_the_place_of_the_other_rank() {
    let text = "[global]\nfilename=f.$rank\ninclude more\n[w]\nrw=write\n[r]\nrank_shift=1\n\
                offset=($rank*1m)\nnumjobs=$ranks\n";
    let world = World::default()
        .with_file("-", text)
        .with_file("more", "size=(($rank+1)*1g)\n");
    let plan = world.plan_of_fathom("--rank=3/4 -");
    let [written, read] = &plan.jobs[..] else {
        panic!("{plan:?}")
    };
    let seen = |job: &Job| {
        let options = &job.options;
        let file = options.filename.as_ref().unwrap().join(":");
        (file, options.size, options.offset, job.place.rank.rank)
    };
    let gib = |gib: u64| Some(Size::Bytes(gib << 30));
    let none = Size::Bytes(0);
    assert_eq!(seen(written), ("f.3".to_owned(), gib(4), none, 3));
    assert_eq!(seen(read), ("f.0".to_owned(), gib(1), none, 0));
    assert_eq!(read.options.numjobs, 4);
    assert_eq!(read.typed[1].value, "($rank*1m)");
    let back = world.plan_of_fathom("--rank=2/4 -");
    let offset = Size::Bytes(3 << 20);
    assert_eq!(seen(&back.jobs[1]), ("f.3".to_owned(), gib(4), offset, 3));
}

#[test]
fn a_job_inherits_from_the_globals_above_it() {
    let jobs = jobs("[global]\nbs=8k\nsize=1m\n[a]\n[globalfoo]\nbs=16k\n[b]\nsize=2m\n");
    let seen: Vec<_> = jobs
        .iter()
        .map(|job| {
            (
                job.name.as_str(),
                job.options.block_sizes.read.clone(),
                job.options.size,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("a", BlockSize::Fixed(8192), Some(Size::Bytes(1 << 20))),
            ("b", BlockSize::Fixed(16384), Some(Size::Bytes(2 << 20))),
        ]
    );
}

#[test]
fn typed_options_have_canonical_names_and_fios_order() {
    let text = "[global]\nkb_base=1000\nioengine = null\n[a]\nfilename=f\nblocksize= 4k ; c\n\
                readwrite=randread\nthread\niodepth_batch_submit=1\n";
    let plan = file(text).plan("j.fio");
    let typed: Vec<_> = plan.jobs[0]
        .typed
        .iter()
        .map(|typed| (typed.name.as_str(), typed.value.as_str(), typed.origin.line))
        .collect();
    let want = [
        ("bs", "4k", 6),
        ("rw", "randread", 7),
        ("thread", "", 8),
        ("iodepth_batch", "1", 9),
        ("filename", "f", 5),
    ];
    assert_eq!(typed, want);
    let global = plan.global_options;
    assert_eq!(global[0], ("kb_base".to_owned(), "1000".to_owned()));
    assert_eq!(
        plan.jobs[0].options.block_sizes.read,
        BlockSize::Fixed(4000)
    );
}

#[test]
fn engine_options_may_stand_before_the_engine() {
    let job = jobs("[a]\nfixedbufs\nioengine=io_uring\n").remove(0);
    assert!(job.options.engine_values.flag(&FIXEDBUFS));
    refuse("[a]\nfixedbufs\nioengine=libaio\n", &["2:1 other-engine"]);
    refuse(
        "[global]\nfixedbufs\n[a]\nioengine=io_uring\n",
        &["2:1 other-engine"],
    );
}

#[test]
fn an_engine_that_is_refused_is_the_only_error() {
    refuse(
        "[a]\nfixedbufs\nioengine=io_urin\n",
        &["3:10 unknown-engine"],
    );
}

#[test]
fn another_engine_forgets_the_first_ones_options() {
    let jobs = jobs("[global]\nioengine=io_uring\nhipri\n[a]\n[b]\nioengine=pvsync2\n");
    assert!(jobs[0].options.engine_values.flag(&HIPRI));
    assert!(!jobs[1].options.engine_values.flag(&HIPRI));
}

#[test]
fn files_follow_one_another_with_fresh_globals_and_a_wall() {
    let world = World::default()
        .with_file("a.fio", "[global]\niodepth=4\nioengine=null\n[a]\n")
        .with_file("b.fio", "[b]\nioengine=null\n[c]\n");
    let jobs = world.plan("--bs=1k a.fio b.fio").jobs;
    let seen: Vec<_> = jobs
        .iter()
        .map(|job| {
            (
                job.options.iodepth,
                job.options.block_sizes.read.clone(),
                job.options.stonewall,
            )
        })
        .collect();
    let (small, normal) = (BlockSize::Fixed(1024), BlockSize::Fixed(4096));
    assert_eq!(
        seen,
        [
            (4, small, false),
            (1, normal.clone(), true),
            (1, normal, false)
        ]
    );
}

#[test]
fn includes_are_looked_for_here_and_then_beside_the_file() {
    let world = World::default()
        .with_file("d/j.fio", "[a]\ninclude x.inc\ninclude ${N}.inc\n")
        .with_file("x.inc", "bs=8k\n")
        .with_file("d/y.inc", "loops=3\n")
        .with_variable("N", "y");
    let job = world.plan("d/j.fio").jobs.remove(0);
    assert_eq!(job.options.block_sizes.read, BlockSize::Fixed(8192));
    assert_eq!(job.options.loops, 3);
    assert_eq!(job.typed[1].origin.file, "d/y.inc");
}

#[test]
fn bad_includes_are_refused_where_they_stand() {
    refuse("[a]\ninclude none.inc\n", &["2:9 no-include"]);
    refuse("[a]\ninclude j.fio\n", &["2:9 circular-include"]);
    let world = World::default()
        .with_file("j.fio", "[a]\ninclude x\n")
        .with_file("x", "include y\n")
        .with_file("y", "include x\n");
    assert_eq!(world.errors("j.fio"), ["1:9 circular-include"]);
    let world = file("[a]\ninclude x\n").with_file("x", "[b]\n");
    assert_eq!(world.errors("j.fio"), ["1:1 section-included"]);
    let many = World::default()
        .with_file("j.fio", "[a]\ninclude 0\n")
        .with_file("0", "include ./0\n");
    assert_eq!(many.errors("j.fio").len(), 1);
}

#[test]
fn variables_and_keywords_are_replaced() {
    let text = "[a]\nsize=4*$pagesize\nnumjobs=$ncpus\nfilename=${D}/$jobname\nbs=${NONE}8k\n";
    let world = file(text).with_variable("D", "/t");
    let job = world.plan("j.fio").jobs.remove(0);
    assert_eq!(job.options.size, Some(Size::Bytes(16384)));
    assert_eq!(job.options.numjobs, 4);
    assert_eq!(
        job.options.filename,
        Some(vec!["/t/$jobname".to_owned()].into())
    );
    assert_eq!(world.notes("j.fio"), ["5:4 unset-variable"]);
}

#[test]
fn a_variable_may_hold_an_option() {
    let world = file("[a]\n${OPTION}\n${NAME}=3\n")
        .with_variable("OPTION", "bs=2*$pagesize")
        .with_variable("NAME", "loops");
    let job = world.plan("j.fio").jobs.remove(0);
    assert_eq!(job.options.block_sizes.read, BlockSize::Fixed(8192));
    assert_eq!(job.options.loops, 3);
    let typed: Vec<_> = job.typed.iter().map(|typed| typed.name.as_str()).collect();
    assert_eq!(typed, ["bs", "loops"]);
    assert_eq!(
        file("[a]\n${NONE}\n").errors("j.fio"),
        ["2:1 unset-variable", "2:1 unknown-option"]
    );
}

#[test]
fn all_errors_of_a_file_are_told_at_once() {
    refuse(
        "[a]\nbs=4q\nfoo=1\nruntime=1min\n[b\ngpu_dev_id=1\n[c]\nbs=4k\nsize=1.5g\n",
        &[
            "2:5 bad-suffix",
            "3:1 unknown-option",
            "4:10 bad-time-unit",
            "5:1 unclosed-section",
            "6:1 not-in-fathom",
            "9:6 fraction",
        ],
    );
}

#[test]
fn files_that_are_no_job_files_are_refused() {
    refuse("", &["1:1 empty-file"]);
    refuse("; only\n# comments\n\n", &["1:1 empty-file"]);
    refuse("\x7fELF\0\0\x01", &["1:1 binary-file"]);
    refuse("bs=4k\nsize=1m\n[a]\n", &["1:1 before-section"]);
    refuse("[global]\nbs=4k\n", &["0:0 no-jobs"]);
    refuse("[]\n", &["1:1 no-name"]);
    // What stands below is the section's that could not be read.
    refuse("[]\nbs=4k\n", &["1:1 no-name"]);
    refuse("[a\nbs=4k\n", &["1:1 unclosed-section"]);
    let long = format!("[{:n>256}]\nbs=4k\n", "a");
    refuse(&long, &["1:1 long-name"]);
    refuse("[a]\nbs\n", &["2:1 no-value"]);
    refuse("[a]\nbs=\n", &["2:4 no-value"]);
    let mut world = World::default();
    assert_eq!(world.errors("missing.fio"), ["0:1 no-file"]);
    world = World::default().with_file("-", "[a]\n");
    assert_eq!(world.plan("-").jobs[0].origin.file, "standard input");
}

#[test]
fn a_file_from_elsewhere_is_read() {
    let job = jobs("\u{feff}[a]\r\nbs=8k\r\nruntime=2\r\n").remove(0);
    assert_eq!(job.options.block_sizes.read, BlockSize::Fixed(8192));
    assert_eq!(job.options.runtime, Some(Nanos::from_secs(2)));
}

#[test]
fn a_hundred_thousand_sections_are_refused_at_once() {
    let text: String = (0..100_000).map(|n| format!("[j{n}]\n")).collect();
    refuse(&text, &["4097:1 too-many-jobs"]);
    let text: String = (0..100_000).map(|n| format!("o{n}=1\n")).collect();
    assert_eq!(file(&format!("[a]\n{text}")).errors("j.fio").len(), 200);
    let text: String = (0..100_000).map(|n| format!("bs={n}k\n")).collect();
    assert_eq!(
        jobs(&format!("[a]\n{}size=1t", text.replacen("bs=0k\n", "", 1))).len(),
        1
    );
}

#[test]
fn a_section_has_an_end() {
    let text: String = (0..131_074).map(|_| "bs=4k\n").collect();
    refuse(&format!("[a]\n{text}"), &["131074:1 many-options"]);
}

#[test]
fn what_globals_say_again_is_kept_once() {
    let text: String = (1..=3)
        .map(|n| format!("[global]\nbs={n}k\nrw=read\n"))
        .collect();
    let job = jobs(&format!("{text}[a]\nsize=1m\n")).remove(0);
    assert_eq!(job.inherited.len(), 2);
    assert_eq!(job.place(&["bs"]).line, 8);
    assert_eq!(job.place(&["nothing", "size"]).line, 11);
    assert_eq!(job.place(&["nothing"]).line, 10);
}

/// Enough sections that copying everything inherited for each would take minutes.
#[test]
fn many_global_sections_that_name_a_file_each_are_read_at_once() {
    const MANY: usize = 40_000;
    let text: String = (0..MANY)
        .map(|n| format!("[global]\nbs={}k\nfilename=/f{n}\n", n + 1))
        .collect();
    let job = jobs(&format!("{text}[a]\nsize=1g\n")).remove(0);
    assert_eq!(job.options.filename.map(|names| names.len()), Some(MANY));
    assert_eq!(job.inherited.len(), MANY + 1);
    let (bs, file) = (&job.inherited[MANY - 1], &job.inherited[MANY]);
    assert_eq!((&*bs.name, &*bs.value), ("bs", "40000k"));
    assert_eq!((&*file.name, &*file.value), ("filename", "/f39999"));
}

#[test]
fn sections_can_be_chosen() {
    let text = "[global]\nbs=8k\n[a]\n[b]\nnonsense=1\n";
    let jobs = file(text).plan("--section=a j.fio").jobs;
    assert_eq!(jobs.len(), 1);
    assert_eq!(jobs[0].options.block_sizes.read, BlockSize::Fixed(8192));
    assert_eq!(file(text).errors("j.fio --section=z"), ["0:2 bad-section"]);
    assert_eq!(
        file(text).errors("j.fio --section=global"),
        ["0:2 bad-section", "5:1 unknown-option"]
    );
}

#[test]
fn a_problem_of_the_globals_is_told_once() {
    refuse(
        "[global]\nrate=1m\nrate_iops=5\n[a]\n[b]\n[c]\n",
        &["3:11 contradiction"],
    );
}

#[test]
fn a_group_has_one_set_of_percentiles() {
    let text = "[global]\ngroup_reporting\n[a]\nlat_percentiles=1\n[b]\n[c]\nnew_group\n";
    refuse(text, &["5:1 bad-group"]);
    assert_eq!(jobs(&text.replace("group_reporting", "thread")).len(), 3);
}

#[test]
fn files_of_a_global_filename_are_kept_and_said() {
    let text = "[global]\nfilename=a:b\n[x]\nfilename=c\n";
    let world = file(text);
    assert_eq!(world.notes("j.fio"), ["4:10 more-files"]);
    let job = world.plan("j.fio").jobs.remove(0);
    assert_eq!(fathom_job::file_names(&job, 0), ["a", "b", "c"]);
    let job = jobs("[global]\nfilename=a:b:c\n[x]\nnrfiles=2\n").remove(0);
    assert_eq!(fathom_job::file_names(&job, 0), ["a", "b"]);
}

#[test]
fn a_misspelt_global_section_is_said() {
    for text in [
        "[globl]\nbs=8k\n[x]\nrw=read\n",
        "[Global]\nrw=read\n[x]\nfilename=a\n",
    ] {
        let world = file(text);
        assert_eq!(world.notes("j.fio"), ["1:1 misspelt-global"], "{text}");
        assert_eq!(world.plan("j.fio").jobs.len(), 2, "still a job, as in fio");
        assert_eq!(world.notes("--section=x j.fio"), ["1:1 misspelt-global"]);
    }
    for text in [
        "[global]\nbs=8k\n[x]\nrw=read\n",
        "[local]\nrw=read\n[x]\nrw=write\n",
        "[x]\nrw=read\n[globl]\nbs=8k\n",
        "[writer]\nbs=8k\n[x]\nrw=read\n",
    ] {
        assert!(file(text).notes("j.fio").is_empty(), "{text}");
    }
}

#[test]
fn a_refusal_shows_file_line_column_text_why_and_fix() {
    let errors = file("[a]\nioengine=libao\n").parse("j.fio").unwrap_err();
    let text = errors.render("fio", false);
    let want = "fio: j.fio:2:10: unknown engine `libao`\n  |\n\
                2 | ioengine=libao\n  |          ^^^^^\n\
                hint: did you mean `libaio`? available: ";
    assert!(text.starts_with(want), "{text}");
}

#[test]
fn only_jobs_that_inherit_nothing_wrong_are_sound() {
    let sound = |text: &str| -> Vec<String> {
        let args = ["j.fio".to_owned()];
        let refusal = parse(&args, Dialect::Fio, &file(text)).unwrap_err();
        let jobs = refusal.sound.jobs.into_iter();
        jobs.map(|job| job.name).collect()
    };
    assert_eq!(
        sound("[a]\nbs=4q\n[b]\nbs=4k\n[c]\nrw=[\n[d]\n"),
        ["b", "d"]
    );
    assert_eq!(sound("[a]\n[global]\nbs=4q\n[b]\n[c]\n"), ["a"]);
    assert_eq!(sound("[a]\nrwmixread=70\nrwmixwrite=70\n[b]\n"), ["b"]);
    assert_eq!(sound("[a]\nsize=1m\nhalf a line = [\n[b]\n"), ["b"]);
}

#[test]
fn a_job_file_cannot_write_to_the_terminal() {
    let errors = file("[a]\nbs=\u{1b}[2J\u{7}\n").parse("j.fio").unwrap_err();
    assert!(!errors.render("fio", false).contains('\u{1b}'));
}
