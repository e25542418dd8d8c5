"""Kinds that are stored without anything acting on them, and reviews, which are not stored."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from functools import partial

from moorage.embedded.api.column import (
    NAME,
    Column,
    age_column,
    at,
    field_column,
    text_column,
)
from moorage.embedded.api.decoding import fill, part
from moorage.embedded.api.kind import (
    CREATE_ONLY,
    STATUS,
    KindRules,
    ServedKind,
    StatusRules,
    make_built_in,
)
from moorage.embedded.request_refusals import (
    Fault,
    forbidden_field,
    invalid_value,
    too_long,
)
from moorage.embedded.store.object_store import Json

_KEY = re.compile(r"[-._a-zA-Z0-9]+", re.ASCII)
_KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
    "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_MOST_BYTES = 1024 * 1024
_FROZEN = "field is immutable when `immutable` is set"
_NO_NAMES = (".", "..")
_NOT_IN_NAMES = ("/", "%")


class ConfigMapRules(KindRules):
    """The rules of config maps."""

    parts: tuple[str, ...] = ("data", "binaryData")

    def default(self, item: Json) -> None:
        for name in self.parts:
            if not item.get(name):
                item.pop(name, None)

    def faults(self, item: Json) -> Iterator[Fault]:
        size = 0
        for name in self.parts:
            for key, value in part(item, name).items():
                if not _KEY.fullmatch(key):
                    yield invalid_value(f"{name}[{key}]", key, _KEY_TEXT)
                size += len(value)
        if size > _MOST_BYTES:
            yield too_long("", _MOST_BYTES)

    def update_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        if not old.get("immutable"):
            return
        if not item.get("immutable"):
            yield forbidden_field("immutable", _FROZEN)
        for name in self.parts:
            if part(item, name) != part(old, name):
                yield forbidden_field(name, _FROZEN)


class SecretRules(ConfigMapRules):
    """The rules of secrets; stringData becomes data."""

    parts = ("data",)

    def default(self, item: Json) -> None:
        fill(item, type="Opaque")
        texts = item.pop("stringData", None)
        if texts:
            item["data"] = {**part(item, "data"), **{k: _base64(v) for k, v in texts.items()}}
        super().default(item)

    def update_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        if item["type"] != old.get("type"):
            yield invalid_value("type", item["type"], "field is immutable")
        yield from super().update_faults(item, old)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()


#: The config map with the certificate that clients trust. The server makes the first one.
ROOT_CERTIFICATE = "kube-root-ca.crt"
ROOT_CERTIFICATE_NAMESPACE = "kube-system"


class ServiceAccountRules(KindRules):
    shows_deleted = True


class AccessRules(KindRules):
    """The rules of roles and their bindings, whose names may be like system:node."""

    def name_faults(self, name: str) -> Iterator[Fault]:
        if name in _NO_NAMES:
            yield invalid_value("metadata.name", name, f"may not be '{name}'")
        for text in _NOT_IN_NAMES:
            if text in name:
                yield invalid_value("metadata.name", name, f"may not contain '{text}'")


def _count_column(*paths: str) -> Column:
    return text_column("Data", lambda item: sum(len(at(item, path, {})) for path in paths))


def data_kinds() -> Iterator[ServedKind]:
    """Yields config maps, secrets and service accounts."""
    core = partial(make_built_in, "", "core.v1")
    yield core(
        "ConfigMap",
        "configmaps",
        ConfigMapRules(),
        short_names=("cm",),
        columns=(NAME, _count_column("data", "binaryData"), age_column()),
    )
    yield core(
        "Secret",
        "secrets",
        SecretRules(),
        fields=("type",),
        columns=(NAME, field_column("Type", "type", ""), _count_column("data"), age_column()),
    )
    yield core("ServiceAccount", "serviceaccounts", ServiceAccountRules(), short_names=("sa",))


def stored_kinds() -> Iterator[ServedKind]:
    """Yields kinds that nothing acts on, for manifests that contain them."""
    # kubectl apply --prune asks for CronJobs and Ingresses whatever it applies.
    yield make_built_in(
        "batch",
        "batch.v1",
        "CronJob",
        "cronjobs",
        StatusRules(),
        parts=(STATUS,),
        short_names=("cj",),
        categories=("all",),
        warning="CronJobs are stored here, but nothing makes Jobs of them; create Jobs instead",
    )
    unused = "Ingresses and NetworkPolicies are stored here, but no traffic flows"
    network = partial(make_built_in, "networking.k8s.io", "networking.v1", warning=unused)
    yield network("Ingress", "ingresses", StatusRules(), parts=(STATUS,), short_names=("ing",))
    yield network("IngressClass", "ingressclasses", namespaced=False)
    yield network("NetworkPolicy", "networkpolicies", short_names=("netpol",))
    yield from _admission_policy_kinds()
    unchecked = "roles and their bindings are stored here, but the token may do everything"
    access = partial(make_built_in, "rbac.authorization.k8s.io", "rbac.v1", warning=unchecked)
    yield access("Role", "roles", AccessRules())
    yield access("RoleBinding", "rolebindings", AccessRules())
    yield access("ClusterRole", "clusterroles", AccessRules(), namespaced=False)
    yield access("ClusterRoleBinding", "clusterrolebindings", AccessRules(), namespaced=False)


def _admission_policy_kinds() -> Iterator[ServedKind]:
    # Drivers of devices bring them along.
    ignored = "admission policies and their bindings are stored here, but no request is refused"
    policies = partial(
        make_built_in,
        "admissionregistration.k8s.io",
        "admissionregistration.v1",
        namespaced=False,
        warning=ignored,
    )
    policy = "ValidatingAdmissionPolicy"
    yield policies(policy, "validatingadmissionpolicies", StatusRules(), parts=(STATUS,))
    yield policies(f"{policy}Binding", "validatingadmissionpolicybindings")


def review_kinds() -> Iterator[ServedKind]:
    """Yields the reviews of tokens and access; none is stored."""
    who = partial(
        make_built_in,
        "authentication.k8s.io",
        "authentication.v1",
        verbs=CREATE_ONLY,
        namespaced=False,
    )
    yield who("TokenReview", "tokenreviews")
    yield who("SelfSubjectReview", "selfsubjectreviews")
    may = partial(make_built_in, "authorization.k8s.io", "authorization.v1", verbs=CREATE_ONLY)
    yield may("SubjectAccessReview", "subjectaccessreviews", namespaced=False)
    yield may("SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False)
    yield may("SelfSubjectRulesReview", "selfsubjectrulesreviews", namespaced=False)
    yield may("LocalSubjectAccessReview", "localsubjectaccessreviews")
