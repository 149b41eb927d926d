"""Starts peers for the lab's own tests, the way that other tests start them."""

import json
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent


@pytest.fixture
def start():
    """`start("http_receiver.py", …)` → the address of the running peer."""
    running = []

    def run(program: str, *options: str) -> str:
        command = [sys.executable, str(HERE / program), "--stop-with-stdin", *options]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        running.append(process)
        return f"http://127.0.0.1:{json.loads(process.stdout.readline())['port']}"

    yield run
    for process in running:
        # Closing the pipe is all that it takes: that a peer ends so is part of what is tested.
        process.stdin.close()
        process.wait(timeout=20)
