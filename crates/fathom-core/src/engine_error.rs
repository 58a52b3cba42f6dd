//! Failure of an engine as a whole, and the step at which it failed.

use std::fmt;

use crate::Errno;

/// Failure of an engine as a whole. Failed ops are completions instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineError {
    /// Failed step.
    pub step: EngineStep,
    /// File or engine on which it failed.
    pub target: String,
    /// Errno of the system call; `None` if no call failed.
    pub errno: Option<Errno>,
    /// Remedy for the user, in the imperative; empty if none is known.
    pub hint: String,
}

/// Step of an engine that can fail, to match on where the remedy depends on it.
///
/// `Display` gives the system call's name where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineStep {
    /// Mapping the buffers.
    MapBuffers,
    /// Creating an `io_uring`.
    SetUpRing,
    /// Registering the buffers with the kernel.
    RegisterBuffers,
    /// Registering the files with the kernel.
    RegisterFiles,
    /// Creating a context of Linux's native asynchronous I/O.
    SetUpContext,
    /// Starting a worker thread.
    StartWorker,
    /// Opening a file.
    Open,
    /// Applying an option, by its name in job files or on the command line.
    Option(&'static str),
    /// Any other system call or step, by its name. Code that has to recognise one gives it a
    /// variant.
    Call(&'static str),
    /// None: a bug.
    Internal,
}

impl EngineStep {
    const fn name(self) -> &'static str {
        match self {
            Self::MapBuffers => "map buffers",
            Self::SetUpRing => "io_uring_setup",
            Self::RegisterBuffers => "register buffers",
            Self::RegisterFiles => "register files",
            Self::SetUpContext => "io_setup",
            Self::StartWorker => "start worker",
            Self::Open => "open",
            Self::Option(name) | Self::Call(name) => name,
            Self::Internal => "internal error",
        }
    }
}

impl fmt::Display for EngineStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step, self.target)?;
        if let Some(errno) = self.errno {
            write!(f, ": {}", std::io::Error::from(errno))?;
        }
        Ok(())
    }
}

impl std::error::Error for EngineError {}
