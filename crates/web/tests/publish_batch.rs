//! Many requests in one, a line each, over a real socket.
#![allow(clippy::unwrap_used)]

mod parts;

use std::time::Duration;

use parts::api::{Api, CONNECTIONS, DELIVERIES, field};
use parts::read_answer;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

const PATH: &str = "/api/v1/projects/default/connections/a/publish/batch";

async fn batch(api: &Api, headers: &str, lines: &str) -> (u16, Value) {
    let headers = format!("Content-Type: application/x-ndjson\r\n{headers}");
    let (status, _, text) = api.with("POST", PATH, &headers, lines.as_bytes()).await;
    (status, serde_json::from_str(&text).unwrap_or(Value::Null))
}

fn ids(result: &Value) -> Vec<String> {
    let ids = result["results"].as_array().unwrap().iter();
    ids.map(|one| one["msg_id"].as_str().unwrap_or_default().to_owned()).collect()
}

async fn held(api: &Api) {
    api.connection("a", r#", "use_queue": true"#).await;
    assert_eq!(api.call("POST", &format!("{CONNECTIONS}/a/pause"), "").await.0, 200);
}

async fn waiting(api: &Api) -> Vec<String> {
    let queue = api.get(&format!("{CONNECTIONS}/a/queue?limit=1000")).await;
    queue["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn z31_the_lines_of_a_batch_are_stored_in_their_order() {
    let api = Api::start().await;
    held(&api).await;
    let lines: String = (0..600).map(|n| format!("{{\"body\": {n}}}\n")).collect();
    let (status, result) = batch(&api, "X-Postrider-Cid: mine\r\n", &lines).await;
    assert_eq!((status, &result["accepted"], &result["refused"]), (200, &json!(600), &json!(0)));
    let numbers: Vec<u64> =
        result["results"].as_array().unwrap().iter().map(|one| one["line"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=600).collect::<Vec<_>>());
    assert_eq!(waiting(&api).await, ids(&result));
    let last = api.get(&format!("{DELIVERIES}/{}", ids(&result)[599])).await;
    assert_eq!(last["cid"], "mine");
    let (_, _, body) = api.with("GET", &format!("{DELIVERIES}/{}/body", ids(&result)[599]), "", b"").await;
    assert_eq!(body, "599");
    api.stop().await;
}

#[tokio::test]
async fn bad_lines_are_named_and_the_others_are_stored() {
    let api = Api::start().await;
    held(&api).await;
    let long = "x".repeat(1001);
    let endless = "x".repeat(300 << 10);
    let lines = format!(
        "{{\"body\": 1}}\r\n\n   \n{{\"method\": 7}}\nnot json\n[]\n{{\"body\": \"{long}\"}}\n{endless}\n{{\"bodi\": 1}}\n{{}}"
    );
    let (status, result) = batch(&api, "", &lines).await;
    assert_eq!((status, &result["accepted"], &result["refused"]), (200, &json!(2), &json!(6)), "{result}");
    let results = result["results"].as_array().unwrap();
    let refused: Vec<(u64, &str)> = results
        .iter()
        .filter(|one| one["msg_id"].is_null())
        .map(|one| (one["line"].as_u64().unwrap(), one["error"]["field"].as_str().unwrap()))
        .collect();
    assert_eq!(refused, [(4, "method"), (5, "line"), (6, "line"), (7, "line"), (8, "line"), (9, "bodi")]);
    for one in results.iter().filter(|one| one["msg_id"].is_null()) {
        assert!(one["error"]["message"].is_string() && one["error"]["allowed"].is_string(), "{one}");
    }
    assert_eq!((&results[0]["line"], &results[7]["line"]), (&json!(1), &json!(10)));
    assert_eq!(waiting(&api).await, [ids(&result)[0].clone(), ids(&result)[7].clone()]);
    assert_eq!(batch(&api, "", "").await.1, json!({"accepted": 0, "refused": 0, "results": []}));
    api.stop().await;
}

#[tokio::test]
async fn a_batch_with_too_many_lines_says_how_far_it_came() {
    let api = Api::start().await;
    held(&api).await;
    let (status, result) = batch(&api, "", &format!("\n{}", "{}\n".repeat(10_001))).await;
    assert_eq!((status, &result["accepted"]), (413, &json!(10_000)), "{}", result["detail"]);
    assert_eq!(result["next_line"], 10_002, "the first line was empty");
    assert!(result["detail"].as_str().unwrap().contains("`batch_lines_max`"));
    assert_eq!(ids(&result).len(), 10_000);
    let state = api.get(&format!("{CONNECTIONS}/a")).await;
    assert_eq!(state["state"]["waiting"], 10_000);
    api.stop().await;
}

#[tokio::test]
async fn d15_a_batch_sent_again_under_its_key_is_stored_once() {
    let api = Api::start().await;
    held(&api).await;
    let lines = "{\"body\": 1}\n{\"body\": 1}\n";
    let (_, first) = batch(&api, "Idempotency-Key: k\r\n", lines).await;
    let (status, again) = batch(&api, "Idempotency-Key: k\r\n", lines).await;
    assert_eq!((status, &again), (200, &first));
    assert_ne!(ids(&first)[0], ids(&first)[1], "two lines are two requests, equal or not");
    let (_, other) = batch(&api, "Idempotency-Key: k\r\n", "{\"body\": 1}\n{\"body\": 2}\n{}\n").await;
    assert_eq!((&other["accepted"], &other["refused"]), (&json!(2), &json!(1)), "{other}");
    assert_eq!(other["results"][1]["line"], 2);
    assert_eq!(waiting(&api).await.len(), 3);
    let (status, refused) = batch(&api, "Idempotency-Key: \r\n", lines).await;
    assert_eq!((status, field(&refused)), (400, "Idempotency-Key"));
    api.stop().await;
}

#[tokio::test]
async fn what_the_connection_does_not_take_is_refused_as_a_whole() {
    let api = Api::start().await;
    assert_eq!(batch(&api, "", "{}\n").await.0, 404);
    api.connection("a", r#", "is_active": false"#).await;
    let (status, result) = batch(&api, "", "{}\n{}\n").await;
    assert_eq!((status, &result["accepted"], &result["refused"]), (409, &json!(0), &json!(2)), "{result}");
    let (status, _) = api.call("POST", PATH, "{}").await;
    assert_eq!(status, 415, "it is not application/json");
    api.stop().await;
}

// A body is taken as it comes: what came before a caller went away may be stored (at-least-once), and never more than came.
#[tokio::test]
async fn a_slow_or_broken_batch_ends_and_says_what_is_stored() {
    let api = Api::start().await;
    held(&api).await;
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Type: application/x-ndjson\r\nContent-Length: 100000\r\n\r\n",
        api.key
    );
    let mut slow = TcpStream::connect(api.address()).await.unwrap();
    slow.write_all(format!("{head}{{}}\n{{}}\n{{\"body\"").as_bytes()).await.unwrap();
    let answer = read_answer(&mut slow).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(answer.contains("\"accepted\":2"), "{answer}");
    assert_eq!(waiting(&api).await.len(), 2);

    let mut broken = TcpStream::connect(api.address()).await.unwrap();
    broken.write_all(format!("{head}{}", "{}\n".repeat(300)).as_bytes()).await.unwrap();
    let stored = async {
        while waiting(&api).await.len() < 2 + 256 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), stored).await.expect("whole batches are stored as they come");
    drop(broken);
    assert_eq!(batch(&api, "", "{}\n").await.0, 200, "the server goes on");
    assert!(waiting(&api).await.len() <= 2 + 300 + 1);
    api.stop().await;
}
