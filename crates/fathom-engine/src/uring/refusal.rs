//! Remedies for a ring that the kernel does not create.

use fathom_core::{EngineError, EngineStep, Errno};
use fathom_sys::uring::{RING_ENTRIES_MAX, RingError};

use crate::EngineConfig;
use crate::error::no_memory;

/// Use of a ring, as far as it can be refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingUse {
    pub(crate) engine: &'static str,
    pub(crate) fixed_buffers: bool,
    pub(crate) kernel_thread_cpu: Option<u32>,
}

/// Refuses rings that no kernel creates.
pub(crate) fn check_ring(config: &EngineConfig, ring: &RingUse) -> Result<(), EngineError> {
    let refuse = |step, target: String, hint: &str| {
        Err(EngineError {
            step,
            target,
            errno: None,
            hint: hint.into(),
        })
    };
    if config.depth > RING_ENTRIES_MAX {
        let target = format!("a ring of {} entries", config.depth);
        let hint = "the kernel takes at most iodepth=32768";
        return refuse(EngineStep::SetUpRing, target, hint);
    }
    if ring.fixed_buffers && config.depth > FIXED_BUFFERS_MAX {
        let target = format!("{} buffers", config.depth);
        let hint = "the kernel takes at most iodepth=16384 with fixedbufs=1";
        return refuse(EngineStep::RegisterBuffers, target, hint);
    }
    Ok(())
}

/// Returns the error of a ring that could not be set up, with a remedy.
pub(crate) fn start_error(
    config: &EngineConfig,
    ring: &RingUse,
    refused: &RingError,
) -> EngineError {
    if refused.step == EngineStep::MapBuffers {
        return no_memory(config, &refused.error);
    }
    let errno = Errno::of(&refused.error);
    EngineError {
        step: refused.step,
        target: format!("engine `{}`", ring.engine),
        errno,
        hint: hint(refused.step, errno, config, ring, &io_uring_disabled()),
    }
}

/// Returns the remedy for an error, given the value of `kernel.io_uring_disabled`.
fn hint(
    step: EngineStep,
    errno: Option<Errno>,
    config: &EngineConfig,
    ring: &RingUse,
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
        (EngineStep::SetUpRing, Some(errno @ (Errno::EPERM | Errno::ENOSYS))) => {
            let place = if ring.engine == "io_uring" {
                ""
            } else {
                " on the block device"
            };
            let why = no_ring_because(errno, disabled);
            format!("{why} run with `--ioengine=libaio`{place}")
        }
        (EngineStep::SetUpRing, Some(Errno::ENOMEM)) => {
            "the ring must be locked in memory: raise `ulimit -l` or lower iodepth".into()
        }
        (EngineStep::SetUpRing, Some(Errno::EINVAL)) if ring.kernel_thread_cpu.is_some() => {
            "check that the processor of sqthread_poll_cpu exists and is online".into()
        }
        (EngineStep::SetUpRing, Some(Errno::EINVAL)) if ring.engine != "io_uring" => {
            "commands need Linux 5.19: run with `--ioengine=io_uring` on the block device".into()
        }
        _ => String::new(),
    }
}

/// IORING_MAX_REG_BUFFERS of the kernel.
const FIXED_BUFFERS_MAX: u32 = 16_384;

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
        _ => "this kernel lacks an io_uring with the features of Linux 5.11, or a container hides \
              it —"
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

    const RING: RingUse = RingUse {
        engine: "io_uring",
        fixed_buffers: false,
        kernel_thread_cpu: None,
    };

    #[track_caller]
    fn check_hint(step: EngineStep, errno: Errno, disabled: &str, want: &str) {
        let hint = hint(step, Some(errno), &config(), &RING, disabled);
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
                &RING,
                "0"
            ),
            ""
        );
    }
}
