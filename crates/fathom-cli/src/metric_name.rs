//! Names of metrics on the command line.

use anyhow::{Result, bail};
use fathom_lab::nearest_metric;
use fathom_record::MetricName;

/// Reads a metric's name.
///
/// # Errors
/// States what is unknown, and the name that was probably meant, else the possible ones.
pub(crate) fn parse(text: &str) -> Result<MetricName, String> {
    MetricName::parse(text).map_err(|error| {
        let message = error.message;
        match nearest_metric(text, &error.candidates) {
            Some(near) => format!("{message}; did you mean `{near}`?"),
            None if error.candidates.is_empty() => message,
            None => format!("{message}; known: {}", error.candidates.join(", ")),
        }
    })
}

/// Refuses a metric that was given twice, also in another unit: each is a comparison of its own,
/// and one more lowers what the others can prove.
///
/// # Errors
/// Names the option that repeats another.
pub(crate) fn refuse_repeated<'a>(names: impl Iterator<Item = &'a MetricName>) -> Result<()> {
    let mut known: Vec<&MetricName> = Vec::new();
    for name in names {
        if let Some(other) = known.iter().find(|known| known.is_same(name)) {
            bail!(
                "--metric {name}: `{name}` is `{other}`, which is judged already\n\
                 hint: remove one of them"
            );
        }
        known.push(name);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn names_that_exist_are_proposed() {
        let told = |text: &str| parse(text).expect_err("a refusal");
        let without = told("clat_p99");
        assert!(
            without.ends_with("; did you mean `read.clat_p99`?"),
            "{without}"
        );
        let alike = told("write.clat_99");
        assert!(
            alike.ends_with("; did you mean `write.clat_p99`?"),
            "{alike}"
        );
        assert!(told("read.zzzzzzzz").contains("; known: bw, iops"));
        assert!(!told("read.clat_p0").contains("known"));
    }
}
