//! Manual page of the job language, from the option table.

use clap_mangen::roff::{Inline, Roff, bold, italic, roman};
use fathom_job::{OptionReference, Reference};

use crate::manual::SOURCE;

/// Name of the page.
pub(crate) const NAME: &str = "fathom-jobs";

/// Section of the manual: file formats.
pub(crate) const SECTION: u8 = 5;

/// One line about the page.
pub(crate) const ABOUT: &str = "Job files and job options of fathom";

/// Returns the page.
pub(crate) fn page(reference: &Reference) -> String {
    let mut roff = Roff::new();
    roff.control("TH", [NAME, "5", "", SOURCE, "Fathom"]);
    // Adjusted to both margins, long examples would tear the text apart.
    roff.control("ad", ["l"]);
    roff.control("SH", ["NAME"]);
    roff.text([roman(format!("{NAME} - {ABOUT}"))]);
    roff.control("SH", ["DESCRIPTION"]);
    for paragraph in DESCRIPTION {
        roff.control("PP", []);
        roff.text([roman(*paragraph)]);
    }
    roff.control("SH", ["EXAMPLES"]);
    literal(&mut roff, EXAMPLE);
    roff.control("SH", ["ENGINES"]);
    for (name, help) in &reference.engines {
        item(&mut roff, vec![bold(*name)], help);
    }
    roff.control("SH", ["OPTIONS"]);
    for (title, options) in reference.groups.iter().filter(|(_, all)| !all.is_empty()) {
        roff.control("SS", [*title]);
        for option in options {
            add_option(&mut roff, option);
        }
    }
    roff.control("SH", ["SEE ALSO"]);
    roff.text([roman("fathom-run(1), fathom-lint(1)")]);
    roff.render()
}

fn add_option(roff: &mut Roff, option: &OptionReference) {
    let mut names = Vec::new();
    for name in &option.names {
        if !names.is_empty() {
            names.push(roman(", "));
        }
        names.push(bold(*name));
    }
    item(roff, names, option.help);
    let mut facts = vec![format!("Value: {}", option.value)];
    let range = Some(&option.range).filter(|range| !range.is_empty());
    facts.extend(range.map(|range| format!("range: {range}")));
    let default = Some(option.default).filter(|default| !default.is_empty());
    facts.extend(default.map(|default| format!("default: {default}")));
    if !option.engines.is_empty() {
        facts.push(format!("engines: {}", option.engines.join(", ")));
    }
    roff.control("br", []);
    roff.text([roman(facts.join("; ")), roman(".")]);
    if !option.choices.is_empty() {
        roff.control("RS", []);
        for (word, help) in &option.choices {
            item(roff, vec![italic(*word)], help);
        }
        roff.control("RE", []);
        // Back to the indentation of the option.
        roff.control("IP", []);
    } else {
        roff.control("br", []);
    }
    if !option.unlike_fio.is_empty() {
        roff.text([roman(format!("Unlike fio: {}.", option.unlike_fio))]);
        roff.control("br", []);
    }
    roff.text([roman("Example: "), bold(option.example)]);
}

/// Adds a term and its description.
fn item(roff: &mut Roff, term: Vec<Inline>, text: &str) {
    roff.control("TP", []);
    roff.text(term);
    roff.text([roman(text), roman(".")]);
}

fn literal(roff: &mut Roff, text: &str) {
    roff.control("nf", []);
    for line in text.lines() {
        match line {
            "" => roff.control("sp", []),
            line => roff.text([roman(line)]),
        };
    }
    roff.control("fi", []);
}

const DESCRIPTION: &[&str] = &[
    "A job file describes jobs in the language of fio. It has sections; each begins with the \
     job's name in brackets and holds one option per line, as name=value. Options in a section \
     named global are the defaults of all jobs that follow it.",
    "Lines that begin with # or ; are comments. A line \"include FILE\" is replaced by the options \
     of that file. ${NAME} in a value stands for the environment variable of that name, $jobname \
     for the job's name.",
    "On the command line, an option is written --name=value; --name=JOB begins a job.",
    "Sizes take the suffixes k, m, g, t and p (powers of 1024, unless kb_base=1000) or a \
     percentage; times take us, ms, s, m, h and d. Arithmetic stands in parentheses: (4*1k). \
     Where reads, writes and trims may differ, up to three values are separated by commas.",
    "Options that fio has and fathom does not are refused by name, with the reason. The list, and \
     every difference in meaning, is in docs/COMPATIBILITY.md of the sources.",
];

const EXAMPLE: &str = "\
[global]
ioengine=io_uring
direct=1
runtime=30
time_based=1

[reads]
filename=/dev/nvme0n1
rw=randread
bs=4k
iodepth=32
rate_iops=20000";
