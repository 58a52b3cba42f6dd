//! Lab of a comparison without a lab file: its text, and the argument that each line comes from.

use std::path::Path;

use anyhow::{Context, Result, bail};
use fathom_job::Origin;
use fathom_stats::repeats_to_prove;

use crate::ab::{AbArguments, Judged};

/// Text of a lab file, made of arguments.
pub(crate) struct AbLab {
    pub(crate) text: String,
    /// Argument of each line, as the user wrote it.
    arguments: Vec<String>,
}

impl AbLab {
    /// Writes the lab of these arguments.
    pub(crate) fn of(arguments: &AbArguments) -> Result<Self> {
        let sides = sides(arguments)?;
        for (at, side) in sides.iter().enumerate() {
            if sides[..at].iter().any(|earlier| earlier.name == side.name) {
                bail!(
                    "two sides are `{}`\n\
                     hint: name each side once; `fathom lab FILE --a-a N` compares one with itself",
                    side.name
                );
            }
        }
        let judged = judged(arguments);
        check_repeats(arguments, (sides.len() - 1) * judged.len())?;
        let mut lab = Self {
            text: String::new(),
            arguments: Vec::new(),
        };
        lab.line("", "[lab]");
        lab.line("", &format!("name = {}", quoted(NAME)));
        if let Some(machine) = &arguments.machine {
            let path = quoted(&path_of(arguments, machine)?);
            let argument = format!("--machine {machine}");
            lab.line(&argument, &format!("machine = {path}"));
        }
        let job = &arguments.jobs[0];
        let path = quoted(&path_of(arguments, job)?);
        lab.line(job, "[job]");
        lab.line(job, &format!("file = {path}"));
        lab.line("", "[variants]");
        for side in &sides {
            let line = format!("{} = {}", quoted(&side.name), side.settings);
            lab.line(&side.argument, &line);
        }
        lab.line("", "[judge]");
        lab.line("", &format!("baseline = {}", quoted(&sides[0].name)));
        let repeats = arguments.repeats;
        lab.line(
            &format!("--repeats {repeats}"),
            &format!("repeats = {{ min = {repeats}, max = {repeats}, stop = \"never\" }}"),
        );
        lab.line("", "[judge.metrics]");
        for one in &judged {
            let (metric, tolerance) = (quoted(&one.metric), quoted(&one.tolerance));
            let argument = format!("--judge {}={}", one.metric, one.tolerance);
            lab.line(&argument, &format!("{metric} = {tolerance}"));
        }
        Ok(lab)
    }

    /// Returns the argument that a place in the text comes from; empty if there is none.
    pub(crate) fn argument(&self, origin: &Origin) -> &str {
        let line = usize::try_from(origin.line).unwrap_or_default();
        let argument = self.arguments.get(line.wrapping_sub(1));
        argument.map_or("", String::as_str)
    }

    fn line(&mut self, argument: &str, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
        self.arguments.push(argument.to_owned());
    }
}

/// Side of the comparison.
struct Side {
    name: String,
    /// Its settings, in TOML.
    settings: String,
    /// Argument that it comes from.
    argument: String,
}

/// Returns the sides, the baseline first.
fn sides(arguments: &AbArguments) -> Result<Vec<Side>> {
    match (&arguments.set, arguments.jobs.as_slice()) {
        (None, [one, other]) => {
            let side = |name: &String, settings: String| Side {
                name: name.clone(),
                settings,
                argument: name.clone(),
            };
            let file = quoted(&path_of(arguments, other)?);
            Ok(vec![
                side(one, "{}".into()),
                side(other, format!("{{ file = {file} }}")),
            ])
        }
        (Some(set), [_]) => {
            let values = set.split_once('=');
            let (option, values) = values
                .filter(|(_, values)| values.contains(','))
                .with_context(|| format!("--set {set}: expected OPTION=V1,V2"))?;
            let side = |value: &str| Side {
                name: format!("{option}={value}"),
                settings: format!("{{ job = {{ {} = {} }} }}", quoted(option), quoted(value)),
                argument: format!("--set {set}"),
            };
            Ok(values.split(',').map(side).collect())
        }
        (None, _) => {
            bail!("nothing to compare\nhint: add --set OPTION=V1,V2, or name a second job file")
        }
        (Some(_), _) => bail!("--set takes one job file\nhint: name one"),
    }
}

/// Returns the metrics to judge.
fn judged(arguments: &AbArguments) -> Vec<Judged> {
    match arguments.judge.as_slice() {
        [] => vec![Judged {
            metric: "all.iops".into(),
            tolerance: "2%".into(),
        }],
        judged => judged.to_vec(),
    }
}

/// Refuses a number of repeats that could prove nothing.
fn check_repeats(arguments: &AbArguments, comparisons: usize) -> Result<()> {
    let (repeats, needed) = (arguments.repeats, repeats_to_prove(comparisons));
    if repeats < needed {
        let among = match comparisons {
            1 => String::new(),
            many => format!(" with {many} comparisons"),
        };
        bail!(
            "--repeats {repeats}: fewer than {needed} repeats prove nothing{among}\n\
             hint: use `--repeats {needed}` or more"
        );
    }
    Ok(())
}

/// Returns the path of a file as the lab file has it, which may be saved elsewhere.
fn path_of(arguments: &AbArguments, file: &str) -> Result<String> {
    let folder = arguments
        .save
        .as_ref()
        .and_then(|save| Path::new(save).parent());
    if folder.is_none_or(|folder| folder.as_os_str().is_empty()) {
        return Ok(file.to_owned());
    }
    let path = std::path::absolute(file).with_context(|| file.to_owned())?;
    Ok(path.to_string_lossy().into_owned())
}

/// Quotes a text as TOML: its strings have JSON's escapes.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Name of the lab.
pub(crate) const NAME: &str = "ab";
