//! Kinds of problems that prevent a run, and their stable codes.

macro_rules! problem_kinds {
    ($($(#[doc = $doc:literal])+ $kind:ident = $code:literal,)*) => {
        /// Kind of a problem that prevents a run: what callers match on.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ProblemKind {
            $($(#[doc = $doc])+ $kind,)*
        }

        impl ProblemKind {
            /// Returns the stable code of the kind, for diagnostics and records.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self {
                    $(Self::$kind => $code,)*
                }
            }
        }
    };
}

problem_kinds! {
    // Options of the plan.
    /// The agreed start is past, or too far ahead.
    StartTime = "start_time",
    /// An option for ranks that talk to each other, for one that does not.
    NoPeers = "no_peers",
    /// Another rank refused the plan, or was lost before the jobs began.
    OtherRank = "other_rank",
    /// The plan has no job.
    NoJobs = "no_jobs",
    /// Options of a job exclude each other.
    Contradiction = "contradiction",
    /// An output of the run would replace data of its jobs, or a log that they replay.
    OutputIsInput = "output_is_input",
    /// The worker of a modelled job rejects its configuration.
    JobMakesNoSense = "job_makes_no_sense",
    /// A job has no size, and no file that has one.
    NoSize = "no_size",
    /// A job has no files.
    NoFiles = "no_files",
    /// A size is a percentage of a file that does not exist.
    PercentOfNothing = "percent_of_nothing",
    /// An offset is beyond the end of its file.
    OffsetBehindEnd = "offset_behind_end",
    /// Sizes add up to more than 64 bits.
    SizeTooLarge = "size_too_large",
    /// `fill_device` without a size, for a job that does not write.
    FillDevice = "fill_device",
    /// `zonemode=zbd` for a file without zones.
    NoZones = "no_zones",
    /// A directory of `opendir` has no files.
    DirectoryWithoutFiles = "directory_without_files",
    /// A block size of 4 GiB or more.
    BlockSizeTooLarge = "block_size_too_large",
    /// A block size above the job's range of a file.
    BlockSizeBeyondFile = "block_size_beyond_file",
    /// A direct op is not a multiple of the logical block.
    UnalignedBlockSize = "unaligned_block_size",
    /// The offset of direct ops is not a multiple of the logical block.
    UnalignedOffset = "unaligned_offset",
    /// A device has no write streams, or not those that a job names.
    NoWriteStreams = "no_write_streams",
    /// The file of `dp_scheme` cannot be read, or has a wrong line.
    PlacementScheme = "placement_scheme",
    /// A device to be trimmed discards nothing.
    NoTrims = "no_trims",
    /// The storage of a file does not store a job's writes whole.
    NotAtomic = "not_atomic",
    /// A bandwidth and an IOPS rate for one direction.
    TwoRates = "two_rates",
    /// Jobs of one group differ in their steady-state rules.
    SteadyRulesDiffer = "steady_rules_differ",
    /// The steady-state check interval is below one second.
    SteadyIntervalTooShort = "steady_interval_too_short",
    /// The steady-state window is not a multiple of its interval.
    SteadyWindowUneven = "steady_window_uneven",
    /// The window of the steady state has too many intervals.
    SteadyWindowTooLong = "steady_window_too_long",
    /// `verify` with an option that does not fit it.
    VerifyByOrder = "verify_by_order",
    /// Blocks too small for a verification header and a payload.
    VerifyBlocksTooSmall = "verify_blocks_too_small",
    /// More blocks to track for `verify` than `verify_map_limit` allows.
    VerifyMapTooLarge = "verify_map_too_large",
    /// `verify=pattern` without a pattern.
    NoVerifyPattern = "no_verify_pattern",
    /// A verify state that cannot be loaded, or is of other data.
    VerifyState = "verify_state",
    /// `--aux-path` is not a directory.
    NoAuxPath = "no_aux_path",

    // Files and devices.
    /// `--readonly` forbids what the job does.
    ReadOnly = "read_only",
    /// A file that a job reads is missing or too short, and `--readonly` forbids its layout.
    ReadOnlyLayout = "read_only_layout",
    /// `--no-exec` forbids a command of the job.
    NoExec = "no_exec",
    /// A file is missing and `allow_file_create=0` forbids creating it.
    FileCreateForbidden = "file_create_forbidden",
    /// A block device that the kernel does not write.
    WriteProtected = "write_protected",
    /// No such name under /dev.
    NoSuchDevice = "no_such_device",
    /// A regular file under /dev.
    FileAmongDevices = "file_among_devices",
    /// A device in use, or a file that backs one.
    DeviceInUse = "device_in_use",
    /// A character device that is not known to be safe.
    HarmfulDevice = "harmful_device",
    /// A file of procfs, sysfs or another kernel interface.
    KernelInterface = "kernel_interface",
    /// A pipe or a socket.
    NoOffsets = "no_offsets",
    /// A directory in place of a file.
    IsADirectory = "is_a_directory",
    /// A file in place of a directory.
    NotADirectory = "not_a_directory",
    /// Something other than a regular file where one is laid out.
    NotAFile = "not_a_file",
    /// A `directory` that does not exist.
    NoDirectory = "no_directory",
    /// A directory in which no file can be created.
    DirectoryNotWritable = "directory_not_writable",
    /// A log to replay cannot be read or is wrong somewhere.
    ReplayLog = "replay_log",
    /// The metadata of a file cannot be read.
    FileUnreadable = "file_unreadable",
    /// A stop request ended the wait for a remote host.
    LookUpInterrupted = "look_up_interrupted",
    /// A file cannot be opened as the job needs it.
    FileClosedToUs = "file_closed_to_us",

    // This machine and its resources.
    /// A job asks its engine for what the engine does not do.
    EngineCannot = "engine_cannot",
    /// An engine cannot be started.
    EngineRefused = "engine_refused",
    /// A feature that this program was built without.
    NotBuiltIn = "not_built_in",
    /// More asynchronous ops than the kernel allows in the whole system.
    TooMuchAio = "too_much_aio",
    /// Buffers beyond the available memory.
    TooMuchMemory = "too_much_memory",
    /// A CPU that the machine does not have.
    NoSuchCpu = "no_such_cpu",
    /// A NUMA node that the machine does not have.
    NoSuchNode = "no_such_node",
    /// `gtod_cpu` names a CPU that cannot be used.
    GtodCpu = "gtod_cpu",
    /// A control group name that cannot be used.
    BadCgroup = "bad_cgroup",
    /// No control groups of version 1.
    NoCgroups = "no_cgroups",
    /// A clock that the kernel does not have.
    NoSuchClock = "no_such_clock",
    /// The CPU's clock is not reliable on this machine.
    ClockNotTrusted = "clock_not_trusted",
    /// An I/O scheduler that the device does not offer.
    NoSuchScheduler = "no_such_scheduler",
    /// `--trace` cannot work here, or not with this job.
    NotTraceable = "not_traceable",
    /// A log cannot be created or written.
    LogNotWritable = "log_not_writable",
    /// More logs than files may be open.
    TooManyLogs = "too_many_logs",
    /// The log writer cannot be started.
    LogWriter = "log_writer",
    /// Not enough space to lay out the files.
    NoRoom = "no_room",
    /// A system call of the layout failed.
    LayoutFailed = "layout_failed",
    /// The user stopped the layout.
    LayoutInterrupted = "layout_interrupted",

    // Modelled machines.
    /// A machine file cannot be read.
    MachineUnreadable = "machine_unreadable",
    /// A machine file is not TOML.
    MachineNotToml = "machine_not_toml",
    /// A table of a machine file lacks a key.
    MachineMissingKey = "machine_missing_key",
    /// A key that machine files do not have.
    MachineUnknownKey = "machine_unknown_key",
    /// A value of the wrong type or outside its range.
    MachineBadValue = "machine_bad_value",
    /// Values of a machine file contradict each other.
    MachineMakesNoSense = "machine_makes_no_sense",
    /// A modelled run of an engine without block I/O.
    NullHasNoModel = "null_has_no_model",
    /// A file without a modelled device.
    NoModel = "no_model",
    /// A modelled device without a file.
    UnusedModel = "unused_model",
    /// A modelled device smaller than its files.
    ModelTooSmall = "model_too_small",
    /// A direction without recorded latencies.
    NotRecorded = "not_recorded",
    /// A record without a job that can be modelled.
    NothingRecorded = "nothing_recorded",
    /// A recorded job without a latency histogram.
    NoHistogram = "no_histogram",
    /// No modelled job can continue.
    Stuck = "stuck",
}

impl ProblemKind {
    /// Returns whether fio detects the problem when the job starts, and runs the other jobs.
    #[must_use]
    pub const fn is_of_one_job(self) -> bool {
        matches!(
            self,
            Self::FileCreateForbidden
                | Self::FileClosedToUs
                | Self::IsADirectory
                | Self::NotADirectory
                | Self::DirectoryNotWritable
                | Self::ReadOnlyLayout
                | Self::NoSize
                | Self::PercentOfNothing
                | Self::OffsetBehindEnd
                | Self::UnalignedBlockSize
                | Self::UnalignedOffset
        )
    }
}
