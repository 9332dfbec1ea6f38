//! Deleting the workbench's own keys on a server, and no others.

use std::time::Duration;

use leader_core::LockName;
use leader_redis::fred::clients::Client;
use leader_redis::fred::error::Error;
use leader_redis::fred::prelude::{Builder, ClientLike, Config};
use leader_redis::fred::types::CustomCommand;
use tokio::runtime;
use tokio::time::timeout;

use crate::site::KEY_PREFIX;

/// How long a server may take for all of it.
const LIMIT: Duration = Duration::from_secs(2);

/// Deletes what the server at `url` has of `name`, or says in a sentence why it did not.
///
/// It has a runtime of its own, with which its connection ends however this ends: what is given up in the middle of
/// connecting cannot be asked to quit.
pub(crate) async fn erase(url: &str, name: &LockName) -> Result<(), String> {
    let (url, name) = (url.to_owned(), name.clone());
    let erased = tokio::task::spawn_blocking(move || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("there is no runtime for it: {error}"))?;
        let erased = runtime.block_on(async { timeout(LIMIT, delete_all(&url, &name)).await });
        runtime.shutdown_background();
        match erased {
            Ok(erased) => erased.map_err(|error| error.details().to_owned()),
            Err(_) => Err(format!("the server has not answered within {LIMIT:?}")),
        }
    });
    erased.await.unwrap_or_else(|error| Err(error.to_string()))
}

async fn delete_all(url: &str, name: &LockName) -> Result<(), Error> {
    let client = Builder::from_config(Config::from_url(url)?).build()?;
    client.init().await?;
    let deleted = delete_keys(&client, name).await;
    let _ = client.quit().await;
    deleted
}

async fn delete_keys(client: &Client, name: &LockName) -> Result<(), Error> {
    let command = |name| CustomCommand::new_static(name, None::<u16>, false);
    // Another workbench on the same server leads another name. Braces mean nothing in a pattern, and what does cannot
    // stand in a name.
    let pattern = format!("{KEY_PREFIX}:{{{name}}}:*");
    let mut cursor = "0".to_owned();
    loop {
        let scan = vec![cursor.as_str(), "MATCH", &pattern, "COUNT", "500"];
        let (next, keys): (String, Vec<String>) = client.custom(command("SCAN"), scan).await?;
        if !keys.is_empty() {
            client.custom::<(), _>(command("DEL"), keys).await?;
        }
        if next == "0" {
            return Ok(());
        }
        cursor = next;
    }
}
