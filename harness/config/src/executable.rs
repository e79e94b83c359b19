//! Checks whether this machine can execute a file, before anything is started. The first twenty bytes say it; crates for ELF
//! parse whole files.

use harness_core::files;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// How many bytes of a file show its format.
const HEAD: usize = 20;
const ELF: [u8; 4] = *b"\x7fELF";
/// The folder in which the kernel lists handlers for files of other formats and machines.
const HANDLERS: &str = "/proc/sys/fs/binfmt_misc";

/// Machines by their number in an ELF header (`e_machine`).
const MACHINES: [(u16, &str); 8] = [
    (3, "x86"),
    (8, "mips"),
    (21, "powerpc64"),
    (22, "s390x"),
    (40, "arm"),
    (62, "x86_64"),
    (183, "aarch64"),
    (243, "riscv64"),
];

/// The reason why this machine cannot execute a program; `None` if it can, or if that cannot be determined.
pub(super) fn not_executable_here(program: &Path) -> Option<String> {
    let head = match head_of(program) {
        Ok(head) => head,
        // A file that may be executed but not read.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return None,
        Err(error) => return Some(files::why(&error)),
    };
    let why = judge(&head, std::env::consts::ARCH)?;
    (!has_handler(Path::new(HANDLERS))).then_some(why)
}

fn head_of(program: &Path) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(program)?.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// Whether a handler for such files is registered, QEMU for example.
fn has_handler(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).any(|name| name != "register" && name != "status")
}

/// The reason why a file that begins with these bytes is not a program for this machine.
fn judge(head: &[u8], here: &str) -> Option<String> {
    if head.starts_with(b"#!") {
        return None;
    }
    if !head.starts_with(&ELF) {
        let why = "is neither an ELF program nor a script that begins with '#!'";
        return Some(if head.is_empty() { "is empty".to_owned() } else { why.to_owned() });
    }
    let &[low, high] = head.get(18..20)? else { return None };
    // The sixth byte of a header gives the byte order.
    let number = if head[5] == 2 { u16::from_be_bytes([low, high]) } else { u16::from_le_bytes([low, high]) };
    let machine = MACHINES.iter().find(|(one, _)| *one == number).map(|(_, name)| *name);
    match machine {
        Some(machine) if machine == here => None,
        // These machines also execute programs for the smaller one.
        Some("x86") if here == "x86_64" => None,
        Some("arm") if here == "aarch64" => None,
        // The number of this machine is not known.
        _ if !MACHINES.iter().any(|(_, name)| *name == here) => None,
        Some(machine) => Some(format!("is a program for {machine}, and this machine is {here}")),
        None => Some(format!(
            "is a program for another machine (number {number} of ELF), and this machine is {here}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elf(order: u8, machine: [u8; 2]) -> Vec<u8> {
        let mut head = vec![0; HEAD];
        head[..4].copy_from_slice(&ELF);
        head[5] = order;
        head[18..].copy_from_slice(&machine);
        head
    }

    #[test]
    fn programs_of_other_architectures_and_other_files_are_named() {
        let why = |head: &[u8]| judge(head, "x86_64");
        assert_eq!(why(&elf(1, [62, 0])), None);
        assert_eq!(why(&elf(1, [3, 0])), None, "a 32-bit program");
        assert_eq!(why(b"#!/bin/sh\nexit 1\n"), None);
        assert_eq!(
            why(&elf(1, [183, 0])),
            Some("is a program for aarch64, and this machine is x86_64".to_owned())
        );
        assert_eq!(
            why(&elf(2, [0, 22])),
            Some("is a program for s390x, and this machine is x86_64".to_owned())
        );
        assert!(why(&elf(1, [1, 9])).expect("unknown").contains("number 2305 of ELF"));
        assert_eq!(judge(&elf(1, [62, 0]), "loongarch64"), None, "undecidable");
        assert_eq!(why(b""), Some("is empty".to_owned()));
        for odd in [b"MZ\x90\0".as_slice(), b"echo hello\n"] {
            assert!(why(odd).expect("no program").starts_with("is neither an ELF program"), "{odd:?}");
        }
    }

    #[test]
    fn this_very_program_can_be_executed() {
        assert_eq!(not_executable_here(&std::env::current_exe().expect("it is one")), None);
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["register", "status"] {
            std::fs::write(folder.path().join(name), "").expect("written");
        }
        assert!(!has_handler(folder.path()) && !has_handler(Path::new("/nowhere")));
        std::fs::write(folder.path().join("qemu-aarch64"), "enabled\n").expect("written");
        assert!(has_handler(folder.path()));
    }
}
