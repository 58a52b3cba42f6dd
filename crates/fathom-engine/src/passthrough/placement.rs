//! Placement of writes by the handles of a device (`dataplacement`).

use std::sync::Arc;

use fathom_core::{EngineError, EngineStep, Errno, PlacementRange, Taus88};

use super::namespace::Namespace;
use crate::EngineConfig;

/// Placement of writes: the identifiers that they take in turn.
#[derive(Clone, Debug)]
pub(super) struct Placement {
    /// Handles, counted from 0; empty for all that the namespace has.
    handles: Box<[u16]>,
    next: usize,
    /// Drawn rather than in turn.
    random: Option<Taus88>,
    /// Ranges of a file with identifiers of their own, instead of the handles; empty for none.
    ranges: Arc<[PlacementRange]>,
}

impl Placement {
    /// Returns the placement that a job asks for.
    pub(super) fn of(config: &EngineConfig) -> Option<Self> {
        let asked = config.placement.as_ref()?;
        Some(Self {
            handles: asked.iter().map(|&handle| u16::from(handle)).collect(),
            next: 0,
            random: config.random_streams.then(|| Taus88::new(PLACEMENT_SEED)),
            ranges: Arc::clone(&config.placement_ranges),
        })
    }

    /// Refuses a namespace that cannot place the writes.
    pub(super) fn check(&self, path: &str, namespace: &Namespace) -> Result<(), EngineError> {
        let count = namespace.placements.len();
        let largest = self.handles.iter().copied().max().unwrap_or(0);
        let known = |range: &&PlacementRange| namespace.placements.contains(&range.identifier);
        let hint = if count == 0 {
            "the controller has no flexible data placement: remove `dataplacement`".to_owned()
        } else if let Some(range) = self.ranges.iter().find(|range| !known(range)) {
            format!(
                "`dp_scheme` names placement identifier {}, which the namespace lacks",
                range.identifier
            )
        } else if usize::from(largest) >= count {
            format!("name `plids` from 0 to {}", count - 1)
        } else {
            return Ok(());
        };
        Err(EngineError {
            step: EngineStep::Option("dataplacement"),
            target: path.into(),
            errno: Some(Errno::EOPNOTSUPP),
            hint,
        })
    }

    /// Returns the identifier of the next write, which starts at `offset`, of those that a
    /// namespace has.
    pub(super) fn next(&mut self, offset: u64, identifiers: &[u16]) -> u16 {
        if !self.ranges.is_empty() {
            let range = self
                .ranges
                .iter()
                .find(|range| range.bytes.contains(&offset));
            return range.map_or(0, |range| range.identifier);
        }
        let count = match self.handles.len() {
            0 => identifiers.len(),
            count => count,
        };
        let count = count.max(1);
        let turn = match &mut self.random {
            // Cannot be cut: below the number of handles.
            Some(random) => usize::try_from(random.below(count as u64)).unwrap_or(0),
            None => self.next % count,
        };
        self.next = turn + 1;
        let handle = self
            .handles
            .get(turn)
            .map_or(turn, |&handle| usize::from(handle));
        // Both were compared when the file was opened.
        identifiers.get(handle).copied().unwrap_or(0)
    }
}

/// Arbitrary, but fixed: the same writes are placed alike in every run.
const PLACEMENT_SEED: u64 = 0x706c_6163_656d;

#[cfg(test)]
mod tests {
    use fathom_sys::clock::Clock;

    use super::*;
    use crate::built_in;

    fn placement(asked: &[u8], random: bool) -> Placement {
        let config = EngineConfig {
            placement: Some(asked.into()),
            random_streams: random,
            ..EngineConfig::new(built_in("io_uring_cmd"), Clock::monotonic())
        };
        Placement::of(&config).unwrap()
    }

    #[test]
    fn writes_take_their_handles_in_turn_or_draw_them() {
        let identifiers = [10, 11, 12];
        let mut all = placement(&[], false);
        let got: Vec<u16> = (0..4).map(|_| all.next(0, &identifiers)).collect();
        assert_eq!(got, [10, 11, 12, 10]);
        let mut some = placement(&[2, 0], false);
        let got: Vec<u16> = (0..3).map(|_| some.next(0, &identifiers)).collect();
        assert_eq!(got, [12, 10, 12]);
        let mut drawn = placement(&[2, 0], true);
        let got: Vec<u16> = (0..100).map(|_| drawn.next(0, &identifiers)).collect();
        assert!(got.contains(&10) && got.contains(&12) && !got.contains(&11));
    }

    #[test]
    fn a_scheme_places_a_write_by_its_offset() {
        let range = |bytes, identifier| PlacementRange { bytes, identifier };
        let config = EngineConfig {
            placement: Some(Box::default()),
            placement_ranges: [range(0..8192, 12), range(4096..16384, 10)].into(),
            ..EngineConfig::new(built_in("io_uring_cmd"), Clock::monotonic())
        };
        let mut placement = Placement::of(&config).unwrap();
        let got = [0, 4096, 8192, 16383, 16384].map(|offset| placement.next(offset, &[10, 12]));
        assert_eq!(got, [12, 12, 10, 10, 0]);
    }
}
