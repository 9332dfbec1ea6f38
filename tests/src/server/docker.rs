//! A server in a container.

use super::port::ReservedPort;
use super::settings::Settings;
use std::collections::HashMap;
use std::env;
use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use testcontainers::bollard::Docker as Engine;
use testcontainers::bollard::models::PortBinding;
use testcontainers::bollard::query_parameters::KillContainerOptionsBuilder;
use testcontainers::core::IntoContainerPort;
use testcontainers::runners::AsyncRunner;
use testcontainers::{ContainerAsync, GenericImage, ImageExt};
use tokio::runtime::Runtime;

const IMAGE: &str = "LEADER_TEST_REDIS_IMAGE";
const DEFAULT_IMAGE: &str = "redis:7";
/// `host` where the engine can make no bridge, as in some sandboxes.
const NETWORK: &str = "LEADER_TEST_REDIS_NETWORK";
/// The official image's port; on the host's network the server listens on its reserved port itself.
const INNER_PORT: u16 = 6379;

pub(super) struct Docker {
    port: ReservedPort,
    container: Option<Arc<ContainerAsync<GenericImage>>>,
    /// The engine refuses to pause what is paused; a signal would not.
    frozen: AtomicBool,
}

impl Docker {
    pub(super) async fn start(settings: &Settings) -> Self {
        let port = settings
            .port
            .map_or_else(ReservedPort::any, ReservedPort::this);
        let number = port.number();
        let image = env::var(IMAGE).unwrap_or_else(|_| DEFAULT_IMAGE.to_owned());
        let (name, tag) = image.rsplit_once(':').unwrap_or((&image, "latest"));
        let on_host = env::var(NETWORK).is_ok_and(|network| network == "host");
        let args = if on_host {
            settings.command_line("127.0.0.1", number)
        } else {
            settings.command_line("0.0.0.0", INNER_PORT)
        };
        let line = ["redis-server".to_owned()].into_iter().chain(args);
        let mut request = GenericImage::new(name, tag)
            .with_exposed_port(INNER_PORT.tcp())
            .with_cmd(line);
        request = if on_host {
            request.with_network("host")
        } else {
            let inner = format!("{INNER_PORT}/tcp");
            let outer = PortBinding {
                host_ip: Some("127.0.0.1".to_owned()),
                host_port: Some(number.to_string()),
            };
            request.with_host_config_modifier(move |host| {
                host.publish_all_ports = Some(false);
                host.port_bindings =
                    Some(HashMap::from([(inner.clone(), Some(vec![outer.clone()]))]));
            })
        };
        let container = on_runtime("start", async move { request.start().await }).await;
        Self {
            port,
            container: Some(Arc::new(container)),
            frozen: AtomicBool::new(false),
        }
    }

    pub(super) fn addr(&self) -> SocketAddr {
        self.port.addr()
    }

    pub(super) async fn kill(&self) {
        self.frozen.store(false, Ordering::SeqCst);
        let container = self.container();
        on_runtime("kill", async move {
            if !container.is_running().await.unwrap_or(false) {
                return Ok(());
            }
            let engine = Engine::connect_with_defaults()?;
            let signal = KillContainerOptionsBuilder::new().signal("KILL").build();
            engine.kill_container(container.id(), Some(signal)).await?;
            while container.is_running().await.unwrap_or(false) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Ok::<_, testcontainers::bollard::errors::Error>(())
        })
        .await;
    }

    pub(super) async fn restart(&self) {
        self.kill().await;
        let container = self.container();
        on_runtime("restart", async move { container.start().await }).await;
    }

    pub(super) async fn freeze(&self) {
        if self.frozen.swap(true, Ordering::SeqCst) {
            return;
        }
        let container = self.container();
        on_runtime("pause", async move { container.pause().await }).await;
    }

    pub(super) async fn thaw(&self) {
        if !self.frozen.swap(false, Ordering::SeqCst) {
            return;
        }
        let container = self.container();
        on_runtime("unpause", async move { container.unpause().await }).await;
    }

    fn container(&self) -> Arc<ContainerAsync<GenericImage>> {
        let container = self.container.as_ref();
        Arc::clone(container.unwrap_or_else(|| unreachable!("only `drop` takes the container")))
    }
}

impl Drop for Docker {
    fn drop(&mut self) {
        let Some(container) = self.container.take() else {
            return;
        };
        let (done, removed) = std::sync::mpsc::channel();
        runtime().spawn(async move {
            // Its own `drop` removes it, and needs a runtime around it for that.
            drop(container);
            let _ = done.send(());
        });
        let _ = removed.recv();
    }
}

/// The engine's client keeps connections, which would end with the first test's runtime.
fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        runtime.unwrap_or_else(|error| panic!("no runtime for Docker can be made: {error}"))
    })
}

async fn on_runtime<T, E>(
    step: &str,
    work: impl Future<Output = Result<T, E>> + Send + 'static,
) -> T
where
    T: Send + 'static,
    E: Display + Send + 'static,
{
    match runtime().spawn(work).await {
        Ok(Ok(value)) => value,
        Ok(Err(error)) => panic!(
            "Docker could not {step} the test's server: {error}. Is the engine running (`docker info`), and is the \
             image there ({IMAGE}, default {DEFAULT_IMAGE})?"
        ),
        Err(error) => panic!("Docker could not {step} the test's server: {error}"),
    }
}
