//! Follows paths below folders that programs write to, without leaving the folder: a program may have created
//! links anywhere.

use std::io;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;

/// Creates a folder below another one, or an empty file, including the folders between, unless it exists.
/// Links are not followed.
///
/// # Errors
/// A part of the path is a link or a file, or it cannot be created.
pub(super) fn make(folder: &Path, below: &Path, file: bool) -> io::Result<()> {
    let way = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = openat(CWD, folder, way, Mode::empty())?;
    let parts: Vec<_> = below.components().filter(|part| matches!(part, Component::Normal(_))).collect();
    for (index, part) in parts.iter().enumerate() {
        let name = part.as_os_str();
        if file && index + 1 == parts.len() {
            let flags =
                OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
            openat(&at, name, flags, Mode::from_raw_mode(0o600))?;
            return Ok(());
        }
        match mkdirat(&at, name, Mode::from_raw_mode(0o700)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        at = openat(&at, name, way | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok(())
}

/// The target of a path below a folder; `None` if it does not exist.
///
/// # Errors
/// The path leads out of the folder, or cannot be followed.
pub(super) fn follow(folder: &Path, below: &Path) -> io::Result<Option<PathBuf>> {
    let real = match folder.join(below).canonicalize() {
        Ok(real) => real,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if real.starts_with(folder.canonicalize()?) {
        return Ok(Some(real));
    }
    Err(io::Error::other(format!("subpath {:?} not within volume path", below.display().to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_that_lead_outside_are_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (volume, outside) = (folder.path().join("volume"), folder.path().join("outside"));
        std::fs::create_dir(&volume).expect("made");
        std::fs::create_dir(&outside).expect("made");
        std::fs::write(outside.join("secret"), "secret").expect("written");
        symlink(&outside, volume.join("out")).expect("a link");
        symlink("inner", volume.join("in")).expect("a link");
        symlink(outside.join("new"), volume.join("dangling")).expect("a link");
        make(&volume, Path::new("inner/deep"), false).expect("made");
        make(&volume, Path::new("inner/deep"), false).expect("there");
        make(&volume, Path::new("inner/file"), true).expect("made");
        for (below, file) in [("out/a", false), ("out/a", true), ("dangling", true), ("dangling", false)] {
            assert!(make(&volume, Path::new(below), file).is_err(), "{below}");
        }
        assert_eq!(std::fs::read_dir(&outside).expect("there").count(), 1, "something was made outside");
        let real = volume.canonicalize().expect("there");
        let followed = |below: &str| follow(&volume, Path::new(below));
        assert_eq!(followed("in/deep").expect("inside"), Some(real.join("inner/deep")));
        assert_eq!(followed("absent").expect("absent"), None);
        assert!(
            followed("out/secret").is_err_and(|error| error.to_string().contains("not within volume path"))
        );
        assert_eq!(followed("dangling").expect("leads nowhere"), None);
    }
}
