//! I/O priorities of the kernel, as in `ioprio_set(2)` and in ops.

/// I/O priority: class 0 (none), 1 (real time), 2 (best effort) or 3 (idle), and a level in it.
///
/// ```text
/// bit 15   13 12          3 2     0
///     | class |    hint    | level |
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct IoPriority {
    /// Class, 0–7; the kernel defines 0–3.
    pub class: u8,
    /// Level, 0–7; 0 is the most urgent.
    pub level: u8,
    /// Hint for the device, 0–1023; 0: none.
    pub hint: u16,
}

impl IoPriority {
    /// Returns the kernel's encoding; excess bits are dropped.
    #[must_use]
    pub const fn to_raw(self) -> u16 {
        (self.class as u16 & 7) << CLASS_SHIFT
            | (self.hint & HINT_MASK) << HINT_SHIFT
            | (self.level as u16 & 7)
    }

    /// Decodes the kernel's encoding.
    #[must_use]
    pub const fn from_raw(raw: u16) -> Self {
        Self {
            class: (raw >> CLASS_SHIFT) as u8,
            level: (raw & 7) as u8,
            hint: (raw >> HINT_SHIFT) & HINT_MASK,
        }
    }
}

/// `IOPRIO_CLASS_SHIFT`, `IOPRIO_HINT_SHIFT` and `IOPRIO_HINT_MASK` of <linux/ioprio.h>.
const CLASS_SHIFT: u16 = 13;
const HINT_SHIFT: u16 = 3;
const HINT_MASK: u16 = 0x3ff;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(class: u8, level: u8, hint: u16, raw: u16) {
        let priority = IoPriority { class, level, hint };
        assert_eq!(priority.to_raw(), raw);
        assert_eq!(IoPriority::from_raw(raw), priority);
    }

    #[test]
    fn each_part_has_its_bits() {
        check(0, 0, 0, 0);
        check(1, 0, 0, 0x2000);
        check(2, 4, 0, 0x4004);
        check(3, 7, 0, 0x6007);
        check(1, 0, 1, 0x2008);
        check(0, 0, 1023, 0x1ff8);
        check(7, 7, 1023, 0xffff);
    }
}
