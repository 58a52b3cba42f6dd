use proptest::prelude::*;

use super::*;
use crate::{
    Command, Completion, DataPdu, Digests, Encoded, IcReq, IcResp, Opcode, ReadyToTransfer, Status,
};

const LIMITS: Limits = Limits {
    in_capsule_bytes: 8192,
    data_bytes: 131_072,
};

/// Decoded PDU with its data in one piece.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Decoded {
    pdu: Pdu,
    data: Vec<u8>,
    is_intact: bool,
}

fn framing(digests: Digests, pda: u8) -> Framing {
    Framing::new(digests, pda).expect("an alignment")
}

fn established(receiver: Side, framing: Framing) -> Decoder {
    let mut decoder = Decoder::new(receiver, LIMITS);
    decoder.establish(framing);
    decoder
}

/// Returns the bytes of a PDU with its data and digest.
fn wire(pdu: &Pdu, data: &[u8], framing: Framing) -> Vec<u8> {
    let length = u32::try_from(data.len()).expect("little data");
    let encoded: Encoded = pdu.encode(framing, length);
    let mut bytes = encoded.as_bytes().to_vec();
    bytes.extend_from_slice(data);
    if framing.data_digest_bytes(pdu.kind()) > 0 && !data.is_empty() {
        bytes.extend_from_slice(&Digest::of(data).to_bytes());
    }
    bytes
}

/// Decodes bytes that arrive in parts, which end at `cuts`.
fn decode(decoder: &mut Decoder, bytes: &[u8], cuts: &[usize]) -> Result<Vec<Decoded>, TermReq> {
    let mut all: Vec<Decoded> = Vec::new();
    let mut from = 0;
    for &upto in cuts.iter().chain([&bytes.len()]) {
        let upto = upto.clamp(from, bytes.len());
        let mut input = &bytes[from..upto];
        while let Some(event) = decoder.next(&mut input)? {
            match event {
                Event::Pdu(pdu, length) => all.push(Decoded {
                    pdu,
                    data: Vec::new(),
                    is_intact: length == 0,
                }),
                Event::Data(data) => all.last_mut().expect("a header").data.extend(data),
                Event::End { is_intact } => all.last_mut().expect("a header").is_intact = is_intact,
            }
        }
        assert!(input.is_empty(), "all is consumed");
        from = upto;
    }
    Ok(all)
}

fn any_data_pdu(length: u32) -> impl Strategy<Value = DataPdu> {
    (any::<u16>(), any::<u16>(), any::<u32>(), any::<bool>()).prop_map(
        move |(cid, ttag, offset, is_last)| DataPdu {
            cid,
            ttag,
            offset,
            length,
            is_last,
            is_success: false,
        },
    )
}

/// Generates PDUs to a controller, with their data.
fn any_from_host() -> impl Strategy<Value = (Pdu, Vec<u8>)> {
    let bytes = || proptest::collection::vec(any::<u8>(), 1..600);
    let command = (any::<u16>(), any::<u32>(), any::<u64>()).prop_map(|(cid, nsid, block)| {
        let command = Command::new(Opcode::WRITE, cid);
        Pdu::Command(command.with_nsid(nsid).with_qword(10, block))
    });
    let data = bytes().prop_flat_map(|data| {
        let length = u32::try_from(data.len()).expect("little data");
        (any_data_pdu(length).prop_map(Pdu::H2cData), Just(data))
    });
    prop_oneof![
        (command.clone(), Just(Vec::new())),
        (command, bytes()),
        data,
    ]
}

/// Generates PDUs to a host, with their data.
fn any_from_controller() -> impl Strategy<Value = (Pdu, Vec<u8>)> {
    let completion = (any::<u64>(), any::<u16>(), any::<u16>()).prop_map(|(result, cid, head)| {
        Pdu::Response(Completion {
            result,
            sq_head: head,
            sq_id: 1,
            cid,
            status: Status::LBA_OUT_OF_RANGE,
        })
    });
    let ready = (any::<u16>(), any::<u16>(), any::<u32>()).prop_map(|(cid, ttag, length)| {
        Pdu::R2t(ReadyToTransfer {
            cid,
            ttag,
            offset: 0,
            length,
        })
    });
    let data = proptest::collection::vec(any::<u8>(), 1..600).prop_flat_map(|data| {
        let length = u32::try_from(data.len()).expect("little data");
        let header = (any_data_pdu(length), any::<bool>()).prop_map(|(header, is_success)| {
            Pdu::C2hData(DataPdu {
                is_success,
                ..header
            })
        });
        (header, Just(data))
    });
    prop_oneof![
        (completion, Just(Vec::new())),
        (ready, Just(Vec::new())),
        data,
    ]
}

fn any_framing() -> impl Strategy<Value = Framing> {
    (any::<bool>(), any::<bool>(), 0_u8..32)
        .prop_map(|(header, data, pda)| framing(Digests { header, data }, pda))
}

proptest! {
    #[test]
    fn pdus_survive_the_wire_however_they_are_split(
        to_host in any::<bool>(),
        from_host in proptest::collection::vec(any_from_host(), 1..5),
        from_controller in proptest::collection::vec(any_from_controller(), 1..5),
        framing in any_framing(),
        mut cuts in proptest::collection::vec(0_usize..4000, 0..40),
    ) {
        let (receiver, pdus) = match to_host {
            true => (Side::Host, from_controller),
            false => (Side::Controller, from_host),
        };
        cuts.sort_unstable();
        let bytes: Vec<u8> =
            pdus.iter().flat_map(|(pdu, data)| wire(pdu, data, framing)).collect();
        let got = decode(&mut established(receiver, framing), &bytes, &cuts).expect("sound PDUs");
        let want: Vec<Decoded> = pdus
            .into_iter()
            .map(|(pdu, data)| Decoded { pdu, data, is_intact: true })
            .collect();
        prop_assert_eq!(got, want);
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        kind in 0_u8..12,
        framing in any_framing(),
        is_new in any::<bool>(),
    ) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() {
            *first = kind;
        }
        for receiver in [Side::Host, Side::Controller] {
            let mut decoder = Decoder::new(receiver, LIMITS);
            if !is_new {
                decoder.establish(framing);
            }
            let mut input = &bytes[..];
            let refused = loop {
                match decoder.next(&mut input) {
                    Ok(Some(_)) => {}
                    Ok(None) => break false,
                    Err(_) => {
                        prop_assert!(decoder.header().len() <= 128);
                        break true;
                    }
                }
            };
            prop_assert!(!refused || decoder.next(&mut input) == Ok(None), "a refusal is final");
        }
    }
}

#[test]
fn a_connection_begins_with_its_initialization() {
    let request = Pdu::IcReq(IcReq {
        digests: Digests {
            header: true,
            data: false,
        },
        ..IcReq::default()
    });
    let response = Pdu::IcResp(IcResp {
        h2c_data_bytes_max: 131_072,
        ..IcResp::default()
    });
    for (receiver, pdu) in [(Side::Controller, request), (Side::Host, response)] {
        let mut decoder = Decoder::new(receiver, LIMITS);
        let bytes = wire(&pdu, &[], Framing::PLAIN);
        assert_eq!(bytes.len(), 128);
        let got = decode(&mut decoder, &bytes, &[5, 100]).expect("a sound PDU");
        assert_eq!(got.len(), 1);
        assert_eq!(got[0].pdu, pdu);
        decoder.establish(Framing::PLAIN);
        let again = decode(&mut decoder, &bytes, &[]).expect_err("a second initialization");
        assert_eq!(again.status, FatalStatus::SEQUENCE);
    }
    let command = wire(
        &Pdu::Command(Command::new(Opcode::READ, 0)),
        &[],
        Framing::PLAIN,
    );
    let mut decoder = Decoder::new(Side::Controller, LIMITS);
    let refusal = decode(&mut decoder, &command, &[]).expect_err("not initialized");
    assert_eq!(refusal.status, FatalStatus::SEQUENCE);
}

#[test]
fn a_refusal_of_the_initialization_reaches_the_host() {
    let reason = TermReq {
        status: FatalStatus::UNSUPPORTED_PARAMETER,
        information: 8,
    };
    let pdu = Pdu::TermReq(Side::Controller, reason);
    let mut bytes = wire(&pdu, &[7; 128], Framing::PLAIN);
    assert_eq!((bytes.len(), bytes[3]), (152, 0));
    // Reserved, whatever the sender stores there: SPDK 0, others the offset of the data.
    for offset in [0, 24, 255] {
        bytes[3] = offset;
        let got = decode(&mut Decoder::new(Side::Host, LIMITS), &bytes, &[]).expect("a sound PDU");
        assert_eq!((got[0].pdu, got[0].data.len()), (pdu, 128));
    }
}

/// Each byte of the common header wrong in turn: what is refused, and where.
#[test]
fn each_wrong_field_is_refused_at_its_place() {
    let both = framing(
        Digests {
            header: true,
            data: true,
        },
        0,
    );
    let pdu = Pdu::H2cData(DataPdu {
        length: 512,
        ..DataPdu::default()
    });
    let check = |at: usize, value: u8, status: FatalStatus, information: u32| {
        let mut bytes = wire(&pdu, &[0; 512], both);
        bytes[at] = value;
        let mut decoder = established(Side::Controller, both);
        let refusal = decode(&mut decoder, &bytes, &[]).expect_err("a wrong field");
        assert_eq!(
            refusal,
            TermReq {
                status,
                information
            },
            "byte {at}"
        );
        assert!(bytes.starts_with(decoder.header()));
    };
    let invalid = FatalStatus::INVALID_HEADER;
    check(0, 0x0b, invalid, 0);
    check(0, 0x07, invalid, 0);
    check(0, 0x00, FatalStatus::SEQUENCE, 0);
    check(1, 2, invalid, 1);
    check(1, 1, invalid, 1);
    check(2, 72, invalid, 2);
    check(3, 27, invalid, 3);
    check(3, 24, invalid, 3);
    check(3, 255, invalid, 3);
    check(5, 0, invalid, 4);
    check(7, 1, FatalStatus::LIMIT_EXCEEDED, 4);
    let mut bytes = wire(&pdu, &[0; 512], both);
    bytes[9] ^= 1;
    let received = u32_at(&bytes, 24);
    check(9, bytes[9], FatalStatus::HEADER_DIGEST, received);
}

#[test]
fn both_lengths_of_a_data_pdu_must_agree() {
    let pdu = Pdu::H2cData(DataPdu {
        length: 511,
        ..DataPdu::default()
    });
    let bytes = wire(&pdu, &[0; 512], Framing::PLAIN);
    let refusal = decode(
        &mut established(Side::Controller, Framing::PLAIN),
        &bytes,
        &[],
    )
    .expect_err("lengths that differ");
    let reason = TermReq {
        status: FatalStatus::INVALID_HEADER,
        information: 16,
    };
    assert_eq!(refusal, reason);
}

#[test]
fn a_length_is_judged_before_the_rest_arrives() {
    let mut header = [0; 8];
    header[0] = 4;
    header[2] = 72;
    header[3] = 72;
    header[4..].copy_from_slice(&(72_u32 + 8193).to_le_bytes());
    let mut decoder = established(Side::Controller, Framing::PLAIN);
    let refusal = decode(&mut decoder, &header, &[]).expect_err("too much in the capsule");
    assert_eq!(refusal.status, FatalStatus::LIMIT_EXCEEDED);
    assert_eq!(decoder.header(), header);
}

#[test]
fn a_wrong_data_digest_concerns_its_pdu_alone() {
    let both = framing(
        Digests {
            header: true,
            data: true,
        },
        0,
    );
    let pdu = Pdu::Command(Command::new(Opcode::WRITE, 1));
    let mut bytes = wire(&pdu, &[1, 2, 3, 4], both);
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    bytes.extend(wire(&pdu, &[5, 6, 7, 8], both));
    let got = decode(&mut established(Side::Controller, both), &bytes, &[77, 79]);
    let intact: Vec<bool> = got
        .expect("sound headers")
        .iter()
        .map(|one| one.is_intact)
        .collect();
    assert_eq!(intact, [false, true]);
}

#[test]
fn data_may_be_received_straight_into_their_place() {
    let digests = Digests {
        header: false,
        data: true,
    };
    let framing = framing(digests, 0);
    let data: Vec<u8> = (0..200).collect();
    let pdu = Pdu::C2hData(DataPdu {
        length: 200,
        ..DataPdu::default()
    });
    let bytes = wire(&pdu, &data, framing);
    let mut decoder = established(Side::Host, framing);
    let mut input = &bytes[..24 + 50];
    assert_eq!(decoder.next(&mut input), Ok(Some(Event::Pdu(pdu, 200))));
    assert_eq!(decoder.next(&mut input), Ok(Some(Event::Data(&data[..50]))));
    assert_eq!(decoder.data_left(), 150);
    decoder.received(&data[50..]);
    assert_eq!(decoder.data_left(), 0);
    let mut input = &bytes[24 + 200..];
    let end = Event::End { is_intact: true };
    assert_eq!(decoder.next(&mut input), Ok(Some(end)));
}
