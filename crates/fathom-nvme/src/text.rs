//! Text in fixed fields: ASCII padded by blanks, and names ended by a zero.

/// Stores text, cut to the field and padded by blanks.
pub(crate) fn put_padded(field: &mut [u8], text: &str) {
    field.fill(b' ');
    put_start(field, text);
}

/// Stores a name, cut to leave room for a final zero.
pub(crate) fn put_terminated(field: &mut [u8], text: &str) {
    field.fill(0);
    if let Some((_, start)) = field.split_last_mut() {
        put_start(start, text);
    }
}

/// Returns the text of a field of either kind. Other than printable ASCII becomes `?`: the text is
/// a peer's, and may reach a terminal.
pub(crate) fn text_of(field: &[u8]) -> String {
    let end = field.iter().position(|&byte| byte == 0);
    let text = &field[..end.unwrap_or(field.len())];
    let printable = |&byte: &u8| match byte {
        b' '..=b'~' => char::from(byte),
        _ => '?',
    };
    let text: String = text.iter().map(printable).collect();
    text.trim_end().to_owned()
}

fn put_start(field: &mut [u8], text: &str) {
    for (place, byte) in field.iter_mut().zip(text.bytes()) {
        *place = byte;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_to_its_field() {
        let mut field = [1; 4];
        put_padded(&mut field, "ab");
        assert_eq!(&field, b"ab  ");
        assert_eq!(text_of(&field), "ab");
        put_terminated(&mut field, "abcdef");
        assert_eq!(&field, b"abc\0");
        assert_eq!(text_of(b"a\x1b[2J\0x"), "a?[2J");
    }
}
