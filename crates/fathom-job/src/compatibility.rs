//! docs/COMPATIBILITY.md, generated from the option table.

use std::fmt::Write;

use fathom_checksum::CHECKSUMS;
use fathom_core::EngineInfo;

use crate::engines::NEEDS;
use crate::help::range;
use crate::refuse;
use crate::switches::{Action, NO_LETTER, SWITCHES, SwitchOrigin};
use crate::table::{self, Row, known};
use crate::vocabulary::Vocabulary;

/// Returns the text of docs/COMPATIBILITY.md.
#[must_use]
pub fn compatibility_markdown(engines: &[&'static EngineInfo]) -> String {
    let vocabulary = Vocabulary::new(engines);
    let mut text = String::from(INTRODUCTION);
    for (title, rows) in table::groups() {
        push_group(&mut text, title, rows, vocabulary);
    }
    let own = vocabulary.engine_rows();
    push_group(&mut text, "Engine-specific", &own, vocabulary);
    push_refused(&mut text, vocabulary);
    push_engines(&mut text, vocabulary);
    push_switches(&mut text);
    text
}

fn push_group(text: &mut String, title: &str, rows: &[Row], vocabulary: Vocabulary<'_>) {
    text.push_str(&format!("\n### {title}\n\n"));
    text.push_str("| option | default | values | compared with fio |\n|---|---|---|---|\n");
    for row in rows {
        push_row(text, row, vocabulary);
    }
}

fn push_row(text: &mut String, row: &Row, vocabulary: Vocabulary<'_>) {
    let names = row
        .names()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>();
    let words: Vec<_> = row.kind.choices().iter().map(|(word, _)| *word).collect();
    let mut values = match words.is_empty() {
        true => row.kind.words().to_owned(),
        false => words.join(", "),
    };
    if let Some(range) = range(&row.kind) {
        let _ = write!(values, "; {range}");
    }
    let engines = vocabulary.engines_of(row);
    if !engines.is_empty() {
        let _ = write!(values, " (only {})", engines.join(", "));
    }
    let mut verdict = match (row.stricter, row.different) {
        ("", "") => "same".to_owned(),
        (note, "") => format!("stricter: {note}"),
        (_, note) => format!("different: {note}"),
    };
    if row.empty.is_some() {
        match verdict.as_str() {
            "same" => verdict = "stricter: flags an empty value".to_owned(),
            _ => verdict.push_str("; an empty value is flagged"),
        }
    }
    let cells = [names.join(", "), row.default.to_owned(), values, verdict];
    let cells = cells.map(|cell| cell.replace('|', "\\|"));
    text.push_str(&format!("| {} |\n", cells.join(" | ")));
}

fn push_refused(text: &mut String, vocabulary: Vocabulary<'_>) {
    text.push_str(
        "\n## Refused\n\nOptions of fio that Fathom refuses by name; none is silently skipped.\n",
    );
    for (tier, title) in TIERS {
        let options = known::all().iter().filter(|known| known.tier == *tier);
        let missing = options.filter(|known| vocabulary.find_any(known.name).is_none());
        let rows: Vec<_> = missing.map(refused_row).collect();
        if !rows.is_empty() {
            let head = "| option | compared with fio |\n|---|---|\n";
            text.push_str(&format!("\n### {title}\n\n{head}{}", rows.concat()));
        }
    }
}

fn refused_row(known: &known::Known) -> String {
    let names: Vec<_> = known.names().map(|name| format!("`{name}`")).collect();
    format!(
        "| {} | refused: {} |\n",
        names.join(", "),
        refuse::reason(known)
    )
}

fn push_engines(text: &mut String, vocabulary: Vocabulary<'_>) {
    text.push_str("\n## Engines\n\n| engine | compared with fio |\n|---|---|\n");
    for engine in vocabulary.engines() {
        let (verdict, note) = match engine.different {
            "" => ("same", engine.help),
            different => ("different", different),
        };
        text.push_str(&format!("| `{}` | {verdict}: {note} |\n", engine.name));
    }
    for (name, what) in NEEDS
        .iter()
        .filter(|(name, _)| vocabulary.engine(name).is_none())
    {
        text.push_str(&format!("| `{name}` | refused: needs {what} |\n"));
    }
}

fn push_switches(text: &mut String) {
    text.push_str(
        "\n## Command-line switches\n\n\
         | switch | description | compared with fio |\n|---|---|---|\n",
    );
    let checksums: Vec<_> = CHECKSUMS.iter().map(|row| row.name).collect();
    let only_checksums = format!("stricter: only {}", checksums.join(", "));
    for switch in SWITCHES {
        let verdict = match switch.action {
            Action::Refused(_) => "refused: not supported by Fathom",
            Action::MergeOnly => "stricter: refuses a plan without `merge_blktrace_file`",
            Action::ChecksumTest => &only_checksums,
            Action::IdleProfile => {
                "same; measured from the kernel's idle times, not by threads that consume idle time"
            }
            Action::Ignored => "same: no effect",
            extension if extension.origin() != SwitchOrigin::Fio => "Fathom extension",
            Action::Debug => {
                "stricter: flags unknown categories. `parse`, `file`, `random`, `process` and \
                 `io` print the lines that tools parse, fewer than fio; the others print nothing"
            }
            Action::Output => {
                "different: an earlier file stays until the report is complete; fio empties it at \
                 the start"
            }
            Action::Trigger => {
                "different: standard output of the command is discarded: it would be in the middle \
                 of the report"
            }
            Action::TriggerTimeout => {
                "same; verification states are saved only with `verify_state_save=1`"
            }
            Action::Client => {
                "different: starts ranks over ssh by the site's MPI launcher; no server, no `sock:`"
            }
            Action::RemoteConfig => "different: read by the ranks of `--client`",
            Action::AuxPath => {
                "different: for saved verify states and blocks alone; a missing folder is an error"
            }
            Action::ShowCommand => {
                "different: prints nothing if a job has errors; fio prints the options it \
                 understood"
            }
            _ => "same",
        };
        let help = switch.help.replace('|', "\\|");
        let short = match switch.short {
            NO_LETTER => String::new(),
            letter => format!(", `-{letter}`"),
        };
        text.push_str(&format!(
            "| `--{}`{short} | {help} | {verdict} |\n",
            switch.name
        ));
    }
}

const TIERS: &[(&str, &str)] = &[
    ("A", "Common"),
    ("B", "Occasional"),
    ("C", "Specialized"),
    ("D", "Special hardware or clusters"),
];

const INTRODUCTION: &str = "\
# Compatibility with fio, option by option

This page is generated from the option table in the source; `--cmdhelp=OPTION` prints one row.

* *same*: every value that fio accepts has the same meaning.
* *stricter*: Fathom flags values that fio accepts silently.
* *different*: the effect differs from fio's.
* *refused*: fio has the option and Fathom does not, with the reason.

Under the name `fio`, Fathom accepts what fio accepts and reads it as fio does. For each value that
is *stricter* below it adds a note with the reading and the correct spelling: in the text report
where fio prints its notes, in JSON under `\"fathom\"`, and nothing on standard error. Under the
name `fathom`, and under `fio` with `FATHOM_STRICT=1` in the environment, such a value is an error.
`fathom lint` reads it as fio does and prints a warning.

Rules for all options:

* Numbers are parsed up to the first character that does not belong to them, as in fio: `4q` is 4,
  `1.5g` is 1, `0x1k` is 1, `4kk` is 4k; `100*1` and `30+30` are the first number in the option's
  own unit; `200k,500k` is the first of the two, or the last for sizes and mixes. Numbers beyond
  63 bits are errors, as in fio.
* An unknown unit of time (`1min`, `30sec`) means microseconds.
* Flags accept any number (`time_based=10`, `1[x]`), booleans accept numbers that start with 0 or 1;
  `true` and `yes` are errors, as in fio.
* Text after a comma or colon that follows a word is ignored where it has no meaning.
* `--parse-only` and `--showcmd` check values but not jobs as a whole (sizes that do not fit,
  contradictory rates, missing CPUs), and `--warnings-fatal` stops at fio's own warnings. Under the
  name `fathom` all checks apply.
* Some values that fio accepts are refused under both names because they endanger data or the
  machine: `lockmem` beyond the free memory (in fio the OOM killer decides), block sizes and file
  sizes that are percentages or negative (fio turns them into huge numbers, and fails at most of
  them when the job runs), `zoneskip` in percent (likewise), more than 1048576 files per job,
  `filename=-`, and `log_hist_coarseness` above 6, for which a histogram has too few buckets.
* Under the name `fio`, a job without a size, or whose `offset` is behind the end of its file, fails
  alone with EINVAL, as in fio (which reports error 0 for the offset), as does one whose file cannot
  be opened, with its errno; a job without files or CPUs ends or fails alone. So does a job whose
  direct ops are no multiples of the logical block, with EINVAL: in fio when it comes to such an op,
  here before its first. Under the name `fathom` the plan is refused. Jobs whose files are all
  smaller than a block are refused under both names; fio runs them without an op.
* A job whose files cannot be laid out (a full disk, a limit of file sizes) fails alone under the
  name `fio`, with its errno; what was laid out of its files is removed. Under the name `fathom`,
  and with several ranks under both, the run ends before the first op, and all that was laid out is
  removed.
* With `kb_base=1024`, the default, `4k` is 4096 and `4kib` is 4000, as in fio; one note per run
  points this out.
* Arithmetic in parentheses (`(4*1k)`, with `+ - * / % ^`) always works; in fio it depends on the
  build.
* Spaces around a value are dropped; fio keeps them and then fails to find the engine ` null`.
* All errors of a job file are reported together, with line and column, before anything runs.
* A numeric option whose value is itself an option (`--size --rw=read`) is an error, as in fio; a
  text option accepts it (`--write_bw_log --rw=write`). Of two options without a space between them
  (`--direct=1--ioengine=libaio`) only the first is read.
* fio has one table of options for `io_uring` and `io_uring_cmd`. Those that only the latter looks
  at (`cmd_type`, `readfua`, `writefua`, `write_mode`, `verify_mode`, `deac`) have no effect with
  `io_uring` under the name `fio`, and those of the former (`nowait`, `uncached`, `cmdprio` and the
  like) none with `io_uring_cmd`; under the name `fathom` they are errors.

Differences in counts:

* A failed op is not included in `total_ios`; fio counts issued ops.
* A read beyond the end of a file, which another has truncated or which is created empty, fails with
  EIO with every engine. In fio 3.33 it does with synchronous ones only; with `libaio`, `io_uring`
  and `posixaio` it counts as an op without bytes, and the job ends without error.
* An op that completes at the very end of the ramp time, or of the pass in which it ends, may be
  counted in one program and not in the other.
* With `io_size` above `size`, what a verification reads back counts towards `io_size` for
  `rw=write` only; in fio up to 3.41 it does for mixes of reads and writes as well, and in later
  versions for none.
* If only a later job of a group sets `group_reporting`, fio adds an empty entry for group
  4294967295 to its reports; Fathom does not.
* A message that several clones would repeat is printed once.
* Of `vsync` at a depth above 1, fio reports no slat and drops the clat of some ops. Fathom counts
  both: slat is the time that an op waits for its batch to be moved. `iodepth_level` has the ops
  held back when each was issued, and a full batch completes at once.
* Of `null` at a depth above 1, `iodepth_level` has the ops in the job's own queue, which fills to
  `iodepth`; fio reports 1.

## Options
";

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> String {
        compatibility_markdown(registry().infos())
    }

    /// The full list is that of `known.tsv`, after fio's own table.
    #[test]
    fn every_option_of_fio_has_a_row_with_a_verdict() {
        let page = page();
        let rows: Vec<Vec<&str>> = page
            .lines()
            .filter(|line| line.starts_with("| `"))
            .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
            .collect();
        for known in known::all() {
            for name in known.names() {
                let names = |row: &&Vec<&str>| row[0].split(", ").any(|n| n == format!("`{name}`"));
                let Some(row) = rows.iter().find(names) else {
                    panic!("`{name}` is nowhere");
                };
                let verdict = row.last().copied().unwrap_or_default();
                let words = ["same", "stricter: ", "different: ", "refused: "];
                assert!(
                    words.iter().any(|word| verdict.starts_with(word)),
                    "`{name}`: {verdict}"
                );
            }
        }
    }

    /// Engines of fio that the program brings along.
    fn registry() -> fathom_engine::Registry {
        fathom_engine::Registry::built_in()
            .with(fathom_net::NBD)
            .with(fathom_http::HTTP)
    }

    #[test]
    fn every_engine_of_fios_options_is_there_or_refused_with_its_reason() {
        let registry = registry();
        let vocabulary = Vocabulary::new(registry.infos());
        for name in known::all().iter().flat_map(known::Known::engines) {
            let there = vocabulary.engine(name).is_some();
            let profile = name.starts_with("profile:");
            let refused = crate::engines::needs(name).is_some();
            assert!(there || refused || profile || name.contains(' '), "{name}");
        }
    }

    #[test]
    fn options_without_effect_are_in_fios_table_of_the_engine() {
        let registry = registry();
        let vocabulary = Vocabulary::new(registry.infos());
        for info in registry.infos() {
            for &name in info.ignored_by_fio {
                let known = known::find(name).expect("an option of fio");
                assert!(known.engines().any(|own| own == info.name), "{name}");
                let row = vocabulary
                    .find(name, info)
                    .expect("another engine's option");
                assert!(!row.belongs_to(info), "{name}");
            }
        }
    }

    #[test]
    fn the_page_is_drawn_from_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/COMPATIBILITY.md");
        if std::env::var_os("FATHOM_WRITE_DOCS").is_some() {
            std::fs::write(path, page()).unwrap();
        }
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            kept == page(),
            "docs/COMPATIBILITY.md is old: run this test with FATHOM_WRITE_DOCS=1"
        );
    }
}
