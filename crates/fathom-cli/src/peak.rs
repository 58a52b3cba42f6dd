//! `fathom peak`: the raw maximum of a device or of the kernel's I/O path.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, Result};
use fathom_core::Nanos;
use fathom_host::block_tree::BlockTree;
use fathom_host::{machine, storage};
use fathom_peak::{
    Interval, PeakConfig, PeakOutcome, Repeats, check, compare, contention_warning, peak,
    storage_warning,
};
use fathom_record::{PEAK_VERSION, PeakRecord, Warning};
use fathom_report::{peak_line, peak_matrix, peak_summary, peak_table};
use fathom_sys::clock::{self, Clock};
use fathom_sys::signals::Interrupts;

use crate::exit::ProgramEnd;
use crate::failure::with_hint;
use crate::output::{self, Data, StandardStream};
use crate::peak_against::{Against, different};
use crate::peak_arguments::{PeakArguments, settings};
use crate::text_width::fitted_sentences;

/// Measures and prints the result. `words` are those of the whole command line.
pub(crate) fn run(arguments: &PeakArguments, words: &[OsString]) -> ProgramEnd {
    match measure(arguments, words) {
        Ok(interrupted) => ProgramEnd::Ran {
            failed_jobs: 0,
            tolerated_errors: 0,
            interrupted,
        },
        Err(error) => {
            output::print(StandardStream::Error, &format!("fathom: peak: {error:#}\n"));
            ProgramEnd::Refused
        }
    }
}

fn measure(arguments: &PeakArguments, words: &[OsString]) -> Result<bool> {
    let value = arguments.against.as_deref();
    let against = value.map(|value| Against::read(value, words)).transpose()?;
    let interrupts = Interrupts::install().context("signals")?;
    let mut sides = vec![Side::new(arguments)];
    if let Some(Against::InTurn(other)) = &against {
        sides.push(Side::new(other));
        let [now, other] = [&sides[0], &sides[1]].map(|side| side.points.len());
        anyhow::ensure!(
            now == other,
            "--against: {other} points to compare with {now}: give both sides as many depths and \
             batches"
        );
    }
    let interrupted = measure_rounds(arguments, &mut sides, interrupts)?;
    let mut records = sides.into_iter().map(Side::into_record);
    let mut record = records.next().context("nothing was measured")?;
    let name = value.unwrap_or_default().to_owned();
    record
        .warnings
        .extend(interrupted.then(interrupted_warning));
    let other = match against {
        Some(Against::Saved(saved)) => {
            record.warnings.extend(different(&record, &saved));
            record.comparison = Some(compare(&record, &saved, name, false));
            Some(*saved)
        }
        Some(Against::InTurn(_)) => records.next(),
        None => None,
    };
    if let Some(other) = other.as_ref().filter(|_| record.comparison.is_none()) {
        let name = value.unwrap_or_default().to_owned();
        record.comparison = Some(compare(&record, other, name, true));
    }
    report(&record, arguments, other.as_ref())?;
    Ok(interrupted)
}

/// Command of one side of a comparison, with its results so far.
struct Side<'a> {
    arguments: &'a PeakArguments,
    points: Vec<(PeakConfig, Repeats)>,
    features: Vec<String>,
}

impl<'a> Side<'a> {
    fn new(arguments: &'a PeakArguments) -> Self {
        let configs = arguments.configs().into_iter();
        Self {
            arguments,
            points: configs.map(|config| (config, Repeats::default())).collect(),
            features: Vec::new(),
        }
    }

    /// Adds a repeat of a point. One that was cut short counts only if there is no other.
    fn add(&mut self, point: usize, outcome: PeakOutcome) {
        self.features.clone_from(&outcome.features);
        let repeats = &mut self.points[point].1;
        if !outcome.interrupted || repeats.is_empty() {
            repeats.add(outcome);
        }
    }

    fn into_record(self) -> PeakRecord {
        let config = self.arguments.shared_config();
        let targets = config.targets.iter();
        let tree = BlockTree::default();
        let paths = targets.clone().map(PathBuf::as_path);
        let storages = storage::storages_under(paths, &tree);
        let points = self.points.into_iter();
        let measured = points.filter(|(_, repeats)| !repeats.is_empty());
        let points: Vec<_> = measured
            .map(|(config, repeats)| repeats.into_point(&config))
            .collect();
        PeakRecord {
            version: PEAK_VERSION,
            timestamp_ms: clock::wall_ms(),
            targets: targets.map(|path| path.display().to_string()).collect(),
            engine: config.engine.name().into(),
            block_bytes: moved_bytes(&config),
            threads: config.threads,
            settings: settings(&config),
            machine: Some(machine::machine(
                &Clock::calibrated(),
                storages,
                self.features,
            )),
            warnings: storage_warning(&config.targets, config.buffered)
                .into_iter()
                .chain(contention_warning(&points))
                .collect(),
            points,
            comparison: None,
        }
    }
}

/// Measures every point of every side once per round, so that drift of the machine affects all of
/// them alike. In every second round the sides change places. Returns whether it was interrupted.
fn measure_rounds(
    arguments: &PeakArguments,
    sides: &mut [Side<'_>],
    interrupts: Interrupts,
) -> Result<bool> {
    // All points first: none is measured, and nothing printed, before one is refused.
    for (config, _) in sides.iter().flat_map(|side| &side.points) {
        check(config).map_err(|error| with_hint(&error, error.hint()))?;
    }
    let talk = Talk::new(arguments, sides.len());
    for side in sides.iter() {
        talk.note(&side.arguments.headline());
    }
    let points = sides
        .iter()
        .map(|side| side.points.len())
        .min()
        .unwrap_or(0);
    for round in 1..=arguments.repeats {
        if points > 1 && arguments.repeats > 1 {
            talk.note(&format!("round {round} of {}\n", arguments.repeats));
        }
        for point in 0..points {
            for turn in 0..sides.len() {
                let side = if round % 2 == 0 {
                    sides.len() - 1 - turn
                } else {
                    turn
                };
                let config = sides[side].points[point].0.clone();
                let mut second = 0_u32;
                let mut tell = |interval: &Interval| {
                    second += 1;
                    talk.second(second, interval, &config);
                };
                let outcome = peak(&config, &mut tell, &|| interrupts.count());
                let outcome = outcome.map_err(|error| with_hint(&error, error.hint()))?;
                talk.repeat(round, side, &outcome.total, &config);
                let interrupted = outcome.interrupted;
                sides[side].add(point, outcome);
                if interrupted {
                    return Ok(true);
                }
            }
        }
    }
    Ok(false)
}

/// Lines printed while a measurement runs: none with `--json`, and no rates before a table.
#[derive(Clone, Copy)]
struct Talk {
    silent: bool,
    rates: bool,
    /// Repeats are longer than a second, so that their seconds are told.
    seconds: bool,
    repeats: bool,
    sides: usize,
}

impl Talk {
    fn new(arguments: &PeakArguments, sides: usize) -> Self {
        Self {
            silent: arguments.json,
            rates: !arguments.json && !arguments.is_table(),
            seconds: arguments.seconds > Nanos::from_secs(1) || arguments.repeats == 1,
            repeats: arguments.repeats > 1 || sides > 1,
            sides,
        }
    }

    fn note(self, text: &str) {
        if !self.silent {
            output::print(StandardStream::Error, &fitted_sentences(text));
        }
    }

    fn second(self, second: u32, interval: &Interval, config: &PeakConfig) {
        if self.rates && self.seconds {
            let line = line(&end_of(second, config.duration), interval, config);
            output::print(StandardStream::Data, &line);
        }
    }

    fn repeat(self, round: u32, side: usize, total: &Interval, config: &PeakConfig) {
        if self.rates && self.repeats {
            let label = match side {
                0 if self.sides == 1 => format!("repeat {round}"),
                0 => format!("now {round}"),
                _ => format!("other {round}"),
            };
            output::print(StandardStream::Data, &line(&label, total, config));
        }
    }
}

/// Returns the time at which a second of a measurement ends; the last may be cut short.
fn end_of(second: u32, duration: Nanos) -> String {
    let whole = Nanos::from_secs(second.into());
    if whole <= duration {
        return format!("{second} s");
    }
    let hundredths = (float(duration.get()) / 1e7).round();
    format!("{} s", hundredths / 100.0)
}

/// Returns the bytes that an op moves: none for a no-op.
const fn moved_bytes(config: &PeakConfig) -> u32 {
    if config.nops { 0 } else { config.block_bytes }
}

fn interrupted_warning() -> Warning {
    Warning {
        code: "interrupted".into(),
        job: String::new(),
        message: "interrupted; measured for less than the requested time".into(),
        hint: String::new(),
    }
}

fn report(
    record: &PeakRecord,
    arguments: &PeakArguments,
    other: Option<&PeakRecord>,
) -> Result<()> {
    let text = if arguments.json {
        let mut text = record.to_json()?;
        text.push('\n');
        text
    } else if arguments.is_table() {
        fitted_sentences(&peak_matrix(record).unwrap_or_else(|| peak_table(record)))
    } else {
        fitted_sentences(&peak_summary(record, other))
    };
    Data::Stdout.add(&text)?;
    let machine = record.machine.iter().filter(|_| !arguments.json);
    for machine in machine.filter(|machine| !machine.engine_features.is_empty()) {
        let used = machine.engine_features.join(", ");
        output::print(
            StandardStream::Error,
            &fitted_sentences(&format!("kernel features used: {used}")),
        );
    }
    for warning in &record.warnings {
        let hint = match warning.hint.as_str() {
            "" => String::new(),
            hint => format!("hint: {hint}\n"),
        };
        output::print(
            StandardStream::Error,
            &format!("fathom: peak: {}\n{hint}", warning.message),
        );
    }
    Ok(())
}

fn line(label: &str, interval: &Interval, config: &PeakConfig) -> String {
    let calls = float(interval.calls).max(1.0);
    peak_line(
        label,
        interval.iops(),
        moved_bytes(config),
        float(interval.ops) / calls,
    )
}

#[expect(clippy::cast_precision_loss, reason = "a rate is not exact to 2⁻⁵³")]
const fn float(number: u64) -> f64 {
    number as f64
}
