//! Connections of a process, as far as `/proc` shows them.
//! Format: <https://man7.org/linux/man-pages/man5/proc_pid_net.5.html>.

use rustix::process::Pid;
use std::collections::BTreeSet;

/// The code of an established connection.
const ESTABLISHED: &str = "01";

/// Whether a process has a connection to that port, by IPv4 or IPv6.
pub(super) fn is_connected_to(port: u16, process: Pid) -> bool {
    let folder = format!("/proc/{}", process.as_raw_nonzero());
    let own: BTreeSet<String> = std::fs::read_dir(format!("{folder}/fd"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|file| Some(std::fs::read_link(file.path()).ok()?.to_string_lossy().into_owned()))
        .collect();
    ["tcp", "tcp6"].iter().any(|table| {
        let table = std::fs::read_to_string(format!("{folder}/net/{table}")).unwrap_or_default();
        established_to(port, &table).any(|socket| own.contains(&format!("socket:[{socket}]")))
    })
}

/// The inodes of the sockets that are connected to that port.
fn established_to(port: u16, table: &str) -> impl Iterator<Item = &str> {
    let port = format!(":{port:04X}");
    table.lines().filter_map(move |line| {
        let mut words = line.split_ascii_whitespace().skip(2);
        let (remote, state) = (words.next()?, words.next()?);
        (remote.ends_with(&port) && state == ESTABLISHED).then(|| words.nth(5)).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn of_a_table_those_count_that_are_connected_to_the_port() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:1FC4 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 0 100\n\
            1: 0100007F:9A3C 0100007F:1FC4 01 00000000:00000000 00:00000000 00000000     0        0 12 1 0 20\n\
            2: 0100007F:1FC4 0100007F:9A3C 01 00000000:00000000 00:00000000 00000000     0        0 13 1 0 20\n\
            3: 0100007F:9A3E 0100007F:1FC4 06 00000000:00000000 03:00000000 00000000     0        0 0 3 0\n";
        assert_eq!(established_to(0x1FC4, table).collect::<Vec<_>>(), ["12"]);
    }

    #[test]
    fn this_process_is_connected_with_either_protocol() {
        let own = rustix::process::getpid();
        for any in ["127.0.0.1:0", "[::1]:0"] {
            // Some machines do not have both.
            let Ok(listener) = TcpListener::bind(any) else { continue };
            let address = listener.local_addr().expect("an address");
            assert!(!is_connected_to(address.port(), own), "{any}: not yet");
            let _stream = TcpStream::connect(address).expect("a connection");
            assert!(is_connected_to(address.port(), own), "{any}");
        }
    }
}
