//! Remedies for a ring that the kernel does not create.

use fathom_core::{EngineError, EngineStep, Errno};
use fathom_sys::uring::RingError;

use super::Options;
use crate::EngineConfig;
use crate::error::no_memory;

/// Returns the error of a ring that could not be set up, with a remedy.
pub(super) fn start_error(
    config: &EngineConfig,
    options: Options,
    refused: &RingError,
) -> EngineError {
    if refused.step == EngineStep::MapBuffers {
        return no_memory(config, &refused.error);
    }
    let errno = Errno::of(&refused.error);
    EngineError {
        step: refused.step,
        target: "engine `io_uring`".into(),
        errno,
        hint: hint(refused.step, errno, config, options, &io_uring_disabled()),
    }
}

/// Returns the remedy for an error, given the value of `kernel.io_uring_disabled`.
fn hint(
    step: EngineStep,
    errno: Option<Errno>,
    config: &EngineConfig,
    options: Options,
    disabled: &str,
) -> String {
    match (step, errno) {
        (EngineStep::RegisterBuffers, Some(Errno::ENOMEM)) => format!(
            "{} KiB must be locked in memory: raise `ulimit -l`, lower iodepth or bs, or leave out \
             fixedbufs",
            u64::from(config.depth) * u64::from(config.buffer_bytes) / 1024
        ),
        (EngineStep::RegisterFiles, Some(Errno::EMFILE)) => {
            "more files than the process may open: raise `ulimit -n`, or leave out registerfiles"
                .into()
        }
        (EngineStep::SetUpRing, Some(errno @ (Errno::EPERM | Errno::ENOSYS))) => format!(
            "{} run with `--ioengine=libaio`",
            no_ring_because(errno, disabled)
        ),
        (EngineStep::SetUpRing, Some(Errno::ENOMEM)) => {
            "the ring must be locked in memory: raise `ulimit -l` or lower iodepth".into()
        }
        (EngineStep::SetUpRing, Some(Errno::EINVAL)) if options.kernel_thread_cpu.is_some() => {
            "check that the processor of sqthread_poll_cpu is there and online".into()
        }
        _ => String::new(),
    }
}

/// Returns the reason why this kernel creates no ring (EPERM or ENOSYS), and what would change it.
#[must_use]
pub fn why_no_ring(errno: Errno) -> String {
    no_ring_because(errno, &io_uring_disabled())
}

fn no_ring_because(errno: Errno, disabled: &str) -> String {
    match (errno, disabled) {
        (Errno::EPERM, "1" | "2") => {
            format!("kernel.io_uring_disabled is {disabled} on this machine — set it to 0, or")
        }
        (Errno::EPERM, _) => {
            "a security policy (seccomp, in a container) forbids io_uring — allow it, or".into()
        }
        _ => "this kernel has no io_uring that will do (Linux 5.11 has; a container may hide it) —"
            .into(),
    }
}

/// Returns the value of the sysctl `kernel.io_uring_disabled`; empty if there is none.
fn io_uring_disabled() -> String {
    let value = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
    value.map_or_else(|_| String::new(), |value| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use fathom_core::EngineValues;
    use fathom_sys::clock::Clock;

    use super::*;
    use crate::built_in;

    fn config() -> EngineConfig {
        EngineConfig {
            depth: 64,
            buffer_bytes: 1 << 20,
            ..EngineConfig::new(built_in("io_uring"), Clock::monotonic())
        }
    }

    fn options() -> Options {
        Options::from(&EngineValues::default())
    }

    #[track_caller]
    fn check_hint(step: EngineStep, errno: Errno, disabled: &str, want: &str) {
        let hint = hint(step, Some(errno), &config(), options(), disabled);
        assert!(hint.contains(want), "{hint}");
    }

    #[test]
    fn a_refusal_says_what_would_help() {
        check_hint(
            EngineStep::SetUpRing,
            Errno::EPERM,
            "2",
            "io_uring_disabled is 2",
        );
        check_hint(
            EngineStep::SetUpRing,
            Errno::EPERM,
            "1",
            "io_uring_disabled is 1",
        );
        check_hint(EngineStep::SetUpRing, Errno::EPERM, "0", "seccomp");
        check_hint(EngineStep::SetUpRing, Errno::EPERM, "", "--ioengine=libaio");
        check_hint(EngineStep::SetUpRing, Errno::ENOSYS, "", "5.11");
        check_hint(
            EngineStep::RegisterBuffers,
            Errno::ENOMEM,
            "0",
            "65536 KiB must be locked",
        );
        assert_eq!(
            hint(
                EngineStep::SetUpRing,
                Some(Errno::EINVAL),
                &config(),
                options(),
                "0"
            ),
            ""
        );
    }
}
