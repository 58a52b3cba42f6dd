//! Changes an input: bytes, words of the job language, lines, and now and then its size.

use fathom_core::Xoshiro256;

/// A few random changes to `seed`.
pub(crate) fn mutated(seed: &[u8], words: &[String], random: &mut Xoshiro256) -> Vec<u8> {
    let mut input = seed.to_vec();
    for _ in 0..=random.below(8) {
        change(&mut input, words, random);
    }
    if random.below(LARGE_ONE_IN) == 0 {
        grow(&mut input, random);
    }
    input.truncate(BYTES_MAX);
    input
}

fn change(input: &mut Vec<u8>, words: &[String], random: &mut Xoshiro256) {
    let place = pick(input.len() + 1, random);
    match random.below(9) {
        0 => splice(input, place, 0, &[byte(random)]),
        1 => splice(input, place, 1, &[byte(random)]),
        2 => {
            let length = pick(16, random);
            splice(input, place, length, &[]);
        }
        3 | 4 => splice(input, place, 0, word(words, random)),
        5 => {
            let line = [b"\n", word(words, random), b"\n"].concat();
            splice(input, line_at(input, place).0, 0, &line);
        }
        6 => {
            let (start, end) = line_at(input, place);
            splice(input, start, end - start, &[]);
        }
        7 => {
            let (start, end) = line_at(input, place);
            let line = input[start..end].to_vec();
            let elsewhere = pick(input.len() + 1, random);
            splice(input, elsewhere, 0, &line);
        }
        _ => value(input, place, words, random),
    }
}

/// Puts another option's value, or a word, behind an `=`.
fn value(input: &mut Vec<u8>, place: usize, words: &[String], random: &mut Xoshiro256) {
    let (start, end) = line_at(input, place);
    let equals = input[start..end].iter().position(|&byte| byte == b'=');
    let Some(equals) = equals.map(|at| start + at + 1) else {
        return;
    };
    let word = word(words, random);
    let value = word.iter().position(|&byte| byte == b'=');
    let value = value.map_or(word, |at| &word[at + 1..]).to_vec();
    splice(input, equals, end.saturating_sub(equals), &value);
}

/// Repeats a part of the input until it is large.
fn grow(input: &mut Vec<u8>, random: &mut Xoshiro256) {
    let (from, to) = (pick(input.len() + 1, random), pick(input.len() + 1, random));
    let part = input[from.min(to)..from.max(to)].to_vec();
    let wanted = 1 << (10 + random.below(11));
    while !part.is_empty() && input.len() < wanted {
        input.extend_from_slice(&part);
    }
}

fn splice(input: &mut Vec<u8>, place: usize, length: usize, new: &[u8]) {
    let end = (place + length).min(input.len());
    input.splice(place..end, new.iter().copied());
}

/// The line around a place, without its end.
fn line_at(input: &[u8], place: usize) -> (usize, usize) {
    let before = input[..place].iter().rposition(|&byte| byte == b'\n');
    let after = input[place..].iter().position(|&byte| byte == b'\n');
    let start = before.map_or(0, |at| at + 1);
    (start, after.map_or(input.len(), |at| place + at))
}

fn word<'a>(words: &'a [String], random: &mut Xoshiro256) -> &'a [u8] {
    words[pick(words.len(), random)].as_bytes()
}

fn byte(random: &mut Xoshiro256) -> u8 {
    random.next_u64().to_le_bytes()[0]
}

/// An index below `count`, which is not 0.
pub(crate) fn pick(count: usize, random: &mut Xoshiro256) -> usize {
    usize::try_from(random.below(count as u64)).unwrap_or(0)
}

/// The size that the limits hold for.
const BYTES_MAX: usize = 1 << 20;
/// Large inputs take longer than all the others together.
const LARGE_ONE_IN: u64 = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_inputs() {
        let words = ["bs=4k".to_owned(), "rw=read".to_owned()];
        let inputs = |seed| {
            let mut random = Xoshiro256::new(seed);
            let one = |_| mutated(b"[a]\nrw=read\nsize=1m\n", &words, &mut random);
            (0..300).map(one).collect::<Vec<_>>()
        };
        assert_eq!(inputs(7), inputs(7));
        assert_ne!(inputs(7), inputs(8));
        assert!(inputs(7).iter().any(|input| input.len() > 1000));
        assert!(inputs(7).iter().all(|input| input.len() <= BYTES_MAX));
    }

    #[test]
    fn lines_are_found_around_a_place() {
        assert_eq!(line_at(b"ab\ncd\nef", 4), (3, 5));
        assert_eq!(line_at(b"ab\ncd\nef", 8), (6, 8));
        assert_eq!(line_at(b"", 0), (0, 0));
    }
}
