"""The page about the scheduler cache extension: its code runs, its manifests are taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from moorage.config import load
from moorage.engine import Engine
from moorage.engine.registry import registry
from moorage.framework.profile import known_plugins
from moorage.objects.custom import CustomObject
from moorage.objects.decode import from_builtins
from moorage_policies.disk_io.disk_io_resource import (
    BLOCK_SIZE,
    BLOCK_SIZES,
    KIND,
    READ,
    WRITE,
    DiskIOHandle,
)
from moorage_policies.disk_io.quiet_disk import QUIET
from tests.docs.pages import DOCS, blocks, languages, run

PAGE = DOCS / "scheduler-cache-extension.md"
CRD = DOCS.parent / "deploy" / "disk-io" / "nodediskiostatuses.yaml"

NAMESPACE = run("scheduler_cache_extension", *blocks(PAGE, "python"))
TESTS = {name: each for name, each in NAMESPACE.items() if name.startswith("test_")}


@pytest.mark.parametrize("test", TESTS.values(), ids=TESTS)
def test_a_test_of_the_page_passes(test: Callable[[], None]) -> None:
    test()


def test_the_manifests_of_the_page() -> None:
    status, configuration = blocks(PAGE, "yaml")
    item = from_builtins(KIND, yaml.safe_load(status.text))
    assert isinstance(item, CustomObject)
    name, resource = DiskIOHandle().read(item)
    assert (name, resource.read_capacity) == ("node-1", 800 * 2**20)

    plugins = registry()
    loaded = load(configuration.text, known=known_plugins(plugins), source=PAGE.name)
    (handle,) = dict(Engine(loaded, plugins).handles).values()
    assert isinstance(handle, DiskIOHandle)
    # The page tells the defaults.
    assert handle.block_sizes == BLOCK_SIZES


def test_the_page_names_every_annotation() -> None:
    text = PAGE.read_text()

    assert all(name in text for name in (READ, WRITE, BLOCK_SIZE, QUIET))
    assert languages(PAGE) == {"python", "yaml", "console"}


def test_the_crd_defines_what_the_plugin_reads() -> None:
    crd: dict[str, Any] = yaml.safe_load(CRD.read_text())
    spec = crd["spec"]
    (version,) = spec["versions"]

    assert crd["metadata"]["name"] == f"{KIND.plural}.{KIND.group}"
    assert (spec["group"], version["name"]) == (KIND.group, KIND.version)
    assert (spec["names"]["kind"], spec["names"]["plural"]) == (KIND.kind, KIND.plural)
    assert (spec["scope"] == "Namespaced") == KIND.namespaced
    fields = version["schema"]["openAPIV3Schema"]["properties"]
    assert fields["spec"]["required"] == ["nodeName", "capacity"]
    assert fields["spec"]["properties"]["capacity"]["required"] == ["read", "write"]
    assert set(fields["status"]["properties"]["allocatable"]["properties"]) == {"read", "write"}
