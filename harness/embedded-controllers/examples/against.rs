//! Runs the controllers against the API server of a kubeconfig (`KUBECONFIG`), so that you can look at them
//! with kubectl.
//!
//! `cargo run -p embedded-controllers --example against -- NODES [IMAGE COMMAND [ARGUMENT..]]`: starts that
//! many nodes, which wait for no cloud; Pods of the image run the command. Stop it with Ctrl-C.

use std::net::SocketAddr;

use embedded_controllers::{Clients, CloudProvider, Controllers, NodeSpec, Program, Settings};
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    let mut arguments = std::env::args().skip(1);
    let count: usize = arguments.next().unwrap_or_else(|| "1".to_owned()).parse()?;
    let config = kube::Config::infer().await?;
    let port = config.cluster_url.port_u16().unwrap_or(443);
    let mut settings = Settings::new(SocketAddr::from(([127, 0, 0, 1], port)), String::new());
    settings.nodes = (0..count)
        .map(|index| NodeSpec { cloud: CloudProvider::None, ..NodeSpec::new(format!("node-{index}")) })
        .collect();
    if let Some(image) = arguments.next() {
        settings.programs.push(Program::new(image, arguments));
    }
    let running = Controllers::start(Clients::same(kube::Client::try_from(config)?), settings).await?;
    tokio::signal::ctrl_c().await?;
    running.stop().await;
    Ok(())
}
