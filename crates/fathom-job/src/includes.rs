//! Files that job files include: where they are found, and how many there may be.

use std::io::ErrorKind;
use std::sync::Arc;

use crate::environment::Environment;
use crate::file::JOB_FILE_BYTES_MAX;
use crate::lines::{self, Item};
use crate::problem::Problem;
use crate::substitute::substitute;

/// Files being read, each included by the one before.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    names: Vec<String>,
    /// Number of files that were included.
    included: u32,
}

impl OpenFiles {
    /// Begins with a job file.
    pub(crate) fn new(file: &str) -> Self {
        Self {
            names: vec![file.to_owned()],
            included: 0,
        }
    }

    /// Returns the name of the job file.
    pub(crate) fn job_file(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }

    /// Opens an included file, and returns its name and its content: relative to the current
    /// directory, else to the including file. [`close`](Self::close) it once it is read.
    ///
    /// # Errors
    /// It cannot be read, or there are too many.
    pub(crate) fn open(
        &mut self,
        wanted: &str,
        environment: &dyn Environment,
    ) -> Result<(String, Vec<u8>), Problem> {
        let problem = |code, why: String| Err(Problem::new(code, 0..wanted.len(), why));
        self.included += 1;
        if self.included > INCLUDES_MAX {
            return problem(
                "many-includes",
                format!("more than {INCLUDES_MAX} included files"),
            );
        }
        if self.names.len() > DEPTH_MAX {
            return problem(
                "deep-include",
                format!("files are included more than {DEPTH_MAX} levels deep"),
            );
        }
        let (path, content) = self.find(wanted, environment);
        if self.names.contains(&path) {
            return problem(
                "circular-include",
                format!("`{path}` includes itself: {}", self.names.join(" → ")),
            );
        }
        match content {
            Err(error) => problem("no-include", format!("cannot read `{wanted}`: {error}")),
            Ok(bytes) if lines::is_binary(&bytes) => problem(
                "binary-file",
                format!("`{path}` is not a text file: contains zero bytes"),
            ),
            Ok(bytes) if bytes.len() as u64 > JOB_FILE_BYTES_MAX => {
                problem("long-file", format!("`{path}` is longer than 64 MiB"))
            }
            Ok(bytes) => {
                self.names.push(path.clone());
                Ok((path, bytes))
            }
        }
    }

    /// Closes the file that was opened last.
    pub(crate) fn close(&mut self) {
        self.names.pop();
    }

    fn find(
        &self,
        wanted: &str,
        environment: &dyn Environment,
    ) -> (String, std::io::Result<Vec<u8>>) {
        let content = environment.read_file(wanted);
        let including = self.names.last().and_then(|name| name.rsplit_once('/'));
        if let (Err(error), Some((directory, _))) = (&content, including)
            && error.kind() == ErrorKind::NotFound
            && !wanted.starts_with('/')
        {
            let beside = format!("{directory}/{wanted}");
            let content = environment.read_file(&beside);
            return (beside, content);
        }
        (wanted.to_owned(), content)
    }
}

/// Text of a job file, with the files that it includes in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WholeJobFile {
    /// Text.
    pub text: String,
    /// File and number of each line; empty if all are those of the job file.
    pub places: Vec<(Arc<str>, u32)>,
}

/// Returns the text of a job file with the lines of included files in the place of each `include`,
/// for readers that keep it. `prepare` changes the text of an included file first.
///
/// A file that cannot be read, or that itself includes one that cannot, stays an `include`: to read
/// the jobs says why.
#[must_use]
pub fn with_includes(
    file: &str,
    text: &str,
    environment: &dyn Environment,
    prepare: &dyn Fn(&str) -> String,
) -> WholeJobFile {
    let mut whole = Whole {
        environment,
        prepare,
        open: OpenFiles::new(file),
        found: WholeJobFile::default(),
    };
    whole.add(file, text);
    match whole.open.included {
        0 => WholeJobFile {
            text: text.to_owned(),
            places: Vec::new(),
        },
        _ => whole.found,
    }
}

/// Text that is being put together.
struct Whole<'a> {
    environment: &'a dyn Environment,
    prepare: &'a dyn Fn(&str) -> String,
    open: OpenFiles,
    found: WholeJobFile,
}

impl Whole<'_> {
    /// Adds the lines of a file, and returns whether they may stand in the place of an `include`:
    /// all that they include is there, too, and none begins a section.
    fn add(&mut self, file: &str, text: &str) -> bool {
        let place: Arc<str> = file.into();
        let is_included = file != self.open.job_file();
        for (line, number) in text.lines().zip(1..) {
            match lines::item_of(line) {
                Some(Item::Include { file }) if self.include(file.text()) => continue,
                Some(Item::Include { .. } | Item::Section { .. }) if is_included => return false,
                _ => {}
            }
            self.found.text.push_str(line);
            self.found.text.push('\n');
            self.found.places.push((Arc::clone(&place), number));
        }
        (self.found.text.len() as u64) <= JOB_FILE_BYTES_MAX
    }

    /// Adds the lines of an included file: all of them, or none.
    fn include(&mut self, name: &str) -> bool {
        let replaced = substitute(name, false, self.environment, None);
        let wanted = replaced.map_or_else(|| name.to_owned(), |replaced| replaced.text);
        let Ok((path, bytes)) = self.open.open(&wanted, self.environment) else {
            return false;
        };
        let before = (self.found.text.len(), self.found.places.len());
        let text = String::from_utf8(bytes).ok();
        let is_whole = text.is_some_and(|text| {
            let text = (self.prepare)(text.trim_start_matches('\u{feff}'));
            self.add(&path, &text)
        });
        self.open.close();
        if !is_whole {
            self.found.text.truncate(before.0);
            self.found.places.truncate(before.1);
        }
        is_whole
    }
}

/// Limit of nested includes.
const DEPTH_MAX: usize = 16;

/// Limit of included files in total: files that include two others each would multiply
/// exponentially.
const INCLUDES_MAX: u32 = 1000;
