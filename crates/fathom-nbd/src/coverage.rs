//! Bytes of a read that have arrived.

/// Set of the bytes that the chunks of a reply have brought.
///
/// A server sends them in order, or nearly so: adjacent ranges are merged, and one range is the
/// usual content.
#[derive(Clone, Debug)]
pub(crate) struct Coverage {
    /// Begin and end of each range: ascending, with gaps in between.
    ranges: Vec<(u32, u32)>,
}

/// Reason why a range cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CoverageError {
    /// A byte is there already.
    Twice,
    /// More than [`RANGES_MAX`] ranges with gaps in between.
    Scattered,
}

impl Coverage {
    pub(crate) fn new() -> Self {
        Self {
            ranges: Vec::with_capacity(USUAL_RANGES),
        }
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Returns whether all bytes up to `length` are there.
    #[inline]
    pub(crate) fn is_whole(&self, length: u32) -> bool {
        self.ranges == [(0, length)]
    }

    /// Adds a range that is not empty.
    pub(crate) fn add(&mut self, begin: u32, end: u32) -> Result<(), CoverageError> {
        let index = self.ranges.partition_point(|range| range.1 < begin);
        let next_begin = |index: usize| self.ranges.get(index).map_or(u32::MAX, |range| range.0);
        match self.ranges.get(index).copied() {
            // Joins the end of a range, and perhaps the start of the next one.
            Some((_, last)) if last == begin => {
                let behind = next_begin(index + 1);
                if behind < end {
                    return Err(CoverageError::Twice);
                }
                self.ranges[index].1 = end;
                if behind == end && index + 1 < self.ranges.len() {
                    self.ranges[index].1 = self.ranges.remove(index + 1).1;
                }
            }
            Some((first, _)) if first < end => return Err(CoverageError::Twice),
            Some((first, _)) if first == end => self.ranges[index].0 = begin,
            _ if self.ranges.len() == RANGES_MAX => return Err(CoverageError::Scattered),
            _ => self.ranges.insert(index, (begin, end)),
        }
        Ok(())
    }
}

/// Ranges with gaps in between, at most: no server known sends chunks out of order, and a hostile
/// one must not take memory.
pub(crate) const RANGES_MAX: usize = 1024;
/// Ranges that need no allocation.
const USUAL_RANGES: usize = 4;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a naive set of bytes.
        #[test]
        fn ranges_are_a_set_of_bytes(
            ranges in proptest::collection::vec((0_u32..40, 1_u32..8), 1..30),
        ) {
            let (mut coverage, mut bytes) = (Coverage::new(), [false; 48]);
            for (begin, length) in ranges {
                let part = &mut bytes[begin as usize..][..length as usize];
                let is_twice = part.contains(&true);
                let added = coverage.add(begin, begin + length);
                prop_assert_eq!(added, if is_twice { Err(CoverageError::Twice) } else { Ok(()) });
                if !is_twice {
                    part.fill(true);
                }
                for length in 1..48 {
                    let is_whole = bytes.iter().position(|&byte| !byte) == Some(length)
                        && !bytes[length..].contains(&true);
                    let length = u32::try_from(length).expect("small");
                    prop_assert_eq!(coverage.is_whole(length), is_whole);
                }
            }
        }
    }

    #[test]
    fn scattered_ranges_have_a_limit() {
        let mut coverage = Coverage::new();
        let most = u32::try_from(RANGES_MAX).expect("small");
        for index in 0..most {
            coverage.add(index * 2, index * 2 + 1).expect("room");
        }
        assert_eq!(
            coverage.add(most * 2, most * 2 + 1),
            Err(CoverageError::Scattered)
        );
        coverage.add(1, 2).expect("a gap is filled");
        coverage.add(most * 2, most * 2 + 1).expect("room again");
    }
}
