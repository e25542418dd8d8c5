"""A profile: the plugins that serve one scheduler name, in order, at each extension point."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, wraps
from itertools import count
from typing import Any, Concatenate, ParamSpec, TypeVar

from moorage.cluster import HandleRegistry
from moorage.cluster.changes import unite
from moorage.config import (
    GROUP_POST_FILTER,
    EnabledPlugin,
    FeatureGates,
    KnownPlugin,
    ProfileConfiguration,
)

from .observe import UNOBSERVED, Observer
from .plugin import (
    POINTS,
    Bind,
    Filter,
    NodeFilter,
    NodeScore,
    Permit,
    Plugin,
    PostBind,
    PostFilter,
    PreBind,
    PreEnqueue,
    PreFilter,
    PreScore,
    QueueSort,
    Registry,
    Reserve,
    Score,
    Sign,
)
from .plugin_start import create
from .pod_trace import PodReads

# Far more than there are sets of plugins that skip a pod.
_MOST_FINDINGS = 1024

_numbers = count()

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Profile:
    """The plugins of a profile. A plugin is one object, whichever points it serves."""

    name: str
    #: None or 0 looks at all nodes.
    percentage_of_nodes_to_score: int | None
    plugins: Mapping[str, Plugin]
    points: Mapping[str, tuple[EnabledPlugin, ...]]
    #: Hears how its plugins do.
    observer: Observer = UNOBSERVED
    #: The weights by which topology domains are scored for groups, by plugin; None for the default.
    placement_weights: Mapping[str, int] | None = None
    #: It tells the profile from all others. Templates of pods note it, and places of plugins,
    #: because they are not searched for cycles: what they refer to would never be freed.
    number: int = field(default_factory=lambda: next(_numbers), init=False, compare=False)

    @classmethod
    def build(
        cls,
        configuration: ProfileConfiguration,
        registry: Registry,
        gates: FeatureGates,
        handles: HandleRegistry | None = None,
        observer: Observer = UNOBSERVED,
    ) -> Profile:
        """Builds every enabled plugin; `handles` are those of all profiles."""
        handles = handles or HandleRegistry()
        names = dict.fromkeys(
            enabled.name for listed in configuration.points.values() for enabled in listed
        )
        plugins = {
            name: create(registry[name], configuration.args.get(name), gates, handles)
            for name in names
        }
        if gates["AutoSignatures"]:
            for plugin in plugins.values():
                if isinstance(plugin, NodeFilter | NodeScore) and is_traceable(plugin):
                    plugin._reads_of_pods = PodReads()
        return cls(
            configuration.scheduler_name,
            configuration.percentage_of_nodes_to_score,
            plugins,
            configuration.points,
            observer,
            configuration.placement_weights,
        )

    @cached_property
    def findings(self) -> dict[Hashable, Any]:
        """What functions `once_per_profile` have found."""
        return {}

    @cached_property
    def queue_sort(self) -> QueueSort:
        return self._at("queueSort")[0]

    @cached_property
    def pre_enqueue(self) -> tuple[PreEnqueue, ...]:
        return self._at("preEnqueue")

    @cached_property
    def pre_filter(self) -> tuple[PreFilter[Any], ...]:
        """Configured pre-filters, then those that an enabled filter needs."""
        configured = self._at("preFilter")
        needed = (each for each in self.filter if isinstance(each, PreFilter))
        return tuple(dict.fromkeys((*configured, *needed)))

    @cached_property
    def filter(self) -> tuple[Filter[Any], ...]:
        return self._at("filter")

    @cached_property
    def post_filter(self) -> tuple[PostFilter, ...]:
        return self._at("postFilter")

    @cached_property
    def group_post_filter(self) -> tuple[PostFilter, ...]:
        """The post-filters for groups of pods: those for pods, unless they are configured."""
        has_own = GROUP_POST_FILTER in self.points
        return self._at(GROUP_POST_FILTER) if has_own else self.post_filter

    @cached_property
    def pre_score(self) -> tuple[PreScore[Any], ...]:
        """Configured pre-scores, then those that an enabled score needs."""
        configured = self._at("preScore")
        needed = (each for each, _ in self.score if isinstance(each, PreScore))
        return tuple(dict.fromkeys((*configured, *needed)))

    @cached_property
    def score(self) -> tuple[tuple[Score[Any], int], ...]:
        """Score plugins with their weights."""
        weights = (enabled.weight for enabled in self.points.get("score", ()))
        return tuple(zip(self._at("score"), weights, strict=True))

    @property
    def reads(self) -> int:
        """The kinds of change that some plugin reads to decide."""
        scores = (plugin for plugin, _ in self.score)
        deciding = (*self.pre_filter, *self.filter, *self.post_filter, *self.pre_score, *scores)
        return unite(int(plugin.reads) for plugin in deciding)

    @cached_property
    def reserve(self) -> tuple[Reserve, ...]:
        return self._at("reserve")

    @cached_property
    def permit(self) -> tuple[Permit, ...]:
        return self._at("permit")

    @cached_property
    def pre_bind(self) -> tuple[PreBind, ...]:
        return self._at("preBind")

    @cached_property
    def bind(self) -> tuple[Bind, ...]:
        return self._at("bind")

    @cached_property
    def post_bind(self) -> tuple[PostBind, ...]:
        return self._at("postBind")

    def _at(self, point: str) -> tuple[Any, ...]:
        return tuple(self.plugins[each.name] for each in self.points.get(point, ()))


def is_traceable(plugin: NodeFilter | NodeScore) -> bool:
    """Whether a plugin decides by being asked node by node, and by nothing else of pods."""
    if isinstance(plugin, Sign | PreFilter | PreScore):
        return False
    kind = type(plugin)
    own = [
        (NodeFilter, Filter, ("filter", "recheck")),
        (NodeScore, Score, ("score", "normalize", "rescore")),
    ]
    for plain, point, names in own:
        if isinstance(plugin, point) and not isinstance(plugin, plain):
            return False
        if not isinstance(plugin, plain):
            continue
        if any(getattr(kind, name) is not getattr(plain, name) for name in names):
            return False
    # What is watched may depend on more of the pod.
    return kind.watch is Plugin.watch


def known_plugins(registry: Registry) -> dict[str, KnownPlugin]:
    """Returns what the configuration must know about plugins: their points and arguments."""
    return {
        name: KnownPlugin(
            frozenset(point for point, kind in POINTS.items() if issubclass(plugin, kind)),
            plugin.Args,
        )
        for name, plugin in registry.items()
    }


def once_per_profile(
    find: Callable[Concatenate[Profile, P], T],
) -> Callable[Concatenate[Profile, P], T]:
    """Keeps what a function finds out about the plugins of a profile, as long as that exists."""

    @wraps(find)
    def find_once(profile: Profile, /, *args: P.args, **named: P.kwargs) -> T:
        findings, key = profile.findings, (find, args)
        if key in findings:
            return findings[key]
        if len(findings) >= _MOST_FINDINGS:
            findings.clear()
        found = findings[key] = find(profile, *args, **named)
        return found

    return find_once
