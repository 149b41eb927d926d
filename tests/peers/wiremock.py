"""Starts WireMock, whose faults break HTTP in ways that a proper server cannot.

    python wiremock.py [--stop-with-stdin] [WIREMOCK OPTIONS…]

It prints `{"port": N}` once WireMock answers on 127.0.0.1:N. Stubs are set by `POST /__admin/mappings`; a stub with
`"response": {"fault": "CONNECTION_RESET_BY_PEER"}` (or `EMPTY_RESPONSE`, `MALFORMED_RESPONSE_CHUNK`, `RANDOM_DATA_THEN_CLOSE`) breaks the
answer, `fixedDelayMilliseconds` and `chunkedDribbleDelay` slow it; `GET /__admin/requests` is what it received.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

from peer import announce, stop_with_stdin


def jar() -> pathlib.Path:
    lab = pathlib.Path(os.environ.get("POSTRIDER_PEERS_NODE", "target/peers/node"))
    found = sorted(lab.glob("node_modules/wiremock/build/wiremock-standalone-*.jar"))
    if not found:
        sys.exit(f"there is no WireMock under {lab}; `cargo xtask peers` installs it")
    return found[-1]


def main() -> None:
    options = sys.argv[1:]
    follows_stdin = "--stop-with-stdin" in options
    options = [option for option in options if option != "--stop-with-stdin"]
    with tempfile.TemporaryDirectory() as files:
        command = ["java", "-jar", str(jar()), "--bind-address", "127.0.0.1", "--port", "0"]
        command += ["--disable-banner", "--root-dir", files, *options]
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        if follows_stdin:
            stop_with_stdin(child.kill)
        try:
            forward(child)
        finally:
            child.kill()
    sys.exit(child.wait())


def forward(child: subprocess.Popen) -> None:
    """Announces the port when WireMock names it, and shows the rest of what it says on standard error."""
    announced = False
    for line in child.stdout:
        if not announced and (port := re.match(r"port:\s+(\d+)", line)):
            announce(int(port.group(1)))
            announced = True
        sys.stderr.write(line)


if __name__ == "__main__":
    main()
