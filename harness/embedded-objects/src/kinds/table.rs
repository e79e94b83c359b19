//! Parses the table of kinds.

use std::sync::LazyLock;

use super::kind::{Kind, NameForm, Subresource, dotted};

/// Every served kind, in discovery's order.
pub static ALL: LazyLock<Vec<Kind>> = LazyLock::new(|| parse(include_str!("kinds.txt")));

const STANDARD: &str = "create,delete,deletecollection,get,list,patch,update,watch";
const CHANGE: &str = "get,patch,update";

/// Parses the whole table.
///
/// # Panics
/// When the table is invalid. It is part of the program, and the tests parse it.
fn parse(text: &'static str) -> Vec<Kind> {
    text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).map(kind).collect()
}

fn kind(line: &'static str) -> Kind {
    let mut words = line.split(' ');
    let mut next = || words.next().expect("a line has apiVersion, kind, plural, singular and type");
    let (group, version) = group_and_version(next());
    let (name, plural, singular, type_name) = (next(), next(), next(), next());
    let mut kind = Kind {
        group,
        version,
        kind: name,
        list_kind: format!("{name}List"),
        plural,
        singular,
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: false,
        verbs: list(STANDARD),
        subresources: Vec::new(),
        storage_hash: "",
        name_form: NameForm::Subdomain,
        returns_deleted: false,
        unconditional_update: true,
        create_on_update: false,
        type_name,
        // Events of both groups are in one collection.
        collection: if name == "Event" { plural.to_owned() } else { dotted(plural, group) },
        custom: None,
    };
    for flag in words {
        if let Some(sub) = flag.strip_prefix('/') {
            kind.subresources.push(subresource(sub, name));
            continue;
        }
        match flag.split_once('=').unwrap_or((flag, "")) {
            ("namespaced", _) => kind.namespaced = true,
            ("short", names) => kind.short_names = list(names),
            ("category", names) => kind.categories = list(names),
            ("verbs", verbs) => kind.verbs = list(verbs),
            // Base64 may end with equals signs.
            ("hash", _) => kind.storage_hash = &flag["hash=".len()..],
            ("name", "label") => kind.name_form = NameForm::Label,
            ("name", "path") => kind.name_form = NameForm::PathSegment,
            ("returns-deleted", _) => kind.returns_deleted = true,
            ("conditional", _) => kind.unconditional_update = false,
            ("create-on-update", _) => kind.create_on_update = true,
            (other, _) => panic!("the table of kinds has an unknown flag {other:?} in {line:?}"),
        }
    }
    kind
}

fn group_and_version(api_version: &'static str) -> (&'static str, &'static str) {
    api_version.rsplit_once('/').unwrap_or(("", api_version))
}

fn list(names: &'static str) -> Vec<&'static str> {
    names.split(',').collect()
}

fn subresource(text: &'static str, parent: &'static str) -> Subresource {
    let (name, rest) = text.split_once('=').unwrap_or((text, ""));
    match (name, rest) {
        ("status", "") => Subresource { name, group: "", version: "", kind: parent, verbs: list(CHANGE) },
        ("scale", "") => {
            Subresource { name, group: "autoscaling", version: "v1", kind: "Scale", verbs: list(CHANGE) }
        }
        _ => {
            let (kind, verbs) = rest.rsplit_once(':').expect("a subresource has its kind and verbs");
            let (place, kind) = kind.split_once(':').map_or(("", kind), |(place, kind)| (place, kind));
            let (group, version) = place.split_once('/').unwrap_or(("", ""));
            Subresource { name, group, version, kind, verbs: list(verbs) }
        }
    }
}
