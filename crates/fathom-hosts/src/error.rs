//! Errors of decoding: the part of the message, and its defect.

use std::fmt;

/// Error in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MessageError {
    /// Byte of the message, from 0.
    pub byte: usize,
    /// Name of the field.
    pub field: &'static str,
    /// Reason.
    pub kind: MessageErrorKind,
}

/// Reason of a [`MessageError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MessageErrorKind {
    /// The message ends within the field.
    CutShort,
    /// Bytes follow the last field.
    TooLong,
    /// A value that has no meaning.
    Unknown(u8),
    /// A format of another version.
    Version(u8),
    /// A number over its limit.
    TooLarge(u64),
    /// Text that is not UTF-8, too long, or has control characters.
    Text,
    /// Indexes that do not rise.
    Order,
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message of a rank: byte {}: {}: ", self.byte, self.field)?;
        match self.kind {
            MessageErrorKind::CutShort => write!(f, "cut short"),
            MessageErrorKind::TooLong => write!(f, "the message goes on after its end"),
            MessageErrorKind::Unknown(value) => write!(f, "value {value} is not known"),
            MessageErrorKind::Version(version) => write!(
                f,
                "version {version}, this program speaks {}; use one version on all hosts",
                crate::encoding::VERSION
            ),
            MessageErrorKind::TooLarge(limit) => write!(f, "over {limit}"),
            MessageErrorKind::Text => write!(f, "not a short, printable text"),
            MessageErrorKind::Order => write!(f, "indexes do not rise"),
        }
    }
}

impl std::error::Error for MessageError {}
