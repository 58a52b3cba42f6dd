//! Field offsets of a kernel event, from its `format` file in tracefs.

/// Record layout of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    /// Event id, with which each of its records begins.
    pub(crate) id: u16,
    fields: Vec<Field>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    name: String,
    offset: usize,
    bytes: usize,
}

/// Byte range of a field in the records of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FieldRange {
    offset: usize,
    bytes: usize,
}

impl Format {
    /// Parses a `format` file; `None` if the text is something else.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?;
        Some(Self {
            id: id.trim().parse().ok()?,
            fields: text.lines().filter_map(Field::parse).collect(),
        })
    }

    /// Looks up a field by name.
    pub(crate) fn place(&self, name: &str) -> Option<FieldRange> {
        let field = self.fields.iter().find(|field| field.name == name)?;
        Some(FieldRange {
            offset: field.offset,
            bytes: field.bytes,
        })
    }
}

impl Field {
    /// Parses `field:char rwbs[10]; offset:34; size:10; signed:0;`, in which a tab follows each
    /// semicolon.
    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.trim_start().split(';').map(str::trim);
        let declared = parts.next()?.strip_prefix("field:")?;
        let name = declared.rsplit([' ', '\t', '*']).next()?;
        let (name, _length) = name.split_once('[').unwrap_or((name, ""));
        Some(Self {
            name: name.to_owned(),
            offset: parts.next()?.strip_prefix("offset:")?.parse().ok()?,
            bytes: parts.next()?.strip_prefix("size:")?.parse().ok()?,
        })
    }
}

impl FieldRange {
    /// Reads the field as an integer; `None` if the record is too short or the field is not one.
    pub(crate) fn number(self, record: &[u8]) -> Option<u64> {
        let bytes = self.bytes(record)?;
        Some(match bytes.len() {
            1 => bytes[0].into(),
            2 => u16::from_ne_bytes(bytes.try_into().ok()?).into(),
            4 => u32::from_ne_bytes(bytes.try_into().ok()?).into(),
            8 => u64::from_ne_bytes(bytes.try_into().ok()?),
            _ => return None,
        })
    }

    /// Returns the offset from the start of the record.
    pub(crate) const fn offset(self) -> usize {
        self.offset
    }

    /// Returns the length in bytes.
    pub(crate) const fn length(self) -> usize {
        self.bytes
    }

    /// Reads the field's bytes; `None` if the record is too short.
    pub(crate) fn bytes(self, record: &[u8]) -> Option<&[u8]> {
        record.get(self.offset..self.offset.checked_add(self.bytes)?)
    }
}

/// Returns the event id of a record.
pub(crate) fn event_id(record: &[u8]) -> Option<u16> {
    let bytes = record.get(..2)?;
    Some(u16::from_ne_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_name() {
        let format = Format::parse(include_str!("../tests/data/block_rq_issue")).unwrap();
        let mut record = [0_u8; 64];
        record[16..24].copy_from_slice(&7_u64.to_ne_bytes());
        record[24..28].copy_from_slice(&8_u32.to_ne_bytes());
        record[34..36].copy_from_slice(b"WS");
        let number = |name: &str| format.place(name)?.number(&record);
        assert_eq!(number("sector"), Some(7));
        assert_eq!(number("nr_sector"), Some(8));
        // Ten characters, and no number.
        assert_eq!(number("rwbs"), None);
        let rwbs = format.place("rwbs").unwrap();
        assert_eq!(rwbs.bytes(&record).unwrap(), b"WS\0\0\0\0\0\0\0\0");
        // Too short for it.
        assert_eq!(rwbs.bytes(&record[..40]), None);
        assert_eq!(format.place("nothing"), None);
    }

    #[test]
    fn what_is_no_format_is_refused() {
        for text in ["", "name: x\n", "ID: many\n", "ID: 70000\n"] {
            assert_eq!(Format::parse(text), None, "{text:?}");
        }
        // Malformed fields are skipped; pointers and arrays are found by their names.
        let text = "ID: 5\n\tfield:void * ctx;\toffset:8;\tsize:8;\tsigned:0;\n\
                    \tfield:x;\toffset:-1;\tsize:8;\n";
        let format = Format::parse(text).unwrap();
        assert!(format.place("ctx").is_some());
        assert_eq!(format.place("x"), None);
    }
}
