//! The sources of images, and their preparation as files.

use super::archive::{ImageArchive, ImageContent, ImageFile, ImageRun, docker_archive, oci_archive, sha256};
use super::build::{BuildError, Program, static_binary};
use super::engine::{Engine, EngineError};
use super::names::{COMPONENT_LABEL, IMAGE_REGISTRY, is_named};
use super::own::own_program;
use bollard::query_parameters::{CreateImageOptionsBuilder, ImportImageOptionsBuilder};
use futures::{Stream, StreamExt, TryStreamExt};
use harness_core::files;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::{NamedTempFile, TempPath};
use tokio::io::AsyncWriteExt;

/// How long the engine may take to describe an image.
const LOOK_LIMIT: Duration = Duration::from_secs(30);
/// How long a pull may take.
const PULL_LIMIT: Duration = Duration::from_secs(600);
/// How long saving or loading an image may take.
const MOVE_LIMIT: Duration = Duration::from_secs(300);

/// The source of an image.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ImageSource {
    /// A program of a Cargo workspace, compiled into an image without any other file.
    Build(Program),
    /// An image by name: from the local engine, or pulled by it.
    Reference(String),
}

/// A prepared image. Its archive is removed when the last image in it is dropped.
#[derive(Clone, Debug)]
pub struct PreparedImage {
    /// Its name, as manifests must spell it.
    pub reference: String,
    /// The digest of its content: the repository's if the image was pulled, otherwise the image's id.
    pub digest: String,
    archive: Arc<TempPath>,
}

impl PreparedImage {
    /// The archive in the format of `docker save`; it may contain other images.
    pub fn archive(&self) -> &Path {
        &self.archive
    }
}

/// An image is not available.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// It could not be compiled.
    #[error("no image of {package}")]
    Build {
        /// The package.
        package: String,
        /// What went wrong.
        #[source]
        source: BuildError,
    },
    /// It is not in the local engine and cannot be pulled.
    #[error(
        "image {reference} does not exist: the local Docker engine does not have it and could not pull it ({why}); \
         build it, load it ('docker load') or pull it ('docker pull', which uses your credentials), or correct the \
         name"
    )]
    NotThere {
        /// The image.
        reference: String,
        /// Why it could not be pulled.
        why: String,
    },
    /// It would be made from this program, which needs more than its own file.
    #[error(
        "cannot create an image of {}: it needs shared libraries, but the image contains only the program; build a \
         static one ('cargo build --release' in a checkout does)",
        program.display()
    )]
    NotStatic {
        /// The program.
        program: PathBuf,
    },
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A file could not be read or written.
    #[error("cannot {operation} {}; is the disk full?", path.display())]
    File {
        /// A verb.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
}

/// Prepares an image: compiles it, finds it in the engine, or lets the engine pull it.
///
/// # Errors
/// It does not compile, it does not exist, or a file or the engine failed.
pub async fn prepare(
    engine: &Engine,
    source: &ImageSource,
    Folders { sources, scratch }: Folders<'_>,
) -> Result<PreparedImage, ImageError> {
    match source {
        ImageSource::Build(program) => build(program, sources, scratch).await,
        ImageSource::Reference(reference) => fetch(engine, reference, scratch).await,
    }
}

/// Folders for preparing an image.
#[derive(Clone, Copy, Debug)]
pub struct Folders<'a> {
    /// A folder of the workspace with the sources: the profile's.
    pub sources: &'a Path,
    /// Where archives are written.
    pub scratch: &'a Path,
}

/// Maximum size of a program, in bytes.
const LARGEST_PROGRAM: u64 = 4 << 30;

/// The digest of a program's content.
///
/// # Errors
/// It cannot be read.
pub fn file_digest(path: &Path) -> Result<String, ImageError> {
    let read = |source| ImageError::File { operation: "read", path: path.to_owned(), source };
    Ok(format!("sha256:{}", sha256(&files::bytes(path, LARGEST_PROGRAM).map_err(read)?)))
}

async fn build(program: &Program, sources: &Path, scratch: &Path) -> Result<PreparedImage, ImageError> {
    let path = static_binary(sources, program)
        .await
        .map_err(|source| ImageError::Build { package: program.package.clone(), source })?;
    let mut images = pack(&path, &[(&program.bin, &[])], scratch).await?;
    Ok(images.remove(0))
}

/// Images of this program, one for each of its commands, in one archive, without any other file.
///
/// # Errors
/// The program is not static or cannot be read, or the archive cannot be written.
pub async fn of_commands(commands: &[&str], scratch: &Path) -> Result<Vec<PreparedImage>, ImageError> {
    let program = static_program()?;
    let images: Vec<_> = commands.iter().map(|command| (*command, std::slice::from_ref(command))).collect();
    pack(&program, &images, scratch).await
}

/// This program, which needs no other file.
fn static_program() -> Result<PathBuf, ImageError> {
    let program = own_program().map_err(|source| ImageError::File {
        operation: "find the program of this process,",
        path: PathBuf::from("/proc/self/exe"),
        source,
    })?;
    if cfg!(target_feature = "crt-static") { Ok(program) } else { Err(ImageError::NotStatic { program }) }
}

/// This program as an image for others, with only a folder for temporary files.
///
/// # Errors
/// The program is not static or cannot be read.
pub fn image_of_this_program(reference: &str) -> Result<ImageArchive, ImageError> {
    let program = static_program()?;
    let read = |source| ImageError::File { operation: "read", path: program.clone(), source };
    let bytes = files::bytes(&program, LARGEST_PROGRAM).map_err(read)?;
    let place = "/ccm-conformance";
    let files = [
        ImageFile { path: place, mode: 0o755, bytes: &bytes },
        ImageFile { path: "/tmp/", mode: 0o1777, bytes: &[] },
    ];
    let run = ImageRun {
        reference: reference.to_owned(),
        entrypoint: vec![place.to_owned()],
        // It has none of our labels: 'clean' removes images that have them.
        labels: BTreeMap::from([("org.opencontainers.image.title".to_owned(), "ccm-conformance".to_owned())]),
    };
    Ok(oci_archive(ImageContent { files: &files, env: &["PATH=/"] }, &run))
}

/// Images of a program with these names, each with arguments before those of the container.
async fn pack(
    program: &Path,
    images: &[(&str, &[&str])],
    scratch: &Path,
) -> Result<Vec<PreparedImage>, ImageError> {
    let bytes = tokio::fs::read(program).await.map_err(|source| ImageError::File {
        operation: "read",
        path: program.to_owned(),
        source,
    })?;
    // The name depends on the content, so that an image of the same name is the same image.
    let version = &sha256(&bytes)[..12];
    let place = format!("/{}", program.file_name().unwrap_or(program.as_os_str()).to_string_lossy());
    let run = |(name, arguments): &(&str, &[&str])| ImageRun {
        reference: format!("{IMAGE_REGISTRY}/{name}:{version}"),
        entrypoint: std::iter::once(&place.as_str())
            .chain(*arguments)
            .map(|part| (*part).to_owned())
            .collect(),
        labels: BTreeMap::from([(COMPONENT_LABEL.to_owned(), (*name).to_owned())]),
    };
    let runs: Vec<ImageRun> = images.iter().map(run).collect();
    let files = [ImageFile { path: &place, mode: 0o755, bytes: &bytes }];
    let made = docker_archive(ImageContent { files: &files, env: &["PATH=/"] }, &runs);
    let archive = store(scratch, futures::stream::iter([Ok::<_, std::io::Error>(made.bytes)])).await?;
    let archive = Arc::new(archive);
    let image = |(run, digest): (ImageRun, String)| PreparedImage {
        reference: run.reference,
        digest,
        archive: archive.clone(),
    };
    Ok(runs.into_iter().zip(made.ids).map(image).collect())
}

async fn fetch(engine: &Engine, reference: &str, scratch: &Path) -> Result<PreparedImage, ImageError> {
    let digest = match find_digest(engine, reference).await? {
        Some(digest) => digest,
        None => {
            pull(engine, reference).await?;
            find_digest(engine, reference).await?.ok_or_else(|| ImageError::NotThere {
                reference: reference.to_owned(),
                why: "the pull succeeded but there is no image".to_owned(),
            })?
        }
    };
    let saved = engine.docker().export_image(reference).map_err(std::io::Error::other);
    let archive = tokio::time::timeout(MOVE_LIMIT, store(scratch, saved)).await.map_err(|_| {
        EngineError::TimedOut { operation: "save image", subject: reference.to_owned(), limit: MOVE_LIMIT }
    })??;
    Ok(PreparedImage { reference: reference.to_owned(), digest, archive: Arc::new(archive) })
}

/// The digest of an image in the local engine.
pub async fn find_digest(engine: &Engine, reference: &str) -> Result<Option<String>, EngineError> {
    match engine.call("inspect image", reference, LOOK_LIMIT, engine.docker().inspect_image(reference)).await
    {
        Ok(image) => {
            let pulled = image.repo_digests.unwrap_or_default().into_iter().find(|name| is_named(name));
            let digest = pulled.and_then(|name| name.split_once('@').map(|(_, digest)| digest.to_owned()));
            Ok(digest.or(image.id))
        }
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Lets the engine pull an image.
pub async fn pull(engine: &Engine, reference: &str) -> Result<(), ImageError> {
    tracing::info!(image = reference, "pulling");
    let mut options = CreateImageOptionsBuilder::new().from_image(reference);
    // Without a tag the engine would pull all tags.
    if !has_tag_or_digest(reference) {
        options = options.tag("latest");
    }
    let pulling =
        engine.docker().create_image(Some(options.build()), None, None).try_for_each(|_| async { Ok(()) });
    engine.call("pull image", reference, PULL_LIMIT, pulling).await.map_err(|error| ImageError::NotThere {
        reference: reference.to_owned(),
        why: error.message().map_or_else(|| error.to_string(), |words| words.trim().to_owned()),
    })
}

/// Whether a name says which image of its repository is meant. A colon before the last slash belongs to a port.
fn has_tag_or_digest(reference: &str) -> bool {
    let last = reference.rsplit('/').next().unwrap_or(reference);
    last.contains(':') || last.contains('@')
}

/// Loads an image into the local engine; for one that is already there this is only a query.
///
/// # Errors
/// The archive cannot be read, or the engine refuses it.
pub async fn load_into_engine(engine: &Engine, image: &PreparedImage) -> Result<(), ImageError> {
    if find_digest(engine, &image.reference).await?.is_some() {
        return Ok(());
    }
    let unreadable =
        |source| ImageError::File { operation: "read", path: image.archive().to_owned(), source };
    let bytes = tokio::fs::read(image.archive()).await.map_err(unreadable)?;
    let options = ImportImageOptionsBuilder::new().quiet(true).build();
    let loading = engine
        .docker()
        .import_image(options, bollard::body_full(bytes.into()), None)
        .try_for_each(|_| async { Ok(()) });
    Ok(engine.call("load image", &image.reference, MOVE_LIMIT, loading).await?)
}

/// Writes a stream to a file that is removed with its owner.
async fn store<B: AsRef<[u8]>>(
    folder: &Path,
    content: impl Stream<Item = Result<B, std::io::Error>>,
) -> Result<TempPath, ImageError> {
    let failed = |operation| {
        let path = folder.to_owned();
        move |source| ImageError::File { operation, path: path.clone(), source }
    };
    let made = NamedTempFile::with_prefix_in("image-", folder).map_err(failed("create a file in"))?;
    let (file, path) = made.into_parts();
    let mut file = tokio::fs::File::from_std(file);
    let mut content = std::pin::pin!(content);
    while let Some(piece) = content.next().await {
        let piece = piece.map_err(failed("fetch an image into"))?;
        file.write_all(piece.as_ref()).await.map_err(failed("write an image into"))?;
    }
    file.flush().await.map_err(failed("write an image into"))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_not_a_tag() {
        for whole in ["a:1", "a/b:1", "localhost:5000/a:1", "a@sha256:00", "localhost:5000/a@sha256:00"] {
            assert!(has_tag_or_digest(whole), "{whole}");
        }
        for bare in ["a", "a/b", "localhost:5000/a"] {
            assert!(!has_tag_or_digest(bare), "{bare}");
        }
    }

    #[tokio::test]
    async fn a_stream_becomes_a_file_that_goes_with_its_owner() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let pieces = futures::stream::iter([Ok("one "), Ok("two")]);
        let path = store(folder.path(), pieces).await.expect("written");
        assert_eq!(std::fs::read_to_string(&path).expect("read"), "one two");
        drop(path);
        assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 0);
    }
}
