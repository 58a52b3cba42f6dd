//! What a job is, how often it runs, for how long, in what order and under which identity.

use fathom_core::Nanos;

use super::read::narrow;
use super::row::{Choice, GIVEN_UP, Kind, Row};
use crate::findings::Findings;
use crate::plan::{ClockSource, CpuPolicy, Options};
use crate::problem::{Piece, Problem};
use crate::reading;
use crate::time::{self, Bare};

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "name",
        "",
        "Name of the job; begins one on the command line; in a section it leaves file names alone",
        "name=random-read",
        // The job's name is no option of the plan: the parser takes it.
        Kind::Text(|_, _| {}),
    )
    .different(
        "reports have the whole name, so that jobs can be told apart; fio's have its first 127 \
         bytes. A section of a job file whose name is longer than 255 bytes is cut, as in fio, \
         with a note; as `fathom` it is an error",
    ),
    Row::new(
        "description",
        "",
        "Text that is printed with the results",
        "description=nightly check",
        Kind::Text(|o, text| o.description = Some(text.to_owned())),
    ),
    Row::new(
        "loops",
        "1",
        "How many times to run the whole job",
        "loops=3",
        Kind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.loops = narrow(v).max(1),
        },
    ),
    Row::new(
        "numjobs",
        "1",
        "How many clones of the job to run side by side",
        "numjobs=4",
        Kind::Int {
            min: 1,
            max: U32,
            set: |o, v| o.numjobs = narrow(v),
        },
    )
    .fio(0, U32)
    .different("0 is refused when the job is to run, as in fio, which speaks of too many jobs"),
    Row::new(
        "startdelay",
        "0",
        "Wait so long before the job starts; a range is drawn from for each clone",
        "startdelay=5s",
        Kind::Special {
            form: "time or low-high range of times, in seconds (opt=10s)",
            read: startdelay,
        },
    )
    .numeric()
    .stricter(TIMES),
    Row::new(
        "runtime",
        "",
        "End the job after so much time",
        "runtime=30s",
        Kind::Time {
            bare: Bare::Seconds,
            set: |o, v| o.runtime = (!v.is_zero()).then_some(v),
        },
    )
    .aliases(&["timeout"])
    .stricter(TIMES),
    Row::new(
        "time_based",
        "0",
        "Begin again until `runtime` is over, even if all is read or written",
        "time_based",
        Kind::Flag(|o, v| o.time_based = v),
    ),
    Row::new(
        "ramp_time",
        "0",
        "Run so long before anything is counted",
        "ramp_time=5s",
        Kind::Time {
            bare: Bare::Seconds,
            set: |o, v| o.ramp_time = v,
        },
    )
    .stricter(TIMES),
    Row::new(
        "ramp_size",
        "0",
        "Move so many bytes before anything is counted",
        "ramp_size=64m",
        Kind::Int {
            min: 1,
            max: u64::MAX,
            set: |o, v| o.ramp_size = v,
        },
    ),
    Row::new(
        "clocksource",
        "the processor's counter where it can be trusted",
        "Where the time comes from",
        "clocksource=clock_gettime",
        Kind::Choice(&[
            choice("cpu", "the processor's time-stamp counter", |o| {
                o.clocksource = ClockSource::Cpu
            }),
            choice("clock_gettime", "clock_gettime(2)", |o| {
                o.clocksource = ClockSource::ClockGettime;
            }),
            choice("gettimeofday", "gettimeofday(2)", |o| {
                o.clocksource = ClockSource::Gettimeofday;
            }),
        ]),
    ),
    Row::new(
        "gtod_cpu",
        "none",
        "Give this CPU to a thread that reads the clock for all jobs",
        "gtod_cpu=1",
        Kind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.gtod_cpu = Some(narrow(v)),
        },
    )
    .different("no other job runs on it; the report says how long the time stood still at most"),
    Row::new(
        "stonewall",
        "0",
        "Start only when all earlier jobs have ended",
        "stonewall",
        Kind::Flag(|o, v| o.stonewall = v),
    )
    .aliases(&["wait_for_previous"]),
    Row::new(
        "new_group",
        "0",
        "Begin a new group of results",
        "new_group",
        Kind::Flag(|o, v| o.new_group = v),
    ),
    Row::new(
        "thread",
        "0",
        "Run the job as a thread, not as a process",
        "thread",
        Kind::Flag(|o, v| o.thread = v),
    )
    .different("every job is a thread, whatever is said"),
    Row::new(
        "kb_base",
        "1024",
        "What `k` means",
        "kb_base=1000",
        Kind::Choice(&[
            choice(
                "1024",
                "k is 1024, kib is 1000 (as old job files have it)",
                |o| o.kb_base = 1024,
            ),
            choice("1000", "k is 1000, kib is 1024 (the standard)", |o| {
                o.kb_base = 1000
            }),
        ]),
    ),
    Row::new(
        "unit_base",
        "0",
        "Report bytes or bits",
        "unit_base=8",
        Kind::Choice(&[
            choice("0", "what suits the engine", |o| o.unit_base = 0),
            choice("8", "bytes", |o| o.unit_base = 8),
            choice("1", "bits", |o| o.unit_base = 1),
        ]),
    ),
    Row::new(
        "cpus_allowed",
        "",
        "The processors the job may run on",
        "cpus_allowed=0",
        Kind::Special {
            form: "list of processors (opt=0-3,5)",
            read: cpus_allowed,
        },
    )
    .stricter("what is not a list of processors; fio reads as far as it can"),
    Row::new(
        "cpus_allowed_policy",
        "shared",
        "How clones share the processors of `cpus_allowed`",
        "cpus_allowed_policy=split",
        Kind::Choice(&[
            choice("shared", "each may run on all of them", |o| {
                o.cpus_allowed_policy = CpuPolicy::Shared;
            }),
            choice("split", "each gets one of them", |o| {
                o.cpus_allowed_policy = CpuPolicy::Split
            }),
        ]),
    ),
    Row::new(
        "nice",
        "0",
        "The job's nice value",
        "nice=5",
        Kind::Signed {
            min: -20,
            max: 19,
            set: |o, v| o.nice = i32::try_from(v).unwrap_or_default(),
        },
    ),
    Row::new(
        "flow_watermark",
        "",
        "Nothing any more",
        "flow_watermark=1",
        Kind::Ignored(GIVEN_UP),
    ),
];

/// A word, what it means, and what it sets.
pub(super) const fn choice(
    word: &'static str,
    help: &'static str,
    set: fn(&mut Options),
) -> Choice {
    Choice { word, help, set }
}

fn startdelay(options: &mut Options, text: &str, findings: &mut Findings) -> Result<(), Problem> {
    let pieces = Piece::whole(text).split(&['-', ':']);
    let (low, high) = match pieces.as_slice() {
        [only] => {
            let delay = time::settled(*only, Bare::Seconds, findings)?;
            (delay, delay)
        }
        [low, high, rest @ ..] => {
            if !rest.is_empty() {
                let shown = &text[..high.at + high.text.len()];
                findings.misread(not_a_range(text, "startdelay=5s-10s"), shown)?;
            }
            let mut end = |piece| time::settled(piece, Bare::Seconds, findings);
            (end(*low)?, end(*high)?)
        }
        [] => return Err(not_a_range(text, "startdelay=5s-10s")),
    };
    options.startdelay = (low.min(high), Nanos::max(low, high));
    Ok(())
}

/// A text that has more than two ends.
pub(super) fn not_a_range(text: &str, example: &str) -> Problem {
    Problem::new(
        "bad-range",
        0..text.len(),
        format!("`{text}` is not a range"),
    )
    .fix(format!("write it as in `{example}`"))
}

pub(super) fn cpus_allowed(
    options: &mut Options,
    text: &str,
    findings: &mut Findings,
) -> Result<(), Problem> {
    let cpus = match processors(text) {
        Ok(cpus) => cpus,
        Err(problem) => {
            let cpus = processors_in_fio(text).ok_or_else(|| problem.clone())?;
            let shown: Vec<_> = cpus.iter().map(u32::to_string).collect();
            findings.misread(problem, shown.join(","))?;
            cpus
        }
    };
    options.cpus_allowed = Some(cpus);
    Ok(())
}

fn processors(text: &str) -> Result<Vec<u32>, Problem> {
    let mut cpus = Vec::new();
    for piece in Piece::whole(text).split(&[',']) {
        let ends = piece.split(&['-']);
        let (low, high) = match ends.as_slice() {
            [only] => (cpu(*only)?, cpu(*only)?),
            [low, high] => (cpu(*low)?, cpu(*high)?),
            _ => return Err(not_a_range(piece.text, "cpus_allowed=0-3").shifted(piece.at)),
        };
        if low > high {
            return Err(Problem::new(
                "bad-range",
                piece.range(),
                format!("`{}` ends before it begins", piece.text),
            )
            .fix("write the lower processor first"));
        }
        cpus.extend(low..=high);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// fio's reading: up to the first empty entry, and of each end its digits, or 0 without any.
/// `None` where that leaves the job no processor, with which fio does not run it.
fn processors_in_fio(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for entry in text.split(',').take_while(|entry| !entry.is_empty()) {
        let (low, high) = entry.split_once('-').unwrap_or((entry, entry));
        let (low, high) = (reading::whole(low), reading::whole(high));
        let high = high.min(u64::from(CPUS_MAX));
        cpus.extend((low..=high).filter_map(|cpu| u32::try_from(cpu).ok()));
    }
    cpus.sort_unstable();
    cpus.dedup();
    (!cpus.is_empty()).then_some(cpus)
}

fn cpu(piece: Piece<'_>) -> Result<u32, Problem> {
    let piece = piece.trim();
    match piece.text.parse() {
        Ok(number) if number < CPUS_MAX => Ok(number),
        _ => Err(Problem::new(
            "bad-cpu",
            piece.range(),
            format!("`{}` is not a processor's number", piece.text),
        )
        .fix("write numbers and ranges, as in `cpus_allowed=0-3,5`")),
    }
}

/// No machine has more processors than this (the kernel's limit is 8192).
const CPUS_MAX: u32 = 8192;

pub(super) const TIMES: &str = "fractions (`1.5s`) and units that fio does not know (`min`, `sec`) \
    are objected to; fio cuts them or takes microseconds";

/// The largest number of fio's 32-bit options.
pub(super) const U32: u64 = u32::MAX as u64;
