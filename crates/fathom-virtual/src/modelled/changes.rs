//! Machine files with single values changed.

use fathom_job::Origin;
use fathom_toml::{Change, TomlProblem, TomlProblemKind, changed};

use super::machine_file::MachineModel;

/// A value of a machine file under another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineChange {
    /// Key with dots: `device.queue.policy`; `device.0.queue.policy` with several devices.
    pub key: String,
    /// Value as TOML: `"plain"`, with its quotes.
    pub literal: String,
    /// Place where the change is written.
    pub origin: Origin,
}

impl MachineModel {
    /// Returns `text`, the content of the machine file `file`, with these changes, as the text of
    /// a machine file.
    ///
    /// # Errors
    /// Everything that is wrong with the file itself, each with its place there; otherwise with
    /// the changed one, each with the place of the change.
    pub fn changed_text(
        file: &str,
        text: &str,
        changes: &[MachineChange],
    ) -> Result<String, Vec<TomlProblem>> {
        Self::read(file, text)?;
        let plain: Vec<Change<'_>> = changes
            .iter()
            .map(|change| Change {
                key: &change.key,
                literal: &change.literal,
            })
            .collect();
        let result = changed(text, &plain).map_err(|error| {
            vec![TomlProblem {
                kind: TomlProblemKind::MakesNoSense,
                origin: changes[error.change].origin.clone(),
                message: error.message,
                hint: error.hint,
            }]
        })?;
        let Err(mut problems) = Self::read(file, &result.text) else {
            return Ok(result.text);
        };
        for problem in &mut problems {
            let line = problem.origin.line;
            match result.lines.iter().position(|known| *known == line) {
                Some(change) => problem.origin = changes[change].origin.clone(),
                // The change is at fault all the same: without it the file is right.
                None => place_at_last(problem, file, changes),
            }
        }
        Err(problems)
    }
}

/// Places a problem of a value that was not changed at the last change.
fn place_at_last(problem: &mut TomlProblem, file: &str, changes: &[MachineChange]) {
    let Some(last) = changes.last() else { return };
    problem.origin = last.origin.clone();
    problem.message = format!("{file} with this change: {}", problem.message);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: &str = "[[device]]\nnames = [\"*\"]\nmodel = \"constant\"\ncapacity_gib = 1\n\
                           [device.constant]\nlatency_us = 100\n[device.queue]\nscheduler = \
                           \"mq-deadline\"\nqueue_depth = 32\n[device.queue.mq-deadline]\n\
                           fifo_batch = 4\n";

    fn change(key: &str, literal: &str) -> MachineChange {
        MachineChange {
            key: key.into(),
            literal: literal.into(),
            origin: Origin::in_text("lab.toml", "here", 0..4),
        }
    }

    #[track_caller]
    fn check(key: &str, literal: &str, want: &str) {
        let result = MachineModel::changed_text("m.toml", MACHINE, &[change(key, literal)]);
        let got = match &result {
            Ok(text) => text.lines().find(|line| line.ends_with(literal)),
            Err(problems) => {
                let at_change = |one: &TomlProblem| one.origin.file == "lab.toml";
                assert!(problems.iter().all(at_change), "{problems:?}");
                Some(problems[0].message.as_str())
            }
        };
        assert_eq!(got, Some(want));
    }

    #[test]
    fn values_change_and_bad_ones_are_placed_at_the_change() {
        check("device.queue.policy", "\"fair\"", "policy = \"fair\"");
        check(
            "device.queue.policy",
            "\"fare\"",
            "`policy` must be one of: plain, fair, fair-roundrobin, elastic",
        );
        check(
            "device.queue.depth",
            "3",
            "unknown key `depth` in `device.queue`",
        );
        check(
            "device.queue",
            "3",
            "`device.queue` is a table, not a value",
        );
        check(
            "device.queue.scheduler",
            "\"none\"",
            "m.toml with this change: unknown key `mq-deadline` in `device.queue`",
        );
    }

    #[test]
    fn problems_of_the_file_itself_have_their_own_place() {
        let problems = MachineModel::changed_text("m.toml", "device = 1", &[]).unwrap_err();
        assert_eq!(problems[0].origin.file, "m.toml");
    }
}
