"""Templates are written out as Go does it, as far as workloads go."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.bench.cases import WorkloadError
from moorage.bench.templates import ObjectTemplate

GIVEN: dict[str, Any] = {"Index": 7, "Count": 10, "name": "blue", "none": "", "sizes": [1, 2]}


@pytest.mark.parametrize(
    ("template", "written"),
    [
        ("plain: text", "plain: text"),
        ("pod-{{.Index}} of {{ .Count }}", "pod-7 of 10"),
        ("{{Mod .Index 4}} {{DivideInt .Index 2}} {{AddInt 1 .Index 2}}", "3 3 10"),
        ("{{SubtractInt .Index 9}} {{MultiplyInt 2 .Index 2}}", "-2 28"),
        ("{{DivideFloat .Index 2}} {{AddFloat 0.5 0.5}}", "3.5 1"),
        ("{{SubtractFloat 1 0.5}} {{MultiplyFloat 0.5 0.5}}", "0.5 0.25"),
        ("{{AddInt 8000 (Mod .Index (DivideInt .Count 2))}}", "8002"),
        ("{{if .name}}a{{.name}}{{else}}b{{end}}{{if .absent}}c{{end}}", "ablue"),
        ('{{if eq .name "red"}}r{{else if eq .name "blue"}}b{{else}}?{{end}}', "b"),
        ("{{if .none}}full{{else}}empty{{end}}", "empty"),
        ("{{$n := or .absent 3}}{{range $n}}<{{.}}>{{end}}", "<0><1><2>"),
        ("{{range $i := (2 | Int)}}{{$i}}{{$.name}}{{end}}", "0blue1blue"),
        ("{{range .sizes}}{{.}},{{end}}", "1,2,"),
        ("{{if ge .Index (3 | Int)}}much{{end}}{{if lt .Index 3}}few{{end}}", "much"),
        ("{{if and .name (not .none)}}both{{end}}", "both"),
        ("{{(or .absent nil) | JSON}} {{.sizes | JSON}}", "null [1, 2]"),
        ('a {{- " b" -}}  c', "a bc"),
        ("a{{/* said in passing */}}b", "ab"),
        ('{{"quoted \\"text\\""}} {{`raw`}} {{true}}', 'quoted "text" raw true'),
    ],
)
def test_rendering(template: str, written: str) -> None:
    assert ObjectTemplate(template, "pod.yaml").render(GIVEN) == written


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("{{.absent}}", "pod.yaml: .absent is not given"),
        ("{{AddInt .absent 1}}", "pod.yaml: expected a number, got .absent is not given"),
        ("{{Multiply 1 2}}", "pod.yaml: unknown function 'Multiply'"),
        ("{{DivideInt 1 0}}", "pod.yaml: division by zero"),
        ("{{Mod 1 0}}", "pod.yaml: division by zero"),
        ("{{Mod 1}}", "pod.yaml: Mod does not take 1 values"),
        ('{{AddInt "x" 1}}', "pod.yaml: could not convert string to float: 'x'"),
        ("{{if .Index}}", "pod.yaml: an 'end' is missing"),
        ("{{end}}", "pod.yaml: 'end' without an opening action"),
        ("{{(.Index}}", "pod.yaml: a closing parenthesis is missing"),
        ("{{.Index ?}}", "pod.yaml: cannot read ' ?'"),
        ("{{.Index | 3}}", "pod.yaml: cannot pipe into '3'"),
        ("{{.Index .Count}}", "pod.yaml: unexpected '.Count'"),
        ("{{range .name}}{{end}}", "pod.yaml: cannot range over blue"),
        ("{{range 100001}}{{end}}", "pod.yaml: a range of 100001 is longer than 100000"),
        ("{{ge .name 3}}", "pod.yaml: cannot compare blue with 3"),
        ("{{range .sizes}}{{.name}}{{end}}", "pod.yaml: .name is asked of 1, which has no fields"),
    ],
)
def test_mistakes_name_the_file(template: str, told: str) -> None:
    with pytest.raises(WorkloadError) as refused:
        ObjectTemplate(template, "pod.yaml").render(GIVEN)
    assert str(refused.value) == told
