//! Variants about what a container is given: volumes, variables, flags, labels, files and the token.

use super::{all, argument, base, behind, below, boot, changed, deadlock, pod, variable};
use bootstrap::Outcome;

#[test]
fn volumes() {
    let claimed = |class: &str, size: &str| {
        let documents = format!(
            "apiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: own}}\nspec: {{storageClassName: '{class}', \
             capacity: {{storage: {size}}}, accessModes: [ReadWriteOnce], hostPath: {{path: /var/lib/own}}}}\n---\n\
             apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: own, namespace: kube-system}}\nspec: \
             {{storageClassName: '', accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}"
        );
        let text = behind(&documents);
        below(
            &text,
            "      serviceAccountName: ccm\n",
            6,
            "volumes: [{name: own, persistentVolumeClaim: {claimName: own}}]",
        )
    };
    let reserved = |claim: &str| {
        let text = claimed("other", "2Gi")
            .replace("spec: {storageClassName: '', ", "spec: {volumeName: own, storageClassName: '', ");
        text.replace(
            "hostPath: {path: /var/lib/own}",
            &format!("claimRef: {{namespace: kube-system, name: {claim}}}, hostPath: {{path: /var/lib/own}}"),
        )
    };
    boot(&[
        ("a volume that was made by hand", claimed("", "2Gi")),
        ("one that is reserved for the claim that names it", reserved("own")),
    ]);
    let of_an_earlier_claim =
        reserved("own").replace("name: own}, hostPath", "name: own, uid: 1-2}, hostPath");
    deadlock(&[
        (
            "one that is reserved for another claim",
            reserved("other").replace("storageClassName: 'other'", "storageClassName: ''"),
        ),
        ("one that is reserved for an earlier claim", of_an_earlier_claim),
    ]);
    deadlock(&[
        ("a volume of another class", claimed("other", "2Gi")),
        ("a volume that is too small", claimed("", "1Mi")),
    ]);
    let file = |path: &str, kind: &str| {
        let text = pod(&format!("volumes: [{{name: own, hostPath: {{path: {path}, type: {kind}}}}}]"));
        below(
            &text,
            "        imagePullPolicy: IfNotPresent\n",
            8,
            "volumeMounts: [{name: own, mountPath: /own}]",
        )
    };
    boot(&[
        ("a file in a folder of every machine", file("/var/lib/own", "FileOrCreate")),
        ("a folder in a folder that is absent", file("/var/lib/own/deep", "DirectoryOrCreate")),
    ]);
    all(Outcome::BootsIf, &[("a file in another folder", file("/var/lib/own/deep", "FileOrCreate"))]);
}

#[test]
fn variables_that_come_too_late() {
    let both = |first: &str, second: &str| {
        let text = variable("t", "          value: t\n");
        below(&text, "        env:\n", 8, &format!("{first}\n{second}"))
    };
    let (used, defined) =
        ("- {name: OWN_URL, value: 'http://$(OWN_NAME)/'}", "- {name: OWN_NAME, value: own}");
    boot(&[
        ("in order", both(defined, used)),
        ("no variable at all", both(used, "- {name: OTHER, value: own}")),
    ]);
    deadlock(&[("too late", both(used, defined))]);
    all(
        Outcome::BootsIf,
        &[(
            "too late, for something that may not matter",
            both("- {name: NOTE, value: $(OWN_NAME)}", defined),
        )],
    );
}

#[test]
fn truth_values_as_words() {
    let election = |text: &str| changed(&argument("--cloud-provider=own"), "--leader-elect=true", text);
    boot(&[("one word", election("--leader-elect=false")), ("none", election("--leader-elect"))]);
    deadlock(&[("two words", election("--leader-elect\n        - \"false\""))]);
}

#[test]
fn labels_and_modes() {
    let label = |text: &str| {
        below(&base(), "    metadata:\n      labels:\n", 8, &format!("kubernetes.io/os: {text}"))
    };
    boot(&[("its own system", label("linux"))]);
    deadlock(&[("with a capital", label("Linux")), ("another system", label("windows"))]);
    let config = |mode: &str, more: &str| {
        let text = behind(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own, namespace: kube-system}\ndata: {c: x}",
        );
        let text = below(&text, "        - -v=1\n", 8, "- --cloud-config=/etc/own/c");
        let text = below(
            &text,
            "        imagePullPolicy: IfNotPresent\n",
            8,
            "volumeMounts: [{name: own, mountPath: /etc/own}]",
        );
        below(
            &text,
            "      serviceAccountName: ccm\n",
            6,
            &format!(
                "securityContext: {{runAsUser: 1000{more}}}\nvolumes: [{{name: own, configMap: {{name: own, defaultMode: {mode}}}}}]"
            ),
        )
    };
    boot(&[
        ("others may read", config("0444", "")),
        ("the group of root may read", config("0440", "")),
        ("a group of its own", config("0400", ", fsGroup: 1000")),
    ]);
    deadlock(&[
        ("only root may read", config("0400", "")),
        ("decimal, by mistake", config("400", "")),
        ("another group", config("0440", ", runAsGroup: 1000")),
    ]);
}

#[test]
fn what_the_container_runtime_refuses() {
    let folder = |path: &str| {
        below(&base(), "        imagePullPolicy: IfNotPresent\n", 8, &format!("workingDir: {path}"))
    };
    let own = |lines: &str| {
        below(&base(), "        imagePullPolicy: IfNotPresent\n", 8, &format!("securityContext: {{{lines}}}"))
    };
    boot(&[
        ("an absolute folder", folder("/var/lib/ccm")),
        ("user and group of the Pod", pod("securityContext: {runAsUser: 0, runAsGroup: 0}")),
        ("a user alone", pod("securityContext: {runAsUser: 0}")),
        ("the group of a container", own("runAsGroup: 0")),
    ]);
    deadlock(&[
        ("a relative folder", folder("var/lib/ccm")),
        ("the group of the Pod alone", pod("securityContext: {runAsGroup: 0}")),
        (
            "the group of the Pod, and the user of its container",
            below(
                &own("runAsUser: 0"),
                "      serviceAccountName: ccm\n",
                6,
                "securityContext: {runAsGroup: 0}",
            ),
        ),
    ]);
}

#[test]
fn sidecars_have_settings_of_their_own() {
    let sidecar = |lines: &str| {
        below(
            &base(),
            "      containers:\n",
            6,
            &format!(
                "- {{name: own, image: 'example.test/proxy:v1', imagePullPolicy: IfNotPresent, {lines}}}"
            ),
        )
    };
    boot(&[
        ("a relative folder", sidecar("workingDir: data")),
        ("a name as an address", sidecar("args: [--bind-address=localhost, --tls-min-version=TLS1.2]")),
    ]);
}

#[test]
fn tokens() {
    let covered = |source: &str, more: &str| {
        let text = below(
            &base(),
            "        imagePullPolicy: IfNotPresent\n",
            8,
            &format!("volumeMounts: [{{name: own, mountPath: /var/run/secrets{more}}}]"),
        );
        below(&text, "      serviceAccountName: ccm\n", 6, &format!("volumes: [{{name: own, {source}}}]"))
    };
    let at_path = |path: &str, more: &str| {
        let text = below(
            &base(),
            "        imagePullPolicy: IfNotPresent\n",
            8,
            &format!("volumeMounts: [{{name: own, mountPath: {path}}}]"),
        );
        below(
            &text,
            "      serviceAccountName: ccm\n",
            6,
            &format!("volumes: [{{name: own, emptyDir: {{}}}}]\n{more}"),
        )
    };
    let folder = "/var/run/secrets/kubernetes.io/serviceaccount";
    boot(&[(
        "a path with a slash at its end, which admission does not recognise",
        at_path(&format!("{folder}/"), ""),
    )]);
    deadlock(&[
        ("the usual path", at_path(folder, "")),
        ("a slash, and no token", at_path(&format!("{folder}/"), "automountServiceAccountToken: false")),
    ]);
    boot(&[
        ("an empty folder above", covered("emptyDir: {}", "")),
        ("a folder that the kubelet writes", covered("projected: {sources: []}", ", readOnly: true")),
    ]);
    deadlock(&[("an empty folder above that is read-only", covered("emptyDir: {}", ", readOnly: true"))]);
}

#[test]
fn files_that_the_program_cannot_write_or_read() {
    let folder = argument("--cert-dir=/certs");
    let sealed = |text: &str| {
        below(
            text,
            "        imagePullPolicy: IfNotPresent\n",
            8,
            "securityContext: {readOnlyRootFilesystem: true}",
        )
    };
    let mounted = below(
        &sealed(&folder),
        "        imagePullPolicy: IfNotPresent\n",
        8,
        "volumeMounts: [{name: own, mountPath: /certs}]",
    );
    boot(&[
        ("a certificate in memory", sealed(&base())),
        ("a folder that is writable", folder.clone()),
        (
            "a folder in a volume",
            below(&mounted, "      serviceAccountName: ccm\n", 6, "volumes: [{name: own, emptyDir: {}}]"),
        ),
        (
            "a certificate of its own",
            sealed(&below(&folder, "        - -v=1\n", 8, "- --tls-cert-file=/own.crt")),
        ),
    ]);
    deadlock(&[("a folder on a file system that is read-only", sealed(&folder))]);
    let token = |ids: &str, mode: &str| {
        let volume = format!(
            "automountServiceAccountToken: false\nsecurityContext: {{{ids}}}\nvolumes: [{{name: own, projected: \
             {{defaultMode: {mode}, sources: [{{serviceAccountToken: {{path: token}}}}, {{configMap: {{name: \
             kube-root-ca.crt, items: [{{key: ca.crt, path: ca.crt}}]}}}}, {{downwardAPI: {{items: [{{path: namespace, \
             fieldRef: {{fieldPath: metadata.namespace}}}}]}}}}]}}}}]"
        );
        below(
            &pod(&volume),
            "        imagePullPolicy: IfNotPresent\n",
            8,
            "volumeMounts: [{name: own, mountPath: /var/run/secrets/kubernetes.io/serviceaccount}]",
        )
    };
    boot(&[
        ("a user with the group of root", token("runAsUser: 65532", "0440")),
        ("a group that may read it", token("runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532", "0440")),
        ("everybody may read it", token("runAsUser: 65532, runAsGroup: 65532", "0444")),
    ]);
    deadlock(&[("another user and group", token("runAsUser: 65532, runAsGroup: 65532", "0440"))]);
}

#[test]
fn values_of_flags() {
    boot(&[
        ("another spelling", argument("--allow-untagged-cloud=T")),
        ("an empty argument", argument("''")),
        (
            "a short Lease",
            argument(
                "--leader-elect-lease-duration=1900ms\n- --leader-elect-renew-deadline=1200ms\n- --leader-elect-retry-period=400ms",
            ),
        ),
    ]);
    deadlock(&[
        ("no truth value", argument("--allow-untagged-cloud=yes")),
        ("a variable that is not replaced", argument("--allow-untagged-cloud=$$(DO_ACCESS_TOKEN)")),
        ("a blank argument", argument("' '")),
        (
            "a Lease of less than a second",
            argument(
                "--leader-elect-lease-duration=900ms\n- --leader-elect-renew-deadline=600ms\n- --leader-elect-retry-period=200ms",
            ),
        ),
    ]);
}

#[test]
fn values_of_config_maps_are_not_replaced() {
    let map = |key: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: own, namespace: kube-system}}\ndata: {{{key}: 'http://$(REGION)/'}}"
        )
    };
    let line = "        imagePullPolicy: IfNotPresent\n";
    let all_of = |key: &str| below(&behind(&map(key)), line, 8, "envFrom: [{configMapRef: {name: own}}]");
    let one = below(
        &behind(&map("key")),
        "        env:\n",
        8,
        "- {name: OWN_URL, valueFrom: {configMapKeyRef: {name: own, key: key}}}",
    );
    boot(&[
        ("a note", all_of("NOTE")),
        (
            "it is set again",
            below(&all_of("OWN_URL"), "        env:\n", 8, "- {name: OWN_URL, value: 'http://own/'}"),
        ),
    ]);
    deadlock(&[("an address", all_of("OWN_URL")), ("one key", one)]);
}

#[test]
fn arguments_that_are_variables() {
    let optional = |key: &str| {
        let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own, namespace: kube-system}\ndata: {more: ''}";
        let text = below(&behind(map), "        - -v=1\n", 8, "- $(MORE)");
        below(
            &text,
            "        env:\n",
            8,
            &format!(
                "- {{name: MORE, valueFrom: {{configMapKeyRef: {{name: own, key: {key}, optional: true}}}}}}"
            ),
        )
    };
    let as_value = below(&argument("--cluster-name"), "        - --cluster-name\n", 8, "- $(MORE)");
    boot(&[("an empty one", optional("more")), ("the value of a flag", as_value)]);
    deadlock(&[
        ("one that is not defined", optional("absent")),
        ("one that nothing defines", argument("$(MORE)")),
    ]);
}

#[test]
fn profiles_of_containers_replace_those_of_pods() {
    let with = |own: &str| {
        let text = pod("securityContext: {seccompProfile: {type: Localhost, localhostProfile: own.json}}");
        below(&text, "        imagePullPolicy: IfNotPresent\n", 8, own)
    };
    boot(&[("its own", with("securityContext: {seccompProfile: {type: RuntimeDefault}}"))]);
    all(Outcome::BootsIf, &[("that of its Pod", with("securityContext: {runAsUser: 0}"))]);
}

#[test]
fn variables_from_the_pod_itself() {
    let from = |path: &str| {
        variable("t", &format!("          valueFrom: {{fieldRef: {{fieldPath: \"{path}\"}}}}\n"))
    };
    boot(&[
        ("a label of the template", from("metadata.labels['app']")),
        ("a label that its controller adds", from("metadata.labels['pod-template-hash']")),
    ]);
    deadlock(&[
        ("a label that it does not have", from("metadata.labels['own']")),
        ("an annotation that it does not have", from("metadata.annotations['own']")),
    ]);
}
