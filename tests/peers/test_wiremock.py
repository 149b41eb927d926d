"""WireMock runs here and breaks answers as its stubs say."""

import http.client
import json
from urllib.parse import urlsplit

import pytest


def call(address: str, method: str, path: str, body: bytes | None = None):
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=20)
    connection.request(method, path, body)
    response = connection.getresponse()
    return response.status, response.read()


def test_a_fault_breaks_the_answer_and_the_request_is_remembered(start):
    address = start("wiremock.py")
    for path, response in {"/fine": {"status": 201}, "/reset": {"fault": "CONNECTION_RESET_BY_PEER"}}.items():
        stub = {"request": {"method": "ANY", "url": path}, "response": response}
        assert call(address, "POST", "/__admin/mappings", json.dumps(stub).encode())[0] == 201
    assert call(address, "POST", "/fine", b"x")[0] == 201
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        call(address, "POST", "/reset", b"x")
    received = json.loads(call(address, "GET", "/__admin/requests")[1])["requests"]
    assert sorted(entry["request"]["url"] for entry in received) == ["/fine", "/reset"]


def test_a_connection_is_kept(start):
    connection = http.client.HTTPConnection(urlsplit(start("wiremock.py")).netloc, timeout=20)
    connection.request("GET", "/__admin/mappings")
    connection.getresponse().read()
    kept = connection.sock
    assert kept is not None
    connection.request("GET", "/__admin/mappings")
    assert connection.getresponse().status == 200
    assert connection.sock is kept
