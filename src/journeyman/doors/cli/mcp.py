"""``journeyman mcp``: our tools as an MCP server, and MCP servers in the configuration file."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import re
import shlex
import webbrowser
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from journeyman.app.desk import DECIDE
from journeyman.app.loading import open_at
from journeyman.app.trust import names_in
from journeyman.core.approvals import Approval
from journeyman.core.data import one_line, visible
from journeyman.core.errors import ConfigurationError
from journeyman.core.lazy import install_command
from journeyman.core.policy import Principal
from journeyman.doors.cli import options, screen
from journeyman.doors.cli.configured import configuration, file_settings
from journeyman.doors.cli.loading import decisions, resolutions
from journeyman.doors.cli.options import RunOptions, WrongUsageError
from journeyman.doors.cli.printed import answer_stream, printing_to_stderr
from journeyman.doors.cli.program import TOKEN_VARIABLE, take_from_environment
from journeyman.doors.cli.serve import Access, TokenFile, admission, agents_and_tools, listening, opening
from journeyman.doors.cli.trust import remember_own
from journeyman.sensitive.references import literal_secret
from journeyman.sensitive.tokens import bare_url, redacted
from journeyman.settings.document import DocumentError, read_document
from journeyman.settings.pasted import servers_in
from journeyman.settings.reading import read_settings

if TYPE_CHECKING:
    from journeyman.app.service import Service
    from journeyman.doors.mcp.calls import Places

mcp = typer.Typer(no_args_is_help=True)


@mcp.command("serve")
@options.taking(
    "http host port tokens insecure_no_token no_elicitation bare_names page library agent permission store log_level"
)
def serve_mcp(
    bag: RunOptions,
    *,
    http: Annotated[bool, typer.Option("--http", help="Over streamable HTTP, instead of stdin and stdout.")] = False,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="With --http: where to listen. Others than 127.0.0.1 need --tokens.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="With --http; 0 takes a free one.")] = 8100,
    tokens: TokenFile = None,
    insecure_no_token: Annotated[
        bool,
        typer.Option("--insecure-no-token", help="With --http: ask nobody on this machine for a token. Dangerous."),
    ] = False,
    no_elicitation: Annotated[
        bool,
        typer.Option("--no-elicitation", help="Ask for no approval through the client: all wait to be decided here."),
    ] = False,
    bare_names: Annotated[
        bool, typer.Option("--bare-names", help="Tell tools and prompts of servers without the server's name.")
    ] = False,
    page: Annotated[
        str | None, typer.Option(metavar="URL", help="Where 'journeyman serve' shows the approvals.")
    ] = None,
) -> None:
    """Offer the library's tools to an MCP client: each call is checked, graded, approved where it must be, recorded.

    Over stdin and stdout the client is you, with the permissions you give; over HTTP it is whom its token stands for.
    """
    given = take_from_environment(TOKEN_VARIABLE)
    try:
        from journeyman.doors import mcp as door
    except ImportError as error:
        raise ConfigurationError(f"an MCP server needs more packages: {install_command('mcp')}") from error
    if http and bag.permission:
        raise WrongUsageError("--permission is for stdin and stdout; over --http a token's permissions count")
    if not http and tokens is not None:
        raise WrongUsageError("--tokens is for --http; over stdin and stdout there is one client, who is you")
    access = admission(tokens, given, host=host, insecure=insecure_no_token) if http else Access(None)
    database = open_at(bag.store)
    agents, tools = agents_and_tools(bag, database)
    configuration(database)  # what is wrong with the file is told as by any command
    elicit, places = not no_elicitation, _places(bag.store, page)
    gateway = partial(door.Gateway, places=places, elicit=elicit, bare_names=bare_names)

    @asynccontextmanager
    async def service() -> AsyncIterator[Service]:
        async with opening(bag, database, library=tools, agents=agents, principals=access.principals) as found:
            # What is there now stays: to look through all of it for garbage, again and again, would hold calls up.
            gc.collect()
            gc.freeze()
            yield found

    async def over_stdio() -> None:
        me = bag.principal
        assert me is not None
        # Whoever sits at the client has started this program, and is asked as at a terminal.
        principal = Principal(me.id, permissions={*me.permissions, DECIDE})
        with printing_to_stderr():
            output = answer_stream()
            if isinstance(output, TextIOWrapper):
                output.reconfigure(encoding="utf-8")  # whatever the locale says
            await door.serve_stdio(service(), gateway, output=output, principal=principal)

    async def over_http() -> None:
        def ready(bound: int) -> None:
            listening(host, bound, path="/mcp")
            if access.made is not None:
                screen.write(f"clients send the header 'Authorization: Bearer {access.made}'", stderr=True)

        with printing_to_stderr():
            async with service() as found:
                await door.serve_http(found, gateway, host=host, port=port, tokens=access.known, ready=ready)

    asyncio.run(over_http() if http else over_stdio())


AcceptReads = Annotated[
    bool, typer.Option("--accept-reads", help="Let those that seem only to read run unasked, as long as they stay so.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Write it without asking.")]


@mcp.command("add")
def add_server(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Under which its tools are known: NAME.tool.")],
    command: Annotated[list[str] | None, typer.Argument(metavar="-- COMMAND...", help="What starts it.")] = None,
    url: Annotated[str | None, typer.Option(metavar="URL", help="Where it listens, instead.")] = None,
    env: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A variable of a command; secrets as '${NAME}'.")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option(metavar="'NAME: VALUE'", help="Sent to a URL; secrets as '${NAME}'.")
    ] = None,
    cwd: Annotated[str | None, typer.Option(metavar="FOLDER", help="Where a command is started.")] = None,
    trust_annotations: Annotated[
        bool, typer.Option("--trust-annotations", help="Let what it says of its tools lower their risk.")
    ] = False,
    accept_reads: AcceptReads = False,
    yes: Yes = False,
) -> None:
    """Start an MCP server once, show its tools, risks and what is suspicious, and write it into journeyman.yaml."""
    if bool(command) == (url is not None):
        raise WrongUsageError("say what starts the server, after '--', or give --url")
    entry: dict[str, Any] = {"command": command} if command else {"url": url}
    entry |= {key: _pairs(given, sign) for key, given, sign in (("env", env, "="), ("headers", header, ":")) if given}
    entry |= {"cwd": cwd} if cwd else {}
    if trust_annotations:
        entry["trust_annotations"] = True
    _take_in(name, entry, accept_reads=accept_reads, yes=yes)


def _pairs(given: list[str], sign: str) -> dict[str, str]:
    pairs = [item.partition(sign) for item in given]
    if wrong := next((name for name, found, _ in pairs if not found or not name.strip()), None):
        raise WrongUsageError(f"write NAME{sign}VALUE, got {wrong!r}")
    return {name.strip(): value.strip() for name, _, value in pairs}


_COMMENTED = re.compile(r'(?P<text>"(?:[^"\\\n]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
"""A text of JSON, or a comment, as editors' files have them."""


@mcp.command("import")
def import_servers(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Of Claude Desktop, Cursor, VS Code or the like.")],
    accept_reads: AcceptReads = False,
    yes: Yes = False,
) -> None:
    """Take the MCP servers of another program's file over, one by one, as 'mcp add' does."""
    try:
        text = file.read_text(encoding="utf-8-sig")
        if text.lstrip().startswith(("{", "/")):  # and not YAML, where addresses need no quotes
            text = _COMMENTED.sub(lambda found: found["text"] or " ", text)
        folder = file.resolve().parent
        workspace = folder.parent if folder.name in (".vscode", ".cursor") else folder
        servers = servers_in(read_document(text).value, str(workspace))
    except (OSError, UnicodeDecodeError, DocumentError) as error:
        raise ConfigurationError(f"{file} cannot be read: {getattr(error, 'message', error)}") from None
    if not servers:
        raise ConfigurationError(f"{file} has no servers: neither 'mcpServers' nor 'servers' is there")
    failed = 0
    for name, entry in servers.items():
        for place in ("env", "headers"):
            for key, value in (entry.get(place) or {}).items():
                if literal_secret(key, str(value)) is not None:
                    entry[place][key] = _kept_apart(f"{name}.{key}", str(value))
        try:
            _take_in(name, entry, accept_reads=accept_reads, yes=yes)
        except ConfigurationError as error:  # one broken server breaks no other
            failed += 1
            screen.say(f"{name} is left out: {visible(str(error))}")
    if failed:
        raise typer.Exit(options.ExitCode.FAILED)


def _kept_apart(name: str, secret: str) -> str:
    """Put a secret into a file that only its owner reads; what stands for it in a configuration file."""
    loaded = file_settings()
    folder = _secrets_folder(Path("journeyman.yaml") if loaded is None else loaded.path)
    kept = folder / re.sub(r"[^\w.-]", "_", name)
    with os.fdopen(os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(secret)
    screen.say(f"{visible(name)} is a secret: it is kept in {kept}")
    return f"file:{folder.name}/{kept.name}"


def _secrets_folder(path: Path) -> Path:
    """A folder beside the configuration file, which only its owner reads."""
    folder = path.parent / ".journeyman-secrets"
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    return folder


def _take_in(name: str, entry: dict[str, Any], *, accept_reads: bool, yes: bool, section: str = "mcp") -> None:
    """Look at a server or an API, show what it has, and write it down where that is wanted."""
    from journeyman.app.config_tools import look_at, tool_digest
    from journeyman.app.configuration import source_of

    loaded = file_settings()
    path = Path("journeyman.yaml") if loaded is None else loaded.path
    source = source_of(section, name, entry, path)
    report = asyncio.run(look_at(source))
    if section == "openapi":  # from now on the file says where it is, whatever the document says later
        entry.setdefault("base_url", getattr(source, "base_url", None))
    declared = {item.name for item, _ in report.tools if item.read_only}
    reads = {name for name, (read, _) in report.grades.items() if read and name not in declared}
    for item, risk in report.tools:
        read, why = report.grades[item.name]
        grade = "seems only to read" if item.name in reads else "reads" if read else "asks before each call"
        screen.say(f"{item.name}  {risk.value}  {one_line(item.description, most=80)}  {grade}: {visible(why)}")
    for finding in report.findings:
        screen.say(f"look at this: {finding.tool}: {visible(finding.message)}")
    for problem in report.problems:
        screen.say(f"refused: {visible(problem.message)}")
    if not yes and not typer.confirm(f"Write {name!r} into {path}?"):
        raise typer.Exit(options.ExitCode.FAILED)
    if reads and not accept_reads and not yes:
        accept_reads = typer.confirm(
            f"Let the {screen.counted(len(reads), 'tool')} that seem only to read run unasked?"
        )
    new = not path.exists()
    write_entries(path, section, {name: entry})
    if accept_reads and reads:
        accepted = [item for item, _ in report.tools if item.name in reads]
        write_entries(path, "tools", {item.name: {"read_only": True, "digest": tool_digest(item)} for item in accepted})
    before = [] if loaded is None else names_in(loaded)
    names = [item for item in names_in(read_settings(path)) if item not in before]
    remember_own(path, None if new else names)
    graded = f", {len(reads)} of them graded as reads" if accept_reads else ""
    screen.say(f"{path}: {name} is there, with {screen.counted(len(report.tools), 'tool')}{graded}")


def write_entries(path: Path, section: str, entries: Mapping[str, Mapping[str, Any]]) -> None:
    """Add entries under a key such as ``mcp:``, leaving the rest of the file as it is. JSON is YAML, too."""
    lines = "".join(f"  {json.dumps(name)}: {json.dumps(item, ensure_ascii=False)}\n" for name, item in entries.items())
    text = path.read_text(encoding="utf-8") if path.exists() else "version: 1\n"
    text = text if text.endswith("\n") else f"{text}\n"
    head = re.search(rf"^{section}:[ \t]*(?P<rest>[^\n]*)\n", text, re.MULTILINE)
    there = {} if head is None else read_document(text).value.get(section) or {}
    if head is not None and head["rest"] and not head["rest"].startswith("#"):
        raise ConfigurationError(f"{path}: {section!r} is written on one line; write it as a block, and add:\n{lines}")
    if (taken := next((name for name in entries if name in there), None)) is not None:
        kind = "an entry" if section == "tools" else "a server"
        raise ConfigurationError(f"{path}: there is {kind} {taken!r} already; give another name")
    text = f"{text}{section}:\n{lines}" if head is None else text[: head.end()] + lines + text[head.end() :]
    new = path.with_name(f".{path.name}.new")
    new.write_text(text, encoding="utf-8")
    try:
        read_settings(new)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path} would not be right any more, and was left as it is: {error}") from None
    else:
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


@mcp.command("login")
def login(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A server with 'oauth: {sign_in: true}'.")],
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address to open.")] = False,
) -> None:
    """Sign in to an MCP server with a browser. The tokens are kept beside journeyman.yaml, for its owner alone."""
    from journeyman.app.configuration import sign_in

    if (loaded := file_settings()) is None:
        raise WrongUsageError("there is no journeyman.yaml here that names the server")

    def show(address: str) -> None:
        screen.write(f"open {address}")
        if not no_browser:
            webbrowser.open(address)

    _secrets_folder(loaded.path)
    count = asyncio.run(sign_in(name, loaded, show))
    screen.say(f"signed in to {name}, which has {screen.counted(count, 'tool')}")


openapi = typer.Typer(no_args_is_help=True)


@openapi.callback()
def _openapi() -> None:
    """A group, though it has one command."""


@openapi.command("add")
def add_api(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Under which its operations are known: NAME.operation.")],
    document: Annotated[str, typer.Argument(metavar="FILE_OR_URL", help="Its document, of OpenAPI 3.0 or 3.1.")],
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Where it is called; else what the document names first.")
    ] = None,
    auth: Annotated[
        str | None, typer.Option(metavar="'${NAME}'", help="A key, a token or user:password, by a variable.")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option(metavar="'NAME: VALUE'", help="Sent with every request; secrets as '${NAME}'.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="OPERATION", help="Take this one alone, or these; '*' for several.")
    ] = None,
    accept_reads: AcceptReads = False,
    yes: Yes = False,
) -> None:
    """Read the OpenAPI document of an API once, show its tools and risks, and write it into journeyman.yaml."""
    entry: dict[str, Any] = {"document": document, "base_url": base_url, "auth": auth, "only": only}
    entry["headers"] = _pairs(header, ":") if header else None
    entry = {key: value for key, value in entry.items() if value is not None}
    _take_in(name, entry, accept_reads=accept_reads, yes=yes, section="openapi")


@mcp.command("list")
def list_servers(as_json: options.Json = False) -> None:
    """The MCP servers of journeyman.yaml. None is started."""
    loaded = file_settings()
    servers = {} if loaded is None else loaded.settings.mcp
    shown = [
        {
            "name": name,
            "where": redacted(shlex.join(item.command)) if item.command else bare_url(str(item.url)),
            "enabled": item.enabled,
            "trust_annotations": item.trust_annotations,
        }
        for name, item in servers.items()
    ]
    if as_json:
        return screen.print_json(shown)
    for item in shown:
        off = "" if item["enabled"] else "  (switched off)"
        screen.say(f"{item['name']}  {visible(str(item['where']))}{off}")
    if not shown:
        screen.note("no MCP servers in journeyman.yaml", "'journeyman mcp add NAME -- COMMAND' adds one")
    return None


def _places(store: str, page: str | None) -> Places:
    from journeyman.doors.mcp.calls import Places

    shown = None if page is None else f"{page.rstrip('/')}/#/approvals"

    def decide(approval: Approval) -> str:
        yes, no = decisions(store, approval.id)
        return f"Decide with '{yes}' or '{no}'{'' if shown is None else f', or open {shown}'}."

    def settle(run_id: str, call_id: str) -> str:
        again, done, skip = resolutions(store, run_id, call_id)
        return f"nobody knows whether it happened. Settle it with '{again}', '{done}' or '{skip}'."

    return Places(decide=decide, settle=settle, tell=screen.note, page=shown)
