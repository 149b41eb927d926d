"""The published snippets, word for word (Z35): each file of `snippets/` runs inside a service of the real host, as it stands.

Against the real server: the REST ones, publishing among them, and the two channels' halves of `order_intake` that are the host's. Against
`StandIn`, which holds to the documented API and refuses all else: SOAP, MLLP and FHIR, whose kinds of connections it stands in for. What a
channel does with `order_intake` (storing, acknowledging, retrying) is played by the test, by the contract in docs/python.md.
"""

from __future__ import annotations

import base64
import http.server
import json
import pathlib
import re
import threading
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from conftest import KEY, wait_for
from hosting import CID, ask

SNIPPETS = pathlib.Path(__file__).parent / "snippets"

# Runs a snippet with its own `self`, and tells what it left behind.
RUNNER = """
import pathlib
from postrider.services import Service

class Snippet(Service):
    name = "snippet"

    def handle(self):
        given = self.request.payload
        names = {"self": self, **given["names"]}
        exec(compile(pathlib.Path(given["file"]).read_text("utf-8"), given["file"], "exec"), names)
        result = names["result"]
        self.response.payload = {name: getattr(result, name) for name in ("is_ok", "is_in_queue", "is_in_dlq", "msg_id", "cid", "error")}
"""


class StandIn:
    """The documented `/send` and `/publish` of one connection that is not REST. What is not documented fails the test."""

    FIELDS = {
        "soap": {"operation", "message", "headers"},
        "mllp": {"body", "body_base64"},
        "fhir": {"method", "path", "params", "headers", "body"},
    }

    def __init__(self, kind, name, result, *, use_queue=True):
        self.kind, self.name, self.result, self.use_queue = kind, name, result, use_queue
        self.calls, self.faults = [], []
        stand_in = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                self.tell(200, {"name": stand_in.name, "type": stand_in.kind, "use_queue": stand_in.use_queue})
                stand_in.check(self, None)

            def do_POST(self):
                fields = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                stand_in.check(self, fields)
                self.tell(
                    202 if stand_in.result["is_in_queue"] else 200,
                    {**stand_in.result, "cid": self.headers["X-Postrider-Cid"]},
                )

            def tell(self, status, value):
                body = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def check(self, asked, fields):
        target = urlsplit(asked.path)
        place = re.fullmatch(r"/api/v1/projects/default/connections/([^/]+)(/send|/publish)?", target.path)
        holds = {
            "path": place is not None
            and unquote(place.group(1)) == self.name
            and (place.group(2) is None) == (fields is None),
            "type": parse_qs(target.query) == {"type": [self.kind]},
            "key": asked.headers["Authorization"] == f"Bearer {KEY}",
            "cid": asked.headers["X-Postrider-Cid"] == CID or fields is None,
            "content type": fields is None or asked.headers["Content-Type"] == "application/json",
            "fields": fields is None or (set(fields) <= self.FIELDS[self.kind]),
        }
        self.faults.extend(name for name, is_so in holds.items() if not is_so)
        if fields is not None:
            self.calls.append((place.group(2) if place else None, fields))


def result(*, flag="is_in_queue", response=None, error=None):
    flags = {name: name == flag for name in ("is_ok", "is_in_queue", "is_in_dlq")}
    return {**flags, "msg_id": "msg_01m8pgt", "error": error, "response": response}


@pytest.fixture
def run(serve):
    """`run("rest_post", address, invoice=…)` → what the snippet's result said, and what the host logged under its cid."""

    def of(snippet, address, **names):
        host = serve({"snippet.py": RUNNER}, environment={"POSTRIDER_SERVER": address, "POSTRIDER_KEY": KEY})
        body = {"file": str(SNIPPETS / f"{snippet}.py"), "names": names}
        status, headers, told = ask(f"{host.address}/services/snippet", body, headers={"X-Postrider-Cid": CID})
        assert (status, headers["X-Postrider-Run"]) == (200, "ok"), (told, host.log)
        assert told["cid"] == CID
        return told, [line for line in host.log.splitlines() if CID in line]

    return of


@pytest.fixture
def billing(client, receiver):
    """The connection that the snippets name, with its queue on, to this test's receiver."""
    if "Billing API" in [one["name"] for one in client.connections.list()]:
        client.connections.delete("Billing API", force=True)
    client.connections.create(
        "rest", "Billing API", host=receiver.address, url_path="/in", use_queue=True, max_retries=3
    )


def body_of(entry):
    return json.loads(base64.b64decode(entry["body_base64"]))


def test_z35_rest_post_that_is_delivered(server, receiver, billing, run):
    receiver.answers({"status": 200, "headers": {"Content-Type": "application/json"}, "body": '{"paid": true}'})
    told, log = run("rest_post", server.address, invoice={"number": 1})
    assert (told["is_ok"], told["is_in_queue"]) == (True, False)
    assert log[-1].endswith("Delivered -> {'paid': True}")
    assert body_of(receiver.got(1)[0]) == {"number": 1}


def test_z35_rest_post_that_is_queued(server, client, receiver, billing, run):
    receiver.answers({"status": 500})
    told, log = run("rest_post", server.address, invoice={"number": 2})
    assert (told["is_ok"], told["is_in_queue"]) == (False, True)
    assert log[-1].endswith(f"Queued -> {told['msg_id']}")
    delivery = client.deliveries.show(told["msg_id"])
    assert (delivery.cid, delivery.status) == (CID, "PENDING")


def test_z35_rest_publish_returns_as_soon_as_it_is_stored(server, client, receiver, billing, run):
    client.connections.pause("Billing API")
    told, _ = run("rest_publish", server.address, invoice={"number": 3})
    assert (told["is_in_queue"], told["error"]) == (True, None)
    assert client.deliveries.show(told["msg_id"]).attempts == 0
    assert receiver.got() == []
    client.connections.resume("Billing API")
    assert body_of(receiver.got(1)[0]) == {"number": 3}


def test_z35_soap_invoke(run):
    stand_in = StandIn("soap", "Immunization Registry", result(error="status 503"))
    told, log = run("soap_invoke", stand_in.address, request={"message": "VXU"})
    assert told["is_in_queue"] and log[-1].endswith("Queued -> msg_01m8pgt")
    assert stand_in.calls == [("/send", {"operation": "submitSingleMessage", "message": {"message": "VXU"}})]
    assert stand_in.faults == []


def test_z35_mllp_send_that_is_acknowledged_and_one_that_is_queued(run):
    message = "MSH|^~\\&|A|B|C|D|20260312||ADT^A01|1|P|2.5\rPID|1\r"
    acknowledged = result(
        flag="is_ok", response={"ack_code": "AA", "body": "MSH|…\rMSA|AA|1\r", "headers": {}, "data": None}
    )
    stand_in = StandIn("mllp", "EHR Main", acknowledged)
    _, log = run("mllp_send", stand_in.address, message=message)
    assert log[-1].endswith("Acknowledged -> AA")
    assert stand_in.calls == [("/send", {"body": message})]
    assert stand_in.faults == []
    stand_in.result = result(error="AR", response={"ack_code": "AR", "body": "MSA|AR|1", "headers": {}, "data": None})
    _, log = run("mllp_send", stand_in.address, message=message)
    assert log[-1].endswith("Queued -> msg_01m8pgt")


def test_z35_fhir_save(run):
    stand_in = StandIn("fhir", "FHIR.Sample", result())
    told, log = run("fhir_save", stand_in.address)
    assert told["is_in_queue"] and log[-1].endswith("Queued -> msg_01m8pgt")
    body = {"resourceType": "Patient", "birthDate": "1974-12-25"}
    assert stand_in.calls == [("/send", {"method": "POST", "path": "/Patient", "body": body})]
    assert stand_in.faults == []


def test_z35_fhir_publish(run):
    stand_in = StandIn("fhir", "FHIR.Sample", result())
    told, _ = run("fhir_publish", stand_in.address)
    assert told["is_in_queue"] and told["msg_id"] == "msg_01m8pgt"
    body = {"resourceType": "Patient", "birthDate": "1974-12-25"}
    assert stand_in.calls == [("/publish", {"method": "POST", "path": "/Patient", "body": body})]
    assert stand_in.faults == []


# proves: Z41, Z44
def test_z35_order_intake(server, client, receiver, make, serve):
    make("Fulfilment", use_queue=True, max_retries=1)
    host = serve(
        {"orders.py": (SNIPPETS / "order_intake.py").read_text("utf-8")},
        "--import-alias",
        "zato.server.service=postrider.services",
        environment={"POSTRIDER_SERVER": server.address, "POSTRIDER_KEY": KEY},
    )
    (announced,) = ask(f"{host.address}/services", method="GET")[2]
    assert announced == {"name": "orders.order-intake", "hooks": ["queue-response"], "methods": None}
    ours = {
        "X-Postrider-Cid": CID,
        "X-Postrider-Msg-Id": "msg_7",
        "X-Postrider-Channel": "Orders",
        "X-Postrider-Attempt": "1",
    }
    address = f"{host.address}/services/orders.order-intake/orders"
    # As the request is accepted, what it sets is the caller's response.
    status, _, told = ask(
        address, {"order_id": 5}, headers={**ours, "X-Postrider-Hook": "queue-response", "X-Postrider-Method": "POST"}
    )
    assert (status, told) == (200, {"accepted": True, "order_id": 5, "msg_id": "msg_7"})
    assert receiver.got() == []
    # From the queue, once for the request.
    status, headers, _ = ask(address, {"order_id": 5}, headers=ours)
    assert (status, headers["X-Postrider-Run"]) == (200, "ok")
    (entry,) = receiver.got(1)
    assert body_of(entry) == {"order_id": 5}
    assert ["X-Postrider-Cid", CID] in entry["headers"]
    # Retried if it raises: a delivery that fails is a result and does not, a connection that is not there does.
    client.connections.delete("Fulfilment", force=True)
    status, headers, told = ask(address, {"order_id": 5}, headers={**ours, "X-Postrider-Attempt": "2"})
    assert (status, headers["X-Postrider-Run"], told["cid"]) == (500, "failed", CID)
    wait_for(lambda: "NotFound" in host.log)
