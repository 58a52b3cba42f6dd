//! Default values of all options.

use fathom_core::{Batches, EngineValues, Nanos, OptionEffect, PerDirection, Storage};

use crate::placement::PlacementOptions;
use crate::plan::{
    BlockSize, ClockSource, ContinueOnError, CpuPolicy, Fallocate, Options, RandomDistribution,
    RandomGenerator, RateProcess, Size, Verify,
};
use crate::vocabulary::DEFAULT;
use crate::workload::{
    ContentOptions, FileOptions, FileService, MemoryOptions, OffloadKick, ReadWrite, ZoneOptions,
};

impl Default for Options {
    #[expect(clippy::too_many_lines, reason = "one line an option")]
    fn default() -> Self {
        Self {
            description: None,
            engine: &DEFAULT,
            kb_base: 1024,
            unit_base: 0,
            rw: ReadWrite::Read,
            random: false,
            rw_suffix: None,
            rw_identical: false,
            rwmixread: 50,
            block_sizes: PerDirection::all(BlockSize::Fixed(4096)),
            blockalign: PerDirection::all(None),
            bs_is_seq_rand: false,
            bs_unaligned: false,
            zones: ZoneOptions::default(),
            size: None,
            io_size: None,
            filesize: None,
            offset: Size::Bytes(0),
            offset_increment: Size::Bytes(0),
            number_ios: None,
            nrfiles: 1,
            file_service: FileService::RoundRobin(1),
            openfiles: None,
            files: FileOptions::default(),
            fill_device: false,
            memory: MemoryOptions::default(),
            serialize_overlap: false,
            offload: false,
            offload_kick: OffloadKick::Batch,
            rate_ignore_thinktime: false,
            filename: None,
            directory: None,
            filename_format: "$jobname.$jobnum.$filenum".to_owned(),
            numjobs: 1,
            placement: PlacementOptions::default(),
            thread: false,
            runtime: None,
            time_based: false,
            ramp_time: Nanos::ZERO,
            ramp_size: 0,
            startdelay: (Nanos::ZERO, Nanos::ZERO),
            loops: 1,
            stonewall: false,
            new_group: false,
            group_reporting: false,
            lifecycle: crate::lifecycle::LifecycleOptions::default(),
            iodepth: 1,
            iodepth_batch: 1,
            iodepth_batch_complete_min: 1,
            iodepth_batch_complete_max: 0,
            iodepth_low: 0,
            direct: false,
            sync: 0,
            norandommap: false,
            softrandommap: false,
            randrepeat: true,
            allrandrepeat: false,
            randseed: None,
            random_generator: RandomGenerator::Default,
            random_distribution: RandomDistribution::Random,
            access_zones: None,
            random_sequence: None,
            random_sequence_stride: false,
            percentage_random: PerDirection::all(100),
            rate: PerDirection::all(None),
            rate_iops: PerDirection::all(None),
            rate_min: PerDirection::all(None),
            rate_iops_min: PerDirection::all(None),
            rate_process: RateProcess::Linear,
            rate_cycle: Nanos::from_millis(1000),
            thinktime: Nanos::ZERO,
            thinktime_spin: Nanos::ZERO,
            thinkcycles: 0,
            thinktime_blocks: None,
            thinktime_blocks_issue: false,
            thinktime_iotime: Nanos::ZERO,
            fsync: 0,
            fdatasync: 0,
            end_fsync: false,
            fsync_on_close: false,
            fallocate: Fallocate::Native,
            create_serialize: true,
            create_fsync: true,
            create_on_open: false,
            create_only: false,
            allow_file_create: true,
            allow_mounted_write: false,
            unlink: false,
            overwrite: false,
            invalidate: true,
            pre_read: false,
            refill_buffers: false,
            refill_given: false,
            zero_buffers: false,
            scramble_buffers: None,
            buffer_pattern: None,
            buffer_pattern_text: None,
            content: ContentOptions::default(),
            verify: Verify::None,
            verification: crate::verification::VerificationOptions::default(),
            readback: crate::readback_options::ReadbackOptions::default(),
            do_verify: true,
            verify_pattern: None,
            verify_threads: 0,
            verify_cpus: None,
            verify_pattern_offsets: Vec::new(),
            verify_pattern_text: None,
            percentile_list: DEFAULT_PERCENTILES.to_vec(),
            percentile_precision: 2,
            clat_percentiles: true,
            lat_percentiles: false,
            slat_percentiles: false,
            disable_lat: false,
            disable_clat: false,
            disable_slat: false,
            disable_bw: false,
            gtod_reduce: false,
            clocksource: ClockSource::Default,
            gtod_cpu: None,
            continue_on_error: ContinueOnError::default(),
            stats: true,
            disk_util: true,
            significant_figures: 4,
            logs: crate::logs::LogOptions::default(),
            replay: crate::replay::ReplayOptions::default(),
            cpus_allowed: None,
            cpus_allowed_policy: CpuPolicy::Shared,
            nice: 0,
            prio: None,
            prioclass: None,
            priohint: None,
            ioscheduler: None,
            process: crate::process::ProcessOptions::default(),
            device: crate::device::DeviceOptions::default(),
            trims: crate::device::TrimOptions::default(),
            cmdprio_percentage: PerDirection::all(0),
            cmdprio_class: PerDirection::all(1),
            cmdprio: PerDirection::all(0),
            cmdprio_hint: PerDirection::all(0),
            cmdprio_bssplit: PerDirection::default(),
            engine_values: EngineValues::default(),
        }
    }
}

impl Options {
    /// Returns whether the job's engine performs one op after the other at this depth. Offload
    /// workers perform one each (`io_submit_mode=offload`).
    #[must_use]
    pub const fn is_synchronous(&self, depth: u32) -> bool {
        !self.offload && self.engine.synchronous.at_depth(depth)
    }

    /// Returns the `rw` of the ops that the job draws: its own, or what a dry run leaves out.
    #[must_use]
    pub fn drawn_rw(&self) -> ReadWrite {
        self.verification.dry_run.unwrap_or(self.rw)
    }

    /// Returns whether the job fills the device itself, so that its files need no layout.
    #[must_use]
    pub const fn fills(&self) -> bool {
        self.fill_device && matches!(self.rw, ReadWrite::Write)
    }

    /// Returns whether the job's engine holds ops back and completes them together.
    #[must_use]
    pub const fn gathers(&self) -> bool {
        !self.offload && self.engine.gathers
    }

    /// Returns whether each of the job's ops is submitted by itself, whatever `iodepth_batch` is.
    #[must_use]
    pub const fn submits_singly(&self) -> bool {
        self.batches_trims_alone() && !matches!(self.rw, ReadWrite::Trim)
    }

    /// Returns whether the job's engine makes one command of the ops that are submitted together.
    #[must_use]
    pub const fn unites_batches(&self) -> bool {
        self.batches_trims_alone() && matches!(self.rw, ReadWrite::Trim)
    }

    const fn batches_trims_alone(&self) -> bool {
        !self.offload && matches!(self.engine.batches, Batches::Trims)
    }

    /// Returns whether the job's data are in files or devices of this machine.
    #[must_use]
    pub const fn has_local_files(&self) -> bool {
        matches!(self.engine.storage, Storage::LocalFiles)
    }

    /// Returns whether the job's ops move data to or from storage, wherever it is.
    #[must_use]
    pub const fn moves_data(&self) -> bool {
        self.engine.moves_data()
    }

    /// Returns whether an option of the engine with this effect is on.
    #[must_use]
    pub fn has_effect(&self, effect: OptionEffect) -> bool {
        self.engine.has_effect(effect, &self.engine_values)
    }

    /// Returns whether the device chooses the place of each of the job's writes within its zone.
    #[must_use]
    pub fn appends_to_zones(&self) -> bool {
        let appends = self.engine.appends;
        appends.is_some_and(|appends| appends(&self.engine_values))
    }

    /// Returns whether the engine opens the job's files in its own way: on other machines, or as
    /// devices that take commands.
    #[must_use]
    pub const fn has_remote_files(&self) -> bool {
        matches!(self.engine.storage, Storage::Remote | Storage::Device)
    }

    /// Returns whether the engine sends commands to devices of this machine.
    #[must_use]
    pub const fn has_devices(&self) -> bool {
        matches!(self.engine.storage, Storage::Device)
    }

    /// Resets engine options, which belong to the engine chosen before.
    pub(crate) fn reset_engine_options(&mut self) {
        let fresh = Self::default();
        self.cmdprio_percentage = fresh.cmdprio_percentage;
        self.cmdprio_class = fresh.cmdprio_class;
        self.cmdprio = fresh.cmdprio;
        self.cmdprio_hint = fresh.cmdprio_hint;
        self.cmdprio_bssplit = fresh.cmdprio_bssplit;
        self.engine_values = fresh.engine_values;
    }
}

/// The list in fio's documentation.
const DEFAULT_PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];
