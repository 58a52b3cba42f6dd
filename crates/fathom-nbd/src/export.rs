//! Properties of an export, from the handshake.

/// An export, as its server describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Export {
    /// Size.
    pub bytes: u64,
    /// Requests that the server takes.
    pub features: Features,
    /// Sizes of requests.
    pub block: BlockSizes,
    /// The server answers reads by structured replies.
    pub has_structured_replies: bool,
}

/// Form of the replies that a client asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplyForm {
    /// A head with an error number, and the data: what the kernel's client asks for. It costs the
    /// server less.
    Simple,
    /// Chunks, which can also say where an error is, in words, and where a hole. A server without
    /// them sends simple ones.
    #[default]
    Structured,
}

/// Transmission flags of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features(u16);

impl Features {
    /// Takes flags as they are on the wire. Without `NBD_FLAG_HAS_FLAGS` the others mean nothing.
    #[must_use]
    pub const fn new(flags: u16) -> Self {
        Self(if flags & HAS_FLAGS == 0 { 0 } else { flags })
    }

    /// Returns whether writes are refused.
    #[must_use]
    pub const fn is_read_only(self) -> bool {
        self.0 & READ_ONLY != 0
    }

    /// Returns whether the server takes flushes.
    #[must_use]
    pub const fn can_flush(self) -> bool {
        self.0 & SEND_FLUSH != 0
    }

    /// Returns whether writes may ask to be on stable storage when they complete.
    #[must_use]
    pub const fn can_fua(self) -> bool {
        self.0 & SEND_FUA != 0
    }

    /// Returns whether the server takes trims.
    #[must_use]
    pub const fn can_trim(self) -> bool {
        self.0 & SEND_TRIM != 0
    }

    /// Returns whether the server writes zeroes without getting them.
    #[must_use]
    pub const fn can_write_zeroes(self) -> bool {
        self.0 & SEND_WRITE_ZEROES != 0
    }

    /// Returns whether a flush on one connection covers the writes completed on all.
    #[must_use]
    pub const fn can_multi_conn(self) -> bool {
        self.0 & CAN_MULTI_CONN != 0
    }
}

/// Block size constraints of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// Bytes of which offsets and lengths are multiples, a power of two.
    pub min: u32,
    /// Bytes of a read or write at most, a multiple of `min`.
    pub payload_max: u32,
}

impl BlockSizes {
    /// Sizes of a server that names none: any, and the payload that every server has to take.
    pub const UNSTATED: Self = Self {
        min: 1,
        payload_max: 32 << 20,
    };

    /// Takes the sizes that a server names; `None` if they contradict the protocol.
    #[must_use]
    pub const fn new(min: u32, payload_max: u32) -> Option<Self> {
        if !min.is_power_of_two() || min > MIN_MAX || payload_max < min {
            return None;
        }
        Some(Self {
            min,
            payload_max: payload_max / min * min,
        })
    }
}

const HAS_FLAGS: u16 = 1;
const READ_ONLY: u16 = 1 << 1;
const SEND_FLUSH: u16 = 1 << 2;
const SEND_FUA: u16 = 1 << 3;
const SEND_TRIM: u16 = 1 << 5;
const SEND_WRITE_ZEROES: u16 = 1 << 6;
const CAN_MULTI_CONN: u16 = 1 << 8;
/// Largest minimum block size.
const MIN_MAX: u32 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_the_rules_of_the_protocol() {
        let max =
            |min, payload_max| BlockSizes::new(min, payload_max).map(|sizes| sizes.payload_max);
        assert_eq!(max(512, u32::MAX), Some(u32::MAX - 511));
        assert_eq!(max(1, 1), Some(1));
        assert_eq!(max(0, 4096), None);
        assert_eq!(max(513, 4096), None);
        assert_eq!(max(1 << 17, 1 << 20), None);
        assert_eq!(max(4096, 512), None);
    }

    #[test]
    fn flags_without_the_first_mean_nothing() {
        assert!(!Features::new(READ_ONLY).is_read_only());
        let all = Features::new(u16::MAX);
        assert!(all.is_read_only() && all.can_flush() && all.can_fua() && all.can_trim());
        assert!(all.can_write_zeroes() && all.can_multi_conn());
    }
}
