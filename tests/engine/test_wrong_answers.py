"""Plugins that answer wrongly, at every extension point: no pod but theirs is the worse for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from moorage.cluster import Change, Scope, check
from moorage.config import Configuration, load_mapping
from moorage.engine import Engine
from moorage.engine.actions import RecordEvent, Report
from moorage.engine.classes.classes import ClassSettings
from moorage.framework.plugin import (
    ClaimWrite,
    Filter,
    Narrowed,
    NodeFilter,
    NodeScore,
    NoRemedy,
    Permit,
    Plugin,
    PostFilter,
    PreBind,
    PreEnqueue,
    PreFilter,
    Preparation,
    PreScore,
    QueueSort,
    Reduction,
    Registry,
    Remedy,
    Reserve,
    Score,
    Sign,
    VolumeWrite,
    Wait,
)
from moorage.framework.profile import known_plugins
from moorage.framework.status import Code, PluginError, Reason, Rejected
from moorage.framework.verdict import Verdict
from moorage.framework.wakeups import Action, Resource, Wakeup, on
from moorage.plugins import REGISTRY
from tests.builders import node, pod
from tests.engine.driver import Driver

#: Called with what the plugin was asked about; returns or raises something wrong.
Answer = Callable[..., Any]


def always(value: Any) -> Answer:
    return lambda *asked: value


def raising(error: BaseException) -> Answer:
    def answer(*asked: Any) -> Any:
        # Otherwise it would keep the frames of every time that it was raised.
        raise error.with_traceback(None)

    return answer


def recursing(*asked: Any) -> Any:
    return recursing(*asked)


class Untellable(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class Unfriendly:
    """Raises at whatever it is asked."""

    __hash__ = None  # type: ignore[assignment]

    def _raise(self, *asked: Any) -> Any:
        raise RuntimeError("leave me alone")

    __eq__ = __lt__ = __bool__ = __len__ = __iter__ = __int__ = __and__ = __rand__ = _raise


ODD: Mapping[str, Any] = {
    "nothing": None,
    "true": True,
    "false": False,
    "minus one": -1,
    "huge": 2**200,
    "nan": float("nan"),
    "infinite": float("inf"),
    "text": "text",
    "half a character": "\ud800",
    "empty tuple": (),
    "list": [1, 2, 3],
    "dictionary": {"a": 1},
    "object": object(),
    "unfriendly": Unfriendly(),
    "not implemented": NotImplemented,
    "number array": np.array(7),
    "two rows": np.zeros(2, np.int64),
    "booleans": np.zeros(5, np.bool_),
    "floats": np.full(5, np.nan),
    "objects": np.array([None] * 5),
    "a rejection": Rejected(Code.UNSCHEDULABLE, ("because",)),
    "an error": Rejected(Code.ERROR, ("because",)),
    "no remedy": NoRemedy(Code.ERROR, ("because",)),
    "a permit": Wait(1.0),
    "a verdict": Verdict.accepting(2),
}

RAISED: Mapping[str, Answer] = {
    "raises": raising(ValueError("broken")),
    "recurses": recursing,
    "memory": raising(MemoryError()),
    "exits": raising(SystemExit(3)),
    "stop": raising(StopIteration()),
    "untellable": raising(Untellable()),
    "half a character": raising(ValueError("\ud800")),
    "not implemented": raising(NotImplementedError()),
}

#: The answer that passes the fences around single calls.
EXITS = "raises: exits"


def verdicts() -> Iterator[tuple[str, Answer]]:
    """Verdicts that are none."""
    wrong = Reason("wrong")
    shapes: dict[str, Callable[[int], Any]] = {
        "too short": lambda count: Verdict((wrong,), np.ones((1, max(count - 1, 0)), np.bool_)),
        "too long": lambda count: Verdict((wrong,), np.ones((1, count + 1), np.bool_)),
        "flat": lambda count: Verdict((wrong,), np.ones(count, np.bool_)),
        "more flags than reasons": lambda count: Verdict((wrong,), np.ones((2, count), np.bool_)),
        "fewer flags": lambda count: Verdict((wrong, wrong), np.ones((1, count), np.bool_)),
        "one row for all": lambda count: Verdict((wrong,), np.ones((1, 1), np.bool_)),
        "numbers": lambda count: Verdict((wrong,), np.ones((1, count), np.int64)),
        "floats": lambda count: Verdict((wrong,), np.full((1, count), np.nan)),
        "objects": lambda count: Verdict((wrong,), np.full((1, count), None)),
        "a list": lambda count: Verdict((wrong,), [[True] * count]),  # type: ignore[arg-type]
        "nothing": lambda count: Verdict((wrong,), None),  # type: ignore[arg-type]
        "accepting too few": lambda count: Verdict.accepting(max(count - 1, 0)),
        "text for a reason": lambda count: Verdict(("no",), np.ones((1, count), np.bool_)),  # type: ignore[arg-type]
        "no text": lambda count: Verdict((Reason(None),), np.ones((1, count), np.bool_)),  # type: ignore[arg-type]
        "half a character": lambda count: Verdict(
            (Reason("\ud800"),), np.ones((1, count), np.bool_)
        ),
        "an error": lambda count: Verdict(
            (Reason("x", Code.ERROR),), np.ones((1, count), np.bool_)
        ),
        "no code": lambda count: Verdict((Reason("x", 5),), np.ones((1, count), np.bool_)),  # type: ignore[arg-type]
        "unfinished": lambda count: Verdict.__new__(Verdict),
    }
    for name, make in shapes.items():
        yield name, lambda prepared, nodes, rows, make=make: make(nodes.count(rows))


def scores() -> Iterator[tuple[str, Answer]]:
    """Scores that are none."""
    makes: dict[str, Callable[[int], Any]] = {
        "too few": lambda count: np.zeros(max(count - 1, 0), np.int64),
        "too many": lambda count: np.zeros(count + 1, np.int64),
        "one for all": lambda count: np.zeros(1, np.int64),
        "square": lambda count: np.zeros((count, count), np.int64),
        "negative": lambda count: np.full(count, -5),
        "out of range": lambda count: np.full(count, 101),
        "floats": lambda count: np.full(count, 1.5),
        "nan": lambda count: np.full(count, np.nan),
        "objects": lambda count: np.full(count, None),
        "booleans": lambda count: np.ones(count, np.bool_),
        "unsigned": lambda count: np.full(count, 2**64 - 1, np.uint64),
        "largest": lambda count: np.full(count, 2**63 - 1),
        "complex": lambda count: np.full(count, 1j),
        "a list": lambda count: [1] * count,
        "read-only": lambda count: np.broadcast_to(np.int64(1), (count,)),
    }
    for name, make in makes.items():
        # Of `score` and of `normalize`.
        yield (
            name,
            lambda *asked, make=make: make(
                len(asked[1]) if len(asked) == 2 else asked[1].count(asked[2])
            ),
        )


def made(**makes: Callable[[], Any]) -> Iterator[tuple[str, Answer]]:
    """Answers that the plugin makes when it is asked: making a wrong one may raise."""
    for name, make in makes.items():
        yield name.replace("_", " "), lambda *asked, make=make: make()


def rejections() -> Iterator[tuple[str, Answer]]:
    return made(
        rejected_by_text=lambda: Rejected(Code.UNSCHEDULABLE, "text"),  # type: ignore[arg-type]
        rejected_by_list=lambda: Rejected(Code.UNSCHEDULABLE, ["text"]),  # type: ignore[arg-type]
        rejected_by_numbers=lambda: Rejected(Code.UNSCHEDULABLE, (1, 2)),  # type: ignore[arg-type]
        rejected_by_nothing=lambda: Rejected(Code.UNSCHEDULABLE, None),  # type: ignore[arg-type]
        rejected_without_code=lambda: Rejected("Maybe", ("x",)),  # type: ignore[arg-type]
        rejected_half=lambda: Rejected(Code.UNSCHEDULABLE, ("\ud800",)),
        rejected_for_no_reason=lambda: Rejected(Code.UNSCHEDULABLE, ()),
    )


@dataclass(frozen=True)
class Point:
    """A method of a plugin, what else the plugin must be, and answers that are wrong there."""

    method: str
    bases: tuple[type[Plugin], ...]
    more: Iterable[tuple[str, Answer]] = ()
    #: Attributes and methods of the plugin that are right.
    right: Mapping[str, Any] = field(default_factory=dict)
    #: What the message about it must say besides the plugin's name.
    says: str = ""

    def answers(self) -> Iterator[tuple[str, Answer]]:
        yield from ((f"returns {name}", always(value)) for name, value in ODD.items())
        yield from ((f"raises: {name}", answer) for name, answer in RAISED.items())
        yield from self.more


def accept(self: Any, prepared: Any, nodes: Any, rows: Any) -> Verdict:
    return Verdict.accepting(nodes.count(rows))


def refuse(self: Any, prepared: Any, nodes: Any, rows: Any) -> Verdict:
    return Verdict.rejecting(~nodes.nothing(rows), Reason("not here"))


def score_ten(self: Any, prepared: Any, nodes: Any, rows: Any) -> Any:
    return np.full(nodes.count(rows), 10)


def sign_none(self: Any, pod: Any, nodes: Any) -> None:
    return None


ROW = {"scope": Scope.ROW, "reads": Change.REQUESTED, "sign": sign_none}
SIGNED = {"sign": sign_none}

POINTS: Mapping[str, Point] = {
    "pre_enqueue": Point("pre_enqueue", (PreEnqueue,), rejections(), says="PreEnqueue"),
    "key": Point("key", (QueueSort,), says="QueueSort"),
    "pre_filter": Point(
        "pre_filter",
        (PreFilter, Sign),
        [
            *rejections(),
            *made(
                names_as_list=lambda: Narrowed(None, ["n1"]),  # type: ignore[arg-type]
                names_of_numbers=lambda: Narrowed(None, frozenset({1})),  # type: ignore[arg-type]
                names_of_nothing=lambda: Narrowed(None, None),  # type: ignore[arg-type]
                no_names=lambda: Narrowed(None, frozenset()),
                strangers=lambda: Narrowed(None, frozenset({"nowhere"})),
            ),
        ],
        SIGNED,
        says="PreFilter",
    ),
    "prepared value": Point(
        "pre_filter", (PreFilter, Filter, Sign), (), {**SIGNED, "filter": accept}
    ),
    "add_pod": Point(
        "add_pod",
        (PreFilter, Filter, Sign),
        (),
        {**SIGNED, "filter": accept, "pre_filter": lambda self, pod, nodes: "prepared"},
        says="AddPod",
    ),
    "remove_pod": Point(
        "remove_pod",
        (PreFilter, Filter, Sign),
        (),
        {**SIGNED, "filter": accept, "pre_filter": lambda self, pod, nodes: "prepared"},
        says="RemovePod",
    ),
    "filter": Point("filter", (Filter, Sign), verdicts(), SIGNED, says="filter"),
    "filter of rows": Point("filter", (Filter, Sign), verdicts(), ROW, says="filter"),
    "filter unsigned": Point("filter", (Filter,), verdicts(), says="filter"),
    "filter_node": Point(
        "filter_node",
        (NodeFilter, Sign),
        made(reason_of_numbers=lambda: Reason(5)),  # type: ignore[arg-type]
        SIGNED,
        says="filter",
    ),
    "recheck": Point("recheck", (Filter, Sign), (), {**ROW, "filter": accept}, says="filter"),
    "watch": Point("watch", (Filter, Sign), (), {**ROW, "filter": accept}, says="watches"),
    "sign": Point("sign", (Filter, Sign), (), {"filter": accept}, says="signature"),
    "post_filter": Point(
        "post_filter",
        (PostFilter,),
        made(
            nowhere=lambda: Remedy("nowhere"),
            number=lambda: Remedy(5),  # type: ignore[arg-type]
            unhashable=lambda: Remedy([]),  # type: ignore[arg-type]
            victims_as_list=lambda: Remedy("n1", [pod("x")]),  # type: ignore[arg-type]
            victims_of_text=lambda: Remedy("n1", ("x",)),  # type: ignore[arg-type]
            strange_victims=lambda: Remedy("n1", (pod("stranger"),)),
            without_code=lambda: NoRemedy("no", ()),  # type: ignore[arg-type]
            reasons_of_text=lambda: NoRemedy(Code.UNSCHEDULABLE, "no"),  # type: ignore[arg-type]
            reasons_of_numbers=lambda: NoRemedy(Code.ERROR, (1,)),  # type: ignore[arg-type]
        ),
        says="PostFilter",
    ),
    "pre_score": Point(
        "pre_score", (PreScore, Score, Sign), (), {**SIGNED, "score": score_ten}, says="PreScore"
    ),
    "score": Point("score", (Score, Sign), scores(), SIGNED, says="Score"),
    "score of rows": Point(
        "score", (Score, Sign), scores(), {**ROW, "reduces": Reduction.NOTHING}, says="Score"
    ),
    "score by the largest": Point(
        "score", (Score, Sign), scores(), {**ROW, "reduces": Reduction.LARGEST}, says="Score"
    ),
    "score_node": Point("score_node", (NodeScore, Sign), (), SIGNED, says="Score"),
    "normalize": Point(
        "normalize",
        (Score, Sign),
        scores(),
        {**SIGNED, "reduces": Reduction.EVERYTHING, "score": score_ten},
        says="Score",
    ),
    "normalize by the largest": Point(
        "normalize",
        (Score, Sign),
        scores(),
        {**ROW, "reduces": Reduction.LARGEST, "score": score_ten},
        says="Score",
    ),
    "rescore": Point(
        "rescore",
        (Score, Sign),
        (),
        {**ROW, "reduces": Reduction.NOTHING, "score": score_ten},
        says="Score",
    ),
    "reserve": Point(
        "reserve", (Reserve,), rejections(), {"unreserve": lambda *asked: None}, says="Reserve"
    ),
    "unreserve": Point(
        "unreserve",
        (Reserve,),
        (),
        {"reserve": lambda *asked: Rejected(Code.UNSCHEDULABLE, ("never",))},
        says="Unreserve",
    ),
    "permit": Point(
        "permit",
        (Permit,),
        [
            *rejections(),
            *made(
                nan=lambda: Wait(float("nan")),
                for_ever=lambda: Wait(float("inf")),
                in_the_past=lambda: Wait(-5.0),
                enormous=lambda: Wait(10**400),
                text=lambda: Wait("soon"),  # type: ignore[arg-type]
                nothing=lambda: Wait(None),  # type: ignore[arg-type]
            ),
        ],
        says="Permit",
    ),
    "prepare": Point(
        "prepare",
        (PreBind,),
        made(
            volumes_as_list=lambda: Preparation([], ()),  # type: ignore[arg-type]
            volumes_of_text=lambda: Preparation(("v",), ()),  # type: ignore[arg-type]
            claims_of_nothing=lambda: Preparation((), None),  # type: ignore[arg-type]
            number=lambda: Preparation((VolumeWrite(1, "", "", ""),)),  # type: ignore[arg-type]
            node=lambda: Preparation((), (ClaimWrite("a", "b", None),)),  # type: ignore[arg-type]
            nan=lambda: Preparation(timeout_seconds=float("nan")),
            text=lambda: Preparation(timeout_seconds="soon"),  # type: ignore[arg-type]
        ),
        says="PreBind",
    ),
    "is_prepared": Point(
        "is_prepared",
        (PreBind,),
        rejections(),
        {"prepare": lambda *asked: Preparation(timeout_seconds=30.0)},
        says="PreBind",
    ),
    "hint": Point("hint", (Filter,), (), {"filter": refuse}, says=""),
}


def plugin_of(point: Point, asked: list[Answer]) -> type[Plugin]:
    """A plugin whose method answers as the last of `asked` does, and which is right otherwise."""

    def ask(*given: Any) -> Any:
        asked.append(asked[-1])
        return asked[-1](*given)

    own: dict[str, Any] = {point.method: lambda self, *given: ask(*given)}
    if point.method == "hint":
        own = {
            "wakeups": lambda self: (
                on(Resource.NODE, Action.ALL, ask),
                on(Resource.POD, Action.ALL, ask, alike=True),
            )
        }
    return type("Wrong", point.bases, {"name": "Wrong", **point.right, **own})


#: What the story needs; with all plugins it would take several times as long.
FEW = ("NodeResourcesFit", "NodeAffinity", "DefaultPreemption", "DefaultBinder")


def configured(registry: Registry) -> Configuration:
    """One profile has the plugin, and another, `plain`, has not."""
    sort = "Wrong" if issubclass(registry["Wrong"], QueueSort) else "PrioritySort"

    def profile(name: str, *plugins: str) -> dict[str, Any]:
        enabled = [{"name": each} for each in dict.fromkeys((*FEW, sort, *plugins))]
        points = {"multiPoint": {"enabled": enabled, "disabled": [{"name": "*"}]}}
        return {"schedulerName": name, "plugins": points}

    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile("default-scheduler", "Wrong"), profile("plain")],
    }
    return load_mapping(raw, known=known_plugins(registry))


class Story(Driver):
    """A driver that checks the cluster when the story is over, and not at each step."""

    def step(self, budget: int = 1) -> list[Any]:
        taken = self.engine.step(self.now, budget)
        self.story += taken
        return taken


SMALL = [node(f"n{number}", cpu=2, labels={"size": "small"}) for number in range(2)]
CHOOSY = {"nodeSelector": {"size": "small"}, "priority": 100}
FIRST = [pod(f"first{number}", cpu="100m") for number in range(3)]
FULL = [pod(f"full{number}", cpu="1800m", node=f"n{number}") for number in range(2)]
MEANWHILE = [pod(f"meanwhile{number}", cpu="100m", spec={"priority": 7}) for number in range(2)]


def live(engine: Engine) -> Story:
    """Like pods, a preemption with pods that come meanwhile, events, and time that passes."""
    story = Story(engine)
    story.apply(*SMALL, node("large", cpu=64), *FIRST)
    story.settle(3)
    story.apply(*FULL, pod("vip", cpu=1, spec=CHOOSY), pod("giant", cpu=999))
    asked = story.step(4)
    story.apply(*MEANWHILE)
    story.step(4)
    story.evict(asked)
    story.settle(3)
    story.remove(FIRST[0])
    story.apply(node("n0", cpu=3, labels={"size": "small"}), node("late", cpu=8))
    story.apply(pod("plain", cpu="100m", spec={"schedulerName": "plain"}))
    for seconds in (11.0, 400.0, 1000.0):
        story.now += seconds
        story.settle(2)
    check(engine.cluster)
    engine.queue.check()
    return story


def texts(story: Driver) -> str:
    notes = [each.note for each in story.story if isinstance(each, RecordEvent)]
    reports = [each.message for each in story.story if isinstance(each, Report)]
    return "\n".join((*notes, *reports))


def find_faults(story: Story, title: str, says: str) -> Iterator[str]:
    """Yields what went wrong when a plugin answered wrongly; `says` is how its point is named."""
    told = texts(story)
    if not story.node_of("plain"):
        yield "the pod of another profile was not placed"
    if title == EXITS:
        # An outer fence may catch it, and says what it was.
        if says and "SystemExit: 3" not in told:
            yield "nothing says that it exits"
    elif story.engine.caught:
        yield f"passed the fence around plugins: {story.engine.caught}"
    elif says and ("Wrong" not in told or says not in told):
        yield "nothing names plugin and point"


@pytest.mark.parametrize("reuse", [True, False], ids=["reuse", "no reuse"])
@pytest.mark.parametrize("name", POINTS)
def test_wrong_answers_fail_no_other_pod(name: str, reuse: bool) -> None:
    point = POINTS[name]
    asked: list[Answer] = []
    registry = {**REGISTRY, "Wrong": plugin_of(point, asked)}
    configuration, settings = configured(registry), ClassSettings(classes=reuse, batches=reuse)
    wrong: list[str] = []
    for title, answer in point.answers():
        asked[:] = [answer]
        try:
            story = live(Engine(configuration, registry, settings))
        except BaseException as error:  # noqa: BLE001 - it ends the process: that is the finding
            wrong.append(f"{title}: {type(error).__name__}")
            continue
        says = point.says if title.startswith("raises") and len(asked) > 1 else ""
        wrong += [f"{title}: {fault}" for fault in find_faults(story, title, says)]
    assert wrong == []
    assert len(asked) > 1 or not reuse, "nothing was asked"


# What a plugin says of itself


def plugin_with(**attributes: Any) -> type[Plugin]:
    right = {"name": "Wrong", "filter": accept, "score": score_ten, "sign": sign_none}
    return type("Wrong", (Filter, Score, Sign), {**right, **attributes})


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ({"reads": 5}, "reads is 5, expected Change"),
        ({"reads": None}, "reads is None, expected Change"),
        ({"scope": "row"}, "scope is 'row', expected Scope"),
        ({"reduces": True}, "reduces is True, expected Reduction"),
        ({"__hash__": None}, "TypeError: unhashable type: 'Wrong'"),
        ({"create": classmethod(lambda *given: None)}, "returned NoneType, expected Wrong"),
        ({"create": classmethod(raising(SystemExit(2)))}, "SystemExit: 2"),
        ({"wakeups": always(None)}, "returned NoneType, expected tuple"),
        ({"wakeups": always(5)}, "returned int, expected tuple"),
        ({"wakeups": always((5,))}, "returned int, expected Wakeup"),
        ({"wakeups": always((Wakeup(None),))}, "returned NoneType, expected ClusterEvent"),  # type: ignore[arg-type]
        ({"wakeups": always((on(5, Action.ADD),))}, "returned int, expected str"),  # type: ignore[arg-type]
        ({"wakeups": always((on(Resource.NODE, 1),))}, "returned int, expected Action"),  # type: ignore[arg-type]
        ({"wakeups": always((on(Resource.NODE, Action.ADD, 5),))}, "a hint is int"),  # type: ignore[arg-type]
        ({"wakeups": raising(SystemExit(2))}, "SystemExit: 2"),
    ],
)
def test_a_plugin_that_is_wrong_about_itself_is_refused_at_the_start(
    attributes: dict[str, Any], says: str
) -> None:
    registry = {**REGISTRY, "Wrong": plugin_with(**attributes)}

    with pytest.raises(PluginError, match=r'plugin "Wrong"') as refused:
        Engine(configured(registry), registry)

    assert says in str(refused.value)
