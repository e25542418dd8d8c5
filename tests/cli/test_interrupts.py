"""Ctrl-C leaves no traceback, whenever it comes."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

# Interrupts the process when a module is looked for.
INTERRUPTING = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
sys.argv = ["moorage", "simulate", "-"]
from moorage.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("module", "code"),
    [
        pytest.param("moorage.cli", -signal.SIGINT, id="while it is loaded"),
        pytest.param("moorage.engine", 130, id="while a command loads what it needs"),
    ],
)
def test_an_interrupt_leaves_no_traceback(module: str, code: int) -> None:
    program = INTERRUPTING.format(module=module)
    ended = subprocess.run(
        [sys.executable, "-c", program], input="", capture_output=True, text=True, check=False
    )

    assert (ended.returncode, ended.stdout, ended.stderr.strip()) == (code, "", "")
