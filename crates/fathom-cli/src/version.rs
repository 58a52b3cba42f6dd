//! `fathom --version`: version, commit and features.

/// Formats version, commit and features, without the program's name.
macro_rules! version {
    ($features:literal) => {
        concat!(
            env!("CARGO_PKG_VERSION"),
            env!("FATHOM_COMMIT_SUFFIX"),
            "\nfeatures: ",
            $features
        )
    };
}

/// Version, commit and features, without the program's name.
pub(crate) const VERSION: &str = match (cfg!(feature = "history"), cfg!(feature = "parquet")) {
    (true, true) => version!("history, parquet"),
    (true, false) => version!("history"),
    (false, true) => version!("parquet"),
    (false, false) => version!("none"),
};
