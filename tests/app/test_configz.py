"""/configz tells a configuration that means what is in force."""

from __future__ import annotations

import json

import pytest

from moorage.app.endpoints import configz
from moorage.config import load_mapping
from moorage.framework.profile import known_plugins
from moorage.plugins import REGISTRY
from tests.builders import Manifest
from tests.exactness.four_ways import configuration
from tests.exactness.test_four_ways import CONFIGURATIONS

OTHERS: dict[str, Manifest] = {
    "nothing": {},
    "timings": {
        "podInitialBackoffSeconds": 3,
        "leaderElection": {"leaderElect": False, "leaseDuration": "1m30s"},
        "clientConnection": {"qps": 7.5},
    },
    "extenders": {
        "extenders": [
            {"urlPrefix": "http://x", "filterVerb": "f", "httpTimeout": "2s", "ignorable": True}
        ],
        "extenderConcurrency": 3,
    },
    "two profiles": {
        "percentageOfNodesToScore": 40,
        "profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}],
    },
}


@pytest.mark.parametrize("raw", (OTHERS | CONFIGURATIONS).values(), ids=OTHERS | CONFIGURATIONS)
def test_it_can_be_read_back(raw: Manifest) -> None:
    inforce = configuration(raw)

    told = json.loads(configz(inforce))["componentconfig"]

    assert told["kind"] == "KubeSchedulerConfiguration"
    again = load_mapping(told, known=known_plugins(REGISTRY))
    assert again.profiles == inforce.profiles
    assert json.loads(configz(again))["componentconfig"] == told


def test_defaults_are_spelt_out() -> None:
    told = json.loads(configz(configuration()))["componentconfig"]

    assert told["leaderElection"]["leaseDuration"] == "15s"
    assert told["podMaxBackoffSeconds"] == 10
    args = {each["name"]: each["args"] for each in told["profiles"][0]["pluginConfig"]}
    assert args["DefaultPreemption"]["minCandidateNodesPercentage"] == 10


def test_keys_of_extenders_are_not_told() -> None:
    tls = {"certData": "c2VjcmV0", "keyData": "c2VjcmV0", "caData": "cHVibGlj"}

    told = configz(configuration({"extenders": [{"urlPrefix": "https://x", "tlsConfig": tls}]}))

    assert b"c2VjcmV0" not in told
    assert b"cHVibGlj" in told
