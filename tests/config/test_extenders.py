"""The section `extenders`: what can be said, what is refused, and what follows from it."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from moorage.config import Extender, load
from moorage.config.extenders import ExtenderTLS, ManagedResource, hide_keys
from moorage.objects.container import Container, Resources
from moorage.objects.pod_spec import PodSpec
from moorage.objects.quantity import Quantity
from tests.config.fakes import KNOWN, FitArgs, loaded, only, refused

V1 = "kubescheduler.config.k8s.io/v1"
URL = "http://127.0.0.1:8888/scheduler/"


def test_every_field_can_be_said() -> None:
    secret = base64.b64encode(b"secret").decode()
    text = f"""
    apiVersion: {V1}
    kind: KubeSchedulerConfiguration
    extenderConcurrency: 4
    extenderNodesKeepPods: true
    extenders:
    - urlPrefix: {URL}
      filterVerb: f
      preemptVerb: e
      prioritizeVerb: p
      weight: 5
      bindVerb: b
      enableHTTPS: true
      tlsConfig:
        serverName: s
        certFile: c
        keyFile: k
        caFile: a
        certData: {secret}
        keyData: {secret}
        caData: {secret}
      httpTimeout: 1500ms
      nodeCacheCapable: true
      managedResources: [{{name: example.com/gpu, ignoredByScheduler: true}}]
      ignorable: true
    """
    configuration = load(text, known=KNOWN)

    assert configuration.extender_concurrency == 4
    assert configuration.extender_nodes_keep_pods
    (extender,) = configuration.extenders
    assert [extender.url(extender.verb(verb)) for verb in ("filter", "preempt")] == [
        "http://127.0.0.1:8888/scheduler/f",
        "http://127.0.0.1:8888/scheduler/e",
    ]
    assert (extender.verb("prioritize"), extender.verb("bind"), extender.weight) == ("p", "b", 5)
    assert extender.tls_config == ExtenderTLS(
        server_name="s",
        cert_file="c",
        key_file="k",
        ca_file="a",
        cert_data=b"secret",  # type: ignore[arg-type]
        key_data=b"secret",  # type: ignore[arg-type]
        ca_data=b"secret",  # type: ignore[arg-type]
    )
    assert extender.timeout_seconds == 1.5
    assert extender.node_cache_capable
    assert extender.ignorable
    assert extender.managed_resources == (
        ManagedResource(name="example.com/gpu", ignored_by_scheduler=True),
    )


def test_defaults() -> None:
    configuration = loaded(extenders=[{"urlPrefix": URL}])

    assert configuration.extenders == (Extender(url_prefix=URL),)
    assert configuration.extenders[0].timeout_seconds == 5.0
    assert configuration.extender_concurrency == 1
    assert not configuration.extender_nodes_keep_pods


def test_ignorable_extenders_come_last_and_keep_their_order() -> None:
    written = [("a", True), ("b", False), ("c", True), ("d", False)]
    configuration = loaded(
        extenders=[{"urlPrefix": url, "ignorable": ignorable} for url, ignorable in written]
    )

    assert [each.url_prefix for each in configuration.extenders] == ["b", "d", "a", "c"]


def test_resources_left_to_extenders_replace_those_that_fit_ignores() -> None:
    configuration = loaded(
        extenders=[
            {"managedResources": [{"name": "example.com/a", "ignoredByScheduler": True}]},
            {"managedResources": [{"name": "example.com/b"}]},
        ],
        profiles=[
            {
                "schedulerName": "one",
                "pluginConfig": [
                    {"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/x"]}}
                ],
            }
        ],
    )

    args = only(configuration).args["NodeResourcesFit"]
    assert isinstance(args, FitArgs)
    assert args.ignored_resources == ("example.com/a",)


@pytest.mark.parametrize(
    ("tls", "https", "checks"),
    [
        ({}, False, True),
        ({}, True, False),
        ({"caFile": "ca"}, True, True),
        ({"insecure": True}, False, False),
    ],
    ids=["plain", "https without a CA", "https with a CA", "insecure"],
)
def test_https_without_a_ca_checks_nothing(tls: dict[str, Any], https: bool, checks: bool) -> None:
    (extender,) = loaded(extenders=[{"tlsConfig": tls, "enableHTTPS": https}]).extenders

    assert extender.checks_certificates is checks


@pytest.mark.parametrize(
    ("extenders", "problem"),
    [
        pytest.param(
            [{"prioritizeVerb": "p"}],
            "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
            id="weight",
        ),
        pytest.param(
            [{"bindVerb": "b"}, {"bindVerb": "b"}],
            'extenders: Invalid value: "found 2 extenders implementing bind": '
            "only one extender can implement bind",
            id="two binders",
        ),
        pytest.param(
            [{"managedResources": [{"name": "cpu"}]}],
            'extenders[0].managedResources[0].name: Invalid value: "cpu": '
            "is an invalid extended resource name",
            id="no extended resource",
        ),
        pytest.param(
            [{"managedResources": [{"name": "a.b/c"}]}, {"managedResources": [{"name": "a.b/c"}]}],
            'extenders[1].managedResources[0].name: Invalid value: "a.b/c": '
            "duplicate extender managed resource name",
            id="duplicate",
        ),
        pytest.param(
            [{"tlsConfig": {"insecure": True, "caData": "YQ=="}}],
            "extenders[0].tlsConfig: "
            "specifying a root certificates file with the insecure flag is not allowed",
            id="insecure with a CA",
        ),
        pytest.param(
            [{"tlsConfig": {"caData": "%"}}],
            'extenders[0].tlsConfig.caData: must be text in base64, got "%"',
            id="no base64",
        ),
        pytest.param([{"filter": "f"}], "extenders[0].filter: unknown field", id="unknown field"),
        pytest.param(
            [{"httpTimeout": "-1s"}],
            "extenders[0].httpTimeout: must be 0 or greater, got -1s",
            id="negative timeout",
        ),
    ],
)
def test_refusals(extenders: list[dict[str, Any]], problem: str) -> None:
    assert refused(extenders=extenders) == [problem]


def test_the_concurrency_must_be_positive() -> None:
    problem = "extenderConcurrency: must be greater than 0, got 0"
    assert refused(extenderConcurrency=0) == [problem]


CPU = {"cpu": Quantity.parse(1)}
GPU = {"example.com/gpu": Quantity.parse(1)}


@pytest.mark.parametrize(
    ("spec", "concerned"),
    [
        (PodSpec(containers=(Container(resources=Resources(requests=GPU)),)), True),
        (PodSpec(containers=(Container(resources=Resources(limits=GPU)),)), True),
        (PodSpec(init_containers=(Container(resources=Resources(limits=GPU)),)), True),
        (
            PodSpec(containers=(Container(resources=Resources(requests=CPU)),)),
            False,
        ),
        (PodSpec(containers=(Container(),)), False),
        (PodSpec(resources=Resources(requests=GPU)), False),
        (PodSpec(overhead=GPU), False),
    ],
    ids=["requests", "limits", "init", "others", "nothing", "pod level", "overhead"],
)
def test_an_extender_is_interested_in_pods_with_its_resources(
    spec: PodSpec, concerned: bool
) -> None:
    managed = (ManagedResource(name="example.com/gpu"),)

    assert Extender(managed_resources=managed).concerns(spec) is concerned
    assert Extender().concerns(spec)


def test_keys_are_hidden_from_recordings() -> None:
    text = """
    extenders:
    - {urlPrefix: a, tlsConfig: {keyData: c2VjcmV0, certData: c2VjcmV0, caData: cHVibGlj}}
    - {urlPrefix: b}
    """
    hidden = hide_keys(text)

    assert "c2VjcmV0" not in hidden
    assert "cHVibGlj" in hidden
    assert hide_keys("extenders: []") == "extenders: []"
    assert hide_keys("keyData: [") == ""
