"""A receiver of HL7 over MLLP from npm: node-hl7-server or simple-hl7, started on a free port.

    python mllp_node.py node-hl7-server|simple-hl7 [--log FILE] [--stop-with-stdin]

It prints `{"port": N}` once it listens on 127.0.0.1. Which code a message gets is written in its control id, as `mllp_python.py` has it.
Neither ends the last segment of its acknowledgments with CR. simple-hl7 answers only the first of two messages that come at once;
node-hl7-server handles all earlier messages on a socket again with each new one, so it is to be given one message a socket.
"""

import argparse
import os
import pathlib
import socket
import subprocess
import sys
import time

from peer import announce, stop_with_stdin


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port: int, child: subprocess.Popen) -> None:
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if child.poll() is not None:
            sys.exit("the receiver ended before it listened")
        time.sleep(0.05)
    sys.exit("the receiver does not listen")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("library", choices=["node-hl7-server", "simple-hl7"])
    parser.add_argument("--log", default="")
    parser.add_argument("--stop-with-stdin", action="store_true")
    arguments = parser.parse_args()
    lab = pathlib.Path(os.environ.get("POSTRIDER_PEERS_NODE", "target/peers/node")).resolve()
    port = free_port()
    script = pathlib.Path(__file__).with_name("mllp_node.cjs")
    command = ["node", str(script), arguments.library, str(port), arguments.log]
    environment = {**os.environ, "NODE_PATH": str(lab / "node_modules")}
    child = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    if arguments.stop_with_stdin:
        stop_with_stdin(child.kill)
    try:
        wait_for(port, child)
        announce(port)
        sys.exit(child.wait())
    finally:
        child.kill()


if __name__ == "__main__":
    main()
