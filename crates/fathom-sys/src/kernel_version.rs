//! Versions of Linux.

use std::fmt::{self, Display, Formatter};

use crate::system;

/// First two numbers of a kernel's release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct KernelVersion(u32, u32);

impl KernelVersion {
    /// Creates the version `major.minor`.
    #[must_use]
    pub const fn new(major: u32, minor: u32) -> Self {
        Self(major, minor)
    }

    /// Parses the start of a release, such as `6.12.0-amd64`; `None` if it has no two numbers.
    #[must_use]
    pub fn of_release(release: &str) -> Option<Self> {
        let mut parts = release.split(|c: char| !c.is_ascii_digit());
        let mut number = || parts.next()?.parse().ok();
        Some(Self(number()?, number()?))
    }

    /// Returns that of the running kernel, if `uname(2)` gives it.
    #[must_use]
    pub fn running() -> Option<Self> {
        Self::of_release(&system::kernel().release)
    }
}

impl Display for KernelVersion {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_number() {
        let version = KernelVersion::of_release;
        let new = Some(KernelVersion::new(6, 10));
        for later in ["6.10.0-amd64", "6.17.13+deb13", "7.0-rc1"] {
            assert!(version(later) >= new, "{later}");
        }
        for earlier in ["6.9.12", "6.1.0-40-amd64", "5.15.0"] {
            assert!(version(earlier) < new, "{earlier}");
        }
        assert_eq!(
            (version("6"), version("next"), version("")),
            (None, None, None)
        );
        assert_eq!(
            version("6.16").map(|one| one.to_string()).as_deref(),
            Some("6.16")
        );
        assert!(KernelVersion::running().is_some());
    }
}
