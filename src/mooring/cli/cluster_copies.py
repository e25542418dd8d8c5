"""`mooring up --from`: the objects of another cluster: from a dump, a recording, an API server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mooring.documents.errors import DecodeError
from mooring.documents.files import STDIN
from mooring.documents.yaml_text import read_document
from mooring.embedded.adoption import NOT_COPIED, SECRET, Copied
from mooring.embedded.kinds.catalogue import catalogue
from mooring.objects.meta import ObjectKind
from mooring.record.last_state import read_last_state
from mooring.record.reader import is_recording
from mooring.simulate.manifests import read as read_manifests

from .inputs import ConnectionOptions
from .rendering import note

# No kubeconfig is larger, and a dump that is smaller is quickly read twice.
_LARGEST_KUBECONFIG = 2**20


async def read_copies(sources: Sequence[str], *, with_values: bool) -> list[Copied]:
    """Returns the objects of all sources, each with its place.

    Raises InputError or ClientError. Without `with_values`, the API server is not asked for
    Secrets.
    """
    found: list[Copied] = []
    for source in sources:
        path = Path(source)
        if source != STDIN and is_recording(path):
            found += read_last_state([path])
        elif source != STDIN and _is_kubeconfig(path):
            found += await _list_cluster(path, with_values=with_values)
        else:
            found += [(str(each.place), dict(each.raw)) for each in read_manifests([source])]
    return found


def _is_kubeconfig(path: Path) -> bool:
    """Whether a file is a kubeconfig; False if it cannot be read."""
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_KUBECONFIG:
            return False
        content = read_document(path.read_bytes())
    except (OSError, DecodeError):
        return False
    return isinstance(content, dict) and content.get("kind") == "Config" and "clusters" in content


async def _list_cluster(kubeconfig: Path, *, with_values: bool) -> list[Copied]:
    # Here, because dumps do not need the client, which takes long to load.
    from mooring.client import Api
    from mooring.client.listing import list_manifests

    left_out = NOT_COPIED if with_values else NOT_COPIED | {SECRET}
    kinds = [
        ObjectKind(kind.group, kind.version, kind.kind, kind.plural)
        for kind in catalogue()
        if "list" in kind.verbs and kind.view is None and kind.kind not in left_out
    ]

    def refuse(kind: str, why: str) -> None:
        note(f"left out all {kind}: {why}")

    found: list[Copied] = []
    async with Api(await ConnectionOptions(kubeconfig).connect()) as api:
        async for item in list_manifests(api, kinds, refuse):
            found.append((_describe_place(kubeconfig, item), item))
    return found


def _describe_place(kubeconfig: Path, item: dict[str, Any]) -> str:
    return f"{kubeconfig}: {item['apiVersion']}"
