"""A receiver of HL7 over MLLP: the asyncio server of the package hl7 behind a small command.

    python mllp_python.py [--log FILE] [--limit BYTES] [--stop-with-stdin]

It prints `{"port": N}` once it listens. Each message is acknowledged with the package's own `create_ack`. What it says is written in the
message's control id (MSH-10): one that has `-AE` or `-AR` in it gets that code, `-ONCE-AR` and `-ONCE-MUTE` only the first time. `--log`:
the control id of every message, one a line, in the order of arrival. A message over the limit (64 KiB) gets no acknowledgment.

It must not know anything of Postrider.
"""

import argparse
import asyncio

import hl7.mllp
from peer import announce, stop_with_stdin


class Receiver:
    def __init__(self, log: str | None) -> None:
        self.log = open(log, "a", buffering=1) if log else None
        self.seen: set[str] = set()

    def code(self, control_id: str) -> str | None:
        """The acknowledgment code; None for silence."""
        is_first = control_id not in self.seen
        self.seen.add(control_id)
        for code in ("AE", "AR", "MUTE"):
            if f"-{code}" in control_id:
                says = is_first or "-ONCE-" not in control_id
                return (None if code == "MUTE" else code) if says else "AA"
        return "AA"

    async def serve(self, reader: hl7.mllp.HL7StreamReader, writer: hl7.mllp.HL7StreamWriter) -> None:
        try:
            while True:
                message = await reader.readmessage()
                control_id = str(message.segment("MSH")(10))
                if self.log:
                    print(control_id, file=self.log)
                if code := self.code(control_id):
                    writer.writemessage(message.create_ack(code))
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--log")
    parser.add_argument("--limit", type=int, default=64 * 1024)
    parser.add_argument("--stop-with-stdin", action="store_true")
    arguments = parser.parse_args()
    receiver = Receiver(arguments.log)
    server = await hl7.mllp.start_hl7_server(
        receiver.serve, "127.0.0.1", 0, limit=arguments.limit, encoding="utf-8", encoding_errors="surrogateescape"
    )
    announce(server.sockets[0].getsockname()[1])
    if arguments.stop_with_stdin:
        stop_with_stdin()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
