//! I/O commands and their data.

use std::sync::Arc;

use fathom_block::{Exchange, HomeDevice, RemoteDevice, SharedMemory};
use fathom_core::{BlockDevice, Geometry, Tick};
use fathom_net::target::{DeviceError, DeviceFactory};
use fathom_nvme::{Command, Opcode, Pdu, Status};

use crate::bare_host::{BareHost, h2c, inside, outside, transfer};
use crate::setup::{BOTH, NO_DIGESTS, config, connections, memory, null, start, wait_for};

fn pattern(bytes: usize, seed: u8) -> Vec<u8> {
    (0..bytes)
        .map(|at| at.to_le_bytes()[0].wrapping_mul(31) ^ at.to_le_bytes()[1] ^ seed)
        .collect()
}

#[test]
fn data_survive_on_several_queues_and_threads() {
    for digests in [NO_DIGESTS, BOTH] {
        let (target, address, _) = start(config(memory(1 << 24), 3));
        let admin = BareHost::admin(address, digests);
        let mut queues: Vec<_> = (1..=4).map(|qid| admin.io(address, qid, digests)).collect();
        for (place, queue) in (0_u8..).zip(&mut queues) {
            let at = u64::from(place) << 20;
            let small = transfer(Opcode::WRITE, 7, at, 4096).with_data(inside(4096));
            queue.succeed(small, &pattern(4096, place));
            let large = transfer(Opcode::WRITE, 0xfff1, at + 4096, 131_072);
            queue.succeed(large, &pattern(131_072, place));
        }
        for (place, queue) in (0_u8..).zip(queues.iter_mut().rev()) {
            let place = 3 - place;
            let at = u64::from(place) << 20;
            let read = queue.succeed(transfer(Opcode::READ, 1, at, 4096), &[]);
            assert_eq!(read, pattern(4096, place));
            let read = queue.succeed(transfer(Opcode::READ, 2, at + 4096, 131_072), &[]);
            assert_eq!(read, pattern(131_072, place));
        }
        drop(queues);
        drop(admin);
        wait_for(&target, |statistics| connections(statistics) == 0);
        let statistics = target.stop();
        let io = &statistics.namespaces[0].io;
        assert_eq!((io.reads, io.writes, io.errors), (8, 8, 0));
        assert_eq!(io.read_bytes, 4 * (4096 + 131_072));
        assert_eq!(statistics.buffers_in_use, 0);
    }
}

#[test]
fn a_null_namespace_returns_zeros_whatever_was_written() {
    for digests in [NO_DIGESTS, BOTH] {
        let (_target, address, _) = start(config(null(), 1));
        let admin = BareHost::admin(address, digests);
        let mut queue = admin.io(address, 1, digests);
        let small = transfer(Opcode::WRITE, 7, 0, 4096).with_data(inside(4096));
        queue.succeed(small, &[0xff; 4096]);
        queue.succeed(transfer(Opcode::WRITE, 8, 0, 131_072), &[0xff; 131_072]);
        for bytes in [512, 4096, 131_072] {
            let read = queue.succeed(transfer(Opcode::READ, 9, 0, bytes), &[]);
            assert_eq!(read, vec![0; bytes as usize]);
        }
    }
}

#[test]
fn responses_follow_data_where_success_in_data_is_off() {
    let (_target, address, _) = start(fathom_net::target::TargetConfig {
        success_in_data: false,
        ..config(memory(1 << 20), 1)
    });
    let admin = BareHost::admin(address, NO_DIGESTS);
    let mut queue = admin.io(address, 1, NO_DIGESTS);
    queue.send(&Pdu::Command(transfer(Opcode::READ, 5, 0, 4096)), &[]);
    let Pdu::C2hData(header) = queue.receive().unwrap().pdu else {
        panic!("no data");
    };
    assert!(header.is_last && !header.is_success);
    let Pdu::Response(completion) = queue.receive().unwrap().pdu else {
        panic!("no response");
    };
    assert_eq!((completion.cid, completion.status), (5, Status::SUCCESS));
}

#[test]
fn commands_without_transfers_work() {
    let (_target, address, _) = start(config(memory(1 << 24), 1));
    let admin = BareHost::admin(address, NO_DIGESTS);
    let mut queue = admin.io(address, 1, NO_DIGESTS);
    let ones = vec![1; 131_072];
    for at in (0..1 << 20).step_by(131_072) {
        queue.succeed(transfer(Opcode::WRITE, 1, at, 131_072), &ones);
    }
    queue.succeed(Command::new(Opcode::FLUSH, 2).with_nsid(1), &[]);
    // Durable: a sync follows.
    let durable = transfer(Opcode::WRITE, 3, 0, 512).with_dword(12, 1 << 30);
    queue.succeed(durable.with_data(inside(512)), &[2; 512]);
    // Zeros over several buffers.
    let zeros = transfer(Opcode::WRITE_ZEROES, 4, 131_072, 393_216).with_data(outside(0));
    queue.succeed(zeros, &[]);
    // Two ranges of deallocation: blocks 1024 to 1032, and 1040 to 1041.
    let mut ranges = [0; 4096];
    (ranges[4], ranges[9]) = (8, 4);
    (ranges[16 + 4], ranges[16 + 8], ranges[16 + 9]) = (1, 16, 4);
    let trim = Command::new(Opcode::DATASET_MANAGEMENT, 5)
        .with_nsid(1)
        .with_dword(10, 1)
        .with_dword(11, 4)
        .with_data(inside(4096));
    queue.succeed(trim, &ranges);
    let mut read = Vec::new();
    for at in (0..1 << 20).step_by(131_072) {
        read.extend(queue.succeed(transfer(Opcode::READ, 6, at, 131_072), &[]));
    }
    let mut want = vec![1; 1 << 20];
    want[..512].fill(2);
    want[131_072..524_288].fill(0);
    want[524_288..528_384].fill(0);
    want[532_480..532_992].fill(0);
    assert!(read == want);
    let compare = transfer(Opcode::COMPARE, 7, 0, 1024).with_data(inside(1024));
    queue.succeed(compare, &want[..1024]);
    let status = queue.run(compare, &[3; 1024]).0.status;
    assert_eq!(status, Status::COMPARE_FAILURE.do_not_retry());
}

#[test]
fn failed_commands_leave_the_stream_intact_and_are_counted() {
    let (target, address, _) = start(config(memory(1 << 20), 1));
    let admin = BareHost::admin(address, BOTH);
    let mut queue = admin.io(address, 1, BOTH);
    let beyond = transfer(Opcode::WRITE, 1, 1 << 20, 4096);
    let refused = Status::LBA_OUT_OF_RANGE.do_not_retry();
    assert_eq!(queue.run(beyond, &[]).0.status, refused);
    let in_capsule = beyond.with_data(inside(4096));
    assert_eq!(queue.run(in_capsule, &[1; 4096]).0.status, refused);
    let unknown = transfer(Opcode::READ, 1, 0, 512).with_nsid(2);
    let invalid = Status::INVALID_NAMESPACE.do_not_retry();
    assert_eq!(queue.run(unknown, &[]).0.status, invalid);
    let opcode = Command::new(Opcode(0x99), 3).with_nsid(1);
    let invalid = Status::INVALID_OPCODE.do_not_retry();
    assert_eq!(queue.run(opcode, &[]).0.status, invalid);
    for opcode in [Opcode::FLUSH, Opcode::WRITE_ZEROES] {
        let stray = Command::new(opcode, 5).with_nsid(1).with_data(inside(4096));
        let wrong = Status::DATA_SGL_LENGTH_INVALID.do_not_retry();
        assert_eq!(queue.run(stray, &[1; 4096]).0.status, wrong);
    }
    let large = transfer(Opcode::READ, 4, 0, 262_144);
    let invalid = Status::INVALID_FIELD.do_not_retry();
    assert_eq!(queue.run(large, &[]).0.status, invalid);
    let read = queue.succeed(transfer(Opcode::READ, 1, 0, 4096), &[]);
    assert_eq!(read, [0; 4096]);
    let compare = transfer(Opcode::COMPARE, 7, 0, 512).with_data(inside(512));
    let differs = Status::COMPARE_FAILURE.do_not_retry();
    assert_eq!(queue.run(compare, &[3; 512]).0.status, differs);
    drop(queue);
    wait_for(&target, |statistics| connections(statistics) == 1);
    let statistics = target.stop();
    let io = &statistics.namespaces[0].io;
    assert_eq!((io.reads, io.others, io.errors), (1, 7, 7));
    let unnamed = &statistics.threads[0].unnamed;
    assert_eq!((unnamed.others, unnamed.errors), (1, 1));
}

/// With one buffer, a write that has it waits for data that follow the capsules of writes that do
/// not.
#[test]
fn one_buffer_serves_a_queue_of_mixed_writes() {
    for (count, cache) in [(1, 0), (2, 0), (2, 1)] {
        let mut config = config(memory(1 << 22), 1);
        config.buffers.count = Some(count);
        config.buffers.cache = cache;
        let (target, address, _) = start(config);
        let admin = BareHost::admin(address, BOTH);
        let mut queue = admin.io(address, 1, BOTH);
        // Alternately in the capsule and requested, all before any answer is read.
        for cid in 0..16_u16 {
            let command = transfer(Opcode::WRITE, cid, u64::from(cid) << 13, 4096);
            match cid % 2 {
                0 => queue.send(&Pdu::Command(command), &[]),
                _ => {
                    let command = command.with_data(inside(4096));
                    queue.send(&Pdu::Command(command), &[cid.to_le_bytes()[0]; 4096]);
                }
            }
        }
        let mut done = 0;
        while done < 16 {
            match queue.receive().expect("an answer").pdu {
                Pdu::R2t(ready) => {
                    let data = [ready.cid.to_le_bytes()[0]; 4096];
                    queue.send(&h2c(ready.cid, ready.ttag, 4096), &data);
                }
                Pdu::Response(completion) => {
                    assert_eq!(completion.status, Status::SUCCESS);
                    done += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        for cid in 0..16_u16 {
            let read = queue.succeed(transfer(Opcode::READ, cid, u64::from(cid) << 13, 4096), &[]);
            assert!(
                read.iter().all(|&byte| byte == cid.to_le_bytes()[0]),
                "{cid}"
            );
        }
        drop(queue);
        wait_for(&target, |statistics| statistics.buffers_in_use == 0);
    }
}

/// Factory of a device that lives on the first thread.
#[derive(Debug)]
struct Homed {
    exchange: Arc<Exchange>,
    bytes: u64,
}

impl DeviceFactory for Homed {
    fn open(&self, thread: u32, _now: Tick) -> Result<Box<dyn BlockDevice>, DeviceError> {
        let exchange = Arc::clone(&self.exchange);
        Ok(match thread {
            0 => {
                let device = Box::new(SharedMemory::new(self.bytes));
                Box::new(HomeDevice::new(exchange, 0, device))
            }
            _ => Box::new(RemoteDevice::new(exchange, 0, thread, self.geometry())),
        })
    }

    fn geometry(&self) -> Geometry {
        SharedMemory::new(self.bytes).geometry()
    }
}

#[test]
fn a_device_of_one_thread_serves_all() {
    let mut config = config(null(), 3);
    let wakers = Arc::clone(&config.wakers);
    config.subsystems[0].namespaces[0].device = Arc::new(Homed {
        exchange: Exchange::new(3, Arc::new(move |thread| wakers.wake(thread))),
        bytes: 1 << 20,
    });
    let (_target, address, _) = start(config);
    let admin = BareHost::admin(address, NO_DIGESTS);
    let mut queues: Vec<_> = (1..=6)
        .map(|qid| admin.io(address, qid, NO_DIGESTS))
        .collect();
    for (place, queue) in (0_u8..).zip(&mut queues) {
        let write = transfer(Opcode::WRITE, 7, u64::from(place) << 13, 8192);
        queue.succeed(write, &pattern(8192, place));
    }
    for (place, queue) in (0_u8..).zip(queues.iter_mut().rev()) {
        let at = u64::from(5 - place) << 13;
        let read = queue.succeed(transfer(Opcode::READ, 1, at, 8192), &[]);
        assert_eq!(read, pattern(8192, 5 - place));
    }
}
