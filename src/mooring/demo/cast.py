"""The files of the story: its nodes, the scheduler's configuration, and what chapters apply."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

#: A folder in which `kubectl apply -f` finds everything that the story applies.
MANIFESTS = Path(str(files(__package__))) / "manifests"
CLUSTER = MANIFESTS / "cluster.yaml"
SCHEDULER = MANIFESTS / "scheduler.yaml"


def objects(file: str) -> list[dict[str, Any]]:
    """The objects of a file, in its order."""
    return list(yaml.safe_load_all((MANIFESTS / file).read_text()))
