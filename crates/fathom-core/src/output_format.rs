//! Formats in which the result of a run is printed.

/// Format of a run's report, one of the values of `--output-format`.
///
/// The parser, the program and the reports share this list. To add a format, add a variant and its
/// name here, and a file and an arm of `render` in `fathom-report`. Several formats of one report
/// are printed in the order of the variants, which is fio's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutputFormat {
    /// One line of fields per job, separated by semicolons.
    Terse,
    /// fio's JSON with the bins of every histogram.
    JsonPlus,
    /// fio's JSON.
    Json,
    /// Text for people.
    Normal,
}

impl OutputFormat {
    /// Names as users write them; aliases that only fio's own tools use are left out.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("normal", Self::Normal),
        ("terse", Self::Terse),
        ("json", Self::Json),
        ("json+", Self::JsonPlus),
    ];

    /// Returns the format of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let name = match name {
            "minimal" | "csv" => "terse",
            name => name,
        };
        let named = Self::NAMES.iter().find(|(known, _)| *known == name);
        named.map(|&(_, format)| format)
    }

    /// Returns whether the report is a document that text around it would break.
    #[must_use]
    pub const fn is_document(self) -> bool {
        !matches!(self, Self::Terse | Self::Normal)
    }

    /// Returns what is printed if these are requested: each once, in order, `Normal` if there are
    /// none. `JsonPlus` replaces `Json`, as in fio.
    #[must_use]
    pub fn to_print(requested: &[Self]) -> Vec<Self> {
        if requested.is_empty() {
            return vec![Self::Normal];
        }
        let mut formats = requested.to_vec();
        formats.sort_unstable();
        formats.dedup();
        if formats.contains(&Self::JsonPlus) {
            formats.retain(|format| *format != Self::Json);
        }
        formats
    }
}

#[cfg(test)]
mod tests {
    use super::OutputFormat::{Json, JsonPlus, Normal, Terse};
    use super::*;

    #[test]
    fn each_format_is_printed_once_in_fios_order() {
        assert_eq!(OutputFormat::to_print(&[]), [Normal]);
        assert_eq!(
            OutputFormat::to_print(&[Normal, Json, Terse, Normal]),
            [Terse, Json, Normal]
        );
        assert_eq!(OutputFormat::to_print(&[Json, JsonPlus]), [JsonPlus]);
    }

    #[test]
    fn names_and_aliases_are_known() {
        for (name, format) in OutputFormat::NAMES {
            assert_eq!(OutputFormat::parse(name), Some(format));
        }
        assert_eq!(OutputFormat::parse("csv"), Some(Terse));
        assert_eq!(OutputFormat::parse("JSON"), None);
    }
}
