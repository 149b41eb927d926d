"""An HTTPS receiver that lets nobody in without a client certificate: Python's `ssl` (OpenSSL) behind its own HTTP server.

    python https_demanding.py --cert FILE --key FILE --client-ca FILE [--tls 1.2|1.3] [--stop-with-stdin]

It prints `{"port": N}` once it listens on 127.0.0.1. Every POST is answered 200 with `{"client": NAME}`, the common name of the certificate
that was shown. It must not know anything of Postrider: it is here because its TLS is not the one that Postrider is built on.
"""

import argparse
import json
import ssl
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from peer import announce, stop_with_stdin

VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        subject = self.connection.getpeercert()["subject"]
        name = next(value for part in subject for key, value in part if key == "commonName")
        body = json.dumps({"client": name}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.context = context

    def finish_request(self, request, client_address) -> None:
        # Here, in the thread of the connection: one that does not finish its handshake holds nobody up.
        try:
            request = self.context.wrap_socket(request, server_side=True)
        except OSError:
            return
        super().finish_request(request, client_address)
        request.close()

    def handle_error(self, request, client_address) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cert", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--client-ca", required=True)
    parser.add_argument("--tls", choices=VERSIONS)
    parser.add_argument("--stop-with-stdin", action="store_true")
    arguments = parser.parse_args()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(arguments.cert, arguments.key)
    context.load_verify_locations(arguments.client_ca)
    context.verify_mode = ssl.CERT_REQUIRED
    if arguments.tls:
        context.minimum_version = context.maximum_version = VERSIONS[arguments.tls]
    server = Server(context)
    announce(server.server_address[1])
    if arguments.stop_with_stdin:
        stop_with_stdin()
    server.serve_forever()


if __name__ == "__main__":
    main()
