//! Texts of one run: a job file and a machine file with the settings of cell and variant in them.

use std::borrow::Cow;
use std::ops::Range;

use fathom_virtual::{MachineChange, MachineModel};

use super::job_values::{in_line, of_line};
use super::{
    JobText, LabPlan, MachineSource, PeakArguments, RunSettings, Service, Setting, Subject, Target,
};

/// Everything that one run executes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunText {
    /// Job file; `None` for a run of `fathom peak`.
    pub job: Option<String>,
    /// Arguments of `fathom peak`; `None` for a job file.
    pub peak: Option<PeakArguments>,
    /// Modelled machine; `None` for this machine.
    pub machine: Option<MachineSource>,
    /// Execution.
    pub run: RunSettings,
    /// Programs beside it.
    pub services: Vec<Service>,
}

impl RunText {
    /// Returns the first file that the run names.
    pub(crate) fn file(&self) -> Option<Cow<'_, str>> {
        let of_job = self.option(FILENAME);
        of_job.or_else(|| self.peak.as_ref()?.value("target").map(Cow::Borrowed))
    }

    /// Returns the first value that the job file gives an option.
    pub(crate) fn option(&self, name: &str) -> Option<Cow<'_, str>> {
        let mut lines = self.job.iter().flat_map(|job| job.lines());
        lines.find_map(|line| {
            let code = line.split(['#', ';']).next()?;
            let (key, value) = code.split_once('=')?;
            (key.trim() == name).then(|| of_line(value.trim()))
        })
    }
}

impl LabPlan {
    /// Returns the texts of a run of this cell and variant. `seed` becomes the `randseed` of its
    /// jobs.
    ///
    /// # Panics
    /// If there is no such cell or variant.
    #[must_use]
    pub fn run_of(&self, cell: usize, variant: usize, seed: u64) -> RunText {
        let (cell, variant) = (&self.cells[cell], &self.variants[variant]);
        let settings: Vec<&Setting> = cell.settings().chain(&variant.settings).collect();
        self.run_with(variant.job.as_ref(), &settings, seed)
    }

    /// Returns the texts of a run with these settings, the later ones over the earlier ones, and of
    /// `job` in place of the lab's, if there is one.
    pub(crate) fn run_with(
        &self,
        job: Option<&JobText>,
        settings: &[&Setting],
        seed: u64,
    ) -> RunText {
        let of = |target: Target| {
            let settings = settings.iter().copied();
            settings.filter(move |setting| setting.target == target)
        };
        let mut text = RunText {
            job: None,
            peak: None,
            machine: self.machine.as_ref().map(|machine| MachineSource {
                path: machine.path.clone(),
                text: machine_with(machine, of(Target::Machine)),
            }),
            run: self.run.clone(),
            services: self.services.clone(),
        };
        let ramp = self.warm_up.map(|warm_up| {
            let microseconds = warm_up.get() / 1_000;
            Setting::of_job("ramp_time", &format!("{microseconds}us"))
        });
        match &self.subject {
            Subject::Job(of_lab) => {
                let job = job.unwrap_or(of_lab);
                let settings = ramp.iter().chain(&job.settings).chain(of(Target::Job));
                let settings: Vec<&Setting> = settings.collect();
                text.job = Some(job_with(job, &settings, Some(seed)).text);
            }
            Subject::Peak(arguments) => {
                text.peak = Some(peak_with(arguments, settings));
            }
        }
        for setting in of(Target::Run) {
            // The reader of the lab file refused keys and values that cannot be set.
            let _ = text.run.set(&setting.key, &setting.value);
        }
        for service in &mut text.services {
            for setting in of(Target::Service(service.name.clone())) {
                replace(&mut service.arguments, &setting.key, &setting.value);
            }
            *service = service.with_arguments();
        }
        text
    }
}

/// Job file with settings in it.
pub(crate) struct JobFile {
    pub(crate) text: String,
    lines: Vec<LineOrigin>,
}

/// Source of a line of a job file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LineOrigin {
    /// Line of the job's text, from 1.
    File(u32),
    /// Bytes of option and value in the lab file.
    Setting {
        key: Range<usize>,
        value: Range<usize>,
    },
}

impl JobFile {
    /// Returns the source of a line, from 1.
    pub(crate) fn origin_of(&self, line: u32) -> LineOrigin {
        let index = (line as usize).saturating_sub(1);
        let known = self.lines.get(index).cloned();
        known.unwrap_or(LineOrigin::File(line))
    }

    fn push(&mut self, line: &str, origin: LineOrigin) {
        self.text.push_str(line);
        self.text.push('\n');
        self.lines.push(origin);
    }

    fn push_settings(&mut self, settings: &[&Setting], seed: Option<u64>) {
        if let Some(seed) = seed.map(|seed| seed & SEED_MAX) {
            let setting = Setting::of_job("randseed", &seed.to_string());
            self.push(&format!("randseed={seed}"), setting.origin());
        }
        for (at, setting) in settings.iter().enumerate() {
            let is_replaced = |later: &&Setting| later.key == setting.key;
            if !settings[at + 1..].iter().any(is_replaced) {
                let line = format!("{}={}", setting.key, in_line(&setting.value));
                self.push(&line, setting.origin());
            }
        }
    }
}

/// Returns a job file in which every job has these options: they stand at the end of its section,
/// where they replace earlier ones.
pub(crate) fn job_with(job: &JobText, settings: &[&Setting], seed: Option<u64>) -> JobFile {
    // An option replaces an earlier one, but for `filename`, which adds to it.
    let names_files = settings.iter().any(|setting| setting.key == FILENAME);
    let mut file = JobFile {
        text: String::with_capacity(job.text.len() + 256),
        lines: Vec::new(),
    };
    let mut in_job = false;
    for (line, number) in job.text.lines().zip(1..) {
        let trimmed = line.trim();
        if let Some(header) = trimmed.strip_prefix('[') {
            if in_job {
                file.push_settings(settings, seed);
            }
            in_job = !header.starts_with("global");
        }
        let key = trimmed.split('=').next().unwrap_or_default();
        if !(names_files && key.trim() == FILENAME) {
            file.push(line, LineOrigin::File(number));
        }
    }
    if in_job {
        file.push_settings(settings, seed);
    }
    file
}

/// Returns the arguments of `fathom peak`, those of the lab with these settings over them.
pub(crate) fn peak_with(of_lab: &[Setting], settings: &[&Setting]) -> PeakArguments {
    let mut peak = PeakArguments::default();
    let of_run = settings.iter().copied();
    let of_run = of_run.filter(|setting| setting.target == Target::Peak);
    for setting in of_lab.iter().chain(of_run) {
        peak.set(&setting.key, &setting.value);
    }
    peak
}

pub(super) fn replace(arguments: &mut Vec<(String, String)>, key: &str, value: &str) {
    match arguments.iter_mut().find(|(name, _)| name == key) {
        Some((_, old)) => value.clone_into(old),
        None => arguments.push((key.to_owned(), value.to_owned())),
    }
}

/// Largest seed that fio takes, too.
const SEED_MAX: u64 = u64::MAX >> 1;

/// The one option that adds to its earlier value.
const FILENAME: &str = "filename";

/// Returns the text of a machine file with these settings.
///
/// # Panics
/// If the machine cannot have them: the reader of the lab file refuses such settings.
fn machine_with<'a>(machine: &MachineSource, of: impl Iterator<Item = &'a Setting>) -> String {
    let changes: Vec<_> = of
        .map(|setting| MachineChange {
            key: setting.key.clone(),
            literal: setting.literal.clone(),
            origin: fathom_job::Origin::default(),
        })
        .collect();
    if changes.is_empty() {
        return machine.text.clone();
    }
    let changed = MachineModel::changed_text(&machine.path, &machine.text, &changes);
    changed.expect("the reader of the lab file tried each change")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, options: &[(&str, &str)], want: &str) {
        let job = JobText {
            file: "a.fio".into(),
            text: text.into(),
            places: Vec::new(),
            settings: Vec::new(),
        };
        let setting = |(key, value): &(&str, &str)| Setting::of_job(key, value);
        let settings: Vec<Setting> = options.iter().map(setting).collect();
        let settings: Vec<&Setting> = settings.iter().collect();
        assert_eq!(job_with(&job, &settings, Some(7)).text, want);
    }

    #[test]
    fn options_stand_at_the_end_of_each_job() {
        check(
            "[global]\nbs=4k\n[a]\nrw=read\n\n[b]\nfilename=/dev/x\n",
            &[("bs", "8k"), ("bs", "16k")],
            "[global]\nbs=4k\n[a]\nrw=read\n\nrandseed=7\nbs=16k\n[b]\nfilename=/dev/x\n\
             randseed=7\nbs=16k\n",
        );
    }

    #[test]
    fn seeds_are_such_as_fio_takes() {
        let job = JobText {
            file: "a.fio".into(),
            text: "[a]\n".into(),
            places: Vec::new(),
            settings: Vec::new(),
        };
        let text = job_with(&job, &[], Some(u64::MAX - 4)).text;
        assert_eq!(text, "[a]\nrandseed=9223372036854775803\n");
    }

    #[test]
    fn file_names_are_replaced_and_not_added() {
        check(
            "[global]\nfilename=/dev/y\n[b]\nfilename = /dev/x\nrw=read",
            &[("filename", "/dev/z")],
            "[global]\n[b]\nrw=read\nrandseed=7\nfilename=/dev/z\n",
        );
    }
}
