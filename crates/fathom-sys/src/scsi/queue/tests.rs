use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::ptr;
use std::thread::{self, JoinHandle};

use super::*;

/// Driver of a disk in memory behind a socket, which takes headers and gives them back as the SCSI
/// generic driver does: a command of the lowest slot in flight last.
struct FakeDriver {
    socket: File,
    disk: Vec<u8>,
}

type HeaderBytes = [u8; size_of::<HeaderV3>()];

const BLOCK: usize = 512;

/// Returns two connected sockets that keep messages apart, the first non-blocking.
fn sockets() -> (File, File) {
    let mut fds = [0; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: the kernel writes two numbers to a live array.
    let failed = unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, fds.as_mut_ptr()) };
    assert_eq!(failed, 0);
    // SAFETY: the descriptors are new, and nothing else owns them.
    let files = fds.map(|fd| unsafe { File::from_raw_fd(fd) });
    // SAFETY: plain integers, and an open descriptor.
    let failed = unsafe { libc::fcntl(fds[0], libc::F_SETFL, libc::O_NONBLOCK) };
    assert_eq!(failed, 0);
    files.into()
}

impl FakeDriver {
    /// Starts a driver, and returns the device that it serves. It ends when that is closed.
    fn start() -> (Opening, JoinHandle<()>) {
        let (file, socket) = sockets();
        let disk = vec![0; 64 * BLOCK];
        let driver = Self { socket, disk };
        let opening = Opening {
            kind: NodeKind::Generic,
            lanes: Box::new([Lane { file, count: 0 }]),
        };
        (opening, thread::spawn(|| driver.run()))
    }

    fn run(mut self) {
        while let Some(first) = self.take(0) {
            // What else is there, so that completions come in another order.
            let rest = std::iter::from_fn(|| self.take(libc::MSG_DONTWAIT));
            let taken: Vec<_> = std::iter::once(first).chain(rest).collect();
            for mut header in taken.into_iter().rev() {
                self.serve(&mut header);
                if self.socket.write(&header).is_err() {
                    return;
                }
            }
        }
    }

    /// Returns the next header; `None` at the end, or if there is none and the flags do not wait.
    fn take(&self, flags: i32) -> Option<HeaderBytes> {
        let mut header: HeaderBytes = [0; size_of::<HeaderV3>()];
        let (fd, place) = (self.socket.as_raw_fd(), header.as_mut_ptr().cast());
        // SAFETY: the kernel writes at most as many bytes as there are.
        let got = unsafe { libc::recv(fd, place, header.len(), flags) };
        (got > 0).then_some(header)
    }

    fn serve(&mut self, bytes: &mut HeaderBytes) {
        // SAFETY: the bytes are those of a header, which is integers alone.
        let mut header: HeaderV3 = unsafe { ptr::read_unaligned(bytes.as_ptr().cast()) };
        let length = header.data_bytes as usize;
        // SAFETY: the command and the data are alive until the header is back, and their owner
        // does not touch them before.
        let (cdb, data) = unsafe {
            let cdb = ptr::with_exposed_provenance::<u8>(header.cdb);
            let data = ptr::with_exposed_provenance_mut::<u8>(header.data);
            let data = match length {
                0 => &mut [],
                _ => std::slice::from_raw_parts_mut(data, length),
            };
            let cdb = std::slice::from_raw_parts(cdb, header.cdb_bytes.into());
            (cdb, data)
        };
        let start = usize::from(cdb[5]) * BLOCK;
        match cdb[0] {
            0x28 => data.copy_from_slice(&self.disk[start..][..length]),
            0x2a => self.disk[start..][..length].copy_from_slice(data),
            // A parameter list.
            0x42 => self.disk[..length].copy_from_slice(data),
            _ => {
                let sense = [0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0];
                // SAFETY: as above; the header has its length.
                unsafe {
                    let place = ptr::with_exposed_provenance_mut::<u8>(header.sense);
                    ptr::copy_nonoverlapping(sense.as_ptr(), place, sense.len());
                }
                (header.status, header.sense_bytes, header.residual) = (2, 18, 512);
            }
        }
        // SAFETY: the bytes have the size of a header.
        unsafe { ptr::write_unaligned(bytes.as_mut_ptr().cast(), header) };
    }
}

fn queue(slots: u32) -> (ScsiQueue, JoinHandle<()>) {
    let mut queue = ScsiQueue::new(slots, 4096, 24, 1, &MemoryPlacement::default()).unwrap();
    let (device, driver) = FakeDriver::start();
    queue.open(0, device);
    (queue, driver)
}

fn cdb(opcode: u8, block: u8) -> Cdb {
    Cdb::new([opcode, 0, 0, 0, 0, block, 0, 0, 1, 0])
}

fn command(opcode: u8, block: u8) -> ScsiCommand {
    let (offset, length) = (0, 512);
    ScsiCommand {
        cdb: cdb(opcode, block),
        data: match opcode {
            0x2a => ScsiData::Out { offset, length },
            _ => ScsiData::In { offset, length },
        },
    }
}

/// Runs all that is prepared, and returns the results by slot.
fn run(queue: &mut ScsiQueue, count: u32) -> Vec<i32> {
    queue.submit();
    let mut out = [Completion::default(); 32];
    let mut results = vec![1; count as usize];
    for _ in 0..count {
        queue.wait(1, None).unwrap();
        let taken = queue.reap(&mut out[..1]).unwrap();
        assert_eq!(taken, 1);
        results[out[0].slot.index()] = out[0].result;
    }
    results
}

#[test]
fn commands_come_back_to_their_slots() {
    let (mut queue, driver) = queue(8);
    for slot in 0..8_u8 {
        queue.buffer(Slot::new(slot.into())).fill(slot + 1);
        queue.push(Slot::new(slot.into()), 0, &command(0x2a, slot));
    }
    assert_eq!(run(&mut queue, 8), [0; 8]);
    for slot in 0..8_u8 {
        queue.push(Slot::new(slot.into()), 0, &command(0x28, 7 - slot));
    }
    assert_eq!(run(&mut queue, 8), [0; 8]);
    for slot in 0..8_u8 {
        let data = queue.buffer(Slot::new(slot.into()));
        assert_eq!(data[..BLOCK], [8 - slot; BLOCK]);
        assert_eq!(data[BLOCK], slot + 1, "past the command's data");
    }
    assert!(queue.close(0) && !queue.close(0));
    driver.join().unwrap();
}

#[test]
fn sense_and_residual_are_kept_until_the_next_command() {
    let (mut queue, driver) = queue(2);
    queue.push(Slot::new(1), 0, &command(0xff, 0));
    queue.submit();
    queue.wait(1, None).unwrap();
    let mut out = [Completion::default(); 2];
    assert_eq!(queue.reap(&mut out).unwrap(), 1);
    let outcome = *queue.outcome(Slot::new(1));
    assert_eq!((outcome.status, outcome.residual), (2, 512));
    assert_eq!((outcome.sense().len(), outcome.sense()[12]), (18, 0x20));
    queue.push(Slot::new(1), 0, &command(0x28, 0));
    assert_eq!(queue.outcome(Slot::new(1)).sense(), []);
    queue.submit();
    drop(queue);
    driver.join().unwrap();
}

#[test]
fn parameters_go_to_the_device() {
    let (mut queue, driver) = queue(1);
    queue.parameters(Slot::new(0)).fill(9);
    queue.push(
        Slot::new(0),
        0,
        &ScsiCommand {
            cdb: cdb(0x42, 0),
            data: ScsiData::Parameters { length: 24 },
        },
    );
    assert_eq!(run(&mut queue, 1), [0]);
    queue.push(Slot::new(0), 0, &command(0x28, 0));
    assert_eq!(run(&mut queue, 1), [0]);
    assert_eq!(queue.buffer(Slot::new(0))[..25], {
        let mut want = [9; 25];
        want[24] = 0;
        want
    });
    drop(queue);
    driver.join().unwrap();
}

#[test]
fn ops_that_share_a_command_complete_with_it() {
    let (mut queue, driver) = queue(4);
    let slot = |number| Slot::new(number);
    for opcode in [0x28, 0xff] {
        queue.push(slot(2), 0, &command(opcode, 0));
        for follower in [0, 3] {
            queue.join(slot(follower), slot(2));
        }
        queue.push(slot(1), 0, &command(0x28, 0));
        queue.submit();
        assert_eq!(queue.in_kernel(), 2);
        let (mut out, mut seen) = ([Completion::default(); 4], Vec::new());
        while seen.len() < 4 {
            queue.wait(1, None).unwrap();
            let taken = queue.reap(&mut out).unwrap();
            seen.extend(out[..taken].iter().map(|one| (one.slot.get(), one.result)));
        }
        seen.sort_unstable();
        assert_eq!(seen, [(0, 0), (1, 0), (2, 0), (3, 0)]);
        let statuses = [0, 2, 3].map(|number| queue.outcome(slot(number)).status);
        assert_eq!(statuses, if opcode == 0xff { [2; 3] } else { [0; 3] });
        assert_eq!(queue.outcome(slot(1)).status, 0);
    }
    drop(queue);
    driver.join().unwrap();
}

#[test]
#[should_panic(expected = "another command")]
fn a_command_that_is_sent_is_not_joined() {
    let (mut queue, _driver) = queue(2);
    queue.push(Slot::new(0), 0, &command(0x28, 0));
    queue.submit();
    queue.join(Slot::new(1), Slot::new(0));
}

#[test]
fn what_the_kernel_refuses_completes_with_its_error() {
    for kind in [NodeKind::Generic, NodeKind::Block, NodeKind::Bsg] {
        let mut queue = ScsiQueue::new(2, 4096, 24, 1, &MemoryPlacement::default()).unwrap();
        let file = File::open("/dev/null").unwrap();
        let lanes = Box::new([Lane { file, count: 0 }]);
        queue.open(0, Opening { kind, lanes });
        queue.push(Slot::new(0), 0, &command(0x28, 0));
        queue.join(Slot::new(1), Slot::new(0));
        let want = match kind {
            // Opened for reading.
            NodeKind::Generic => -libc::EBADF,
            NodeKind::Block | NodeKind::Bsg => -libc::ENOTTY,
        };
        assert_eq!(run(&mut queue, 2), [want; 2], "{kind:?}");
        assert_eq!(queue.in_kernel(), 0);
    }
}

#[test]
fn a_wait_ends_in_time() {
    let (file, mut other) = sockets();
    let lanes = Box::new([Lane { file, count: 0 }]);
    let mut queue = ScsiQueue::new(1, 4096, 24, 1, &MemoryPlacement::default()).unwrap();
    let kind = NodeKind::Generic;
    queue.open(0, Opening { kind, lanes });
    queue.push(Slot::new(0), 0, &command(0x28, 0));
    queue.submit();
    queue.wait(1, Some(Nanos::from_millis(1))).unwrap();
    let mut out = [Completion::default(); 1];
    assert_eq!(queue.reap(&mut out).unwrap(), 0);
    assert_eq!(queue.in_kernel(), 1);
    // Give it back, or the end waits for it.
    let mut header = [0; size_of::<HeaderV3>()];
    assert_eq!(other.read(&mut header).unwrap(), header.len());
    assert_eq!(other.write(&header).unwrap(), header.len());
    assert!(queue.drain());
}

#[test]
#[should_panic(expected = "is in flight")]
fn a_buffer_in_flight_is_not_lent() {
    let mut queue = ScsiQueue::new(1, 4096, 24, 1, &MemoryPlacement::default()).unwrap();
    let file = File::open("/dev/null").unwrap();
    let lanes = Box::new([Lane { file, count: 0 }]);
    let kind = NodeKind::Block;
    queue.open(0, Opening { kind, lanes });
    queue.push(Slot::new(0), 0, &command(0x28, 0));
    queue.buffer(Slot::new(0));
}
