//! General options: name, duration, repetition, order, clock and CPUs of a job.

use fathom_core::Nanos;

use super::process::NO_CPU;
use super::read::narrow;
use super::row::{Choice, EmptyValue, Row, UNUSED_IN_FIO, ValueKind};
use crate::findings::Findings;
use crate::plan::{ClockSource, CpuPolicy, Options};
use crate::problem::{Piece, Problem};
use crate::reading;
use crate::time::{self, Bare};

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "name",
        "",
        "Job name; starts a new job on the command line; in a job file it does not change file \
         names",
        "name=random-read",
        // The name is not among the options of the plan: the builder takes it.
        ValueKind::Text(|_, _| {}),
    )
    .different(
        "reports print the full name, so that jobs remain distinguishable (`--summary` leaves out \
         the middle of long ones); fio's print the first 127 bytes. A section name longer than \
         255 bytes is truncated, as in fio, with a note; under the name `fathom` it is an error",
    ),
    Row::new(
        "description",
        "",
        "Text printed with the results",
        "description=nightly check",
        ValueKind::Text(|o, text| o.description = Some(text.to_owned())),
    ),
    Row::new(
        "loops",
        "1",
        "Number of times to run the job",
        "loops=3",
        ValueKind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.loops = narrow(v).max(1),
        },
    ),
    Row::new(
        "numjobs",
        "1",
        "Number of clones of the job to run in parallel",
        "numjobs=4",
        ValueKind::Int {
            min: 1,
            max: U32,
            set: |o, v| o.numjobs = narrow(v),
        },
    )
    .fio(0, U32)
    .different(
        "0 is refused when the job is about to run, as in fio, whose message complains about too \
         many jobs",
    ),
    Row::new(
        "startdelay",
        "0",
        "Delay before starting; range: each clone draws its own delay",
        "startdelay=5s",
        ValueKind::Special {
            form: "time or low-high range of times, in seconds (opt=10s)",
            read: startdelay,
        },
    )
    .numeric()
    .stricter(TIMES)
    .different(
        "a range is put in order, and a negative time counts as 0; in fio, clones whose draw fails \
         in this way wait forever",
    ),
    Row::new(
        "runtime",
        "",
        "End the job after this time",
        "runtime=30s",
        ValueKind::Time {
            bare: Bare::Seconds,
            set: |o, v| o.runtime = (!v.is_zero()).then_some(v),
        },
    )
    .aliases(&["timeout"])
    .stricter(TIMES),
    Row::new(
        "time_based",
        "0",
        "Run for all of `runtime`, starting over whenever `size` is done",
        "time_based",
        ValueKind::Flag(|o, v| o.time_based = v),
    ),
    Row::new(
        "ramp_time",
        "0",
        "Warm-up time excluded from results",
        "ramp_time=5s",
        ValueKind::Time {
            bare: Bare::Seconds,
            set: |o, v| o.ramp_time = v,
        },
    )
    .stricter(TIMES),
    Row::new(
        "ramp_size",
        "0",
        "Warm-up bytes excluded from results",
        "ramp_size=64m",
        ValueKind::Int {
            min: 1,
            max: u64::MAX,
            set: |o, v| o.ramp_size = v,
        },
    ),
    Row::new(
        "clocksource",
        "cpu if the TSC is reliable, else clock_gettime",
        "Clock used for timestamps",
        "clocksource=clock_gettime",
        ValueKind::Choice(&[
            choice("cpu", "CPU timestamp counter (TSC)", |o| {
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
        "CPU reserved for a thread that reads the clock for all jobs",
        "gtod_cpu=1",
        ValueKind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.gtod_cpu = Some(narrow(v)),
        },
    )
    .different(
        "no job runs on that CPU; the report states the longest interval between two clock updates",
    ),
    Row::new(
        "stonewall",
        "0",
        "Start after all earlier jobs have ended",
        "stonewall",
        ValueKind::Flag(|o, v| o.stonewall = v),
    )
    .aliases(&["wait_for_previous"]),
    Row::new(
        "new_group",
        "0",
        "Start a new reporting group",
        "new_group",
        ValueKind::Flag(|o, v| o.new_group = v),
    ),
    Row::new(
        "thread",
        "0",
        "Run the job as a thread instead of a process",
        "thread",
        ValueKind::Flag(|o, v| o.thread = v),
    )
    .different("jobs are always threads"),
    Row::new(
        "kb_base",
        "1024",
        "Meaning of size units",
        "kb_base=1000",
        ValueKind::Choice(&[
            choice(
                "1024",
                "k is 1024, kib is 1000 (fio's historical units)",
                |o| o.kb_base = 1024,
            ),
            choice("1000", "k is 1000, kib is 1024 (SI and IEC units)", |o| {
                o.kb_base = 1000
            }),
        ]),
    ),
    Row::new(
        "unit_base",
        "0",
        "Unit of bandwidth in reports",
        "unit_base=8",
        ValueKind::Choice(&[
            choice("0", "chosen by the engine", |o| o.unit_base = 0),
            choice("8", "bytes", |o| o.unit_base = 8),
            choice("1", "bits", |o| o.unit_base = 1),
        ]),
    ),
    Row::new(
        "cpus_allowed",
        "",
        "CPUs the job may run on",
        "cpus_allowed=0",
        ValueKind::Special {
            form: "list of CPUs (opt=0-3,5)",
            read: cpus_allowed,
        },
    )
    .empty(EmptyValue::Means(NO_CPU, |o| {
        o.cpus_allowed = Some(Vec::new());
    }))
    .stricter("flags malformed lists, of which fio reads the valid beginning"),
    Row::new(
        "cpus_allowed_policy",
        "shared",
        "Distribution of the CPUs in `cpus_allowed` over clones",
        "cpus_allowed_policy=split",
        ValueKind::Choice(&[
            choice("shared", "every clone may use all of them", |o| {
                o.cpus_allowed_policy = CpuPolicy::Shared;
            }),
            choice("split", "each clone is pinned to one of them", |o| {
                o.cpus_allowed_policy = CpuPolicy::Split
            }),
        ]),
    ),
    Row::new(
        "nice",
        "0",
        "Nice value of the job",
        "nice=5",
        ValueKind::Signed {
            min: -20,
            max: 19,
            set: |o, v| o.nice = i32::try_from(v).unwrap_or_default(),
        },
    ),
    Row::new(
        "flow_watermark",
        "",
        "No effect; accepted for compatibility",
        "flow_watermark=1",
        ValueKind::Ignored(UNUSED_IN_FIO),
    ),
];

/// Creates a choice: word, meaning and setter.
pub(super) const fn choice(
    word: &'static str,
    help: &'static str,
    set: fn(&mut Options),
) -> Choice {
    Choice { word, help, set }
}

fn startdelay(options: &mut Options, text: &str, findings: &mut Findings) -> Result<(), Problem> {
    let documented = |_: &mut Findings| {
        let pieces = Piece::new(text).split(&['-', ':']);
        let end = |piece| time::time(piece, Bare::Seconds);
        let is_bare = |piece: &Piece<'_>| piece.text.trim().ends_with(|c: char| c.is_ascii_digit());
        match pieces[..] {
            [only] => Ok((end(only)?, end(only)?)),
            // fio takes the unit of the end for both, unless a colon is between them.
            [low, high] if is_bare(&low) == is_bare(&high) => Ok((end(low)?, end(high)?)),
            [low, high] => {
                end(low).and(end(high))?;
                let why = format!("only one end of the range `{text}` has a unit");
                let problem = Problem::new("one-unit", 0..text.len(), why);
                Err(problem.fix("give both ends a unit, as in `startdelay=5s-10s`"))
            }
            _ => Err(not_a_range(text, "startdelay=5s-10s")),
        }
    };
    let (low, high) = findings.documented_or_fio_value(documented, || reading::delays(text))?;
    options.startdelay = (low.min(high), Nanos::max(low, high));
    Ok(())
}

/// Returns the problem of a text that is not a range.
pub(super) fn not_a_range(text: &str, example: &str) -> Problem {
    Problem::new(
        "bad-range",
        0..text.len(),
        format!("`{text}` is not a range"),
    )
    .fix(format!("write it like `{example}`"))
}

pub(super) fn cpus_allowed(
    options: &mut Options,
    text: &str,
    findings: &mut Findings,
) -> Result<(), Problem> {
    let cpus = match processors(text) {
        Ok(cpus) => cpus,
        Err(problem) => {
            let cpus = processors_in_fio(text);
            let shown: Vec<_> = cpus.iter().map(u32::to_string).collect();
            let shown = match shown.as_slice() {
                [] => "no CPU".to_owned(),
                cpus => cpus.join(","),
            };
            findings.misread(problem, shown)?;
            cpus
        }
    };
    options.cpus_allowed = Some(cpus);
    Ok(())
}

fn processors(text: &str) -> Result<Vec<u32>, Problem> {
    let mut cpus = Vec::new();
    for piece in Piece::new(text).split(&[',']) {
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
                format!("the range `{}` is reversed", piece.text),
            )
            .fix("write the lower CPU first"));
        }
        cpus.extend(low..=high);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// Returns fio's reading: entries up to the first empty one, and the leading digits of each end, or
/// 0. If that leaves the job no CPU, the job is refused when it is to run.
fn processors_in_fio(text: &str) -> Vec<u32> {
    let mut cpus = Vec::new();
    for entry in text.split(',').take_while(|entry| !entry.is_empty()) {
        let (low, high) = entry.split_once('-').unwrap_or((entry, entry));
        let (low, high) = (reading::atoi(low), reading::atoi(high));
        let high = high.min(u64::from(CPUS_MAX));
        cpus.extend((low..=high).filter_map(|cpu| u32::try_from(cpu).ok()));
    }
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

fn cpu(piece: Piece<'_>) -> Result<u32, Problem> {
    let piece = piece.trim();
    match piece.text.parse() {
        Ok(number) if number < CPUS_MAX => Ok(number),
        _ => Err(Problem::new(
            "bad-cpu",
            piece.range(),
            format!("`{}` is not a CPU number", piece.text),
        )
        .fix("write CPU numbers and ranges, as in `cpus_allowed=0-3,5`")),
    }
}

/// The kernel's limit of CPUs.
const CPUS_MAX: u32 = 8192;

pub(super) const TIMES: &str = "flags fractions (`1.5s`), which fio truncates, and unknown units \
                                (`min`, `sec`), which fio reads as microseconds";

/// Maximum of fio's 32-bit options.
pub(super) const U32: u64 = u32::MAX as u64;
