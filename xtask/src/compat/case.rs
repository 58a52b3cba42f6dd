//! A case: input of both programs, and permitted differences.
//!
//! ```text
//! case a name, unique in its file
//!   run --rw=randrw --size=64k              arguments, after `--name=t` if they name no job
//!   each --bs=4k                            a separate case with these arguments appended, per
//! line   file t.fio                              a file in the directory; its lines are indented
//! [t]   mix                                     reads and writes are drawn: shares within 2 %
//! near 3                                  counts within 3 % instead of exact   runtime 5
//! compare the runtime too, within 5 %   order                                   the same ops in
//! the same order (needs log_offset=1)   content                                 files hold the
//! same kind of data, by blocks of 16 KiB   ranked                                  compare the
//! popularity of offsets by rank, not by place   exit 1                                  exit code
//! of both; default 0   refused                                 both exit with 1 and run nothing
//! plain                                   request no formats; compare exit code and files only
//! output                                  `plain`, and both print the same   formats
//! the arguments request the formats   alone REASON                            fio must refuse it,
//! Fathom must run it   without fio REASON                      only Fathom runs it   once OPTION
//! skipped until the program takes this option   as root                                 skipped
//! unless run as root   stricter REASON                         fio must run it, Fathom must refuse
//! it   differs PLACE: REASON                   must differ; `*` in a place matches any text   may
//! differ PLACE: REASON                may differ from run to run
//! ```

use std::path::Path;

use anyhow::{Context, Result, bail};

/// One case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Case {
    /// Name: that of its file, a slash, and its own.
    pub(crate) name: String,
    pub(crate) words: Vec<String>,
    pub(crate) files: Vec<(String, String)>,
    pub(crate) wanted: Wanted,
    pub(crate) plain: bool,
    pub(crate) output: bool,
    pub(crate) formats: bool,
    /// Variants of the command line: the words appended for each.
    pub(crate) each: Vec<String>,
    pub(crate) mix: bool,
    pub(crate) order: bool,
    pub(crate) ranked: bool,
    pub(crate) content: bool,
    pub(crate) as_root: bool,
    /// Option that the program must take for the case to run.
    pub(crate) once: Option<String>,
    /// Tolerance of counts, percent; 0: exact.
    pub(crate) near: f64,
    /// Tolerance of times, percent; none: times are not compared.
    pub(crate) runtime: Option<f64>,
    pub(crate) stated: Vec<Stated>,
    /// Index among all cases, by which layouts and formats rotate.
    pub(crate) index: usize,
}

/// Expected outcome of both programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Both run, and exit with this code.
    Exit(i32),
    /// Both refuse the job and exit with 1.
    Refused,
    /// Fathom runs what fio refuses.
    Alone,
    /// Fathom refuses what fio runs.
    Stricter,
    /// Fathom runs alone; fio is not started.
    Ours,
}

impl Default for Wanted {
    fn default() -> Self {
        Self::Exit(0)
    }
}

/// An intended difference.
#[derive(Clone, Debug)]
pub(crate) struct Stated {
    pub(crate) place: String,
    /// The case fails if the difference does not occur.
    pub(crate) always: bool,
}

impl Case {
    /// Returns whether the command line or a job file contains `what`.
    pub(crate) fn mentions(&self, what: &str) -> bool {
        let files = self.files.iter().map(|(_, text)| text);
        self.words
            .iter()
            .chain(files)
            .any(|text| text.contains(what))
    }

    /// Returns whether the counts depend on time, so that they are compared with a tolerance.
    pub(crate) fn is_timed(&self) -> bool {
        self.near > 0.0 || self.runtime.is_some()
    }

    fn take(&mut self, line: &str) -> Result<()> {
        let (key, rest) = line.split_once(' ').unwrap_or((line, ""));
        let percent = || {
            rest.parse()
                .with_context(|| format!("`{rest}` is not a percentage"))
        };
        let reason = || match rest {
            "" => bail!("`{key}` needs a reason"),
            _ => Ok(()),
        };
        match key {
            "run" => self.words.extend(words(rest)),
            "each" => self.each.push(rest.trim().to_owned()),
            "file" => self.files.push((rest.to_owned(), String::new())),
            "mix" => self.mix = true,
            "order" => self.order = true,
            "ranked" => self.ranked = true,
            "content" => self.content = true,
            "near" => self.near = percent()?,
            "runtime" => self.runtime = Some(percent()?),
            "exit" => self.wanted = Wanted::Exit(rest.parse()?),
            "refused" => self.wanted = Wanted::Refused,
            "plain" => self.plain = true,
            "output" => (self.plain, self.output) = (true, true),
            "formats" => self.formats = true,
            "alone" => self.wanted = reason().map(|()| Wanted::Alone)?,
            "without" => self.wanted = reason().map(|()| Wanted::Ours)?,
            "once" => self.once = Some(rest.to_owned()),
            "as" => self.as_root = rest == "root",
            "stricter" => self.wanted = reason().map(|()| Wanted::Stricter)?,
            "differs" => self.state(rest, true)?,
            "may" => self.state(rest.strip_prefix("differ ").unwrap_or(rest), false)?,
            other => bail!("no line of a case begins with `{other}`"),
        }
        Ok(())
    }

    /// Returns the case, or one per `each` line.
    fn apart(self) -> Vec<Self> {
        if self.each.is_empty() {
            return vec![self];
        }
        let one = |more: &String| Self {
            name: format!("{}: {more}", self.name),
            words: self.words.iter().cloned().chain(words(more)).collect(),
            ..self.clone()
        };
        self.each.iter().map(one).collect()
    }

    fn state(&mut self, rest: &str, always: bool) -> Result<()> {
        let (place, reason) = rest.split_once(": ").unwrap_or((rest, ""));
        if reason.trim().is_empty() {
            bail!("the difference at `{place}` needs a reason");
        }
        self.stated.push(Stated {
            place: place.to_owned(),
            always,
        });
        Ok(())
    }
}

/// Reads all cases of the files in a directory, sorted by file name.
pub(crate) fn read_all(folder: &Path) -> Result<Vec<Case>> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "cases") {
            paths.push(path);
        }
    }
    paths.sort();
    let mut cases = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let subject = path.file_stem().unwrap_or_default().to_string_lossy();
        cases.extend(parse(&subject, &text)?);
    }
    for (index, case) in cases.iter_mut().enumerate() {
        case.index = index;
    }
    Ok(cases)
}

/// Parses the cases of one file.
pub(crate) fn parse(subject: &str, text: &str) -> Result<Vec<Case>> {
    let mut cases: Vec<Case> = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let place = || format!("{subject}.cases:{number}");
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix("case ") {
            let name = format!("{subject}/{name}");
            if cases.iter().any(|case| case.name == name) {
                bail!("{}: duplicate case `{name}`", place());
            }
            cases.push(Case {
                name,
                ..Case::default()
            });
            continue;
        }
        let case = cases
            .last_mut()
            .with_context(|| format!("{}: no case yet", place()))?;
        match (line.strip_prefix("    "), case.files.last_mut()) {
            (Some(content), Some((_, text))) => *text += &format!("{content}\n"),
            _ => case.take(line.trim()).with_context(place)?,
        }
    }
    Ok(cases.into_iter().flat_map(Case::apart).collect())
}

fn words(line: &str) -> impl Iterator<Item = String> {
    line.split_whitespace().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_has_words_files_and_stated_differences() {
        let text = "# why\ncase one\n  run --rw=read\n  run t.fio\n  file t.fio\n    [t]\n    \
                    size=4k\n  near 3\n  differs json:jobs.*: because\n  \
                    may differ text: now and then\ncase two\n  refused\n  \
                    once bs\n";
        let cases = parse("x", text).unwrap();
        assert_eq!(cases[0].name, "x/one");
        assert_eq!(cases[0].words, ["--rw=read", "t.fio"]);
        assert_eq!(
            cases[0].files,
            [("t.fio".to_owned(), "[t]\nsize=4k\n".to_owned())]
        );
        assert!((cases[0].near - 3.0).abs() < 1e-9);
        let stated: Vec<_> = cases[0]
            .stated
            .iter()
            .map(|s| (&*s.place, s.always))
            .collect();
        assert_eq!(stated, [("json:jobs.*", true), ("text", false)]);
        assert_eq!(cases[1].wanted, Wanted::Refused);
        assert_eq!(cases[1].once.as_deref(), Some("bs"));
    }

    #[test]
    fn each_line_of_words_is_a_case() {
        let cases = parse(
            "x",
            "case a\n  run --rw=read\n  each --bs=4k\n  each --size=8k\n  mix\n",
        );
        let cases = cases.unwrap();
        let names: Vec<&str> = cases.iter().map(|case| &*case.name).collect();
        assert_eq!(names, ["x/a: --bs=4k", "x/a: --size=8k"]);
        assert_eq!(cases[1].words, ["--rw=read", "--size=8k"]);
        assert!(cases.iter().all(|case| case.mix));
    }

    #[test]
    fn what_a_case_cannot_say_is_refused() {
        for text in [
            "run x\n",
            "case a\n  what\n",
            "case a\n  differs json\n",
            "case a\n  alone\n",
            "case a\ncase a\n",
        ] {
            assert!(parse("x", text).is_err(), "{text}");
        }
    }
}
