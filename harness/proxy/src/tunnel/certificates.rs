//! The certificates of a network proxy, as files: a CA, and one each for server, agents and API server.

use certificates::Authority;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Files of the server: CA, certificate, key.
pub const SERVER_FILES: [&str; 3] = ["ca.crt", "server.crt", "server.key"];
/// Those of an agent.
pub const AGENT_FILES: [&str; 3] = ["ca.crt", "agent.crt", "agent.key"];
/// Those of an API server.
pub const CLIENT_FILES: [&str; 3] = ["ca.crt", "client.crt", "client.key"];

/// Writes all of them to a folder; the server's certificate has these names and addresses.
///
/// # Errors
/// A file cannot be written, or a name is invalid.
pub fn write_certificates(folder: &Path, names: &[String]) -> io::Result<()> {
    let authority = Authority::new("ccm-conformance network proxy").map_err(io::Error::other)?;
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join(SERVER_FILES[0]), authority.pem())?;
    let of = |name: &str| vec![name.to_owned()];
    let all = [
        (SERVER_FILES, names.to_vec()),
        (AGENT_FILES, of("network-proxy-agent")),
        (CLIENT_FILES, of("kube-apiserver")),
    ];
    for ([_, certificate, key], names) in all {
        let (certificate_pem, key_pem) = authority.pair(&names).map_err(io::Error::other)?;
        std::fs::write(folder.join(certificate), certificate_pem)?;
        write_key(&folder.join(key), &key_pem)?;
    }
    Ok(())
}

/// Writes a key with permissions for its owner only.
fn write_key(file: &Path, key_pem: &str) -> io::Result<()> {
    let mut made = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(file)?;
    made.write_all(key_pem.as_bytes())
}
