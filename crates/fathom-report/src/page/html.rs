//! Elements of a page; every text is escaped here.

use super::style;
use crate::markup::escaped;

/// Page so far.
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
        self.0 += &format!("<ul class=\"{class}\">\n");
        for item in items {
            self.0 += &format!("<li>{}</li>\n", escaped(item));
        }
        self.0 += "</ul>\n";
    }

    /// Adds a table. It scrolls within its own box on narrow screens, by keyboard, too.
    pub(super) fn table(&mut self, caption: &str, heads: &[&str], rows: &[Vec<String>]) {
        let label = attribute(caption);
        self.0 += &format!(
            "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\"><table>\n\
             <caption>{}</caption>\n<thead><tr>",
            escaped(caption)
        );
        for head in heads {
            self.0 += &format!("<th scope=\"col\">{}</th>", escaped(head));
        }
        self.0 += "</tr></thead>\n<tbody>\n";
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
        self.0 += "</tbody></table></div>\n";
    }

    /// Adds a drawn figure with the sentences below it.
    pub(super) fn figure(&mut self, svg: &str, caption: &str) {
        let caption = escaped(caption);
        self.0 += &format!("<figure>\n{svg}<figcaption>{caption}</figcaption>\n</figure>\n");
    }

    /// Adds text as it is, which the reader unfolds; on paper it is there in whole.
    pub(super) fn details(&mut self, title: &str, text: &str) {
        let label = attribute(title);
        self.0 += &format!(
            "<details><summary>{}</summary>\n\
             <pre tabindex=\"0\" role=\"region\" aria-label=\"{label}\">{}</pre></details>\n",
            escaped(title),
            escaped(text)
        );
    }

    /// Returns the document. Its policy lets a browser load and run nothing: even a name that got
    /// around the escaping could not act.
    pub(super) fn finish(self, title: &str) -> String {
        let Self(body) = self;
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src \
             '{hash}'; img-src data:; base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n{body}\
             </main>\n</body>\n</html>\n",
            hash = style::HASH,
            title = escaped(title),
            style = style::sheet(),
        )
    }
}

/// Escapes the value of an attribute.
fn attribute(text: &str) -> String {
    escaped(text).replace('"', "&quot;").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_stay_between_their_quotes() {
        assert_eq!(attribute("a\" onload=\"b\nc"), "a&quot; onload=&quot;b c");
    }
}
