//! Text of a table: groups of columns in as many blocks as the width of the terminal asks for.
//!
//! ```text
//!        plain, MiB/s                  fair, MiB/s
//!        ---------------------------   ---------------------------
//! jobs   modelled  published  error, %   …
//! ```
//!
//! Each block begins with the key columns; after the first one, a row is in the blocks for which it
//! has a value. A key that is the same in all rows is said once, above
//! the table. No line is longer than the width, unless keys and one column are.

use fathom_report::pad;

use super::column::Role;
use super::{Cell, Column, Table};

/// Formats the table in lines of at most `width` characters.
pub(super) fn text(table: &Table, width: usize) -> String {
    let layout = Layout::of(table);
    let mut text = String::new();
    let conditions = layout.conditions();
    let origin = &table.head.origin;
    let published = match origin.is_empty() {
        true => String::new(),
        false => format!("published: {origin}"),
    };
    let head = std::iter::once(table.head.about.as_str());
    let head = head.chain(table.notes.iter().map(String::as_str));
    for line in head.chain([published.as_str(), conditions.as_str()]) {
        text.push_str(&wrapped(line, width));
    }
    for block in layout.blocks(width) {
        text.push('\n');
        block.write(&mut text, table);
    }
    text
}

/// Breaks a line at spaces; further lines are indented.
fn wrapped(line: &str, width: usize) -> String {
    let mut text = String::new();
    let mut length = 0;
    for word in line.split(' ').filter(|word| !word.is_empty()) {
        let word_length = word.chars().count();
        if length > 0 && length + 1 + word_length > width {
            text.push_str("\n  ");
            length = 2;
        } else if length > 0 {
            text.push(' ');
            length += 1;
        }
        text.push_str(word);
        length += word_length;
    }
    if length > 0 {
        text.push('\n');
    }
    text
}

/// Columns that are shown, formatted.
struct Layout<'a> {
    table: &'a Table,
    section: Option<usize>,
    keys: Vec<ShownColumn<'a>>,
    /// Keys with one value in all rows.
    constant: Vec<usize>,
    groups: Vec<Group<'a>>,
}

/// Column with its cells as text.
#[derive(Clone)]
struct ShownColumn<'a> {
    column: &'a Column,
    cells: Vec<String>,
    has_value: Vec<bool>,
    heading: Vec<String>,
    width: usize,
    is_text: bool,
}

/// Columns under one heading.
#[derive(Clone)]
struct Group<'a> {
    columns: Vec<ShownColumn<'a>>,
    title: Vec<String>,
    width: usize,
}

impl<'a> Layout<'a> {
    fn of(table: &'a Table) -> Self {
        let rows = &table.rows;
        let of = |role: Role| {
            let columns = table.columns.iter().enumerate();
            columns.filter(move |(at, column)| {
                let has_value = rows.iter().any(|row| row[*at] != Cell::Missing);
                column.role() == role && has_value
            })
        };
        let is_constant =
            |at: usize| rows.len() > 1 && rows.iter().all(|row| row[at] == rows[0][at]);
        let shown = |at: usize| ShownColumn::of(table, at);
        let mut groups: Vec<(&str, Vec<ShownColumn<'a>>)> = Vec::new();
        for (at, column) in of(Role::Figure) {
            let group = column.group();
            match groups
                .iter_mut()
                .find(|(name, _)| !group.is_empty() && *name == group)
            {
                Some((_, columns)) => columns.push(shown(at)),
                None => groups.push((group, vec![shown(at)])),
            }
        }
        let keys: Vec<usize> = of(Role::Key).map(|(at, _)| at).collect();
        let (constant, keys): (Vec<_>, Vec<_>) = keys.into_iter().partition(|at| is_constant(*at));
        Self {
            table,
            section: of(Role::Section).next().map(|(at, _)| at),
            keys: keys.into_iter().map(shown).collect(),
            constant,
            groups: groups
                .into_iter()
                .map(|(title, columns)| Group::of(title, columns))
                .collect(),
        }
    }

    /// Returns a line with the keys that all rows share; nothing without any.
    fn conditions(&self) -> String {
        let one = |&at: &usize| {
            let column = &self.table.columns[at];
            format!(
                "{} {}",
                column.heading(),
                column.text(&self.table.rows[0][at])
            )
        };
        let all: Vec<String> = self.constant.iter().map(one).collect();
        if all.is_empty() {
            return String::new();
        }
        format!("all rows: {}", all.join(", "))
    }

    /// Distributes the groups over blocks.
    fn blocks(&self, width: usize) -> Vec<Block<'a>> {
        let keys: usize = self.keys.iter().map(|key| key.width + KEY_GAP.len()).sum();
        let room = width.saturating_sub(keys);
        let mut blocks: Vec<Block<'a>> = Vec::new();
        let mut used = 0;
        for group in self.groups.iter().flat_map(|group| group.split(room)) {
            let needed = group.width + GROUP_GAP.len();
            match blocks.last_mut() {
                Some(block) if used + needed <= room => block.groups.push(group),
                _ => {
                    used = 0;
                    blocks.push(Block {
                        is_first: blocks.is_empty(),
                        section: self.section,
                        keys: self.keys.clone(),
                        groups: vec![group],
                    });
                }
            }
            // The first group of a block follows the keys, and its gap is theirs.
            used += if used == 0 {
                needed - GROUP_GAP.len()
            } else {
                needed
            };
        }
        blocks
    }
}

impl<'a> ShownColumn<'a> {
    fn of(table: &'a Table, at: usize) -> Self {
        let column = &table.columns[at];
        let cells: Vec<String> = table.rows.iter().map(|row| column.text(&row[at])).collect();
        let is_text = |row: &Vec<Cell>| matches!(row[at], Cell::Text(_) | Cell::Named { .. });
        let widest = cells.iter().map(|cell| cell.chars().count()).max();
        let heading = lines(column.heading(), widest.unwrap_or(0).max(HEADING_MIN));
        let longest = longest(&heading);
        Self {
            column,
            cells,
            has_value: table
                .rows
                .iter()
                .map(|row| row[at] != Cell::Missing)
                .collect(),
            heading,
            width: longest.max(widest.unwrap_or(0)),
            is_text: table.rows.iter().any(is_text),
        }
    }

    fn aligned(&self, text: &str) -> String {
        let width = self.width;
        if self.is_text {
            pad::left(text, width)
        } else {
            pad::right(text, width)
        }
    }
}

impl<'a> Group<'a> {
    fn of(title: &str, mut columns: Vec<ShownColumn<'a>>) -> Self {
        let width = |columns: &[ShownColumn<'_>]| {
            let widths: usize = columns.iter().map(|column| column.width).sum();
            widths + COLUMN_GAP.len() * (columns.len() - 1)
        };
        let own = width(&columns);
        let title = lines(title, own);
        // A word that is longer than the group widens its last column.
        if let Some(last) = columns.last_mut() {
            last.width += longest(&title).saturating_sub(own);
        }
        let width = width(&columns);
        Self {
            columns,
            title,
            width,
        }
    }

    /// Splits the group into parts that fit, if it does not.
    fn split(&self, room: usize) -> Vec<Self> {
        if self.width <= room || self.columns.len() == 1 {
            return vec![self.clone()];
        }
        let title = self.columns[0].column.group();
        let mut parts: Vec<Self> = Vec::new();
        for column in &self.columns {
            let mut columns = parts
                .last()
                .map_or_else(Vec::new, |part| part.columns.clone());
            columns.push(column.clone());
            let longer = Self::of(title, columns);
            match parts.last_mut() {
                Some(part) if longer.width <= room => *part = longer,
                _ => parts.push(Self::of(title, vec![column.clone()])),
            }
        }
        parts
    }
}

/// Block of columns, one below the other.
struct Block<'a> {
    is_first: bool,
    section: Option<usize>,
    keys: Vec<ShownColumn<'a>>,
    groups: Vec<Group<'a>>,
}

impl Block<'_> {
    fn write(&self, text: &mut String, table: &Table) {
        let titles = self
            .groups
            .iter()
            .map(|group| group.title.len())
            .max()
            .unwrap_or(0);
        for at in 0..titles {
            // Titles stand on their rules.
            self.line(text, &|_| String::new(), &|group| {
                let above = titles - group.title.len();
                let line = at.checked_sub(above).and_then(|at| group.title.get(at));
                line.cloned().unwrap_or_default()
            });
        }
        if titles > 0 {
            self.line(text, &|_| String::new(), &|group| {
                let dashes = if group.title.is_empty() {
                    0
                } else {
                    group.width
                };
                "-".repeat(dashes)
            });
        }
        let columns = || self.groups.iter().flat_map(|group| &group.columns);
        let heads = columns()
            .chain(&self.keys)
            .map(|column| column.heading.len());
        let heads = heads.max().unwrap_or(0);
        for at in 0..heads {
            // Headings stand on the rows.
            let line = |column: &ShownColumn<'_>| {
                let above = heads - column.heading.len();
                let line = at.checked_sub(above).and_then(|at| column.heading.get(at));
                column.aligned(line.map_or("", String::as_str))
            };
            self.cells(text, &line);
        }
        let mut section = None;
        let has_value = |row: &usize| columns().any(|column| column.has_value[*row]);
        for row in (0..table.rows.len()).filter(|row| self.is_first || has_value(row)) {
            let title = self.section.map(|at| table.rows[row][at].text());
            if let Some(title) = title.as_ref().filter(|_| title != section) {
                text.push_str(&format!("{title}:\n"));
            }
            section = title;
            self.cells(text, &|column| column.aligned(&column.cells[row]));
        }
    }

    /// Writes a line of cells.
    fn cells(&self, text: &mut String, cell: &dyn Fn(&ShownColumn<'_>) -> String) {
        self.line(text, cell, &|group| {
            let cells: Vec<String> = group.columns.iter().map(cell).collect();
            cells.join(COLUMN_GAP)
        });
    }

    fn line(
        &self,
        text: &mut String,
        key: &dyn Fn(&ShownColumn<'_>) -> String,
        group: &dyn Fn(&Group<'_>) -> String,
    ) {
        let keys = self.keys.iter();
        let keys = keys.map(|column| pad::left(&key(column), column.width) + KEY_GAP);
        let groups = self.groups.iter();
        let groups = groups.map(|one| pad::left(&group(one), one.width));
        let groups: Vec<String> = groups.collect();
        let line = keys.collect::<String>() + &groups.join(GROUP_GAP);
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

/// Breaks a heading at spaces into lines of at most `width` characters, where its words allow.
fn lines(heading: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in heading.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn longest(lines: &[String]) -> usize {
    lines
        .iter()
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(0)
}

const KEY_GAP: &str = "  ";
const COLUMN_GAP: &str = "  ";
const GROUP_GAP: &str = "   ";
/// Least width at which a heading of several words is broken.
const HEADING_MIN: usize = 8;
