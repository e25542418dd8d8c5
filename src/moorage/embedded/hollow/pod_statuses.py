"""The statuses that kubelets write for pods."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from ipaddress import IPv4Address
from zlib import crc32

from moorage.embedded.api.decoding import now_text
from moorage.embedded.api.metadata import set_condition
from moorage.embedded.api.object_api import ObjectApi
from moorage.embedded.api.request_options import DeleteOptions
from moorage.embedded.kinds.event_kinds import EventSource, EventText, event_object
from moorage.embedded.store.object_store import Json, StoredObject
from moorage.objects.pod_refusal import PodRefusal

#: 128 plus the number of SIGTERM: the exit code of a process that is stopped.
TERMINATED = 143

# 10.128.0.0/9: an address follows from the uid, so that none has to be stored. Two
# pods may get the same one, and nothing here would notice.
_FIRST_ADDRESS, _ADDRESSES = int(IPv4Address("10.128.0.0")), 2**23


def run(pod: Json, host_ip: str, now: str) -> None:
    """Sets the status of a pod whose containers have started."""
    status, spec = pod["status"], pod["spec"]
    status["phase"] = "Running"
    status.setdefault("startTime", now)
    address = host_ip if spec.get("hostNetwork") else _address(pod["metadata"]["uid"])
    status |= {
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "containerStatuses": [_running_status(each, now) for each in spec["containers"]],
    }
    starting = spec.get("initContainers")
    if starting:
        status["initContainerStatuses"] = [_after_start(each, now) for each in starting]
    for kind in ("PodReadyToStartContainers", "Initialized"):
        set_condition(status, now, type=kind, status="True")
    report_ready(pod, now)


def wait_for_images(pod: Json, host_ip: str, without: frozenset[str], now: str) -> None:
    """Sets the status of a pod some of whose images cannot be pulled; the others run."""
    status, spec = pod["status"], pod["spec"]
    status.setdefault("startTime", now)
    status |= {"phase": "Pending", "hostIP": host_ip, "hostIPs": [{"ip": host_ip}]}
    starting = spec.get("initContainers") or ()
    held = any(each["name"] in without for each in starting)
    if starting:
        status["initContainerStatuses"] = [_without_image(each, without, now) for each in starting]
    status["containerStatuses"] = [
        _waiting_status(each, "PodInitializing", "") if held else _without_image(each, without, now)
        for each in spec["containers"]
    ]
    set_condition(status, now, type="PodReadyToStartContainers", status="True")
    set_condition(status, now, type="Initialized", status="False" if held else "True")
    text = f"containers with unready status: [{' '.join(sorted(without))}]"
    why = {"status": "False", "reason": "ContainersNotReady", "message": text}
    for kind in ("Ready", "ContainersReady"):
        set_condition(status, now, type=kind, **why)


def images_of(spec: Json, names: frozenset[str]) -> list[str]:
    """Returns the images of some containers of a pod."""
    containers = (*spec["containers"], *(spec.get("initContainers") or ()))
    return [each.get("image", "") for each in containers if each["name"] in names]


def report_ready(pod: Json, now: str) -> None:
    """Sets the conditions of a pod that is ready."""
    for kind in ("Ready", "ContainersReady"):
        set_condition(pod["status"], now, type=kind, status="True")


def end(pod: Json, exit_code: int, now: str) -> None:
    """Sets the status of a pod whose containers have all exited."""
    status = pod["status"]
    status["phase"] = "Failed" if exit_code else "Succeeded"
    for name in ("containerStatuses", "initContainerStatuses"):
        if name in status:
            status[name] = [_terminate(each, exit_code, now) for each in status[name]]
    why = "PodFailed" if exit_code else "PodCompleted"
    for kind in ("Ready", "ContainersReady"):
        set_condition(status, now, type=kind, status="False", reason=why)
    set_condition(status, now, type="PodReadyToStartContainers", status="False")


def crash(pod: Json, exit_code: int, pause: float, now: str) -> None:
    """Sets the status of a pod whose containers will be restarted after a pause."""
    status = pod["status"]
    ended = [_terminate(each, exit_code, now) for each in status.get("containerStatuses") or ()]
    status["containerStatuses"] = [
        {
            **each,
            "lastState": each["state"],
            "state": {
                "waiting": {
                    "reason": "CrashLoopBackOff",
                    "message": f"back-off {pause:.0f}s restarting failed container={each['name']}",
                }
            },
        }
        for each in ended
    ]
    for kind in ("Ready", "ContainersReady"):
        set_condition(status, now, type=kind, status="False", reason="ContainersNotReady")


def restart(pod: Json, now: str) -> None:
    """Sets the status of a pod whose containers run again."""
    pod["status"]["containerStatuses"] = [
        {
            **each,
            "restartCount": each["restartCount"] + 1,
            "ready": True,
            "started": True,
            **_since(now),
        }
        for each in pod["status"].get("containerStatuses") or ()
    ]
    report_ready(pod, now)


def exceed_deadline(pod: Json, now: str) -> None:
    """Sets the status of a pod that ran for longer than its deadline."""
    end(pod, TERMINATED, now)
    pod["status"] |= {
        "reason": "DeadlineExceeded",
        "message": "Pod was active on the node longer than the specified deadline",
    }


def reject(pod: Json, refusal: PodRefusal, now: str) -> None:
    """Sets the status of a pod that its kubelet does not admit."""
    status = pod["status"]
    status.setdefault("startTime", now)
    status |= {
        "phase": "Failed",
        "reason": refusal.reason,
        "message": f"Pod was rejected: {refusal.message}",
    }


def _running_status(container: Json, now: str) -> Json:
    return {**_identity(container), "ready": True, "started": True, **_since(now)}


def _after_start(container: Json, now: str) -> Json:
    if container.get("restartPolicy") == "Always":
        return _running_status(container, now)
    done = {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}
    return {
        **_identity(container),
        "ready": True,
        "started": False,
        "state": {"terminated": done},
    }


def _without_image(container: Json, without: frozenset[str], now: str) -> Json:
    if container["name"] not in without:
        return _running_status(container, now)
    text = f'Back-off pulling image "{container.get("image", "")}"'
    return _waiting_status(container, "ImagePullBackOff", text)


def _waiting_status(container: Json, reason: str, message: str) -> Json:
    waiting = {"reason": reason, "message": message} if message else {"reason": reason}
    status = {**_identity(container), "imageID": "", "ready": False, "started": False}
    return {**status, "state": {"waiting": waiting}}


def _terminate(status: Json, exit_code: int, now: str) -> Json:
    running = status["state"].get("running")
    if running is None:
        return status
    done = {
        "exitCode": exit_code,
        "reason": "Error" if exit_code else "Completed",
        "startedAt": running["startedAt"],
        "finishedAt": now,
    }
    return {**status, "ready": False, "started": False, "state": {"terminated": done}}


def _identity(container: Json) -> Json:
    image = container.get("image", "")
    return {"name": container["name"], "image": image, "imageID": image, "restartCount": 0}


def _since(now: str) -> Json:
    return {"state": {"running": {"startedAt": now}}}


def _address(uid: str) -> str:
    return str(IPv4Address(_FIRST_ADDRESS + crc32(uid.encode()) % _ADDRESSES))


class PodWriter:
    """Writes statuses of pods, found by key and uid."""

    def __init__(self, api: ObjectApi) -> None:
        self._api = api
        self._kind = api.kinds["pods"]

    @property
    def now(self) -> str:
        return now_text(self._api.clock())

    def find(self, key: str) -> StoredObject | None:
        return self._api.store.table(self._kind.table).entries.get(key)

    def write(self, key: str, uid: str, change: Callable[[Json], None]) -> StoredObject | None:
        """Writes the status of a pod; None if it is gone, or another has its name."""
        entry = self.find(key)
        if entry is None:
            return None
        item = entry.object
        if item["metadata"]["uid"] != uid:
            return None
        change(item)
        # Straight to the store: a turn in the life of a pod is always news, so there is no need
        # to compare, and nobody comes in between.
        return self._api.store.put(self._kind.table, key, item)

    def reject(self, key: str, uid: str, node: str, refusal: PodRefusal) -> None:
        """Writes that a pod is not admitted, and an event about it."""
        entry = self.write(key, uid, partial(reject, refusal=refusal, now=self.now))
        if entry is not None:
            self.warn(entry, uid, node, EventText(refusal.reason, refusal.message, "Warning"))

    def warn(self, entry: StoredObject, uid: str, node: str, text: EventText) -> None:
        """Writes an event about a pod, in the name of its kubelet."""
        metadata = {"namespace": entry.namespace, "name": entry.name, "uid": uid}
        about = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**metadata, "resourceVersion": str(entry.version)},
        }
        event = event_object(about, text, EventSource("kubelet", node), self.now)
        self._api.create(self._api.kinds["events"], entry.namespace, event)

    def finish_deletion(self, key: str, uid: str) -> None:
        """Writes that a pod has ended, and completes its deletion."""
        now = self.now
        entry = self.write(key, uid, lambda pod: _interrupt(pod, now))
        if entry is not None:
            options = DeleteOptions(grace_seconds=0, uid=uid)
            self._api.delete(self._kind, entry.namespace, entry.name, options)


def _interrupt(pod: Json, now: str) -> None:
    if pod["status"].get("phase") not in ("Succeeded", "Failed"):
        end(pod, TERMINATED, now)
