//! Licences of dependencies: only the permissive ones listed in `deny.toml`.
//!
//! cargo-deny checks the same lists, but is not used in continuous integration: it takes three and
//! a half minutes of CPU time to build, and its advisories need a database.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::Finding;

/// Licences that dependencies may have.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Licences {
    allowed: Vec<String>,
    /// Crate and licence.
    exceptions: Vec<(String, String)>,
}

impl Licences {
    /// Reads the section `[licenses]` of `deny.toml`.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let document = DeTable::parse(text).context("deny.toml")?;
        let section = document
            .get_ref()
            .get("licenses")
            .map(|value| value.get_ref());
        let Some(DeValue::Table(section)) = section else {
            bail!("deny.toml: no section [licenses]");
        };
        let mut licences = Self {
            allowed: texts(section.get("allow").map(|value| value.get_ref())),
            exceptions: Vec::new(),
        };
        if let Some(DeValue::Array(rows)) = section.get("exceptions").map(|row| row.get_ref()) {
            for row in rows.iter() {
                let DeValue::Table(row) = row.get_ref() else {
                    bail!("deny.toml: an exception is not a table");
                };
                let name = row.get("crate").and_then(|name| name.get_ref().as_str());
                let name = name.context("deny.toml: an exception without a crate")?;
                let allowed = texts(row.get("allow").map(|value| value.get_ref()));
                let pairs = allowed
                    .into_iter()
                    .map(|licence| (name.to_owned(), licence));
                licences.exceptions.extend(pairs);
            }
        }
        Ok(licences)
    }

    /// Finds third-party packages whose licence is not permitted or not stated.
    pub(crate) fn check(&self, metadata: &Value) -> Vec<Finding> {
        let packages = metadata["packages"].as_array().into_iter().flatten();
        // The workspace's own packages have no registry as their source.
        let foreign = packages.filter(|package| !package["source"].is_null());
        foreign
            .filter_map(|package| self.check_package(package))
            .collect()
    }

    fn check_package(&self, package: &Value) -> Option<Finding> {
        let name = package["name"].as_str().unwrap_or_default();
        let licence = package["license"].as_str().unwrap_or_default();
        let permitted = |licence: &str| {
            let excepted = |(of, what): &(String, String)| of == name && what == licence;
            self.allowed.iter().any(|allowed| allowed == licence)
                || self.exceptions.iter().any(excepted)
        };
        if satisfied(licence, &permitted) {
            return None;
        }
        let what = match licence {
            "" => format!("{name} states no licence"),
            licence => format!("{name} has the licence `{licence}`"),
        };
        let why =
            "not permitted by deny.toml: use another crate, or add an exception with a reason";
        Some(Finding::new("Cargo.lock", 1, what, why))
    }
}

/// Evaluates an SPDX expression; `/` is an older spelling of `OR`.
fn satisfied(expression: &str, permitted: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = &words[..];
    either(&mut rest, permitted) == Some(true) && rest.is_empty()
}

fn either(rest: &mut &[&str], permitted: &dyn Fn(&str) -> bool) -> Option<bool> {
    let mut value = both(rest, permitted)?;
    while rest.first() == Some(&"OR") {
        *rest = &rest[1..];
        value |= both(rest, permitted)?;
    }
    Some(value)
}

fn both(rest: &mut &[&str], permitted: &dyn Fn(&str) -> bool) -> Option<bool> {
    let mut value = one(rest, permitted)?;
    while rest.first() == Some(&"AND") {
        *rest = &rest[1..];
        value &= one(rest, permitted)?;
    }
    Some(value)
}

/// Parses and evaluates a licence, with its exception if any, or an expression in parentheses.
fn one(rest: &mut &[&str], permitted: &dyn Fn(&str) -> bool) -> Option<bool> {
    let (first, behind) = rest.split_first()?;
    *rest = behind;
    match (*first, &**rest) {
        ("(", _) => {
            let value = either(rest, permitted)?;
            *rest = rest.strip_prefix(&[")"])?;
            Some(value)
        }
        (")" | "AND" | "OR" | "WITH", _) => None,
        (licence, ["WITH", exception, behind @ ..]) => {
            *rest = behind;
            Some(permitted(&format!("{licence} WITH {exception}")))
        }
        (licence, _) => Some(permitted(licence)),
    }
}

fn texts(value: Option<&DeValue<'_>>) -> Vec<String> {
    let Some(DeValue::Array(values)) = value else {
        return Vec::new();
    };
    let texts = values.iter().filter_map(|value| value.get_ref().as_str());
    texts.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const DENY: &str = "[licenses]\nallow = [\"MIT\", \"Apache-2.0 WITH LLVM-exception\"]\n\
                        exceptions = [{ crate = \"f\", allow = [\"NCSA\"] }]\n";

    #[track_caller]
    fn check(name: &str, licence: &str, permitted: bool) {
        let licences = Licences::parse(DENY).unwrap();
        let package = json!({"name": name, "license": licence, "source": "registry+x"});
        let found = licences.check(&json!({"packages": [package]}));
        assert_eq!(found.is_empty(), permitted, "{name}: {licence}: {found:?}");
    }

    #[test]
    fn a_choice_needs_one_permitted_licence_and_a_conjunction_all() {
        check("a", "MIT", true);
        check("a", "MIT OR GPL-3.0-only", true);
        check("a", "GPL-2.0 / MIT", true);
        check("a", "MIT AND GPL-3.0-only", false);
        check("a", "(MIT OR GPL-3.0-only) AND MIT", true);
        check("a", "GPL-3.0-only OR MIT AND LGPL-3.0", false);
        check("a", "Apache-2.0 WITH LLVM-exception OR MPL-2.0", true);
        check("a", "Apache-2.0", false);
        check("a", "MIT WITH something", false);
    }

    #[test]
    fn an_exception_holds_for_its_crate_alone() {
        check("f", "(MIT OR Apache-2.0) AND NCSA", true);
        check("g", "(MIT OR Apache-2.0) AND NCSA", false);
    }

    #[test]
    fn what_is_missing_or_malformed_is_not_permitted() {
        for licence in ["", "(MIT", "MIT)", "OR", "MIT MIT", "MIT OR"] {
            check("a", licence, false);
        }
        assert!(Licences::parse("").is_err());
    }

    #[test]
    fn packages_of_the_workspace_need_none() {
        let licences = Licences::default();
        let own = json!({"packages": [{"name": "a", "license": "GPL-3.0", "source": null}]});
        assert_eq!(licences.check(&own), []);
    }
}
