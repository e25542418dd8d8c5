"""The `moorage` command, also as `python -m moorage`."""

from __future__ import annotations

import signal


def main() -> None:
    """Runs the command line and ends the process.

    Ctrl-C while it is loaded or at its end ends the process at once, without a traceback.
    """
    # A parent that has interrupts ignored wants that for us as well.
    is_heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_heeded:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from moorage import cli

    if is_heeded:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        cli.main()
    finally:
        if is_heeded:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    main()
