"""A receiver of HL7 over MLLP: the server of the package hl7apy, which parses what it is given and closes the socket after each answer.

    python mllp_hl7apy.py [--log FILE] [--stop-with-stdin]

It prints `{"port": N}` once it listens on 127.0.0.1. Which code a message gets is written in its control id, as `mllp_python.py` has it. Its
acknowledgments are built with hl7apy as well. It must not know anything of Postrider.
"""

import argparse
import threading

from hl7apy.core import Message
from hl7apy.mllp import AbstractErrorHandler, AbstractHandler, MLLPServer
from hl7apy.parser import parse_message
from peer import announce, stop_with_stdin


class Receiver:
    def __init__(self, log: str | None) -> None:
        self.log = open(log, "a", buffering=1) if log else None
        self.lock = threading.Lock()
        self.seen: set[str] = set()

    def code(self, control_id: str) -> str | None:
        with self.lock:
            if self.log:
                print(control_id, file=self.log)
            is_first = control_id not in self.seen
            self.seen.add(control_id)
        for code in ("AE", "AR", "MUTE"):
            if f"-{code}" in control_id:
                says = is_first or "-ONCE-" not in control_id
                return (None if code == "MUTE" else code) if says else "AA"
        return "AA"


class Adt(AbstractHandler):
    def __init__(self, message: str, receiver: Receiver) -> None:
        super().__init__(message)
        self.receiver = receiver

    def reply(self) -> str:
        message = parse_message(self.incoming_message, find_groups=False)
        control_id = message.msh.msh_10.value
        code = self.receiver.code(control_id)
        if code is None:
            threading.Event().wait()
        answer = Message("ACK", version="2.5")
        answer.msh.msh_9 = "ACK^A01^ACK"
        answer.msh.msh_10 = f"R{control_id}"
        answer.msa.msa_1 = code
        answer.msa.msa_2 = control_id
        return answer.to_mllp()


class Unknown(AbstractErrorHandler):
    def reply(self) -> str:
        raise self.exc


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--log")
    parser.add_argument("--stop-with-stdin", action="store_true")
    arguments = parser.parse_args()
    receiver = Receiver(arguments.log)
    handlers = {"ADT^A01^ADT_A01": (Adt, receiver), "ERR": (Unknown,)}
    MLLPServer.daemon_threads = True
    server = MLLPServer("127.0.0.1", 0, handlers)
    announce(server.server_address[1])
    if arguments.stop_with_stdin:
        stop_with_stdin()
    server.serve_forever()


if __name__ == "__main__":
    main()
