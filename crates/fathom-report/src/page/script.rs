//! Script of a page, and its hash for the page's policy.

/// Script, in a file of its own: plain JavaScript, without a library.
pub(super) const SCRIPT: &str = include_str!("script.js");

/// SHA-256 of [`SCRIPT`], as a Content-Security-Policy names it; a test recomputes it.
pub(super) const HASH: &str = "sha256-YVa5bxo2GnjyLah1aqPE4NQLdBascgkAU/SMN/thu/U=";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::markup::base64;
    use sha2::{Digest, Sha256};

    #[test]
    fn the_policy_names_this_script() {
        let hash = base64(&Sha256::digest(SCRIPT.as_bytes()));
        assert_eq!(HASH, format!("sha256-{hash}"));
    }

    #[test]
    fn the_script_is_small_and_cannot_end_its_element() {
        assert!(SCRIPT.len() <= 20 * 1024, "{}", SCRIPT.len());
        for end in ["</script", "<!--", "<script"] {
            assert!(!SCRIPT.contains(end), "{end}");
        }
    }
}
