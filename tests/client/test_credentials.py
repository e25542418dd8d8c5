"""From kubeconfig files and service accounts to connections."""

from __future__ import annotations

import base64
import json
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from moorage.client import Api, Connection, CredentialsError, Unreachable, connect
from moorage.client.credentials import in_cluster
from tests.client.certificates import Authority
from tests.client.serving import answers, serving, status


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, and a machine that knows of no cluster."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


def config(
    user: Mapping[str, Any] | None = None,
    cluster: Mapping[str, Any] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
        **changes,
    }


def written(path: Path, content: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return str(path)


def plugin(folder: Path, *statuses: Mapping[str, Any] | str) -> dict[str, Any]:
    """A program that tells these credentials in turn, the last one for ever."""
    told = [
        each
        if isinstance(each, str)
        else json.dumps(
            {
                "apiVersion": "client.authentication.k8s.io/v1",
                "kind": "ExecCredential",
                "status": each,
            }
        )
        for each in statuses
    ]
    script = folder / "plugin"
    script.write_text(
        f"#!{sys.executable}\n"
        "import os, pathlib\n"
        f"runs = pathlib.Path({str(folder / 'runs')!r})\n"
        "runs.open('a').write(os.environ['WHO'])\n"
        f"told = {told!r}\n"
        "print(told[min(len(runs.read_text()), len(told)) - 1])\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": str(script),
        "args": ["token"],
        "env": [{"name": "WHO", "value": "."}],
        "interactiveMode": "Never",
    }


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text())


async def authorization(connection: Connection) -> str:
    return (await connection.headers()).get("Authorization", "")


async def rejected(connection: Connection) -> str:
    connection.rejected(await connection.headers())
    return await authorization(connection)


async def test_a_token(here: Path) -> None:
    connection = await connect(written(here / "k", config({"token": "secret"})))

    assert connection.server == "http://127.0.0.1:1"
    assert connection.ssl is None
    assert await authorization(connection) == "Bearer secret"


async def test_a_token_in_a_file_is_read_again(here: Path) -> None:
    written(here / "token", "first\n")
    connection = await connect(written(here / "k", config({"tokenFile": "token"})))
    assert await authorization(connection) == "Bearer first"
    written(here / "token", "second\n")

    assert await rejected(connection) == "Bearer second"


async def test_user_and_password(here: Path) -> None:
    connection = await connect(
        written(here / "k", config({"username": "me", "password": "secret"}))
    )

    expected = base64.b64encode(b"me:secret").decode()
    assert await authorization(connection) == f"Basic {expected}"


async def test_a_context_without_a_user(here: Path) -> None:
    authority = Authority(here)
    contexts = [{"name": "x", "context": {"cluster": "c"}}]
    connection = await connect(
        written(
            here / "k",
            config(
                cluster={"server": "https://h", "certificate-authority": "ca.crt"},
                contexts=contexts,
            ),
        )
    )

    assert await authorization(connection) == ""
    assert connection.ssl is not None
    assert authority.certificate.exists()


async def test_another_context_and_another_server(here: Path) -> None:
    path = written(
        here / "k",
        config(
            {"token": "secret"},
            contexts=[
                {"name": "x", "context": {"cluster": "none", "user": "u"}},
                {"name": "y", "context": {"cluster": "c", "user": "u"}},
            ],
        ),
    )

    connection = await connect(path, context="y", server="http://127.0.0.1:2")

    assert connection.server == "http://127.0.0.1:2"
    assert await authorization(connection) == "Bearer secret"


async def test_files_of_the_environment(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts may be in several files; the first to say something counts."""
    one = written(here / "a" / "1", {"current-context": "x", "contexts": config()["contexts"]})
    two = written(here / "b" / "2", {**config({"tokenFile": "token"}), "current-context": "no"})
    written(here / "b" / "token", "beside its file")
    monkeypatch.setenv("KUBECONFIG", f"{one}:{here}/missing:{two}")

    assert await authorization(await connect()) == "Bearer beside its file"


async def test_the_file_at_home(here: Path) -> None:
    written(here / "home" / ".kube" / "config", config({"token": "at home"}))

    assert await authorization(await connect()) == "Bearer at home"


async def test_a_server_by_itself(here: Path) -> None:
    connection = await connect(server="http://127.0.0.1:8001")

    assert connection.server == "http://127.0.0.1:8001"
    assert await authorization(connection) == ""


async def test_a_program_is_run_again_when_its_token_is_rejected(here: Path) -> None:
    user = {"exec": plugin(here, {"token": "one"}, {"token": "two"})}
    connection = await connect(written(here / "k", config(user)))
    assert await authorization(connection) == "Bearer one"
    assert runs(here) == 1

    assert await rejected(connection) == "Bearer two"
    assert runs(here) == 2


async def test_a_token_may_be_rejected_before_its_time(here: Path) -> None:
    lasting = {"token": "one", "expirationTimestamp": "2999-01-01T00:00:00Z"}
    user = {"exec": plugin(here, lasting, {"token": "two"})}
    connection = await connect(written(here / "k", config(user)))

    assert await rejected(connection) == "Bearer two"


async def test_a_program_that_says_how_long_its_token_lasts(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moorage.client.connection.REFRESH_SECONDS", 0)
    lasting = {"token": "one", "expirationTimestamp": "2999-01-01T00:00:00Z"}
    expired = {"token": "one", "expirationTimestamp": "2001-01-01T00:00:00Z"}
    (here / "lasting").mkdir()
    (here / "expired").mkdir()
    for each, times in ((lasting, 1), (expired, 2)):
        folder = here / ("lasting" if each is lasting else "expired")
        user = {"exec": plugin(folder, each, {"token": "two"})}
        connection = await connect(written(folder / "k", config(user)))
        await connection.headers()
        assert runs(folder) == times


async def test_a_certificate_shows_who_we_are(here: Path) -> None:
    authority = Authority(here)
    client = authority.sign("scheduler")
    handler, seen = answers(web.Response(), web.Response())
    context = authority.serving(authority.sign("server"), ask_clients=True)

    def data(path: Path) -> str:
        return base64.b64encode(path.read_bytes()).decode()

    as_files = {"client-certificate": str(client.certificate), "client-key": str(client.key)}
    as_data = {
        "client-certificate-data": data(client.certificate),
        "client-key-data": data(client.key),
    }
    async with serving(handler, context) as server:
        for user in (as_files, as_data):
            ca = {"server": server, "certificate-authority-data": data(authority.certificate)}
            connection = await connect(written(here / "k", config(user, ca)))
            async with Api(connection) as api:
                await api.get("/x")

    assert len(seen) == 2


async def test_a_program_that_tells_a_certificate(here: Path) -> None:
    authority = Authority(here)
    client = authority.sign("scheduler")
    handler, seen = answers(web.Response())
    told = {
        "clientCertificateData": client.certificate.read_text(),
        "clientKeyData": client.key.read_text(),
    }
    user = {"exec": plugin(here, told)}
    context = authority.serving(authority.sign("server"), ask_clients=True)
    async with serving(handler, context) as server:
        cluster = {"server": server, "certificate-authority": "ca.crt"}
        async with Api(await connect(written(here / "k", config(user, cluster)))) as api:
            await api.get("/x")

    assert len(seen) == 1


async def test_a_changed_certificate_is_presented(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are read again; the new certificate is used by the next connection."""
    monkeypatch.setattr("moorage.client.connection.REFRESH_SECONDS", 0)
    authority = Authority(here)
    names = []

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        shown = request.get_extra_info("peercert")
        names.append(dict(pair[0] for pair in shown["subject"])["commonName"])
        return web.Response(headers={"Connection": "close"})

    async with serving(
        handler, authority.serving(authority.sign("server"), ask_clients=True)
    ) as at:
        user = {"client-certificate": "shown.crt", "client-key": "shown.key"}
        cluster = {"server": at, "certificate-authority": "ca.crt"}
        path = written(here / "k", config(user, cluster))
        for name in ("first", "second"):
            signed = authority.sign(name)
            (here / "shown.crt").write_bytes(signed.certificate.read_bytes())
            (here / "shown.key").write_bytes(signed.key.read_bytes())
            if name == "first":
                api = await Api(await connect(path)).__aenter__()
            await api.get("/x")
        await api.__aexit__(None, None, None)

    assert names == ["first", "second"]


async def test_whom_we_trust(here: Path) -> None:
    (here / "ours").mkdir()
    (here / "other").mkdir()
    ours, other = Authority(here / "ours"), Authority(here / "other")
    handler, _ = answers(web.Response(), web.Response(), web.Response())

    async def asked(cluster: Mapping[str, Any]) -> bytes:
        async with Api(await connect(written(here / "k", config(cluster=cluster)))) as api:
            return await api.get("/x")

    async with serving(handler, ours.serving(ours.sign("server"))) as server:
        trusting = {"server": server, "certificate-authority": str(ours.certificate)}
        await asked(trusting)
        await asked({"server": server, "insecure-skip-tls-verify": True})
        with pytest.raises(Unreachable, match="certificate"):
            await asked({**trusting, "certificate-authority": str(other.certificate)})
    named = ours.serving(ours.sign("elsewhere", dns="kubernetes.default"))
    async with serving(handler, named) as server:
        with pytest.raises(Unreachable, match="certificate"):
            await asked({**trusting, "server": server})
        await asked({**trusting, "server": server, "tls-server-name": "kubernetes.default"})


async def test_in_a_pod(here: Path) -> None:
    authority = Authority(here)
    written(here / "token", "first\n")
    tokens = []

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        tokens.append(request.headers["Authorization"])
        return web.Response() if tokens[-1] == "Bearer second" else status(401)

    async with serving(handler, authority.serving(authority.sign("server"))) as server:
        environ = {
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": server.rpartition(":")[2],
        }
        connection = await in_cluster(here, environ)
        written(here / "token", "second\n")
        async with Api(connection) as api:
            await api.get("/x")

    assert tokens == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        pytest.param("a: [", "k: broken YAML: ", id="not YAML"),
        pytest.param("", "k: current-context: not set", id="empty"),
        pytest.param("[]", "k: current-context: not set", id="an empty list"),
        pytest.param("7", "k: must be a mapping, got 7", id="a number"),
        pytest.param(
            config(clusters=[{"name": "c", "cluster": {"server": 7}}]),
            "k: clusters[0].cluster.server: must be a string, got 7",
            id="a field of the wrong type",
        ),
        pytest.param(
            {**config(), "current-context": "y"},
            "k: contexts: there is none named 'y'",
            id="no such context",
        ),
        pytest.param(
            config(clusters=[]),
            "k: contexts[name=x].context.cluster: there is none named 'c'",
            id="no such cluster",
        ),
        pytest.param(
            config(users=None),
            "k: contexts[name=x].context.user: there is none named 'u'",
            id="no such user",
        ),
        pytest.param(
            config(cluster={"server": "127.0.0.1:6443"}),
            "k: context x: cluster.server: not a URL: '127.0.0.1:6443'",
            id="no scheme",
        ),
        pytest.param(
            config(cluster={"server": "https://h", "certificate-authority": "none.crt"}),
            "none.crt",
            id="no such authority",
        ),
        pytest.param(
            config(
                cluster={"server": "https://h", "certificate-authority-data": "bm90IGEgY2VydA=="}
            ),
            "k: context x: cluster.certificate-authority: ",
            id="not an authority",
        ),
        pytest.param(
            config(
                {"client-certificate-data": "eA==", "client-key-data": "eA=="},
                {"server": "https://h"},
            ),
            "k: context x: user.client-certificate: ",
            id="not a certificate",
        ),
        pytest.param(
            config({"client-certificate-data": "é"}, {"server": "https://h"}),
            "k: context x: ",
            id="not base64",
        ),
        pytest.param(config({"tokenFile": "none"}), "none", id="no such token"),
        pytest.param(
            config({"as": "admin"}), "k: users[name=u].user.as: not supported", id="impersonation"
        ),
        pytest.param(
            config({"auth-provider": {"name": "oidc"}}),
            "k: users[name=u].user.auth-provider: not supported",
            id="a provider instead of a program",
        ),
        pytest.param(
            config({"exec": {"command": "x"}}),
            "k: users[0].user.exec.apiVersion: is required",
            id="a program without a version",
        ),
        pytest.param(
            config({"exec": {"command": "/no/such/program", "apiVersion": "v1"}}),
            "/no/such/program",
            id="no such program",
        ),
        pytest.param(
            config({"exec": {"command": "false", "apiVersion": "v1"}}),
            "user.exec: false ended with 1",
            id="a program that fails",
        ),
        pytest.param(
            config({"exec": {"command": "true", "apiVersion": "v1"}}),
            "user.exec: Input data was truncated",
            id="a program that tells nothing",
        ),
    ],
)
async def test_what_is_wrong_is_told(here: Path, content: Any, told: str) -> None:
    with pytest.raises(CredentialsError) as caught:
        await connect(written(here / "k", content))

    assert told in str(caught.value)
    assert str(here / "k") in str(caught.value)


async def test_files_that_are_not_there(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CredentialsError, match=r"/none: No such file"):
        await connect(str(here / "none"))
    with pytest.raises(CredentialsError, match="no kubeconfig was found"):
        await connect()
    with pytest.raises(CredentialsError, match="context 'x' was asked for"):
        await connect(context="x")
    monkeypatch.setenv("KUBECONFIG", "/none/1:/none/2")
    with pytest.raises(CredentialsError, match=r"\$KUBECONFIG names /none/1:/none/2"):
        await connect()


async def test_a_pod_without_a_token(here: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1"}
    Authority(here)
    with pytest.raises(CredentialsError, match="token: No such file"):
        await in_cluster(here, environ)


@pytest.mark.parametrize("how", ["token", "tokenFile", "exec", "another server"])
async def test_no_kind_of_token_is_sent_over_plain_http(here: Path, how: str) -> None:
    account = here / "account"
    written(account / "token", "secret")
    users: dict[str, dict[str, Any]] = {
        "token": {"token": "secret"},
        "tokenFile": {"tokenFile": str(account / "token")},
        "exec": {"exec": plugin(here, {"token": "secret"})},
    }
    path = written(
        here / "config",
        config(users.get(how, users["token"]), {"server": "http://10.0.0.1:8080"}),
    )

    with pytest.raises(CredentialsError, match=r"http://10\.0\.0\.1.*plain HTTP"):
        await connect(path, server="http://10.0.0.1:1" if how == "another server" else None)
