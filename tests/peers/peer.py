"""What every peer of the lab has in common: it says on which port it listens, and it ends when its starter does.

It must not know what a peer answers.
"""

import json
import os
import sys
import threading


def announce(port: int) -> None:
    """Writes the one line that the starter waits for: the peer answers on this port from now on."""
    print(json.dumps({"port": port}), flush=True)


def stop_with_stdin(stop=lambda: os._exit(0)) -> None:
    """Calls `stop`, which ends the process, as soon as standard input ends.

    A test that dies closes the pipe, so no peer outlives it, however the test died.
    """

    def wait() -> None:
        while sys.stdin.buffer.read(4096):
            pass
        stop()

    threading.Thread(target=wait, daemon=True).start()
