//! Receives of a connection, each of as much as there is.

use std::io::{self, IoSliceMut, Read};

/// Bytes of one receive.
pub(crate) struct Received {
    /// Bytes received straight into the place of their data.
    pub(crate) in_place: usize,
    /// Bytes after those, in the buffer.
    pub(crate) in_buffer: usize,
    /// There may be more: a stream socket that returns less than asked for is empty.
    pub(crate) is_full: bool,
}

/// Receives once without waiting, first into the place of data, if there is one, and what follows
/// into the buffer; `None` if nothing has come.
///
/// # Errors
/// Those of the socket; `UnexpectedEof` if the peer has closed the connection.
#[inline]
pub(crate) fn receive(
    stream: &mut impl Read,
    mut place: Option<&mut [u8]>,
    buffer: &mut [u8],
) -> io::Result<Option<Received>> {
    let place_bytes = place.as_ref().map_or(0, |place| place.len());
    let wanted = place_bytes + buffer.len();
    loop {
        let received = match &mut place {
            None => stream.read(buffer),
            Some(place) => {
                stream.read_vectored(&mut [IoSliceMut::new(place), IoSliceMut::new(buffer)])
            }
        };
        return match received {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(received) => {
                let in_place = received.min(place_bytes);
                Ok(Some(Received {
                    in_place,
                    in_buffer: received - in_place,
                    is_full: received == wanted,
                }))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    /// Sends `sent` bytes to a place of 4 and a buffer of 8; returns how their arrival is reported.
    fn told(sent: usize, with_place: bool) -> Option<(usize, usize, bool)> {
        let (mut receiver, mut sender) = UnixStream::pair().expect("a pair");
        receiver.set_nonblocking(true).expect("a socket");
        sender.write_all(&vec![7; sent]).expect("room");
        let (mut place, mut buffer) = ([0; 4], [0; 8]);
        let place = with_place.then_some(&mut place[..]);
        let received = receive(&mut receiver, place, &mut buffer).expect("open");
        received.map(|it| (it.in_place, it.in_buffer, it.is_full))
    }

    #[test]
    fn data_come_first_into_their_place() {
        let cases = [
            (0, true, None),
            (3, true, Some((3, 0, false))),
            (5, true, Some((4, 1, false))),
            (12, true, Some((4, 8, true))),
            (20, true, Some((4, 8, true))),
            (0, false, None),
            (5, false, Some((0, 5, false))),
            (9, false, Some((0, 8, true))),
        ];
        for (sent, with_place, want) in cases {
            assert_eq!(told(sent, with_place), want, "{sent} {with_place}");
        }
    }

    #[test]
    fn a_closed_connection_is_an_error() {
        let (mut receiver, sender) = UnixStream::pair().expect("a pair");
        drop(sender);
        let closed = receive(&mut receiver, None, &mut [0; 8]).err();
        let kind = closed.map(|error| error.kind());
        assert_eq!(kind, Some(io::ErrorKind::UnexpectedEof));
    }
}
