//! The programs in a node image: those of the machine itself, and those of the control plane, which are in the image store of
//! the machine's container runtime. They are read from a container of the image in which nothing but `find` runs.

use crate::error::ClusterError;
use crate::images::{Engine, EngineError, RunId, begin};
use crate::record::Machine;
use bollard::models::{ContainerCreateBody, HostConfig};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, DownloadFromContainerOptionsBuilder, LogsOptionsBuilder,
    RemoveContainerOptionsBuilder, UploadToContainerOptionsBuilder,
};
use futures::{StreamExt, TryStreamExt};
use std::io::Read;
use std::time::Duration;

/// Time limit of a request that moves a program.
const LIMIT: Duration = Duration::from_secs(120);
/// The folder of containerd.
const STORE: &str = "/var/lib/containerd";
/// The size of the largest program that is read, in bytes.
const MOST: usize = 512 << 20;

/// A container of a node image. It is removed at the latest when this value is dropped.
pub(super) struct Parts {
    engine: Engine,
    /// The name of the image.
    image: String,
    /// The id of the container; `None` once it is removed.
    id: Option<String>,
    /// The programs in the image store, by their paths.
    stored: Vec<String>,
}

impl Parts {
    /// The programs of this image, for a cluster.
    pub(super) async fn of(engine: &Engine, image: &str, cluster: &str) -> Result<Parts, ClusterError> {
        let labels = RunId::of_name(cluster).map(|run| run.labels("upgrade")).unwrap_or_default();
        let body = ContainerCreateBody {
            image: Some(image.to_owned()),
            entrypoint: Some(vec!["find".to_owned()]),
            cmd: Some([STORE, "-type", "f", "-path", "*/bin/kube-*"].map(str::to_owned).to_vec()),
            labels: Some(labels),
            host_config: Some(HostConfig { network_mode: Some("none".to_owned()), ..HostConfig::default() }),
            ..Default::default()
        };
        let (engine, image) = (engine.clone(), image.to_owned());
        // Even if the caller is gone: a container that was created late would be left behind.
        begin(async move {
            let options = CreateContainerOptionsBuilder::new().build();
            let made = engine.docker().create_container(Some(options), body);
            let id = engine.call("create a container of", &image, LIMIT, made).await?.id;
            let mut parts = Parts { engine, image, id: Some(id), stored: Vec::new() };
            parts.stored = parts.find().await?;
            Ok(parts)
        })
        .await
    }

    /// Runs the container, and reads the paths that it prints.
    async fn find(&self) -> Result<Vec<String>, EngineError> {
        let (docker, id) = (self.engine.docker(), self.id());
        let call = docker.start_container(id, None);
        self.engine.call("start a container of", &self.image, LIMIT, call).await?;
        let mut end = docker.wait_container(id, None);
        let call = async {
            match end.next().await {
                // It ended with a status other than 0; the output shows whether anything was found.
                Some(Err(bollard::errors::Error::DockerContainerWaitError { .. })) | None => Ok(()),
                Some(ended) => ended.map(drop),
            }
        };
        self.engine.call("wait for a container of", &self.image, LIMIT, call).await?;
        let options = LogsOptionsBuilder::new().stdout(true).build();
        let log = docker.logs(id, Some(options)).try_fold(String::new(), |all, piece| async move {
            Ok(all + &String::from_utf8_lossy(&piece.into_bytes()))
        });
        let log = self.engine.call("read the output of", &self.image, LIMIT, log).await?;
        Ok(log.lines().map(|line| line.trim().to_owned()).collect())
    }

    /// Copies a file of the image to a folder of a machine.
    pub(super) async fn copy(&self, path: &str, machine: &Machine, folder: &str) -> Result<(), ClusterError> {
        let archive = self.archive(path).await?;
        let options = UploadToContainerOptionsBuilder::new().path(folder).build();
        let body = bollard::body_full(archive.into());
        let put = self.engine.docker().upload_to_container(&machine.container_id, Some(options), body);
        Ok(self.engine.call("copy a program to machine", &machine.name, LIMIT, put).await?)
    }

    /// The content of a program of the control plane, from the image store.
    pub(super) async fn program_in_an_image(&self, name: &str) -> Result<Vec<u8>, ClusterError> {
        let lacks = |why: &str| ClusterError::NotObservable {
            what: format!("an upgrade with the programs of node image {}", self.image),
            why: why.to_owned(),
        };
        let path = self.stored.iter().find(|path| path.ends_with(&format!("/bin/{name}")));
        let path = path.ok_or_else(|| lacks(&format!("its image store has no program {name}")))?;
        let archive = self.archive(path).await?;
        only_file(&archive).map_err(|error| lacks(&format!("{name} cannot be read: {error}")))
    }

    /// A file of the image as an archive.
    async fn archive(&self, path: &str) -> Result<Vec<u8>, EngineError> {
        let options = DownloadFromContainerOptionsBuilder::new().path(path).build();
        let read = self.engine.docker().download_from_container(self.id(), Some(options));
        let read = read.try_fold(Vec::new(), |mut all: Vec<u8>, piece| async move {
            let fits = piece.len().min(MOST - all.len());
            all.extend_from_slice(&piece[..fits]);
            Ok(all)
        });
        self.engine.call("read a program of", &self.image, LIMIT, read).await
    }

    fn id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }

    /// Removes the container.
    pub(super) async fn remove(mut self) -> Result<(), EngineError> {
        match self.id.take() {
            Some(id) => remove(self.engine.clone(), self.image.clone(), id).await,
            None => Ok(()),
        }
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            drop(begin(remove(self.engine.clone(), self.image.clone(), id)));
        }
    }
}

async fn remove(engine: Engine, image: String, id: String) -> Result<(), EngineError> {
    let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
    let removed = engine.docker().remove_container(&id, Some(options));
    engine.call("remove a container of", &image, LIMIT, removed).await
}

/// The content of the first file in an archive.
fn only_file(archive: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut archive = tar::Archive::new(archive);
    let first = archive.entries()?.next().ok_or_else(|| std::io::Error::other("the archive is empty"))?;
    let (mut first, mut bytes) = (first?, Vec::new());
    first.read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()) == Ok(first.size()) {
        true => Ok(bytes),
        false => Err(std::io::Error::other("the archive is cut off")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_an_archive_is_read_whole_or_refused() {
        let mut archive = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(5);
        archive.append_data(&mut header, "kube-apiserver", &b"12345"[..]).expect("written");
        let whole = archive.into_inner().expect("an archive");
        assert_eq!(only_file(&whole).expect("a file"), b"12345");
        assert!(only_file(&whole[..514]).is_err(), "it was cut off");
        assert!(only_file(&[0; 1024]).is_err(), "it is empty");
    }
}
