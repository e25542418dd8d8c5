"""The flags of leader election, which go before what the configuration says."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mooring.config import ConfigError, Configuration
from mooring.config.duration import Duration
from mooring.config.problems import Problem

_DURATIONS = ("lease_duration", "renew_deadline", "retry_period")


def with_flags(
    configuration: Configuration, given: Mapping[str, str | bool | None]
) -> Configuration:
    """The configuration with the flags that were given; raises ConfigError naming the flag."""
    values: dict[str, object] = {name: value for name, value in given.items() if value is not None}
    problems: list[Problem] = []
    for name in values.keys() & _DURATIONS:
        try:
            values[name] = Duration.parse(str(values[name]))
        except ValueError as error:
            problems.append(Problem(_flag(name), str(error)))
    if problems:
        raise ConfigError(tuple(problems), "command line")
    election = msgspec.structs.replace(configuration.leader_election, **values)
    told = tuple(Problem(f"leaderElection.{where}", what) for where, what in election.problems())
    if told:
        raise ConfigError(told, "command line")
    return msgspec.structs.replace(configuration, leader_election=election)


def _flag(name: str) -> str:
    return f"--leader-elect-{name.replace('_', '-')}"
