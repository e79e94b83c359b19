//! Variants about forms of objects that kubectl and the API server change, drop or refuse.

use super::expressions::policy;
use super::{all, argument, base, behind, below, boot, changed, container, deadlock, pod, variable};
use bootstrap::Outcome;

#[test]
fn what_is_dropped_does_not_matter() {
    boot(&[
        (
            "the namespace of a binding of the cluster",
            changed(
                &base(),
                "kind: ClusterRoleBinding\nmetadata:\n",
                "kind: ClusterRoleBinding\nmetadata:\n  namespace: kube-system\n",
            ),
        ),
        (
            "a Lease in a version that is not served any more",
            behind(
                "apiVersion: coordination.k8s.io/v1beta1\nkind: Lease\nmetadata: {name: cloud-controller-manager, namespace: kube-system}\nspec: {holderIdentity: other, leaseDurationSeconds: 3600}",
            ),
        ),
        ("a stop signal", container("lifecycle: {stopSignal: SIGTERM}")),
        ("a full host name on the host's network", pod("setHostnameAsFQDN: true\nsubdomain: own")),
        (
            "a safe sysctl with slashes",
            pod("securityContext: {sysctls: [{name: kernel/shm_rmid_forced, value: '1'}]}"),
        ),
    ]);
    deadlock(&[(
        "a Lease in a version that is served",
        behind(
            "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: cloud-controller-manager, namespace: kube-system}\nspec: {holderIdentity: other, leaseDurationSeconds: 3600}",
        ),
    )]);
    all(
        Outcome::BootsIf,
        &[(
            "an unsafe sysctl with slashes",
            pod("securityContext: {sysctls: [{name: net/core/somaxconn, value: '1024'}]}")
                .replace("      hostNetwork: true\n", ""),
        )],
    );
}

#[test]
fn numbers_and_ends_of_documents() {
    let user = |number: &str| pod(&format!("securityContext: {{runAsUser: {number}}}"));
    let text = base();
    let (before, deployment) = text.rsplit_once("---\n").expect("documents");
    boot(&[
        ("a float without a fraction", user("1e+03")),
        ("with a point", user("1000.0")),
        ("three dots and three dashes", format!("{before}...\n---\n{deployment}")),
        ("three dots at the end", format!("{text}\n...\n")),
        ("more after three dots", format!("{text}\n...\nkind: Pod\n")),
    ]);
    deadlock(&[
        ("a fraction", user("1000.5")),
        ("the account after three dots", {
            let (account, rest) = text.split_once("---\n").expect("documents");
            format!(
                "kind: ConfigMap\napiVersion: v1\nmetadata: {{name: a, namespace: kube-system}}\n...\n{account}---\n{rest}"
            )
        }),
    ]);
}

#[test]
fn lists_of_one_kind() {
    let text = base();
    let (before, deployment) = text.rsplit_once("---\n").expect("documents");
    let listed = |kind: bool| {
        let item = if kind {
            deployment.to_owned()
        } else {
            deployment.replace("apiVersion: apps/v1\nkind: Deployment\n", "")
        };
        let mut lines = item.lines();
        let first = lines.next().unwrap_or_default();
        let rest: String = lines.map(|line| format!("  {line}\n")).collect();
        format!("{before}---\napiVersion: apps/v1\nkind: DeploymentList\nitems:\n- {first}\n{rest}")
    };
    boot(&[("with the kind of each item", listed(true)), ("without", listed(false))]);
}

#[test]
fn names_that_are_copied_or_taken() {
    let template = |lines: &str| below(&base(), "    metadata:\n      labels:\n        app: ccm\n", 6, lines);
    boot(&[("a finalizer with a domain", template("finalizers: [example.com/own]"))]);
    deadlock(&[("a finalizer without one", template("finalizers: [own]"))]);
    let volume = |name: &str| {
        pod(&format!(
            "volumes: [{{name: {name}, projected: {{sources: [{{serviceAccountToken: {{path: vault-token, audience: vault}}}}]}}}}]"
        ))
    };
    boot(&[("a volume of another name", volume("vault"))]);
    deadlock(&[("a volume with the name of that of the token", volume("kube-api-access-vault"))]);
}

#[test]
fn texts_with_line_breaks_and_quotes() {
    let host = |value: &str| variable("172.18.0.2", &format!("          value: {value}\n"));
    boot(&[
        ("without the line break", host("|-\n            172.18.0.2")),
        ("quotes around one name", argument("'--controllers=\"*\"'")),
    ]);
    deadlock(&[
        ("with the line break", host("|\n            172.18.0.2")),
        ("quotes around a list", argument("'--controllers=\"*,-service\"'")),
    ]);
}

#[test]
fn parameters_of_a_binding() {
    let with = |reference: &str| {
        let fields =
            "  paramKind: {apiVersion: v1, kind: ConfigMap}\n  validations: [{expression: 'false'}]\n";
        let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own, namespace: kube-system}\n---\n";
        format!("{map}{}", policy("nodes", fields, &format!(", paramRef: {{{reference}}}")))
    };
    deadlock(&[("complete", with("name: own, namespace: kube-system, parameterNotFoundAction: Deny"))]);
    boot(&[
        ("without the action, and so refused", with("name: own, namespace: kube-system")),
        ("without a name, and so refused", with("namespace: kube-system, parameterNotFoundAction: Deny")),
    ]);
}

#[test]
fn a_bare_pod_of_another_controller() {
    let bare = |labels: &str| {
        let text = base();
        let (before, deployment) = text.rsplit_once("---\n").expect("documents");
        let spec = deployment.split_once("    spec:\n").expect("a template").1;
        let spec = spec.split_once("  replicas: 1\n").expect("an end").0;
        let spec: String =
            spec.lines().map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(line))).collect();
        format!(
            "{before}---\napiVersion: v1\nkind: Pod\nmetadata: {{name: cloud-controller-manager, namespace: kube-system, labels: {{{labels}}}}}\nspec:\n{spec}"
        )
    };
    boot(&[("labels of its own", bare("app: ccm"))]);
    deadlock(&[("those of kube-proxy", bare("k8s-app: kube-proxy"))]);
}

#[test]
fn directives_of_yaml() {
    let before = |lines: &str| format!("{lines}---\n{}", base());
    boot(&[(
        "after the end of a document",
        before("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own}\n...\n%YAML 1.2\n"),
    )]);
    for lines in ["%YAML 1.2\n", "# a comment\n%YAML 1.1\n", "%TAG ! tag:example.com,2000:\n"] {
        let (code, out, err) = crate::bootstrap(&["check", "-"], &before(lines));
        assert!(
            code == 2 && format!("{out}{err}").contains("begins with a YAML directive"),
            "{lines}: {out}{err}"
        );
    }
}

#[test]
fn a_bare_pod_with_the_port_of_the_program() {
    let text = base();
    let (before, deployment) = text.rsplit_once("---\n").expect("documents");
    let taken = |policy: &str| {
        let class = format!(
            "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: high}}\nvalue: 1000\npreemptionPolicy: {policy}\n"
        );
        let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: first, namespace: kube-system}\nspec: {hostNetwork: true, priority: 0, tolerations: [{operator: Exists}], nodeSelector: {node-role.kubernetes.io/control-plane: ''}, containers: [{name: first, image: 'registry.k8s.io/pause:3.10', imagePullPolicy: IfNotPresent, ports: [{containerPort: 10258}]}]}\n";
        let own = changed(
            deployment,
            "        imagePullPolicy: IfNotPresent\n",
            "        imagePullPolicy: IfNotPresent\n        ports: [{containerPort: 10258}]\n",
        );
        let own = changed(
            &own,
            "      hostNetwork: true\n",
            "      hostNetwork: true\n      priorityClassName: high\n",
        );
        format!("{before}---\n{class}---\n{pod}---\n{own}")
    };
    boot(&[("the program may preempt it", taken("PreemptLowerPriority"))]);
    deadlock(&[("the program preempts none", taken("Never"))]);
}
