//! All options of fio, so that one that Fathom does not implement is refused by name, never
//! skipped. The names are in `known.tsv`, from the documentation of fio 3.42.

use std::collections::HashMap;
use std::sync::OnceLock;

/// An option of fio.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) name: &'static str,
    aliases: &'static str,
    engines: &'static str,
    /// From `A`, common, to `D`, special hardware.
    pub(crate) tier: &'static str,
}

impl Known {
    /// Returns its name and aliases.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        std::iter::once(self.name).chain(words(self.aliases))
    }

    /// Returns the engines or profiles that have it; none if all do.
    pub(crate) fn engines(&self) -> impl Iterator<Item = &'static str> + use<> {
        words(self.engines)
    }

    /// Returns whether it is independent of the engine.
    pub(crate) const fn is_general(&self) -> bool {
        self.engines.is_empty()
    }
}

/// Returns all entries, in fio's order.
pub(crate) fn all() -> &'static [Known] {
    static ALL: OnceLock<Vec<Known>> = OnceLock::new();
    ALL.get_or_init(|| TEXT.lines().filter_map(known).collect())
}

/// Returns the option with this name or alias.
pub(crate) fn find(name: &str) -> Option<&'static Known> {
    static INDEX: OnceLock<HashMap<&'static str, &'static Known>> = OnceLock::new();
    let index = INDEX.get_or_init(|| {
        let names = |known: &'static Known| known.names().map(move |name| (name, known));
        all().iter().flat_map(names).collect()
    });
    index.get(name).copied()
}

fn known(line: &'static str) -> Option<Known> {
    let mut fields = line.split('\t');
    let name = fields.next().filter(|name| !name.starts_with('#'))?;
    Some(Known {
        name,
        aliases: fields.next()?,
        engines: fields.next()?,
        tier: fields.next()?,
    })
}

fn words(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.split(',').filter(|word| !word.is_empty())
}

const TEXT: &str = include_str!("known.tsv");
