//! Logs to be replayed: fio's text, and the kernel's blktrace.

use fathom_core::PerDirection;
use fathom_iolog::{
    Action, Changes, Decoder, Event, IologError, MergeInput, Survey, TimeScale, Transform,
};

use crate::target::{Verdict, check_message};

/// Decodes a text log; the input need not begin with the header.
pub(crate) fn decode_text(input: &[u8]) -> Result<Verdict, String> {
    match input.starts_with(b"fio version") {
        true => decode(input),
        false => decode(&[b"fio version 3 iolog\n0 a add\n0 a open\n", input].concat()),
    }
}

/// Decodes a trace in the byte order that its first record has.
pub(crate) fn decode_trace(input: &[u8]) -> Result<Verdict, String> {
    let verdict = decode(input)?;
    check_merged(input)?;
    Ok(verdict)
}

/// Merges a trace with nothing else, which must not change its events.
fn check_merged(input: &[u8]) -> Result<(), String> {
    let mut merge = MergeInput::new("log", TimeScale::ONE);
    let (mut merged, mut rest, mut sequence) = (Vec::new(), input, 0);
    while let Some((fixed, after)) = rest.split_first_chunk() {
        let Ok(record) = merge.record(fixed) else {
            break;
        };
        let Some((pdu, after)) = after.split_at_checked(record.pdu_bytes.into()) else {
            break;
        };
        merged.extend(record.numbered(sequence));
        merged.extend(pdu);
        (rest, sequence) = (after, sequence + 1);
    }
    let whole = &input[..input.len() - rest.len()];
    if merge.times_back() > 0 || whole.is_empty() {
        return Ok(());
    }
    match (events(whole), events(&merged)) {
        (Ok(before), Ok(after)) if before == after => Ok(()),
        // Names and lengths are checked by the replay of the merge.
        (Err(before), Err(after)) if before == after => Ok(()),
        (before, after) => Err(format!("before the merge {before:?}, after it {after:?}")),
    }
}

/// Returns the events of a log.
fn events(input: &[u8]) -> Result<Vec<Event>, IologError> {
    let (mut decoder, mut events) = (Decoder::new("log"), Vec::new());
    decoder.push(input, &mut |event| events.push(event))?;
    decoder.finish(&mut |event| events.push(event))?;
    Ok(events)
}

/// Words of the text format.
pub(crate) fn words() -> Vec<String> {
    let words = "fio version 2 3 iolog add open close read write trim sync datasync wait 0 4096";
    words.split(' ').map(str::to_owned).collect()
}

fn decode(input: &[u8]) -> Result<Verdict, String> {
    let whole = replay(input, input.len().max(1));
    // The cuts of a stream must not show in what is read from it.
    let pieces = replay(input, 1 + input.len() % 61);
    match (&whole, &pieces) {
        (Ok(whole), Ok(pieces)) if whole == pieces => Ok(Verdict::Accepted),
        (Err(whole), Err(pieces)) if whole == pieces => {
            let message = format!("{whole}\nhint: {}", whole.kind.hint());
            check_message(&message)?;
            Ok(Verdict::Refused(message))
        }
        _ => Err(format!("in one piece {whole:?}, in several {pieces:?}")),
    }
}

/// Decodes, transforms and surveys a log, and checks what a replay relies on.
fn replay(input: &[u8], piece: usize) -> Result<Survey, IologError> {
    let mut decoder = Decoder::new("log");
    let (mut survey, mut before) = (Survey::default(), None::<Event>);
    let mut transform = Transform::new(Changes {
        skip: PerDirection::new(false, false, input.len() % 2 == 1),
        scale: 3,
        align: 512,
        speed_percent: 50,
        ..Changes::default()
    });
    let mut each = |event: Event| {
        assert!(before.is_none_or(|before| before.time <= event.time));
        before = Some(event);
        if let Some(event) = transform.apply(event) {
            if let Action::Data { offset, length, .. } = event.action {
                assert!(length > 0 && i64::try_from(offset + u64::from(length)).is_ok());
            }
            survey.add(&event);
        }
    };
    for bytes in input.chunks(piece) {
        decoder.push(bytes, &mut each)?;
    }
    decoder.finish(&mut each)?;
    assert!(survey.files.len() <= decoder.names().len());
    Ok(survey)
}
