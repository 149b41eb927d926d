"""A sender of HL7 over MLLP: the package hl7, and for TLS a bare socket, since that package has none.

    python mllp_sender.py       reads one JSON object on standard input, prints one

    {"host", "port", "messages": […], "tls": {"ca": FILE, "cert": FILE or null, "key": FILE or null} or null}
    {"acks": [{"code", "id", "sender", "receiver", "text"}, …]} or {"error": text}

Each acknowledgment is read by the package hl7. It must not know anything of Postrider.
"""

import json
import socket
import ssl
import sys

import hl7
from hl7.client import MLLPClient

VT, FS, CR = b"\x0b", b"\x1c", b"\r"


def by_library(asked):
    with MLLPClient(asked["host"], asked["port"]) as client:
        client.socket.settimeout(20)
        for message in asked["messages"]:
            yield client.send_message(message.encode())


def over_tls(asked):
    tls = asked["tls"]
    context = ssl.create_default_context(cafile=tls["ca"])
    context.check_hostname = False
    if tls.get("cert"):
        context.load_cert_chain(tls["cert"], tls["key"])
    with socket.create_connection((asked["host"], asked["port"]), timeout=20) as bare:
        with context.wrap_socket(bare) as sock:
            for message in asked["messages"]:
                sock.sendall(VT + message.encode() + FS + CR)
                ack = b""
                while not ack.endswith(FS + CR):
                    some = sock.recv(4096)
                    if not some:
                        raise EOFError("closed without an acknowledgment")
                    ack += some
                yield ack


def read(framed):
    message = hl7.parse(framed.strip(VT + FS + CR).decode())
    msh, msa = message.segment("MSH"), message.segment("MSA")
    return {
        "code": str(msa[1]),
        "id": str(msa[2]),
        "text": str(msa[3]) if len(msa) > 3 else "",
        "sender": [str(msh[3]), str(msh[4])],
        "receiver": [str(msh[5]), str(msh[6])],
        "type": str(msh[9]),
    }


def main():
    asked = json.load(sys.stdin)
    try:
        framed = over_tls(asked) if asked.get("tls") else by_library(asked)
        print(json.dumps({"acks": [read(one) for one in framed]}))
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}))


if __name__ == "__main__":
    main()
