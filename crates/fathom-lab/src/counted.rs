//! Numbers with their nouns.

/// Formats a number of things, such as `1 repeat` or `3 repeats`.
pub(crate) fn counted(count: impl Into<u64>, one: &str) -> String {
    match count.into() {
        1 => format!("1 {one}"),
        count => format!("{count} {one}s"),
    }
}
