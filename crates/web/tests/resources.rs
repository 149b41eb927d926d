//! The resources of the API as a caller uses them, over a real socket.

mod parts;

use parts::api::{Api, CONNECTIONS, DELIVERIES, field};
use serde_json::{Value, json};

#[tokio::test]
async fn connections_are_made_read_changed_and_deleted() {
    let api = Api::start().await;
    api.connection("Billing API", r#", "max_retries": 3, "use_queue": true"#).await;
    let path = format!("{CONNECTIONS}/Billing%20API");
    let made = api.get(&path).await;
    assert_eq!(made["name"], "Billing API");
    assert_eq!((&made["type"], &made["max_retries"]), (&json!("rest"), &json!(3)));
    assert_eq!(made["state"]["paused"], false);
    assert_eq!((&made["state"]["waiting"], &made["state"]["dead"]), (&json!(0), &json!(0)));
    assert!(made["warnings"].is_array() && made["id"].as_str().unwrap().starts_with("con_"), "{made}");
    let again = r#"{"name": "Billing API", "type": "rest", "host": "http://b.test", "url_path": ""}"#;
    assert_eq!(api.call("POST", CONNECTIONS, again).await.0, 409);

    let (status, patched) = api.call("PATCH", &path, r#"{"max_retries": null, "timeout": 5}"#).await;
    assert_eq!((status, patched.get("max_retries"), &patched["timeout"]), (200, None, &json!(5)), "{patched}");
    assert_eq!((&patched["use_queue"], &patched["id"]), (&json!(true), &made["id"]));
    // What was read can be written back; an older version of it cannot.
    assert_eq!(api.call("PUT", &path, &patched.to_string()).await.0, 200);
    assert_eq!(api.call("PUT", &path, &made.to_string()).await.0, 409);
    let (status, refused) = api.call("PATCH", &path, r#"{"timeout": -5}"#).await;
    assert_eq!((status, field(&refused)), (422, "timeout"));
    let (status, renamed) = api.call("PATCH", &path, r#"{"name": "Bills"}"#).await;
    assert_eq!((status, &renamed["id"]), (200, &made["id"]));
    assert_eq!(api.call("GET", &path, "").await.0, 404);

    let path = format!("{CONNECTIONS}/Bills");
    assert_eq!(api.call("POST", &format!("{path}/pause"), "").await.1["state"]["paused"], true);
    assert_eq!(api.call("POST", &format!("{path}/resume"), "").await.1["state"]["paused"], false);
    assert_eq!(api.call("GET", &format!("{path}?type=rest"), "").await.0, 200);
    assert_eq!(api.call("GET", "/api/v1/projects/other/connections/Bills", "").await.0, 404);
    assert!(api.get(&format!("{path}/schedule")).await["data"].is_array());
    assert_eq!(api.call("DELETE", &path, "").await.0, 204);
    assert_eq!(api.call("DELETE", &path, "").await.0, 404);
    api.stop().await;
}

#[tokio::test]
async fn lists_go_page_by_page_without_gaps() {
    let api = Api::start().await;
    for n in 0..5 {
        api.connection(&format!("c{n}"), "").await;
    }
    let (mut names, mut next) = (Vec::new(), String::new());
    loop {
        let page = api.get(&format!("{CONNECTIONS}?limit=2{next}")).await;
        let data = page["data"].as_array().unwrap();
        names.extend(data.iter().map(|item| item["name"].as_str().unwrap().to_owned()));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        let encoded: String = cursor.bytes().map(|byte| format!("%{byte:02X}")).collect();
        next = format!("&cursor={encoded}");
    }
    assert_eq!(names, ["c0", "c1", "c2", "c3", "c4"]);
    api.stop().await;
}

// proves: Z30, Z31
#[tokio::test]
async fn z30_a_call_returns_the_result_object_and_publish_stores() {
    let api = Api::start().await;
    api.connection("direct", "").await;
    let body = r#"{"body": {"n": 1.50}, "headers": {"X-A": "b"}}"#;
    let (status, result) = api.call("POST", &format!("{CONNECTIONS}/direct/send"), body).await;
    assert_eq!(status, 200, "{result}");
    assert_eq!(
        (&result["is_ok"], &result["is_in_queue"], &result["is_in_dlq"]),
        (&true.into(), &false.into(), &false.into())
    );
    assert_eq!(result["response"]["body"], r#"{"n":1.50}"#);
    assert_eq!(result["response"]["data"]["n"], 1.5);
    assert_eq!(result["response"]["headers"]["content-type"], "application/json");

    let (status, failed) = api.call("POST", &format!("{CONNECTIONS}/direct/send"), r#"{"path": "/fail"}"#).await;
    assert_eq!(
        (status, &failed["is_ok"], &failed["response"]["status"]),
        (200, &json!(false), &json!(500)),
        "{failed}"
    );

    api.connection("queued", r#", "use_queue": true, "max_retries": 2"#).await;
    let queued = format!("{CONNECTIONS}/queued");
    let (status, result) = api.call("POST", &format!("{queued}/send"), r#"{"path": "/fail", "body": "x"}"#).await;
    assert_eq!((status, &result["is_in_queue"]), (202, &json!(true)), "{result}");
    assert!(result["msg_id"].as_str().unwrap().starts_with("msg_") && result["error"].is_string(), "{result}");
    let (status, result) = api.call("POST", &format!("{queued}/publish"), r#"{"body": "y"}"#).await;
    assert_eq!((status, &result["is_in_queue"], &result["response"]), (202, &json!(true), &Value::Null), "{result}");
    let waiting = api.get(&format!("{queued}/queue")).await;
    assert_eq!(waiting["data"].as_array().unwrap().len(), 2, "{waiting}");
    assert_eq!(waiting["data"][1]["id"], result["msg_id"]);
    assert_eq!(waiting["data"][1]["connection"], "queued");
    assert_eq!(api.get(&queued).await["state"]["waiting"], 2);
    api.stop().await;
}

#[tokio::test]
async fn d15_a_repeat_under_its_key_is_the_same_message() {
    let api = Api::start().await;
    api.connection("q", r#", "use_queue": true"#).await;
    api.connection("direct", "").await;
    let publish = format!("{CONNECTIONS}/q/publish");
    let headers = "Content-Type: application/json\r\nIdempotency-Key: one\r\n";
    let (_, _, first) = api.with("POST", &publish, headers, br#"{"body": "a"}"#).await;
    let (_, _, repeat) = api.with("POST", &publish, headers, br#"{"body": "a"}"#).await;
    let id = |text: &str| serde_json::from_str::<Value>(text).unwrap()["msg_id"].clone();
    assert!(id(&first).is_string() && id(&first) == id(&repeat), "{first} {repeat}");
    assert_eq!(api.with("POST", &publish, headers, br#"{"body": "b"}"#).await.0, 409);
    // A direct call too, under a scope of its own.
    let direct = format!("{CONNECTIONS}/direct/send");
    let (_, _, called) = api.with("POST", &direct, headers, br#"{"body": "a"}"#).await;
    let (status, _, again) = api.with("POST", &direct, headers, br#"{"body": "a"}"#).await;
    assert!(id(&called).is_string() && id(&called) == id(&again) && id(&called) != id(&first), "{called} {again}");
    assert_eq!(status, 200);
    assert_eq!(api.with("POST", &direct, headers, br#"{"body": "b"}"#).await.0, 409);
    api.stop().await;
}

// proves: Z23, R10, R11
#[tokio::test]
async fn z23_a_dead_letter_is_read_edited_downloaded_retried_and_discarded() {
    let api = Api::start().await;
    api.connection("q", r#", "use_queue": true"#).await;
    let body = r#"{"path": "/fail", "body": "<a>", "headers": {"Content-Type": "text/html", "Authorization": "Bearer s3cret"}}"#;
    let (status, result) = api.call("POST", &format!("{CONNECTIONS}/q/send"), body).await;
    assert_eq!((status, &result["is_in_dlq"]), (200, &json!(true)), "{result}");
    let id = result["msg_id"].as_str().unwrap().to_owned();
    let path = format!("{DELIVERIES}/{id}");

    let delivery = api.get(&path).await;
    assert_eq!((&delivery["status"], &delivery["label"]), (&json!("DLQ"), &json!("Not delivered")));
    assert_eq!(
        (&delivery["failure"], &delivery["attempts"], &delivery["bodyBytes"]),
        (&json!("status"), &json!(1), &json!(3))
    );
    assert_eq!((&delivery["headers"]["Authorization"], &delivery["edited"]), (&json!("***"), &json!(false)));
    let attempts = api.get(&format!("{path}/attempts")).await;
    assert_eq!((&attempts["data"][0]["number"], &attempts["data"][0]["status"]), (&json!(1), &json!(500)));
    for other in ["", "/attempts", "/body"] {
        assert_eq!(api.call("GET", &format!("/api/v1/projects/other/deliveries/{id}{other}"), "").await.0, 404);
    }
    assert_eq!(api.call("POST", &format!("/api/v1/projects/other/dlq/{id}/retry"), "").await.0, 404);
    assert_eq!(api.call("GET", &format!("{DELIVERIES}/msg_0"), "").await.0, 404);

    let item = &api.get("/api/v1/projects/default/dlq").await["data"][0];
    assert_eq!((&item["deliveryId"], &item["attemptCount"]), (&json!(id), &json!(1)), "{item}");
    assert!(item["lastError"].is_string() && item["failedAt"].is_string() && item["createdAt"].is_string(), "{item}");
    assert_eq!(api.get(&format!("{CONNECTIONS}/q/dlq")).await["data"][0]["id"], id);
    assert_eq!(api.get(&format!("{DELIVERIES}?status=dlq&connection=q&error=status")).await["data"][0]["id"], id);
    assert_eq!(api.get(&format!("{DELIVERIES}?status=SUCCESS,PENDING")).await["data"], json!([]));
    assert_eq!(api.get(&format!("{DELIVERIES}?created_before=2020-01-01T00:00:00Z")).await["data"], json!([]));

    let (status, edited) = api.call("PATCH", &path, r#"{"body": "<b>b"}"#).await;
    assert_eq!((status, &edited["edited"], &edited["bodyBytes"]), (200, &json!(true), &json!(4)), "{edited}");
    let (_, head, now) = api.with("GET", &format!("{path}/body"), "", b"").await;
    assert_eq!(now, "<b>b");
    for part in ["content-disposition: attachment", "nosniff", "sandbox", "content-type: text/html"] {
        assert!(head.contains(part), "{head}");
    }
    assert_eq!(api.with("GET", &format!("{path}/body?original=true"), "", b"").await.2, "<a>");

    assert_eq!(api.call("POST", &format!("{path}/set-aside"), "").await.0, 409);
    let bulk = json!({"deliveryIds": [id, "msg_00000000000000000000000000"]}).to_string();
    let (status, counts) = api.call("POST", "/api/v1/projects/default/dlq/retry", &bulk).await;
    assert_eq!((status, &counts["retried"], &counts["requested"]), (200, &json!(1), &json!(2)), "{counts}");
    let (status, refused) = api.call("POST", "/api/v1/projects/default/dlq/retry", r#"{"deliveryIds": ["x"]}"#).await;
    assert_eq!((status, field(&refused)), (422, "deliveryIds[0]"));
    api.until(&id, "DLQ").await;
    let (status, gone) = api.call("DELETE", &path, "").await;
    assert_eq!((status, &gone["status"]), (200, &json!("DISCARDED")), "{gone}");
    assert_eq!(api.call("DELETE", &path, "").await.0, 409);
    api.stop().await;
}

#[tokio::test]
async fn topics_take_messages_and_give_them_out_until_acknowledged() {
    let api = Api::start().await;
    let topics = "/api/v1/projects/default/topics";
    let (status, topic) = api.call("POST", topics, r#"{"name": "order.failed"}"#).await;
    assert_eq!((status, &topic["retention_seconds"]), (201, &json!(604_800)), "{topic}");
    assert_eq!(api.call("POST", topics, r#"{"name": "order.failed"}"#).await.0, 409);
    let (status, refused) = api.call("POST", topics, r#"{"name": "a..b"}"#).await;
    assert_eq!((status, field(&refused)), (422, "name"));
    let topic = format!("{topics}/order.failed");
    assert_eq!(api.call("POST", &format!("{topic}/subscriptions"), r#"{"name": "s"}"#).await.0, 201);
    let (status, published) = api.call("POST", &format!("{topic}/publish"), r#"{"body": {"a": 1}}"#).await;
    assert_eq!(status, 201, "{published}");
    assert_eq!(api.get(&format!("{topic}/messages")).await["data"][0]["body"], r#"{"a":1}"#);
    let (_, pulled) = api.call("POST", &format!("{topic}/subscriptions/s/pull"), r#"{"max": 5}"#).await;
    assert_eq!(
        (&pulled["data"][0]["id"], &pulled["data"][0]["timesGiven"]),
        (&published["msg_id"], &json!(1)),
        "{pulled}"
    );
    let ids = json!({"ids": [published["msg_id"]]}).to_string();
    let ack = format!("{topic}/subscriptions/s/ack");
    assert_eq!(api.call("POST", &ack, &ids).await.1["acknowledged"], 1);
    assert_eq!(api.call("POST", &ack, &ids).await.1["acknowledged"], 0);
    assert_eq!(api.call("DELETE", &format!("{topic}/subscriptions/s"), "").await.0, 204);
    assert_eq!(api.call("POST", &ack, &ids).await.0, 404);
    assert_eq!(api.call("DELETE", &topic, "").await.0, 204);
    assert_eq!(api.call("GET", &topic, "").await.0, 404);
    api.stop().await;
}
