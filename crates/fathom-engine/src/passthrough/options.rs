//! Options of `io_uring_cmd`.

use fathom_core::{EngineError, EngineOption, EngineValues, OptionWord};
use fathom_nvme::Opcode;

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

const WRITE_MODE: EngineOption = EngineOption::choice(
    "write_mode",
    &[
        word("write", "Write"),
        word("zeroes", "Write Zeroes, which transfers no data"),
        word("uncor", "Write Uncorrectable: later reads fail"),
        word(
            "verify",
            "Verify, which reads on the device and transfers nothing",
        ),
        word(
            "compare",
            "Compare, which fails if the device has other data (not in fio)",
        ),
    ],
    "Command of the job's writes",
    "write_mode=zeroes",
)
.default("write");

const DEAC: EngineOption = EngineOption::boolean(
    "deac",
    "Ask Write Zeroes to deallocate the blocks (`write_mode=zeroes`)",
    "deac=1",
);

const fn word(word: &'static str, help: &'static str) -> OptionWord {
    OptionWord { word, help }
}

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
    pub(super) write_mode: WriteMode,
    pub(super) deallocate: bool,
    pub(super) protection: ProtectionOptions,
}

/// Command of a job's writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteMode {
    Write,
    Zeroes,
    Uncorrectable,
    Verify,
    Compare,
}

impl WriteMode {
    pub(super) const fn opcode(self) -> Opcode {
        match self {
            Self::Write => Opcode::WRITE,
            Self::Zeroes => Opcode::WRITE_ZEROES,
            Self::Uncorrectable => Opcode::WRITE_UNCORRECTABLE,
            Self::Verify => Opcode::VERIFY,
            Self::Compare => Opcode::COMPARE,
        }
    }

    /// Returns whether the command has data, to which the controller's MDTS applies.
    pub(super) const fn transfers_data(self) -> bool {
        matches!(self, Self::Write | Self::Compare)
    }
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
            write_mode: match values.text(&WRITE_MODE) {
                Some("zeroes") => WriteMode::Zeroes,
                Some("uncor") => WriteMode::Uncorrectable,
                Some("verify") => WriteMode::Verify,
                Some("compare") => WriteMode::Compare,
                _ => WriteMode::Write,
            },
            deallocate: values.flag(&DEAC),
            protection: ProtectionOptions::resolve(values)?,
        })
    }
}

impl Options {
    /// Refuses options that exclude each other.
    pub(super) fn check(&self) -> Result<(), EngineError> {
        match self.polled && !self.write_mode.transfers_data() {
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
    use fathom_core::OptionValue;
    use fathom_sys::clock::Clock;

    use super::*;

    fn with(option: &EngineOption, text: &str) -> Result<Options, EngineError> {
        let mut values = EngineValues::default();
        values.set(option.name, OptionValue::Text(text.into()));
        Options::resolve(&values)
    }

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
        assert_eq!(options.write_mode, WriteMode::Write);
    }

    #[test]
    fn modes_are_commands() {
        for (word, want) in [
            ("write", Opcode::WRITE),
            ("zeroes", Opcode::WRITE_ZEROES),
            ("uncor", Opcode::WRITE_UNCORRECTABLE),
            ("verify", Opcode::VERIFY),
            ("compare", Opcode::COMPARE),
        ] {
            assert_eq!(with(&WRITE_MODE, word).unwrap().write_mode.opcode(), want);
        }
    }

    #[test]
    fn polled_queues_take_commands_with_data() {
        let polled = |write_mode| Options {
            polled: true,
            write_mode,
            ..Options::resolve(&EngineValues::default()).unwrap()
        };
        assert_eq!(polled(WriteMode::Compare).check(), Ok(()));
        let error = polled(WriteMode::Zeroes).check().unwrap_err();
        assert_eq!(error.to_string(), "write_mode: engine `io_uring_cmd`");
    }
}
