//! TOML files with single values changed, by dotted keys.

use toml::de::{DeTable, DeValue};

/// A value of a file under another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<'a> {
    /// Key with dots: `device.queue.policy`; `device.0.queue.policy` where there are several
    /// `[[device]]`.
    pub key: &'a str,
    /// Value as TOML: `"plain"`, with its quotes.
    pub literal: &'a str,
}

/// A file with its changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    /// Text, without the comments of the original.
    pub text: String,
    /// First line of the value of each change, from 1.
    pub lines: Vec<u32>,
}

/// Change that a file cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeError {
    /// Index of the change.
    pub change: usize,
    /// Description, with the reason.
    pub message: String,
    /// Remedy, in the imperative.
    pub hint: String,
}

/// Returns `text`, which is TOML, with these changes. A value that the file has is replaced; any
/// other is added, with the tables around it.
///
/// # Errors
/// A key that does not lead to one value.
///
/// # Panics
/// If `text` is not TOML.
pub fn changed(text: &str, changes: &[Change<'_>]) -> Result<ChangedFile, ChangeError> {
    let document = DeTable::parse(text).expect("the file was read before");
    let mut top = table(text, document.get_ref());
    for (index, change) in changes.iter().enumerate() {
        let path: Vec<&str> = change.key.split('.').map(str::trim).collect();
        let leaf = Leaf {
            literal: change.literal.to_owned(),
            change: Some(index),
        };
        set(&mut top, &path, 0, leaf).map_err(|(message, hint)| ChangeError {
            change: index,
            message,
            hint,
        })?;
    }
    let mut writer = Writer {
        text: String::with_capacity(text.len()),
        lines: vec![0; changes.len()],
    };
    writer.table(&top, "");
    Ok(ChangedFile {
        text: writer.text,
        lines: writer.lines,
    })
}

/// Table in the order in which it is written.
type Table = Vec<(String, Node)>;

enum Node {
    Leaf(Leaf),
    Table(Table),
    Tables(Vec<Table>),
}

struct Leaf {
    /// Value as TOML.
    literal: String,
    /// Index of the change that it comes from.
    change: Option<usize>,
}

fn table(text: &str, from: &DeTable<'_>) -> Table {
    let mut entries: Vec<_> = from.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let named = entries.into_iter().map(|(key, value)| {
        let node = match value.get_ref() {
            DeValue::Table(inner) => Node::Table(table(text, inner)),
            DeValue::Array(items)
                if !items.is_empty() && items.iter().all(|item| item.get_ref().is_table()) =>
            {
                let tables = items.iter().filter_map(|item| item.get_ref().as_table());
                Node::Tables(tables.map(|inner| table(text, inner)).collect())
            }
            _ => Node::Leaf(Leaf {
                literal: text.get(value.span()).unwrap_or_default().to_owned(),
                change: None,
            }),
        };
        (key.get_ref().clone().into_owned(), node)
    });
    named.collect()
}

/// Sets the value at `path`, of which the first `at` keys lead to `table`.
fn set(table: &mut Table, path: &[&str], at: usize, leaf: Leaf) -> Result<(), (String, String)> {
    let key = path[at];
    if key.is_empty() {
        let why = format!("`{}` has an empty key", path.join("."));
        return Err((why, "write it as in `device.queue.policy`".into()));
    }
    let is_last = at + 1 == path.len();
    let place = match table.iter().position(|(name, _)| name == key) {
        Some(place) => place,
        None if is_last => {
            table.push((key.to_owned(), Node::Leaf(leaf)));
            return Ok(());
        }
        None => {
            table.push((key.to_owned(), Node::Table(Table::new())));
            table.len() - 1
        }
    };
    let reached = || path[..=at].join(".");
    match &mut table[place].1 {
        Node::Leaf(old) if is_last => {
            *old = leaf;
            Ok(())
        }
        Node::Leaf(_) => Err((
            format!("`{}` is a value and has no keys", reached()),
            format!("write `{}` alone", reached()),
        )),
        Node::Table(_) | Node::Tables(_) if is_last => Err((
            format!("`{}` is a table, not a value", reached()),
            format!("name one of its keys, as in `{}.KEY`", reached()),
        )),
        Node::Table(inner) => set(inner, path, at + 1, leaf),
        Node::Tables(tables) => {
            let (index, next) = match path[at + 1].parse::<usize>() {
                Ok(index) => (index, at + 2),
                Err(_) if tables.len() == 1 => (0, at + 1),
                Err(_) => {
                    let why = format!("there are {} tables `{}`", tables.len(), reached());
                    return Err((why, format!("say which: `{}.0.…`", reached())));
                }
            };
            let count = tables.len();
            match tables.get_mut(index) {
                Some(inner) if next < path.len() => set(inner, path, next, leaf),
                Some(_) => Err((
                    format!("`{}` is a table, not a value", path.join(".")),
                    format!("name one of its keys, as in `{}.KEY`", path.join(".")),
                )),
                None => Err((
                    format!("there is no table `{}.{index}`", reached()),
                    format!("count from 0: the last is {}", count - 1),
                )),
            }
        }
    }
}

struct Writer {
    text: String,
    lines: Vec<u32>,
}

impl Writer {
    /// Writes values first: below the header of an inner table they would belong to that one.
    fn table(&mut self, table: &Table, path: &str) {
        for (key, node) in table {
            if let Node::Leaf(leaf) = node {
                if let Some(change) = leaf.change {
                    let lines = self.text.matches('\n').count() + 1;
                    self.lines[change] = u32::try_from(lines).unwrap_or(u32::MAX);
                }
                let key = quoted(key);
                self.text.push_str(&format!("{key} = {}\n", leaf.literal));
            }
        }
        for (key, node) in table {
            let key = quoted(key);
            let name = match path {
                "" => key,
                path => format!("{path}.{key}"),
            };
            match node {
                Node::Leaf(_) => {}
                Node::Table(inner) => {
                    self.text.push_str(&format!("\n[{name}]\n"));
                    self.table(inner, &name);
                }
                Node::Tables(tables) => {
                    for inner in tables {
                        self.text.push_str(&format!("\n[[{name}]]\n"));
                        self.table(inner, &name);
                    }
                }
            }
        }
    }
}

/// Returns a key as TOML: in quotes, unless it is bare.
fn quoted(key: &str) -> String {
    let bare = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    if !key.is_empty() && key.chars().all(bare) {
        return key.to_owned();
    }
    let mut text = String::from('"');
    for letter in key.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            letter if letter.is_control() => {
                text.push_str(&format!("\\u{:04X}", u32::from(letter)));
            }
            letter => text.push(letter),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "top = 1 # comment\n[[device]]\nnames = [\"*\"]\n[device.queue]\npolicy = \
                        \"plain\"\n[[device.layer]]\nkind = \"a b\"\n[host]\n";

    #[track_caller]
    fn check(text: &str, key: &str, literal: &str, want: Result<&str, &str>) {
        let got = changed(text, &[Change { key, literal }]);
        let line = got.as_ref().map(|file| {
            let line = file.text.lines().nth(file.lines[0] as usize - 1);
            line.unwrap_or_default().to_owned()
        });
        let got = got.as_ref().map(|_| line.as_deref().unwrap_or_default());
        assert_eq!(got.map_err(|error| error.message.as_str()), want);
    }

    #[test]
    fn values_are_replaced_and_added() {
        check(
            TEXT,
            "device.queue.policy",
            "\"fair\"",
            Ok("policy = \"fair\""),
        );
        check(TEXT, "device.0.queue.policy", "2", Ok("policy = 2"));
        check(TEXT, "device.queue.depth", "2", Ok("depth = 2"));
        check(TEXT, "device.hdd.cache.size", "2", Ok("size = 2"));
        check(TEXT, "device.layer.0.kind", "[1, 2]", Ok("kind = [1, 2]"));
        check(TEXT, "a \"b.c", "2", Ok("c = 2"));
    }

    #[test]
    fn keys_without_one_value_are_refused() {
        check(TEXT, "device", "1", Err("`device` is a table, not a value"));
        check(
            TEXT,
            "device.0",
            "1",
            Err("`device.0` is a table, not a value"),
        );
        check(TEXT, "device.1.a", "1", Err("there is no table `device.1`"));
        check(TEXT, "top.x", "1", Err("`top` is a value and has no keys"));
        check(TEXT, "device..x", "1", Err("`device..x` has an empty key"));
        check("[[d]]\n[[d]]\n", "d.x", "1", Err("there are 2 tables `d`"));
    }

    #[test]
    fn the_rest_stays_the_same() {
        let same = changed(TEXT, &[]).unwrap().text;
        let flat = |text: &str| format!("{:?}", without_places(DeTable::parse(text).unwrap()));
        assert_eq!(flat(&same), flat(TEXT));
        assert_eq!(changed(&same, &[]).unwrap().text, same);
    }

    fn without_places(document: toml::Spanned<DeTable<'_>>) -> Vec<String> {
        fn leaves(path: &str, value: &DeValue<'_>, out: &mut Vec<String>) {
            match value {
                DeValue::Table(table) => {
                    for (key, value) in table {
                        leaves(&format!("{path}.{}", key.get_ref()), value.get_ref(), out);
                    }
                }
                DeValue::Array(items) => {
                    for (at, item) in items.iter().enumerate() {
                        leaves(&format!("{path}.{at}"), item.get_ref(), out);
                    }
                }
                DeValue::Integer(number) => out.push(format!("{path}={number}")),
                value => out.push(format!("{path}={:?}", value.as_str())),
            }
        }
        let mut out = Vec::new();
        leaves("", &DeValue::Table(document.into_inner()), &mut out);
        out
    }
}
