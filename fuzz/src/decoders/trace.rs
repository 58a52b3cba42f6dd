//! Pages of the kernel's trace ring, and tracefs's description of their layout.

use fathom_trace::recorded_requests;

use crate::target::Verdict;

/// Decodes an input as two pages of the kernel's layout, or, where it begins with text, as the
/// layout of a recorded page.
pub(crate) fn decode(input: &[u8]) -> Result<Verdict, String> {
    let requests = match input.strip_prefix(b"\tfield") {
        Some(_) => {
            let text = String::from_utf8_lossy(input);
            let (header, issue) = text.split_once("ID:").unwrap_or((&text, ""));
            let issue = format!("ID:{issue}");
            recorded_requests(header, &[("block_rq_issue", &issue)], &[PAGE])
        }
        None => {
            let (first, second) = input.split_at(input.len() / 2);
            recorded_requests(HEADER_PAGE, &FORMATS, &[first, second, input])
        }
    };
    Ok(match requests {
        Some(_) => Verdict::Accepted,
        None => Verdict::Refused("an unknown layout".to_owned()),
    })
}

const HEADER_PAGE: &str = include_str!("../../../crates/fathom-trace/tests/data/header_page");
const PAGE: &[u8] = include_bytes!("../../../crates/fathom-trace/tests/data/cpu0.page");

const FORMATS: [(&str, &str); 7] = [
    (
        "block_rq_insert",
        include_str!("../../../crates/fathom-trace/tests/data/block_rq_insert"),
    ),
    (
        "block_rq_issue",
        include_str!("../../../crates/fathom-trace/tests/data/block_rq_issue"),
    ),
    (
        "block_rq_requeue",
        include_str!("../../../crates/fathom-trace/tests/data/block_rq_requeue"),
    ),
    (
        "block_rq_complete",
        include_str!("../../../crates/fathom-trace/tests/data/block_rq_complete"),
    ),
    (
        "block_rq_merge",
        include_str!("../../../crates/fathom-trace/tests/data/block_rq_merge"),
    ),
    (
        "block_bio_backmerge",
        include_str!("../../../crates/fathom-trace/tests/data/block_bio_backmerge"),
    ),
    (
        "block_bio_frontmerge",
        include_str!("../../../crates/fathom-trace/tests/data/block_bio_frontmerge"),
    ),
];
