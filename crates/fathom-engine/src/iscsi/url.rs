//! URLs of logical units, and the users that log in.

use std::fmt;

use fathom_core::{EngineError, EngineStep};
use fathom_sys::libiscsi::{IscsiPortal, IscsiSecret};

/// Returns the portal of a URL; `variable` reads the environment.
pub(super) fn portal(
    url: &str,
    initiator: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<IscsiPortal, EngineError> {
    let parts = Parts::of(url).map_err(|fault| fault.at(url))?;
    let given = |name| variable(name).filter(|text| !text.is_empty());
    let user = parts.user.or_else(|| given(USER));
    let user = match (user, given(PASSWORD)) {
        (Some(user), Some(password)) => Some((user, IscsiSecret::new(password))),
        (Some(_), None) => return Err(Fault::NoPassword.at(url)),
        (None, _) => None,
    };
    let target_user = given(TARGET_USER).zip(given(TARGET_PASSWORD));
    Ok(IscsiPortal {
        address: parts.address,
        target: parts.target,
        unit: parts.unit,
        initiator: initiator.into(),
        // The library checks the target only where it proves itself, too.
        target_user: target_user
            .filter(|_| user.is_some())
            .map(|(user, password)| (user, IscsiSecret::new(password))),
        user,
    })
}

/// Returns a URL without what may be a password.
pub(super) fn shown(url: &str) -> String {
    let authority = url.strip_prefix(SCHEME).unwrap_or(url);
    match authority.rsplit_once('@') {
        Some((_, rest)) => format!("{SCHEME}…@{rest}"),
        None => url.into(),
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Parts {
    user: Option<String>,
    address: String,
    target: String,
    unit: u16,
}

/// Defect of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Scheme,
    Password,
    NoPassword,
    Host,
    Target,
    Unit,
    Arguments,
}

impl Parts {
    fn of(url: &str) -> Result<Self, Fault> {
        let rest = url.strip_prefix(SCHEME).ok_or(Fault::Scheme)?;
        // Passwords may contain anything, and names of targets no `@`.
        let (user, rest) = match rest.rsplit_once('@') {
            Some((user, _)) if user.contains('%') || user.contains('/') => {
                return Err(Fault::Password);
            }
            Some((user, rest)) => (Some(user).filter(|user| !user.is_empty()), rest),
            None => (None, rest),
        };
        if rest.contains('?') {
            return Err(Fault::Arguments);
        }
        let (host, path) = rest.split_once('/').ok_or(Fault::Target)?;
        let (target, unit) = path.rsplit_once('/').ok_or(Fault::Target)?;
        Ok(Self {
            user: user.map(str::to_owned),
            address: address(host)?,
            target: decoded(target).filter(is_name).ok_or(Fault::Target)?,
            unit: match unit.parse() {
                Ok(unit @ 0..=UNIT_MAX) => unit,
                _ => return Err(Fault::Unit),
            },
        })
    }
}

/// Returns `HOST:PORT`.
fn address(host: &str) -> Result<String, Fault> {
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]%".contains(&byte);
    if !host.bytes().all(is_host) {
        return Err(Fault::Host);
    }
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, port.parse().ok()),
        _ => (host, Some(PORT)),
    };
    let is_bracketed = name.starts_with('[') && name.ends_with(']');
    match port {
        Some(1..) if !name.is_empty() && (is_bracketed || !name.contains(':')) => {
            Ok(format!("{name}:{}", port.unwrap_or(PORT)))
        }
        _ => Err(Fault::Host),
    }
}

/// Returns a name whose characters may be encoded as `%3A`.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok()?;
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        bytes.push(u8::from_str_radix(digits, 16).ok().filter(|_| is_hex)?);
        rest = behind;
    }
    String::from_utf8(bytes).ok()
}

/// Returns whether it can be a name, which has at most 223 bytes (RFC 7143).
#[expect(clippy::ptr_arg, reason = "a filter of a string")]
fn is_name(name: &String) -> bool {
    let is_plain = !name.contains(|letter: char| letter.is_control() || letter == ' ');
    is_plain && (1..=NAME_BYTES_MAX).contains(&name.len())
}

impl Fault {
    fn at(self, url: &str) -> EngineError {
        let target = format!("{}: {self}", shown(url));
        EngineError {
            step: EngineStep::Option("filename"),
            target,
            errno: None,
            hint: match self {
                Self::Password | Self::NoPassword => {
                    format!("set {USER} and {PASSWORD} in the environment")
                }
                Self::Arguments => "remove what follows the logical unit".into(),
                _ => "write iscsi://HOST[:PORT]/TARGET/LUN".into(),
            },
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scheme => "no URL of iSCSI",
            Self::Password => "a password in a file name would be shown and recorded",
            Self::NoPassword => "a user without a password",
            Self::Host => "no host, or a wrong port",
            Self::Target => "no name of a target",
            Self::Unit => "the logical unit is not a number up to 16383",
            Self::Arguments => "arguments are not supported",
        })
    }
}

const SCHEME: &str = "iscsi://";
/// Port of iSCSI.
const PORT: u16 = 3260;
/// Largest unit that flat addressing can name (SAM-5).
const UNIT_MAX: u16 = 16_383;
const NAME_BYTES_MAX: usize = 223;

/// Variables of libiscsi, which its own programs read.
const USER: &str = "LIBISCSI_CHAP_USERNAME";
const PASSWORD: &str = "LIBISCSI_CHAP_PASSWORD";
const TARGET_USER: &str = "LIBISCSI_CHAP_TARGET_USERNAME";
const TARGET_PASSWORD: &str = "LIBISCSI_CHAP_TARGET_PASSWORD";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, want: Result<(&str, &str, u16), Fault>) {
        let got = Parts::of(url);
        let got = got.as_ref().map(|parts| {
            let (address, target) = (parts.address.as_str(), parts.target.as_str());
            (address, target, parts.unit)
        });
        assert_eq!(got, want.as_ref().copied(), "{url}");
    }

    #[test]
    fn urls_have_a_host_a_target_and_a_unit() {
        let name = "iqn.2016-02.x:fio";
        check("iscsi://h/iqn.2016-02.x:fio/1", Ok(("h:3260", name, 1)));
        check("iscsi://h:99/iqn.2016-02.x%3afio/0", Ok(("h:99", name, 0)));
        check("iscsi://[::1]/t/16383", Ok(("[::1]:3260", "t", 16_383)));
        check("iscsi://[::1]:5/a/b/2", Ok(("[::1]:5", "a/b", 2)));
        check("iscsi://me@10.0.0.1/t/2", Ok(("10.0.0.1:3260", "t", 2)));
        for (url, fault) in [
            ("", Fault::Scheme),
            ("iser://h/t/1", Fault::Scheme),
            ("iscsi://h", Fault::Target),
            ("iscsi://h/t", Fault::Target),
            ("iscsi://h//1", Fault::Target),
            ("iscsi://h/%3/1", Fault::Target),
            ("iscsi://h/%+1/1", Fault::Target),
            ("iscsi://h/%ff/1", Fault::Target),
            ("iscsi://h/a%0ab/1", Fault::Target),
            ("iscsi:///t/1", Fault::Host),
            ("iscsi://:3260/t/1", Fault::Host),
            ("iscsi://h:0/t/1", Fault::Host),
            ("iscsi://h:99999/t/1", Fault::Host),
            ("iscsi://::1/t/1", Fault::Host),
            ("iscsi://h,1/t/1", Fault::Host),
            ("iscsi://h/t/x", Fault::Unit),
            ("iscsi://h/t/-1", Fault::Unit),
            ("iscsi://h/t/16384", Fault::Unit),
            ("iscsi://h/t/1?header_digest=crc32c", Fault::Arguments),
            ("iscsi://me%secret@h/t/1", Fault::Password),
            ("iscsi://me%sec@ret/@h/t/1", Fault::Password),
        ] {
            check(url, Err(fault));
        }
    }

    #[test]
    fn passwords_are_in_no_message() {
        let error = portal("iscsi://me%secret@h/t/1", "i", &|_| None).unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(!text.contains("secret") && !text.contains("me%"), "{text}");
        assert!(text.contains("iscsi://…@h/t/1"), "{text}");
        assert!(error.hint.contains(PASSWORD), "{text}");
        let known = |_: &str| Some("secret".to_owned());
        let portal = portal("iscsi://me@h/t/1", "i", &known).unwrap();
        assert_eq!(portal.user.as_ref().unwrap().0, "me");
        let text = format!("{portal:?}");
        assert!(
            text.contains("***") && portal.target_user.is_some(),
            "{text}"
        );
        assert_eq!(
            text.matches("secret").count(),
            1,
            "the target's user: {text}"
        );
    }

    #[test]
    fn users_come_from_the_environment() {
        let user = |url: &str, names: &[&str]| {
            let known = |name: &str| names.contains(&name).then(|| name.to_lowercase());
            let portal = portal(url, "i", &known);
            portal.map(|portal| (portal.user.map(|user| user.0), portal.target_user.is_some()))
        };
        let url = "iscsi://h/t/1";
        assert_eq!(user(url, &[]).unwrap(), (None, false));
        assert_eq!(user(url, &[PASSWORD]).unwrap(), (None, false));
        let own = Some(USER.to_lowercase());
        assert_eq!(user(url, &[USER, PASSWORD]).unwrap(), (own.clone(), false));
        let all = [USER, PASSWORD, TARGET_USER, TARGET_PASSWORD];
        assert_eq!(user(url, &all).unwrap(), (own, true));
        for (url, names) in [(url, &[USER][..]), ("iscsi://me@h/t/1", &[])] {
            let error = user(url, names).unwrap_err();
            assert!(error.hint.contains(PASSWORD), "{error:?}");
        }
    }
}
