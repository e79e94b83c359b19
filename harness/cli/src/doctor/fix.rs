//! Fixes problems that need no additional privileges.

use harness_clusters::Remedy;
use harness_core::files;
use std::path::Path;

/// Applies a remedy; returns a description of the result. Limits are files below `sysctl`.
pub(super) fn fix(remedy: &Remedy, sysctl: &Path) -> String {
    match remedy {
        Remedy::Limit { file, value } => {
            let name = file.replace('/', ".");
            match raise(&sysctl.join(file), *value) {
                Ok(()) => format!("fixed: {name} is {value} until the next boot"),
                Err(error) => {
                    let why = files::why(&error);
                    format!(
                        "not fixed: {name} cannot be set: {why}; as root of the machine: sysctl {name}={value}"
                    )
                }
            }
        }
        Remedy::Folder(folder) => match std::fs::create_dir_all(folder) {
            Ok(()) => format!("fixed: created {}", folder.display()),
            Err(error) => {
                format!("not fixed: {} cannot be created: {}", folder.display(), files::why(&error))
            }
        },
    }
}

/// Raises a limit; one that is already higher does not change.
fn raise(file: &Path, value: u64) -> std::io::Result<()> {
    let now = std::fs::read_to_string(file)?.trim().parse::<u64>().unwrap_or(0);
    if now < value { std::fs::write(file, value.to_string()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_raised_and_never_lowered() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, remedy) =
            (folder.path().join("low"), |value| Remedy::Limit { file: "low".to_owned(), value });
        std::fs::write(&file, "128\n").expect("a file");
        assert_eq!(fix(&remedy(512), folder.path()), "fixed: low is 512 until the next boot");
        assert_eq!(std::fs::read_to_string(&file).expect("a file"), "512");
        fix(&remedy(256), folder.path());
        assert_eq!(std::fs::read_to_string(&file).expect("a file"), "512");
    }

    #[test]
    fn a_missing_remedy_gives_the_reason_and_an_alternative() {
        let folder = tempfile::tempdir().expect("a folder");
        let said = fix(&Remedy::Limit { file: "fs/low".to_owned(), value: 9 }, folder.path());
        assert!(said.starts_with("not fixed: fs.low cannot be set: there is no such file"), "{said}");
        assert!(said.ends_with("as root of the machine: sysctl fs.low=9"), "{said}");
        std::fs::write(folder.path().join("file"), "").expect("a file");
        assert!(
            fix(&Remedy::Folder(folder.path().join("file/below")), folder.path()).starts_with("not fixed: ")
        );
        let made = folder.path().join("made");
        assert!(fix(&Remedy::Folder(made.clone()), folder.path()).starts_with("fixed: ") && made.is_dir());
    }
}
