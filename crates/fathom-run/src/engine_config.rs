//! What a job's engine is told, from its options and its setup.

use fathom_core::Direction;
use fathom_engine::{EngineConfig, EngineFile, EngineOptions};
use fathom_job::{Job, Options};
use fathom_sys::clock::Clock;

use crate::check::writes;
use crate::translate::JobSetup;
use crate::translate::pattern::uses;

/// The configuration of one clone's engine.
pub(crate) fn engine_config(job: &Job, setup: &JobSetup, clock: Clock) -> EngineConfig {
    let options = &job.options;
    let verifies = setup.worker.verify.is_some();
    let (read, write) = (uses(options, Direction::Read) || verifies, writes(job));
    let files = setup.files.iter().map(|file| EngineFile {
        path: file.path.clone(),
        read,
        write,
        // A job that only reads has nothing to put into a file that is not there.
        create: options.create_on_open && write,
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
        options: engine_options(options),
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
        ..EngineOptions::default()
    }
}
