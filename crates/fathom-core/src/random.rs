//! Seeded generators: the same seed gives the same numbers on every host and in every version.
//!
//! Replaying a job and verifying data of an earlier run depend on it, so the tests of this file
//! fix the first numbers of each generator; changing one breaks verification of existing data.
//!
//! * [`Taus88`] and [`Taus258`]: L'Ecuyer's combined Tausworthe generators ("Maximally
//!   equidistributed combined Tausworthe generators", 1996, and "Tables of maximally
//!   equidistributed combined LFSR generators", 1999), which fio uses for offsets too.
//!   [`Taus88x4`] is four of the former, in turn.
//! * [`SplitMix64`]: Steele, Lea and Flood 2014; turns one seed into the states of the others.
//! * [`Xoshiro256`]: Blackman and Vigna's xoshiro256++; fills buffers.
//!
//! None is cryptographically secure.

/// Derives the seed of one stream among several from one seed.
///
/// It is the output of a [`SplitMix64`] that starts at
/// `mix(seed) + stream · 0x9e3779b97f4a7c15`, where `mix` is that generator's output function.
#[must_use]
pub fn stream_seed(seed: u64, stream: u64) -> u64 {
    SplitMix64(mix(seed).wrapping_add(stream.wrapping_mul(GOLDEN))).next_u64()
}

/// One 64-bit counter with a mixed output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Creates a generator whose state is `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }
}

/// Three 32-bit Tausworthe components; period about 2⁸⁸.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taus88 {
    /// Each component's state is at least 2, 8 and 16: smaller ones would be stuck at zero.
    state: [u32; 3],
}

impl Taus88 {
    /// Creates a generator whose state comes from [`SplitMix64`] started at `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut source = SplitMix64::new(seed);
        let state = [2u32, 8, 16].map(|least| {
            let word = (source.next_u64() >> 32) as u32;
            if word < least { word + least } else { word }
        });
        Self { state }
    }

    /// Returns the next number, uniform over all 32-bit values.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        let [a, b, c] = self.state;
        let a = ((a & !1) << 12) ^ (((a << 13) ^ a) >> 19);
        let b = ((b & !7) << 4) ^ (((b << 2) ^ b) >> 25);
        let c = ((c & !15) << 17) ^ (((c << 3) ^ c) >> 11);
        self.state = [a, b, c];
        a ^ b ^ c
    }

    /// Returns a number below `bound`: ⌊`bound` · r / 2³²⌋ with `r` the next number. With a bound
    /// over 2³² not all values can occur. 0 for bound 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        scaled(self.next_u32(), bound)
    }
}

/// Four interleaved [`Taus88`]: with SIMD, four numbers cost as much as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taus88x4 {
    /// Each component of the four.
    state: [[u32; 4]; 3],
    /// Numbers computed last.
    ready: [u32; 4],
    /// Number of values returned.
    used: usize,
}

impl Taus88x4 {
    /// Creates generators whose seeds are the first numbers of [`SplitMix64`] started at `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut seeds = SplitMix64::new(seed);
        let four = [(); 4].map(|()| Taus88::new(seeds.next_u64()).state);
        Self {
            state: [0, 1, 2].map(|component| four.map(|state| state[component])),
            ready: [0; 4],
            used: 4,
        }
    }

    /// Returns the next number, uniform over all 32-bit values.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        if self.used == self.ready.len() {
            self.ready = next_four(&mut self.state);
            self.used = 0;
        }
        let number = self.ready[self.used];
        self.used += 1;
        number
    }

    /// As [`Taus88::below`].
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        scaled(self.next_u32(), bound)
    }

    /// Fills `out` with the next numbers.
    #[inline]
    pub fn fill(&mut self, out: &mut [u32]) {
        let ready = out.len().min(self.ready.len() - self.used);
        let (first, out) = out.split_at_mut(ready);
        first.copy_from_slice(&self.ready[self.used..][..ready]);
        self.used += ready;
        let (fours, rest) = out.as_chunks_mut();
        // A copy of the state in registers, not behind the reference.
        let mut state = self.state;
        for four in fours {
            *four = next_four(&mut state);
        }
        self.state = state;
        for place in rest {
            *place = self.next_u32();
        }
    }
}

/// Returns the next number of each of the four generators.
#[inline]
fn next_four(state: &mut [[u32; 4]; 3]) -> [u32; 4] {
    let [a, b, c] = state;
    *a = a.map(|a| ((a & !1) << 12) ^ (((a << 13) ^ a) >> 19));
    *b = b.map(|b| ((b & !7) << 4) ^ (((b << 2) ^ b) >> 25));
    *c = c.map(|c| ((c & !15) << 17) ^ (((c << 3) ^ c) >> 11));
    std::array::from_fn(|lane| a[lane] ^ b[lane] ^ c[lane])
}

/// ⌊`bound` · `r` / 2³²⌋.
#[inline]
fn scaled(r: u32, bound: u64) -> u64 {
    let r = u64::from(r);
    if bound <= 1 << 32 {
        // Cannot overflow: r < 2³².
        (bound * r) >> 32
    } else {
        below_wide(bound, r << 32)
    }
}

/// Five 64-bit Tausworthe components; period about 2²⁵⁸.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taus258 {
    /// The lowest 1, 9, 12, 17 and 23 bits of the components are unused; the rest must not be zero.
    state: [u64; 5],
}

impl Taus258 {
    /// Creates a generator whose state comes from [`SplitMix64`] started at `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut source = SplitMix64::new(seed);
        let state = [1u64, 9, 12, 17, 23].map(|unused| {
            let word = source.next_u64();
            let least = 1 << unused;
            if word < least { word + least } else { word }
        });
        Self { state }
    }

    /// Returns the next number, uniform over all 64-bit values.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d, e] = self.state;
        let a = ((a & (!0 << 1)) << 10) ^ (((a << 1) ^ a) >> 53);
        let b = ((b & (!0 << 9)) << 5) ^ (((b << 24) ^ b) >> 50);
        let c = ((c & (!0 << 12)) << 29) ^ (((c << 3) ^ c) >> 23);
        let d = ((d & (!0 << 17)) << 23) ^ (((d << 5) ^ d) >> 24);
        let e = ((e & (!0 << 23)) << 8) ^ (((e << 3) ^ e) >> 33);
        self.state = [a, b, c, d, e];
        a ^ b ^ c ^ d ^ e
    }

    /// Returns a number below `bound`: ⌊`bound` · r / 2⁶⁴⌋ with `r` the next number. 0 for bound 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        below_wide(bound, self.next_u64())
    }

    /// Returns a number in [0, 1), a multiple of 2⁻⁵³.
    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

/// Four 64-bit words, xoshiro256++; the fastest here, for the content of buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Xoshiro256 {
    /// Not all zero.
    state: [u64; 4],
}

impl Xoshiro256 {
    /// Creates a generator whose state comes from [`SplitMix64`] started at `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut source = SplitMix64::new(seed);
        // Never all zero: SplitMix64 outputs each value once in its period.
        Self {
            state: [(); 4].map(|()| source.next_u64()),
        }
    }

    /// Returns the next number.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        // The published order is: t = b << 17; c ^= a; d ^= b; b ^= c; a ^= d; c ^= t; rotate d.
        result
    }

    /// Returns a number below `bound`: ⌊`bound` · r / 2⁶⁴⌋ with `r` the next number. 0 for bound 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        below_wide(bound, self.next_u64())
    }

    /// Fills `bytes` with the next numbers, little-endian; the last one may be truncated.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        // A copy of the state in registers, not behind the reference.
        let mut own = self.clone();
        let mut words = bytes.chunks_exact_mut(8);
        for word in &mut words {
            word.copy_from_slice(&own.next_u64().to_le_bytes());
        }
        let rest = words.into_remainder();
        if !rest.is_empty() {
            let last = own.next_u64().to_le_bytes();
            rest.copy_from_slice(&last[..rest.len()]);
        }
        *self = own;
    }
}

/// ⌊`bound` · `r` / 2⁶⁴⌋.
#[inline]
fn below_wide(bound: u64, r: u64) -> u64 {
    ((u128::from(bound) * u128::from(r)) >> 64) as u64
}

/// Applies the output function of [`SplitMix64`]: a bijection of 64-bit numbers.
#[inline]
const fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// 2⁶⁴ divided by the golden ratio, made odd: the published increment of [`SplitMix64`].
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the authors' reference programs.
    #[test]
    fn splitmix_gives_the_published_numbers() {
        let mut zero = SplitMix64::new(0);
        assert_eq!(
            [zero.next_u64(), zero.next_u64()],
            [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]
        );
        let mut other = SplitMix64::new(1_234_567);
        assert_eq!(
            [other.next_u64(), other.next_u64()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]
        );
    }

    /// Published by the authors' reference program, from the state 1, 2, 3, 4.
    #[test]
    fn xoshiro_gives_the_published_numbers() {
        let mut generator = Xoshiro256 {
            state: [1, 2, 3, 4],
        };
        let want = [
            41_943_041,
            58_720_359,
            3_588_806_011_781_223,
            3_591_011_842_654_386,
            9_228_616_714_210_784_205,
            9_973_669_472_204_895_162,
        ];
        assert_eq!(want.map(|_| generator.next_u64()), want);
    }

    /// Outputs 0–3 and 999 of an independent implementation of the papers.
    #[test]
    fn the_tausworthe_generators_keep_their_numbers_for_ever() {
        let four = |seed| {
            let mut generator = Taus88::new(seed);
            let first = [(); 4].map(|()| generator.next_u32());
            (first, (4..1000).map(|_| generator.next_u32()).last())
        };
        assert_eq!(
            four(0),
            (
                [0x572c_64d9, 0x78dd_4348, 0xa8aa_cd02, 0x8413_a3fa],
                Some(0xcada_4384)
            )
        );
        assert_eq!(
            four(0x89),
            (
                [0x8505_6e77, 0x7622_0428, 0x9628_d0d9, 0xd5c5_2b90],
                Some(0x5392_e77a)
            )
        );
        let mut wide = Taus258::new(0x89);
        assert_eq!(
            [(); 2].map(|()| wide.next_u64()),
            [0xe062_aa5b_bd7b_afd9, 0x0e4f_812d_0074_a74e]
        );
        assert_eq!(
            (2..1000).map(|_| wide.next_u64()).last(),
            Some(0x042c_2c0f_fad5_b10f)
        );
    }

    #[test]
    fn four_generators_take_turns_however_they_are_asked() {
        let mut seeds = SplitMix64::new(0x89);
        let mut four = [(); 4].map(|()| Taus88::new(seeds.next_u64()));
        let want: Vec<u32> = (0..100).map(|turn| four[turn % 4].next_u32()).collect();
        for cuts in [[0, 100], [1, 9], [3, 4], [7, 32], [4, 5]] {
            let mut generator = Taus88x4::new(0x89);
            let mut seen = Vec::new();
            for length in cuts.into_iter().cycle().take(60) {
                let mut some = vec![0; length];
                generator.fill(&mut some);
                seen.extend(some);
                seen.push(generator.next_u32());
            }
            assert!(seen.len() >= 60);
            let common = seen.len().min(want.len());
            assert_eq!(seen[..common], want[..common], "{cuts:?}");
        }
    }

    #[test]
    fn streams_of_one_seed_keep_their_seeds_for_ever() {
        assert_eq!(stream_seed(0x89, 0), 0x840a_ac62_be0a_c7e6);
        assert_eq!(stream_seed(0x89, 1), 0x94b2_f05a_1484_57f7);
        assert_eq!(stream_seed(0, 1), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn below_scales_the_next_number_and_stays_below() {
        for bound in [
            0,
            1,
            2,
            3,
            1000,
            (1 << 32) - 1,
            1 << 32,
            (1 << 32) + 1,
            u64::MAX,
        ] {
            let (mut narrow, mut wide) = (Taus88::new(7), Taus258::new(7));
            let (mut narrow_raw, mut wide_raw) = (narrow.clone(), wide.clone());
            for _ in 0..100 {
                let want = (u128::from(narrow_raw.next_u32()) * u128::from(bound)) >> 32;
                assert_eq!(u128::from(narrow.below(bound)), want);
                let want = (u128::from(wide_raw.next_u64()) * u128::from(bound)) >> 64;
                assert_eq!(u128::from(wide.below(bound)), want);
                assert!(bound == 0 || want < u128::from(bound));
            }
        }
    }

    #[test]
    fn each_of_sixteen_bins_gets_its_share() {
        let mut bins = [0u32; 16];
        let (mut narrow, mut wide) = (Taus88::new(1), Taus258::new(1));
        for _ in 0..50_000 {
            bins[usize::try_from(narrow.below(16)).unwrap()] += 1;
            let unit = wide.unit();
            bins[(1..16).filter(|&bin| unit >= f64::from(bin) / 16.0).count()] += 1;
        }
        // 6250 expected, standard deviation 77.
        assert!(bins.iter().all(|&n| n.abs_diff(6250) < 400), "{bins:?}");
    }

    #[test]
    fn a_fill_is_the_numbers_in_order_with_the_last_cut_off() {
        let mut generator = Xoshiro256::new(3);
        let mut twin = generator.clone();
        let mut bytes = [0; 19];
        generator.fill(&mut bytes);
        let want: Vec<u8> = (0..3)
            .flat_map(|_| twin.next_u64().to_le_bytes())
            .take(19)
            .collect();
        assert_eq!(bytes[..], want);
        assert_eq!(generator, twin);
    }
}
