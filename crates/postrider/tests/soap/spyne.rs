//! spyne, in SOAP 1.1 and 1.2.

use serde_json::{Value, json};

use crate::lab::{IN_QUEUE, Lab, NAMESPACE, OK, RETURNED, body_of, flags, queue};

async fn with_both_versions(more: Value) -> Lab {
    let lab = Lab::start("soap_spyne.py").await;
    for (name, version) in [("v11", "1.1"), ("v12", "1.2")] {
        let mut settings = json!({
            "soap_version": version, "namespace": NAMESPACE,
            "operations": {"Submit": "urn:lab:Submit", "Refuse": "", "Slow": ""},
        });
        settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        lab.connection(name, &format!("/{name}/"), settings).await;
    }
    lab
}

// proves: Z34, Z30
#[tokio::test(flavor = "multi_thread")]
async fn z34_an_operation_is_invoked_and_its_response_read_in_both_versions_with_the_queue_on_and_off() {
    let lab = with_both_versions(json!({})).await;
    for use_queue in [false, true] {
        for (name, action, content_type) in [
            ("v11", Some("\"urn:lab:Submit\""), "text/xml; charset=utf-8"),
            ("v12", None, "application/soap+xml; charset=utf-8; action=\"urn:lab:Submit\""),
        ] {
            let (status, _) =
                lab.call("PATCH", &format!("/connections/{name}"), &json!({"use_queue": use_queue})).await;
            assert_eq!(status, 200);
            let result = lab.invoke(name, "Submit", json!({"message": "VXU <&> \u{e4}", "count": 7})).await;
            assert_eq!((flags(&result), &result["error"]), (OK, &Value::Null), "{result}");
            let response = &result["response"];
            assert_eq!(
                (&response["status"], &response["element"], &response["fault"]),
                (&json!(200), &json!("SubmitResponse"), &Value::Null)
            );
            let receipt = json!({"id": "R-VXU <&> \u{e4}-7", "notes": {"string": ["first", "second & last"]}});
            assert_eq!(response["data"], json!({"SubmitResult": receipt}));
            let seen = lab.seen(&format!("/{name}/"), 1).await;
            let last = seen.last().unwrap();
            assert_eq!((last["action"].as_str(), last["content_type"].as_str()), (action, Some(content_type)));
            assert_eq!(last["msg_id"], result["msg_id"]);
        }
    }
    let wards = json!({"wards": {"Ward": [{"name": "A", "beds": 1}, {"name": "B", "beds": null}]}});
    let beds = lab.invoke("v11", "Beds", wards).await;
    let expected = json!([{"name": "A", "beds": "2"}, {"name": "B", "beds": "1"}]);
    assert_eq!(beds["response"]["data"]["BedsResult"]["Ward"], expected, "{beds}");
}

// proves: Z01, Z34
#[tokio::test(flavor = "multi_thread")]
async fn z01_a_fault_reaches_the_caller_as_it_arrived_and_is_not_retried() {
    let lab = with_both_versions(json!({"max_retries": 3, "retry_sleep_time": 0})).await;
    for (name, code) in [("v11", "Client.Refused"), ("v12", "Sender")] {
        let result = lab.invoke(name, "Refuse", json!({"reason": "no bed"})).await;
        assert_eq!(flags(&result), RETURNED, "{result}");
        let fault = &result["response"]["fault"];
        assert_eq!((&fault["code"], &fault["reason"]), (&json!(code), &json!("no bed")), "{result}");
        assert_eq!(result["response"]["status"], 500);
        let error = result["error"].as_str().unwrap();
        assert!(error.starts_with("SOAP fault") && error.contains("no bed") && error.contains("HTTP 500"), "{error}");
        assert_eq!(lab.seen(&format!("/{name}/"), 1).await.len(), 1);
        let delivery = lab.delivery_until(&result, "FAILED").await;
        assert_eq!((&delivery["failure"], &delivery["operation"]), (&json!("rejected"), &json!("Refuse")));
    }
}

// proves: Z10, Z15, Z20, D24
#[tokio::test(flavor = "multi_thread")]
async fn z10_with_the_queue_on_a_fault_is_queued_and_sent_again_with_the_same_bytes() {
    let lab = with_both_versions(queue()).await;
    for name in ["v11", "v12"] {
        let result = lab.invoke(name, "Refuse", json!({"reason": "full"})).await;
        assert_eq!(flags(&result), IN_QUEUE, "{result}");
        assert_eq!(result["response"]["fault"]["reason"], "full");
        let delivery = lab.delivery_until(&result, "DLQ").await;
        assert_eq!(delivery["attempts"], 2, "{delivery}");
        let seen = lab.seen(&format!("/{name}/"), 2).await;
        assert_eq!((seen.len(), body_of(&seen[0])), (2, body_of(&seen[1])));
        assert_eq!(seen[0]["msg_id"], seen[1]["msg_id"]);
    }
}

// proves: Z10, Z11, Z14
#[tokio::test(flavor = "multi_thread")]
async fn z10_a_service_that_is_down_or_hangs_leaves_requests_in_the_queue_in_their_order() {
    let lab = with_both_versions(json!({"use_queue": true, "max_retries": 1000, "retry_sleep_time": 1})).await;
    let reachable = json!({"host": lab.peer.address});
    for name in ["v11", "v12"] {
        // Nothing listens there.
        lab.call("PATCH", &format!("/connections/{name}"), &json!({"host": "http://127.0.0.1:1"})).await;
        let mut last = Value::Null;
        for count in 1..=3 {
            last = lab.invoke(name, "Submit", json!({"message": "m", "count": count})).await;
            assert_eq!((flags(&last), &last["response"]), (IN_QUEUE, &Value::Null), "{last}");
        }
        lab.call("PATCH", &format!("/connections/{name}"), &reachable).await;
        lab.delivery_until(&last, "SUCCESS").await;
        let seen = lab.seen(&format!("/{name}/"), 3).await;
        let in_order = (1..=3).all(|count| body_of(&seen[count - 1]).contains(&format!("<count>{count}</count>")));
        assert!(in_order && seen.len() == 3);

        let impatient = json!({"timeout": 0.3, "max_retries": 1, "retry_sleep_time": 0});
        lab.call("PATCH", &format!("/connections/{name}"), &impatient).await;
        let hanging = lab.invoke(name, "Slow", json!({"seconds": 2})).await;
        assert_eq!(flags(&hanging), IN_QUEUE, "{hanging}");
        let dead = lab.delivery_until(&hanging, "DLQ").await;
        assert_eq!(dead["failure"], "timeout");
        // A round keeps the timeout that it began with, and this one begins another.
        lab.call("PATCH", &format!("/connections/{name}"), &json!({"timeout": 30})).await;
        let path = format!("/dlq/{}/retry", hanging["msg_id"].as_str().unwrap());
        lab.call("POST", &path, &Value::Null).await;
        lab.delivery_until(&hanging, "SUCCESS").await;
    }
}

// proves: Z01, Z02
#[tokio::test(flavor = "multi_thread")]
async fn z01_without_a_queue_a_service_that_is_down_or_hangs_is_told_to_the_caller() {
    let lab = with_both_versions(json!({"timeout": 0.3})).await;
    for name in ["v11", "v12"] {
        let hanging = lab.invoke(name, "Slow", json!({"seconds": 2})).await;
        assert_eq!((flags(&hanging), &hanging["response"]), (RETURNED, &Value::Null));
        assert!(hanging["error"].as_str().unwrap().contains("no answer"), "{hanging}");
        lab.call("PATCH", &format!("/connections/{name}"), &json!({"host": "http://127.0.0.1:1"})).await;
        let down = lab.invoke(name, "Submit", json!({})).await;
        assert!(down["error"].as_str().unwrap().contains("cannot connect"), "{down}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s10_a_wrong_version_is_named_and_a_mended_connection_delivers_what_waits() {
    let lab = Lab::start("soap_spyne.py").await;
    let mut settings = json!({"namespace": NAMESPACE, "soap_version": "1.2", "retry_sleep_time": 1});
    settings
        .as_object_mut()
        .unwrap()
        .extend(json!({"use_queue": true, "max_retries": 1000}).as_object().unwrap().clone());
    lab.connection("wrong", "/v11/", settings).await;
    let result = lab.invoke("wrong", "Submit", json!({"message": "m", "count": 1})).await;
    assert_eq!(flags(&result), IN_QUEUE, "{result}");
    lab.call("PATCH", "/connections/wrong", &json!({"soap_version": "1.1"})).await;
    lab.delivery_until(&result, "SUCCESS").await;
}

// proves: Z31
#[tokio::test(flavor = "multi_thread")]
async fn z31_publish_stores_an_operation_and_whole_envelopes_go_as_they_are() {
    let lab = with_both_versions(queue()).await;
    let request = json!({"operation": "Submit", "message": {"message": "p", "count": 1}});
    let (status, result) = lab.call("POST", "/connections/v11/publish", &request).await;
    assert_eq!((status, flags(&result)), (202, IN_QUEUE));
    lab.delivery_until(&result, "SUCCESS").await;
    let envelope = format!(
        "<e:Envelope xmlns:e=\"http://www.w3.org/2003/05/soap-envelope\"><!-- mine --><e:Body><r:Submit xmlns:r=\"{NAMESPACE}\">\
         <r:message>x</r:message></r:Submit></e:Body></e:Envelope>"
    );
    let (status, result) = lab.call("POST", "/connections/v12/send", &json!({"body": envelope})).await;
    assert_eq!((status, flags(&result)), (200, OK), "{result}");
    assert_eq!(body_of(lab.seen("/v12/", 1).await.last().unwrap()), envelope);
    let element = format!("<Submit xmlns=\"{NAMESPACE}\"><message>y</message></Submit>");
    let (_, result) = lab.call("POST", "/connections/v12/send", &json!({"message": element})).await;
    assert_eq!(result["response"]["data"]["SubmitResult"]["id"], "R-y-None", "{result}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_envelope_can_be_made_of_is_refused_with_its_field_and_not_stored() {
    let lab = with_both_versions(queue()).await;
    for (request, field) in [
        (json!({"message": {"a": 1}}), "operation"),
        (json!({"operation": "a b", "message": {}}), "operation"),
        (json!({"operation": "Submit", "message": {"a b": 1}}), "message"),
        (json!({"operation": "Submit", "message": [1]}), "message"),
        (json!({"operation": "Submit", "message": "<!DOCTYPE a><a/>"}), "message"),
        (json!({"operation": "Submit", "message": {}, "body": {}}), "message"),
        (json!({"operation": "Submit", "soap_headers": 7}), "soap_headers"),
        (json!({"operation": "Submit", "soap_headers": "<a>"}), "soap_headers"),
        (json!({"operation": "Submit", "method": "PUT"}), "method"),
        (json!({"operation": "Submit", "headers": {"SOAPAction": "a b"}}), "SOAPAction"),
    ] {
        let (status, problem) = lab.call("POST", "/connections/v11/send", &request).await;
        assert_eq!((status, &problem["errors"][0]["field"]), (422, &json!(field)), "{request}: {problem}");
    }
    let (_, deliveries) = lab.call("GET", "/deliveries", &Value::Null).await;
    assert_eq!(deliveries["data"], json!([]));
}
