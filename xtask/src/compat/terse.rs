//! Comparison of the form of two terse reports: number and kind of fields, and the first values.

use super::difference::Difference;

/// Compares numbers of lines and fields, and the form of each field.
pub(crate) fn difference(fio: &str, ours: &str) -> Vec<Difference> {
    let count = |text: &str| {
        let fields = text.lines().map(|line| line.split(';').count().to_string());
        fields.collect::<Vec<_>>().join(" ")
    };
    if let Some(found) = Difference::of("terse:fields", count(fio), count(ours)) {
        return vec![found];
    }
    let lines = fio.lines().zip(ours.lines());
    lines.flat_map(|(fio, ours)| line(fio, ours)).collect()
}

fn line(fio: &str, ours: &str) -> Vec<Difference> {
    let as_it_stands = if fio.starts_with("2;") { 4 } else { 5 };
    let fields = (1..).zip(fio.split(';').zip(ours.split(';')));
    fields
        .filter_map(|(number, (fio, ours))| {
            let shown = |field: &str| match field.strip_prefix("fio-") {
                Some(_) => "fio-…".to_owned(),
                // Layout, name, group and error; layout 2 has no version.
                None if number <= as_it_stands => field.to_owned(),
                None => form(field),
            };
            Difference::of(format!("terse:{number}"), shown(fio), shown(ours))
        })
        .collect()
}

/// Returns the form of a field: a number's kind and decimals, `99.000000%=17` without its value,
/// and words unchanged.
fn form(field: &str) -> String {
    if let Some((name, _)) = field.split_once("%=") {
        return format!("{name}%=");
    }
    let (number, unit) = match field.strip_suffix('%') {
        Some(number) => (number, "%"),
        None => (field, ""),
    };
    let decimals = number
        .split_once('.')
        .map_or(0, |(_, decimals)| decimals.len());
    match number.parse::<f64>() {
        Err(_) => field.to_owned(),
        Ok(_) => format!("number.{decimals}{unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(fio: &str, ours: &str, wanted: &[&str]) {
        let places: Vec<_> = difference(fio, ours)
            .into_iter()
            .map(|one| one.place)
            .collect();
        assert_eq!(places, wanted);
    }

    #[test]
    fn forms_are_compared_and_values_are_not() {
        check(
            "3;fio-3.33;t;0;0;64;1.500000",
            "3;fio-3.42;t;0;0;65;2.500000",
            &[],
        );
        check("3;fio-3.33;t;0;0;64", "3;fio-3.42;u;0;0;64", &["terse:3"]);
        check("3;fio-3.33;t;0;0;64", "3;fio-3.42;t;0;0;6.4", &["terse:6"]);
        check("2;t;0;0;5;1%=4", "2;t;0;0;5;2%=4", &["terse:6"]);
        check("3;fio-3.33;t\n", "3;fio-3.33;t;0\n", &["terse:fields"]);
        check("3;a\n3;b\n", "3;a\n", &["terse:fields"]);
    }
}
