//! A record as it lies in a file: JSON on one line, with the layout's version in front.

use std::fmt;

use serde::Deserialize;

use crate::{RECORD_VERSION, Record};

impl Record {
    /// The record as JSON, on one line.
    ///
    /// # Errors
    /// None that a record made by this program can cause.
    pub fn to_json(&self) -> Result<String, RecordError> {
        serde_json::to_string(self).map_err(RecordError::Json)
    }

    /// Reads a record of this version of the layout or an earlier one.
    ///
    /// # Errors
    /// The text is not a record, or it is one of a later version.
    pub fn from_json(text: &str) -> Result<Self, RecordError> {
        // The version first: a later layout may differ in anything else.
        let Versioned { version } = serde_json::from_str(text).map_err(RecordError::Json)?;
        if version == 0 || version > RECORD_VERSION {
            return Err(RecordError::Version { found: version });
        }
        serde_json::from_str(text).map_err(RecordError::Json)
    }
}

/// Why a record cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecordError {
    /// Not JSON, or not a record.
    Json(serde_json::Error),
    /// A layout that this program does not know.
    Version {
        /// The record's version.
        found: u32,
    },
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(error) => write!(f, "not a record of a run: {error}"),
            Self::Version { found } => write!(
                f,
                "a record of version {found}: this program reads versions 1 to {RECORD_VERSION}"
            ),
        }
    }
}

impl std::error::Error for RecordError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Json(error) => Some(error),
            Self::Version { .. } => None,
        }
    }
}

/// The part of a record that every version has.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}
