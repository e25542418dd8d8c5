"""All functions that expressions may call."""

from moorage.cel.functions import (
    addresses,
    operators,
    quantities,
    sequences,
    texts,
    times,
    versions,
)
from moorage.cel.functions.function_table import Overloads

FUNCTIONS: dict[str, Overloads] = {}

for _module in (addresses, operators, quantities, sequences, texts, times, versions):
    for _name, _overloads in _module.TABLE.items():
        FUNCTIONS.setdefault(_name, {}).update(_overloads)
