"""A real control plane for tests: etcd and kube-apiserver, no controllers, no kubelets.

    with control_plane() as plane:
        connection = await connect(str(plane.kubeconfig))
        plane.kill_api_server()
        plane.start_api_server()

The binaries are looked for in $KUBEBUILDER_ASSETS, or where kubebuilder puts them if it is not set.
"""

from __future__ import annotations

import os
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.patience import PATIENCE_SECONDS
from tests.ports import free_port
from tests.programs import NO_CONTROL_PLANE, find_control_plane, need_program


def minor_version() -> int:
    """The minor version of kube-apiserver, such as 36; 0 if there is none."""
    found = find_control_plane()
    if found is None:
        return 0
    # It prints "Kubernetes v1.36.4".
    told = subprocess.run(
        [found / "kube-apiserver", "--version"], capture_output=True, text=True, check=True
    )
    return int(told.stdout.split(".")[1])


ADMIN_TOKEN = "secret-admin"
SCHEDULER_TOKEN = "secret-scheduler"
#: A user that nobody granted anything.
NOBODY_TOKEN = "secret-nobody"
#: The service account that deploy/ grants what Moorage needs. The embedded server knows one token.
MOORAGE_TOKEN = "secret-moorage" if find_control_plane() else ADMIN_TOKEN

#: The service account of deploy/shadow, which can only read.
SHADOW_TOKEN = "secret-shadow"

_TOKENS = f"""\
{ADMIN_TOKEN},admin,admin,"system:masters"
{SCHEDULER_TOKEN},system:kube-scheduler,scheduler,"system:authenticated"
{NOBODY_TOKEN},nobody,nobody,"system:authenticated"
{MOORAGE_TOKEN},system:serviceaccount:moorage-system:moorage,moorage,"system:authenticated"
{SHADOW_TOKEN},system:serviceaccount:moorage-system:moorage-shadow,shadow,"system:authenticated"
"""

_KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{{name: test, cluster: {{server: "{server}", certificate-authority: "{ca}"}}}}]
users:
- {{name: admin, user: {{token: {admin}}}}}
- {{name: scheduler, user: {{token: {scheduler}}}}}
- {{name: nobody, user: {{token: {nobody}}}}}
contexts:
- {{name: admin, context: {{cluster: test, user: admin}}}}
- {{name: scheduler, context: {{cluster: test, user: scheduler}}}}
- {{name: nobody, context: {{cluster: test, user: nobody}}}}
current-context: admin
"""

# Controllers would have to serve these, and there are none.
_NEEDS_CONTROLLERS = (
    "ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection,DefaultStorageClass"
)


@dataclass
class ControlPlane:
    """The processes and where to reach them."""

    folder: Path
    bin: Path
    authorization: str
    extra: Sequence[str]
    port: int = field(default_factory=free_port)
    etcd_port: int = field(default_factory=free_port)
    _etcd: subprocess.Popen[bytes] | None = None
    _api_server: subprocess.Popen[bytes] | None = None

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def kubeconfig(self) -> Path:
        """Has the contexts admin (the current one), scheduler and nobody."""
        return self.folder / "kubeconfig"

    @property
    def certificate_authority(self) -> Path:
        # kube-apiserver signs its own certificate.
        return self.folder / "certs" / "apiserver.crt"

    def start(self) -> None:
        (self.folder / "tokens.csv").write_text(_TOKENS)
        self.kubeconfig.write_text(
            _KUBECONFIG.format(
                server=self.server,
                ca=self.certificate_authority,
                admin=ADMIN_TOKEN,
                scheduler=SCHEDULER_TOKEN,
                nobody=NOBODY_TOKEN,
            )
        )
        _write_key(self.folder / "service-accounts.key")
        client = f"http://127.0.0.1:{self.etcd_port}"
        self._etcd = self._spawn(
            "etcd",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--listen-peer-urls=http://127.0.0.1:{free_port()}",
            "--unsafe-no-fsync",
            # Stock etcd wants it; smaller builds do not know the flag of that name.
            ETCD_ADVERTISE_CLIENT_URLS=client,
        )
        self.start_api_server()

    def start_api_server(self) -> None:
        """Starts it (again) on the same port with the same etcd; returns when it is ready."""
        key = self.folder / "service-accounts.key"
        self._api_server = self._spawn(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--cert-dir={self.folder / 'certs'}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--authorization-mode={self.authorization}",
            f"--disable-admission-plugins={_NEEDS_CONTROLLERS}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--allow-privileged=true",
            *self.extra,
        )
        self._wait_until_ready()

    def kill_api_server(self) -> None:
        """As kill -9 does: no goodbye to anybody."""
        _end(self._api_server)
        self._api_server = None

    def stop(self) -> None:
        self.kill_api_server()
        _end(self._etcd)
        self._etcd = None

    @contextmanager
    def running_controllers(self, *names: str, gates: str = "") -> Iterator[None]:
        """Runs controllers of kube-controller-manager; skips the test without that binary."""
        need_program("kube-controller-manager")
        process = self._spawn(
            "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig}",
            f"--controllers={','.join(names)}",
            f"--feature-gates={gates}",
            "--leader-elect=false",
            f"--secure-port={free_port()}",
            f"--cert-dir={self.folder / 'certs-of-controllers'}",
        )
        try:
            yield
        finally:
            _end(process)

    def log(self, name: str = "kube-apiserver") -> str:
        """The end of what a process has written."""
        return (self.folder / f"{name}.log").read_text(errors="replace")[-3000:]

    def _spawn(self, name: str, *flags: str, **environment: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [self.bin / name, *flags],
                stdout=log,
                stderr=log,
                env={**os.environ, **environment},
                cwd=self.folder,
            )

    def _wait_until_ready(self) -> None:
        # A busy machine takes its time; a broken control plane exits at once, which is noticed.
        until = time.monotonic() + PATIENCE_SECONDS
        while not self._is_ready():
            for name, process in (("etcd", self._etcd), ("kube-apiserver", self._api_server)):
                if process is not None and process.poll() is not None:
                    raise RuntimeError(f"{name} ended:\n{self.log(name)}")
            if time.monotonic() > until:
                raise TimeoutError(f"not ready in {PATIENCE_SECONDS:g} s:\n{self.log()}")
            time.sleep(0.1)

    def _is_ready(self) -> bool:
        request = urllib.request.Request(
            f"{self.server}/readyz", headers={"Authorization": f"Bearer {ADMIN_TOKEN}"}
        )
        try:
            trust = ssl.create_default_context(cafile=self.certificate_authority)
            with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS, context=trust) as answer:
                return bool(answer.read() == b"ok")
        except (OSError, urllib.error.URLError):
            return False


@contextmanager
def control_plane(authorization: str = "AlwaysAllow", *extra: str) -> Iterator[ControlPlane]:
    """A running control plane in a temporary folder; skips the test without the binaries."""
    found = find_control_plane()
    if found is None:
        pytest.skip(NO_CONTROL_PLANE)
    with tempfile.TemporaryDirectory(prefix="moorage-live-") as folder:
        plane = ControlPlane(Path(folder), found, authorization, extra)
        try:
            plane.start()
            yield plane
        finally:
            plane.stop()


def _end(process: subprocess.Popen[bytes] | None) -> None:
    if process is not None:
        process.kill()
        process.wait()


def _write_key(path: Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
