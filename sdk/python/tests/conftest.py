"""The real server, a receiver that others wrote, and a real host of services, each started for tests and gone with them."""

from __future__ import annotations

import itertools
import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.request
from typing import Any, Callable, Dict, Iterator, List, Optional

import pytest

import postrider

PYTHON_DIR = pathlib.Path(__file__).parent.parent
ROOT = PYTHON_DIR.parent.parent
KEY = "prk_of_the_tests_0123456789abcdef"
# A loaded machine is slow, and a test that waits for something true ends as soon as it is.
PATIENCE_S = 60.0
numbers = itertools.count(1)


def wait_for(what: Callable[[], Any], said: str = "it to come true") -> Any:
    """The first value of `what` that is true."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        value = what()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"waited {PATIENCE_S:g} s for {said}")


def http_json(url: str, method: str = "GET", body: Any = None) -> Any:
    """JSON of a peer."""
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, method=method), timeout=PATIENCE_S) as answer:
        raw = answer.read()
    return json.loads(raw) if raw else None


def binary() -> pathlib.Path:
    """The server under test."""
    given = os.environ.get("POSTRIDER_BIN")
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    path = pathlib.Path(given) if given else target / "debug" / "postrider"
    assert path.is_file(), f"{path} is not there: build it with `cargo build`, or name one in POSTRIDER_BIN"
    return path


class Server:
    """A running Postrider on a data directory of its own."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.address = ""
        self.start()

    def start(self, listen: str = "127.0.0.1:0") -> None:
        """Starts it, or starts it again on what it has stored."""
        told = self.folder / "data" / "server.json"
        told.unlink(missing_ok=True)
        command = [str(binary()), "serve", "--data", str(self.folder / "data"), "--listen", listen]
        environment = {**os.environ, "POSTRIDER_ADMIN_KEY": KEY, "POSTRIDER_LOG": "warn"}
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        wait_for(lambda: told.exists() or self.process.poll() is not None, "the server to start")
        assert self.process.poll() is None, (self.folder / "log").read_text()
        self.address = json.loads(told.read_text())["address"]

    def kill(self) -> None:
        """As a power cut would."""
        self.process.kill()
        self.process.wait()

    def connect(self, **options: Any) -> postrider.Client:
        """A client of it."""
        return postrider.connect(self.address, KEY, **options)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests; each makes connections of its own in it."""
    running = Server(tmp_path_factory.mktemp("server"))
    yield running
    running.kill()


@pytest.fixture
def client(server: Server) -> Iterator[postrider.Client]:
    with server.connect() as connected:
        yield connected


class Receiver:
    """A remote system that answers as it is told and remembers what it got (`tests/peers/http_receiver.py`)."""

    def __init__(self, address: str) -> None:
        self.address = address

    def answers(self, *answers: Dict[str, Any]) -> None:
        """These one after another, the last one from then on."""
        http_json(f"{self.address}/__script", "PUT", {"rules": [{"answers": [*answers]}]})

    def got(self, at_least: int = 0) -> List[Dict[str, Any]]:
        """Every request, once there are so many."""
        entries = http_json(f"{self.address}/__log?at_least={at_least}&timeout_ms={int(PATIENCE_S * 1000)}")
        return list(entries)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    command = [sys.executable, str(ROOT / "tests/peers/http_receiver.py"), "--stop-with-stdin"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    yield Receiver(f"http://127.0.0.1:{json.loads(process.stdout.readline())['port']}")
    process.stdin.close()
    process.wait(timeout=PATIENCE_S)


@pytest.fixture
def make(client: postrider.Client, receiver: Receiver) -> Callable[..., str]:
    """`make(use_queue=True, …)` → the name of a new REST connection to the receiver."""

    def connection(name: Optional[str] = None, **settings: Any) -> str:
        name = name or f"Billing API {next(numbers)}"
        client.connections.create("rest", name, **{"host": receiver.address, "url_path": "/in", **settings})
        return name

    return connection


class RunningHost:
    """`python -m postrider.services` on a folder."""

    def __init__(self, folder: pathlib.Path, *options: str, environment: Optional[Dict[str, str]] = None) -> None:
        known = {name: value for name, value in os.environ.items() if not name.startswith("POSTRIDER_")}
        paths = {"PYTHONPATH": str(PYTHON_DIR / "src"), "PYTHONUNBUFFERED": "1"}
        self.log_file = folder.parent / f"host-{next(numbers)}.log"
        command = [sys.executable, "-m", "postrider.services", str(folder), "--listen", "127.0.0.1:0", *options]
        with open(self.log_file, "wb") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**known, **paths, **(environment or {})},
            )
        assert self.process.stdout is not None
        said = self.process.stdout.readline().decode()
        self.address = said.strip().rpartition(" ")[2] if said.startswith("listening on ") else ""

    @property
    def log(self) -> str:
        """What it has logged so far."""
        return self.log_file.read_text("utf-8")

    def end(self) -> None:
        """Whatever state it is in."""
        if self.process.poll() is None:
            self.process.kill()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()
        self.process.wait()


@pytest.fixture
def serve(tmp_path: pathlib.Path) -> Iterator[Callable[..., RunningHost]]:
    """`serve({"orders.py": "…"}, *options)` → a host of these files."""
    running: List[RunningHost] = []

    def start(files: Dict[str, str], *options: str, environment: Optional[Dict[str, str]] = None) -> RunningHost:
        folder = tmp_path / f"services-{next(numbers)}"
        folder.mkdir()
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, "utf-8")
        running.append(RunningHost(folder, *options, environment=environment))
        return running[-1]

    yield start
    for host in running:
        host.end()
