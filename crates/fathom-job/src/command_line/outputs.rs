//! Outputs of a run, none of which may replace an input or another one.

use super::Reader;
use crate::problem::Problem;

impl Reader<'_> {
    /// Refuses outputs that would replace an input or each other: job files, machine file, report,
    /// saved latencies, record, metrics.
    pub(super) fn keep_job_files(&mut self) {
        let plain = |path: &str| path.trim_start_matches("./").to_owned();
        let environment = self.builder.environment;
        let settings = &self.builder.settings;
        let path = |path: &Option<String>| path.as_deref().map(plain);
        let output = path(&settings.output);
        let saved = path(&settings.save_distribution);
        let record = path(&settings.record);
        let metrics = path(&settings.metrics_file);
        let machine = path(&settings.machine);
        let is_same = |one: &str, other: &Option<String>| {
            other
                .as_deref()
                .is_some_and(|other| environment.is_same_file(one, other))
        };
        let inputs = [("report (`--output`)", &output), ("machine file", &machine)];
        let record_and = [
            inputs[0],
            inputs[1],
            ("machine file of `--save-distribution`", &saved),
        ];
        let metrics_and = [
            record_and[0],
            record_and[1],
            record_and[2],
            ("record (`--record`)", &record),
        ];
        let outputs: [(&str, _, &[_]); 3] = [
            ("--save-distribution", &saved, &inputs),
            ("--record", &record, &record_and),
            ("--metrics-file", &metrics, &metrics_and),
        ];
        for (option, path, others) in outputs {
            let Some(path) = path else { continue };
            if let Some((other, _)) = others.iter().find(|(_, other)| is_same(path, other)) {
                let why = format!("`{option}` would replace the {other} `{path}`");
                let reporter = &mut self.builder.reporter;
                reporter.error_without_place("saved-is-taken", why, "use another file");
            }
        }
        let outputs = [
            ("--output", output),
            ("--save-distribution", saved),
            ("--record", record),
            ("--metrics-file", metrics),
        ];
        for (option, path) in outputs {
            let files = self.files.iter().filter(|spot| spot.text() != "-");
            let same = files.clone().find(|spot| is_same(spot.text(), &path));
            if let Some(spot) = same.cloned() {
                let why = format!("`{option}` would replace the job file `{}`", spot.text());
                let problem = Problem::new("output-is-input", 0..spot.range.len(), why);
                if option == "--output" {
                    self.builder.settings.output = None;
                }
                let problem = problem.fix("use another output file");
                self.builder.reporter.error(&spot, problem);
            }
        }
    }
}
