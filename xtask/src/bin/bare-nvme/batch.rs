//! Outgoing PDUs of one turn, sent with as few system calls as possible.

use std::io::{self, ErrorKind, IoSlice, Write};
use std::net::TcpStream;

use crate::wait::Wait;

/// Headers back to back, with marks where data follow.
///
/// The data are the same for every command, so that neither end pays for memory that a real one
/// would have to touch: this is what makes the loop a floor.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    headers: Vec<u8>,
    /// Offsets in `headers` after which the data are inserted.
    marks: Vec<usize>,
}

impl Batch {
    /// Appends a header.
    pub(crate) fn push(&mut self, header: &[u8]) {
        self.headers.extend_from_slice(header);
    }

    /// Appends a header and data.
    pub(crate) fn push_with_data(&mut self, header: &[u8]) {
        self.push(header);
        self.marks.push(self.headers.len());
    }

    /// Sends everything, with gathered writes, and empties the batch.
    pub(crate) fn send(
        &mut self,
        stream: &TcpStream,
        data: &[u8],
        wait: &mut Wait,
    ) -> io::Result<()> {
        let mut sent = 0;
        for marks in self.marks.chunks(SLICES / 2) {
            let mut slices = [IoSlice::new(&[]); SLICES];
            for (pair, &mark) in slices.chunks_exact_mut(2).zip(marks) {
                pair[0] = IoSlice::new(&self.headers[sent..mark]);
                pair[1] = IoSlice::new(data);
                sent = mark;
            }
            write_all(stream, &mut slices[..marks.len() * 2], wait)?;
        }
        if sent < self.headers.len() {
            write_all(stream, &mut [IoSlice::new(&self.headers[sent..])], wait)?;
        }
        self.headers.clear();
        self.marks.clear();
        Ok(())
    }
}

/// Writes all slices, and waits for room where the socket does not.
fn write_all(
    mut stream: &TcpStream,
    mut slices: &mut [IoSlice<'_>],
    wait: &mut Wait,
) -> io::Result<()> {
    while !slices.is_empty() {
        match stream.write_vectored(slices) {
            Ok(written) => IoSlice::advance_slices(&mut slices, written),
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait.pause()?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Slices per system call: data of 64 commands.
const SLICES: usize = 128;
