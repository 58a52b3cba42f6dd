//! Write streams: numbers by which a device keeps data apart that die at different times.

use fathom_core::Taus88;

/// Choice of each write's stream.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    numbers: Box<[u8]>,
    next: usize,
    /// Drawn rather than in turn.
    random: Option<Taus88>,
}

impl Streams {
    /// Creates the choice among `numbers`; none if there are none.
    pub(super) fn new(numbers: &[u8], random: bool) -> Option<Self> {
        (!numbers.is_empty()).then(|| Self {
            numbers: numbers.into(),
            next: 0,
            random: random.then(|| Taus88::new(SEED)),
        })
    }

    /// Returns the stream of the next write.
    pub(super) fn next(&mut self) -> u8 {
        let count = self.numbers.len();
        let index = match &mut self.random {
            // Cannot be cut: below the number of streams.
            Some(random) => usize::try_from(random.below(count as u64)).unwrap_or(0),
            None => {
                let after = (self.next + 1) % count;
                std::mem::replace(&mut self.next, after)
            }
        };
        self.numbers[index]
    }
}

/// Arbitrary, but fixed: the same writes have the same streams in every run.
const SEED: u64 = 0x7374_7265_616d;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_taken_in_turn_or_drawn() {
        assert!(Streams::new(&[], true).is_none());
        let mut turns = Streams::new(&[1, 5, 9], false).unwrap();
        let got: Vec<u8> = (0..7).map(|_| turns.next()).collect();
        assert_eq!(got, [1, 5, 9, 1, 5, 9, 1]);
        let mut drawn = Streams::new(&[1, 5, 9], true).unwrap();
        let mut counts = [0; 10];
        (0..3000).for_each(|_| counts[usize::from(drawn.next())] += 1);
        assert_eq!(counts.iter().filter(|&&count| count > 0).count(), 3);
        assert!(
            [1, 5, 9]
                .iter()
                .all(|&stream| (900..1100).contains(&counts[stream]))
        );
    }
}
