//! Every option that fio has, so that one that Fathom has not yet is refused by its name, and never
//! skipped. The names stand in `known.tsv`, after fio 3.42's option table.

use std::collections::HashMap;
use std::sync::OnceLock;

/// An option of fio's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) name: &'static str,
    aliases: &'static str,
    engines: &'static str,
    /// `A`: most job files use it … `D`: needs special hardware.
    pub(crate) tier: &'static str,
}

impl Known {
    /// Its name and aliases.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        std::iter::once(self.name).chain(words(self.aliases))
    }

    /// The engines (or profiles) that have it; none for all.
    pub(crate) fn engines(&self) -> impl Iterator<Item = &'static str> + use<> {
        words(self.engines)
    }

    /// Whether every job can have it.
    pub(crate) const fn is_general(&self) -> bool {
        self.engines.is_empty()
    }
}

/// All of them, in fio's order.
pub(crate) fn all() -> &'static [Known] {
    static ALL: OnceLock<Vec<Known>> = OnceLock::new();
    ALL.get_or_init(|| TEXT.lines().filter_map(known).collect())
}

/// The option of this name or alias.
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
