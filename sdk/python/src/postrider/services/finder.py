"""Finds the services in a folder of Python files. It must not know what a service does."""

from __future__ import annotations

import importlib
import importlib.util
import pathlib
import sys
import traceback
import types
from typing import Dict, Iterable, List, Tuple, Type, Union

from .service import AsyncService, Service

_MADE = "Made by --import-alias."

AnyService = Union[Type[Service], Type[AsyncService]]


class CannotLoad(Exception):
    """The folder cannot be served; `reasons` has a line for each thing that is wrong."""

    def __init__(self, reasons: List[str]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = reasons


def find(folder: pathlib.Path) -> Dict[str, AnyService]:
    """Every service below the folder, by name.

    Each `.py` file is imported once, as the module that its path says, so the files can import each other. Files and folders that begin
    with `_` or `.` hold no services.

    Raises:
        CannotLoad: a file cannot be imported, two services have one name, or there are none.
    """
    if not folder.is_dir():
        raise CannotLoad([f"{folder} is no folder"])
    sys.path.insert(0, str(folder.resolve()))
    found: Dict[str, AnyService] = {}
    reasons: List[str] = []
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        if any(part[0] in "_." for part in parts):
            continue
        try:
            _take(found, reasons, path, importlib.import_module(".".join(parts)))
        except BaseException as error:  # Whatever a file does when it is imported, the others are looked at too.
            if isinstance(error, KeyboardInterrupt):
                raise
            reasons.append(f"{path}: {_where(error, path)}")
    if not found and not reasons:
        reasons.append(
            f"there is no service in {folder}: a class that derives from postrider.services.Service and has `handle`"
        )
    if reasons:
        raise CannotLoad(reasons)
    return found


def _take(found: Dict[str, AnyService], reasons: List[str], path: pathlib.Path, module: object) -> None:
    known = getattr(module, "__file__", None)
    if known is None or pathlib.Path(known).resolve() != path.resolve():
        reasons.append(f"{path}: its name is that of another module of Python ({known}): rename it")
        return
    for service in vars(module).values():
        is_service = isinstance(service, type) and issubclass(service, (Service, AsyncService))
        if not is_service or service.__module__ != getattr(module, "__name__", None) or not service.is_runnable():
            continue
        name = service.service_name()
        if not isinstance(name, str) or "/" in name or not name.isprintable():
            reasons.append(f"{path}: {service.__name__} has the name {name!r}: a text without `/` is allowed")
        elif found.get(name, service) is not service:
            other = found[name]
            reasons.append(
                f"{path}: {service.__name__} and {other.__module__}.{other.__name__} are both called `{name}`"
            )
        else:
            found[name] = service


def alias(pairs: Iterable[Tuple[str, str]]) -> None:
    """Lets files import `old` and get `new`, for services written for a platform with the same classes.

    Raises:
        CannotLoad: `new` is no module, or `old` is one that is already there.
    """
    for old, new in pairs:
        said = f"--import-alias {old}={new}"
        try:
            module = importlib.import_module(new)
        except ImportError as error:
            raise CannotLoad([f"{said}: {error}"]) from error
        parts = old.split(".")
        known = sys.modules.get(parts[0])
        is_ours = known is not None and known.__doc__ == _MADE
        if not is_ours and (known is not None or importlib.util.find_spec(parts[0]) is not None):
            raise CannotLoad([f"{said}: there is a module `{parts[0]}` already"])
        for count in range(1, len(parts)):
            above = ".".join(parts[:count])
            sys.modules.setdefault(above, types.ModuleType(above, _MADE))
        sys.modules[old] = module


def _where(error: BaseException, path: pathlib.Path) -> str:
    """The error with the line of the file that it comes from."""
    if isinstance(error, SyntaxError) and error.filename and pathlib.Path(error.filename) == path.resolve():
        return f"line {error.lineno}: {error.msg}"
    lines = [one.lineno for one in traceback.extract_tb(error.__traceback__) if one.filename == str(path.resolve())]
    at = f"line {lines[-1]}: " if lines else ""
    return f"{at}{type(error).__name__}: {error}"
