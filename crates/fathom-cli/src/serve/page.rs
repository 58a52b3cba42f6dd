//! The page: it asks for the figures and draws them.

use fathom_target::Reply;

/// Returns the page.
pub(super) fn page() -> Reply {
    let body = HTML.replace("{style}", STYLE).replace("{script}", SCRIPT);
    let policy = format!(
        "default-src 'none'; style-src '{STYLE_HASH}'; script-src '{SCRIPT_HASH}'; connect-src \
         'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    Reply::ok("text/html; charset=utf-8", &body).with("Content-Security-Policy", &policy)
}

const HTML: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// SHA-256 of style and script, as the policy names them; a test recomputes them.
const STYLE_HASH: &str = "sha256-qDBNt9TC93wh7cP5e8a+IadllcXu6tnzWCjzb2vWwrk=";
const SCRIPT_HASH: &str = "sha256-9ARakiElHAXmBUbyhnmAGK6vJv3ubAy7smhvKqLn+VA=";

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    fn hash(text: &str) -> String {
        let digest = Sha256::digest(text.as_bytes());
        let bits: Vec<u8> = (digest.iter())
            .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1))
            .collect();
        let sextets = bits.chunks(6).map(|bits| {
            let padded = bits.iter().chain(&[0; 6]).take(6);
            usize::from(padded.fold(0, |value, bit| value << 1 | bit))
        });
        let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let text: String = sextets.map(|value| char::from(digits[value])).collect();
        // 32 bytes leave one digit of padding.
        format!("sha256-{text}=")
    }

    #[test]
    fn the_policy_names_this_style_and_script() {
        assert_eq!(
            hash(""),
            "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
        );
        assert_eq!(hash(STYLE), STYLE_HASH);
        assert_eq!(hash(SCRIPT), SCRIPT_HASH);
    }

    #[test]
    fn the_script_is_small_and_does_not_parse_text_as_markup() {
        assert!(SCRIPT.len() <= 20 << 10, "{}", SCRIPT.len());
        for unsafe_way in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval",
        ] {
            assert!(!SCRIPT.contains(unsafe_way), "{unsafe_way}");
        }
        assert!(!HTML.contains("://"), "nothing from elsewhere");
    }
}
