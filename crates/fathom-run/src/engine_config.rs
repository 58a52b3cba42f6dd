//! Engine configuration, derived from a job's options and setup.

use std::sync::Arc;

use fathom_core::OptionValue;
use fathom_engine::{EngineConfig, EngineFile, FileAdvice, JobFacts, Kick, Registration};
use fathom_job::{FadviseHint, Job, MemoryKind, OffloadKick, Options, StreamChoice, engine_files};
use fathom_setup::check::{placement, write_bytes, write_streams};
use fathom_setup::translate::JobSetup;
use fathom_sys::clock::Clock;
use fathom_sys::memory::MemoryPlacement;

use crate::file_locks::FileLocks;

/// Returns the engine configuration of one clone.
pub(crate) fn engine_config(
    job: &Job,
    setup: &JobSetup,
    engine: Registration,
    locks: &mut FileLocks,
    clock: Clock,
) -> EngineConfig {
    let options = &job.options;
    let verifies = setup.worker.verify.is_some();
    let each = setup.files.iter().map(|file| {
        let read = file.may_read(options) || verifies;
        (file, read, file.may_write(options))
    });
    let files = each.map(|(file, read, write)| EngineFile {
        path: file.path.clone(),
        read,
        write,
        // Never for a job that only reads: a new file would be empty.
        create: (options.create_on_open || options.fill_device || options.files.unlink_each_loop)
            && write
            && options.allow_file_create,
        recreate: options.files.unlink_each_loop && !options.verification.only,
        trims_reset_zones: setup.resets_by_trims(file),
        bytes: file.bytes,
        random: options.random,
    });
    let mut values = options.engine_values.clone();
    for (option, path) in engine_files(job, setup.place.clone) {
        values.set(option.name, OptionValue::Text(path));
    }
    EngineConfig {
        depth: setup.worker.depth,
        // At least 1: a job that only trims needs no buffer, but engines expect one.
        buffer_bytes: setup.buffer_bytes.max(1),
        files: files.collect(),
        direct: options.direct,
        sync_flag: options.sync,
        options: values,
        memory: memory(options),
        locks: locks.of(options, setup),
        advice: advice(options.files.fadvise_hint),
        write_hint: options.files.write_hint,
        keep_access_time: options.files.noatime,
        // Cannot be cut: a larger op has no buffer, which was refused.
        atomic_write_bytes: u32::try_from(write_bytes(options)).unwrap_or(u32::MAX),
        job: JobFacts {
            name: setup.name.clone(),
            clone: setup.place.clone,
            runtime: setup.worker.runtime,
        },
        write_streams: write_streams(setup).into_boxed_slice(),
        placement: placement(setup).map(Vec::into_boxed_slice),
        placement_ranges: Arc::clone(&setup.placement_ranges),
        trim_ranges: setup.worker.trim_ranges,
        random_streams: options.device.stream_choice == StreamChoice::Random,
        offload: options.offload.then(|| kick(options.offload_kick)),
        ..EngineConfig::new(engine, clock)
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

/// Returns the kind and location of the buffers.
fn memory(options: &Options) -> MemoryPlacement {
    let asked = &options.memory;
    MemoryPlacement {
        shared: matches!(asked.kind, MemoryKind::Shared | MemoryKind::SharedHuge),
        huge: match asked.kind {
            MemoryKind::Huge | MemoryKind::SharedHuge => asked.hugepage_size,
            MemoryKind::Private | MemoryKind::Shared => 0,
        },
        file: asked.file.clone().map(Into::into),
        shift: asked.align,
        buffers: None,
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
