//! Output formats of `fathom table` and `fathom micro`.

use clap::Args;
use fathom_lab::Table;

use crate::text_width::width;

/// Options that select the format.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct TableFormat {
    /// Print the rows as JSON
    #[arg(long, conflicts_with_all = ["csv", "markdown"])]
    json: bool,
    /// Print the rows as CSV, with the keys of JSON
    #[arg(long, conflicts_with = "markdown")]
    csv: bool,
    /// Print the table as Markdown
    #[arg(long)]
    markdown: bool,
}

impl TableFormat {
    /// Returns the option that was given, if one was.
    pub(crate) fn given(self) -> Option<&'static str> {
        first_given([
            ("--json", self.json),
            ("--csv", self.csv),
            ("--markdown", self.markdown),
        ])
    }

    /// Returns whether the format has the notes of a table.
    pub(crate) const fn has_notes(self) -> bool {
        !self.csv
    }

    /// Formats a table; text fits the terminal.
    pub(crate) fn render(self, table: &Table) -> String {
        if self.json {
            table.json()
        } else if self.csv {
            table.csv()
        } else if self.markdown {
            table.markdown()
        } else {
            table.text(width())
        }
    }
}

/// Returns the first of these options that was given, if one was.
pub(crate) fn first_given(
    options: impl IntoIterator<Item = (&'static str, bool)>,
) -> Option<&'static str> {
    let mut options = options.into_iter();
    options.find_map(|(option, is_given)| is_given.then_some(option))
}
