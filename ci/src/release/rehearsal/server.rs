//! Serves the files of a folder on a loopback address: what GitHub and a registry serve for a real release.

use anyhow::{Context, Result};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

/// How long a client may take to send a line.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server, until it is dropped.
pub(super) struct Server {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
    accepts: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts one on a free port.
    ///
    /// # Errors
    /// There is no free port.
    pub(super) fn start(folder: &Path) -> Result<Server> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("listening on a loopback address")?;
        let address = listener.local_addr()?;
        let ended = Arc::new(AtomicBool::new(false));
        let (folder, is_ended) = (folder.to_owned(), Arc::clone(&ended));
        let accepts = spawn(move || {
            for stream in listener.incoming() {
                if is_ended.load(Ordering::SeqCst) {
                    return;
                }
                let folder = folder.clone();
                // A client that goes away is its own concern.
                spawn(move || stream.and_then(|stream| answer(stream, &folder)));
            }
        });
        Ok(Server { address, ended, accepts: Some(accepts) })
    }

    /// Address and port.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts connections.
        let woken = TcpStream::connect(self.address);
        if let Some(accepts) = self.accepts.take().filter(|_| woken.is_ok()) {
            let _ = accepts.join();
        }
    }
}

/// Answers one request.
fn answer(mut stream: TcpStream, folder: &Path) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let mut header = String::new();
    while reader.read_line(&mut header)? > 0 && header.trim() != "" {
        header.clear();
    }
    let found = requested(&request, folder).and_then(|path| fs::read(path).ok());
    let (status, body) = match found {
        Some(body) => ("200 OK", body),
        None => ("404 Not Found", b"not found\n".to_vec()),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/octet-stream\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    if !request.starts_with("HEAD ") {
        stream.write_all(&body)?;
    }
    stream.flush()
}

/// The file that a request is for; nothing if the request leads out of the folder.
fn requested(request: &str, folder: &Path) -> Option<PathBuf> {
    let mut words = request.split_whitespace();
    words.next().filter(|method| ["GET", "HEAD"].contains(method))?;
    let path = words.next()?.split('?').next()?.strip_prefix('/')?;
    let path = Path::new(path);
    path.components().all(|part| matches!(part, Component::Normal(_))).then(|| folder.join(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn ask(server: &Server, request: &str) -> String {
        let mut stream = TcpStream::connect(server.address()).expect("a connection");
        write!(stream, "{request} HTTP/1.1\r\nHost: x\r\n\r\n").expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    #[test]
    fn files_of_the_folder_are_served_and_no_others() {
        let outer = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(outer.path().join("www/a")).expect("a folder");
        fs::write(outer.path().join("www/a/b"), "content").expect("a file");
        fs::write(outer.path().join("secret"), "x").expect("a file");
        let server = Server::start(&outer.path().join("www")).expect("a server");
        assert!(ask(&server, "GET /a/b?service=c").ends_with("\r\n\r\ncontent"));
        assert!(ask(&server, "HEAD /a/b").ends_with("Content-Length: 7\r\nConnection: close\r\n\r\n"));
        for request in ["GET /../secret", "GET /a/none", "GET /a", "GET /", "POST /a/b"] {
            assert!(ask(&server, request).starts_with("HTTP/1.1 404 "), "{request}");
        }
    }
}
