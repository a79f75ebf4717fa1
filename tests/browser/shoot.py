"""Takes a screenshot of the page: `python3 -m tests.browser.shoot ADDRESS FILE.png [--width 390] [--dark]`."""

import argparse

from playwright.sync_api import sync_playwright

from tests.browser.chromium import find_chromium


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("file")
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--height", type=int, default=800)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--language", default="en")
    parser.add_argument(
        "--click", action="append", default=[], help="selectors to click first, in this order"
    )
    parser.add_argument("--wait", type=int, default=800, help="milliseconds to wait before the picture")
    options = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        page = browser.new_page(
            viewport={"width": options.width, "height": options.height},
            color_scheme="dark" if options.dark else "light",
            locale=options.language,
        )
        page.on("console", lambda message: print(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: print(f"error: {error}"))
        page.goto(options.address)
        page.wait_for_timeout(options.wait)
        for selector in options.click:
            page.click(selector)
            page.wait_for_timeout(300)
        page.screenshot(path=options.file)
        browser.close()


if __name__ == "__main__":
    main()
