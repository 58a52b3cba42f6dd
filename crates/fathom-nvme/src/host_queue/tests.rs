use super::receive::fault;
use super::*;
use crate::command::{Command, Opcode};
use crate::completion::Status;
use crate::digest::Digest;
use crate::pdu::{DataPdu, ReadyToTransfer};
use crate::pdu::{FatalStatus, IcResp, PduType};
use crate::send_queue::Piece;
use crate::wire::u32_at;

const CONFIG: HostQueueConfig = HostQueueConfig {
    commands: 4,
    digests: Digests {
        header: false,
        data: false,
    },
    in_capsule_bytes: 4096,
    data_bytes_max: 1 << 20,
};

const BOTH: Digests = Digests {
    header: true,
    data: true,
};

/// Event as the owner of a queue saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Initialized,
    Data(u32, u32, Vec<u8>),
    Wanted(u32, u32, u32),
    Completed(u32, Status),
}

/// A queue under test, and the framing of the controller that the test plays.
struct Bench {
    queue: HostQueue,
    framing: Framing,
    seen: Vec<Seen>,
    /// Buffer of every tag.
    buffer: Vec<u8>,
    /// Length of the parts that arrive.
    part: usize,
}

impl Bench {
    /// Returns a queue whose connection is initialized.
    fn new(config: HostQueueConfig) -> Self {
        let mut bench = Self {
            queue: HostQueue::new(config),
            framing: Framing::PLAIN,
            seen: Vec::new(),
            buffer: (0..1_u32 << 18).map(|at| at.to_le_bytes()[0]).collect(),
            part: usize::MAX,
        };
        let request = bench.flush();
        assert_eq!((request[0], request.len()), (0, 128));
        assert_eq!(request[11], config.digests.bits_for_test());
        let response = Pdu::IcResp(IcResp {
            digests: config.digests,
            h2c_data_bytes_max: 8192,
            ..IcResp::default()
        });
        bench.feed(response, &[]).expect("a response");
        assert_eq!(bench.take(), [Seen::Initialized]);
        bench.framing = Framing::new(config.digests, 0).expect("a framing");
        bench
    }

    /// Returns all unsent bytes as the socket would take them.
    fn flush(&mut self) -> Vec<u8> {
        let mut sent = Vec::new();
        for piece in self.queue.unsent().pieces() {
            match piece {
                Piece::Bytes(bytes) => sent.extend_from_slice(bytes),
                Piece::Data { offset, length, .. } => {
                    sent.extend_from_slice(&self.buffer[offset as usize..][..length as usize]);
                }
            }
        }
        self.queue.sent(sent.len());
        sent
    }

    /// Passes a PDU of the controller to the queue.
    fn feed(&mut self, pdu: Pdu, data: &[u8]) -> Result<(), QueueError> {
        let mut bytes = pdu
            .encode(self.framing, length_of(data))
            .as_bytes()
            .to_vec();
        bytes.extend_from_slice(data);
        if !data.is_empty() && self.framing.data_digest_bytes(pdu.kind()) > 0 {
            bytes.extend_from_slice(&Digest::of(data).to_bytes());
        }
        self.feed_bytes(&bytes)
    }

    fn feed_bytes(&mut self, bytes: &[u8]) -> Result<(), QueueError> {
        for mut part in bytes.chunks(self.part.min(bytes.len()).max(1)) {
            while let Some(event) = self.queue.next(&mut part)? {
                self.note(event);
            }
        }
        Ok(())
    }

    fn note(&mut self, event: HostEvent<'_>) {
        let seen = match event {
            HostEvent::Initialized => Seen::Initialized,
            HostEvent::Data { tag, offset, bytes } => {
                if let Some(Seen::Data(last, from, data)) = self.seen.last_mut()
                    && *last == tag
                    && *from + length_of(data) == offset
                {
                    data.extend_from_slice(bytes);
                    return;
                }
                Seen::Data(tag, offset, bytes.to_vec())
            }
            HostEvent::Wanted(wanted) => {
                let (offset, length) = (wanted.offset, wanted.length);
                let data = self.buffer[offset as usize..][..length as usize].to_vec();
                self.queue.transfer(wanted, &data);
                Seen::Wanted(wanted.tag, offset, length)
            }
            HostEvent::Completed { tag, completion } => Seen::Completed(tag, completion.status),
        };
        self.seen.push(seen);
    }

    fn take(&mut self) -> Vec<Seen> {
        std::mem::take(&mut self.seen)
    }

    fn read(&mut self, tag: u32, length: u32) -> u16 {
        let command = Command::new(Opcode::READ, 0).with_nsid(1);
        assert!(
            self.queue
                .submit(command, tag, 0, CommandData::Read(length))
        );
        let sent = self.flush();
        assert_eq!(sent[0], PduType::CAPSULE_CMD.0);
        u16::from_le_bytes([sent[10], sent[11]])
    }

    /// Submits a write of the buffer's first bytes, and returns its identifier and what was sent.
    fn write(&mut self, tag: u32, length: u32) -> (u16, Vec<u8>) {
        let command = Command::new(Opcode::WRITE, 0).with_nsid(1);
        let data = self.buffer[..length as usize].to_vec();
        assert!(
            self.queue
                .submit(command, tag, 0, CommandData::Write(&data))
        );
        let sent = self.flush();
        (u16::from_le_bytes([sent[10], sent[11]]), sent)
    }
}

impl Digests {
    const fn bits_for_test(self) -> u8 {
        self.header as u8 | (self.data as u8) << 1
    }
}

fn success(cid: u16) -> Pdu {
    Pdu::Response(Completion {
        cid,
        ..Completion::default()
    })
}

fn failure(cid: u16) -> Pdu {
    Pdu::Response(Completion {
        cid,
        status: Status::INTERNAL_ERROR,
        ..Completion::default()
    })
}

fn data(cid: u16, offset: u32, length: u32, is_last: bool, is_success: bool) -> Pdu {
    Pdu::C2hData(DataPdu {
        cid,
        ttag: 0,
        offset,
        length,
        is_last,
        is_success,
    })
}

fn ready(cid: u16, offset: u32, length: u32) -> Pdu {
    Pdu::R2t(ReadyToTransfer {
        cid,
        ttag: 5,
        offset,
        length,
    })
}

/// A read with and without a completion of its own, with both digests, split anywhere.
#[test]
fn a_read_completes_once_however_its_data_are_split() {
    let content: Vec<u8> = (0..1000_u32).map(|at| (at * 7).to_le_bytes()[0]).collect();
    for digests in [Digests::default(), BOTH] {
        for part in [1, 2, 7, 24, 25, 28, 100, 2000] {
            let mut bench = Bench::new(HostQueueConfig { digests, ..CONFIG });
            bench.part = part;
            let cid = bench.read(3, 1000);
            bench
                .feed(data(cid, 0, 600, false, false), &content[..600])
                .expect("data");
            bench
                .feed(data(cid, 600, 400, true, true), &content[600..])
                .expect("data");
            let want = [
                Seen::Data(3, 0, content.clone()),
                Seen::Completed(3, Status::SUCCESS),
            ];
            assert_eq!(bench.take(), want);
            let cid = bench.read(4, 1000);
            bench
                .feed(data(cid, 0, 1000, true, false), &content)
                .expect("data");
            bench.feed(success(cid), &[]).expect("a completion");
            let want = [
                Seen::Data(4, 0, content.clone()),
                Seen::Completed(4, Status::SUCCESS),
            ];
            assert_eq!(bench.take(), want);
            assert_eq!(bench.queue.in_flight(), 0);
        }
    }
}

/// Traced: a 4 KiB write with both digests is one capsule of 4176 bytes, its data at 76.
#[test]
fn small_writes_go_in_the_capsule() {
    let mut bench = Bench::new(HostQueueConfig {
        digests: BOTH,
        ..CONFIG
    });
    let (cid, sent) = bench.write(1, 4096);
    assert_eq!(sent.len(), 4176);
    assert_eq!(sent[..4], [4, 3, 72, 76]);
    assert_eq!(u32_at(&sent, 4), 4176);
    assert_eq!(u32_at(&sent, 8 + 32), 4096, "length of the SGL");
    assert_eq!(sent[8 + 39], 0x01, "offset in the capsule");
    assert_eq!(sent[76..4172], bench.buffer[..4096]);
    assert_eq!(sent[4172..], Digest::of(&sent[76..4172]).to_bytes());
    bench.feed(success(cid), &[]).expect("a completion");
    assert_eq!(bench.take(), [Seen::Completed(1, Status::SUCCESS)]);
}

/// Traced: Cmd (SGL 5Ah) → R2T → H2CData, of which the last has LAST.
#[test]
fn large_writes_wait_for_r2t_and_keep_to_maxh2cdata() {
    let mut bench = Bench::new(CONFIG);
    let (cid, sent) = bench.write(1, 20_000);
    assert_eq!((sent.len(), sent[8 + 39]), (72, 0x5a));
    bench.feed(ready(cid, 0, 12_000), &[]).expect("R2T");
    bench.feed(ready(cid, 12_000, 8000), &[]).expect("R2T");
    assert_eq!(
        bench.take(),
        [Seen::Wanted(1, 0, 12_000), Seen::Wanted(1, 12_000, 8000)]
    );
    let sent = bench.flush();
    let mut at = 0;
    for (offset, length, flags) in [(0, 8192, 0), (8192, 3808, 4), (12_000, 8000, 4)] {
        let pdu = &sent[at..];
        assert_eq!(
            (pdu[0], pdu[1], pdu[10]),
            (6, flags, 5),
            "type, flags, ttag"
        );
        assert_eq!((u32_at(pdu, 12), u32_at(pdu, 16)), (offset, length));
        let (from, length) = (offset as usize, length as usize);
        assert_eq!(pdu[24..24 + length], bench.buffer[from..from + length]);
        at += 24 + length;
    }
    assert_eq!(at, sent.len());
    bench.feed(success(cid), &[]).expect("a completion");
    assert_eq!(bench.take(), [Seen::Completed(1, Status::SUCCESS)]);
}

#[test]
fn connect_is_copied_into_its_capsule() {
    let mut bench = Bench::new(HostQueueConfig {
        digests: BOTH,
        in_capsule_bytes: 0,
        ..CONFIG
    });
    let command = Command::new(Opcode::FABRICS, 0).with_nsid(1);
    let submitted = bench
        .queue
        .submit(command, 0, 0, CommandData::Inline(&[3; 1024]));
    assert!(submitted);
    let sent = bench.flush();
    // Traced with both digests: plen 1104, pdo 76, flags 3.
    assert_eq!((sent.len(), sent[1], sent[3]), (1104, 3, 76));
    assert_eq!(sent[76..1100], [3; 1024]);
}

#[test]
fn a_wrong_data_digest_fails_its_command_alone() {
    let mut bench = Bench::new(HostQueueConfig {
        digests: BOTH,
        ..CONFIG
    });
    let (cid, other) = (bench.read(1, 512), bench.read(2, 512));
    let header = data(cid, 0, 512, true, true).encode(bench.framing, 512);
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend_from_slice(&[1; 512]);
    bytes.extend_from_slice(&[0; 4]);
    bench.feed_bytes(&bytes).expect("no end of the connection");
    bench
        .feed(data(other, 0, 512, true, true), &[2; 512])
        .expect("data");
    let want = [
        Seen::Data(1, 0, vec![1; 512]),
        Seen::Completed(1, Status::TRANSIENT_TRANSPORT_ERROR),
        Seen::Data(2, 0, vec![2; 512]),
        Seen::Completed(2, Status::SUCCESS),
    ];
    assert_eq!(bench.take(), want);
}

#[test]
fn a_failed_command_has_its_status_with_part_of_its_data_or_none() {
    let mut bench = Bench::new(CONFIG);
    let cid = bench.read(1, 1024);
    bench
        .feed(data(cid, 0, 512, false, false), &[1; 512])
        .expect("data");
    bench.feed(failure(cid), &[]).expect("a completion");
    let (cid, _) = bench.write(2, 20_000);
    bench.feed(failure(cid), &[]).expect("a completion");
    let want = [
        Seen::Data(1, 0, vec![1; 512]),
        Seen::Completed(1, Status::INTERNAL_ERROR),
        Seen::Completed(2, Status::INTERNAL_ERROR),
    ];
    assert_eq!(bench.take(), want);
}

#[test]
fn a_completion_waits_until_the_data_have_left() {
    let mut bench = Bench::new(CONFIG);
    let (cid, _) = bench.write(1, 20_000);
    bench.feed(ready(cid, 0, 20_000), &[]).expect("R2T");
    bench.feed(failure(cid), &[]).expect("a completion");
    assert_eq!(bench.take(), [Seen::Wanted(1, 0, 20_000)]);
    assert!(!bench.queue.has_held_back());
    bench.flush();
    assert!(bench.queue.has_held_back());
    let event = bench
        .queue
        .next(&mut &[][..])
        .expect("an event")
        .expect("an event");
    bench.note(event);
    assert_eq!(bench.take(), [Seen::Completed(1, Status::INTERNAL_ERROR)]);
}

#[test]
fn a_full_queue_takes_no_more() {
    let mut bench = Bench::new(CONFIG);
    let cids: Vec<u16> = (0..4).map(|tag| bench.read(tag, 512)).collect();
    let command = Command::new(Opcode::FLUSH, 0);
    assert!(!bench.queue.submit(command, 9, 0, CommandData::None));
    assert_eq!(bench.queue.tags().collect::<Vec<_>>(), [0, 1, 2, 3]);
    bench.feed(failure(cids[2]), &[]).expect("a completion");
    assert!(bench.queue.submit(command, 9, 0, CommandData::None));
    assert_eq!(bench.queue.tags().collect::<Vec<_>>(), [0, 1, 9, 3]);
}

/// Passes a PDU to a queue with a read of 1024 bytes (tag 1), a write of 20,000 (tag 2) and a
/// completed command, and checks the fault that is reported to the controller.
#[track_caller]
fn check_fault(pdu: impl Fn([u16; 3]) -> Pdu, data: &[u8], want: (FatalStatus, u32)) {
    let mut bench = Bench::new(CONFIG);
    let (read, (write, _)) = (bench.read(1, 1024), bench.write(2, 20_000));
    let old = bench.read(3, 512);
    bench.feed(failure(old), &[]).expect("a completion");
    let pdu = pdu([read, write, old]);
    let error = bench.feed(pdu, data).expect_err("a fault");
    let fault = fault(want.0, want.1);
    assert_eq!(error, QueueError::Violation(fault));
    let sent = bench.flush();
    assert_eq!(
        (sent[0], sent[1], sent[2]),
        (2, 0, 24),
        "a termination request"
    );
    assert_eq!(u32_at(&sent, 4) as usize, sent.len());
    assert_eq!(sent[24], pdu.kind().0, "the header at fault");
    assert_eq!(bench.feed(success(read), &[]), Err(error), "it is final");
}

#[test]
fn data_that_were_not_asked_for_end_the_connection() {
    let range = (FatalStatus::OUT_OF_RANGE, 12);
    check_fault(
        |[read, ..]| data(read, 512, 512, true, true),
        &[0; 512],
        range,
    );
    check_fault(
        |[read, ..]| data(read, 0, 1025, true, true),
        &[0; 1025],
        range,
    );
    check_fault(
        |[_, write, _]| data(write, 0, 512, true, true),
        &[0; 512],
        range,
    );
    let cid = (FatalStatus::INVALID_HEADER, 8);
    check_fault(|[.., old]| data(old, 0, 512, true, true), &[0; 512], cid);
    check_fault(|_| data(0x3ff, 0, 512, true, true), &[0; 512], cid);
    let flags = (FatalStatus::INVALID_HEADER, 1);
    check_fault(
        |[read, ..]| data(read, 0, 512, true, true),
        &[0; 512],
        flags,
    );
    check_fault(
        |[read, ..]| data(read, 0, 1024, false, true),
        &[0; 1024],
        flags,
    );
}

#[test]
fn requests_and_completions_of_no_command_end_the_connection() {
    let range = (FatalStatus::OUT_OF_RANGE, 12);
    check_fault(|[_, write, _]| ready(write, 0, 20_001), &[], range);
    check_fault(|[_, write, _]| ready(write, 4096, 4096), &[], range);
    check_fault(|[_, write, _]| ready(write, 0, 0), &[], range);
    check_fault(|[read, ..]| ready(read, 0, 512), &[], range);
    check_fault(
        |[.., old]| ready(old, 0, 512),
        &[],
        (FatalStatus::INVALID_HEADER, 8),
    );
    check_fault(
        |[.., old]| success(old),
        &[],
        (FatalStatus::INVALID_HEADER, 20),
    );
    let short = (FatalStatus::SEQUENCE, 0);
    check_fault(|[read, ..]| success(read), &[], short);
    check_fault(|[_, write, _]| success(write), &[], short);
}

#[track_caller]
fn check_response(response: IcResp, want: QueueError) {
    let mut queue = HostQueue::new(CONFIG);
    let bytes = Pdu::IcResp(response).encode(Framing::PLAIN, 0);
    assert_eq!(queue.next(&mut bytes.as_bytes()), Err(want));
}

#[test]
fn a_connection_is_initialized_on_terms_that_hold() {
    let good = IcResp {
        h2c_data_bytes_max: 4096,
        ..IcResp::default()
    };
    let invalid = |at| QueueError::Violation(fault(FatalStatus::INVALID_HEADER, at));
    check_response(IcResp { version: 1, ..good }, invalid(8));
    check_response(IcResp { cpda: 32, ..good }, invalid(10));
    let short = IcResp {
        h2c_data_bytes_max: 4092,
        ..good
    };
    check_response(short, invalid(12));
    let digests = QueueError::Digests {
        wanted: CONFIG.digests,
        granted: BOTH,
    };
    check_response(
        IcResp {
            digests: BOTH,
            ..good
        },
        digests,
    );
}

#[test]
fn a_termination_by_the_controller_is_reported() {
    let mut bench = Bench::new(CONFIG);
    bench.read(1, 512);
    let reason = fault(FatalStatus::SEQUENCE, 0);
    let request = Pdu::TermReq(Side::Controller, reason);
    let error = bench.feed(request, &[0; 72]).expect_err("the end");
    assert_eq!(error, QueueError::Terminated(reason));
    let text = "the controller ended the connection: PDU out of sequence";
    assert_eq!(error.to_string(), text);
}

#[test]
fn data_may_be_received_into_their_place() {
    let mut bench = Bench::new(CONFIG);
    let cid = bench.read(6, 8192);
    let header = data(cid, 0, 8192, true, true).encode(bench.framing, 8192);
    bench.feed_bytes(header.as_bytes()).expect("a header");
    assert_eq!(bench.queue.receiving(), Some((6, 0, 8192)));
    bench.feed_bytes(&[1; 100]).expect("data");
    assert_eq!(bench.queue.receiving(), Some((6, 100, 8092)));
    bench.queue.received(&[2; 8000]);
    assert_eq!(bench.queue.receiving(), Some((6, 8100, 92)));
    bench.queue.received(&[2; 92]);
    assert_eq!(bench.queue.receiving(), None);
    bench.feed_bytes(&[]).expect("the end");
    let event = bench
        .queue
        .next(&mut &[][..])
        .expect("an event")
        .expect("an event");
    bench.note(event);
    let want = [
        Seen::Data(6, 0, vec![1; 100]),
        Seen::Completed(6, Status::SUCCESS),
    ];
    assert_eq!(bench.take(), want);
}
