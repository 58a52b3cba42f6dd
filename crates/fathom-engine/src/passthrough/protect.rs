//! Protection information that the job writes and checks itself (`pi_act=0`).

use fathom_nvme::{BlockFormat, Protection, ProtectionError, ProtectionTags, ProtectionType};

use super::encode::Encoded;
use super::namespace::Namespace;
use super::options::Options;

/// Protection information of a namespace whose controller neither inserts nor removes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnProtection {
    protection: Protection,
    format: BlockFormat,
    separate_bytes: usize,
    tags: ProtectionTags,
}

impl OwnProtection {
    /// Returns what the job has to do on a namespace; `None` for nothing.
    pub(super) fn of(namespace: &Namespace, options: &Options) -> Option<Self> {
        let protection = namespace.format.protection?;
        (!options.controller_protects).then_some(Self {
            protection,
            format: namespace.format,
            separate_bytes: namespace.separate_bytes as usize,
            tags: options.tags,
        })
    }

    /// Writes the tuples of a write's blocks. Costs a checksum of the data.
    pub(super) fn protect(&self, encoded: &Encoded, data: &mut [u8], metadata: &mut [u8]) {
        let application = self.tags.application;
        let block_bytes = self.format.block_bytes() as usize;
        if self.format.is_extended {
            let whole = block_bytes + usize::from(self.format.metadata_bytes);
            for (number, block) in (encoded.first..).zip(data.chunks_exact_mut(whole)) {
                let (data, metadata) = block.split_at_mut(block_bytes);
                self.protection
                    .protect(data, metadata, self.reference(number), application);
            }
        } else {
            let blocks = data.chunks_exact(block_bytes);
            let blocks = blocks.zip(metadata.chunks_exact_mut(self.separate_bytes));
            for (number, (data, metadata)) in (encoded.first..).zip(blocks) {
                self.protection
                    .protect(data, metadata, self.reference(number), application);
            }
        }
    }

    /// Checks the tuples of blocks that were read, as far as `pi_chk` asks for it; the error is the
    /// first that is wrong, with its block.
    pub(super) fn check(
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
        let blocks = blocks.zip(metadata.chunks_exact(self.separate_bytes));
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
    use fathom_sys::uring::NvmeCommand;

    use super::*;
    use crate::passthrough::namespace::tests::namespace;

    fn options(controller_protects: bool) -> Options {
        let mut options = Options::resolve(&EngineValues::default()).unwrap();
        options.controller_protects = controller_protects;
        options.tags.check_guard = true;
        options.tags.check_reference = true;
        options
    }

    fn encoded() -> Encoded {
        Encoded {
            command: NvmeCommand::default(),
            blocks: 2,
            first: 40,
        }
    }

    #[test]
    fn blocks_are_protected_where_their_metadata_are() {
        for is_extended in [true, false] {
            let options = options(false);
            let namespace = namespace(8, is_extended, Some(Guard::Crc16), &options);
            let own = OwnProtection::of(&namespace, &options).unwrap();
            let bytes = 2 * namespace.op_block_bytes as usize;
            let (mut data, mut metadata) = (vec![5; bytes], vec![0; 64]);
            own.protect(&encoded(), &mut data, &mut metadata);
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
        let options = options(true);
        let namespace = namespace(8, false, Some(Guard::Crc16), &options);
        assert!(OwnProtection::of(&namespace, &options).is_none());
    }
}
