//! The folder of a rehearsal, and the commands that run in it.

use super::server::Server;
use crate::process::{command, root};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Owner and name of the repository, as the server has it.
pub(super) const REPOSITORY: &str = "owner/name";
/// The programs that stand in for those of GitHub and of a registry.
const STAND_INS: &str = "ci/rehearsal";

/// The folder, with the server of its subfolder `www`. Dropping it deletes the folder.
pub(super) struct Place {
    folder: PathBuf,
    server: Server,
    is_kept: bool,
}

impl Place {
    /// Makes the folder, without what an interrupted rehearsal left.
    ///
    /// # Errors
    /// It cannot be made, or there is no port for the server.
    pub(super) fn new(folder: &Path, is_kept: bool) -> Result<Place> {
        if folder.exists() {
            fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
        }
        let www = folder.join("www");
        fs::create_dir_all(&www).with_context(|| format!("making {}", www.display()))?;
        let server = Server::start(&www)?;
        Ok(Place { folder: folder.to_owned(), server, is_kept })
    }

    /// A path in the folder.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A file with this name, as the text of an argument.
    pub(super) fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Address and port of the server, as in the name of an image.
    pub(super) fn address(&self) -> String {
        self.server.address().to_string()
    }

    /// The URL of the server.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// The URL of the repository.
    pub(super) fn repository(&self) -> String {
        format!("{}/{REPOSITORY}", self.url())
    }

    /// What the name of an image begins with.
    pub(super) fn image(&self) -> String {
        format!("{}/{REPOSITORY}", self.address())
    }

    /// Runs a command with the stand-ins first on its path, and returns its output.
    ///
    /// # Errors
    /// It cannot be started, or fails.
    pub(super) fn run(&self, folder: &Path, words: &[&str], environment: &[(&str, &str)]) -> Result<String> {
        let (ended_well, said) = self.attempt(folder, words, environment)?;
        if !ended_well {
            bail!("'{}' in {} failed:\n{said}", words.join(" "), folder.display());
        }
        Ok(said)
    }

    /// Runs a command that may fail: whether it ended with 0, and its output.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn attempt(
        &self,
        folder: &Path,
        words: &[&str],
        environment: &[(&str, &str)],
    ) -> Result<(bool, String)> {
        let [program, arguments @ ..] = words else { bail!("no command") };
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", root().join(STAND_INS).display());
        let mut command = command(program);
        command.args(arguments).current_dir(folder).stdin(Stdio::null());
        command.env("PATH", path).env("REHEARSAL", &self.folder);
        command.env("GITHUB_SERVER_URL", self.url()).env("GITHUB_REPOSITORY", REPOSITORY);
        // The server is on this machine.
        command.env("no_proxy", "127.0.0.1").env("NO_PROXY", "127.0.0.1");
        command.envs(environment.iter().copied());
        let output = command.output().with_context(|| format!("starting {program}"))?;
        let said = [output.stdout, output.stderr].concat();
        Ok((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
    }

    /// Runs git.
    ///
    /// # Errors
    /// It fails.
    pub(super) fn git(&self, folder: &Path, words: &[&str]) -> Result<String> {
        const SETTINGS: [&str; 6] = [
            "-c",
            "user.name=rehearsal",
            "-c",
            "user.email=rehearsal@example.com",
            "-c",
            "advice.detachedHead=false",
        ];
        self.run(folder, &[&["git"][..], &SETTINGS, words].concat(), &[])
    }

    /// The values that a step wrote for later steps of a job (`GITHUB_OUTPUT`).
    ///
    /// # Errors
    /// It wrote none.
    pub(super) fn outputs(&self, file: &str) -> Result<Vec<(String, String)>> {
        let text =
            fs::read_to_string(self.path(file)).with_context(|| format!("the step wrote no {file}"))?;
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        Ok(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// The value of an output.
///
/// # Errors
/// There is none with this name.
pub(super) fn output<'a>(outputs: &'a [(String, String)], name: &str) -> Result<&'a str> {
    let found = outputs.iter().find(|(own, _)| own == name);
    Ok(&found.with_context(|| format!("the step wrote no output '{name}'"))?.1)
}
