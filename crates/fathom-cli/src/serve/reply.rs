//! Replies to a client.

use super::request::Refusal;

/// Reply with a body.
#[derive(Debug)]
pub(super) struct Reply {
    status: &'static str,
    kind: &'static str,
    /// Header fields of this reply alone, each with its line end.
    fields: String,
    body: String,
}

impl Reply {
    /// Creates a reply of a media type.
    pub(super) fn ok(kind: &'static str, body: &str) -> Self {
        Self {
            status: "200 OK",
            kind,
            fields: String::new(),
            body: body.to_owned(),
        }
    }

    /// Creates the refusal of a request.
    pub(super) fn refused(refusal: Refusal) -> Self {
        let (status, why) = match refusal {
            Refusal::Malformed => ("400 Bad Request", "not a request of HTTP/1.1"),
            Refusal::TooLong => (
                "431 Request Header Fields Too Large",
                "over 8 KiB or 64 fields",
            ),
            Refusal::Method => ("405 Method Not Allowed", "only GET and HEAD"),
            Refusal::Host => (
                "421 Misdirected Request",
                "name this machine by its address, or as localhost",
            ),
            Refusal::CrossSite => ("403 Forbidden", "other pages may link here, not read"),
            Refusal::NotFound => ("404 Not Found", "/, /events, /figures.json, /metrics"),
            Refusal::Busy => ("503 Service Unavailable", "too many connections"),
        };
        let fields = match refusal {
            Refusal::Method => "Allow: GET, HEAD\r\n",
            Refusal::Busy => "Retry-After: 1\r\n",
            _ => "",
        };
        Self {
            status,
            fields: fields.to_owned(),
            ..Self::ok("text/plain; charset=utf-8", &format!("{status}: {why}\n"))
        }
    }

    /// Creates the reply to one client too many.
    pub(super) fn busy() -> Self {
        Self::refused(Refusal::Busy)
    }

    /// Adds a header field.
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.fields += &format!("{name}: {value}\r\n");
        self
    }

    /// Returns the bytes to send.
    pub(super) fn bytes(&self, with_body: bool) -> Vec<u8> {
        let length = format!("Content-Length: {}\r\n", self.body.len());
        let mut bytes = self.head(&length);
        if with_body {
            bytes += &self.body;
        }
        bytes.into_bytes()
    }

    /// Returns the head of a reply whose body ends with the connection.
    pub(super) fn endless_head(&self) -> String {
        self.head("")
    }

    fn head(&self, length: &str) -> String {
        format!(
            "HTTP/1.1 {}\r\nContent-Type: {}\r\n{length}{}{COMMON}\r\n",
            self.status, self.kind, self.fields
        )
    }
}

/// Fields of every reply: nothing is kept, guessed, or read by other pages.
const COMMON: &str = "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
                      Cross-Origin-Resource-Policy: same-origin\r\nReferrer-Policy: \
                      no-referrer\r\nConnection: close\r\n";
