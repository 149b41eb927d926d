"""Starts a FHIR server made of npm `@medplum/fhir-router`: a real router over resources in memory.

    python fhir_medplum.py [--stop-with-stdin]

It prints `{"port": N}` once it answers. `fhir_medplum.cjs` beside it says what it offers.
"""

import json
import os
import pathlib
import subprocess
import sys

from peer import announce, stop_with_stdin


def main() -> None:
    lab = pathlib.Path(os.environ.get("POSTRIDER_PEERS_NODE", "target/peers/node"))
    if not (lab / "node_modules/@medplum/fhir-router").exists():
        sys.exit(f"there is no npm `@medplum/fhir-router` under {lab}; `cargo xtask peers` installs it")
    script = pathlib.Path(__file__).with_name("fhir_medplum.cjs")
    environment = {**os.environ, "NODE_PATH": str((lab / "node_modules").resolve())}
    child = subprocess.Popen(
        ["node", str(script)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env=environment
    )
    if "--stop-with-stdin" in sys.argv[1:]:
        stop_with_stdin(lambda: (child.kill(), os._exit(0)))
    try:
        announce(json.loads(child.stdout.readline())["port"])
        child.wait()
    finally:
        child.kill()


if __name__ == "__main__":
    main()
