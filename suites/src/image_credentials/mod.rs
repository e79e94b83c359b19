//! A kubelet's image credential provider, executed as a kubelet executes it and without one (contract CREDP).

mod answers;
mod conduct;
mod scope;

use harness::check::Party;
use harness::cx::Suite;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "image-credentials",
    proves: "an image credential provider answers as a kubelet reads it, in time, and keeps its secrets",
    judges: Party::ImageCredentials,
    tables: &[answers::CHECKS, scope::CHECKS, conduct::CHECKS],
};

const PLUGIN: &str = "kubernetes pkg/credentialprovider/plugin/plugin.go";
const CONFIG: &str = "kubernetes pkg/credentialprovider/plugin/config.go";
const KEYRING: &str = "kubernetes pkg/credentialprovider/keyring.go";
const API: &str = "k8s.io/kubelet pkg/apis/credentialprovider/v1";
