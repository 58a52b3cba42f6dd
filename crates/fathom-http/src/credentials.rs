//! Credentials: from options, the environment or a file, and into no message.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use fathom_core::{EngineError, EngineOption, EngineStep, EngineValues};

use crate::options::{
    Mode, Options, PASS, S3_KEY, S3_KEYID, S3_SECURITY_TOKEN, S3_SSE_CUSTOMER_ALGORITHM,
    S3_SSE_CUSTOMER_KEY, SWIFT_AUTH_TOKEN, Tls, USER,
};

/// A text that no message contains.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Right of the job to use the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Credentials {
    /// None is given: WebDAV without a password.
    None,
    Basic {
        user: String,
        pass: Secret,
    },
    S3(S3Keys),
    Token(Secret),
}

/// Keys of S3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct S3Keys {
    pub(crate) id: Secret,
    pub(crate) secret: Secret,
    pub(crate) session: Option<Secret>,
    pub(crate) customer: Option<CustomerKey>,
}

/// Key with which the server encrypts objects (SSE-C).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CustomerKey {
    pub(crate) algorithm: String,
    pub(crate) key: Secret,
}

impl Credentials {
    /// Finds those that the mode needs. `variable` reads the environment, `file` a file.
    ///
    /// # Errors
    /// None are given, or not all, or the file of AWS cannot be read.
    pub(crate) fn find(
        values: &EngineValues,
        options: &Options,
        variable: &dyn Fn(&str) -> Option<String>,
        file: &dyn Fn(&Path) -> io::Result<String>,
    ) -> Result<Self, EngineError> {
        let find = |option: &EngineOption, names: &[&str]| {
            let given = values.text(option).map(str::to_owned);
            let mut others = names.iter().filter_map(|name| variable(name));
            given
                .or_else(|| others.next())
                .filter(|text| !text.is_empty())
        };
        match options.mode {
            Mode::WebDav => Ok(match find(&USER, &["FATHOM_HTTP_USER"]) {
                None => Self::None,
                Some(user) => Self::Basic {
                    user,
                    pass: Secret(find(&PASS, &["FATHOM_HTTP_PASS"]).unwrap_or_default()),
                },
            }),
            Mode::Swift => {
                let token = find(&SWIFT_AUTH_TOKEN, &["OS_AUTH_TOKEN"]).ok_or_else(|| {
                    missing(
                        "http_swift_auth_token",
                        "set it, or OS_AUTH_TOKEN in the environment",
                    )
                })?;
                Ok(Self::Token(Secret(token)))
            }
            Mode::S3 => {
                let kept = || Profile::load(variable, file);
                let id = find(&S3_KEYID, &["AWS_ACCESS_KEY_ID"]);
                let secret = find(&S3_KEY, &["AWS_SECRET_ACCESS_KEY"]);
                let session = find(&S3_SECURITY_TOKEN, &["AWS_SESSION_TOKEN"]);
                // Keys belong together: a file completes none that are given in part.
                let (id, secret, session) = match (&id, &secret) {
                    (None, None) => match kept()? {
                        Some(kept) => (kept.id, kept.secret, session.or(kept.session)),
                        None => (None, None, None),
                    },
                    _ => (id, secret, session),
                };
                let id = id.ok_or_else(|| missing("http_s3_keyid", S3_HINT))?;
                let secret = secret.ok_or_else(|| missing("http_s3_key", S3_HINT))?;
                Ok(Self::S3(S3Keys {
                    id: Secret(id),
                    secret: Secret(secret),
                    session: session.map(Secret),
                    customer: customer_key(values, options)?,
                }))
            }
        }
    }
}

/// Section of an AWS credentials file.
#[derive(Default)]
struct Profile {
    id: Option<String>,
    secret: Option<String>,
    session: Option<String>,
}

impl Profile {
    /// Reads AWS_SHARED_CREDENTIALS_FILE, or `~/.aws/credentials`, which need not be there.
    fn load(
        variable: &dyn Fn(&str) -> Option<String>,
        file: &dyn Fn(&Path) -> io::Result<String>,
    ) -> Result<Option<Self>, EngineError> {
        let named = variable("AWS_SHARED_CREDENTIALS_FILE").map(PathBuf::from);
        let home = || Some(PathBuf::from(variable("HOME")?).join(".aws/credentials"));
        let is_named = named.is_some();
        let Some(path) = named.or_else(home) else {
            return Ok(None);
        };
        match file(&path) {
            Ok(text) => {
                let wanted = variable("AWS_PROFILE").unwrap_or_else(|| "default".into());
                Ok(Some(Self::of(&text, &wanted)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_named => Ok(None),
            Err(error) => Err(EngineError {
                step: EngineStep::Option("http_s3_keyid"),
                target: format!("not given, and {} cannot be read: {error}", path.display()),
                errno: None,
                hint: S3_HINT.into(),
            }),
        }
    }

    fn of(text: &str, wanted: &str) -> Self {
        let mut profile = Self::default();
        let mut is_wanted = false;
        for line in text.lines().map(str::trim) {
            if let Some(name) = line
                .strip_prefix('[')
                .and_then(|line| line.strip_suffix(']'))
            {
                is_wanted = name.trim() == wanted;
            } else if let (true, Some((key, value))) = (is_wanted, line.split_once('=')) {
                let value = Some(value.trim().to_owned()).filter(|value| !value.is_empty());
                match key.trim() {
                    "aws_access_key_id" => profile.id = value,
                    "aws_secret_access_key" => profile.secret = value,
                    "aws_session_token" => profile.session = value,
                    _ => {}
                }
            }
        }
        profile
    }
}

fn customer_key(
    values: &EngineValues,
    options: &Options,
) -> Result<Option<CustomerKey>, EngineError> {
    let given = values.text(&S3_SSE_CUSTOMER_KEY);
    let Some(key) = given.filter(|key| !key.is_empty()) else {
        return Ok(None);
    };
    if options.tls == Tls::Off {
        // Servers refuse it, but only once the key is on the wire.
        return Err(EngineError {
            step: EngineStep::Option("http_s3_sse_customer_key"),
            target: "the key would cross the network in clear".into(),
            errno: None,
            hint: "add https=on".into(),
        });
    }
    let algorithm = values.text(&S3_SSE_CUSTOMER_ALGORITHM);
    let algorithm = algorithm.unwrap_or(S3_SSE_CUSTOMER_ALGORITHM.default);
    if algorithm == S3_SSE_CUSTOMER_ALGORITHM.default && key.len() != AES256_KEY_BYTES {
        return Err(EngineError {
            step: EngineStep::Option("http_s3_sse_customer_key"),
            target: format!("{} bytes, and AES256 takes {AES256_KEY_BYTES}", key.len()),
            errno: None,
            hint: "give the key itself as text of 32 bytes, not in base64 or hexadecimal".into(),
        });
    }
    Ok(Some(CustomerKey {
        algorithm: algorithm.to_owned(),
        key: Secret(key.to_owned()),
    }))
}

fn missing(option: &'static str, hint: &str) -> EngineError {
    EngineError {
        step: EngineStep::Option(option),
        target: "not given".into(),
        errno: None,
        hint: hint.into(),
    }
}

const S3_HINT: &str = "set it, or the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";

/// Bytes of a key of AES256.
const AES256_KEY_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use fathom_core::OptionValue;

    use super::*;

    fn find(
        options: &[(&'static str, &str)],
        variables: &[(&str, &str)],
    ) -> Result<Credentials, String> {
        let mut values = EngineValues::default();
        for (name, value) in options {
            values.set(name, OptionValue::Text((*value).to_owned()));
        }
        let resolved = Options::resolve(&values);
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let file = |path: &Path| {
            let text = "[default]\naws_access_key_id = D\naws_secret_access_key=E\n\
                        [other]\naws_access_key_id=O\naws_secret_access_key=P\n\
                        aws_session_token=T\n";
            match path.to_str() {
                Some("/home/.aws/credentials") => Ok(text.to_owned()),
                Some("/empty") => Ok("[default]\naws_access_key_id=\n".to_owned()),
                Some("/locked") => Err(io::ErrorKind::PermissionDenied.into()),
                _ => Err(io::ErrorKind::NotFound.into()),
            }
        };
        Credentials::find(&values, &resolved, &variable, &file).map_err(|error| error.to_string())
    }

    fn s3(id: &str, secret: &str, session: Option<&str>) -> Result<Credentials, String> {
        Ok(Credentials::S3(S3Keys {
            id: Secret(id.into()),
            secret: Secret(secret.into()),
            session: session.map(|text| Secret(text.into())),
            customer: None,
        }))
    }

    const S3: (&str, &str) = ("http_mode", "s3");

    #[test]
    fn options_come_before_variables_and_those_before_a_file() {
        let given = [S3, ("http_s3_keyid", "A"), ("http_s3_key", "B")];
        let set = [
            ("AWS_ACCESS_KEY_ID", "V"),
            ("AWS_SECRET_ACCESS_KEY", "W"),
            ("AWS_SESSION_TOKEN", "X"),
            ("HOME", "/home"),
        ];
        assert_eq!(find(&given, &[]), s3("A", "B", None));
        assert_eq!(find(&[S3], &set), s3("V", "W", Some("X")));
        assert_eq!(find(&[S3], &set[3..]), s3("D", "E", None));
        let other = [("HOME", "/home"), ("AWS_PROFILE", "other")];
        assert_eq!(find(&[S3], &other), s3("O", "P", Some("T")));
    }

    #[test]
    fn what_is_missing_is_named() {
        let refused = find(&[S3], &[]).unwrap_err();
        assert_eq!(refused, "http_s3_keyid: not given");
        let half = find(&[S3, ("http_s3_keyid", "A")], &[("HOME", "/home")]);
        assert_eq!(half.unwrap_err(), "http_s3_key: not given");
        let named = |path| find(&[S3], &[("AWS_SHARED_CREDENTIALS_FILE", path)]).unwrap_err();
        assert_eq!(named("/empty"), "http_s3_keyid: not given");
        let refused = named("/locked");
        assert!(
            refused.contains("/locked cannot be read: permission"),
            "{refused}"
        );
        let refused = named("/none");
        assert!(
            refused.contains("/none cannot be read: entity not"),
            "{refused}"
        );
        assert_eq!(
            find(&[S3], &[("HOME", "/")]).unwrap_err(),
            "http_s3_keyid: not given"
        );
        let swift = find(&[("http_mode", "swift")], &[]).unwrap_err();
        assert_eq!(swift, "http_swift_auth_token: not given");
        assert_eq!(find(&[], &[]), Ok(Credentials::None));
    }

    #[test]
    fn no_message_has_a_secret() {
        let found = find(
            &[S3, ("http_s3_keyid", "AKEY"), ("http_s3_key", "BKEY")],
            &[],
        );
        let text = format!("{found:?}");
        assert!(!text.contains("KEY") && text.contains("***"), "{text}");
    }

    #[test]
    fn a_customer_key_needs_tls() {
        let given = [
            S3,
            ("http_s3_keyid", "A"),
            ("http_s3_key", "B"),
            ("http_s3_sse_customer_key", "C"),
        ];
        let refused = find(&given, &[]).unwrap_err();
        assert!(
            refused.contains("in clear") && !refused.contains(": C"),
            "{refused}"
        );
    }

    #[test]
    fn a_customer_key_of_another_length_is_refused() {
        let find = |key: &str| {
            let given = [
                S3,
                ("https", "on"),
                ("http_s3_keyid", "A"),
                ("http_s3_key", "B"),
                ("http_s3_sse_customer_key", key),
            ];
            find(&given, &[])
        };
        for length in [1, 31, 33, 44, 64] {
            let refused = find(&"Q".repeat(length)).unwrap_err();
            let named = format!("{length} bytes, and AES256 takes 32");
            assert!(
                refused.contains(&named) && !refused.contains("QQ"),
                "{refused}"
            );
        }
        assert!(find(&"Q".repeat(32)).is_ok());
    }
}
