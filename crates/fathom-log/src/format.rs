//! Fast formatting of log lines: eight digits at a time, and parts that rarely change cached as
//! text.
//!
//! `write!` was rejected: it runs the general formatting code for each number, and the writer must
//! keep up with millions of lines per second on a part of one CPU.

/// Page of lines, filled front to back and written as a whole.
#[derive(Debug)]
pub(super) struct Page {
    bytes: Box<[u8]>,
    at: usize,
}

impl Page {
    /// Creates a page of `bytes` bytes, but at least one line.
    pub(super) fn new(bytes: usize) -> Self {
        Self {
            bytes: vec![0; bytes.max(LINE_BYTES_MAX)].into_boxed_slice(),
            at: 0,
        }
    }

    /// Returns true if there may be no room for another line.
    #[inline]
    pub(super) const fn is_full(&self) -> bool {
        self.at + LINE_BYTES_MAX > self.bytes.len()
    }

    pub(super) fn written(&self) -> &[u8] {
        &self.bytes[..self.at]
    }

    pub(super) const fn clear(&mut self) {
        self.at = 0;
    }

    /// Appends a cached piece.
    #[inline]
    pub(super) fn piece(&mut self, piece: &Piece) {
        // Copies the whole array: a constant length compiles to two moves. The bytes after the
        // piece's end are overwritten by what follows.
        self.bytes[self.at..self.at + Piece::SIZE].copy_from_slice(&piece.bytes);
        self.at += piece.length;
    }

    /// Appends bytes.
    #[inline]
    pub(super) fn text(&mut self, text: &[u8]) {
        self.bytes[self.at..self.at + text.len()].copy_from_slice(text);
        self.at += text.len();
    }

    /// Appends a number in decimal.
    #[inline]
    pub(super) fn number(&mut self, value: u64) {
        if value >= EIGHT_DIGITS {
            self.long_number(value);
            return;
        }
        let digits = eight_digits(value);
        // The first digit is in the lowest byte. Skip leading zeros, but keep the last digit.
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

/// Part of a line that stays the same over many lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    bytes: [u8; Self::SIZE],
    length: usize,
}

impl Piece {
    /// Size: a time with its separator fits, and so do the columns after a value,
    /// `, 2, 4294967295, 0xffff`.
    const SIZE: usize = 32;

    pub(super) const EMPTY: Self = Self {
        bytes: [0; Self::SIZE],
        length: 0,
    };

    /// Creates a piece of `text`, at most [`SIZE`](Self::SIZE) bytes.
    pub(super) fn new(text: &str) -> Self {
        let mut piece = Self::EMPTY;
        piece.bytes[..text.len()].copy_from_slice(text.as_bytes());
        piece.length = text.len();
        piece
    }
}

/// Returns the digits of a number below 10⁸, one per byte, the first in the lowest: halved three
/// times, with all parts of a step in one word.
///
/// ```text
/// 12345678 → 1234 │ 5678 → 12 │ 34 │ 56 │ 78 → 1 │ 2 │ 3 │ 4 │ 5 │ 6 │ 7 │ 8
/// ```
///
/// Divisions by 100 and 10 are multiplications and shifts, exact for the number of digits in a
/// part.
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

/// Longest line: eight columns of 20 digits with separators, and the bytes that a piece or a number
/// may write past its end.
const LINE_BYTES_MAX: usize = 8 * 22 + Piece::SIZE + 8;

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
