//! Operations on the control plane: withholding pod CIDRs from new Nodes, and expiring watches.

use super::access::KindMachines;
use super::exec::{ExecOutput, Stdin, exec, exec_ok};
use crate::error::ClusterError;
use crate::operation::{ApiReach, Operation, WatchOp};
use crate::record::{Machine, Role};
use crate::version::Version;
use harness_core::check::chain;
use harness_core::probe::pause;
use std::time::Duration;
use tokio::time::Instant;

/// Maximum time of a short command.
const LIMIT: Duration = Duration::from_secs(30);
/// How long an API server may take until it does what was requested, including its start.
const TAKES: Duration = Duration::from_secs(150);
const AGAIN: Duration = Duration::from_millis(400);
/// How often in a row an API server must report ready.
const IN_A_ROW: u32 = 3;
const KUBECTL: [&str; 2] = ["kubectl", "--kubeconfig=/etc/kubernetes/admin.conf"];

/// Validating admission policies are `admissionregistration.k8s.io/v1` from this minor version on (KEP-3488).
const POLICIES_SINCE: u32 = 30;
const POLICY: &str = "ccm-conformance-withholds-pod-cidrs";

/// Whether an API server of that version can withhold pod CIDRs.
pub(super) fn withholds_pod_cidrs(kubernetes: &str) -> bool {
    kubernetes.parse().is_ok_and(|version: Version| version.is_at_least(1, POLICIES_SINCE))
}

/// Refuses pod CIDRs written by the control plane's allocator (`nodeipam`, with the account `node-controller`).
fn policy() -> String {
    format!(
        r#"apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: {POLICY}}}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - {{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [nodes]}}
  matchConditions:
    - name: by-the-allocator
      expression: request.userInfo.username == "{ALLOCATOR}"
  validations:
    - expression: "!has(object.spec.podCIDR) || (oldObject != null && has(oldObject.spec.podCIDR))"
      message: new Nodes get no pod CIDRs ({POLICY})
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: {POLICY}}}
spec:
  policyName: {POLICY}
  validationActions: [Deny]
"#
    )
}

/// The account that writes pod CIDRs.
const ALLOCATOR: &str = "system:serviceaccount:kube-system:node-controller";
/// A Node that is never created: a dry run with it shows whether the policy is in effect.
const TRIED: &str = r#"{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "ccm-conformance-tried"}, "spec": {"podCIDR": "192.0.2.0/24"}}"#;

impl KindMachines {
    /// Makes all API servers refuse pod CIDRs of new Nodes, or allow them again.
    pub(super) async fn withhold_pod_cidrs(&self, withheld: bool) -> Result<(), ClusterError> {
        let text = policy();
        let verb: &[&str] =
            if withheld { &["apply", "-f", "-"] } else { &["delete", "--ignore-not-found", "-f", "-"] };
        self.kubectl(self.first_control_plane()?, verb, &text).await?;
        for machine in self.control_planes() {
            self.policy_is(machine, withheld).await?;
        }
        Ok(())
    }

    /// Waits until that machine's API server applies the policy, or no longer does.
    async fn policy_is(&self, machine: &Machine, in_force: bool) -> Result<(), ClusterError> {
        let what = format!(
            "the API server of {} to {} pod CIDRs of new Nodes",
            machine.name,
            if in_force { "refuse" } else { "let pass" }
        );
        let as_allocator = ["--as", ALLOCATOR, "--as-group", "system:masters"];
        // Each control plane uses its own API server.
        let server = format!(
            "--server=https://{}:6443",
            machine.ip().map_or_else(|| "localhost".to_owned(), bracketed)
        );
        let mut command =
            [&KUBECTL[..], &[server.as_str(), "create", "--dry-run=server", "-f", "-"]].concat();
        command.extend(as_allocator);
        let as_wanted = |said: &ExecOutput| match in_force {
            true => said.status != 0 && said.stderr.contains(POLICY),
            false => said.status == 0,
        };
        self.says(machine, &command, TRIED, &what, 1, as_wanted).await
    }

    /// Cuts off Pods from the API server, which is then restarted. Existing watches must end, as they would only be cut
    /// off by their next event. The API server's history begins with its start, so no earlier watch can continue.
    pub(super) async fn set_watches(&self, op: WatchOp) -> Result<(), ClusterError> {
        if op == WatchOp::Expire {
            return self.set_api_reach(ApiReach::All).await;
        }
        self.set_api_reach(ApiReach::None).await?;
        // So that the events so far are not the last ones.
        let mark =
            ["annotate", "--overwrite", "namespace", "kube-system", "ccm-conformance/watches=interrupted"];
        let unmark = ["annotate", "namespace", "kube-system", "ccm-conformance/watches-"];
        for change in [&mark[..], &unmark] {
            self.kubectl(self.first_control_plane()?, change, "").await?;
        }
        for machine in self.control_planes() {
            self.restart_api_server(machine).await?;
        }
        Ok(())
    }

    /// Restarts the kubelet too: it keeps the back-off of containers that have exited, and of an API server that did not
    /// answer.
    async fn restart_api_server(&self, machine: &Machine) -> Result<(), ClusterError> {
        let restart = ["sh", "-c", "pkill -KILL -x kube-apiserver && systemctl restart kubelet.service"];
        exec_ok(&self.engine, machine, &restart, Stdin::Empty, LIMIT).await?;
        let what = format!("the API server of {} to be ready again", machine.name);
        let ask = [&KUBECTL[..], &["--request-timeout=5s", "get", "--raw", "/readyz"]].concat();
        self.says(machine, &ask, "", &what, IN_A_ROW, |said| said.status == 0).await
    }

    /// Repeats a command until its output is `enough` this often in a row.
    async fn says(
        &self,
        machine: &Machine,
        command: &[&str],
        stdin: &str,
        what: &str,
        in_a_row: u32,
        enough: impl Fn(&ExecOutput) -> bool + Send,
    ) -> Result<(), ClusterError> {
        let (began, mut met) = (Instant::now(), 0);
        loop {
            let said = exec(&self.engine, machine, command, Stdin::Text(stdin), LIMIT).await;
            met = if said.as_ref().is_ok_and(&enough) { met + 1 } else { 0 };
            if met >= in_a_row {
                return Ok(());
            }
            if began.elapsed() >= TAKES {
                let seen = match said {
                    Ok(said) => format!("{}{}", said.stdout, said.stderr).trim().to_owned(),
                    Err(error) => chain(&error),
                };
                return Err(ClusterError::TimedOut { what: what.to_owned(), limit: TAKES, seen });
            }
            pause(AGAIN).await;
        }
    }

    async fn kubectl(&self, machine: &Machine, verb: &[&str], stdin: &str) -> Result<(), ClusterError> {
        let command = [&KUBECTL[..], verb].concat();
        exec_ok(&self.engine, machine, &command, Stdin::Text(stdin), LIMIT).await.map(drop)
    }

    fn control_planes(&self) -> impl Iterator<Item = &Machine> {
        self.machines.iter().filter(|machine| machine.role == Role::ControlPlane)
    }

    fn first_control_plane(&self) -> Result<&Machine, ClusterError> {
        let gone = || ClusterError::Gone {
            what: format!("every control plane, for {}", Operation::PodCidrs { withheld: true }),
        };
        self.control_planes().next().ok_or_else(gone)
    }
}

/// An address in the form used in URLs.
fn bracketed(ip: std::net::IpAddr) -> String {
    if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pod_cidrs_are_withheld_where_policies_are_stable() {
        assert!(withholds_pod_cidrs("v1.36.2") && withholds_pod_cidrs("v1.30.0"));
        assert!(
            !withholds_pod_cidrs("v1.29.9") && !withholds_pod_cidrs("v1.20.2") && !withholds_pod_cidrs("")
        );
        let documents = policy();
        assert!(
            documents.contains(ALLOCATOR)
                && documents.contains("{name: ccm-conformance-withholds-pod-cidrs}")
        );
    }
}
