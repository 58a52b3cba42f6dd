//! Job files, with the files that they include in them.
//!
//! A change of any of them is a change of the lab, and a run reads its job from another place than
//! that of the job file. So the lines of an included file stand in the place of the `include`. One
//! that cannot be read stays as it is: the job language refuses it where the jobs are tried.

use std::io::ErrorKind;
use std::sync::Arc;

use fathom_job::JOB_FILE_BYTES_MAX;

use super::reader::Reader;
use crate::lab_plan::JobText;

/// Returns the job of a file with this text, without settings.
pub(super) fn job(reader: &Reader<'_>, file: String, text: &str) -> JobText {
    let text = with_arguments(reader, text);
    let mut lines = Lines {
        reader,
        text: String::with_capacity(text.len()),
        places: Vec::new(),
        open: vec![file.clone()],
        files: 0,
    };
    lines.add(&text);
    let (text, places) = match lines.files {
        0 => (text, Vec::new()),
        _ => (lines.text, lines.places),
    };
    JobText {
        file,
        text,
        places,
        settings: Vec::new(),
    }
}

/// Lines of a job file and of those that it includes.
struct Lines<'a, 'b> {
    reader: &'a Reader<'b>,
    text: String,
    /// File and number of each line.
    places: Vec<(Arc<str>, u32)>,
    /// The file being read, after those that include it.
    open: Vec<String>,
    /// Number of files that were included.
    files: u32,
}

impl Lines<'_, '_> {
    /// Adds the lines of the file that was opened last, and returns whether they are complete: one
    /// that includes what cannot be read is not, and stays an `include` itself, since what it
    /// names is sought beside it.
    fn add(&mut self, text: &str) -> bool {
        let file: Arc<str> = self.open.last().map_or("", String::as_str).into();
        for (line, number) in text.lines().zip(1..) {
            if let Some(name) = included(line) {
                if self.include(name) {
                    continue;
                }
                if self.open.len() > 1 {
                    return false;
                }
            }
            self.text.push_str(line);
            self.text.push('\n');
            self.places.push((Arc::clone(&file), number));
        }
        true
    }

    /// Adds the lines of an included file: all of them, or none.
    fn include(&mut self, name: &str) -> bool {
        let Some((path, text)) = self.read(name) else {
            return false;
        };
        let before = (self.text.len(), self.places.len());
        self.files += 1;
        self.open.push(path);
        let is_complete = self.add(&text);
        self.open.pop();
        if !is_complete {
            self.text.truncate(before.0);
            self.places.truncate(before.1);
        }
        is_complete
    }

    /// Reads an included file: relative to the current directory, else to the including file, as
    /// the job language does.
    fn read(&self, name: &str) -> Option<(String, String)> {
        if self.open.len() > DEPTH_MAX || self.files >= FILES_MAX {
            return None;
        }
        let environment = self.reader.environment;
        let mut path = with_variables(name, &|name| environment.variable(name))?;
        let mut content = environment.read_file(&path);
        let folder = self.open.last().and_then(|file| file.rsplit_once('/'));
        if let (Err(error), Some((folder, _))) = (&content, folder)
            && error.kind() == ErrorKind::NotFound
            && !path.starts_with('/')
        {
            path = format!("{folder}/{path}");
            content = environment.read_file(&path);
        }
        let text = String::from_utf8(content.ok()?).ok()?;
        let text = with_arguments(self.reader, text.trim_start_matches('\u{feff}'));
        let has_section = text.lines().any(|line| line.trim_start().starts_with('['));
        let length = self.text.len().saturating_add(text.len()) as u64;
        let is_readable = !has_section && !text.contains('\0') && length <= JOB_FILE_BYTES_MAX;
        (is_readable && !self.open.contains(&path)).then_some((path, text))
    }
}

/// Returns the name in a line `include NAME`, without a comment.
fn included(line: &str) -> Option<&str> {
    let code = line.split([';', '#']).next().unwrap_or_default().trim();
    let rest = code.strip_prefix("include")?;
    let name = rest.strip_prefix([' ', '\t', '='])?.trim_start();
    (!name.is_empty()).then_some(name)
}

/// Replaces each `${VARIABLE}`; `None` if one is not set, or another `$` is left: keywords of the
/// job language.
fn with_variables(name: &str, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let (mut text, mut rest) = (String::new(), name);
    while let Some((before, after)) = rest.split_once("${") {
        let (name, after) = after.split_once('}')?;
        text.push_str(before);
        text.push_str(&variable(name)?);
        rest = after;
    }
    text.push_str(rest);
    (!text.contains('$')).then_some(text)
}

/// Replaces each `${NAME}` by its value of `ask`.
fn with_arguments(reader: &Reader<'_>, text: &str) -> String {
    let mut text = text.to_owned();
    for (name, value) in reader.arguments {
        text = text.replace(&format!("${{{name}}}"), value);
    }
    text
}

/// Limits of the job language: of files that include each other, and of all of them.
const DEPTH_MAX: usize = 16;
const FILES_MAX: u32 = 1000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab_file::tests::Files;
    use crate::{LabPlan, Subject};

    const LAB: &str = "[lab]\nname = \"inc\"\n[job]\nfile = \"job.fio\"\nbs = \"8k\"\n";
    const JOB: &str = "[global]\ninclude sub/a.fio ; a comment\n[j]\nrw=randread\n";

    fn files(a: &str) -> Files {
        Files::new(&[
            ("f/job.fio", JOB),
            ("f/sub/a.fio", a),
            ("f/sub/b.fio", "size=1m\n"),
        ])
    }

    #[test]
    fn included_files_stand_beside_the_job_file_and_in_its_text() {
        let a = "iodepth=2\ninclude=b.fio\nfilename=x\n";
        let plan = LabPlan::parse("f/lab.toml", LAB, &[], &files(a)).expect("a lab");
        let Subject::Job(job) = &plan.subject else {
            panic!("{:?}", plan.subject);
        };
        let want = "[global]\niodepth=2\nsize=1m\nfilename=x\n[j]\nrw=randread\n";
        assert_eq!(job.text, want);
        assert_eq!(job.place_of(2), ("f/sub/a.fio", 1));
        assert_eq!(job.place_of(3), ("f/sub/b.fio", 1));
        assert_eq!(job.place_of(6), ("f/job.fio", 4));
        let run = plan.run_of(0, 0, 7).job.expect("a job");
        assert!(
            !run.contains("include") && run.contains("size=1m\n"),
            "{run}"
        );
    }

    #[track_caller]
    fn refused(a: &str, want: &str) {
        let problems = LabPlan::parse("f/lab.toml", LAB, &[], &files(a)).unwrap_err();
        let told = problems
            .iter()
            .map(|one| format!("{}:{}: {}", one.origin.file, one.origin.line, one.message));
        let told = told.collect::<Vec<_>>().join("\n");
        assert!(told.contains(want), "{told}");
    }

    #[test]
    fn problems_of_included_files_are_at_their_places() {
        refused(
            "size=1m\n\niodept=3\n",
            "f/sub/a.fio:3: unknown option `iodept`",
        );
        refused("include c.fio\n", "cannot read `c.fio`");
        refused("include a.fio\n", "includes itself");
        // It is there, though not beside the file that includes it.
        refused("include job.fio\n", "f/sub/a.fio:1: cannot read `job.fio`");
        refused("[x]\n", "an included file cannot contain sections");
    }

    #[test]
    fn names_of_included_files_have_variables_in_them() {
        assert_eq!(included("  include x=1.fio # y"), Some("x=1.fio"));
        assert_eq!(included("include=3"), Some("3"));
        assert_eq!(included("includes a"), None);
        assert_eq!(included("include ; a"), None);
        let variable = |name: &str| (name == "A").then(|| "b".to_owned());
        let of = |name| with_variables(name, &variable);
        assert_eq!(of("x${A}y").as_deref(), Some("xby"));
        assert_eq!(of("${B}"), None);
        assert_eq!(of("$pagesize"), None);
    }
}
