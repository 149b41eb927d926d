"""A collector of traces: takes OTLP over HTTP in JSON and reads it with the official definitions (PyPI opentelemetry-proto).

    python otlp_collector.py [--stop-with-stdin]

It prints `{"port": N}` once it answers. `POST /v1/traces` takes an ExportTraceServiceRequest; a field that the definitions do not know is refused.

    PUT /__mode                   {"status": 200, "delay_ms": 0}: how it answers
    GET /__log[?at_least=N&timeout_ms=MS]   {"spans": […], "requests": N, "authorization": "…"}: every span as the definitions read it, ids in hexadecimal

It must not know anything of Postrider.
"""

import argparse
import base64
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from peer import announce, stop_with_stdin

mode = {"status": 200, "delay_ms": 0}
spans: list[dict] = []
seen = {"requests": 0, "authorization": None, "refused": None}
changed = threading.Condition()


def ids_in_base64(request: dict) -> dict:
    """OTLP's JSON has ids in hexadecimal, the mapping of protobuf has bytes in base64: the one difference that the specification makes."""
    for resource in request.get("resourceSpans", []):
        for scope in resource.get("scopeSpans", []):
            for span in scope.get("spans", []):
                for name in ("traceId", "spanId", "parentSpanId"):
                    if name in span:
                        span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    return request


def read(body: bytes) -> list[dict]:
    message = json_format.ParseDict(ids_in_base64(json.loads(body)), ExportTraceServiceRequest())
    found = []
    for resource in message.resource_spans:
        service = {a.key: a.value.string_value for a in resource.resource.attributes}["service.name"]
        for scope in resource.scope_spans:
            for span in scope.spans:
                assert len(span.trace_id) == 16 and len(span.span_id) == 8, "the lengths of ids"
                assert span.end_time_unix_nano >= span.start_time_unix_nano > 0, "times"
                found.append(
                    {
                        "service": service,
                        "trace_id": span.trace_id.hex(),
                        "span_id": span.span_id.hex(),
                        "parent": span.parent_span_id.hex(),
                        "state": span.trace_state,
                        "name": span.name,
                        "kind": span.kind,
                        "status": span.status.code,
                        "attributes": {
                            a.key: a.value.string_value or a.value.int_value for a in span.attributes
                        },
                    }
                )
    return found


class Collector(BaseHTTPRequestHandler):
    def answer(self, status: int, value) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"]))

    def do_POST(self):
        body = self.body()
        time.sleep(mode["delay_ms"] / 1000)
        with changed:
            seen["requests"] += 1
            seen["authorization"] = self.headers.get("Authorization")
            changed.notify_all()
        if mode["status"] != 200:
            return self.answer(mode["status"], {})
        try:
            assert self.path == "/v1/traces" and self.headers["Content-Type"] == "application/json"
            found = read(body)
        except Exception as error:
            seen["refused"] = repr(error)
            return self.answer(400, {"message": repr(error)})
        with changed:
            spans.extend(found)
            changed.notify_all()
        self.answer(200, {})

    def do_PUT(self):
        mode.update(json.loads(self.body()))
        self.answer(200, mode)

    def do_GET(self):
        query = parse_qs(urlparse(self.path).query)
        at_least = int(query.get("at_least", ["0"])[0])
        with changed:
            changed.wait_for(lambda: len(spans) >= at_least, int(query.get("timeout_ms", ["20000"])[0]) / 1000)
            self.answer(200, {"spans": spans, **seen})

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--stop-with-stdin", action="store_true")
    if parser.parse_args().stop_with_stdin:
        stop_with_stdin()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    announce(server.server_port)
    server.serve_forever()
