"""The lock of the image: the versions that are tested, each with hashes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.lock import find_closure, find_hashes, read_page, read_pins, write_lock

ROOT = Path(__file__).parents[2]


def test_the_lock_has_the_versions_that_are_tested() -> None:
    text = (ROOT / "requirements.lock").read_text()
    entries = re.findall(
        r"^([a-z0-9-]+)==(\S+) \\\n((?:    --hash=sha256:[0-9a-f]{64}[^\n]*\n)+)", text, re.M
    )
    locked = {name: version for name, version, _ in entries}
    pins = read_pins((ROOT / "constraints.txt").read_text())

    assert len(entries) == text.count("==")
    assert locked == {name: pins[name] for name in locked}
    assert {"numpy", "aiohttp", "msgspec", "cel-expr-python"} <= locked.keys()
    assert "pytest" not in locked
    assert "requirements.lock" in (ROOT / "Dockerfile").read_text()


def test_a_page_of_an_index() -> None:
    digest = "ab" * 32
    files = read_page(
        f'<a href="../../p/x_y-1.0-py3-none-any.whl#sha256={digest}">x</a>'
        f'<a href="/p/x-y-1.0.tar.gz#sha256={digest[::-1]}">x</a>'
        f'<a href="/p/x_y-1.1-py3-none-any.whl#sha256={"cd" * 32}">x</a><a href="/p/odd.zip">x</a>'
    )
    found = find_hashes("x-y", "1.0", files)

    assert found == sorted((digest, digest[::-1]))
    assert write_lock({"x-y": "1.0"}, {"x-y": ["a", "b"]}).endswith(
        "x-y==1.0 \\\n    --hash=sha256:a \\\n    --hash=sha256:b\n"
    )
    with pytest.raises(SystemExit, match="the index has no files of 2"):
        find_hashes("x-y", "2", files)


def test_what_is_needed_is_pinned() -> None:
    pins = {"rich": "1", "markdown-it-py": "1", "mdurl": "1", "pygments": "1"}
    on_windows = "colorama; sys_platform == 'win32'"

    assert find_closure(["rich>=1", on_windows], pins) == sorted(pins)
    with pytest.raises(SystemExit, match="has no numpy"):
        find_closure(["numpy"], pins)
