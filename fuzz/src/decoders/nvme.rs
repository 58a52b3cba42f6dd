//! Streams of NVMe/TCP PDUs.

use fathom_nvme::{Decoder, Digests, Event, Framing, Limits, Pdu, Side};

use crate::target::Verdict;

/// Decodes a stream as one side of a connection, with the framing and the split that the input's
/// first bytes choose; then checks that each header that was accepted survives its own encoding.
pub(crate) fn decode(input: &[u8]) -> Result<Verdict, String> {
    let Some((&[side, digests, alignment, part], stream)) = input.split_first_chunk() else {
        return Ok(Verdict::Refused("too short".to_owned()));
    };
    let receiver = match side & 1 {
        0 => Side::Controller,
        _ => Side::Host,
    };
    let digests = Digests {
        header: digests & 1 != 0,
        data: digests & 2 != 0,
    };
    let Some(framing) = Framing::new(digests, alignment & 31) else {
        return Err(format!("no framing of alignment {}", alignment & 31));
    };
    let mut decoder = Decoder::new(receiver, LIMITS);
    if side & 2 == 0 {
        decoder.establish(framing);
    }
    for mut bytes in stream.chunks(usize::from(part).max(1)) {
        loop {
            match decoder.next(&mut bytes) {
                Ok(Some(Event::Pdu(pdu, data))) => {
                    check_again(&pdu, data, framing, side & 2 == 0)?;
                    if matches!(pdu, Pdu::IcReq(_) | Pdu::IcResp(_)) {
                        decoder.establish(framing);
                    }
                }
                Ok(Some(Event::Data([]))) => {
                    return Err("a part of data without bytes".to_owned());
                }
                Ok(Some(_)) => {}
                Ok(None) if bytes.is_empty() => break,
                Ok(None) => return Err(format!("{} bytes are left over", bytes.len())),
                Err(refusal) => return Ok(Verdict::Refused(format!("{refusal:?}"))),
            }
        }
    }
    Ok(Verdict::Accepted)
}

/// Checks that a header that was accepted is accepted again once it is encoded.
fn check_again(pdu: &Pdu, data: u32, framing: Framing, established: bool) -> Result<(), String> {
    let receiver = match pdu.kind().sender() {
        Some(Side::Host) => Side::Controller,
        Some(Side::Controller) => Side::Host,
        None => return Err(format!("{pdu:?} of nobody")),
    };
    let mut decoder = Decoder::new(receiver, LIMITS);
    let framing = match established {
        true => framing,
        false => Framing::PLAIN,
    };
    if !matches!(pdu, Pdu::IcReq(_) | Pdu::IcResp(_)) {
        decoder.establish(framing);
    }
    let encoded = pdu.encode(framing, data);
    match decoder.next(&mut encoded.as_bytes()) {
        Ok(Some(Event::Pdu(again, length))) if (again, length) == (*pdu, data) => Ok(()),
        other => Err(format!("{pdu:?} with {data} bytes came back as {other:?}")),
    }
}

const LIMITS: Limits = Limits {
    in_capsule_bytes: 8192,
    data_bytes: 131_072,
};
