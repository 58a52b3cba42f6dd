//! Memory of the I/O buffers.

use super::general::U32;
use super::read::{narrow, unknown_word};
use super::row::{Row, ValueKind};
use crate::findings::Findings;
use crate::number;
use crate::plan::Options;
use crate::problem::{Piece, Problem};
use crate::reading;
use crate::workload::MemoryKind;

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "mem",
        "malloc",
        "Memory type of I/O buffers",
        "mem=mmaphuge",
        ValueKind::Special {
            form: "malloc|shm|shmhuge|mmap[:file]|mmapshared[:file]|mmaphuge[:file]",
            read: memory,
        },
    )
    .aliases(&["iomem"])
    .different("`malloc` maps pages, and `shm` maps them shared, without a System V segment"),
    Row::new(
        "iomem_align",
        "0",
        "Offset of each buffer from the start of a page, bytes",
        "iomem_align=512",
        ValueKind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.memory.align = narrow(v),
        },
    )
    .aliases(&["mem_align"]),
    Row::new(
        "hugepage-size",
        "2m",
        "Size of a huge page",
        "hugepage-size=1g",
        ValueKind::Special {
            form: "integer value (opt=2m), a power of two",
            read: hugepage_size,
        },
    )
    .numeric()
    .different("flags an impossible page size; as `fio` it is ignored"),
];

fn memory(options: &mut Options, text: &str, findings: &mut Findings) -> Result<(), Problem> {
    let whole = Piece::new(text);
    let word = whole.part(0..reading::word(text).len());
    let rest = &text[word.text.len()..];
    let mut file = rest.strip_prefix(':');
    let kind = match word.text {
        "malloc" | "mmap" => MemoryKind::Private,
        "shm" | "mmapshared" => MemoryKind::Shared,
        "mmaphuge" => MemoryKind::Huge,
        "shmhuge" => MemoryKind::SharedHuge,
        _ => return Err(unknown_word("mem", word, &WORDS, &["cudamalloc"])),
    };
    let needless = file.is_none_or(|file| file.is_empty() || !word.text.starts_with("mmap"));
    if !rest.is_empty() && needless {
        let why = format!("`{}` takes no file here", word.text);
        let problem = Problem::new("bad-value", whole.range(), why)
            .fix("name a file after `mmap:`, `mmapshared:` or `mmaphuge:`");
        findings.misread(problem, word.text)?;
        file = None;
    }
    options.memory.kind = kind;
    options.memory.file = file.map(str::to_owned);
    Ok(())
}

fn hugepage_size(
    options: &mut Options,
    text: &str,
    findings: &mut Findings,
) -> Result<(), Problem> {
    let whole = Piece::new(text);
    let bytes = number::read_part(whole, options.kb_base, 0, U32, findings)?;
    if !bytes.is_power_of_two() {
        let why = format!("a page size of {bytes} bytes is not a power of two");
        let problem = Problem::new("bad-page-size", whole.range(), why)
            .fix("write the size of a huge page, such as `2m` or `1g`");
        return findings.misread(problem, reading::NOTHING);
    }
    options.memory.hugepage_size = narrow(bytes);
    Ok(())
}

const WORDS: [&str; 6] = ["malloc", "shm", "shmhuge", "mmap", "mmapshared", "mmaphuge"];
