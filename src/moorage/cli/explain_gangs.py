"""`moorage explain podgroup/…`: explains a gang as a whole and computes what it lacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moorage.engine import Engine
from moorage.engine.events import Applied
from moorage.engine.explain import GangExplanation, explain_gang
from moorage.objects.kinds import Object
from moorage.objects.pod_group import PodGroup

from .explain_targets import ExplainTarget, not_found
from .explain_text import NodeNames
from .rendering import count, line, shorten, table

if TYPE_CHECKING:
    from rich.console import RenderableType

#: What must be switched on for groups to be anything but pods; what the user says comes after it.
GANG_GATES = "GenericWorkload=true,TopologyAwareWorkloadScheduling=true,Coscheduling=true"

_COLOURS = {"fits": "bold green", "running": "bold green", "preempting": "bold yellow"}

# The roomiest domains come first; `-o json` prints the others too.
_MOST_DOMAINS = 8


def answer_gang(engine: Engine, objects: Sequence[Object], target: ExplainTarget) -> GangAnswer:
    """Explains a group of the cluster; raises InputError if it is not there."""
    for item in objects:
        engine.handle(Applied(item), 0.0)
    groups = [item for item in objects if isinstance(item, PodGroup)]
    for group in groups:
        if group.key == target.key:
            return GangAnswer(explain_gang(engine, group))
    raise not_found(target, [group.key for group in groups], "pod group")


@dataclass(frozen=True, slots=True)
class GangAnswer:
    """One gang, explained."""

    value: GangExplanation
    notes: tuple[str, ...] = ()

    @property
    def has_place(self) -> bool:
        return self.value.has_place

    def parts(self) -> Iterator[RenderableType]:
        return gang_parts(self.value)


def gang_parts(gang: GangExplanation) -> Iterator[RenderableType]:
    """Yields everything about one gang, from the answer to the details."""
    yield line(_headline(gang), _COLOURS.get(gang.state, "bold red"))
    if gang.message:
        yield line(gang.message)
    if gang.arithmetic:
        yield line(gang.arithmetic)
    if gang.victims:
        yield line(f"once evicted: {shorten([each.pod for each in gang.victims])}")
    if gang.nodes:
        names = NodeNames(gang.nodes.values())
        counts = Counter(gang.nodes.values())
        where = [f"{names.shorten(node)} ({count})" for node, count in counts.most_common()]
        yield line(f"on {shorten(where, 6)}")
    yield from _domains(gang)


def _headline(gang: GangExplanation) -> str:
    nodes = len(set(gang.nodes.values()))
    inside = f" in {gang.topology_key} {gang.domain}" if gang.topology_key and gang.domain else ""
    on = f"on {count(nodes, 'node')}{inside}"
    match gang.state:
        case "running":
            return f"gang {gang.group} runs: {count(gang.running, 'pod')} {on}"
        case "fits":
            placed = len(gang.nodes) - gang.running
            also = f" beside {gang.running} that run" if gang.running else ""
            return f"gang {gang.group} fits: {placed} of {count(gang.waiting, 'pod')}{also}, {on}"
        case "preempting":
            return f"gang {gang.group} waits for {count(len(gang.victims), 'pod')} to make way"
        case "gated":
            return f"gang {gang.group} is not tried yet: {gang.waiting} of {gang.min_count} wait"
        case "error":
            return f"gang {gang.group} cannot be tried"
    wait = f"{count(gang.waiting, 'pod')} wait{'s' * (gang.waiting == 1)}"
    return f"gang {gang.group} does not fit: {wait}"


def _domains(gang: GangExplanation) -> Iterator[RenderableType]:
    room = gang.room
    if room is None or len(room.domains) < 2:
        return
    rows = [
        (each.name, str(each.nodes), str(each.room), str(max(0, room.needed - each.room) or "-"))
        for each in room.domains[:_MOST_DOMAINS]
    ]
    yield ""
    yield table((gang.topology_key.upper(), "NODES", "ROOM", "SHORT"), rows, numbers_from=1)
    left = len(room.domains) - len(rows)
    if left:
        yield line(f"and {left} more, see -o json")
