//! Pages of HTML: one file that needs no network, no server and no second file.
//!
//! A [`Page`] is written from top to bottom: headings, sentences, tables, and [`Figure`]s, which
//! can also be had one by one for papers ([`Page::drawings`]). It decides what a browser needs:
//! escaping, the policy against foreign content, style, labels for screen readers, and the numbers
//! of each figure as a table, for those who cannot see it and for browsers without script.

mod cells;
mod figure;
mod html;
mod numbers;
mod script;
mod shaded;
mod style;

use std::collections::BTreeSet;

pub use figure::{Drawing, Figure, Picture};
use html::Html;
pub use shaded::Shaded;

/// Page under construction.
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    html: Html,
    /// Level of the last heading.
    level: u32,
    figures: Vec<Figure>,
    /// Names that are taken: of figures, and labels of regions.
    names: BTreeSet<String>,
}

impl Page {
    /// Creates a page whose first heading is its title.
    #[must_use]
    pub fn new(title: &str) -> Self {
        let mut html = Html::new();
        html.heading(1, title);
        Self {
            title: title.to_owned(),
            html,
            level: 1,
            figures: Vec::new(),
            names: BTreeSet::new(),
        }
    }

    /// Adds a heading of a level from 2 to 6; it is taken as one below the last heading if it
    /// would skip a level, which readers of screens could not follow.
    pub fn heading(&mut self, level: u32, text: &str) {
        self.level = level.clamp(2, self.level.min(5) + 1);
        self.html.heading(self.level, text);
    }

    /// Adds a paragraph.
    pub fn paragraph(&mut self, text: &str) {
        self.html.paragraph(text);
    }

    /// Adds a list: `caveats` stand out, `facts` do not.
    pub fn list(&mut self, class: &str, items: &[String]) {
        self.html.list(class, items);
    }

    /// Adds a table. The first column names the rows.
    pub fn table(&mut self, caption: &str, heads: &[&str], rows: &[Vec<String>]) {
        let label = self.unique(caption, " ");
        self.html.table((caption, &label), heads, rows);
    }

    /// Adds a table whose cells are shaded. The first column names the rows.
    pub fn shaded_table(&mut self, caption: &str, heads: &[&str], rows: &[(String, Vec<Shaded>)]) {
        let label = self.unique(caption, " ");
        self.html.shaded_table((caption, &label), heads, rows);
    }

    /// Adds a table that the reader unfolds.
    pub fn folded_table(&mut self, caption: &str, heads: &[&str], rows: &[Vec<String>]) {
        let label = self.unique(caption, " ");
        self.html.fold(caption);
        self.html.table((caption, &label), heads, rows);
        self.html.end_fold();
    }

    /// Adds text as it is, which the reader unfolds.
    pub fn details(&mut self, title: &str, text: &str) {
        let label = self.unique(title, " ");
        self.html.fold(title);
        self.html.text(&label, text);
        self.html.end_fold();
    }

    /// Adds a figure, and its numbers unless it is [without](Figure::without_numbers) them.
    pub fn figure(&mut self, mut figure: Figure) {
        figure.name = self.unique(&figure::stem(&figure.name), "-");
        let label = self.unique(&format!("Figure: {}", figure.picture.title()), " ");
        let svg = figure.picture.element();
        self.html
            .figure((&figure.name, &label), &svg, &figure.caption);
        if figure.has_numbers {
            for table in numbers::tables(&figure.picture) {
                let heads: Vec<&str> = table.heads.iter().map(String::as_str).collect();
                self.folded_table(&table.caption, &heads, &table.rows);
            }
        }
        self.figures.push(figure);
    }

    /// Returns the document.
    #[must_use]
    pub fn html(&self) -> String {
        self.html.document(&self.title)
    }

    /// Returns each figure as a document of its own, black on white.
    #[must_use]
    pub fn drawings(&self) -> Vec<Drawing> {
        self.figures.iter().map(Figure::drawing).collect()
    }

    /// Returns a name that nothing on the page has, and takes it.
    fn unique(&mut self, name: &str, separator: &str) -> String {
        let numbered = (2_u64..).map(|number| format!("{name}{separator}{number}"));
        let mut all = std::iter::once(name.to_owned()).chain(numbered);
        let free = all.find(|name| !self.names.contains(name));
        let free = free.unwrap_or_else(|| name.to_owned());
        self.names.insert(free.clone());
        free
    }
}

#[cfg(test)]
mod tests;
