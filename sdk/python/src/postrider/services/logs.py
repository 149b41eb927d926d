"""Logs on standard error, as text or JSON, each line with the correlation id of the run that wrote it.

Bodies, headers and keys are never logged from here; what a service logs is its own matter.
"""

from __future__ import annotations

import contextvars
import json
import logging
import sys
from datetime import datetime, timezone

CID: "contextvars.ContextVar[str]" = contextvars.ContextVar("postrider_cid", default="")
"""The correlation id of the run under way in this thread or task."""


class _TextLines(logging.Formatter):
    """`2026-03-12T12:05:34.730Z INFO orders.order-intake cid=… message`"""

    def format(self, record: logging.LogRecord) -> str:
        cid = CID.get()
        under = f" cid={cid}" if cid else ""
        line = f"{_at(record)} {record.levelname} {record.name}{under} {_one_line(record.getMessage())}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class _JsonLines(logging.Formatter):
    """One object a line: `at`, `level`, `logger`, `cid`, `message`, and `error` with the stack trace."""

    def format(self, record: logging.LogRecord) -> str:
        members = {"at": _at(record), "level": record.levelname, "logger": record.name, "message": record.getMessage()}
        if CID.get():
            members["cid"] = CID.get()
        if record.exc_info:
            members["error"] = self.formatException(record.exc_info)
        return json.dumps(members, ensure_ascii=False)


def set_up(style: str, level: str) -> None:
    """Sends every logger's lines to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines() if style == "json" else _TextLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # A character that the terminal's encoding lacks must not cost the line.
    if hasattr(sys.stderr, "reconfigure"):
        sys.stderr.reconfigure(errors="backslashreplace")


def _at(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, timezone.utc)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _one_line(message: str) -> str:
    """Line ends and control characters are shown escaped: what others sent must not write lines of its own."""
    if message.isprintable():
        return message
    return "".join(c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode("ascii") for c in message)
