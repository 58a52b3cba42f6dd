//! Passwords in the names of files: URLs of iSCSI may have one, `iscsi://USER%PASSWORD@HOST/…`.
//!
//! Names of files are in reports, records and messages, so that such a name is refused, and shown
//! with stars where it stands.

use crate::problem::Problem;

/// Refuses a value of `bytes` bytes if one of its names has a password.
pub(crate) fn no_passwords(names: &[impl AsRef<str>], bytes: usize) -> Result<(), Problem> {
    if !names.iter().any(|name| has_password(name.as_ref())) {
        return Ok(());
    }
    let message = "a password in the name of a file would be in reports and records";
    let problem = Problem::new("secret-in-name", 0..bytes, message);
    Err(problem.fix(
        "set LIBISCSI_CHAP_USERNAME and LIBISCSI_CHAP_PASSWORD in the environment, and leave user \
         and password out of the name",
    ))
}

/// Returns whether a name has a password.
fn has_password(name: &str) -> bool {
    SCHEMES.iter().any(|scheme| {
        let rest = name.strip_prefix(scheme);
        rest.and_then(password).is_some()
    })
}

/// Returns a text with stars for passwords. It has as many bytes, so that places in it stay.
pub(crate) fn masked(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(behind) = behind_scheme(rest) {
        let scheme;
        (scheme, rest) = rest.split_at(behind);
        shown.push_str(scheme);
        if let Some((from, to)) = password(rest) {
            shown.push_str(&rest[..from]);
            shown.extend(std::iter::repeat_n('*', to - from));
            rest = &rest[to..];
        }
    }
    shown.push_str(rest);
    shown
}

/// Returns the place after the scheme of the first URL in a text.
fn behind_scheme(text: &str) -> Option<usize> {
    let ends = SCHEMES.iter().filter_map(|scheme| {
        let start = text.find(scheme)?;
        Some(start + scheme.len())
    });
    ends.min()
}

/// Returns the place of a password, given what follows a scheme.
fn password(rest: &str) -> Option<(usize, usize)> {
    let percent = rest.find('%')?;
    let first = rest.find('@').filter(|at| *at > percent)?;
    // A password may contain `@`, and hardly a space.
    let word = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let last = rest[..word].rfind('@').unwrap_or(first).max(first);
    Some((percent + 1, last))
}

/// The colon may be escaped.
const SCHEMES: [&str; 2] = ["iscsi://", r"iscsi\://"];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &str) {
        assert_eq!(masked(text), want);
        assert_eq!(
            has_password(text),
            text.starts_with("iscsi") && text != want
        );
    }

    #[test]
    fn passwords_are_stars_and_the_rest_stays() {
        check("iscsi://h/t/1", "iscsi://h/t/1");
        check("iscsi://me@h/t%3Ax/1", "iscsi://me@h/t%3Ax/1");
        check("iscsi://h/t%3Ax/1", "iscsi://h/t%3Ax/1");
        check("iscsi://me%pw@h/t/1", "iscsi://me%**@h/t/1");
        check(r"iscsi\://me%pw@h/t/1", r"iscsi\://me%**@h/t/1");
        check("iscsi://me%p@w/@h/t/1", "iscsi://me%****@h/t/1");
        check("iscsi://me%p w@h/t/1", "iscsi://me%***@h/t/1");
        check("iscsi://me%ü@h/t/1", "iscsi://me%**@h/t/1");
        check(
            "--filename=iscsi://a%b@h/1 --x=iscsi://c%d@h/2",
            "--filename=iscsi://a%*@h/1 --x=iscsi://c%*@h/2",
        );
        check("http://me%pw@h", "http://me%pw@h");
        check("", "");
    }
}
