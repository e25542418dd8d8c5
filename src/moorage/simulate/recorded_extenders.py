"""The extenders of recorded verdicts. They answer by rules that a scenario states.

Everything that varies depends on a number made of the rule's salt, the pod and the node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import msgspec

from moorage.config import Extender
from moorage.engine.actions import AskExtender
from moorage.engine.events import ExtenderAnswered
from moorage.engine.extenders.questions import (
    FILTER,
    PREEMPT,
    PRIORITIZE,
    Manifests,
    encode_question,
)
from moorage.engine.extenders.replies import ReplyError, describe_status, read_reply

_OK = 200
_GARBAGE = b"{not json"
_NO_NODE, _NOBODY = "no-such-node", "nobody"

_Answer = Mapping[str, Any] | Sequence[Any]


class FilterRule(msgspec.Struct, frozen=True):
    """Percentages of nodes that are refused in each way."""

    reject: int = 0
    unresolvable: int = 0
    both: int = 0
    silent: int = 0


class PrioritizeRule(msgspec.Struct, frozen=True):
    """The percentage of nodes without a score, and whether an unknown node gets one."""

    missing: int = 0
    extra: bool = False


class PreemptRule(msgspec.Struct, frozen=True):
    """Percentages of nodes that are dropped, lose all victims, or keep only the last victim."""

    drop: int = 0
    empty: int = 0
    more: int = 0


class ExtenderRule(msgspec.Struct, frozen=True):
    """How an extender answers."""

    salt: str
    filter: FilterRule = FilterRule()
    prioritize: PrioritizeRule = PrioritizeRule()
    preempt: PreemptRule = PreemptRule()
    #: How calls fail, by verb, and under "share" how many percent of them.
    fail: dict[str, str | int] = {}


class RecordedCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request to an extender."""

    extender: str
    verb: str
    nodes: tuple[str, ...] | None = None
    #: The members of the request that are not null.
    keys: tuple[str, ...] = ()
    failed: bool = False
    body: Any = None
    answer: Any = None


@dataclass(frozen=True, slots=True)
class RecordedExtenders:
    """The extenders of a scenario."""

    extenders: Sequence[Extender]
    rules: Mapping[str, ExtenderRule]
    manifests: Manifests

    def answer(self, ask: AskExtender) -> tuple[ExtenderAnswered, RecordedCall]:
        """Returns the answer of the extender, and the request as it is recorded."""
        extender = self.extenders[ask.extender]
        name = extender.url_prefix.rpartition("/")[2]
        raw = encode_question(ask, self.manifests, names_only=extender.node_cache_capable)
        body = msgspec.json.decode(raw)
        keys = tuple(sorted(key for key, value in body.items() if value is not None))
        nodes = tuple(sorted(ask.victims)) if ask.verb == PREEMPT else ask.nodes
        call = RecordedCall(name, ask.verb, nodes, keys, body=body)
        about = ask.pod.uid, ask.attempt, ask.number
        status, reply = self._reply(name, ask, body)
        if _find_failure(self.rules[name], ask.verb, _key(ask)):
            call = msgspec.structs.replace(call, failed=True)
        else:
            call = msgspec.structs.replace(call, answer=msgspec.json.decode(reply))
        try:
            if status != _OK:
                verb = extender.verb(ask.verb)
                raise ReplyError(describe_status(verb, extender.url(verb), status))
            return ExtenderAnswered(*about, read_reply(ask.verb, reply)), call
        except ReplyError as error:
            return ExtenderAnswered(*about, failure=str(error)), call

    def _reply(self, name: str, ask: AskExtender, body: dict[str, Any]) -> tuple[int, bytes]:
        rule, pod = self.rules[name], _key(ask)
        how = _find_failure(rule, ask.verb, pod)
        answer: _Answer
        if ask.verb == FILTER:
            answer = _filter(name, rule, pod, ask.nodes, body, how)
        elif ask.verb == PRIORITIZE:
            answer = _prioritize(rule, pod, ask.nodes)
        else:
            answer = _preempt(rule, pod, ask, how)
        raw = _GARBAGE if how == "garbage" else msgspec.json.encode(answer)
        return (500 if how == "status" else 200), raw


def draw(n: int, *parts: str) -> int:
    """Returns a number below n that depends on the parts alone."""
    return int.from_bytes(sha256("|".join(parts).encode()).digest()[:4], "big") % n


def _key(ask: AskExtender) -> str:
    return f"{ask.pod.namespace}/{ask.pod.name}"


def _find_failure(rule: ExtenderRule, verb: str, pod: str) -> str:
    how, share = rule.fail.get(verb, ""), rule.fail.get("share", 0)
    if how and draw(100, rule.salt, "fail", verb, pod) < int(share):
        return str(how)
    return ""


def _filter(
    name: str,
    rule: ExtenderRule,
    pod: str,
    nodes: Sequence[str],
    body: Mapping[str, Any],
    how: str,
) -> _Answer:
    if how == "error":
        return {"Error": f"extender {name} is not well"}
    shares = rule.filter
    failed, unresolvable, kept = {}, {}, []
    for node in nodes:
        drawn = draw(100, rule.salt, "filter", pod, node)
        left = drawn - shares.reject
        if left < 0:
            failed[node] = f"extender {name} refuses ({drawn % 3})"
        elif left < shares.unresolvable:
            unresolvable[node] = f"extender {name} can never use it ({drawn % 3})"
        elif left < shares.unresolvable + shares.both:
            failed[node], unresolvable[node] = "said once", "said twice"
        elif left >= shares.unresolvable + shares.both + shares.silent:
            kept.append(node)
    answer: dict[str, Any] = {"FailedNodes": failed, "FailedAndUnresolvableNodes": unresolvable}
    if body["NodeNames"] is not None:
        answer["NodeNames"] = [*kept, _NO_NODE] if how == "unknown" else kept
    else:
        items = body["Nodes"]["items"]
        answer["Nodes"] = {"items": [each for each in items if each["metadata"]["name"] in kept]}
    return answer


def _prioritize(rule: ExtenderRule, pod: str, nodes: Sequence[str]) -> _Answer:
    drawn = {node: draw(100, rule.salt, "prioritize", pod, node) for node in nodes}
    scores = {node: n % 11 for node, n in drawn.items() if n >= rule.prioritize.missing}
    if rule.prioritize.extra:
        scores[_NO_NODE] = 10
    return [{"Host": node, "Score": score} for node, score in scores.items()]


def _preempt(rule: ExtenderRule, pod: str, ask: AskExtender, how: str) -> _Answer:
    shares = rule.preempt
    left: dict[str, Any] = {}
    for node, there in sorted(ask.victims.items()):
        drawn = draw(100, rule.salt, "preempt", pod, node)
        if drawn < shares.drop:
            continue
        uids = list(there.uids) if drawn >= shares.drop + shares.empty else []
        if drawn >= 100 - shares.more:
            uids = uids[-1:]
        if how == "unknown" and not left:
            uids.append(_NOBODY)
        pods = [{"UID": uid} for uid in uids]
        left[node] = {"Pods": pods, "NumPDBViolations": there.violations}
    return {"NodeNameToMetaVictims": left}
