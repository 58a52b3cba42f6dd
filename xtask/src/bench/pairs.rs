//! Pairs of runs in alternating order, so that a slow drift of the machine affects both sides
//! alike.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context, Result};

use super::baseline::Baseline;
use super::callgrind;
use super::data::{self, TestFile};
use super::nvme::{self, Core};
use super::programs::{self, Program, Programs};
use super::row::{MANY_JOBS, Measure, Method, On, Row};
use super::run_report::{self, RunReport};
use super::truth;
use super::zram::Zram;

/// Values of one pair of runs for one check.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pair {
    /// Value of fio, or of the other side of the comparison.
    pub(crate) other: f64,
    pub(crate) fathom: f64,
}

/// State of a benchmark: programs, targets and options.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) programs: Programs,
    /// Measured seconds of each run.
    pub(crate) seconds: u32,
    /// Device that rows read instead of the test file on a disk.
    pub(crate) device: Option<PathBuf>,
    /// Test file, if a row reads it.
    pub(crate) file: Option<TestFile>,
    /// File of verified blocks, if a row reads it.
    pub(crate) verified: Option<TestFile>,
    /// zram device, if a row reads it and it could be set up.
    pub(crate) zram: Option<Zram>,
    pub(crate) baseline: Baseline,
    /// Replace the baseline's counts with those measured.
    pub(crate) keep: bool,
    /// Best fixed settings of targets, found on the way.
    pub(crate) best: nvme::Choice,
}

impl Bench {
    /// Runs a row's pairs, every second one in reverse order; returns the pairs of each check.
    pub(crate) fn pairs(&mut self, row: &Row, count: usize) -> Result<Vec<Vec<Pair>>> {
        let mut lines = vec![Vec::with_capacity(count); row.checks.len()];
        // Counts repeat exactly, so one pair is enough.
        let counted = matches!(row.method, Method::Counted | Method::CountedWith(_));
        for index in 0..if counted { 1 } else { count } {
            let pairs = self.sample(row, index % 2 == 1)?;
            for ((line, pair), check) in lines.iter_mut().zip(pairs).zip(row.checks) {
                let [other, fathom] = [pair.other, pair.fathom].map(|v| check.measure.show(v));
                println!("bench:   {} {other}, fathom {fathom}", check.beside);
                line.push(pair);
            }
        }
        Ok(lines)
    }

    /// Runs one pair and returns it for each check of the row.
    fn sample(&mut self, row: &Row, fathom_first: bool) -> Result<Vec<Pair>> {
        match row.method {
            Method::Fio => {
                let other = || self.values(Program::Fio, row);
                let fathom = || self.values(Program::FathomRun, row);
                let (other, fathom) = in_turn(fathom_first, other, fathom)?;
                let both = other.into_iter().zip(fathom);
                Ok(both.map(|(other, fathom)| Pair { other, fathom }).collect())
            }
            Method::HalfRate => self.half_rate(row),
            Method::ManyJobs => one(in_turn(
                fathom_first,
                || self.two_single_jobs(row),
                || self.many_jobs(row),
            )),
            Method::Peak(words) => one(in_turn(
                fathom_first,
                || self.peak(row, words),
                || Ok(self.report(Program::FathomRun, row, &[])?.iops),
            )),
            Method::RingLoop(raw, words) => one(in_turn(
                fathom_first,
                || self.ring_loop(row, raw),
                || self.peak(row, words),
            )),
            Method::With(words) => {
                let without = || self.with(row, &[]);
                let with = || self.with(row, words);
                let (other, fathom) = in_turn(fathom_first, without, with)?;
                let both = other.into_iter().zip(fathom);
                Ok(both.map(|(other, fathom)| Pair { other, fathom }).collect())
            }
            Method::Modelled(machine) => {
                let rate = self.modelled(row, machine)?;
                one(Ok((rate, rate)))
            }
            Method::Truth(truth) => truth::sample(self, row, truth, fathom_first),
            Method::Nvme(method) => nvme::sample(self, row, method, fathom_first),
            Method::Counted => self.counted(row),
            Method::CountedWith(words) => {
                let more = [row.job, words].concat();
                one(Ok((self.count(row.job)?, self.count(&more)?)))
            }
        }
    }

    /// Runs one program once and returns a value per check.
    fn values(&self, program: Program, row: &Row) -> Result<Vec<f64>> {
        let first = row.checks.first().map(|check| check.measure);
        match first {
            Some(Measure::PeakMemory) => {
                let mut command = self.job(program, row, self.one_core(), self.seconds)?;
                Ok(vec![programs::peak_memory(&mut command)?])
            }
            Some(Measure::WholeRun) => {
                let mut command = self.job(program, row, self.one_core(), self.seconds)?;
                let (_report, seconds) = programs::timed(&mut command)?;
                Ok(vec![seconds * 1000.0])
            }
            _ => {
                let report = self.report(program, row, &[])?;
                let values = row.checks.iter();
                Ok(values.map(|check| value(&report, check.measure)).collect())
            }
        }
    }

    /// Runs the job once with these additional options and returns a value per check.
    fn with(&self, row: &Row, words: &[&str]) -> Result<Vec<f64>> {
        self.warm(row)?;
        let folder = LogFolder::new()?;
        let prefix = folder.0.join("log");
        let words = words
            .iter()
            .map(|word| word.replace("LOG", &prefix.to_string_lossy()));
        let mut command = self.job(Program::FathomRun, row, &self.two_cores()?, self.seconds)?;
        command.args(words);
        if row
            .checks
            .iter()
            .any(|check| check.measure == Measure::PeakMemory)
        {
            return Ok(vec![programs::peak_memory(&mut command)?]);
        }
        let report = RunReport::parse(&crate::process::capture(&mut command)?)?;
        let values = row.checks.iter();
        Ok(values.map(|check| value(&report, check.measure)).collect())
    }

    /// Runs the job without a rate, then at half of the rate reached. The maximum is measured for
    /// each pair, because a core's speed changes.
    fn half_rate(&self, row: &Row) -> Result<Vec<Pair>> {
        let free = self.report(Program::FathomRun, row, &[])?;
        let asked = (free.iops / 2.0).floor();
        let held = self.report(Program::FathomRun, row, &[format!("--rate_iops={asked}")])?;
        Ok(vec![Pair {
            other: asked,
            fathom: held.iops,
        }])
    }

    /// Runs two processes at once, each on its own core, and returns the sum of their IOPS.
    fn two_single_jobs(&self, row: &Row) -> Result<f64> {
        let commands = self.two_cores()?.map(|core| {
            let cores = [core];
            self.job(
                Program::FathomRun,
                row,
                &cores,
                self.seconds * MANY_JOBS_FACTOR,
            )
        });
        let rates = thread::scope(|scope| {
            let runs = commands.map(|command| scope.spawn(move || wall_iops(&mut command?)));
            runs.map(|run| {
                run.join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        });
        let [first, second] = rates;
        Ok(first? + second?)
    }

    fn many_jobs(&self, row: &Row) -> Result<f64> {
        let cores = self.two_cores()?;
        let mut command = self.job(
            Program::FathomRun,
            row,
            &cores,
            self.seconds * MANY_JOBS_FACTOR,
        )?;
        wall_iops(
            command
                .arg(format!("--numjobs={MANY_JOBS}"))
                .arg("--group_reporting"),
        )
    }

    /// Returns the modelled ops per second of the process's wall time.
    fn modelled(&self, row: &Row, machine: &str) -> Result<f64> {
        let machine = crate::process::root()?.join(machine);
        let seconds = self.seconds * VIRTUAL_SECONDS;
        let mut command = self.job(Program::FathomRun, row, self.one_core(), seconds)?;
        wall_iops(command.arg("--machine").arg(machine))
    }

    /// Builds the start of a command line, pinned to the core of one end of a connection.
    pub(crate) fn pinned(&self, program: Program, core: Core) -> Result<Command> {
        let [target, host] = self.two_cores()?;
        let core = match core {
            Core::Target => target,
            Core::Host => host,
        };
        self.programs.command(program, &[core])
    }

    /// Returns the last two cores; the first serves most interrupts.
    pub(crate) fn two_cores(&self) -> Result<[u32; 2]> {
        let cores = self.programs.cores.last_chunk();
        cores.copied().context("fewer than two cores")
    }

    fn peak(&self, row: &Row, words: &[&str]) -> Result<f64> {
        let mut command = self
            .programs
            .command(Program::FathomPeak, self.one_core())?;
        command
            .args(words)
            .arg("--repeats=1")
            .arg(format!("--seconds={}", self.seconds));
        self.run_ring_loop(row, &mut command)
            .and_then(|said| run_report::peak_iops(&said))
    }

    /// Runs `t/io_uring`, one second longer, because it does not print the rate of the last one.
    fn ring_loop(&self, row: &Row, words: &[&str]) -> Result<f64> {
        let mut command = self.programs.command(Program::RingLoop, self.one_core())?;
        command.args(words).arg(format!("-r{}", self.seconds + 1));
        self.run_ring_loop(row, &mut command)
            .and_then(|said| run_report::ring_loop_iops(&said))
    }

    /// Runs a ring loop over the row's target and returns its output.
    fn run_ring_loop(&self, row: &Row, command: &mut Command) -> Result<String> {
        if row.on != On::Nothing {
            command.arg(self.target(row)?);
            self.warm(row)?;
        }
        crate::process::capture(command)
    }

    /// Counts instructions and compares them with the kept count, which `--keep` replaces first.
    fn counted(&mut self, row: &Row) -> Result<Vec<Pair>> {
        let fathom = self.count(row.job)?;
        if self.keep {
            self.baseline.set(row.name, fathom);
        }
        let other = self.baseline.get(row.name)?;
        Ok(vec![Pair { other, fathom }; row.checks.len()])
    }

    fn count(&self, job: &[&str]) -> Result<f64> {
        let valgrind = self.programs.valgrind.as_deref().context("no valgrind")?;
        callgrind::count(valgrind, &self.programs.fathom, job)
    }

    /// Runs the job once on one core, with additional options after the job's own.
    fn report(&self, program: Program, row: &Row, more: &[String]) -> Result<RunReport> {
        let mut command = self.job(program, row, self.one_core(), self.length(row))?;
        self.warm(row)?;
        RunReport::parse(&crate::process::capture(command.args(more))?)
    }

    /// Returns the seconds of a run: twice as many for user time on a device, because such a job
    /// uses little CPU time, which the kernel samples 250 times per second.
    fn length(&self, row: &Row) -> u32 {
        let on_device = matches!(row.on, On::File | On::Zram);
        let timed = row.checks.iter().map(|check| check.measure);
        if on_device
            && timed
                .into_iter()
                .any(|measure| measure == Measure::UserTime)
        {
            self.seconds * 2
        } else {
            self.seconds
        }
    }

    /// Builds the whole command line of a row's job.
    pub(crate) fn job(
        &self,
        program: Program,
        row: &Row,
        cores: &[u32],
        seconds: u32,
    ) -> Result<Command> {
        let mut command = self.programs.command(program, cores)?;
        command.args(["--name=bench", "--thread", "--output-format=json"]);
        for word in row.job {
            if word.contains("FILE") {
                let target = self.target(row)?.to_string_lossy();
                command.arg(word.replace("FILE", &target));
            } else {
                command.arg(word);
            }
        }
        if row.checks.iter().all(|check| check.measure.is_timed()) {
            command
                .arg("--time_based")
                .arg(format!("--runtime={seconds}s"));
        }
        Ok(command)
    }

    /// Returns the path of a row's target.
    pub(crate) fn target(&self, row: &Row) -> Result<&Path> {
        let path = match row.on {
            On::Nothing => None,
            On::File if self.device.is_some() => self.device.as_deref(),
            On::File | On::CachedFile => self.file.as_ref().map(TestFile::path),
            On::VerifiedFile => self.verified.as_ref().map(TestFile::path),
            On::Zram => self.zram.as_ref().map(Zram::path),
        };
        path.context("the job's target was not created")
    }

    /// Reads the target into the page cache if the row reads it from there.
    pub(crate) fn warm(&self, row: &Row) -> Result<()> {
        match row.on {
            On::CachedFile | On::VerifiedFile => data::read_through(self.target(row)?),
            On::Nothing | On::File | On::Zram => Ok(()),
        }
    }

    /// Returns the core of single-core rows; none if programs cannot be pinned.
    pub(crate) fn one_core(&self) -> &[u32] {
        let count = self.programs.cores.len();
        &self.programs.cores[count.saturating_sub(1)..]
    }
}

/// Returns the measure's value in a report.
fn value(report: &RunReport, measure: Measure) -> f64 {
    match measure {
        Measure::UserTime => report.user_ns_per_op,
        Measure::KeptLines => report.kept_lines_per_s,
        Measure::DroppedLines => report.dropped_lines,
        Measure::Clat => report.clat_ns,
        Measure::Lag => report.lag_ns,
        _ => report.iops,
    }
}

/// Directory of the logs, in /dev/shm if available, to measure the tool instead of a disk. Removed
/// on drop.
pub(crate) struct LogFolder(PathBuf);

impl LogFolder {
    pub(crate) fn new() -> Result<Self> {
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() {
            memory.to_owned()
        } else {
            std::env::temp_dir()
        };
        let path = base.join(format!("fathom-bench-{}", std::process::id()));
        std::fs::create_dir(&path).with_context(|| path.display().to_string())?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for LogFolder {
    fn drop(&mut self) {
        let _left_behind = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs both sides, in either order.
pub(crate) fn in_turn<T>(
    fathom_first: bool,
    other: impl FnOnce() -> Result<T>,
    fathom: impl FnOnce() -> Result<T>,
) -> Result<(T, T)> {
    if fathom_first {
        let fathom = fathom()?;
        Ok((other()?, fathom))
    } else {
        Ok((other()?, fathom()?))
    }
}

/// Returns the pair of a row with one check.
fn one(sides: Result<(f64, f64)>) -> Result<Vec<Pair>> {
    let (other, fathom) = sides?;
    Ok(vec![Pair { other, fathom }])
}

/// Returns the ops per second of wall time of a whole process. Many jobs on few cores do not start
/// together, so the sum of their own rates would be too high.
fn wall_iops(command: &mut Command) -> Result<f64> {
    let (report, seconds) = programs::timed(command)?;
    Ok(RunReport::parse(&report)?.ops / seconds)
}

/// Factor by which runs of `Method::ManyJobs` are longer, so that start and end are a small part.
const MANY_JOBS_FACTOR: u32 = 3;

/// Virtual seconds of `Method::Modelled` per second of a run: about as long in wall time.
const VIRTUAL_SECONDS: u32 = 20;

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn sides_keep_their_places_in_either_order() {
        for (fathom_first, order) in [(false, "of"), (true, "fo")] {
            let seen = RefCell::new(String::new());
            let run = |name: char, value: f64| {
                seen.borrow_mut().push(name);
                Ok(value)
            };
            let pairs = one(in_turn(fathom_first, || run('o', 1.0), || run('f', 2.0)));
            let want = Pair {
                other: 1.0,
                fathom: 2.0,
            };
            assert_eq!(pairs.ok(), Some(vec![want]));
            assert_eq!(*seen.borrow(), order);
        }
    }
}
