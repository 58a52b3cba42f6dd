//! `[[subsystem]]` and its namespaces.

use std::collections::BTreeMap;
use std::ops::Range;

use fathom_toml::{Fields, Source};

use crate::devices::Device;
use crate::names::{check_nqn, default_nguid, default_serial, read_identifier};
use crate::plan::{AllowedHosts, DEFAULT_MODEL, NamespacePlan, SubsystemPlan};

/// Devices of a file, by name, and their users.
pub(crate) struct Shelf<'a> {
    pub(crate) devices: &'a BTreeMap<String, Option<Device>>,
    /// Users of each device taken so far: names of namespaces and of parts.
    pub(crate) users: BTreeMap<String, Vec<User>>,
}

/// User of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) what: String,
    /// Bytes of the device, if it uses a part.
    pub(crate) part: Option<Range<u64>>,
}

impl Shelf<'_> {
    /// Returns the device that `fields` name, if it is free as a whole.
    fn take(&mut self, fields: &Fields<'_>, what: &str) -> Option<Device> {
        let (name, span) = fields.text("device", false)?;
        let Some(device) = self.devices.get(name) else {
            let names: Vec<&str> = self.devices.keys().map(String::as_str).collect();
            let hint = match names.as_slice() {
                [] => "describe one: `[[device]]` with `name` and `kind`".to_owned(),
                names => format!("devices: {}", names.join(", ")),
            };
            fields.refuse_at(&span, format!("no device named `{name}`"), hint);
            return None;
        };
        let users = self.users.entry(name.to_owned()).or_default();
        if let Some(User { what: other, .. }) = users.first() {
            let why = format!("`{name}` is used by {other} already");
            let hint = "give each namespace a device; kind `split` makes several of one";
            fields.refuse_at(&span, why, hint);
        }
        users.push(User {
            what: what.to_owned(),
            part: None,
        });
        device.clone()
    }
}

/// Reads all subsystems.
pub(crate) fn read(
    source: &Source<'_>,
    top: &Fields<'_>,
    shelf: &mut Shelf<'_>,
) -> Vec<SubsystemPlan> {
    let tables = top.tables("subsystem");
    if tables.is_empty() && !top.has("subsystem") {
        let hint = "describe one: `[[subsystem]]` with `nqn` and `[[subsystem.namespace]]`";
        top.refuse("subsystem", "the target has no subsystem", hint);
    }
    let mut seen = Seen::default();
    let subsystems = tables.into_iter();
    subsystems
        .filter_map(|fields| subsystem(source, &fields, shelf, &mut seen))
        .collect()
}

/// Names and identifiers that are unique in a target.
#[derive(Default)]
struct Seen {
    nqns: Vec<String>,
    serials: Vec<String>,
    nguids: Vec<[u8; 16]>,
}

fn subsystem(
    source: &Source<'_>,
    fields: &Fields<'_>,
    shelf: &mut Shelf<'_>,
    seen: &mut Seen,
) -> Option<SubsystemPlan> {
    let nqn = nqn(fields, seen);
    let name = nqn.clone().unwrap_or_default();
    let serial = printable(fields, "serial", SERIAL_BYTES).unwrap_or_else(|| default_serial(&name));
    if nqn.is_some() && seen.serials.contains(&serial) {
        let why = "another subsystem has this serial number";
        fields.refuse(
            "serial",
            why,
            "give each its own: hosts tell subsystems apart by it",
        );
    }
    seen.serials.push(serial.clone());
    let model = printable(fields, "model", MODEL_BYTES);
    let hosts = hosts(fields);
    let tables = fields.tables("namespace");
    if tables.is_empty() && !fields.has("namespace") {
        let hint = "describe one: `[[subsystem.namespace]]` with `device`";
        fields.refuse("namespace", "the subsystem has no namespace", hint);
    }
    let mut namespaces: Vec<NamespacePlan> = Vec::new();
    for table in tables {
        let found = namespace(&table, &name, shelf, seen, &namespaces);
        table.finish();
        namespaces.extend(found);
    }
    namespaces.sort_by_key(|namespace| namespace.nsid);
    fields.finish();
    Some(SubsystemPlan {
        nqn: nqn?,
        serial,
        model: model.unwrap_or_else(|| DEFAULT_MODEL.to_owned()),
        hosts,
        namespaces,
        origin: source.origin(&fields.span()),
    })
}

fn nqn(fields: &Fields<'_>, seen: &mut Seen) -> Option<String> {
    let (nqn, span) = fields.text("nqn", false)?;
    if let Err(why) = check_nqn(nqn) {
        fields.refuse_at(&span, format!("`{nqn}` is not an NQN: {why}"), NQN_HINT);
        return None;
    }
    if seen.nqns.iter().any(|other| other == nqn) {
        let hint = "put its namespaces into one subsystem, or choose another name";
        fields.refuse_at(&span, "another subsystem has this NQN", hint);
    }
    seen.nqns.push(nqn.to_owned());
    Some(nqn.to_owned())
}

fn hosts(fields: &Fields<'_>) -> AllowedHosts {
    let any = fields.flag("allow_any_host", false);
    let wanted = "an NQN of a host";
    let listed = fields.list("allowed_hosts", true, wanted, |text| Some(text.to_owned()));
    for (host, span) in listed.iter().flatten() {
        if let Err(why) = check_nqn(host) {
            fields.refuse_at(span, format!("`{host}` is not an NQN: {why}"), HOST_HINT);
        }
    }
    match listed {
        Some(_) if any => {
            let why = "`allow_any_host` beside `allowed_hosts`: the list would mean nothing";
            fields.refuse("allow_any_host", why, "remove one of them");
            AllowedHosts::Any
        }
        Some(listed) => AllowedHosts::Listed(listed.into_iter().map(|(host, _)| host).collect()),
        None if any => AllowedHosts::Any,
        None => AllowedHosts::Local,
    }
}

fn namespace(
    fields: &Fields<'_>,
    nqn: &str,
    shelf: &mut Shelf<'_>,
    seen: &mut Seen,
    others: &[NamespacePlan],
) -> Option<NamespacePlan> {
    let next = others.iter().map(|other| other.nsid).max().unwrap_or(0) + 1;
    let nsid = fields.count("nsid", 1..=NSID_MAX, Some(next.min(NSID_MAX)));
    if others.iter().any(|other| other.nsid == nsid) {
        let why = format!("another namespace of the subsystem has the identifier {nsid}");
        fields.refuse("nsid", why, "give each its own, or leave `nsid` out");
    }
    let wanted = "32 hexadecimal digits, not all 0";
    let given = fields.parsed("nguid", true, wanted, read_identifier);
    let uuid = fields.parsed("uuid", true, wanted, read_identifier);
    if given.is_some() && uuid.is_some() {
        let why = "`uuid` beside `nguid`: a namespace has one of them";
        fields.refuse("uuid", why, "remove one of them");
    }
    let nguid = given.or(uuid).unwrap_or_else(|| default_nguid(nqn, nsid));
    if seen.nguids.contains(&nguid) && (given.is_some() || uuid.is_some()) {
        let key = if given.is_some() { "nguid" } else { "uuid" };
        let hint = "give each its own: hosts refuse namespaces with the same identifier";
        fields.refuse(key, "another namespace has this identifier", hint);
    }
    seen.nguids.push(nguid);
    let device = shelf.take(fields, &format!("namespace {nsid} of `{nqn}`"))?;
    Some(NamespacePlan {
        nsid,
        nguid,
        device,
    })
}

/// Reads text for a field of an Identify page.
fn printable(fields: &Fields<'_>, key: &'static str, bytes_max: usize) -> Option<String> {
    let wanted = format!("1 to {bytes_max} printable ASCII characters");
    fields.parsed(key, true, &wanted, |text| {
        let is_printable = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        let fits = (1..=bytes_max).contains(&text.len()) && text.trim() == text;
        (is_printable && fits).then(|| text.to_owned())
    })
}

const SERIAL_BYTES: usize = 20;
const MODEL_BYTES: usize = 40;
/// Hosts walk through them: more would take long, and Linux refuses none below.
const NSID_MAX: u32 = 1024;
const NQN_HINT: &str = "write one such as `nqn.2026-01.org.example:disk`";
const HOST_HINT: &str = "copy it from /etc/nvme/hostnqn of the host";
