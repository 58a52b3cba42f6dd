//! Verdicts, and the table in which they are shown.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::machine;
use super::pairs::Pair;
use super::programs::Programs;
use super::rows::{Figure, Measure, Row};
use super::statistics::Spread;
use crate::process;

/// A row and what its pairs gave.
#[derive(Debug)]
pub(crate) struct Outcome<'a> {
    pub(crate) row: &'a Row,
    fio: Spread,
    fathom: Spread,
    ratio: Spread,
}

/// Whether a figure was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The median reached it.
    Reached,
    /// The median did not, but the 95 % interval holds the figure.
    WithinNoise,
    /// Nor does the interval.
    FellShort,
}

impl Verdict {
    /// Whether the benchmark fails over it.
    pub(crate) fn is_failure(self) -> bool {
        self == Self::FellShort
    }

    fn word(self) -> &'static str {
        match self {
            Self::Reached => "reached",
            Self::WithinNoise => "within noise",
            Self::FellShort => "falls short",
        }
    }
}

impl<'a> Outcome<'a> {
    /// Of at least one pair.
    pub(crate) fn new(row: &'a Row, pairs: Vec<Pair>) -> Self {
        let spread =
            |value: fn(&Pair) -> f64| Spread::of(&pairs.iter().map(value).collect::<Vec<_>>());
        Self {
            row,
            fio: spread(|pair| pair.fio),
            fathom: spread(|pair| pair.fathom),
            ratio: spread(|pair| pair.fathom / pair.fio),
        }
    }

    /// Whether the row's figure was reached.
    pub(crate) fn verdict(&self) -> Verdict {
        let (reached, in_doubt) = match self.row.figure {
            Figure::Ratio(least) => (self.ratio.median >= least, self.ratio.high >= least),
            Figure::Mebibytes(most) | Figure::Milliseconds(most) => {
                (self.fathom.median <= most, self.fathom.low <= most)
            }
        };
        match (reached, in_doubt) {
            (true, _) => Verdict::Reached,
            (false, true) => Verdict::WithinNoise,
            (false, false) => Verdict::FellShort,
        }
    }

    /// One line for the terminal.
    pub(crate) fn line(&self) -> String {
        format!(
            "{}: {} [{}; 95 % {}], figure {}: {}",
            self.row.name,
            self.result(),
            self.range(),
            self.interval(),
            self.row.figure,
            self.verdict().word(),
        )
    }

    /// The spread that the figure speaks of.
    fn judged(&self) -> &Spread {
        match self.row.figure {
            Figure::Ratio(_) => &self.ratio,
            Figure::Mebibytes(_) | Figure::Milliseconds(_) => &self.fathom,
        }
    }

    fn result(&self) -> String {
        let median = self.judged().median;
        match self.row.figure {
            Figure::Ratio(_) => format!("{median:.2} ×"),
            Figure::Mebibytes(_) => format!("{median:.1} MiB"),
            Figure::Milliseconds(_) => format!("{median:.1} ms"),
        }
    }

    fn range(&self) -> String {
        let spread = self.judged();
        format!("{:.2}–{:.2}", spread.smallest, spread.largest)
    }

    fn interval(&self) -> String {
        let spread = self.judged();
        format!("{:.2}–{:.2}", spread.low, spread.high)
    }

    fn medians(&self) -> [String; 2] {
        [&self.fio, &self.fathom].map(|spread| match self.row.measure {
            Measure::Iops => format!("{:.0} k IOPS", spread.median / 1000.0),
            Measure::PeakMemory => format!("{:.1} MiB", spread.median),
            Measure::WholeRun => format!("{:.1} ms", spread.median),
        })
    }
}

/// The table for the terminal.
pub(crate) fn text(outcomes: &[Outcome<'_>]) -> String {
    let mut text = String::new();
    for outcome in outcomes {
        text.push_str(&outcome.line());
        text.push('\n');
    }
    text
}

/// The table for `docs/BENCHMARKS.md`.
fn markdown(outcomes: &[Outcome<'_>]) -> String {
    let mut text = String::from(
        "| what | fio | fathom | result | smallest–largest | 95 % of the median | figure | |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for outcome in outcomes {
        let [fio, fathom] = outcome.medians();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {} | {fio} | {fathom} | {} | {} | {} | {} | {} |",
            outcome.row.what,
            outcome.result(),
            outcome.range(),
            outcome.interval(),
            outcome.row.figure,
            outcome.verdict().word(),
        );
    }
    text
}

/// Puts table, machine and command between the marks of `docs/BENCHMARKS.md`.
pub(crate) fn write(
    outcomes: &[Outcome<'_>],
    programs: &Programs,
    command: &str,
    folder: &Path,
) -> Result<()> {
    let path = process::root()?.join("docs/BENCHMARKS.md");
    let page =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let pinned = match &programs.pin {
        Some((_, core)) => format!("both pinned to core {core}"),
        None => "not pinned".to_owned(),
    };
    let body = format!(
        "Command: `{command}`\n\n\
         - machine: {}\n- test file: {}\n- fio: {}; fathom: {}, commit {}\n- {pinned}\n\n{}",
        machine::describe(),
        machine::storage(folder),
        programs.fio_version()?,
        env!("CARGO_PKG_VERSION"),
        machine::commit().unwrap_or_else(|| "unknown".into()),
        markdown(outcomes),
    );
    let page = between_marks(&page, &body)
        .with_context(|| format!("{} has lost its marks", path.display()))?;
    fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
    println!("bench: wrote {}", path.display());
    Ok(())
}

/// The page with what stands between its marks replaced; none if a mark is missing.
fn between_marks(page: &str, body: &str) -> Option<String> {
    let begin = page.find(BEGIN)? + BEGIN.len();
    let end = begin + page[begin..].find(END)?;
    Some(format!("{}\n\n{body}\n{}", &page[..begin], &page[end..]))
}

const BEGIN: &str = "<!-- bench: begin -->";
const END: &str = "<!-- bench: end -->";

#[cfg(test)]
mod tests {
    use super::super::rows::{Before, ROWS};
    use super::*;

    #[track_caller]
    fn check(figure: Figure, pairs: &[(f64, f64)], want: Verdict) {
        let row = Row { figure, ..SAMPLE };
        let pairs = pairs
            .iter()
            .map(|&(fio, fathom)| Pair { fio, fathom })
            .collect();
        assert_eq!(Outcome::new(&row, pairs).verdict(), want);
    }

    const SAMPLE: Row = Row {
        name: "a",
        what: "b",
        job: &[],
        before: Before::Nothing,
        measure: Measure::Iops,
        figure: Figure::Ratio(1.0),
    };

    #[test]
    fn a_figure_is_reached_missed_or_in_doubt() {
        check(Figure::Ratio(4.0), &[(1.0, 4.5); 5], Verdict::Reached);
        check(Figure::Ratio(4.0), &[(1.0, 3.5); 5], Verdict::FellShort);
        let mixed = [(1.0, 0.9), (1.0, 0.98), (1.0, 0.99), (1.0, 1.1), (1.0, 1.2)];
        check(Figure::Ratio(1.0), &mixed, Verdict::WithinNoise);
        check(
            Figure::Mebibytes(16.0),
            &[(20.0, 16.0); 5],
            Verdict::Reached,
        );
        check(
            Figure::Milliseconds(30.0),
            &[(20.0, 31.0); 5],
            Verdict::FellShort,
        );
    }

    #[test]
    fn the_page_keeps_what_stands_around_its_marks() {
        let page = format!("a\n{BEGIN}\nold\n{END}\nz\n");
        let want = format!("a\n{BEGIN}\n\nnew\n{END}\nz\n");
        assert_eq!(between_marks(&page, "new"), Some(want));
        assert_eq!(between_marks("no marks", "new"), None);
    }

    #[test]
    fn every_row_has_a_line_of_as_many_columns() {
        let outcomes: Vec<_> = ROWS
            .iter()
            .map(|row| {
                Outcome::new(
                    row,
                    vec![Pair {
                        fio: 1.0,
                        fathom: 2.0,
                    }],
                )
            })
            .collect();
        let table = markdown(&outcomes);
        assert_eq!(table.lines().count(), ROWS.len() + 2);
        assert!(
            table.lines().all(|line| line.matches('|').count() == 9),
            "{table}"
        );
    }
}
