//! Values under keys that the reader does not know in advance.

use std::ops::Range;

use toml::de::DeValue;

use crate::{Fields, Source};

/// Key of a table with its value, for tables whose keys are the user's.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// Key, without quotes.
    pub key: &'a str,
    /// Place of the key.
    pub key_span: Range<usize>,
    /// Value.
    pub value: Value<'a>,
}

/// Value with its place.
#[derive(Clone, Debug)]
pub struct Value<'a> {
    source: &'a Source<'a>,
    value: &'a DeValue<'a>,
    span: Range<usize>,
}

impl<'a> Value<'a> {
    pub(crate) const fn new(
        source: &'a Source<'a>,
        value: &'a DeValue<'a>,
        span: Range<usize>,
    ) -> Self {
        Self {
            source,
            value,
            span,
        }
    }

    /// Returns the place of the value.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// Returns a text, a number or a boolean as a text; `None` for lists, tables and times.
    #[must_use]
    pub fn scalar(&self) -> Option<String> {
        match self.value {
            DeValue::String(text) => Some(text.clone().into_owned()),
            DeValue::Integer(number) => Some(number.to_string()),
            DeValue::Float(number) => Some(number.as_str().to_owned()),
            DeValue::Boolean(flag) => Some(flag.to_string()),
            _ => None,
        }
    }

    /// Returns true or false; `None` for anything else.
    #[must_use]
    pub const fn flag(&self) -> Option<bool> {
        match self.value {
            DeValue::Boolean(flag) => Some(*flag),
            _ => None,
        }
    }

    /// Returns the value as it is written in the file, which is TOML.
    #[must_use]
    pub fn literal(&self) -> &'a str {
        self.source.slice(&self.span)
    }

    /// Returns the items of a list; `None` for anything else.
    #[must_use]
    pub fn items(&self) -> Option<Vec<Self>> {
        let items = self.value.as_array()?.iter();
        let item = |item: &'a toml::Spanned<DeValue<'a>>| {
            Self::new(self.source, item.get_ref(), item.span())
        };
        Some(items.map(item).collect())
    }

    /// Returns a table under this name; `None` for anything else.
    #[must_use]
    pub fn fields(&self, name: impl Into<String>) -> Option<Fields<'a>> {
        let table = self.value.as_table()?;
        Some(Fields::new(self.source, table, self.span(), name))
    }
}
