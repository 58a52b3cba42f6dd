//! Replies of servers that keep to the rules, and of those that do not.

use proptest::prelude::*;

use super::*;
use crate::wire;

const LENGTH: u32 = 4096;
const BUFFER_OFFSET: u32 = 100;

/// Returns a request of a tag: an offset of its own, and a command by its number.
fn request(tag: u32) -> Request {
    let commands = [
        Command::Read,
        Command::Write,
        Command::Flush,
        Command::Trim,
        Command::WriteZeroes,
    ];
    let command = commands[tag as usize % commands.len()];
    Request {
        command,
        offset: u64::from(tag) << 20,
        length: if command == Command::Flush { 0 } else { LENGTH },
        is_fua: false,
    }
}

/// Returns a queue with requests that are sent: reads 0 and 5, a write 1, a flush 2…
fn queue(structured: bool) -> RequestQueue {
    let mut queue = RequestQueue::new(8, structured);
    for tag in 0..8 {
        queue.submit(tag, request(tag), BUFFER_OFFSET);
    }
    queue.sent(8 * 28 + 2 * LENGTH as usize);
    assert!(queue.unsent().is_empty());
    queue
}

/// Cookie of the first use of a tag.
fn cookie(tag: u32) -> u64 {
    1 << 32 | u64::from(tag)
}

fn simple(cookie: u64, error: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = wire::SIMPLE_REPLY.to_be_bytes().to_vec();
    bytes.extend(error.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(data);
    bytes
}

fn chunk(cookie: u64, flags: u16, kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = wire::STRUCTURED_REPLY.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(u32::try_from(payload.len()).expect("short").to_be_bytes());
    bytes.extend(payload);
    bytes
}

fn data(tag: u32, flags: u16, from: u32, data: &[u8]) -> Vec<u8> {
    let offset = request(tag).offset + u64::from(from);
    chunk(
        cookie(tag),
        flags,
        1,
        &[&offset.to_be_bytes()[..], data].concat(),
    )
}

fn hole(tag: u32, flags: u16, from: u32, length: u32) -> Vec<u8> {
    let offset = request(tag).offset + u64::from(from);
    let payload = [&offset.to_be_bytes()[..], &length.to_be_bytes()].concat();
    chunk(cookie(tag), flags, 2, &payload)
}

fn error(tag: u32, flags: u16, kind: u16, number: u32, text: &str, rest: usize) -> Vec<u8> {
    let mut payload = number.to_be_bytes().to_vec();
    payload.extend(u16::try_from(text.len()).expect("short").to_be_bytes());
    payload.extend(text.as_bytes());
    payload.extend(vec![9; rest]);
    chunk(cookie(tag), flags, kind, &payload)
}

/// An event with its data, so that the pieces in which they came do not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Data(u32, u32, Vec<u8>),
    Hole(u32, u32, u32),
    Completed(u32, Option<u32>),
}

/// Feeds a queue in pieces, each of which ends where the splits say. Every other piece of data
/// goes past the decoder, as into a buffer.
fn feed(
    queue: &mut RequestQueue,
    bytes: &[u8],
    splits: &[usize],
) -> (Vec<Seen>, Option<ReplyError>) {
    let (mut seen, mut rest, mut splits) = (Vec::new(), bytes, splits.iter().cycle());
    while !rest.is_empty() {
        let piece = splits
            .next()
            .copied()
            .unwrap_or(usize::MAX)
            .clamp(1, rest.len());
        let (mut input, behind) = rest.split_at(piece);
        rest = behind;
        if let Some((tag, offset, left)) = queue.receiving().filter(|_| piece % 2 == 0) {
            let (direct, others) = input.split_at(input.len().min(left as usize));
            join(&mut seen, tag, offset, direct);
            queue.received(u32::try_from(direct.len()).expect("short"));
            input = others;
        }
        loop {
            match queue.next(&mut input) {
                Ok(Some(Event::Data { tag, offset, bytes })) => join(&mut seen, tag, offset, bytes),
                Ok(Some(Event::Hole {
                    tag,
                    offset,
                    length,
                })) => seen.push(Seen::Hole(tag, offset, length)),
                Ok(Some(Event::Completed { tag, failure })) => {
                    seen.push(Seen::Completed(tag, failure.map(|error| error.0)));
                }
                Ok(None) => break,
                Err(error) => return (seen, Some(error)),
            }
        }
        assert!(input.is_empty(), "all input is taken");
    }
    (seen, None)
}

fn join(seen: &mut Vec<Seen>, tag: u32, offset: u32, bytes: &[u8]) {
    match seen.last_mut() {
        Some(Seen::Data(last, from, known))
            if *last == tag && *from as usize + known.len() == offset as usize =>
        {
            known.extend(bytes);
        }
        _ => seen.push(Seen::Data(tag, offset, bytes.to_vec())),
    }
}

fn content(seed: u8) -> Vec<u8> {
    (0..LENGTH).map(|at| (at % 251) as u8 ^ seed).collect()
}

fn simple_replies() -> Vec<u8> {
    [
        simple(cookie(1), 0, &[]),
        simple(cookie(0), 0, &content(1)),
        simple(cookie(5), 5, &[]),
        simple(cookie(3), 95, &[]),
        simple(cookie(2), 0, &[]),
    ]
    .concat()
}

fn structured_replies() -> Vec<u8> {
    let (first, second) = content(2).split_at(1000).pipe();
    [
        simple(cookie(2), 0, &[]),
        data(0, 0, 1000, &second[..96]),
        data(5, 1, 0, &content(3)),
        hole(0, 0, 1096, LENGTH - 1096),
        data(0, 0, 0, &first),
        chunk(cookie(1), 1, 0, &[]),
        chunk(cookie(0), 1, 0, &[]),
        error(3, 0, 1 << 15 | 1, 28, "no space", 0),
        error(3, 1, 1 << 15 | 2, 5, "and more", 8),
        error(4, 1, 1 << 15 | 77, 12, "", 100),
    ]
    .concat()
}

/// Owns both halves of a split.
trait Pipe {
    fn pipe(self) -> (Vec<u8>, Vec<u8>);
}

impl Pipe for (&[u8], &[u8]) {
    fn pipe(self) -> (Vec<u8>, Vec<u8>) {
        (self.0.to_vec(), self.1.to_vec())
    }
}

#[test]
fn simple_replies_complete_requests_in_any_order() {
    let (seen, error) = feed(&mut queue(false), &simple_replies(), &[]);
    let want = [
        Seen::Completed(1, None),
        Seen::Data(0, BUFFER_OFFSET, content(1)),
        Seen::Completed(0, None),
        Seen::Completed(5, Some(5)),
        Seen::Completed(3, Some(95)),
        Seen::Completed(2, None),
    ];
    assert_eq!((seen, error), (want.to_vec(), None));
}

#[test]
fn chunks_of_a_read_come_in_any_order() {
    let mut queue = queue(true);
    let (seen, error) = feed(&mut queue, &structured_replies(), &[]);
    let all = content(2);
    let want = [
        Seen::Completed(2, None),
        Seen::Data(0, BUFFER_OFFSET + 1000, all[1000..1096].to_vec()),
        Seen::Data(5, BUFFER_OFFSET, content(3)),
        Seen::Completed(5, None),
        Seen::Hole(0, BUFFER_OFFSET + 1096, LENGTH - 1096),
        Seen::Data(0, BUFFER_OFFSET, all[..1000].to_vec()),
        Seen::Completed(1, None),
        Seen::Completed(0, None),
        Seen::Completed(3, Some(28)),
        Seen::Completed(4, Some(12)),
    ];
    assert_eq!((seen, error), (want.to_vec(), None));
    assert_eq!(queue.in_flight(), 2);
    assert_eq!([3, 4].map(|tag| queue.error_text(tag)), ["no space", ""]);
}

#[test]
fn the_text_of_an_error_is_kept() {
    let mut queue = queue(true);
    let bytes = error(0, 1, 1 << 15 | 2, 5, "bad\nsector", 8);
    assert_eq!(
        feed(&mut queue, &bytes, &[3]).0,
        [Seen::Completed(0, Some(5))]
    );
    assert_eq!(queue.error_text(0), "bad sector");
    let long = error(5, 1, 1 << 15 | 1, 5, &"x".repeat(4096), 0);
    assert_eq!(
        feed(&mut queue, &long, &[77]).0,
        [Seen::Completed(5, Some(5))]
    );
    assert_eq!(queue.error_text(5), "x".repeat(256));
}

#[test]
fn errors_of_two_requests_keep_their_texts() {
    let mut queue = queue(true);
    let kind = 1 << 15 | 1;
    let bytes = [
        error(0, 0, kind, 5, "disk A failed", 0),
        error(5, 0, kind, 5, "disk B failed", 0),
        error(0, 0, kind, 28, "and is full", 4),
        chunk(cookie(0), 1, 0, &[]),
        chunk(cookie(5), 1, 0, &[]),
    ];
    let (seen, error) = feed(&mut queue, &bytes.concat(), &[7]);
    let want = [Seen::Completed(0, Some(5)), Seen::Completed(5, Some(5))];
    assert_eq!((seen, error), (want.to_vec(), None));
    let texts = [0, 5].map(|tag| queue.error_text(tag));
    assert_eq!(texts, ["disk A failed", "disk B failed"]);
}

/// None of them is the last: without a limit, the request never completes.
#[test]
fn errors_of_a_request_have_an_end() {
    let one = error(0, 0, 1 << 15 | 1, 5, "again", 0);
    let mut queue = queue(true);
    let (seen, error) = feed(&mut queue, &one.repeat(1024), &[]);
    assert_eq!((seen, error), (vec![], None));
    let (_, error) = feed(&mut queue, &one, &[]);
    assert_eq!(error, Some(ReplyError::TooManyErrors));
}

#[track_caller]
fn refuse(structured: bool, replies: &[Vec<u8>], want: &str) {
    let mut queue = queue(structured);
    let (_, error) = feed(&mut queue, &replies.concat(), &[]);
    let error = error.expect(want);
    assert_eq!(error.to_string(), want);
    assert_eq!(
        queue.next(&mut &[0; 40][..]),
        Err(error),
        "an error is final"
    );
}

#[test]
fn simple_replies_against_the_rules_are_named() {
    let done = simple(cookie(2), 0, &[]);
    refuse(false, &[vec![1; 16]], "reply begins with 0x01010101");
    refuse(
        false,
        &[done.clone(), done],
        "second reply to a request (cookie 0x100000002)",
    );
    for unknown in [2, cookie(8), 2 << 32 | 2, u64::MAX] {
        let want = format!("reply to an unknown request (cookie {unknown:#x})");
        refuse(false, &[simple(unknown, 0, &[])], &want);
    }
    refuse(
        false,
        &[data(0, 1, 0, &content(0))],
        "structured reply without negotiation",
    );
    refuse(
        true,
        &[simple(cookie(0), 0, &content(0))],
        "simple reply to a read",
    );
}

#[test]
fn chunks_against_the_rules_are_named() {
    let check = |replies: &[Vec<u8>], want: &str| refuse(true, replies, want);
    check(
        &[data(0, 0, 4000, &[7; 97])],
        "data outside the request: 97 B at offset 4000",
    );
    check(
        &[data(5, 1, 0, &vec![7; 4097])],
        "data outside the request: 4097 B at offset 5242880",
    );
    check(
        &[hole(0, 1, 1, LENGTH)],
        "data outside the request: 4096 B at offset 1",
    );
    check(
        &[chunk(cookie(5), 1, 1, &[0; 9])],
        "data outside the request: 1 B at offset 0",
    );
    check(
        &[data(0, 0, 10, &[7; 10]), data(0, 0, 19, &[7; 2])],
        "data received twice: 2 B at offset 19",
    );
    check(
        &[data(0, 0, 0, &content(0)), hole(0, 1, 0, 1)],
        "data received twice: 1 B at offset 0",
    );
    check(&[data(0, 1, 0, &[7; 4095])], "reply to a read lacks data");
    check(&[chunk(cookie(0), 1, 0, &[])], "reply to a read lacks data");
    check(
        &[data(1, 1, 0, &[7; 8])],
        "data in the reply to a request that reads none",
    );
    check(
        &[chunk(cookie(0), 0, 0, &[])],
        "empty chunk that is not the last of its reply",
    );
    check(
        &[error(0, 1, 1 << 15 | 1, 0, "", 0)],
        "error reply without an error",
    );
    check(
        &[chunk(cookie(0), 1, 5, &[0; 12])],
        "unexpected chunk of type 5",
    );
    for (kind, payload) in [(0, 1), (1, 8), (1, 0), (2, 8), (2, 16), (1 << 15 | 1, 5)] {
        let want = format!("chunk of type {kind} with a length of {payload} B");
        check(&[chunk(cookie(0), 1, kind, &vec![1; payload])], &want);
    }
    check(&[hole(0, 1, 0, 0)], "chunk of type 2 with a length of 12 B");
    let mut beyond = error(0, 1, 1 << 15 | 1, 5, "abc", 0);
    beyond[25] = 4;
    check(&[beyond], "chunk of type 32769 with a length of 9 B");
}

#[test]
fn a_reply_may_not_overtake_its_request() {
    for sent in [0, 27, 28, 28 + LENGTH as usize - 1] {
        let mut queue = RequestQueue::new(2, false);
        queue.submit(1, request(1), 0);
        queue.sent(sent);
        let answer = simple(cookie(1), 0, &[]);
        let want = ReplyError::AnsweredEarly(cookie(1));
        assert_eq!(
            feed(&mut queue, &answer, &[]),
            (vec![], Some(want)),
            "{sent}"
        );
    }
}

#[test]
fn tags_are_used_again_with_another_cookie() {
    let mut queue = queue(true);
    for uses in 1..4_u64 {
        let answer = simple(uses << 32 | 2, 0, &[]);
        assert_eq!(
            feed(&mut queue, &answer, &[5]).0,
            [Seen::Completed(2, None)]
        );
        queue.submit(2, request(2), 0);
        queue.sent(28);
    }
    let late = simple(cookie(2), 0, &[]);
    let want = ReplyError::UnknownCookie(cookie(2));
    assert_eq!(feed(&mut queue, &late, &[]), (vec![], Some(want)));
}

proptest! {
    /// However the bytes are split, the events are the same.
    #[test]
    fn splits_change_nothing(
        splits in proptest::collection::vec(1_usize..5000, 1..40),
        is_structured: bool,
    ) {
        let bytes = match is_structured {
            true => structured_replies(),
            false => simple_replies(),
        };
        let whole = feed(&mut queue(is_structured), &bytes, &[]);
        prop_assert_eq!(whole.1, None);
        prop_assert_eq!(feed(&mut queue(is_structured), &bytes, &splits), whole);
    }

    /// Whatever a server sends, each request completes once at most, no event names a place
    /// outside its request, and the verdict does not depend on the splits.
    #[test]
    fn a_hostile_server_is_only_refused(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        splits in proptest::collection::vec(1_usize..300, 1..20),
        is_structured: bool,
    ) {
        let mut bytes = match is_structured {
            true => structured_replies(),
            false => simple_replies(),
        };
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let (seen, error) = feed(&mut queue(is_structured), &bytes, &splits);
        let mut completed = [false; 8];
        for event in &seen {
            let (tag, offset, length) = match event {
                Seen::Data(tag, offset, data) => (*tag, *offset, data.len()),
                Seen::Hole(tag, offset, length) => (*tag, *offset, *length as usize),
                Seen::Completed(tag, _) => {
                    prop_assert!(!completed[*tag as usize]);
                    completed[*tag as usize] = true;
                    continue;
                }
            };
            prop_assert!(!completed[tag as usize] && offset >= BUFFER_OFFSET);
            prop_assert!(offset as usize + length <= (BUFFER_OFFSET + LENGTH) as usize);
        }
        prop_assert_eq!(feed(&mut queue(is_structured), &bytes, &[]), (seen, error));
    }
}
