"""Versions of Kubernetes: what kube-scheduler does or says differently from version to version.

This is the only table of such differences. A plugin reads its version when a profile is built.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import msgspec

from moorage.documents.errors import InputError, describe

FLAG = "--emulation-version"


@dataclass(frozen=True, slots=True)
class KubernetesVersion:
    """A version of kube-scheduler that decisions and texts follow."""

    name: str
    #: Feature gates that are on by default, and were off in the version before.
    switched_on: frozenset[str] = field(default=frozenset(), repr=False)
    #: NodeName comes first, and as a pre-filter leaves all other nodes out.
    narrows_to_named_node: bool = field(default=False, repr=False)
    #: ImageLocality expects as many images as containers and image volumes have together.
    counts_image_volumes: bool = field(default=False, repr=False)
    #: What is granted to a pod that is resized is added up before the largest counts.
    counts_sizes_by_sums: bool = field(default=False, repr=False)
    #: InterPodAffinity takes a namespace selector that accepts a namespace without labels for one
    #: that selects every namespace.
    widens_namespace_selectors: bool = field(default=True, repr=False)
    #: Which plugins make room for groups is configured besides which ones do for pods.
    has_group_post_filter: bool = field(default=False, repr=False)
    #: DynamicResources says so when there is no claim to release.
    tells_of_no_release: bool = field(default=True, repr=False)
    #: A distinct attribute of devices is compared only with the latest device of each request.
    keeps_latest_distinct: bool = field(default=True, repr=False)
    #: A configuration in a claim is written once for every request that it names, and with the
    #: names although they are those of all requests.
    repeats_device_config: bool = field(default=True, repr=False)
    #: A request for all devices leaves out those with too little capacity left.
    leaves_out_full_devices: bool = field(default=True, repr=False)
    #: A shared device without capacities takes its counters again for each further claim.
    counts_shares_again: bool = field(default=True, repr=False)
    #: A capacity that is negative, or is rounded up to more than 64 bits hold, ends an attempt.
    refuses_odd_capacities: bool = field(default=False, repr=False)
    #: The message of an expression that fails for a device names the device, and may give a hint.
    names_failing_device: bool = field(default=False, repr=False)
    #: Every node sees the slices that have counters, whichever node they are for.
    shows_counters_to_all: bool = field(default=True, repr=False)
    #: Slices count although their devices have compatibility groups.
    ignores_compatibility_groups: bool = field(default=True, repr=False)
    #: The message of a pod says for which node its victims are evicted, and how many they are.
    tells_of_victims: bool = field(default=False, repr=False)
    #: A group of pods has one priority and one preemption policy, which all its pods must have; the
    #: priority is 0 unless the group gives one.
    ranks_groups_as_one: bool = field(default=False, repr=False)
    #: Pods are also evicted for groups that the API requires to stay in one topology domain.
    evicts_for_domains: bool = field(default=False, repr=False)


VERSIONS = (
    KubernetesVersion("1.36"),
    KubernetesVersion(
        "1.37",
        switched_on=frozenset(
            {"DRADeviceTaintRules", "StorageCapacityScoring", "VolumeLimitScaling"}
        ),
        narrows_to_named_node=True,
        counts_image_volumes=True,
        counts_sizes_by_sums=True,
        widens_namespace_selectors=False,
        has_group_post_filter=True,
        tells_of_no_release=False,
        keeps_latest_distinct=False,
        repeats_device_config=False,
        leaves_out_full_devices=False,
        counts_shares_again=False,
        refuses_odd_capacities=True,
        names_failing_device=True,
        shows_counters_to_all=False,
        ignores_compatibility_groups=False,
        tells_of_victims=True,
        ranks_groups_as_one=True,
        evicts_for_domains=True,
    ),
)

#: Without an API server that has a version.
DEFAULT_VERSION = VERSIONS[0]

_BY_NAME = {version.name: version for version in VERSIONS}


def read_version(text: str, source: str = FLAG) -> KubernetesVersion:
    """Returns the version of a name such as 1.37 or kube=1.37.

    Raises InputError for any other.
    """
    found = _BY_NAME.get(text.strip().removeprefix("kube="))
    if found is None:
        names = " or ".join(_BY_NAME)
        raise InputError(source, f"must be {names}, got {describe(text)}")
    return found


class _ServerVersion(msgspec.Struct):
    major: str = ""
    minor: str = ""


def read_server_version(answer: bytes) -> KubernetesVersion:
    """Returns the version to follow with an API server that gives this answer at /version.

    It is the nearest known version if the server is older or newer than all.
    """
    try:
        server = msgspec.json.decode(answer, type=_ServerVersion)
    except msgspec.MsgspecError:
        return DEFAULT_VERSION
    # Providers write a minor version such as 37+.
    digits = re.match(r"[0-9]{1,4}", server.minor)
    if server.major != "1" or digits is None:
        return DEFAULT_VERSION
    by_minor = {int(version.name.partition(".")[2]): version for version in VERSIONS}
    return by_minor[min(max(int(digits[0]), min(by_minor)), max(by_minor))]
