"""The receivers of HL7 acknowledge as their manuals say."""

import socket
import urllib.parse

import pytest

PEERS = [("mllp_python.py",), ("mllp_node.py", "node-hl7-server"), ("mllp_node.py", "simple-hl7")]


def send(port: int, control_id: str) -> str:
    message = f"MSH|^~\\&|HIS|GH|LIS|GH|20260312120534||ADT^A01^ADT_A01|{control_id}|P|2.5\rPID|1||7\r"
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(b"\x0b" + message.encode() + b"\x1c\r")
        while not answer.endswith(b"\x1c\r"):
            read = connection.recv(4096)
            assert read, "closed"
            answer += read
    segments = answer[1:-2].decode().split("\r")
    return next(segment for segment in segments if segment.startswith("MSA"))


@pytest.mark.parametrize("program", PEERS, ids=[program[-1] for program in PEERS])
def test_the_code_is_the_one_in_the_control_id(start, tmp_path, program):
    log = tmp_path / "log"
    port = urllib.parse.urlsplit(start(*program, "--log", str(log))).port
    said = [send(port, control_id) for control_id in ("1", "2-AE", "3-AR", "4-ONCE-AR", "4-ONCE-AR")]
    assert said == ["MSA|AA|1", "MSA|AE|2-AE", "MSA|AR|3-AR", "MSA|AR|4-ONCE-AR", "MSA|AA|4-ONCE-AR"]
    assert log.read_text().split() == ["1", "2-AE", "3-AR", "4-ONCE-AR", "4-ONCE-AR"]
