//! Errors that several engines share.

use std::io;

use fathom_core::{EngineError, EngineStep, Errno};

use crate::EngineConfig;

/// Returns the error of buffers that could not be allocated.
pub(crate) fn no_memory(config: &EngineConfig, error: &io::Error) -> EngineError {
    let bytes = u64::from(config.depth) * u64::from(config.buffer_bytes);
    EngineError {
        step: EngineStep::MapBuffers,
        target: format!("{bytes} bytes for engine `{}`", config.name()),
        errno: Errno::of(error),
        hint: match (&config.memory.file, config.memory.huge) {
            (Some(path), _) if error.kind() == io::ErrorKind::StorageFull => {
                format!(
                    "make room for them on the file system of {}",
                    path.display()
                )
            }
            (Some(path), _) => format!("name a file that can be mapped, not {}", path.display()),
            (None, 1..) => "reserve huge pages (sysctl vm.nr_hugepages), or leave out `mem`".into(),
            (None, 0) => "lower iodepth or bs".into(),
        },
    }
}

/// Returns the error of a value that an option does not take.
pub(crate) fn refused_value(option: &'static str, value: String, hint: &str) -> EngineError {
    EngineError {
        step: EngineStep::Option(option),
        target: value,
        errno: None,
        hint: hint.into(),
    }
}

/// Returns the error of a queue that the kernel no longer serves.
pub(crate) fn broken(call: &'static str, engine: &str, error: &io::Error) -> EngineError {
    EngineError {
        step: EngineStep::Call(call),
        target: format!("engine `{engine}`"),
        errno: Errno::of(error),
        hint: String::new(),
    }
}
