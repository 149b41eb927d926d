//! Every interaction against a real router.

use serde_json::{Value, json};

use crate::harness::flags;
use crate::lab::{IN_QUEUE, Lab, OK, RETURNED, patient, queue};

// proves: Z33, Z12, Z30
#[tokio::test(flavor = "multi_thread")]
async fn z33_every_interaction_has_its_request_and_its_result() {
    let lab = Lab::medplum().await;
    lab.connection("f", json!({})).await;
    let ok = |result: &Value| assert_eq!(flags(result), OK, "{result}");
    let created = lab.send("f", json!({"operation": "create", "body": patient("1")})).await;
    ok(&created);
    let response = &created["response"];
    assert_eq!((&response["status"], &response["resource_type"]), (&json!(201), &json!("Patient")));
    let (id, first) =
        (response["id"].as_str().unwrap().to_owned(), response["version_id"].as_str().unwrap().to_owned());
    assert_eq!(response["data"]["birthDate"], "1974-12-25");
    let one = |operation: &str| json!({"operation": operation, "resource_type": "Patient", "id": id});
    let with = |mut request: Value, more: Value| {
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        request
    };
    let read = lab.send("f", one("read")).await;
    ok(&read);
    assert_eq!((&read["response"]["id"], &read["response"]["version_id"]), (&json!(id), &json!(first)));

    // A conditional read of what is known: 304, which is an answer and no failure.
    let known = lab.send("f", with(one("read"), json!({"if_none_match": first}))).await;
    ok(&known);
    assert_eq!((&known["response"]["status"], &known["error"]), (&json!(304), &Value::Null));

    let patch = json!([{"op": "add", "path": "/active", "value": true}]);
    let patched = lab.send("f", with(one("patch"), json!({"body": patch}))).await;
    ok(&patched);
    let second = patched["response"]["version_id"].as_str().unwrap().to_owned();
    assert_ne!(first, second);
    let mut changed = patient("1");
    changed["id"] = json!(id);
    changed["active"] = json!(false);
    let updated = lab.send("f", json!({"operation": "update", "body": changed, "if_match": second})).await;
    ok(&updated);
    let old = lab.send("f", with(one("vread"), json!({"version_id": first}))).await;
    ok(&old);
    assert_eq!((&old["response"]["version_id"], &old["response"]["data"]["active"]), (&json!(first), &Value::Null));
    let history = lab.send("f", one("history")).await;
    assert_eq!(history["response"]["data"]["entry"].as_array().unwrap().len(), 3, "{history}");

    for method in ["GET", "POST"] {
        let search = json!({"operation": "search", "resource_type": "Patient", "method": method, "params": {"identifier": "urn:lab|1"}});
        let found = lab.send("f", search).await;
        ok(&found);
        assert_eq!(found["response"]["data"]["total"], 1, "{found}");
    }
    let seen = lab.seen().await;
    let last = seen.last().unwrap();
    assert_eq!((&last["url"], &last["body"]), (&json!("/fhir/Patient/_search"), &json!("identifier=urn%3Alab%7C1")));

    let capabilities = lab.send("f", json!({"operation": "capabilities"})).await;
    assert_eq!(capabilities["response"]["data"]["fhirVersion"], "4.0.1", "{capabilities}");
    let echo = lab.send("f", json!({"operation": "$echo", "method": "GET", "params": {"a": "b c"}})).await;
    assert_eq!(echo["response"]["data"]["parameter"][0]["valueString"], "b c", "{echo}");
    let valid =
        lab.send("f", json!({"operation": "$validate", "resource_type": "Patient", "body": patient("9")})).await;
    ok(&valid);
    let wrong = json!({"resourceType": "Patient", "birthDate": 5});
    let invalid = lab.send("f", json!({"operation": "$validate", "resource_type": "Patient", "body": wrong})).await;
    assert_eq!((flags(&invalid), &invalid["response"]["status"]), (RETURNED, &json!(400)), "{invalid}");
    assert!(invalid["error"].as_str().unwrap().starts_with("HTTP 400: error:structure: "), "{invalid}");

    ok(&lab.send("f", one("delete")).await);
    let gone = lab.send("f", one("read")).await;
    assert_eq!((flags(&gone), &gone["response"]["resource_type"]), (RETURNED, &json!("OperationOutcome")), "{gone}");
    assert_eq!(gone["error"], "HTTP 404: error:not-found: Not found");
    assert_eq!(gone["response"]["issues"][0]["code"], "not-found");
}

// proves: Z33
#[tokio::test(flavor = "multi_thread")]
async fn z33_f01_f02_a_condition_makes_one_of_a_repeat_and_goes_with_a_stored_request() {
    let lab = Lab::medplum().await;
    lab.connection("f", queue()).await;
    let create = json!({"operation": "create", "body": patient("1"), "if_none_exist": "identifier=urn:lab|1"});
    let first = lab.send("f", create.clone()).await;
    let again = lab.send("f", create.clone()).await;
    for (result, status) in [(&first, 201), (&again, 200)] {
        assert_eq!((flags(result), &result["response"]["status"]), (OK, &json!(status)), "{result}");
    }
    assert_eq!(first["response"]["id"], again["response"]["id"]);
    // Published, so that it is the stored request that carries the condition.
    let (status, queued) = lab.bench.call("POST", "/connections/f/publish", &create).await;
    assert_eq!((status, flags(&queued)), (202, IN_QUEUE), "{queued}");
    lab.bench.until_status(queued["msg_id"].as_str().unwrap(), "SUCCESS").await;
    assert_eq!(lab.patients("urn:lab|1").await, 1);
    // F01: several that fit are nobody's; the answer says why, and no retry hides it from its caller.
    for _ in 0..2 {
        lab.peer.call("POST", "/fhir/Patient", &patient("2")).await;
    }
    lab.connection("off", json!({"max_retries": 2, "retry_sleep_time": 0})).await;
    let several = json!({"operation": "create", "body": patient("2"), "if_none_exist": "identifier=urn:lab|2"});
    let before = lab.seen().await.len();
    let refused = lab.send("off", several.clone()).await;
    assert_eq!((flags(&refused), &refused["response"]["status"]), (RETURNED, &json!(412)), "{refused}");
    assert!(refused["error"].as_str().unwrap().starts_with("HTTP 412: error:multiple-matches: "), "{refused}");
    assert_eq!(lab.seen().await.len(), before + 1, "asked once");
    // With the queue on it is a round's business, and then a person's.
    let dead = lab.send("f", several).await;
    assert_eq!(flags(&dead), IN_QUEUE, "{dead}");
    let dead = lab.bench.until_status(dead["msg_id"].as_str().unwrap(), "DLQ").await;
    assert_eq!((&dead["attempts"], &dead["failure"]), (&json!(2), &json!("status")), "{dead}");
    assert!(dead["error"].as_str().unwrap().contains("multiple-matches"));
}

// proves: Z33
#[tokio::test(flavor = "multi_thread")]
async fn z33_f05_f06_a_stale_version_is_refused_and_never_read_anew() {
    let lab = Lab::medplum().await;
    lab.connection("f", json!({})).await;
    lab.connection("q", queue()).await;
    let created = lab.send("f", json!({"operation": "create", "body": patient("1")})).await;
    let mut changed = patient("1");
    changed["id"] = created["response"]["id"].clone();
    let stale = json!({"operation": "update", "body": changed, "if_match": "00000000-0000-4000-8000-000000000000"});
    let refused = lab.send("f", stale.clone()).await;
    assert_eq!((flags(&refused), &refused["response"]["status"]), (RETURNED, &json!(412)), "{refused}");
    let queued = lab.send("q", stale).await;
    assert_eq!(flags(&queued), IN_QUEUE, "{queued}");
    lab.bench.until_status(queued["msg_id"].as_str().unwrap(), "DLQ").await;
    let seen = lab.seen().await;
    let puts: Vec<&Value> = seen.iter().filter(|one| one["method"] == "PUT").collect();
    assert_eq!(puts.len(), 3);
    assert!(puts.iter().all(|put| put["headers"]["if-match"] == "W/\"00000000-0000-4000-8000-000000000000\""));
    assert!(seen.iter().all(|one| one["method"] != "GET"), "nothing was read on the way");
}

// proves: Z33
#[tokio::test(flavor = "multi_thread")]
async fn z33_f09_f10_f17_an_answer_without_the_resource_names_it_all_the_same() {
    let lab = Lab::medplum().await;
    lab.connection("minimal", json!({"prefer": "minimal", "fhir_version": "4.0"})).await;
    let created = lab.send("minimal", json!({"operation": "save", "body": patient("1")})).await;
    let response = &created["response"];
    assert_eq!((flags(&created), &response["body"], &response["data"]), (OK, &json!(""), &Value::Null), "{created}");
    assert_eq!(response["resource_type"], "Patient");
    let id = response["id"].as_str().unwrap();
    assert_eq!(lab.at_peer(&format!("/Patient/{id}")).await["meta"]["versionId"], response["version_id"]);
    // F17: with an id it is an update of that very resource.
    let mut known = patient("1");
    known["id"] = json!(id);
    let saved = lab.send("minimal", json!({"operation": "save", "body": known, "prefer": "OperationOutcome"})).await;
    assert_eq!((flags(&saved), &saved["response"]["id"]), (OK, &json!(id)), "{saved}");
    assert_eq!(
        (&saved["response"]["resource_type"], &saved["response"]["issues"][0]["severity"]),
        (&json!("Patient"), &json!("information"))
    );
    let seen = lab.seen().await;
    let [post, .., put] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((&post["method"], &put["method"]), (&json!("POST"), &json!("PUT")));
    assert_eq!(post["headers"]["content-type"], "application/fhir+json; charset=utf-8; fhirVersion=4.0");
    assert_eq!(
        (&post["headers"]["prefer"], &put["headers"]["prefer"]),
        (&json!("return=minimal"), &json!("return=OperationOutcome"))
    );
    assert!(
        post["headers"]["accept"]
            .as_str()
            .unwrap()
            .starts_with("application/fhir+json; fhirVersion=4.0, application/json")
    );
}

fn bundle(kind: &str, entries: Value) -> Value {
    json!({"resourceType": "Bundle", "type": kind, "entry": entries})
}

// proves: Z33, Z20
#[tokio::test(flavor = "multi_thread")]
async fn z33_f13_a_batch_done_in_part_is_told_entry_by_entry_and_never_sent_again() {
    let lab = Lab::medplum().await;
    lab.connection("f", queue()).await;
    let mixed = |number: &str| {
        bundle(
            "batch",
            json!([
                {"resource": patient(number), "request": {"method": "POST", "url": "Patient"}},
                {"request": {"method": "GET", "url": "Patient/00000000-0000-4000-8000-000000000000"}},
            ]),
        )
    };
    let result = lab.send("f", json!({"operation": "batch", "body": mixed("1")})).await;
    assert_eq!((flags(&result), &result["response"]["status"]), (RETURNED, &json!(200)), "{result}");
    assert_eq!(result["error"], "1 of 2 entries were not done: entry 2: HTTP 404: error:not-found: Not found");
    let entries = &result["response"]["entries"];
    assert_eq!((&entries[0]["status"], &entries[1]["status"]), (&json!(201), &json!(404)));
    assert!(entries[0]["id"].is_string() && entries[0]["resource_type"] == "Patient", "{entries}");
    // Published: a dead letter at once, and the rest of the queue goes on.
    let publish = async |name: &str, number: &str| {
        let (_, queued) = lab
            .bench
            .call(
                "POST",
                &format!("/connections/{name}/publish"),
                &json!({"operation": "batch", "body": mixed(number)}),
            )
            .await;
        queued["msg_id"].as_str().unwrap().to_owned()
    };
    let id = publish("f", "2").await;
    let dead = lab.bench.until_status(&id, "DLQ").await;
    assert_eq!((&dead["attempts"], &dead["failure"]), (&json!(1), &json!("partial")), "{dead}");
    assert_eq!(lab.patients("urn:lab|2").await, 1);
    // Without a DLQ it ends, for at the head it would be sent again.
    lab.connection("nowhere", json!({"use_queue": true, "use_dlq": false, "max_retries": 3, "retry_sleep_time": 0}))
        .await;
    let id = publish("nowhere", "3").await;
    let failed = lab.bench.until_status(&id, "FAILED").await;
    assert_eq!((&failed["attempts"], &failed["failure"]), (&json!(1), &json!("partial")), "{failed}");
    assert_eq!(lab.patients("urn:lab|3").await, 1);
    // Whoever takes a batch for delivered says so, and is still told.
    lab.connection("lenient", json!({"partial_batch": "delivered"})).await;
    let result = lab.send("lenient", json!({"operation": "batch", "body": mixed("4")})).await;
    assert_eq!(flags(&result), OK, "{result}");
    assert!(result["error"].as_str().unwrap().starts_with("1 of 2 entries were not done"), "{result}");
}

// proves: Z33
#[tokio::test(flavor = "multi_thread")]
async fn z33_f12_f14_f22_a_transaction_is_one_request() {
    let lab = Lab::medplum().await;
    lab.connection("f", json!({})).await;
    let post = |number: &str| json!({"resource": patient(number), "request": {"method": "POST", "url": "Patient"}});
    let result = lab
        .send("f", json!({"operation": "transaction", "body": bundle("transaction", json!([post("1"), post("2")]))}))
        .await;
    assert_eq!((flags(&result), result["response"]["entries"].as_array().unwrap().len()), (OK, 2), "{result}");
    // F14: the server decides, and the caller is told that it may keep one of two.
    let once = json!({"resource": patient("3"), "request": {"method": "POST", "url": "Patient", "ifNoneExist": "identifier=urn:lab|3"}});
    let twice =
        lab.send("f", json!({"operation": "transaction", "body": bundle("transaction", json!([once, once]))})).await;
    if flags(&twice) == OK {
        assert!(twice["error"].as_str().unwrap().starts_with("entries 1 and 2 write one resource"), "{twice}");
    }
}

// proves: Z12
#[tokio::test(flavor = "multi_thread")]
async fn z12_f24_a_read_is_answered_at_once_though_the_queue_waits() {
    let lab = Lab::medplum().await;
    lab.connection("f", queue()).await;
    lab.peer.call("POST", "/fhir/Patient", &patient("1")).await;
    // Something waits: everything that writes goes behind it.
    lab.bench.call("PATCH", "/connections/f", &json!({"address": "http://127.0.0.1:1/fhir", "max_retries": 900, "retry_sleep_time": 8, "retry_backoff_threshold": 86400})).await;
    let waiting = lab.send("f", json!({"operation": "create", "body": patient("2")})).await;
    assert_eq!(flags(&waiting), IN_QUEUE, "{waiting}");
    lab.bench.call("PATCH", "/connections/f", &json!({"address": format!("{}/fhir", lab.peer.address)})).await;
    let search = |method: &str| json!({"operation": "search", "resource_type": "Patient", "method": method, "params": {"identifier": "urn:lab|1"}});
    for request in [
        search("GET"),
        search("POST"),
        json!({"operation": "capabilities"}),
        json!({"operation": "$echo", "method": "GET"}),
        json!({"method": "GET", "path": "/Patient"}),
    ] {
        let result = lab.send("f", request.clone()).await;
        assert_eq!(flags(&result), OK, "{request}: {result}");
    }
    let behind =
        lab.send("f", json!({"operation": "$validate", "resource_type": "Patient", "body": patient("3")})).await;
    assert_eq!(flags(&behind), IN_QUEUE, "by POST an operation may write: {behind}");
    // The answer or the error at once, without a retry.
    lab.bench.call("PATCH", "/connections/f", &json!({"address": "http://127.0.0.1:1/fhir"})).await;
    let down = lab.send("f", search("POST")).await;
    assert_eq!(flags(&down), RETURNED, "{down}");
    let delivery = lab.bench.until_status(down["msg_id"].as_str().unwrap(), "FAILED").await;
    assert_eq!((&delivery["attempts"], &delivery["failure"]), (&json!(1), &json!("unreachable")), "{delivery}");
}

// proves: Z33
#[tokio::test(flavor = "multi_thread")]
async fn z33_pages_are_followed_below_the_address_alone() {
    let lab = Lab::medplum().await;
    lab.connection("f", json!({})).await;
    for number in ["1", "2", "3"] {
        lab.peer.call("POST", "/fhir/Patient", &patient(number)).await;
    }
    let mut page =
        lab.send("f", json!({"operation": "search", "resource_type": "Patient", "params": {"_count": 2}})).await;
    let mut found = 0;
    loop {
        assert_eq!(flags(&page), OK, "{page}");
        found += page["response"]["data"]["entry"].as_array().map_or(0, Vec::len);
        let Some(next) = page["response"]["next"].as_str() else { break };
        page = lab.send("f", json!({"operation": "page", "url": next})).await;
    }
    assert_eq!(found, 3);
    let before = lab.seen().await.len();
    for url in ["http://127.0.0.1:1/fhir/Patient", "https://evil.example/fhir/Patient", "//evil.example/x", "/__log"] {
        let request = json!({"operation": "page", "url": url});
        let (status, refused) = lab.bench.call("POST", "/connections/f/send", &request).await;
        assert_eq!((status, &refused["errors"][0]["field"]), (422, &json!("url")), "{url}: {refused}");
    }
    assert_eq!(lab.seen().await.len(), before, "nobody was asked");
}

// proves: Z33, Z31, Z23
#[tokio::test(flavor = "multi_thread")]
async fn z33_f25_every_byte_of_a_body_goes_as_it_came_also_after_an_edit() {
    let lab = Lab::medplum().await;
    lab.connection("f", queue()).await;
    let text = "{ \"resourceType\" : \"Observation\", \"status\":\"final\",\r\n  \"valueQuantity\":{\"value\":1.00,\"extension\":[ ]}, \"note\":[{\"text\":\"\\u00e4\"}] }";
    lab.bench.call("POST", "/connections/f/publish", &json!({"operation": "create", "body": text})).await;
    let edited = "{\"resourceType\":\"Observation\",\"status\":\"final\",\"valueQuantity\":{\"value\":2.50}}";
    lab.bench.call("POST", "/connections/f/pause", &Value::Null).await;
    let (_, queued) =
        lab.bench.call("POST", "/connections/f/publish", &json!({"operation": "create", "body": text})).await;
    let id = queued["msg_id"].as_str().unwrap();
    let (status, answer) = lab.bench.call("PATCH", &format!("/deliveries/{id}"), &json!({"body": edited})).await;
    assert_eq!(status, 200, "{answer}");
    lab.bench.call("POST", "/connections/f/resume", &Value::Null).await;
    lab.bench.until_status(id, "SUCCESS").await;
    let seen = lab.seen().await;
    let bodies: Vec<&str> = seen.iter().map(|one| one["body"].as_str().unwrap()).collect();
    assert_eq!(bodies, [text, edited]);
}
