//! The speed of the fake cloud: `cargo bench -p fake-cloud`. Prints figures and judges none of them.
//!
//! The server is the real binary in a process of its own. It has one thread, so a second of its processor
//! time is a second of one core. It is driven over loopback by keep-alive connections that wait for each
//! answer.
#![expect(clippy::print_stdout, reason = "figures are what it is for")]

use fake_cloud_driver::{
    Address, Client, Effect, Fault, Instance, InstanceState, LbState, LoadBalancer, Match, Op, Settings,
};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_fake-cloud");
const TOKEN: &str = "token-of-the-benchmark";
const INSTANCES: usize = 1000;
const STARTS: usize = 20;
const RUN: Duration = Duration::from_secs(3);

/// The same request in the native dialect and in another. They are measured in turns, so that other load on
/// the machine affects both.
struct Pair {
    name: &'static str,
    native: &'static str,
    other: &'static str,
}

/// The dialects that are compared with the native one.
const OTHERS: &[(&str, &[Pair])] = &[
    (
        "hcloud",
        &[
            Pair { name: "one instance", native: "/v1/instances/501", other: "/v1/servers/501" },
            Pair {
                name: "instance by name",
                native: "/v1/instances?name=node-501",
                other: "/v1/servers?name=node-501",
            },
            Pair {
                name: "page of 50 instances",
                native: "/v1/instances",
                other: "/v1/servers?page=1&per_page=50",
            },
            Pair {
                name: "load balancers of an owner",
                native: "/v1/load-balancers?owner=u-50",
                other: "/v1/load_balancers?label_selector=hcloud-ccm%2Fservice-uid%3Du-50",
            },
        ],
    ),
    (
        "digitalocean",
        &[
            Pair { name: "one instance", native: "/v1/instances/501", other: "/v2/droplets/501" },
            Pair {
                name: "instance by name",
                native: "/v1/instances?name=node-501",
                other: "/v2/droplets?name=node-501",
            },
            Pair {
                name: "page of 50 instances",
                native: "/v1/instances",
                other: "/v2/droplets?page=1&per_page=50",
            },
            Pair {
                name: "page of 50 load balancers",
                native: "/v1/load-balancers",
                other: "/v2/load_balancers?page=1&per_page=50",
            },
        ],
    ),
];

/// How many times each side of a pair is measured; the median counts.
const TURNS: usize = 5;

/// A request that is repeated again and again.
struct Case {
    name: &'static str,
    path: &'static str,
    connections: usize,
    faults: usize,
}

const CASES: &[Case] = &[
    Case { name: "one instance, 1 connection", path: "/v1/instances/i-500", connections: 1, faults: 0 },
    Case { name: "one instance, 16 connections", path: "/v1/instances/i-500", connections: 16, faults: 0 },
    Case {
        name: "one instance, 16 connections, 10 faults",
        path: "/v1/instances/i-500",
        connections: 16,
        faults: 10,
    },
    Case {
        name: "instance by name among 1000",
        path: "/v1/instances?name=node-500",
        connections: 16,
        faults: 0,
    },
    Case { name: "page of 50 instances", path: "/v1/instances", connections: 16, faults: 0 },
    Case {
        name: "load balancers of an owner among 100",
        path: "/v1/load-balancers?owner=u-50",
        connections: 16,
        faults: 0,
    },
    Case { name: "unknown instance (404)", path: "/v1/instances/nobody", connections: 16, faults: 0 },
];

fn main() {
    // `cargo test --all-targets` also runs this, without the flag.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let size = std::fs::metadata(PROGRAM).map(|file| file.len()).unwrap_or_default();
    println!("binary        {:.1} MB ({PROGRAM})", size as f64 / 1e6);
    starts();
    let server = Server::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let driver = Client::new(&server.driver, TOKEN).expect("a client");
    runtime.block_on(fill(&driver));
    println!("{:<40} {:>10} {:>14} {:>9} {:>9}", "reads", "calls/s", "calls/CPU s", "p50", "p99");
    for case in CASES {
        runtime.block_on(order_faults(&driver, case.faults));
        let measured = measure(&server, case, RUN);
        println!("{:<40} {measured}", case.name);
    }
    println!("memory        {} with a full journal", server.memory());
    drop(server);
    for (dialect, pairs) in OTHERS {
        compared_with_native(&runtime, dialect, pairs);
    }
}

/// Compares the speed of a dialect with the native one, by the server's own processor time.
fn compared_with_native(runtime: &tokio::runtime::Runtime, dialect: &str, pairs: &[Pair]) {
    println!("{:<40} {:>14} {dialect:>14} {:>9}", "reads, calls/CPU s", "native", "ratio");
    let [native, other] = ["native", dialect].map(|dialect| {
        let server = Server::speaking(dialect);
        let driver = Client::new(&server.driver, TOKEN).expect("a client");
        runtime.block_on(fill_numbered(&driver));
        server
    });
    for pair in pairs {
        let mut speeds = [Vec::new(), Vec::new()];
        for _ in 0..TURNS {
            for (index, (server, path)) in
                [(&native, pair.native), (&other, pair.other)].into_iter().enumerate()
            {
                let case = Case { name: pair.name, path, connections: 4, faults: 0 };
                speeds[index].push(measure(server, &case, RUN / 3).per_cpu_second());
            }
        }
        let [native, other] = speeds.map(|mut speeds| {
            speeds.sort_by(f64::total_cmp);
            speeds[TURNS / 2]
        });
        println!("{:<40} {native:>14.0} {other:>14.0} {:>9.2}", pair.name, other / native);
    }
}

/// Creates machines and load balancers with ids that every dialect accepts.
async fn fill_numbered(driver: &Client) {
    let numbered = |number: usize| Instance { id: number.to_string(), ..instance(number) };
    let instances: Vec<Instance> = (1..=INSTANCES).map(numbered).collect();
    driver.put_instances(&instances).await.expect("instances");
    for number in 1..=100 {
        let lb = LoadBalancer {
            id: (10_000_000 + number).to_string(),
            backends: vec!["1".to_owned()],
            ..load_balancer(number)
        };
        driver.put_load_balancer(&lb).await.expect("a load balancer");
    }
}

fn starts() {
    let mut times: Vec<Duration> = (0..STARTS)
        .map(|_| {
            let began = Instant::now();
            let _server = Server::start();
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "ready after   {:.1} ms (median of {STARTS}; slowest {:.1} ms)",
        ms(times[STARTS / 2]),
        ms(times[STARTS - 1])
    );
}

async fn fill(driver: &Client) {
    let instances: Vec<Instance> = (0..INSTANCES).map(instance).collect();
    driver.put_instances(&instances).await.expect("instances");
    for number in 0..100 {
        driver.put_load_balancer(&load_balancer(number)).await.expect("a load balancer");
    }
    driver.set_settings(&Settings { page_size: Some(50), ..Settings::default() }).await.expect("settings");
}

async fn order_faults(driver: &Client, count: usize) {
    driver.clear_faults().await.expect("cleared");
    for number in 0..count {
        let matching = Match {
            ops: vec![Op::InstanceGet],
            resource: Some(format!("node-{number}")),
            ..Match::default()
        };
        let fault = Fault { matching, effect: Effect::Refuse, calls: None, for_ms: None };
        driver.inject(&fault).await.expect("a fault");
    }
}

/// The result of a measurement.
struct Measured {
    latencies: Vec<Duration>,
    wall: Duration,
    cpu: Duration,
}

impl Measured {
    fn per_cpu_second(&self) -> f64 {
        self.latencies.len() as f64 / self.cpu.as_secs_f64()
    }
}

impl std::fmt::Display for Measured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let calls = self.latencies.len() as f64;
        let at =
            |share: f64| self.latencies[((calls * share) as usize).min(self.latencies.len() - 1)].as_micros();
        let per_second = calls / self.wall.as_secs_f64();
        let per_cpu_second = self.per_cpu_second();
        write!(f, "{per_second:>10.0} {per_cpu_second:>14.0} {:>6} us {:>6} us", at(0.5), at(0.99))
    }
}

fn measure(server: &Server, case: &Case, time: Duration) -> Measured {
    let request =
        format!("GET {} HTTP/1.1\r\nhost: cloud\r\nauthorization: Bearer {TOKEN}\r\n\r\n", case.path);
    drive(server, &request, case.connections, time / 10);
    let (began, cpu) = (Instant::now(), server.cpu());
    let mut latencies = drive(server, &request, case.connections, time);
    let (wall, cpu) = (began.elapsed(), server.cpu() - cpu);
    latencies.sort_unstable();
    Measured { latencies, wall, cpu }
}

fn drive(server: &Server, request: &str, connections: usize, time: Duration) -> Vec<Duration> {
    let end = Instant::now() + time;
    std::thread::scope(|scope| {
        let callers: Vec<_> =
            (0..connections).map(|_| scope.spawn(|| call_until(&server.cloud, request, end))).collect();
        callers.into_iter().flat_map(|caller| caller.join().expect("a caller")).collect()
    })
}

fn call_until(address: &str, request: &str, end: Instant) -> Vec<Duration> {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_nodelay(true).expect("no delay");
    let mut buffer = vec![0_u8; 1 << 18];
    let mut latencies = Vec::new();
    while Instant::now() < end {
        let began = Instant::now();
        stream.write_all(request.as_bytes()).expect("sent");
        read_answer(&mut stream, &mut buffer);
        latencies.push(began.elapsed());
    }
    latencies
}

fn read_answer(stream: &mut TcpStream, buffer: &mut [u8]) {
    let mut filled = 0;
    loop {
        let read = stream.read(&mut buffer[filled..]).expect("an answer");
        assert!(read > 0, "the server has hung up");
        filled += read;
        let Some(head) = buffer[..filled].windows(4).position(|bytes| bytes == b"\r\n\r\n") else { continue };
        let text = std::str::from_utf8(&buffer[..head]).expect("a head of text");
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
        if filled >= head + 4 + length.parse::<usize>().expect("a number") {
            return;
        }
    }
}

/// The server in a separate process.
struct Server {
    child: Child,
    cloud: String,
    driver: String,
}

impl Server {
    /// Starts the server and waits until it has reported that it is ready.
    fn start() -> Server {
        Server::speaking("native")
    }

    fn speaking(dialect: &str) -> Server {
        let mut child = Command::new(PROGRAM)
            .args([
                "serve",
                "--dialect",
                dialect,
                "--listen",
                "127.0.0.1:0",
                "--driver-listen",
                "127.0.0.1:0",
            ])
            .env("FAKE_CLOUD_DRIVER_TOKEN", TOKEN)
            .env("FAKE_CLOUD_CREDENTIALS", format!("bench={TOKEN}"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let ready: Value = serde_json::from_str(&line).expect("JSON");
        let address = |key: &str| ready[key].as_str().expect("an address").to_owned();
        Server { child, cloud: address("cloud"), driver: address("driver") }
    }

    /// The memory in use, as the system reports it.
    fn memory(&self) -> String {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size").trim().to_owned()
    }

    /// The processor time used so far, in steps of 10 ms.
    fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("it runs");
        let (_, fields) = stat.rsplit_once(") ").expect("fields");
        let ticks = |index: usize| {
            fields.split(' ').nth(index).and_then(|text| text.parse::<u64>().ok()).expect("ticks")
        };
        Duration::from_millis((ticks(11) + ticks(12)) * 10)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server may have ended by itself; either way it is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn instance(number: usize) -> Instance {
    let address = |kind: &str, network: &str| Address {
        kind: kind.to_owned(),
        address: format!("{network}.{}.{}", number / 250, number % 250),
    };
    Instance {
        id: format!("i-{number}"),
        name: format!("node-{number}"),
        provider_id: Some(format!("native://i-{number}")),
        instance_type: "m1.small".to_owned(),
        zone: "zone-a".to_owned(),
        region: "region-1".to_owned(),
        addresses: vec![address("InternalIP", "10.0"), address("ExternalIP", "198.18")],
        labels: Default::default(),
        state: InstanceState::Running,
    }
}

fn load_balancer(number: usize) -> LoadBalancer {
    LoadBalancer {
        id: format!("lb-{number}"),
        name: format!("kubernetes-u-{number}"),
        owner: format!("u-{number}"),
        frontends: Vec::new(),
        backends: vec!["i-1".to_owned()],
        health_check: None,
        source_ranges: Vec::new(),
        session_affinity: "None".to_owned(),
        addresses: Vec::new(),
        state: LbState::Active,
        details: Value::Null,
    }
}
