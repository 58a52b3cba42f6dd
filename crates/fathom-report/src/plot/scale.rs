//! Scales: mapping of values to pixels, and the ticks of an axis.

use super::{Scale, text};

/// Scale of an axis over the range of its values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ruler {
    is_log: bool,
    is_bytes: bool,
    least: f64,
    most: f64,
    /// Values of the ticks, ascending.
    pub(super) ticks: Vec<f64>,
    /// Labels, if the ticks stand for names.
    names: Vec<String>,
}

impl Ruler {
    /// Creates the ruler of a vertical axis, which begins at zero if it is linear and ends at a
    /// tick.
    pub(super) fn up(scale: Scale, values: &[f64]) -> Self {
        let (least, most) = range(values);
        if is_log(scale, least, most) {
            let ruler = Self::along(scale, values);
            return match scale {
                Scale::Doubling | Scale::Bytes => ruler,
                Scale::Auto | Scale::Linear | Scale::Logarithmic => Self::decades(least, most),
            };
        }
        let step = nice_step(most.max(0.0) - least.min(0.0), 1e-12);
        let least = (least.min(0.0) / step).floor() * step;
        let most = (most / step).ceil().max(1.0) * step;
        Self::linear(least, most, step)
    }

    /// Creates the ruler of a horizontal axis, from the least value to the greatest.
    pub(super) fn along(scale: Scale, values: &[f64]) -> Self {
        let (least, most) = range(values);
        // One value stands at the left end.
        let most = if most > least { most } else { least + 1.0 };
        if !is_log(scale, least, most) {
            let is_whole = values.iter().all(|value| value.fract() == 0.0);
            let step = nice_step(most - least, if is_whole { 1.0 } else { 1e-12 });
            return Self::linear(least, most, step);
        }
        let ticks = match scale {
            Scale::Doubling | Scale::Bytes => powers_of_two(least, most),
            Scale::Auto | Scale::Linear | Scale::Logarithmic => {
                // Labels are beside each other here, and need more room.
                ticks(steps(least, most, 1e3), least, most)
            }
        };
        Self {
            is_log: true,
            is_bytes: scale == Scale::Bytes,
            least,
            most,
            ticks,
            names: Vec::new(),
        }
    }

    /// Creates a logarithmic ruler whose ends are ticks.
    fn decades(least: f64, most: f64) -> Self {
        // A decade further on either side, where there is a tick in any case.
        let ticks = ticks(steps(least, most, 1e4), least / 10.0, most * 10.0);
        let first = ticks.iter().rposition(|tick| *tick <= least).unwrap_or(0);
        let last = ticks.iter().position(|tick| *tick >= most);
        let ticks = ticks[first..=last.unwrap_or(ticks.len() - 1)].to_vec();
        let (least, most) = range(&ticks);
        Self {
            is_log: true,
            is_bytes: false,
            least,
            most,
            ticks,
            names: Vec::new(),
        }
    }

    fn linear(least: f64, most: f64, step: f64) -> Self {
        let first = (least / step - 1e-9).ceil();
        let place = |number: u32| (first + f64::from(number)) * step;
        let ticks = (0..TICKS_MAX).map(place);
        Self {
            is_log: false,
            is_bytes: false,
            least,
            most,
            ticks: ticks
                .take_while(|tick| *tick <= most + step * 1e-6)
                .collect(),
            names: Vec::new(),
        }
    }

    /// Creates the ruler of names, each of which has the room from its number to the next.
    pub(super) fn names(names: &[String]) -> Self {
        let number = |at: usize| super::panel::count(at);
        Self {
            is_log: false,
            is_bytes: false,
            least: 0.0,
            most: number(names.len().max(1)),
            ticks: (0..names.len()).map(|at| number(at) + 0.5).collect(),
            names: (names.iter())
                .map(|name| text::shortened(name, NAME_MAX))
                .collect(),
        }
    }

    /// Returns the place of a value, from 0 to 1; `None` if it has none on this scale.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let place = if self.is_log {
            (value / self.least).ln() / (self.most / self.least).ln()
        } else {
            (value - self.least) / (self.most - self.least)
        };
        place.is_finite().then_some(place)
    }

    /// Returns kind, least and greatest value and unit, for the script of a page.
    pub(super) fn description(&self) -> String {
        let kind = match (self.names.is_empty(), self.is_log) {
            (false, _) => "names",
            (true, true) => "log",
            (true, false) => "lin",
        };
        let unit = if self.is_bytes { " bytes" } else { "" };
        format!("{kind} {:?} {:?}{unit}", self.least, self.most)
    }

    /// Returns the label of a tick.
    pub(super) fn label(&self, value: f64) -> String {
        if !self.names.is_empty() {
            let at = self.ticks.iter().position(|tick| *tick >= value);
            return at
                .and_then(|at| self.names.get(at).cloned())
                .unwrap_or_default();
        }
        if self.is_bytes {
            bytes(value)
        } else {
            number(value)
        }
    }
}

fn is_log(scale: Scale, least: f64, most: f64) -> bool {
    match scale {
        Scale::Linear => false,
        Scale::Auto => least > 0.0 && most / least > LINEAR_SPAN_MAX,
        Scale::Logarithmic | Scale::Doubling | Scale::Bytes => least > 0.0,
    }
}

/// Returns the least and the greatest value; 0 and 1 of nothing.
fn range(values: &[f64]) -> (f64, f64) {
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    let ends = finite().reduce(f64::min).zip(finite().reduce(f64::max));
    ends.unwrap_or((0.0, 1.0))
}

/// Returns a step of 1, 2 or 5 units of a power of ten that makes about five ticks.
fn nice_step(span: f64, least: f64) -> f64 {
    let raw = (span / 5.0).max(least).max(f64::MIN_POSITIVE);
    let unit = 10_f64.powf(raw.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * unit);
    let step = steps.into_iter().find(|step| *step >= raw * 0.999);
    step.unwrap_or(unit * 10.0)
}

fn powers_of_two(least: f64, most: f64) -> Vec<f64> {
    let exponents = least.log2().ceil()..=most.log2().floor();
    let mut ticks = Vec::new();
    let mut exponent = *exponents.start();
    while exponents.contains(&exponent) && ticks.len() < 64 {
        ticks.push(exponent.exp2());
        exponent += 1.0;
    }
    // Values between two powers of two still need two labels.
    if ticks.len() < 2 {
        ticks = vec![least, most];
    }
    ticks
}

/// Returns the steps in a decade: 1, 2 and 5, or only 1 beyond a ratio of the ends.
fn steps(least: f64, most: f64, ratio_max: f64) -> &'static [f64] {
    if most / least > ratio_max {
        &[1.0]
    } else {
        &[1.0, 2.0, 5.0]
    }
}

/// Returns the values of some steps of each decade in a range.
fn ticks(steps: &[f64], least: f64, most: f64) -> Vec<f64> {
    let mut unit = 10_f64.powf(least.log10().floor());
    let mut ticks = Vec::new();
    while unit <= most * 1.001 && ticks.len() < 99 {
        ticks.extend(steps.iter().map(|step| step * unit));
        unit *= 10.0;
    }
    ticks.retain(|tick| (least * 0.999..=most * 1.001).contains(tick));
    if ticks.is_empty() {
        ticks = vec![least, most];
    }
    ticks
}

fn bytes(value: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut rest = value;
    let mut unit = 0;
    while rest >= 1024.0 && unit + 1 < units.len() {
        rest /= 1024.0;
        unit += 1;
    }
    format!("{} {}", trimmed(rest, 2), units[unit])
}

pub(super) fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1e9 => format!("{}G", trimmed(value / 1e9, 2)),
        size if size >= 1e6 => format!("{}M", trimmed(value / 1e6, 2)),
        size if size >= 1e4 => format!("{}k", trimmed(value / 1e3, 2)),
        size if size >= 0.1 || size == 0.0 => trimmed(value, 2),
        _ => trimmed(value, 6),
    }
}

fn trimmed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0" } else { text }.to_owned()
}

/// Two decades: over a wider span the small values would lie on the axis.
const LINEAR_SPAN_MAX: f64 = 100.0;
/// Longest name beside an axis, in characters.
const NAME_MAX: usize = 24;
/// More than a nice step makes.
const TICKS_MAX: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_axes_begin_at_zero_and_end_at_a_tick() {
        let ruler = Ruler::up(Scale::Auto, &[34.0, 69.9]);
        assert_eq!(ruler.ticks, [0.0, 20.0, 40.0, 60.0, 80.0]);
        assert_eq!(ruler.place(80.0), Some(1.0));
        assert_eq!(Ruler::up(Scale::Auto, &[]).ticks.first(), Some(&0.0));
    }

    #[test]
    fn more_than_two_decades_are_logarithmic() {
        assert!(!Ruler::up(Scale::Auto, &[1.0, 100.0]).is_log);
        let ruler = Ruler::up(Scale::Auto, &[3.0, 4000.0]);
        assert!(ruler.is_log);
        assert_eq!(ruler.ticks.first(), Some(&2.0));
        assert_eq!(ruler.ticks.last(), Some(&5000.0));
        for (least, most) in [
            (31.0, 1_586_000.0),
            (1.0, 10_000.0),
            (3e-3, 7.0),
            (1e-3, 1e12),
        ] {
            let ruler = Ruler::up(Scale::Auto, &[least, most]);
            let (low, high) = (ruler.place(least), ruler.place(most));
            assert!(low >= Some(-1e-9) && high <= Some(1.0 + 1e-9), "{ruler:?}");
        }
        assert!(!Ruler::up(Scale::Auto, &[0.0, 4000.0]).is_log);
        assert!(!Ruler::up(Scale::Linear, &[1.0, 4000.0]).is_log);
        assert_eq!(ruler.place(0.0), None, "zero has no place");
        let ruler = Ruler::along(Scale::Auto, &[1.01, 9999.999]);
        assert_eq!(
            ruler.ticks,
            [10.0, 100.0, 1e3, 1e4],
            "rounding loses no tick"
        );
    }

    #[test]
    fn doubling_axes_have_powers_of_two() {
        let ruler = Ruler::along(Scale::Doubling, &[32.0, 36.0, 256.0]);
        assert_eq!(ruler.ticks, [32.0, 64.0, 128.0, 256.0]);
        assert_eq!(ruler.place(32.0), Some(0.0));
        assert_eq!(
            Ruler::along(Scale::Doubling, &[36.0, 40.0]).ticks,
            [36.0, 40.0]
        );
        assert_eq!(Ruler::along(Scale::Doubling, &[8.0]).place(8.0), Some(0.0));
    }

    #[test]
    fn whole_numbers_have_whole_ticks() {
        assert_eq!(Ruler::along(Scale::Linear, &[1.0, 2.0]).ticks, [1.0, 2.0]);
        assert_eq!(Ruler::along(Scale::Linear, &[0.5, 1.0]).ticks.len(), 6);
    }

    #[test]
    fn labels_are_short() {
        let labels = [0.0, 0.75, 0.002, 1500.0, 20e3, 3.5e6, 2e9].map(number);
        assert_eq!(labels, ["0", "0.75", "0.002", "1500", "20k", "3.5M", "2G"]);
        assert_eq!(
            [512.0, 4096.0, 1_048_576.0].map(bytes),
            ["512 B", "4 KiB", "1 MiB"]
        );
    }
}
