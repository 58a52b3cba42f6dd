//! Names of objects, as URLs have them.

use fathom_core::{EngineError, EngineStep};

use crate::options::{Options, Tls};

/// Server, as URLs name it.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    /// `http://host:port`.
    pub(crate) origin: String,
    /// `host:port`, as in the header `Host`.
    pub(crate) authority: String,
}

impl Server {
    /// Takes the host of a job: a name or an address, perhaps with a port.
    pub(crate) fn new(options: &Options) -> Result<Self, EngineError> {
        let scheme = match options.tls {
            Tls::Off => "http",
            Tls::Checked | Tls::Unchecked => "https",
        };
        let authority = options.host.clone();
        // A password before `@` would be shown by messages, and a path not be signed.
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
        if authority.is_empty() || !authority.bytes().all(is_host) {
            return Err(EngineError {
                step: EngineStep::Option("http_host"),
                target: "not HOST or HOST:PORT".into(),
                errno: None,
                hint: "put paths and buckets into `filename`, passwords into `http_pass`".into(),
            });
        }
        Ok(Self {
            origin: format!("{scheme}://{authority}"),
            authority,
        })
    }
}

/// Returns the encoded path of the object of a block.
pub(crate) fn block(file: &str, offset: u64, length: u32) -> String {
    format!("{}_{offset}_{length}", path(file))
}

/// Returns the encoded path of a file.
pub(crate) fn path(file: &str) -> String {
    let mut path = String::with_capacity(file.len() + 48);
    if !file.starts_with('/') {
        path.push('/');
    }
    for byte in file.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                path.push(char::from(byte));
            }
            _ => {
                path.push('%');
                for digit in [byte >> 4, byte & 15] {
                    path.push(char::from(HEX[usize::from(digit)]));
                }
            }
        }
    }
    path
}

const HEX: &[u8; 16] = b"0123456789ABCDEF";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_named_as_by_fio() {
        assert_eq!(
            block("/bucket/object", 8192, 4096),
            "/bucket/object_8192_4096"
        );
        assert_eq!(block("x.0.0", 0, 512), "/x.0.0_0_512");
        assert_eq!(path("/b/a b+c%/é~"), "/b/a%20b%2Bc%25/%C3%A9~");
    }
}
