//! Outputs of a run, none of which may replace an input or another one.

use super::Reader;
use crate::problem::Problem;
use crate::source::Spot;

impl Reader<'_> {
    /// Refuses outputs that would replace an input or an earlier output. `job_files` are the places
    /// of those that the command line names.
    pub(super) fn spare_inputs(&mut self, job_files: &[Spot]) {
        let environment = self.builder.environment;
        let settings = &self.builder.settings;
        let (mut taken, mut found) = (settings.inputs(), Vec::new());
        let mut spares_report = false;
        for output in settings.outputs() {
            let mut others = taken.iter();
            let other = others.find(|other| environment.is_same_file(other.path, output.path));
            if let Some(other) = other {
                let what = format!("the {} `{}`", other.what, other.path);
                let why = format!("`{}` would replace {what}", output.option);
                let spot = job_files.iter().find(|spot| spot.text() == other.path);
                found.push((why, spot.filter(|_| other.option.is_empty())));
                spares_report |= output.option == "--output";
            }
            taken.push(output);
        }
        if spares_report {
            // Nor do the errors go there, as they do under fio's name.
            self.builder.settings.output = None;
        }
        for (why, spot) in found {
            let reporter = &mut self.builder.reporter;
            match spot {
                Some(spot) => {
                    let problem = Problem::new("output-is-input", 0..spot.range.len(), why);
                    reporter.error(spot, problem.fix(HINT));
                }
                None => reporter.error_without_place("output-is-input", why, HINT),
            }
        }
    }
}

const HINT: &str = "use another output file";
