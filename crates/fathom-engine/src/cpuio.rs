//! `cpuio`: no I/O; burns a share of a processor's time.
//!
//! ```text
//!  ├── op: burn ──┼── pause ──┼── op: burn ──┼── pause ──┤      burn : pause = load : 100 − load
//! ```
//!
//! An op burns `cpuchunks` microseconds of processor time. The worker pauses after each, for as
//! long as [`EngineInfo::pause`] says. An op that finds the job's share below `cpuload`, because
//! other threads took the processor or a pause was long, burns until the share is met again.

use fathom_core::{
    Capabilities, Completion, Engine, EngineError, EngineInfo, EngineOption, EngineStep,
    EngineValues, JobEnd, Nanos, Op, OptionEffect, OptionWord, Queueing, Slot, Storage, Submitted,
    Taus88, Tick,
};
use fathom_sys::clock::Clock;
use fathom_sys::thread::processor_time;

use crate::EngineConfig;
use crate::options::U32;

/// Facts about `cpuio`.
pub(crate) static INFO: EngineInfo = EngineInfo {
    storage: Storage::None,
    job_end: JobEnd::Never,
    pause: Some(pause),
    options: &[CPULOAD, CPUMODE, CPUCHUNKS, EXIT_ON_IO_DONE],
    ..EngineInfo::new("cpuio", "no I/O; burns a share of a processor's time")
};

/// Share of the processor.
const CPULOAD: EngineOption = EngineOption::int(
    "cpuload",
    1,
    100,
    "Percentage of a processor's time to burn; required",
    "cpuload=50",
)
.different("more than 100 is an error; fio takes it for 100");

/// Instructions to burn time with.
const CPUMODE: EngineOption = EngineOption::choice(
    "cpumode",
    &[
        OptionWord {
            word: "noop",
            help: "an empty loop",
        },
        OptionWord {
            word: "qsort",
            help: "sorting numbers, which takes more power",
        },
    ],
    "Work that burns the processor's time",
    "cpumode=qsort",
)
.default("noop");

/// Processor time of an op.
const CPUCHUNKS: EngineOption = EngineOption::int(
    "cpuchunks",
    1,
    U32,
    "Processor time that an op burns, in microseconds",
    "cpuchunks=50000",
)
.default("50000");

/// End with the jobs that do I/O.
const EXIT_ON_IO_DONE: EngineOption = EngineOption::boolean(
    "exit_on_io_done",
    "End the job when the last job that performs I/O has ended",
    "exit_on_io_done=1",
)
.effect(OptionEffect::EndsWithIo);

/// Options of the engine, resolved.
#[derive(Clone, Copy, Debug)]
struct Options {
    percent: u64,
    chunk: Nanos,
    sorts: bool,
}

impl Options {
    /// Resolves the values of a job; `None` if `cpuload` is missing.
    fn resolve(values: &EngineValues) -> Option<Self> {
        let chunk_us = values.number(&CPUCHUNKS).unwrap_or(50_000);
        Some(Self {
            percent: values.number(&CPULOAD)?.clamp(1, 100),
            chunk: Nanos::from_micros(chunk_us),
            sorts: values.text(&CPUMODE) == Some("qsort"),
        })
    }
}

/// Returns the pause between two ops.
fn pause(values: &EngineValues) -> Nanos {
    // A job without `cpuload` is refused when its engine starts.
    Options::resolve(values).map_or(Nanos::ZERO, |options| {
        // Cannot overflow: 2³² µs × 99 < 2⁶⁴ ns.
        Nanos::new(options.chunk.get() * (100 - options.percent) / options.percent)
    })
}

/// Engine whose ops burn processor time.
///
/// An op longer than [`SLICE`] goes on in `wait`, slice by slice, so that a stop request ends it.
#[derive(Debug)]
pub(crate) struct Cpuio {
    options: Options,
    clock: Clock,
    numbers: Numbers,
    /// Time of the first op, and the thread's processor time then.
    since: Option<(Tick, Nanos)>,
    op: State,
}

/// State of the only slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Prepared(Completion),
    /// Burning, since the thread's processor time was this.
    Burning(Completion, Nanos),
    Done(Completion),
}

impl Cpuio {
    pub(crate) fn start(config: &EngineConfig) -> Result<Self, EngineError> {
        let options = Options::resolve(&config.options).ok_or_else(|| EngineError {
            step: EngineStep::Option(CPULOAD.name),
            target: "the job gives no load".into(),
            errno: None,
            hint: "add `cpuload=50`".into(),
        })?;
        Ok(Self {
            options,
            clock: config.clock,
            numbers: Numbers::new(),
            since: None,
            op: State::Free,
        })
    }

    /// Burns up to a slice of the op in flight, and returns the time afterwards.
    fn burn(&mut self) -> Tick {
        let State::Burning(completion, from) = self.op else {
            return self.clock.now();
        };
        let start = processor_time();
        let (since, before) = *self.since.get_or_insert((self.clock.now(), start));
        loop {
            if self.options.sorts {
                self.numbers.sort();
            } else {
                spin();
            }
            let (now, used) = (self.clock.now(), processor_time());
            let burnt = used - from;
            let share = (used - before).get() * 100;
            let is_met = share >= (now - since).get() * self.options.percent;
            let is_late = burnt.get() >= self.options.chunk.get() * CATCH_UP;
            if burnt >= self.options.chunk && (is_met || is_late) {
                self.op = State::Done(completion);
                return now;
            }
            if used - start >= SLICE {
                return now;
            }
        }
    }
}

impl Engine for Cpuio {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: INFO.name,
            synchronous: true,
            moves_data: false,
            syncs: Queueing::Queued,
            trims: Queueing::Queued,
        }
    }

    fn cancel(&mut self) {
        let (completion, is_whole) = match self.op {
            State::Prepared(completion) => (completion, false),
            // One that only catches up has done its work.
            State::Burning(completion, from) => {
                (completion, processor_time() - from >= self.options.chunk)
            }
            State::Free | State::Done(_) => return,
        };
        let result = match is_whole {
            true => completion.result,
            false => Completion::ENDED,
        };
        self.op = State::Done(Completion {
            result,
            ..completion
        });
    }

    fn buffer(&mut self, _slot: Slot) -> &mut [u8] {
        &mut []
    }

    fn prepare(&mut self, op: &Op) {
        assert_eq!(self.op, State::Free, "more ops than slots");
        self.op = State::Prepared(Completion {
            slot: op.slot,
            result: op.length.min(Completion::BYTES_MAX).cast_signed(),
        });
    }

    fn submit(&mut self, _want: u32) -> Submitted {
        let issue = self.clock.now();
        if let State::Prepared(completion) = self.op {
            self.op = State::Burning(completion, processor_time());
        }
        let now = self.burn();
        Submitted::Issued { issue, now }
    }

    fn reap(&mut self, out: &mut [Completion]) -> usize {
        let (State::Done(completion), [first, ..]) = (self.op, out) else {
            return 0;
        };
        *first = completion;
        self.op = State::Free;
        1
    }

    fn wait(&mut self, min: u32, _until: Option<Tick>) -> Result<(), EngineError> {
        if min > 0 {
            self.burn();
        }
        Ok(())
    }
}

/// Spins for about ten microseconds.
fn spin() {
    for _ in 0..SPINS {
        std::hint::spin_loop();
    }
}

/// Numbers to sort.
#[derive(Debug)]
struct Numbers {
    random: Taus88,
    list: Vec<u32>,
}

impl Numbers {
    fn new() -> Self {
        Self {
            random: Taus88::new(SEED),
            list: vec![0; NUMBERS],
        }
    }

    fn sort(&mut self) {
        for number in &mut self.list {
            *number = u32::try_from(self.random.below(1 << 32)).unwrap_or_default();
        }
        self.list.sort_unstable();
        std::hint::black_box(&mut self.list);
    }
}

/// Processor time after which a call returns, so that the driver sees a stop request.
const SLICE: Nanos = Nanos::from_millis(50);
/// Multiple of `cpuchunks` that an op burns at most to catch up, or a job that can never get its
/// share would never pause.
const CATCH_UP: u64 = 4;
/// Between two looks at the clocks, which take a microsecond: some ten microseconds (guess).
const SPINS: u32 = 500;
/// Numbers sorted at a time: 4 KiB, sorted in some 20 µs.
const NUMBERS: usize = 1024;
/// Arbitrary, but fixed.
const SEED: u64 = 0x6370_7569;

#[cfg(test)]
mod tests {
    use fathom_core::{Direction, FileIndex, OpKind};
    use fathom_sys::clock;

    use super::*;

    fn values(load: u64, chunk_us: u64) -> EngineValues {
        let values = EngineValues::default().with(&CPULOAD, load);
        values.with(&CPUCHUNKS, chunk_us)
    }

    #[test]
    fn burning_and_pausing_have_the_ratio_of_the_load() {
        let pause_us = |load, chunk| pause(&values(load, chunk)).get() / 1_000;
        assert_eq!(pause_us(50, 50_000), 50_000);
        assert_eq!(pause_us(100, 50_000), 0);
        assert_eq!(pause_us(20, 1_000), 4_000);
        assert_eq!(pause_us(1, U32), U32 * 99);
        assert_eq!(pause(&EngineValues::default()), Nanos::ZERO);
    }

    fn engine(load: u64, chunk_us: u64) -> Cpuio {
        let config = EngineConfig {
            options: values(load, chunk_us),
            ..EngineConfig::new(crate::built_in("cpuio"), Clock::monotonic())
        };
        Cpuio::start(&config).unwrap()
    }

    fn op() -> Op {
        Op {
            slot: Slot::new(0),
            kind: OpKind::Data(Direction::Read),
            priority: 0,
            file: FileIndex::new(0),
            length: 4096,
            buffer_offset: 0,
            offset: 0,
            sequence: 0,
        }
    }

    /// Runs an op to its end, and returns its result.
    fn run(engine: &mut Cpuio) -> i32 {
        engine.prepare(&op());
        engine.submit(0);
        let mut done = [Completion::default()];
        while engine.reap(&mut done) == 0 {
            engine.wait(1, None).unwrap();
        }
        done[0].result
    }

    #[test]
    fn an_op_burns_its_processor_time() {
        for mode in ["noop", "qsort"] {
            let mut engine = engine(50, 3_000);
            engine.options.sorts = mode == "qsort";
            let before = processor_time();
            assert_eq!(run(&mut engine), 4096);
            let burnt = processor_time() - before;
            // More only to catch up with what others took.
            let most = Nanos::from_micros(3_000 * CATCH_UP + 1_000);
            assert!(
                burnt >= Nanos::from_micros(3_000) && burnt <= most,
                "{burnt:?}"
            );
        }
    }

    /// Time that this thread has waited for a processor.
    fn waited() -> Option<Nanos> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split_whitespace().nth(1)?.parse().ok().map(Nanos::new)
    }

    #[test]
    fn a_job_gets_the_share_that_it_asks_for() {
        for load in [20, 50, 80] {
            let mut engine = engine(load, 2_000);
            let pause = pause(&values(load, 2_000));
            let (began, before, Some(waited_before)) =
                (engine.clock.now(), processor_time(), waited())
            else {
                println!("skipped: the kernel does not say how long threads wait");
                return;
            };
            for _ in 0..25 {
                run(&mut engine);
                clock::sleep(pause);
            }
            let took = (engine.clock.now() - began).get();
            let used = (processor_time() - before).get();
            let others = waited().unwrap_or_default() - waited_before;
            if others.get() > took / 10 {
                println!("skipped: others took a tenth of the time");
                continue;
            }
            let percent = used * 100 / took;
            assert!(percent.abs_diff(load) <= 5, "{percent} % of {load} %");
        }
    }

    #[test]
    fn a_long_op_goes_on_slice_by_slice_and_can_be_cancelled() {
        let mut engine = engine(50, u64::from(u32::MAX));
        engine.prepare(&op());
        engine.submit(0);
        let mut done = [Completion::default()];
        assert_eq!(engine.reap(&mut done), 0);
        engine.wait(1, None).unwrap();
        assert_eq!(engine.reap(&mut done), 0);
        engine.cancel();
        engine.cancel();
        assert_eq!(
            (engine.reap(&mut done), done[0].result),
            (1, Completion::ENDED)
        );
        assert_eq!(engine.reap(&mut done), 0);
    }
}
