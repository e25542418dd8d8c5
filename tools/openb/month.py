"""A month of load as OpenB's: pods drawn from its list, that come at any time of thirty days."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from random import Random

from moorage.simulate.traces.csv_trace import NODES, PODS

_SEED = 7
_SECONDS = 30 * 24 * 3600


def write_month(pods: Path, into: Path, count: int) -> Path:
    """Writes a trace of so many pods with the nodes of the trace that a list is of."""
    dice = Random(_SEED)
    with pods.open(newline="") as file:
        reader = csv.DictReader(file)
        known, fields = list(reader), reader.fieldnames or ()
    into.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(pods.parent / NODES, into / NODES)
    with (into / PODS).open("w", newline="") as file:
        writer = csv.DictWriter(file, fields)
        writer.writeheader()
        for at, came in enumerate(sorted(dice.randrange(_SECONDS) for _ in range(count))):
            writer.writerow(_come_anew(dice.choice(known), f"pod-{at}", came))
    return into


def _come_anew(row: dict[str, str], name: str, came: int) -> dict[str, str]:
    """The same pod at another time; it runs for as long as it did."""
    times = {"name": name, "creation_time": str(came), "scheduled_time": str(came)}
    if row.get("deletion_time"):
        began = int(row.get("scheduled_time") or row["creation_time"])
        times["deletion_time"] = str(came + int(row["deletion_time"]) - began)
    return {**row, **{each: value for each, value in times.items() if each in row}}
