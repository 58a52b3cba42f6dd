//! Passwords in URLs: those of iSCSI may have one, `iscsi://USER%PASSWORD@HOST/…`, and those of
//! other engines are written with one, `nfs://USER:PASSWORD@HOST/…`, which means nothing there.
//!
//! Names of files and values of options are in reports, records and messages, so that such a text
//! is refused, and shown with stars where it stands.

use crate::problem::Problem;

/// Refuses a value of `bytes` bytes if one of its names has a password.
pub(crate) fn no_passwords(names: &[impl AsRef<str>], bytes: usize) -> Result<(), Problem> {
    let mut schemes = names.iter().filter_map(|name| password_of(name.as_ref()));
    let Some(scheme) = schemes.next() else {
        return Ok(());
    };
    let message = "a password in a URL would be in reports and records";
    let problem = Problem::new("secret-in-name", 0..bytes, message);
    Err(problem.fix(match scheme {
        ISCSI => {
            "set LIBISCSI_CHAP_USERNAME and LIBISCSI_CHAP_PASSWORD in the environment, and leave \
             user and password out of the name"
        }
        _ => "leave user and password out: the engine has no use for them",
    }))
}

/// Returns the scheme of a name with a password.
fn password_of(name: &str) -> Option<&'static str> {
    let url = first_url(name).filter(|url| url.starts_at == 0)?;
    password(url.scheme, &name[url.behind..]).map(|_| url.scheme)
}

/// Returns a text with stars for passwords. It has as many bytes, so that places in it stay.
pub(crate) fn masked(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(url) = first_url(rest) {
        let before;
        (before, rest) = rest.split_at(url.behind);
        shown.push_str(before);
        if let Some((from, to)) = password(url.scheme, rest) {
            shown.push_str(&rest[..from]);
            shown.extend(std::iter::repeat_n('*', to - from));
            rest = &rest[to..];
        }
    }
    shown.push_str(rest);
    shown
}

/// Place of a URL in a text.
struct Url {
    scheme: &'static str,
    starts_at: usize,
    /// End of the scheme with its slashes.
    behind: usize,
}

/// Returns the first URL of one of [`SCHEMES`]. Its colon may be escaped.
fn first_url(text: &str) -> Option<Url> {
    text.match_indices("://").find_map(|(colon, slashes)| {
        let before = text[..colon].strip_suffix('\\').unwrap_or(&text[..colon]);
        let ends_with = |scheme: &str| {
            let start = before.len().checked_sub(scheme.len())?;
            let word = before.as_bytes()[start..].eq_ignore_ascii_case(scheme.as_bytes());
            word.then_some(start)
        };
        SCHEMES.iter().find_map(|scheme| {
            Some(Url {
                scheme,
                starts_at: ends_with(scheme)?,
                behind: colon + slashes.len(),
            })
        })
    })
}

/// Returns the place of a password, given what follows a scheme.
fn password(scheme: &str, rest: &str) -> Option<(usize, usize)> {
    let word = &rest[..rest.find(char::is_whitespace).unwrap_or(rest.len())];
    let authority = &word[..word.find(['/', '?']).unwrap_or(word.len())];
    let last = word.rfind('@');
    if scheme == ISCSI
        && let Some(percent) = rest.find('%')
    {
        // A password may contain `@`, and hardly a space.
        if let Some(first) = rest.find('@').filter(|at| *at > percent) {
            return Some((percent + 1, last.unwrap_or(first).max(first)));
        }
        // The host is missing, or its `@`. An address in brackets may have a `%`.
        if percent < authority.len() && last.is_none() && !authority.starts_with('[') {
            return Some((percent + 1, word.len()));
        }
    }
    let colon = authority.find(':')?;
    if let Some(at) = authority.rfind('@').filter(|at| *at > colon) {
        return Some((colon + 1, at));
    }
    // What follows is no port, but may be a password with a slash.
    let is_port = authority[colon + 1..]
        .bytes()
        .all(|byte| byte.is_ascii_digit());
    let at = last.filter(|at| *at > colon && !is_port && !authority.contains(['@', '[']));
    at.map(|at| (colon + 1, at))
}

const ISCSI: &str = "iscsi";
const SCHEMES: [&str; 4] = [ISCSI, "nbd", "nbds", "nfs"];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &str) {
        assert_eq!(masked(text), want);
        assert_eq!(
            password_of(text).is_some(),
            !text.starts_with('-') && text != want
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

    #[test]
    fn urls_without_a_host_and_in_capitals_have_passwords() {
        check("iscsi://me%pw", "iscsi://me%**");
        check("iscsi://me%pw/t/1", "iscsi://me%******");
        check("ISCSI://me%pw@h/t/1", "ISCSI://me%**@h/t/1");
        check(r"Iscsi\://me%pw@h/t/1", r"Iscsi\://me%**@h/t/1");
        check("iscsi://[fe80::1%25e]/t/1", "iscsi://[fe80::1%25e]/t/1");
    }

    #[test]
    fn a_colon_sets_a_password_off_where_no_port_is() {
        for scheme in ["iscsi", "NBD", "nbds", "nfs"] {
            check(
                &format!("{scheme}://me:pw@h/x"),
                &format!("{scheme}://me:**@h/x"),
            );
            check(
                &format!("{scheme}://me:p/w@h/x"),
                &format!("{scheme}://me:***@h/x"),
            );
            for plain in [
                "me@h:1/x",
                "h:1/a@b",
                "[::1]:1/a@b",
                "me@[::1]/a@b",
                "h/a:b",
            ] {
                let url = format!("{scheme}://{plain}");
                check(&url, &url);
            }
        }
        check(r"iscsi\://me\:pw@h/t/1", r"iscsi\://me\:**@h/t/1");
        check("nbd+unix:///x?socket=a:b@c", "nbd+unix:///x?socket=a:b@c");
    }
}
