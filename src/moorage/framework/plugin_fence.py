"""The fence around plugins: it turns what a plugin raises into an error, and checks its answers.

A plugin that raises, or that answers what its extension point does not allow, fails the attempt of
one pod. The `PluginError` names the plugin and the point, and the scheduler goes on.
"""

from __future__ import annotations

from types import TracebackType

import numpy as np

from moorage.cluster.extended.informers import describe

from .observe import Named
from .plugin import (
    MAX_SCORE,
    Scores,
)
from .status import PluginError, Reason, Rejected
from .verdict import Verdict

_BOOL, _INT64, _INTP = np.dtype(np.bool_), np.dtype(np.int64), np.dtype(np.intp)


def make_error(what: str, error: BaseException, plugin: str = "") -> PluginError:
    """Makes the PluginError for an exception; `what` names the plugin and the point."""
    if isinstance(error, PluginError):
        return PluginError(f"{what}: {error}", plugin or error.plugin)
    return PluginError(f"{what}: {describe(error)}", plugin)


def make_plugin_error(what: str, plugin: Named, error: BaseException) -> PluginError:
    """Makes the PluginError for a plugin; its name replaces the braces in `what`."""
    return make_error(what.format(plugin.name), error, plugin.name)


class PluginFence:
    """Turns whatever is raised inside into a PluginError, as `make_plugin_error` does.

    Calls for every pod or row have a `try` of their own instead, which costs nothing.
    """

    __slots__ = ("_plugin", "_what")

    def __init__(self, what: str, plugin: Named) -> None:
        self._what, self._plugin = what, plugin

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None or isinstance(error, KeyboardInterrupt):
            return
        raise make_plugin_error(self._what, self._plugin, error) from error


def expect(answer: object, *kinds: type) -> None:
    """Raises unless the answer is of one of these types."""
    if not isinstance(answer, kinds):
        raise PluginError(f"returned {type(answer).__name__}, expected {name_kinds(kinds)}")


def name_kinds(kinds: type | tuple[type, ...]) -> str:
    several = kinds if isinstance(kinds, tuple) else (kinds,)
    return " or ".join("None" if each is type(None) else each.__name__ for each in several)


def check_verdict(answer: object, count: int) -> Verdict:
    """Returns the answer if it is a verdict over that many rows; raises if not."""
    if type(answer) is not Verdict:
        raise PluginError(f"returned {type(answer).__name__}, expected Verdict")
    reasons, failed = answer.reasons, answer.failed
    if (
        type(failed) is not np.ndarray
        or (failed.dtype is not _BOOL and failed.dtype != _BOOL)
        or failed.shape != (len(reasons), count)
    ):
        shown = _show(failed)
        raise PluginError(
            f"returned a Verdict over {shown}, expected bool[{len(reasons)}, {count}]"
        )
    for reason in reasons:
        if type(reason) is not Reason:
            raise PluginError(f"returned a Verdict with {type(reason).__name__}, expected Reason")
    return answer


def check_scores(answer: object, count: int) -> Scores:
    """Returns the answer if it has one whole number for each row; raises if not."""
    if type(answer) is np.ndarray and answer.shape == (count,):
        if answer.dtype is _INT64 or answer.dtype == _INT64:
            return answer
        if answer.dtype.kind in "iu":
            return answer.astype(np.int64)
    raise PluginError(f"returned {_show(answer)}, expected int64[{count}]")


def check_range(scores: Scores) -> Scores:
    """Returns the scores if they are normalised; raises if not."""
    # Read without a sign, negative numbers are the largest.
    if len(scores) and scores.view(np.uint64).max() > MAX_SCORE:
        raise PluginError(
            f"returns an invalid score, it should be in the range of [0, {MAX_SCORE}]"
        )
    return scores


def check_rejection(answer: object) -> Rejected | None:
    """Returns the answer if it is a rejection or None; raises if not."""
    if answer is None or isinstance(answer, Rejected):
        return answer
    raise PluginError(f"returned {type(answer).__name__}, expected Rejected or None")


def _show(answer: object) -> str:
    if isinstance(answer, np.ndarray):
        return f"{answer.dtype}{list(answer.shape)}"
    return type(answer).__name__
