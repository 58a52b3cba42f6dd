//! Commands in the documents: each is one that this program takes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;

use crate::{commands, definition};

/// Returns the documents for users.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let in_docs = fs::read_dir(root.join("docs")).unwrap();
    let in_docs = in_docs.map(|entry| entry.unwrap().path());
    let at_root = ["README.md", "CONTRIBUTING.md", "SECURITY.md"];
    let all = in_docs.chain(at_root.map(|name| root.join(name)));
    all.filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect()
}

/// Returns the commands of a document: lines of its blocks, which are whole, and text in backticks,
/// which may name a command alone.
fn commands_of(text: &str) -> Vec<(Vec<String>, Kind)> {
    let mut commands = Vec::new();
    let mut in_block = false;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            in_block = !in_block;
        } else if in_block {
            let mut whole = line.to_owned();
            while let Some(begun) = whole.strip_suffix('\\') {
                whole = format!("{begun} {}", lines.next().unwrap_or_default());
            }
            commands.extend(command(&whole).map(|words| (words, Kind::Whole)));
        } else {
            let named = line.split('`').skip(1).step_by(2).filter_map(command);
            let of_fathom = named.filter(|words| words[0] == "fathom");
            commands.extend(of_fathom.map(|words| (words, Kind::Named)));
        }
    }
    commands
}

/// Place of a command in a document.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// A line of a block.
    Whole,
    /// Text of a sentence.
    Named,
}

/// Returns the words of a command of this program, after a prompt or `sudo`, up to what is the
/// shell's; `None` for other lines.
fn command(line: &str) -> Option<Vec<String>> {
    let line = line.split_once("$ ").map_or(line, |(_, rest)| rest).trim();
    let line = line.strip_prefix("sudo ").unwrap_or(line);
    let is_ours = ["fathom ", "fio --"]
        .iter()
        .any(|name| line.starts_with(name));
    let words = shell_words(line);
    let is_whole = !line.contains(['…', '<', '[']) && words.len() > 1;
    (is_ours && is_whole).then_some(words)
}

/// Splits a line into words, as a shell does with quotes; ends at a comment, a pipe or a
/// redirection.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (None, ' ') if word.is_empty() => {}
            (None, ' ') => words.push(std::mem::take(&mut word)),
            (None, '#' | '|' | '>' | '&' | ';' | '\\') if word.is_empty() => return words,
            _ => word.push(letter),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Returns why this program does not take a command.
fn refusal((words, kind): &(Vec<String>, Kind), known: &BTreeSet<&str>) -> Option<String> {
    let takes_jobs = words[0] == "fio" || words[1] == "run" || words[1] == "lint";
    if !takes_jobs {
        let parsed = commands::definition().try_get_matches_from(words);
        let error = parsed.err().filter(clap::Error::use_stderr)?;
        let text = error.to_string();
        let is_short = error.kind() == ErrorKind::MissingRequiredArgument
            || text.contains("a value is required");
        return (*kind == Kind::Whole || !is_short).then_some(text);
    }
    let named = words.iter().filter_map(|word| word.strip_prefix("--"));
    let mut names = named.map(|word| word.split('=').next().unwrap_or_default());
    let unknown = names.find(|name| !known.contains(name))?;
    Some(format!("no switch or option `{unknown}`"))
}

#[test]
fn every_command_in_the_documents_is_one() {
    let reference = definition::job_reference();
    let switches = reference.switches.iter().map(|switch| switch.name);
    let known: BTreeSet<&str> = switches
        .chain(
            reference
                .options()
                .flat_map(|one| one.names.iter().copied()),
        )
        .collect();
    let mut refused = Vec::new();
    let mut count = 0;
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap();
        for command in commands_of(&text) {
            count += 1;
            if let Some(why) = refusal(&command, &known) {
                let (words, _) = command;
                refused.push(format!("{}: {}: {why}", path.display(), words.join(" ")));
            }
        }
    }
    assert_eq!(refused, [""; 0], "{}", refused.join("\n"));
    assert!(count > 100, "{count} commands found");
}

#[test]
fn words_are_those_of_a_shell() {
    let want = ["fathom", "run", "--uri=a b", "--x"];
    assert_eq!(
        command("host1$ sudo fathom run --uri='a b' --x   # why").unwrap(),
        want
    );
    assert_eq!(command("fathom man jobs | man -l -").unwrap().len(), 3);
    assert_eq!(command("fathom run … job.fio"), None);
    assert_eq!(command("cargo run"), None);
}

#[test]
fn a_wrong_command_is_refused() {
    let words = |line| (command(line).unwrap(), Kind::Whole);
    let known = BTreeSet::from(["name", "rw"]);
    assert_eq!(
        refusal(&words("fathom run --name=a --rw read"), &known),
        None
    );
    assert!(refusal(&words("fathom run --nmae=a"), &known).is_some());
    assert!(refusal(&words("fathom report --htlm x.html run.json"), &known).is_some());
    assert!(refusal(&words("fathom report run.json"), &known).is_some());
    let named = (words("fathom report run.json").0, Kind::Named);
    assert_eq!(refusal(&named, &known), None);
}
