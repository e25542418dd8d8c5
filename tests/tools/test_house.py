"""The tool that counts files, functions, importers and names that occur twice."""

from __future__ import annotations

from pathlib import Path

from tools.house import Sizes, describe, survey

ROOT = Path(__file__).parents[2]

FILES = {
    "pack/__init__.py": "from .one import First\n",
    "pack/one.py": "class First: ...\nclass _Private: ...\n\ndef do():\n    return 1\n",
    "pack/two.py": "from pack import one\nclass First: ...\nclass _Private: ...\n",
    "pack/deep/__init__.py": "",
    "pack/deep/one.py": "from ..two import First\nimport pack.one\n",
}


def test_a_survey_counts_files_importers_and_names(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    house = survey(tmp_path)

    assert house.file_sizes == Sizes(5, 2, 5, 5)
    assert house.function_sizes == Sizes(1, 2, 2, 2)
    # pack.one has three importers, and pack one: the file that says `from pack import one`.
    assert house.one_importer == ["pack", "pack.two"]
    assert house.class_names == ["First"]
    assert house.file_names == ["one.py"]
    assert "| lines per file | 5 | 2 | 5 | 5 |" in describe(house)


def test_a_public_class_name_has_one_meaning() -> None:
    assert survey(ROOT / "src").class_names == []
