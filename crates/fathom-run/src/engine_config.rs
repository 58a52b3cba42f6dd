//! What a job's engine is told, from its options and its setup.

use fathom_core::Direction;
use fathom_engine::{EngineConfig, EngineFile, EngineOptions, FileAdvice, Kick};
use fathom_job::{FadviseHint, Job, MemoryKind, OffloadKick, Options};
use fathom_setup::translate::JobSetup;
use fathom_setup::translate::pattern::{uses, writes};
use fathom_sys::clock::Clock;
use fathom_sys::memory::Memory;

use crate::file_locks::FileLocks;

/// The configuration of one clone's engine.
pub(crate) fn engine_config(
    job: &Job,
    setup: &JobSetup,
    locks: &mut FileLocks,
    clock: Clock,
) -> EngineConfig {
    let options = &job.options;
    let verifies = setup.worker.verify.is_some();
    let (read, write) = (uses(options, Direction::Read) || verifies, writes(options));
    let files = setup.files.iter().map(|file| EngineFile {
        path: file.path.clone(),
        read,
        write,
        // A job that only reads has nothing to put into a file that is not there.
        create: (options.create_on_open || options.fill_device || options.files.unlink_each_loop)
            && write
            && options.allow_file_create,
        renew: options.files.unlink_each_loop,
        bytes: file.bytes,
        random: options.random,
    });
    EngineConfig {
        name: options.ioengine.clone(),
        depth: setup.worker.depth,
        // A job that only trims moves no data, and has a byte all the same.
        buffer_bytes: setup.buffer_bytes.max(1),
        files: files.collect(),
        direct: options.direct,
        sync_flag: options.sync,
        options: EngineOptions {
            locks: locks.of(options, setup),
            ..engine_options(options)
        },
        clock,
    }
}

fn engine_options(options: &Options) -> EngineOptions {
    EngineOptions {
        fixedbufs: options.fixedbufs,
        registerfiles: options.registerfiles,
        sqthread_poll: options.sqthread_poll,
        sqthread_poll_cpu: options.sqthread_poll_cpu,
        hipri: options.hipri,
        nonvectored: options.nonvectored,
        force_async: options.force_async,
        uncached: options.uncached,
        userspace_reap: options.userspace_reap,
        nowait: options.nowait,
        vectored: options.libaio_vectored,
        hipri_percentage: options.hipri_percentage,
        huge_pages: options.thp,
        memory: memory(options),
        advice: advice(options.files.fadvise_hint),
        write_hint: options.files.write_hint,
        offload: options.offload.then(|| kick(options.offload_kick)),
        ..EngineOptions::default()
    }
}

const fn kick(kick: OffloadKick) -> Kick {
    match kick {
        OffloadKick::Batch => Kick::Batch,
        OffloadKick::Each => Kick::Each,
        OffloadKick::Delayed => Kick::Delayed,
        OffloadKick::Reap => Kick::Reap,
    }
}

/// Where the buffers lie.
fn memory(options: &Options) -> Memory {
    let asked = &options.memory;
    Memory {
        shared: matches!(asked.kind, MemoryKind::Shared | MemoryKind::SharedHuge),
        huge: match asked.kind {
            MemoryKind::Huge | MemoryKind::SharedHuge => asked.hugepage_size,
            MemoryKind::Private | MemoryKind::Shared => 0,
        },
        file: asked.file.clone().map(Into::into),
        shift: asked.align,
        turns: None,
    }
}

const fn advice(hint: FadviseHint) -> FileAdvice {
    match hint {
        FadviseHint::ByOrder => FileAdvice::ByOrder,
        FadviseHint::None => FileAdvice::None,
        FadviseHint::Sequential => FileAdvice::Sequential,
        FadviseHint::Random => FileAdvice::Random,
        FadviseHint::NoReuse => FileAdvice::NoReuse,
    }
}
