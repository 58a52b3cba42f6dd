//! I/O logs.

use fathom_run::inflate_log;

use crate::target::Verdict;

/// Decodes a compressed log (`log_store_compressed`) and prints its lines.
pub(crate) fn decode_compressed(input: &[u8]) -> Result<Verdict, String> {
    match inflate_log(input, std::io::sink()) {
        Ok(()) => Ok(Verdict::Accepted),
        Err(error) => Ok(Verdict::Refused(error.to_string())),
    }
}
