//! Names of the files of a job.

use fathom_core::EngineOption;

use crate::plan::Job;

/// Returns the files of one clone of a job, in order. `job_number` is the number of the clone, 0
/// for the first.
///
/// An engine may have an option that names the job's only file, such as the URI of an export. With
/// `filename` these are the names in its list (fewer if `nrfiles` after it says so). Else
/// `filename_format` names `nrfiles` files in the job's directory; clones are distributed over a
/// list of directories, in which the names of a rank under `--client` begin with that of its host,
/// unless `unique_filename=0`. `$jobname` is the name of the section: a `name` inside the section
/// does not rename files. A device with the name of the section has precedence over all this, but
/// finding it needs a look at the disk, which the caller does.
#[must_use]
pub fn file_names(job: &Job, job_number: u32) -> Vec<String> {
    let options = &job.options;
    if let Some(name) = only_file(job) {
        return vec![name.to_owned()];
    }
    if let Some(names) = &options.filename {
        return names
            .iter()
            .take(options.nrfiles as usize)
            .cloned()
            .collect();
    }
    let directory = directory(job, job_number);
    let client = job.place.client.as_deref();
    let prefix = client.filter(|_| options.files.unique && directory.is_some());
    (0..options.nrfiles)
        .map(|file| format_name(job, job_number, file))
        .map(|name| match prefix {
            Some(client) => format!("{client}.{name}"),
            None => name,
        })
        .map(|name| in_directory(directory, name))
        .collect()
}

/// Returns the job's only file, if an option of its engine names it, such as the URI of an export.
#[must_use]
pub fn only_file(job: &Job) -> Option<&str> {
    let options = &job.options;
    let named = options.engine.file_option()?;
    options.engine_values.text(named)
}

/// Returns the files that a job's engine writes beside those of `filename`, by the options that
/// name them.
#[must_use]
pub fn engine_files(job: &Job, job_number: u32) -> Vec<(&'static EngineOption, String)> {
    let (engine, values) = (job.options.engine, &job.options.engine_values);
    let directory = directory(job, job_number);
    let named = engine.written_files(values);
    named
        .map(|(option, name)| (option, in_directory(directory, name)))
        .collect()
}

/// Prefixes a name with a directory, if there is one; as in fio, also an absolute name.
pub(crate) fn in_directory(directory: Option<&str>, name: String) -> String {
    match directory {
        Some(directory) if name != "-" => {
            let (begin, end) = (
                directory.trim_end_matches('/'),
                name.trim_start_matches('/'),
            );
            format!("{begin}/{end}")
        }
        _ => name,
    }
}

fn directory(job: &Job, job_number: u32) -> Option<&str> {
    let directories = job.options.directory.as_ref()?;
    let count = u32::try_from(directories.len()).ok()?;
    let index = job_number.checked_rem(count)?;
    directories.get(index as usize).map(String::as_str)
}

/// Replaces `$jobname`, `$jobnum`, `$filenum` and `$clientuid`, whatever their case.
fn format_name(job: &Job, job_number: u32, file_number: u32) -> String {
    replace_keywords(&job.options.filename_format, &|keyword| match keyword {
        "$jobname" => Some(job.section.clone()),
        "$jobnum" => Some(job_number.to_string()),
        "$filenum" => Some(file_number.to_string()),
        // `$clientuid`: empty without a client, as in fio.
        _ => Some(job.place.client.clone().unwrap_or_default()),
    })
}

/// Replaces `$jobname` alone, so that the format names the same files in a job of another name.
pub(crate) fn with_section(format: &str, section: &str) -> String {
    replace_keywords(format, &|keyword| {
        (keyword == "$jobname").then(|| section.to_owned())
    })
}

/// Replaces the keywords that have a value.
fn replace_keywords(format: &str, value: &dyn Fn(&str) -> Option<String>) -> String {
    let mut name = String::with_capacity(format.len());
    let mut rest = format;
    while let Some(dollar) = rest.find('$') {
        name.push_str(&rest[..dollar]);
        rest = &rest[dollar..];
        let found = KEYWORDS.iter().find(|keyword| {
            let start = rest.get(..keyword.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(keyword))
        });
        let (keyword, behind) = rest.split_at(found.map_or(1, |keyword| keyword.len()));
        match found.and_then(|found| value(found)) {
            Some(value) => name.push_str(&value),
            None => name.push_str(keyword),
        }
        rest = behind;
    }
    name.push_str(rest);
    name
}

/// Keywords of `filename_format`; the order is irrelevant, as none is a prefix of another.
const KEYWORDS: [&str; 4] = ["$jobname", "$jobnum", "$filenum", "$clientuid"];

/// Splits a colon-separated list of names; `\:` is a colon in a name. Empty names are dropped.
///
/// An address of NVMe over fabrics (`trtype=…`) has colons in its NQN and in IPv6 addresses, as has
/// a URL of iSCSI, so that either ends only where the next begins. fio requires them to be escaped,
/// which works here, too.
pub(crate) fn split_list(text: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let last = names.len() - 1;
        let behind = &rest[letter.len_utf8()..];
        let is_scheme = names[last] == ISCSI_SCHEME && behind.starts_with("//");
        let is_address = is_fabrics_address(&names[last]) || is_iscsi_url(&names[last]);
        let is_end = is_fabrics_address(behind) || is_iscsi_url(behind);
        rest = behind;
        match letter {
            '\\' if behind.starts_with(':') => {
                names[last].push(':');
                rest = &behind[1..];
            }
            ':' if !is_scheme && (!is_address || is_end) => names.push(String::new()),
            letter => names[last].push(letter),
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// Returns whether a name begins like an address of NVMe over fabrics.
fn is_fabrics_address(name: &str) -> bool {
    let start = name.get(..FABRICS_KEY.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(FABRICS_KEY))
}

/// Returns whether a name begins like a URL of iSCSI, whose colon may be escaped.
fn is_iscsi_url(name: &str) -> bool {
    let rest = name.strip_prefix(ISCSI_SCHEME);
    rest.is_some_and(|rest| rest.starts_with("://") || rest.starts_with("\\://"))
}

const FABRICS_KEY: &str = "trtype=";
const ISCSI_SCHEME: &str = "iscsi";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Options;

    #[track_caller]
    fn check(change: impl FnOnce(&mut Options), job_number: u32, want: &[&str]) {
        let mut options = Options::default();
        change(&mut options);
        let job = Job {
            name: "title".to_owned(),
            section: "x".to_owned(),
            options,
            ..Job::default()
        };
        assert_eq!(file_names(&job, job_number), want);
    }

    fn files(options: &mut Options, list: &str) {
        let names = split_list(list);
        options.nrfiles = u32::try_from(names.len()).unwrap();
        options.filename = Some(names.into());
    }

    #[test]
    fn names_are_fios() {
        check(|_| {}, 0, &["x.0.0"]);
        check(|o| o.nrfiles = 2, 3, &["x.3.0", "x.3.1"]);
        check(|o| files(o, r"q:r\:s"), 0, &["q", "r:s"]);
        let format = "$JOBNAME-$jobnum.$$filenum.$clientuid.$foo";
        check(
            |o| o.filename_format = format.to_owned(),
            1,
            &["x-1.$0..$foo"],
        );
        check(
            |o| o.filename_format = "a:b.$jobnum".to_owned(),
            0,
            &["a:b.0"],
        );
        check(|o| files(o, "$jobname.f"), 0, &["$jobname.f"]);
    }

    #[test]
    fn clients_have_names_of_their_own() {
        #[track_caller]
        fn check(directory: Option<&str>, change: impl FnOnce(&mut Options), want: &str) {
            let place = crate::RankPlace {
                client: Some("node7".to_owned()),
                ..crate::RankPlace::default()
            };
            let mut job = Job {
                section: "x".to_owned(),
                place: place.into(),
                ..Job::default()
            };
            job.options.directory = directory.map(split_list);
            change(&mut job.options);
            assert_eq!(file_names(&job, 0), [want]);
        }
        let format = |o: &mut Options| o.filename_format = "$clientuid-$filenum".to_owned();
        check(Some("d"), |_| {}, "d/node7.x.0.0");
        check(Some("d"), |o| o.files.unique = false, "d/x.0.0");
        check(None, |_| {}, "x.0.0");
        check(Some("d"), |o| files(o, "f"), "f");
        check(None, format, "node7-0");
    }

    #[test]
    fn a_format_keeps_what_is_not_the_section() {
        let format = "$JobName-$jobnum.$filenum.$clientuid.$foo$";
        let want = "s-$jobnum.$filenum.$clientuid.$foo$";
        assert_eq!(with_section(format, "s"), want);
    }

    #[test]
    fn directories_are_gone_through_clone_by_clone() {
        let two = |o: &mut Options| o.directory = Some(split_list("d1:d2/"));
        check(two, 0, &["d1/x.0.0"]);
        check(two, 1, &["d2/x.1.0"]);
        check(two, 2, &["d1/x.2.0"]);
    }

    #[test]
    fn clones_share_a_named_file() {
        let named = |o: &mut Options| {
            o.directory = Some(split_list("d1:d2"));
            files(o, "f");
        };
        check(named, 0, &["f"]);
        check(named, 1, &["f"]);
    }

    #[test]
    fn a_directory_comes_before_any_name_but_a_stream() {
        let under = |directory, name: &str| in_directory(directory, name.to_owned());
        assert_eq!(under(Some("d"), "f"), "d/f");
        assert_eq!(under(Some("/d/"), "/dev/null"), "/d/dev/null");
        assert_eq!(under(Some("/"), "f"), "/f");
        assert_eq!(under(Some("d"), "-"), "-");
        assert_eq!(under(None, "/f"), "/f");
    }

    #[test]
    fn urls_of_iscsi_are_split_where_the_next_begins() {
        let (one, two) = ("iscsi://h:3260/iqn.a:b/1", "iscsi://[::1]/iqn.c:d:e/2");
        assert_eq!(split_list(one), [one]);
        assert_eq!(split_list(&format!("{one}:{two}")), [one, two]);
        let escaped = r"iscsi\://h\:3260/iqn.a\:b/1";
        assert_eq!(split_list(escaped), [one]);
        assert_eq!(split_list(&format!("{escaped}:{escaped}")), [one, one]);
        assert_eq!(split_list(&format!("f:{one}")), ["f", one]);
        assert_eq!(split_list("iscsi:f"), ["iscsi", "f"]);
    }

    #[test]
    fn addresses_of_fabrics_are_split_where_the_next_begins() {
        let first = "trtype=tcp traddr=::1 subnqn=nqn.2014-08.org:x ns=1";
        let second = "trtype=TCP traddr=127.0.0.1 subnqn=nqn.a:b:c ns=2";
        assert_eq!(split_list(first), [first]);
        assert_eq!(split_list(&format!("{first}:{second}")), [first, second]);
        let escaped = "trtype=tcp subnqn=nqn.a\\:b ns=1:/dev/x";
        assert_eq!(
            split_list(escaped),
            ["trtype=tcp subnqn=nqn.a:b ns=1:/dev/x"]
        );
        assert_eq!(
            split_list("/dev/x:trtype=tcp a:b"),
            ["/dev/x", "trtype=tcp a:b"]
        );
        assert_eq!(split_list("a\\:b:c::\\d"), ["a:b", "c", "\\d"]);
    }
}
