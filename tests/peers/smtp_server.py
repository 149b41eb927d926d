"""A mail server that behaves as it is told, and remembers every mail: aiosmtpd behind a small command over HTTP.

    python smtp_server.py [--stop-with-stdin]

It prints `{"port": N}` of the command once both answer.

    GET /__ports                  {"plain": N, "starttls": N, "tls": N, "ca": PATH}; the last two ask for the login `ada` / `sesame`
    PUT /__mode                   {"greylist": 2, "refuse": false, "hang": false}: the next two mails get 451; every mail 550; no answer to DATA
    GET /__log[?at_least=N&timeout_ms=MS]   {"mails": [{"from", "to", "data", "tls"}], "tries": N}

The certificate of `localhost` and its authority come from files in `--tls DIR` (cert.pem, key.pem), where the tests put them.
It must not know anything of Postrider: it is here because we did not write the SMTP server inside it.
"""

import argparse
import asyncio
import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlparse

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from peer import announce, stop_with_stdin


class Receiver:
    def __init__(self):
        self.mode = {"greylist": 0, "refuse": False, "hang": False}
        self.mails = []
        self.tries = 0
        self.changed = threading.Condition()

    async def handle_MAIL(self, server, session, envelope, address, options):
        with self.changed:
            self.tries += 1
            self.changed.notify_all()
            if self.mode["greylist"] > 0:
                self.mode["greylist"] -= 1
                return "451 4.7.1 greylisted, try again later"
            if self.mode["refuse"]:
                return "550 5.7.1 not wanted here"
        envelope.mail_from = address
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        while self.mode["hang"]:
            await asyncio.sleep(0.05)
        with self.changed:
            self.mails.append(
                {
                    "from": envelope.mail_from,
                    "to": envelope.rcpt_tos,
                    "data": envelope.content.decode("utf-8", "replace"),
                    "tls": session.ssl is not None or server.transport.get_extra_info("ssl_object") is not None,
                }
            )
            self.changed.notify_all()
        return "250 taken"

    def log(self, at_least, timeout_s):
        with self.changed:
            self.changed.wait_for(lambda: len(self.mails) >= at_least, timeout_s)
            return {"mails": list(self.mails), "tries": self.tries}


def authenticate(server, session, envelope, mechanism, data):
    return AuthResult(success=data.login == b"ada" and data.password == b"sesame", handled=False)


class FreePort(Controller):
    """`Controller` with port 0 connects to itself there; it is told the port that it got."""

    def _trigger_server(self):
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tls")
    parser.add_argument("--stop-with-stdin", action="store_true")
    arguments = parser.parse_args()
    receiver = Receiver()
    ports = {}

    def listen(name, **more):
        controller = FreePort(receiver, hostname="127.0.0.1", port=0, **more)
        controller.start()
        ports[name] = controller.port

    listen("plain")

    def listen_with_tls(folder):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(Path(folder) / "cert.pem", Path(folder) / "key.pem")
        login = {"authenticator": authenticate, "auth_required": True}
        listen("starttls", tls_context=context, require_starttls=True, **login)
        listen("tls", ssl_context=context, auth_require_tls=False, **login)

    class Command(BaseHTTPRequestHandler):
        def answer(self, value):
            body = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            url = urlparse(self.path)
            query = parse_qs(url.query)
            if url.path == "/__ports":
                return self.answer(ports)
            at_least = int(query.get("at_least", ["0"])[0])
            self.answer(receiver.log(at_least, int(query.get("timeout_ms", ["20000"])[0]) / 1000))

        def do_PUT(self):
            value = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path == "/__tls":
                listen_with_tls(value["folder"])
            else:
                receiver.mode.update(value)
            self.answer(ports)

        def log_message(self, *_):
            pass

    if arguments.tls:
        listen_with_tls(arguments.tls)
    command = ThreadingHTTPServer(("127.0.0.1", 0), Command)
    if arguments.stop_with_stdin:
        stop_with_stdin()
    announce(command.server_port)
    command.serve_forever()


if __name__ == "__main__":
    main()
