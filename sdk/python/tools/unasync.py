"""Makes `postrider/_sync` from `postrider/_async`, so that each line of the client is written once.

    python tools/unasync.py            writes the folder
    python tools/unasync.py --check    fails when it is not what would be written

The async source keeps to what these rules can read: names begin with `Async`, and nothing runs side by side.
"""

from __future__ import annotations

import pathlib
import re
import sys

PACKAGE = pathlib.Path(__file__).parent.parent / "src" / "postrider"
RULES = [
    (r"\bAsync([A-Z]\w*)", r"\1"),
    (r"\bconnect_async\b", "connect"),
    (r"\basync (def|for|with)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\b__a(enter|exit)__\b", r"__\1__"),
    (r"\baclose\b", "close"),
    (r"\bimport asyncio\b", "import time"),
    (r"\basyncio\.sleep\b", "time.sleep"),
]
MARK = "# Made by tools/unasync.py from _async/{name}: change it there.\n"


def made_from(source: str, name: str) -> str:
    """The blocking twin of a source file."""
    for pattern, replacement in RULES:
        source = re.sub(pattern, replacement, source)
    # A file that had both imports has one twice.
    source = source.replace("import time\nimport time\n", "import time\n")
    return MARK.format(name=name) + source


def main() -> int:
    """Writes or checks every file."""
    wanted = {path.name: made_from(path.read_text("utf-8"), path.name) for path in (PACKAGE / "_async").glob("*.py")}
    wanted["__init__.py"] = '"""The blocking client, made from `_async` by `tools/unasync.py`."""\n'
    folder = PACKAGE / "_sync"
    if "--check" in sys.argv[1:]:
        present = {path.name: path.read_text("utf-8") for path in folder.glob("*.py")}
        stale = sorted(name for name in {*wanted, *present} if wanted.get(name) != present.get(name))
        for name in stale:
            print(f"_sync/{name} is not what tools/unasync.py makes of _async/{name}: run it")
        return 1 if stale else 0
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.py"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (folder / name).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
