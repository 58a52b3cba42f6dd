//! Entry point of libFuzzer, which generates the inputs and owns `main`.

use std::path::PathBuf;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

use crate::target::Target;
use crate::watchdog::Watchdog;

static SESSION: OnceLock<(&'static Target, Watchdog)> = OnceLock::new();

fuzz_target!(
    init: { let _ = session(); },
    |input: &[u8]| {
        let (target, watchdog) = session();
        if let Err(breach) = target.try_with(input, watchdog) {
            // libFuzzer keeps the input of a panic.
            panic!("{}: {breach}", target.name);
        }
    }
);

/// Returns the target that the environment names, and its watchdog; writes the target's dictionary
/// the first time, which is before libFuzzer reads it.
fn session() -> &'static (&'static Target, Watchdog) {
    SESSION.get_or_init(|| {
        let name = std::env::var("FATHOM_FUZZ_TARGET").unwrap_or_default();
        let Some(target) = Target::named(&name) else {
            panic!("FATHOM_FUZZ_TARGET: no target `{name}`: start it with `cargo xtask fuzz`");
        };
        if let Some(path) = std::env::var_os("FATHOM_FUZZ_DICTIONARY").map(PathBuf::from)
            && let Err(error) = std::fs::write(&path, dictionary(target))
        {
            panic!("{}: {error}", path.display());
        }
        (target, Watchdog::start())
    })
}

/// Returns the target's words in libFuzzer's form: a quoted string per line, every byte escaped.
fn dictionary(target: &Target) -> String {
    // Even without words: libFuzzer refuses an empty file.
    let mut text = format!("# {}\n", target.name);
    for word in (target.words)() {
        let bytes = word.bytes().take(WORD_BYTES_MAX);
        let escaped: String = bytes.map(|byte| format!("\\x{byte:02x}")).collect();
        if !escaped.is_empty() {
            text.push_str(&format!("\"{escaped}\"\n"));
        }
    }
    text
}

/// Longest dictionary word that libFuzzer takes, bytes.
const WORD_BYTES_MAX: usize = 64;
