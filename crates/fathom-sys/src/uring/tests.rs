//! A ring that the kernel refuses to serve.

use fathom_core::FileIndex;

use super::*;

/// Returns a ring whose ops are no-ops; `None` if the kernel has no io_uring.
fn ring() -> Option<Ring> {
    let config = RingConfig {
        slots: 4,
        buffer_bytes: 512,
        nops: true,
        plain_descriptor: true,
        ..RingConfig::default()
    };
    match Ring::new(&config) {
        Ok(ring) => Some(ring),
        Err(error) => {
            println!("skipped: {}: {}", error.step, error.error);
            None
        }
    }
}

fn push(ring: &mut Ring, slot: u32) {
    let op = Op {
        slot: Slot::new(slot),
        kind: OpKind::Data(Direction::Read),
        priority: 0,
        file: FileIndex::new(0),
        length: 512,
        buffer_offset: 0,
        offset: 0,
        sequence: 0,
    };
    ring.push(&op, || None);
}

/// If entries that the kernel never took counted as in flight, the drop would wait 30 s for them.
#[test]
fn ops_that_the_kernel_never_took_are_not_waited_for() {
    let Some(mut ring) = ring() else { return };
    (0..3).for_each(|slot| push(&mut ring, slot));
    let descriptor = std::mem::replace(&mut ring.enter_fd, -1);
    let refused = ring.submit(0).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EBADF));
    ring.enter_fd = descriptor;
    assert_eq!((ring.in_flight(), ring.with_kernel()), (3, 0));
    let calls = ring.calls();
    assert!(ring.drain());
    assert_eq!(ring.calls(), calls);
}

/// Ops submitted before the error are in flight, and the drop waits for them.
#[test]
fn ops_that_the_kernel_took_before_an_error_come_back() {
    let Some(mut ring) = ring() else { return };
    push(&mut ring, 0);
    ring.submit(0).unwrap();
    push(&mut ring, 1);
    let descriptor = std::mem::replace(&mut ring.enter_fd, -1);
    ring.submit(0).unwrap_err();
    ring.enter_fd = descriptor;
    assert_eq!((ring.in_flight(), ring.with_kernel()), (2, 1));
    ring.wait(2, None).unwrap();
    let mut out = [Completion::default(); 4];
    assert_eq!(ring.reap(&mut out), 1);
    assert_eq!(out[0].slot, Slot::new(0));
}
