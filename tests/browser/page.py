"""A tab of a real Chromium with the review open: keys and clicks go in, what stands on the page comes out."""

import time
from collections.abc import Callable
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

# The first answer to such a request that says such a thing is held back, or every one; `read` tells that the page has read it.
HOLD = """
const [asked, words, every] = arguments;
const real = window.fetch;
const gate = new Promise((open) => { window.release = () => { window.released = true; open(); }; });
Object.assign(window, { held: 0, read: false, released: false });
window.fetch = async (path, ...rest) => {
  const answer = await real(path, ...rest);
  if (window.released || (window.held && !every) || !String(path).includes(asked)) return answer;
  const said = await answer.clone().text();
  if (!said.includes(words) || (window.held && !every)) return answer;
  window.held += 1;
  await gate;
  answer.json = async () => { setTimeout(() => { window.read = true; }); return JSON.parse(said); };
  return answer;
};
"""
# What is announced stays for a moment only; here it is kept.
LISTEN = """
const live = document.getElementById('live');
window.announced = [];
new MutationObserver(() => window.announced.push(live.textContent)).observe(live, { childList: true });
"""
# Is the label in focus here? What is pressed before decides nothing, and the page says so.
LOADED = "return import('/static/store.js').then(({ store }) => store.known && (!store.total || store.rows.has(store.focus)))"
# Nothing moves or fades any more, all pictures are here or refused, and what was drawn last is on the screen.
STILL = """
const done = arguments[0];
const look = () => {
  const moves = document.getAnimations().some((one) => one.playState === 'running');
  const loads = [...document.images].some((one) => one.checkVisibility() && !one.complete);
  if (moves || loads) setTimeout(look, 20);
  else requestAnimationFrame(() => requestAnimationFrame(() => done()));
};
look();
"""
PATIENCE = 120.0  # of a machine that is busy with other tests; what is awaited usually takes a fraction of a second


class Page:
    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, address: str) -> "Page":
        self.driver.get(address)
        self.until(lambda: self.cards() or self.script("return document.querySelector('.done') !== null"), "the list")
        self.script(LISTEN)
        return self

    def script(self, code: str, *facts: Any) -> Any:
        return self.driver.execute_script(code, *facts)

    def until(self, true: Callable[[], Any], what: str, patience: float = PATIENCE) -> Any:
        end = time.monotonic() + patience
        while True:
            found = true()
            if found:
                return found
            if time.monotonic() > end:
                raise AssertionError(f"waited {patience:g} s in vain for {what}; banner: {self.text('banner')!r}")
            time.sleep(0.03)

    def size(self, width: int, height: int, dark: bool = False) -> None:
        facts = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", facts)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    def offline(self, gone: bool) -> None:
        facts = {"offline": gone, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        self.driver.execute_cdp_cmd("Network.enable", {})
        self.driver.execute_cdp_cmd("Network.emulateNetworkConditions", facts)

    def hold(self, asked: str, words: str = "", every: bool = False) -> None:
        """The first answer to a request with `asked` in it that says `words`, or `every` one, waits until it is let go."""
        self.script(HOLD, asked, words, every)

    def until_held(self) -> None:
        self.until(lambda: self.script("return window.held"), "an answer to hold back")

    def let_go(self) -> None:
        """And the page has read it."""
        self.script("window.release()")
        self.until(lambda: self.script("return window.read"), "the answer, let go")

    # --- doing

    def press(self, *keys: str) -> None:
        """One key after the other, to whatever has the focus; each once the label in focus is here."""
        for key in keys:
            self.loaded()
            self.press_at_once(key)

    def press_at_once(self, key: str) -> None:
        """Also while the list is on its way."""
        ActionChains(self.driver).send_keys(key).perform()

    def loaded(self) -> None:
        self.until(lambda: self.script(LOADED), "the label in focus")

    def still(self) -> None:
        self.driver.set_script_timeout(PATIENCE)
        self.driver.execute_async_script(STILL)

    def chord(self, held: str, *keys: str) -> None:
        chain = ActionChains(self.driver).key_down(held)
        for key in keys:
            chain = chain.send_keys(key)
        chain.key_up(held).perform()

    def click_in(self, selector: str, place: int = 0) -> None:
        """Of those the selector finds, the one at `place`; found anew if the page was drawn again just then."""
        for patience in (0.1, 0.5, 2.0, 0.0):
            try:
                self.click(self.driver.find_elements(By.CSS_SELECTOR, selector)[place])
                break
            except (StaleElementReferenceException, IndexError):
                if not patience:
                    raise
                time.sleep(patience)

    def click(self, element: WebElement, held: str | None = None) -> None:
        chain = ActionChains(self.driver)
        chain = (chain.key_down(held) if held else chain).click(element)
        (chain.key_up(held) if held else chain).perform()

    def button(self, words: str) -> WebElement:
        """The button that begins with these words and can be seen."""
        code = (
            "return [...document.querySelectorAll('button')].find(b => b.checkVisibility() && "
            "(b.querySelector('span') ?? b).textContent.trim() === arguments[0])"
        )
        found: WebElement = self.until(lambda: self.script(code, words), f"the button {words!r}")
        return found

    def choose(self, id: str, value: str) -> None:
        """A value of a select or an input, as a person sets it."""
        self.script(
            "const e = document.getElementById(arguments[0]); e.value = arguments[1];"
            "e.dispatchEvent(new Event('input', {bubbles: true})); e.dispatchEvent(new Event('change', {bubbles: true}));",
            id,
            value,
        )

    # --- seeing

    def by_id(self, id: str) -> WebElement:
        return self.driver.find_element(By.ID, id)

    def text(self, id: str) -> str:
        return str(self.script("const e = document.getElementById(arguments[0]); return e && !e.hidden ? e.textContent : ''", id))

    def cards(self) -> list[WebElement]:
        return [card for card in self.driver.find_elements(By.CSS_SELECTOR, ".card:not([hidden])") if card.get_attribute("title")]

    def ids(self) -> list[str]:
        return list(self.script("return [...document.querySelectorAll('.card:not([hidden])')].map(c => c.title)"))

    def states(self) -> list[str]:
        return list(self.script("return [...document.querySelectorAll('.card:not([hidden])')].map(c => c.dataset.state)"))

    def focus(self) -> str:
        """The id in focus."""
        return str(
            self.script(
                "return document.querySelector('.card.focus')?.title ?? document.querySelector('#detail .id')?.textContent"
            )
        )

    def selected(self) -> int:
        return int(self.script("return document.querySelectorAll('.card[aria-selected=true]').length"))

    def total(self) -> int:
        return int(self.text("total").split(" of ")[-1].split()[0].replace(",", ""))

    def saved(self) -> None:
        """All that was decided is on the server's disk."""
        self.until(lambda: self.text("saved") == "all saved", "all saved")

    def announced(self, words: str) -> bool:
        """Was something that begins with these words read out to those who do not see the page, since it was opened?"""
        return any(line.startswith(words) for line in self.script("return window.announced"))

    def errors(self) -> list[str]:
        """What the browser complained about, less that a server was gone (net::ERR_...) or is still opening its data (503)."""
        said = [line["message"] for line in self.driver.get_log("browser")]
        return [line for line in said if "net::ERR_" not in line and "status of 503" not in line]


ENTER, ESCAPE, SHIFT, CONTROL = Keys.ENTER, Keys.ESCAPE, Keys.SHIFT, Keys.CONTROL
LEFT, RIGHT, UP, DOWN = Keys.ARROW_LEFT, Keys.ARROW_RIGHT, Keys.ARROW_UP, Keys.ARROW_DOWN
PAGE_DOWN, HOME, END, BACKSPACE, DELETE = Keys.PAGE_DOWN, Keys.HOME, Keys.END, Keys.BACKSPACE, Keys.DELETE
