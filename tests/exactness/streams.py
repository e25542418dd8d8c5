"""Streams of events at random: a cluster that changes while pods are scheduled.

A seed tells the whole stream, given what the engine answers: whoever performs its actions is in
here too. Streams differ in what happens in them, so that some are quiet and others wild.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import msgspec

from moorage.engine.actions import (
    Action,
    BindPod,
    EvictPod,
    PatchPodStatus,
    ReleaseClaim,
    RevokeClaims,
    WriteClaims,
    WriteVolumes,
)
from moorage.engine.events import (
    Applied,
    BindingFailed,
    Bound,
    Event,
    Evicted,
    EvictionFailed,
    Removed,
)
from moorage.objects.coexist import GROUP
from moorage.objects.csi import MIGRATED_PLUGINS
from moorage.objects.custom import CustomKind
from moorage.objects.decode import from_builtins
from moorage.objects.in_tree import GCE_PD
from moorage.objects.node import ZONE
from moorage.objects.storage import BIND_COMPLETED
from moorage_policies.disk_io.disk_io_resource import KIND as DISKS
from tests.builders import Manifest, node_manifest, pod_manifest
from tests.exactness import device_streams, group_streams
from tests.exactness.group_streams import FOR_GROUPS
from tests.exactness.templates import (
    IMAGES,
    NAMESPACES,
    Template,
    coexisting,
    repelling,
    some_disk_use,
    some_labels,
    some_policy,
    some_taints,
    stateful,
    template,
    variation,
)
from tests.storage_builders import DRIVER

_TERMINATING = "2024-01-01T00:00:00Z"
_FEATURES = ("RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport")

Events = Iterator[Event]
Kind = str | CustomKind


@dataclass(frozen=True, slots=True)
class Shape:
    """How large a stream is, and for whom its pods wait."""

    nodes: tuple[int, int] = (3, 12)
    turns: int = 40
    schedulers: tuple[str, ...] = ("default-scheduler",)
    #: Whether some pods tolerate no others on their node.
    coexisting: bool = False
    #: Whether nodes tell what their disks can do, and pods what they need of them.
    disks: bool = False
    #: Whether nodes claim, and pods ask for, more than 64 bits hold.
    extreme: bool = False
    #: Whether things change that only plugins of others read: see `honest_plugins`.
    outsiders: bool = False
    #: Whether pods are those of stateful sets, with volumes of their own, and attachments are few.
    stateful: bool = False
    #: Whether pods with some labels share nodes with their like, whatever their policies are.
    grouped: bool = False
    #: Whether there are devices, and pods that ask for some.
    devices: bool = False
    #: Whether rules taint devices, which only some versions follow.
    taint_rules: bool = False
    #: Whether some pods are placed together: the feature gates of `group_streams` are on.
    gangs: bool = False
    #: How many times as many pods come, and are decided, at once.
    burst: int = 1
    #: Whether pods end soon, and those that wait are given up, so that most find room.
    fleeting: bool = False


#: So many pods stay per node in a stream of fleeting ones.
_MOST_PLACED = 6

PLAIN = {"cpu": 16, "memory": "32Gi"}
EXTREME = ("4Gi", "8Ei", "8Ei", "64Pi", "9Pi", "0", "1")
EXTREME_CPU = ("2", "9223372036854775", "9223372036854775807", "72057594037927936m", "0")

#: Streams in which some pods are exclusive, on as many nodes as that takes.
COEXISTING = Shape(nodes=(6, 24), coexisting=True)


class World:
    """What the API server would know, and everyone who changes it but the scheduler."""

    def __init__(self, seed: int, shape: Shape) -> None:
        self.random = Random(seed)
        self.shape = shape
        self.now = 0.0
        #: All objects by kind and key, as they are written.
        self.objects: dict[Kind, dict[str, Manifest]] = {}
        self._later: list[Callable[[], Events]] = []
        self._number = 0
        self._is_uniform = self.random.random() < 0.6
        #: In a calm stream, pods concern each other only by the room that they take.
        self._is_calm = self.random.random() < 0.45
        count = self.random.choice([1, 2, 3, 5])
        self.templates: list[Template] = []
        for at in range(count):
            self.templates.append(self._template(f"t{at}", shape.schedulers))
        # What keeps happening hides what happens once: after some changes, all answers are found
        # anew. So most streams see few kinds of change.
        churn = _CALM if self._is_calm else _CALM + _WILD
        kinds = min(len(churn), self._pick([1, 1, 2, 2, 4, 30]))
        self._churn = self.random.sample(churn, kinds)
        if shape.disks:
            self._churn += [World.change_disk, World.change_disk, World.annotate_pod]
        if shape.outsiders:
            self._churn += self.random.sample(_FOR_OUTSIDERS, self._pick([1, 2, 4]))
        if shape.stateful:
            self._churn += self.random.sample(_FOR_STATEFUL, self._pick([1, 2, 3]))
        if shape.devices:
            self._churn += device_streams.pick_changes(self.random, shape)
        if shape.gangs:
            self._churn += self.random.sample(FOR_GROUPS, self._pick([2, 4]))
        self._aspects = self.random.sample(_ASPECTS, self._pick([1, 1, 2, len(_ASPECTS)]))
        if shape.coexisting:
            # Nodes fill up soon where each takes one pod only.
            more = (World.change_policy, World.nominate_pod)
            self._churn += self.random.sample(more, self._pick([0, 1, 2]))
            self._churn += [World.delete_running_pods] * max(1, len(self._churn))

    # What happens

    def opening(self) -> Events:
        """What is there before the first decision."""
        for name in NAMESPACES:
            yield from self.apply("Namespace", _meta(name, labels={"team": self._pick("ab")}))
        yield from self.apply("StorageClass", _storage_class("late", "WaitForFirstConsumer"))
        for _ in range(self.random.randint(*self.shape.nodes)):
            yield from self.add_node()
        yield from self._equip_nodes()
        for _ in range(self.random.choice([0, 0, 4, 12])):
            yield from self.run_pod()

    def _equip_nodes(self) -> Events:
        """What is told of the nodes besides: attach limits, disks and devices."""
        if any(each.claim for each in self.templates):
            for name in list(self.all("Node")):
                yield from self.limit_volumes(name)
        if self.shape.disks:
            for name in list(self.all("Node")):
                yield from self.apply(DISKS, self._disk(name))
        if self.shape.devices:
            yield from device_streams.opening(self)

    def turn(self) -> Events:
        """What happens between two steps of the engine."""
        self.now += self.random.choice([0.0, 0.1, 1.0, 5.0, 40.0])
        if self.shape.fleeting:
            most = _MOST_PLACED * len(self.all("Node"))
            yield from self._end_oldest(self._pods(placed=True), most)
            yield from self._end_oldest(self._pods(placed=False), self._pick([1, 10, 40]))
        for _ in range(self.random.choice([0, 0, 1, 1, 2, 5])):
            if self._later:
                yield from self._later.pop(self.random.randrange(len(self._later)))()
        if self.random.random() < 0.5:
            yield from self.create_pods()
            if self.shape.gangs:
                yield from group_streams.create_gang(self)
        for _ in range(self.random.choice([0, 0, 0, 1, 1, 2, 30]) if self._churn else 0):
            yield from self._pick(self._churn)(self)

    def _end_oldest(self, pods: list[str], most: int) -> Events:
        for uid in pods[: max(0, len(pods) - most)]:
            yield from self.remove("Pod", uid)

    def perform(self, actions: Sequence[Action]) -> Events:
        """Does what the engine asks for, or fails to, at once or later."""
        for action in actions:
            match action:
                case BindPod(pod, node):
                    yield from self._soon(_partial(self._bind, pod.uid, node))
                case EvictPod(pod, preemptor):
                    yield from self._soon(_partial(self._evict, pod.uid, preemptor.uid))
                case PatchPodStatus(pod):
                    if self.random.random() < 0.7:
                        yield from self._soon(_partial(self._patch, action))
                case WriteVolumes(pod):
                    yield from self._soon(_partial(self._write_volumes, action))
                case WriteClaims() | RevokeClaims() | ReleaseClaim():
                    yield from self._soon(_partial(device_streams.perform, self, action))

    def _template(self, name: str, schedulers: tuple[str, ...]) -> Template:
        made = self._plain_template(name, schedulers)
        if self.shape.stateful and self.random.random() < 0.6:
            made = stateful(self.random, made)
        if self.shape.devices and self.random.random() < 0.6:
            made = device_streams.asking(self.random, made)
        if self.shape.fleeting and self.random.random() < 0.7:
            made.spec["preemptionPolicy"] = "Never"
        if self.shape.disks:
            return replace(made, annotations={**made.annotations, **some_disk_use(self.random)})
        return made

    def _plain_template(self, name: str, schedulers: tuple[str, ...]) -> Template:
        if self.templates and self.random.random() < 0.5:
            like = self._pick(self.templates)
            made = variation(self.random, like, name, calm=self._is_calm)
        else:
            made = template(self.random, name, schedulers, calm=self._is_calm)
        return coexisting(self.random, made) if self.shape.coexisting else made

    # Objects

    def apply(self, kind: Kind, manifest: Manifest) -> Events:
        """Writes an object and tells of it."""
        if self.shape.grouped and kind == "Pod":
            _group_by_label(manifest["metadata"])
        self.objects.setdefault(kind, {})[_key(manifest)] = manifest
        yield Applied(from_builtins(kind, manifest))

    def remove(self, kind: Kind, key: str) -> Events:
        yield Removed(from_builtins(kind, self.objects[kind].pop(key)))
        if kind == "Pod" and self.shape.devices:
            yield from device_streams.free_claims(self, key)

    def later(self, happen: Callable[[], Events]) -> None:
        """Lets something happen in a later turn."""
        self._later.append(happen)

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def all(self, kind: Kind) -> dict[str, Manifest]:
        return self.objects.setdefault(kind, {})

    def _change(self, kind: str, key: str) -> Manifest:
        """A copy to be changed and applied."""
        return _copy(self.objects[kind][key])

    def _pick(self, choices: Any) -> Any:
        return self.random.choice(list(choices))

    def _soon(self, happen: Callable[[], Events]) -> Events:
        if self.random.random() < 0.6:
            yield from happen()
        else:
            self._later.append(happen)

    # Performing

    def _bind(self, uid: str, node: str) -> Events:
        if uid not in self.all("Pod") or self.random.random() < 0.08:
            yield BindingFailed(uid, "the binding was refused")
            return
        manifest = self._change("Pod", uid)
        if manifest["spec"].get("nodeName"):
            yield BindingFailed(uid, "the pod is bound already")
            return
        manifest["spec"]["nodeName"] = node
        before = self._change("Pod", uid)
        applied = list(self.apply("Pod", manifest))
        if self.random.random() < 0.1:
            # It ends while nobody listens: a list tells later that it is gone, or what is left.
            applied = list(self._end_unseen(uid, before))
        events = [Bound(uid), *applied]
        self.random.shuffle(events)
        yield from events

    def _end_unseen(self, uid: str, before: Manifest) -> Events:
        if self.random.random() < 0.5:
            del self.objects["Pod"][uid]
            yield Removed(from_builtins("Pod", before))
        else:
            manifest = self._change("Pod", uid)
            manifest["status"]["phase"] = "Succeeded"
            yield from self.apply("Pod", manifest)

    def _evict(self, uid: str, preemptor: str) -> Events:
        if uid not in self.all("Pod") or self.random.random() < 0.1:
            yield EvictionFailed(uid, preemptor, "the eviction was refused")
            return
        yield from self._terminate(uid)
        yield Evicted(uid, preemptor)
        yield from self._soon(_partial(self._finish, uid))

    def _terminate(self, uid: str) -> Events:
        manifest = self._change("Pod", uid)
        manifest["metadata"]["deletionTimestamp"] = _TERMINATING
        yield from self.apply("Pod", manifest)

    def _finish(self, uid: str) -> Events:
        if uid in self.all("Pod"):
            yield from self.remove("Pod", uid)

    def _patch(self, action: PatchPodStatus) -> Events:
        uid = action.pod.uid
        if uid not in self.all("Pod"):
            return
        manifest = self._change("Pod", uid)
        if action.nominated_node_name is not None:
            manifest["status"]["nominatedNodeName"] = action.nominated_node_name
        if action.condition is not None:
            condition = action.condition
            manifest["status"]["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": condition.reason,
                    "message": condition.message,
                }
            ]
        yield from self.apply("Pod", manifest)

    def _write_volumes(self, action: WriteVolumes) -> Events:
        if self.random.random() < 0.2:
            yield BindingFailed(action.pod.uid, "the volumes could not be written")
            return
        for write in action.claims:
            key = f"{write.namespace}/{write.name}"
            if key in self.all("PersistentVolumeClaim"):
                yield from self._bind_claim(key)
        for bound in action.volumes:
            key = f"{bound.claim_namespace}/{bound.claim_name}"
            known = bound.name in self.all("PersistentVolume")
            if known and key in self.all("PersistentVolumeClaim"):
                yield from self._bind_claim(key, self._change("PersistentVolume", bound.name))

    # Nodes

    def add_node(self) -> Events:
        most = self.shape.nodes[1] + 12
        free = [name for at in range(most) if (name := f"n{at}") not in self.all("Node")]
        if free:
            yield from self.apply("Node", self._node(self._pick(free[:6])))

    def _node(self, name: str) -> Manifest:
        labels = {}
        if self.random.random() < 0.9:
            labels[ZONE] = self._pick("abc")
        if self.random.random() < 0.6:
            labels["disk"] = self._pick(["ssd", "hdd"])
        if self.random.random() < 0.3:
            labels["rank"] = self._pick(["1", "7", "x"])
        plain = self._is_uniform and self.random.random() < 0.8
        return node_manifest(
            name,
            labels=labels,
            spec={"taints": [] if plain else some_taints(self.random)},
            status={"images": self._images(), "declaredFeatures": self._features()},
            **(self._capacity() if self.shape.extreme or not plain else PLAIN),
        )

    def _capacity(self) -> Any:
        extreme = self.shape.extreme
        has: dict[str, Any] = {
            "cpu": self._pick(EXTREME_CPU if extreme else ["2", "4", "16"]),
            "memory": self._pick(EXTREME if extreme else ["4Gi", "16Gi", "16Gi", "0"]),
            "pods": self._pick([3, 110, 110, 110]),
        }
        if self.random.random() < 0.3:
            has["gpu"] = self._pick([0, 1, 4])
        return has

    def _images(self) -> list[Manifest]:
        names = self.random.sample(sorted(IMAGES), self._pick([0, 1, 1, 2]))
        tagged = {name: name if ":" in name else f"{name}:latest" for name in names}
        return [
            {"names": [tagged[name]], "sizeBytes": IMAGES[name] * 2**20} for name in sorted(names)
        ]

    def _features(self) -> list[str]:
        return [name for name in _FEATURES if self.random.random() < 0.6]

    def remove_node(self) -> Events:
        if len(self.all("Node")) > 2:
            yield from self.remove("Node", self._pick(self.all("Node")))

    def change_node(self) -> Events:
        """One thing about one node is different."""
        yield from self._change_node(self._pick(self._aspects))

    def cordon(self) -> Events:
        yield from self._change_node(World._cordon)

    def taint(self) -> Events:
        yield from self._change_node(World._taint)

    def _change_node(self, change: Callable[[World, Manifest], None]) -> Events:
        if self.all("Node"):
            manifest = self._change("Node", self._pick(self.all("Node")))
            change(self, manifest)
            yield from self.apply("Node", manifest)

    def _cordon(self, node: Manifest) -> None:
        node["spec"]["unschedulable"] = not node["spec"].get("unschedulable")

    def _taint(self, node: Manifest) -> None:
        node["spec"]["taints"] = some_taints(self.random)

    def _relabel(self, node: Manifest) -> None:
        key, values = self._pick([(ZONE, "abc"), ("disk", ["ssd", "hdd"]), ("rank", "17")])
        node["metadata"]["labels"].pop(key, None)
        if self.random.random() < 0.8:
            node["metadata"]["labels"][key] = self._pick(values)

    def _resize(self, node: Manifest) -> None:
        other = node_manifest("other", **self._capacity())
        node["status"]["allocatable"] = other["status"]["allocatable"]

    def _pull_images(self, node: Manifest) -> None:
        node["status"]["images"] = self._images()

    def _declare(self, node: Manifest) -> None:
        node["status"]["declaredFeatures"] = self._features()
        node["metadata"]["annotations"] = {"seen": self._pick("xy")}

    # Pods

    def create_pods(self) -> Events:
        """Pods of one controller, or of several in turn."""
        of = self.random.sample(self.templates, min(len(self.templates), self._pick([1, 1, 2])))
        for _ in range(self._pick([1, 2, 4, 9]) * self.shape.burst):
            for each in of:
                yield from self.create(each)

    def create(self, of: Template, node: str = "", **status: str) -> Events:
        """A pod of a template, waiting or on a node, with the claims that it needs."""
        manifest = self._pod(of, node)
        manifest["status"].update(status)
        if of.claim:
            yield from self._claim(of, manifest)
        yield from device_streams.claim_devices(self, of, manifest)
        yield from self.apply("Pod", manifest)

    def _pod(self, of: Template, node: str) -> Manifest:
        number = self.next_number()
        labels = dict(of.labels)
        if of.is_indexed:
            labels["index"] = str(number % 7)
        owner = {"apiVersion": "apps/v1", "kind": of.owner_kind, "name": of.owner}
        owners = {"ownerReferences": [{**owner, "controller": True}]} if of.owner else {}
        spec = _copy(of.spec)
        if self.shape.extreme:
            for each in spec["containers"]:
                asked = {"cpu": self._pick(EXTREME_CPU), "memory": self._pick(EXTREME)}
                each["resources"] = {"requests": asked}
        annotations = dict(of.annotations)
        if self.shape.outsiders:
            annotations["team"] = self._pick("ab")
            plain = 60 if self.shape.fleeting else 12
            labels["team"] = self._pick([*["plain"] * plain, "odd", "list"])
        return pod_manifest(
            f"{of.name}-{number}",
            namespace=of.namespace,
            labels=labels,
            node=node,
            spec={**spec, "priority": self._pick(of.priorities)},
            metadata={**owners, "annotations": annotations},
        )

    def run_pod(self) -> Events:
        """A pod appears on a node: of a template of ours, or one that nobody has seen before."""
        of = self._pick(self.templates)
        if self.random.random() < 0.5:
            of = self._template(f"x{self._number}", ("default-scheduler",))
        names = [*self.all("Node"), "nowhere"] if self.random.random() < 0.1 else self.all("Node")
        if names:
            yield from self.create(of, self._pick(names))

    def run_repelling_pod(self) -> Events:
        if self.all("Node"):
            of = repelling(self.random, f"z{self._number}")
            yield from self.create(of, self._pick(self.all("Node")))

    def nominate_pod(self) -> Events:
        """An important pod waits, with a node kept for it."""
        of = self._pick(self.templates)
        if self.random.random() < 0.5:
            of = self._template(f"y{self._number}", ("default-scheduler",))
        priorities = (self._pick([0, 5, 20]),)
        important = replace(of, priorities=priorities, is_indexed=False, claim="")
        if self.random.random() < 0.6:
            important.spec["schedulingGates"] = [{"name": "wait"}]
        names = [*self.all("Node"), "nowhere"]
        yield from self.create(important, nominatedNodeName=self._pick(names))

    def _pods(self, *, placed: bool) -> list[str]:
        return [
            uid
            for uid, manifest in self.all("Pod").items()
            if bool(manifest["spec"].get("nodeName")) == placed
        ]

    def bind_elsewhere(self) -> Events:
        """Somebody else binds a pod that waits for us."""
        waiting = self._pods(placed=False)
        if waiting and self.all("Node"):
            manifest = self._change("Pod", self._pick(waiting))
            manifest["spec"]["nodeName"] = self._pick(self.all("Node"))
            yield from self.apply("Pod", manifest)

    def delete_pod(self) -> Events:
        if self.all("Pod"):
            yield from self.remove("Pod", self._pick(self.all("Pod")))

    def delete_running_pods(self) -> Events:
        placed = self._pods(placed=True)
        for uid in self.random.sample(placed, min(len(placed), self._pick([1, 3]))):
            yield from self.remove("Pod", uid)

    def terminate_pod(self) -> Events:
        if self.all("Pod"):
            uid = self._pick(self.all("Pod"))
            yield from self._terminate(uid)
            self._later.append(_partial(self._finish, uid))

    def relabel_pod(self) -> Events:
        if self.all("Pod"):
            manifest = self._change("Pod", self._pick(self.all("Pod")))
            manifest["metadata"]["labels"].update(some_labels(self.random))
            manifest["metadata"]["labels"]["index"] = str(self.random.randrange(7))
            yield from self.apply("Pod", manifest)

    def change_policy(self) -> Events:
        """A pod, running or not, tolerates others no longer, or again."""
        if self.all("Pod"):
            manifest = self._change("Pod", self._pick(self.all("Pod")))
            manifest["metadata"]["annotations"] = some_policy(self.random)
            yield from self.apply("Pod", manifest)

    def resize_pod(self) -> Events:
        placed = self._pods(placed=True)
        if placed:
            manifest = self._change("Pod", self._pick(placed))
            cpu, memory = ("9223372036854775", "8Ei") if self.shape.extreme else ("2", "3Gi")
            requests = {"cpu": self._pick(["50m", cpu]), "memory": self._pick(["64Mi", memory])}
            if self.random.random() < 0.5:
                manifest["spec"]["containers"][0]["resources"] = {"requests": requests}
            else:
                granted = {"name": "main", "resources": {"requests": requests}}
                manifest["status"]["containerStatuses"] = [granted]
            yield from self.apply("Pod", manifest)

    def finish_pod(self) -> Events:
        placed = self._pods(placed=True)
        if placed:
            manifest = self._change("Pod", self._pick(placed))
            manifest["status"]["phase"] = "Succeeded"
            yield from self.apply("Pod", manifest)

    def change_waiting_pod(self) -> Events:
        waiting = self._pods(placed=False)
        if waiting:
            manifest = self._change("Pod", self._pick(waiting))
            manifest["spec"].pop("schedulingGates", None)
            if self.random.random() < 0.3:
                names = ["", *self.all("Node")]
                manifest["status"]["nominatedNodeName"] = self._pick(names)
            yield from self.apply("Pod", manifest)

    # What only plugins of others read

    def tell_of_pod(self) -> Events:
        """Something is said of a running pod that changes nothing of what it takes."""
        placed = self._pods(placed=True)
        if placed:
            manifest = self._change("Pod", self._pick(placed))
            match self.random.randrange(3):
                case 0:
                    noisy = {"noisy": self._pick(["yes", "no", "no"])}
                    manifest["metadata"].setdefault("annotations", {}).update(noisy)
                case 1:
                    manifest["status"]["phase"] = self._pick(["Pending", "Running", "Running"])
                case 2:
                    owner = {"kind": "Job", "name": self._pick(["batch", "set", "set"])}
                    manifest["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
            yield from self.apply("Pod", manifest)

    def change_conditions(self) -> Events:
        yield from self._change_node(World._press)

    def mark_node(self) -> Events:
        yield from self._change_node(World._mark)

    def replace_node(self) -> Events:
        yield from self._change_node(World._swap)

    def _press(self, node: Manifest) -> None:
        pressed = self._pick(["True", "False", "False"])
        node["status"]["conditions"] = [{"type": "DiskPressure", "status": pressed}]

    def _mark(self, node: Manifest) -> None:
        key = self._pick(["maintenance", "freeze", "old"])
        if node["metadata"]["labels"].pop(key, None) is None:
            node["metadata"]["labels"][key] = "yes"

    def _swap(self, node: Manifest) -> None:
        node["metadata"]["uid"] = self._pick(["", "", "impostor"])

    # Disks

    def _disk(self, name: str) -> Manifest:
        """What the disks of a node can do, now and then something that cannot be read."""
        amounts = ["0", "300Mi", "1Gi", "4Gi", "x"]
        weights = [1, 4, 4, 4, 1]
        read, write = self.random.choices(amounts, weights, k=2)
        spec = {"nodeName": name, "capacity": {"read": read, "write": write}}
        measured = {"allocatable": {"read": self._pick(amounts[:4])}}
        status = measured if self.random.random() < 0.3 else {}
        return {**_meta(f"disk-of-{name}"), "spec": spec, "status": status}

    def change_disk(self) -> Events:
        """What is told of a node's disks, which need not be there, changes or goes."""
        known = list(self.all(DISKS))
        if known and self.random.random() < 0.2:
            yield from self.remove(DISKS, self._pick(known))
        else:
            manifest = self._disk(self._pick([*self.all("Node"), "n0", "nowhere"]))
            yield from self.apply(DISKS, manifest)

    def annotate_pod(self) -> Events:
        if self.all("Pod"):
            manifest = self._change("Pod", self._pick(self.all("Pod")))
            manifest["metadata"]["annotations"] = some_disk_use(self.random)
            yield from self.apply("Pod", manifest)

    # Around pods

    def change_service(self) -> Events:
        selector = self._pick([{"app": "web"}, {"app": "db"}, {"tier": "x"}, {"index": "1"}])
        yield from self._flip("Service", self._pick(["one", "two"]), {"selector": selector})

    def change_controller(self) -> Events:
        selector = {"matchLabels": self._pick([{"app": "web"}, {"tier": "x"}, {"index": "2"}])}
        name = self._pick(["set", "other"])
        yield from self._flip("ReplicaSet", name, {"selector": selector})

    def change_budget(self) -> Events:
        selector = {"matchLabels": self._pick([{"app": "web"}, {"app": "db"}])}
        status = {"disruptionsAllowed": self._pick([0, 1])}
        yield from self._flip("PodDisruptionBudget", "budget", {"selector": selector}, status)

    def _flip(self, kind: str, name: str, spec: Manifest, status: Manifest | None = None) -> Events:
        """An object appears or changes, or goes."""
        namespace = self._pick(NAMESPACES)
        key = f"{namespace}/{name}"
        if key in self.all(kind) and self.random.random() < 0.4:
            yield from self.remove(kind, key)
        else:
            manifest = {**_meta(name, namespace), "spec": spec, "status": status or {}}
            yield from self.apply(kind, manifest)

    def change_stateful_set(self) -> Events:
        """A stateful set, or a replication controller of the same pods, comes, changes or goes."""
        labels = self._pick([{"app": "web"}, {"tier": "x"}, {"index": "2"}])
        if self.random.random() < 0.7:
            spec = {"selector": {"matchLabels": labels}}
            yield from self._flip("StatefulSet", self._pick(["set", "other"]), spec)
        else:
            yield from self._flip("ReplicationController", "set", {"selector": labels})

    def migrate_driver(self) -> Events:
        """The volumes of a disk that is part of Kubernetes are attached by a driver, or not."""
        if self.all("Node"):
            name = self._pick(self.all("Node"))
            limit = {"count": self._pick([1, 2])}
            driver = {"name": "pd.csi.storage.gke.io", "nodeID": name, "allocatable": limit}
            plugins = self._pick([GCE_PD, ""])
            meta = _meta(name)
            meta["metadata"]["annotations"] = {MIGRATED_PLUGINS: plugins}
            drivers = self._pick([[driver], [driver, {**driver, "name": DRIVER}], []])
            yield from self.apply("CSINode", {**meta, "spec": {"drivers": drivers}})

    def attach_volume(self) -> Events:
        """A volume is attached to a node, or was, whether a pod there uses it or not."""
        known = list(self.all("VolumeAttachment"))
        if known and self.random.random() < 0.4:
            yield from self.remove("VolumeAttachment", self._pick(known))
        elif self.all("PersistentVolume") and self.all("Node"):
            volume = self._pick(self.all("PersistentVolume"))
            name = f"attachment-{self.random.randrange(6)}"
            source = {"persistentVolumeName": volume}
            spec = {"attacher": DRIVER, "nodeName": self._pick(self.all("Node")), "source": source}
            yield from self.apply("VolumeAttachment", {**_meta(name), "spec": spec})

    def relabel_namespace(self) -> Events:
        labels = {"team": self._pick("ab")}
        yield from self.apply("Namespace", _meta(self._pick(NAMESPACES), labels=labels))

    # Storage

    def _claim(self, of: Template, manifest: Manifest) -> Events:
        """Gives a pod its claim, and the claim its volume unless that is to be found later."""
        name = "shared" if of.claim == "shared" else f"claim-{manifest['metadata']['name']}"
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
        manifest["spec"]["volumes"] = [*manifest["spec"].get("volumes", ()), volume]
        key = f"{of.namespace}/{name}"
        if key in self.all("PersistentVolumeClaim"):
            return
        once = self.random.random() < 0.1
        claim = {
            **_meta(name, of.namespace),
            "spec": {
                "accessModes": ["ReadWriteOncePod" if once else "ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "late",
            },
            "status": {"phase": "Pending"},
        }
        yield from self.apply("PersistentVolumeClaim", claim)
        if of.claim != "own late":
            yield from self._bind_claim(key)

    def _bind_claim(self, key: str, volume: Manifest | None = None) -> Events:
        """Binds a claim to a volume, which is made unless it is there."""
        claim = self._change("PersistentVolumeClaim", key)
        metadata = claim["metadata"]
        reference = {name: metadata[name] for name in ("namespace", "name", "uid")}
        if volume is None:
            volume = self._volume(f"pv-{key.replace('/', '-')}", reference)
        volume["spec"]["claimRef"] = reference
        volume["status"] = {"phase": "Bound"}
        metadata["annotations"] = {BIND_COMPLETED: "yes"}
        claim["spec"]["volumeName"] = volume["metadata"]["name"]
        claim["status"] = {"phase": "Bound"}
        yield from self.apply("PersistentVolume", volume)
        yield from self.apply("PersistentVolumeClaim", claim)

    def _volume(self, name: str, reference: Manifest | None = None) -> Manifest:
        spec: Manifest = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "late",
            "csi": {"driver": DRIVER, "volumeHandle": f"handle-{name}"},
        }
        if reference is not None:
            spec["claimRef"] = reference
        if self.random.random() < 0.3:
            suits = {"key": ZONE, "operator": "In", "values": ["a", self._pick("bc")]}
            terms = [{"matchExpressions": [suits]}]
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
        labels = {ZONE: self._pick("ab")} if self.random.random() < 0.2 else {}
        status = {"phase": "Available" if reference is None else "Bound"}
        return {**_meta(name, labels=labels), "spec": spec, "status": status}

    def change_storage(self) -> Events:
        match self.random.randrange(5):
            case 0:
                free = f"free-{self.random.randrange(4)}"
                yield from self.apply("PersistentVolume", self._volume(free))
            case 1 if self.all("PersistentVolume"):
                name = self._pick(self.all("PersistentVolume"))
                reference = self.all("PersistentVolume")[name]["spec"].get("claimRef")
                yield from self.apply("PersistentVolume", self._volume(name, reference))
            case 2 if self.all("PersistentVolumeClaim"):
                key = self._pick(self.all("PersistentVolumeClaim"))
                yield from self.remove("PersistentVolumeClaim", key)
            case 3 if self.all("PersistentVolume"):
                yield from self.remove("PersistentVolume", self._pick(self.all("PersistentVolume")))
            case _:
                yield from self.limit_volumes()

    def limit_volumes(self, name: str = "") -> Events:
        if self.all("Node"):
            name = name or self._pick(self.all("Node"))
            limit = {"count": self._pick([1, 2, 5])}
            driver = {"name": DRIVER, "nodeID": name, "allocatable": limit}
            yield from self.apply("CSINode", {**_meta(name), "spec": {"drivers": [driver]}})


_ASPECTS: tuple[Callable[[World, Manifest], None], ...] = (
    World._cordon,
    World._taint,
    World._relabel,
    World._relabel,
    World._resize,
    World._pull_images,
    World._declare,
)
_CALM: tuple[Callable[[World], Events], ...] = (
    World.add_node,
    World.remove_node,
    World.change_node,
    World.change_node,
    World.cordon,
    World.taint,
    World.run_pod,
    World.run_pod,
    World.bind_elsewhere,
    World.delete_running_pods,
    World.delete_running_pods,
    World.terminate_pod,
    World.relabel_pod,
    World.resize_pod,
    World.finish_pod,
)
_WILD: tuple[Callable[[World], Events], ...] = (
    World.run_repelling_pod,
    World.nominate_pod,
    World.delete_pod,
    World.change_waiting_pod,
    World.change_service,
    World.change_controller,
    World.change_budget,
    World.relabel_namespace,
    World.change_storage,
    World.limit_volumes,
)


_FOR_OUTSIDERS: tuple[Callable[[World], Events], ...] = (
    World.tell_of_pod,
    World.tell_of_pod,
    World.tell_of_pod,
    World.change_conditions,
    World.mark_node,
    World.mark_node,
    World.replace_node,
)
_FOR_STATEFUL: tuple[Callable[[World], Events], ...] = (
    World.change_stateful_set,
    World.change_stateful_set,
    World.migrate_driver,
    World.attach_volume,
    World.limit_volumes,
    World.change_storage,
)


def _copy(manifest: Manifest) -> Manifest:
    """A deep copy, many times as fast as by `deepcopy`."""
    copied: Manifest = msgspec.json.decode(msgspec.json.encode(manifest))
    return copied


def _meta(name: str, namespace: str = "", labels: Manifest | None = None) -> Manifest:
    uid = f"uid-{namespace}-{name}"
    metadata = {"name": name, "namespace": namespace, "uid": uid, "labels": labels or {}}
    return {"metadata": {key: value for key, value in metadata.items() if value}}


def _storage_class(name: str, mode: str) -> Manifest:
    return {**_meta(name), "provisioner": DRIVER, "volumeBindingMode": mode}


def _key(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def _partial(happen: Callable[..., Events], *arguments: Any) -> Callable[[], Events]:
    return lambda: happen(*arguments)


def _group_by_label(metadata: Manifest) -> None:
    """Pods of one app share nodes with their like; the others do not."""
    if metadata.get("labels", {}).get("app") == "web":
        metadata.setdefault("annotations", {})[GROUP] = "label:tier"
