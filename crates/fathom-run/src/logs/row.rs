//! A line of a log as numbers: what a log is made of that is not text, and what is read from one.

use std::io::{self, Write};

/// One line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) time_ms: u64,
    pub(crate) value: u64,
    /// The window's maximum.
    pub(crate) max: u64,
    /// 0 read, 1 write, 2 trim.
    pub(crate) direction: u32,
    pub(crate) bytes: u64,
    pub(crate) offset: u64,
    /// The whole I/O priority.
    pub(crate) priority: u32,
    pub(crate) issued_ns: u64,
}

/// Which columns the lines of a log have beside those that all have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    /// `log_window_value=both`.
    pub(crate) max: bool,
    /// `log_offset`.
    pub(crate) offset: bool,
    /// `log_prio`: the whole priority, and not only whether it is of the real-time class.
    pub(crate) priority: bool,
    /// `log_issue_time`.
    pub(crate) issued: bool,
}

impl Row {
    /// The priority as the log shows it where it does not show all of it.
    pub(crate) const fn is_real_time(&self) -> bool {
        self.priority >> CLASS_SHIFT == REAL_TIME
    }

    /// Writes the line: `time, value[, max], direction, bytes[, offset], priority[, issued]`.
    pub(crate) fn print(&self, shape: Shape, to: &mut impl Write) -> io::Result<()> {
        write!(to, "{}, {}", self.time_ms, self.value)?;
        if shape.max {
            write!(to, ", {}", self.max)?;
        }
        write!(to, ", {}, {}", self.direction, self.bytes)?;
        if shape.offset {
            write!(to, ", {}", self.offset)?;
        }
        if shape.priority {
            write!(to, ", 0x{:04x}", self.priority)?;
        } else {
            write!(to, ", {}", u8::from(self.is_real_time()))?;
        }
        if shape.issued {
            write!(to, ", {}", self.issued_ns)?;
        }
        writeln!(to)
    }
}

/// Where the class stands in an I/O priority, and the number of the real-time class: both from
/// ioprio_set(2).
pub(crate) const CLASS_SHIFT: u32 = 13;
pub(crate) const REAL_TIME: u32 = 1;
