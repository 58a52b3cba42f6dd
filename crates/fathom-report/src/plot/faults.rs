//! Faults of a picture: texts that overlap or leave it, for the tests of what draws one. The boxes
//! are those of the estimated widths, as no test can ask a viewer.

use super::canvas::SIZE;
use super::text;

/// Box of a text, in pixels.
#[derive(Clone, Debug, PartialEq)]
struct TextBox {
    text: String,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// Returns the faults of a picture; a picture without texts has one, too.
#[must_use]
pub fn faults(svg: &str) -> Vec<String> {
    let boxes: Vec<TextBox> = elements(svg).collect();
    let mut faults = Vec::new();
    if boxes.is_empty() {
        faults.push("no text".to_owned());
    }
    let head = svg.split_once('>').map_or("", |(head, _)| head);
    let [width, height] = ["width", "height"].map(|name| attribute(head, name).unwrap_or(0.0));
    for (at, one) in boxes.iter().enumerate() {
        if one.left < 0.0 || one.top < 0.0 || one.right > width || one.bottom > height {
            faults.push(format!("`{}` leaves the picture: {one:?}", one.text));
        }
        let later = boxes[at + 1..].iter().filter(|other| one.overlaps(other));
        faults.extend(later.map(|other| format!("`{}` overlaps `{}`", one.text, other.text)));
    }
    faults
}

impl TextBox {
    fn overlaps(&self, other: &Self) -> bool {
        let beside = self.right <= other.left || other.right <= self.left;
        let above = self.bottom <= other.top || other.bottom <= self.top;
        !beside && !above
    }
}

fn elements(svg: &str) -> impl Iterator<Item = TextBox> {
    svg.split("<text ").skip(1).filter_map(|element| {
        let (head, rest) = element.split_once('>')?;
        let text = rest.split_once("</text>")?.0;
        let text = text.replace("&lt;", "<").replace("&gt;", ">");
        let text = text.replace("&amp;", "&");
        let size = attribute(head, "font-size").unwrap_or(SIZE);
        let (x, y) = (attribute(head, "x")?, attribute(head, "y")?);
        let width = text::width(&text, size);
        let left = match head {
            head if head.contains("\"middle\"") => x - width / 2.0,
            head if head.contains("\"end\"") => x - width,
            _ => x,
        };
        // Ascent and descent of DejaVu Sans without its line gap.
        let (top, bottom) = (size.mul_add(-0.76, y), size.mul_add(0.24, y));
        let right = left + width;
        Some(TextBox {
            text,
            left,
            right,
            top,
            bottom,
        })
    })
}

fn attribute(head: &str, name: &str) -> Option<f64> {
    let (_, rest) = head.split_once(&format!("{name}=\""))?;
    rest.split_once('"')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(texts: &str) -> Vec<String> {
        faults(&format!(
            "<svg width=\"100\" height=\"50\" x=\"\">{texts}</svg>"
        ))
    }

    #[test]
    fn wrong_pictures_are_found() {
        let one = "<text x=\"10\" y=\"20\" text-anchor=\"start\">words</text>";
        assert!(picture(one).is_empty(), "{:?}", picture(one));
        assert_eq!(picture("").len(), 1);
        let over = format!("{one}<text x=\"30\" y=\"24\" text-anchor=\"start\">over</text>");
        assert_eq!(picture(&over), ["`words` overlaps `over`"]);
        let below = format!("{one}<text x=\"30\" y=\"34\" text-anchor=\"start\">below</text>");
        assert!(picture(&below).is_empty());
        for outside in [
            "<text x=\"70\" y=\"20\" text-anchor=\"start\">too wide</text>",
            "<text x=\"20\" y=\"20\" text-anchor=\"end\">too wide</text>",
            "<text x=\"10\" y=\"49\">low</text>",
            "<text x=\"10\" y=\"8\" font-size=\"20\">high</text>",
        ] {
            assert_eq!(picture(outside).len(), 1, "{outside}");
        }
    }
}
