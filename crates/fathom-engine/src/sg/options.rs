//! Options of `sg`.

use fathom_core::{EngineError, EngineOption, EngineStep, EngineValues, OptionWord};

use crate::config::EngineConfig;
use crate::options::{READFUA, U32, WRITEFUA};

/// Options of the engine, in the order of help texts.
pub(super) const ALL: &[EngineOption] = &[READFUA, WRITEFUA, SG_WRITE_MODE, STREAM_ID];

const SG_WRITE_MODE: EngineOption = EngineOption::choice(
    "sg_write_mode",
    &[
        word("write", "WRITE"),
        word(
            "write_and_verify",
            "WRITE AND VERIFY, which reads the medium after writing it",
        ),
        word("verify", "same as `write_and_verify`"),
        word(
            "write_same",
            "WRITE SAME: the first block of the op's data, in all of its blocks",
        ),
        word("same", "same as `write_same`"),
        word(
            "write_same_ndob",
            "WRITE SAME(16) without data (NDOB): zeros, or a pattern of the device",
        ),
        word(
            "verify_bytchk_00",
            "VERIFY, which reads on the device and transfers nothing",
        ),
        word(
            "verify_bytchk_01",
            "VERIFY, which compares the op's data with those of the device",
        ),
        word(
            "verify_bytchk_11",
            "VERIFY, which compares the first block of the op's data with each on the device",
        ),
        word(
            "write_stream",
            "WRITE STREAM(16), to the stream of `stream_id`",
        ),
    ],
    "Command of the job's writes",
    "sg_write_mode=write_and_verify",
)
.default("write");

const STREAM_ID: EngineOption = EngineOption::int(
    "stream_id",
    0,
    U32,
    "Stream of `sg_write_mode=write_stream`, up to 65535; 0: one that the job opens and closes",
    "stream_id=3",
)
.default("0");

const fn word(word: &'static str, help: &'static str) -> OptionWord {
    OptionWord { word, help }
}

/// Options of a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) read_fua: bool,
    pub(super) write_fua: bool,
    pub(super) write_mode: WriteMode,
    /// Stream of the job's writes; 0: one that is opened for them.
    pub(super) stream: u16,
}

/// Command of a job's writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteMode {
    Write,
    WriteAndVerify,
    WriteSame,
    WriteSameWithoutData,
    /// VERIFY without comparison.
    Verify,
    VerifyBlocks,
    VerifyOneBlock,
    WriteStream,
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
        let stream = values.number(&STREAM_ID).unwrap_or(0);
        Ok(Self {
            read_fua: values.flag(&READFUA),
            write_fua: values.flag(&WRITEFUA),
            write_mode: match values.text(&SG_WRITE_MODE) {
                Some("write_and_verify" | "verify") => WriteMode::WriteAndVerify,
                Some("write_same" | "same") => WriteMode::WriteSame,
                Some("write_same_ndob") => WriteMode::WriteSameWithoutData,
                Some("verify_bytchk_00") => WriteMode::Verify,
                Some("verify_bytchk_01") => WriteMode::VerifyBlocks,
                Some("verify_bytchk_11") => WriteMode::VerifyOneBlock,
                Some("write_stream") => WriteMode::WriteStream,
                _ => WriteMode::Write,
            },
            stream: u16::try_from(stream).map_err(|_too_large| EngineError {
                step: EngineStep::Option(STREAM_ID.name),
                target: stream.to_string(),
                errno: None,
                hint: "write a number of 16 bits, at most 65535".into(),
            })?,
        })
    }
}

#[cfg(test)]
mod tests {
    use fathom_core::{OptionKind, OptionValue};
    use fathom_sys::clock::Clock;

    use super::*;

    #[test]
    fn writes_of_jobs_with_sync_have_the_bit() {
        let mut config = EngineConfig::new(crate::sg::REGISTRATION, Clock::stopped());
        assert!(!Options::of(&config).unwrap().write_fua);
        for flag in [1, 2] {
            config.sync_flag = flag;
            assert!(Options::of(&config).unwrap().write_fua);
        }
    }

    #[test]
    fn modes_are_words() {
        let mode = |word: &str| {
            let mut values = EngineValues::default();
            values.set(SG_WRITE_MODE.name, OptionValue::Text(word.into()));
            Options::resolve(&values).unwrap().write_mode
        };
        assert_eq!(mode("write"), WriteMode::Write);
        assert_eq!(mode("verify"), WriteMode::WriteAndVerify);
        assert_eq!(mode("same"), WriteMode::WriteSame);
        let OptionKind::Choice(words) = SG_WRITE_MODE.kind else {
            panic!("no words");
        };
        let plain = words
            .iter()
            .filter(|own| mode(own.word) == WriteMode::Write);
        assert_eq!(plain.count(), 1, "a word that is not known");
    }

    #[test]
    fn streams_have_16_bits() {
        let values = EngineValues::default().with(&STREAM_ID, 0x1_0000);
        let error = Options::resolve(&values).unwrap_err();
        assert_eq!(error.to_string(), "stream_id: 65536");
    }
}
