//! The figures of a server, as Prometheus reads them.

mod parts;

use parts::api::{Api, CONNECTIONS};

async fn page(api: &Api) -> (String, String) {
    let (status, head, body) = api.with("GET", "/metrics", "", b"").await;
    assert_eq!(status, 200, "{body}");
    (head, body)
}

#[tokio::test]
async fn what_was_done_is_counted() {
    let api = Api::start().await;
    api.connection("Billing \\\"1", r#", "use_queue": true"#).await;
    api.connection("direct", "").await;
    let send =
        async |name: &str, how: &str, body: &str| api.call("POST", &format!("{CONNECTIONS}/{name}/{how}"), body).await;
    assert_eq!(send("direct", "send", "{}").await.1["is_ok"], true);
    assert_eq!(send("direct", "send", r#"{"path": "/fail"}"#).await.1["is_ok"], false);
    assert_eq!(send("Billing%20%221", "send", "{}").await.1["is_ok"], true);
    assert_eq!(send("Billing%20%221", "send", r#"{"path": "/fail"}"#).await.1["is_in_dlq"], true);
    assert_eq!(api.call("POST", &format!("{CONNECTIONS}/Billing%20%221/pause"), "").await.0, 200);
    for _ in 0..3 {
        assert_eq!(send("Billing%20%221", "publish", r#"{"body": "12345"}"#).await.0, 202);
    }
    let (head, text) = page(&api).await;
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    let labels = r#"{project="default",connection="Billing \"1",type="rest"}"#;
    for line in [
        r#"postrider_requests_total{result="is_ok"} 2"#,
        r#"postrider_requests_total{result="is_in_queue"} 3"#,
        r#"postrider_requests_total{result="is_in_dlq"} 1"#,
        r#"postrider_requests_total{result="not_delivered"} 1"#,
        r#"postrider_attempts_total{outcome="delivered"} 2"#,
        r#"postrider_attempts_total{outcome="status"} 2"#,
        r#"postrider_attempts_total{outcome="timeout"} 0"#,
        "postrider_deliveries_accepted_total 5",
        "postrider_deliveries_settled_total 2",
        &format!("postrider_queue_waiting{labels} 3"),
        &format!("postrider_queue_waiting_bytes{labels} 15"),
        &format!("postrider_dlq_dead{labels} 1"),
        concat!("postrider_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(text.lines().any(|line| line.starts_with("process_start_time_seconds 1")), "{text}");
    // Each family is opened once, before its samples.
    let types: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE ")).collect();
    assert_eq!(types.iter().collect::<std::collections::BTreeSet<_>>().len(), types.len(), "{text}");
    assert!(text.ends_with('\n'));
    api.stop().await;
}

#[tokio::test]
async fn the_figures_are_behind_the_key() {
    let api = Api::start().await;
    let (status, _, _) = api.raw(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert_eq!(status, 401);
    api.stop().await;
}
