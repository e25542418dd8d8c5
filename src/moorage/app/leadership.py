"""Elects the replica that schedules: it holds a lease and renews it."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from math import ceil
from typing import Any

import msgspec

from moorage.client import Api, ApiError, ClientError, CredentialsError
from moorage.config import LeaderElection
from moorage.objects.kinds import KINDS
from moorage.objects.meta import Wire

_LOG = logging.getLogger(__name__)

# Candidates ask at different times, so that they do not all write at once when a lease ends.
_JITTER = 1.2

_LEASE = KINDS["Lease"]

#: Is called with whether we lead now, and the leader.
OnChange = Callable[[bool, str], None]


def boot_time() -> float:
    """Returns the seconds since the machine started, including those while it was suspended.

    On Linux a monotonic clock stops during suspension: a leader that wakes up would believe that it
    has just renewed its lease.
    """
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class LeadershipTerm:
    """The time in which this candidate leads. Once it is over, it never begins again.

    All threads may ask whether it holds. Only its `Leadership` prolongs and ends it.
    """

    def __init__(self, clock: Callable[[], float], until: float) -> None:
        self._clock = clock
        self._until = until
        self._is_over = False

    @property
    def seconds_left(self) -> float:
        return max(0.0, self._until - self._clock()) if self.holds() else 0.0

    def holds(self) -> bool:
        """Whether no other candidate can lead yet. Ask this before every write."""
        if self._clock() >= self._until:
            # What was decided in it stays dropped, even if a late answer prolongs it.
            self._is_over = True
        return not self._is_over

    def prolong(self, until: float) -> None:
        self._until = max(self._until, until)

    def end(self) -> None:
        self._is_over = True


class _Spec(Wire, frozen=True):
    """The holder of a lease.

    Its times are for people: clocks of different machines do not agree.
    """

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None


class Leadership:
    """One candidate for a lease.

    A lease counts as held until it has not changed for its duration, measured by our own clock
    since we saw the last change. The holder stops acting earlier: `renew_deadline` after it *began*
    the last renewal that succeeded. So two never act at once, whatever their wall clocks say.

    A candidate that is not well neither takes nor renews the lease, so that another one can.

    Give it an `Api` of its own: a renewal must not wait behind other requests.
    """

    def __init__(  # noqa: PLR0913  # time and chance are given, so that tests can choose them
        self,
        api: Api,
        settings: LeaderElection,
        identity: str,
        *,
        clock: Callable[[], float] = boot_time,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
        on_change: OnChange = lambda leading, leader: None,
        is_well: Callable[[], bool] = lambda: True,
    ) -> None:
        self._api = api
        self._settings = settings
        self._identity = identity
        self._clock = clock
        self._now = now
        self._sleep = sleep
        self._chance = chance
        self._on_change = on_change
        self._is_well = is_well
        self._path = _LEASE.path(settings.resource_namespace, settings.resource_name)
        self._lease: dict[str, Any] = {}
        self._seen = _Spec()
        self._seen_at = clock()
        self._term: LeadershipTerm | None = None
        self._status = (False, "")
        #: Why the last try failed; empty if it did not.
        self.problem = ""

    @property
    def leader(self) -> str:
        """The holder of the lease as last seen; empty if there is none."""
        return self._seen.holder_identity or ""

    @property
    def transitions(self) -> int:
        """How often the lease changed its holder."""
        return self._seen.lease_transitions or 0

    def may_act(self) -> bool:
        """Whether no other candidate can hold the lease yet."""
        return self._term is not None and self._term.holds()

    async def await_election(self) -> LeadershipTerm:
        """Returns once this candidate is elected."""
        while True:
            if self._is_well() and await self._try():
                # An exchange that took too long has won a lease that may be another's by now.
                if self._term is not None and self._term.holds():
                    return self._term
                self._step_down()
            await self._sleep(self._settings.retry_period.seconds * (1 + _JITTER * self._chance()))

    async def hold(self) -> None:
        """Renews the lease; returns when it is lost."""
        term = self._term
        while term is not None and term.holds():
            await self._sleep(self._settings.retry_period.seconds)
            if self._is_well():
                await self._try_for(term.seconds_left)
            else:
                self.problem = "the lease is not renewed: no decision ends"
        self._step_down()

    async def release(self) -> None:
        """Gives up the lease, so that a standby need not wait for its end."""
        ours = self.leader == self._identity
        self._step_down()
        if not ours:
            return
        try:
            async with asyncio.timeout(self._settings.renew_deadline.seconds):
                await self._let_go()
        except (ClientError, CredentialsError, TimeoutError) as error:
            _LOG.warning("the lease %s could not be released: %s", self._path, error)

    async def _let_go(self) -> None:
        # Renewals that nobody answered may have changed it, so it is looked at again.
        await self._look()
        if self.leader == self._identity:
            stamp = self._stamp()
            await self._write(
                {
                    **self._lease["spec"],
                    "holderIdentity": "",
                    "leaseDurationSeconds": 1,
                    "acquireTime": stamp,
                    "renewTime": stamp,
                }
            )

    async def _try_for(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._try()
        except TimeoutError:
            self.problem = "the lease could not be renewed in time"

    async def _try(self) -> bool:
        """Acquires or renews the lease; returns whether it is ours now."""
        try:
            won = await self._renew_as_seen() or await self._acquire()
        except (ClientError, CredentialsError, msgspec.ValidationError) as error:
            self.problem = str(error)
            _LOG.warning("lease %s: %s", self._path, error)
            return False
        self.problem = ""
        self._tell()
        return won

    async def _renew_as_seen(self) -> bool:
        """Renews a lease that is ours without looking at it again."""
        if not self.may_act():
            return False
        try:
            await self._take()
        except ApiError as error:
            if error.is_conflict or error.is_not_found:
                return False
            raise
        return True

    async def _acquire(self) -> bool:
        if not await self._look():
            return await self._create()
        if self._is_held_by_another():
            self._step_down()
            return False
        try:
            await self._take()
        except ApiError as error:
            if error.is_conflict:
                return False
            raise
        return True

    def _is_held_by_another(self) -> bool:
        if self.leader in ("", self._identity):
            return False
        lasts = self._seen.lease_duration_seconds or 0
        return self._clock() < self._seen_at + lasts

    async def _create(self) -> bool:
        lease = {
            "apiVersion": _LEASE.api_version,
            "kind": _LEASE.kind,
            "metadata": {
                "name": self._settings.resource_name,
                "namespace": self._settings.resource_namespace,
            },
            "spec": self._spec(acquired=True, transitions=0),
        }
        began = self._clock()
        try:
            text = await self._api.post(
                _LEASE.path(self._settings.resource_namespace), msgspec.json.encode(lease)
            )
        except ApiError as error:
            if error.is_already_exists:
                self._step_down()
                return False
            raise
        self._observe(text)
        self._note_renewal(began)
        return True

    async def _take(self) -> None:
        """Writes ourselves into the lease as we saw it; conflicts if it has changed since."""
        ours = self.leader == self._identity
        spec = self._spec(acquired=not ours, transitions=self.transitions + (not ours))
        began = self._clock()
        await self._write({**(self._lease.get("spec") or {}), **spec})
        self._note_renewal(began)

    def _note_renewal(self, began: float) -> None:
        # From before the request was sent: others saw the renewal later than that.
        until = began + self._settings.renew_deadline.seconds
        if self._term is not None and self._term.holds():
            self._term.prolong(until)
        else:
            self._term = LeadershipTerm(self._clock, until)

    async def _write(self, spec: dict[str, Any]) -> None:
        body = msgspec.json.encode({**self._lease, "spec": spec})
        self._observe(await self._api.put(self._path, body))

    async def _look(self) -> bool:
        """Reads the lease; returns whether there is one."""
        try:
            self._observe(await self._api.get(self._path))
        except ApiError as error:
            if error.is_not_found:
                return False
            raise
        return True

    def _observe(self, text: bytes) -> None:
        lease = msgspec.json.decode(text, type=dict[str, Any])
        spec = msgspec.convert(lease.get("spec") or {}, _Spec)
        self._lease = lease
        if spec != self._seen:
            self._seen = spec
            self._seen_at = self._clock()

    def _spec(self, *, acquired: bool, transitions: int) -> dict[str, Any]:
        stamp = self._stamp()
        spec: dict[str, Any] = {
            "holderIdentity": self._identity,
            # Up, never down: others must not take the lease before its time.
            "leaseDurationSeconds": ceil(self._settings.lease_duration.seconds),
            "renewTime": stamp,
            "leaseTransitions": transitions,
        }
        return {**spec, "acquireTime": stamp} if acquired else spec

    def _stamp(self) -> str:
        return self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def _step_down(self) -> None:
        if self._term is not None:
            self._term.end()
            self._term = None
        self._tell()

    def _tell(self) -> None:
        status = (self.may_act(), self.leader)
        if status != self._status:
            self._status = status
            self._on_change(*status)
