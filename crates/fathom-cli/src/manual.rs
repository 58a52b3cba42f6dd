//! `fathom man`: a manual page per command and one for the job language, as roff.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use fathom_host::output_file::{self, Stop};

use crate::definition;
use crate::exit::ProgramEnd;
use crate::manual_jobs;
use crate::output::{self, StandardStream};

/// Arguments of `fathom man`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ManArguments {
    /// Page to print [default: list the pages]
    #[arg(value_name = "PAGE")]
    page: Option<String>,
    /// Write every page into DIR, as DIR/man1/fathom.1
    #[arg(long, value_name = "DIR", conflicts_with = "page")]
    dir: Option<PathBuf>,
}

/// Manual page.
struct Page {
    /// Name: `fathom-peak`.
    name: String,
    section: u8,
    /// One line about its subject.
    about: String,
    roff: String,
}

impl Page {
    /// Returns the name of its file: `fathom-peak.1`.
    fn file_name(&self) -> String {
        format!("{}.{}", self.name, self.section)
    }

    /// Returns whether a user means this page: `peak`, `fathom-peak`, `fathom-peak.1`.
    fn is_called(&self, name: &str) -> bool {
        let short = self.name.strip_prefix("fathom-");
        name == self.name || short == Some(name) || name == self.file_name()
    }
}

/// Prints or writes pages.
pub(crate) fn run(arguments: &ManArguments) -> ProgramEnd {
    let printed = match (&arguments.page, &arguments.dir) {
        (_, Some(folder)) => write_all(folder),
        (Some(name), None) => page(name),
        (None, None) => Ok(list()),
    };
    match printed {
        Ok(text) => output::show(&text, "fathom: man", ProgramEnd::Printed),
        Err(error) => {
            output::print(StandardStream::Error, &format!("fathom: man: {error:#}\n"));
            ProgramEnd::Refused
        }
    }
}

fn list() -> String {
    let pages = pages();
    let lines = pages
        .iter()
        .map(|page| format!("{:<22} {}\n", page.name, page.about));
    let lines: String = lines.collect();
    format!("{lines}\nRead one with `fathom man PAGE | man -l -`; write all with --dir DIR.\n")
}

fn page(name: &str) -> Result<String> {
    let mut pages = pages().into_iter();
    match pages.find(|page| page.is_called(name)) {
        Some(page) => Ok(page.roff),
        None => bail!("no such page: {name}\nhint: `fathom man` lists the pages"),
    }
}

/// Writes every page, and returns what to print: nothing.
fn write_all(folder: &Path) -> Result<String> {
    for page in pages() {
        let folder = folder.join(format!("man{}", page.section));
        fs::create_dir_all(&folder).with_context(|| format!("--dir: {}", folder.display()))?;
        let file = folder.join(page.file_name());
        output_file::write(&file, page.roff.as_bytes(), &Stop::never())
            .with_context(|| format!("--dir: {}", file.display()))?;
    }
    Ok(String::new())
}

/// Returns all pages: the program, its commands, the job language.
fn pages() -> Vec<Page> {
    let reference = definition::job_reference();
    let mut whole = definition::whole(&reference, false);
    whole.build();
    let mut pages = Vec::new();
    add_command(&mut pages, &whole, "fathom");
    pages.push(Page {
        name: manual_jobs::NAME.to_owned(),
        section: manual_jobs::SECTION,
        about: manual_jobs::ABOUT.to_owned(),
        roff: manual_jobs::page(&reference),
    });
    pages
}

/// Adds the page of a command and those of its subcommands.
fn add_command(pages: &mut Vec<Page>, command: &Command, name: &str) {
    let shown = command.get_about().map(ToString::to_string);
    pages.push(Page {
        name: name.to_owned(),
        section: 1,
        about: shown.unwrap_or_default(),
        roff: command_page(command, name),
    });
    for inner in command.get_subcommands() {
        add_command(pages, inner, &format!("{name}-{}", inner.get_name()));
    }
}

fn command_page(command: &Command, name: &str) -> String {
    let extra = command.get_after_help().map(ToString::to_string);
    let definition = command
        .clone()
        .after_help(None)
        .version(None)
        .display_name(name.to_owned());
    let man = Man::new(definition).source(SOURCE).manual("Fathom");
    let mut page = Vec::new();
    // Writing to memory does not fail.
    let _infallible = man.render(&mut page);
    let mut roff = Roff::new();
    add_extra(&mut roff, &extra.unwrap_or_default());
    roff.control("SH", ["SEE ALSO"]);
    let others = match name {
        "fathom" => "fathom-run(1), fathom-lint(1), fathom-jobs(5)",
        "fathom-run" | "fathom-lint" => "fathom(1), fathom-jobs(5)",
        _ => "fathom(1)",
    };
    roff.text([roman(others)]);
    // A blank line in the source is a warning of every checker.
    let page = String::from_utf8_lossy(&page).replace("\n\n", "\n.sp\n");
    page + &roff.to_roff()
}

/// Adds the text after a command's help: examples line by line, the rest as paragraphs.
fn add_extra(roff: &mut Roff, text: &str) {
    let mut is_literal = false;
    let mut is_paragraph = false;
    for line in text.lines() {
        let example = line.strip_prefix("  ");
        if is_literal && example.is_none() {
            roff.control("fi", []);
            is_literal = false;
        }
        match (line, example) {
            ("", _) => is_paragraph = false,
            (_, Some(example)) => {
                if !is_literal {
                    roff.control("nf", []);
                    is_literal = true;
                }
                roff.text([bold(example)]);
            }
            ("Examples:", _) => {
                roff.control("SH", ["EXAMPLES"]);
                is_paragraph = true;
            }
            (line, _) => {
                if !is_paragraph {
                    roff.control("PP", []);
                    is_paragraph = true;
                }
                roff.text([roman(line)]);
            }
        }
    }
    if is_literal {
        roff.control("fi", []);
    }
}

/// Program and version, as in the footer of a page.
pub(crate) const SOURCE: &str = concat!("fathom ", env!("CARGO_PKG_VERSION"));

const EXAMPLES: &str = "\
Examples:
  fathom man peak | man -l -
  fathom man --dir ~/.local/share/man";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_a_page() {
        let pages = pages();
        let names: Vec<&str> = pages.iter().map(|page| page.name.as_str()).collect();
        for name in [
            "fathom",
            "fathom-run",
            "fathom-peak",
            "fathom-log-convert",
            "fathom-target-stats",
            "fathom-jobs",
        ] {
            assert!(names.contains(&name), "{name} is not in {names:?}");
        }
        for page in &pages {
            assert!(page.roff.contains(".SH NAME"), "{}", page.name);
            assert!(!page.about.is_empty(), "{}", page.name);
            assert!(!page.roff.contains("\n\n"), "{}", page.name);
        }
    }
}
