"""What was answered survives, even a kill in the middle of writing."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import aiohttp
import msgspec
import pytest

from moorage.embedded.controllers.runner import run_controllers
from moorage.embedded.hollow.hollow_nodes import HollowNodes
from moorage.embedded.hollow.pod_life import HollowSettings
from moorage.embedded.server import ServerSettings, serve
from moorage.embedded.store.journal import DataDirError, SqliteJournal
from tests.embedded.serving import MAPS, NODES, PODS, Client, binding, node, pod, served
from tests.patience import PATIENCE_SECONDS, open_session

SERVER = """
import asyncio, sys
from pathlib import Path
from moorage.embedded.server import ServerSettings, serve

async def main(folder):
    running = await serve(ServerSettings(tls=False, token="t", data_dir=folder / "data"))
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
    async with asyncio.timeout(PATIENCE_SECONDS):
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
        async with open_session(headers=headers) as session:
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
    kept = ServerSettings(tls=False, data_dir=tmp_path)
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
    kept = ServerSettings(tls=False, data_dir=tmp_path)
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    widgets = "/apis/example.com/v1/widgets"
    async with served(kept) as client:
        await client.create(crds, definition)
        made = await client.create(widgets, {"metadata": {"name": "w"}})

    async with served(kept) as client:
        assert await client.get(f"{widgets}/w") == made


async def test_two_servers_do_not_share_a_folder(tmp_path: Path) -> None:
    kept = ServerSettings(tls=False, data_dir=tmp_path)
    async with served(kept):
        with pytest.raises(DataDirError, match=r"objects\.sqlite: database is locked"):
            await serve(kept)


async def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(DataDirError, match="file"):
        await serve(ServerSettings(tls=False, data_dir=tmp_path / "file"))


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SqliteJournal, "retry_seconds", 0.01)


def _limit_pages(journal: SqliteJournal, pages: int) -> None:
    """Lets a database grow no more, as on a full disk, or grow again."""
    journal._connection.execute(f"PRAGMA max_page_count = {pages}")


def _fill(client: Client) -> SqliteJournal:
    journal = client.running.api.store.journal
    assert isinstance(journal, SqliteJournal)
    _limit_pages(journal, 1)
    return journal


_MANY_PAGES = 1_000_000
_LARGE = {"x": "y" * 100_000}


@pytest.mark.usefixtures("quick_retries")
async def test_a_full_disk_refuses_writes_until_there_is_room(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = ServerSettings(tls=False, data_dir=tmp_path)
    async with served(kept) as client:
        await client.create(MAPS, {"metadata": {"name": "before"}})
        journal = _fill(client)

        status = await client.refused(
            507, "POST", MAPS, {"metadata": {"name": "a"}, "data": _LARGE}
        )
        assert status["reason"] == "InsufficientStorage"
        assert "objects.sqlite: database or disk is full" in status["message"]
        await client.refused(507, "POST", MAPS, {"metadata": {"name": "b"}})
        code, text = await client.ask("GET", "/readyz")
        assert (code, "[-]storage failed" in text) == (500, True)
        assert await client.ask("GET", "/livez") == (200, "ok")
        # What cannot be kept is not shown, but the rest is.
        assert [each["metadata"]["name"] for each in (await client.get(MAPS))["items"]] == [
            "before"
        ]
        assert any("objects cannot be kept" in each.message for each in caplog.records)

        _limit_pages(journal, _MANY_PAGES)
        await _until(lambda: not client.running.api.store.failure)
        assert await client.ask("GET", "/readyz") == (200, "ok")
        await client.create(MAPS, {"metadata": {"name": "after"}, "data": _LARGE})
        await client.refused(404, "GET", f"{MAPS}/b")
        assert any("can be kept again" in each.message for each in caplog.records)

    async with served(kept) as client:
        names = {each["metadata"]["name"] for each in (await client.get(MAPS))["items"]}
    assert {"before", "after"} <= names


@pytest.mark.usefixtures("quick_retries")
async def test_nodes_and_controllers_outlive_a_full_disk(tmp_path: Path) -> None:
    async with served(ServerSettings(tls=False, data_dir=tmp_path)) as client:
        api = client.running.api
        await client.create(NODES, node("n"))
        hollow = HollowNodes(api, HollowSettings(start_seconds=0, run_seconds=0))
        parts = [asyncio.ensure_future(each) for each in (hollow.run(), run_controllers(api))]
        await hollow.known.wait()
        await client.create(PODS, pod("p"))
        journal = _fill(client)

        await client.refused(507, "POST", MAPS, {"metadata": {"name": "a"}, "data": _LARGE})
        await client.refused(507, "POST", f"{PODS}/p/binding", binding("p", "n"))
        _limit_pages(journal, _MANY_PAGES)
        await _until(lambda: not api.store.failure)
        await client.create(f"{PODS}/p/binding", binding("p", "n"))

        async with asyncio.timeout(PATIENCE_SECONDS), client.watch(f"{PODS}?watch=1") as events:
            async for event in events:
                if event["object"]["status"].get("phase") == "Running":
                    break
        assert not any(part.done() for part in parts)
        for part in parts:
            part.cancel()
        await asyncio.gather(*parts, return_exceptions=True)


async def test_a_server_stops_while_its_disk_is_full(tmp_path: Path) -> None:
    async with served(ServerSettings(tls=False, data_dir=tmp_path)) as client:
        _fill(client)
        await client.refused(507, "POST", MAPS, {"metadata": {"name": "a"}, "data": _LARGE})


def _modes(folder: Path) -> dict[str, int]:
    return {each.name: each.stat().st_mode & 0o777 for each in [folder, *folder.iterdir()]}


@pytest.mark.parametrize("wide", [False, True], ids=["new", "wide before"])
async def test_the_owner_alone_may_read_the_folder(
    wide: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "data"
    if wide:
        async with served(ServerSettings(tls=False, data_dir=folder)):
            pass
        for path in [*folder.iterdir(), folder]:
            path.chmod(0o755)

    async with served(ServerSettings(tls=False, data_dir=folder)) as client:
        await client.create(MAPS, {"metadata": {"name": "a"}})
        modes = _modes(folder)

    assert modes.pop("data") == 0o700
    assert set(modes) >= {"objects.sqlite", "objects.sqlite-wal"}
    assert set(modes.values()) == {0o600}
    warned = [each.getMessage() for each in caplog.records if "other users" in each.message]
    assert [str(folder) in each for each in warned] == ([True] * len(warned) if wide else [])
    assert bool(warned) is wide


async def test_a_folder_of_others_is_not_closed_to_them(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    (folder / "theirs").write_text("")
    folder.chmod(0o755)

    with pytest.raises(DataDirError, match=r"shared: other users may read .* \(theirs\)"):
        await serve(ServerSettings(tls=False, data_dir=folder))
    assert folder.stat().st_mode & 0o777 == 0o755


async def _fill_folder(folder: Path) -> ServerSettings:
    kept = ServerSettings(tls=False, data_dir=folder)
    async with served(kept) as client:
        for number in range(3):
            body = {"metadata": {"name": f"m{number}"}, "data": {"x": f"value-{number}" * 20}}
            await client.create(MAPS, body)
    return kept


async def test_a_damaged_record_is_told_with_file_and_position(tmp_path: Path) -> None:
    kept = await _fill_folder(tmp_path)
    file = tmp_path / "objects.sqlite"
    data = file.read_bytes()
    at = data.index(b"value-1")
    file.write_bytes(data[:at] + b"VALUE" + data[at + 5 :])

    with pytest.raises(
        DataDirError,
        match=r"objects\.sqlite: the record in row \d+ \(configmaps "
        r"default/m1\) is damaged: its checksum",
    ):
        await serve(kept)


async def test_a_damaged_page_is_told_with_file_and_position(tmp_path: Path) -> None:
    kept = await _fill_folder(tmp_path)
    file = tmp_path / "objects.sqlite"
    data = file.read_bytes()
    page = data.index(b"value-1") // 4096 * 4096
    file.write_bytes(data[: page + 8] + b"\xff" * 24 + data[page + 32 :])

    with pytest.raises(DataDirError, match=r"objects\.sqlite: the database is damaged: .*age \d+"):
        await serve(kept)


_FIRST_FORMAT = """
CREATE TABLE objects (
    kind TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (kind, key)
);
CREATE TABLE latest (version INTEGER NOT NULL);
INSERT INTO latest VALUES (7);
"""


def _make_old(folder: Path, body: bytes) -> ServerSettings:
    """A folder as the first format had it: without checksums."""
    connection = sqlite3.connect(folder / "objects.sqlite")
    connection.executescript(_FIRST_FORMAT)
    values = ("configmaps", "default/a", 5, body)
    connection.execute("INSERT INTO objects VALUES (?, ?, ?, ?)", values)
    connection.commit()
    connection.close()
    return ServerSettings(tls=False, data_dir=folder)


async def test_a_folder_of_the_first_format_is_read(tmp_path: Path) -> None:
    item = {"metadata": {"name": "a", "namespace": "default", "resourceVersion": "5"}}
    kept = _make_old(tmp_path, msgspec.json.encode(item))
    for _ in range(2):
        async with served(kept) as client:
            assert (await client.get(f"{MAPS}/a"))["metadata"]["resourceVersion"] == "5"


async def test_a_damaged_folder_of_the_first_format_is_refused(tmp_path: Path) -> None:
    kept = _make_old(tmp_path, b'{"metadata":{"na')
    with pytest.raises(DataDirError, match=r"objects\.sqlite: the record in row 1 \(configmaps"):
        await serve(kept)


async def test_a_folder_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "objects.sqlite")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(DataDirError, match=r"objects\.sqlite: a newer Moorage made this"):
        await serve(ServerSettings(tls=False, data_dir=tmp_path))


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
        store.mark_safe(entry.version)
        assert (await told)["object"] == await read
        assert len((await listed)["items"]) == 2
        assert (await missed)[0] == 404
