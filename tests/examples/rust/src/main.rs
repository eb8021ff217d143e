// SPDX-License-Identifier: Apache-2.0
//! The published Rust client of Azure IoT Operations with statestored: set, get, list, lock and watch.
//!
//! The broker is named by AIO_BROKER_HOSTNAME, AIO_BROKER_TCP_PORT, AIO_MQTT_USE_TLS and AIO_MQTT_CLIENT_ID.

use std::{error::Error, sync::Arc, time::Duration};

use azure_iot_operations_mqtt::{
    aio::connection_settings::MqttConnectionSettingsBuilder,
    session::{Session, SessionOptionsBuilder},
};
use azure_iot_operations_protocol::application::ApplicationContextBuilder;
use azure_iot_operations_services::{
    leased_lock::lock,
    state_store::{self, Operation, SetOptions},
};

const TIMEOUT: Duration = Duration::from_secs(10);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let settings = MqttConnectionSettingsBuilder::from_environment()?.build()?;
    let session = Session::new(SessionOptionsBuilder::default().connection_settings(settings).build()?)?;
    let exit = session.create_exit_handle();
    let client_id = session.create_managed_client().client_id().to_string();
    let store = Arc::new(state_store::Client::new(
        ApplicationContextBuilder::default().build()?,
        session.create_managed_client(),
        session.create_session_monitor(),
        state_store::ClientOptionsBuilder::default().build()?,
    )?);

    // The session must run until the client has shut down.
    let (ended, done) = tokio::join!(session.run(), async {
        let done = use_store(&store, &client_id).await;
        let _ = store.shutdown().await;
        if exit.try_exit().is_err() {
            exit.force_exit();
        }
        done
    });
    done?;
    Ok(ended?)
}

async fn use_store(store: &Arc<state_store::Client>, client_id: &str) -> Result<(), Box<dyn Error>> {
    store.set(b"greeting".to_vec(), b"hello".to_vec(), TIMEOUT, None, SetOptions::default()).await?;
    let greeting = store.get(b"greeting".to_vec(), TIMEOUT).await?.response;
    println!("get {}", text(&greeting.unwrap_or_default()));

    let mut pages = store.list_keys(b"greet*".to_vec(), TIMEOUT)?;
    while let Some(keys) = pages.next().await? {
        keys.iter().for_each(|key| println!("list {}", text(key)));
    }

    // The version of the lock is the fencing token. The lock is renewed every 3 seconds.
    let lock = lock::Client::new(store.clone(), b"lock".to_vec(), client_id.into())?;
    let token = lock.lock(Duration::from_secs(10), TIMEOUT, Some(Duration::from_secs(3))).await?;
    println!("lock {}", text(&store.get(b"lock".to_vec(), TIMEOUT).await?.response.unwrap_or_default()));
    store.set(b"counter".to_vec(), b"1".to_vec(), TIMEOUT, Some(token), SetOptions::default()).await?;
    match store.set(b"counter".to_vec(), b"2".to_vec(), TIMEOUT, None, SetOptions::default()).await {
        Ok(_) => return Err("a write without the fencing token was not refused".into()),
        Err(error) => println!("refused {error}"),
    }
    lock.unlock(TIMEOUT).await?;

    let mut changes = store.observe(b"door".to_vec(), TIMEOUT).await?.response;
    println!("watching");
    while let Some((change, _)) = changes.recv_notification().await {
        match change.operation {
            Operation::Set(value) => println!("watch SET {}", text(&value)),
            Operation::Del => {
                println!("watch DELETE");
                break;
            }
        }
    }
    Ok(())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
