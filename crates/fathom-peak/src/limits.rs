//! Checks of a configuration before any system call, and hints for the kernel's refusals.

use std::fs;

use fathom_core::{EngineError, EngineStep, Errno, Nanos};
use fathom_engine::options::HIPRI;
use fathom_engine::why_no_ring;
use fathom_sys::system::locked_memory_limit;
use fathom_sys::thread;
use fathom_sys::uring::RING_ENTRIES_MAX;

use crate::{PeakConfig, PeakEngine, PeakError};

/// Refuses contradictory settings and values beyond known kernel limits.
pub(crate) fn check(config: &PeakConfig) -> Result<(), PeakError> {
    check_numbers(config)?;
    check_combination(config)?;
    check_depth(config)?;
    check_processors(config)
}

fn check_numbers(config: &PeakConfig) -> Result<(), PeakError> {
    let numbers = [
        ("--depth", config.depth),
        // Set apart, or together as `--batch`.
        ("--submit or --batch", config.submit),
        ("--complete or --batch", config.complete),
        ("--block", config.block_bytes),
        ("--threads", config.threads),
    ];
    for (name, number) in numbers {
        if number == 0 {
            return Err(refuse(format!("{name}: must be at least 1"), ""));
        }
    }
    if config.duration == Nanos::ZERO {
        return Err(refuse("--seconds: must be more than 0", ""));
    }
    for (name, number) in &numbers[1..3] {
        if *number > config.depth {
            let what = format!("{name}: {number} is more than --depth {}", config.depth);
            return Err(refuse(what, format!("raise --depth, or lower {name}")));
        }
    }
    if config.threads > THREADS_MAX {
        let what = format!("--threads: {} is more than {THREADS_MAX}", config.threads);
        return Err(refuse(what, ""));
    }
    if config.block_bytes > BLOCK_BYTES_MAX {
        let what = format!("--block: more than {BLOCK_BYTES_MAX} B, the most that one call moves");
        return Err(refuse(what, ""));
    }
    Ok(())
}

fn check_combination(config: &PeakConfig) -> Result<(), PeakError> {
    let refuse = |what: &str, hint: &str| Err(refuse(what, hint));
    if config.targets.is_empty() && !config.nops {
        return refuse(
            "no target",
            "name a file or a device, or measure the ring with --nop",
        );
    }
    if config.nops && !config.targets.is_empty() {
        return refuse("--nop: takes no target", "leave out one of the two");
    }
    let engine = config.engine.name();
    if config.nops && config.engine != PeakEngine::Uring {
        return refuse(
            &format!("--nop: {engine} has no such op"),
            "use --engine io_uring",
        );
    }
    if config.engine == PeakEngine::Passthrough && config.buffered {
        return refuse(
            "--buffered: commands bypass the page cache",
            "leave out --passthrough or --buffered",
        );
    }
    if !config.engine.is_ring() && config.polled {
        return refuse(
            &format!("--polled: {engine} does not poll"),
            "use --engine io_uring",
        );
    }
    if config.engine == PeakEngine::Sync && config.depth > 1 {
        return refuse(
            "--depth: the synchronous engine does one op at a time",
            "leave out --depth, or raise --threads",
        );
    }
    if config.polled && config.buffered {
        return refuse(
            "--polled: the page cache is not polled",
            "leave out --buffered",
        );
    }
    if config.polled && config.nops {
        return refuse(
            "--polled: a no-op has no device to poll",
            "leave out --polled",
        );
    }
    Ok(())
}

fn check_depth(config: &PeakConfig) -> Result<(), PeakError> {
    let depth = config.depth;
    if config.engine.is_ring() && depth > RING_ENTRIES_MAX {
        let what = format!(
            "--depth: {depth} is more than a ring's {RING_ENTRIES_MAX} entries (IORING_MAX_ENTRIES \
             of the kernel)"
        );
        return Err(refuse(what, format!("lower it to {RING_ENTRIES_MAX}")));
    }
    let fixed = config.engine.is_ring() && config.fixed_buffers && !config.nops;
    if fixed && depth > FIXED_BUFFERS_MAX {
        let what = format!(
            "--depth: {depth} is more than the {FIXED_BUFFERS_MAX} buffers that can be \
             registered (IORING_MAX_REG_BUFFERS of the kernel)"
        );
        let hint = format!("lower it to {FIXED_BUFFERS_MAX}, or add --no-fixed");
        return Err(refuse(what, hint));
    }
    Ok(())
}

fn check_processors(config: &PeakConfig) -> Result<(), PeakError> {
    let Some(first) = config.cpu else {
        return Ok(());
    };
    let allowed = thread::allowed_cpus().unwrap_or_default();
    // u64: the last thread's CPU number may exceed u32.
    let mut wanted = (0..config.threads).map(|number| u64::from(first) + u64::from(number));
    let is_missing = |cpu: &u64| !allowed.iter().any(|&allowed| u64::from(allowed) == *cpu);
    wanted.find(is_missing).map_or(Ok(()), |cpu| {
        let list: Vec<String> = allowed.iter().map(u32::to_string).collect();
        let what = format!("--cpu: CPU {cpu} is outside this process's affinity mask");
        Err(refuse(what, format!("choose among {}", list.join(", "))))
    })
}

fn refuse(message: impl Into<String>, hint: impl Into<String>) -> PeakError {
    PeakError::Config {
        message: message.into(),
        hint: hint.into(),
    }
}

/// Adds the hint that fits this command to an engine's error.
pub(crate) fn explain(source: EngineError, config: &PeakConfig) -> PeakError {
    PeakError::Engine {
        engine: config.engine.name(),
        hint: hint(&source, config),
        source,
    }
}

fn hint(error: &EngineError, config: &PeakConfig) -> String {
    let depth = config.depth;
    match (error.step, error.errno) {
        (EngineStep::SetUpContext, Some(Errno::EAGAIN)) => format!(
            "fs.aio-max-nr is {} on this machine, of which {} are taken, and --depth {depth} with \
             {} threads needs at least {}: raise that sysctl, or lower --depth",
            sysctl("aio-max-nr"),
            sysctl("aio-nr"),
            config.threads,
            u64::from(depth) * u64::from(config.threads),
        ),
        (EngineStep::SetUpContext, Some(Errno::EINVAL)) => {
            format!("--depth {depth} is more than the kernel lays a ring out for: lower it")
        }
        (EngineStep::RegisterBuffers | EngineStep::SetUpRing, Some(Errno::ENOMEM)) => format!(
            "{} KiB of buffers, and the rings beside them, must be locked in memory, and \
             `ulimit -l` allows {} to all programs of a user: raise it, lower --depth, --block or \
             --threads, or add --no-fixed",
            u64::from(depth) * u64::from(config.block_bytes) * u64::from(config.threads) / 1024,
            locked_memory_limit().map_or_else(
                || "any amount".into(),
                |bytes| format!("{} KiB", bytes / 1024)
            ),
        ),
        (_, Some(Errno::EMFILE)) => {
            "each thread takes a ring and its targets: raise `ulimit -n`, or lower --threads".into()
        }
        (EngineStep::MapBuffers, _) => "lower --depth or --block".into(),
        (step, _) if is_polled_option(step) => {
            "the device has no polled queues: leave out --polled, or give its driver \
                         some (nvme: module parameter poll_queues=N; see queue/io_poll in /sys)"
                .into()
        }
        (EngineStep::Open, Some(Errno::EINVAL)) => {
            "this filesystem does not take direct I/O: add --buffered, or use another one".into()
        }
        (EngineStep::SetUpRing, Some(errno @ (Errno::EPERM | Errno::ENOSYS))) => {
            format!("{} use `--engine libaio`", why_no_ring(errno))
        }
        _ => error.hint.clone(),
    }
}

/// Returns true for the step of applying the engine's option for `--polled`.
pub(crate) fn is_polled_option(step: EngineStep) -> bool {
    step == EngineStep::Option(HIPRI.name)
}

fn sysctl(name: &str) -> String {
    let value = fs::read_to_string(format!("/proc/sys/fs/{name}"));
    value.map_or_else(|_| "?".into(), |value| value.trim().into())
}

/// `IORING_MAX_REG_BUFFERS` of the kernel.
const FIXED_BUFFERS_MAX: u32 = 16_384;

/// A system call moves at most 2 GiB less a page; the largest power of two below that.
const BLOCK_BYTES_MAX: u32 = 1 << 30;

/// CPUs of the largest machines (guess).
const THREADS_MAX: u32 = 4_096;
