//! `init` with the vendors' own manifests, and with files that are not manifests.

use super::InitOptions;
use harness_config::{Given, Ownership, RunFile, Source, plan};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The manifests of a profile of this repository.
fn manifests(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/ccms").join(name).join("manifests")
}

fn options(manifests: &[PathBuf], folder: &TempDir) -> InitOptions {
    InitOptions {
        manifests: manifests.to_vec(),
        out: Some(folder.path().join("new")),
        ..InitOptions::default()
    }
}

fn make(options: &InitOptions) -> Result<String, String> {
    super::make(options, |typed| plan(&Source::Defaults, Given { typed, ..Given::default() }))
}

/// The messages, the profile that is written, and its text.
fn described(manifests: &[PathBuf]) -> (String, harness_config::Profile, String) {
    let folder = TempDir::new().expect("a folder");
    let said = make(&options(manifests, &folder)).expect("a profile");
    let path = folder.path().join("new");
    let typed = RunFile { profile: Some(path.display().to_string()), ..RunFile::default() };
    let plan =
        plan(&Source::Defaults, Given { typed, ..Given::default() }).expect("what init writes is sound");
    let text = std::fs::read_to_string(path.join("profile.yaml")).expect("it is there");
    (said, plan.profile, text)
}

#[test]
fn a_vendors_manifests_become_a_profile_like_the_one_written_by_hand() {
    let (said, profile, text) = described(&[manifests("hcloud")]);
    assert_eq!((profile.name.as_str(), profile.cloud.dialect()), ("hcloud", Some("hcloud")));
    assert!(profile.capabilities.load_balancer && profile.capabilities.zones);
    assert!(!profile.capabilities.leader_election, "as its manifests run it");
    assert_eq!(profile.environment["HCLOUD_ENDPOINT"], "${CLOUD_ENDPOINT}/v1");
    assert!(said.contains("capabilities.leaderElection: its manifests run it without"), "{said}");
    let address = "\nWhere the CCM gets the address of its cloud:\n  the variable HCLOUD_ENDPOINT, which is \
                   \"${CLOUD_ENDPOINT}/v1\" under 'environment' in profile.yaml\n";
    assert!(said.contains(address), "{said}");
    assert!(said.contains("Would a cluster boot with them?\n  single-node"), "{said}");
    // The vendor's manifests here have no image of their own.
    assert!(said.contains("image.reference"), "{said}");
    assert!(text.contains("framework: {profile: true, version: \"1.36\"} # guess"), "{text}");
}

#[test]
fn a_provider_is_known_by_the_workloads_name_too() {
    let (said, profile, _) = described(&[manifests("digitalocean")]);
    assert_eq!((profile.name.as_str(), profile.cloud.dialect()), ("digitalocean", Some("digitalocean")));
    assert_eq!(profile.environment["DO_OVERRIDE_URL"], "${CLOUD_ENDPOINT}");
    assert_eq!(profile.environment["DEFAULT_LB_TYPE"], "REGIONAL");
    assert!(!profile.capabilities.zones);
    assert_eq!(profile.address_order.len(), 3);
    assert!(said.contains("A profile of this name is built in"), "{said}");
    assert!(
        said.contains("with CNI none: does not boot"),
        "its manifest does not tolerate not-ready:NoSchedule: {said}"
    );
}

#[test]
fn where_a_balancer_says_nothing_by_itself_services_make_it_say_whose_it_is() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("ccm.yaml");
    let text = r#"
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: ccm-linode, namespace: kube-system}
spec:
  template:
    spec:
      containers:
        - {name: ccm, image: example/ccm, command: [/ccm, --cloud-provider=linode]}
"#;
    std::fs::write(&file, text).expect("written");
    let (_, profile, _) = described(&[file]);
    assert_eq!(profile.load_balancer_owner, Ownership::Service);
    assert_eq!(profile.service_annotations.values().collect::<Vec<_>>(), ["${SERVICE}"]);
}

#[test]
fn missing_parts_are_created_and_reported() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("ccm.yaml");
    let text = r#"
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: acme-cloud-controller-manager}
spec:
  template:
    spec:
      containers:
      - name: ccm
        image: registry.example/acme-ccm:v3
        command: [/ccm, --cloud-provider=acme, --leader-elect-resource-name=acme, --secure-port=10999, "--region=${REGION}"]
        env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: acme, key: token}}}]
"#;
    std::fs::write(&file, text).expect("a file");
    let (said, profile, _) = described(&[file]);
    assert_eq!((profile.name.as_str(), profile.secure_port), ("acme", 10_999));
    assert_eq!((profile.lease.namespace.as_str(), profile.lease.name.as_str()), ("kube-system", "acme"));
    assert_eq!(profile.placeholders["REGION"], harness_session::TO_DO);
    assert!(said.contains("placeholders.REGION: its value\n"), "{said}");
    assert!(said.contains("secrets.yaml, Secret acme: value of token"), "{said}");
    assert!(said.contains("cloud: the fake cloud does not speak its API"), "{said}");
    let file = folder.path().join("whole.yaml");
    let secret = "\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: acme, namespace: kube-system}\n";
    for (data, asked) in
        [("data: {token: eA==, url: eA==}", true), ("stringData: {token: \"${CLOUD_TOKEN}\"}", false)]
    {
        std::fs::write(&file, format!("{text}{secret}{data}\n")).expect("a file");
        let (said, ..) = described(std::slice::from_ref(&file));
        assert_eq!(said.contains("Secret acme: which of token, url is the credential"), asked, "{said}");
    }
}

#[test]
fn the_variable_or_flag_that_may_say_where_the_cloud_is_is_named() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("ccm.yaml");
    let said = |argument: &str, variable: &str, value: &str| {
        let text = format!(
            "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{name: acme-ccm, namespace: kube-system}}\nspec: {{template: \
             {{spec: {{containers: [{{name: ccm, image: 'example/ccm:v1', command: [/ccm, '{argument}'], env: \
             [{{name: {variable}, value: '{value}'}}, {{name: KUBERNETES_URL, value: y}}]}}]}}}}}}\n"
        );
        std::fs::write(&file, text).expect("written");
        let (said, _, profile) = described(std::slice::from_ref(&file));
        (said, profile)
    };
    let (text, profile) = said("--v=2", "ACME_API_URL", "https://api.acme.example");
    assert!(text.contains("as ${CLOUD_ENDPOINT}; by its name it may be ACME_API_URL\n"), "{text}");
    assert!(profile.contains("# environment: {ACME_API_URL: \"${CLOUD_ENDPOINT}\"} #"), "{profile}");
    let (text, profile) = said("--api-endpoint=https://api.acme.example", "LEVEL", "1");
    assert!(text.contains("by its name it may be --api-endpoint\n"), "{text}");
    assert!(profile.contains("# environment: {ACME_URL:"), "{profile}");
    let (text, profile) = said("--v=2", "ACME_API_URL", "${CLOUD_ENDPOINT}/v1");
    assert!(text.contains("  where the manifests have ${CLOUD_ENDPOINT}"), "{text}");
    assert!(
        !text.contains("says where the cloud is") && !profile.contains("environment:"),
        "{text}{profile}"
    );
}

#[test]
fn manifests_without_a_ccm_are_refused() {
    let folder = TempDir::new().expect("a folder");
    let refused = |text: &str| {
        let file = folder.path().join("x.yaml");
        std::fs::write(&file, text).expect("a file");
        make(&options(&[file], &folder)).expect_err("refused")
    };
    assert!(refused("a: [").contains("x.yaml"));
    let words = refused("just words");
    assert!(words.contains("x.yaml: a document is not an object of Kubernetes: \"just words\""), "{words}");
    assert!(refused("").contains("no Deployment"));
    let missing = make(&options(&[folder.path().join("none.yaml")], &folder)).expect_err("refused");
    assert!(missing.contains("none.yaml: there is no such file"), "{missing}");
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).expect("a folder");
    assert!(make(&options(&[empty], &folder)).expect_err("refused").contains("holds no .yaml"));
    std::fs::create_dir(folder.path().join("new")).expect("a folder");
    let there = make(&options(&[manifests("hcloud")], &folder)).expect_err("refused");
    assert!(there.contains("exists already; name another folder"), "{there}");
}

#[test]
fn a_name_that_profiles_do_not_allow_is_refused_before_anything_is_written() {
    let folder = TempDir::new().expect("a folder");
    for name in ["my ccm", "a/b", "", "-ccm"] {
        let options = InitOptions { name: Some(name.to_owned()), ..options(&[manifests("hcloud")], &folder) };
        let why = make(&options).expect_err("refused");
        assert!(why.starts_with(&format!("--name '{name}': a name has letters, digits,")), "{why}");
        assert!(!folder.path().join("new").exists(), "{name}");
    }
}

#[test]
fn an_error_of_kubectl_is_shown_without_its_log_format() {
    let line =
        r#"E1129 00:17:56.310715   32746 run.go:72] "command failed" err="kustomization.yaml is empty""#;
    assert_eq!(super::without_klog(line), "kustomization.yaml is empty");
    assert_eq!(super::without_klog("W1129 00:17:56.310715       1 a.go:7] old fields"), "old fields");
    for plain in ["error: no such chart", "Error: [a] b", "E-mail] is not klog", ""] {
        assert_eq!(super::without_klog(plain), plain);
    }
}

#[test]
fn a_program_that_renders_nothing_is_named() {
    let refused = super::rendered(std::process::Command::new("true"), "install it").expect_err("no text");
    assert_eq!(refused, "'true' printed nothing: what it has rendered holds no objects");
}

#[test]
fn a_chart_is_refused_and_a_kustomization_is_not_read_as_a_manifest() {
    let folder = TempDir::new().expect("a folder");
    let chart = folder.path().join("chart");
    std::fs::create_dir(&chart).expect("a folder");
    std::fs::write(chart.join("Chart.yaml"), "name: acme\n").expect("written");
    let why = make(&options(std::slice::from_ref(&chart), &folder)).expect_err("it is a chart");
    assert!(why.ends_with(&format!("(Chart.yaml); use --helm {}", chart.display())), "{why}");
    let built = folder.path().join("kustomization");
    std::fs::create_dir(&built).expect("a folder");
    std::fs::write(built.join("kustomization.yaml"), "resources: [ccm.yaml]\n").expect("written");
    for file in std::fs::read_dir(manifests("hcloud")).expect("a folder").flatten() {
        std::fs::copy(file.path(), built.join(file.file_name())).expect("copied");
    }
    assert!(make(&options(&[built], &folder)).is_ok());
}

#[test]
fn a_template_is_called_one() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("ccm.yaml");
    std::fs::write(&file, "kind: Secret\ndata:\n  token: {{ .Values.token }}\n").expect("written");
    let why = make(&options(&[file], &folder)).expect_err("no YAML");
    assert!(why.contains("ccm.yaml:3:") && why.contains("render it first, a chart with --helm"), "{why}");
    // In quotes it is YAML, and no image.
    let file = folder.path().join("quoted.yaml");
    let ccm = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: acme-ccm}\nspec: {template: {spec: {containers: \
               [{name: ccm, image: '{{ .Values.image }}'}]}}}\n";
    std::fs::write(&file, ccm).expect("written");
    let why = make(&options(&[file], &folder)).expect_err("no image");
    assert!(why.contains("acme-ccm: the image is '{{ .Values.image }}'; '{{' is of a template"), "{why}");
}
