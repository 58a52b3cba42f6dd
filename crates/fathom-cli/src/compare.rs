//! `fathom compare`: runs that were measured before.

use anyhow::{Result, anyhow};
use clap::{Args, ValueEnum};
use fathom_lab::{CompareRules, Comparison, compare};
use fathom_record::{Improves, MetricName};

use crate::compare_sides;
use crate::exit::ProgramEnd;
use crate::metric_name;
use crate::output::{self, Data, StandardStream};

/// Arguments of `fathom compare`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompareArguments {
    /// Runs to compare with: a file, a directory, numbers of runs, tag:KEY=VALUE, lab:NAME/VARIANT
    before: String,
    /// Runs to judge
    after: String,
    #[command(flatten)]
    rules: RuleArguments,
    /// Verdict that makes the exit code 1
    #[arg(long, value_name = "VERDICT", default_value = "worse")]
    fail_on: FailOn,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

/// Rules of a comparison.
#[derive(Args, Clone, Debug)]
pub(crate) struct RuleArguments {
    /// Metric to judge, with the change that is too small to matter; may be repeated; a service's
    /// number needs the direction in which it improves [default: bw and clat_p99 of each direction]
    #[arg(long = "metric", value_name = "NAME[=PERCENT[,more|less]]", value_parser = metric)]
    metrics: Vec<(MetricName, Option<f64>)>,
    /// Change that is too small to matter, in percent
    #[arg(long, value_name = "PERCENT", default_value = "2", value_parser = percent)]
    tolerance: f64,
    /// Judge runs that were not interleaved, as if nothing had drifted between them
    #[arg(long)]
    accept_drift: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// A judged metric is worse
    Worse,
    /// A judged metric is worse, unclear or without a verdict
    Unclear,
    /// None
    Never,
}

/// Compares the sides and prints the verdicts.
pub(crate) fn run(arguments: &CompareArguments) -> ProgramEnd {
    match compared((&arguments.before, &arguments.after), &arguments.rules) {
        Ok(comparison) => show(&comparison, arguments),
        Err(error) => {
            let text = format!("fathom: compare: {error:#}\n");
            output::print(StandardStream::Error, &text);
            ProgramEnd::Refused
        }
    }
}

/// Compares the second side with the first one.
pub(crate) fn compared(
    (before, after): (&str, &str),
    arguments: &RuleArguments,
) -> Result<Comparison> {
    metric_name::refuse_repeated(arguments.metrics.iter().map(|(name, _)| name))?;
    let metrics = arguments.metrics.iter().map(|(name, own)| {
        let tolerance = own.unwrap_or(arguments.tolerance);
        if name.percent.is_some() && tolerance < BUCKET {
            let why = "a percentile is known to 1.6 % only: tolerate at least that";
            return Err(anyhow!("--metric {name}: {why}"));
        }
        Ok((name.clone(), tolerance))
    });
    let metrics = metrics.collect::<Result<Vec<_>>>()?;
    let rules = CompareRules {
        metrics,
        // Percentiles among the default metrics are known to that only.
        tolerance: arguments.tolerance,
        accept_drift: arguments.accept_drift,
    };
    if rules.metrics.is_empty() && rules.tolerance < BUCKET {
        let why = "percentiles are among the metrics, which are known to 1.6 % only";
        return Err(anyhow!(
            "--tolerance: {why}\nhint: name the metrics with --metric"
        ));
    }
    let before = compare_sides::read(before)?;
    let after = compare_sides::read(after)?;
    compare(before, after, &rules).map_err(|why| anyhow!(why))
}

fn show(comparison: &Comparison, arguments: &CompareArguments) -> ProgramEnd {
    let text = if arguments.json {
        format!("{:#}\n", comparison.json())
    } else if arguments.markdown {
        comparison.markdown()
    } else {
        comparison.text()
    };
    if let Err(error) = Data::Stdout.add(&text) {
        return output::not_written(&error, "fathom: compare");
    }
    let fails = match arguments.fail_on {
        FailOn::Worse => comparison.is_worse(),
        FailOn::Unclear => comparison.is_worse() || comparison.is_unclear(),
        FailOn::Never => false,
    };
    match fails {
        true => ProgramEnd::Judged,
        false => ProgramEnd::Printed,
    }
}

/// Reads `write.bw`, `write.bw=2%` or `service.target.waits=2%,less`.
fn metric(text: &str) -> Result<(MetricName, Option<f64>), String> {
    let (text, better) = match text.rsplit_once(',') {
        Some((text, "more")) => (text, Some(Improves::Upwards)),
        Some((text, "less")) => (text, Some(Improves::Downwards)),
        _ => (text, None),
    };
    let (name, tolerance) = match text.rsplit_once('=') {
        Some((name, tolerance)) => (name, Some(percent(tolerance)?)),
        None => (text, None),
    };
    let mut name = metric_name::parse(name)?;
    match better {
        Some(better) if name.is_of_service() => name.row.improves = better,
        Some(better) if better != name.row.improves => {
            return Err(format!("`{name}` improves in the other direction"));
        }
        None if name.is_of_service() => {
            return Err(format!(
                "nothing says whether more or less of `{name}` is better: write `{name},less` or \
                 `{name}=2%,more`"
            ));
        }
        _ => {}
    }
    Ok((name, tolerance))
}

/// Reads a tolerance, a percentage with or without its sign, as a ratio.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let number = text.strip_suffix('%').unwrap_or(text).trim_end();
    match number.parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(percent / 100.0),
        _ => Err("a percentage above 0 and up to 100, such as 2%".into()),
    }
}

impl RuleArguments {
    /// Returns whether the user set a rule.
    pub(crate) const fn are_given(&self) -> bool {
        !self.metrics.is_empty() || self.accept_drift
    }
}

/// Width of a histogram's bucket.
const BUCKET: f64 = 0.016;

const EXAMPLES: &str = "\
Examples:
  fathom compare before/ after/
  fathom compare tag:commit=1a2b3c tag:commit=4d5e6f --metric read.iops=3%
  fathom compare 12-19 20-27 --accept-drift --fail-on unclear
  fathom compare lab:hdd-tags/plain lab:hdd-tags/fair --markdown

Files are records (`fathom run --record`), exported runs, or reports of fio as
JSON or JSON+. Verdicts need repeats on both sides, best taken in turn.";
