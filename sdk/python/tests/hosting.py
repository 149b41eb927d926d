"""What tests of the services host have in common: a service that tells what it saw, and how it is asked."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

from conftest import PATIENCE_S

CID = "20260312-120534-7301-7f2c0e51a"
ECHO = """
from postrider.services import AsyncService, Service

class Echo(Service):
    def handle(self):
        request = self.request
        self.logger.info("ran as attempt %d", request.attempt)
        self.response.payload = {
            "method": request.method, "path": request.path, "query": request.query.pairs, "headers": dict(request.headers),
            "raw": request.raw.decode("latin-1"), "payload": request.payload, "cid": self.cid, "channel": request.channel,
            "attempt": request.attempt, "msg_id": request.queue.msg_id, "path_params": dict(request.path_params),
        }

class Verbs(Service):
    name = "verbs of ö"

    def handle_GET(self):
        self.response.payload = "<got/>"

    async def handle_POST(self):
        self.response.status_code = 201
        self.response.headers["X-Own"] = "1"
        self.response.payload = self.request.raw
        self.response.content_type = "image/png"

class Later(AsyncService):
    name = "later"

    async def handle(self):
        return {"later": self.cid}
"""
OURS = {
    "X-Postrider-Cid": CID,
    "X-Postrider-Msg-Id": "msg_1",
    "X-Postrider-Channel": "Orders%20%C3%BC",
    "X-Postrider-Attempt": "3",
}


def ask(url, body=None, method="POST", headers=None):
    """Status, headers and JSON of an answer of the host."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", **(headers or {})}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return answer.status, answer.headers, json.loads(answer.read() or "null")
    except urllib.error.HTTPError as refused:
        return refused.code, refused.headers, json.loads(refused.read())
