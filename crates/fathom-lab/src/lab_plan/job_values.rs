//! Values in lines of job files, where `#` and `;` begin a comment: characters that would end a
//! value, or change it, are written as variables.
//!
//! The job language replaces `${VARIABLE}` after it has cut comments and blanks, and reads what
//! replaces it no second time. So do other builds of Fathom, which run the same files; fio cuts
//! comments afterwards, too, so that it can have no such values.

use std::borrow::Cow;

/// Returns the value of a variable that stands for a character.
pub(crate) fn character_of(variable: &str) -> Option<&'static str> {
    let mut all = VARIABLES.iter();
    let found = all.find(|(name, _)| *name == variable);
    found.map(|(_, character)| *character)
}

/// Returns a value, in which variables and keywords are replaced, as a line of a job file has it.
pub(crate) fn in_line(value: &str) -> Cow<'_, str> {
    written(value, &COMMENTS)
}

/// Returns the name of one file as a line of a job file has it, with nothing in it replaced.
///
/// Keywords such as `$ncpus` have no such form: the caller compares the names in the plan.
pub(crate) fn file_in_line(name: &str) -> String {
    // A colon would separate two names.
    let name = name.replace(':', "\\:");
    let line = written(&name, &['#', ';', '$', '\n']);
    // Blanks at the end of a value are cut, and an empty name counts as none.
    let end = if name.ends_with(char::is_whitespace) {
        ":"
    } else {
        ""
    };
    format!("{line}{end}")
}

/// Returns a value that a line has, with the characters for which variables stand.
pub(crate) fn of_line(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    for (variable, character) in VARIABLES {
        let reference = format!("${{{variable}}}");
        if text.contains(&reference) {
            text = Cow::Owned(text.replace(&reference, character));
        }
    }
    text
}

/// Returns whether a value has a character that begins a comment, or a line stands for one.
pub(crate) fn has_comment(value: &str) -> bool {
    of_line(value).contains(COMMENTS)
}

/// Returns whether a line of a job file has such a value.
pub(crate) fn has_whole_comment(job: &str) -> bool {
    let mut all = VARIABLES
        .iter()
        .filter(|(_, character)| character.contains(COMMENTS));
    all.any(|(variable, _)| job.contains(&format!("${{{variable}}}")))
}

fn written<'a>(value: &'a str, replaced: &[char]) -> Cow<'a, str> {
    if !value.contains(replaced) {
        return Cow::Borrowed(value);
    }
    let mut text = String::with_capacity(value.len() + 32);
    for letter in value.chars() {
        let mut all = VARIABLES.iter().filter(|_| replaced.contains(&letter));
        match all.find(|(_, character)| character.starts_with(letter)) {
            Some((variable, _)) => text.extend(["${", variable, "}"]),
            None => text.push(letter),
        }
    }
    Cow::Owned(text)
}

/// Characters that begin a comment.
const COMMENTS: [char; 2] = ['#', ';'];

/// Variables of the runs of a lab, and the characters for which they stand.
pub(crate) const VARIABLES: [(&str, &str); 4] = [
    ("FATHOM_HASH", "#"),
    ("FATHOM_SEMICOLON", ";"),
    ("FATHOM_DOLLAR", "$"),
    ("FATHOM_NEWLINE", "\n"),
];

#[cfg(test)]
mod tests {
    use fathom_job::file_names;

    use super::*;
    use crate::lab_file::tests::Files;
    use crate::lab_plan::job_plan;

    #[track_caller]
    fn names(line: &str) -> Vec<String> {
        let text = format!("[j]\nrw=write\nsize=1m\nfilename={line}\n");
        let plan = job_plan(&Files::new(&[]), "j.fio", &text).unwrap();
        file_names(&plan.jobs[0], 0)
    }

    #[test]
    fn values_are_whole_and_their_variables_replaced() {
        let line = in_line("a#1;b:c#${NONE}");
        assert_eq!(names(&line), ["a#1;b", "c#"]);
        assert_eq!(of_line(&line), "a#1;b:c#${NONE}");
        assert_eq!(in_line("a $ncpus"), "a $ncpus");
    }

    #[test]
    fn keywords_of_the_machine_are_replaced_in_names_of_files() {
        assert_ne!(names(&file_in_line("f$ncpus")), ["f$ncpus"]);
    }

    #[test]
    fn names_of_files_are_read_as_they_are() {
        const LETTERS: [&str; 12] = [
            "#", ";", "$", "{", "}", ":", "\\", " ", "\t", "\r", "\n", "A",
        ];
        let mut ends = vec![String::new()];
        for _ in 0..3 {
            let longer = ends.iter().flat_map(|end| {
                let letters = LETTERS.iter();
                letters.map(move |letter| format!("{end}{letter}"))
            });
            ends = longer.collect();
            let files: Vec<String> = ends.iter().map(|end| format!("/f{end}")).collect();
            let sections = files.iter().map(|file| {
                let line = file_in_line(file);
                format!("[j]\nrw=write\nsize=1m\nfilename={line}\n")
            });
            let text: String = sections.collect();
            let plan = job_plan(&Files::new(&[]), "j.fio", &text).unwrap();
            let read: Vec<String> = plan
                .jobs
                .iter()
                .flat_map(|job| file_names(job, 0))
                .collect();
            assert_eq!(read, files);
        }
    }
}
