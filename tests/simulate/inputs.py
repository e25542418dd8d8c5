"""Short ways to write input for the simulator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from moorage.config import FeatureGates, default
from moorage.engine import Engine
from moorage.framework.profile import known_plugins
from moorage.objects.decode import from_builtins
from moorage.objects.kinds import Object
from moorage.plugins import REGISTRY
from moorage.simulate.loading import Input, load
from moorage.simulate.transcript import Transcript
from tests.builders import made


def engine(**gates: bool) -> Engine:
    """An engine with the default configuration, whose cluster is checked when the test ends."""
    new = Engine(default(known_plugins(REGISTRY), FeatureGates(**gates)), REGISTRY)
    made.append(new.cluster)
    return new


def objects(*manifests: dict[str, Any]) -> list[Object]:
    """The objects that manifests describe."""
    return [from_builtins(manifest["kind"], manifest) for manifest in manifests]


def loaded(folder: Path, *manifests: dict[str, Any]) -> Input:
    """What the simulator reads from a file with these manifests."""
    path = folder / "input.json"
    path.write_text("\n".join(json.dumps(manifest) for manifest in manifests))
    return load([str(path)])


def placements(transcript: Transcript) -> dict[str, str]:
    """Which pod went where."""
    return {each.pod.name: each.node for each in transcript.placed}


def reasons(transcript: Transcript) -> dict[str, str]:
    """Why pods are pending."""
    return {each.pod.name: each.reason for each in transcript.pending}
