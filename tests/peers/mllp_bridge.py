"""A receiver of HL7 over MLLP that answers whatever an HTTP server says: `mllp2http` of the package mllp-http on a free port.

    python mllp_bridge.py URL [--stop-with-stdin]

It prints `{"port": N}` once it listens on 127.0.0.1. Each message is posted to the URL, and the body of the answer is framed as the
acknowledgment, byte for byte; a status that is no success closes the socket without one. It must not know anything of Postrider.
"""

import argparse
import functools
import urllib.parse

from mllp_http.mllp2http import HttpClientOptions, MllpHandler, ThreadedTCPServer
from peer import announce, stop_with_stdin


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--stop-with-stdin", action="store_true")
    arguments = parser.parse_args()
    handler = functools.partial(
        MllpHandler,
        http_url=urllib.parse.urlparse(arguments.url),
        http_options=HttpClientOptions("x-application/hl7-v2+er7", 10),
        timeout=60,
    )
    ThreadedTCPServer.daemon_threads = True
    server = ThreadedTCPServer(("127.0.0.1", 0), handler)
    announce(server.server_address[1])
    if arguments.stop_with_stdin:
        stop_with_stdin()
    server.serve_forever()


if __name__ == "__main__":
    main()
