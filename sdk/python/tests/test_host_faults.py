"""The services host as a process: how it bears what is too much, too slow, wrong or unknown, and how it stops."""

from __future__ import annotations

import json
import signal
import socket
import threading
import urllib.error
import urllib.request

import pytest

from conftest import KEY, PATIENCE_S, wait_for
from hosting import ECHO, OURS, ask


def raw(host, head, body=b"", *, half_close=False):
    """The answer to these very bytes."""
    name, port = host.address.rpartition("//")[2].split(":")
    with socket.create_connection((name, int(port)), timeout=PATIENCE_S) as sock:
        sock.sendall(head.encode() + b"\r\n\r\n" + body)
        if half_close:
            sock.shutdown(socket.SHUT_WR)
        data = b""
        while part := sock.recv(65536):
            data += part
    return data


WAITS = """
import pathlib, time
from postrider.services import Service
class Waits(Service):
    def handle(self):
        self.logger.info("began %s", self.request.payload)
        while not pathlib.Path(__file__).with_name("go").exists():
            time.sleep(0.05)
"""


def test_a_full_host_says_come_later(serve):
    host = serve({"waits.py": WAITS}, "--runs", "1", "--wait-seconds", "0.3")
    address = f"{host.address}/services/waits.waits"
    first = threading.Thread(target=lambda: ask(address, "first"))
    first.start()
    wait_for(lambda: "began first" in host.log)
    status, headers, problem = ask(address, "second")
    assert (status, headers["Retry-After"], problem["code"]) == (503, "1", "busy")
    (next(host.log_file.parent.glob("services-*")) / "go").touch()
    first.join()
    assert ask(address, "third")[0] == 200


def test_a_request_whose_caller_left_while_it_waited_is_not_run(serve):
    host = serve({"waits.py": WAITS}, "--runs", "1")
    address = f"{host.address}/services/waits.waits"
    first = threading.Thread(target=lambda: ask(address, "first"))
    first.start()
    wait_for(lambda: "began first" in host.log)
    with pytest.raises((TimeoutError, OSError)):
        urllib.request.urlopen(urllib.request.Request(address, b"left", {"Content-Type": "text/plain"}), timeout=0.5)
    (next(host.log_file.parent.glob("services-*")) / "go").touch()
    first.join()
    assert ask(address, "third")[0] == 200
    assert "began third" in host.log and "began left" not in host.log


def test_a_body_of_5_mb_and_one_that_is_too_large(serve):
    host = serve(
        {
            "size.py": "from postrider.services import Service\nclass Size(Service):\n    def handle(self):\n        return str(len(self.request.raw))\n"
        }
    )
    request = urllib.request.Request(f"{host.address}/services/size.size", b"\xff" * 5_000_000)
    assert urllib.request.urlopen(request, timeout=PATIENCE_S).read() == b"5000000"
    assert b" 413 " in raw(host, "POST /services/size.size HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999999")


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("POST /services/e.echo HTTP/1.1\r\nHost: a\r\nContent-Length: abc", 400),
        ("POST /services/e.echo HTTP/1.1\r\nHost: a\r\nContent-Length: -1", 400),
        ("POST /services/e.echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6", 400),
        ("POST /services/e.echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked", 411),
        ("POST /services/e.echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10", 400),
        ("nonsense", 400),
        ("GET / HTTP/9.9", 505),
        ("GET /" + "x" * 70_000 + " HTTP/1.1", 414),
        ("GET / HTTP/1.1\r\n" + "A: b\r\n" * 200 + "A: b", 431),
    ],
)
def test_what_is_no_request_is_refused_with_a_problem(serve, head, status):
    host = serve({"e.py": ECHO})
    answer = raw(host, head, half_close=True)
    assert answer.split(b" ", 2)[1] == str(status).encode(), answer
    assert b"application/problem+json" in answer
    assert ask(f"{host.address}/health/live", method="GET")[0] == 200


def test_with_a_token_only_who_has_it_gets_in(serve):
    host = serve({"echo.py": ECHO}, environment={"POSTRIDER_SERVICES_TOKEN": "between-us"})
    address = f"{host.address}/services/echo.echo"
    assert ask(address, {}, headers=OURS)[0] == 401
    assert ask(address, {}, headers={**OURS, "X-Postrider-Token": "guessed"})[0] == 401
    assert ask(f"{host.address}/services", method="GET")[0] == 401
    status, _, seen = ask(address, {}, headers={**OURS, "X-Postrider-Token": "between-us"})
    assert status == 200 and "between-us" not in json.dumps(seen)
    assert ask(f"{host.address}/health/ready", method="GET")[0] == 200


def test_a_stop_lets_runs_end(serve):
    slow = "import time\nfrom postrider.services import Service\nclass Slow(Service):\n    def handle(self):\n        self.logger.info('began')\n        time.sleep(2)\n        return 'done'\n"
    for ends in ("signal", "stdin"):
        host = serve({"slow.py": slow}, "--stop-seconds", "60", "--stop-with-stdin")
        answers = []
        address = f"{host.address}/services/slow.slow"
        call = threading.Thread(
            target=lambda: answers.append(urllib.request.urlopen(address, timeout=PATIENCE_S).read())
        )
        call.start()
        wait_for(lambda: "began" in host.log)
        if ends == "signal":
            host.process.send_signal(signal.SIGTERM)
        else:
            host.process.stdin.close()
        call.join()
        assert answers == [b"done"]
        assert host.process.wait(PATIENCE_S) == 0
        assert "INFO postrider.services stopped" in host.log


def test_a_run_that_hangs_does_not_hold_up_a_stop(serve):
    hangs = "import time\nfrom postrider.services import Service\nclass Hangs(Service):\n    def handle(self):\n        self.logger.info('began')\n        time.sleep(600)\n"
    host = serve({"hangs.py": hangs}, "--stop-seconds", "0.2")
    with pytest.raises((TimeoutError, OSError)):
        urllib.request.urlopen(f"{host.address}/services/hangs.hangs", timeout=0.5)
    wait_for(lambda: "began" in host.log)
    host.process.send_signal(signal.SIGTERM)
    assert host.process.wait(PATIENCE_S) == 1
    assert "stopped with 1 runs that had not ended" in host.log


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "there is no service in"),
        ({"a.py": "class A:\n    pass\n"}, "there is no service in"),
        ({"a.py": "from postrider.services import Service\nclass A(Service):\n    pass\n"}, "there is no service in"),
        ({"a.py": "x = 1\nraise ValueError('no')\n"}, "a.py: line 2: ValueError: no"),
        ({"a.py": "x = 1\ny = (\n"}, "a.py: line 2:"),
        ({"a.py": "import sys\nsys.exit(1)\n"}, "a.py: line 2: SystemExit"),
        ({"json.py": ECHO}, "its name is that of another module of Python"),
        ({"a.py": ECHO, "b.py": ECHO.replace("class Later", "class Other")}, "are both called `later`"),
        ({"a.py": ECHO.replace('"later"', '"a/b"')}, "has the name 'a/b'"),
    ],
)
def test_files_that_cannot_be_served_are_refused_with_their_line(serve, files, said):
    host = serve(files)
    assert host.process.wait(PATIENCE_S) == 1
    assert said in host.log
    assert "error: " in host.log


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--listen", "9900"], "HOST:PORT"),
        (["--listen", "127.0.0.1:99999"], "HOST:PORT"),
        (["--listen", "0.0.0.0:0"], "POSTRIDER_SERVICES_TOKEN"),
        (["--runs", "0"], "--runs"),
        (["--import-alias", "a b=c"], "OLD=NEW"),
        (["--server", "nowhere"], "url"),
    ],
)
def test_options_that_cannot_work_are_refused(serve, options, said):
    host = serve({"echo.py": ECHO}, *options, environment={"POSTRIDER_KEY": KEY})
    assert host.process.wait(PATIENCE_S) == 2
    assert said in host.log


def test_an_alias_does_not_hide_a_module_that_is_there(serve):
    for alias, said in (
        ("json.tool=postrider.services", "there is a module `json` already"),
        ("old=no.such.module", "No module named"),
    ):
        host = serve({"echo.py": ECHO}, "--import-alias", alias)
        assert host.process.wait(PATIENCE_S) == 1
        assert said in host.log
