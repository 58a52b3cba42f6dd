//! docs/COMPATIBILITY.md, drawn from the option table.

use std::fmt::Write;

use crate::engines::{ENGINES, LATER, NEEDS};
use crate::help::range;
use crate::refuse;
use crate::switches::{Action, NO_LETTER, SWITCHES};
use crate::table::{self, Kind, Row, known};

/// The text of docs/COMPATIBILITY.md.
#[must_use]
pub fn compatibility_markdown() -> String {
    let mut text = String::from(INTRODUCTION);
    for (title, rows) in table::groups() {
        text.push_str(&format!("\n### {title}\n\n"));
        text.push_str("| option | default | values | compared with fio |\n|---|---|---|---|\n");
        for row in *rows {
            push_row(&mut text, row);
        }
    }
    push_refused(&mut text);
    push_engines(&mut text);
    push_switches(&mut text);
    text
}

fn push_row(text: &mut String, row: &Row) {
    let names = row
        .names()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>();
    let mut values = match row.kind {
        Kind::Choice(choices) => {
            let words: Vec<_> = choices.iter().map(|choice| choice.word).collect();
            words.join(", ")
        }
        kind => kind.words().to_owned(),
    };
    if let Some(range) = range(&row.kind) {
        let _ = write!(values, "; {range}");
    }
    if !row.engines.is_empty() {
        let _ = write!(values, " (only {})", row.engines.join(", "));
    }
    let mut verdict = match (row.stricter, row.different) {
        ("", "") => "same".to_owned(),
        (note, "") => format!("stricter: {note}"),
        (_, note) => format!("different: {note}"),
    };
    if !row.later.is_empty() {
        let _ = write!(verdict, "; refused for now: {}", row.later.join(", "));
    }
    let cells = [names.join(", "), row.default.to_owned(), values, verdict];
    let cells = cells.map(|cell| cell.replace('|', "\\|"));
    text.push_str(&format!("| {} |\n", cells.join(" | ")));
}

fn push_refused(text: &mut String) {
    text.push_str(
        "\n## Refused\n\nfio has these options; each is refused by its name, never skipped.\n",
    );
    for (tier, title) in TIERS {
        let options = known::all().iter().filter(|known| known.tier == *tier);
        let missing = options.filter(|known| table::find(known.name).is_none());
        let rows: Vec<_> = missing.map(refused_row).collect();
        if !rows.is_empty() {
            let head = "| option | compared with fio |\n|---|---|\n";
            text.push_str(&format!("\n### {title}\n\n{head}{}", rows.concat()));
        }
    }
}

fn refused_row(known: &known::Known) -> String {
    let names: Vec<_> = known.names().map(|name| format!("`{name}`")).collect();
    format!(
        "| {} | refused: {} |\n",
        names.join(", "),
        refuse::reason(known)
    )
}

fn push_engines(text: &mut String) {
    text.push_str("\n## Engines\n\n| engine | compared with fio |\n|---|---|\n");
    for engine in ENGINES {
        text.push_str(&format!("| `{}` | same: {} |\n", engine.name, engine.help));
    }
    for name in LATER {
        text.push_str(&format!("| `{name}` | refused for now |\n"));
    }
    for (name, what) in NEEDS {
        text.push_str(&format!("| `{name}` | refused: needs {what} |\n"));
    }
}

fn push_switches(text: &mut String) {
    text.push_str(
        "\n## Switches of the command line\n\n\
         | switch | what it does | compared with fio |\n|---|---|---|\n",
    );
    for switch in SWITCHES {
        let verdict = match switch.action {
            Action::NotYet => "refused for now",
            Action::Refused(_) => "refused: what it is for is not in Fathom",
            Action::ChecksumTest => "stricter: crc32c and md5 only",
            Action::IdleProfile => {
                "same; counted by the kernel, not by threads that fill the idle time"
            }
            Action::Ignored => "same: accepted and ignored",
            Action::Machine | Action::Seeks | Action::SaveDistribution | Action::NoExec => {
                "Fathom's own"
            }
            Action::Debug => {
                "stricter: a name that is none; `parse`, `file`, `random`, `process` \
                 and `io` tell what tools read, and less than fio; the others tell nothing"
            }
            Action::TriggerTimeout => "same, but that no state of a verification is saved",
            Action::ShowCommand => {
                "different: of a job with errors nothing is printed; fio prints what it could read"
            }
            _ => "same",
        };
        let help = switch.help.replace('|', "\\|");
        let short = match switch.short {
            NO_LETTER => String::new(),
            letter => format!(", `-{letter}`"),
        };
        text.push_str(&format!(
            "| `--{}`{short} | {help} | {verdict} |\n",
            switch.name
        ));
    }
}

const TIERS: &[(&str, &str)] = &[
    ("A", "In most job files"),
    ("B", "In some"),
    ("C", "For specialists"),
    ("D", "For special hardware or clusters"),
];

const INTRODUCTION: &str = "\
# How Fathom compares with fio, option by option

This page is drawn from the option table in the source; `--cmdhelp=OPTION` prints a row of it.
*Same* means that every value fio accepts means the same. *Stricter* means that Fathom has an
objection to what fio takes silently. *Different* means that the outcome is not fio's.
*Refused* means that fio has it and Fathom does not, and why.

Under the name `fio` what fio accepts is accepted, with fio's reading, and a note says what was read
and how to write it: in the text report where fio puts its notes, in JSON under `\"fathom\"`, and
nothing on standard error. What is *stricter* below is such a note. Under the name `fathom` it is an
error, and so it is for `fio` with `FATHOM_STRICT=1` in the environment; `fathom lint` reads it as
fio does, and warns.

What holds everywhere:

* Numbers are read as far as they go, as by fio: of `4q` 4, of `1.5g` 1, of `0x1k` 1, of `100*1` and
  `30+30` the first number in the option's own unit, of `4kk` 4k, of `200k,500k` one of the two (the
  first, or for sizes and mixes the last). Numbers beyond 63 bits are errors, as in fio.
* A unit of time that fio does not know (`1min`, `30sec`) means microseconds.
* Flags take any number (`time_based=10`, `1[x]`), booleans numbers that begin with 0 or 1; `true`
  and `yes` are errors, as in fio.
* Behind a word, what follows a comma or a colon does not count where it has no meaning.
* `--parse-only` and `--showcmd` look at values and not at jobs as a whole (sizes that do not fit,
  contradictory rates, processors that are not there), and `--warnings-fatal` stops at what fio
  warns of. Under the name `fathom` all of it counts.
* Some of what fio accepts is refused under both names, as it could cost data or the machine:
  `lockmem` beyond what is free (fio leaves it to the kernel to kill processes), block sizes and
  file sizes that are percentages or negative (fio makes giant numbers of them), `zoneskip` in
  percent (as giant), more than 1048576 files of one job, and `filename=-`.
* With `kb_base=1024`, the default, `4k` is 4096 and `4kib` is 4000, as in fio; a note says so once.
* Arithmetic in parentheses (`(4*1k)`, with `+ - * / % ^`) works everywhere; in fio only in some
  builds.
* Blanks around a value are dropped; fio keeps them and then fails to find the engine ` null`.
* All errors of a job file are reported at once, with line and column, and nothing is run.
* A number that is itself an option (`--size --rw=read`) is an error, as in fio; a text may be
  (`--write_bw_log --rw=write`). Of two options glued together (`--direct=1--ioengine=libaio`) the
  first is read.

What differs in counts, and belongs to no option:

* An op that failed is not among `total_ios`; fio counts what was issued.
* An op at the very end of a ramp, or of the pass that a ramp ends in, may be counted here and not
  in fio, or the other way round.
* Where only a later job of a group has `group_reporting`, fio adds an empty entry of the group
  4294967295 to its reports; here there is none.
* The same message of several clones is told once.

## Options
";

#[cfg(test)]
mod tests {
    use super::*;

    /// The full list is that of `known.tsv`, after fio's own table.
    #[test]
    fn every_option_of_fio_has_a_row_with_a_verdict() {
        let page = compatibility_markdown();
        let rows: Vec<Vec<&str>> = page
            .lines()
            .filter(|line| line.starts_with("| `"))
            .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
            .collect();
        for known in known::all() {
            for name in known.names() {
                let names = |row: &&Vec<&str>| row[0].split(", ").any(|n| n == format!("`{name}`"));
                let Some(row) = rows.iter().find(names) else {
                    panic!("`{name}` is nowhere");
                };
                let verdict = row.last().copied().unwrap_or_default();
                let words = ["same", "stricter: ", "different: ", "refused: "];
                assert!(
                    words.iter().any(|word| verdict.starts_with(word)),
                    "`{name}`: {verdict}"
                );
            }
        }
    }

    #[test]
    fn every_engine_of_fios_options_is_there_or_refused_with_its_reason() {
        for name in known::all().iter().flat_map(known::Known::engines) {
            let there = crate::engines::find(name).is_some();
            let profile = name.starts_with("profile:");
            let refused = LATER.contains(&name) || crate::engines::needs(name).is_some();
            assert!(there || refused || profile || name.contains(' '), "{name}");
        }
    }

    #[test]
    fn the_page_is_drawn_from_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/COMPATIBILITY.md");
        if std::env::var_os("FATHOM_WRITE_DOCS").is_some() {
            std::fs::write(path, compatibility_markdown()).unwrap();
        }
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            page == compatibility_markdown(),
            "docs/COMPATIBILITY.md is old: run this test with FATHOM_WRITE_DOCS=1"
        );
    }
}
