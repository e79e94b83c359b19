//! Volumes and the handles that drivers must get for them (contract CSIM-04).

use crate::csi_migration::ZONE;
use harness_config::CsiDriver;

/// The old label of zones, which takes precedence over the current one in a disk's path.
const BETA_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";

/// A volume and its handle. `{id}` stands for its own name, `{here}` for the zone of its Node, `{there}` for another
/// zone, `{region}` for their common part, `{volume}` and `{namespace}` for those of the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vector {
    /// The driver.
    pub driver: CsiDriver,
    /// What it shows.
    pub what: &'static str,
    /// The volume's name in its source.
    pub id: &'static str,
    /// Labels of the stored volume.
    pub labels: &'static [(&'static str, &'static str)],
    /// The handle.
    pub handle: &'static str,
}

/// The values of the placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its own name.
    pub id: String,
    /// The zone of its Node.
    pub here: String,
    /// Another zone of the same region.
    pub there: String,
    /// The name of the stored volume.
    pub volume: String,
    /// The namespace of its claim.
    pub namespace: String,
}

impl Place {
    /// A text with all placeholders filled in.
    pub fn fill(&self, text: &str) -> String {
        let region = self.here.rsplit_once('-').map_or(self.here.as_str(), |(region, _)| region);
        text.replace("{id}", &self.id)
            .replace("{here}", &self.here)
            .replace("{there}", &self.there)
            .replace("{region}", region)
            .replace("{volume}", &self.volume)
            .replace("{namespace}", &self.namespace)
    }
}

/// The vectors of a driver.
pub fn vectors(driver: CsiDriver) -> Vec<Vector> {
    let of = |what, id, labels, handle| Vector { driver, what, id, labels, handle };
    match driver {
        CsiDriver::Ebs => vec![
            of("an id with a zone", "aws://{here}/vol-{id}", &[], "vol-{id}"),
            of("an id with an empty zone", "aws:///vol-{id}", &[], "vol-{id}"),
            of("an id alone", "vol-{id}", &[], "vol-{id}"),
        ],
        CsiDriver::GcePd => vec![
            of("a disk without zone", "{id}", &[], "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/{id}"),
            of(
                "a disk with a zone",
                "{id}",
                &[(ZONE, "{here}")],
                "projects/UNSPECIFIED/zones/{here}/disks/{id}",
            ),
            of(
                "a disk with another zone by the beta label",
                "{id}",
                &[(BETA_ZONE, "{there}"), (ZONE, "{here}")],
                "projects/UNSPECIFIED/zones/{there}/disks/{id}",
            ),
            of(
                "a disk with two zones",
                "{id}",
                &[(ZONE, "{here}__{there}")],
                "projects/UNSPECIFIED/regions/{region}/disks/{id}",
            ),
        ],
        CsiDriver::AzureDisk => {
            let uri = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/{id}";
            vec![of("a managed disk", uri, &[], uri)]
        }
        CsiDriver::AzureFile => {
            vec![of("a share", "{id}", &[], "#account#{id}#{volume}#{namespace}")]
        }
        CsiDriver::Cinder | CsiDriver::Portworx => vec![of("a volume", "{id}", &[], "{id}")],
        CsiDriver::Vsphere => vec![of("a path", "[store] folder/{id}.vmdk", &[], "[store] folder/{id}.vmdk")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_filled_in() {
        let [id, here, there, volume, namespace] =
            ["i", "us-east-1a", "us-east-1b", "v", "n"].map(str::to_owned);
        let place = Place { id, here, there, volume, namespace };
        let all: Vec<String> =
            CsiDriver::ALL.iter().flat_map(|one| vectors(*one)).map(|one| place.fill(one.handle)).collect();
        assert!(all.contains(&"projects/UNSPECIFIED/zones/us-east-1b/disks/i".to_owned()), "{all:?}");
        assert!(all.contains(&"projects/UNSPECIFIED/regions/us-east/disks/i".to_owned()), "{all:?}");
        assert!(all.contains(&"#account#i#v#n".to_owned()), "{all:?}");
        assert!(all.iter().all(|handle| !handle.contains('{')), "{all:?}");
    }
}
