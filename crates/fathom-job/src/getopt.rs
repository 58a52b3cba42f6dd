//! Splits a command line like `getopt_long_only`: one or two dashes, `--name value`,
//! `--name=value`, unambiguous prefixes, single letters, and other words anywhere. The meaning of a
//! name depends on the engine set before it, so the caller pulls word by word.

use std::sync::Arc;

use fathom_core::EngineInfo;

use crate::problem::Problem;
use crate::source::{Line, Spot};
use crate::suggest;
use crate::switches::{self, Argument, Switch};
use crate::table::{Row, known};
use crate::vocabulary::Vocabulary;

/// One element of a command line.
#[derive(Debug)]
pub(crate) enum Word {
    /// A command-line switch.
    Switch {
        switch: &'static Switch,
        name: Spot,
        value: Option<Spot>,
    },
    /// A job option, with its full name.
    Option {
        full_name: String,
        name: Spot,
        value: Option<Spot>,
        /// A problem that fio accepts.
        problem: Option<Problem>,
    },
    /// A job file.
    File(Spot),
    /// A word that is neither.
    Bad(Spot, Problem),
}

/// A command line and the reading position.
pub(crate) struct CommandLine<'a> {
    vocabulary: Vocabulary<'a>,
    line: Arc<Line>,
    next: usize,
    /// Set after `--`: everything that follows is a job file.
    files_only: bool,
    /// Argument and offset of the next letter in a bundle of short switches such as `-rw`.
    letters: Option<(usize, usize)>,
}

impl<'a> CommandLine<'a> {
    pub(crate) fn new(arguments: &[String], vocabulary: Vocabulary<'a>) -> Self {
        Self {
            line: Arc::new(Line::of_command(arguments)),
            next: 0,
            files_only: false,
            letters: None,
            vocabulary,
        }
    }

    /// Returns the next element, for a job with this engine.
    pub(crate) fn word(&mut self, engine: &EngineInfo) -> Option<Word> {
        if let Some((argument, at)) = self.letters.take() {
            return Some(self.letter(argument, at));
        }
        let spot = self.take()?;
        let text = spot.text();
        let dashes = text.bytes().take_while(|byte| *byte == b'-').count().min(2);
        if self.files_only || dashes == 0 || text == "-" {
            return Some(Word::File(spot));
        }
        if text == "--" {
            self.files_only = true;
            return self.word(engine);
        }
        Some(self.long_or_letters(&spot, dashes, engine))
    }

    fn long_or_letters(&mut self, spot: &Spot, dashes: usize, engine: &EngineInfo) -> Word {
        let text = spot.text();
        let body = &text[dashes..];
        let (name, value) = match body.split_once('=') {
            Some((name, _)) => (name, Some(dashes + name.len() + 1..text.len())),
            None => (body, None),
        };
        let name_spot = spot.part(dashes..dashes + name.len());
        let value = value.map(|range| spot.part(range));
        let letter = name.chars().next().and_then(switches::find_short);
        if dashes == 1 && letter.is_some() && name.chars().count() == 1 {
            return self.letter(self.next - 1, 1);
        }
        match resolve(name, engine, self.vocabulary) {
            Ok(Meaning::Switch(switch)) => self.switch(switch, name_spot, value),
            Ok(Meaning::Option(name)) => self.option(name.to_owned(), name_spot, value),
            Err(Unclear::Unknown) if dashes == 1 && letter.is_some() => {
                self.letter(self.next - 1, 1)
            }
            Err(Unclear::Unknown) => self.unknown(name.to_owned(), name_spot, value),
            Err(Unclear::Ambiguous(names)) => {
                self.skip_value(value.is_some());
                Word::Bad(name_spot, ambiguous(name, &names))
            }
        }
    }

    fn switch(&mut self, switch: &'static Switch, name: Spot, value: Option<Spot>) -> Word {
        match (switch.argument, value) {
            (Argument::None, Some(value)) => {
                let why = format!("`--{}` takes no value", switch.name);
                let problem = Problem::new("needless-value", 0..value.range.len(), why);
                Word::Bad(value, problem.fix(format!("write `--{}`", switch.name)))
            }
            (Argument::Required(_), None) => match self.required() {
                Some(value) => Word::Switch {
                    switch,
                    name,
                    value: Some(value),
                },
                None => no_value(name, switch.name, None),
            },
            (_, value) => Word::Switch {
                switch,
                name,
                value,
            },
        }
    }

    fn option(&mut self, full_name: String, name: Spot, value: Option<Spot>) -> Word {
        let row = self.vocabulary.find_any(&full_name);
        let takes_value = match row {
            Some(row) => !row.is_flag(),
            None => {
                self.skip_value(value.is_some());
                false
            }
        };
        // Unlike in job files, no option accepts an empty value here, as in fio.
        if let Some(value) = value.as_ref().filter(|value| value.text().is_empty())
            && takes_value
        {
            return no_value(value.clone(), &full_name, row);
        }
        if value.is_some() || !takes_value {
            return Word::Option {
                full_name,
                name,
                value,
                problem: None,
            };
        }
        let takes_all = row.is_some_and(|row| row.takes_any_text());
        let required = self.required();
        let swallowed = required.is_none() && takes_all;
        let Some(value) = required.or_else(|| self.take().filter(|_| swallowed)) else {
            return no_value(name, &full_name, row);
        };
        Word::Option {
            problem: swallowed.then(|| swallows(&full_name, &name, &value)),
            full_name,
            name,
            value: Some(value),
        }
    }

    /// Returns an unknown option as it is: the builder reports it with the reason.
    fn unknown(&mut self, full_name: String, name: Spot, value: Option<Spot>) -> Word {
        self.skip_value(value.is_some());
        Word::Option {
            full_name,
            name,
            value,
            problem: None,
        }
    }

    /// Reads a one-letter switch at offset `at` of an argument; more may follow in the same
    /// argument.
    fn letter(&mut self, argument: usize, at: usize) -> Word {
        let whole = self.spot(argument);
        let text = whole.text();
        let letter = text[at..].chars().next().unwrap_or_default();
        let end = at + letter.len_utf8();
        let name = whole.part(at..end);
        let Some(switch) = switches::find_short(letter) else {
            let problem = Problem::new(
                "unknown-switch",
                0..1,
                format!("unknown switch `-{letter}`"),
            );
            return Word::Bad(name, problem.fix("`--help` lists all switches"));
        };
        let rest = (end < text.len()).then(|| {
            let equals = usize::from(text[end..].starts_with('='));
            whole.part(end + equals..text.len())
        });
        if switch.argument == Argument::None {
            self.letters = rest.map(|_| (argument, end));
            return Word::Switch {
                switch,
                name,
                value: None,
            };
        }
        self.switch(switch, name, rest)
    }

    /// Takes the next argument as a value, unless it is clearly an option.
    fn required(&mut self) -> Option<Spot> {
        let text = &self.line.text[self.line.arguments.get(self.next)?.clone()];
        if let Some(body) = text.strip_prefix("--") {
            let name = body.split('=').next().unwrap_or_default();
            if self.vocabulary.find_any(name).is_some()
                || known::find(name).is_some()
                || switches::find(name).is_some()
            {
                return None;
            }
        }
        self.take()
    }

    /// Skips the probable value of an option that is refused anyway.
    fn skip_value(&mut self, has_value: bool) {
        if let Some(range) = self.line.arguments.get(self.next)
            && !has_value
            && !self.line.text[range.clone()].starts_with('-')
        {
            self.next += 1;
        }
    }

    fn take(&mut self) -> Option<Spot> {
        (self.next < self.line.arguments.len()).then(|| {
            self.next += 1;
            self.spot(self.next - 1)
        })
    }

    fn spot(&self, argument: usize) -> Spot {
        Spot {
            line: Arc::clone(&self.line),
            range: self.line.arguments[argument].clone(),
            argument: u32::try_from(argument + 1).ok(),
        }
    }
}

enum Meaning {
    Switch(&'static Switch),
    Option(&'static str),
}

enum Unclear {
    Unknown,
    Ambiguous(Vec<&'static str>),
}

/// Resolves a name or an unambiguous prefix.
fn resolve(
    name: &str,
    engine: &EngineInfo,
    vocabulary: Vocabulary<'_>,
) -> Result<Meaning, Unclear> {
    if let Some(switch) = switches::find(name) {
        return Ok(Meaning::Switch(switch));
    }
    if let Some(known) = known::find(name) {
        let own = known.names().find(|own| *own == name);
        return Ok(Meaning::Option(own.unwrap_or(known.name)));
    }
    if let Some(row) = vocabulary.find(name, engine) {
        return Ok(Meaning::Option(row.name));
    }
    let switches = switches::SWITCHES
        .iter()
        .filter(|switch| switch.name.starts_with(name))
        .map(|switch| (switch.name, Meaning::Switch(switch)));
    let reachable =
        |known: &&known::Known| known.is_general() || known.engines().any(|own| own == engine.name);
    let options = known::all()
        .iter()
        .filter(reachable)
        .flat_map(known::Known::names)
        .filter(|option| option.starts_with(name))
        .map(|option| (option, Meaning::Option(option)));
    // The option names known to fio do not include those of an engine that only Fathom has.
    let own = engine.options.iter().map(|option| option.name);
    let own = own.filter(|option| option.starts_with(name) && known::find(option).is_none());
    let own = own.map(|option| (option, Meaning::Option(option)));
    let mut found: Vec<_> = switches.chain(options).chain(own).collect();
    match found.len() {
        0 => Err(Unclear::Unknown),
        1 => found
            .pop()
            .map(|(_, meaning)| meaning)
            .ok_or(Unclear::Unknown),
        _ if name.is_empty() => Err(Unclear::Unknown),
        _ => Err(Unclear::Ambiguous(
            found.into_iter().map(|(name, _)| name).collect(),
        )),
    }
}

fn ambiguous(name: &str, names: &[&'static str]) -> Problem {
    let nearest = suggest::closest(name, names.iter().copied());
    let list = names.iter().take(8).copied().collect::<Vec<_>>().join(", ");
    let more = if names.len() > 8 { "…" } else { "" };
    let problem = Problem::new(
        "ambiguous",
        0..name.len(),
        format!("`{name}` is ambiguous: {list}{more}"),
    );
    match nearest {
        Some(nearest) => problem.fix(format!("write the full name; did you mean `{nearest}`?")),
        None => problem.fix("write the full name"),
    }
}

/// Returns the problem of an option that becomes the text value of another.
fn swallows(option: &str, name: &Spot, value: &Spot) -> Problem {
    let text = value.text();
    let why = format!("`--{option}` has no value before `{text}`");
    Problem::new("no-value", 0..name.range.len(), why)
        .read_as(format!("`{option}={text}`"))
        .fix(format!("write `--{option}=…`"))
}

fn no_value(spot: Spot, name: &str, row: Option<Row>) -> Word {
    let problem = Problem::new(
        "no-value",
        0..spot.range.len(),
        format!("`--{name}` needs a value"),
    );
    let example = row.map(|row| format!("write it like `--{}`", row.example));
    let fix = example.unwrap_or_else(|| format!("write `--{name}=…`"));
    Word::Bad(spot, problem.fix(fix))
}
