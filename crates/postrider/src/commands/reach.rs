//! How a command reaches its server: which address, which key, which project. And how it reads bodies.

use std::io::Read;
use std::path::Path;

use bytes::Bytes;
use postrider::Client;

use crate::args::{BodyArg, GlobalArgs};
use crate::exit::{Exit, Failed};
use crate::serve::server_file;

const DEFAULT_SERVER: &str = "http://127.0.0.1:8080";

/// A client as the options and the environment have it. Nothing is sent yet.
pub fn client(global: &GlobalArgs) -> Result<Client, Failed> {
    client_with(global, None)
}

/// The same, with a key for where none is given.
pub fn client_with(global: &GlobalArgs, otherwise: Option<&str>) -> Result<Client, Failed> {
    let admin_key = std::env::var("POSTRIDER_ADMIN_KEY").ok();
    let key = given(global.key.as_deref()).or(given(admin_key.as_deref())).or(otherwise).ok_or_else(|| {
        Failed::usage("no key: give --key KEY or set POSTRIDER_KEY (the server prints it on its first start)")
    })?;
    let server = address(global.server.as_deref(), &global.data);
    let client = match global.tls_ca.as_deref() {
        Some(file) => Client::trusting(&server, key, &file.display().to_string())?,
        None => Client::new(&server, key)?,
    };
    Ok(client.with_project(&global.project))
}

/// For what anybody may ask.
pub fn client_without_key(global: &GlobalArgs) -> Result<Client, Failed> {
    Ok(Client::new(&address(global.server.as_deref(), &global.data), "none")?)
}

fn address(option: Option<&str>, data: &Path) -> String {
    match given(option) {
        Some(server) => server.to_owned(),
        None => server_file::read(data).map_or_else(|| DEFAULT_SERVER.to_owned(), |known| known.address),
    }
}

/// An empty variable is no value.
fn given(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

/// Reads a body as bytes; nothing is an empty one.
pub fn body(arg: Option<&BodyArg>) -> Result<Bytes, Failed> {
    match arg {
        None => Ok(Bytes::new()),
        Some(BodyArg::StandardInput) => {
            let mut bytes = Vec::new();
            let read = std::io::stdin().lock().read_to_end(&mut bytes);
            read.map_err(|error| Failed::new(Exit::Failure, format!("standard input cannot be read: {error}")))?;
            Ok(bytes.into())
        }
        Some(BodyArg::File(path)) => std::fs::read(path)
            .map(Bytes::from)
            .map_err(|error| Failed::new(Exit::Failure, format!("{} cannot be read: {error}", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_the_option_then_the_running_server_then_the_default() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(address(Some("http://a"), data.path()), "http://a");
        assert_eq!(address(Some(""), data.path()), DEFAULT_SERVER);
        std::fs::write(data.path().join("server.json"), r#"{"address": "http://127.0.0.1:7", "pid": 1}"#).unwrap();
        assert_eq!(address(None, data.path()), "http://127.0.0.1:7");
        std::fs::write(data.path().join("server.json"), "{").unwrap();
        assert_eq!(address(None, data.path()), DEFAULT_SERVER);
    }
}
