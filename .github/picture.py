"""Take the README's picture of a run: the dashboard's page `/dasktc` while two workers count.

    pip install -e ".[dashboard]" playwright && playwright install chromium
    python .github/picture.py

With `--browser PATH` a Chromium that is installed already takes it; `--dark` and `--width` show the page otherwise.
"""

from __future__ import annotations

import argparse
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dasktc
from dasktc import generate
from dasktc.executors.dask.progress import page_of, show_page

PICTURE = Path(__file__).with_name("run.png")
SHARE = 0.5
"""Share of the counting tasks after which the picture is taken."""


def main() -> None:
    """Count in a thread, and take the picture in this one."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, default=PICTURE, help="the file, PNG")
    parser.add_argument("--browser", help="path of a Chromium; default: the one of playwright")
    parser.add_argument("--scale", type=int, default=22, help="scale of the Kronecker graph that is counted")
    parser.add_argument("--width", type=int, default=1100, help="width of the window in pixels")
    parser.add_argument("--dark", action="store_true", help="the dark theme")
    given = parser.parse_args()
    reached = threading.Event()

    def follow(stage: str, done: int, total: int) -> None:
        if stage == "count" and done >= SHARE * total:
            reached.set()

    with dasktc.cluster(workers=2, backend="cpu") as client, sync_playwright() as player, ThreadPoolExecutor(1) as pool:
        show_page(client)
        browser = player.chromium.launch(executable_path=given.browser)
        scheme = "dark" if given.dark else "light"
        page = browser.new_page(viewport={"width": given.width, "height": 400}, color_scheme=scheme)
        page.goto(page_of(client))
        source, method = generate.kronecker(given.scale), dasktc.Method(splits=64)
        count = pool.submit(dasktc.triangle_count, source, client, method=method, progress=follow)
        while not count.done() and not reached.wait(1):
            pass
        page.wait_for_timeout(700)  # the page is drawn once a second
        page.screenshot(path=given.out, full_page=True)
        browser.close()
        count.result()
    print(f"{given.out}: {given.out.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
