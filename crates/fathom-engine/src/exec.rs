//! `exec`: no I/O; runs a program for the duration of the job.
//!
//! ```text
//!  ├─ op ─┼─ op ─┼─ … ─┼─ op ─┤         an op watches the program for at most 100 ms
//!  ▲ program starts           ▲ job ends: SIGTERM, `grace_time`, SIGKILL to its process group
//! ```
//!
//! With a `runtime`, the job lasts that long, as in fio, even if the program ends earlier; without
//! one it ends with the program. A program that fails fails the job.

use std::fs::File;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use fathom_core::{
    Capabilities, Completion, Engine, EngineError, EngineInfo, EngineOption, EngineStep, Errno,
    JobEnd, Nanos, Op, Queueing, Slot, Storage, Submitted, Tick,
};
use fathom_sys::child::Child;
use fathom_sys::clock::{Clock, sleep_until};

use crate::options::U32;
use crate::{EngineConfig, JobFacts};

/// Facts about `exec`.
pub(crate) static INFO: EngineInfo = EngineInfo {
    storage: Storage::None,
    job_end: JobEnd::Engine,
    options: &[PROGRAM, ARGUMENTS, GRACE_TIME, STD_REDIRECT],
    ..EngineInfo::new("exec", "no I/O; runs a program for the duration of the job")
};

/// Program to run.
const PROGRAM: EngineOption = EngineOption::text(
    "program",
    "Program to run, searched for in PATH if it has no slash; required",
    "program=/usr/bin/vmstat",
)
.different("a program that does not exist, or that fails, is an error");

/// Arguments of the program.
const ARGUMENTS: EngineOption = EngineOption::text(
    "arguments",
    "Arguments of the program, separated by blanks; %r: runtime in seconds, %n: name of the job",
    "arguments=-n 1 %r",
);

/// Time to end in order.
const GRACE_TIME: EngineOption = EngineOption::int(
    "grace_time",
    0,
    U32,
    "Seconds between SIGTERM and SIGKILL when the job ends",
    "grace_time=5",
)
.default("1");

/// Files for the program's output.
const STD_REDIRECT: EngineOption = EngineOption::boolean(
    "std_redirect",
    "Redirect the program's output to NAME.stdout and NAME.stderr, after the job",
    "std_redirect=0",
)
.default("1")
.different("clones of a job have files of their own, `NAME.1.stdout`; in fio they share one");

/// Engine that runs a program.
#[derive(Debug)]
pub(crate) struct Exec {
    clock: Clock,
    program: PathBuf,
    arguments: Vec<String>,
    grace: Nanos,
    /// Files for standard output and standard error.
    output: Option<[String; 2]>,
    /// The job lasts for its `runtime`, whatever the program does.
    is_timed: bool,
    child: Stage,
    op: Option<Watch>,
    done: Option<Completion>,
}

/// Stage of the program.
#[derive(Debug)]
enum Stage {
    NotStarted,
    Running(Child),
    Ended,
}

/// Op in flight.
#[derive(Clone, Copy, Debug)]
struct Watch {
    completion: Completion,
    until: Tick,
}

impl Exec {
    pub(crate) fn start(config: &EngineConfig) -> Result<Self, EngineError> {
        let values = &config.options;
        let name = values.text(&PROGRAM).unwrap_or_default();
        let program = find(name).map_err(|error| EngineError {
            step: EngineStep::Option(PROGRAM.name),
            target: match name {
                "" => "the job names no program".into(),
                _ => name.into(),
            },
            errno: Errno::of(&error).filter(|_| !name.is_empty()),
            hint: "write `program=/path/to/program`".into(),
        })?;
        let redirects = values.number(&STD_REDIRECT) != Some(0);
        let arguments = values.text(&ARGUMENTS).unwrap_or_default();
        Ok(Self {
            clock: config.clock,
            program,
            arguments: expand(arguments, &config.job),
            grace: Nanos::from_secs(values.number(&GRACE_TIME).unwrap_or(1)),
            output: redirects.then(|| output_names(&config.job)),
            is_timed: config.job.runtime.is_some(),
            child: Stage::NotStarted,
            op: None,
            done: None,
        })
    }

    /// Starts the program.
    fn spawn(&self) -> Result<Child, EngineError> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::null());
        if let Some([out, err]) = &self.output {
            command.stdout(create(out)?).stderr(create(err)?);
        }
        let child = Child::spawn(&mut command);
        child.map_err(|error| self.failure(&error.to_string(), "check `program`"))
    }

    /// Watches the program until the op's time is over, and returns the op's result.
    fn watch(&mut self, watch: Watch) -> Result<Option<i32>, EngineError> {
        if let Stage::NotStarted = self.child {
            self.child = Stage::Running(self.spawn()?);
        }
        loop {
            if let Stage::Running(child) = &mut self.child {
                let ended = child.poll();
                let ended = ended.map_err(|error| self.failure(&error.to_string(), ""))?;
                if let Some(status) = ended {
                    self.child = Stage::Ended;
                    self.judge(status)?;
                }
            }
            if matches!(self.child, Stage::Ended) && !self.is_timed {
                return Ok(Some(Completion::ENDED));
            }
            let now = self.clock.now();
            if now >= watch.until {
                return Ok(Some(watch.completion.result));
            }
            sleep_until(&self.clock, watch.until.min(now + LOOK_EVERY));
        }
    }

    /// Turns a failure of the program into one of the job.
    fn judge(&self, status: ExitStatus) -> Result<(), EngineError> {
        if status.success() {
            return Ok(());
        }
        let hint = match &self.output {
            Some([_, err]) => format!("see {err}"),
            None => "see what it has printed".into(),
        };
        Err(self.failure(&status.to_string(), &hint))
    }

    fn failure(&self, why: &str, hint: &str) -> EngineError {
        EngineError {
            step: EngineStep::Option(PROGRAM.name),
            target: format!("{}: {why}", self.program.display()),
            errno: None,
            hint: hint.into(),
        }
    }

    fn end(&mut self) {
        if let Stage::Running(child) = &mut self.child {
            child.end_within(self.grace);
        }
        self.child = Stage::Ended;
    }
}

impl Drop for Exec {
    fn drop(&mut self) {
        self.end();
    }
}

impl Engine for Exec {
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
        self.end();
        if let Some(watch) = self.op.take() {
            self.done = Some(watch.completion);
        }
    }

    fn buffer(&mut self, _slot: Slot) -> &mut [u8] {
        &mut []
    }

    fn prepare(&mut self, op: &Op) {
        assert!(
            self.op.is_none() && self.done.is_none(),
            "more ops than slots"
        );
        self.op = Some(Watch {
            completion: Completion {
                slot: op.slot,
                result: op.length.min(Completion::BYTES_MAX).cast_signed(),
            },
            until: Tick::ZERO,
        });
    }

    /// Leaves everything to `wait`, which can report a program that does not start.
    fn submit(&mut self, _want: u32) -> Submitted {
        let now = self.clock.now();
        if let Some(watch) = &mut self.op {
            watch.until = now + WATCH;
        }
        Submitted::Issued { issue: now, now }
    }

    fn reap(&mut self, out: &mut [Completion]) -> usize {
        let (Some(first), Some(completion)) = (out.first_mut(), self.done.take()) else {
            return 0;
        };
        *first = completion;
        1
    }

    fn wait(&mut self, min: u32, _until: Option<Tick>) -> Result<(), EngineError> {
        let Some(watch) = self.op.filter(|_| min > 0) else {
            return Ok(());
        };
        let result = self.watch(watch)?;
        self.op = None;
        self.done = result.map(|result| Completion {
            result,
            ..watch.completion
        });
        Ok(())
    }
}

/// Returns the path of a program.
fn find(name: &str) -> io::Result<PathBuf> {
    if name.contains('/') {
        return executable(Path::new(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).map(|folder| folder.join(name));
    let mut found = places.filter_map(|place| executable(&place).ok());
    let none = || io::Error::from_raw_os_error(Errno::ENOENT.get());
    found.next().filter(|_| !name.is_empty()).ok_or_else(none)
}

/// Returns the path if it is that of a program.
fn executable(path: &Path) -> io::Result<PathBuf> {
    let metadata = std::fs::metadata(path)?;
    if metadata.is_file() && metadata.permissions().mode() & 0o111 != 0 {
        return Ok(path.to_owned());
    }
    Err(io::Error::from_raw_os_error(Errno::EACCES.get()))
}

/// Returns the arguments with `%r` and `%n` replaced. A name with blanks stays one argument.
fn expand(arguments: &str, job: &JobFacts) -> Vec<String> {
    let seconds = job
        .runtime
        .map_or(0, |runtime| runtime.get() / 1_000_000_000);
    let seconds = seconds.to_string();
    let words = arguments.split_whitespace();
    let words = words.map(|word| word.replace("%r", &seconds).replace("%n", &job.name));
    words.collect()
}

/// Returns the names of the files for the program's output.
fn output_names(job: &JobFacts) -> [String; 2] {
    // A name with a slash would be a path.
    let mut name = job.name.replace('/', ".");
    if job.clone > 0 {
        name += &format!(".{}", job.clone);
    }
    [format!("{name}.stdout"), format!("{name}.stderr")]
}

/// Creates a file for output. Opened for reading, too, or a named pipe would block until it is
/// read.
fn create(name: &str) -> Result<File, EngineError> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(true);
    options.open(name).map_err(|error| EngineError {
        step: EngineStep::Open,
        target: name.into(),
        errno: Errno::of(&error),
        hint: "make it writable, or add `std_redirect=0`".into(),
    })
}

/// Duration of an op: the longest that the driver may wait to see a stop request.
const WATCH: Nanos = Nanos::from_millis(100);
/// Interval between looks at the program.
const LOOK_EVERY: Nanos = Nanos::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_words_with_the_job_in_them() {
        let job = JobFacts {
            name: "a b".into(),
            clone: 0,
            runtime: Some(Nanos::from_millis(2_900)),
        };
        let check = |text, want: &[&str]| assert_eq!(expand(text, &job), want, "{text}");
        check("", &[]);
        check("-t %r --name=%n", &["-t", "2", "--name=a b"]);
        check("\"%n  x%ry %%", &["\"a b", "x2y", "%%"]);
        assert_eq!(expand("%r", &JobFacts::default()), ["0"]);
    }

    #[test]
    fn each_clone_has_files_of_its_own() {
        let names = |clone| {
            output_names(&JobFacts {
                name: "a/b".into(),
                clone,
                runtime: None,
            })
        };
        assert_eq!(names(0), ["a.b.stdout", "a.b.stderr"]);
        assert_eq!(names(3)[0], "a.b.3.stdout");
    }

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        assert!(find("sh").unwrap().is_absolute());
        assert!(find("/bin/sh").is_ok());
        for bad in [
            "",
            "/",
            "/etc/passwd",
            "no-such-program",
            "./no-such-program",
        ] {
            assert!(find(bad).is_err(), "{bad}");
        }
    }
}
