//! Comparison of the form of two text reports: their lines without measured numbers.

use super::difference::Difference;

/// Returns the lines that only one of the two has, in order.
pub(crate) fn difference(name: &str, fio: &str, ours: &str) -> Vec<Difference> {
    let chance = samples_are_chance(fio, ours);
    let is_sampled = |line: &String| SAMPLED.iter().any(|head| line.starts_with(head));
    let [mut fio, mut ours] = [fio, ours].map(forms);
    let mut found = Vec::new();
    if chance {
        fio.retain(|line| !is_sampled(line));
        ours.retain(|line| !is_sampled(line));
        found.extend(SAMPLED.map(|line| alone(name, line, false, true)));
    }
    let (mut a, mut b) = (fio.as_slice(), ours.as_slice());
    while !a.is_empty() || !b.is_empty() {
        if a.first() == b.first() {
            (a, b) = (&a[1..], &b[1..]);
            continue;
        }
        // The side whose line appears sooner in the other report lacks the lines before it.
        let ahead = |lines: &[String], other: &[String]| {
            let first = other.first()?;
            lines.iter().position(|line| line == first)
        };
        let ours_alone = match (ahead(a, b), ahead(b, a)) {
            (Some(in_fio), Some(in_ours)) => in_ours < in_fio,
            (in_fio, in_ours) => in_fio.is_none() && (in_ours.is_some() || !b.is_empty()),
        };
        let both = if ours_alone { &mut b } else { &mut a };
        found.push(alone(name, &both[0], ours_alone, false));
        *both = &both[1..];
    }
    found
}

/// Returns the difference of a line that only one of the two has.
fn alone(name: &str, line: &str, ours_alone: bool, by_chance: bool) -> Difference {
    let head = line.trim_start().split([':', '=']).next();
    let (fio, ours) = if ours_alone { ("", line) } else { (line, "") };
    Difference {
        place: format!("{name}:{}", head.unwrap_or_default().trim()),
        fio: fio.into(),
        ours: ours.into(),
        by_chance,
    }
}

/// Returns true if chance decides which of the two has samples: a direction ran for about half a
/// second, the time of the first sample, or reached it in only one of them.
fn samples_are_chance(fio: &str, ours: &str) -> bool {
    let runs = fio.lines().chain(ours.lines());
    let runs = runs.filter(|line| line.contains("IOPS="));
    let times = runs.filter_map(|line| line.split_once("msec)")?.0.rsplit('/').next());
    let times: Vec<u64> = times.filter_map(|time| time.parse().ok()).collect();
    let all_short = times.iter().all(|&ms| ms < 400);
    let all_long = times.iter().all(|&ms| ms >= 1000);
    !all_short && !all_long
}

/// Returns the lines without measured values; the lines of a histogram, or of percentiles, are
/// merged into one.
fn forms(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut is_ours = false;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let line = &VERSIONS
            .iter()
            .fold(line.to_owned(), |line, (from, to)| line.replace(from, to));
        let trimmed = line.trim_start();
        let buckets = UNITS
            .iter()
            .any(|unit| trimmed.starts_with(&format!("lat ({unit}) ")));
        // Additions: response times under a rate, and notes about the numbers.
        is_ours = OURS.iter().any(|head| trimmed.starts_with(head))
            && !trimmed.starts_with(NOTE_OF_FIO)
            || is_ours && trimmed.starts_with("| ");
        if is_ours {
            continue;
        }
        if trimmed.starts_with("| ") {
            let joined = lines
                .last_mut()
                .filter(|last| last.trim_start().starts_with("| "));
            let names = form(trimmed).replace("[ #]", "[#]").replace("[  #]", "[#]");
            match joined {
                Some(last) => *last += names.trim_start_matches('|'),
                None => lines.push(names),
            }
        } else if buckets {
            let line = "lat (UNIT): buckets".to_owned();
            if lines.last() != Some(&line) {
                lines.push(line);
            }
        } else if line.contains(": (g=") || line.starts_with("Starting ") {
            // Part of the plan, not a result: nothing in it is measured.
            lines.push(
                line.replace("thread", "process")
                    .replace("processs", "processes"),
            );
        } else {
            lines.push(form(line));
        }
    }
    lines.iter().map(|line| squeezed(line)).collect()
}

/// Returns a line with `#` for each number, and placeholders for units and other varying words.
fn form(line: &str) -> String {
    if line.starts_with("fio-") {
        return "fio-…".into();
    }
    let line = match line.split_once(": pid=") {
        Some((head, _)) => format!("{head}: pid=…"),
        None => line.to_owned(),
    };
    let mut form = String::with_capacity(line.len());
    let mut rest = line.as_str();
    while let Some(next) = rest.chars().next() {
        let in_word = form.ends_with(|last: char| last.is_alphanumeric() || last == '_');
        if next.is_ascii_digit() && !in_word {
            let name_follows = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            let end = rest.len() - name_follows.len();
            // `50.00th=`, `64=`: names of values.
            if name_follows.starts_with("th=") || name_follows.starts_with('=') {
                form.push_str(&rest[..end]);
                rest = name_follows;
            } else {
                form.push('#');
                rest = name_follows.trim_start_matches(|c: char| c.is_alphabetic() || c == '%');
                rest = rest.strip_prefix("/s").unwrap_or(rest);
            }
        } else {
            form.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    let form = form.replace(" sectors=#/#,", "");
    UNITS.iter().fold(form, |form, unit| {
        form.replace(&format!("({unit})"), "(UNIT)")
    })
}

/// Merges runs of blanks: the width of fio's columns follows their numbers.
fn squeezed(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let line = words.join(" ");
    line.replace("( KiB/s)", "(UNIT)")
        .replace("( MiB/s)", "(UNIT)")
        .replace("[ #", "[#")
        .replace("= #", "=#")
}

/// Wording of fio 3.42 that differs from 3.33 or is missing there.
const VERSIONS: &[(&str, &str)] = &[
    ("; 0 zone resets", ""),
    ("sync_file_range/syncfs:", "sync_file_range:"),
];

/// Lines printed only after half a second, the time of the first sample.
const SAMPLED: [&str; 2] = ["bw (UNIT):", "iops :"];

/// Lines that fio does not print.
const OURS: [&str; 3] = ["resp (", "lag (", "note: "];

/// Note that fio prints, too.
const NOTE_OF_FIO: &str = "note: both iodepth >= 1";

const UNITS: [&str; 3] = ["nsec", "usec", "msec"];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(fio: &str, ours: &str, wanted: &[&str]) {
        let places: Vec<_> = difference("text", fio, ours)
            .into_iter()
            .filter(|one| !one.by_chance)
            .map(|one| one.place)
            .collect();
        assert_eq!(places, wanted, "{:?} {:?}", forms(fio), forms(ours));
    }

    #[test]
    fn numbers_units_and_wrapping_are_not_compared() {
        check(
            "  read: IOPS=13.4k, BW=52.4MiB/s (54.9MB/s)(4KiB/8msec)",
            "  read: IOPS=1, BW=2KiB/s (3kB/s)(4KiB/1msec)",
            &[],
        );
        check(
            "    clat (usec): min=1, avg= 2.00",
            "    clat (nsec): min=12, avg=12.00",
            &[],
        );
        check(
            "     |  1.00th=[   53],  5.00th=[   53],\n     | 10.00th=[ 1]",
            "     |  1.00th=[5],  5.00th=[5], 10.00th=[12345]",
            &[],
        );
        check(
            "  lat (usec)   : 4=25.00%\n  lat (msec)   : 2=1.00%",
            "  lat (nsec)   : 500=1%",
            &[],
        );
    }

    #[test]
    fn samples_are_compared_where_the_time_decides() {
        let sampled = "   bw (  KiB/s): min=1\n   iops        : min=1\n";
        let [short, near, long] = [399, 600, 1000]
            .map(|ms| format!("  read: IOPS=1, BW=2KiB/s (3kB/s)(4KiB/{ms}msec); 0 zone resets\n"));
        let with = |text: &str| format!("{text}{sampled}");
        let both = ["text:bw (UNIT)", "text:iops"];
        check(&with(&long), &long, &both);
        check(&short, &with(&short), &both);
        check(&short, &with(&near), &[]);
        check(&short, &with(&long), &[]);
    }

    #[test]
    fn additions_are_not_compared() {
        let stall = "note: stall: 76 ms at 5.4 s in job t (read): the device was late with 15 ops";
        let both = "note: both iodepth >= 1 and synchronous I/O engine";
        check("a: x=1\n", &format!("{stall}\nnote: more\na: x=1\n"), &[]);
        check("a: x=1\n", &format!("{both}\na: x=1\n"), &["text:note"]);
    }

    #[test]
    fn words_and_lines_are_compared() {
        check("a: x=1\nb: y=2\n", "a: x=1\n", &["text:b"]);
        check("a: x=1\n", "a: z=1\n", &["text:a", "text:a"]);
        check("a\nb\nc\n", "a\nnew\nb\nc\n", &["text:new"]);
        check(
            "t: (g=0): rw=read, iodepth=1",
            "t: (g=0): rw=read, iodepth=2",
            &["text:t", "text:t"],
        );
        check(
            "  | 1.00th=[1]",
            "  | 2.00th=[1]",
            &["text:| 2.00th", "text:| 1.00th"],
        );
    }
}
