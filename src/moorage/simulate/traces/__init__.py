"""Traces: pods that come and go over days, scheduled in virtual time, and figures about it."""

from __future__ import annotations

from pathlib import Path

from moorage.documents.errors import InputError
from moorage.record.reader import is_recording

from .arrivals import ArrivalTrace
from .csv_trace import is_openb, read_csv_trace, read_openb
from .recorded import read_recorded_trace


def read_trace(path: Path) -> ArrivalTrace:
    """Reads a recording, the folder or a list of pods of OpenB, or a CSV file.

    Raises InputError.
    """
    if is_openb(path):
        return read_openb(path)
    if is_recording(path):
        return read_recorded_trace([path])
    if path.is_dir():
        raise InputError(path, "neither a recording nor a folder of OpenB")
    return read_csv_trace(path)
