//! Lines of a log, as fast as they can be made: digits by pairs, and what seldom changes kept
//! ready.

/// A page that lines are laid down on, one after the other.
#[derive(Debug)]
pub(super) struct Page {
    bytes: Box<[u8]>,
    at: usize,
}

impl Page {
    pub(super) fn new() -> Self {
        Self {
            bytes: vec![0; PAGE].into_boxed_slice(),
            at: 0,
        }
    }

    /// Whether another line may not fit.
    #[inline]
    pub(super) const fn is_full(&self) -> bool {
        self.at + LINE > PAGE
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

    /// Lays down a number.
    #[inline]
    pub(super) fn number(&mut self, value: u64) {
        let mut digits = [0; DIGITS];
        let first = number(value, &mut digits);
        let length = DIGITS - first;
        self.bytes[self.at..self.at + length].copy_from_slice(&digits[first..]);
        self.at += length;
    }
}

/// A part of a line that stays the same over many lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    bytes: [u8; Self::SIZE],
    length: usize,
}

impl Piece {
    const SIZE: usize = 48;

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

/// Writes `value` to the end of `digits`; gives where it begins.
#[inline]
fn number(mut value: u64, digits: &mut [u8; DIGITS]) -> usize {
    let mut at = DIGITS;
    while value >= 100 {
        let pair = low_digits(value);
        value /= 100;
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[pair]);
    }
    let pair = PAIRS[low_digits(value)];
    at -= 1;
    digits[at] = pair[1];
    if value >= 10 {
        at -= 1;
        digits[at] = pair[0];
    }
    at
}

/// The last two digits, as a number.
#[inline]
const fn low_digits(value: u64) -> usize {
    (value % 100) as usize
}

const DECIMAL: [u8; 10] = *b"0123456789";

/// `00`, `01` … `99`.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut value = 0;
    while value < 100 {
        pairs[value] = [DECIMAL[value / 10], DECIMAL[value % 10]];
        value += 1;
    }
    pairs
};

/// Digits of the largest number.
const DIGITS: usize = 20;

/// The longest line: eight columns of 20 digits with `, ` between them, and a piece's length.
const LINE: usize = 8 * (DIGITS + 2) + Piece::SIZE;

/// Bytes handed to the kernel at once: large enough that the call is a small part of the cost.
const PAGE: usize = 128 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_everybody_writes_them() {
        let powers = (0..20).map(|power| 10_u64.pow(power));
        let around = powers.flat_map(|power| [power - 1, power, power + 1]);
        for value in around.chain([u64::MAX, 1_234_567_890, 99, 100, 12_345]) {
            let mut page = Page::new();
            page.number(value);
            assert_eq!(page.written(), value.to_string().as_bytes());
        }
    }

    #[test]
    fn a_piece_takes_the_room_of_its_text() {
        let mut page = Page::new();
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
