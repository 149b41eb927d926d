"""A SOAP service in both versions: spyne behind wsgiref.

    python soap_spyne.py [--port N] [--stop-with-stdin]

It prints `{"port": N}` once it answers. SOAP 1.1 is at `/v11/`, SOAP 1.2 at `/v12/`, each with its WSDL at `?wsdl`. Operations:

    Submit(message, count)   -> an id; a complex value with a list
    Beds(wards)              -> a list of wards, each with its beds
    Refuse(reason)           -> a fault `Client.Refused`
    Slow(seconds)            -> answers late

`GET /__log` is every SOAP request in the order of arrival: path, action, content type and body as they came.
It must not know anything of Postrider.
"""

import argparse
import base64
import json
import threading
import time
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from peer import announce, stop_with_stdin
from spyne import Application, Array, ComplexModel, Fault, Integer, ServiceBase, Unicode, rpc
from spyne.protocol.soap import Soap11, Soap12
from spyne.server.wsgi import WsgiApplication

NAMESPACE = "urn:lab:registry"


class Receipt(ComplexModel):
    __namespace__ = NAMESPACE
    id = Unicode
    notes = Array(Unicode)


class Ward(ComplexModel):
    __namespace__ = NAMESPACE
    name = Unicode
    beds = Integer


class Registry(ServiceBase):
    @rpc(Unicode, Integer, _returns=Receipt)
    def Submit(ctx, message, count):
        return Receipt(id=f"R-{message}-{count}", notes=["first", "second & last"])

    @rpc(Array(Ward), _returns=Array(Ward))
    def Beds(ctx, wards):
        return [Ward(name=ward.name, beds=(ward.beds or 0) + 1) for ward in wards or []]

    @rpc(Unicode, _returns=Unicode)
    def Refuse(ctx, reason):
        raise Fault("Client.Refused", reason)

    @rpc(Integer, _returns=Unicode)
    def Slow(ctx, seconds):
        time.sleep(seconds)
        return "late"


class Log:
    def __init__(self) -> None:
        self.entries: list[dict] = []
        self.lock = threading.Lock()

    def around(self, versions: dict):
        def application(environ, start_response):
            path = environ.get("PATH_INFO", "")
            if path == "/__log":
                with self.lock:
                    body = json.dumps(self.entries).encode()
                start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
                return [body]
            if environ["REQUEST_METHOD"] == "POST":
                environ["wsgi.input"] = self.read(environ, path)
            for prefix, version in versions.items():
                if path.startswith(prefix):
                    return version(environ, start_response)
            start_response("404 Not Found", [("Content-Length", "0")])
            return [b""]

        return application

    def read(self, environ, path: str):
        import io

        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        entry = {
            "path": path,
            "action": environ.get("HTTP_SOAPACTION"),
            "content_type": environ.get("CONTENT_TYPE"),
            "msg_id": environ.get("HTTP_X_POSTRIDER_MSG_ID"),
            "body_base64": base64.b64encode(body).decode(),
        }
        with self.lock:
            self.entries.append(entry)
        return io.BytesIO(body)


class Threaded(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Quiet(WSGIRequestHandler):
    def log_message(self, *args) -> None:
        pass


def service(protocol) -> WsgiApplication:
    application = Application(
        [Registry], tns=NAMESPACE, name="Registry", in_protocol=protocol(validator="lxml"), out_protocol=protocol()
    )
    return WsgiApplication(application)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--stop-with-stdin", action="store_true")
    options = parser.parse_args()
    if options.stop_with_stdin:
        stop_with_stdin()
    application = Log().around({"/v11": service(Soap11), "/v12": service(Soap12)})
    server = make_server("127.0.0.1", options.port, application, server_class=Threaded, handler_class=Quiet)
    announce(server.server_port)
    server.serve_forever()


if __name__ == "__main__":
    main()
