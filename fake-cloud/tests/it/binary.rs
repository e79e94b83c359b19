//! The program: its output, its errors, and how it stops.

use crate::support::{LIMIT, in_time};
use fake_cloud_driver::Client;
use serde_json::Value;
use std::process::{Output, Stdio};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

const DRIVER_TOKEN: &str = "driver-token-of-the-binary";

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fake-cloud"));
    command.args(arguments).env_clear().kill_on_drop(true).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn local(extra: &[&str]) -> Command {
    let mut arguments = vec!["serve", "--listen", "127.0.0.1:0", "--driver-listen", "127.0.0.1:0"];
    arguments.extend(extra);
    program(&arguments)
}

async fn ready(child: &mut Child) -> Value {
    let stdout = child.stdout.take().expect("piped");
    let mut lines = BufReader::new(stdout).lines();
    let line = in_time(lines.next_line()).await.expect("readable").expect("a line");
    assert!(line.contains("\"ready\":true"), "{line}");
    serde_json::from_str(&line).expect("JSON")
}

fn signal(child: &Child, name: &str) {
    let id = child.id().expect("it runs").to_string();
    let status = std::process::Command::new("kill").args([name, &id]).status().expect("kill is there");
    assert!(status.success());
}

async fn refused(mut command: Command) -> String {
    let Output { status, stdout, stderr } = in_time(command.output()).await.expect("it runs");
    let stderr = String::from_utf8(stderr).expect("text");
    assert_eq!((status.code(), stdout.len()), (Some(2), 0), "{stderr}");
    stderr
}

#[tokio::test]
async fn help_and_version_are_answered() {
    let version = format!("fake-cloud {}\n", env!("CARGO_PKG_VERSION"));
    for (asked, expected) in [("--help", "Usage: fake-cloud <COMMAND>"), ("--version", version.as_str())] {
        let Output { status, stdout, stderr } = in_time(program(&[asked]).output()).await.expect("it runs");
        let stdout = String::from_utf8(stdout).expect("text");
        assert!(status.success() && stderr.is_empty() && stdout.contains(expected), "{asked}: {stdout}");
    }
}

#[tokio::test]
async fn it_serves_until_it_is_stopped() {
    for name in ["-TERM", "-INT"] {
        let folder = tempfile::tempdir().expect("a folder");
        let (token, credentials) = (folder.path().join("token"), folder.path().join("credentials"));
        std::fs::write(&token, format!("{DRIVER_TOKEN}\n")).expect("written");
        std::fs::write(&credentials, "# one per replica\nreplica-1=token-in-the-file\n").expect("written");
        let (token, credentials) = (token.to_str().expect("text"), credentials.to_str().expect("text"));
        let mut command = local(&["--driver-token-file", token, "--credentials-file", credentials]);
        command.env("FAKE_CLOUD_CREDENTIALS", "replica-2=token-in-the-environment");
        let mut child = command.spawn().expect("it starts");
        let ready = ready(&mut child).await;
        assert_eq!(ready["dialect"], "native");
        let driver =
            Client::new(ready["driver"].as_str().expect("an address"), DRIVER_TOKEN).expect("a client");
        assert_eq!(driver.inventory().await.expect("it answers").instances.len(), 0);
        let cloud = ready["cloud"].as_str().expect("an address");
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        for (token, status) in
            [("token-in-the-file", 200), ("token-in-the-environment", 200), (DRIVER_TOKEN, 401)]
        {
            let request = http.get(format!("http://{cloud}/v1/instances")).bearer_auth(token).timeout(LIMIT);
            assert_eq!(request.send().await.expect("an answer").status().as_u16(), status);
        }
        signal(&child, name);
        assert!(in_time(child.wait()).await.expect("it ends").success());
    }
}

#[tokio::test]
async fn it_stops_with_calls_under_way() {
    let mut child = local(&["--credential", "a=some-token"])
        .env("FAKE_CLOUD_DRIVER_TOKEN", DRIVER_TOKEN)
        .spawn()
        .expect("it starts");
    let ready = ready(&mut child).await;
    let driver = Client::new(ready["driver"].as_str().expect("an address"), DRIVER_TOKEN).expect("a client");
    driver.raise_barrier(&fake_cloud_driver::Match::default()).await.expect("raised");
    let url = format!("http://{}/v1/instances", ready["cloud"].as_str().expect("an address"));
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let call = tokio::spawn(http.get(url).bearer_auth("some-token").send());
    driver.journal(0, LIMIT).await.expect("a journal");
    signal(&child, "-TERM");
    assert!(in_time(child.wait()).await.expect("it ends").success());
    in_time(call).await.expect("no panic").expect_err("no answer");
}

#[tokio::test]
async fn it_idles_until_it_is_stopped() {
    let mut child = program(&["idle"]).spawn().expect("it starts");
    // It has to handle the signal before it may get one. It does not report that, but its process status shows it.
    let path = format!("/proc/{}/status", child.id().expect("it runs"));
    crate::support::until(async || {
        let status = std::fs::read_to_string(&path).expect("it runs");
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
        let mask = u64::from_str_radix(caught.trim(), 16).ok()?;
        (mask & (1 << 14) != 0 && mask & (1 << 1) != 0).then_some(())
    })
    .await;
    signal(&child, "-TERM");
    assert!(in_time(child.wait()).await.expect("it ends").success());
}

#[tokio::test]
async fn invalid_command_lines_are_refused_without_a_token() {
    let words = refused(local(&[])).await;
    assert_eq!(
        words,
        "error: no driver token: name a file with --driver-token-file or set FAKE_CLOUD_DRIVER_TOKEN\n"
    );
    let words = refused(local(&["--driver-token-file", "/nowhere/token"])).await;
    assert_eq!(words, "error: cannot read /nowhere/token: there is no such file or folder; check the path\n");
    for arguments in [["--credential", "s3cr3t-without-a-name"], ["--credential", "=s3cr3t-token"]] {
        let mut command = local(&arguments);
        command.env("FAKE_CLOUD_DRIVER_TOKEN", DRIVER_TOKEN);
        let words = refused(command).await;
        assert_eq!(words, "error: --credential number 1: not of the form NAME=TOKEN\n");
    }
    let mut command = local(&[]);
    command.env("FAKE_CLOUD_DRIVER_TOKEN", "two words");
    let words = refused(command).await;
    assert!(words.contains("visible ASCII") && !words.contains("two words"), "{words}");
    let words = refused(local(&["--dialect", "nimbus"])).await;
    assert!(words.contains("native"), "{words}");
}

#[tokio::test]
async fn an_address_in_use_is_named_with_the_way_out() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let mut command = program(&["serve", "--listen", &address, "--driver-listen", "127.0.0.1:0"]);
    command.env("FAKE_CLOUD_DRIVER_TOKEN", DRIVER_TOKEN);
    let output = in_time(command.output()).await.expect("it runs");
    let words = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(3), "{words}");
    let start = format!(
        "error: cannot listen on {address} for the cloud API: it is in use; choose another with --listen"
    );
    assert!(words.starts_with(&start), "{words}");
}
