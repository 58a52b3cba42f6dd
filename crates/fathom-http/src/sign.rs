//! Signatures of S3 requests: AWS signature version 4, in headers.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

/// Request to be signed.
pub(crate) struct Unsigned<'a> {
    pub(crate) method: &'a str,
    /// Encoded.
    pub(crate) path: &'a str,
    /// Lower-case names, values without blanks around, in the order of names. All are signed.
    pub(crate) headers: &'a [(&'static str, String)],
    /// SHA-256 of the body, in hexadecimal digits.
    pub(crate) body: &'a str,
}

/// Keys and place for which a request is signed.
pub(crate) struct Signer<'a> {
    pub(crate) id: &'a str,
    pub(crate) secret: &'a str,
    pub(crate) region: &'a str,
}

impl Signer<'_> {
    /// Returns the header `Authorization`. `date` is that of the header `x-amz-date`.
    pub(crate) fn sign(&self, request: &Unsigned<'_>, date: &str) -> String {
        let day = &date[..8];
        let names = request.headers.iter().map(|(name, _)| *name);
        let names = names.collect::<Vec<_>>().join(";");
        let headers = request.headers.iter();
        let headers: String = headers
            .map(|(name, value)| format!("{name}:{value}\n"))
            .collect();
        let (method, path, body) = (request.method, request.path, request.body);
        // The empty line is the query.
        let canonical = format!("{method}\n{path}\n\n{headers}\n{names}\n{body}");
        let scope = format!("{day}/{}/s3/aws4_request", self.region);
        let text = format!(
            "AWS4-HMAC-SHA256\n{date}\n{scope}\n{}",
            sha256(canonical.as_bytes())
        );
        let mut key = mac(format!("AWS4{}", self.secret).as_bytes(), day);
        for part in [self.region, "s3", "aws4_request"] {
            key = mac(&key, part);
        }
        let signature = hex(&mac(&key, &text));
        format!(
            "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
            self.id
        )
    }
}

fn mac(key: &[u8], text: &str) -> [u8; 32] {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        unreachable!("HMAC takes keys of any length");
    };
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().into()
}

/// Returns the SHA-256 of bytes in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Returns bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |digit: u8| char::from(b"0123456789abcdef"[usize::from(digit & 15)]);
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(*byte)])
        .collect()
}

/// Returns a time as in `x-amz-date`: `20130524T000000Z`.
pub(crate) fn date(ms: u64) -> String {
    let seconds = ms / 1_000;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// Returns year, month and day of a number of days since 1970. Years are counted from March, so
/// that a leap day is the last one of its year, and in eras of 400 years, which have 146,097 days.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // since 1 March of the year 0
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153; // 0 is March
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (400 * era + year + u64::from(month <= 2), month, day)
}

/// SHA-256 of nothing, the body of reads and deletions.
pub(crate) const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "19700101T000000Z");
        assert_eq!(date(1_369_353_600_000), "20130524T000000Z");
        assert_eq!(date(951_868_799_999), "20000229T235959Z");
        assert_eq!(date(4_107_542_400_000), "21000301T000000Z");
    }

    /// The examples of Amazon's "Authenticating Requests: Using the Authorization Header".
    #[test]
    fn signatures_are_those_of_the_published_examples() {
        let signer = Signer {
            id: "AKIAIOSFODNN7EXAMPLE",
            secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            region: "us-east-1",
        };
        let host = ("host", "examplebucket.s3.amazonaws.com".to_owned());
        let date = "20130524T000000Z";
        let get = [
            host.clone(),
            ("range", "bytes=0-9".to_owned()),
            ("x-amz-content-sha256", EMPTY.to_owned()),
            ("x-amz-date", date.to_owned()),
        ];
        let get = Unsigned {
            method: "GET",
            path: "/test.txt",
            headers: &get,
            body: EMPTY,
        };
        let signed = signer.sign(&get, date);
        let want = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41";
        assert!(signed.ends_with(want), "{signed}");
        let body = sha256(b"Welcome to Amazon S3.");
        let put = [
            ("date", "Fri, 24 May 2013 00:00:00 GMT".to_owned()),
            host,
            ("x-amz-content-sha256", body.clone()),
            ("x-amz-date", date.to_owned()),
            ("x-amz-storage-class", "REDUCED_REDUNDANCY".to_owned()),
        ];
        let put = Unsigned {
            method: "PUT",
            path: "/test%24file.text",
            headers: &put,
            body: &body,
        };
        let signed = signer.sign(&put, date);
        let want = "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd";
        assert!(signed.ends_with(want), "{signed}");
    }

    #[test]
    fn nothing_has_its_hash() {
        assert_eq!(sha256(b""), EMPTY);
    }
}
