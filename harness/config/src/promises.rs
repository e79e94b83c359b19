//! Which keys of a profile declare behaviour of the CCM, and which checks judge it.
//!
//! Declared behaviour is judged: a check names the capability that it needs, and a declaration whose
//! capability no check needs is reported as declared and not judged.

use super::profile::Profile;
use harness_core::check::Capability;
use std::collections::BTreeSet;

/// The behaviour that a key of a profile declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// No behaviour that could be wrong: the key says how the CCM is built, started, driven or shown.
    Nothing,
    /// A behaviour that is judged by checks with this need.
    Of(Capability),
    /// Several behaviours.
    OfEach(&'static [Capability]),
    /// The exact strings and timings of the shared framework, which are judged by rows with the contract's dagger.
    Framework,
}

/// The behaviour that each key of a profile declares. A key includes those below it that are not listed themselves.
pub const PROMISES: &[(&str, Promise)] = &[
    ("apiVersion", Promise::Nothing),
    ("kind", Promise::Nothing),
    ("name", Promise::Nothing),
    ("description", Promise::Nothing),
    ("framework", Promise::Framework),
    ("image", Promise::Nothing),
    ("manifests", Promise::Nothing),
    ("workload", Promise::Nothing),
    ("cloud", Promise::Nothing),
    ("capabilities", Promise::Nothing),
    ("capabilities.instances", Promise::OfEach(&[Capability::Instances, Capability::InstancesV2])),
    ("capabilities.shutdown", Promise::Of(Capability::Shutdown)),
    ("capabilities.zones", Promise::Of(Capability::Zones)),
    ("capabilities.regions", Promise::Of(Capability::Regions)),
    ("capabilities.loadBalancer", Promise::Of(Capability::LoadBalancer)),
    ("capabilities.targets", Promise::Of(Capability::NodeTargets)),
    ("capabilities.routes", Promise::Of(Capability::Routes)),
    ("capabilities.routeTrigger", Promise::Nothing),
    ("capabilities.clusters", Promise::Of(Capability::Clusters)),
    ("capabilities.additionalLabels", Promise::Of(Capability::AdditionalLabels)),
    ("capabilities.ipMode", Promise::Of(Capability::IpMode)),
    ("capabilities.dualStack", Promise::Of(Capability::DualStack)),
    // All checks of load balancers use TCP ports.
    (
        "capabilities.protocols",
        Promise::OfEach(&[Capability::LoadBalancer, Capability::Udp, Capability::Sctp]),
    ),
    ("capabilities.affinity", Promise::Of(Capability::Affinity)),
    ("capabilities.sourceRanges", Promise::Of(Capability::SourceRanges)),
    ("capabilities.sharedLB", Promise::Of(Capability::SharedLb)),
    ("capabilities.leaderElection", Promise::Of(Capability::LeaderElection)),
    // A CCM with another Lease would not be seen to lead, and limits follow from the timing.
    ("lease", Promise::Of(Capability::LeaderElection)),
    ("leaseTiming", Promise::Of(Capability::LeaderElection)),
    ("securePort", Promise::Of(Capability::SecurePort)),
    ("workers", Promise::Nothing),
    ("flags", Promise::Nothing),
    ("flags.accepted", Promise::Of(Capability::FrameworkFlags)),
    ("providerId", Promise::Of(Capability::Instances)),
    ("location", Promise::Of(Capability::Instances)),
    // Only lengthens limits.
    ("instanceCache", Promise::Nothing),
    ("instanceType", Promise::Of(Capability::Instances)),
    ("addressOrder", Promise::Of(Capability::Instances)),
    ("alsoReportedAs", Promise::Of(Capability::Instances)),
    ("loadBalancerOwner", Promise::Of(Capability::LoadBalancer)),
    ("serviceAnnotations", Promise::Nothing),
    ("serviceFinalizers", Promise::Of(Capability::LoadBalancer)),
    ("annotationEffects", Promise::Of(Capability::VendorAnnotations)),
    ("implementedElsewhere", Promise::Of(Capability::ImplementedElsewhere)),
    ("replicas", Promise::Of(Capability::LeaderElection)),
    ("placeholders", Promise::Nothing),
    ("environment", Promise::Nothing),
    ("imageCredentials", Promise::Of(Capability::ServiceAccountTokens)),
    ("networkProxy", Promise::Nothing),
    ("csiMigration", Promise::Nothing),
    ("budgets", Promise::Nothing),
    ("declared", Promise::Nothing),
    ("deployment", Promise::Nothing),
];

impl Promise {
    /// The capabilities whose checks judge it.
    pub fn capabilities(&self) -> &[Capability] {
        match self {
            Promise::Nothing | Promise::Framework => &[],
            Promise::Of(one) => std::slice::from_ref(one),
            Promise::OfEach(several) => several,
        }
    }
}

/// The keys with which a profile declares behaviour that no check judges. `judged` are the capabilities that
/// checks need. A key that declares several capabilities is followed by the capability's name.
pub fn declared_not_judged(profile: &Profile, judged: &BTreeSet<Capability>) -> Vec<String> {
    let declared = profile.declares();
    let unjudged = |promise: &Promise| -> Vec<Capability> {
        let open = |one: &&Capability| declared.contains(one) && !judged.contains(one);
        promise.capabilities().iter().filter(open).copied().collect()
    };
    let rows = PROMISES.iter().flat_map(|(key, promise)| {
        let several = matches!(promise, Promise::OfEach(_));
        unjudged(promise)
            .into_iter()
            .map(move |one| if several { format!("{key} {one}") } else { (*key).to_owned() })
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile_reading::SCHEMA;
    use crate::schema::paths;
    use crate::{RunFile, Source, plan};

    #[test]
    fn every_key_of_a_profile_has_its_promise_and_every_promise_its_key() {
        let keys: Vec<String> = paths(&SCHEMA).into_iter().map(|(path, ..)| path).collect();
        for key in &keys {
            let named = |path: &str| PROMISES.iter().any(|(known, _)| *known == path);
            let above =
                key.match_indices('.').any(|(at, _)| &key[..at] != "capabilities" && named(&key[..at]));
            assert!(named(key) || above, "{key}: what does it promise? (config/promises.rs)");
        }
        for (key, _) in PROMISES {
            assert!(keys.iter().any(|known| known == key), "{key} is not a key of a profile");
        }
    }

    #[test]
    fn every_capability_can_be_declared_by_a_key() {
        for capability in Capability::ALL {
            let by = PROMISES.iter().find(|(_, promise)| promise.capabilities().contains(capability));
            assert!(by.is_some(), "no key of a profile declares {capability}");
        }
    }

    #[test]
    fn declarations_that_no_check_needs_are_named_by_their_key() {
        let profile = plan(&Source::Defaults, RunFile::default()).expect("a plan").profile;
        assert_eq!(declared_not_judged(&profile, &Capability::ALL.iter().copied().collect()), [""; 0]);
        let mut judged: BTreeSet<Capability> = Capability::ALL.iter().copied().collect();
        for gone in [Capability::Routes, Capability::Udp, Capability::Sctp, Capability::SecurePort] {
            judged.remove(&gone);
        }
        let open = declared_not_judged(&profile, &judged);
        // SCTP is not declared, so its missing checks are not reported.
        assert_eq!(open, ["capabilities.routes", "capabilities.protocols udp", "securePort"]);
    }
}
