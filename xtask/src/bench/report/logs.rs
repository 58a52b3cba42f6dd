//! Page of a long text log, beside a bare loop over its bytes.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::super::figure::Figure;
use super::super::programs::{peak_memory, timed};
use super::super::scratch::Scratch;
use super::{Measured, Row, Setting};
use crate::process;

/// Whole processes of `fathom report` over a log in the page cache.
pub(super) const ROW: Row = Row {
    name: "logs",
    what: "report of a 10-million-line text log in the page cache",
    measure,
};

fn measure(setting: &Setting) -> Result<Measured> {
    let scratch = Scratch::new("logs")?;
    let log = scratch.path().join("long_clat.1.log");
    let page = scratch.path().join("page.html");
    let bytes = write_log(&log)?;
    let fathom = || {
        let mut command = Command::new(&setting.programs.fathom);
        command.arg("report").arg("--html").arg(&page).arg(&log);
        command
    };
    let least = |times: &mut dyn FnMut() -> Result<f64>| -> Result<f64> {
        let mut least = f64::INFINITY;
        for _ in 0..REPEATS {
            least = least.min(times()?);
        }
        Ok(least)
    };
    let bare = least(&mut || byte_loop(&log).map(|took| took.as_secs_f64()))?;
    let took = least(&mut || timed(&mut fathom()).map(|(_, seconds)| seconds))?;
    let memory = peak_memory(&mut fathom())?;
    let text = std::fs::read_to_string(&page).with_context(|| page.display().to_string())?;
    // A page that lost the slow op would be useless.
    if !text.contains(&format!("1 log, {LINES} lines.")) || !text.contains("77777.78") {
        bail!("the page lacks the number of lines or the slow op");
    }
    println!(
        "bench:   {} MB; a bare byte loop takes {bare:.2} s",
        bytes / 1_000_000
    );
    Ok(Measured::Figures(vec![
        Figure::at_most("a whole process", took, "s", 5.0),
        Figure::at_most("peak memory", memory, "MiB", 128.0),
    ]))
}

/// Writes a log of reads and writes with one slow op, and returns its size. Its lines are as long
/// as those of a fast device: some 39 bytes.
fn write_log(path: &Path) -> Result<u64> {
    let name = || path.display().to_string();
    let mut file = BufWriter::new(File::create(path).with_context(name)?);
    let mut random = 88_172_645_463_325_252_u64;
    for line in 0..LINES {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let value = match line {
            SLOW => 77_777_777,
            _ => 60_000 + random % 4096 * (random >> 32 & 63),
        };
        let (time, offset) = (1_000_000 + line / 100, random % (1 << 21) * 4096);
        writeln!(file, "{time}, {value}, {}, 4096, {offset}, 0", random & 1).with_context(name)?;
    }
    file.flush().with_context(name)?;
    drop(file);
    Ok(path.metadata().with_context(name)?.len())
}

/// Reads a file and adds up its bytes: no reader of text is faster.
fn byte_loop(path: &Path) -> Result<Duration> {
    let start = process::now();
    let mut file = File::open(path).with_context(|| path.display().to_string())?;
    let mut buffer = vec![0; 256 << 10];
    let mut sum = 0_u64;
    loop {
        let length = file.read(&mut buffer)?;
        if length == 0 {
            break;
        }
        let bytes = &buffer[..length];
        sum = bytes.iter().fold(sum, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add((*byte).into())
        });
    }
    black_box(sum);
    Ok(start.elapsed())
}

const LINES: u64 = 10_000_000;
/// Line of the slow op.
const SLOW: u64 = 6_543_210;
const REPEATS: u32 = 3;
