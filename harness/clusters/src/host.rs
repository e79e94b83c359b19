//! Properties of this machine that clusters depend on.

use harness_core::files;
use std::net::{Ipv4Addr, TcpListener};
use std::num::NonZero;
use std::path::Path;
use std::thread::available_parallelism;

/// Cores that this process may use.
pub fn cores() -> usize {
    available_parallelism().map_or(1, NonZero::get)
}

/// Memory that this process may use, MiB: the machine's, or the limit of its control group. `None` if the system does not
/// report it.
pub fn memory_mib() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let machine = read("/proc/meminfo").and_then(|text| total_kib(&text)).map(|kib| kib >> 10);
    let groups = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    // Without a limit the value is 'max', or more than there is.
    let group =
        groups.iter().find_map(|path| read(path)?.trim().parse::<u64>().ok()).map(|bytes| bytes >> 20);
    machine.into_iter().chain(group).min()
}

fn total_kib(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Docker's default data folder.
const DOCKER: &str = "/var/lib/docker";

/// Free space for Docker, MiB; `None` if Docker is not on this machine, or uses another folder.
pub fn docker_disk_mib() -> Option<u64> {
    let elsewhere = std::env::var_os("DOCKER_HOST").is_some();
    free_bytes(Path::new(DOCKER)).filter(|_| !elsewhere).map(|bytes| bytes >> 20)
}

/// Free space for this user in a folder, bytes; `None` if unknown.
pub(super) fn free_bytes(folder: &Path) -> Option<u64> {
    let status = rustix::fs::statvfs(folder).ok()?;
    Some(status.f_bavail.saturating_mul(status.f_frsize))
}

/// Whether programs can listen on this machine's loopback addresses, the usual one and another.
pub(super) fn loopback() -> Result<(), String> {
    for address in [Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 16, 0, 1)] {
        TcpListener::bind((address, 0))
            .map_err(|error| format!("cannot listen on {address}: {}", files::why_not_listening(&error)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_says_what_it_has() {
        assert_eq!(total_kib("MemFree: 1 kB\nMemTotal:       24638572 kB\n"), Some(24_638_572));
        assert_eq!(total_kib(""), None);
        assert!(memory_mib().is_some_and(|mib| mib > 64));
        assert!(cores() > 0);
        assert_eq!(loopback(), Ok(()));
        assert!(free_bytes(&std::env::temp_dir()).is_some());
    }
}
