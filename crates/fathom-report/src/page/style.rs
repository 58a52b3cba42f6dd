//! Style sheet of a page, and its hash for the page's policy.

use super::shaded;
use crate::plot::style_sheet;

/// Returns the style sheet: that of the figures after that of the page.
pub(super) fn sheet() -> String {
    format!("{PAGE}{}{}", shaded::rules(), style_sheet())
}

/// SHA-256 of [`sheet`], as a Content-Security-Policy names it; a test recomputes it.
pub(super) const HASH: &str = "sha256-Fsq90XEvHJ8kN9JJpumMe8dyAyuud92ih3Jak7WBkoo=";

/// Rules of the page. Colours are those of the figures, so that they have no frame.
const PAGE: &str = "
:root{color-scheme:light dark;--paper:#fff;--ink:#1f2328;--line:#d8dee4;--mark:#fff4d6;
--focus:#0072b2}
@media screen and (prefers-color-scheme:dark){
:root{--paper:#0d1117;--ink:#e6edf3;--line:#30363d;--mark:#3a2d00;--focus:#4ba6e0}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:60rem;margin:0 auto;padding:1rem;overflow-wrap:anywhere}
h1{font-size:1.6rem;line-height:1.2}
h2{font-size:1.2rem;margin-top:2rem;border-bottom:1px solid var(--line)}
h3,h4,h5,h6{font-size:1rem}
.caveats{background:var(--mark);padding:.75rem 1rem .75rem 2rem;border:1px solid var(--line)}
.wide,pre{overflow-x:auto;max-width:100%}
.wide{margin:.5rem 0}
:focus-visible{outline:2px solid var(--focus)}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
caption{text-align:left;font-weight:600;padding:.5rem 0}
th,td{padding:.25rem .75rem .25rem 0;border-bottom:1px solid var(--line);text-align:right;
white-space:nowrap}
th{overflow-wrap:normal}
th:first-child{overflow-wrap:anywhere;
text-align:left;font-weight:400;min-width:8rem;max-width:24rem;white-space:normal}
thead th,thead th:first-child{font-weight:600;vertical-align:bottom;white-space:normal}
figure{margin:1rem 0}
figure svg{display:block;width:100%;min-width:46rem;height:auto}
figcaption,.reading{font-size:.875rem}
.reading{margin:.25rem 0;min-height:1.5em}
.controls{display:flex;flex-wrap:wrap;gap:.5rem}
.controls button{font:inherit;font-size:.875rem;max-width:100%;overflow-wrap:anywhere;
padding:.125rem .5rem;color:var(--ink);background:var(--paper);border:1px solid var(--ink);
border-radius:.25rem;cursor:pointer}
.controls button[aria-pressed=true]{box-shadow:inset 0 -3px var(--focus)}
.controls button[aria-pressed=false]{border-style:dashed}
.off{display:none}
.cursor{stroke:var(--ink);fill:none;stroke-width:1;pointer-events:none}
pre{font-size:.8rem;border:1px solid var(--line);padding:.5rem;white-space:pre-wrap}
summary{cursor:pointer;padding:.5rem 0}
@media print{:root{--paper:#fff;--ink:#000;--line:#999;--mark:#fff}
body{font-size:10pt}main{max-width:none;padding:0}
.controls,.reading{display:none}
.wide,pre{overflow:visible}
th,th:first-child,td{white-space:normal;overflow-wrap:anywhere;min-width:0;padding-right:.4rem}
figure svg{min-width:0;max-height:22cm}
details::details-content{content-visibility:visible}
figure,tr{break-inside:avoid}h1,h2,h3,caption{break-after:avoid}}
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::markup::base64;
    use sha2::{Digest, Sha256};

    #[test]
    fn the_policy_names_this_style_sheet() {
        let hash = base64(&Sha256::digest(sheet().as_bytes()));
        assert_eq!(HASH, format!("sha256-{hash}"));
    }
}
