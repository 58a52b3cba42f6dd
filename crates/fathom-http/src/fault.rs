//! Answers other than success, and their meaning.

use std::io;

use fathom_core::{Errno, Nanos};
use ureq::http::HeaderMap;

use crate::credentials::Credentials;
use crate::options::{Mode, Options};
use crate::target;

/// Failure of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) errno: Errno,
    /// For users; without credentials.
    pub(crate) text: String,
    pub(crate) kind: FaultKind,
}

/// Reaction to a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// The same request would fail again.
    Lasting,
    /// The server asks to try again, perhaps after a delay.
    Busy(Option<Nanos>),
    /// The connection was lost, perhaps before the request arrived.
    Lost,
    /// The job was stopped before the next try.
    Stopped,
}

impl Fault {
    pub(crate) fn lasting(errno: Errno, text: impl Into<String>) -> Self {
        Self {
            errno,
            text: text.into(),
            kind: FaultKind::Lasting,
        }
    }

    /// Returns the failure of a connection.
    pub(crate) fn of_transport(error: &ureq::Error, options: &Options) -> Self {
        match error {
            // The resolver's errors have neither a kind nor a number.
            ureq::Error::Io(error) if error.to_string().starts_with("failed to lookup") => {
                Self::of_transport(&ureq::Error::HostNotFound, options)
            }
            ureq::Error::Io(error) => {
                let mut fault = Self::of_io(error);
                // The message has the errno.
                if Errno::of(error).is_some() && fault.kind == FaultKind::Lasting {
                    fault.text = format!("no connection to {}", target::address(options));
                }
                fault
            }
            ureq::Error::Timeout(step) => {
                let (option, seconds) = match step {
                    ureq::Timeout::Resolve | ureq::Timeout::Connect => {
                        ("connect_timeout", options.connect_timeout)
                    }
                    _ => ("reply_timeout", options.reply_timeout),
                };
                let text = format!(
                    "no answer from {} within {seconds} ({option})",
                    options.host
                );
                Self::lasting(Errno::ETIMEDOUT, text)
            }
            ureq::Error::HostNotFound => Self::lasting(
                Errno::ENOENT,
                format!("the host name in http_host is not known: {}", options.host),
            ),
            ureq::Error::Rustls(error) => Self::of_tls(error),
            ureq::Error::Tls(text) => Self::lasting(Errno::EPROTO, format!("TLS: {text}")),
            ureq::Error::BadUri(uri) => Self::lasting(
                Errno::EINVAL,
                format!("no address of a server: http_host={}: {uri}", options.host),
            ),
            other => Self::lasting(Errno::EPROTO, format!("no valid HTTP: {other}")),
        }
    }

    /// Returns the failure of a transfer.
    pub(crate) fn of_io(error: &io::Error) -> Self {
        let inner = error.get_ref();
        if let Some(tls) = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            return Self::of_tls(tls);
        }
        let (errno, kind) = match error.kind() {
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => (Errno::ECONNRESET, FaultKind::Lost),
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
                (Errno::ETIMEDOUT, FaultKind::Lasting)
            }
            _ => (Errno::of(error).unwrap_or(Errno::EIO), FaultKind::Lasting),
        };
        let text = match kind {
            FaultKind::Lost => "the server closed the connection".to_owned(),
            _ => error.to_string(),
        };
        Self { errno, text, kind }
    }

    fn of_tls(error: &rustls::Error) -> Self {
        let advice = match error {
            rustls::Error::InvalidCertificate(_) => {
                "; name the CA in SSL_CERT_FILE, or use https=insecure where no attack is likely"
            }
            _ => "; check that the port speaks TLS",
        };
        Self::lasting(Errno::EPROTO, format!("TLS: {error}{advice}"))
    }

    /// Returns the meaning of a status other than success.
    pub(crate) fn of_status(answer: &Answer<'_>, options: &Options, had: &Credentials) -> Self {
        let code = answer.code();
        let status = answer.status;
        let said = match code {
            "" => format!("HTTP {status}"),
            code => format!("HTTP {status} ({code})"),
        };
        if let Some(region) = answer.other_region(&options.region) {
            let text = format!(
                "{said}: the bucket is in the region {region}: set http_s3_region={region}, and \
                 the http_host of that region"
            );
            return Self::lasting(Errno::EREMOTEIO, text);
        }
        let (errno, advice) = match (status, code) {
            (401 | 403, _) => (Errno::EACCES, refused(code, options, had)),
            (404, "NoSuchBucket") => (Errno::ENOENT, "the bucket in `filename` does not exist"),
            (404, _) => (Errno::ENOENT, "check `filename`"),
            (409, _) if options.mode == Mode::WebDav => (
                Errno::ENOENT,
                "the collection in `filename` does not exist: create it first",
            ),
            (413, _) => (Errno::EFBIG, "the server refuses objects of this size"),
            (416, _) => (Errno::EINVAL, "the object ends before this block"),
            (422, _) => (
                Errno::EILSEQ,
                "the data that the server received differ from those sent",
            ),
            (400, "BadDigest" | "XAmzContentSHA256Mismatch") => (
                Errno::EILSEQ,
                "the data that the server received differ from those sent",
            ),
            (507, _) => (Errno::ENOSPC, "the server has no space left"),
            (304, _) => (Errno::EIO, "the request had no condition that it answers"),
            (300..=399, _) => (
                Errno::EREMOTEIO,
                "redirections are not followed: check http_host",
            ),
            (405 | 501, _) => (
                Errno::EOPNOTSUPP,
                "the server does not take this method: check http_mode",
            ),
            (429 | 503, _) => (Errno::EBUSY, "the server asks for fewer requests"),
            _ => (Errno::EIO, ""),
        };
        let text = match advice {
            "" => said,
            advice => format!("{said}: {advice}"),
        };
        let kind = match status {
            429 | 500 | 502 | 503 | 504 => FaultKind::Busy(answer.retry_after()),
            _ => FaultKind::Lasting,
        };
        Self { errno, text, kind }
    }
}

/// Returns the credential that a server has refused.
fn refused(code: &str, options: &Options, had: &Credentials) -> &'static str {
    match (code, options.mode) {
        ("InvalidAccessKeyId", _) => "the server does not know the http_s3_keyid",
        ("SignatureDoesNotMatch", _) => "`http_s3_key` does not belong to `http_s3_keyid`",
        ("RequestTimeTooSkewed", _) => "the clocks of this host and of the server differ too much",
        ("ExpiredToken" | "InvalidToken", _) => "the http_s3_security_token is not valid any more",
        (_, Mode::S3) => "the owner of the http_s3_keyid may not do this, or the key is wrong",
        (_, Mode::Swift) => "the http_swift_auth_token is wrong or has expired",
        (_, Mode::WebDav) => match had {
            Credentials::None => "the server requires a user: set http_user and http_pass",
            _ => "http_user or http_pass is wrong, or the user may not do this",
        },
    }
}

/// Answer of a server other than success.
pub(crate) struct Answer<'a> {
    pub(crate) status: u16,
    pub(crate) headers: &'a HeaderMap,
    /// The beginning of the body: S3 describes the error there.
    pub(crate) body: &'a str,
}

impl Answer<'_> {
    /// Returns S3's code of the error; empty if there is none.
    pub(crate) fn code(&self) -> &str {
        let code = element(self.body, "Code").unwrap_or_default();
        let is_word = code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if is_word { code } else { "" }
    }

    /// Returns the region in which the bucket is, if it is another one.
    fn other_region(&self, region: &str) -> Option<&str> {
        let header = self.headers.get("x-amz-bucket-region");
        let header = header.and_then(|value| value.to_str().ok());
        let is_error = self.status / 100 == 3 || self.status == 400;
        let told = header.or_else(|| element(self.body, "Region"))?;
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let is_region = (1..=64).contains(&told.len()) && told.bytes().all(is_word);
        (is_error && is_region && told != region).then_some(told)
    }

    fn retry_after(&self) -> Option<Nanos> {
        let text = self.headers.get("retry-after")?.to_str().ok()?.trim();
        // A date, which the header may have, too, is for clocks that agree.
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // Bounded here: a peer's number must not overflow. Pauses are shorter anyway.
        let seconds = || text.parse().unwrap_or(u64::MAX).min(3_600);
        is_number.then(|| Nanos::from_secs(seconds()))
    }
}

/// Returns the text of the first XML element of this name.
fn element<'a>(body: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = body.split_once(&format!("<{name}>"))?;
    rest.split_once("</").map(|(text, _)| text)
}

#[cfg(test)]
mod tests {
    use fathom_core::{EngineValues, OptionValue};

    use super::*;

    fn options(mode: &str) -> Options {
        let mut values = EngineValues::default();
        values.set("http_mode", OptionValue::Text(mode.into()));
        Options::resolve(&values)
    }

    #[track_caller]
    fn check(mode: &str, status: u16, body: &str, errno: Errno, part: &str) {
        let headers = HeaderMap::new();
        let answer = Answer {
            status,
            headers: &headers,
            body,
        };
        let fault = Fault::of_status(&answer, &options(mode), &Credentials::None);
        assert_eq!(fault.errno, errno, "{fault:?}");
        assert!(fault.text.contains(part), "{fault:?}");
    }

    #[test]
    fn what_a_server_says_is_not_trusted() {
        check(
            "s3",
            400,
            "<Code>\u{1b}[2J</Code><Region>\u{1b}[2J</Region>",
            Errno::EIO,
            "HTTP 400",
        );
        let hour = Some(Nanos::from_secs(3_600));
        check_pause("18446744073709551615", hour);
        check_pause("18446744073709551616", hour);
        check_pause("2", Some(Nanos::from_secs(2)));
        check_pause("Fri, 31 Dec 2027 23:59:59 GMT", None);
        check_pause("", None);
    }

    #[track_caller]
    fn check_pause(header: &str, want: Option<Nanos>) {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", header.parse().unwrap());
        let answer = Answer {
            status: 503,
            headers: &headers,
            body: "",
        };
        let fault = Fault::of_status(&answer, &options("s3"), &Credentials::None);
        assert_eq!(fault.kind, FaultKind::Busy(want));
    }

    #[test]
    fn an_error_of_the_system_names_the_server_and_not_itself() {
        let refused = || ureq::Error::Io(io::Error::from_raw_os_error(111));
        let text = |host: &str| {
            let mut options = options("s3");
            options.host = host.into();
            Fault::of_transport(&refused(), &options).text
        };
        assert_eq!(text("h:8080"), "no connection to h:8080");
        assert_eq!(text("[::1]"), "no connection to [::1]:80");
    }

    #[test]
    fn statuses_have_a_meaning() {
        let error = |code: &str| format!("<Error><Code>{code}</Code></Error>");
        check("webdav", 401, "", Errno::EACCES, "set http_user");
        check("webdav", 409, "", Errno::ENOENT, "create it first");
        check("webdav", 507, "", Errno::ENOSPC, "no space");
        check("webdav", 302, "", Errno::EREMOTEIO, "redirections");
        check("webdav", 304, "", Errno::EIO, "no condition");
        check("webdav", 418, "", Errno::EIO, "HTTP 418");
        check("swift", 401, "", Errno::EACCES, "http_swift_auth_token");
        check(
            "s3",
            403,
            &error("InvalidAccessKeyId"),
            Errno::EACCES,
            "http_s3_keyid",
        );
        check(
            "s3",
            403,
            &error("SignatureDoesNotMatch"),
            Errno::EACCES,
            "`http_s3_key` does not belong",
        );
        check("s3", 503, &error("SlowDown"), Errno::EBUSY, "(SlowDown)");
        let region = "<Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region>";
        check(
            "s3",
            400,
            region,
            Errno::EREMOTEIO,
            "http_s3_region=eu-west-1",
        );
    }
}
