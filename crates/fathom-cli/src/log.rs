//! I/O logs that have been written: `--inflate-log`.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind};

use fathom_job::Dialect;

use crate::exit::End;
use crate::output::{self, Stream};
use crate::run_command::name;

/// Prints a compressed log as text.
pub(crate) fn inflate(path: &str, dialect: Dialect) -> End {
    let file = File::open(path).map(BufReader::new);
    match file.and_then(|file| fathom_run::inflate_log(file, io::stdout().lock())) {
        Ok(()) => End::Printed,
        // Whoever read it has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => End::Printed,
        Err(error) => {
            let message = format!(
                "{}: cannot inflate the log: {path}: {error}\n\
                 hint: name a file that was written with `log_store_compressed=1`\n",
                name(dialect)
            );
            output::print(Stream::Error, &message);
            End::Refused
        }
    }
}
