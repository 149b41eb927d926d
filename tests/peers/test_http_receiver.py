"""The receiver answers by its script and remembers what it got."""

import base64
import hashlib
import http.client
import json
import threading
import time
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit


def call(address: str, method: str, path: str, body: bytes | None = None, headers: dict | None = None):
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=20)
    connection.request(method, path, body, headers or {})
    response = connection.getresponse()
    answer = response.status, response.headers, response.read()
    connection.close()
    return answer


def log(address: str, **parameters) -> list[dict]:
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    status, _, body = call(address, "GET", f"/__log?{query}")
    assert status == 200
    return json.loads(body)


def put_script(address: str, script: dict) -> int:
    return call(address, "PUT", "/__script", json.dumps(script).encode())[0]


def test_answers_follow_the_script_and_the_last_one_stays(start, tmp_path):
    script = tmp_path / "script.json"
    answers = [{"status": 500}, {"status": 429, "headers": {"Retry-After": "2"}}, {"status": 200, "body": "done"}]
    script.write_text(json.dumps({"rules": [{"method": "POST", "path": "/orders", "answers": answers}]}))
    address = start("http_receiver.py", "--script", str(script))
    seen = [call(address, "POST", "/orders", b"x") for _ in range(4)]
    assert [status for status, _, _ in seen] == [500, 429, 200, 200]
    assert seen[1][1]["Retry-After"] == "2"
    assert seen[3][2] == b"done"
    assert call(address, "GET", "/elsewhere")[0] == 200


def test_retry_after_can_be_a_date(start):
    address = start("http_receiver.py")
    assert put_script(address, {"default": {"status": 429, "retry_after_date_s": 30}}) == 204
    date = parsedate_to_datetime(call(address, "GET", "/")[1]["Retry-After"])
    assert 28 <= date.timestamp() - time.time() <= 31


def test_the_log_has_every_request_as_it_came(start):
    address = start("http_receiver.py")
    body = bytes(range(256))
    call(address, "PUT", "/a%20b/c?x=1&y=%2F", body, {"X-Cid": "c-1"})
    call(address, "DELETE", "/second")
    first, second = log(address)
    assert (first["method"], first["path"], first["query"]) == ("PUT", "/a%20b/c", "x=1&y=%2F")
    assert ["X-Cid", "c-1"] in first["headers"]
    assert base64.b64decode(first["body_base64"]) == body
    assert first["body_sha256"] == hashlib.sha256(body).hexdigest()
    assert (second["number"], second["method"]) == (2, "DELETE")
    assert first["monotonic_ms"] <= second["monotonic_ms"]
    assert "body_base64" not in log(address, bodies=0)[0]
    assert call(address, "DELETE", "/__log")[0] == 204
    assert log(address) == []


def test_the_log_can_be_waited_for(start):
    address = start("http_receiver.py")
    caller = threading.Thread(target=call, args=(address, "POST", "/", b"late"))
    caller.start()
    assert len(log(address, at_least=1)) == 1
    caller.join()
    assert call(address, "GET", "/__log?at_least=2&timeout_ms=10")[0] == 504


def test_a_chunked_body_is_read(start):
    address = start("http_receiver.py")
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=20)
    headers = {"Transfer-Encoding": "chunked"}
    connection.request("POST", "/", iter([b"ab", b"c"]), headers, encode_chunked=True)
    assert connection.getresponse().headers["Connection"] == "close"
    assert base64.b64decode(log(address)[0]["body_base64"]) == b"abc"


def test_requests_are_served_side_by_side(start):
    address = start("http_receiver.py")
    put_script(address, {"rules": [{"path": "/slow", "answers": [{"delay_ms": 60_000}]}]})
    slow = http.client.HTTPConnection(urlsplit(address).netloc, timeout=20)
    slow.request("GET", "/slow")
    assert log(address, at_least=1)[0]["path"] == "/slow"
    assert call(address, "GET", "/quick")[0] == 200
    slow.close()


def test_a_script_with_an_unknown_key_is_refused(start):
    address = start("http_receiver.py")
    assert put_script(address, {"rules": [{"path": "/", "answers": [{"stauts": 500}]}]}) == 400
    assert put_script(address, {"rules": [{"path": "/", "answers": []}]}) == 400
