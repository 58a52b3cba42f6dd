//! Context of reading a lab file: its folder, the values of `ask`, and the problems found.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::collections::HashMap;
use std::ops::Range;

use fathom_job::{Environment, Reference};
use fathom_toml::{Source, TomlProblemKind, Value};

/// Context of reading a lab file.
pub(super) struct Reader<'a> {
    pub(super) source: &'a Source<'a>,
    /// Lab file, as it was named.
    pub(super) file: &'a str,
    pub(super) environment: &'a dyn Environment,
    /// Values of `ask`.
    pub(super) arguments: &'a [(String, String)],
    incomplete: Cell<bool>,
    /// Names of options by their aliases.
    aliases: OnceCell<HashMap<&'static str, &'static str>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        source: &'a Source<'a>,
        file: &'a str,
        environment: &'a dyn Environment,
        arguments: &'a [(String, String)],
    ) -> Self {
        Self {
            source,
            file,
            environment,
            arguments,
            incomplete: Cell::new(false),
            aliases: OnceCell::new(),
        }
    }

    /// Notes that the text at `span` makes no sense.
    pub(super) fn refuse(
        &self,
        span: &Range<usize>,
        why: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.source
            .problem(span, TomlProblemKind::MakesNoSense, why, hint);
    }

    /// Returns whether nothing was refused so far.
    pub(super) fn is_sound(&self) -> bool {
        self.source.is_sound()
    }

    /// Notes that a value or a file is missing, without which the runs cannot be tried.
    pub(super) fn set_incomplete(&self) {
        self.incomplete.set(true);
    }

    /// Returns whether a value or a file is missing.
    pub(super) fn is_incomplete(&self) -> bool {
        self.incomplete.get()
    }

    /// Returns the name of an option: of `blocksize` it is `bs`.
    pub(super) fn option<'b>(&self, name: &'b str) -> &'b str {
        let aliases = self.aliases.get_or_init(|| {
            let reference = Reference::new(self.environment.engines());
            let options = reference.options();
            let named = options.flat_map(|option| {
                let aliases = option.names.iter().skip(1);
                aliases.map(|alias| (*alias, option.names[0]))
            });
            named.collect()
        });
        aliases.get(name).copied().unwrap_or(name)
    }

    /// Returns the path of a file that the lab file names, which is relative to its folder.
    pub(super) fn path(&self, path: &str) -> String {
        match self.file.rsplit_once('/') {
            Some((folder, _)) if !path.starts_with('/') => format!("{folder}/{path}"),
            _ => path.to_owned(),
        }
    }

    /// Reads the text of a file that the lab file names at `span`, and that its runs need.
    pub(super) fn read(&self, path: &str, span: &Range<usize>) -> Option<String> {
        let text = self.read_aside(path, span);
        if text.is_none() {
            self.set_incomplete();
        }
        text
    }

    /// Reads the text of a file that the lab file names at `span`; the runs can be tried without
    /// it.
    pub(super) fn read_aside(&self, path: &str, span: &Range<usize>) -> Option<String> {
        let problem = match self.environment.read_file(path).map(String::from_utf8) {
            Ok(Ok(text)) => return Some(text),
            Ok(Err(_)) => format!("cannot read {path}: it is not UTF-8 text"),
            Err(error) => format!("cannot read {path}: {error}"),
        };
        self.refuse(span, problem, "name it relative to the lab file");
        None
    }

    /// Returns a text, number or boolean with the values of `ask` in it; notes anything else.
    pub(super) fn scalar(&self, value: &Value<'_>, name: &str) -> Option<String> {
        let scalar = value.scalar();
        if scalar.is_none() {
            let why = format!("`{name}` must be a text, a number, `true` or `false`");
            self.refuse(&value.span(), why, "write one value");
        }
        self.substituted(&scalar?, &value.span())
    }

    /// Replaces each `${NAME}` by its value of `ask`.
    pub(super) fn substituted(&self, text: &str, span: &Range<usize>) -> Option<String> {
        if let Some(control) = text.chars().find(|letter| letter.is_control()) {
            let why = format!("a value contains the control character {control:?}");
            self.refuse(span, why, "remove it");
            return None;
        }
        Some(self.with_arguments(text, |value| value.into()))
    }

    /// Replaces each `${NAME}` by its value of `ask`, in a text that may have any character and
    /// has values as `written` returns them.
    pub(super) fn with_arguments(&self, text: &str, written: fn(&str) -> Cow<'_, str>) -> String {
        let mut text = text.to_owned();
        for (name, value) in self.arguments {
            text = text.replace(&format!("${{{name}}}"), &written(value));
        }
        text
    }
}
