//! Streams that an NBD server sends to its client, and URIs of exports.

use fathom_nbd::{Command, Event, ExportAddress, Handshake, ReplyForm, Request, RequestQueue};

use crate::target::Verdict;

/// Passes a stream to a handshake; the first byte chooses the split.
pub(crate) fn decode_handshake(input: &[u8]) -> Result<Verdict, String> {
    let Some((&part, stream)) = input.split_first() else {
        return Ok(Verdict::Refused("too short".to_owned()));
    };
    let mut handshake = Handshake::new("disk", ReplyForm::Structured);
    for mut bytes in stream.chunks(usize::from(part).max(1)) {
        match handshake.receive(&mut bytes) {
            Ok(None) if bytes.is_empty() => {}
            Ok(None) => return Err(format!("{} bytes are left over", bytes.len())),
            Ok(Some(_)) => return Ok(Verdict::Accepted),
            Err(error) => return Ok(Verdict::Refused(error.to_string())),
        }
        handshake.sent(handshake.unsent().len());
    }
    Ok(Verdict::Refused("incomplete".to_owned()))
}

/// Passes a stream to a queue with requests of each kind in flight. The input's first bytes choose
/// whether structured replies are agreed on, and the split. Each request must complete once at
/// most, and no event may name data outside its request.
pub(crate) fn decode_replies(input: &[u8]) -> Result<Verdict, String> {
    let Some((&[flags, part], stream)) = input.split_first_chunk() else {
        return Ok(Verdict::Refused("too short".to_owned()));
    };
    let mut queue = RequestQueue::new(TAGS, flags & 1 != 0);
    for tag in 0..TAGS {
        submit(&mut queue, tag);
    }
    for mut bytes in stream.chunks(usize::from(part).max(1)) {
        loop {
            match queue.next(&mut bytes) {
                Ok(Some(event)) => on_event(&mut queue, event)?,
                Ok(None) if bytes.is_empty() => break,
                Ok(None) => return Err(format!("{} bytes are left over", bytes.len())),
                Err(error) => return Ok(Verdict::Refused(error.to_string())),
            }
        }
    }
    match queue.in_flight() == TAGS as usize {
        true => Ok(Verdict::Accepted),
        false => Err(format!("{} requests are in flight", queue.in_flight())),
    }
}

pub(crate) fn decode_uri(input: &[u8]) -> Result<Verdict, String> {
    let Ok(text) = std::str::from_utf8(input) else {
        return Ok(Verdict::Refused("not text".to_owned()));
    };
    Ok(match ExportAddress::parse(text) {
        Ok(address) => {
            // The name may be used as it is.
            let _asked = Handshake::new(&address.name, ReplyForm::Structured);
            Verdict::Accepted
        }
        Err(error) => Verdict::Refused(format!("{:?}", error.to_string())),
    })
}

/// Returns the words of a URI.
pub(crate) fn words() -> Vec<String> {
    let words = [
        "nbd://",
        "nbd+unix:///",
        "nbds://",
        "?socket=",
        "%41",
        "[::1]",
    ];
    words.map(str::to_owned).to_vec()
}

fn on_event(queue: &mut RequestQueue, event: Event<'_>) -> Result<(), String> {
    match event {
        Event::Data { tag, offset, bytes } => check_range(tag, offset, bytes.len()),
        Event::Hole {
            tag,
            offset,
            length,
        } => check_range(tag, offset, length as usize),
        Event::Completed { tag, failure } => {
            if failure.is_some() {
                let _may_be_shown = queue.error_text(tag);
            }
            submit(queue, tag);
            Ok(())
        }
    }
}

/// Submits a request; its data begin at an offset that is its tag's alone.
fn submit(queue: &mut RequestQueue, tag: u32) {
    let command = match tag % 4 {
        0 | 1 => Command::Read,
        2 => Command::Write,
        _ => Command::Flush,
    };
    let request = Request {
        command,
        offset: u64::from(tag) << 16,
        length: BYTES,
        is_fua: false,
    };
    queue.submit(tag, request, tag * BYTES);
    let data = if command == Command::Write { BYTES } else { 0 };
    queue.sent(REQUEST_BYTES + data as usize);
}

fn check_range(tag: u32, offset: u32, length: usize) -> Result<(), String> {
    let from = tag * BYTES;
    let upto = u64::from(offset) + length as u64;
    match offset >= from && upto <= u64::from(from + BYTES) {
        true => Ok(()),
        false => Err(format!(
            "{length} bytes at {offset} are not of request {tag}"
        )),
    }
}

const TAGS: u32 = 8;
const BYTES: u32 = 8192;
const REQUEST_BYTES: usize = 28;
