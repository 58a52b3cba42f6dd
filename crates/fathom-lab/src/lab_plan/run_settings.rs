//! Execution of each run, and its changes by cells and variants.

use std::path::Path;

use fathom_core::Nanos;
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
    /// Pause before each run.
    pub pause: Nanos,
    /// Drops the page cache before each run.
    pub drop_caches: bool,
    /// Duration after which a run counts as hung.
    pub timeout: Option<Nanos>,
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
    /// Returns whether fio executes the run.
    pub(crate) fn is_fio(&self) -> bool {
        self.program.as_deref().is_some_and(is_fio)
    }

    /// Sets the value of a key; one of an environment variable is `env.NAME`, and a command
    /// replaces all of its list.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<(), Unsettable> {
        match key {
            "program" => self.program = Some(value.to_owned()),
            "cpus" => self.cpus = Some(value.to_owned()),
            "pause" => self.pause = duration(key, value)?,
            "drop_caches" => {
                self.drop_caches = match value {
                    "true" => true,
                    "false" => false,
                    _ => return Err(bad(key, "`true` or `false`")),
                }
            }
            "timeout" => self.timeout = Some(duration(key, value)?),
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

/// Returns a duration, written as seconds or with a unit: `500ms`, `2s`, `5m`, `1h`.
pub(crate) fn duration_of(text: &str) -> Option<Nanos> {
    let text = text.trim();
    let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let unit_ns: u64 = match unit.trim() {
        "us" => 1_000,
        "ms" => 1_000_000,
        "" | "s" => SECOND_NS,
        "m" | "min" => 60 * SECOND_NS,
        "h" => 3600 * SECOND_NS,
        "d" => 86_400 * SECOND_NS,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let whole: u64 = whole.parse().ok()?;
    let digits = u32::try_from(fraction.len())
        .ok()
        .filter(|digits| *digits <= 9)?;
    let fraction: u64 = fraction.parse().ok()?;
    // Cannot overflow: below 10⁹ times below 10¹⁴.
    let part = u128::from(fraction) * u128::from(unit_ns) / 10_u128.pow(digits);
    let ns = whole
        .checked_mul(unit_ns)?
        .checked_add(u64::try_from(part).ok()?)?;
    (ns <= DURATION_MAX.get()).then_some(Nanos::new(ns))
}

fn duration(key: &str, value: &str) -> Result<Nanos, Unsettable> {
    duration_of(value).ok_or_else(|| bad(key, "a duration in seconds or with a unit, as `500ms`"))
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

const SECOND_NS: u64 = 1_000_000_000;

/// Longest duration: 30 days.
const DURATION_MAX: Nanos = Nanos::from_secs(30 * 86_400);

/// Returns whether this program is fio.
pub(crate) fn is_fio(program: &str) -> bool {
    Path::new(program)
        .file_name()
        .is_some_and(|name| name == "fio")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, want_ms) in [
            ("0.5", Some(500)),
            ("500ms", Some(500)),
            ("2 s", Some(2_000)),
            ("1.5m", Some(90_000)),
            ("1h", Some(3_600_000)),
            ("31d", None),
            ("", None),
            ("-1", None),
            ("1x", None),
            ("1.2.3", None),
            ("0.0000000001", None),
            ("99999999999999999999d", None),
        ] {
            assert_eq!(duration_of(text), want_ms.map(Nanos::from_millis), "{text}");
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
