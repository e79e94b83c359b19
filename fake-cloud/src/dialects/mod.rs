//! Dialects: the APIs vendors' clients speak, each a thin layer of paths, fields and error forms over the one model.
//!
//! Adding one is a folder with the same four files as the others, and a line in [`ALL`]; the README says how. The table
//! is there without the feature `server` as well: whoever prepares a cloud has to know which ids it accepts.

#[cfg(feature = "server")]
mod dialect;
#[cfg(feature = "server")]
mod digitalocean;
#[cfg(feature = "server")]
mod hcloud;
mod kind;
#[cfg(feature = "server")]
mod native;
#[cfg(feature = "server")]
mod request;
mod shown;
#[cfg(feature = "server")]
mod texts;

#[cfg(feature = "server")]
pub(crate) use dialect::{Denial, Dialect, Effect, Identity, Plan};
pub use kind::{InstanceIds, Kind};
#[cfg(feature = "server")]
pub(crate) use request::{Answer, Call, Request};
pub use shown::Shown;
#[cfg(feature = "server")]
pub(crate) use texts::{Shelf, Text, Texts};

/// All dialects.
pub const ALL: &[Kind] = &[
    Kind {
        name: "native",
        title: "the fake cloud's own REST API, spoken by the reference CCM",
        instance_ids: InstanceIds::Text,
        shown: Shown::ALL,
        #[cfg(feature = "server")]
        new: || Box::new(native::Native),
    },
    Kind {
        name: "digitalocean",
        title: "DigitalOcean's API v2, spoken by digitalocean-cloud-controller-manager",
        instance_ids: InstanceIds::Number,
        shown: Shown { internal_v4: 1, internal_v6: 0, external_v4: 1, external_v6: 1, names: 0 },
        #[cfg(feature = "server")]
        new: || Box::new(digitalocean::DigitalOcean::new()),
    },
    Kind {
        name: "hcloud",
        title: "the Hetzner Cloud API v1",
        instance_ids: InstanceIds::Number,
        shown: Shown { internal_v4: usize::MAX, internal_v6: 0, external_v4: 1, external_v6: 1, names: 0 },
        #[cfg(feature = "server")]
        new: || Box::new(hcloud::Hcloud::new()),
    },
];

/// Their names, in the same order.
pub const NAMES: &[&str] = &{
    let mut names = [""; ALL.len()];
    let mut index = 0;
    while index < ALL.len() {
        names[index] = ALL[index].name;
        index += 1;
    }
    names
};
