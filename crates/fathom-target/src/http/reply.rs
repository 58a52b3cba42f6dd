//! Replies to a client.

use super::request::Refusal;

/// Reply with a body.
#[derive(Debug)]
pub struct Reply {
    status: &'static str,
    kind: &'static str,
    /// Header fields of this reply alone, each with its line end.
    fields: String,
    body: String,
}

impl Reply {
    /// Creates a reply of a media type.
    #[must_use]
    pub fn ok(kind: &'static str, body: &str) -> Self {
        Self {
            status: "200 OK",
            kind,
            fields: String::new(),
            body: body.to_owned(),
        }
    }

    /// Creates the refusal of a request.
    #[must_use]
    pub fn refused(refusal: Refusal) -> Self {
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
        };
        let fields = match refusal {
            Refusal::Method => "Allow: GET, HEAD\r\n",
            _ => "",
        };
        Self {
            fields: fields.to_owned(),
            ..Self::error(status, why)
        }
    }

    /// Creates the reply to a request for a path that is none of `paths`.
    #[must_use]
    pub fn not_found(paths: &str) -> Self {
        Self::error("404 Not Found", paths)
    }

    /// Creates the reply to one client too many.
    #[must_use]
    pub fn busy() -> Self {
        Self::error("503 Service Unavailable", "too many connections").with("Retry-After", "1")
    }

    fn error(status: &'static str, why: &str) -> Self {
        Self {
            status,
            ..Self::ok("text/plain; charset=utf-8", &format!("{status}: {why}\n"))
        }
    }

    /// Adds a header field.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.fields += &format!("{name}: {value}\r\n");
        self
    }

    /// Returns the bytes to send.
    #[must_use]
    pub fn bytes(&self, with_body: bool) -> Vec<u8> {
        let length = format!("Content-Length: {}\r\n", self.body.len());
        let mut bytes = self.head(&length);
        if with_body {
            bytes += &self.body;
        }
        bytes.into_bytes()
    }

    /// Returns the head of a reply whose body ends with the connection.
    #[must_use]
    pub fn endless_head(&self) -> String {
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
