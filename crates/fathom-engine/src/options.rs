//! Options shared by several built-in engines; an engine's own options are in its file.

use fathom_core::{EngineOption, OptionEffect};

pub use crate::e4defrag::{DONORNAME, INPLACE};
pub use crate::libaio::{LIBAIO_VECTORED, USERSPACE_REAP};
pub use crate::mmap::THP;
pub use crate::names::filestat::STAT_TYPE;
pub use crate::sync::HIPRI_PERCENTAGE;
pub use crate::uring::{
    FIXEDBUFS, FORCE_ASYNC, NONVECTORED, NOPS, PLAIN_DESCRIPTOR, POLLABLE, REGISTERFILES,
    SQTHREAD_POLL, SQTHREAD_POLL_CPU,
};

/// `io_uring`, `pvsync2`: polled completions.
pub const HIPRI: EngineOption = EngineOption::flag(
    "hipri",
    "Poll for completions (IORING_SETUP_IOPOLL, RWF_HIPRI)",
)
.effect(OptionEffect::PolledCompletions);

/// `io_uring`, `pvsync2`: uncached buffered I/O, which drops pages from the cache after use.
pub const UNCACHED: EngineOption = EngineOption::int(
    "uncached",
    0,
    U32,
    "Use the page cache, but drop the pages after I/O (RWF_DONTCACHE)",
    "uncached=1",
)
.default("0")
.effect(OptionEffect::Uncached);

/// `io_uring`, `libaio`, `pvsync2`: an op that would block fails instead.
pub const NOWAIT: EngineOption = EngineOption::boolean(
    "nowait",
    "Fail ops that would block with EAGAIN (RWF_NOWAIT)",
    "nowait=1",
);

/// `io_uring_cmd`, `sg`: reads that pass a volatile cache.
pub(crate) const READFUA: EngineOption = EngineOption::boolean(
    "readfua",
    "Read from the medium, not from a volatile cache (FUA)",
    "readfua=1",
);

/// `io_uring_cmd`, `sg`: writes that pass a volatile cache.
pub(crate) const WRITEFUA: EngineOption = EngineOption::boolean(
    "writefua",
    "Complete a write when it is on the medium, not in a volatile cache (FUA)",
    "writefua=1",
);

/// Engines with a server: limit on calls that open or close.
pub const CONNECT_TIMEOUT: EngineOption = EngineOption::int(
    "connect_timeout",
    1,
    3600,
    "Seconds that a connection, or a command that sets one up, may take",
    "connect_timeout=10",
)
.default("10")
.different("not in fio");

/// Engines with a server: limit on its silence.
pub const REPLY_TIMEOUT: EngineOption = EngineOption::int(
    "reply_timeout",
    1,
    86_400,
    "Seconds without a byte from the server after which ops in flight fail",
    "reply_timeout=30",
)
.default("30")
.different("not in fio");

/// Upper bound of options that fio keeps in 32 bits.
pub(crate) const U32: u64 = u32::MAX as u64;
