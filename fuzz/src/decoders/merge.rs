//! Records of ranks, a line each, and their sum.

use fathom_core::OutputFormat;
use fathom_record::{HostSum, Record};
use fathom_report::render;

use crate::target::Verdict;

/// Adds up the records of all lines, renders the sum, and writes it.
pub(crate) fn decode(input: &[u8]) -> Result<Verdict, String> {
    let Ok(input) = std::str::from_utf8(input) else {
        return Ok(Verdict::Refused("not UTF-8".to_owned()));
    };
    let (mut sum, mut refused) = (HostSum::new(), None);
    for line in input.lines() {
        let rank = Record::rank_in(line.as_bytes());
        match Record::from_json(line) {
            Err(error) => refused = Some(error.to_string()),
            Ok(record) => {
                if rank != record.hosts.first().map(|host| host.rank) {
                    return Err("the rank at the beginning is not that of the record".to_owned());
                }
                refused = sum.add(record).err().map(|error| error.to_string());
            }
        }
    }
    let Some(sum) = sum.finish() else {
        return Ok(Verdict::Refused(
            refused.unwrap_or_else(|| "no record".to_owned()),
        ));
    };
    for format in [
        OutputFormat::Normal,
        OutputFormat::JsonPlus,
        OutputFormat::Terse,
    ] {
        let _ = render(&sum, format, 5);
    }
    let json = sum.to_json().map_err(|error| error.to_string())?;
    match (Record::from_json(&json), refused) {
        (Err(error), _) => Err(format!("a sum cannot be read: {error}")),
        (Ok(_), Some(why)) => Ok(Verdict::Refused(why)),
        (Ok(_), None) => Ok(Verdict::Accepted),
    }
}
