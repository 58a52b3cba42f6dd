//! Options of `io_uring_cmd`.

use fathom_core::{EngineError, EngineOption, EngineStep, EngineValues, OptionWord};
use fathom_nvme::{Opcode, ProtectionTags};

use crate::config::EngineConfig;
use crate::options::{
    FIXEDBUFS, FORCE_ASYNC, HIPRI, NONVECTORED, READFUA, REGISTERFILES, SQTHREAD_POLL,
    SQTHREAD_POLL_CPU, U32, WRITEFUA,
};

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

const MD_PER_IO_SIZE: EngineOption = EngineOption::int(
    "md_per_io_size",
    0,
    1 << 20,
    "Bytes of each op's buffer for metadata, if the namespace transfers them apart from the data",
    "md_per_io_size=64",
)
.default("0");

const PI_ACT: EngineOption = EngineOption::boolean(
    "pi_act",
    "Protection information: 1: the controller inserts and removes it; 0: the job writes it and \
     checks what it reads",
    "pi_act=0",
)
.default("1");

const PI_CHK: EngineOption = EngineOption::text(
    "pi_chk",
    "Parts of protection information to check, separated by commas: GUARD, APPTAG, REFTAG",
    "pi_chk=GUARD,REFTAG",
);

const APPTAG: EngineOption = EngineOption::int(
    "apptag",
    0,
    U32,
    "Application tag of protection information",
    "apptag=0x4321",
)
.default("0x1234");

const APPTAG_MASK: EngineOption = EngineOption::int(
    "apptag_mask",
    0,
    U32,
    "Bits of the application tag that are checked",
    "apptag_mask=0x00ff",
)
.default("0xffff");

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
    pub(super) metadata_bytes: u32,
    /// The controller inserts and removes protection information.
    pub(super) controller_protects: bool,
    pub(super) tags: ProtectionTags,
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
        let tag = |option: &EngineOption, fallback: u16| match values.number(option) {
            None => Ok(fallback),
            Some(number) => u16::try_from(number).map_err(|_too_large| {
                let hint = "write a number of 16 bits, at most 0xffff";
                refused(option.name, format!("{number:#x}"), hint)
            }),
        };
        let checks = Checks::parse(values.text(&PI_CHK).unwrap_or_default())?;
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
            metadata_bytes: number(&MD_PER_IO_SIZE).unwrap_or(0),
            controller_protects: values.number(&PI_ACT) != Some(0),
            tags: ProtectionTags {
                check_guard: checks.guard,
                check_application: checks.application,
                check_reference: checks.reference,
                application: tag(&APPTAG, 0x1234)?,
                application_mask: tag(&APPTAG_MASK, 0xffff)?,
            },
        })
    }
}

impl Options {
    /// Refuses options that exclude each other.
    pub(super) fn check(&self) -> Result<(), EngineError> {
        match self.polled && !self.write_mode.transfers_data() {
            true => {
                let hint = "polled queues take commands with data alone: leave out hipri";
                Err(refused(
                    WRITE_MODE.name,
                    "engine `io_uring_cmd`".into(),
                    hint,
                ))
            }
            false => Ok(()),
        }
    }
}

/// Parts of protection information to check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Checks {
    guard: bool,
    application: bool,
    reference: bool,
}

impl Checks {
    fn parse(text: &str) -> Result<Self, EngineError> {
        let mut checks = Self::default();
        for word in text
            .split(',')
            .map(str::trim)
            .filter(|word| !word.is_empty())
        {
            match word {
                "GUARD" => checks.guard = true,
                "APPTAG" => checks.application = true,
                "REFTAG" => checks.reference = true,
                other => {
                    let hint = "write GUARD, APPTAG or REFTAG, separated by commas";
                    return Err(refused(PI_CHK.name, other.to_owned(), hint));
                }
            }
        }
        Ok(checks)
    }
}

/// Returns the error of a value that an option does not take.
fn refused(option: &'static str, value: String, hint: &str) -> EngineError {
    EngineError {
        step: EngineStep::Option(option),
        target: value,
        errno: None,
        hint: hint.into(),
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
        assert!(options.controller_protects && !options.vectored);
        assert_eq!(options.write_mode, WriteMode::Write);
        let want = ProtectionTags {
            application: 0x1234,
            application_mask: 0xffff,
            ..ProtectionTags::default()
        };
        assert_eq!(options.tags, want);
    }

    #[test]
    fn checks_are_words() {
        let tags = with(&PI_CHK, "GUARD, REFTAG").unwrap().tags;
        assert!(tags.check_guard && tags.check_reference && !tags.check_application);
        let error = with(&PI_CHK, "GUARD,guard").unwrap_err();
        assert_eq!(error.to_string(), "pi_chk: guard");
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

    #[test]
    fn tags_have_16_bits() {
        let values = EngineValues::default().with(&APPTAG, 0x1_0000);
        let error = Options::resolve(&values).unwrap_err();
        assert_eq!(error.to_string(), "apptag: 0x10000");
    }
}
