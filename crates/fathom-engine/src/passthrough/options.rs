//! Options of `io_uring_cmd`.

use fathom_core::{EngineError, EngineOption, EngineValues, OptionEffect};

use super::write_modes::{WRITE_MODE, WriteMode, WriteModes, word};
use crate::config::EngineConfig;
use crate::error::refused_value;
use crate::options::{
    FIXEDBUFS, FORCE_ASYNC, HIPRI, NONVECTORED, READFUA, REGISTERFILES, SQTHREAD_POLL,
    SQTHREAD_POLL_CPU, WRITEFUA,
};
use crate::protection::{APPTAG, APPTAG_MASK, MD_PER_IO_SIZE, PI_ACT, PI_CHK, ProtectionOptions};

/// Options of the engine, in the order of help texts.
pub(super) const ALL: &[EngineOption] = &[
    CMD_TYPE,
    HIPRI,
    FIXEDBUFS,
    REGISTERFILES,
    SQTHREAD_POLL,
    SQTHREAD_POLL_CPU,
    NONVECTORED,
    FORCE_ASYNC,
    READFUA,
    WRITEFUA,
    DSM,
    WRITE_MODE,
    VERIFY_MODE,
    DEAC,
    MD_PER_IO_SIZE,
    PI_ACT,
    PI_CHK,
    APPTAG,
    APPTAG_MASK,
];

const CMD_TYPE: EngineOption = EngineOption::choice(
    "cmd_type",
    &[word("nvme", "commands of the NVM command set")],
    "Commands to pass through",
    "cmd_type=nvme",
)
.default("nvme");

const DSM: EngineOption = EngineOption::int(
    "dsm",
    0,
    0xff,
    "Dataset management field of reads and writes: bits 3:0 access frequency, 5:4 latency, 6 \
     sequential, 7 incompressible",
    "dsm=0x40",
)
.default("0");

pub(super) const VERIFY_MODE: EngineOption = EngineOption::choice(
    "verify_mode",
    &[
        word("read", "Read"),
        word("compare", "Compare, by the device; needs `verify=pattern`"),
    ],
    "Command that reads back what `verify` checks",
    "verify_mode=compare",
)
.default("read")
.effect(OptionEffect::ComparedReadback)
.different("blocks that fail the comparison are read, so that the error names the byte");

const DEAC: EngineOption = EngineOption::boolean(
    "deac",
    "Ask Write Zeroes to deallocate the blocks (`write_mode=zeroes`)",
    "deac=1",
);

/// Options of a job, resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) fixed_buffers: bool,
    pub(super) fixed_files: bool,
    pub(super) kernel_thread: bool,
    pub(super) kernel_thread_cpu: Option<u32>,
    pub(super) polled: bool,
    pub(super) vectored: bool,
    pub(super) force_async: u32,
    pub(super) read_fua: bool,
    pub(super) write_fua: bool,
    pub(super) dsm: u8,
    pub(super) write_modes: WriteModes,
    /// The device compares what is verified.
    pub(super) compares: bool,
    pub(super) deallocate: bool,
    pub(super) protection: ProtectionOptions,
}

impl Options {
    /// Returns the options of a job. Its `sync` asks for FUA, too: no open flag reaches commands.
    pub(super) fn of(config: &EngineConfig) -> Result<Self, EngineError> {
        let options = Self::resolve(&config.options)?;
        Ok(Self {
            write_fua: options.write_fua || config.syncs_writes(),
            ..options
        })
    }

    /// Resolves the values of a job's own options.
    pub(super) fn resolve(values: &EngineValues) -> Result<Self, EngineError> {
        let number = |option| values.number(option).and_then(|n| u32::try_from(n).ok());
        Ok(Self {
            fixed_buffers: values.flag(&FIXEDBUFS),
            fixed_files: values.flag(&REGISTERFILES),
            kernel_thread: values.flag(&SQTHREAD_POLL),
            kernel_thread_cpu: number(&SQTHREAD_POLL_CPU),
            polled: values.flag(&HIPRI),
            vectored: values.number(&NONVECTORED) == Some(0),
            force_async: number(&FORCE_ASYNC).unwrap_or(0),
            read_fua: values.flag(&READFUA),
            write_fua: values.flag(&WRITEFUA),
            dsm: values
                .number(&DSM)
                .and_then(|n| u8::try_from(n).ok())
                .unwrap_or(0),
            write_modes: WriteModes::resolve(values),
            compares: values.text(&VERIFY_MODE) == Some("compare"),
            deallocate: values.flag(&DEAC),
            protection: ProtectionOptions::resolve(values)?,
        })
    }
}

impl Options {
    /// Refuses options that exclude each other.
    pub(super) fn check(&self) -> Result<(), EngineError> {
        let transfers = self.write_modes.used().all(WriteMode::transfers_data);
        match self.polled && !transfers {
            true => {
                let hint = "polled queues take commands with data alone: leave out hipri";
                Err(refused_value(
                    WRITE_MODE.name,
                    "engine `io_uring_cmd`".into(),
                    hint,
                ))
            }
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use fathom_sys::clock::Clock;

    use super::*;

    #[test]
    fn writes_of_jobs_with_sync_have_the_bit() {
        let mut config = EngineConfig::new(crate::passthrough::REGISTRATION, Clock::stopped());
        assert!(!Options::of(&config).unwrap().write_fua);
        for flag in [1, 2] {
            config.sync_flag = flag;
            assert!(Options::of(&config).unwrap().write_fua);
        }
    }

    #[test]
    fn defaults_are_those_of_the_table() {
        let options = Options::resolve(&EngineValues::default()).unwrap();
        assert!(!options.vectored);
        assert!(!options.compares);
    }

    #[test]
    fn polled_queues_take_commands_with_data() {
        let polled = |mode| Options {
            polled: true,
            write_modes: WriteModes::only(mode),
            ..Options::resolve(&EngineValues::default()).unwrap()
        };
        assert_eq!(polled(WriteMode::Compare).check(), Ok(()));
        let error = polled(WriteMode::Zeroes).check().unwrap_err();
        assert_eq!(error.to_string(), "write_mode: engine `io_uring_cmd`");
    }
}
