//! Cells of a table with a shade: numbers first, the shade only leads the eye.

use std::fmt::Write as _;

/// Cell of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shaded {
    /// Text, which says all that the shade says.
    pub text: String,
    /// Darkness, from 0 to 1.
    pub shade: f64,
}

impl Shaded {
    /// Returns the number of the shade in the style sheet; 0 is none.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a small positive number"
    )]
    pub(super) fn level(&self) -> u32 {
        (self.shade.clamp(0.0, 1.0) * f64::from(LEVELS)).round() as u32
    }
}

/// Returns the rules for shades. The darkest leaves black on white and white on black readable.
pub(super) fn rules() -> String {
    let mut rules = String::new();
    for level in 1..=LEVELS {
        let opacity = level * 5;
        // Writing to a string cannot fail.
        let _written = writeln!(
            rules,
            ".s{level}{{background:rgba(0,114,178,.{opacity:02})}}"
        );
    }
    rules
}

/// Number of shades.
const LEVELS: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_are_levels_of_the_style_sheet() {
        let level = |shade: f64| {
            let text = String::new();
            Shaded { text, shade }.level()
        };
        assert_eq!([0.0, 0.05, 0.5, 1.0, 9.0].map(level), [0, 0, 4, 8, 8]);
        assert_eq!(level(f64::NAN), 0);
        assert!(rules().contains(".s8{background:rgba(0,114,178,.40)}"));
    }
}
