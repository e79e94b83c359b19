//! The names of machines.

use crate::record::Role;

/// The names kind gives to machines, in the order of the topology.
pub(super) fn machine_names(cluster: &str, roles: &[Role]) -> Vec<String> {
    let mut counts = [0_u32; 2];
    roles
        .iter()
        .map(|role| {
            let count = &mut counts[usize::from(*role == Role::Worker)];
            *count += 1;
            if *count == 1 { format!("{cluster}-{role}") } else { format!("{cluster}-{role}{count}") }
        })
        .collect()
}
