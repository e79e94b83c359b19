//! Why a Pod's programs cannot run, read from its status. Pure functions.

use super::ends::{ends_of, statuses_of};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::ResourceExt;
use std::sync::Arc;

/// How often a CCM may be restarted before it works: one on the framework exits, by design, while the API server does not
/// answer.
const RESTARTS_AT_MOST: u32 = 5;
/// Reasons of a container whose image cannot be pulled.
const NO_IMAGE: [&str; 4] = ["ErrImageNeverPull", "InvalidImageName", "ErrImagePull", "ImagePullBackOff"];
/// Reasons of a container that cannot be created or started.
const NO_CONTAINER: [&str; 2] = ["CreateContainerError", "RunContainerError"];
/// A message of runc that passes: the kubelet has removed a control group that it took for an old one, and tries again.
const PASSES: &str = "unable to apply cgroup configuration";

/// The reason of a waiting container, and the kubelet's message.
fn waits(status: &ContainerStatus) -> Option<(&str, &str)> {
    let waiting = status.state.as_ref()?.waiting.as_ref()?;
    Some((waiting.reason.as_deref()?, waiting.message.as_deref().unwrap_or_default()))
}

/// A problem of a Pod that does not go away and is not caused by its program, as text.
pub fn unrecoverable(pod: &Pod) -> Option<String> {
    let name = pod.name_any();
    statuses_of(pod).find_map(|status| match waits(status)? {
        (reason, message) if NO_IMAGE.contains(&reason) => {
            Some(format!("Pod {name} cannot pull its image {}: {reason} {message}", status.image))
        }
        (reason, message) if NO_CONTAINER.contains(&reason) && !message.contains(PASSES) => {
            Some(format!("Pod {name} cannot start its container {}: {reason} {message}", status.name))
        }
        _ => None,
    })
}

/// What a Pod's container is missing that may still appear, as text: a Secret or ConfigMap.
pub fn lacks_configuration(pod: &Pod) -> Option<String> {
    let name = pod.name_any();
    statuses_of(pod).find_map(|status| match waits(status)? {
        (reason @ "CreateContainerConfigError", message) => {
            Some(format!("container {} of Pod {name} cannot be started yet: {reason} {message}", status.name))
        }
        _ => None,
    })
}

/// Why none of the Pods runs, if their manifests may be the reason: there are none, the scheduler has found no Node for
/// any of them, or all of them lack a Secret or a ConfigMap. `None` if one of them may start.
pub(crate) fn none_can_run(pods: &[Arc<Pod>]) -> Option<String> {
    if pods.is_empty() {
        return Some("no Pod of it exists".to_owned());
    }
    let why = |pod: &Arc<Pod>| {
        let scheduler = unplaced(pod).map(|says| format!("the scheduler finds no Node: {says}"));
        scheduler.or_else(|| lacks_configuration(pod))
    };
    let all: Vec<String> = pods.iter().map(why).collect::<Option<_>>()?;
    all.into_iter().next()
}

/// Why the scheduler has found no Node for a Pod.
fn unplaced(pod: &Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let scheduled = conditions.iter().find(|condition| condition.type_ == "PodScheduled")?;
    let is_refused = scheduled.status == "False" && scheduled.reason.as_deref() == Some("Unschedulable");
    is_refused.then(|| scheduled.message.clone().unwrap_or_default())
}

/// Whether a Pod's program has exited at least once.
pub(super) fn has_ended(pod: &Pod) -> bool {
    !ends_of(pod).is_empty()
}

/// That a Pod's program crash-loops, as text.
pub fn crash_loops(pod: &Pod) -> Option<String> {
    let looping =
        statuses_of(pod).filter(|status| waits(status).is_some_and(|(why, _)| why == "CrashLoopBackOff"));
    let names: Vec<&str> = looping.map(|status| status.name.as_str()).collect();
    let mut ends = ends_of(pod).into_iter();
    let end = ends.find(|end| end.restarts > RESTARTS_AT_MOST && names.contains(&end.container.as_str()))?;
    Some(format!(
        "Pod {} crash-loops: container {} ended {} times, last with {end}; {}",
        end.pod,
        end.container,
        end.ends,
        end.doubt()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(field: &str, restarts: u32, state: Value) -> Pod {
        let status = json!({"name": "ccm", "image": "acme/ccm:1", "imageID": "", "ready": false,
            "restartCount": restarts, "state": state, "lastState": {"terminated": {"exitCode": 1}}});
        serde_json::from_value(json!({"metadata": {"name": "ccm-a"}, "status": {field: [status]}}))
            .expect("a Pod")
    }

    fn waiting(reason: &str) -> Value {
        json!({"waiting": {"reason": reason, "message": "says the kubelet"}})
    }

    #[test]
    fn start_failures_of_init_containers_are_reported_too() {
        for field in ["containerStatuses", "initContainerStatuses"] {
            let why = |reason| unrecoverable(&pod(field, 0, waiting(reason)));
            for reason in NO_IMAGE {
                let expected =
                    format!("Pod ccm-a cannot pull its image acme/ccm:1: {reason} says the kubelet");
                assert_eq!(why(reason), Some(expected));
            }
            for reason in NO_CONTAINER {
                let expected = format!("Pod ccm-a cannot start its container ccm: {reason} says the kubelet");
                assert_eq!(why(reason), Some(expected));
            }
            for reason in ["PodInitializing", "CrashLoopBackOff", "CreateContainerConfigError"] {
                assert_eq!(why(reason), None, "{reason}");
            }
            let passes = json!({"waiting": {"reason": "RunContainerError", "message": PASSES}});
            assert_eq!(unrecoverable(&pod(field, 0, passes)), None);
            let lacks =
                lacks_configuration(&pod(field, 0, waiting("CreateContainerConfigError"))).expect("it does");
            assert!(lacks.starts_with("container ccm of Pod ccm-a cannot be started yet: "), "{lacks}");
        }
    }

    #[test]
    fn none_can_run_only_if_something_hinders_all_of_them() {
        let pod = |status: &str, reason: &str| {
            let condition =
                json!({"type": "PodScheduled", "status": status, "reason": reason, "message": "0/1 nodes"});
            let pod = json!({"metadata": {"name": "ccm-a"}, "status": {"conditions": [condition]}});
            Arc::new(serde_json::from_value::<Pod>(pod).expect("a Pod"))
        };
        let refused = || pod("False", "Unschedulable");
        let unplaced = none_can_run(&[refused(), refused()]);
        assert_eq!(unplaced.as_deref(), Some("the scheduler finds no Node: 0/1 nodes"));
        assert_eq!(none_can_run(&[refused(), pod("True", "")]), None);
        assert_eq!(none_can_run(&[refused(), Arc::new(Pod::default())]), None, "not looked at yet");
        assert_eq!(none_can_run(&[pod("False", "SchedulingGated")]), None);
        assert_eq!(none_can_run(&[]).as_deref(), Some("no Pod of it exists"));
    }

    #[test]
    fn only_a_program_that_was_restarted_often_crash_loops() {
        let of = |restarts, state| crash_loops(&pod("containerStatuses", restarts, state));
        assert_eq!(of(RESTARTS_AT_MOST, waiting("CrashLoopBackOff")), None);
        assert_eq!(of(9, json!({"running": {}})), None);
        let reason = of(RESTARTS_AT_MOST + 1, waiting("CrashLoopBackOff")).expect("it does");
        assert!(reason.contains("ended 7 times, last with exit code 1; is acme/ccm:1"), "{reason}");
        assert!(crash_loops(&pod("initContainerStatuses", 6, waiting("CrashLoopBackOff"))).is_some());
    }

    #[test]
    fn whether_a_program_has_ended_is_seen_while_it_runs_again() {
        let never = json!({"metadata": {}, "status": {"containerStatuses": [{"name": "c", "image": "i", "imageID": "",
            "ready": true, "restartCount": 0, "state": {"running": {}}}]}});
        assert!(!has_ended(&serde_json::from_value(never).expect("a Pod")));
        assert!(has_ended(&pod("containerStatuses", 1, json!({"running": {}}))));
    }
}
