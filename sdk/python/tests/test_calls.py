"""Calls to REST connections of the real server: what arrives, and what the result says."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import threading
import uuid

import pytest

import postrider
from conftest import wait_for


def body_of(entry):
    return base64.b64decode(entry["body_base64"])


def headers_of(entry):
    return {name.lower(): value for name, value in entry["headers"]}


def test_z30_a_delivered_call_is_ok_and_has_the_answer(client, receiver, make):
    receiver.answers(
        {"status": 201, "headers": {"Content-Type": "application/json", "X-Its": "own"}, "body": '{"paid": [1, 2.5]}'}
    )
    for name in (make(), make(use_queue=True, max_retries=2)):
        result = client.rest[name].post({"invoice": 1})
        assert (result.is_ok, result.is_in_queue, result.is_in_dlq, result.error) == (True, False, False, None)
        assert result.is_accepted and result.check() is result
        assert result.response.status == 201
        assert result.response.data == {"paid": [1, 2.5]}
        assert result.response.text == '{"paid": [1, 2.5]}'
        assert result.response.headers["x-its"] == "own"
        assert client.deliveries.show(result.msg_id).cid == result.cid
    first, second = receiver.got(2)
    assert body_of(first) == body_of(second) == b'{"invoice":1}'
    assert headers_of(second)["x-postrider-msg-id"] == result.msg_id
    assert headers_of(second)["x-postrider-cid"] == result.cid


def test_z30_a_refused_call_is_in_the_queue_with_error_and_response(client, receiver, make):
    receiver.answers({"status": 500, "body": "later"})
    result = client.rest[make(use_queue=True, max_retries=3, retry_sleep_time=8)].post({"invoice": 2})
    assert (result.is_ok, result.is_in_queue, result.is_in_dlq) == (False, True, False)
    assert result.is_accepted and result.msg_id.startswith("msg_")
    assert "500" in result.error
    assert (result.response.status, result.response.body, result.response.data) == (500, b"later", None)


def test_z30_without_retries_it_is_in_the_dlq_and_with_the_queue_off_nowhere(client, receiver, make):
    receiver.answers({"status": 503})
    dead = client.rest[make(use_queue=True)].post("x")
    assert (dead.is_ok, dead.is_in_queue, dead.is_in_dlq, dead.is_accepted) == (False, False, True, False)
    returned = client.rest[make()].post("x")
    assert (returned.is_ok, returned.is_in_queue, returned.is_in_dlq) == (False, False, False)
    assert returned.response.status == 503
    with pytest.raises(postrider.NotDelivered) as raised:
        returned.check()
    assert raised.value.result is returned


def test_z30_no_call_raises_for_a_remote_system_that_is_not_there(client):
    client.connections.create("rest", "Nobody", host="http://127.0.0.1:1", url_path="/")
    result = client.rest["Nobody"].post({"a": 1})
    assert (result.is_ok, result.response) == (False, None)
    assert "127.0.0.1:1" in result.error


def test_z31_publish_stores_without_a_call(client, receiver, make):
    name = make(use_queue=True)
    client.connections.pause(name)
    result = client.rest[name].publish({"invoice": 3}, params={"a": 1}, path="/sub")
    assert (result.is_in_queue, result.response, result.error) == (True, None, None)
    assert receiver.got() == []
    client.connections.resume(name)
    (entry,) = receiver.got(1)
    assert (entry["method"], entry["path"], entry["query"]) == ("POST", "/in/sub", "a=1")


def test_a_result_is_not_to_be_taken_for_true(client, make):
    with pytest.raises(TypeError, match="is_ok"):
        bool(client.rest[make()].post())


def test_each_method_arrives_as_it_is(client, receiver, make):
    conn = client.rest[make()]
    conn.get({"q": "ä b"}, path="/g", headers={"X-One": "1"})
    conn.head()
    conn.options()
    conn.post("p")
    conn.put(b"\x00\xff")
    conn.patch({"a": None})
    conn.delete(params={"id": 7, "all": True})
    conn.send(["s"])
    conn.call("PURGE", path="/x")
    entries = receiver.got(9)
    assert [entry["method"] for entry in entries] == [
        "GET",
        "HEAD",
        "OPTIONS",
        "POST",
        "PUT",
        "PATCH",
        "DELETE",
        "POST",
        "PURGE",
    ]
    assert (entries[0]["path"], entries[0]["query"]) == ("/in/g", "q=%C3%A4%20b")
    assert headers_of(entries[0])["x-one"] == "1"
    assert [body_of(entry) for entry in entries[3:6]] == [b"p", b"\x00\xff", b'{"a":null}']
    assert entries[6]["query"] == "id=7&all=true"
    assert body_of(entries[7]) == b'["s"]'


def test_placeholders_are_filled_and_the_rest_is_the_query(client, receiver, make):
    name = make(url_path="/customers/{customer}/invoices")
    client.rest[name].post({}, {"customer": "a/b", "draft": ["1", "2"]})
    (entry,) = receiver.got(1)
    assert (entry["path"], entry["query"]) == ("/customers/a%2Fb/invoices", "draft=1&draft=2")


def test_what_python_has_goes_as_json(client, receiver, make):
    @dataclasses.dataclass
    class Line:
        amount: float
        note: str

    an_id = uuid.UUID(int=7)
    on = datetime.date(2026, 3, 12)
    client.rest[make()].post(
        {"lines": [Line(1.5, "größer 🚚"), {"on": on, "id": an_id}], "big": 12345678901234567890123}
    )
    (entry,) = receiver.got(1)
    assert body_of(entry).decode() == (
        '{"lines":[{"amount":1.5,"note":"größer 🚚"},{"on":"2026-03-12","id":"00000000-0000-0000-0000-000000000007"}],'
        '"big":12345678901234567890123}'
    )


def test_a_body_of_5_mb_arrives_and_comes_back_byte_for_byte(client, receiver, make):
    body = bytes(range(256)) * 20_480
    result = client.rest[make()].post(body, headers={"Content-Type": "application/octet-stream"})
    assert result.is_ok
    (entry,) = receiver.got(1)
    assert body_of(entry) == body
    assert client.deliveries.body(result.msg_id) == body


def test_text_of_5_mb_and_of_every_kind_arrives(client, receiver, make):
    text = 'ü"\\\u0001\n\u2028😀' * 400_000
    assert client.rest[make()].post(text).is_ok
    assert body_of(receiver.got(1)[0]) == text.encode()


def test_a_body_over_the_servers_limit_is_refused_and_nothing_is_sent(client, receiver, make):
    with pytest.raises(postrider.Invalid) as refused:
        client.rest[make()].post(b"x" * (8 * 1024 * 1024 + 1))
    assert refused.value.status == 413
    assert receiver.got() == []


def test_50_threads_share_one_client(server, receiver, make):
    name = make(use_queue=True, ordered=False, concurrency=8)
    results, failures = [], []
    with server.connect(connections_max=16) as client:

        def work(number):
            try:
                results.extend(client.rest[name].publish({"n": number * 10 + at}) for at in range(10))
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []
    assert len({result.msg_id for result in results}) == 500
    bodies = sorted(int(body_of(entry)[5:-1]) for entry in receiver.got(500))
    assert bodies == list(range(500))


def test_a_key_makes_one_request_of_two(client, receiver, make):
    conn = client.rest[make(use_queue=True)]
    first = conn.post({"a": 1}, idempotency_key="order-7")
    assert conn.post({"a": 1}, idempotency_key="order-7").msg_id == first.msg_id
    with pytest.raises(postrider.Conflict):
        conn.post({"a": 2}, idempotency_key="order-7")
    assert conn.post({"a": 1}).msg_id != first.msg_id
    assert len(receiver.got(2)) == 2


def test_the_callers_cid_goes_with_the_call(client, receiver, make):
    name = make()
    assert client.rest[name].post(cid="mine-1").cid == "mine-1"
    assert client.with_cid("mine-2").rest[name].post().cid == "mine-2"
    assert [headers_of(entry)["x-postrider-cid"] for entry in receiver.got(2)] == ["mine-1", "mine-2"]


def test_a_refusal_names_its_fields(client, make):
    name = make()
    with pytest.raises(postrider.NotFound, match="No such") as missing:
        client.rest["No such"].post()
    assert isinstance(missing.value, LookupError) and missing.value.status == 404
    with pytest.raises(postrider.Invalid) as refused:
        client.rest[name].post(headers={"Host": "x", "X A": "y"})
    assert refused.value.status == 422
    assert refused.value.fields == ["headers", "headers"]
    assert "host" in refused.value.errors[0].allowed
    client.connections.update(name, is_active=False)
    with pytest.raises(postrider.Conflict):
        client.rest[name].post()


def test_a_wrong_key_and_a_small_scope_are_told_apart(server, client, make):
    name = make()
    with postrider.connect(server.address, "wrong") as stranger, pytest.raises(postrider.Unauthorized):
        stranger.rest[name].post()
    made = client.request("POST", "/api/v1/projects/default/keys", {"name": f"reader {name}", "scopes": ["read"]})
    with postrider.connect(server.address, made["key"]) as reader:
        assert wait_for(lambda: reader.connections.show(name))["name"] == name
        with pytest.raises(postrider.Forbidden):
            reader.rest[name].post()


@pytest.mark.parametrize(
    ("data", "where"),
    [
        ({"a": {1, 2}}, "data.a"),
        ([1, [object()]], r"data\[1\]\[0\]"),
        ({"a": float("nan")}, "data"),
        ({1: "a"}, "data"),
        ("half \ud83d", "data"),
        ({"a": {"b": "\udc00"}}, "data.a.b"),
    ],
)
def test_what_has_no_form_in_json_is_refused_with_its_place(client, data, where):
    with pytest.raises(postrider.BadArgument, match=where):
        client.rest["x"].post(data)


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.rest["a/b"].post(),
        lambda client: client.rest[""].post(),
        lambda client: client.rest["x"].post(params={"a": {}}),
        lambda client: client.rest["x"].post(headers=[(1, "a")]),
        lambda client: client.rest["x"].post(cid="two words"),
        lambda client: client.rest["x"].post(cid="line\nend"),
        lambda client: client.rest["x"].post(idempotency_key="ü"),
        lambda client: client.rest["x"].post(idempotency_key="x" * 256),
        lambda client: client.mllp["x"].send(""),
        lambda client: client.mllp["x"].send(7),
        lambda client: client.soap["x"].invoke(""),
        lambda client: client.fhir["x"].publish({"birthDate": "1974-12-25"}),
        lambda client: client.deliveries.bulk("retry"),
        lambda client: client.deliveries.bulk("retry", ids=["a"], where={}),
        lambda client: client.deliveries.bulk("forward", where={}),
        lambda client: client.deliveries.bulk("retry", ids="msg_1"),
        lambda client: client.request("GET", "no/slash"),
        lambda client: client.events.publish("", {}),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_sent(call):
    with postrider.connect("http://127.0.0.1:1", "k", retries=0) as client, pytest.raises(postrider.BadArgument):
        call(client)


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("127.0.0.1:8080", {}),
        ("ftp://a", {}),
        ("http://", {}),
        ("http://a?x=1", {}),
        ("http://a#b", {}),
        ("http://me:secret@a", {}),
        ("http://a:99999", {}),
        ("http://a", {"key": "line\nend"}),
        ("http://a", {"key": "ü"}),
        ("http://a", {"timeout": 0}),
        ("http://a", {"timeout": float("nan")}),
        ("http://a", {"retries": -1}),
        ("http://a", {"connections_max": 0}),
        ("https://a", {"ca_file": "/no/such/file"}),
        ("http://a", {"project": "a/b"}),
    ],
)
def test_settings_that_cannot_work_are_refused(url, options):
    with pytest.raises(postrider.BadArgument):
        postrider.connect(url, **{"key": "k", **options})


def test_address_and_key_come_from_the_environment(server, monkeypatch):
    monkeypatch.setenv("POSTRIDER_SERVER", server.address)
    monkeypatch.delenv("POSTRIDER_KEY", raising=False)
    monkeypatch.delenv("POSTRIDER_ADMIN_KEY", raising=False)
    with pytest.raises(postrider.BadArgument, match="POSTRIDER_KEY"):
        postrider.connect()
    from conftest import KEY

    monkeypatch.setenv("POSTRIDER_KEY", KEY)
    with postrider.connect() as client:
        assert client.is_ready()
        assert KEY not in repr(client._core.transport.settings)
