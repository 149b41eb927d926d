"""The package as such: typed, twinned, old Pythons, and a wheel that needs nothing."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import zipfile

from conftest import PYTHON_DIR


def run(*command, program=sys.executable):
    done = subprocess.run([program, *command], cwd=PYTHON_DIR, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_everything_is_typed(tmp_path):
    run("-m", "mypy", "--strict", "--cache-dir", str(tmp_path), "src", "tools", "tests/typed.py")


def test_the_blocking_client_is_what_the_async_one_makes():
    run("tools/unasync.py", "--check")


def test_nothing_newer_than_python_3_9_is_used():
    vermin = pathlib.Path(sys.executable).with_name("vermin")
    run("--target=3.9-", "--no-tips", "--violations", "src", program=vermin)


def test_the_wheel_installs_without_the_network_and_needs_nothing_else(tmp_path):
    run("-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path))
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        metadata = next(opened.read(name).decode() for name in names if name.endswith("METADATA"))
    assert "postrider/py.typed" in names and "postrider/services/__main__.py" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "Requires-Dist" not in metadata and "Requires-Python: >=3.9" in metadata
    target = tmp_path / "installed"
    run("-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(target), str(wheel))
    # -S leaves out every other installed package.
    said = run(
        "-S",
        "-c",
        f"import sys; sys.path.insert(0, {str(target)!r}); import postrider, postrider.services; print(postrider.__file__)",
    )
    assert pathlib.Path(said.strip()).is_relative_to(target)
