//! Comparison with an installed fio: the same job files and values, and the same reading.

use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::world::{World, file};
use fathom_core::{Direction, PerDirection};
use fathom_job::BlockSize;

/// Runs fio in a scratch directory; `None` if it is not installed.
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

/// Returns the op sizes in fio's header line: `bs=(R) 4096B-8192B, (W) …`.
fn header_sizes(line: &str) -> Vec<u64> {
    let sizes = line.split("bs=(R) ").nth(1).unwrap_or_default();
    let sizes = sizes.split(", ioengine").next().unwrap_or_default();
    sizes
        .split([' ', ',', '-'])
        .filter_map(|word| match word.strip_suffix("KiB") {
            Some(kib) => {
                let kib = kib.strip_suffix(".0").unwrap_or(kib);
                kib.parse::<u64>().ok().map(|kib| kib << 10)
            }
            None => word.strip_suffix('B')?.parse().ok(),
        })
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

/// Returns ranges with their ends in either order, and all separators and suffixes that fio
/// accepts.
fn ranges() -> impl Iterator<Item = String> {
    let low = ["1k", "512", "4kb"];
    let between = ["-", ":", "k-"];
    let high = ["2k", "1k", "8k,", "8k,2k-4k", "8k,,2k-4k", "8k-16k", "8kq"];
    low.into_iter().flat_map(move |low| {
        between
            .into_iter()
            .flat_map(move |between| high.map(|high| format!("bsrange={low}{between}{high}")))
    })
}

/// Returns pairs of sizes with all suffixes that fio reads as a percentage.
fn splits() -> impl Iterator<Item = String> {
    let shares = ["", "/", "/30", "/30.5", "/x", "/30x"];
    let between = [":", ",", ",2k/100,"];
    shares.into_iter().flat_map(move |first| {
        between.into_iter().flat_map(move |between| {
            shares.map(|second| format!("bssplit=1k{first}{between}4k{second}"))
        })
    })
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
    let forms: Vec<String> = forms
        .into_iter()
        .map(str::to_owned)
        .chain(ranges())
        .chain(splits())
        .collect();
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
    let jobs = file(&text).lenient().plan("j.fio").jobs;
    let mut different = Vec::new();
    for ((form, job), line) in forms.iter().zip(&jobs).zip(theirs) {
        let (ours, theirs) = (our_sizes(&job.options.block_sizes), header_sizes(line));
        if ours != theirs {
            different.push(format!("{form}: ours {ours:?}, {line}"));
        }
    }
    assert!(different.is_empty(), "{different:#?}");
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

/// Returns whether fio and Fathom accept a command line.
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

/// Returns fio's reading of each text as a value of an option: the numbers it reads, or `None` if
/// it refuses the text. All texts are in one command line, one job each, because fio starts slowly;
/// if fio refuses that, each text is tried alone.
fn read_by_fio(option: &str, texts: &[&str]) -> Option<Vec<Option<Vec<u64>>>> {
    let mut args = vec!["--debug=parse".to_owned(), "--parse-only".to_owned()];
    for text in texts {
        args.extend(["--name=x", "--ioengine=null"].map(str::to_owned));
        args.push(format!("--{option}={text}"));
    }
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let output = fio(&args, "")?;
    if output.status.success() {
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let jobs = printed.split(" handle_option=ioengine").skip(1);
        return Some(jobs.map(numbers).map(Some).collect());
    }
    match texts {
        [_] => Some(vec![None]),
        texts => {
            let each = texts.iter().map(|text| read_by_fio(option, &[*text]));
            each.map(|one| Some(one?.remove(0))).collect()
        }
    }
}

fn numbers(printed: &str) -> Vec<u64> {
    let numbers = printed.lines().filter_map(|line| {
        let read = line.split("ret=0, out=").nth(1)?;
        read.trim().parse().ok()
    });
    numbers.collect()
}

fn read_by_us(option: &str, value: &str) -> Option<String> {
    let args = ["--parse-only", "--name=x", "--ioengine=null"].map(str::to_owned);
    let option = format!("--{option}={value}");
    let args: Vec<_> = args.into_iter().chain([option]).collect();
    let world = World::default().lenient();
    match fathom_job::parse(&args, fathom_job::Dialect::Fio, &world) {
        Ok(fathom_job::Invocation::Run { plan, .. }) => Some(format!("{:?}", plan.jobs[0].options)),
        _ => None,
    }
}

/// Position of the option's value among the numbers that fio reads, and its unit.
#[derive(Clone, Copy)]
enum Value {
    First(&'static str),
    Last,
    /// Not a single number: only acceptance is compared.
    Other,
}

impl Value {
    /// Returns the value in use, as a documented text.
    fn of(self, text: &str, numbers: &[u64]) -> Option<String> {
        let digit = |letter: char| letter.is_ascii_digit();
        match self {
            Self::First(unit) if text.trim_start_matches('+').starts_with(digit) => {
                numbers.first().map(|number| format!("{number}{unit}"))
            }
            Self::Last => numbers.last().map(u64::to_string),
            _ => None,
        }
    }
}

/// Returns numbers with common and uncommon suffixes.
fn number_texts() -> Vec<String> {
    let heads = ["4", "1", "0", "10", "0x10", "1.5", "-4", "+8", "010"];
    let tails = [
        "", "k", "K", "kb", "kib", "m", "q", "kk", "k8", "*1", "+30", "/2", ",8", "-8", ":8", " k",
        "s", "ms", "min", "sec", "%", "%%", "z", "e3", "x", ".5k", "k,", ",k", "[x]",
    ];
    let texts = heads
        .iter()
        .flat_map(|head| tails.iter().map(move |tail| format!("{head}{tail}")));
    let odd = [
        "k",
        "x",
        ",4",
        ",,4",
        "--4",
        "0x",
        "true",
        "4,4,4,4",
        "99999999999999999999",
        "s",
    ];
    texts.chain(odd.map(str::to_owned)).collect()
}

#[test]
fn hundreds_of_texts_are_read_as_fio_reads_them() {
    let texts = number_texts();
    let options = [
        ("iodepth", Value::First("")),
        ("loops", Value::First("")),
        ("rwmixread", Value::Last),
        ("nice", Value::Other),
        ("number_ios", Value::First("")),
        ("size", Value::Last),
        ("bs", Value::Other),
        ("rate_iops", Value::Other),
        ("runtime", Value::First("us")),
        ("thinktime", Value::First("us")),
        ("max_latency", Value::Other),
        ("direct", Value::First("")),
        ("time_based", Value::Other),
        ("filesize", Value::Other),
        ("bsrange", Value::Other),
    ];
    let mut different = Vec::new();
    // A different part of the texts for each option keeps the test short.
    for (at, (option, value)) in options.into_iter().enumerate() {
        let part = texts.iter().map(String::as_str).skip(at % 4).step_by(4);
        // Of these fio makes a giant number, with which no job can run.
        let giant = |text: &&str| matches!(option, "bs" | "filesize") && text.contains(['-', '%']);
        let part: Vec<_> = part.filter(|text| !giant(text)).collect();
        let (accepted, refused): (Vec<_>, Vec<_>) = part
            .iter()
            .partition(|text| read_by_us(option, text).is_some());
        for text in refused {
            let Some(theirs) = read_by_fio(option, &[text]) else {
                return;
            };
            if theirs[0].is_some() {
                different.push(format!("{option}={text}: refused"));
            }
        }
        let Some(theirs) = read_by_fio(option, &accepted) else {
            return;
        };
        assert_eq!(theirs.len(), accepted.len(), "{option}");
        for (text, numbers) in accepted.into_iter().zip(theirs) {
            let read = match numbers {
                Some(numbers) => value.of(text, &numbers),
                None => {
                    different.push(format!("{option}={text}: accepted"));
                    None
                }
            };
            let same = |read: &String| read_by_us(option, read);
            let read = read.filter(|_| !text.contains(['%', 'z']));
            if let Some(same) = read.as_ref().and_then(same)
                && Some(same) != read_by_us(option, text)
            {
                different.push(format!("{option}={text}: fio read {read:?}"));
            }
        }
    }
    assert!(different.is_empty(), "{different:#?}");
}

/// Returns option words with common and uncommon suffixes.
fn word_texts(words: &[&str]) -> Vec<String> {
    let tails = [
        "", "x", ":", ":1", ",1", ",", "=", "/2", " 5", ":x", ":-1", ":1:2",
    ];
    let whole = words
        .iter()
        .flat_map(|word| tails.map(|tail| format!("{word}{tail}")));
    let cut = words.iter().map(|word| word[..word.len() - 1].to_owned());
    let upper = words.iter().map(|word| word.to_uppercase());
    let twice = words.iter().map(|word| format!("{word},{word}"));
    let odd = ["0", "1", "-1", "x", ","].map(str::to_owned);
    let all = whole.chain(cut).chain(upper).chain(twice).chain(odd);
    all.collect()
}

/// Returns numbers with a fraction, alone and in lists.
fn float_texts() -> Vec<String> {
    let numbers = [
        "50", "99.9", "0", "100", ".5", "5.", "1e1", "101", "-1", "x", "50x", "50%", "0x10", "+5",
    ];
    let tails = ["", ":99", ",99", ";99", ":x", ": 99", ":", "::99"];
    let texts = numbers
        .iter()
        .flat_map(|number| tails.map(|tail| format!("{number}{tail}")));
    let long = |count: u32| {
        (1..=count)
            .map(|n| n.to_string())
            .collect::<Vec<_>>()
            .join(":")
    };
    texts.chain([long(20), long(21)]).collect()
}

/// Returns pairs of numbers with separators and suffixes.
fn range_texts() -> Vec<String> {
    let low = ["4k", "8", "0x10", "4k "];
    let rest = [
        "", "-8k", ":8k", "-8k-16k", "-8k,", "-8kx", "- 8k", "/8k", "..8k", "_8k",
    ];
    low.iter()
        .flat_map(|low| rest.map(|rest| format!("{low}{rest}")))
        .collect()
}

fn some(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// Returns options that take words, lists or ranges, each with texts to try.
fn word_options() -> Vec<(&'static str, Vec<String>)> {
    vec![
        ("rw", word_texts(&["read", "randwrite", "trimwrite"])),
        ("fallocate", word_texts(&["none", "native", "keep"])),
        ("sync", word_texts(&["none", "dsync"])),
        ("zonemode", word_texts(&["none", "strided"])),
        ("file_service_type", word_texts(&["random", "sequential"])),
        ("random_generator", word_texts(&["lfsr", "tausworthe64"])),
        ("mem", word_texts(&["malloc", "shm"])),
        ("clocksource", word_texts(&["cpu", "gettimeofday"])),
        ("continue_on_error", word_texts(&["none", "read", "all"])),
        ("unified_rw_reporting", word_texts(&["none", "both"])),
        (
            "sync_file_range",
            word_texts(&["write", "wait_before,write"]),
        ),
        ("exit_what", word_texts(&["group", "stonewall"])),
        ("rate_process", word_texts(&["linear", "poisson"])),
        ("rw_sequencer", word_texts(&["identical"])),
        ("write_hint", word_texts(&["none", "short"])),
        ("percentile_list", float_texts()),
        ("latency_percentile", float_texts()),
        ("bsrange", range_texts()),
        ("filesize", range_texts()),
        ("startdelay", range_texts()),
        (
            "startdelay",
            some(&["-8k", "x-4k", "4-x", "x", "-", "--", "4-", "1-2ms"]),
        ),
        (
            "steadystate",
            some(&["iops:10", "iops:10,1", "iops:10,", "bw:1k,1%", "iops:1:2"]),
        ),
        (
            "random_distribution",
            some(&[
                "gauss",
                "gauss:2",
                "normal",
                "zoned_abs:100",
                "zoned_abs:50:50/8k",
                "zoned_abs:50/",
            ]),
        ),
        (
            "buffer_pattern",
            some(&[
                "0x1 0x2",
                "1 2",
                "\"a\" \"b\"",
                "1+2",
                "\"a\" 0x1",
                "0x1 2",
                "1 \"a\"",
            ]),
        ),
    ]
}

#[test]
fn words_lists_and_ranges_are_accepted_as_by_fio() {
    let mut different = Vec::new();
    for (option, texts) in &word_options() {
        let texts = texts.iter().map(String::as_str);
        let (accepted, refused): (Vec<_>, Vec<_>) =
            texts.partition(|text| read_by_us(option, text).is_some());
        let Some(verdicts) = read_by_fio(option, &accepted) else {
            return;
        };
        let refused_by_fio = accepted
            .iter()
            .zip(verdicts)
            .filter(|(_, numbers)| numbers.is_none());
        different.extend(refused_by_fio.map(|(text, _)| format!("{option}={text}: accepted")));
        for text in refused {
            if read_by_fio(option, &[text]).is_some_and(|verdict| verdict[0].is_some()) {
                different.push(format!("{option}={text}: refused"));
            }
        }
    }
    assert!(different.is_empty(), "{different:#?}");
}
