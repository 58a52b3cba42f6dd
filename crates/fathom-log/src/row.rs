//! A line of a log as numbers: the common form of all formats.

use std::io::{self, Write};

/// One line of a log. Columns that the log does not have are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogRow {
    /// Time since the start of the job, or since the epoch.
    pub time_ms: u64,
    /// Logged quantity.
    pub value: u64,
    /// Maximum of the window.
    pub max: u64,
    /// 0: read, 1: write, 2: trim.
    pub direction: u32,
    /// Length of the op; 0 for an average.
    pub bytes: u64,
    /// Offset of the op, bytes.
    pub offset: u64,
    /// Whole I/O priority, class and level; without `log_prio` only whether it is real-time.
    pub priority: u32,
    /// Time of issue since the start of the job.
    pub issued_ns: u64,
}

/// Optional columns of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// `log_window_value=both`.
    pub max: bool,
    /// `log_offset`.
    pub offset: bool,
    /// `log_prio`: the whole priority, not only whether its class is real-time.
    pub priority: bool,
    /// `log_issue_time`.
    pub issued: bool,
}

impl LogRow {
    /// Returns a word for each possible column, in the order of `COLUMNS`.
    pub(crate) const fn words(&self, shape: Shape) -> Words {
        let priority = if shape.priority {
            self.priority
        } else {
            self.is_real_time() as u32
        };
        [
            self.time_ms,
            self.value,
            self.max,
            self.direction as u64,
            self.bytes,
            self.offset,
            priority as u64,
            self.issued_ns,
        ]
    }

    /// Builds a row from words; `None` if one is too large for its column, or, as
    /// [`unknown_direction`] tells, no direction.
    pub(crate) fn of_words(words: Words, shape: Shape) -> Option<Self> {
        let [
            time_ms,
            value,
            max,
            direction,
            bytes,
            offset,
            priority,
            issued_ns,
        ] = words;
        let priority = u32::try_from(priority).ok()?;
        let shown = if shape.priority { 16 } else { 1 };
        if unknown_direction(words).is_some() || priority >> shown != 0 {
            return None;
        }
        Some(Self {
            time_ms,
            value,
            max,
            direction: u32::try_from(direction).ok()?,
            bytes,
            offset,
            priority: match shape.priority {
                true => priority,
                false => priority << CLASS_SHIFT,
            },
            issued_ns,
        })
    }

    /// Returns true if the priority is of the real-time class, all that a log shows of it without
    /// `log_prio`.
    pub(crate) const fn is_real_time(&self) -> bool {
        self.priority >> CLASS_SHIFT == REAL_TIME
    }

    /// Writes the line: `time, value[, max], direction, bytes[, offset], priority[, issued]`.
    pub(crate) fn print(&self, shape: Shape, to: &mut impl Write) -> io::Result<()> {
        write!(to, "{}, {}", self.time_ms, self.value)?;
        if shape.max {
            write!(to, ", {}", self.max)?;
        }
        write!(to, ", {}, {}", self.direction, self.bytes)?;
        if shape.offset {
            write!(to, ", {}", self.offset)?;
        }
        if shape.priority {
            write!(to, ", 0x{:04x}", self.priority)?;
        } else {
            write!(to, ", {}", u8::from(self.is_real_time()))?;
        }
        if shape.issued {
            write!(to, ", {}", self.issued_ns)?;
        }
        writeln!(to)
    }
}

impl Shape {
    /// Returns the columns of a log: index among a row's words, and name. `value` is the logged
    /// quantity, with its unit.
    pub(crate) fn columns(self, value: &str) -> Vec<(usize, String)> {
        let has = [
            true,
            true,
            self.max,
            true,
            true,
            self.offset,
            true,
            self.issued,
        ];
        let places = (0..WORDS).filter(|&place| has[place]);
        let name = |place| match place {
            VALUE => value.to_owned(),
            MAX => format!("{value}{MAX_SUFFIX}"),
            PRIORITY if !self.priority => REALTIME_COLUMN.to_owned(),
            place => COLUMNS[place].to_owned(),
        };
        places.map(|place| (place, name(place))).collect()
    }

    /// Returns the shape of a log with columns of these names, and each one's index among the
    /// words.
    pub(crate) fn of_columns<'a>(
        names: impl IntoIterator<Item = &'a str>,
    ) -> Option<(Self, Vec<usize>)> {
        let (mut shape, mut places) = (Self::default(), Vec::new());
        for name in names {
            let place = place_of(name);
            shape.max |= place == MAX;
            shape.offset |= place == OFFSET;
            shape.priority |= place == PRIORITY && name != REALTIME_COLUMN;
            shape.issued |= place == ISSUED;
            if places.contains(&place) {
                return None;
            }
            places.push(place);
        }
        let needed = [0, VALUE, 3, 4, PRIORITY];
        let has_all = needed.iter().all(|place| places.contains(place));
        has_all.then_some((shape, places))
    }

    /// Returns the name of the value's column among those of a log.
    pub(crate) fn value_name<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<String> {
        let mut names = names.into_iter();
        let name = names.find(|name| place_of(name) == VALUE)?;
        Some(name.to_owned())
    }
}

/// Returns the direction among words if it is neither of reads, writes nor trims.
pub(crate) fn unknown_direction(words: Words) -> Option<u64> {
    let direction = words[DIRECTION];
    (direction > 2).then_some(direction)
}

/// Returns the index among a row's words of the column of a name.
fn place_of(name: &str) -> usize {
    let known = COLUMNS.iter().position(|known| *known == name);
    match known {
        Some(place) => place,
        None if name == REALTIME_COLUMN => PRIORITY,
        None if name.ends_with(MAX_SUFFIX) => MAX,
        None => VALUE,
    }
}

/// Maximum number of columns.
pub(crate) const WORDS: usize = 8;

/// One word per column.
pub(crate) type Words = [u64; WORDS];

/// Column names. The second and third are replaced by the logged quantity.
const COLUMNS: [&str; WORDS] = [
    "time_ms",
    "",
    "",
    "direction",
    "bytes",
    "offset_bytes",
    "priority",
    "issued_ns",
];
const VALUE: usize = 1;
const MAX: usize = 2;
const DIRECTION: usize = 3;
const OFFSET: usize = 5;
const PRIORITY: usize = 6;
const ISSUED: usize = 7;

/// Name of the priority column if it only distinguishes the real-time class.
const REALTIME_COLUMN: &str = "realtime";
/// Suffix of the value's name for the window's maximum.
const MAX_SUFFIX: &str = "_max";

/// Position of the class in an I/O priority, and the real-time class, from ioprio_set(2).
pub(crate) const CLASS_SHIFT: u32 = 13;
pub(crate) const REAL_TIME: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_names_lead_back() {
        let row = LogRow {
            time_ms: 1,
            value: 2,
            max: 3,
            direction: 1,
            bytes: 4096,
            offset: 5,
            priority: 1 << CLASS_SHIFT,
            issued_ns: 7,
        };
        for bits in 0..16_u8 {
            let has = |bit: u8| bits & (1 << bit) != 0;
            let shape = Shape {
                max: has(0),
                offset: has(1),
                priority: has(2),
                issued: has(3),
            };
            assert_eq!(LogRow::of_words(row.words(shape), shape), Some(row));
            let columns = shape.columns("clat_ns");
            let names = columns.iter().map(|(_, name)| name.as_str());
            let places = columns.iter().map(|(place, _)| *place).collect();
            assert_eq!(Shape::of_columns(names), Some((shape, places)));
        }
        let plain = Shape::default();
        for (place, too_large) in [(3, 3), (6, 2)] {
            let mut words = row.words(plain);
            words[place] = too_large;
            assert_eq!(LogRow::of_words(words, plain), None);
        }
        assert_eq!(Shape::of_columns(["time_ms", "x", "bytes"]), None);
        assert_eq!(Shape::of_columns(["time_ms", "time_ms"]), None);
    }
}
