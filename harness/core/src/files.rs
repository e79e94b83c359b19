//! Files that are part of the program, read like any other file.
//!
//! A path that begins with `built-in:` names one of them (`built-in:reference/profile.yaml`); every other path is one of
//! this machine. So the program needs no checkout, and whoever reads files need not know which kind it is.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// How paths of built-in files begin.
const PREFIX: &str = "built-in:";

/// Every built-in file: its path and its text, sorted within its folder. Made by `build.rs`.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

/// The path of the built-in file or folder of that name, whether or not it is there.
pub fn built_in(name: &str) -> PathBuf {
    PathBuf::from(format!("{PREFIX}{name}"))
}

/// Names of the built-in folders that hold a file of that name, sorted.
pub fn built_in_folders_with(file: &str) -> Vec<String> {
    let of = |(path, _): &(&str, &str)| Some(path.strip_suffix(file)?.strip_suffix('/')?.to_owned());
    let mut names: Vec<String> = FILES.iter().filter_map(of).collect();
    names.sort();
    names
}

/// The largest file of a user that is read as text, bytes.
const LARGEST: u64 = 16 << 20;

/// The text of a file.
///
/// # Errors
/// It is not there, is no file, is too large, cannot be read or is not UTF-8.
pub fn read(path: &Path) -> Result<String> {
    match name_of(path) {
        None => {
            let not_text = |_| Error::new(ErrorKind::InvalidData, "is not UTF-8 text");
            String::from_utf8(bytes(path, LARGEST)?).map_err(not_text)
        }
        Some(name) => match FILES.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => Ok((*text).to_owned()),
            None => Err(not_there(path)),
        },
    }
}

/// A file of this machine that has an end, so that no pipe is waited for and no device read for ever.
///
/// # Errors
/// It is not there, is no file, is larger than `largest` bytes, or cannot be opened.
pub fn open(path: &Path, largest: u64) -> Result<File> {
    let about = std::fs::metadata(path)?;
    let kind = about.file_type();
    if !kind.is_file() {
        let what = match () {
            () if kind.is_dir() => "a folder",
            () if kind.is_fifo() => "a pipe",
            () if kind.is_socket() => "a socket",
            () => "a device",
        };
        return Err(wrong(format!("is {what}, no file; name a file, into which it can be written first")));
    }
    if about.len() > largest {
        return Err(too_large(largest));
    }
    File::open(path)
}

/// The bytes of such a file.
///
/// # Errors
/// As those of [`open`]; it cannot be read, or grows meanwhile.
pub fn bytes(path: &Path, largest: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path, largest)?.take(largest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > largest {
        return Err(too_large(largest));
    }
    Ok(bytes)
}

fn too_large(largest: u64) -> Error {
    wrong(format!("is larger than {} MiB, the most that is read", largest >> 20))
}

fn wrong(why: String) -> Error {
    Error::new(ErrorKind::InvalidInput, why)
}

/// Whether there is a file at that path.
pub fn is_file(path: &Path) -> bool {
    match name_of(path) {
        None => path.is_file(),
        Some(name) => FILES.iter().any(|(known, _)| *known == name),
    }
}

/// Whether a path is one of the program's own, where there is no such file on this machine.
pub fn is_built_in(path: &Path) -> bool {
    name_of(path).is_some()
}

/// The files of a folder, sorted, without those of the folders in it.
///
/// # Errors
/// It is not there, or cannot be read.
pub fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let Some(name) = name_of(folder) else {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_file() {
                files.push(path);
            }
        }
        files.sort();
        return Ok(files);
    };
    let inside = |(path, _): &(&str, &str)| {
        let file = path.strip_prefix(&name)?.strip_prefix('/')?;
        (!file.contains('/')).then(|| built_in(path))
    };
    let mut files: Vec<PathBuf> = FILES.iter().filter_map(inside).collect();
    files.sort();
    if files.is_empty() { Err(not_there(folder)) } else { Ok(files) }
}

/// The name of a built-in file, with `.` and `..` resolved; `None` for a path of this machine.
fn name_of(path: &Path) -> Option<String> {
    let rest = path.to_str()?.strip_prefix(PREFIX)?;
    let mut parts = Vec::new();
    for part in rest.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn not_there(path: &Path) -> Error {
    Error::new(ErrorKind::NotFound, format!("this program has no file {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_files_are_found_by_their_path_and_by_their_folder() {
        let profile = built_in("reference/profile.yaml");
        assert_eq!(profile.display().to_string(), "built-in:reference/profile.yaml");
        assert!(is_file(&profile) && read(&profile).expect("it is there").contains("name: reference"));
        let folder = built_in("mutants").join("../reference/./manifests");
        let files = list(&folder).expect("manifests");
        assert!(files.len() > 1 && files.iter().all(|file| is_file(file)), "{files:?}");
        assert_eq!(files[0], built_in("reference/manifests/00-identity.yaml"));
        let names = built_in_folders_with("profile.yaml");
        assert!(["null", "reference"].iter().all(|name| names.contains(&(*name).to_owned())), "{names:?}");
        assert!(is_file(&built_in("kind-configs/single.yaml")) && is_file(&built_in("bootstrap/cases.yaml")));
    }

    #[test]
    fn what_is_not_built_in_is_refused_by_its_path() {
        for absent in ["reference/Cargo.toml", "reference", "", "nobody/profile.yaml"] {
            let error = read(&built_in(absent)).expect_err("no such file");
            assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
            assert!(!is_file(&built_in(absent)));
        }
        let error = list(&built_in("nobody/manifests")).expect_err("no such folder");
        assert_eq!(error.to_string(), "this program has no file built-in:nobody/manifests");
    }

    #[test]
    fn what_has_no_end_is_not_read() {
        let why = |path: &Path| read(path).expect_err("no file").to_string();
        assert!(
            why(Path::new("/dev/zero")).starts_with("is a device, no file"),
            "{}",
            why(Path::new("/dev/zero"))
        );
        assert!(why(Path::new("/")).starts_with("is a folder, no file"));
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("it can be run").success());
        assert!(why(&pipe).starts_with("is a pipe, no file"));
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        std::os::unix::fs::symlink(&one, &other).expect("a link");
        std::os::unix::fs::symlink(&other, &one).expect("a link");
        assert!(why(&one).contains("symbolic links"), "{}", why(&one));
        let large = folder.path().join("large");
        File::create(&large).and_then(|file| file.set_len(LARGEST + 1)).expect("a file");
        assert_eq!(why(&large), "is larger than 16 MiB, the most that is read");
    }

    #[test]
    fn every_other_path_is_one_of_this_machine() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("profile.yaml");
        std::fs::write(&file, "mine").expect("written");
        assert_eq!(read(&file).expect("it is there"), "mine");
        assert_eq!(list(folder.path()).expect("a folder"), [file]);
    }
}
