//! Statuses of Pods with programs that exited, as kubelets, containerd and the embedded cluster write them.

use super::*;
use serde_json::{Value, json};

fn pod(statuses: Value) -> Arc<Pod> {
    let pod = json!({"metadata": {"name": "ccm-a", "uid": "u-1"}, "status": {"containerStatuses": statuses}});
    Arc::new(serde_json::from_value(pod).expect("a Pod"))
}

fn container(restarts: u32, state: Value, last: Value) -> Value {
    json!([{"name": "ccm", "image": "acme/ccm:1", "imageID": "", "ready": false, "restartCount": restarts,
        "state": state, "lastState": last}])
}

fn ended(code: i32) -> Value {
    json!({"terminated": {"exitCode": code, "reason": "Error",
        "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:05Z"}})
}

fn back_off() -> Value {
    json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting failed container"}})
}

fn shown_ends(statuses: Value) -> Vec<(u32, u32, String)> {
    ends_of(&pod(statuses)).iter().map(|end| (end.ends, end.restarts, end.to_string())).collect()
}

#[test]
fn an_end_has_its_exit_code_signal_and_time() {
    let after = |code| format!("{code} after 5 s");
    // Just exited; waiting for the next start; started again.
    assert_eq!(shown_ends(container(0, ended(1), json!({}))), [(1, 0, after("exit code 1"))]);
    assert_eq!(shown_ends(container(1, back_off(), ended(1))), [(2, 1, after("exit code 1"))]);
    assert_eq!(shown_ends(container(2, json!({"running": {}}), ended(0))), [(2, 2, after("exit code 0"))]);
    assert_eq!(shown_ends(container(0, ended(139), json!({}))), [(1, 0, after("exit code 139 (SIGSEGV)"))]);
    // Neither started nor exited.
    assert_eq!(shown_ends(container(0, json!({"running": {}}), json!({}))), []);
    assert_eq!(shown_ends(container(0, json!({"waiting": {"reason": "ContainerCreating"}}), json!({}))), []);
    // A kubelet that has lost the last state still knows that there were restarts.
    assert_eq!(shown_ends(container(4, back_off(), json!({}))), [(4, 4, "an unknown exit code".to_owned())]);
}

#[test]
fn the_kubelets_message_about_an_end_is_kept() {
    let killed = json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}});
    assert_eq!(
        shown_ends(container(0, killed, json!({}))),
        [(1, 0, "exit code 137 (SIGKILL, OOMKilled)".to_owned())]
    );
    // containerd's status for a program that cannot be executed; its start is the zero time.
    let why = "failed to create containerd task: exec: \"/ccm\": permission denied";
    let never = json!({"terminated": {"exitCode": 128, "reason": "StartError", "message": why,
        "startedAt": "1970-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:05Z"}});
    let waits = json!({"waiting": {"reason": "RunContainerError", "message": why}});
    let [end] = ends_of(&pod(container(1, waits, never))).try_into().expect("one");
    assert_eq!((end.to_string().as_str(), end.message.as_deref()), ("exit code 128 (StartError)", Some(why)));
    assert_eq!(end.hint(), None);
    for (code, hint) in [(126, "cannot be executed"), (127, "does not exist")] {
        let [end] = ends_of(&pod(container(0, ended(code), json!({})))).try_into().expect("one");
        assert!(end.hint().expect("one").contains(hint), "{code}");
    }
    let [mut end] = ends_of(&pod(container(0, ended(127), json!({})))).try_into().expect("one");
    assert!(!end.hint().expect("one").contains("sandbox"), "an image has its own files");
    end.image = format!("{IMAGE_REGISTRY}/binary:1");
    assert!(end.hint().expect("one").contains("('ccm-conformance docs sandbox')"), "{:?}", end.hint());
}

#[test]
fn an_init_container_ends_only_when_it_fails() {
    let with_init = |state: Value| {
        let init = json!([{"name": "copy", "image": "i", "imageID": "", "ready": false, "restartCount": 1,
            "state": state}]);
        let pod =
            json!({"metadata": {"name": "ccm-a", "uid": "u-1"}, "status": {"initContainerStatuses": init}});
        ends_of(&serde_json::from_value(pod).expect("a Pod"))
    };
    assert_eq!(with_init(ended(0)), []);
    let [end] = with_init(ended(3)).try_into().expect("one");
    assert_eq!((end.container.as_str(), end.exit_code, end.ends), ("copy", Some(3), 2));
}

#[test]
fn a_program_has_three_chances_from_the_moment_on() {
    let at = |restarts, state| vec![pod(container(restarts, state, ended(1)))];
    let mut starts = Starts::default();
    let mut news = |pods: &[Arc<Pod>], counts: bool| {
        let news = starts.news(pods);
        news.iter().map(|(end, times)| (*times, counts && starts.count(end, *times))).collect::<Vec<_>>()
    };
    assert_eq!(news(&at(1, json!({"running": {}})), true), [(1, false)]);
    assert_eq!(news(&at(1, json!({"running": {}})), true), [], "nothing new");
    assert_eq!(news(&at(1, back_off()), true), [(1, false)]);
    // While the API server was away the restarts were not observed, so they do not count.
    assert_eq!(news(&at(4, back_off()), false), [(3, false)]);
    assert_eq!(news(&at(5, back_off()), true), [(1, true)]);
    // Earlier ones do not count either.
    let mut later = Starts::from_now(&at(5, back_off()));
    let [(end, times)] = later.news(&at(7, back_off())).try_into().expect("one");
    assert_eq!((times, later.count(&end, times)), (2, false));
    // A Pod's ends do not count for another one.
    let other = ProgramEnd { uid: "u-2".to_owned(), ..end };
    assert!(!later.count(&other, 2));
}
