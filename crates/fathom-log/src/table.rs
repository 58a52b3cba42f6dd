//! Tables of other programs' rows as Parquet: columns of any names and kinds, not those of a log.
//!
//! They are here because this crate alone uses `parquet`: one place decides how files are written,
//! and a program without the feature lacks them in one place.

#[cfg(feature = "parquet")]
mod parquet;
#[cfg(not(feature = "parquet"))]
#[path = "table/parquet_disabled.rs"]
mod parquet;

pub use self::parquet::TableFile;

/// Kind of the cells of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// Whole numbers.
    Whole,
    /// Numbers.
    Number,
    /// Texts.
    Text,
    /// Moments: milliseconds since 1970-01-01 UTC.
    Moment,
}

/// Cells of a column, one for each of some rows; `None` is a value that is not there.
#[derive(Clone, Debug, PartialEq)]
pub enum TableColumn {
    /// Whole numbers, or moments.
    Whole(Vec<Option<i64>>),
    /// Numbers.
    Number(Vec<Option<f64>>),
    /// Texts.
    Text(Vec<Option<String>>),
}

impl TableColumn {
    /// Returns whether the cells can be those of a column of this kind.
    #[must_use]
    pub const fn is(&self, kind: TableKind) -> bool {
        match self {
            Self::Whole(_) => matches!(kind, TableKind::Whole | TableKind::Moment),
            Self::Number(_) => matches!(kind, TableKind::Number),
            Self::Text(_) => matches!(kind, TableKind::Text),
        }
    }
}

#[cfg(all(test, feature = "parquet"))]
mod tests;
