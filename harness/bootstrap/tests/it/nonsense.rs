//! Invalid manifests: a clear message with file and line, never a panic.

use super::{bootstrap, variants};
use std::time::{Duration, Instant};

/// The exit code, and texts that the output must contain.
#[track_caller]
fn says(text: &str, code: u8, words: &[&str]) {
    let (found, out, err) = bootstrap(&["check", "-", "--topology", "single-node"], text);
    assert_eq!(found, code, "{out}{err}");
    for word in words {
        assert!(format!("{out}{err}").contains(word), "'{word}' is missing:\n{out}{err}");
    }
}

fn ccm(spec: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: ccm, namespace: kube-system}}\nspec:\n  selector: \
         {{matchLabels: {{a: b}}}}\n  template:\n    metadata: {{labels: {{a: b}}}}\n    spec:\n      containers: \
         [{{name: c, image: 'c:v1'}}]\n{spec}"
    )
}

#[test]
fn unreadable_texts_name_their_place() {
    says("", 2, &["<stdin>:1", "contains no document", "none of the workloads"]);
    says("---\n---\n", 2, &["contains no document"]);
    says("just words\n", 2, &["<stdin>:1", "not a Kubernetes object but a string"]);
    says("- 1\n- 2\n", 2, &["not a Kubernetes object but a list"]);
    says("a: 1\nb: 2\n", 2, &["apiVersion or kind is missing"]);
    says("a:\n  - b\n c: d\n", 2, &["<stdin>:3", "is not YAML"]);
    says("a: 1\na: 2\n", 2, &["<stdin>:2", "given twice"]);
    says("a: *nowhere\n", 2, &["<stdin>:1"]);
    says("? {a: b}\n: c\n", 2, &["a key is a map"]);
    says("\u{0}\u{1}\u{7f}", 2, &["<stdin>:1"]);
    says("apiVersion: v1\nkind: Pod\nmetadata: {}\n", 2, &["the Pod has no name"]);
}

#[test]
fn templates_left_unrendered_are_named() {
    let hint = "helm template";
    says("{{- if .Values.x }}\napiVersion: v1\nkind: Pod\n{{- end }}\n", 2, &["is not rendered", hint]);
    says(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ .Release.Name }}\n",
        2,
        &["<stdin>:4", "is not rendered"],
    );
    says("apiVersion: v1\nkind: Pod\nmetadata:\n  name: \"{{ .Release.Name }}\"\n", 2, &["<stdin>:4", hint]);
    let braces = "apiVersion: v1\nkind: Pod\nmetadata: {name: ${NAME}}\n";
    says(braces, 2, &["<stdin>:3", "quote '${...}'"]);
    // Other tools' templates are data.
    let map = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {x: \"{{ $labels.a }}\"}\n";
    says(&format!("{}{map}", ccm("")), 1, &["FAILS"]);
}

#[test]
fn one_broken_document_does_not_hide_the_next() {
    says(
        "a: [\n---\nb: {{ x }}\n---\nc: 1\nc: 2\n",
        2,
        &["<stdin>:1: MUST", "<stdin>:3: MUST", "is not rendered", "<stdin>:6: INFO", "given twice"],
    );
}

#[test]
fn tolerations_that_the_api_server_refuses_are_named() {
    let wrong = |toleration: &str| ccm(&format!("      tolerations: [{toleration}]\n"));
    says(
        &wrong("{key: a, operator: Is}"),
        1,
        &["BOOT-API", "tolerations[0].operator: Unsupported value: \"Is\""],
    );
    says(&wrong("{key: a, effect: Never}"), 1, &["tolerations[0].effect: Unsupported value: \"Never\""]);
    says(
        &wrong("{key: a, operator: Exists, value: b}"),
        1,
        &["value must be empty when `operator` is 'Exists'"],
    );
    says(&wrong("{effect: NoSchedule}"), 1, &["operator must be Exists when `key` is empty"]);
    says(
        &wrong("{key: a, tolerationSeconds: 3}"),
        1,
        &["effect must be 'NoExecute' when `tolerationSeconds` is set"],
    );
    says(
        &wrong("{key: a, value: true}"),
        1,
        &["tolerations[0].value: expected a string, got a boolean (true)", "put it in quotes"],
    );
}

#[test]
fn unknown_kinds_and_several_ccms_are_named() {
    let custom = "---\napiVersion: example.org/v1\nkind: Widget\nmetadata: {name: w}\n";
    says(&format!("{}{custom}", ccm("")), 1, &["Widget.example.org/w is a custom resource"]);
    let definition = "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.org}\n\
                      spec: {group: example.org, scope: Namespaced, names: {plural: widgets, kind: Widget}, versions: [{name: v1, \
                      served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {size: {type: integer}}}}}]}\n";
    let defined = |object: &str| {
        let text = format!("{}{definition}{object}", ccm(""));
        let (_, out, err) = bootstrap(&["check", "-", "--assume", "ServiceAccount/default"], &text);
        format!("{out}{err}")
    };
    let right = defined(&format!("{custom}size: 1\n"));
    assert!(!right.contains("Widget"), "{right}");
    let wrong = defined(&format!("{custom}size: big\n"));
    assert!(wrong.contains("got the string 'big'"), "{wrong}");
    let misspelt = "---\napiVersion: apps/v1\nkind: Deploiment\nmetadata: {name: w}\n";
    says(&format!("{}{misspelt}", ccm("")), 1, &["no kind Deploiment in apps/v1"]);
    let two = format!("{}---\n{}", ccm(""), ccm("").replace("name: ccm", "name: other-ccm"));
    says(&two, 1, &["Deployment/other-ccm is one of 2 CCMs"]);
}

#[test]
fn anchors_are_followed_and_bounded() {
    let borrowed = "x-tolerations: &all [{operator: Exists}]\n";
    let text = format!("{borrowed}{}", ccm("      tolerations: *all\n      hostNetwork: true\n"));
    let (code, out, _) = bootstrap(&["check", "-", "--assume", "ServiceAccount/default"], &text);
    assert_eq!(code, 0, "{out}");
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let below = format!("*a{}", level - 1);
        bomb.push_str(&format!("a{level}: &a{level} [{}]\n", [below.as_str(); 10].join(", ")));
    }
    says(&bomb, 2, &["once its anchors are expanded"]);
}

#[test]
fn depth_is_bounded() {
    says(&"[".repeat(100_000), 2, &["<stdin>:1"]);
    says(&"{a: ".repeat(100_000), 2, &["<stdin>:1"]);
    says(&"- ".repeat(50_000), 2, &["<stdin>:1"]);
    let lists = "{apiVersion: v1, kind: List, items: [".repeat(50) + &"]}".repeat(50);
    says(&lists, 2, &["is a list inside a list"]);
}

/// Random changes of real manifests, for a fixed time: `BOOTSTRAP_FUZZ_SECONDS`, or two seconds.
#[test]
fn mutated_manifests_never_panic() {
    let seconds = std::env::var("BOOTSTRAP_FUZZ_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(2);
    let end = Instant::now() + Duration::from_secs(seconds);
    let names =
        ["good-deployment", "seed-example", "vendor-azure", "webhook-before-its-own-pods", "cni-in-the-set"];
    let seeds: Vec<String> = names
        .iter()
        .map(|name| std::fs::read_to_string(variants().join(name).join("ccm.yaml")).expect("the variant"))
        .collect();
    let pieces = [
        "{{",
        "}}",
        "&a ",
        "*a",
        "<<: *a",
        "---\n",
        "\t",
        "- ",
        "[",
        "]",
        "{",
        "}",
        "\"",
        "'",
        "|\n",
        ">-\n",
        "? ",
        ": ",
        "\u{feff}",
        "é",
        "0x",
        "null",
        "~",
        "!!str ",
        "%YAML 1.2\n",
        "...\n",
        "#",
        "-1",
        "99999999999999999999",
        "\r\n",
        "status.hostIP",
        "@latest",
        "kind: List\nitems:\n",
        "replicas: -5\n",
        "tolerationSeconds: -1\n",
    ];
    // A linear congruential generator: the same inputs on every machine, unless another seed is set.
    let asked = std::env::var("BOOTSTRAP_FUZZ_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut state: u64 = asked.unwrap_or(0x2026_1121);
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap_or(0) % below.max(1)
    };
    let mut rounds = 0;
    while Instant::now() < end {
        let mut text = seeds[random(seeds.len())].clone();
        for _ in 0..=random(6) {
            let boundary = |text: &str, mut at: usize| {
                while !text.is_char_boundary(at) {
                    at -= 1;
                }
                at
            };
            let from = boundary(&text, random(text.len() + 1));
            match random(4) {
                0 => text.insert_str(from, pieces[random(pieces.len())]),
                1 => {
                    let to = boundary(&text, (from + random(40)).min(text.len()));
                    text.replace_range(from.min(to)..to.max(from), "");
                }
                2 => {
                    let to = boundary(&text, (from + random(200)).min(text.len()));
                    let copy = text[from.min(to)..to.max(from)].to_owned();
                    let at = boundary(&text, random(text.len() + 1));
                    text.insert_str(at, &copy);
                }
                _ => text.truncate(from),
            }
        }
        for command in ["check", "fix"] {
            let options = ["-", "--topology", "control-plane-and-worker", "--cni", "waits-for-addresses"];
            let (code, ..) = bootstrap(&[&[command], &options[..]].concat(), &text);
            assert!(code <= 2);
        }
        rounds += 1;
    }
    assert!(rounds > 0);
}
