//! Comparison of counts in two reports: exact if the job alone determines them.

use serde_json::Value;

use super::case::Case;
use super::difference::Difference;

/// Compares counts, names, errors and options of every job.
pub(crate) fn difference(case: &Case, fio: &Value, ours: &Value) -> Vec<Difference> {
    let none = Vec::new();
    let jobs = [fio, ours].map(|report| report["jobs"].as_array().unwrap_or(&none));
    let mut found = options(
        "global options",
        &fio["global options"],
        &ours["global options"],
    );
    for (number, (fio, ours)) in jobs[0].iter().zip(jobs[1]).enumerate() {
        for key in [
            "jobname",
            "groupid",
            "error",
            "desc",
            "total_err",
            "first_error",
        ] {
            let [fio, ours] = [fio, ours].map(|job| job[key].to_string());
            found.extend(Difference::of(format!("count:{number}.{key}"), fio, ours));
        }
        found.extend(options(
            &format!("{number}.job options"),
            &fio["job options"],
            &ours["job options"],
        ));
        let numbers = numbers(case, fio).into_iter().zip(numbers(case, ours));
        for ((name, of_fio), (_, of_ours)) in numbers {
            let limit = limit(case, &name);
            if (of_fio - of_ours).abs() > limit * of_fio.abs() {
                let place = format!("count:{number}.{name}");
                found.extend(Difference::of(
                    place,
                    of_fio.to_string(),
                    of_ours.to_string(),
                ));
            }
        }
        found.extend(case.mix.then(|| share(number, fio, ours)).flatten());
    }
    found
}

/// Returns the tolerance of a number, as a share of fio's value.
fn limit(case: &Case, name: &str) -> f64 {
    match case.runtime {
        Some(percent) if name.ends_with("runtime") => percent / 100.0,
        _ => case.near / 100.0,
    }
}

/// Returns the counts of a job: by direction, or summed if directions are drawn.
fn numbers(case: &Case, job: &Value) -> Vec<(String, f64)> {
    let mut numbers = Vec::new();
    for key in ["total_ios", "io_bytes", "short_ios", "drop_ios"] {
        let by_direction = DIRECTIONS.map(|direction| (direction, number(&job[direction][key])));
        if case.mix {
            numbers.push((
                format!("all.{key}"),
                by_direction.iter().map(|(_, value)| value).sum(),
            ));
        } else {
            numbers.extend(
                by_direction.map(|(direction, value)| (format!("{direction}.{key}"), value)),
            );
        }
    }
    for direction in DIRECTIONS.iter().filter(|_| !case.mix) {
        numbers.push((
            format!("{direction}.clat_ns.N"),
            number(&job[*direction]["clat_ns"]["N"]),
        ));
    }
    numbers.push(("sync.total_ios".into(), number(&job["sync"]["total_ios"])));
    if case.runtime.is_some() {
        numbers.push(("job_runtime".into(), number(&job["job_runtime"])));
    }
    numbers
}

/// Returns a difference if the shares of reads are more than two percentage points apart.
fn share(number: usize, fio: &Value, ours: &Value) -> Option<Difference> {
    let [fio, ours] = [fio, ours].map(|job| {
        let ops = DIRECTIONS.map(|direction| self::number(&job[direction]["total_ios"]));
        100.0 * ops[0] / ops.iter().sum::<f64>().max(1.0)
    });
    let apart = (fio - ours).abs() > MIX_PERCENT;
    apart.then(|| Difference {
        place: format!("count:{number}.mix"),
        fio: format!("{fio:.2} % reads"),
        ours: format!("{ours:.2} %"),
        by_chance: false,
    })
}

/// Compares options that have a value; listing of bare flags differs between versions of fio.
fn options(place: &str, fio: &Value, ours: &Value) -> Vec<Difference> {
    let shown = |options: &Value| {
        let fields = options.as_object().into_iter().flatten();
        let with_value = fields.filter(|(_, value)| value.as_str() != Some(""));
        let pairs = with_value.map(|(name, value)| format!("{name}={value}"));
        pairs.collect::<Vec<_>>().join(" ")
    };
    Difference::of(format!("count:{place}"), shown(fio), shown(ours))
        .into_iter()
        .collect()
}

/// Returns a number; 0 if there is none.
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

const DIRECTIONS: [&str; 4] = ["read", "write", "trim", "mixed"];

/// Tolerance of the shares of a mix, percent of all ops.
const MIX_PERCENT: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report(reads: u64, writes: u64) -> Value {
        let ops = |count: u64| json!({"total_ios": count, "io_bytes": count * 4096});
        let (read, write) = (ops(reads), ops(writes));
        json!({"jobs": [{"jobname": "t", "read": read, "write": write, "job_runtime": reads}]})
    }

    #[track_caller]
    fn check(case: &Case, ours: (u64, u64), wanted: &[&str]) {
        let found = difference(case, &report(1000, 1000), &report(ours.0, ours.1));
        let places: Vec<_> = found.into_iter().map(|one| one.place).collect();
        assert_eq!(places, wanted);
    }

    #[test]
    fn counts_are_exact_near_or_of_all_together() {
        let exact = Case::default();
        check(&exact, (1000, 1000), &[]);
        check(
            &exact,
            (1001, 1000),
            &["count:0.read.total_ios", "count:0.read.io_bytes"],
        );
        check(
            &Case {
                near: 5.0,
                ..exact.clone()
            },
            (1040, 1000),
            &[],
        );
        check(
            &Case {
                near: 5.0,
                ..exact.clone()
            },
            (1060, 1000),
            &["count:0.read.total_ios", "count:0.read.io_bytes"],
        );
        let mix = Case {
            mix: true,
            ..exact.clone()
        };
        check(&mix, (1030, 970), &[]);
        check(&mix, (1050, 950), &["count:0.mix"]);
        check(
            &Case {
                runtime: Some(1.0),
                mix: true,
                ..exact
            },
            (1020, 980),
            &["count:0.job_runtime"],
        );
    }

    #[test]
    fn options_are_compared_by_value() {
        let report = |value: &str| json!({"jobs": [{"job options": {"bs": value, "thread": ""}}]});
        let found = difference(&Case::default(), &report("4k"), &report("8k"));
        assert_eq!(found[0].place, "count:0.job options");
        assert_eq!(found.len(), 1);
    }
}
