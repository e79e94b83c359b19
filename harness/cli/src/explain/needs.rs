//! Explains what checks need: facilities of the environment, and capabilities that a profile declares.

use super::lines::labelled;
use harness_clusters::facts;
use harness_config::{BackendKind, PROMISES, Promise};
use harness_core::check::{Capability, Facility};
use harness_testkit::Check;

/// The backends whose clusters the harness creates.
pub(crate) const OURS: &[BackendKind] = &[BackendKind::Kind, BackendKind::Embedded];

/// The explanation of a facility or a capability; `None` for another name.
pub(super) fn explanation(all: &[&Check], id: &str) -> Option<String> {
    let same = |name: &str| name.eq_ignore_ascii_case(id);
    let facility = Facility::ALL.iter().find(|one| same(&one.to_string()));
    let key = |one: &Capability| keys(*one).iter().any(|key| same(key.rsplit('.').next().unwrap_or(key)));
    let capability = || {
        let by_name = Capability::ALL.iter().find(|one| same(&one.to_string()));
        by_name.or_else(|| Capability::ALL.iter().find(|one| key(one)))
    };
    facility.map(|one| of_facility(all, *one)).or_else(|| capability().map(|one| of_capability(all, *one)))
}

/// The names of all facilities and capabilities.
pub(super) fn names() -> Vec<String> {
    let facilities = Facility::ALL.iter().map(ToString::to_string);
    facilities.chain(Capability::ALL.iter().map(ToString::to_string)).collect()
}

fn of_facility(all: &[&Check], facility: Facility) -> String {
    let of = match facility {
        one if Facility::OF_THE_CLOUD.contains(&one) => "the cloud",
        one if Facility::OF_THE_RUN.contains(&one) => "the run",
        _ => "the cluster",
    };
    let mut text = format!("{facility}  a facility of {of} that some checks need\n\n");
    text.push_str(&labelled("means:", facility.meaning()));
    if facility.is_of_the_cluster() {
        let has = |backend| if facts(backend).facilities.contains(&facility) { "yes" } else { "no" };
        let shown: Vec<String> = OURS.iter().map(|one| format!("{one} {}", has(*one))).collect();
        text.push_str(&labelled("clusters:", &shown.join("; ")));
    }
    text.push_str(&labelled("without it:", "these checks are 'not observable', and the result is partial"));
    let needed = all.iter().filter(|check| check.facilities.contains(facility));
    text.push_str(&labelled("needed by:", &ids(needed.copied())));
    let page = if of == "the cloud" { "driver" } else { "backends" };
    text + &labelled("more:", &format!("ccm-conformance docs {page}"))
}

fn of_capability(all: &[&Check], capability: Capability) -> String {
    let mut text = format!("{capability}  a capability that the profile of a CCM declares\n\n");
    text.push_str(&labelled("means:", capability.meaning()));
    text.push_str(&labelled("declared by:", &keys(capability).join(", ")));
    text.push_str(&labelled("without it:", "these checks do not apply ('not-declared')"));
    let needed = all.iter().filter(|check| check.needs.contains(&capability));
    text.push_str(&labelled("needed by:", &ids(needed.copied())));
    text + &labelled("more:", "ccm-conformance docs profile-keys")
}

/// The keys of a profile that declare a capability.
fn keys(capability: Capability) -> Vec<&'static str> {
    let declares = |promise: &Promise| promise.capabilities().contains(&capability);
    let keys: Vec<&str> =
        PROMISES.iter().filter(|(_, promise)| declares(promise)).map(|(key, _)| *key).collect();
    // Other keys only describe what one of these declares.
    let of_capabilities: Vec<&str> =
        keys.iter().copied().filter(|key| key.starts_with("capabilities.")).collect();
    if of_capabilities.is_empty() { keys } else { of_capabilities }
}

/// The ids of some checks, or how many there are if they are more than a reader goes through.
fn ids<'a>(checks: impl Iterator<Item = &'a Check>) -> String {
    const LISTED: usize = 12;
    let ids: Vec<&str> = checks.map(|check| check.id.as_str()).collect();
    match ids.as_slice() {
        [] => "no check".to_owned(),
        few if few.len() <= LISTED => few.join(", "),
        many => format!("{} checks, such as {}", many.len(), many[..LISTED / 2].join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHECK: Check = Check::own("NODE-INIT-10", "it holds", "somewhere", |_| Box::pin(async { Ok(()) }))
        .needs(&[Capability::LoadBalancer])
        .with(&[Facility::Faults, Facility::LinkControl]);

    #[test]
    fn what_checks_need_is_explained_by_the_name_in_their_list() {
        for (id, parts) in [
            ("faults", &["facility of the cloud", "wrong, late or lost", "NODE-INIT-10", "docs driver"][..]),
            ("Link-Control", &["facility of the cluster", "kind yes; embedded no", "docs backends"]),
            ("standby", &["facility of the run", "no check"]),
            ("load-balancer", &["a capability", "declared by:  capabilities.loadBalancer", "NODE-INIT-10"]),
            ("loadBalancer", &["load-balancer  a capability"]),
            ("service-account-tokens", &["declared by:  imageCredentials"]),
        ] {
            let text = explanation(&[&CHECK], id).unwrap_or_else(|| panic!("{id} is not explained"));
            parts.iter().for_each(|part| assert!(text.contains(part), "{id}, {part}:\n{text}"));
        }
        assert_eq!(explanation(&[&CHECK], "NODE-INIT-10"), None);
    }

    #[test]
    fn every_facility_and_capability_is_explained() {
        for name in names() {
            let text = explanation(&[], &name).unwrap_or_else(|| panic!("{name} is not explained"));
            assert!(!text.contains("declared by:  \n"), "{text}");
        }
    }
}
