//! Lines of a log, as fast as they can be made: eight digits at once, and what seldom changes kept
//! ready.

use super::compressed;
use super::output::LogFormat;
use super::row::{Row, Shape};

/// A page that lines are laid down on, one after the other.
#[derive(Debug)]
pub(super) struct Page {
    bytes: Box<[u8]>,
    at: usize,
}

impl Page {
    /// A page of so many bytes, or of one line if that is more.
    pub(super) fn new(bytes: usize) -> Self {
        Self {
            bytes: vec![0; bytes.max(LINE)].into_boxed_slice(),
            at: 0,
        }
    }

    /// Returns true if another line may not fit.
    #[inline]
    pub(super) const fn is_full(&self) -> bool {
        self.at + LINE > self.bytes.len()
    }

    pub(super) fn written(&self) -> &[u8] {
        &self.bytes[..self.at]
    }

    pub(super) const fn clear(&mut self) {
        self.at = 0;
    }

    /// Lays down what was kept ready.
    #[inline]
    pub(super) fn piece(&mut self, piece: &Piece) {
        // All of it, as a copy of known length; what is behind its end is written over next.
        self.bytes[self.at..self.at + Piece::SIZE].copy_from_slice(&piece.bytes);
        self.at += piece.length;
    }

    /// Lays down a few bytes.
    #[inline]
    pub(super) fn text(&mut self, text: &[u8]) {
        self.bytes[self.at..self.at + text.len()].copy_from_slice(text);
        self.at += text.len();
    }

    /// Lays down a line as the record that a format other than text wants.
    pub(super) fn record(&mut self, row: &Row, shape: Shape, format: LogFormat) {
        match format {
            LogFormat::Text => {}
            LogFormat::Compressed => {
                let (record, length) = compressed::encode(row, shape);
                self.text(&record[..length]);
            }
            LogFormat::Parquet => {
                let words = row.words(shape);
                words.iter().for_each(|word| self.text(&word.to_ne_bytes()));
            }
        }
    }

    /// Lays down a number.
    #[inline]
    pub(super) fn number(&mut self, value: u64) {
        if value >= EIGHT_DIGITS {
            self.long_number(value);
            return;
        }
        let digits = eight_digits(value);
        // The first digit is the lowest byte. Zeros before it are left out, but one is kept.
        let zeros = (digits | 1 << 56).trailing_zeros() / 8;
        let text = ((digits | ASCII) >> (zeros * 8)).to_le_bytes();
        self.bytes[self.at..self.at + 8].copy_from_slice(&text);
        self.at += 8 - zeros as usize;
    }

    #[cold]
    #[inline(never)]
    fn long_number(&mut self, value: u64) {
        self.number(value / EIGHT_DIGITS);
        let low = eight_digits(value % EIGHT_DIGITS) | ASCII;
        self.text(&low.to_le_bytes());
    }
}

/// A part of a line that stays the same over many lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    bytes: [u8; Self::SIZE],
    length: usize,
}

impl Piece {
    /// Room for a time with what follows it, and for all behind a value: `, 2, 4294967295, 0xffff`.
    const SIZE: usize = 32;

    pub(super) const EMPTY: Self = Self {
        bytes: [0; Self::SIZE],
        length: 0,
    };

    /// `text`, which must not be longer than a piece.
    pub(super) fn new(text: &str) -> Self {
        let mut piece = Self::EMPTY;
        piece.bytes[..text.len()].copy_from_slice(text.as_bytes());
        piece.length = text.len();
        piece
    }
}

/// The digits of a number below 10⁸, one a byte, the first in the lowest: split in halves three
/// times, all parts of a step at once.
///
/// ```text
/// 12345678 → 1234 │ 5678 → 12 │ 34 │ 56 │ 78 → 1 │ 2 │ 3 │ 4 │ 5 │ 6 │ 7 │ 8
/// ```
///
/// Divisions by 100 and 10 are multiplications that are exact for as many digits as a part has.
#[inline]
const fn eight_digits(value: u64) -> u64 {
    let fours = (value / 10_000) | ((value % 10_000) << 32);
    let high = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = high | ((fours - high * 100) << 16);
    let high = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    high | ((twos - high * 10) << 8)
}

const EIGHT_DIGITS: u64 = 100_000_000;

/// `0` in every byte.
const ASCII: u64 = 0x3030_3030_3030_3030;

/// The longest line: eight columns of 20 digits with `, ` between them, and what a piece or a
/// number may write behind its end.
const LINE: usize = 8 * 22 + Piece::SIZE + 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_everybody_writes_them() {
        let powers = (0..20).map(|power| 10_u64.pow(power));
        let around = powers.flat_map(|power| [power - 1, power, power + 1]);
        for value in around
            .chain([u64::MAX, 1_234_567_890, 99, 100, 12_345, 98_765_432])
            .chain(0..20_000)
        {
            let mut page = Page::new(4096);
            page.number(value);
            assert_eq!(page.written(), value.to_string().as_bytes());
        }
    }

    #[test]
    fn a_piece_takes_the_room_of_its_text() {
        let mut page = Page::new(4096);
        page.piece(&Piece::new("12, "));
        page.text(b"x");
        assert_eq!(page.written(), b"12, x");
        while !page.is_full() {
            page.text(b"0123456789");
        }
        (0..8).for_each(|_| page.number(u64::MAX));
        page.piece(&Piece::EMPTY);
    }
}
