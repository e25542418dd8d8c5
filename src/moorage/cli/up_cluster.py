"""Runs the cluster of `moorage up`: its nodes, copied objects, and what to try once it is ready."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import moorage
from moorage.app.local_cluster import Ready, UpSettings, up
from moorage.app.loop_thread import LoopThread, run_until_signal
from moorage.app.observations import Observations
from moorage.documents.errors import DecodeError, InputError
from moorage.documents.files import STDIN
from moorage.documents.yaml_text import documents, read_document
from moorage.embedded.adoption import NOT_COPIED, SECRET, Copied
from moorage.embedded.hollow.node_shapes import ShapeError, ShapeFile, plain_nodes, read_shape_file
from moorage.embedded.kinds.catalogue import catalogue
from moorage.embedded.store.journal import FILE_NAME
from moorage.engine import Engine
from moorage.objects.meta import ObjectKind
from moorage.record.last_state import read_last_state
from moorage.record.reader import is_recording
from moorage.simulate.manifests import read as read_manifests

from .inputs import ConnectionOptions, EngineOptions
from .rendering import note, plain

# No kubeconfig is larger, and a dump that is smaller is quickly read twice.
_LARGEST_KUBECONFIG = 2**20

# See docs/coexist-policy.md.
_ALONE = "scheduling.moorage.dev/coexist-policy=DaemonsetAndStaticPods"


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
    from moorage.client import Api
    from moorage.client.listing import list_manifests

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


Json = dict[str, Any]

# The token is neither printed nor part of a command line, where other users could read it.
_BEARER = """kubectl config view --raw -o \\
    jsonpath='Authorization: Bearer {.users[0].user.token}'"""


@dataclass(frozen=True, slots=True)
class ClusterFile:
    """The nodes to make, and the manifests to apply before them, each with its place."""

    nodes: ShapeFile
    manifests: tuple[tuple[str, Json], ...] = ()


def read_cluster_file(nodes: str) -> ClusterFile:
    """Reads the value of --nodes, a count or a file; raises InputError naming file and field."""
    if nodes.isascii() and nodes.isdigit():
        try:
            return ClusterFile(plain_nodes(int(nodes)))
        except ShapeError as error:
            raise InputError("--nodes", error) from None
    path = Path(nodes)
    manifests = list(_manifests(path))
    if manifests and all(item.get("kind") == "Node" for _, item in manifests):
        return ClusterFile(plain_nodes(0), tuple(manifests))
    if len(manifests) != 1:
        raise InputError(nodes, f"must be Nodes or one document of shapes, has {len(manifests)}")
    try:
        shapes = read_shape_file(manifests[0][1], nodes)
    except ShapeError as error:
        raise InputError(nodes, error) from None
    manifests = [each for name in shapes.manifests for each in _manifests(path.parent / name)]
    return ClusterFile(shapes, tuple(manifests))


def has_cluster(data_dir: Path | None) -> bool:
    """Returns whether a data folder holds a cluster to continue with."""
    return data_dir is not None and (data_dir / FILE_NAME).exists()


def _manifests(path: Path) -> Iterator[tuple[str, Json]]:
    """Yields the objects of a file; those of a List one by one."""
    for place, item in documents(_read_text(path), str(path)):
        if item.get("kind") == "List":
            for at, each in enumerate(item.get("items") or ()):
                yield str(place.item(at)), each
        else:
            yield str(place), item


def _read_text(path: Path) -> str:
    try:
        return path.read_text()
    except UnicodeDecodeError as error:
        raise InputError(path, f"not UTF-8: {error}") from None


@dataclass(frozen=True)
class Plan:
    """A cluster to run, and its scheduler."""

    settings: UpSettings
    engine: Engine
    observations: Observations


class WhenReady(Protocol):
    """A function to call once the cluster is ready. It stops the cluster by setting the event."""

    async def __call__(self, cluster: Ready, stopping: asyncio.Event) -> None: ...


def run_cluster(plan: Plan, when_ready: WhenReady) -> None:
    """Runs a cluster until a signal or `when_ready` stops it.

    The cluster runs on a thread of its own, so that signals are handled during a long decision.
    """
    stopping = asyncio.Event()

    comparisons: list[Callable[[], None]] = []

    async def ready(cluster: Ready) -> None:
        comparisons.append(cluster.compare)
        await when_ready(cluster, stopping)

    def compare() -> None:
        for each in comparisons:
            each()

    async def main() -> None:
        await up(plan.settings, plan.engine, plan.observations, ready, stopping)

    run_until_signal(LoopThread("cluster", main), stopping.set, compare)


class WelcomeText:
    """Prints the addresses and what to try, and stops the cluster after a while."""

    def __init__(self, seconds: float | None, options: EngineOptions) -> None:
        self._seconds = seconds
        self._flags = options.flags

    async def __call__(self, cluster: Ready, stopping: asyncio.Event) -> None:
        kubeconfig = shlex.quote(plain(str(cluster.kubeconfig.absolute())))
        command = own_command()
        metrics = metrics_command(cluster)
        scheduler = f"{command} run --kubeconfig {kubeconfig}", "a scheduler"
        for text in cluster.notes:
            note(text)
        commands = list_commands(
            (f"export KUBECONFIG={kubeconfig}", ""),
            ("kubectl get nodes -L topology.kubernetes.io/zone", ""),
            ("kubectl run hello --image=registry.example/hello", ""),
            (f"{command} explain hello", "why it went where it went"),
            (f"{command} top", "nodes and waiting pods, live"),
            (
                f"kubectl get pod hello -o yaml |\n"
                f"    {command} fit -f - --count 1000{self._flags}",
                "whether 1,000 more of it would fit, and what runs out first",
            ),
            (
                f"kubectl run alone --image=registry.example/alone \\\n    --annotations={_ALONE}",
                "a pod with a node to itself",
            ),
            metrics if cluster.endpoints else scheduler,
        )
        print(
            f"""{addresses(cluster)}

In another terminal:
{commands}

{more_to_try()}Ctrl-C stops the cluster.""",
            flush=True,
        )
        if self._seconds is not None:
            await asyncio.sleep(self._seconds)
            stopping.set()


def list_commands(*commands: tuple[str, str]) -> str:
    """Lists commands, each below its description, so that lines are short."""
    lines = []
    for command, purpose in commands:
        lines += [f"  # {purpose}"] if purpose else []
        lines.append(f"  {command}")
    return "\n".join(lines)


def own_command() -> str:
    """Returns the command that runs Moorage in another terminal, which may have another PATH."""
    script = Path(sys.argv[0])
    if script.name == "moorage" and script.exists():
        return shlex.quote(str(script.absolute()))
    return f"{shlex.quote(sys.executable)} -m moorage"


def more_to_try() -> str:
    """Says where the examples are, if they are on this machine."""
    root = Path(moorage.__file__).parents[2]
    page, examples = root / "docs" / "embedded-cluster.md", root / "examples" / "embedded"
    return f"More to try:\n  {page}\n  {examples}\n\n" if page.exists() else ""


def addresses(cluster: Ready) -> str:
    """Says where the API server and the page are."""
    ready = f"The cluster is ready: {cluster.nodes} nodes, {cluster.server}"
    if not cluster.page:
        return f"{ready}, no scheduler"
    later = "(for 15 minutes; later the page asks for the token in the kubeconfig)"
    return f"{ready}\nIts page: {cluster.page}\n          {later}"


def metrics_command(cluster: Ready) -> tuple[str, str]:
    """Returns the command that reads the scheduler's metrics, and what it does."""
    command = f"{_BEARER} |\n    curl -H @- {cluster.endpoints}/metrics"
    return command, "the scheduler's metrics"
