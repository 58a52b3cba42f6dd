//! Pages of runs, made from saved records.

use fathom_record::Record;
use fathom_report::run_page;

use crate::target::Verdict;

/// Makes the page of a record and its drawings, and looks for text that became markup.
pub(crate) fn decode(input: &[u8]) -> Result<Verdict, String> {
    let Ok(input) = std::str::from_utf8(input) else {
        return Ok(Verdict::Refused("not UTF-8".to_owned()));
    };
    let record = match Record::from_json(input) {
        Ok(record) => record,
        Err(error) => return Ok(Verdict::Refused(error.to_string())),
    };
    let page = run_page(&record, "run.json");
    let html = page.html();
    let html = without(without(&html, "script")?.as_str(), "style")?;
    is_own(&html)?;
    for drawing in page.drawings() {
        is_own(&without(&drawing.svg, "style")?)?;
    }
    Ok(Verdict::Accepted)
}

/// Returns a document without the content of its only element of a name.
fn without(document: &str, name: &str) -> Result<String, String> {
    let (start, end) = (format!("<{name}>"), format!("</{name}>"));
    let parts = document.split_once(&start);
    let parts = parts.and_then(|(before, rest)| Some((before, rest.split_once(&end)?.1)));
    match parts {
        Some((before, after)) if !after.contains(&start) => Ok(format!("{before}{after}")),
        _ => Err(format!("not one element `{name}`")),
    }
}

/// Checks that a document has the program's own elements and attributes alone.
fn is_own(document: &str) -> Result<(), String> {
    let is_hidden = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    if let Some(letter) = document.chars().find(|letter| is_hidden(*letter)) {
        return Err(format!("control character {letter:?} in a page"));
    }
    for tag in document.split('<').skip(1) {
        let (tag, text) = tag.split_once('>').ok_or("a tag without an end")?;
        if text.contains('>') {
            return Err(format!("a bracket in the text behind `{tag}`"));
        }
        let (name, mut rest) = tag.split_once([' ', '\n']).unwrap_or((tag, ""));
        let name = name.trim_start_matches('/').trim_end_matches('/');
        if !ELEMENTS.contains(&name) {
            return Err(format!("not an element of a page: `{tag}`"));
        }
        while let Some((key, more)) = rest.split_once("=\"") {
            let key = key.trim();
            let own = ATTRIBUTES.contains(&key) || key.starts_with("data-");
            if !own || key.contains(char::is_whitespace) {
                return Err(format!("not an attribute of a page: `{key}` in `{tag}`"));
            }
            rest = more.split_once('"').ok_or("a value without an end")?.1;
        }
        if !matches!(rest.trim(), "" | "/" | "html") {
            return Err(format!("left behind the attributes of `{tag}`: `{rest}`"));
        }
    }
    Ok(())
}

const ELEMENTS: [&str; 42] = [
    "!DOCTYPE",
    "html",
    "head",
    "meta",
    "title",
    "body",
    "main",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "p",
    "ul",
    "li",
    "div",
    "table",
    "caption",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "figure",
    "figcaption",
    "details",
    "summary",
    "pre",
    "svg",
    "g",
    "text",
    "line",
    "polyline",
    "path",
    "image",
    "rect",
    "circle",
    "section",
    "span",
    "strong",
    "br",
];

const ATTRIBUTES: [&str; 35] = [
    "lang",
    "charset",
    "http-equiv",
    "content",
    "name",
    "class",
    "id",
    "tabindex",
    "role",
    "aria-label",
    "scope",
    "viewBox",
    "xmlns",
    "width",
    "height",
    "font-family",
    "font-size",
    "x",
    "y",
    "x1",
    "y1",
    "x2",
    "y2",
    "text-anchor",
    "points",
    "d",
    "transform",
    "href",
    "preserveAspectRatio",
    "cx",
    "cy",
    "r",
    "rx",
    "ry",
    "fill",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_markup_is_found() {
        assert_eq!(is_own("<p class=\"a\">1 &gt; 0</p>\n"), Ok(()));
        for bad in [
            "<p>a > b</p>",
            "<b>x</b>",
            "<p onclick=\"x\">",
            "<p class=\"a\"onclick>",
            "<p class=\"a\" hidden>",
            "<p class=\"a>",
            "<p>\u{1b}</p>",
            "<p",
        ] {
            assert!(is_own(bad).is_err(), "{bad}");
        }
        assert!(without("<style>a</style><style>", "style").is_err());
        assert!(without("<p>", "style").is_err());
    }
}
