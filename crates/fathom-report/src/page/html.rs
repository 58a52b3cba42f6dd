//! Elements of a page; every text is escaped here.
//!
//! No template language: nothing on a page is long enough to be read as HTML in a file of its own,
//! templates would not make control characters visible, and they have a filter for text that is
//! to stay unescaped. Here markup comes from this file, the drawing code and nowhere else.

use super::shaded::Shaded;
use super::{script, style};
use crate::markup::{attribute, escaped};

/// Page so far.
#[derive(Clone, Debug)]
pub(super) struct Html(String);

impl Html {
    pub(super) const fn new() -> Self {
        Self(String::new())
    }

    /// Adds a heading of a level, 1 to 6.
    pub(super) fn heading(&mut self, level: u32, text: &str) {
        let text = escaped(text);
        self.0 += &format!("<h{level}>{text}</h{level}>\n");
    }

    pub(super) fn paragraph(&mut self, text: &str) {
        self.0 += &format!("<p>{}</p>\n", escaped(text));
    }

    /// Adds a list of sentences with a class of the style sheet.
    pub(super) fn list(&mut self, class: &str, items: &[String]) {
        self.0 += &format!("<ul class=\"{}\">\n", attribute(class));
        for item in items {
            self.0 += &format!("<li>{}</li>\n", escaped(item));
        }
        self.0 += "</ul>\n";
    }

    /// Adds a table. It scrolls within its own box on narrow screens, by keyboard, too.
    pub(super) fn table(&mut self, names: (&str, &str), heads: &[&str], rows: &[Vec<String>]) {
        self.begin_table(names, heads);
        for row in rows {
            self.0 += "<tr>";
            for (at, cell) in row.iter().enumerate() {
                let cell = escaped(cell);
                self.0 += &match at {
                    0 => format!("<th scope=\"row\">{cell}</th>"),
                    _ => format!("<td>{cell}</td>"),
                };
            }
            self.0 += "</tr>\n";
        }
        self.0 += END_OF_TABLE;
    }

    /// Adds a table with a shade for each cell.
    pub(super) fn shaded_table(
        &mut self,
        names: (&str, &str),
        heads: &[&str],
        rows: &[(String, Vec<Shaded>)],
    ) {
        self.begin_table(names, heads);
        for (name, cells) in rows {
            self.0 += &format!("<tr><th scope=\"row\">{}</th>", escaped(name));
            for cell in cells {
                let text = escaped(&cell.text);
                self.0 += &match cell.level() {
                    0 => format!("<td>{text}</td>"),
                    level => format!("<td class=\"s{level}\">{text}</td>"),
                };
            }
            self.0 += "</tr>\n";
        }
        self.0 += END_OF_TABLE;
    }

    fn begin_table(&mut self, (caption, label): (&str, &str), heads: &[&str]) {
        self.0 += &format!(
            "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table>\n\
             <caption>{}</caption>\n<thead><tr>",
            attribute(label),
            escaped(caption)
        );
        for head in heads {
            self.0 += &format!("<th scope=\"col\">{}</th>", escaped(head));
        }
        self.0 += "</tr></thead>\n<tbody>\n";
    }

    /// Adds a drawn figure with the sentences below it. It scrolls within its own box, as its
    /// texts must stay readable.
    pub(super) fn figure(&mut self, (name, label): (&str, &str), svg: &str, caption: &str) {
        self.0 += &format!(
            "<figure id=\"{}\">\n<div class=\"wide\" tabindex=\"0\" role=\"region\" \
             aria-label=\"{}\">\n{svg}</div>\n<figcaption>{}</figcaption>\n</figure>\n",
            attribute(name),
            attribute(label),
            escaped(caption)
        );
    }

    /// Begins a part that the reader unfolds; on paper it is there in whole.
    pub(super) fn fold(&mut self, title: &str) {
        self.0 += &format!("<details><summary>{}</summary>\n", escaped(title));
    }

    pub(super) fn end_fold(&mut self) {
        self.0 += "</details>\n";
    }

    /// Adds text as it is.
    pub(super) fn text(&mut self, label: &str, text: &str) {
        self.0 += &format!(
            "<pre tabindex=\"0\" role=\"region\" aria-label=\"{}\">{}</pre>\n",
            attribute(label),
            escaped(text)
        );
    }

    /// Returns the document. Its policy lets a browser load nothing, and run the page's own script
    /// alone: even a name that got around the escaping could not act.
    pub(super) fn document(&self, title: &str) -> String {
        let Self(body) = self;
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src \
             '{style_hash}'; script-src '{script_hash}'; img-src data:; base-uri 'none'; \
             form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n{body}\
             </main>\n<script>{script}</script>\n</body>\n</html>\n",
            style_hash = style::HASH,
            script_hash = script::HASH,
            script = script::SCRIPT,
            title = escaped(title),
            style = style::sheet(),
        )
    }
}

const END_OF_TABLE: &str = "</tbody></table></div>\n";
