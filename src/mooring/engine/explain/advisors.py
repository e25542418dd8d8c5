"""Who knows what to do about a rejection: the plugin itself, or what is known about it here.

Here is what needs more than a plugin is given: its profile, or what counts over whole domains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec

from mooring.framework.advice import Advice, Advise
from mooring.framework.calls import PluginFence
from mooring.framework.plugin import PreFilter
from mooring.framework.status import PluginError

from .case import Case, RowNumbers
from .node_advice import advise_on_labels, advise_on_taints
from .pod_advice import advise_on_affinity, advise_on_ports
from .room_advice import advise_on_resources
from .spread_advice import advise_on_spread
from .volume_advice import advise_on_volumes

#: Looks at rows that its plugin rejects, or at all rows where the plugin rejects the pod itself.
Advisor = Callable[[Case, RowNumbers], Iterator[Advice]]

ADVISORS: Mapping[str, Advisor] = {
    "TaintToleration": advise_on_taints,
    "NodeAffinity": advise_on_labels,
    "NodeResourcesFit": advise_on_resources,
    "NodePorts": advise_on_ports,
    "InterPodAffinity": advise_on_affinity,
    "PodTopologySpread": advise_on_spread,
    "VolumeBinding": advise_on_volumes,
    "VolumeZone": advise_on_volumes,
    "VolumeRestrictions": advise_on_volumes,
    "NodeVolumeLimits": advise_on_volumes,
}

# Each piece of advice is tried on all nodes: a plugin may not have everybody wait for its ideas.
_MOST_ADVICE = 12


def advised(case: Case, name: str, rows: RowNumbers) -> Iterator[Advice]:
    """What is known to help about a plugin's no, if anything is."""
    plugin = case.profile.plugins.get(name)
    if isinstance(plugin, Advise):
        yield from _own(plugin, case, rows)
    elif name in ADVISORS:
        yield from ADVISORS[name](case, rows)


def _own(plugin: Advise[Any], case: Case, rows: RowNumbers) -> Iterator[Advice]:
    values = case.prepared.prepared
    prepared = values.get(plugin.name) if isinstance(plugin, PreFilter) else case.pod
    try:
        with PluginFence('asking plugin "{}" for advice', plugin):
            told = list(islice(plugin.advise(case.pod, prepared, case.nodes, rows), _MOST_ADVICE))
            for each in told:
                _check(each, case)
    except PluginError as error:
        # What others wrote must not cost the explanation.
        yield Advice(str(error))
        return
    yield from told


def _check(told: object, case: Case) -> None:
    if not isinstance(told, Advice):
        raise TypeError(f"{type(told).__name__} is no Advice")
    for edit in told.edits:
        # A field of a wrong type fails here, and not where the edit is written.
        msgspec.convert(msgspec.to_builtins(edit), type(edit))
    # Edits of what is not there fail here, and not where everybody's are tried.
    case.after(told.edits)
