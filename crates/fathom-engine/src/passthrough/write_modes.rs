//! Commands of a job's writes (`write_mode`).

use fathom_core::{EngineOption, EngineValues, OptionWord, Taus88};
use fathom_nvme::Opcode;

/// fio's option, with Compare in addition.
pub(super) const WRITE_MODE: EngineOption = EngineOption::mix(
    "write_mode",
    &[
        word("write", "Write"),
        word("zeroes", "Write Zeroes, which transfers no data"),
        word("uncor", "Write Uncorrectable: later reads fail"),
        word(
            "verify",
            "Verify, which reads on the device and transfers nothing",
        ),
        word(
            "compare",
            "Compare, which fails if the device has other data (not in fio)",
        ),
        word(
            "zone_append",
            "Zone Append, of which a zone may have several in flight; needs `zonemode=zbd`",
        ),
    ],
    "Command of the job's writes, or several, drawn by their percentages",
    "write_mode=write/70:zeroes/30",
)
.default("write");

pub(super) const fn word(word: &'static str, help: &'static str) -> OptionWord {
    OptionWord { word, help }
}

/// Command of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteMode {
    Write,
    Zeroes,
    Uncorrectable,
    Verify,
    Compare,
    Append,
}

impl WriteMode {
    const ALL: [Self; 6] = [
        Self::Write,
        Self::Zeroes,
        Self::Uncorrectable,
        Self::Verify,
        Self::Compare,
        Self::Append,
    ];

    /// Returns the mode of a word of the option.
    fn named(word: &str) -> Self {
        match word {
            "zeroes" => Self::Zeroes,
            "uncor" => Self::Uncorrectable,
            "verify" => Self::Verify,
            "compare" => Self::Compare,
            "zone_append" => Self::Append,
            _ => Self::Write,
        }
    }

    pub(super) const fn opcode(self) -> Opcode {
        match self {
            Self::Write => Opcode::WRITE,
            Self::Zeroes => Opcode::WRITE_ZEROES,
            Self::Uncorrectable => Opcode::WRITE_UNCORRECTABLE,
            Self::Verify => Opcode::VERIFY,
            Self::Compare => Opcode::COMPARE,
            Self::Append => Opcode::ZONE_APPEND,
        }
    }

    /// Returns whether the command has data, to which the controller's MDTS applies.
    pub(super) const fn transfers_data(self) -> bool {
        matches!(self, Self::Write | Self::Compare | Self::Append)
    }

    /// Returns whether the command advances the write pointer of a zone.
    pub(super) const fn advances(self) -> bool {
        match self {
            Self::Write | Self::Zeroes | Self::Uncorrectable | Self::Append => true,
            Self::Verify | Self::Compare => false,
        }
    }
}

/// Commands of a job's writes, with their percentages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WriteModes {
    /// In the order of [`WriteMode::ALL`]; 100 in all.
    percents: [u8; WriteMode::ALL.len()],
}

impl WriteModes {
    /// Returns the modes that a job asks for.
    pub(super) fn resolve(values: &EngineValues) -> Self {
        let shares = values.shares(&WRITE_MODE);
        let percent = |mode: WriteMode| {
            let own = shares
                .iter()
                .find(|(word, _)| WriteMode::named(word) == mode);
            own.map_or(0, |(_, percent)| *percent)
        };
        match shares.is_empty() {
            true => Self::only(WriteMode::Write),
            false => Self {
                percents: WriteMode::ALL.map(percent),
            },
        }
    }

    /// Returns writes that are all of one mode.
    pub(super) fn only(mode: WriteMode) -> Self {
        let percent = |own| if own == mode { 100 } else { 0 };
        Self {
            percents: WriteMode::ALL.map(percent),
        }
    }

    /// Returns the modes that occur.
    pub(super) fn used(self) -> impl Iterator<Item = WriteMode> {
        let modes = WriteMode::ALL.into_iter().zip(self.percents);
        modes.filter_map(|(mode, percent)| (percent > 0).then_some(mode))
    }

    /// Returns whether a mode occurs.
    pub(super) fn include(self, mode: WriteMode) -> bool {
        self.used().any(|own| own == mode)
    }

    /// Returns the mode at a place of the whole, from 0 to 99.
    fn at(self, mut place: u64) -> WriteMode {
        for (mode, percent) in WriteMode::ALL.into_iter().zip(self.percents) {
            match place.checked_sub(percent.into()) {
                Some(rest) => place = rest,
                None => return mode,
            }
        }
        WriteMode::Write
    }
}

/// Returns whether all writes of a job are appended to zones.
pub(super) fn appends(values: &EngineValues) -> bool {
    WriteModes::resolve(values) == WriteModes::only(WriteMode::Append)
}

/// Commands of the writes of a job, one after the other.
#[derive(Clone, Debug)]
pub(super) enum WriteCommands {
    Uniform(Opcode),
    Drawn(Box<(WriteModes, Taus88)>),
}

impl WriteCommands {
    pub(super) fn new(modes: WriteModes) -> Self {
        let mut used = modes.used();
        match (used.next(), used.next()) {
            (Some(only), None) => Self::Uniform(only.opcode()),
            _ => Self::Drawn(Box::new((modes, Taus88::new(MODE_SEED)))),
        }
    }

    /// Returns the command of the next write.
    #[inline]
    pub(super) fn next(&mut self) -> Opcode {
        match self {
            Self::Uniform(opcode) => *opcode,
            Self::Drawn(own) => own.0.at(own.1.below(100)).opcode(),
        }
    }
}

/// Arbitrary, but fixed: the same writes are the same commands in every run.
const MODE_SEED: u64 = 0x7772_6974_6573;

#[cfg(test)]
mod tests {
    use fathom_core::OptionValue;

    use super::*;

    fn modes(value: OptionValue) -> WriteModes {
        let mut values = EngineValues::default();
        values.set(WRITE_MODE.name, value);
        WriteModes::resolve(&values)
    }

    #[test]
    fn modes_are_commands() {
        let default = WriteModes::resolve(&EngineValues::default());
        assert_eq!(default, WriteModes::only(WriteMode::Write));
        for (word, want) in [
            ("write", Opcode::WRITE),
            ("zeroes", Opcode::WRITE_ZEROES),
            ("uncor", Opcode::WRITE_UNCORRECTABLE),
            ("verify", Opcode::VERIFY),
            ("compare", Opcode::COMPARE),
            ("zone_append", Opcode::ZONE_APPEND),
        ] {
            let mut commands = WriteCommands::new(modes(OptionValue::Text(word.into())));
            assert!(matches!(commands, WriteCommands::Uniform(_)));
            assert_eq!(commands.next(), want);
        }
    }

    #[test]
    fn commands_are_drawn_by_their_percentages() {
        let shares = vec![("zeroes", 30), ("write", 60), ("uncor", 10), ("verify", 0)];
        let modes = modes(OptionValue::Shares(shares));
        let used: Vec<_> = modes.used().collect();
        let want = [
            (WriteMode::Write, 60),
            (WriteMode::Zeroes, 30),
            (WriteMode::Uncorrectable, 10),
        ];
        assert_eq!(used, want.map(|(mode, _)| mode));
        let mut commands = WriteCommands::new(modes);
        let drawn: Vec<_> = (0..100_000).map(|_| commands.next()).collect();
        for (mode, percent) in want {
            let count = drawn.iter().filter(|&&own| own == mode.opcode()).count();
            assert!(count.abs_diff(percent * 1000) < 1000, "{mode:?}: {count}");
        }
        // Not in turn: one that follows itself is as frequent as chance has it.
        let pairs = drawn.windows(2);
        let same = pairs.filter(|pair| pair[0] == pair[1]).count();
        assert!(same.abs_diff(46_000) < 1500, "{same}");
    }

    #[test]
    fn every_place_has_a_mode() {
        let shares = vec![("write", 99), ("compare", 1)];
        let modes = modes(OptionValue::Shares(shares));
        assert_eq!(modes.at(98), WriteMode::Write);
        assert_eq!(modes.at(99), WriteMode::Compare);
        assert_eq!(WriteModes::only(WriteMode::Verify).at(0), WriteMode::Verify);
        assert_eq!(
            WriteModes::only(WriteMode::Verify).at(99),
            WriteMode::Verify
        );
    }
}
