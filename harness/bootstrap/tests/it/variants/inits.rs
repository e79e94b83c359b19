//! Variants about init containers, sidecars, and volumes that no container mounts.

use super::{all, base, below, boot, changed, deadlock, judge, pod};
use bootstrap::{Outcome, Topology};

const PAUSE: &str = "image: registry.k8s.io/pause:3.10";

fn init(fields: &str) -> String {
    pod(&format!("initContainers: [{{name: own, {fields}}}]"))
}

#[test]
fn containers_before_the_others() {
    boot(&[
        ("a sidecar that does nothing", init(&format!("{PAUSE}, restartPolicy: Always"))),
        (
            "a sidecar that is not ready",
            init(&format!("{PAUSE}, restartPolicy: Always, readinessProbe: {{tcpSocket: {{port: 1}}}}")),
        ),
        ("it prints its version", init("image: 'example.test/do-ccm:dev', args: ['--version']")),
    ]);
    deadlock(&[
        ("it never ends", init(PAUSE)),
        (
            "a sidecar waits for the CCM",
            init(&format!("{PAUSE}, restartPolicy: Always, startupProbe: {{tcpSocket: {{port: 10258}}}}")),
        ),
    ]);
    all(
        Outcome::BootsIf,
        &[
            ("another program", init("image: 'example.test/own:v1'")),
            ("another sidecar", init("image: 'example.test/own:v1', restartPolicy: Always")),
            (
                "a sidecar waits for something on its Node",
                init(&format!("{PAUSE}, restartPolicy: Always, startupProbe: {{tcpSocket: {{port: 22}}}}")),
            ),
        ],
    );
}

#[test]
fn the_program_as_an_init_container() {
    let moved = |before: &str| {
        let text = changed(&base(), "      containers:\n", &format!("      initContainers:\n{before}"));
        changed(
            &text,
            "  replicas: 1\n",
            &format!("      containers: [{{name: hold, {PAUSE}}}]\n  replicas: 1\n"),
        )
    };
    boot(&[("alone", moved(""))]);
    deadlock(&[("after one that never ends", moved(&format!("      - {{name: own, {PAUSE}}}\n")))]);
}

#[test]
fn ports_of_sidecars_count() {
    let port = |more: &str| init(&format!("{PAUSE}, ports: [{{containerPort: 10259}}]{more}"));
    let sidecar = port(", restartPolicy: Always");
    deadlock(&[("the port of the scheduler", sidecar.clone())]);
    let anywhere =
        changed(&sidecar, "      nodeSelector:\n        node-role.kubernetes.io/control-plane: ''\n", "");
    let (two, why) = judge(&anywhere, Topology::ControlPlaneAndWorker);
    assert_eq!(two, Outcome::Boots, "a worker has no scheduler: {why}");
    let version = "image: 'example.test/do-ccm:dev', args: ['--version'], ports: [{containerPort: 10259}]";
    boot(&[("of one that ends", init(version))]);
}

#[test]
fn volumes_that_no_container_mounts() {
    let volume = |source: &str, mount: bool| {
        let text = pod(&format!("volumes: [{{name: own, {source}}}]"));
        let line = "        imagePullPolicy: IfNotPresent\n";
        if mount { below(&text, line, 8, "volumeMounts: [{name: own, mountPath: /own}]") } else { text }
    };
    let (driver, secret) = ("csi: {driver: own.example.test}", "secret: {secretName: absent}");
    boot(&[("a driver", volume(driver, false)), ("a Secret that is absent", volume(secret, false))]);
    deadlock(&[("a driver, mounted", volume(driver, true)), ("a Secret, mounted", volume(secret, true))]);
}

#[test]
fn flags_are_those_of_the_container_that_has_them() {
    let sidecar = |argument: &str| {
        let text = init(&format!("{PAUSE}, restartPolicy: Always, args: [own]"));
        changed(&text, "        - -v=1\n", &format!("        - -v=1\n        - {argument}\n"))
    };
    boot(&[("another spelling", sidecar("--allow-untagged-cloud=T"))]);
    deadlock(&[
        ("no truth value", sidecar("--allow-untagged-cloud=maybe")),
        ("a variable that nothing defines", sidecar("$(OWN)")),
    ]);
}
