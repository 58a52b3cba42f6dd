//! Metrics that no run can have: of a direction in which its jobs do nothing, or of a job that it
//! does not have.
//!
//! Only what the options prove is refused. Jobs that replay a log, and engines of metadata, may do
//! anything.

use std::ops::Range;

use fathom_core::Work;
use fathom_job::{Job, Plan, ReadWrite, Verify, closest};
use fathom_record::MetricName;
use fathom_toml::{Fields, Value};

use super::reader::Reader;
use super::trials::Trial;

/// Metrics of a lab file, beside the runs that are tried.
pub(super) struct MeasuredCheck {
    metrics: Vec<Asked>,
    runs: usize,
    jobs: Vec<String>,
}

/// Metric that the file asks for.
struct Asked {
    name: MetricName,
    span: Range<usize>,
    is_judged: bool,
    /// Runs that may have it.
    found: usize,
    /// First run that cannot.
    lacking: Option<String>,
}

impl MeasuredCheck {
    /// Reads the metrics of `[judge]`, and those on which `[rounds]` and `[search]` depend.
    pub(super) fn new(top: &Fields<'_>) -> Self {
        let judge = top.value("judge");
        let judge = judge.and_then(|judge| judge.fields("judge"));
        let asked = |text: &str, span: Range<usize>, is_judged| {
            let name = MetricName::parse(text).ok()?;
            // Nobody knows the numbers of a service before it runs.
            (!name.is_of_service()).then_some(Asked {
                name,
                span,
                is_judged,
                found: 0,
                lacking: None,
            })
        };
        let mut metrics = Vec::new();
        if let Some(judge) = &judge {
            let judged = judge.value("metrics");
            let judged = judged.and_then(|metrics| metrics.fields("metrics"));
            let entries = judged.map(|metrics| metrics.entries()).unwrap_or_default();
            let judged = entries.into_iter();
            metrics.extend(judged.filter_map(|one| asked(one.key, one.key_span, true)));
            if judge.has("show") {
                let shown = judge.texts("show").into_iter();
                metrics.extend(shown.filter_map(|(text, span)| asked(text, span, false)));
            }
        }
        // Texts of another kind are noted where the tables are read.
        let text_of = |value: &Value<'_>| Some((value.scalar()?, value.span()));
        let rounds = top.value("rounds");
        let rounds = rounds.and_then(|rounds| rounds.fields("rounds")?.value("metric"));
        // One cell alone needs it.
        let steady = rounds.and_then(|metric| text_of(&metric));
        metrics.extend(steady.and_then(|(text, span)| asked(&text, span, false)));
        let search = top.value("search");
        let keep = search.and_then(|search| search.fields("search")?.value("keep"));
        for condition in keep.and_then(|keep| keep.items()).unwrap_or_default() {
            if let Some((text, span)) = text_of(&condition) {
                let metric = text.split(['<', '>']).next().unwrap_or_default();
                metrics.extend(asked(metric.trim(), span, true));
            }
        }
        Self {
            metrics,
            runs: 0,
            jobs: Vec::new(),
        }
    }

    /// Looks at the jobs of a run.
    pub(super) fn see(&mut self, trial: Trial<'_>, jobs: &Plan) {
        if jobs.jobs.is_empty() {
            return;
        }
        self.runs += 1;
        for asked in &mut self.metrics {
            let group = &asked.name.group;
            let mut in_group = jobs.jobs.iter();
            if in_group.any(|job| {
                (group.is_empty() || job.name == *group) && may_do(job, asked.name.direction)
            }) {
                asked.found += 1;
            } else if asked.lacking.is_none() {
                asked.lacking = Some(trial.place());
            }
        }
        let new = jobs
            .jobs
            .iter()
            .filter(|job| !self.jobs.contains(&job.name));
        let new: Vec<String> = new.take(NAMES_MAX).map(|job| job.name.clone()).collect();
        self.jobs.extend(new);
    }

    /// Notes the metrics that are judged, and that a run cannot have; and if all runs were seen,
    /// those that are shown, and that none can have.
    pub(super) fn refuse(&self, reader: &Reader<'_>, are_all: bool) {
        for asked in &self.metrics {
            let Some(place) = &asked.lacking else {
                continue;
            };
            if asked.is_judged || (asked.found == 0 && are_all) {
                let (why, hint) = self.told(asked, place);
                reader.refuse(&asked.span, why, hint);
            }
        }
    }

    fn told(&self, asked: &Asked, place: &str) -> (String, String) {
        let name = &asked.name;
        let group = name.group.as_str();
        if !group.is_empty() && !self.jobs.iter().any(|job| job == group) {
            let hint = match closest(group, self.jobs.iter().map(String::as_str)) {
                Some(near) => {
                    let metric = name.to_string();
                    let metric = metric.strip_prefix(group).unwrap_or_default();
                    format!("did you mean `{near}{metric}`?")
                }
                None => format!("jobs here: {}", self.jobs.join(", ")),
            };
            return (format!("`{name}`: there is no job `{group}`"), hint);
        }
        let who = match group {
            "" => "the jobs".to_owned(),
            group => format!("job `{group}`"),
        };
        let does = match name.direction {
            "read" => "read nothing",
            "write" => "write nothing",
            "trim" => "trim nothing",
            _ => "do nothing of it",
        };
        let does = match group {
            "" => does.to_owned(),
            // "reads nothing"
            _ => does.replacen(' ', "s ", 1),
        };
        let place = match asked.found == 0 || place.is_empty() {
            true => String::new(),
            false => format!(" in {place}"),
        };
        let hint = match asked.is_judged && asked.found > 0 {
            true => "name what every run has, as `all.iops`; `show` takes the rest",
            false => "name another direction, or change `rw`",
        };
        (format!("`{name}`: {who} {does}{place}"), hint.to_owned())
    }
}

/// Returns whether a job may have ops of a direction.
fn may_do(job: &Job, direction: &str) -> bool {
    let options = &job.options;
    let verifies = options.verify != Verify::None;
    if !matches!(options.engine.work, Work::Data) || !options.replay.logs.is_empty() {
        return true;
    }
    let (is_mixed, reads) = (options.rw == ReadWrite::Mixed, options.rwmixread.min(100));
    match direction {
        "read" => options.rw == ReadWrite::Read || (is_mixed && reads > 0) || verifies,
        "write" => match options.rw {
            ReadWrite::Write | ReadWrite::TrimWrite => true,
            ReadWrite::Mixed => reads < 100,
            ReadWrite::Read | ReadWrite::Trim => false,
        },
        "trim" => {
            matches!(options.rw, ReadWrite::Trim | ReadWrite::TrimWrite)
                || options.trims.percentage > 0
                || options.trims.backlog > 0
        }
        // Syncs have many sources.
        _ => true,
    }
}

/// Most job names of a run that are remembered.
const NAMES_MAX: usize = 64;
