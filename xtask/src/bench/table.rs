//! The table, for the terminal and for `docs/BENCHMARKS.md`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::Group;
use super::machine;
use super::outcome::{Outcome, Skipped};
use super::programs::Programs;
use crate::process;

/// Formats the table for the terminal.
pub(crate) fn text(outcomes: &[Outcome<'_>]) -> String {
    let mut text = String::new();
    for outcome in outcomes {
        text.push_str(&outcome.line());
        text.push('\n');
    }
    text
}

/// Formats the table for `docs/BENCHMARKS.md`; `fio` is fio's version, which stands beside each of
/// its figures.
fn markdown(outcomes: &[Outcome<'_>], fio: &str) -> String {
    let mut text = String::from(
        "| what | beside | fathom | result | smallest–largest | 95 % interval | figure | |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for outcome in outcomes {
        let what = format!("{}{}", outcome.row.what, outcome.check.measure.suffix());
        let check = outcome.check;
        // Writing to a string cannot fail.
        let _ = match &outcome.result {
            Ok(measured) => {
                let [other, fathom] = outcome.sides(measured);
                let other = match other.strip_prefix("fio ") {
                    Some(value) => format!("{fio} {value}"),
                    None => other,
                };
                let [result, range, interval] = measured.shown(check);
                let verdict = measured.verdict(check.figure).word();
                writeln!(
                    text,
                    "| {what} | {other} | {fathom} | {result} | {range} | {interval} | {check} \
                     | {verdict} |"
                )
            }
            Err(Skipped(why)) => {
                writeln!(text, "| {what} | | | | | | {check} | skipped: {why} |")
            }
        };
    }
    text
}

/// Writes table, machine and command between the group's marks of `docs/BENCHMARKS.md`.
pub(crate) fn write(
    outcomes: &[Outcome<'_>],
    programs: &Programs,
    group: Group,
    command: &str,
    folder: &Path,
) -> Result<()> {
    let path = process::root()?.join("docs/BENCHMARKS.md");
    let page =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let fathom = format!(
        "fathom: {}, commit {}",
        env!("CARGO_PKG_VERSION"),
        machine::commit().unwrap_or_else(|| "unknown".into())
    );
    let fio = programs.fio_version()?;
    let programs = match group {
        Group::Job | Group::Truth => format!(
            "- test file: {}\n- fio: {}; {fathom}\n- {}",
            machine::storage(folder),
            fio,
            match programs.core() {
                Some(core) => format!("pinned to core {core}"),
                None => "not pinned".to_owned(),
            }
        ),
        Group::Nvme => format!("- {fathom}\n- target and host pinned to a core each"),
    };
    let body = format!(
        "Command: `{command}`\n\n- machine: {}\n{programs}\n\n{}",
        machine::describe(),
        markdown(outcomes, &fio),
    );
    let [begin, end] = group.marks();
    let page = between_marks(&page, &body, begin, end)
        .with_context(|| format!("{} has no marks `{begin}` and `{end}`", path.display()))?;
    fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
    println!("bench: wrote {}", path.display());
    Ok(())
}

/// Returns the page with `body` between its marks; `None` if a mark is missing.
fn between_marks(page: &str, body: &str, begin: &str, end: &str) -> Option<String> {
    let from = page.find(begin)? + begin.len();
    let to = from + page[from..].find(end)?;
    Some(format!("{}\n\n{body}\n{}", &page[..from], &page[to..]))
}

#[cfg(test)]
mod tests {
    use super::super::outcome::Measured;
    use super::super::pairs::Pair;
    use super::super::{nvme, rows};
    use super::*;

    #[test]
    fn the_page_keeps_what_stands_around_its_marks() {
        let page = "a\n<b>\nold\n<e>\nz\n";
        let want = "a\n<b>\n\nnew\n<e>\nz\n".to_owned();
        assert_eq!(between_marks(page, "new", "<b>", "<e>"), Some(want));
        assert_eq!(between_marks("no marks", "new", "<b>", "<e>"), None);
    }

    #[test]
    fn every_check_has_a_line_of_as_many_columns() {
        let pair = Pair {
            other: 1.0,
            fathom: 2.0,
        };
        let checks = || {
            rows::ROWS
                .iter()
                .chain(nvme::ROWS)
                .flat_map(|row| row.checks.iter().map(move |check| (row, check)))
        };
        let mut outcomes: Vec<_> = checks()
            .map(|(row, check)| Outcome {
                row,
                check,
                result: Ok(Measured::new(&[pair])),
            })
            .collect();
        outcomes[0].result = Err(Skipped("no fio".into()));
        let table = markdown(&outcomes, "fio-3.42");
        assert!(table.contains("| fio-3.42 "), "{table}");
        assert_eq!(table.lines().count(), outcomes.len() + 2);
        assert!(
            table.lines().all(|line| line.matches('|').count() == 9),
            "{table}"
        );
        assert!(table.contains("| skipped: no fio |"));
    }
}
