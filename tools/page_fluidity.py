"""Measures how fluid the page is: `python -m tools.page_fluidity [--nodes 5000 --pods 50000]`.

The show runs in a process of its own, the browser beside it; what is told is what the page itself
measures around its draws, the time between frames, and the processor time of the server with and
without somebody who looks.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.browsers import open_browser

_FRAMES = """(seconds) => new Promise((done) => {
  const gaps = [];
  const began = performance.now();
  let last = began;
  const frame = (now) => {
    gaps.push(now - last);
    last = now;
    if (now - began < 1000 * seconds) return requestAnimationFrame(frame);
    gaps.sort((one, other) => one - other);
    const at = (share) => gaps[Math.floor(share * (gaps.length - 1))];
    done({ frames: gaps.length, median: at(0.5), p95: at(0.95), p99: at(0.99), worst: at(1) });
  };
  requestAnimationFrame(frame);
})"""


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _share(pid: int, seconds: float) -> float:
    began = _processor_seconds(pid)
    await asyncio.sleep(seconds)
    return round((_processor_seconds(pid) - began) / seconds, 3)


async def _look(address: str, pid: int, seconds: int) -> dict[str, Any]:
    async with open_browser() as browser:
        page = await browser.new_page(viewport={"width": 1280, "height": 860})
        await page.goto(address)
        await page.wait_for_selector('#status[data-state="live"]')
        await page.wait_for_timeout(3_000)
        share, frames = await asyncio.gather(
            _share(pid, seconds), page.evaluate(_FRAMES, float(seconds))
        )
        draws = await page.evaluate("mooragePace()")
        figures = await page.locator("#figures").inner_text()
    return {
        "figures": " ".join(figures.split()),
        "server share while looked at": share,
        "milliseconds between frames": frames,
        "milliseconds per draw": draws,
    }


async def measure(given: argparse.Namespace) -> None:
    arguments = ["--nodes", str(given.nodes), "--pods", str(given.pods)]
    show = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.web.cluster_show",
        *arguments,
        "--per-second",
        str(given.per_second),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert show.stdout is not None
        address = (await show.stdout.readline()).decode().strip()
        await asyncio.sleep(given.warm_up)
        alone = await _share(show.pid, given.seconds)
        found = {"server share alone": alone, **await _look(address, show.pid, given.seconds)}
        print(json.dumps(found, indent=1))
    finally:
        show.terminate()
        await show.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--per-second", type=int, default=1_000)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--warm-up", type=float, default=5.0, help="seconds before it is looked at")
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
