"""A receiver that answers as a script says and remembers every request: pytest-httpserver behind a small command.

    python http_receiver.py [--script FILE] [--port N] [--stop-with-stdin]

It prints `{"port": N}` once it answers. The script, from the file or later by `PUT /__script`:

    {"rules": [{"method": "POST", "path": "/orders", "answers": [
         {"status": 500},
         {"status": 429, "headers": {"Retry-After": "2"}},
         {"status": 503, "retry_after_date_s": 3},
         {"status": 200, "delay_ms": 50, "body": "done"}]}],
     "default": {"status": 200}}

The first rule that fits answers; a rule without `method` or `path` fits all of them, a path that ends in `*` fits what begins so.
Answers are used up in order and the last one stays, or with `"cycle": true` the first one follows it. An answer may have `body`
or `body_base64`, and `headers` as a map or as a list of pairs.

    GET    /__log[?at_least=N&timeout_ms=MS&bodies=0]   every request in the order of arrival; waits until there are N
    DELETE /__log                                       forgets them
    PUT    /__script                                    another script; its answers start from their first

It closes the connection after each answer, and says so in it; WireMock is the peer that keeps connections.
It must not know anything of Postrider: it is here because we did not write the HTTP server inside it.
"""

import argparse
import base64
import hashlib
import json
import re
import threading
import time
from email.utils import formatdate

from peer import announce, stop_with_stdin
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response
from werkzeug.serving import WSGIRequestHandler


class Script:
    """Which answer is next. Refuses a script with a key that it does not know, for a typing error would be a test of nothing."""

    RULE_KEYS = {"method", "path", "answers", "cycle"}
    ANSWER_KEYS = {"status", "headers", "retry_after_date_s", "delay_ms", "body", "body_base64"}

    def __init__(self, script: dict) -> None:
        self._refuse_unknown(script, {"rules", "default"})
        self.rules = script.get("rules", [])
        self.default = script.get("default", {"status": 200})
        self._refuse_unknown(self.default, self.ANSWER_KEYS)
        for rule in self.rules:
            self._refuse_unknown(rule, self.RULE_KEYS)
            if not rule.get("answers"):
                raise ValueError("a rule needs at least one answer")
            for answer in rule["answers"]:
                self._refuse_unknown(answer, self.ANSWER_KEYS)
        self.used = [0] * len(self.rules)

    @staticmethod
    def _refuse_unknown(given: dict, known: set) -> None:
        if unknown := set(given) - known:
            raise ValueError(f"unknown keys {sorted(unknown)}, known are {sorted(known)}")

    def next_answer(self, method: str, path: str) -> dict:
        for number, rule in enumerate(self.rules):
            if rule.get("method", method) == method and self._fits(rule.get("path", path), path):
                answers, used = rule["answers"], self.used[number]
                self.used[number] += 1
                return answers[used % len(answers) if rule.get("cycle") else min(used, len(answers) - 1)]
        return self.default

    @staticmethod
    def _fits(wanted: str, path: str) -> bool:
        return path.startswith(wanted[:-1]) if wanted.endswith("*") else path == wanted


class Receiver:
    def __init__(self, script: dict) -> None:
        self.script = Script(script)
        self.log: list[dict] = []
        # Guards both of the above; a change of the log wakes those who wait for it.
        self.changed = threading.Condition()

    def receive(self, request: Request) -> Response:
        path, _, query = request.environ.get("RAW_URI", request.path).partition("?")
        entry = {
            "method": request.method,
            "path": path,
            "query": query,
            "headers": [[name, value] for name, value in request.headers.items()],
            "peer_port": request.environ.get("REMOTE_PORT"),
            "at_ms": round(time.time() * 1000, 3),
            "monotonic_ms": round(time.monotonic() * 1000, 3),
            "complete": False,
        }
        with self.changed:
            # The number and the answer are taken together, so that the n-th request gets the n-th answer.
            entry["number"] = len(self.log) + 1
            self.log.append(entry)
            answer = self.script.next_answer(request.method, path)
        body = request.get_data()
        with self.changed:
            entry["body_base64"] = base64.b64encode(body).decode()
            entry["body_sha256"] = hashlib.sha256(body).hexdigest()
            entry["status"] = answer.get("status", 200)
            entry["complete"] = True
            self.changed.notify_all()
        time.sleep(answer.get("delay_ms", 0) / 1000)
        return self._response(answer)

    @staticmethod
    def _response(answer: dict) -> Response:
        headers = answer.get("headers", {})
        pairs = list(headers.items()) if isinstance(headers, dict) else [tuple(pair) for pair in headers]
        if (seconds := answer.get("retry_after_date_s")) is not None:
            pairs.append(("Retry-After", formatdate(time.time() + seconds, usegmt=True)))
        body = base64.b64decode(answer["body_base64"]) if "body_base64" in answer else answer.get("body", "")
        return Response(body, status=answer.get("status", 200), headers=pairs)

    def show_log(self, request: Request) -> Response:
        if request.method == "DELETE":
            with self.changed:
                self.log.clear()
            return Response(status=204)
        at_least = request.args.get("at_least", 0, int)
        timeout_s = request.args.get("timeout_ms", 10_000, int) / 1000
        with self.changed:
            # Complete ones count, else a test could read an entry whose body is still on its way.
            enough = self.changed.wait_for(
                lambda: sum(entry["complete"] for entry in self.log) >= at_least, timeout_s
            )
            entries = [dict(entry) for entry in self.log]
        if request.args.get("bodies") == "0":
            for entry in entries:
                entry.pop("body_base64", None)
        return Response(json.dumps(entries), 200 if enough else 504, content_type="application/json")

    def take_script(self, request: Request) -> Response:
        try:
            script = Script(json.loads(request.get_data()))
        except (ValueError, TypeError, AttributeError) as error:
            return Response(f"{error}\n", status=400)
        with self.changed:
            self.script = script
        return Response(status=204)


def serve(receiver: Receiver, host: str, port: int) -> HTTPServer:
    # Needed for chunked bodies; the server inside speaks HTTP/1.0 by default.
    WSGIRequestHandler.protocol_version = "HTTP/1.1"
    server = HTTPServer(host=host, port=port, threaded=True)
    # Handlers registered first are asked first.
    server.expect_request("/__log", method="GET").respond_with_handler(receiver.show_log)
    server.expect_request("/__log", method="DELETE").respond_with_handler(receiver.show_log)
    server.expect_request("/__script", method="PUT").respond_with_handler(receiver.take_script)
    server.expect_request(re.compile(".*")).respond_with_handler(receiver.receive)
    server.start()
    return server


def main() -> None:
    parser = argparse.ArgumentParser(description="A scriptable HTTP receiver that remembers what it got.")
    parser.add_argument("--script", type=argparse.FileType())
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--stop-with-stdin", action="store_true", help="end when standard input ends")
    args = parser.parse_args()
    receiver = Receiver(json.load(args.script) if args.script else {})
    server = serve(receiver, args.host, args.port)
    if args.stop_with_stdin:
        stop_with_stdin()
    announce(server.port)
    threading.Event().wait()


if __name__ == "__main__":
    main()
