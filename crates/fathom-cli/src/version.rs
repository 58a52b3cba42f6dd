//! `fathom --version`: version, commit and features.

/// Version, commit and features, without the program's name.
#[cfg(feature = "parquet")]
pub(crate) const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    env!("FATHOM_COMMIT_SUFFIX"),
    "\nfeatures: parquet"
);

/// Version, commit and features, without the program's name.
#[cfg(not(feature = "parquet"))]
pub(crate) const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    env!("FATHOM_COMMIT_SUFFIX"),
    "\nfeatures: none"
);
