//! Bulk acts and their jobs, and the filters of lists, as a caller uses them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod parts;

use std::time::Duration;

use parts::api::{Api, CONNECTIONS, DELIVERIES, field};
use serde_json::{Value, json};

const PROJECT: &str = "/api/v1/projects/default";

async fn dead_letters(api: &Api, connection: &str, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for number in 0..count {
        let body = json!({"path": "/fail", "body": format!("{number}")}).to_string();
        let (status, sent) = api.call("POST", &format!("{CONNECTIONS}/{connection}/publish"), &body).await;
        assert_eq!(status, 202, "{sent}");
        ids.push(sent["msg_id"].as_str().unwrap().to_owned());
    }
    for id in &ids {
        api.until(id, "DLQ").await;
    }
    ids
}

async fn ended(api: &Api, job: &Value) -> Value {
    let path = format!("{PROJECT}/jobs/{}", job["id"].as_str().unwrap());
    let reached = async {
        loop {
            let now = api.get(&path).await;
            if !now["endedAt"].is_null() {
                return now;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reached).await.expect("the job ends")
}

// proves: P08, R11
#[tokio::test]
async fn p08_dead_letters_are_retried_by_filter_as_a_job() {
    let api = Api::start().await;
    api.connection("a", r#", "use_queue": true"#).await;
    let ids = dead_letters(&api, "a", 3).await;
    let retry = format!("{PROJECT}/dlq/retry");
    let (status, dry) = api.call("POST", &retry, r#"{"filter": {"connection": "a"}, "dry_run": true}"#).await;
    assert_eq!((status, dry), (200, json!({"dry_run": true, "act": "retry", "matched": 3, "complete": true})));
    let body = r#"{"filter": {"error": "status", "connection": "a", "attempts_min": 1}}"#;
    let (status, head, text) = api.with("POST", &retry, "Content-Type: application/json\r\n", body.as_bytes()).await;
    let job: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &job["act"], &job["state"]), (202, &json!("retry"), &json!("RUNNING")), "{job}");
    assert!(head.contains(&format!("location: {}", job["address"].as_str().unwrap())), "{head}");
    let done = ended(&api, &job).await;
    assert_eq!((&done["state"], &done["done"], &done["matched"]), (&json!("DONE"), &json!(3), &json!(3)), "{done}");
    assert_eq!(done["filter"], json!({"connection": "a", "status": ["DLQ"], "error": "status", "attempts_min": 1}));
    assert_eq!((&done["who"], &done["skipped"]), (&json!("bootstrap admin key"), &json!({})));
    for id in &ids {
        api.until(id, "DLQ").await;
    }
    // The second seed's way stays as it is.
    let bulk = json!({"deliveryIds": ids}).to_string();
    let (status, counts) = api.call("POST", &retry, &bulk).await;
    assert_eq!((status, &counts["retried"], &counts["requested"]), (200, &json!(3), &json!(3)));
    for id in &ids {
        api.until(id, "DLQ").await;
    }
    let ids = json!({"deliveryIds": [ids[0], "msg_00000000000000000000000000"]}).to_string();
    let (status, job) = api.call("POST", &format!("{DELIVERIES}/discard"), &ids).await;
    assert_eq!((status, &job["requested"], &job["filter"]), (202, &json!(2), &Value::Null));
    let done = ended(&api, &job).await;
    assert_eq!(
        (&done["done"], &done["skipped"], &done["skippedTotal"]),
        (&json!(1), &json!({"not_found": 1}), &json!(1))
    );

    let listed = api.get(&format!("{PROJECT}/jobs?limit=1")).await;
    assert_eq!(listed["data"][0]["id"], done["id"]);
    assert!(listed["next_cursor"].is_string());
    let path = format!("{PROJECT}/jobs/{}", done["id"].as_str().unwrap());
    for act in ["pause", "resume", "cancel"] {
        assert_eq!(api.call("POST", &format!("{path}/{act}"), "").await.0, 409, "{act}");
    }
    let foreign = path.replace("default", "other");
    assert_eq!(api.call("GET", &foreign, "").await.0, 404);
    assert_eq!(api.call("POST", &format!("{foreign}/cancel"), "").await.0, 404);
    assert!(api.get("/api/v1/projects/other/jobs").await["data"].as_array().unwrap().is_empty());
    api.stop().await;
}

// proves: D44, D31
#[tokio::test]
async fn d44_the_head_is_attempted_now_and_the_rest_is_moved_to_the_dlq() {
    let api = Api::start().await;
    api.connection("a", r#", "use_queue": true, "max_retries": 5, "retry_sleep_time": 8"#).await;
    let queue = format!("{CONNECTIONS}/a/queue");
    assert_eq!(api.call("POST", &format!("{queue}/attempt-now"), "").await.0, 409, "nothing waits");
    let mut ids = Vec::new();
    for _ in 0..3 {
        let (_, sent) = api.call("POST", &format!("{CONNECTIONS}/a/publish"), r#"{"path": "/fail"}"#).await;
        ids.push(sent["msg_id"].as_str().unwrap().to_owned());
    }
    let attempts = async |id: &str| api.get(&format!("{DELIVERIES}/{id}")).await["attempts"].as_u64().unwrap();
    let until = async |count: u64| {
        for _ in 0..2000 {
            if attempts(&ids[0]).await >= count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("attempt {count} is not made");
    };
    until(1).await;
    let (status, head) = api.call("POST", &format!("{queue}/attempt-now"), "").await;
    assert_eq!((status, &head["id"]), (200, &json!(ids[0])), "{head}");
    until(2).await;
    let (status, job) = api.call("POST", &format!("{queue}/set-aside"), "").await;
    assert_eq!((status, &job["act"]), (202, &json!("set_aside")), "{job}");
    assert_eq!(ended(&api, &job).await["done"], 3);
    assert_eq!(api.get(&queue).await["data"], json!([]));
    assert_eq!(api.get(&format!("{CONNECTIONS}/a/dlq")).await["data"].as_array().unwrap().len(), 3);
    api.stop().await;
}

#[tokio::test]
async fn bad_bulk_requests_are_refused_by_name_and_leave_no_job() {
    let api = Api::start().await;
    api.connection("a", "").await;
    let many = vec!["x"; 10_001];
    let many = json!({"deliveryIds": many}).to_string();
    let cases = [
        ("deliveries/retry", "{}", 422, "filter"),
        ("deliveries/retry", r#"{"filter": {}, "deliveryIds": []}"#, 422, "filter"),
        ("deliveries/retry", r#"{"filter": 7}"#, 422, "filter"),
        ("deliveries/retry", r#"{"filter": {"colour": "red"}}"#, 400, "filter.colour"),
        ("deliveries/retry", r#"{"filter": {"status": ["PENDING", "GREEN"]}}"#, 400, "filter.status"),
        ("deliveries/retry", r#"{"filter": {"status": {"a": 1}}}"#, 422, "filter.status"),
        ("deliveries/retry", r#"{"filter": {"status": []}}"#, 422, "filter.status"),
        ("deliveries/retry", r#"{"filter": {"error": "bad luck"}}"#, 400, "filter.error"),
        ("deliveries/retry", r#"{"filter": {"created_from": "yesterday"}}"#, 400, "filter.created_from"),
        (
            "deliveries/resend",
            r#"{"filter": {"created_from": "2026-01-02T00:00:00Z", "created_before": "2026-01-02T00:00:00Z"}}"#,
            400,
            "filter.created_before",
        ),
        ("deliveries/retry", r#"{"filter": {"attempts_min": -1}}"#, 400, "filter.attempts_min"),
        ("deliveries/retry", r#"{"filter": {"cid": ""}}"#, 400, "filter.cid"),
        ("deliveries/retry", r#"{"filter": {"id": "evt_1"}}"#, 400, "filter.id"),
        ("deliveries/retry", r#"{"filter": {"method": "CONNECT"}}"#, 400, "filter.method"),
        ("deliveries/retry", r#"{"filter": {"edited": "maybe"}}"#, 400, "filter.edited"),
        ("deliveries/retry", r#"{"filter": {}, "dry_run": "yes"}"#, 422, "dry_run"),
        ("deliveries/retry", r#"{"deliveryIds": ["msg_1"]}"#, 422, "deliveryIds[0]"),
        ("deliveries/retry", many.as_str(), 422, "deliveryIds"),
        ("deliveries/retry", r#"{"filter": {}, "topic": "a"}"#, 422, "topic"),
        ("deliveries/forward", r#"{"filter": {}}"#, 422, "topic"),
        ("deliveries/forward", r#"{"filter": {}, "topic": "a..b"}"#, 422, "topic"),
        ("dlq/retry", r#"{"filter": {"status": "DLQ"}}"#, 400, "filter.status"),
        ("dlq/discard", r#"{"filter": {"status": "FAILED"}}"#, 400, "filter.status"),
        ("dlq/retry", "{}", 422, "deliveryIds"),
        ("connections/a/queue/set-aside", r#"{"all": true}"#, 422, "all"),
    ];
    for (path, body, wanted, named) in cases {
        let (status, refused) = api.call("POST", &format!("{PROJECT}/{path}"), body).await;
        let shown: String = body.chars().take(80).collect();
        assert_eq!((status, field(&refused)), (wanted, named), "{path} {shown}: {refused}");
        assert!(refused["errors"][0]["allowed"].is_string(), "{refused}");
    }
    let (status, _) = api.call("POST", &format!("{DELIVERIES}/retry"), r#"{"filter": {"connection": "b"}}"#).await;
    assert_eq!(status, 404);
    let missing = r#"{"filter": {}, "topic": "missing"}"#;
    assert_eq!(api.call("POST", &format!("{DELIVERIES}/forward"), missing).await.0, 404);
    assert_eq!(api.call("POST", &format!("{CONNECTIONS}/b/queue/set-aside"), "").await.0, 404);
    assert_eq!(api.call("GET", &format!("{PROJECT}/jobs/job_1"), "").await.0, 404);
    assert_eq!(api.call("GET", &format!("{PROJECT}/jobs?state=DONE"), "").await.0, 400);
    assert!(api.get(&format!("{PROJECT}/jobs")).await["data"].as_array().unwrap().is_empty());
    api.stop().await;
}

#[tokio::test]
async fn lists_are_searched_by_what_they_show() {
    let api = Api::start().await;
    api.connection("a", r#", "use_queue": true"#).await;
    let ids = dead_letters(&api, "a", 2).await;
    let headers = "Content-Type: application/json\r\nX-Postrider-Cid: order-17\r\n";
    let (_, _, sent) = api.with("POST", &format!("{CONNECTIONS}/a/publish"), headers, br#"{"method": "PUT"}"#).await;
    let sent: Value = serde_json::from_str(&sent).unwrap();
    let id = sent["msg_id"].as_str().unwrap().to_owned();
    api.until(&id, "SUCCESS").await;
    let ours = api.get(&format!("{DELIVERIES}/{}", ids[1])).await["cid"].as_str().unwrap().to_owned();
    for (query, wanted) in [
        ("cid=order-17".to_owned(), vec![&id]),
        (format!("cid={ours}"), vec![&ids[1]]),
        (format!("id={}", ids[0]), vec![&ids[0]]),
        ("error_text=http%20500".to_owned(), vec![&ids[1], &ids[0]]),
        ("error_text=teapot".to_owned(), vec![]),
        ("method=PUT".to_owned(), vec![&id]),
        ("path=%2Ffail&status=DLQ".to_owned(), vec![&ids[1], &ids[0]]),
        ("origin=publish&status=SUCCESS,FAILED".to_owned(), vec![&id]),
        ("ended_from=2020-01-01T00:00:00Z".to_owned(), vec![&id]),
        ("dead_before=2020-01-01T00:00:00Z".to_owned(), vec![]),
        ("attempts_min=1&body_bytes_max=0&edited=false".to_owned(), vec![&id]),
    ] {
        let found = api.get(&format!("{DELIVERIES}?{query}")).await;
        let found: Vec<&str> =
            found["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
        assert_eq!(found, wanted, "{query}");
    }
    for (query, named) in [("cid=", "cid"), ("rounds_max=x", "rounds_max"), ("edited=1", "edited"), ("cids=1", "cids")]
    {
        let (status, refused) = api.call("GET", &format!("{DELIVERIES}?{query}"), "").await;
        assert_eq!((status, field(&refused)), (400, named), "{query}");
    }
    api.stop().await;
}
