//! Figures of a page.

use crate::plot::{Draw, HeatMap, Intervals, Plot};

/// Picture with the sentences below it.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Name: of the file that `--svg-dir` writes, and of the place in the page. The page changes
    /// it into letters, digits and hyphens, and adds a number if it is taken.
    pub name: String,
    /// Explanation: what is shown, and what must not be concluded from it.
    pub caption: String,
    /// Picture.
    pub picture: Picture,
    pub(super) has_numbers: bool,
}

/// Content of a figure.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Picture {
    /// Lines, steps and markers.
    Plot(Plot),
    /// A colour for each cell.
    HeatMap(HeatMap),
    /// Intervals one below the other.
    Intervals(Intervals),
}

/// Figure as a document of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawing {
    /// Name for a file, without its end: lower-case letters, digits and hyphens. No other drawing
    /// of the page has it.
    pub name: String,
    /// SVG that refers to nothing outside it, black on white.
    pub svg: String,
}

impl Figure {
    /// Creates a figure, below which the page puts its numbers.
    #[must_use]
    pub fn new(name: impl Into<String>, caption: impl Into<String>, picture: Picture) -> Self {
        Self {
            name: name.into(),
            caption: caption.into(),
            picture,
            has_numbers: true,
        }
    }

    /// Leaves the numbers out: the page has them in a table of its own.
    #[must_use]
    pub fn without_numbers(self) -> Self {
        Self {
            has_numbers: false,
            ..self
        }
    }

    pub(super) fn drawing(&self) -> Drawing {
        Drawing {
            name: self.name.clone(),
            svg: self.picture.of_kind().drawing(),
        }
    }
}

impl Picture {
    fn of_kind(&self) -> &dyn Draw {
        match self {
            Self::Plot(plot) => plot,
            Self::HeatMap(map) => map,
            Self::Intervals(intervals) => intervals,
        }
    }

    pub(super) fn title(&self) -> &str {
        self.of_kind().title()
    }

    /// Returns the picture as an element of a page.
    pub(super) fn element(&self) -> String {
        self.of_kind().figure()
    }
}

impl From<Plot> for Picture {
    fn from(plot: Plot) -> Self {
        Self::Plot(plot)
    }
}

impl From<HeatMap> for Picture {
    fn from(map: HeatMap) -> Self {
        Self::HeatMap(map)
    }
}

/// Returns a name that any file system takes, and that needs no escaping.
pub(super) fn stem(name: &str) -> String {
    let mut stem = String::new();
    for character in name.chars() {
        if stem.len() >= STEM_MAX {
            break;
        }
        match character.to_ascii_lowercase() {
            plain if plain.is_ascii_alphanumeric() => stem.push(plain),
            _ if stem.is_empty() || stem.ends_with('-') => {}
            _ => stem.push('-'),
        }
    }
    let stem = stem.trim_end_matches('-');
    if stem.is_empty() { "figure" } else { stem }.to_owned()
}

/// Longest name; a file system takes 255 bytes with a number and the end.
const STEM_MAX: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, want: &str) {
        assert_eq!(stem(name), want);
    }

    #[test]
    fn stems_are_plain() {
        check("Latency by percentile", "latency-by-percentile");
        check("../../etc/passwd", "etc-passwd");
        check("</script>é\u{1b}", "script");
        check("", "figure");
        check("µ…", "figure");
        check(&"a/".repeat(5000), "a-".repeat(30).trim_end_matches('-'));
    }
}
