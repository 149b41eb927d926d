//! The Rust crate: one trait over a server, over https, and over a Postrider in the process (Z30, Z31).
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod harness;

use std::sync::Arc;

use harness::{KEY, Mirror, Server};
use postrider::{
    Call, Client, ClientError, Courier, DeliveryQuery, PageQuery, Postrider, Service, ServiceError, ServiceRequest,
    ServiceResponse,
};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};

/// What an application does; nothing in here knows where the Postrider is.
async fn does_it_all(courier: &dyn Courier, host: &str) {
    let settings = json!({"type": "rest", "name": "c", "host": host, "url_path": "/", "use_queue": true});
    let made = courier.create_connection(settings.as_object().unwrap()).await.unwrap();
    assert_eq!((made.name.as_str(), made.state.paused), ("c", false));
    let twice = courier.create_connection(settings.as_object().unwrap()).await.unwrap_err();
    let ClientError::Refused(problem) = twice else { panic!("{twice}") };
    assert_eq!(problem.status, 409);
    let bad = courier.create_connection(json!({"type": "rest", "name": "d"}).as_object().unwrap()).await.unwrap_err();
    let ClientError::Refused(problem) = bad else { panic!("{bad}") };
    assert_eq!(problem.errors.iter().map(|error| error.field.as_str()).collect::<Vec<_>>(), ["host", "url_path"]);

    let sent = courier.send("c", &Call::post(vec![0, 255, 7])).await.unwrap();
    assert!(sent.is_ok, "{sent:?}");
    let id = sent.msg_id.unwrap();
    let delivery = courier.delivery(&id).await.unwrap();
    assert_eq!(delivery.status, "SUCCESS");
    assert_eq!(courier.attempts(&id).await.unwrap().data.len(), 1);
    courier.pause_connection("c").await.unwrap();
    let stored = courier.publish("c", &Call::post("later")).await.unwrap();
    assert!(stored.is_in_queue && !stored.is_ok);
    assert_eq!(courier.discard(&stored.msg_id.unwrap()).await.unwrap().status, "DISCARDED");
    courier.resume_connection("c").await.unwrap();
    assert_eq!(courier.deliveries(&DeliveryQuery::default()).await.unwrap().data.len(), 2);
    assert!(courier.dead_letters(&DeliveryQuery::default()).await.unwrap().data.is_empty());
    courier.create_topic("t", "", None).await.unwrap();
    courier.create_subscription("t", "reader").await.unwrap();
    courier.publish_to_topic("t", &[], &"1".into()).await.unwrap();
    assert_eq!(courier.pull("t", "reader", 10).await.unwrap().data.len(), 1);
    assert_eq!(courier.topics(&PageQuery::default()).await.unwrap().data.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn z30_an_application_does_the_same_over_a_server_and_in_its_own_process() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let (server, remote) = tokio::join!(Server::start(&data), Mirror::start());
    does_it_all(&Postrider::connect(&server.address, KEY).unwrap(), &remote.address).await;
    let taken = Postrider::open(&data).await.err().expect("a server has the directory");
    assert!(
        matches!(&taken, ClientError::BadSetting { .. }) && taken.to_string().contains("another server has it"),
        "{taken}"
    );
    server.stop().await;

    let own = dir.path().join("own");
    let postrider = Postrider::open(&own).await.unwrap();
    does_it_all(&postrider, &remote.address).await;
    // What waits is there at the next open, in the process or in a server.
    postrider.pause_connection("c").await.unwrap();
    let waiting = postrider.publish("c", &Call::post("waits")).await.unwrap().msg_id.unwrap();
    postrider.close().await;
    let server = Server::start(&own).await;
    let client = Client::new(&server.address, KEY).unwrap();
    assert_eq!(client.delivery(&waiting).await.unwrap().status, "PENDING");
    server.stop().await;
    let got = remote.requests();
    assert_eq!(got.iter().filter(|seen| seen.body[..] == [0, 255, 7]).count(), 2, "byte for byte, both ways");
}

/// TLS in front of a server, as a proxy would have it. Its address, and the certificate's file.
async fn tls_before(server: &Server, dir: &std::path::Path) -> (String, String) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let file = dir.join("ca.pem");
    std::fs::write(&file, cert.pem()).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![cert.der().clone()], key).unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let behind = server.address.strip_prefix("http://").unwrap().to_owned();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, behind) = (acceptor.clone(), behind.clone());
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut server = TcpStream::connect(behind).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut server).await;
            });
        }
    });
    (format!("https://localhost:{port}"), file.display().to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_speaks_https_and_trusts_whom_it_is_told_to() {
    let dir = tempfile::tempdir().unwrap();
    let (server, remote) = tokio::join!(Server::start(dir.path()), Mirror::start());
    let (address, ca) = tls_before(&server, dir.path()).await;
    let client = Client::trusting(&address, KEY, &ca).unwrap();
    assert!(client.health().await.unwrap().is_ready);
    does_it_all(&client, &remote.address).await;
    let stranger = Client::new(&address, KEY).unwrap().health().await.unwrap_err();
    assert!(
        matches!(&stranger, ClientError::Unreachable { reason, .. } if reason.contains("certificate")),
        "{stranger}"
    );
    assert!(Client::trusting(&address, KEY, "/not/there").is_err());
    // The commands take the file by an option, or from the environment.
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_postrider"));
    command.args(["connections", "list", "--server", &address, "--tls-ca", &ca, "--key", KEY]);
    let output = command.output().await.unwrap();
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains('c'), "{output:?}");
    server.stop().await;
}

/// The first seed's service, as code.
struct OrderIntake(Client);

#[postrider::async_trait]
impl Service for OrderIntake {
    async fn handle(&self, request: ServiceRequest) -> Result<ServiceResponse, ServiceError> {
        if request.attempt == 1 {
            return Err(ServiceError::new("not yet"));
        }
        self.0.publish("Fulfilment", &Call::post(request.body)).await?;
        Ok(ServiceResponse::default())
    }

    fn has_queue_response(&self) -> bool {
        true
    }

    async fn queue_response(&self, request: ServiceRequest) -> Result<ServiceResponse, ServiceError> {
        let order: serde_json::Value = serde_json::from_slice(&request.body)?;
        let told = json!({"accepted": true, "order_id": order["order_id"], "msg_id": request.msg_id});
        Ok(ServiceResponse::of("application/json", told.to_string()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn z44_code_in_the_process_runs_for_a_channel_and_writes_its_acknowledgment() {
    let dir = tempfile::tempdir().unwrap();
    let (postrider, remote) = tokio::join!(Postrider::open(dir.path().join("data")), Mirror::start());
    let postrider = postrider.unwrap();
    let settings =
        json!({"type": "rest", "name": "Fulfilment", "host": remote.address, "url_path": "/", "use_queue": true});
    postrider.create_connection(settings.as_object().unwrap()).await.unwrap();
    let settings = json!({
        "type": "rest", "name": "Orders", "url_path": "/orders", "service": "orders", "use_queue": true, "max_retries": 1, "retry_sleep_time": 1
    });
    postrider.client().create_channel(settings.as_object().unwrap()).await.unwrap();
    assert!(postrider.provide("orders", Arc::new(OrderIntake(postrider.client().clone()))));
    let request = |body: &str| http::Request::post("/orders").body(body.to_owned().into()).unwrap();
    let answer = postrider.receive(request("{\"order_id\": 5}")).await.unwrap();
    let told: serde_json::Value = serde_json::from_slice(answer.body()).unwrap();
    assert_eq!((&told["accepted"], &told["order_id"]), (&json!(true), &json!(5)));
    remote.until(1).await;
    assert_eq!(&remote.last().body[..], b"{\"order_id\": 5}", "the second run did it");
    let odd = postrider.receive(request("no JSON")).await.unwrap();
    let told: serde_json::Value = serde_json::from_slice(odd.body()).unwrap();
    assert_eq!(told["is_ok"], true, "a hook that fails costs nobody the request");
    let services = postrider.client().services(&PageQuery::default()).await.unwrap();
    assert_eq!((services.data[0].name.as_str(), &services.data[0].more["source"]), ("orders", &json!("in_process")));
    postrider.close().await;
    let elsewhere = Postrider::connect("http://127.0.0.1:1", "k").unwrap();
    assert!(!elsewhere.provide("orders", Arc::new(OrderIntake(elsewhere.client().clone()))));
    assert!(elsewhere.receive(request("x")).await.is_err());
}
