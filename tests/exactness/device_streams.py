"""Devices in streams: classes, slices and claims that come, change and go, and who uses them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from moorage.engine.actions import Action, PodRef, ReleaseClaim, RevokeClaims, WriteClaims
from moorage.engine.events import (
    BindingFailed,
    ClaimsRevoked,
    ClaimsWritten,
    Event,
    ReleaseFailed,
)
from moorage.framework.device_writes import ClaimCreation
from moorage.objects.node import ZONE
from moorage.objects.resource_claim import EXTENDED_CLAIM
from tests.builders import Manifest
from tests.device_builders import (
    claim_manifest,
    device,
    request,
    result,
    slice_manifest,
    taint_rule_manifest,
)
from tests.exactness.templates import GPU, Template

if TYPE_CHECKING:
    from tests.exactness.streams import Shape, World

Events = Iterator[Event]

CLAIMS, CLASSES, SLICES = "ResourceClaim", "DeviceClass", "ResourceSlice"
_RULES = "DeviceTaintRule"
_MODEL = 'device.attributes["gpu.example.com"].model == "{}"'
_MODELS = ("A100", "L4")
#: The name of the claim that all pods of a template share.
_SHARED = "shared"


def opening(world: World) -> Events:
    """What is there before the first decision: perhaps no class yet, and devices on some nodes."""
    for name in world.random.sample(("gpu", "l4"), world.random.choice([0, 1, 2, 2])):
        yield from world.apply(CLASSES, _class(world.random, name))
    for name in list(world.all("Node")):
        if world.random.random() < 0.7:
            yield from world.apply(SLICES, _slice(world.random, name))


def asking(random: Random, of: Template) -> Template:
    """The template, whose pods may ask for devices by a resource, or by claims."""
    spec = deepcopy(of.spec)
    match random.randrange(5):
        case 0 | 1:
            name = random.choice([GPU, GPU, "deviceclass.resource.kubernetes.io/l4"])
            amount = random.choice(["1", "1", "2"])
            asked = spec["containers"][0].setdefault("resources", {})
            for part in ("requests", "limits"):
                asked[part] = {**asked.get(part, {}), name: amount}
            return replace(of, spec=spec)
        case 2:
            spec["resourceClaims"] = [{"name": "device", "resourceClaimTemplateName": "t"}]
            return replace(of, spec=spec, devices=random.choice(["gpu", "gpu", "l4"]))
        case 3:
            spec["resourceClaims"] = [{"name": "device", "resourceClaimName": _SHARED}]
            return replace(of, spec=spec)
    return of


def claim_devices(world: World, of: Template, pod: Manifest) -> Events:
    """Makes the claim of a pod, as the controller does, before the pod itself is seen or after."""
    if not of.devices:
        return
    meta = pod["metadata"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
    metadata = {
        "namespace": of.namespace,
        "uid": f"claim-{meta['uid']}",
        "ownerReferences": [{**owner, "controller": True}],
    }
    name = f"{meta['name']}-device"
    count = 2 if len(of.name) % 3 == 0 else 1
    made = claim_manifest(name, request(class_name=of.devices, count=count), metadata=metadata)
    pod["status"]["resourceClaimStatuses"] = [{"name": "device", "resourceClaimName": name}]
    if world.random.random() < 0.9:
        yield from world.apply(CLAIMS, made)
    else:
        world.later(lambda: world.apply(CLAIMS, made))


def free_claims(world: World, uid: str) -> Events:
    """A pod is gone: its own claims go, too, and others lose it as a user."""
    for key, known in list(world.all(CLAIMS).items()):
        owners = [each["uid"] for each in known["metadata"].get("ownerReferences", ())]
        users = known["status"].get("reservedFor", [])
        if uid in owners:
            yield from world.remove(CLAIMS, key)
        elif uid in [each["uid"] for each in users]:
            changed = deepcopy(known)
            left = [each for each in users if each["uid"] != uid]
            changed["status"]["reservedFor"] = left
            if not left:
                changed["status"] = {}
            yield from world.apply(CLAIMS, changed)


# Performing


def perform(world: World, action: Action) -> Events:
    """Does what the engine asks for about claims, or fails to."""
    match action:
        case WriteClaims(pod):
            if world.random.random() < 0.1 or not _write(world, action):
                yield BindingFailed(pod.uid, "the claims could not be written")
                return
            yield from _grant(world, action)
            yield ClaimsWritten(pod.uid)
        case RevokeClaims(pod):
            yield from _revoke(world, action)
            yield ClaimsRevoked(pod.uid)
        case ReleaseClaim(pod, release):
            if release.claim.key not in world.all(CLAIMS):
                yield ReleaseFailed(pod.uid, "the claim is gone")
            elif release.deletes:
                yield from world.remove(CLAIMS, release.claim.key)
            else:
                yield from _free(world, release.claim.key)


def _write(world: World, action: WriteClaims) -> bool:
    """Whether all claims of a pod are there, and the pod itself."""
    there = world.all(CLAIMS)
    is_known = action.pod.uid in world.all("Pod")
    return is_known and all(each.claim.key in there for each in action.writes.grants)


def _grant(world: World, action: WriteClaims) -> Events:
    user = {"resource": "pods", "name": action.pod.name, "uid": action.pod.uid}
    for grant in action.writes.grants:
        changed = deepcopy(world.all(CLAIMS)[grant.claim.key])
        if grant.allocation is not None:
            changed["status"]["allocation"] = grant.allocation
        users = changed["status"].setdefault("reservedFor", [])
        if user not in users:
            users.append(user)
        yield from world.apply(CLAIMS, changed)
    creation = action.writes.creation
    if creation is not None:
        yield from world.apply(CLAIMS, _special(creation, action.pod, user))


def _special(creation: ClaimCreation, pod: PodRef, user: Manifest) -> Manifest:
    """The claim for the extended resources of a pod."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
    metadata = {
        "name": f"{pod.name}-extended",
        "namespace": pod.namespace,
        "uid": f"extended-{pod.uid}",
        "annotations": {EXTENDED_CLAIM: "true"},
        "ownerReferences": [{**owner, "controller": True}],
    }
    status = {"allocation": creation.allocation, "reservedFor": [user]}
    return {"metadata": metadata, "spec": {"devices": creation.devices}, "status": status}


def _revoke(world: World, action: RevokeClaims) -> Events:
    for key, known in list(world.all(CLAIMS).items()):
        users = known["status"].get("reservedFor", [])
        if action.pod.uid not in [each["uid"] for each in users]:
            continue
        is_special = EXTENDED_CLAIM in known["metadata"].get("annotations", {})
        if is_special and action.deletes_special:
            yield from world.remove(CLAIMS, key)
        elif not is_special:
            changed = deepcopy(known)
            left = [each for each in users if each["uid"] != action.pod.uid]
            changed["status"]["reservedFor"] = left
            yield from world.apply(CLAIMS, changed)


def _free(world: World, key: str) -> Events:
    changed = deepcopy(world.all(CLAIMS)[key])
    changed["status"] = {}
    yield from world.apply(CLAIMS, changed)


# What changes


def change_class(world: World) -> Events:
    """A class comes, serves another resource, selects other devices, or goes."""
    name = world.random.choice(["gpu", "l4", "other"])
    if name in world.all(CLASSES) and world.random.random() < 0.3:
        yield from world.remove(CLASSES, name)
    else:
        yield from world.apply(CLASSES, _class(world.random, name))


def change_slice(world: World) -> Events:
    """The devices of a node, or of many nodes, are published, changed or withdrawn."""
    known = list(world.all(SLICES))
    if known and world.random.random() < 0.2:
        yield from world.remove(SLICES, world.random.choice(known))
        return
    names = [*world.all("Node"), "nowhere"]
    yield from world.apply(SLICES, _slice(world.random, world.random.choice(names)))


def change_shared_slice(world: World) -> Events:
    """The devices that many nodes see."""
    random = world.random
    where: Manifest = {"allNodes": True}
    if random.random() < 0.6:
        suits = {"key": ZONE, "operator": "In", "values": [random.choice("abc")]}
        where = {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [suits]}]}}
    made = slice_manifest("shared", _devices(random, random.choice([0, 1, 3])), **where)
    yield from world.apply(SLICES, made)


def change_claim(world: World) -> Events:
    """A claim that pods share comes or goes, or somebody else takes a device or gives it back."""
    random, known = world.random, world.all(CLAIMS)
    namespace = random.choice(["default", "shop"])
    match random.randrange(3):
        case 0:
            key = f"{namespace}/{_SHARED}"
            if key in known and random.random() < 0.5:
                yield from world.remove(CLAIMS, key)
            elif key not in known:
                metadata = {"namespace": namespace, "uid": f"uid-{key}"}
                yield from world.apply(CLAIMS, claim_manifest(_SHARED, metadata=metadata))
        case 1 if world.all("Node"):
            name = random.choice(list(world.all("Node")))
            taken = {"devices": {"results": [result(name, f"gpu-{random.randrange(3)}")]}}
            metadata = {"namespace": namespace, "uid": f"uid-taken-{namespace}"}
            yield from world.apply(
                CLAIMS, claim_manifest("taken", allocation=taken, metadata=metadata)
            )
        case _:
            unused = [key for key, each in known.items() if not each["status"].get("reservedFor")]
            if unused:
                yield from _free(world, random.choice(unused))


def change_taint_rule(world: World) -> Events:
    """A rule taints a device of each node, or all devices of one, or goes."""
    random, name = world.random, world.random.choice(["one", "two"])
    if name in world.all(_RULES) and random.random() < 0.5:
        yield from world.remove(_RULES, name)
        return
    selector = {"device": f"gpu-{random.randrange(3)}"}
    if world.all("Node") and random.random() < 0.5:
        selector = {"pool": random.choice(list(world.all("Node")))}
    effect = random.choice(["NoSchedule", "NoSchedule", "NoExecute", "None"])
    yield from world.apply(_RULES, taint_rule_manifest(name, effect, **selector))


def _class(random: Random, name: str) -> Manifest:
    spec: Manifest = {}
    if random.random() < 0.6:
        spec["extendedResourceName"] = GPU
    if name == "l4" or random.random() < 0.3:
        expression = _MODEL.format(random.choice(_MODELS))
        spec["selectors"] = [{"cel": {"expression": expression}}]
    return {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": spec}


def _slice(random: Random, name: str) -> Manifest:
    pool = {"resourceSliceCount": 2} if random.random() < 0.05 else {}
    return slice_manifest(name, _devices(random, random.choice([0, 1, 2, 2, 4])), pool=pool)


def _devices(random: Random, count: int) -> list[Manifest]:
    made = []
    for at in range(count):
        fields: Manifest = {"attributes": {"model": {"string": random.choice(_MODELS)}}}
        if random.random() < 0.1:
            fields["taints"] = [{"key": "bad", "effect": "NoSchedule"}]
        made.append(device(f"gpu-{at}", **fields))
    return made


_CHANGES: tuple[Callable[[World], Events], ...] = (
    change_class,
    change_slice,
    change_slice,
    change_shared_slice,
    change_claim,
)


def pick_changes(random: Random, shape: Shape) -> list[Callable[[World], Events]]:
    """Returns some of the ways in which devices change in a stream."""
    rules = [change_taint_rule] if shape.taint_rules else []
    return random.sample(_CHANGES, random.choice([1, 2, 4])) + rules
