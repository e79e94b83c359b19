//! The metadata service's address on machines of kind: the machine's own kernel translates it to the service's real
//! address, so that calls of Pods and of programs on the machine's network come from the machine's address.

use super::exec::{Stdin, exec_ok};
use crate::METADATA_ADDRESS;
use crate::error::ClusterError;
use crate::images::Engine;
use crate::record::Machine;
use futures::future::try_join_all;
use std::net::SocketAddrV4;
use std::time::Duration;

/// Time limit for a machine.
const LIMIT: Duration = Duration::from_secs(60);
/// Exit status of the script if a machine lacks a program for it.
const LACKS: i64 = 127;

/// A machine loses its rules when it is switched off, so the rule is a service that is started at boot. `$1` is the
/// address, `$2` its replacement.
const SCRIPT: &str = r#"
for program in iptables systemctl; do command -v $program > /dev/null || exit 127; done
set -e
cat > /etc/systemd/system/metadata-address.service << END
[Unit]
Description=The metadata service's address leads to the cloud of the run
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'for chain in PREROUTING OUTPUT; do iptables -w 10 -t nat -I \$\$chain -d $1 -p tcp --dport 80 -j DNAT --to-destination $2; done'
[Install]
WantedBy=multi-user.target
END
systemctl daemon-reload
systemctl enable --quiet metadata-address.service
systemctl restart metadata-address.service
"#;

/// Makes `at` answer on all machines at the metadata service's address; `false` if a node image lacks the programs.
pub(super) async fn serve(
    engine: &Engine,
    machines: &[Machine],
    at: SocketAddrV4,
) -> Result<bool, ClusterError> {
    let (from, to) = (METADATA_ADDRESS.to_string(), at.to_string());
    let command = ["sh", "-c", SCRIPT, "sh", from.as_str(), to.as_str()];
    let all = machines.iter().map(|machine| exec_ok(engine, machine, &command, Stdin::Empty, LIMIT));
    match try_join_all(all).await {
        Ok(_) => Ok(true),
        Err(ClusterError::Command { status: LACKS, .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
