//! Latency histogram in fio's bucket layout, without its 17-second ceiling.
//!
//! ```text
//! value    0 … 127   one bucket each                                  (groups 0 and 1)
//! value  128 … 255   64 buckets of 2                                  (group 2)
//! value  256 … 511   64 buckets of 4                                  (group 3)
//!   …                each further power of two: 64 buckets, twice as wide
//! ```
//!
//! A bucket is no wider than 1/64 of its values, so its midpoint is within 1/128 of each of them.
//! The first 1856 buckets are fio's, which end at 2³⁴ ns (17 s); the layout continues to the end of
//! `u64`.

use std::fmt;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Histogram of latencies (or of any `u64`), with a relative error below 1/128.
///
/// [`record`](Self::record) while a job runs; [`merge`](Self::merge) and
/// [`percentile`](Self::percentile) afterwards. Merging is exact: the result equals recording all
/// values in one histogram. [`subtract`](Self::subtract) gives the values of an interval.
///
/// `new` allocates 32 KiB; recording never allocates, and costs a shift, a mask and an increment.
/// Pages that no value falls into stay untouched. HdrHistogram's adjustable precision was rejected:
/// fio's buckets must be reproduced exactly for `json+` and the histogram logs.
#[derive(Clone)]
pub struct Histogram {
    counts: Box<[u64; TABLE_LENGTH]>,
}

impl Histogram {
    /// Number of buckets, which cover all of `u64`.
    pub const BUCKETS: usize = 59 * GROUP_BUCKETS;

    /// Number of fio's buckets. A value's bucket has the same index in both.
    pub const FIO_BUCKETS: usize = 29 * GROUP_BUCKETS;

    /// Creates an empty histogram.
    #[must_use]
    #[expect(clippy::missing_panics_doc, reason = "the length is a constant")]
    pub fn new() -> Self {
        let counts = vec![0; TABLE_LENGTH].into_boxed_slice();
        let counts = counts
            .try_into()
            .expect("TABLE_LENGTH is the length of both");
        Self { counts }
    }

    /// Records one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.counts[Self::index_of(value)] += 1;
    }

    /// Records one value `times` times.
    #[inline]
    pub fn record_n(&mut self, value: u64, times: u64) {
        self.counts[Self::index_of(value)] += times;
    }

    /// Records each value.
    #[inline]
    pub fn record_all(&mut self, values: &[u64]) {
        for &value in values {
            self.record(value);
        }
    }

    /// Records each value, as [`record_all`](Self::record_all) does, but vectorised for 32 bits.
    #[inline]
    pub fn record_u32(&mut self, values: &[u32]) {
        let mut indices = [0; CHUNK_VALUES];
        for values in values.chunks(CHUNK_VALUES) {
            let all = values.iter().fold(0, |all, &value| all | value);
            if all > SHORT_VALUE_MAX {
                values.iter().for_each(|&value| self.record(value.into()));
                continue;
            }
            // A separate loop, because the compiler vectorises it; the increments below it cannot.
            let indices = &mut indices[..values.len()];
            for (index, &value) in indices.iter_mut().zip(values) {
                *index = short_index_of(value);
            }
            for &index in &*indices {
                self.counts[index as usize & (TABLE_LENGTH - 1)] += 1;
            }
        }
    }

    /// Records `count` values in bucket `index`, below `BUCKETS`; saturates, because a damaged file
    /// may have any counts.
    pub(crate) fn add_to_bucket(&mut self, index: usize, count: u64) {
        let slot = &mut self.counts[index];
        *slot = slot.saturating_add(count);
    }

    /// Adds the values of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (own, add) in self.counts.iter_mut().zip(other.counts.iter()) {
            *own = own.saturating_add(*add);
        }
    }

    /// Removes the values of `earlier`, a previous state of this histogram.
    pub fn subtract(&mut self, earlier: &Self) {
        for (own, take) in self.counts.iter_mut().zip(earlier.counts.iter()) {
            *own = own.saturating_sub(*take);
        }
    }

    /// Returns the counts of a group of buckets.
    pub(crate) fn group(&self, group: usize) -> &[u64] {
        &self.counts[group * GROUP_BUCKETS..][..GROUP_BUCKETS]
    }

    /// Returns the counts of a group of buckets.
    pub(crate) fn group_mut(&mut self, group: usize) -> &mut [u64] {
        &mut self.counts[group * GROUP_BUCKETS..][..GROUP_BUCKETS]
    }

    /// Removes all values; keeps the memory.
    pub fn clear(&mut self) {
        self.counts.fill(0);
    }

    /// Returns the number of recorded values.
    #[must_use]
    pub fn count(&self) -> u64 {
        total(&self.counts[..])
    }

    /// Returns the midpoint of the first bucket at whose end at least `percent` % of the values are
    /// counted; 0 if there are none. `percent` is clamped to 0–100 and taken to nine decimals.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> u64 {
        self.percentiles(&[percent]).next().unwrap_or(0)
    }

    /// Returns the [`percentile`](Self::percentile) of each of `percents`, in one pass over the
    /// buckets if they ascend; a smaller one than its predecessor starts another pass.
    pub fn percentiles(&self, percents: &[f64]) -> impl Iterator<Item = u64> {
        let count = self.count();
        let (mut buckets, mut seen) = (self.buckets(), 0_u64);
        let (mut rank_before, mut value) = (0, 0);
        percents.iter().map(move |&percent| {
            let rank = rank(percent, count);
            if rank < rank_before {
                (buckets, seen) = (self.buckets(), 0);
            }
            rank_before = rank;
            while seen < rank {
                let Some((index, count)) = buckets.next() else {
                    return 0;
                };
                seen = count.saturating_add(seen);
                value = Self::midpoint(index);
            }
            value
        })
    }

    /// Iterates over the index and count of each non-empty bucket, ascending.
    pub fn buckets(&self) -> impl Iterator<Item = (usize, u64)> {
        let counts = self.counts.iter().copied().enumerate();
        counts.filter(|&(_, count)| count > 0)
    }

    /// Iterates over the midpoint and count of each non-empty bucket, ascending.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64)> {
        self.buckets()
            .map(|(index, count)| (Self::midpoint(index), count))
    }

    /// Returns the number of values below `bound`. The bucket that contains `bound` is split
    /// proportionally, so the error is at most that bucket's count.
    #[must_use]
    pub fn count_below(&self, bound: u64) -> u64 {
        let cut = Self::index_of(bound);
        let whole = total(&self.counts[..cut]);
        let width = u128::from(Self::bucket_width(cut));
        let part = u128::from(bound - Self::lower_bound(cut));
        let split = u128::from(self.counts[cut]) * part / width;
        // `part < width`, so the quotient is at most the count.
        whole.saturating_add(u64::try_from(split).unwrap_or(u64::MAX))
    }

    /// Returns the bucket of `value`, below `BUCKETS`.
    #[must_use]
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the shifted value is below 128"
    )]
    pub const fn index_of(value: u64) -> usize {
        // Values below 128 have shift 0 and are their own index. Above, `value >> shift` lies in
        // 64..128: its top bit carries into the group number.
        let shift = 63 - (value | GROUP_BUCKETS as u64).leading_zeros() - GROUP_BITS;
        let index = ((shift as usize) << GROUP_BITS) + (value >> shift) as usize;
        // Does not change the index; lets the compiler omit the bounds check.
        index & (TABLE_LENGTH - 1)
    }

    /// Returns the bucket of a value, and the share of the bucket that is below it.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates"
    )]
    pub(crate) fn place_of(value: f64) -> (usize, f64) {
        let index = Self::index_of(value as u64);
        let above = value - Self::lower_bound(index) as f64;
        (
            index,
            (above / Self::bucket_width(index) as f64).clamp(0.0, 1.0),
        )
    }

    /// Returns the midpoint of bucket `index`, rounded down, which represents its values.
    #[must_use]
    pub const fn midpoint(index: usize) -> u64 {
        Self::lower_bound(index) + Self::bucket_width(index) / 2
    }

    /// Returns the smallest value of bucket `index`.
    #[must_use]
    pub const fn lower_bound(index: usize) -> u64 {
        let shift = shift_of(index);
        ((index - (shift << GROUP_BITS)) as u64) << shift
    }

    /// Returns the number of values that share bucket `index`.
    pub(crate) const fn bucket_width(index: usize) -> u64 {
        1 << shift_of(index)
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.counts == other.counts
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.bins()).finish()
    }
}

/// Serialises as `[[index, count], …]`, without empty buckets.
impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.buckets())
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Pairs)
    }
}

/// Deserialiser of `[[index, count], …]`.
struct Pairs;

impl<'de> Visitor<'de> for Pairs {
    type Value = Histogram;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("pairs of a bucket's index and its count")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut pairs: A) -> Result<Histogram, A::Error> {
        let mut histogram = Histogram::new();
        while let Some((index, count)) = pairs.next_element::<(usize, u64)>()? {
            if index >= Histogram::BUCKETS {
                return Err(A::Error::custom(format!("no bucket {index}")));
            }
            histogram.add_to_bucket(index, count);
        }
        Ok(histogram)
    }
}

/// Returns the bucket of a value up to `SHORT_VALUE_MAX`. It converts to a float instead of
/// counting leading zeros, for which common vector instruction sets have no instruction: exponent
/// and upper six bits of the mantissa are the bucket's number, up to a constant.
#[inline]
const fn short_index_of(value: u32) -> u32 {
    // Clears the bits that the conversion could round up: a bit eight below another is not among
    // the upper seven.
    let value = value.cast_signed();
    let float = (value & !(value >> 8)) as f32;
    let bits = float.to_bits() >> (f32::MANTISSA_DIGITS - 1 - GROUP_BITS);
    if value < 1 << GROUP_BITS {
        value.cast_unsigned()
    } else {
        bits.wrapping_sub(STEPS)
    }
}

/// Returns the sum of counts; saturates, because a damaged file may have any counts.
fn total(counts: &[u64]) -> u64 {
    counts.iter().copied().fold(0, u64::saturating_add)
}

/// Returns log₂ of the width of bucket `index`.
const fn shift_of(index: usize) -> usize {
    (index >> GROUP_BITS).saturating_sub(1)
}

/// Returns the rank, from 1, of a percentile among `count` values in ascending order.
///
/// Integers, because 99.9 is not a binary fraction: 99.9 % of 1000 values is the 999th, not the
/// first above 999.00000000000006.
fn rank(percent: f64, count: u64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "within 0..=10¹¹; NaN becomes 0"
    )]
    let billionths = (percent.clamp(0.0, 100.0) * 1e9).round() as u64;
    let rank = (u128::from(billionths) * u128::from(count)).div_ceil(100_000_000_000);
    u64::try_from(rank).unwrap_or(u64::MAX).max(1)
}

/// log₂ of the buckets in a group. fio's value: an error of 1/128 is far below the variation of any
/// device, and one histogram's table fits in a first-level cache.
const GROUP_BITS: u32 = 6;

/// Buckets in a group.
pub(crate) const GROUP_BUCKETS: usize = 1 << GROUP_BITS;

/// Length of the table: `BUCKETS` rounded up to a power of two, so that a mask bounds the index.
const TABLE_LENGTH: usize = Histogram::BUCKETS.next_power_of_two();

/// Upper bits of the float at the start of group 1: its exponent (64 = 2⁶), biased by 127.
const STEPS: u32 = (127 + GROUP_BITS - 1) << GROUP_BITS;

/// Largest value of a signed 32-bit integer; vector instructions convert only these to floats.
const SHORT_VALUE_MAX: u32 = u32::MAX >> 1;

/// Values whose buckets are computed before they are counted: enough to fill vectors, and small
/// enough to stay in the first-level cache.
const CHUNK_VALUES: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_bucket(value: u64, index: usize, midpoint: u64) {
        assert_eq!(Histogram::index_of(value), index);
        assert_eq!(Histogram::midpoint(index), midpoint);
    }

    #[test]
    fn buckets_are_fios() {
        // From the layout's definition: index ((e+1)<<6) + ((value>>e) & 63), midpoint
        // 2^(e+6) + ((index & 63) + 0.5)·2^e rounded down, with e = msb − 6.
        check_bucket(0, 0, 0);
        check_bucket(63, 63, 63);
        check_bucket(64, 64, 64);
        check_bucket(127, 127, 127);
        check_bucket(128, 128, 129);
        check_bucket(129, 128, 129);
        check_bucket(130, 129, 131);
        check_bucket(255, 191, 255);
        check_bucket(256, 192, 258);
        check_bucket(1000, 317, 1004);
        check_bucket(
            (1 << 34) - 1,
            Histogram::FIO_BUCKETS - 1,
            (1 << 34) - (1 << 26),
        );
        check_bucket(1 << 34, Histogram::FIO_BUCKETS, (1 << 34) + (1 << 27));
        check_bucket(u64::MAX, Histogram::BUCKETS - 1, u64::MAX - (1 << 56) + 1);
    }

    #[test]
    fn short_values_have_the_same_buckets() {
        let near = |value: u32| value.saturating_sub(70)..=value.saturating_add(70);
        let edges = (0..32).flat_map(|power| near(1 << power));
        let ones = (1..32).flat_map(|bits| (0..32 - bits).map(move |low| ((1 << bits) - 1) << low));
        for value in edges
            .chain(ones)
            .chain(0..5000)
            .chain([SHORT_VALUE_MAX, u32::MAX])
        {
            let want = Histogram::index_of(value.into());
            if value <= SHORT_VALUE_MAX {
                assert_eq!(short_index_of(value) as usize, want, "{value}");
            }
            let mut histogram = Histogram::new();
            histogram.record_u32(&[value, 5]);
            assert_eq!(histogram.counts[want], 1 + u64::from(want == 5), "{value}");
        }
    }

    #[track_caller]
    fn check_rank(percent: f64, count: u64, want: u64) {
        assert_eq!(rank(percent, count), want, "{percent} % of {count}");
    }

    #[test]
    fn ranks_are_those_of_decimal_fractions() {
        check_rank(99.9, 1000, 999);
        check_rank(50.0, 3, 2);
        check_rank(0.0, 10, 1);
        check_rank(100.0, 10, 10);
        check_rank(99.9999, 1_000_000, 999_999);
        check_rank(-5.0, 10, 1);
        check_rank(f64::NAN, 10, 1);
        check_rank(1e9, 10, 10);
        check_rank(100.0, u64::MAX, u64::MAX);
    }

    #[test]
    fn an_empty_histogram_has_zero_percentiles() {
        assert_eq!(Histogram::new().percentile(99.0), 0);
        assert_eq!(Histogram::new().count_below(u64::MAX), 0);
    }

    #[test]
    fn a_cut_bucket_is_split() {
        let mut histogram = Histogram::new();
        histogram.record_n(128, 10); // bucket 128..130
        histogram.record_n(5, 3);
        assert_eq!(histogram.count_below(5), 0);
        assert_eq!(histogram.count_below(6), 3);
        assert_eq!(histogram.count_below(128), 3);
        assert_eq!(histogram.count_below(129), 8);
        assert_eq!(histogram.count_below(130), 13);
    }
}
