//! Errors with which a server answers a request.

use std::fmt;

use fathom_core::Errno;

/// Error of a reply: a number of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerError(pub u32);

impl ServerError {
    /// Returns the errno of the same meaning; as the protocol has it, `EINVAL` for an unknown one.
    #[must_use]
    pub fn errno(self) -> Errno {
        let row = TABLE.iter().find(|(number, _)| *number == self.0);
        row.map_or(Errno::EINVAL, |&(_, errno)| errno)
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_known = TABLE.iter().any(|&(number, _)| number == self.0);
        match self.errno().name().filter(|_| is_known) {
            Some(name) => f.write_str(name),
            None => write!(f, "unknown error {}", self.0),
        }
    }
}

/// Errors of the protocol. Their numbers are Linux's on most machines, but not on all.
const TABLE: [(u32, Errno); 8] = [
    (1, Errno::EPERM),
    (5, Errno::EIO),
    (12, Errno::ENOMEM),
    (22, Errno::EINVAL),
    (28, Errno::ENOSPC),
    (75, Errno::EOVERFLOW),
    (95, Errno::EOPNOTSUPP),
    (108, Errno::ESHUTDOWN),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(number: u32, errno: Errno, text: &str) {
        let error = ServerError(number);
        assert_eq!((error.errno(), error.to_string().as_str()), (errno, text));
    }

    #[test]
    fn errors_have_the_names_of_errnos() {
        check(1, Errno::EPERM, "EPERM");
        check(5, Errno::EIO, "EIO");
        check(28, Errno::ENOSPC, "ENOSPC");
        check(108, Errno::ESHUTDOWN, "ESHUTDOWN");
        check(4, Errno::EINVAL, "unknown error 4");
        check(u32::MAX, Errno::EINVAL, "unknown error 4294967295");
    }
}
