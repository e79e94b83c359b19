//! Drivers that are missing, slow, lying or crashing, and a correct one in Python.

use super::*;
use crate::{Cloud, LoadBalancer, check_running, facility_of, operators_balancer};
use fake_cloud_driver::DriverFacility;
use harness_config::CloudSource;
use harness_core::check::{Facility, chain};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;
use std::time::Instant;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// The messages to the user.
type Heard = Arc<Mutex<Vec<String>>>;

async fn start_from(cloud: &CloudSource, folder: &Path) -> (Result<RunningCloud, StartError>, Heard) {
    let heard = Heard::default();
    let noted = heard.clone();
    let on_message: OnMessage = Arc::new(move |what| noted.lock().expect("fine").push(what));
    let run = &harness_clusters::images::RunId::fresh();
    let spec =
        CloudSpec { run, cloud, place: Place::LOOPBACK, replicas: &[], folder, on_message: &on_message };
    (start(spec).await, heard)
}

fn command(line: &[&str]) -> CloudSource {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/drivers/python"));
    CloudSource::DriverCommand { line: line.iter().map(|part| (*part).to_owned()).collect(), folder }
}

/// The error for a command that is not a driver; its token's file has been removed then.
async fn refused(line: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let (outcome, _) = start_from(&command(line), folder.path()).await;
    let why = chain(&outcome.expect_err("no driver"));
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0, "{why}");
    why
}

#[tokio::test]
async fn a_command_that_is_not_a_driver_is_reported_with_its_output() {
    let why = refused(&["./no-such-driver", "--listen"]).await;
    assert!(
        why.starts_with("the cloud's driver './no-such-driver --listen' cannot be started in /"),
        "{why}"
    );
    let why = refused(&["sh", "-c", "echo no licence >&2; exit 7"]).await;
    assert!(why.contains("ended with exit code 7 before it answered; its last lines:\nno licence"), "{why}");
    let why = refused(&["sh", "-c", r#"echo '{"ready": true, "port": 1}'; sleep 60"#]).await;
    assert!(why.contains("names no address under 'driver'"), "{why}");
    // The address of another program is never called, because it would get the token.
    for at in ["user:pw@127.0.0.1:1/x?y#", "example.org:80", "8.8.8.8:80"] {
        let line = format!(r#"echo '{{"ready": true, "driver": "{at}"}}'; sleep 60"#);
        let why = refused(&["sh", "-c", &line]).await;
        assert!(why.contains(&format!("says that it listens at '{at}'")), "{why}");
    }
    // It reports that it is ready, but nothing listens.
    let why = refused(&["sh", "-c", r#"echo '{"ready": true, "driver": "127.0.0.1:1"}'; sleep 60"#]).await;
    assert!(why.contains("asking what it can do: no answer") && why.contains("its last lines"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_command_that_never_says_that_it_is_ready_is_not_waited_for_for_ever() {
    let why = refused(&["sh", "-c", "echo starting; sleep 300"]).await;
    assert!(why.contains(r#"did not print {"ready": true, "driver": "ADDRESS:PORT"} within 30 s"#), "{why}");
}

#[tokio::test]
async fn endless_lines_of_a_command_are_reported_and_use_bounded_memory() {
    for to in ["", ">&2"] {
        let why =
            refused(&["sh", "-c", &format!("(echo begin; head -c 300000000 /dev/zero | tr '\\0' x) {to}")])
                .await;
        assert!(why.contains("ended with exit code 0") && why.contains("begin\nxxxxxx"), "{}", &why[..200]);
        assert!(why.len() < 8_000, "{} bytes", why.len());
    }
    let status = std::fs::read_to_string("/proc/self/status").expect("the process's status");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its memory");
    let peak = peak.trim().trim_end_matches(" kB").parse::<u64>().expect("a number");
    assert!(peak < 300_000, "the process took {peak} KiB, as much as was written");
}

/// A server that answers every call with this status and body, or never.
async fn answering(status: u16, body: Option<&'static str>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut asked = [0; 4096];
                let _ = stream.read(&mut asked).await;
                let Some(body) = body else { return std::future::pending::<()>().await };
                let head = format!(
                    "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    body.len()
                );
                let _ = stream.write_all((head + body).as_bytes()).await;
            });
        }
    });
    format!("http://{address}")
}

async fn at(url: &str) -> Result<RunningCloud, StartError> {
    let folder = tempfile::tempdir().expect("a folder");
    let token_file = folder.path().join("token");
    std::fs::write(&token_file, "token\n").expect("a file");
    let cloud = CloudSource::DriverAt { url: url.to_owned(), token_file };
    start_from(&cloud, folder.path()).await.0
}

#[tokio::test]
async fn each_unusable_driver_url_has_its_own_message() {
    for (status, body, words) in [
        (200, r#"{"hello": "world"}"#, "its answer makes no sense"),
        (200, "<html>", "is not the driver protocol's: <html>"),
        (401, r#"{"error": "who are you"}"#, "answered 401: who are you"),
        (200, r#"{"protocol": 2, "name": "x"}"#, "speaks version 2 of the protocol, this program version 1"),
        (200, r#"{"protocol": 1, "name": "x", "facilities": ["magic"]}"#, "unknown variant `magic`"),
    ] {
        let why = chain(&at(&answering(status, Some(body)).await).await.expect_err("no driver"));
        assert!(why.starts_with("cloud driver 'at http://127.0.0.1:") && why.contains(words), "{why}");
    }
    let why = chain(&at("http://127.0.0.1:1").await.expect_err("nothing listens there"));
    assert!(why.contains("no answer from the driver at http://127.0.0.1:1"), "{why}");
    let gone =
        CloudSource::DriverAt { url: "http://127.0.0.1:1".to_owned(), token_file: "/nowhere/token".into() };
    let why = chain(&start_from(&gone, Path::new("")).await.0.expect_err("no token"));
    assert!(why.starts_with("the token file /nowhere/token of the cloud's driver: "), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_does_not_answer_is_given_up() {
    let url = answering(200, None).await;
    let why = chain(&at(&url).await.expect_err("it is silent"));
    assert!(why.contains("asking what it can do: no answer"), "{why}");
}

#[tokio::test]
async fn a_driver_that_cannot_what_it_says_is_found_out() {
    let says = r#"{"protocol": 1, "name": "liar", "facilities": ["faults", "journal"]}"#;
    let running = at(&answering(200, Some(says)).await).await.expect("it says what it can");
    let cloud = running.attach().expect("attached");
    assert_eq!(cloud.driver(), "liar");
    // In a run this is an error of the environment, with its name.
    let error = cloud.journal(0, Duration::ZERO).await.expect_err("it has none");
    assert!(chain(&error).starts_with("cloud driver 'liar', reading the journal: its answer makes no sense"));
    let found = check_running(&running).await.expect("it answers");
    let broken: Vec<&str> =
        found.tried.iter().filter(|one| one.broken.is_some()).map(|one| one.promise.as_str()).collect();
    for part in ["token: ", "inventory: ", "machines: ", "faults: ", "journal: "] {
        assert!(broken.iter().any(|promise| promise.starts_with(part)), "{part} is not among {broken:?}");
    }
}

const PYTHON: [&str; 6] =
    ["python3", "driver.py", "--listen", "${DRIVER_LISTEN}", "--token-file", "${DRIVER_TOKEN_FILE}"];

#[tokio::test]
async fn the_driver_in_python_keeps_every_promise_and_ends_with_its_cloud() {
    let folder = tempfile::tempdir().expect("a folder");
    let (running, heard) = start_from(&command(&PYTHON), folder.path()).await;
    let running = running.expect("it starts");
    let cloud = running.attach().expect("attached");
    assert_eq!(cloud.driver(), "python-simulator");
    let has: Vec<String> = cloud.facilities().iter().map(ToString::to_string).collect();
    assert_eq!(has, ["machines", "objects", "routes", "inventory"]);
    assert!(DriverFacility::ALL.iter().filter_map(|one| facility_of(*one)).count() == 7);
    let found = check_running(&running).await.expect("it answers");
    let broken: Vec<String> =
        found.tried.iter().filter(|one| one.broken.is_some()).map(ToString::to_string).collect();
    assert_eq!(broken, [""; 0]);
    running.stop().await.expect("stopped");
    assert!(cloud.inventory().await.is_err());
    let said = heard.lock().expect("fine").join("\n");
    assert!(said.lines().all(|line| line.ends_with(" s of processor time")), "{said}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

/// A driver that differs from the one in Python in one way.
fn unusual(way: &str) -> CloudSource {
    let line = ["python3", "driver.py", "--as", way].into_iter().chain(PYTHON.into_iter().skip(2));
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/drivers/unusual"));
    CloudSource::DriverCommand { line: line.map(str::to_owned).collect(), folder }
}

fn of_no_ccm() -> LoadBalancer {
    operators_balancer("lb-op".to_owned(), "op".to_owned(), "somebody".to_owned())
}

#[tokio::test]
async fn a_cloud_that_is_unusual_and_right_keeps_every_promise() {
    for (way, has_routes) in [("no-routes", false), ("rich", true)] {
        let folder = tempfile::tempdir().expect("a folder");
        let running = start_from(&unusual(way), folder.path()).await.0.expect("it starts");
        let found = check_running(&running).await.expect("it answers");
        let broken: Vec<String> =
            found.tried.iter().filter(|one| one.broken.is_some()).map(ToString::to_string).collect();
        assert_eq!(broken, [""; 0], "{way}");
        let cloud = running.attach().expect("attached");
        assert_eq!(cloud.facilities().contains(&Facility::Routes), has_routes, "{way}");
        let shown = cloud.put_load_balancer(&of_no_ccm()).await.expect("it keeps what was written");
        assert_eq!(shown.frontends[0].backends, None, "{way}: they equal those of the load balancer");
        let lacks = cloud.put_route(&route()).await.map_err(|error| error.problem);
        assert_eq!(lacks.is_ok(), has_routes, "{way}: {lacks:?}");
        running.stop().await.expect("stopped");
    }
}

fn route() -> crate::Route {
    let destination = "10.9.0.0/24".to_owned();
    crate::Route {
        id: String::new(),
        destination,
        target_instance: None,
        target_addresses: Vec::new(),
        blackhole: true,
    }
}

#[tokio::test]
async fn a_driver_that_forgets_what_was_written_is_at_fault_in_a_run_and_in_its_check_alike() {
    let folder = tempfile::tempdir().expect("a folder");
    let running = start_from(&unusual("forgetful"), folder.path()).await.0.expect("it starts");
    let found = check_running(&running).await.expect("it answers");
    let broken: Vec<String> =
        found.tried.iter().filter(|one| one.broken.is_some()).map(ToString::to_string).collect();
    assert_eq!(broken.len(), 1, "leftovers of the failed step are not a second fault: {broken:?}");
    assert!(broken[0].ends_with(r#"owner: expected "nobody-driver-check", saw """#), "{broken:?}");
    let cloud = running.attach().expect("attached");
    let error = cloud.put_load_balancer(&of_no_ccm()).await.expect_err("it forgets the owner");
    assert_eq!(
        chain(&error),
        "cloud driver 'python-simulator', putting a load balancer there: it does not show what was written: owner: expected \
         \"somebody\", saw \"\""
    );
    running.stop().await.expect("stopped");
}

#[tokio::test]
async fn a_driver_that_stops_is_reported_with_its_last_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let running = start_from(&unusual("broken"), folder.path()).await.0.expect("it starts");
    let cloud = running.attach().expect("attached");
    let error = cloud.put_load_balancer(&of_no_ccm()).await.expect_err("it breaks off");
    let why = chain(&error);
    assert!(
        why.contains("the driver's last lines:") && why.contains("RuntimeError: the simulator has no"),
        "{why}"
    );
    // A rejection in the protocol's form needs no more context.
    let absent = chain(&cloud.remove_instance("no-such").await.expect_err("it is not there"));
    assert!(!absent.contains("last lines"), "{absent}");
    running.stop().await.expect("stopped");
}

#[tokio::test]
async fn a_crash_of_a_driver_is_reported_once_and_its_calls_have_no_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("crash");
    let script = format!("\"$@\" & while [ ! -e '{}' ]; do sleep 0.1; done; kill $!; exit 3", file.display());
    let line: Vec<&str> = ["sh", "-c", &script, "sh"].into_iter().chain(PYTHON).collect();
    let (running, heard) = start_from(&command(&line), folder.path()).await;
    let running = running.expect("it starts");
    let cloud = running.attach().expect("attached");
    std::fs::write(&file, "").expect("written");
    let began = Instant::now();
    while heard.lock().expect("fine").is_empty() && began.elapsed() < Duration::from_secs(30) {
        tokio::task::yield_now().await;
    }
    let said = heard.lock().expect("fine").join("\n");
    assert!(said.contains("ended by itself with exit code 3; its last lines:"), "{said}");
    let error = cloud.inventory().await.expect_err("it is dead");
    assert_eq!(error.problem, Problem::NoAnswer);
    running.stop().await.expect("stopped");
}

#[test]
fn a_record_of_no_driver_is_refused_by_name() {
    let record = CloudRecord {
        driver: "moto".into(),
        ip: [127, 0, 0, 1].into(),
        endpoint: String::new(),
        access: serde_json::Value::Null,
        secrets: Vec::new(),
        name: None,
        metadata: None,
        endpoints: Default::default(),
        http_proxy: false,
        ca: None,
    };
    let error = Cloud::attach(&record).expect_err("no such driver");
    assert_eq!(
        chain(&error),
        "cloud driver 'moto', attaching: what is recorded of it cannot be used: this program has no such driver; it \
         has fake-cloud-in-process, fake-cloud-container, driver-at-url, driver-command, driver-image, \
         recording-proxy"
    );
    let known = CloudRecord { driver: in_process::KIND.name.into(), ..record };
    let error = Cloud::attach(&known).expect_err("it lacks everything");
    assert!(
        chain(&error).contains("cannot be used: missing field") || chain(&error).contains("invalid type")
    );
}

#[tokio::test]
async fn a_cloud_in_this_process_has_every_facility_and_is_joined_by_its_record() {
    let running = start_here("digitalocean").await;
    let text = serde_json::to_string(running.record()).expect("plain data");
    let cloud = Cloud::attach(&serde_json::from_str(&text).expect("a record")).expect("attached");
    assert_eq!(cloud.driver(), "fake-cloud-in-process");
    assert!(Facility::OF_THE_CLOUD.iter().all(|facility| cloud.facilities().contains(facility)));
    assert_eq!(cloud.shown().internal_v6, Some(0));
    assert!(cloud.inventory().await.expect("an inventory").instances.is_empty());
    assert!(cloud.remove_instance("1").await.expect_err("it is not there").is_not_found());
    running.stop().await.expect("stopped");
    let gone = cloud.inventory().await.expect_err("it is stopped");
    assert_eq!((gone.problem, gone.call), (Problem::NoAnswer, "reading the inventory"));
}
