//! I/O logs: lines of text, and compressed logs.

use std::fs;
use std::path::{Path, PathBuf};

use fathom_host::output_file::Stop;
use fathom_log::{convert_log, inflate_log};

use crate::target::Verdict;

/// Decodes a compressed log (`log_store_compressed`) and prints its lines.
pub(crate) fn decode_compressed(input: &[u8]) -> Result<Verdict, String> {
    match inflate_log(input, std::io::sink()) {
        Ok(()) => Ok(Verdict::Accepted),
        Err(error) => Ok(Verdict::Refused(error.to_string())),
    }
}

/// Decodes a text log by converting it to CSV, and checks that the CSV converts to itself.
///
/// The converter takes paths, since it reads a log twice, so each input becomes a file.
pub(crate) fn decode_lines(input: &[u8]) -> Result<Verdict, String> {
    let folder = Folder::create()?;
    let [log, first, second] =
        ["t_lat.log", "first_lat.csv", "second_lat.csv"].map(|name| folder.0.join(name));
    fs::write(&log, input).map_err(|error| format!("{}: {error}", log.display()))?;
    let lines = match convert_log(&log, &first, None, &Stop::never()) {
        Ok(lines) => lines,
        // The message begins with the path, which may be anything.
        Err(error) => return Ok(Verdict::Refused(error.to_string())),
    };
    let again = convert_log(&first, &second, None, &Stop::never())
        .map_err(|error| format!("a converted log is refused: {error}"))?;
    match again == lines && read(&first)? == read(&second)? {
        true => Ok(Verdict::Accepted),
        false => Err("a converted log differs when it is converted again".to_owned()),
    }
}

/// Column names of CSV logs.
pub(crate) fn words() -> Vec<String> {
    let names = [
        "time_ms,",
        "lat_ns,",
        "lat_ns_max,",
        "direction,",
        "bytes,",
        "offset_bytes,",
    ];
    let more = ["realtime", "priority", "issued_ns", "0x", ", "];
    names.into_iter().chain(more).map(str::to_owned).collect()
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// A folder of this process, removed when dropped.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn create() -> Result<Self, String> {
        let name = format!("fathom-fuzz-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A failure leaves a folder that the next input uses again.
        let _ = fs::remove_dir_all(&self.0);
    }
}
