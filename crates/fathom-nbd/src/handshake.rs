//! The newstyle handshake, from the greeting of a server to the properties of an export.

use std::fmt;

use crate::export::{BlockSizes, Export, Features, ReplyForm};
use crate::text;
use crate::wire::{self, be16, be32, be64};

#[cfg(test)]
mod tests;

/// Handshake of a client that asks for one export.
///
/// Send what [`unsent`](Self::unsent) has, report it to [`sent`](Self::sent), and feed
/// [`receive`](Self::receive) with what arrives until it returns the [`Export`]. It asks for a
/// form of replies and for the export's block sizes (`NBD_OPT_GO`); a server without these options
/// is asked for the export by name (`NBD_OPT_EXPORT_NAME`).
#[derive(Debug)]
pub struct Handshake {
    name: String,
    replies: ReplyForm,
    state: State,
    unsent: Vec<u8>,
    /// Bytes of what is being received.
    received: Vec<u8>,
    /// The server sends no zeroes after the flags of an export.
    no_zeroes: bool,
    has_structured_replies: bool,
    /// Size and flags of the export, once known.
    export: Option<(u64, Features)>,
    block: BlockSizes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Greeting,
    /// An option waits for its reply.
    Option(u32),
    /// The answer to `NBD_OPT_EXPORT_NAME`, which has no head.
    ExportName,
    Done,
}

/// Failure of a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The peer does not greet as an NBD server.
    NotNbd,
    /// The server speaks the oldstyle protocol, which has no export names.
    Oldstyle,
    /// The server requires TLS.
    TlsRequired,
    /// The server has no such export.
    UnknownExport {
        /// Name of the export.
        name: String,
        /// Text of the server; empty if it gave none.
        text: String,
    },
    /// The server refuses an option.
    Refused {
        /// Name of the option.
        option: &'static str,
        /// Name of the refusal.
        refusal: &'static str,
        /// Text of the server; empty if it gave none.
        text: String,
    },
    /// A reply is longer than any of the protocol.
    TooLong(u32),
    /// A reply to another option, or one of the wrong type or length.
    Unexpected {
        /// Name of the option.
        option: &'static str,
        /// Type of the reply.
        reply: u32,
    },
    /// The server accepts without having described the export.
    NoDescription,
    /// The server names block sizes that the protocol does not allow.
    BlockSizes {
        /// Minimum.
        min: u32,
        /// Maximum payload.
        max: u32,
    },
}

impl Handshake {
    /// Starts a handshake for the export of this name, with replies of this form; the empty name
    /// is the server's default.
    ///
    /// # Panics
    /// A name of more than [`ExportAddress::NAME_BYTES_MAX`](crate::ExportAddress::NAME_BYTES_MAX)
    /// bytes.
    #[must_use]
    pub fn new(name: &str, replies: ReplyForm) -> Self {
        assert!(
            name.len() <= NAME_BYTES_MAX,
            "an export name of {} B",
            name.len()
        );
        Self {
            name: name.to_owned(),
            replies,
            state: State::Greeting,
            unsent: Vec::new(),
            received: Vec::new(),
            no_zeroes: false,
            has_structured_replies: false,
            export: None,
            block: BlockSizes::UNSTATED,
        }
    }

    /// Returns what is to be sent.
    #[must_use]
    pub fn unsent(&self) -> &[u8] {
        &self.unsent
    }

    /// Takes off bytes that have been sent.
    ///
    /// # Panics
    /// More bytes than there are.
    pub fn sent(&mut self, bytes: usize) {
        self.unsent.drain(..bytes);
    }

    /// Takes bytes that have arrived, and returns the export once the handshake is done. Bytes
    /// behind it are left.
    ///
    /// # Errors
    /// The refusal of the server, or the rule that it broke; the connection is of no more use.
    pub fn receive(&mut self, input: &mut &[u8]) -> Result<Option<Export>, HandshakeError> {
        while self.state != State::Done && self.take(input)? {
            let received = std::mem::take(&mut self.received);
            match self.state {
                State::Greeting => self.on_greeting(&received)?,
                State::Option(option) => self.on_reply(option, &received)?,
                State::ExportName => {
                    let features = Features::new(be16(&received, 8));
                    self.export = Some((be64(&received, 0), features));
                    self.state = State::Done;
                }
                State::Done => {}
            }
        }
        let export = self.export.filter(|_| self.state == State::Done);
        Ok(export.map(|(bytes, features)| Export {
            bytes,
            features,
            block: self.block,
            has_structured_replies: self.has_structured_replies,
        }))
    }

    /// Takes bytes off the input, and returns whether all of the next message is there.
    fn take(&mut self, input: &mut &[u8]) -> Result<bool, HandshakeError> {
        loop {
            let missing = self.message_bytes()? - self.received.len();
            if missing == 0 {
                return Ok(true);
            }
            let (bytes, rest) = input.split_at(missing.min(input.len()));
            if bytes.is_empty() {
                return Ok(false);
            }
            self.received.extend_from_slice(bytes);
            *input = rest;
        }
    }

    /// Returns the bytes of the message that is being received, as far as they are known.
    fn message_bytes(&self) -> Result<usize, HandshakeError> {
        Ok(match self.state {
            State::Greeting => GREETING_BYTES,
            State::Option(_) if self.received.len() < REPLY_BYTES => REPLY_BYTES,
            State::Option(option) => {
                if be64(&self.received, 0) != wire::OPTION_REPLY {
                    let reply = be32(&self.received, 12);
                    return Err(unexpected(option, reply));
                }
                let length = be32(&self.received, 16);
                if length > REPLY_DATA_MAX {
                    return Err(HandshakeError::TooLong(length));
                }
                REPLY_BYTES + length as usize
            }
            State::ExportName if self.no_zeroes => EXPORT_BYTES,
            State::ExportName => EXPORT_BYTES + EXPORT_ZEROES,
            State::Done => 0,
        })
    }

    fn on_greeting(&mut self, greeting: &[u8]) -> Result<(), HandshakeError> {
        match (be64(greeting, 0), be64(greeting, 8)) {
            (wire::GREETING, wire::NEWSTYLE) => {}
            (wire::GREETING, wire::OLDSTYLE) => return Err(HandshakeError::Oldstyle),
            _ => return Err(HandshakeError::NotNbd),
        }
        // The flags of a client are those of the server, as far as both know them.
        let flags = be16(greeting, 16) & (FIXED_NEWSTYLE | NO_ZEROES);
        self.no_zeroes = flags & NO_ZEROES != 0;
        self.unsent.extend(u32::from(flags).to_be_bytes());
        match (flags & FIXED_NEWSTYLE != 0, self.replies) {
            (true, ReplyForm::Structured) => self.request(STRUCTURED_REPLY, &[]),
            (true, ReplyForm::Simple) => self.request_go(),
            (false, _) => self.request_by_name(),
        }
        Ok(())
    }

    fn on_reply(&mut self, option: u32, message: &[u8]) -> Result<(), HandshakeError> {
        let (reply, data) = (be32(message, 12), &message[REPLY_BYTES..]);
        if be32(message, 8) != option {
            return Err(unexpected(option, reply));
        }
        match (option, reply) {
            (_, ERROR_TLS_REQUIRED) => return Err(HandshakeError::TlsRequired),
            (STRUCTURED_REPLY, ACK) => self.has_structured_replies = true,
            // A server without this option answers reads with simple replies.
            (STRUCTURED_REPLY, reply) if reply & ERROR != 0 => {}
            (GO, INFO) => return self.on_info(data),
            (GO, ACK) if self.export.is_none() => return Err(HandshakeError::NoDescription),
            (GO, ACK) => self.state = State::Done,
            (GO, ERROR_UNSUPPORTED) => self.request_by_name(),
            (GO, ERROR_UNKNOWN) => {
                return Err(HandshakeError::UnknownExport {
                    name: self.name.clone(),
                    text: text::printable(data),
                });
            }
            (option, reply) if reply & ERROR != 0 => {
                return Err(HandshakeError::Refused {
                    option: option_name(option),
                    refusal: refusal_name(reply),
                    text: text::printable(data),
                });
            }
            (option, reply) => return Err(unexpected(option, reply)),
        }
        if option == STRUCTURED_REPLY {
            self.request_go();
        }
        Ok(())
    }

    fn on_info(&mut self, data: &[u8]) -> Result<(), HandshakeError> {
        let kind = data.first_chunk().map(|kind| u16::from_be_bytes(*kind));
        match (kind, data.len()) {
            (Some(INFO_EXPORT), 12) => {
                self.export = Some((be64(data, 2), Features::new(be16(data, 10))));
            }
            (Some(INFO_BLOCK_SIZE), 14) => {
                let (min, max) = (be32(data, 2), be32(data, 10));
                let block = BlockSizes::new(min, max);
                self.block = block.ok_or(HandshakeError::BlockSizes { min, max })?;
            }
            (None | Some(INFO_EXPORT | INFO_BLOCK_SIZE), _) => return Err(unexpected(GO, INFO)),
            // Names and descriptions are for people.
            (Some(_), _) => {}
        }
        Ok(())
    }

    fn request_go(&mut self) {
        let mut data = Vec::with_capacity(self.name.len() + 8);
        // Cannot truncate: the name is short.
        let length = u32::try_from(self.name.len()).unwrap_or(0);
        data.extend(length.to_be_bytes());
        data.extend(self.name.as_bytes());
        data.extend(1_u16.to_be_bytes());
        data.extend(INFO_BLOCK_SIZE.to_be_bytes());
        self.request(GO, &data);
    }

    fn request_by_name(&mut self) {
        let name = std::mem::take(&mut self.name);
        self.request(EXPORT_NAME, name.as_bytes());
        self.name = name;
        self.state = State::ExportName;
    }

    /// Queues an option, whose reply is awaited.
    fn request(&mut self, option: u32, data: &[u8]) {
        // Cannot truncate: a name and a few words.
        let length = u32::try_from(data.len()).unwrap_or(0);
        self.unsent.extend(wire::NEWSTYLE.to_be_bytes());
        self.unsent.extend(option.to_be_bytes());
        self.unsent.extend(length.to_be_bytes());
        self.unsent.extend(data);
        self.state = State::Option(option);
    }
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = |f: &mut fmt::Formatter<'_>, text: &str| match text.is_empty() {
            true => Ok(()),
            false => write!(f, ": {text}"),
        };
        match self {
            Self::NotNbd => f.write_str("not an NBD server"),
            Self::Oldstyle => f.write_str("the server speaks the oldstyle protocol"),
            Self::TlsRequired => f.write_str("the server requires TLS"),
            Self::UnknownExport { name, text } => {
                write!(f, "no export `{name}`")?;
                said(f, text)
            }
            Self::Refused {
                option,
                refusal,
                text,
            } => {
                write!(f, "{option} refused: {refusal}")?;
                said(f, text)
            }
            Self::TooLong(bytes) => write!(f, "reply of {bytes} B during the handshake"),
            Self::Unexpected { option, reply } => {
                write!(f, "unexpected reply to {option} (type {reply:#x})")
            }
            Self::NoDescription => {
                f.write_str("the server accepted the export without its size and flags")
            }
            Self::BlockSizes { min, max } => write!(
                f,
                "impossible block sizes: minimum {min} B, maximum payload {max} B"
            ),
        }
    }
}

impl std::error::Error for HandshakeError {}

fn unexpected(option: u32, reply: u32) -> HandshakeError {
    HandshakeError::Unexpected {
        option: option_name(option),
        reply,
    }
}

const fn option_name(option: u32) -> &'static str {
    match option {
        STRUCTURED_REPLY => "NBD_OPT_STRUCTURED_REPLY",
        _ => "NBD_OPT_GO",
    }
}

const fn refusal_name(reply: u32) -> &'static str {
    match reply & !ERROR {
        2 => "forbidden by policy",
        3 => "invalid request",
        4 => "not supported on the server's platform",
        7 => "the server is shutting down",
        8 => "block sizes must be agreed on",
        9 => "too large",
        10 => "extended headers required",
        _ => "unknown error",
    }
}

/// Bytes of an export name at most.
pub(crate) const NAME_BYTES_MAX: usize = 4096;
/// Both magic words, and flags.
const GREETING_BYTES: usize = 18;
/// Head of a reply to an option.
const REPLY_BYTES: usize = 20;
/// Data of a reply at most: a string of 4096 bytes, the longest of the protocol, and numbers.
const REPLY_DATA_MAX: u32 = 8192;
/// Answer to `NBD_OPT_EXPORT_NAME`: size and flags, and zeroes unless they were declined.
const EXPORT_BYTES: usize = 10;
const EXPORT_ZEROES: usize = 124;

/// Handshake flags.
const FIXED_NEWSTYLE: u16 = 1;
const NO_ZEROES: u16 = 1 << 1;

/// Options.
const EXPORT_NAME: u32 = 1;
const GO: u32 = 7;
const STRUCTURED_REPLY: u32 = 8;

/// Types of replies to options.
const ACK: u32 = 1;
const INFO: u32 = 3;
/// Bit of the types that are errors.
const ERROR: u32 = 1 << 31;
const ERROR_UNSUPPORTED: u32 = ERROR | 1;
const ERROR_TLS_REQUIRED: u32 = ERROR | 5;
const ERROR_UNKNOWN: u32 = ERROR | 6;

/// Types of information about an export.
const INFO_EXPORT: u16 = 0;
const INFO_BLOCK_SIZE: u16 = 3;
