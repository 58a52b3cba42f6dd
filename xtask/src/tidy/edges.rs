//! Permitted dependencies between crates: downwards only.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value;

use super::Finding;

/// Finds dependencies between the workspace's crates that the table does not permit.
pub(crate) fn check(metadata: &Value) -> Vec<Finding> {
    let packages = metadata["packages"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let names: Vec<&str> = packages
        .iter()
        .filter_map(|package| package["name"].as_str())
        .collect();
    packages
        .iter()
        .flat_map(|package| check_package(package, &names))
        .collect()
}

/// Finds chains of dependencies to crates that must not be reached; tests are exempt.
pub(crate) fn check_reach(metadata: &Value) -> Vec<Finding> {
    let graph = graph(metadata);
    let mut findings = Vec::new();
    for (from, to, why) in UNREACHABLE {
        if let Some(chain) = chain(&graph, from, to) {
            let path = format!("crates/{from}/Cargo.toml");
            findings.push(Finding::new(&path, 1, chain.join(" → "), why));
        }
    }
    findings
}

/// Maps each crate to its dependencies, without those of tests, from `resolve` of the metadata.
fn graph(metadata: &Value) -> BTreeMap<&str, Vec<&str>> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let names: BTreeMap<&str, &str> = packages
        .filter_map(|package| Some((package["id"].as_str()?, package["name"].as_str()?)))
        .collect();
    let nodes = metadata["resolve"]["nodes"]
        .as_array()
        .into_iter()
        .flatten();
    let edges = nodes.filter_map(|node| {
        let linked = |dependency: &&Value| {
            let mut kinds = dependency["dep_kinds"].as_array().into_iter().flatten();
            kinds.any(|kind| kind["kind"].as_str() != Some("dev"))
        };
        let dependencies = node["deps"].as_array().into_iter().flatten().filter(linked);
        let below = dependencies.filter_map(|one| names.get(one["pkg"].as_str()?).copied());
        Some((*names.get(node["id"].as_str()?)?, below.collect()))
    });
    edges.collect()
}

/// Returns the shortest chain of dependencies from one crate to another.
fn chain<'a>(
    graph: &BTreeMap<&'a str, Vec<&'a str>>,
    from: &str,
    to: &str,
) -> Option<Vec<&'a str>> {
    let (start, _) = graph.get_key_value(from)?;
    let mut chains = VecDeque::from([vec![*start]]);
    let mut seen = BTreeSet::from([*start]);
    while let Some(chain) = chains.pop_front() {
        let last = *chain.last()?;
        if last == to {
            return Some(chain);
        }
        for &next in graph.get(last).into_iter().flatten() {
            if seen.insert(next) {
                let mut longer = chain.clone();
                longer.push(next);
                chains.push_back(longer);
            }
        }
    }
    None
}

fn check_package(package: &Value, workspace: &[&str]) -> Vec<Finding> {
    let name = package["name"].as_str().unwrap_or_default();
    let path = format!("crates/{name}/Cargo.toml");
    if name == "xtask" {
        return Vec::new();
    }
    let Some((_, below)) = ALLOWED.iter().find(|(from, _)| *from == name) else {
        let why = "give it a row in xtask/src/tidy/edges.rs and in docs/ARCHITECTURE.md";
        return vec![Finding::new(
            &path,
            1,
            format!("crate {name} has no row of edges"),
            why,
        )];
    };
    let mut findings = Vec::new();
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        let to = dependency["name"].as_str().unwrap_or_default();
        let for_tests = dependency["kind"].as_str() == Some("dev");
        // A crate's own tests may enable its features.
        let excepted = for_tests && (to == name || TEST_EDGES.contains(&(name, to)));
        if workspace.contains(&to) && !allows(below, to) && !excepted {
            findings.push(Finding::new(
                &path,
                1,
                format!("{name} → {to}"),
                "not an edge of the table in xtask/src/tidy/edges.rs: a crate exists because it \
                 may depend on what others may not",
            ));
        }
    }
    findings
}

fn allows(below: &[&str], to: &str) -> bool {
    below == ["*"]
        || to
            .strip_prefix("fathom-")
            .is_some_and(|short| below.contains(&short))
}

/// Each crate with its permitted dependencies, without `fathom-`; `*` permits all.
const ALLOWED: [(&str, &[&str]); 33] = [
    ("fathom-core", &[]),
    ("fathom-checksum", &[]),
    ("fathom-conformance", &["core"]),
    ("fathom-stats", &["core"]),
    ("fathom-job", &["core", "checksum"]),
    ("fathom-workload", &["core", "checksum", "stats"]),
    ("fathom-block", &["core"]),
    ("fathom-nvme", &["core"]),
    ("fathom-nbd", &["core"]),
    ("fathom-iolog", &["core"]),
    ("fathom-toml", &["core", "block", "job"]),
    ("fathom-record", &["core", "stats"]),
    ("fathom-hosts", &["core", "stats", "record"]),
    ("fathom-mpi", &["core", "stats", "record", "hosts"]),
    ("fathom-report", &["record", "core", "stats"]),
    ("fathom-sys", &["core"]),
    ("fathom-host", &["core", "sys", "record"]),
    (
        "fathom-trace",
        &["core", "stats", "sys", "host", "block", "record"],
    ),
    ("fathom-engine", &["sys", "core", "stats", "block", "nvme"]),
    ("fathom-engine-example", &["engine", "sys", "core"]),
    (
        "fathom-peak",
        &["core", "stats", "sys", "host", "engine", "record"],
    ),
    // `engine`: an engine of another crate joins by its registry.
    ("fathom-http", &["sys", "core", "engine"]),
    (
        "fathom-net",
        &["sys", "core", "nvme", "nbd", "block", "engine"],
    ),
    ("fathom-sim", &["core", "stats", "workload", "block"]),
    (
        "fathom-setup",
        &[
            "core", "stats", "job", "workload", "iolog", "record", "host",
        ],
    ),
    (
        "fathom-log",
        &[
            "core", "stats", "job", "workload", "record", "sys", "host", "setup",
        ],
    ),
    (
        "fathom-virtual",
        &[
            "core", "stats", "job", "workload", "block", "record", "host", "setup", "log", "sim",
            "toml",
        ],
    ),
    (
        "fathom-lint",
        &["core", "job", "workload", "record", "host", "setup"],
    ),
    (
        "fathom-run",
        &[
            "job", "workload", "record", "stats", "core", "engine", "net", "sim", "sys", "block",
            "host", "hosts", "setup", "log", "trace",
        ],
    ),
    (
        "fathom-target",
        &[
            "core", "job", "toml", "sys", "host", "block", "engine", "sim", "nvme", "net",
            "record", "report",
        ],
    ),
    (
        "fathom-lab",
        &[
            "run", "virtual", "record", "report", "core", "block", "sim", "stats", "sys",
            "workload", "job", "toml",
        ],
    ),
    ("fathom-cli", &["*"]),
    ("fathom-fuzz", &["*"]),
];

/// Forbidden chains: from, to, and the reason.
const UNREACHABLE: [(&str, &str, &str); 2] = [
    (
        "fathom-virtual",
        "fathom-engine",
        "virtual time runs on models alone: it links no engine",
    ),
    (
        "fathom-cli",
        "fathom-engine-example",
        "the example engine is for its test and for readers: no program links it",
    ),
];

/// Additional dependencies permitted to tests.
const TEST_EDGES: [(&str, &str); 17] = [
    // Every engine is held to the contract.
    ("fathom-engine", "fathom-conformance"),
    ("fathom-net", "fathom-conformance"),
    ("fathom-http", "fathom-conformance"),
    // The engine of another crate is tested from a job file to the record.
    ("fathom-engine-example", "fathom-job"),
    ("fathom-engine-example", "fathom-record"),
    ("fathom-engine-example", "fathom-run"),
    ("fathom-engine-example", "fathom-setup"),
    // The language and its translation are tested with the engines that the program brings along.
    ("fathom-job", "fathom-engine"),
    ("fathom-job", "fathom-net"),
    ("fathom-job", "fathom-http"),
    ("fathom-setup", "fathom-engine"),
    ("fathom-virtual", "fathom-engine"),
    ("fathom-lint", "fathom-engine"),
    ("fathom-lab", "fathom-engine"),
    ("fathom-lab", "fathom-net"),
    // What a run leaves behind is tested through what a user reads.
    ("fathom-run", "fathom-report"),
    ("fathom-virtual", "fathom-report"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check_edge(from: &str, to: &str, kind: Option<&str>, allowed: bool) {
        let metadata = json!({"packages": [
            {"name": from, "dependencies": [{"name": to, "kind": kind}]},
            {"name": to, "dependencies": []},
        ]});
        let found: Vec<_> = check(&metadata)
            .into_iter()
            .filter(|finding| finding.what.contains('→'))
            .collect();
        assert_eq!(found.is_empty(), allowed, "{from} → {to}: {found:?}");
    }

    #[test]
    fn arrows_point_down_only() {
        check_edge("fathom-stats", "fathom-core", None, true);
        check_edge("fathom-core", "fathom-stats", None, false);
        check_edge("fathom-workload", "fathom-job", None, false);
        check_edge("fathom-engine", "fathom-workload", None, false);
        check_edge("fathom-run", "fathom-report", None, false);
        check_edge("fathom-run", "fathom-report", Some("dev"), true);
        check_edge("fathom-cli", "fathom-report", None, true);
    }

    #[test]
    fn other_peoples_crates_are_not_our_edges() {
        let metadata = json!({"packages": [
            {"name": "fathom-core", "dependencies": [{"name": "libm", "kind": null}]},
        ]});
        assert_eq!(check(&metadata), []);
    }

    #[test]
    fn a_chain_is_found_through_other_crates_but_not_through_tests() {
        let chain_over = |kind: Option<&str>| {
            let package = |name: &str| json!({"id": name, "name": name});
            let to = |name: &str| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
            let metadata = json!({
                "packages": [package("fathom-virtual"), package("b"), package("fathom-engine")],
                "resolve": {"nodes": [
                    {"id": "fathom-virtual", "deps": [to("b")]},
                    {"id": "b", "deps": [to("fathom-engine")]},
                    {"id": "fathom-engine", "deps": []},
                ]},
            });
            let found = check_reach(&metadata);
            found.first().map(|finding| finding.what.clone())
        };
        let chain = chain_over(None);
        assert_eq!(chain.as_deref(), Some("fathom-virtual → b → fathom-engine"));
        assert!(chain_over(Some("build")).is_some());
        assert_eq!(chain_over(Some("dev")), None);
    }

    #[test]
    fn a_crate_without_a_row_is_found() {
        let metadata = json!({"packages": [{"name": "fathom-extra", "dependencies": []}]});
        assert_eq!(check(&metadata).len(), 1);
    }

    fn short(name: &'static str) -> &'static str {
        name.strip_prefix("fathom-").unwrap_or(name)
    }

    /// Returns all crates below `from`, by their short names; with repetitions.
    fn reached(from: &str) -> Vec<&'static str> {
        let row = |name: &str| ALLOWED.iter().find(|(known, _)| short(known) == name);
        let below = |name| row(name).map_or(&[][..], |(_, below)| *below);
        let mut reached: Vec<&str> = below(from).to_vec();
        let mut next = 0;
        while next < reached.len() {
            reached.extend(below(reached[next]));
            next += 1;
            assert!(next < 10_000, "a circle below {from}");
        }
        reached
    }

    #[test]
    fn the_table_has_no_circle() {
        for (from, _) in ALLOWED {
            assert!(!reached(short(from)).contains(&short(from)), "{from}");
        }
    }

    #[test]
    fn virtual_time_reaches_no_engine() {
        let reached = reached("virtual");
        assert!(reached.contains(&"sim"), "{reached:?}");
        for engine in ["engine", "net", "run", "peak"] {
            assert!(!reached.contains(&engine), "{engine}");
        }
    }
}
