"""The `extenders` of a KubeSchedulerConfiguration: HTTP services that take part in decisions."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Self

import msgspec

from moorage.documents.errors import DecodeError, describe, item
from moorage.documents.yaml_text import read_document
from moorage.objects.meta import Wire
from moorage.objects.pod_spec import PodSpec
from moorage.objects.resources import is_extended

from .duration import Duration

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

_DEFAULT_TIMEOUT = Duration.of_seconds(5)

# In the words of kube-scheduler, so that a search for them finds them.
_CA_AND_INSECURE = "specifying a root certificates file with the insecure flag is not allowed"


class EncodedBytes(bytes):
    """Bytes that a file writes in base64."""

    noun: ClassVar = "text in base64"

    def __str__(self) -> str:
        return base64.b64encode(self).decode()

    @classmethod
    def parse(cls, text: str | int | float) -> Self:
        """Decodes base64; raises ValueError if the text is not base64."""
        try:
            return cls(base64.b64decode(str(text), validate=True))
        except binascii.Error:
            raise ValueError(f"must be {cls.noun}, got {describe(text)}") from None


class ExtenderTLS(Wire, frozen=True):
    """How an extender's certificate is checked, and which one is presented.

    Inline data take precedence over files.
    """

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: EncodedBytes = EncodedBytes()
    key_data: EncodedBytes = EncodedBytes()
    ca_data: EncodedBytes = EncodedBytes()

    @property
    def has_ca(self) -> bool:
        return bool(self.ca_file or self.ca_data)

    def hide_key(self) -> ExtenderTLS:
        """Returns these settings without the private key."""
        nothing = EncodedBytes()
        return msgspec.structs.replace(self, cert_data=nothing, key_data=nothing)


class ManagedResource(Wire, frozen=True):
    """An extended resource that an extender manages."""

    name: str = ""
    #: Whether NodeResourcesFit leaves it to the extender.
    ignored_by_scheduler: bool = False


class Extender(Wire, frozen=True):
    """An HTTP service that filters, scores, spares victims or binds.

    If a verb is empty, the extender does not do that. Its URL prefix is its name in scores and
    messages.
    """

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = msgspec.field(name="enableHTTPS", default=False)
    tls_config: ExtenderTLS = ExtenderTLS()
    http_timeout: Duration = Duration(0)
    #: Whether it is sent names of nodes instead of nodes.
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    #: Whether decisions go on without it when it fails.
    ignorable: bool = False

    @property
    def timeout_seconds(self) -> float:
        """How long a whole exchange may take."""
        return (self.http_timeout or _DEFAULT_TIMEOUT).seconds

    @property
    def checks_certificates(self) -> bool:
        """Whether the extender must present a trusted certificate."""
        without_ca = self.enable_https and not self.tls_config.has_ca
        return not (self.tls_config.insecure or without_ca)

    def verb(self, what: str) -> str:
        """Returns the path element for filter, prioritize, preempt or bind."""
        words = {
            "filter": self.filter_verb,
            "prioritize": self.prioritize_verb,
            "preempt": self.preempt_verb,
            "bind": self.bind_verb,
        }
        return words[what]

    def url(self, verb: str) -> str:
        """Returns the URL for a verb."""
        return f"{self.url_prefix.rstrip('/')}/{verb}"

    def concerns(self, spec: PodSpec) -> bool:
        """Whether the extender takes part in decisions about pods with these requests."""
        if not self.managed_resources:
            return True
        managed = {each.name for each in self.managed_resources}
        return any(
            not managed.isdisjoint(amounts)
            for container in (*spec.containers, *(spec.init_containers or ()))
            if container.resources is not None
            for amounts in (container.resources.requests, container.resources.limits)
            if amounts
        )

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.prioritize_verb and self.weight <= 0:
            problem = f"Invalid value: {self.weight}: must have a positive weight applied to it"
            yield "weight", problem
        if self.tls_config.insecure and self.tls_config.has_ca:
            yield "tlsConfig", _CA_AND_INSECURE
        if self.http_timeout < 0:
            yield "httpTimeout", f"must be 0 or greater, got {self.http_timeout}"


def find_extender_problems(extenders: Sequence[Extender]) -> Iterator[tuple[str, str]]:
    """Yields what is wrong with extenders, each by itself and all together."""
    seen: set[str] = set()
    for index, extender in enumerate(extenders):
        at = item("extenders", index)
        yield from ((f"{at}.{where}", problem) for where, problem in extender.problems())
        for number, resource in enumerate(extender.managed_resources):
            name, where = resource.name, f"{item(f'{at}.managedResources', number)}.name"
            if not is_extended(name):
                problem = "is an invalid extended resource name"
                yield where, f"Invalid value: {describe(name)}: {problem}"
            if name in seen:
                problem = "duplicate extender managed resource name"
                yield where, f"Invalid value: {describe(name)}: {problem}"
            seen.add(name)
    binders = sum(bool(each.bind_verb) for each in extenders)
    if binders > 1:
        found = f'"found {binders} extenders implementing bind"'
        yield "extenders", f"Invalid value: {found}: only one extender can implement bind"


# The fields of `tlsConfig` that are secret.
_SECRETS = ("certData", "keyData")


def hide_keys(text: str) -> str:
    """Returns the text of a configuration without the private keys of extenders."""
    if not any(name in text for name in _SECRETS):
        return text
    try:
        raw = read_document(text)
    except DecodeError:
        return ""
    for extender in raw.get("extenders") or ():
        for name in _SECRETS:
            (extender.get("tlsConfig") or {}).pop(name, None)
    return msgspec.json.encode(raw).decode()


def order_extenders(extenders: Sequence[Extender]) -> tuple[Extender, ...]:
    """Returns extenders in the order in which they are asked: those that may fail come last."""
    return tuple(sorted(extenders, key=lambda each: each.ignorable))


def find_ignored_resources(extenders: Sequence[Extender]) -> tuple[str, ...]:
    """Returns the resources that only extenders check."""
    return tuple(
        resource.name
        for extender in extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )
