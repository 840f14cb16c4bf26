"""`labelsieve review RUN`: a page in the browser on which suspicious labels are checked, most suspicious first."""

from pathlib import Path
from typing import Annotated

import typer


def review(
    run: Annotated[Path, typer.Argument(help="The run folder.")],
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Default: 8765, or the next free one; 0: any free one.")
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on. Only this machine can reach the default.")] = ("127.0.0.1"),
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
    reviewer: Annotated[str | None, typer.Option(help="Your name, which signs your decisions; default: your login.")] = None,
    data: Annotated[str | None, typer.Option(help="Where the data are now, if they moved since the run started.")] = None,
) -> None:
    """Check suspicious labels in your browser. Each decision is on the disk before the page calls it saved."""
    import webbrowser
    from importlib.util import find_spec

    from labelsieve.errors import ToolError
    from labelsieve.terminal.console import console

    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        raise ToolError('review needs the packages fastapi and uvicorn; get them with: pip install "labelsieve[review]"')
    from labelsieve.review.guard import Invitation, run_token
    from labelsieve.review.opening import open_review
    from labelsieve.review.serving import address, is_loopback, listen, serve

    opened = open_review(run, source_of(data))
    token, listener = run_token(run), listen(host, port)
    used = listener.getsockname()[1]
    place, invitation = address(host, used, token), Invitation(used)

    def ready() -> None:
        issues = int(opened.table.is_issue.sum())
        decided = int((opened.desk.state > 0).sum())  # as the page counts: what was undone stands in the log twice
        console.print(f"{run}: {issues:,} issues in {len(opened.table):,} labels, {decided:,} decided so far")
        if not is_loopback(host):
            console.print("note: others on this network can reach the page; whoever has the address below can decide")
        if not opened.desk.log.is_writable:
            console.print(
                f"note: {opened.desk.log.path} cannot be written, so nothing can be decided, only looked at; make it writable",
                style="yellow",
            )
        console.print(place)
        console.print("Ctrl-C ends it; every decision is in decisions.jsonl")
        if not no_browser:
            webbrowser.open(address(host, used, invitation.code, "once"))

    serve(opened, listener, token, reviewer or login(), host, invitation, ready)


def source_of(data: str | None) -> str | None:
    """The data as a source, where some are named; finding out what they are takes torch."""
    if data is None:
        return None
    from labelsieve.data.sources import source_at

    return source_at(data)


def login() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user without a name; on Windows Python then looks for a module that isn't there
        return "reviewer"
