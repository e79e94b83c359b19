//! What the job `publish` of the workflow does for a tag.

use super::place::{Place, REPOSITORY, output};
use crate::process::say;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// The publication of a release.
pub(super) struct Publication<'a> {
    pub(super) place: &'a Place,
    /// The sources at the tag.
    pub(super) checkout: &'a Path,
    pub(super) tag: &'a str,
    pub(super) commit: &'a str,
}

impl Publication<'_> {
    /// Pushes the image, signs what was built, and uploads the assets in this folder.
    ///
    /// # Errors
    /// A step fails.
    pub(super) fn publish(&self, out: &Path) -> Result<()> {
        let place = self.place;
        self.make_key("key.pem", "public.pem")?;
        let publish = self.checkout.join("ci/publish").display().to_string();
        let folder = out.display().to_string();
        let outputs = place.text("image-outputs");
        place.run(self.checkout, &[&publish, "image", &folder], &[("GITHUB_OUTPUT", &outputs)])?;
        let image = place.outputs("image-outputs")?;
        let (name, digest) = (output(&image, "name")?, output(&image, "digest")?);
        ensure!(name == place.image(), "the image was pushed to {name} instead of {}", place.image());
        let digest = digest.strip_prefix("sha256:").context("the digest of the image is not a SHA-256")?;
        self.attest(&[(name.to_owned(), digest.to_owned())])?;
        say(&format!("image {name} has the digest sha256:{digest}"));

        let sums = fs::read_to_string(out.join("SHA256SUMS")).context("reading SHA256SUMS")?;
        let files = sums.lines().filter_map(|line| line.split_once("  "));
        let files: Vec<(String, String)> =
            files.map(|(digest, name)| (name.to_owned(), digest.to_owned())).collect();
        self.attest(&files)?;
        place.run(self.checkout, &[&publish, "assets", &folder, self.tag], &[("GH_TOKEN", "none")])?;
        Ok(())
    }

    /// Makes the key that stands in for the identity of the workflow.
    fn make_key(&self, private: &str, public: &str) -> Result<()> {
        let (private, public) = (self.place.text(private), self.place.text(public));
        let make = ["openssl", "genpkey", "-algorithm", "ed25519", "-out", &private];
        self.place.run(self.checkout, &make, &[]).context("making a key (needs OpenSSL 3)")?;
        let derive = ["openssl", "pkey", "-in", &private, "-pubout", "-out", &public];
        self.place.run(self.checkout, &derive, &[])?;
        Ok(())
    }

    /// Signs the provenance of these subjects, names and SHA-256, and puts it where `gh` of the rehearsal looks.
    fn attest(&self, subjects: &[(String, String)]) -> Result<()> {
        let statement = self.place.path("statement.json");
        let signature = self.place.path("statement.sig");
        fs::write(&statement, serde_json::to_vec(&self.statement(subjects))?)?;
        let (key, of, to) =
            (self.place.text("key.pem"), statement.display().to_string(), signature.display().to_string());
        let sign = ["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", &key, "-in", &of, "-out", &to];
        self.place.run(self.checkout, &sign, &[])?;
        for (_, digest) in subjects {
            let folder = self.place.path("www").join(REPOSITORY).join("attestations").join(digest);
            fs::create_dir_all(&folder)?;
            fs::copy(&statement, folder.join("statement.json"))?;
            fs::copy(&signature, folder.join("statement.sig"))?;
        }
        Ok(())
    }

    /// An in-toto statement with SLSA provenance: what `attest-build-provenance` signs.
    fn statement(&self, subjects: &[(String, String)]) -> Value {
        let subjects =
            subjects.iter().map(|(name, digest)| json!({"name": name, "digest": {"sha256": digest}}));
        let (repository, reference) = (self.place.repository(), format!("refs/tags/{}", self.tag));
        let workflow = json!({
            "path": ".github/workflows/conformance.yml", "ref": reference, "repository": repository,
        });
        json!({
            "_type": "https://in-toto.io/Statement/v1",
            "subject": subjects.collect::<Vec<_>>(),
            "predicateType": "https://slsa.dev/provenance/v1",
            "predicate": {
                "buildDefinition": {
                    "buildType": "https://actions.github.io/buildtypes/workflow/v1",
                    "externalParameters": {"workflow": workflow},
                    "resolvedDependencies": [
                        {"uri": format!("git+{repository}@{reference}"), "digest": {"gitCommit": self.commit}}
                    ],
                },
                "runDetails": {"builder": {"id": "a rehearsal on this machine"}},
            },
        })
    }
}
