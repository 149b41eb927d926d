"""A server that is down, slow, gone in the middle, or none of ours: which error, and whether the request was made again."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import threading
import time

import pytest

import postrider
from postrider._exchange import Reply as _Reply
from postrider._exchange import Request, Settings, json_request, refusal, retry_after
from postrider.errors import kind_of
from postrider.headers import Headers

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
RESULT = json.dumps(
    {
        "is_ok": True,
        "is_in_queue": False,
        "is_in_dlq": False,
        "msg_id": "msg_1",
        "cid": "c",
        "error": None,
        "response": None,
    }
)


def ok(text: str = RESULT) -> bytes:
    return OK % (len(text.encode()), text.encode())


class Script:
    """A server on a socket: for each request the next step, which writes whatever it likes. The last step stays."""

    def __init__(self, *steps, tls=None):
        self.steps = list(steps)
        self.requests = []
        self.accepted = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.tls = tls
        self.address = (
            f"{'https' if tls else 'http'}://{'localhost' if tls else '127.0.0.1'}:{self.listener.getsockname()[1]}"
        )
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        try:
            sock = self.tls.wrap_socket(sock, server_side=True) if self.tls else sock
            with sock:
                while True:
                    request = self._read(sock)
                    if request is None:
                        return
                    self.requests.append(request)
                    step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
                    if isinstance(step, bytes):
                        sock.sendall(step)
                    elif step(sock) == "end":
                        return
        except OSError:
            return

    @staticmethod
    def _read(sock):
        data = b""
        while b"\r\n\r\n" not in data:
            part = sock.recv(65536)
            if not part:
                return None
            data += part
        head, _, body = data.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
        while len(body) < int(headers.get("Content-Length", 0)):
            part = sock.recv(65536)
            if not part:
                return None
            body += part
        return head.decode(), body

    def header(self, number, name):
        found = [line for line in self.requests[number][0].split("\r\n") if line.startswith(f"{name}: ")]
        return found[0].partition(": ")[2] if found else None


def hang_up(sock):
    return "end"


def never(sock):
    time.sleep(600)


def client_of(script, **options):
    return postrider.connect(script.address, "k", **{"timeout": 30, **options})


def test_a_server_that_is_not_there():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with postrider.connect(f"http://127.0.0.1:{port}", "k", retries=1) as client:
        assert not client.is_ready()
        with pytest.raises(postrider.Unreachable) as raised:
            client.rest["x"].post()
    assert isinstance(raised.value, ConnectionError)
    assert not raised.value.maybe_taken
    assert f"127.0.0.1:{port}" in str(raised.value)


def test_a_name_that_does_not_resolve():
    with postrider.connect("http://nowhere.invalid", "k", retries=0) as client, pytest.raises(postrider.Unreachable):
        client.rest["x"].post()


def test_a_server_that_hangs_is_given_up_in_time():
    script = Script(never)
    began = time.monotonic()
    with client_of(script, timeout=0.5, retries=0) as client, pytest.raises(postrider.TimedOut) as raised:
        client.rest["x"].post()
    assert time.monotonic() - began < 30
    assert isinstance(raised.value, TimeoutError) and raised.value.maybe_taken


@pytest.mark.parametrize("before", [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"])
def test_an_answer_that_dribbles_ends_at_the_deadline(before):
    def dribble(sock):
        sock.sendall(before)
        for number in range(6000):
            sock.sendall(b"X-%d: y\r\n" % number)
            time.sleep(0.1)

    with client_of(Script(dribble), timeout=1, retries=0) as client:
        began = time.monotonic()
        with pytest.raises(postrider.TimedOut):
            client.rest["x"].post()
        assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>",
        ok("[]"),
        ok("{}"),
        ok('{"is_ok": "yes", "is_in_queue": 0, "is_in_dlq": 0}'),
        ok('{"is_ok": true, "is_in_queue": false, "is_in_dlq": false, "response": 7}'),
        ok(
            '{"is_ok": true, "is_in_queue": false, "is_in_dlq": false, "response": {"status": 200, "headers": {}, "body_base64": "!"}}'
        ),
        ok("[" * 100_000),
        b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>",
        b"HTTP/1.1 404 Not Found\r\nContent-Type: application/problem+json\r\nContent-Length: 2\r\n\r\n[]",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000 + b"\r\n",
    ],
)
def test_garbage_is_called_garbage(answer):
    def once(sock):
        sock.sendall(answer)
        return "end"

    with client_of(Script(once), retries=0) as client, pytest.raises(postrider.UnreadableAnswer):
        client.rest["x"].post()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
    ],
)
def test_an_answer_that_breaks_off_is_none_and_is_asked_for_again(answer):
    def broken(sock):
        sock.sendall(answer)
        return "end"

    script = Script(broken, ok())
    with client_of(script) as client:
        assert client.rest["x"].post("a").is_ok
    assert len(script.requests) == 2
    assert script.header(0, "Idempotency-Key") == script.header(1, "Idempotency-Key") is not None


def test_without_a_key_nothing_that_may_have_been_taken_is_sent_again():
    script = Script(hang_up, ok())
    with client_of(script, idempotency_keys=False) as client:
        with pytest.raises(postrider.Unreachable) as raised:
            client.rest["x"].post("a")
        assert raised.value.maybe_taken
        assert len(script.requests) == 1
        script.steps = [hang_up, ok('{"data": [], "next_cursor": null}')]
        assert list(client.deliveries.list()) == []
        assert len(script.requests) == 3
        for act in (
            lambda: client.deliveries.retry("msg_1"),
            lambda: client.publish("t", "x"),
            lambda: client.events.publish("t", {}),
            lambda: client.topics.pull("t", "s"),
        ):
            script.steps, before = [hang_up, ok("{}")], len(script.requests)
            with pytest.raises(postrider.Unreachable):
                act()
            assert len(script.requests) == before + 1


# proves: P04
@pytest.mark.parametrize(
    ("act", "answer"),
    [
        (lambda client: client.publish("t", "x"), '{"msg_id": "evt_1", "topic": "t"}'),
        (lambda client: client.events.publish("t", {}), '{"eventId": "evt_1", "deliveriesCreated": 2}'),
        (lambda client: client.dlq.retry_many(["msg_1"]), '{"retried": 1, "requested": 1, "refused": []}'),
    ],
)
def test_acts_are_made_again_under_the_same_key(act, answer):
    script = Script(hang_up, ok(answer))
    with client_of(script) as client:
        act(client)
    assert script.header(0, "Idempotency-Key") == script.header(1, "Idempotency-Key") is not None
    assert script.requests[0][1] == script.requests[1][1]


def test_a_server_that_asks_for_patience_gets_it():
    busy = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nRetry-After: %s\r\nContent-Length: 2\r\n\r\n{}"
    script = Script(busy % b"1", ok())
    with client_of(script) as client:
        began = time.monotonic()
        assert client.rest["x"].post().is_ok
        assert time.monotonic() - began >= 1
    impatient = Script(busy % b"3600")
    with client_of(impatient) as client:
        with pytest.raises(postrider.Unavailable) as raised:
            client.rest["x"].post()
        assert raised.value.retry_after == 3600
    assert len(impatient.requests) == 1


def test_z30_what_could_not_be_stored_is_a_result_with_all_flags_false():
    members = {
        "title": "Insufficient Storage",
        "status": 507,
        "detail": "full",
        "is_ok": False,
        "is_in_queue": False,
        "is_in_dlq": False,
    }
    body = json.dumps({**members, "msg_id": None, "error": "the store is full", "response": None}).encode()
    head = b"HTTP/1.1 507 Insufficient Storage\r\nContent-Type: application/problem+json\r\nContent-Length: %d\r\n\r\n"
    with client_of(Script(head % len(body) + body)) as client:
        result = client.rest["x"].post()
    assert (result.is_ok, result.is_in_queue, result.is_in_dlq, result.msg_id) == (False, False, False, None)
    assert result.error == "the store is full"


def test_connections_are_kept_and_a_stale_one_is_not_used():
    script = Script(ok())
    with client_of(script, idempotency_keys=False, retries=0) as client:
        for _ in range(5):
            assert client.rest["x"].post().is_ok
        assert script.accepted == 1

        def answer_and_leave(sock):
            sock.sendall(ok())
            return "end"

        script.steps = [answer_and_leave]
        for _ in range(3):
            assert client.rest["x"].post().is_ok
            time.sleep(0.2)
        assert script.accepted == 3


def test_an_answer_without_a_length_ends_with_its_connection():
    def plain(sock):
        sock.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + RESULT.encode())
        return "end"

    with client_of(Script(plain)) as client:
        assert client.rest["x"].post().is_ok
        assert client.rest["x"].post().is_ok


def test_a_refusal_before_the_body_was_read_is_seen():
    body = b'{"title": "Payload Too Large", "status": 413, "detail": "too large"}'
    refused = (
        b"HTTP/1.1 413 x\r\nContent-Type: application/problem+json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s"
        % (len(body), body)
    )
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        sock, _ = listener.accept()
        sock.recv(1000)
        sock.sendall(refused)
        # With the rest unread, so that the connection is reset while the caller still writes.
        time.sleep(0.2)
        sock.close()

    threading.Thread(target=serve, daemon=True).start()
    with postrider.connect(f"http://127.0.0.1:{listener.getsockname()[1]}", "k", retries=0) as client:
        with pytest.raises(postrider.Invalid, match="too large"):
            client.rest["x"].post(b"x" * 5_000_000)


def test_an_endless_answer_is_cut():
    def endless(sock):
        sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            sock.sendall(b"x" * 1_000_000)

    with client_of(Script(endless), retries=0) as client:
        object.__setattr__(client._core.transport.settings, "answer_bytes_max", 10_000_000)
        with pytest.raises(postrider.UnreadableAnswer, match="answer_bytes_max"):
            client.rest["x"].post()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run([*command, *names, *files], check=True, capture_output=True)
    return folder


def test_https_with_a_certificate_that_is_trusted_and_one_that_is_not(certificate):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    script = Script(ok(), tls=tls)
    with client_of(script, ca_file=str(certificate / "cert.pem")) as client:
        assert client.rest["x"].post("é" * 1_000_000).is_ok
        assert client.rest["x"].post().is_ok
    assert script.accepted == 1
    with client_of(script, retries=0) as stranger, pytest.raises(postrider.Unreachable, match="(?i)certificate"):
        stranger.rest["x"].post()
    wrong_name = script.address.replace("localhost", "127.0.0.1")
    with postrider.connect(wrong_name, "k", retries=0, ca_file=str(certificate / "cert.pem")) as client:
        with pytest.raises(postrider.Unreachable, match="(?i)certificate"):
            client.rest["x"].post()


def test_an_address_with_a_path_in_front():
    script = Script(ok())
    with postrider.connect(f"{script.address}/behind/a/proxy/", "k") as client:
        assert client.rest["ä b"].post().is_ok
    assert script.requests[0][0].startswith(
        "POST /behind/a/proxy/api/v1/projects/default/connections/%C3%A4%20b/send?type=rest HTTP/1.1"
    )


def test_the_key_is_in_no_error_and_no_repr():
    script = Script(hang_up)
    with postrider.connect(script.address, "very-secret", retries=0) as client:
        with pytest.raises(postrider.Unreachable) as raised:
            client.rest["x"].post()
        said = [str(raised.value), repr(raised.value), repr(client), repr(client._core.transport.settings)]
        assert "very-secret" not in " ".join(said)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("5", 5),
        ("0", 0),
        ("", None),
        ("-1", None),
        ("soon", None),
        ("²", None),
        ("Mon, 30 Nov 2026 14:00:05 GMT", 5),
        ("Mon, 30 Nov 2020 14:00:05 GMT", 0),
    ],
)
def test_retry_after_in_both_forms(value, wanted):
    headers = Headers([("Retry-After", value), ("Date", "Mon, 30 Nov 2026 14:00:00 GMT")])
    assert retry_after(headers) == wanted


def test_every_refusal_has_its_class():
    for status, kind in [
        (400, "Invalid"),
        (401, "Unauthorized"),
        (403, "Forbidden"),
        (404, "NotFound"),
        (409, "Conflict"),
        (413, "Invalid"),
        (422, "Invalid"),
        (429, "TooManyRequests"),
        (500, "Unavailable"),
        (507, "Unavailable"),
    ]:
        assert kind_of(status).__name__ == kind
    problem = _Reply(
        409,
        Headers([("content-type", "Application/Problem+JSON; charset=utf-8")]),
        b'{"code": "in_flight", "errors": [7, {"field": "a"}]}',
    )
    refused = refusal("http://a", problem)
    assert isinstance(refused, postrider.Conflict)
    assert (refused.code, refused.fields) == ("in_flight", ["a"])


def test_waits_grow_and_end():
    settings = Settings("http://a", "k", retries=3)
    lost = postrider.Unreachable("http://a", "x", maybe_taken=True)
    reading, writing = Request("GET", "/"), json_request("POST", "/", {})
    waits = [settings.wait_before_repeat(reading, number, lost) for number in (1, 2, 3, 4)]
    assert waits[3] is None
    assert all(0.125 * 2**at <= wait <= 0.375 * 2**at for at, wait in enumerate(waits[:3]))
    assert settings.wait_before_repeat(writing, 1, lost) is None
    assert (
        settings.wait_before_repeat(writing, 1, postrider.Unreachable("http://a", "x", maybe_taken=False)) is not None
    )


def test_z13_a_killed_server_costs_no_request_and_makes_none_twice(tmp_path, receiver):
    from conftest import Server

    server = Server(tmp_path)
    address = server.address.partition("//")[2]
    with server.connect(retries=0) as client:
        client.connections.create("rest", "Kept", host=receiver.address, url_path="/in", use_queue=True)
        client.connections.pause("Kept")
        ids = [client.rest["Kept"].publish(str(number)).msg_id for number in range(20)]
        server.kill()
        with pytest.raises(postrider.Unreachable):
            client.rest["Kept"].publish("20")
        server.start(address)
        assert [one.id for one in client.connections.queue("Kept")] == ids
        client.connections.resume("Kept")
        assert len(receiver.got(20)) == 20
    server.kill()
