"""What was answered survives, even a kill in the middle of writing."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import aiohttp
import pytest

from mooring.embedded.persistence import DataDirError
from mooring.embedded.serving import serve
from mooring.embedded.settings import Settings
from tests.embedded.serving import Client, served

MAPS = "/api/v1/namespaces/default/configmaps"
SERVER = """
import asyncio, sys
from pathlib import Path
from mooring.embedded.serving import serve
from mooring.embedded.settings import Settings

async def main(folder):
    running = await serve(Settings(tls=False, token="t", data_dir=folder / "data"))
    (folder / "url.part").write_text(running.url)
    (folder / "url.part").rename(folder / "url")
    await asyncio.Event().wait()

asyncio.run(main(Path(sys.argv[1])))
"""


async def _started(folder: Path) -> tuple[asyncio.subprocess.Process, str]:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", SERVER, str(folder))
    await _until(lambda: (folder / "url").exists())
    url = (folder / "url").read_text()
    (folder / "url").unlink()
    return process, url


async def _until(true: Callable[[], bool]) -> None:
    """Looks again and again: another process gives no sign."""
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.002)


async def _write(
    session: aiohttp.ClientSession, url: str, mine: str, acked: dict[str, int]
) -> None:
    """Creates, updates and deletes until the server is gone; notes what it was told."""
    number = 0
    while True:
        name = f"{mine}-{number}"
        body = {"metadata": {"name": name}, "data": {"written": name}}
        try:
            async with session.post(url + MAPS, json=body) as response:
                made = await response.json()
            version = int(made["metadata"]["resourceVersion"])
            if number % 3 == 0:
                async with session.delete(f"{url}{MAPS}/{name}") as response:
                    await response.read()
                version = -version
            # What was asked for and never answered may have happened or not.
            acked[name] = version
        except aiohttp.ClientError:
            return
        number += 1


async def test_every_acknowledged_write_survives_a_kill(tmp_path: Path) -> None:
    acked: dict[str, int] = {}
    newest = 0
    headers = {"Authorization": "Bearer t"}
    for turn in range(3):
        process, url = await _started(tmp_path)
        async with aiohttp.ClientSession(headers=headers) as session:
            async with session.get(url + MAPS) as response:
                listed = await response.json()
            versions = {
                each["metadata"]["name"]: int(each["metadata"]["resourceVersion"])
                for each in listed["items"]
            }
            for name, version in acked.items():
                if version > 0:
                    assert versions[name] == version
                else:
                    assert name not in versions
            assert int(listed["metadata"]["resourceVersion"]) >= newest
            writers = [
                asyncio.ensure_future(_write(session, url, f"w{turn}-{each}", acked))
                for each in range(5)
            ]
            before = len(acked)
            await _until(lambda: len(acked) >= before + 60)  # noqa: B023 - awaited here and now
            process.send_signal(signal.SIGKILL)
            await process.wait()
            await asyncio.gather(*writers)
        newest = max(newest, *(abs(version) for version in acked.values()))


async def test_a_restart_keeps_objects_and_goes_on_counting(tmp_path: Path) -> None:
    kept = Settings(tls=False, data_dir=tmp_path)
    async with served(kept) as client:
        made = await client.create(MAPS, {"metadata": {"name": "a"}, "data": {"x": "1"}})
        gone = await client.create(MAPS, {"metadata": {"name": "b"}})
        await client.delete(f"{MAPS}/b")
        listed = await client.get(MAPS)
        version = int(listed["metadata"]["resourceVersion"])

    async with served(kept) as client:
        assert await client.get(f"{MAPS}/a") == made
        await client.refused(404, "GET", f"{MAPS}/b")
        again = await client.create(MAPS, {"metadata": {"name": "b"}})
        assert int(again["metadata"]["resourceVersion"]) > version
        assert again["metadata"]["uid"] != gone["metadata"]["uid"]
        # Who was up to date goes on; who was not must list again.
        async with client.watch(f"{MAPS}?watch=1&resourceVersion={version}") as events:
            assert (await anext(events))["object"] == again
        old = made["metadata"]["resourceVersion"]
        await client.refused(410, "GET", f"{MAPS}?watch=1&resourceVersion={old}")


async def test_custom_resources_survive(tmp_path: Path) -> None:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }
    definition = {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version],
        },
    }
    kept = Settings(tls=False, data_dir=tmp_path)
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    widgets = "/apis/example.com/v1/widgets"
    async with served(kept) as client:
        await client.create(crds, definition)
        made = await client.create(widgets, {"metadata": {"name": "w"}})

    async with served(kept) as client:
        assert await client.get(f"{widgets}/w") == made


async def test_two_servers_do_not_share_a_folder(tmp_path: Path) -> None:
    kept = Settings(tls=False, data_dir=tmp_path)
    async with served(kept):
        with pytest.raises(DataDirError, match=r"objects\.sqlite: database is locked"):
            await serve(kept)


async def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(DataDirError, match="file"):
        await serve(Settings(tls=False, data_dir=tmp_path / "file"))


async def test_who_waits_for_a_broken_disk_is_refused(tmp_path: Path) -> None:
    async with served(Settings(tls=False, data_dir=tmp_path)) as client:
        client.running.api.store.fail("no space left")
        client.running.api.store.journal = _Nowhere()

        status = await client.refused(503, "POST", MAPS, {"metadata": {"name": "a"}})

    assert "no space left" in status["message"]


class _Nowhere:
    def append(self, table: str, entry: object, *, gone: bool) -> None:
        """Keeps nothing, and never says so."""


async def test_nothing_is_shown_before_it_is_safe(client: Client) -> None:
    store = client.running.api.store
    await client.create(MAPS, {"metadata": {"name": "a"}})
    version = (await client.get(MAPS))["metadata"]["resourceVersion"]
    store.journal = _Nowhere()
    maps = client.running.api.kinds["configmaps"]
    async with client.watch(f"{MAPS}?watch=1&resourceVersion={version}") as events:
        entry = client.running.api.create(maps, "default", {"metadata": {"name": "b"}})
        read = asyncio.ensure_future(client.get(f"{MAPS}/b"))
        listed = asyncio.ensure_future(client.get(MAPS))
        missed = asyncio.ensure_future(client.ask("GET", f"{MAPS}/c"))
        told = asyncio.ensure_future(anext(events))
        done, _ = await asyncio.wait([read, listed, missed, told], timeout=0.2)
        assert not done
        store.settle(entry.version)
        assert (await told)["object"] == await read
        assert len((await listed)["items"]) == 2
        assert (await missed)[0] == 404
