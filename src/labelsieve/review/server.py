"""The routes of the review page: an ASGI app for an opened review. Every request passes the guard first.

Pictures are named by id and static files by a fixed list, so no request ever names a path.
"""

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.resources import files
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from labelsieve.decisions.decision import ACCEPT, KEEP, RELABEL, Decision
from labelsieve.decisions.incoming import flaws
from labelsieve.errors import ToolError, UsageError
from labelsieve.review import answers
from labelsieve.review.desk import Filter
from labelsieve.review.evidence import as_bytes
from labelsieve.review.guard import LOOPBACK, App, Guard, Invitation
from labelsieve.review.opening import Review
from labelsieve.review.pictures import NoPicture, NotYet
from labelsieve.review.table import ReviewTable

Append = Callable[[list[Decision]], list[Decision]]


class Writer:
    """While one trip is on its way, what arrives waits for the next: a disk that takes its time is asked rarely."""

    def __init__(self, append: Append) -> None:
        self._append = append
        self._waiting: list[tuple[list[Decision], asyncio.Future[list[Decision]]]] = []
        self._going: asyncio.Task[None] | None = None

    async def write(self, entries: list[Decision]) -> list[Decision]:
        answer: asyncio.Future[list[Decision]] = asyncio.get_running_loop().create_future()
        self._waiting.append((entries, answer))
        if self._going is None or self._going.done():
            self._going = asyncio.create_task(self._go())
        return await answer

    async def _go(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                written = iter(await asyncio.to_thread(self._append, [entry for entries, _ in batch for entry in entries]))
            except Exception as error:  # whatever it is, those who wait must hear of it
                for _, answer in batch:
                    if not answer.done():
                        answer.set_exception(error)
                continue
            for entries, answer in batch:
                own = [next(written) for _ in entries]
                if not answer.done():
                    answer.set_result(own)


MOST = 5000  # decisions in one request


class Said(BaseModel):
    """One decision. `key` is made by the page and unique; `replaces` is the seq of the latest one it had seen on this id."""

    model_config = ConfigDict(extra="forbid", strict=True)
    key: str = Field(pattern=r"^[A-Za-z0-9_-]{8,64}$")
    id: str = Field(min_length=1, max_length=4096)
    action: str = Field(pattern=r"^(accept|keep|relabel|drop|unsure|clear)$")
    label: str | None = Field(default=None, max_length=4096)
    who: str = Field(min_length=1, max_length=80)
    replaces: int | None = Field(default=None, ge=1, le=2**53)


class Sent(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    decisions: list[Said] = Field(min_length=1, max_length=MOST)


def entries(sent: Sent, table: ReviewTable) -> list[Decision]:
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return [_entry(said, table, now) for said in sent.decisions]


def _entry(said: Said, table: ReviewTable, now: str) -> Decision:
    row = table.row_of.get(said.id)
    if row is None:
        raise UsageError("there is no such sample in this run")
    if wrong := flaws(who=said.who, key=said.key):
        raise UsageError(f"{wrong[0]} (your name is at the top of the page)")
    label = None
    if said.action == RELABEL:
        if said.label not in table.classes:
            raise UsageError(f"the new label is not one of {len(table.classes)} classes")
        label = said.label
    elif said.action in (ACCEPT, KEEP):
        label = table.classes[(table.suggested if said.action == ACCEPT else table.given)[row]]
    return Decision(
        said.key, said.id, said.action, label, said.who.strip(), now, round(float(table.score[row]), 6), said.replaces
    )


PAGE = 500  # rows in one answer, at most
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".svg": "image/svg+xml"}  # fmt: skip
Text = Annotated[str, Query(max_length=4096)]
Place = Annotated[int, Query(ge=-1, le=2**31)]
Count = Annotated[int, Query(ge=0, le=2**53)]


def filter_of(
    given: Text = "",
    suggested: Text = "",
    state: Text = "open",
    text: Text = "",
    everything: bool = False,
    own: Text = "",
    area: Text = "",
) -> Filter:
    return Filter(given, suggested, state, text, everything, own, area)


Asked = Annotated[Filter, Depends(filter_of)]


class Plain(JSONResponse):
    """JSON in ASCII: names may hold what is no proper Unicode."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def review_app(
    review: Review,
    token: str,
    port: int,
    who: str,
    hosts: tuple[str, ...] = LOOPBACK,
    invitation: Invitation | None = None,
) -> App:
    app = FastAPI(title="labelsieve review", docs_url=None, redoc_url=None, openapi_url=None)
    _refusals(app)
    _static(app)
    _reading(app, review, who)
    _pictures(app, review)
    _writing(app, review)
    return Guard(app, token, port, hosts, invitation)


def _refusals(app: FastAPI) -> None:
    """Errors in words, and never what was sent: it could be long."""

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first.get("loc", ()))
        return Plain({"error": f"{place}: {first.get('msg', 'malformed')}"}, 422)

    @app.exception_handler(UsageError)
    async def wrong(request: Request, error: UsageError) -> Response:
        return Plain({"error": str(error)}, 400)

    @app.exception_handler(ToolError)
    async def refused(request: Request, error: ToolError) -> Response:
        return Plain({"error": str(error)}, 507)


def _static(app: FastAPI) -> None:
    folder = files("labelsieve.review") / "static"
    known = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}

    def served(name: str) -> Response:
        kind = TYPES.get(name[name.rfind(".") :])
        if name not in known or kind is None:
            return Plain({"error": "there is no such file"}, 404)
        return Response(known[name], media_type=kind, headers={"cache-control": "no-cache"})

    @app.get("/")
    async def page() -> Response:
        return served("index.html")

    @app.get("/static/{name}")
    async def static(name: str) -> Response:
        return served(name)


def _reading(app: FastAPI, review: Review, who: str) -> None:
    """Answers say how many decisions they surely know of, `events`, counted first: others go on deciding while one is made.

    `mark` is the latest one's; a page says how many it has heard of, and the mark, so that another log is noticed.
    """
    desk, table = review.desk, review.table

    @app.get("/api/start")
    def start() -> Response:
        review.pictures.begin()
        events = desk.catch_up()
        known = {"events": events, "mark": desk.mark(events)}
        return Plain(answers.start(review, who) | known | {"progress": answers.progress(review)})

    @app.get("/api/rows")
    def rows(asked: Asked, view: Text = "", offset: Place = 0, limit: Annotated[int, Query(ge=0, le=PAGE)] = 60) -> Response:
        events = desk.events
        found = desk.view(asked, view)
        shown = [answers.row(review, at) for at in found.rows[max(offset, 0) : max(offset, 0) + limit].tolist()]
        return Plain({"events": events, "view": found.key, "total": len(found.rows), "offset": offset, "rows": shown})

    @app.get("/api/next")
    def following(asked: Asked, view: Text = "", after: Place = -1) -> Response:
        found = desk.view(asked, view)
        return Plain({"view": found.key, "total": len(found.rows), "at": desk.next_open(found, after)})

    @app.get("/api/row")
    def row(id: Text) -> Response:
        at = table.row_of.get(id)
        if at is None:
            return Plain({"error": "there is no such sample in this run"}, 404)
        return Plain(answers.detail(review, at))

    @app.get("/api/map")
    def whole_map() -> Response:
        if table.at is None:
            return Plain({"error": "this run has no map; a finished run of this version has one"}, 404)
        return Response(as_bytes(table, table.at), media_type="application/octet-stream")

    @app.get("/api/at")
    def row_at(row: Place) -> Response:
        if not 0 <= row < len(table):
            return Plain({"error": "there is no such row in this run"}, 404)
        return Plain(answers.row(review, row))

    @app.get("/api/changes")
    def changes(since: Count = 0, heard: Count = 0, mark: Text = "") -> Response:
        events = desk.catch_up()
        if since > events or desk.mark(heard) != mark:  # of a log that was replaced: the page starts over
            return Plain({"restart": True, "events": events})
        facts: dict[str, Any] = {"events": events, "mark": desk.mark(events), "changes": [], "shown": answers.shown(review)}
        if since < events:
            changed = [name for name in desk.changes(since) if name in table.row_of]
            facts["changes"] = [{"id": name} | answers.standing(review, name) for name in changed]
            facts["progress"] = answers.progress(review)
        return Plain(facts)


def _pictures(app: FastAPI, review: Review) -> None:
    # Threads of their own: pictures that wait for a slow disk must not hold up decisions.
    pool = ThreadPoolExecutor(4, "pictures")

    @app.get("/api/picture")
    async def picture(id: Text, size: Annotated[str, Query(pattern="^(small|large)$")] = "small") -> Response:
        try:
            content, kind = await asyncio.get_running_loop().run_in_executor(pool, review.pictures.encoded, id, size)
        except NoPicture as error:
            return Plain({"error": str(error)}, 503 if isinstance(error, NotYet) else 404)
        return Response(content, media_type=kind, headers={"cache-control": "private, max-age=3600"})


def _writing(app: FastAPI, review: Review) -> None:
    writer = Writer(review.desk.append)

    @app.post("/api/decisions")
    async def decide(sent: Sent) -> Response:
        written = await writer.write(entries(sent, review.table))
        saved = [{"key": entry.key, "id": entry.id, "seq": entry.seq} for entry in written]
        return Plain({"saved": saved})
