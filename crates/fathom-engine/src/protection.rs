//! Protection information that the job writes and checks itself (`pi_act=0`).

mod options;

use fathom_nvme::{BlockFormat, Protection, ProtectionError, ProtectionTags, ProtectionType};

pub(crate) use options::{APPTAG, APPTAG_MASK, MD_PER_IO_SIZE, PI_ACT, PI_CHK, ProtectionOptions};

/// Protection information of a device that neither inserts nor removes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnProtection {
    protection: Protection,
    format: BlockFormat,
    tags: ProtectionTags,
}

impl OwnProtection {
    /// Returns what the job has to do on a device of this format; `None` for nothing.
    pub(crate) fn of(format: &BlockFormat, options: &ProtectionOptions) -> Option<Self> {
        let protection = format.protection?;
        (!options.controller_protects).then_some(Self {
            protection,
            format: *format,
            tags: options.tags,
        })
    }

    /// Writes the tuples of the blocks from `first` on. Costs a checksum of the data.
    pub(crate) fn protect(&self, first: u64, data: &mut [u8], metadata: &mut [u8]) {
        let application = self.tags.application;
        let block_bytes = self.format.block_bytes() as usize;
        if self.format.is_extended {
            let whole = block_bytes + usize::from(self.format.metadata_bytes);
            for (number, block) in (first..).zip(data.chunks_exact_mut(whole)) {
                let (data, metadata) = block.split_at_mut(block_bytes);
                self.protection
                    .protect(data, metadata, self.reference(number), application);
            }
        } else {
            let blocks = data.chunks_exact(block_bytes);
            let blocks = blocks.zip(metadata.chunks_exact_mut(self.format.metadata_bytes.into()));
            for (number, (data, metadata)) in (first..).zip(blocks) {
                self.protection
                    .protect(data, metadata, self.reference(number), application);
            }
        }
    }

    /// Checks the tuples of blocks that were read, as far as `pi_chk` asks for it; the error is the
    /// first that is wrong, with its block.
    pub(crate) fn check(
        &self,
        first: u64,
        data: &[u8],
        metadata: &[u8],
    ) -> Result<(), (u64, ProtectionError)> {
        let block_bytes = self.format.block_bytes() as usize;
        let one = |number: u64, data: &[u8], metadata: &[u8]| {
            let reference = self.reference(number);
            let checked = self.protection.check(data, metadata, reference, &self.tags);
            checked.map_err(|error| (number, error))
        };
        if self.format.is_extended {
            let whole = block_bytes + usize::from(self.format.metadata_bytes);
            let mut blocks = (first..).zip(data.chunks_exact(whole));
            return blocks.try_for_each(|(number, block)| {
                let (data, metadata) = block.split_at(block_bytes);
                one(number, data, metadata)
            });
        }
        let blocks = data.chunks_exact(block_bytes);
        let blocks = blocks.zip(metadata.chunks_exact(self.format.metadata_bytes.into()));
        (first..)
            .zip(blocks)
            .try_for_each(|(number, (data, metadata))| one(number, data, metadata))
    }

    /// Returns the reference tag of a block.
    const fn reference(&self, number: u64) -> u64 {
        match self.protection.kind {
            ProtectionType::One | ProtectionType::Two => number,
            ProtectionType::Three => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use fathom_core::EngineValues;
    use fathom_nvme::Guard;

    use super::*;

    fn options(controller_protects: bool) -> ProtectionOptions {
        let mut options = ProtectionOptions::resolve(&EngineValues::default()).unwrap();
        options.controller_protects = controller_protects;
        options.tags.check_guard = true;
        options.tags.check_reference = true;
        options
    }

    fn format(is_extended: bool) -> BlockFormat {
        BlockFormat {
            blocks: 1000,
            block_shift: 12,
            metadata_bytes: 8,
            is_extended,
            protection: Some(Protection {
                kind: ProtectionType::One,
                guard: Guard::Crc16,
                is_first: false,
            }),
        }
    }

    #[test]
    fn blocks_are_protected_where_their_metadata_are() {
        for (is_extended, bytes) in [(true, 2 * 4104), (false, 2 * 4096)] {
            let own = OwnProtection::of(&format(is_extended), &options(false)).unwrap();
            let (mut data, mut metadata) = (vec![5; bytes], vec![0; 64]);
            own.protect(40, &mut data, &mut metadata);
            assert_eq!(own.check(40, &data, &metadata), Ok(()));
            let moved = own.check(41, &data, &metadata);
            assert_eq!(moved, Err((41, ProtectionError::Reference)));
            data[bytes / 2 + 3] ^= 1;
            let damaged = own.check(40, &data, &metadata);
            assert_eq!(damaged, Err((41, ProtectionError::Guard)), "{is_extended}");
        }
    }

    #[test]
    fn a_controller_that_protects_leaves_nothing_to_do() {
        assert!(OwnProtection::of(&format(false), &options(true)).is_none());
    }
}
