//! Description of errors by the system.

/// Returns the system's description of an errno.
#[must_use]
pub fn errno_text(errno: u32) -> String {
    let code = i32::try_from(errno).unwrap_or(i32::MAX);
    let text = std::io::Error::from_raw_os_error(code).to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}
