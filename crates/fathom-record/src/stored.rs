//! Stored documents: JSON whose field `version` is the version of its layout.

use std::fmt;
use std::io::Read;

use serde::de::{DeserializeOwned, DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::{HostRecord, RECORD_VERSION, Record};

impl Record {
    /// Serialises the record as JSON on one line.
    ///
    /// # Errors
    /// None for a record made by this program.
    pub fn to_json(&self) -> Result<String, RecordError> {
        serde_json::to_string(self).map_err(|error| RecordError::json(DOCUMENT, error))
    }

    /// Returns whether a JSON document has the keys of a record, of any version. Their values are
    /// skipped.
    #[must_use]
    pub fn is_in(text: &str) -> bool {
        let keys: Result<RecordKeys, _> = serde_json::from_str(text);
        keys.is_ok_and(|keys| keys.version.is_some() && keys.jobs.is_some() && keys.fio.is_none())
    }

    /// Reads a document if it is a record of a version that this program knows: one pass over
    /// what [`is_in`](Self::is_in) and [`from_json`](Self::from_json) read three times.
    #[must_use]
    pub fn if_known(text: &str) -> Option<Self> {
        // A report of fio has jobs, too. A job's name may be that key: then the others decide.
        if text.contains(FIO_KEY) {
            return None;
        }
        let record: Self = serde_json::from_str(text).ok()?;
        (1..=RECORD_VERSION)
            .contains(&record.version)
            .then_some(record)
    }

    /// Returns the rank of a record, from its beginning alone; `None` if it has none there.
    ///
    /// Reads until the hosts, which come before everything long. Other faults of the document are
    /// left to those who read all of it.
    #[must_use]
    pub fn rank_in(document: impl Read) -> Option<u32> {
        let mut rank = None;
        let mut reader = serde_json::Deserializer::from_reader(document);
        // An error is the way to stop.
        let _stopped = RankSeed(&mut rank).deserialize(&mut reader);
        rank
    }

    /// Reads a record of this version of the layout or an earlier one.
    ///
    /// # Errors
    /// The text is not a record, or its version is later.
    pub fn from_json(text: &str) -> Result<Self, RecordError> {
        read_versioned(text, DOCUMENT, RECORD_VERSION)
    }
}

/// Reads a document whose version is at most `newest`.
pub(crate) fn read_versioned<T: DeserializeOwned>(
    text: &str,
    document: &'static str,
    newest: u32,
) -> Result<T, RecordError> {
    let json = |error| RecordError::json(document, error);
    // The version first: a later layout may differ in anything else.
    let Versioned { version } = serde_json::from_str(text).map_err(json)?;
    if version == 0 || version > newest {
        return Err(RecordError::Version {
            document,
            found: version,
            newest,
        });
    }
    serde_json::from_str(text).map_err(json)
}

/// Failure to read or write a stored document.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecordError {
    /// Not JSON, or another document.
    Json {
        /// The expected document.
        document: &'static str,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// A layout that this program does not know.
    Version {
        /// The document.
        document: &'static str,
        /// Its version.
        found: u32,
        /// The newest version that this program reads.
        newest: u32,
    },
}

impl RecordError {
    pub(crate) const fn json(document: &'static str, source: serde_json::Error) -> Self {
        Self::Json { document, source }
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json { document, source } => write!(f, "not {document}: {source}"),
            Self::Version {
                document,
                found,
                newest,
            } => {
                write!(f, "{document} of version {found}: this program reads ")?;
                match newest {
                    1 => f.write_str("version 1"),
                    newest => write!(f, "versions 1 to {newest}"),
                }
            }
        }
    }
}

// The cause is part of the message.
impl std::error::Error for RecordError {}

/// Part of a document that every version has.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// Keys that distinguish a record from other documents with jobs.
#[derive(Deserialize)]
struct RecordKeys {
    version: Option<IgnoredAny>,
    jobs: Option<IgnoredAny>,
    #[serde(rename = "fio version")]
    fio: Option<IgnoredAny>,
}

/// Reader of the keys of a record until its hosts.
struct RankSeed<'a>(&'a mut Option<u32>);

impl<'de> DeserializeSeed<'de> for RankSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, document: D) -> Result<(), D::Error> {
        document.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RankSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(DOCUMENT)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut keys: A) -> Result<(), A::Error> {
        while let Some(key) = keys.next_key::<String>()? {
            if key == "hosts" {
                let hosts: Vec<HostRecord> = keys.next_value()?;
                *self.0 = hosts.first().map(|host| host.rank);
                return Err(A::Error::custom("the rest is not needed"));
            }
            let IgnoredAny = keys.next_value()?;
        }
        Ok(())
    }
}

/// Key that reports of fio have, and records do not.
const FIO_KEY: &str = "\"fio version\"";

/// Name of the document in error messages.
const DOCUMENT: &str = "a record of a run";

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn the_cause_is_told_once() {
        let error = Record::from_json("{\"version\": 1").unwrap_err();
        assert!(error.to_string().contains("EOF while parsing"), "{error}");
        assert!(
            error.source().is_none(),
            "a chain of errors would repeat it"
        );
    }
}
