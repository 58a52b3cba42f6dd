//! Options about metadata and protection information, of `io_uring` and `io_uring_cmd`.

use fathom_core::{EngineError, EngineOption, EngineValues};
use fathom_nvme::ProtectionTags;

use crate::error::refused_value;
use crate::options::U32;

pub(crate) const MD_PER_IO_SIZE: EngineOption = EngineOption::int(
    "md_per_io_size",
    0,
    1 << 20,
    "Bytes of each op's buffer for metadata, if the device transfers them apart from the data",
    "md_per_io_size=64",
)
.default("0");

pub(crate) const PI_ACT: EngineOption = EngineOption::boolean(
    "pi_act",
    "Protection information: 1: the controller inserts and removes it; 0: the job writes it and \
     checks what it reads",
    "pi_act=0",
)
.default("1");

pub(crate) const PI_CHK: EngineOption = EngineOption::text(
    "pi_chk",
    "Parts of protection information to check, separated by commas: GUARD, APPTAG, REFTAG",
    "pi_chk=GUARD,REFTAG",
);

pub(crate) const APPTAG: EngineOption = EngineOption::int(
    "apptag",
    0,
    U32,
    "Application tag of protection information",
    "apptag=0x4321",
)
.default("0x1234");

pub(crate) const APPTAG_MASK: EngineOption = EngineOption::int(
    "apptag_mask",
    0,
    U32,
    "Bits of the application tag that are checked",
    "apptag_mask=0x00ff",
)
.default("0xffff");

/// Options of a job about metadata, resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProtectionOptions {
    /// Buffer for the metadata of an op.
    pub(crate) metadata_bytes: u32,
    /// The job leaves protection information to the controller (`pi_act=1`).
    pub(crate) controller_protects: bool,
    pub(crate) tags: ProtectionTags,
}

impl ProtectionOptions {
    /// Resolves the values of a job's own options.
    ///
    /// # Errors
    /// A tag of more than 16 bits, or an unknown word in `pi_chk`.
    pub(crate) fn resolve(values: &EngineValues) -> Result<Self, EngineError> {
        let tag = |option: &EngineOption, fallback: u16| match values.number(option) {
            None => Ok(fallback),
            Some(number) => u16::try_from(number).map_err(|_too_large| {
                let hint = "write a number of 16 bits, at most 0xffff";
                refused_value(option.name, format!("{number:#x}"), hint)
            }),
        };
        let metadata_bytes = values.number(&MD_PER_IO_SIZE);
        Ok(Self {
            metadata_bytes: metadata_bytes
                .and_then(|bytes| u32::try_from(bytes).ok())
                .unwrap_or(0),
            controller_protects: values.number(&PI_ACT) != Some(0),
            tags: ProtectionTags {
                application: tag(&APPTAG, 0x1234)?,
                application_mask: tag(&APPTAG_MASK, 0xffff)?,
                ..checks(values.text(&PI_CHK).unwrap_or_default())?
            },
        })
    }
}

impl ProtectionOptions {
    /// Returns what to do about a buffer that does not hold the metadata of an op of so many
    /// blocks; `None` if it holds them.
    pub(crate) fn too_small_for(&self, blocks: u32, bytes_per_block: u32) -> Option<String> {
        let needed = u64::from(blocks) * u64::from(bytes_per_block);
        (needed > self.metadata_bytes.into()).then(|| {
            format!(
                "blocks have {bytes_per_block} B of metadata each: set md_per_io_size={needed} for \
                 the {blocks} blocks of the largest op"
            )
        })
    }
}

/// Returns the parts to check that the value of `pi_chk` names, without the tags themselves.
fn checks(text: &str) -> Result<ProtectionTags, EngineError> {
    let mut checks = ProtectionTags::default();
    let words = text.split(',').map(str::trim);
    for word in words.filter(|word| !word.is_empty()) {
        match word {
            "GUARD" => checks.check_guard = true,
            "APPTAG" => checks.check_application = true,
            "REFTAG" => checks.check_reference = true,
            other => {
                let hint = "write GUARD, APPTAG or REFTAG, separated by commas";
                return Err(refused_value(PI_CHK.name, other.to_owned(), hint));
            }
        }
    }
    Ok(checks)
}

#[cfg(test)]
mod tests {
    use fathom_core::OptionValue;

    use super::*;

    fn with(option: &EngineOption, text: &str) -> Result<ProtectionOptions, EngineError> {
        let mut values = EngineValues::default();
        values.set(option.name, OptionValue::Text(text.into()));
        ProtectionOptions::resolve(&values)
    }

    #[test]
    fn defaults_are_those_of_the_table() {
        let options = ProtectionOptions::resolve(&EngineValues::default()).unwrap();
        assert!(options.controller_protects && options.metadata_bytes == 0);
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
    fn tags_have_16_bits() {
        let values = EngineValues::default().with(&APPTAG, 0x1_0000);
        let error = ProtectionOptions::resolve(&values).unwrap_err();
        assert_eq!(error.to_string(), "apptag: 0x10000");
    }
}
