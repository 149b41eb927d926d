"""Starts a server that runs in Node.js from a package of the peer lab, and says where it listens."""

import json
import os
import pathlib
import subprocess
import sys

from peer import announce, stop_with_stdin


def serve(package: str, script: str) -> None:
    """Runs `script` of this folder, which prints `{"port": N}` once it answers, until it ends."""
    lab = pathlib.Path(os.environ.get("POSTRIDER_PEERS_NODE", "target/peers/node"))
    if not (lab / "node_modules" / package).exists():
        sys.exit(f"there is no npm `{package}` under {lab}; `cargo xtask peers` installs it")
    environment = {**os.environ, "NODE_PATH": str((lab / "node_modules").resolve())}
    child = subprocess.Popen(
        ["node", str(pathlib.Path(__file__).with_name(script))],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    if "--stop-with-stdin" in sys.argv[1:]:
        stop_with_stdin(lambda: (child.kill(), os._exit(0)))
    try:
        announce(json.loads(child.stdout.readline())["port"])
        child.wait()
    finally:
        child.kill()
