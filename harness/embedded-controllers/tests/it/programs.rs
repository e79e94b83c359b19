//! Pods as programs.

use std::time::Duration;

use embedded_controllers::{Bounds, CloudProvider, NodeSpec};
use k8s_openapi::api::core::v1::{ConfigMap, ContainerStatus, Event, Pod};
use kube::api::DeleteParams;
use serde_json::json;

use crate::cluster::{Cluster, create, shell, wait, wait_gone};

fn container(pod: &Pod) -> Option<&ContainerStatus> {
    pod.status.as_ref()?.container_statuses.as_ref()?.first()
}

fn waits_for(pod: &Pod) -> Option<String> {
    container(pod)?.state.as_ref()?.waiting.as_ref()?.reason.clone()
}

async fn cluster() -> Cluster {
    let node = NodeSpec { cloud: CloudProvider::None, ..NodeSpec::new("node-0") };
    Cluster::start(vec![node], |settings| {
        settings.programs.push(shell());
        settings.pace.restart_first = Duration::from_secs(2);
    })
    .await
}

fn pod(name: &str, script: &str) -> serde_json::Value {
    json!({"metadata": {"name": name}, "spec": {
        "terminationGracePeriodSeconds": 5,
        "containers": [{"name": "c", "image": "shell", "args": [script]}],
    }})
}

fn text(log: Option<Vec<embedded_controllers::LogLine>>) -> String {
    log.into_iter().flatten().map(|line| line.text).collect()
}

#[tokio::test]
async fn a_program_has_its_environment_and_its_account() {
    let cluster = cluster().await;
    let pods = cluster.api::<Pod>();
    let script = "echo node=$NODE host=$KUBERNETES_SERVICE_HOST; trap 'echo asked; exit 0' TERM; \
                  test -s $FILES/token && cat $FILES/namespace && touch /tmp/none; while :; do sleep 0.1; done";
    let mut object = pod("web", script);
    object["spec"]["containers"][0]["env"] = json!([
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "FILES", "value": "/var/run/secrets/kubernetes.io/serviceaccount"},
    ]);
    create(&pods, object).await;
    wait(&pods, "web", "the Pod is ready", |pod| container(pod).is_some_and(|one| one.ready)).await;
    let handle = cluster.running.pods();
    let written = tokio::time::timeout(Duration::from_secs(20), async {
        let mut again = tokio::time::interval(Duration::from_millis(20));
        loop {
            again.tick().await;
            let log = text(handle.log("default", "web", "c"));
            if log.contains("default") {
                return log;
            }
        }
    })
    .await
    .expect("the program found its files");
    assert!(written.starts_with("node=node-0 host=127.0.0.1\n"), "{written}");
    pods.delete("web", &Default::default()).await.expect("deleted");
    wait_gone(&pods, "web").await;
    let log = text(handle.log("default", "web", "c"));
    assert!(log.ends_with("asked\n"), "the program was not asked to end: {log}");
    cluster.stop().await;
}

#[tokio::test]
async fn a_killed_program_is_restarted_with_back_off() {
    let cluster = cluster().await;
    let pods = cluster.api::<Pod>();
    create(&pods, pod("web", "echo run; exec sleep 600")).await;
    wait(&pods, "web", "it runs", |pod| container(pod).is_some_and(|one| one.ready)).await;
    cluster.running.pods().kill("default", "web", None).expect("a program runs");
    let again = wait(&pods, "web", "it runs again", |pod| {
        container(pod).is_some_and(|one| one.ready && one.restart_count == 1)
    })
    .await;
    let ended =
        container(&again).and_then(|one| one.last_state.as_ref()?.terminated.clone()).expect("how it ended");
    assert_eq!((ended.exit_code, ended.reason.as_deref()), (137, Some("Error")));
    cluster.running.pods().kill("default", "web", None).expect("a program runs");
    let waits =
        wait(&pods, "web", "it waits", |pod| waits_for(pod).as_deref() == Some("CrashLoopBackOff")).await;
    let message = container(&waits).and_then(|one| one.state.as_ref()?.waiting.as_ref()?.message.clone());
    assert!(
        message.is_some_and(
            |text| text.starts_with("back-off 2s restarting failed container=c pod=web_default(")
        )
    );
    wait(&pods, "web", "it runs a third time", |pod| {
        container(pod).is_some_and(|one| one.ready && one.restart_count == 2)
    })
    .await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_missing_config_map_is_waited_for() {
    let cluster = cluster().await;
    let pods = cluster.api::<Pod>();
    let mut object = pod("web", "exec sleep 600");
    object["spec"]["containers"][0]["envFrom"] = json!([{"configMapRef": {"name": "settings"}}]);
    create(&pods, object).await;
    let refused = wait(&pods, "web", "it is refused", |pod| {
        waits_for(pod).as_deref() == Some("CreateContainerConfigError")
    })
    .await;
    let message = container(&refused).and_then(|one| one.state.as_ref()?.waiting.as_ref()?.message.clone());
    assert_eq!(message.as_deref(), Some("configmap \"settings\" not found"));
    let maps = cluster.api::<ConfigMap>();
    create(&maps, json!({"metadata": {"name": "settings"}, "data": {"A": "1"}})).await;
    wait(&pods, "web", "it runs", |pod| container(pod).is_some_and(|one| one.ready)).await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_pod_whose_image_has_no_valid_name_says_so() {
    let cluster = cluster().await;
    let pods = cluster.api::<Pod>();
    let spec = json!({"containers": [
        {"name": "c", "image": "acme.example/No-Such-Release:0"}, {"name": "side", "image": "acme.example/side:1"}
    ]});
    create(&pods, json!({"metadata": {"name": "typo"}, "spec": spec})).await;
    let pod = wait(&pods, "typo", "the kubelet refuses the image", |pod| {
        waits_for(pod).as_deref() == Some("InvalidImageName")
    })
    .await;
    let status = pod.status.expect("a status");
    let side =
        status.container_statuses.iter().flatten().find(|one| one.name == "side").expect("the other one");
    assert!(side.state.as_ref().is_some_and(|state| state.running.is_some()), "{side:?}");
    assert_eq!(status.phase.as_deref(), Some("Pending"));
    cluster.stop().await;
}

#[tokio::test]
async fn a_readiness_probe_decides_and_a_liveness_probe_restarts() {
    let cluster = cluster().await;
    let pods = cluster.api::<Pod>();
    let mut object = pod("web", "exec sleep 600");
    object["spec"]["containers"][0]["readinessProbe"] =
        json!({"exec": {"command": ["true"]}, "periodSeconds": 1});
    object["spec"]["containers"][0]["livenessProbe"] =
        json!({"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 2});
    create(&pods, object).await;
    wait(&pods, "web", "it is ready", |pod| container(pod).is_some_and(|one| one.ready)).await;
    wait(&pods, "web", "it was restarted", |pod| container(pod).is_some_and(|one| one.restart_count > 0))
        .await;
    cluster.stop().await;
}

/// Processes of this computer whose command line contains `text`.
fn processes_with(text: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").expect("/proc");
    let lines = entries.flatten().filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(text))
        .collect()
}

#[tokio::test]
async fn detached_processes_end_with_their_program() {
    let cluster = cluster().await;
    let pods = cluster.api::<Pod>();
    // The program has its own session, another parent and an empty environment, and ignores all signals that
    // can be ignored. No other process of this computer sleeps for this time.
    let seconds = format!("{}", 900_000 + std::process::id());
    let script = format!(
        "setsid env -i /bin/sh -c 'trap \"\" TERM HUP INT; (trap \"\" TERM HUP INT; exec sleep {seconds}) & exec sleep {seconds}' & \
         trap '' TERM; echo detached; while :; do sleep 0.1; done"
    );
    let mut object = pod("web", &script);
    object["spec"]["terminationGracePeriodSeconds"] = json!(1);
    create(&pods, object).await;
    let is_there = || {
        processes_with(&format!("sleep {seconds}")).iter().filter(|line| line.starts_with("sleep")).count()
    };
    let become_so_many = async |wanted: usize| {
        let mut again = tokio::time::interval(Duration::from_millis(20));
        while is_there() != wanted {
            again.tick().await;
        }
    };
    let patience = Duration::from_secs(20);
    tokio::time::timeout(patience, become_so_many(2)).await.expect("it has detached two");
    pods.delete("web", &Default::default()).await.expect("deleted");
    wait_gone(&pods, "web").await;
    let gone = tokio::time::timeout(Duration::from_secs(2), become_so_many(0)).await;
    assert!(gone.is_ok(), "{:?}", processes_with(&seconds));
    cluster.stop().await;
}

/// When a Pod is removed by force, or its grace period is shortened, its program has ended when that is done.
#[tokio::test]
async fn a_deaf_program_ends_with_a_pod_that_is_removed_by_force() {
    let cluster = cluster().await;
    let pods = cluster.api::<Pod>();
    for (at, (name, grace)) in [("forced", 0), ("hurried", 1)].into_iter().enumerate() {
        // No other process of this computer sleeps for this time.
        let seconds = 600_000 + 100_000 * at + std::process::id() as usize;
        let mut object = pod(name, &format!("trap '' TERM; while :; do sleep {seconds}; done"));
        object["spec"]["terminationGracePeriodSeconds"] = json!(600);
        create(&pods, object).await;
        let line = format!("sleep {seconds}");
        let is_there = || processes_with(&line).iter().filter(|line| line.starts_with("sleep")).count() > 0;
        let becomes = async |wanted: bool| {
            let mut again = tokio::time::interval(Duration::from_millis(20));
            while is_there() != wanted {
                again.tick().await;
            }
        };
        let patience = Duration::from_secs(20);
        tokio::time::timeout(patience, becomes(true)).await.expect("it runs");
        pods.delete(name, &Default::default()).await.expect("asked to go");
        wait(&pods, name, "it is to go", |pod| pod.metadata.deletion_timestamp.is_some()).await;
        pods.delete(name, &DeleteParams::default().grace_period(grace)).await.expect("deleted");
        wait_gone(&pods, name).await;
        let gone = tokio::time::timeout(Duration::from_secs(2), becomes(false)).await;
        assert!(gone.is_ok(), "{name}: {:?}", processes_with(&line));
    }
    cluster.stop().await;
}

#[tokio::test]
async fn a_program_that_takes_too_much_is_ended_and_one_that_spins_yields() {
    let node = NodeSpec { cloud: CloudProvider::None, ..NodeSpec::new("node-0") };
    let cluster = Cluster::start(vec![node], |settings| {
        settings.programs.push(shell());
        settings.bounds = Bounds { processes: 40, processor: 10, ..settings.bounds };
    })
    .await;
    let pods = cluster.api::<Pod>();
    let seconds = 800_000 + std::process::id();
    // The shell stays alive, and so does the memory that it has.
    let all = format!("all=$(head -c 100000000 /dev/zero | tr '\\0' a); sleep {seconds}; :");
    let mut large = pod("large", &all);
    large["spec"]["containers"][0]["resources"]["limits"]["memory"] = json!("64Mi");
    create(&pods, large).await;
    create(&pods, pod("many", &format!("for at in $(seq 100); do sleep {seconds} & done; wait"))).await;
    create(&pods, pod("spinning", "while :; do :; done")).await;
    // A limit that the program stays below has no effect.
    let mut small = pod("small", "exec sleep 600");
    small["spec"]["containers"][0]["resources"]["limits"]["memory"] = json!("64Mi");
    create(&pods, small).await;
    // A limit of zero means no limit.
    let mut free = pod("free", "exec sleep 600");
    free["spec"]["containers"][0]["resources"]["limits"]["memory"] = json!("0");
    create(&pods, free).await;
    let ended = |pod: &Pod| container(pod)?.last_state.as_ref()?.terminated.clone();
    let again = wait(&pods, "large", "it was ended", |pod| ended(pod).is_some()).await;
    let how = ended(&again).expect("it was ended");
    assert_eq!((how.exit_code, how.reason.as_deref()), (137, Some("OOMKilled")), "{how:?}");
    assert!(how.message.is_some_and(|text| text.contains("MiB of memory, of 64 MiB at most")));
    let again = wait(&pods, "many", "it was ended", |pod| ended(pod).is_some()).await;
    let how = ended(&again).expect("it was ended");
    assert_eq!((how.exit_code, how.reason.as_deref()), (137, Some("Error")), "{how:?}");
    assert!(how.message.is_some_and(|text| text.contains("processes, of 40 at most")));
    let events = cluster.api::<Event>();
    let patience = Duration::from_secs(60);
    tokio::time::timeout(patience, async {
        let mut again = tokio::time::interval(Duration::from_millis(200));
        loop {
            again.tick().await;
            let all = events.list(&Default::default()).await.expect("events");
            let is_reported = |event: &Event| {
                event.involved_object.name.as_deref() == Some("spinning")
                    && event.message.as_ref().is_some_and(|text| text.contains("they yield to others"))
            };
            if all.items.iter().any(is_reported) {
                return;
            }
        }
    })
    .await
    .expect("it yields");
    let fine = pods.get("spinning").await.expect("it is there");
    assert!(container(&fine).is_some_and(|one| one.ready && one.restart_count == 0), "it keeps running");
    for name in ["small", "free"] {
        let fine = pods.get(name).await.expect("it is there");
        assert!(
            container(&fine).is_some_and(|one| one.ready && one.restart_count == 0),
            "{name} keeps running"
        );
    }
    cluster.stop().await;
}
