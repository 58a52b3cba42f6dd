//! `fathom --version`: version, commit and features.

/// Version, commit and features, without the program's name.
pub(crate) const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    env!("FATHOM_COMMIT_SUFFIX"),
    "\nfeatures: ",
    env!("FATHOM_FEATURES")
);
