//! Peers that break the protocol.

use std::sync::Arc;

use fathom_nvme::{
    DataPdu, Digest, Digests, FatalStatus, Framing, Opcode, Pdu, Side, Status, TermReq,
};

use crate::bare_host::{BareHost, connect, h2c, inside, outside, transfer};
use crate::setup::{BOTH, NO_DIGESTS, config, connections, memory, null, start, wait_for};

/// Expects the report of a fatal error, and the end of the connection once the host closes.
#[track_caller]
fn expect_termination(mut host: BareHost, status: FatalStatus) {
    loop {
        match host.receive().expect("a termination request").pdu {
            Pdu::TermReq(Side::Controller, reason) => {
                assert_eq!(reason.status, status, "{reason:?}");
                return;
            }
            Pdu::R2t(_) | Pdu::Response(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Each header field of a command capsule, of data and of the initialization set wrong in turn.
#[test]
fn wrong_header_fields_end_the_connection_with_their_reason() {
    let (target, address, log) = start(config(memory(1 << 20), 2));
    let admin = BareHost::admin(address, NO_DIGESTS);
    let command = [4, 0, 72, 0, 72, 0, 0, 0];
    let invalid = FatalStatus::INVALID_HEADER;
    let mut qid = 0;
    for (place, value, want) in [
        (0, 1, invalid),    // a PDU of the controller
        (0, 0xff, invalid), // unknown
        (0, 0, FatalStatus::SEQUENCE),
        (1, 1, invalid), // a digest that was not agreed
        (2, 71, invalid),
        (4, 71, invalid),
        (5, 0xff, invalid), // a length whose data are nowhere
        (7, 0xff, invalid),
    ] {
        qid += 1;
        let mut queue = admin.io(address, qid, NO_DIGESTS);
        let mut header = command;
        header[place] = value;
        queue.send_bytes(&header);
        expect_termination(queue, want);
    }
    let mut queue = admin.io(address, 20, NO_DIGESTS);
    queue.send_bytes(&[4, 0, 72, 72, 0, 0, 1, 0]);
    expect_termination(queue, FatalStatus::LIMIT_EXCEEDED);
    for (place, value) in [(0, 4), (2, 127), (4, 127), (8, 1), (10, 32)] {
        let mut host = BareHost::raw(address);
        let mut request = [0; 128];
        (request[2], request[4]) = (128, 128);
        request[place] = value;
        host.send_bytes(&request);
        let want = if place == 0 {
            FatalStatus::SEQUENCE
        } else {
            invalid
        };
        expect_termination(host, want);
    }
    wait_for(&target, |statistics| connections(statistics) == 1);
    assert!(log.contain("Terminated(Controller"));
}

#[test]
fn data_for_tags_that_the_host_does_not_own_end_the_connection() {
    let (target, address, _) = start(config(memory(1 << 20), 1));
    let admin = BareHost::admin(address, NO_DIGESTS);
    let mut qid = 0;
    let mut check = |change: &dyn Fn(&mut DataPdu), status| {
        qid += 1;
        let mut queue = admin.io(address, qid, NO_DIGESTS);
        queue.send(&Pdu::Command(transfer(Opcode::WRITE, 7, 0, 8192)), &[]);
        let Pdu::R2t(ready) = queue.receive().unwrap().pdu else {
            panic!("no R2T");
        };
        let Pdu::H2cData(mut header) = h2c(7, ready.ttag, 8192) else {
            return;
        };
        change(&mut header);
        let data = vec![0; header.length as usize];
        queue.send(&Pdu::H2cData(header), &data);
        expect_termination(queue, status);
    };
    check(&|header| header.ttag += 1, FatalStatus::INVALID_HEADER);
    check(&|header| header.ttag = 0, FatalStatus::INVALID_HEADER);
    check(&|header| header.cid = 8, FatalStatus::INVALID_HEADER);
    check(&|header| header.offset = 4096, FatalStatus::SEQUENCE);
    check(&|header| header.length = 12_288, FatalStatus::OUT_OF_RANGE);
    check(&|header| header.length = 4096, FatalStatus::INVALID_HEADER);
    wait_for(&target, |statistics| {
        connections(statistics) == 1 && statistics.buffers_in_use == 0
    });
}

#[test]
fn a_wrong_data_digest_fails_its_command_only() {
    let (target, address, _) = start(config(memory(1 << 20), 1));
    let admin = BareHost::admin(address, BOTH);
    let mut queue = admin.io(address, 1, BOTH);
    let command = transfer(Opcode::WRITE, 7, 0, 4096).with_data(inside(4096));
    let framing = Framing::new(BOTH, 0).unwrap();
    let mut bytes = Pdu::Command(command)
        .encode(framing, 4096)
        .as_bytes()
        .to_vec();
    bytes.extend_from_slice(&[1; 4096]);
    bytes.extend_from_slice(&[0; 4]);
    queue.send_bytes(&bytes);
    let Pdu::Response(completion) = queue.receive().unwrap().pdu else {
        panic!("no response");
    };
    assert_eq!(completion.status, Status::TRANSIENT_TRANSPORT_ERROR);
    let read = queue.succeed(transfer(Opcode::READ, 8, 0, 4096), &[]);
    assert_eq!(read, [0; 4096], "nothing was written");
    drop(queue);
    let io = &target.stop().namespaces[0].io;
    assert_eq!((io.writes, io.errors, io.digest_errors), (0, 1, 1));
}

/// Two Connects, of which the first is refused without having been run, are answered together: when
/// the first response is sent, the connection is an I/O queue.
#[test]
fn nothing_is_left_of_a_connect_that_is_refused_before_another() {
    let ddgst = Digests {
        header: false,
        data: true,
    };
    for is_corrupt in [false, true] {
        let (_target, address, _) = start(config(memory(1 << 20), 1));
        let admin = BareHost::admin(address, NO_DIGESTS);
        let mut queue = BareHost::open(address, ddgst);
        let framing = Framing::new(ddgst, 0).unwrap();
        let (command, data) = connect(1, admin.cntlid).encode(1);
        let encode = |command, data: &[u8], digest: [u8; 4]| {
            let encoded = Pdu::Command(command).encode(framing, u32::try_from(data.len()).unwrap());
            [encoded.as_bytes(), data, &digest].concat()
        };
        let mut bytes = match is_corrupt {
            true => encode(command.with_data(inside(1024)), &data, [0; 4]),
            false => encode(command.with_data(outside(1024)), &[], [0; 4])[..72].to_vec(),
        };
        let digest = Digest::of(&data).to_bytes();
        let good = command.with_cid(2).with_data(inside(1024));
        bytes.extend(encode(good, &data, digest));
        let write = |cid| transfer(Opcode::WRITE, cid, 0, 512).with_data(inside(512));
        let digest = Digest::of(&[7; 512]).to_bytes();
        queue.send_bytes(&bytes);
        let mut statuses = Vec::new();
        let mut answer = |queue: &mut BareHost| match queue.receive().expect("an answer").pdu {
            Pdu::Response(completion) => statuses.push(completion.status.is_success()),
            other => panic!("{other:?}"),
        };
        (0..2).for_each(|_| answer(&mut queue));
        // One for each slot.
        queue.send_bytes(
            &[3, 4]
                .map(|cid| encode(write(cid), &[7; 512], digest))
                .concat(),
        );
        (0..2).for_each(|_| answer(&mut queue));
        assert_eq!(statuses, [false, true, true, true], "corrupt: {is_corrupt}");
    }
}

/// Behind a wrong header nothing can be found: not even its length is certain.
#[test]
fn a_wrong_header_digest_ends_the_connection() {
    let (target, address, _) = start(config(memory(1 << 20), 1));
    let admin = BareHost::admin(address, BOTH);
    let framing = Framing::new(BOTH, 0).unwrap();
    let pdu = Pdu::Command(transfer(Opcode::READ, 7, 0, 4096));
    for (qid, place) in [(1, 8), (2, 71), (3, 72), (4, 75)] {
        let mut queue = admin.io(address, qid, BOTH);
        let mut bytes = pdu.encode(framing, 0).as_bytes().to_vec();
        bytes[place] ^= 1;
        queue.send_bytes(&bytes);
        expect_termination(queue, FatalStatus::HEADER_DIGEST);
    }
    wait_for(&target, |statistics| connections(statistics) == 1);
}

#[test]
fn a_host_that_terminates_is_closed() {
    let (target, address, log) = start(config(null(), 1));
    let mut host = BareHost::open(address, NO_DIGESTS);
    let reason = TermReq {
        status: FatalStatus::OUT_OF_RANGE,
        information: 3,
    };
    host.send(&Pdu::TermReq(Side::Host, reason), &[0; 24]);
    host.wait_end();
    wait_for(&target, |statistics| connections(statistics) == 0);
    assert!(log.contain("Terminated(Host"));
}

/// Hosts that go in the middle of transfers, with every kind of request under way.
#[test]
fn buffers_come_back_when_hosts_are_killed() {
    let mut config = config(memory(1 << 24), 2);
    config.buffers.count = Some(6);
    config.buffers.cache = 1;
    let (target, address, _) = start(config);
    for round in 0..20_u16 {
        let admin = BareHost::admin(address, NO_DIGESTS);
        let mut queues: Vec<_> = (1..=3)
            .map(|qid| admin.io(address, qid, NO_DIGESTS))
            .collect();
        for queue in &mut queues {
            for cid in 0..12 {
                let read = transfer(Opcode::READ, cid, 0, 131_072);
                let write = transfer(Opcode::WRITE, cid + 100, 0, 131_072);
                queue.send(&Pdu::Command(read), &[]);
                queue.send(&Pdu::Command(write), &[]);
            }
            let half = transfer(Opcode::WRITE, 200, 0, 4096).with_data(inside(4096));
            let bytes = Pdu::Command(half).encode(Framing::PLAIN, 4096);
            queue.send_bytes(bytes.as_bytes());
            queue.send_bytes(&[0; 1000]);
        }
        if round % 2 == 0 {
            // All at once, with unread data: the sockets are reset.
            drop((queues, admin));
        } else {
            drop(admin);
            for queue in &mut queues {
                queue.wait_end();
            }
        }
    }
    wait_for(&target, |statistics| {
        connections(statistics) == 0 && statistics.buffers_in_use == 0
    });
    let statistics = target.stop();
    let pending = statistics
        .threads
        .iter()
        .map(|thread| thread.admission.pending);
    assert_eq!(pending.sum::<u32>(), 0);
}

#[test]
fn a_target_ends_with_hosts_amid_transfers() {
    let (target, address, _) = start(config(memory(1 << 24), 2));
    let admin = BareHost::admin(address, NO_DIGESTS);
    let mut queue = admin.io(address, 1, NO_DIGESTS);
    for cid in 0..16 {
        let write = transfer(Opcode::WRITE, cid, 0, 131_072);
        queue.send(&Pdu::Command(write), &[]);
    }
    queue.receive().expect("an R2T");
    let statistics = Arc::new(target.stop());
    assert_eq!(statistics.buffers_in_use, 0);
    queue.wait_end();
}
