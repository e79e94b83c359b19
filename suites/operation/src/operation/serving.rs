//! The endpoints of each replica's secure port (OBS-01 to -03).

use harness_testkit::prelude::*;

/// The CCM serves on a port.
pub(super) const PORT: &[Capability] = &[Capability::SecurePort];
/// The port is reachable.
pub(super) const REACHED: &[Facility] = &[Facility::CcmControl, Facility::HostPorts];

pub(super) const CHECKS: &[Check] = &[
    Check::of("OBS-01", |cx| Box::pin(serves_https(cx))).needs(PORT).of_the_cloud(&[]).with(REACHED),
    Check::of("OBS-02", |cx| Box::pin(says_that_it_is_well(cx))).needs(PORT).of_the_cloud(&[]).with(REACHED),
    Check::of("OBS-03", |cx| Box::pin(tells_of_other_probes(cx))).needs(PORT).of_the_cloud(&[]).with(REACHED),
];

/// The secure ports of all replicas, after these have started.
pub(super) async fn ports(cx: &CheckCx) -> Result<Vec<SecurePort<'_>>, CheckError> {
    let mut ports = Vec::new();
    for replica in cx.replicas() {
        replica.becomes(runs()).await?;
        ports.push(replica.secure_port()?);
    }
    Ok(ports)
}

async fn serves_https(cx: &CheckCx) -> Verdict {
    for port in ports(cx).await? {
        port.get("/").becomes(serves()).await?;
    }
    Ok(())
}

async fn says_that_it_is_well(cx: &CheckCx) -> Verdict {
    for port in ports(cx).await? {
        port.get("/healthz").becomes(answers(200)).when("without a credential").await?;
    }
    Ok(())
}

async fn tells_of_other_probes(cx: &CheckCx) -> Verdict {
    for port in ports(cx).await? {
        let mut statuses = Vec::new();
        for path in ["/livez", "/readyz", "/healthz/leaderElection"] {
            let (status, _) = port.get(path).becomes(serves()).await?;
            statuses.push(format!("{path} {status}"));
        }
        cx.record(port.replica(), statuses.join(", "));
    }
    Ok(())
}
