//! Parts of an experiment that are read and cannot be run yet.

use fathom_job::Origin;
use fathom_toml::{TomlProblem, TomlProblemKind};

use super::LabPlan;

impl LabPlan {
    /// Returns a problem for each part that cannot be run yet, at its place in the lab file: an
    /// experiment without it would be another one.
    #[must_use]
    pub fn unsupported(&self) -> Vec<TomlProblem> {
        let requires = self
            .variants
            .iter()
            .any(|variant| !variant.requires.is_empty());
        let parts = [("requires", requires)];
        let present = parts.into_iter().filter(|(_, is_present)| *is_present);
        present.map(|(part, _)| self.problem(part)).collect()
    }

    fn problem(&self, part: &str) -> TomlProblem {
        let from = self.text.find(part).unwrap_or_default();
        let name = part.trim_matches(['[', ']', '.']);
        TomlProblem {
            kind: TomlProblemKind::MakesNoSense,
            origin: Origin::in_text(&self.file, &self.text, from..from + part.len()),
            message: format!("`{name}` cannot be run yet"),
            hint: "remove it, or look at the experiment with `--plan`".into(),
        }
    }
}
