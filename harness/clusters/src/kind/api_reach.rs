//! Restricts which clients on machines of kind reach the API server, with each machine's own packet filter. Pure
//! functions.
//!
//! Pods on the pod network are identified by their addresses. A Pod on its machine's network has the machine's address,
//! and is identified by a supplementary group of its processes, which replicas of the CCM get for that.

use crate::operation::{ApiReach, PodTraffic};
use std::net::IpAddr;
use std::time::Duration;

/// The first group of replicas.
pub(super) const FIRST_GROUP: u32 = 61_000;
/// The last one.
const LAST_GROUP: u32 = FIRST_GROUP + 63;

/// A placeholder in the rules for the network device with the machine's address. Docker gives it another name when a
/// machine is switched off and on.
const DEVICE: &str = "MACHINE-DEVICE";

/// Reads the arguments, and defines what both scripts need. `$1` is the program, `$2` the port, `$3` the machine's address;
/// the standard input contains rules.
const BEGINNING: &str = r#"
set -e
program=$1 port=$2
device=$(ip -o addr show to "$3" | { read -r _ name _; echo "${name%@*}"; })
[ -n "$device" ] || { echo "no device of this machine has the address $3" >&2; exit 1; }
rules=$(sed "s/MACHINE-DEVICE/$device/")
replace() { printf '%s\n' "$1" | $program-restore -w 10 --noflush; }
direct() {
  for chain in OUTPUT FORWARD INPUT; do
    rule="$chain -p tcp --dport $port -j CCM-API-$chain"
    $program -w 10 -C $rule 2> /dev/null || $program -w 10 -I $rule
  done
}
"#;

/// Replaces the previous rules, all at once, and directs packets for the API server to them.
const REPLACE: &str = r#"
replace "$rules"
direct
"#;

/// Replaces the previous rules for `$4` seconds, and prints when that began and ended, in nanoseconds since 1970. Nothing
/// else happens in that time: on a busy machine each further program would make it longer.
const OUTAGE: &str = r#"
none='*filter
:CCM-API-OUTPUT - [0:0]
:CCM-API-FORWARD - [0:0]
:CCM-API-INPUT - [0:0]
COMMIT'
replace "$none"
direct
date +%s%N
replace "$rules"
sleep "$4"
replace "$none"
date +%s%N
"#;

/// The script that replaces the previous rules.
pub(super) fn replacing() -> String {
    format!("{BEGINNING}{REPLACE}")
}

/// The script that replaces them for a time.
pub(super) fn an_outage() -> String {
    format!("{BEGINNING}{OUTAGE}")
}

/// The time from the first to the last one that [`an_outage`] printed on all machines, which have the clock of this host.
pub(super) fn duration(outputs: &[String]) -> Option<Duration> {
    let times: Option<Vec<u64>> =
        outputs.iter().flat_map(|output| output.lines()).map(|ns| ns.parse().ok()).collect();
    let times = times.filter(|times| times.len() == 2 * outputs.len())?;
    Some(Duration::from_nanos(times.iter().max()? - times.iter().min()?))
}

/// Whether packets of a Pod can be distinguished from those of its machine.
pub(super) fn is_distinguishable(pod: &PodTraffic) -> bool {
    !pod.addresses.is_empty() || own_groups(pod).next().is_some()
}

/// The groups of a Pod that only it has.
fn own_groups(pod: &PodTraffic) -> impl Iterator<Item = u32> + '_ {
    pod.groups.iter().copied().filter(|group| (FIRST_GROUP..=LAST_GROUP).contains(group))
}

/// The chains for one family of addresses, for packets to the API server only. Matching packets by groups requires Linux
/// 5.3 and iptables 1.8.4.
pub(super) fn rules(reach: ApiReach<'_>, is_of_the_family: fn(&IpAddr) -> bool) -> String {
    const REFUSED: &str = "-p tcp -j REJECT --reject-with tcp-reset";
    let of_group = |groups: &str| {
        format!(
            "-A CCM-API-OUTPUT -p tcp -m owner --gid-owner {groups} --suppl-groups -j REJECT --reject-with tcp-reset"
        )
    };
    let mut lines: Vec<String> = vec!["*filter".to_owned()];
    lines.extend(["OUTPUT", "FORWARD", "INPUT"].map(|chain| format!(":CCM-API-{chain} - [0:0]")));
    match reach {
        ApiReach::All => {}
        ApiReach::None => {
            lines.push(of_group(&format!("{FIRST_GROUP}-{LAST_GROUP}")));
            // Forwarded packets are from the machine's Pods; so are incoming ones, except those of machines.
            lines.push(format!("-A CCM-API-FORWARD {REFUSED}"));
            lines.extend(["lo", DEVICE].map(|known| format!("-A CCM-API-INPUT -i {known} -j RETURN")));
            lines.push(format!("-A CCM-API-INPUT {REFUSED}"));
        }
        ApiReach::AllBut(pods) => {
            for pod in pods {
                let addresses = pod.addresses.iter().filter(|address| is_of_the_family(address));
                lines.extend(addresses.flat_map(|address| {
                    ["FORWARD", "INPUT"].map(|chain| format!("-A CCM-API-{chain} -s {address} {REFUSED}"))
                }));
                lines.extend(own_groups(pod).map(|group| of_group(&group.to_string())));
            }
        }
    }
    lines.push("COMMIT\n".to_owned());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_lasts_from_the_first_machine_to_the_last() {
        let outputs = |all: [&str; 2]| all.map(str::to_owned);
        let both = outputs(["5000000000\n7000000000\n", "5500000000\n7500000000\n"]);
        assert_eq!(duration(&both), Some(Duration::from_millis(2_500)));
        for broken in [outputs(["5\n7\n", "5\n"]), outputs(["5\n7\n", "date: bad\n7\n"])] {
            assert_eq!(duration(&broken), None);
        }
        assert_eq!(duration(&[]), None);
    }

    #[test]
    fn pods_are_known_by_their_addresses_and_replicas_on_the_hosts_network_by_their_group() {
        let pods = [
            PodTraffic {
                name: "a".to_owned(),
                addresses: Vec::new(),
                groups: vec![7, FIRST_GROUP + 1],
                token: None,
            },
            PodTraffic {
                name: "b".to_owned(),
                addresses: ["10.244.0.7", "fd00::7"].map(|ip| ip.parse().expect("an address")).into(),
                groups: Vec::new(),
                token: None,
            },
        ];
        assert_eq!(
            rules(ApiReach::AllBut(&pods), IpAddr::is_ipv4),
            "*filter\n:CCM-API-OUTPUT - [0:0]\n:CCM-API-FORWARD - [0:0]\n:CCM-API-INPUT - [0:0]\n\
             -A CCM-API-OUTPUT -p tcp -m owner --gid-owner 61001 --suppl-groups -j REJECT --reject-with tcp-reset\n\
             -A CCM-API-FORWARD -s 10.244.0.7 -p tcp -j REJECT --reject-with tcp-reset\n\
             -A CCM-API-INPUT -s 10.244.0.7 -p tcp -j REJECT --reject-with tcp-reset\n\
             COMMIT\n"
        );
        assert!(rules(ApiReach::AllBut(&pods), IpAddr::is_ipv6).contains("-s fd00::7 "));
        assert!(!rules(ApiReach::All, IpAddr::is_ipv4).contains("REJECT"), "what was refused passes again");
        let none = rules(ApiReach::None, IpAddr::is_ipv4);
        assert!(
            none.contains("--gid-owner 61000-61063 ") && none.contains("-i MACHINE-DEVICE -j RETURN"),
            "{none}"
        );
    }
}
