"""`python -m postrider.services DIR`: serves the services in a folder."""

from __future__ import annotations

import argparse
import ipaddress
import logging
import os
import pathlib
import signal
import sys
import threading
from typing import List, Optional, Tuple

from ..errors import BadArgument
from . import finder, logs
from .host import Host, Limits
from .runner import Runner

log = logging.getLogger("postrider.services")


def arguments(given: Optional[List[str]] = None) -> argparse.Namespace:
    """The command line, read."""
    parser = argparse.ArgumentParser(
        prog="python -m postrider.services",
        description="Serves each class in the Python files of DIR that derives from postrider.services.Service, at /services/NAME.",
        epilog="From the environment: POSTRIDER_SERVER and POSTRIDER_KEY for calls that services make, POSTRIDER_SERVICES_TOKEN, "
        "which every request must then carry in X-Postrider-Token.",
    )
    parser.add_argument("folder", metavar="DIR", type=pathlib.Path)
    parser.add_argument(
        "--listen", metavar="HOST:PORT", default="127.0.0.1:9900", help="default %(default)s; port 0 takes a free one"
    )
    parser.add_argument("--server", metavar="URL", help="the Postrider server; default POSTRIDER_SERVER")
    parser.add_argument(
        "--project", default="default", help="the project of calls, where the request names none; default %(default)s"
    )
    parser.add_argument(
        "--runs", metavar="N", type=_from_one, default=Limits.runs_max, help="runs at once; default %(default)s"
    )
    parser.add_argument(
        "--wait-seconds",
        metavar="S",
        type=float,
        default=Limits.wait_for_run,
        help="how long a request waits for one of them to end before it is told to come later; default %(default)s",
    )
    parser.add_argument(
        "--stop-seconds", metavar="S", type=float, default=10.0, help="for runs to end at a stop; default %(default)s"
    )
    parser.add_argument("--log", choices=["text", "json"], default="text")
    parser.add_argument("--log-level", choices=["debug", "info", "warning", "error"], default="info")
    parser.add_argument(
        "--import-alias",
        metavar="OLD=NEW",
        action="append",
        default=[],
        help="lets files import OLD and get the module NEW, for services written elsewhere",
    )
    parser.add_argument("--stop-with-stdin", action="store_true", help="stop when standard input ends")
    return parser.parse_args(given)


def main(given: Optional[List[str]] = None) -> int:
    """Serves until it is stopped. 0 after a graceful stop, 1 when it cannot serve or runs were cut off, 2 for a bad command line."""
    options = arguments(given)
    logs.set_up(options.log, options.log_level)
    token = os.environ.get("POSTRIDER_SERVICES_TOKEN", "")
    try:
        address = _address(options.listen, token)
        aliases = [_alias(one) for one in options.import_alias]
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    try:
        finder.alias(aliases)
        services = finder.find(options.folder)
        runner = Runner(services, server=options.server, project=options.project)
        if os.environ.get("POSTRIDER_KEY") or os.environ.get("POSTRIDER_ADMIN_KEY"):
            # So that an address or a key that cannot be used shows now, and not at the first call.
            runner.client()
        host = Host(
            address, runner, token=token, limits=Limits(runs_max=options.runs, wait_for_run=options.wait_seconds)
        )
    except finder.CannotLoad as error:
        for reason in error.reasons:
            print(f"error: {reason}", file=sys.stderr)
        return 1
    except BadArgument as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: cannot listen on {options.listen}: {error}", file=sys.stderr)
        return 1
    return _serve(host, options)


def _serve(host: Host, options: argparse.Namespace) -> int:
    stop = threading.Event()

    def on_signal(*_: object) -> None:
        if stop.is_set():
            # The second one: at once. What had not ended is run again.
            os._exit(1)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    if options.stop_with_stdin:
        threading.Thread(target=_wait_for_end_of_input, args=(stop,), daemon=True).start()
    threading.Thread(target=host.serve_forever, kwargs={"poll_interval": 0.1}, name="accept", daemon=True).start()
    print(f"listening on {host.url}", flush=True)
    log.info("serving %s", ", ".join(sorted(host.runner.services)))
    while not stop.wait(0.2):
        pass
    log.info("stopping; a second signal stops at once")
    left = host.stop(options.stop_seconds)
    host.runner.close()
    if left:
        log.warning("stopped with %d runs that had not ended; the server runs them again", left)
    else:
        log.info("stopped")
    return 1 if left else 0


def _wait_for_end_of_input(stop: threading.Event) -> None:
    while sys.stdin.buffer.read(4096):
        pass
    stop.set()


def _address(listen: str, token: str) -> Tuple[str, int]:
    name, _, port = listen.rpartition(":")
    name = name.strip("[]")
    if not name or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"--listen is `{listen}`: HOST:PORT is allowed")
    try:
        is_here = name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        is_here = False
    if not is_here and not token:
        raise ValueError(f"--listen {listen} can be reached from other machines: set POSTRIDER_SERVICES_TOKEN first")
    return name, int(port)


def _alias(given: str) -> Tuple[str, str]:
    old, _, new = given.partition("=")
    if not all(part.isidentifier() for part in (*old.split("."), *new.split("."))):
        raise ValueError(f"--import-alias is `{given}`: OLD=NEW, two names of modules, is allowed")
    return old, new


def _from_one(given: str) -> int:
    if not given.isdigit() or int(given) < 1:
        raise argparse.ArgumentTypeError(f"{given!r}: a number from 1 on is allowed")
    return int(given)


if __name__ == "__main__":
    code = main()
    # Runs that hang are in threads that nothing can end.
    logging.shutdown()
    os._exit(code)
