//! Reasons for which connections end, as far as the library's words have them.

use std::io;

/// Returns why a connection has ended, given the library's latest words. They may be older than
/// its end and about something else: the status of a command, for one.
pub(super) fn of_loss(text: &str) -> String {
    if let Some(errno) = socket_errno(text) {
        return io::Error::from_raw_os_error(errno).to_string();
    }
    let is_other = OTHERS.iter().any(|words| text.starts_with(words));
    match text.is_empty() || is_other || text.contains(RECONNECTION) {
        true => "it has ended".into(),
        false => text.into(),
    }
}

/// Returns the errno of a call on the socket. Older words may follow it.
fn socket_errno(text: &str) -> Option<i32> {
    let rest = SOCKET_CALLS
        .iter()
        .find_map(|words| text.strip_prefix(words))?;
    let digits = rest.split(|letter: char| !letter.is_ascii_digit()).next()?;
    digits.parse().ok()
}

const SOCKET_CALLS: [&str; 2] = [
    "Error when writing to socket :",
    "read from socket failed, errno:",
];

/// Beginnings of messages about the status of a command.
const OTHERS: [&str; 7] = [
    "SENSE KEY",
    "BUSY",
    "RESERVATION CONFLICT",
    "TASK_SET_FULL",
    "ACA_ACTIVE",
    "TASK_ABORTED",
    "Unknown SCSI status",
];

/// The library is told to leave it.
const RECONNECTION: &str = "reconnect";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &str) {
        assert_eq!(of_loss(text), want, "{text}");
    }

    #[test]
    fn reasons_are_of_the_connection() {
        let sense = "SENSE KEY:UNIT_ATTENTION(6) ASCQ:BUS_RESET(0x2900)";
        check("", "it has ended");
        check(sense, "it has ended");
        check("Already trying to reconnect.", "it has ended");
        let broken = "Broken pipe (os error 32)";
        check(&format!("Error when writing to socket :32 {sense}"), broken);
        let reset = "Connection reset by peer (os error 104)";
        check("read from socket failed, errno:104", reset);
        let bad = "Invalid data size received from target (16777215)";
        check(bad, bad);
    }
}
