//! Whether a program is static.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;

/// Accepts a program that needs no other file to start.
///
/// # Errors
/// The file cannot be read, is not a program, or names an interpreter, which would load shared libraries.
pub(super) fn is_static(program: &Path) -> Result<()> {
    let bytes = fs::read(program).with_context(|| program.display().to_string())?;
    match interpreter(&bytes) {
        Some(false) => Ok(()),
        Some(true) => bail!("{} is not static: it names an interpreter", program.display()),
        None => bail!("{} is not a 64-bit ELF program", program.display()),
    }
}

/// Whether a program of 64 bits has a header of the kind `PT_INTERP` (elf(5)).
fn interpreter(bytes: &[u8]) -> Option<bool> {
    const INTERPRETER: u32 = 3;
    let number = |at: usize, length: usize| -> Option<u64> {
        let mut all = [0; 8];
        all[..length].copy_from_slice(bytes.get(at..at + length)?);
        Some(u64::from_le_bytes(all))
    };
    if bytes.get(..6)? != [0x7f, b'E', b'L', b'F', 2, 1] {
        return None;
    }
    let place = |at, length| usize::try_from(number(at, length)?).ok();
    let (table, size, count) = (place(32, 8)?, place(54, 2)?, place(56, 2)?);
    let kinds = (0..count).map(|index| number(table + index * size, 4));
    Some(kinds.flatten().any(|kind| kind == u64::from(INTERPRETER)))
}

#[cfg(test)]
mod tests {
    use super::interpreter;

    #[test]
    fn static_and_dynamically_linked_programs_are_distinguished() {
        let mut program = vec![0; 64 + 2 * 56];
        program[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
        (program[32], program[54], program[56]) = (64, 56, 2);
        assert_eq!(interpreter(&program), Some(false));
        program[64 + 56] = 3;
        assert_eq!(interpreter(&program), Some(true));
        assert_eq!(interpreter(b"#!/bin/sh\n"), None);
    }
}
