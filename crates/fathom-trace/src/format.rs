//! Where the fields of a kernel event lie, from the `format` file that tracefs has for each event.

/// What one event's records look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    /// The event's number, with which each of its records begins.
    pub(crate) id: u16,
    fields: Vec<Field>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    name: String,
    offset: usize,
    bytes: usize,
}

/// A field's place in the records of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    offset: usize,
    bytes: usize,
}

impl Format {
    /// Reads a `format` file; `None` if it is none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?;
        Some(Self {
            id: id.trim().parse().ok()?,
            fields: text.lines().filter_map(Field::parse).collect(),
        })
    }

    /// The place of the field of this name.
    pub(crate) fn place(&self, name: &str) -> Option<Place> {
        let field = self.fields.iter().find(|field| field.name == name)?;
        Some(Place {
            offset: field.offset,
            bytes: field.bytes,
        })
    }
}

impl Field {
    /// `field:char rwbs[10]; offset:34; size:10; signed:0;`, with a tab for each blank behind a
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

impl Place {
    /// The number that a record has there; `None` if the record is too short or the field is none.
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

    /// How far behind the record's begin it lies.
    pub(crate) const fn offset(self) -> usize {
        self.offset
    }

    /// How many bytes it has.
    pub(crate) const fn length(self) -> usize {
        self.bytes
    }

    /// The bytes that a record has there.
    pub(crate) fn bytes(self, record: &[u8]) -> Option<&[u8]> {
        record.get(self.offset..self.offset.checked_add(self.bytes)?)
    }
}

/// Returns the number of the event that a record is of.
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
        // A line that is no field is none; pointers and arrays have their names.
        let text = "ID: 5\n\tfield:void * ctx;\toffset:8;\tsize:8;\tsigned:0;\n\
                    \tfield:x;\toffset:-1;\tsize:8;\n";
        let format = Format::parse(text).unwrap();
        assert!(format.place("ctx").is_some());
        assert_eq!(format.place("x"), None);
    }
}
