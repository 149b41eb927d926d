"""The services host as a process: what a service sees of a request, and what comes back."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request

import pytest

from conftest import KEY, PATIENCE_S, wait_for
from hosting import CID, ECHO, OURS, ask


# proves: Z41
def test_z41_a_service_gets_the_request_as_it_arrived(serve):
    host = serve({"in/order_echo.py": ECHO})
    headers = {
        **OURS,
        "X-Postrider-Path-Params": "id=a%2Fb&name=%C3%BC",
        "X-Own": "yes",
        "Authorization": "Basic theirs",
    }
    status, _, seen = ask(
        f"{host.address}/services/in.order-echo.echo/orders/a%2Fb?x=1&x=%20&y", {"a": "ü"}, "PUT", headers
    )
    assert status == 200
    assert (seen["method"], seen["path"], seen["query"]) == (
        "PUT",
        "/orders/a%2Fb",
        [["x", "1"], ["x", " "], ["y", ""]],
    )
    assert (seen["payload"], seen["raw"]) == ({"a": "ü"}, '{"a": "\\u00fc"}')
    assert (seen["cid"], seen["msg_id"], seen["attempt"], seen["channel"]) == (CID, "msg_1", 3, "Orders ü")
    assert seen["path_params"] == {"id": "a/b", "name": "ü"}
    names = {name.lower() for name in seen["headers"]}
    assert {"x-own", "authorization", "content-type"} <= names
    assert not any(name.startswith("x-postrider-") for name in names)
    wait_for(lambda: f"INFO in.order-echo.echo cid={CID} ran as attempt 3" in host.log)


def test_the_payload_is_by_the_channels_format_and_else_by_the_content_type(serve):
    host = serve({"echo.py": ECHO})

    def payload(body, **headers):
        head = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(
            f"{host.address}/services/echo.echo", body, {"Content-Type": "text/plain", **head}
        )
        return json.loads(urllib.request.urlopen(request, timeout=PATIENCE_S).read())["payload"]

    assert payload(b'{"a":1}') == '{"a":1}'
    assert payload(b'{"a":1}', X_Postrider_Data_Format="json") == {"a": 1}
    assert payload(b'{"a":1}', Content_Type="application/fhir+json; charset=utf-8") == {"a": 1}
    assert payload(b"a=1&b=x%20y&a=2", Content_Type="application/x-www-form-urlencoded") == {
        "a": ["1", "2"],
        "b": "x y",
    }
    assert payload("<ä/>".encode("latin-1"), Content_Type="text/xml; charset=ISO-8859-1") == "<ä/>"
    assert payload(b"") is None


def test_verbs_have_handlers_of_their_own_and_others_are_405(serve):
    host = serve({"echo.py": ECHO})
    address = f"{host.address}/services/verbs%20of%20%C3%B6"
    with urllib.request.urlopen(address, timeout=PATIENCE_S) as answer:
        assert (answer.status, answer.read(), answer.headers["Content-Type"]) == (
            200,
            b"<got/>",
            "application/xml; charset=utf-8",
        )
    with urllib.request.urlopen(
        urllib.request.Request(address, b"\x89PNG", method="POST"), timeout=PATIENCE_S
    ) as answer:
        assert (answer.status, answer.read()) == (201, b"\x89PNG")
        assert (answer.headers["Content-Type"], answer.headers["X-Own"]) == ("image/png", "1")
    status, headers, problem = ask(address, {}, "DELETE", OURS)
    assert (status, headers["Allow"], problem["cid"]) == (405, "GET, POST", CID)
    assert headers["X-Postrider-Run"] is None


def test_the_host_says_which_services_there_are_and_how_it_is(serve):
    host = serve({"echo.py": ECHO, "_not.py": "raise SystemExit", ".hidden/a.py": "1/0"})
    assert ask(f"{host.address}/services", method="GET")[2] == [
        {"name": "echo.echo", "hooks": [], "methods": None},
        {"name": "later", "hooks": [], "methods": None},
        {"name": "verbs of ö", "hooks": [], "methods": ["GET", "POST"]},
    ]
    for path in ("/health/live", "/health/ready"):
        assert ask(host.address + path, method="GET")[2] == {"status": "ok"}
    assert ask(f"{host.address}/elsewhere", {})[0] == 404
    status, _, problem = ask(f"{host.address}/services/none", {}, headers=OURS)
    assert (status, problem["code"]) == (404, "no_service")
    status, _, problem = ask(
        f"{host.address}/services/echo.echo", {}, headers={**OURS, "X-Postrider-Hook": "queue-response"}
    )
    assert (status, problem["code"]) == (404, "no_hook")


def test_a_run_that_raises_is_a_500_that_tells_nothing_but_the_cid(serve):
    fails = """
import sys
from postrider.services import Service
class Fails(Service):
    def handle(self):
        if self.request.payload == "exit":
            sys.exit(3)
        raise ValueError("the password is hunter2")
class Nonsense(Service):
    def handle(self):
        if self.request.payload == "status":
            self.response.status_code = 42
        elif self.request.payload == "header":
            self.response.headers["X-A"] = "1\\r\\nX-B: 2"
        else:
            self.response.payload = object()
class Gone(Service):
    def handle(self):
        self.response.status_code = 404
class Broken(Service):
    def __init__(self):
        raise RuntimeError
    def handle(self):
        pass
"""
    host = serve({"fails.py": fails})
    for name, payload, kind in [
        ("fails", "x", "ValueError"),
        ("fails", "exit", "SystemExit"),
        ("nonsense", "status", "ValueError"),
        ("nonsense", "header", "ValueError"),
        ("nonsense", "payload", "BadArgument"),
        ("broken", "", "RuntimeError"),
    ]:
        status, headers, problem = ask(f"{host.address}/services/fails.{name}", payload, headers=OURS)
        assert (status, problem["cid"], problem["status"]) == (500, CID, 500)
        assert (headers["X-Postrider-Run"], headers["X-Postrider-Error"]) == ("failed", kind)
        assert headers["Content-Type"] == "application/problem+json"
        assert "hunter2" not in json.dumps(problem) and "Traceback" not in json.dumps(problem)
    log = wait_for(lambda: host.log.count("Traceback") == 6 and host.log)
    assert "hunter2" in log and f"cid={CID} the service `fails.fails` failed" in log
    # A handler that returned has succeeded, whatever it answers.
    request = urllib.request.Request(f"{host.address}/services/fails.gone", b"", OURS, method="POST")
    with pytest.raises(urllib.error.HTTPError) as gone:
        urllib.request.urlopen(request, timeout=PATIENCE_S)
    assert (gone.value.code, gone.value.headers["X-Postrider-Run"]) == (404, "ok")


def test_a_payload_that_is_no_json_fails_the_run_with_a_400(serve):
    host = serve({"echo.py": ECHO})
    for body in (b"{", b"[" * 100_000, b"\xff"):
        request = urllib.request.Request(
            f"{host.address}/services/echo.echo", body, {**OURS, "Content-Type": "application/json"}
        )
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=PATIENCE_S)
        assert (refused.value.code, refused.value.headers["X-Postrider-Run"]) == (400, "failed")


# proves: Z44
def test_z44_a_hook_that_raises_or_hangs_hurts_nothing_else(serve):
    hooks = """
import time
from postrider.services import Service
class Raises(Service):
    def handle(self):
        self.response.payload = "ran"
    def get_queue_response(self):
        raise KeyError("x")
class Hangs(Raises):
    def get_queue_response(self):
        time.sleep(600)
"""
    host = serve({"hooks.py": hooks}, "--runs", "1")
    hook = {**OURS, "X-Postrider-Hook": "queue-response"}
    status, headers, _ = ask(f"{host.address}/services/hooks.raises", {}, headers=hook)
    assert (status, headers["X-Postrider-Run"]) == (500, "failed")
    for _ in range(3):
        with pytest.raises((TimeoutError, OSError)):
            urllib.request.urlopen(
                urllib.request.Request(f"{host.address}/services/hooks.hangs", b"", hook, method="POST"), timeout=0.2
            )
    # Hooks have places of their own: those that hang take none from runs, be it the only one.
    with urllib.request.urlopen(f"{host.address}/services/hooks.hangs", timeout=PATIENCE_S) as answer:
        assert answer.read() == b"ran"


def test_runs_go_side_by_side_and_log_under_their_own_cid(serve):
    meets = """
import asyncio, logging, threading
from postrider.services import AsyncService, Service
together = threading.Barrier(20)
class Meets(Service):
    def handle(self):
        together.wait(60)
        logging.getLogger("elsewhere").info("met %s", self.request.payload)
arrived, everybody = [], None
class MeetsLater(AsyncService):
    async def handle(self):
        global everybody
        everybody = everybody or asyncio.Event()
        arrived.append(1)
        if len(arrived) == 20:
            everybody.set()
        await asyncio.wait_for(everybody.wait(), 60)
        self.logger.info("met %s", self.request.payload)
"""
    host = serve({"meets.py": meets}, "--log", "json")
    statuses = []
    for name in ("meets", "meets-later"):
        calls = [
            threading.Thread(
                target=lambda n=number: statuses.append(
                    ask(f"{host.address}/services/meets.{name}", n, headers={"X-Postrider-Cid": f"cid-{name}-{n}"})[0]
                )
            )
            for number in range(20)
        ]
        for call in calls:
            call.start()
        for call in calls:
            call.join()
    assert statuses == [200] * 40
    lines = [json.loads(line) for line in host.log.splitlines()]
    met = {(line["cid"], line["message"]) for line in lines if line["message"].startswith("met")}
    assert met == {(f"cid-{name}-{n}", f"met {n}") for name in ("meets", "meets-later") for n in range(20)}
    assert all(set(line) <= {"at", "level", "logger", "cid", "message", "error"} for line in lines)


def test_a_service_without_calls_needs_no_key_and_one_with_says_what_it_needs(serve):
    calls = "from postrider.services import Service\nclass Calls(Service):\n    def handle(self):\n        self.rest['x'].post()\n"
    host = serve({"calls.py": calls, "echo.py": ECHO})
    assert ask(f"{host.address}/services/echo.echo", {})[0] == 200
    assert ask(f"{host.address}/services/calls.calls", {})[0] == 500
    wait_for(lambda: "set POSTRIDER_KEY" in host.log)


def test_files_import_each_other(serve):
    host = serve(
        {
            "prices.py": "PRICE = 7\n",
            "shop/order.py": "from prices import PRICE\nfrom postrider.services import Service\nclass Order(Service):\n    def handle(self):\n        return {'price': PRICE}\n",
        }
    )
    assert ask(f"{host.address}/services/shop.order.order", {})[2] == {"price": 7}


def test_the_cid_goes_with_every_call_of_a_run_awaited_or_not(server, client, receiver, make, serve):
    name = make()
    client.topics.create("runs")
    calls = f"""
from postrider.services import AsyncService, Service
class Calls(Service):
    def handle(self):
        return [self.rest[{name!r}].post("x").cid, self.publish("runs", {{"a": 1}}).topic]
class CallsLater(AsyncService):
    async def handle(self):
        return [(await self.rest[{name!r}].post("x")).cid, (await self.publish("runs", {{"a": 1}})).topic]
class Elsewhere(Service):
    def handle(self):
        return self.client.project
"""
    host = serve({"calls.py": calls}, environment={"POSTRIDER_SERVER": server.address, "POSTRIDER_KEY": KEY})
    for service in ("calls", "calls-later"):
        assert ask(f"{host.address}/services/calls.{service}", {}, headers=OURS)[2] == [CID, "runs"]
    assert [["X-Postrider-Cid", CID] in entry["headers"] for entry in receiver.got(2)] == [True, True]
    request = urllib.request.Request(
        f"{host.address}/services/calls.elsewhere", b"", {**OURS, "X-Postrider-Project": "second"}
    )
    assert urllib.request.urlopen(request, timeout=PATIENCE_S).read() == b"second"


def test_requests_come_one_after_another_on_one_connection(serve):
    import http.client

    host = serve({"echo.py": ECHO})
    connection = http.client.HTTPConnection(host.address.rpartition("//")[2], timeout=PATIENCE_S)
    kept = None
    for number in range(50):
        connection.request("POST", f"/services/echo.echo/{number}", b"x" * number, {"Content-Type": "text/plain"})
        answer = json.loads(connection.getresponse().read())
        assert (answer["path"], answer["raw"]) == (f"/{number}", "x" * number)
        assert kept in (None, connection.sock)
        kept = connection.sock
    began = time.monotonic()
    connection.request("HEAD", "/services/echo.echo")
    assert connection.getresponse().read() == b""
    connection.request("GET", "/services")
    assert connection.getresponse().status == 200
    assert time.monotonic() - began < 30
