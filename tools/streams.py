"""Decides random streams with and without reuse until so many decisions agree, or one differs.

    python -m tools.streams --decisions 1000000

In half of the streams, all built-in plugins, GPUAware, DiskIO, CoexistPolicy and plugins of others
take part at once, or the default profile: see `tests/exactness/everything.py`. For the other half a
profile is drawn, with devices, pools and gangs, and printed: see `drawn_profiles.py` there. A seed
makes a stream; `--seed` and `--streams 1` repeat one.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import replace
from time import process_time

from moorage.engine.classes.statistics import DecisionPath
from tests.exactness.drawn_profiles import Drawn, draw
from tests.exactness.everything import ALL_AT_ONCE, CROWDED, EVERYTHING, WIDE, everything
from tests.exactness.four_ways import ON_AND_OFF, WAYS, Differs, configuration, run
from tests.exactness.streams import COEXISTING, Shape

#: What streams take turns with: plugins, shape, and how many classes are kept.
TURNS = (
    (everything(), ALL_AT_ONCE, None),
    (everything(), CROWDED, None),
    (everything(), WIDE, None),
    (everything(), CROWDED, 2),
    (configuration(), Shape(stateful=True), None),
    (configuration(), COEXISTING, None),
    (configuration(), Shape(), None),
    (configuration(), Shape(nodes=(40, 60), turns=12), None),
    (configuration(), Shape(), 1),
    (configuration({"percentageOfNodesToScore": 50}), Shape(nodes=(105, 125), turns=4), None),
)
REPORT_EVERY = 30
#: In so many streams, plugins once see no more of the cluster than they declare.
LIMITED_EVERY = 16
#: So many pods come at once: otherwise, most of the time would go into what happens around them.
BURST = 30


def main() -> int:
    """Runs streams; the exit code is 1 if a decision differed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--decisions", type=int, default=1_000_000)
    parser.add_argument("--streams", type=int, default=None, help="at most this many")
    parser.add_argument("--seed", type=int, default=0, help="of the first stream")
    parser.add_argument("--small", action="store_true", help="few pods at once, in all four ways")
    asked = parser.parse_args()
    paths: Counter[DecisionPath] = Counter()
    seed = asked.seed
    while paths.total() < asked.decisions and seed - asked.seed != asked.streams:
        drawn = _draw(seed)
        try:
            paths += run(
                seed,
                drawn.configuration,
                drawn.shape if asked.small else replace(drawn.shape, burst=BURST, fleeting=True),
                registry=EVERYTHING,
                most_classes=drawn.most_classes,
                recounts=False,
                ways=WAYS if asked.small else ON_AND_OFF,
                # It takes half as long without, and tests see to it as well.
                limits_plugins=asked.small or seed % LIMITED_EVERY == 1,
            )
        except Differs as error:
            print(f"stream {seed} differs: {error}")
            return 1
        except Exception:
            print(f"stream {seed} breaks", flush=True)
            raise
        seed += 1
        if seed % REPORT_EVERY == 0:
            print(_describe(paths, seed - asked.seed), flush=True)
    print(_describe(paths, seed - asked.seed))
    return 0


def _draw(seed: int) -> Drawn:
    """Returns the profile of a stream; one that was drawn is printed."""
    if seed % 2 == 0:
        using, shape, most_classes = TURNS[seed // 2 % len(TURNS)]
        return Drawn(using, shape, most_classes, "")
    drawn = draw(seed)
    print(f"stream {seed}: {drawn.text}", flush=True)
    return drawn


def _describe(paths: Counter[DecisionPath], streams: int) -> str:
    reused = sum(count for path, count in paths.items() if path.is_reuse)
    shares = ", ".join(f"{count} {path.name.lower()}" for path, count in paths.most_common())
    return (
        f"{paths.total()} decisions in {streams} streams, {reused} reused, 0 differences, "
        f"{process_time():.0f} s of processor time ({shares})"
    )


if __name__ == "__main__":
    sys.exit(main())
