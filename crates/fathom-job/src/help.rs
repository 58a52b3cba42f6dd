//! `--version`, `--help`, `--cmdhelp`, `--enghelp`.

use std::fmt::Write;

use fathom_core::EngineInfo;

use crate::problem::{Piece, Problem};
use crate::reference::choices;
use crate::refuse;
use crate::suggest;
use crate::switches::{Argument, SWITCHES};
use crate::table::{Row, ValueKind, known};
use crate::vocabulary::Vocabulary;
use crate::{Dialect, Invocation};

/// Returns an example of each option and the names of fio's other options, as input for fuzzing.
pub fn option_examples(
    engines: &[&'static EngineInfo],
) -> impl Iterator<Item = &'static str> + use<> {
    let own = Vocabulary::new(engines).rows().map(|row| row.example);
    own.chain(known::all().iter().map(|known| known.name))
}

/// Returns the text of `--version`.
pub(crate) fn version(dialect: Dialect) -> String {
    let version = env!("CARGO_PKG_VERSION");
    match dialect {
        Dialect::Fio => format!("fio-3.42-fathom-{version}\n"),
        Dialect::Fathom => format!("fathom {version}\n"),
    }
}

/// Returns the text of `--help`.
pub(crate) fn usage() -> String {
    let mut text = String::from("fathom [switches] [job options] <job file(s)>\n");
    for switch in SWITCHES {
        let argument = match switch.argument {
            Argument::None => String::new(),
            Argument::Optional(what) => format!("[={what}]"),
            Argument::Required(what) => format!("={what}"),
        };
        let later = match switch.action {
            crate::switches::Action::Refused(_) => " (fio only)",
            _ => "",
        };
        let name = format!("--{}{argument}", switch.name);
        line(&mut text, &format!("  {name:<28}{}{later}", switch.help));
    }
    text.push_str(
        "\nEvery job option is also accepted as `--option=value`; `--cmdhelp` lists them.\n",
    );
    text
}

/// Returns the text of `--cmdhelp`: one option, or a list of all.
pub(crate) fn option(name: Option<&str>, vocabulary: Vocabulary<'_>) -> Invocation {
    let name = match name.map(str::trim) {
        None | Some("" | "all") => return Invocation::Print(all_options(vocabulary)),
        Some(name) => name,
    };
    if let Some(row) = vocabulary.find_any(name) {
        return Invocation::Print(describe(&row, vocabulary));
    }
    let names = vocabulary.rows().flat_map(|row| row.names());
    if known::find(name).is_some() {
        let problem = refuse::option(name, None, vocabulary.default_engine(), vocabulary);
        return Invocation::Print(format!("{}\n", problem.why));
    }
    let closest = suggest::closest(name, names).and_then(|near| vocabulary.find_any(near));
    let shown = closest.map_or("", |_| " - showing closest match");
    Invocation::NoSuchOption {
        complaint: format!("No such command: {name}{shown}\n"),
        closest: closest.map_or_else(String::new, |row| describe(&row, vocabulary)),
    }
}

fn all_options(vocabulary: Vocabulary<'_>) -> String {
    let mut text = String::new();
    for row in vocabulary.rows() {
        line(&mut text, &format!("{:<27}: {}", row.name, row.help));
    }
    text
}

fn describe(row: &Row, vocabulary: Vocabulary<'_>) -> String {
    let mut text = String::new();
    field(&mut text, row.name, row.help);
    for alias in row.aliases {
        field(&mut text, "alias", alias);
    }
    field(&mut text, "type", row.kind.words());
    field(
        &mut text,
        "default",
        if row.default.is_empty() {
            "no default"
        } else {
            row.default
        },
    );
    if let Some(range) = range(&row.kind) {
        field(&mut text, "range", &range);
    }
    for (index, (word, help)) in choices(row, vocabulary).into_iter().enumerate() {
        let label = if index == 0 { "valid values" } else { "" };
        field(&mut text, label, format!("{word:<15}{help}").trim_end());
    }
    let engines = vocabulary.engines_of(row);
    if !engines.is_empty() {
        field(&mut text, "engines", &engines.join(", "));
    }
    for unlike in [row.stricter, row.different] {
        if !unlike.is_empty() {
            field(&mut text, "unlike fio", unlike);
        }
    }
    field(&mut text, "example", row.example);
    text
}

/// Returns the range of an option's value, if it has one.
pub(crate) fn range(kind: &ValueKind) -> Option<String> {
    match *kind {
        ValueKind::Int { min, max, .. } | ValueKind::PerDirection { min, max, .. } => {
            Some(match (min, max) {
                (min, u64::MAX) => format!("min={min}"),
                (min, max) => format!("min={min}, max={max}"),
            })
        }
        ValueKind::Signed { min, max, .. } => Some(format!("min={min}, max={max}")),
        ValueKind::Size { min, .. } if min > 0 => Some(format!("min={min}")),
        ValueKind::Bool(_) => Some("min=0, max=1".to_owned()),
        _ => None,
    }
}

/// Returns the text of `--enghelp`: all engines, the options of one, or one option.
pub(crate) fn engine(
    name: Option<&str>,
    vocabulary: Vocabulary<'_>,
) -> Result<Invocation, Problem> {
    let Some(wanted) = name.filter(|name| !name.trim().is_empty()) else {
        return Ok(Invocation::Print(all_engines(vocabulary)));
    };
    let pieces = Piece::new(wanted).split(&[',']);
    let name = pieces[0].trim();
    let Some(engine) = vocabulary.engine(name.text) else {
        let why = format!("unknown engine `{}`", name.text);
        let problem = Problem::new("unknown-engine", name.range(), why);
        let near = suggest::closest(name.text, vocabulary.engines().map(|info| info.name));
        let near = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
        return Err(problem.fix(format!("{near}`--enghelp` lists all engines")));
    };
    // Two engines may declare an option of the same name with different meanings.
    let of_engine = |row: Row| vocabulary.find(row.name, engine);
    let own = || {
        let rows = vocabulary.rows().filter(|row| !row.is_general());
        rows.filter(|row| row.belongs_to(engine))
            .filter_map(of_engine)
    };
    if let Some(option) = pieces.get(1) {
        let found = own().find(|row| row.names().any(|name| name == option.text.trim()));
        let described = found.map(|row| Invocation::Print(describe(&row, vocabulary)));
        return described.ok_or_else(|| {
            let why = format!("{} has no option `{}`", engine.name, option.text);
            Problem::new("unknown-option", option.range(), why)
        });
    }
    if own().next().is_none() {
        let text = format!("IO engine {} has no options\n", engine.name);
        return Ok(Invocation::NoEngineOptions(text));
    }
    let mut text = String::new();
    for row in own() {
        line(&mut text, &format!("{:<24}: {}", row.name, row.help));
    }
    Ok(Invocation::Print(text))
}

fn all_engines(vocabulary: Vocabulary<'_>) -> String {
    let mut text = String::from("Available IO engines:\n");
    for engine in vocabulary.engines() {
        line(&mut text, &format!("\t{}", engine.name));
    }
    text
}

fn field(text: &mut String, name: &str, value: &str) {
    line(text, &format!("{name:>20}: {value}"));
}

fn line(text: &mut String, content: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{content}");
}
