//! Execution of each run, and its changes by cells and variants.

use fathom_job::closest;

/// Execution of each run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunSettings {
    /// Program: another build of `fathom`, or `fio`; `None` for this one.
    pub program: Option<String>,
    /// CPUs that a run may use, as `0-3,8`.
    pub cpus: Option<String>,
    /// Environment variables.
    pub env: Vec<(String, String)>,
    /// Pause before each run, in seconds.
    pub pause: f64,
    /// Drops the page cache before each run.
    pub drop_caches: bool,
    /// Duration after which a run counts as hung, in seconds.
    pub timeout: Option<f64>,
    /// IOPS limit of the device by a control group.
    pub throttle_iops: Option<u64>,
    /// Commands before each run.
    pub before: Vec<String>,
    /// Commands after each run.
    pub after: Vec<String>,
}

/// Reason why a value cannot be set, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unsettable {
    pub(crate) message: String,
    pub(crate) hint: String,
    /// There is no such key.
    pub(crate) is_of_key: bool,
}

impl RunSettings {
    /// Sets the value of a key; one of an environment variable is `env.NAME`, and a command
    /// replaces all of its list.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<(), Unsettable> {
        match key {
            "program" => self.program = Some(value.to_owned()),
            "cpus" => self.cpus = Some(value.to_owned()),
            "pause" => self.pause = seconds(key, value)?,
            "drop_caches" => {
                self.drop_caches = match value {
                    "true" => true,
                    "false" => false,
                    _ => return Err(bad(key, "`true` or `false`")),
                }
            }
            "timeout" => self.timeout = Some(seconds(key, value)?),
            "throttle_iops" => {
                let iops = value.parse().ok().filter(|iops| *iops > 0);
                let iops = iops.ok_or_else(|| bad(key, "a whole number from 1"))?;
                self.throttle_iops = Some(iops);
            }
            "before" => self.before = vec![value.to_owned()],
            "after" => self.after = vec![value.to_owned()],
            key => match key.strip_prefix("env.") {
                Some(name) => self.set_variable(name, value),
                None => return Err(unknown(key)),
            },
        }
        Ok(())
    }

    fn set_variable(&mut self, name: &str, value: &str) {
        match self.env.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => value.clone_into(old),
            None => self.env.push((name.to_owned(), value.to_owned())),
        }
    }
}

/// Returns a duration in seconds, written as a number or with a unit: `500ms`, `2s`, `5m`, `1h`.
pub(crate) fn seconds_of(text: &str) -> Option<f64> {
    let text = text.trim();
    let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let number: f64 = number.parse().ok()?;
    let factor = match unit.trim() {
        "us" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    let seconds = number * factor;
    (seconds.is_finite() && seconds <= SECONDS_MAX).then_some(seconds)
}

fn seconds(key: &str, value: &str) -> Result<f64, Unsettable> {
    seconds_of(value).ok_or_else(|| bad(key, "a duration in seconds or with a unit, as `500ms`"))
}

fn bad(key: &str, wanted: &str) -> Unsettable {
    Unsettable {
        message: format!("`{key}` must be {wanted}"),
        hint: "see docs/LAB.md".into(),
        is_of_key: false,
    }
}

fn unknown(key: &str) -> Unsettable {
    Unsettable {
        message: format!("unknown key `{key}` in `run`"),
        hint: match closest(key, KEYS) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("keys here: {}", KEYS.join(", ")),
        },
        is_of_key: true,
    }
}

const KEYS: [&str; 9] = [
    "program",
    "cpus",
    "env",
    "pause",
    "drop_caches",
    "timeout",
    "throttle_iops",
    "before",
    "after",
];

/// Longest duration: 30 days.
const SECONDS_MAX: f64 = 30.0 * 86_400.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, want) in [
            ("0.5", Some(0.5)),
            ("500ms", Some(0.5)),
            ("2 s", Some(2.0)),
            ("1.5m", Some(90.0)),
            ("1h", Some(3600.0)),
            ("31d", None),
            ("", None),
            ("-1", None),
            ("1x", None),
            ("1.2.3", None),
        ] {
            assert_eq!(seconds_of(text), want, "{text}");
        }
    }

    #[test]
    fn keys_are_set_and_unknown_ones_refused() {
        let mut run = RunSettings::default();
        run.set("env.A", "1").unwrap();
        run.set("env.A", "2").unwrap();
        run.set("drop_caches", "true").unwrap();
        assert_eq!(run.env, [("A".to_owned(), "2".to_owned())]);
        assert!(run.drop_caches);
        let error = run.set("programm", "x").unwrap_err();
        assert_eq!(error.hint, "did you mean `program`?");
        assert!(run.set("throttle_iops", "0").is_err());
    }
}
