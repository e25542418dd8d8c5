"""The docs as a site with search: `make site` builds it from the pages that the repository has.

Pages stay where they are and links between them stay as they are written. What they link to beside
pages (manifests, code, tests) is copied; of a folder its files are listed. The reading order of
docs/index.md becomes the navigation.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]

# Where reading begins; what these pages lead to comes along.
_FIRST = ("README.md", "docs/index.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")

_LINK = re.compile(r"\]\(([^)\s#]+)(#[^)\s]*)?\)")
_FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)

# A name that no page has, for the list of a folder's files.
_LISTING = "files.md"

_FRAME_WORKER = "iframe-worker.js"

SETTINGS: dict[str, Any] = {
    "site_name": "Moorage",
    "site_description": "A Kubernetes scheduler in Python that explains itself",
    # So that it can be opened from a disk, without a server.
    "use_directory_urls": False,
    "theme": {
        "name": "material",
        # Nothing is loaded from elsewhere.
        "font": False,
        "icon": {"logo": "material/view-grid"},
        "features": ["navigation.footer", "navigation.sections", "navigation.top", "toc.follow"],
        "palette": [
            {
                "media": f"(prefers-color-scheme: {scheme})",
                "scheme": name,
                "primary": "indigo",
                "toggle": {"icon": f"material/{icon}", "name": f"Switch to {other}"},
            }
            for scheme, name, icon, other in (
                ("light", "default", "weather-night", "dark"),
                ("dark", "slate", "weather-sunny", "light"),
            )
        ],
    },
    # Without a server, search reads its index as a script, and runs in a frame.
    "plugins": ["search", "offline"],
    "extra": {"polyfills": [f"assets/{_FRAME_WORKER}"]},
    "markdown_extensions": [
        "admonition",
        "tables",
        {"toc": {"permalink": True, "slugify": "SLUGIFY"}},
        "pymdownx.superfences",
        "pymdownx.highlight",
        "pymdownx.inlinehilite",
    ],
    "validation": {"links": {"anchors": "warn", "not_found": "warn"}},
}

# Headings get the names that other readers of Markdown give them.
_SLUGIFY = "!!python/object/apply:pymdownx.slugs.slugify {kwds: {case: lower}}"


@dataclass
class StagedSite:
    """The pages and files of the site, in a folder for mkdocs."""

    folder: Path
    _known: set[Path] = field(default_factory=set)

    def add(self, path: Path) -> None:
        """Copies a page with all that it links to, or a file, or the list of a folder's files."""
        # mkdocs names the page whose link leads nowhere.
        if path in self._known or not path.exists() or not path.is_relative_to(ROOT):
            return
        self._known.add(path)
        target = self.folder / path.relative_to(ROOT)
        if path.is_dir():
            self._add_folder(path, target)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            target.write_text(self._follow_links(path))
        else:
            shutil.copyfile(path, target)

    def _add_folder(self, path: Path, target: Path) -> None:
        if (path / "README.md").exists():
            self.add(path / "README.md")
        target.mkdir(parents=True, exist_ok=True)
        lines = [f"# {path.relative_to(ROOT)}", ""]
        for each in sorted(path.iterdir()):
            if each.is_file() and not each.name.startswith((".", "README")):
                self.add(each)
                lines.append(f"- [{_title(each)}]({each.name})")
        (target / _LISTING).write_text("\n".join(lines) + "\n")

    def _follow_links(self, page: Path) -> str:
        """The text of a page; links to folders lead to a page about each."""

        def follow(link: re.Match[str]) -> str:
            name, anchor = link[1], link[2] or ""
            if "://" in name or name.startswith("mailto:"):
                return link[0]
            path = (page.parent / name).resolve()
            self.add(path)
            if path.is_dir():
                about = "README.md" if (path / "README.md").exists() else _LISTING
                name = f"{name.rstrip('/')}/{about}"
            return f"]({name}{anchor})"

        return "".join(
            part if is_code else _LINK.sub(follow, part) for is_code, part in _parts(page)
        )


def _parts(page: Path) -> Iterator[tuple[bool, str]]:
    """The text of a page in parts: code, and what is around it."""
    text, at = page.read_text(), 0
    for code in _FENCED.finditer(text):
        yield False, text[at : code.start()]
        yield True, code[0]
        at = code.end()
    yield False, text[at:]


def _title(path: Path) -> str:
    if path.suffix != ".md":
        return path.name
    heading = re.search(r"^# (.+)$", path.read_text(), re.MULTILINE)
    return heading[1] if heading else path.name


def navigation() -> list[dict[str, Any]]:
    """The reading order: the sections and links of docs/index.md."""
    sections: dict[str, list[dict[str, str]]] = {}
    pages: list[dict[str, str]] = []
    for line in (ROOT / "docs/index.md").read_text().splitlines():
        if line.startswith("**"):
            pages = sections[line.strip("*")] = []
        for title, name in re.findall(r"\[(.+?)\]\((.+?)\)", line):
            path = (ROOT / "docs" / name).resolve()
            # Within a sentence, a link is no title.
            title = title if title[0].isupper() or path.is_dir() else _title(path)
            page = path / _LISTING if path.is_dir() else path
            pages.append({title: str(page.relative_to(ROOT))})
    return [{title: listed} for title, listed in sections.items()]


def build(out: Path) -> None:
    """Builds the site; a link that leads nowhere ends it with CalledProcessError."""
    with TemporaryDirectory() as folder:
        staged = StagedSite(Path(folder).resolve() / "pages")
        for name in _FIRST:
            staged.add(ROOT / name)
        (staged.folder / "assets").mkdir()
        shutil.copyfile(
            Path(__file__).with_name(_FRAME_WORKER), staged.folder / "assets" / _FRAME_WORKER
        )
        settings = {**SETTINGS, "docs_dir": str(staged.folder), "nav": navigation()}
        text = yaml.safe_dump(settings, sort_keys=False).replace("SLUGIFY", _SLUGIFY)
        file = Path(folder) / "mkdocs.yml"
        file.write_text(text)
        command = (sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--clean")
        # The makers of the theme have news that are not ours to print.
        quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
        given = ("--config-file", str(file), "--site-dir", str(out.resolve()))
        subprocess.run([*command, *given], check=True, env=quiet)


if __name__ == "__main__":
    build(Path(sys.argv[1] if len(sys.argv) > 1 else "site"))
