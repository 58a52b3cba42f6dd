//! The terse report beside fio's: as many fields, of the same forms, with the same counts.

use crate::runs::both_as_it_stands;

/// What both are given; the first few in all four layouts.
const LINES: &[&str] = &[
    "--name=t --ioengine=null --rw=randread --size=64k",
    "--name=t --ioengine=null --rw=randwrite --size=1m --iodepth=8 --description=words",
    "--name=t --ioengine=psync --rw=write --size=1m --continue_on_error=all",
    "--name=t --ioengine=null --rw=randtrim --size=64k",
    "--name=t --ioengine=null --rw=read --size=64k --gtod_reduce=1",
    "--name=t --ioengine=null --rw=read --size=64k --clat_percentiles=0",
    "--name=t --ioengine=null --rw=read --size=64k --lat_percentiles=1",
    "--name=t --ioengine=null --rw=read --size=64k --percentile_list=50:99.9",
    "--name=t --ioengine=null --rw=read --size=64k --numjobs=3",
    "--name=t --ioengine=null --rw=read --size=64k --numjobs=3 --group_reporting",
    "--name=t --ioengine=null --rw=read --size=64k --continue_on_error=all --description=d",
    "--ioengine=null --size=64k --name=a --rw=read --name=b --stonewall --rw=write --bs=8k",
    "--name=t --ioengine=psync --rw=read --size=1m --disk_util=0",
];

#[test]
fn fields_stand_where_fio_has_them() {
    let mut found = Vec::new();
    for (index, line) in LINES.iter().enumerate() {
        for layout in if index < 3 { 2..=5 } else { 3..=3 } {
            let line = format!("--minimal --terse-version={layout} --eta=never {line}");
            let Some([fio, ours]) = both_as_it_stands(&line, &[]) else {
                return;
            };
            assert_eq!((&line, ours.code), (&line, fio.code));
            let (fio, ours) = (forms(&fio.stdout), forms(&ours.stdout));
            found.extend(difference(&fio, &ours).map(|what| format!("{line}: {what}")));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn terse_stands_beside_the_other_formats() {
    for formats in [
        "--append-terse",
        "--output-format=normal,terse",
        "--output-format=json,terse",
        "--output-format=json --append-terse",
        "--minimal --output-format=json",
        "--output-format=json --minimal",
        "--output-format=json,normal,minimal",
    ] {
        let line = format!("{formats} --eta=never {}", LINES[0]);
        let Some([fio, ours]) = both_as_it_stands(&line, &[]) else {
            return;
        };
        assert_eq!(parts(&fio.stdout), parts(&ours.stdout), "{line}");
    }
}

/// Which reports there are, in order.
fn parts(text: &str) -> Vec<&'static str> {
    let part = |line: &str| match line {
        "{" => Some("json"),
        _ if line.starts_with("3;fio-") => Some("terse"),
        _ if line.contains(": (groupid=0") => Some("normal"),
        _ if line.starts_with("Starting") => Some("starting"),
        _ => None,
    };
    text.lines().filter_map(part).collect()
}

/// Every line's fields: what the job settles as it stands, of the rest only the form.
fn forms(text: &str) -> Vec<Vec<String>> {
    let line = |line: &str| {
        let fields = line.split(';').enumerate();
        let layout_2 = line.starts_with("2;");
        fields
            .map(|(index, field)| {
                // Layout, name, group, error, and the kibibytes that were read.
                let last = if layout_2 { 4 } else { 5 };
                match index {
                    1 if !layout_2 && field.starts_with("fio-") => "fio-…".to_owned(),
                    _ if index <= last => field.to_owned(),
                    _ => form(field),
                }
            })
            .collect()
    };
    text.lines().map(line).collect()
}

/// The first field that differs.
fn difference(fio: &[Vec<String>], ours: &[Vec<String>]) -> Option<String> {
    let number = (1..).zip(fio.iter().flatten().zip(ours.iter().flatten()));
    let mut other = number.filter(|(_, (fio, ours))| fio != ours);
    let count = |lines: &[Vec<String>]| lines.iter().map(Vec::len).collect::<Vec<_>>();
    match other.next() {
        Some((number, (fio, ours))) => Some(format!("field {number}: fio {fio}, ours {ours}")),
        None if fio == ours => None,
        None => Some(format!(
            "fields: fio {:?}, ours {:?}",
            count(fio),
            count(ours)
        )),
    }
}

/// A number by its kind and decimals; `99.000000%=17` without the value; words as they are.
fn form(field: &str) -> String {
    if let Some((name, _)) = field.split_once("%=") {
        return format!("{name}%=");
    }
    let (number, unit) = match field.strip_suffix('%') {
        Some(number) => (number, "%"),
        None => (field, ""),
    };
    match number.parse::<f64>() {
        Err(_) => field.to_owned(),
        Ok(_) => {
            let decimals = number
                .split_once('.')
                .map_or(0, |(_, decimals)| decimals.len());
            format!("number.{decimals}{unit}")
        }
    }
}
