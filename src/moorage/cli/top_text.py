"""Draws `moorage top` for a terminal of 80 columns or more and of any height."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING

from moorage.objects.resources import describe_amount

from .explain_text import NodeNames
from .rendering import line, plain, table

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from .top_picture import NodeLine, TopPicture, WaitingLine

# A bar, a space and a percentage.
_BAR = 6
_SHARE = 5
_USE = _BAR + _SHARE + 2
# A name of a node gets at least this.
_NAME = 24
# Lines of a reason: the rest is for `moorage explain`.
_MOST_REASON = 2

_EIGHTHS = " ▏▎▍▌▋▊▉█"

# Of these there is always enough, so that others come first where there is little room.
_LAST = ("ephemeral-storage", "pods")


def top_parts(
    picture: TopPicture, width: int, height: int | None, sort: str
) -> Iterator[RenderableType]:
    """Yields the whole picture; with a height, as much as fits into that many lines."""
    head = [*_head(picture, width, height is not None)]
    groups = [_group(each, width) for each in picture.waiting]
    waiting, nodes = len(groups), len(picture.nodes)
    if height is not None:
        # Three titles or blank lines, and two that count what is left.
        room = height - len(head) - 6
        waiting, nodes = _share_room(room, [len(each) for each in groups], nodes)
    yield from head
    yield ""
    yield from _nodes(picture, width, nodes, sort)
    yield ""
    yield line("WAITING", "bold") if groups else line("no pod waits", "green")
    for group in groups[:waiting]:
        yield from group
    left = sum(each.count for each in picture.waiting[waiting:])
    if left:
        yield line(f"and {left} more pods", "dim")


def _share_room(room: int, groups: list[int], nodes: int) -> tuple[int, int]:
    """Returns how many groups of waiting pods and how many nodes to show, half of it nodes."""
    lines = max(room - min(nodes, max(room // 2, 1)), 0)
    count = 0
    while count < len(groups) and groups[count] <= lines:
        lines -= groups[count]
        count += 1
    used = sum(groups[:count])
    return count, max(room - used, 1)


def _head(picture: TopPicture, width: int, is_live: bool) -> Iterator[Text]:
    pods = sum(each.count for each in picture.waiting)
    parts = [f"nodes {len(picture.nodes)}", f"pods {picture.pod_count}", f"waiting {pods}"]
    if is_live:
        parts.append("(q ends)")
    for text in wrap("   ".join(parts), width):
        yield line(text, "bold")
    if picture.problem:
        for text in wrap(f"out of date: {picture.problem}", width):
            yield line(text, "red")
    totals = [
        f"{name} {_percent(asked / has if has else 0.0)} "
        f"({describe_amount(name, int(asked))} of {describe_amount(name, int(has))})"
        for name, (asked, has) in picture.totals.items()
    ]
    for text in wrap(", ".join(totals), width):
        yield line(text)


def _nodes(picture: TopPicture, width: int, most: int, sort: str) -> Iterator[RenderableType]:
    if not picture.nodes:
        yield line("there are no nodes", "dim")
        return
    names = NodeNames(each.name for each in picture.nodes)
    labels = [_label(each, names) for each in picture.nodes]
    # Names come before resources, as far as half of the room.
    widest = min(max(map(len, labels)) + 2, width // 2)
    resources = _choose(list(picture.totals), width - max(widest, _NAME))
    ordered = sorted(picture.nodes, key=lambda node: _order(node, sort))
    room = width - sum(max(_USE, len(name) + 2) for name in resources)
    rows = [_row(each, names, resources, room) for each in ordered[:most]]
    ending = f" (names end in {names.ending})" if names.ending else ""
    yield table(("NODE", *resources), rows, gap=2, whole=1 + len(resources))
    left = len(ordered) - len(rows)
    if left or ending:
        yield line(f"{f'and {left} more nodes' if left else ''}{ending}".strip(), "dim")


def _choose(resources: list[str], room: int) -> list[str]:
    """Returns as many resources as there is room for, those that run out first."""
    ordered = sorted(resources, key=_late)
    chosen: list[str] = []
    for name in ordered:
        room -= max(_USE, len(name) + 2)
        if room < 0:
            break
        chosen.append(name)
    return chosen


def _late(resource: str) -> bool:
    return resource in _LAST


def _order(node: NodeLine, sort: str) -> tuple[float, str]:
    return (0.0 if sort == "name" else -node.uses.get(sort, -1.0)), node.name


def _label(node: NodeLine, names: NodeNames) -> str:
    return names.shorten(node.name) + (" (cordoned)" if node.cordoned else "")


def _row(node: NodeLine, names: NodeNames, resources: list[str], room: int) -> list[str | Text]:
    name = _label(node, names)
    if len(name) > room - 2:
        name = f"{name[: room - 3]}…"
    return [name, *(_use(node.uses.get(each)) for each in resources)]


def _use(share: float | None) -> Text:
    if share is None:
        return line("-", "dim")
    colour = "red" if share >= 0.9 else "yellow" if share >= 0.7 else "green"
    eighths = round(min(share, 1.0) * _BAR * 8)
    full, rest = divmod(eighths, 8)
    bar = ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(_BAR)
    text = line(bar, colour)
    text.append(f"{_percent(share):>{_SHARE}}", "default")
    return text


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"


def _group(group: WaitingLine, width: int) -> list[Text]:
    pods = f"{group.count} pod{'s' * (group.count != 1)}"
    owner = plain(group.owner)
    head = owner if owner.startswith("pod ") else f"{pods} of {owner}"
    reason = plain(group.reason.partition(". ")[0].rstrip(".")) or "waiting for its turn"
    lines = wrap(reason, width - 4)
    if len(lines) > _MOST_REASON:
        lines = [*lines[: _MOST_REASON - 1], f"{lines[_MOST_REASON - 1][: width - 6]} …"]
    return [
        *(line(text) for text in wrap(head, width)),
        *(line(f"    {each}", "dim") for each in lines),
    ]
