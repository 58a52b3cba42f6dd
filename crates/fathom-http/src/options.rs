//! Options of the engine.

use fathom_core::{EngineInfo, EngineOption, OptionWord, Storage};
use fathom_engine::options::{CONNECT_TIMEOUT, REPLY_TIMEOUT};

/// Facts about the engine.
pub(crate) static INFO: EngineInfo = EngineInfo {
    storage: Storage::Remote,
    options: &[
        HOST,
        USER,
        PASS,
        HTTPS,
        MODE,
        OBJECT_MODE,
        S3_KEY,
        S3_KEYID,
        S3_SECURITY_TOKEN,
        S3_REGION,
        S3_SSE_CUSTOMER_KEY,
        S3_SSE_CUSTOMER_ALGORITHM,
        S3_STORAGE_CLASS,
        SWIFT_AUTH_TOKEN,
        VERBOSE,
        RETRIES,
        CHECK_ETAG,
        CONNECT_TIMEOUT,
        REPLY_TIMEOUT,
    ],
    shares_buffers: true,
    different: "needs a build with the feature `http`; truncated answers and wrong checksums are \
                errors",
    ..EngineInfo::new("http", "objects of WebDAV, S3 and Swift servers")
};

pub(crate) const HOST: EngineOption = EngineOption::text(
    "http_host",
    "Host and port of the server",
    "http_host=s3.eu-central-1.amazonaws.com",
)
.default("localhost");

pub(crate) const USER: EngineOption = EngineOption::text(
    "http_user",
    "User of WebDAV; else FATHOM_HTTP_USER of the environment",
    "http_user=me",
);

pub(crate) const PASS: EngineOption = EngineOption::text(
    "http_pass",
    "Password of WebDAV; else FATHOM_HTTP_PASS of the environment",
    "http_pass=${WEBDAV_PASSWORD}",
)
.secret();

pub(crate) const HTTPS: EngineOption = EngineOption::choice(
    "https",
    &[
        OptionWord {
            word: "off",
            help: "without TLS",
        },
        OptionWord {
            word: "on",
            help: "TLS; the certificate is checked",
        },
        OptionWord {
            word: "insecure",
            help: "TLS with any certificate",
        },
    ],
    "Encryption of the connection; CA certificates are the system's, or SSL_CERT_FILE",
    "https=on",
)
.default("off");

pub(crate) const MODE: EngineOption = EngineOption::choice(
    "http_mode",
    &[
        OptionWord {
            word: "webdav",
            help: "no, or basic authentication",
        },
        OptionWord {
            word: "s3",
            help: "signature version 4, path-style addresses",
        },
        OptionWord {
            word: "swift",
            help: "X-Auth-Token",
        },
    ],
    "Kind of server",
    "http_mode=s3",
)
.default("webdav");

pub(crate) const OBJECT_MODE: EngineOption = EngineOption::choice(
    "http_object_mode",
    &[
        OptionWord {
            word: "block",
            help: "an object FILENAME_OFFSET_LENGTH for each block",
        },
        OptionWord {
            word: "range",
            help: "an object FILENAME for each file, of which ranges are read",
        },
    ],
    "Objects that make up a file",
    "http_object_mode=range",
)
.default("block")
.different("with `range`, jobs that write or trim are refused");

pub(crate) const S3_KEY: EngineOption = EngineOption::text(
    "http_s3_key",
    "Secret key of S3; else AWS_SECRET_ACCESS_KEY, or the AWS credentials file",
    "http_s3_key=${S3_KEY}",
)
.secret();

pub(crate) const S3_KEYID: EngineOption = EngineOption::text(
    "http_s3_keyid",
    "Access key ID of S3; else AWS_ACCESS_KEY_ID, or the AWS credentials file",
    "http_s3_keyid=${S3_ID}",
)
.secret();

pub(crate) const S3_SECURITY_TOKEN: EngineOption = EngineOption::text(
    "http_s3_security_token",
    "Session token of temporary S3 credentials; else AWS_SESSION_TOKEN",
    "http_s3_security_token=${S3_TOKEN}",
)
.secret();

pub(crate) const S3_REGION: EngineOption = EngineOption::text(
    "http_s3_region",
    "Region that S3 requests are signed for",
    "http_s3_region=eu-central-1",
)
.default("us-east-1");

pub(crate) const S3_SSE_CUSTOMER_KEY: EngineOption = EngineOption::text(
    "http_s3_sse_customer_key",
    "Key, 32 bytes as text, with which an S3 server encrypts objects; HTTPS only",
    "http_s3_sse_customer_key=${SSE_KEY}",
)
.secret();

pub(crate) const S3_SSE_CUSTOMER_ALGORITHM: EngineOption = EngineOption::text(
    "http_s3_sse_customer_algorithm",
    "Cipher of `http_s3_sse_customer_key`",
    "http_s3_sse_customer_algorithm=AES256",
)
.default("AES256");

pub(crate) const S3_STORAGE_CLASS: EngineOption = EngineOption::text(
    "http_s3_storage_class",
    "Storage class of objects that are written",
    "http_s3_storage_class=STANDARD_IA",
)
.default("STANDARD");

pub(crate) const SWIFT_AUTH_TOKEN: EngineOption = EngineOption::text(
    "http_swift_auth_token",
    "Token of Swift; else OS_AUTH_TOKEN of the environment",
    "http_swift_auth_token=${SWIFT_id}",
)
.secret();

pub(crate) const VERBOSE: EngineOption = EngineOption::int(
    "http_verbose",
    0,
    u32::MAX as u64,
    "Requests on standard error; 1: a line for each; 2: with the headers of the answer",
    "http_verbose=1",
)
.default("0")
.different("lines of its own, without credentials");

pub(crate) const RETRIES: EngineOption = EngineOption::int(
    "http_retries",
    0,
    100,
    "Times that a request is repeated after 429, 500, 502, 503, 504 or a lost connection",
    "http_retries=3",
)
.default("0")
.different("not in fio");

pub(crate) const CHECK_ETAG: EngineOption = EngineOption::boolean(
    "http_check_etag",
    "Compare objects with the MD5 that S3 and Swift give as ETag",
    "http_check_etag=0",
)
.default("1")
.different("not in fio");

#[cfg(feature = "http")]
pub(crate) use resolved::{Mode, ObjectMode, Options, Tls};

#[cfg(feature = "http")]
mod resolved {
    use fathom_core::{EngineOption, EngineValues, Nanos};

    use super::{
        CHECK_ETAG, CONNECT_TIMEOUT, HOST, HTTPS, MODE, OBJECT_MODE, REPLY_TIMEOUT, RETRIES,
        S3_REGION, S3_STORAGE_CLASS, VERBOSE,
    };

    /// The engine's options but for credentials, resolved.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(crate) struct Options {
        pub(crate) host: String,
        pub(crate) tls: Tls,
        pub(crate) mode: Mode,
        pub(crate) objects: ObjectMode,
        pub(crate) region: String,
        pub(crate) storage_class: String,
        pub(crate) verbose: u64,
        pub(crate) retries: u64,
        pub(crate) check_etag: bool,
        pub(crate) connect_timeout: Nanos,
        pub(crate) reply_timeout: Nanos,
    }

    /// Encryption of a connection.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Tls {
        Off,
        Checked,
        /// The server's certificate is not checked.
        Unchecked,
    }

    /// Kind of server.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Mode {
        WebDav,
        S3,
        Swift,
    }

    /// Objects that make up a file.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum ObjectMode {
        /// One for each block.
        Block,
        /// One, of which ranges are read.
        Range,
    }

    impl Options {
        /// Resolves the values of a job.
        pub(crate) fn resolve(values: &EngineValues) -> Self {
            let text = |option: &EngineOption| {
                let given = values.text(option).filter(|text| !text.is_empty());
                given.unwrap_or(option.default).to_owned()
            };
            let number = |option: &EngineOption| {
                let fallback = || option.default.parse().ok();
                values.number(option).or_else(fallback).unwrap_or(0)
            };
            Self {
                host: text(&HOST),
                tls: match text(&HTTPS).as_str() {
                    "on" => Tls::Checked,
                    "insecure" => Tls::Unchecked,
                    _ => Tls::Off,
                },
                mode: match text(&MODE).as_str() {
                    "s3" => Mode::S3,
                    "swift" => Mode::Swift,
                    _ => Mode::WebDav,
                },
                objects: match text(&OBJECT_MODE).as_str() {
                    "range" => ObjectMode::Range,
                    _ => ObjectMode::Block,
                },
                region: text(&S3_REGION),
                storage_class: text(&S3_STORAGE_CLASS),
                verbose: number(&VERBOSE),
                retries: number(&RETRIES),
                check_etag: number(&CHECK_ETAG) != 0,
                connect_timeout: Nanos::from_secs(number(&CONNECT_TIMEOUT)),
                reply_timeout: Nanos::from_secs(number(&REPLY_TIMEOUT)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use fathom_core::OptionKind;

    use super::*;

    #[test]
    fn kinds_of_options_fit_their_defaults() {
        for option in INFO.options {
            match option.kind {
                OptionKind::Int { min, max } => {
                    let default: u64 = option.default.parse().expect(option.name);
                    assert!((min..=max).contains(&default), "{}", option.name);
                }
                OptionKind::Choice(words) => {
                    assert!(words.iter().any(|word| word.word == option.default));
                }
                _ => {}
            }
        }
    }

    #[test]
    fn secrets_are_those_that_open_something() {
        let secret = INFO.options.iter().filter(|option| option.is_secret);
        let names: Vec<&str> = secret.map(|option| option.name).collect();
        let want = [
            "http_pass",
            "http_s3_key",
            "http_s3_keyid",
            "http_s3_security_token",
            "http_s3_sse_customer_key",
            "http_swift_auth_token",
        ];
        assert_eq!(names, want);
    }
}
